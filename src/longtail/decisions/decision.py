"""The decision itself: which of the candidates of a row are assigned; one function for every command and method."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Self

import numpy as np

from longtail.data import TopK
from longtail.decisions.ascent_kernel import keep_best_of_rows
from longtail.decisions.schema import DECISION
from longtail.storage import Part, checked

CANDIDATES = 50  # labels of a row that a decision looks at
NEVER = 2.0  # a threshold that no probability reaches


@dataclass(frozen=True, eq=False)
class Decision:
    """Which candidates a row is given: each label has a gain, scale × probability + shift.

    Without `k` all candidates whose gain is not below 0 are assigned: a threshold t is the scale 1 and the shift -t.
    With `k` every row gets the k candidates of the largest gain.

    >>> top = TopK([[0, 1, 2]], [[0.9, 0.4, 0.3]])
    >>> Decision.of_thresholds("f1", 0.35).chosen(top).tolist()
    [[True, True, False]]
    >>> Decision("macro-f1@1", scales=np.array([1, 1, 5], np.float32), shifts=np.zeros(3, np.float32), k=1).chosen(top)
    array([[False, False,  True]])
    """

    purpose: str
    scales: np.ndarray  # float32 (n_gains,), of the first labels
    shifts: np.ndarray  # float32 (n_gains,)
    scale: float = 1.0  # of labels after these: all of them, or those that were added later
    shift: float = 0.0
    per: str = "global"
    k: int | None = None
    candidates: int = CANDIDATES
    n_rows: int = 0
    reached: dict[str, float | None] = field(default_factory=dict)

    @classmethod
    def of_thresholds(
        cls,
        purpose: str,
        threshold: float,
        of_labels: np.ndarray | None = None,
        *,
        per: str = "global",
        candidates: int = CANDIDATES,
        n_rows: int = 0,
    ) -> Self:
        """Return the decision that assigns labels from a threshold on, or from one of their own."""
        shifts = np.zeros(0, dtype=np.float32) if of_labels is None else -np.asarray(of_labels, dtype=np.float32)
        scales = np.ones(shifts.size, dtype=np.float32)
        return cls(purpose, scales, shifts, 1.0, -float(threshold), per, None, candidates, n_rows)

    def of_labels(self, numbers: Sequence[int]) -> Decision:
        """Return the decision for some of the labels, ascending, numbered anew."""
        own = [number for number in numbers if number < self.scales.size]
        return replace(self, scales=self.scales[own], shifts=self.shifts[own])

    @property
    def threshold(self) -> float | None:
        """The threshold of labels that have none of their own; None where every row gets k labels."""
        return -self.shift if self.k is None else None

    def gains(self, probabilities: TopK) -> np.ndarray:
        """Return the gain of every candidate, float32 (n_rows, candidates)."""
        ids = probabilities.ids
        own = (ids >= 0) & (ids < self.scales.size)
        scale, shift = np.full(ids.shape, self.scale, np.float32), np.full(ids.shape, self.shift, np.float32)
        scale[own], shift[own] = self.scales[ids[own]], self.shifts[ids[own]]
        return scale * np.where(ids >= 0, probabilities.scores, np.float32(0)) + shift

    def chosen(self, probabilities: TopK) -> np.ndarray:
        """Return which candidates are assigned: bool (n_rows, candidates)."""
        gains = self.gains(probabilities)
        if self.k is None:
            return (probabilities.ids >= 0) & (gains >= 0)
        keep = np.zeros(gains.shape, dtype=np.bool_)
        keep_best_of_rows(gains, probabilities.ids, self.k, keep)
        return keep

    def to_part(self) -> Part:
        params = {
            "purpose": self.purpose,
            "per": self.per,
            "k": self.k,
            "candidates": self.candidates,
            "n_rows": self.n_rows,
            "scale": self.scale,
            "shift": self.shift,
            "reached": self.reached,
        }
        return Part(DECISION.kind, params, {"scales": self.scales, "shifts": self.shifts})

    @classmethod
    def from_part(cls, part: Part) -> Self:
        params = checked(part, DECISION).params
        numbers: dict[str, Any] = {name: float(params[name]) for name in ("scale", "shift")}
        rest: dict[str, Any] = {name: params[name] for name in ("per", "k", "candidates", "n_rows", "reached")}
        return cls(params["purpose"], part.array("scales"), part.array("shifts"), **numbers, **rest)


def assigned_only(top: TopK, keep: np.ndarray, k: int | None = None) -> TopK:
    """Return the candidates that are kept, at most k of a row, in their order; the rest of a row is empty.

    >>> assigned_only(TopK([[3, 1, 2]], [[0.9, 0.5, 0.4]]), np.array([[True, False, True]])).ids.tolist()
    [[3, 2]]
    """
    keep = keep & (np.cumsum(keep, axis=1) <= k) if k is not None else keep
    width = int(keep.sum(axis=1).max(initial=0))
    order = np.argsort(~keep, axis=1, kind="stable")[:, :width]
    kept = np.take_along_axis(keep, order, axis=1)
    ids = np.where(kept, np.take_along_axis(top.ids, order, axis=1), -1)
    return TopK(ids, np.where(kept, np.take_along_axis(top.scores, order, axis=1), -np.inf))
