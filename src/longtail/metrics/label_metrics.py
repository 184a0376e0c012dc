"""Metrics that average over labels, so that a rare label counts as much as a frequent one.

All are means over the *tested* labels, those that are true in at least one row. This set depends on the
truth alone, so that two models are averaged over the same labels.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from longtail.data import TopK
from longtail.metrics.measures import Measure, identity
from longtail.metrics.row_metrics import Judged, judge
from longtail.validate import MatrixLike

MANY, MANY_LABELS = 4, 1_000_000  # from so many labels on per true and predicted label, those in use are counted


@dataclass(frozen=True, eq=False)
class LabelTally:
    """How often each label was true, predicted, and both: int64 (n_labels,) each."""

    true: np.ndarray
    predicted: np.ndarray
    hits: np.ndarray


# To add a metric, add a line here: the value of every tested label, from the counts of these labels.
LABEL_METRICS: dict[str, Callable[[LabelTally], np.ndarray]] = {
    "coverage": lambda tested: (tested.hits > 0).astype(np.float64),
    "macro_p": lambda tested: tested.hits / np.maximum(tested.predicted, 1),
    "macro_r": lambda tested: tested.hits / tested.true,
    "macro_f1": lambda tested: 2.0 * tested.hits / (tested.predicted + tested.true),
}


def tally_labels(judged: Judged, k: int) -> LabelTally:
    """Count how often each label is true, and predicted among the first k of a row.

    >>> judged = judge([[1, 0, 1]], TopK.from_scores([[0.1, 0.9, 0.5]], k=2), 2)
    >>> tally_labels(judged, 2).hits.tolist()
    [0, 0, 1]
    """
    ids, hits = judged.ids[:, :k], judged.hits[:, :k]

    def count(labels: np.ndarray) -> np.ndarray:
        return np.bincount(labels, minlength=judged.n_labels).astype(np.int64)

    return LabelTally(count(judged.Y.indices), count(ids[ids >= 0]), count(ids[hits]))


def tally_tested_labels(judged: Judged, k: int) -> LabelTally:
    """Count the same for tested labels only, in their order; memory follows these, however many labels there are."""
    ids, hits = judged.ids[:, :k], judged.hits[:, :k]
    if judged.n_labels <= MANY * (judged.Y.nnz + ids.size) + MANY_LABELS:
        counts = tally_labels(judged, k)
        kept = counts.true > 0
        return LabelTally(counts.true[kept], counts.predicted[kept], counts.hits[kept])
    tested, true = np.unique(judged.Y.indices, return_counts=True)

    def count(labels: np.ndarray) -> np.ndarray:
        known = labels[np.isin(labels, tested)]
        return np.bincount(np.searchsorted(tested, known), minlength=tested.size).astype(np.int64)

    return LabelTally(true.astype(np.int64), count(ids[ids >= 0]), count(ids[hits]))


def coverage_at_k(Y_true: MatrixLike, topk: TopK, k: int = 5) -> float:
    """Return coverage@k, the share of tested labels with at least one hit.

    `coverage@k = |{l : hits_l > 0}| / |tested labels|`, where `hits_l` counts the rows in which label l is true and
    among the first k predictions.

    Parameters
    ----------
    Y_true : matrix of shape (n_rows, n_labels)
        The truth; every non-zero is a true label.
    topk : TopK
        Predictions for the same rows.
    k : int, default=5
        How many predictions of each row count.

    Returns
    -------
    value : float
        In [0, 1].

    Examples
    --------
    >>> top = TopK.from_scores([[0.9, 0.5, 0.1], [0.9, 0.5, 0.1]], k=1)
    >>> coverage_at_k([[1, 0, 0], [1, 1, 0]], top, k=1)
    0.5
    """
    return _label_metric("coverage", Y_true, topk, k)


def macro_precision_at_k(Y_true: MatrixLike, topk: TopK, k: int = 5) -> float:
    """Return macro P@k, the mean over tested labels of `hits_l / predictions_l`; 0 for a label never predicted.

    Parameters
    ----------
    Y_true : matrix of shape (n_rows, n_labels)
        The truth; every non-zero is a true label.
    topk : TopK
        Predictions for the same rows.
    k : int, default=5
        How many predictions of each row count.

    Returns
    -------
    value : float
        In [0, 1].

    Examples
    --------
    >>> top = TopK.from_scores([[0.9, 0.5, 0.1], [0.9, 0.5, 0.1]], k=1)
    >>> macro_precision_at_k([[1, 0, 0], [0, 1, 0]], top, k=1)
    0.25
    """
    return _label_metric("macro_p", Y_true, topk, k)


def macro_recall_at_k(Y_true: MatrixLike, topk: TopK, k: int = 5) -> float:
    """Return macro R@k, the mean over tested labels of `hits_l / true rows_l`.

    Parameters
    ----------
    Y_true : matrix of shape (n_rows, n_labels)
        The truth; every non-zero is a true label.
    topk : TopK
        Predictions for the same rows.
    k : int, default=5
        How many predictions of each row count.

    Returns
    -------
    value : float
        In [0, 1].

    Examples
    --------
    >>> top = TopK.from_scores([[0.9, 0.5, 0.1], [0.9, 0.5, 0.1]], k=1)
    >>> macro_recall_at_k([[1, 0, 0], [0, 1, 0]], top, k=1)
    0.5
    """
    return _label_metric("macro_r", Y_true, topk, k)


def macro_f1_at_k(Y_true: MatrixLike, topk: TopK, k: int = 5) -> float:
    """Return macro F1@k, the mean over tested labels of `2 hits_l / (predictions_l + true rows_l)`.

    Parameters
    ----------
    Y_true : matrix of shape (n_rows, n_labels)
        The truth; every non-zero is a true label.
    topk : TopK
        Predictions for the same rows.
    k : int, default=5
        How many predictions of each row count.

    Returns
    -------
    value : float
        In [0, 1].

    Examples
    --------
    >>> top = TopK.from_scores([[0.9, 0.5, 0.1], [0.9, 0.5, 0.1]], k=1)
    >>> round(macro_f1_at_k([[1, 0, 0], [0, 1, 0]], top, k=1), 4)
    0.3333
    """
    return _label_metric("macro_f1", Y_true, topk, k)


def label_measures(judged: Judged, k: int) -> list[Measure]:
    """Return all metrics of `LABEL_METRICS` at k, with one unit per tested label."""
    tested = tally_tested_labels(judged, k)
    return [Measure(f"{name}@{k}", (of_label(tested),), identity) for name, of_label in LABEL_METRICS.items()]


def _label_metric(metric: str, Y_true: MatrixLike, topk: TopK, k: int) -> float:
    measures = {m.name: m for m in label_measures(judge(Y_true, topk, k), k)}
    return measures[f"{metric}@{k}"].value()
