"""From a label set to a certificate: the cheap ways first, and nothing believed without its proof."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

import numpy as np
from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

from longtail.audit.certificate import Certificate
from longtail.audit.chebyshev_centre import largest_ball
from longtail.audit.constraints import Problem
from longtail.audit.proof import Proof, prove
from longtail.audit.reference_lp import generated_lp
from longtail.audit.set_lists import KnownProofs, LabelSets
from longtail.facts import IMPOSSIBLE, REACHABLE, ROBUST, UNDECIDED
from longtail.kernels import Progress, blocks, run_tasks
from longtail.validate import check_real

TOLERANCE = 1e-13  # relative to the box
DIGITS = 1e-12  # radii below this part of the box drown in rounding
WAVE = 64  # sets between two looks at the proofs found so far; a fixed number, so threads change nothing


@dataclass(frozen=True, eq=False)
class Outcome:
    """What was proved about one set, by what, and the certificate."""

    verdict: str
    radius: float  # of a ball that was found, 0 if none
    radius_at_most: float  # no ball is larger
    how: str
    certificate: Certificate


def verdict_of(proof: Proof, eps: float) -> str:
    """Return the strongest statement that was proved."""
    if proof.reachable is None:
        return UNDECIDED
    if not proof.reachable:
        return IMPOSSIBLE
    return ROBUST if proof.radius_at_least >= eps else REACHABLE


def settled(proof: Proof, eps: float, exact: bool, box: float) -> bool:
    """Say whether a proof leaves nothing open: the verdict and, if wanted, the radius."""
    if proof.reachable is not True:
        return proof.reachable is False
    if proof.radius_at_least < eps <= proof.radius_at_most:
        return False
    gap = proof.radius_at_most - proof.radius_at_least
    return not exact or gap <= 1e-6 * proof.radius_at_most + DIGITS * box


def deadline(seconds: float | None) -> float:
    """Return when to stop, as `time.monotonic` counts."""
    return np.inf if seconds is None else time.monotonic() + check_real("seconds", seconds, low=0)


def not_reached(threshold: bool = False) -> Outcome:
    """Return the outcome of a set for which there was no time."""
    return Outcome(UNDECIDED, 0.0, np.inf, "no time left", Certificate(threshold=threshold))


Witness = Callable[[np.ndarray], np.ndarray | None]


def audit_sets(
    problem: Problem,
    sets: LabelSets,
    eps: float,
    exact: bool,
    witnesses: dict[str, Witness],
    n_jobs: int,
    progress: Progress | None,
    until: float = np.inf,
) -> list[Outcome]:
    """Return an outcome for every set; `witnesses` name ways to guess an input, tried in their order."""
    problem.columns, problem.offsets  # noqa: B018  made once, before the threads start
    with threadpool_limits(1, user_api="blas"):  # threads of ours and of the matrix library would fight for the cores
        return _waves(problem, sets, eps, exact, witnesses, n_jobs, progress, until)


def _waves(
    problem: Problem,
    sets: LabelSets,
    eps: float,
    exact: bool,
    witnesses: dict[str, Witness],
    n_jobs: int,
    progress: Progress | None,
    until: float,
) -> list[Outcome]:
    known = KnownProofs()
    out: list[Outcome] = []
    for wave in blocks(len(sets), WAVE):
        if time.monotonic() > until:
            return out + [not_reached(problem.threshold)] * (len(sets) - len(out))
        members = sets.members[wave]
        found: list[Outcome | None] = [_by_known(problem, m, known) for m in members]
        open_ = [i for i, outcome in enumerate(found) if outcome is None]

        def search(i: int, members: list[np.ndarray] = members) -> Outcome:
            return audit_set(problem, members[i], eps, exact, witnesses)

        for i, outcome in zip(open_, run_tasks(search, open_, n_jobs), strict=True):
            found[i] = outcome
            if outcome.verdict == IMPOSSIBLE:
                known.add(members[i], outcome.certificate)
        out += [outcome for outcome in found if outcome is not None]
        if progress is not None:
            progress(len(out), len(sets))
    return out


def audit_set(problem: Problem, members: np.ndarray, eps: float, exact: bool, witnesses: dict[str, Witness]) -> Outcome:
    """Return what can be proved about one set."""
    best = Outcome(UNDECIDED, 0.0, np.inf, "nothing", Certificate(threshold=problem.threshold))
    if not exact:
        best, done = _by_witnesses(problem, members, eps, exact, witnesses, best)
        if done:
            return best
    best, done = _by_kernel(problem, members, eps, exact, best)
    if done:
        return best
    if exact:
        best, done = _by_witnesses(problem, members, eps, exact, witnesses, best)
        if done:
            return best
    rows = best.certificate.labels if best.certificate.labels is not None else members
    x, _, rows, weights = generated_lp(problem, members, rows)
    return _better(problem, members, eps, exact, best, Certificate(x, rows, weights, problem.threshold), "HiGHS")[0]


def audit_certificates(
    problem: Problem,
    members: np.ndarray,
    eps: float,
    witnesses: dict[str, Witness],
    tries: Iterable[tuple[str, Certificate]],
) -> Outcome:
    """Return what the given certificates prove about one set, without any search."""
    best = Outcome(UNDECIDED, 0.0, np.inf, "nothing", Certificate(threshold=problem.threshold))
    for how, certificate in tries:
        best, done = _better(problem, members, eps, False, best, certificate, how)
        if done:
            return best
    return _by_witnesses(problem, members, eps, False, witnesses, best)[0]


def _by_known(problem: Problem, members: np.ndarray, known: KnownProofs) -> Outcome | None:
    certificate = known.find(members)
    if certificate is None:
        return None
    proof = prove(problem, members, certificate)
    if proof.reachable is not False:
        return None
    return Outcome(IMPOSSIBLE, 0.0, proof.radius_at_most, "proof of another set", certificate)


def _by_witnesses(
    problem: Problem, members: np.ndarray, eps: float, exact: bool, witnesses: dict[str, Witness], best: Outcome
) -> tuple[Outcome, bool]:
    for how, witness in witnesses.items():
        x = witness(members)
        if x is not None:
            certificate = replace(best.certificate, x=x)
            best, done = _better(problem, members, eps, exact, best, certificate, how)
            if done:
                return best, True
    return best, False


def _by_kernel(problem: Problem, members: np.ndarray, eps: float, exact: bool, best: Outcome) -> tuple[Outcome, bool]:
    d = problem.W.shape[1]
    x, basis, weights = np.zeros(d), np.full(d + 1, -1), np.zeros(d + 1)
    enough = np.inf if exact else eps / problem.box * (1 + 1e-6) + 1e-13
    largest_ball(
        problem.rows,
        problem.columns,
        problem.offsets,
        problem.signs(members),
        TOLERANCE,
        enough,
        200 * (d + 1),
        x,
        basis,
        weights,
    )
    rows, weights = basis[basis >= 0], weights[basis >= 0]
    lengths = np.where(problem.lengths[rows] > 0, problem.lengths[rows], 1.0)
    x = np.clip(x, -1, 1) * problem.limits
    certificate = Certificate(x, rows, weights / lengths, problem.threshold)
    return _better(problem, members, eps, exact, best, certificate, "linear program")


def _better(
    problem: Problem, members: np.ndarray, eps: float, exact: bool, best: Outcome, new: Certificate, how: str
) -> tuple[Outcome, bool]:
    """Return the better of what was known and what a new certificate proves, and whether the search may end."""
    proof = prove(problem, members, new)
    mix = best.certificate.mix
    x, labels, weights = best.certificate.x, best.certificate.labels, best.certificate.weights
    low, high = best.radius, best.radius_at_most
    if proof.reachable and ((x is None and mix is None) or proof.radius_at_least > low):
        x, mix, low = new.x, new.mix, proof.radius_at_least
    if proof.reachable is False or proof.radius_at_most < high:
        labels, weights, high = new.labels, new.weights, proof.radius_at_most
    proof = Proof(True if x is not None or mix is not None else proof.reachable, low, high)
    verdict = verdict_of(proof, eps)
    how = how if verdict != best.verdict else best.how
    outcome = Outcome(verdict, low, high, how, Certificate(x, labels, weights, problem.threshold, mix))
    return outcome, settled(proof, eps, exact, problem.box)
