"""Calibration of predicted probabilities: is a label predicted with 0.8 right in 80 of 100 cases?"""

from __future__ import annotations

import numpy as np

from longtail.data import TopK
from longtail.errors import DataError
from longtail.facts import CalibrationBinFacts, CalibrationFacts
from longtail.metrics.measures import Measure, share
from longtail.metrics.row_metrics import Judged, judge
from longtail.validate import MatrixLike, check_integer


def calibration(Y_true: MatrixLike, topk: TopK, k: int | None = None, *, n_bins: int = 10) -> CalibrationFacts:
    """Return how well the scores of the first k predictions, which must be probabilities, are calibrated.

    Only predicted pairs are judged; the labels a row does not predict have no probability here. Over bins b of
    equal width, `expected_calibration_error = Σ_b size_b |mean probability_b - share right_b| / Σ_b size_b`;
    `brier = mean((probability - right)²)`.

    Parameters
    ----------
    Y_true : matrix of shape (n_rows, n_labels)
        The truth; every non-zero is a true label.
    topk : TopK
        Predictions for the same rows, with probabilities as scores.
    k : int or None, default=None
        How many predictions of each row count; None for all.
    n_bins : int, default=10
        The number of bins.

    Returns
    -------
    facts : dict
        `k`, `pairs`, `bins`, `expected_calibration_error` and `brier`.

    Examples
    --------
    >>> facts = calibration([[1, 0, 0]], TopK.from_scores([[0.8, 0.4, 0.0]], k=2))
    >>> round(facts["brier"], 3), round(facts["expected_calibration_error"], 3)
    (0.1, 0.3)
    """
    judged = judge(Y_true, topk, topk.k if k is None else k)
    return calibration_facts(judged, n_bins)


def calibration_facts(judged: Judged, n_bins: int = 10) -> CalibrationFacts:
    """Return the calibration facts of judged predictions."""
    n_bins = check_integer("n_bins", n_bins, low=1)
    present = judged.ids >= 0
    p = _check_probabilities(judged)[present]
    right = judged.hits[present].astype(np.float64)
    bin_of = np.minimum((p * n_bins).astype(np.int64), n_bins - 1)  # the last bin holds 1 too
    size = np.bincount(bin_of, minlength=n_bins)
    sums = (np.bincount(bin_of, weights=values, minlength=n_bins) for values in (p, right))
    facts = calibration_of_bins(int(judged.ids.shape[1]), size, *sums)
    return {**facts, "brier": float(np.mean((p - right) ** 2)) if p.size else None}


def calibration_of_bins(k: int, size: np.ndarray, probability: np.ndarray, right: np.ndarray) -> CalibrationFacts:
    """Return the calibration facts, without the Brier score, from counts and sums of bins of equal width."""
    score, accuracy = probability / np.maximum(size, 1), right / np.maximum(size, 1)
    bins: list[CalibrationBinFacts] = [
        {
            "low": b / size.size,
            "high": (b + 1) / size.size,
            "count": int(size[b]),
            "mean_probability": float(score[b]) if size[b] else None,
            "share_right": float(accuracy[b]) if size[b] else None,
        }
        for b in range(size.size)
    ]
    pairs = int(size.sum())
    gap = float(size @ np.abs(score - accuracy) / pairs) if pairs else None
    return {"k": k, "pairs": pairs, "bins": bins, "expected_calibration_error": gap}


def brier_measure(judged: Judged) -> Measure:
    """Return the Brier score of the predicted pairs, with one unit per row."""
    p, present = _check_probabilities(judged), judged.ids >= 0
    squares = np.where(present, (np.where(present, p, 0.0) - judged.hits) ** 2, 0.0).sum(axis=1)
    return Measure("brier", (squares, present.sum(axis=1).astype(np.float64)), share)


def _check_probabilities(judged: Judged) -> np.ndarray:
    """Return the scores as float64 if every predicted one is a probability."""
    p = judged.scores.astype(np.float64)
    bad = ~((p >= 0) & (p <= 1)) & (judged.ids >= 0)
    if bad.any():
        row, position = (int(v[0]) for v in np.nonzero(bad))
        raise DataError(f"topk must hold probabilities between 0 and 1; got {p[row, position]:g} in row {row}.")
    return p
