"""Layers with long sparse rows, such as one classifier per label on words: audits without linear programs.

With more columns than labels and independent rows every set can come out: the scores t with the wanted signs are
those of the input x = W' y, where (W W') y = t - bias. With dependent rows the scores that occur are a subspace. The
point of it that is nearest to the wanted signs is sought by projecting back and forth between the two: where they
meet, it is such an input; where they stay apart, the gap is a combination of rows that proves why. Every answer is
checked on W itself, so nothing here needs to be exact.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from functools import cached_property

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve, eigh
from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

from longtail.audit.certificate import Certificate
from longtail.audit.constraints import Problem
from longtail.audit.search import IMPOSSIBLE, Outcome, Witness, audit_certificates, not_reached
from longtail.audit.set_lists import KnownProofs, LabelSets
from longtail.errors import DataError
from longtail.kernels import Progress

MOST_LABELS = 12_000  # a square matrix of so many is 1.2 GB
MOST_DEPENDENT = 5_000  # eigenvectors of a larger one take too long
ROUNDS = 300
STEP = 1.5  # steps longer than to the nearest point converge sooner
INDEPENDENT = 1e-10  # part of the largest eigenvalue
GAPS = (1e-2, 1e-6, 1e-10)  # parts of the largest entry of a gap that are not rounding


class Subspace:
    """The scores that some input gives, up to the bias; and the mix of rows that is that input."""

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        self.moving = np.flatnonzero(problem.lengths > 0)  # the other labels score their bias, whatever the input
        if self.moving.size > MOST_LABELS:
            raise DataError(
                f"W has {self.moving.size:,} labels and {problem.W.shape[1]:,} columns, too many for an audit; audit "
                f"at most {MOST_LABELS:,} labels at a time."
            )
        self.lengths = problem.lengths[self.moving]
        self.offset = np.zeros(self.moving.size) if problem.bias is None else problem.bias[self.moving] / self.lengths
        rows = problem.W[self.moving]
        # rows of length 1: labels with small weights count as much as the others
        gram = (rows @ rows.T).toarray() / np.outer(self.lengths, self.lengths)
        self.factor = _independent(gram)
        self.vectors, self.values = np.empty((0, 0)), np.empty(0)
        if self.factor is None:
            self.vectors, self.values = _dependent(gram)

    def mix_of(self, scores: np.ndarray) -> np.ndarray:
        """Return the weights of the rows (n_labels,) whose sum is an input with these scores, per length of row."""
        if self.factor is not None:
            y = cho_solve(self.factor, scores)
        else:
            y = self.vectors @ ((self.vectors.T @ scores) / self.values)
        out = np.zeros(self.problem.n_labels)
        out[self.moving] = y / self.lengths
        return out

    @cached_property
    def against_bias(self) -> tuple[np.ndarray, np.ndarray]:
        """The mix whose input takes the bias away, as far as an input can, and that input."""
        mix = -self.mix_of(self.offset)
        return mix, self.problem.W.T @ mix

    def largest(self, scores: np.ndarray) -> np.ndarray | None:
        """Return a mix whose input gives the signs of the scores, as large as the box allows."""
        forward, (back, away) = self.mix_of(scores), self.against_bias
        x = self.problem.W.T @ forward
        room = (self.problem.box - np.sign(x) * away)[x != 0] / np.abs(x[x != 0])
        r = float(room.min(initial=np.inf))
        return forward * (r * (1 - 1e-9)) + back if 0 < r < np.inf else None

    def meet(self, wanted: np.ndarray, least: float, offset: np.ndarray) -> tuple[bool, np.ndarray]:
        """Return scores of an input, less the offset, with the wanted signs; or, after False, the gap that stays."""
        if self.factor is not None:
            return True, wanted * least - offset
        scores, gap = wanted * least, np.zeros(0)
        for _ in range(ROUNDS):
            scores = self.vectors @ (self.vectors.T @ (scores - offset))  # the nearest that an input gives
            reached = wanted * (scores + offset)
            if float(reached.min()) > 0.1 * least:
                return True, scores
            gap = np.maximum(least - reached, 0)
            scores = scores + offset + STEP * wanted * gap
        return False, gap

    def search(self, signs: np.ndarray) -> Iterator[tuple[str, Certificate]]:
        """Yield certificates worth a check: inputs, then combinations of rows."""
        wanted, no_offset = signs[self.moving], np.zeros(self.moving.size)
        met, found = self.meet(wanted, 1.0, no_offset)
        mix = self.largest(found) if met else None
        if mix is not None:
            yield "projection", Certificate(mix=mix)
        if self.problem.bias is not None:
            least = max(1e-3 * float(np.abs(self.offset).max()), 1e-9)
            met, found = self.meet(wanted, least, self.offset)
            if met:
                yield "projection", Certificate(mix=self.mix_of(found))
        for part in () if met else GAPS:
            rows = np.flatnonzero(found > part * found.max())
            yield "projection", Certificate(labels=self.moving[rows], weights=found[rows] / self.lengths[rows])


def _independent(gram: np.ndarray) -> tuple[np.ndarray, bool] | None:
    try:
        factor = cho_factor(gram, lower=True)
    except LinAlgError:
        return None
    return factor if np.abs(np.diag(factor[0])).min() ** 2 > INDEPENDENT else None


def _dependent(gram: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    if gram.shape[0] > MOST_DEPENDENT:
        raise DataError(
            f"W has {gram.shape[0]:,} labels, and some depend on each other; with long sparse rows an audit of such "
            f"labels takes at most {MOST_DEPENDENT:,} at a time."
        )
    values, vectors = eigh(gram)
    kept = values > INDEPENDENT * values[-1]
    return vectors[:, kept], values[kept]


def audit_by_projection(
    problem: Problem,
    sets: LabelSets,
    eps: float,
    witnesses: dict[str, Witness],
    until: float,
    progress: Progress | None,
) -> list[Outcome]:
    """Return an outcome for every set of a layer with long sparse rows; radii are lower bounds."""
    space, known = Subspace(problem), KnownProofs()
    out: list[Outcome] = []
    with threadpool_limits(1, user_api="blas"):  # products this small are slower on several threads
        for members in sets.members:
            if time.monotonic() > until:
                return out + [not_reached()] * (len(sets) - len(out))
            outcome = _audit_set(problem, members, eps, witnesses, space, known)
            if outcome.verdict == IMPOSSIBLE:
                known.add(members, outcome.certificate)
            out.append(outcome)
            if progress is not None:
                progress(len(out), len(sets))
    return out


def _audit_set(
    problem: Problem,
    members: np.ndarray,
    eps: float,
    witnesses: dict[str, Witness],
    space: Subspace,
    known: KnownProofs,
) -> Outcome:
    tries: list[tuple[str, Certificate]] = []
    seen = known.find(members)
    if seen is not None:
        tries.append(("proof of another set", seen))
    signs = problem.signs(members)
    if problem.bias is not None:
        constant = np.flatnonzero((problem.lengths == 0) & (problem.bias * signs <= 0))
        if constant.size:
            tries.append(("constant label", Certificate(labels=constant[:1], weights=np.ones(1))))
    outcome = audit_certificates(problem, members, eps, witnesses, tries)
    if outcome.how == "nothing":
        outcome = audit_certificates(problem, members, eps, {}, space.search(signs))
    return outcome
