"""From scores to probabilities: a monotone curve learned on rows the model has not seen."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np

from longtail.data import TopK
from longtail.errors import DataError
from longtail.model.schema import CALIBRATION, N_CUTS
from longtail.storage import Part, checked


@dataclass(frozen=True, eq=False)
class Cuts:
    """How many suggestions on held-out rows are at least so likely, and how many of them are right.

    >>> cuts = Cuts.count(np.array([0.9, 0.3]), np.array([True, False]), n_rows=2, n_true=2)
    >>> cuts.given[[0, 100, 200]].tolist(), cuts.right[[0, 100, 200]].tolist()
    ([2, 1, 0], [1, 1, 0])
    """

    given: np.ndarray  # int64 (N_CUTS,), at the probabilities 0, 1/200, 2/200, ..., 1
    right: np.ndarray  # int64 (N_CUTS,)
    n_rows: int
    n_true: int  # labels that the rows really have

    @classmethod
    def count(cls, probabilities: np.ndarray, right: np.ndarray, n_rows: int, n_true: int) -> Self:
        """Count suggestions by their probabilities, and whether each is right."""
        at = np.floor(probabilities.astype(np.float64) * (N_CUTS - 1) + 1e-6).astype(np.int64).clip(0, N_CUTS - 1)
        counts = (np.bincount(at, minlength=N_CUTS), np.bincount(at[right], minlength=N_CUTS))
        given, hits = (np.cumsum(one[::-1])[::-1].astype(np.int64) for one in counts)
        return cls(given, hits, int(n_rows), int(n_true))

    def joined(self, other: Cuts) -> Cuts:
        """Return the counts of two sets of rows together."""
        return Cuts(
            self.given + other.given, self.right + other.right, self.n_rows + other.n_rows, self.n_true + other.n_true
        )


@dataclass(frozen=True)
class Calibration:
    """A piecewise linear, never falling map from score to probability, and the best threshold for label sets.

    Isotonic regression over all (row, label) pairs among the top k of the held-out rows, joined through the middles
    of its steps so that better scores stay better probabilities.

    >>> top = TopK(np.array([[0, 1]] * 100), np.array([[2.0, -1.0]] * 100))
    >>> hits = np.array([[True, False]] * 90 + [[False, False]] * 10)
    >>> calibration = Calibration.fit(top, hits, hits.sum(axis=1))
    >>> [round(float(p), 2) for p in calibration.apply(top).scores[0]]
    [0.9, 0.0]
    """

    scores: np.ndarray  # float32, ascending
    values: np.ndarray  # float32, ascending, within [0, 1]
    threshold: float  # the probability above which predicting a label gave the best micro F1
    n_rows: int  # held-out rows it was learned from
    cuts: Cuts | None = None  # what every threshold gives on these rows; None of models saved by earlier versions

    @classmethod
    def fit(cls, topk: TopK, hits: np.ndarray, n_true: np.ndarray) -> Self:
        """Learn the curve from predictions, whether each was right, and how many labels each row really has."""
        from sklearn.isotonic import IsotonicRegression  # only to learn: importing scikit-learn takes its time

        present = topk.ids >= 0
        scores = topk.scores[present].astype(np.float64)
        right = hits[present].astype(np.float64)
        if scores.size == 0:
            raise DataError("calibration needs at least one prediction; the held-out rows got none.")
        steps = IsotonicRegression(y_min=0.0, y_max=1.0, out_of_bounds="clip").fit(scores, right).predict(scores)
        # one knot per step: its mean score and its value
        values, which = np.unique(steps, return_inverse=True)
        counts = np.bincount(which)
        knots = np.bincount(which, weights=scores) / counts
        order = np.argsort(knots, kind="stable")
        knots, values = knots[order], values[order]
        curve = cls(knots.astype(np.float32), values.astype(np.float32), 0.5, topk.n_rows)
        chances = curve.apply(topk).scores[present]
        threshold = _best_threshold(chances, right > 0, int(n_true.sum()))
        cuts = Cuts.count(chances, right > 0, topk.n_rows, int(n_true.sum()))
        return cls(curve.scores, curve.values, threshold, topk.n_rows, cuts)

    def joined(self, newer: Calibration) -> Calibration:
        """Return the mean of two curves and thresholds, each counting as much as it has rows."""
        scores = np.union1d(self.scores, newer.scores).astype(np.float32)
        rows = self.n_rows + newer.n_rows
        old, new = self.n_rows / rows, newer.n_rows / rows
        values = old * np.interp(scores, self.scores, self.values) + new * np.interp(scores, newer.scores, newer.values)
        cuts = self.cuts if newer.cuts is None else newer.cuts if self.cuts is None else self.cuts.joined(newer.cuts)
        threshold = old * self.threshold + new * newer.threshold
        return Calibration(scores, values.astype(np.float32), threshold, rows, cuts)

    def apply(self, topk: TopK) -> TopK:
        """Return probabilities in place of scores; missing places stay missing."""
        present = topk.ids >= 0
        out = np.full(topk.scores.shape, -np.inf, dtype=np.float32)
        out[present] = np.interp(topk.scores[present], self.scores, self.values)
        return TopK(topk.ids, out)

    def chosen(self, topk: TopK) -> np.ndarray:
        """Return which predictions reach the threshold: bool (n_rows, k)."""
        return self.reached(self.apply(topk))

    def reached(self, chances: TopK) -> np.ndarray:
        """Return which probabilities, as `apply` gives them, reach the threshold: bool (n_rows, k)."""
        return (chances.ids >= 0) & (chances.scores >= np.float32(self.threshold))

    def to_part(self) -> Part:
        params = {"threshold": self.threshold, "n_rows": self.n_rows}
        arrays = {"scores": self.scores, "values": self.values}
        if self.cuts is not None:
            params |= {"cut_rows": self.cuts.n_rows, "cut_labels": self.cuts.n_true}
            arrays["cuts"] = np.stack([self.cuts.given, self.cuts.right])
        return Part(CALIBRATION.kind, params, arrays)

    @classmethod
    def from_part(cls, part: Part) -> Self:
        part = checked(part, CALIBRATION)
        threshold, n_rows = part.params["threshold"], part.params["n_rows"]
        cuts = None
        if "cuts" in part.arrays:
            counts = part.array("cuts")
            cuts = Cuts(counts[0], counts[1], part.params.get("cut_rows") or 0, part.params.get("cut_labels") or 0)
        return cls(part.array("scores"), part.array("values"), float(threshold), n_rows, cuts)


def _best_threshold(probabilities: np.ndarray, right: np.ndarray, n_true: int) -> float:
    """Return where to cut the ranked pairs for the best micro F1."""
    if not right.any():
        return 0.5  # nothing to choose by; no probability is above 0
    order = np.argsort(-probabilities, kind="stable")
    ranked = probabilities[order]
    true_positives = np.cumsum(right[order])
    f1 = 2 * true_positives / (np.arange(1, order.size + 1) + max(n_true, 1))
    last_of_tie = np.append(ranked[1:] != ranked[:-1], True)
    last = int(np.argmax(np.where(last_of_tie, f1, -1.0)))
    # half-way to the next lower probability: new rows need not reach the lowest one seen here
    return float((ranked[last] + (ranked[last + 1] if last + 1 < ranked.size else 0.0)) / 2)
