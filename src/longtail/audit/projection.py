"""Audits without linear programs, for layers with long sparse rows such as one classifier per label on words.

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
from threadpoolctl import threadpool_limits

from longtail.audit.audited_layer import AuditedLayer
from longtail.audit.certificate import IMPOSSIBLE, Certificate, KnownProofs
from longtail.audit.certificate_search import NOTHING, SetAudit, WitnessFinder, audit_certificates, not_reached
from longtail.audit.label_sets import LabelSets
from longtail.errors import DataError
from longtail.kernels import Progress

MOST_LABELS = 12_000  # a square matrix of so many is 1.2 GB
MOST_DEPENDENT = 5_000  # eigenvectors of a larger one take too long
ROUNDS = 300
STEP = 1.5  # steps longer than to the nearest point converge sooner
INDEPENDENT = 1e-10  # part of the largest eigenvalue
GAPS = (1e-2, 1e-6, 1e-10)  # parts of the largest entry of a gap that are not rounding


def audit_by_projection(
    layer: AuditedLayer,
    sets: LabelSets,
    eps: float,
    witnesses: dict[str, WitnessFinder],
    until: float,
    progress: Progress | None,
) -> list[SetAudit]:
    """Audit every set of a layer with long sparse rows; radii are lower bounds."""
    reachable, known = ReachableScores(layer), KnownProofs()
    out: list[SetAudit] = []
    with threadpool_limits(1, user_api="blas"):  # products this small are slower on many threads
        for members in sets.members:
            if time.monotonic() > until:
                return out + [not_reached()] * (len(sets) - len(out))
            audit = _audit_set(layer, members, eps, witnesses, reachable, known)
            if audit.verdict == IMPOSSIBLE:
                known.add(members, audit.certificate)
            out.append(audit)
            if progress is not None:
                progress(len(out), len(sets))
    return out


def _audit_set(
    layer: AuditedLayer,
    members: np.ndarray,
    eps: float,
    witnesses: dict[str, WitnessFinder],
    reachable: ReachableScores,
    known: KnownProofs,
) -> SetAudit:
    """Audit one set: by what is known already, then by projection."""
    certificates: list[tuple[str, Certificate]] = []
    known_proof = known.find(members)
    if known_proof is not None:
        certificates.append(("proof of another set", known_proof))
    signs = layer.signs(members)
    if layer.bias is not None:
        constant = np.flatnonzero((layer.lengths == 0) & (layer.bias * signs <= 0))
        if constant.size:
            certificates.append(("constant label", Certificate(labels=constant[:1], weights=np.ones(1))))
    audit = audit_certificates(layer, members, eps, witnesses, certificates)
    if audit.how == NOTHING:
        audit = audit_certificates(layer, members, eps, {}, reachable.certificates(signs))
    return audit


class ReachableScores:
    """The subspace of scores that inputs give, before the bias is added, and the inputs that give them.

    Scores are in units of the length of each row. Inputs are sums of rows, x = mix @ W.
    """

    values: np.ndarray
    vectors: np.ndarray

    def __init__(self, layer: AuditedLayer) -> None:
        self.layer = layer
        # the other labels score their bias, whatever the input
        self.moving: np.ndarray = np.flatnonzero(layer.lengths > 0)
        if self.moving.size > MOST_LABELS:
            raise DataError(
                f"W has {self.moving.size:,} labels and {layer.W.shape[1]:,} columns, too many for an audit; audit "
                f"at most {MOST_LABELS:,} labels at a time."
            )
        self.lengths: np.ndarray = layer.lengths[self.moving]
        self.offset: np.ndarray = (
            np.zeros(self.moving.size) if layer.bias is None else layer.bias[self.moving] / self.lengths
        )
        rows = layer.W[self.moving]
        # rows of length 1: labels with small weights count as much as the others
        gram = (rows @ rows.T).toarray() / np.outer(self.lengths, self.lengths)
        self.factor: tuple[np.ndarray, bool] | None = _cholesky(gram)
        self.vectors, self.values = np.empty((0, 0)), np.empty(0)
        if self.factor is None:
            self.vectors, self.values = _eigenvectors(gram)

    @property
    def rank(self) -> int:
        """Dimension of the subspace: the rank of W."""
        return int(self.moving.size if self.factor is not None else self.values.size)

    def mix_of(self, scores: np.ndarray) -> np.ndarray:
        """Return row weights y (n_labels,) such that the input x = y @ W has these scores (in units of row lengths)."""
        if self.factor is not None:
            y = cho_solve(self.factor, scores)
        else:
            y = self.vectors @ ((self.vectors.T @ scores) / self.values)
        out = np.zeros(self.layer.n_labels)
        out[self.moving] = y / self.lengths
        return out

    @cached_property
    def undoing_bias(self) -> tuple[np.ndarray, np.ndarray]:
        """The mix whose input cancels the bias, as far as an input can, and that input."""
        mix = -self.mix_of(self.offset)
        return mix, self.layer.W.T @ mix

    def largest_mix(self, scores: np.ndarray) -> np.ndarray | None:
        """Return a mix whose input gives the signs of the scores, as large as the box allows."""
        forward, (back, away) = self.mix_of(scores), self.undoing_bias
        x = self.layer.W.T @ forward
        factors = (self.layer.box - np.sign(x) * away)[x != 0] / np.abs(x[x != 0])
        r = float(factors.min(initial=np.inf))
        return forward * (r * (1 - 1e-9)) + back if 0 < r < np.inf else None

    def find_scores(self, wanted: np.ndarray, least: float, offset: np.ndarray) -> tuple[bool, np.ndarray]:
        """Return (True, scores some input gives with the wanted signs) or (False, how far each label falls short).

        Scores have the wanted signs once the offset is added."""
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

    def certificates(self, signs: np.ndarray) -> Iterator[tuple[str, Certificate]]:
        """Yield certificates worth a check: inputs, then combinations of rows."""
        wanted, no_offset = signs[self.moving], np.zeros(self.moving.size)
        met, scores_or_gap = self.find_scores(wanted, 1.0, no_offset)
        mix = self.largest_mix(scores_or_gap) if met else None
        if mix is not None:
            yield "projection", Certificate(mix=mix)
        if self.layer.bias is not None:
            least = max(1e-3 * float(np.abs(self.offset).max()), 1e-9)
            met, scores_or_gap = self.find_scores(wanted, least, self.offset)
            if met:
                yield "projection", Certificate(mix=self.mix_of(scores_or_gap))
        if met:
            return
        gap = scores_or_gap
        for part in GAPS:
            rows = np.flatnonzero(gap > part * gap.max())
            yield "projection", Certificate(labels=self.moving[rows], weights=gap[rows] / self.lengths[rows])


def _cholesky(gram: np.ndarray) -> tuple[np.ndarray, bool] | None:
    """Return the Cholesky factor of the products of all rows; None if the rows depend on each other."""
    try:
        factor = cho_factor(gram, lower=True)
    except LinAlgError:
        return None
    return factor if np.abs(np.diag(factor[0])).min() ** 2 > INDEPENDENT else None


def _eigenvectors(gram: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the eigenvectors that span the reachable scores, and their eigenvalues."""
    if gram.shape[0] > MOST_DEPENDENT:
        raise DataError(
            f"W has {gram.shape[0]:,} labels, and some depend on each other; with long sparse rows an audit of such "
            f"labels takes at most {MOST_DEPENDENT:,} at a time."
        )
    values, vectors = eigh(gram)
    kept = values > INDEPENDENT * values[-1]
    return vectors[:, kept], values[kept]
