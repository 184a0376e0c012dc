"""The search for a certificate of each label set: the cheap ways first, and nothing believed without its proof."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import TypeAlias

import numpy as np
from threadpoolctl import threadpool_limits

from longtail.audit.audited_layer import AuditedLayer
from longtail.audit.certificate import IMPOSSIBLE, REACHABLE, ROBUST, UNDECIDED, Certificate, KnownProofs
from longtail.audit.chebyshev_centre import find_centre
from longtail.audit.label_sets import LabelSets
from longtail.audit.proof import Proof, prove
from longtail.audit.reference_lp import solve_by_row_generation
from longtail.audit.time_left import TimeLeft
from longtail.bottleneck import wave_roots
from longtail.kernels import Progress, blocks, run_tasks
from longtail.validate import check_real

TOLERANCE = 1e-13  # relative to the box
DIGITS = 1e-12  # radii below this part of the box drown in rounding
WAVE = 64  # sets between two looks at the proofs known so far; a fixed number, so threads change nothing
NOTHING = "nothing"  # decided a set that is still open
NO_TIME = "no time left"

WitnessFinder: TypeAlias = Callable[[np.ndarray], np.ndarray | None]
"""A cheap way to guess an input that produces a label set, given by its members; None where it has no guess."""


@dataclass(frozen=True, eq=False)
class SetAudit:
    """The verdict about one label set, its radius, the method that decided it and the certificate."""

    verdict: str
    radius: float  # of the ball around the certificate's input, 0 without one
    radius_at_most: float  # no ball is larger
    how: str
    certificate: Certificate


def audit_sets(
    layer: AuditedLayer,
    sets: LabelSets,
    eps: float,
    exact: bool,
    witnesses: dict[str, WitnessFinder],
    n_jobs: int,
    progress: Progress | None,
    until: float = np.inf,
    elsewhere: Callable[[list[np.ndarray], float], list[SetAudit]] | None = None,
) -> list[SetAudit]:
    """Audit every set by linear programs; `witnesses` are guesses of an input, tried in their order.

    Sets are taken in waves. A wave begins with the proofs known from earlier ones: a combination of labels that proves
    one set impossible often fits others. `elsewhere` audits sets in place of `audit_set`.
    """
    layer.lp_columns, layer.lp_offsets  # noqa: B018  made once, before the threads start
    known = KnownProofs()
    out: list[SetAudit] = []
    with threadpool_limits(1, user_api="blas"):  # threads of ours and of the matrix library would fight for the cores
        for wave in blocks(len(sets), WAVE):
            if time.monotonic() > until:
                return out + [not_reached(layer.threshold)] * (len(sets) - len(out))
            members, time_left = sets.members[wave], TimeLeft(until)
            audits = [_audit_by_known_proof(layer, m, known) for m in members]
            open_ = [i for i, audit in enumerate(audits) if audit is None]

            def search(i: int, members: list[np.ndarray] = members, time_left: TimeLeft = time_left) -> SetAudit:
                return audit_set(layer, members[i], eps, exact, witnesses, time_left)

            if elsewhere is None:
                found = run_tasks(search, open_, n_jobs, stop=time_left.stop)
            else:
                found = elsewhere([members[i] for i in open_], until)
            for i, audit in zip(open_, found, strict=True):
                audits[i] = audit
                if audit.verdict == IMPOSSIBLE:
                    known.add(members[i], audit.certificate)
            out += [audit for audit in audits if audit is not None]
            if progress is not None:
                progress(len(out), len(sets))
    return out


def audit_set(
    layer: AuditedLayer,
    members: np.ndarray,
    eps: float,
    exact: bool,
    witnesses: dict[str, WitnessFinder],
    time_left: TimeLeft | None = None,
) -> SetAudit:
    """Audit one set: a formula, guessed inputs and our own linear program, then HiGHS if that leaves something open.

    Where only a bound on the radius is wanted, a guess may be enough; for exact radii the linear program comes first.
    When the time is over, what is proved by then counts.
    """
    time_left = TimeLeft() if time_left is None else time_left
    if time_left.is_over:
        return not_reached(layer.threshold)
    search = SetSearch(layer, members, eps, exact)
    if search.try_roots():
        return search.best
    by_formula = search.best.certificate.roots is not None
    if not exact and search.try_witnesses(witnesses):
        return search.best
    if search.try_linear_program(time_left):
        return search.best
    if exact and search.try_witnesses(witnesses):
        return search.best
    if not by_formula and not time_left.is_over:  # a set proved by formula needs no second opinion
        search.try_highs(time_left)
    if time_left.is_over and search.best.verdict == UNDECIDED:
        return replace(search.best, how=NO_TIME)
    return search.best


def audit_certificates(
    layer: AuditedLayer,
    members: np.ndarray,
    eps: float,
    witnesses: dict[str, WitnessFinder],
    certificates: Iterable[tuple[str, Certificate]],
) -> SetAudit:
    """Audit one set by the given certificates and guesses alone, without a linear program."""
    search = SetSearch(layer, members, eps, exact=False)
    for how, certificate in certificates:
        if search.try_certificate(how, certificate):
            return search.best
    search.try_witnesses(witnesses)
    return search.best


class SetSearch:
    """The best that is proved about one set so far; every `try_...` says whether nothing is left open."""

    eps: float
    exact: bool
    layer: AuditedLayer
    members: np.ndarray

    def __init__(self, layer: AuditedLayer, members: np.ndarray, eps: float, exact: bool) -> None:
        self.layer, self.members, self.eps, self.exact = layer, members, eps, exact
        self.best: SetAudit = SetAudit(UNDECIDED, 0.0, np.inf, NOTHING, Certificate(threshold=layer.threshold))

    def try_certificate(self, how: str, new: Certificate) -> bool:
        """Keep what a certificate proves beyond what is known: a larger ball, a smaller bound."""
        best, old = self.best, self.best.certificate
        proof = prove(self.layer, self.members, new)
        witness, multipliers = (old.x, old.mix, old.roots), (old.labels, old.weights)
        low, high = best.radius, best.radius_at_most
        known = any(part is not None for part in witness)
        if proof.reachable and (not known or proof.radius_at_least > low):
            witness, low, known = (new.x, new.mix, new.roots), proof.radius_at_least, True
        if proof.reachable is False or (proof.radius_at_most < high and not (known and proof.radius_at_most <= 0)):
            multipliers, high = (new.labels, new.weights), proof.radius_at_most
        joint = Proof(True if known else proof.reachable, low, high)
        verdict = verdict_of(joint, self.eps)
        x, mix, roots = witness
        certificate = Certificate(x, *multipliers, self.layer.threshold, mix, roots)
        self.best = SetAudit(verdict, low, high, how if verdict != best.verdict else best.how, certificate)
        return is_settled(joint, self.eps, self.exact, self.layer.box)

    def try_witnesses(self, witnesses: dict[str, WitnessFinder]) -> bool:
        """Try every guess of an input."""
        for how, find_witness in witnesses.items():
            x = find_witness(self.members)
            if x is not None and self.try_certificate(how, replace(self.best.certificate, x=x)):
                return True
        return False

    def try_roots(self) -> bool:
        """Try the wave that a formula gives for a set of at most k runs of labels on the layer's circle."""
        roots = None if self.layer.circle is None else wave_roots(self.layer.circle, self.members)
        return roots is not None and self.try_certificate("DFT formula", replace(self.best.certificate, roots=roots))

    def try_linear_program(self, time_left: TimeLeft) -> bool:
        """Try the centre of the set's region and its multipliers, from our own solver."""
        layer, d = self.layer, self.layer.W.shape[1]
        x, basis, weights = np.zeros(d), np.full(d + 1, -1), np.zeros(d + 1)
        enough = np.inf if self.exact else self.eps / layer.box * (1 + 1e-6) + 1e-13
        signs = layer.signs(self.members)
        rows, columns, offsets = layer.lp_rows, layer.lp_columns, layer.lp_offsets
        find_centre(rows, columns, offsets, signs, TOLERANCE, enough, 200 * (d + 1), x, basis, weights, time_left)
        labels = basis[basis >= 0]
        weights = layer.unscaled_weights(labels, weights[basis >= 0])
        x = np.clip(x, -1, 1) * layer.limits
        return self.try_certificate("linear program", Certificate(x, labels, weights, layer.threshold))

    def try_highs(self, time_left: TimeLeft) -> bool:
        """Try the same by HiGHS, starting with the labels of the best certificate."""
        labels = self.best.certificate.labels
        first = self.members if labels is None else labels
        x, _, labels, weights = solve_by_row_generation(self.layer, self.members, first, time_left)
        return self.try_certificate("HiGHS", Certificate(x, labels, weights, self.layer.threshold))


def _audit_by_known_proof(layer: AuditedLayer, members: np.ndarray, known: KnownProofs) -> SetAudit | None:
    """Audit one set by a proof of another; None if none fits."""
    certificate = known.find(members)
    if certificate is None:
        return None
    proof = prove(layer, members, certificate)
    if proof.reachable is not False:
        return None
    return SetAudit(IMPOSSIBLE, 0.0, proof.radius_at_most, "proof of another set", certificate)


def verdict_of(proof: Proof, eps: float) -> str:
    """Return the strongest statement that was proved."""
    if proof.reachable is None:
        return UNDECIDED
    if not proof.reachable:
        return IMPOSSIBLE
    return ROBUST if proof.radius_at_least >= eps else REACHABLE


def is_settled(proof: Proof, eps: float, exact: bool, box: float) -> bool:
    """Say whether a proof leaves nothing open: the verdict and, if wanted, the radius."""
    if proof.reachable is not True:
        return proof.reachable is False
    if proof.radius_at_least < eps <= proof.radius_at_most:
        return False
    if not exact or np.isinf(proof.radius_at_most):
        return not exact
    gap = proof.radius_at_most - proof.radius_at_least
    return gap <= 1e-6 * proof.radius_at_most + DIGITS * box


def deadline(seconds: float | None) -> float:
    """Return when to stop, as `time.monotonic` counts."""
    return np.inf if seconds is None else time.monotonic() + check_real("seconds", seconds, low=0)


def not_reached(threshold: bool = False) -> SetAudit:
    """Return the audit of a set for which there was no time."""
    return SetAudit(UNDECIDED, 0.0, np.inf, NO_TIME, Certificate(threshold=threshold))
