"""Metrics that average over labels instead of rows: a rare label counts as much as a frequent one.

All are means over the *tested* labels, those that are true in at least one row. This set depends on the
truth alone, so that two models are averaged over the same labels.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from longtail.data import TopK
from longtail.metrics.measures import Measure, identity
from longtail.metrics.row_metrics import Judged, judge


@dataclass(frozen=True, eq=False)
class LabelTally:
    """How often each label was true, predicted, and both: int64 (n_labels,) each."""

    true: np.ndarray
    predicted: np.ndarray
    hits: np.ndarray


def tally_labels(judged: Judged, k: int) -> LabelTally:
    """Count over the first k places.

    >>> judged = judge([[1, 0, 1]], TopK.from_scores([[0.1, 0.9, 0.5]], k=2), 2)
    >>> tally_labels(judged, 2).hits.tolist()
    [0, 0, 1]
    """
    ids, hits = judged.ids[:, :k], judged.hits[:, :k]

    def count(labels: np.ndarray) -> np.ndarray:
        return np.bincount(labels, minlength=judged.n_labels).astype(np.int64)

    return LabelTally(count(judged.Y.indices), count(ids[ids >= 0]), count(ids[hits]))


def coverage_at_k(Y_true: Any, topk: TopK, k: int = 5) -> float:
    """Return coverage@k: the share of tested labels that are predicted rightly in at least one row.

    >>> top = TopK.from_scores([[0.9, 0.5, 0.1], [0.9, 0.5, 0.1]], k=1)
    >>> coverage_at_k([[1, 0, 0], [1, 1, 0]], top, k=1)
    0.5
    """
    return _label_metric("coverage", Y_true, topk, k)


def macro_precision_at_k(Y_true: Any, topk: TopK, k: int = 5) -> float:
    """Return the mean over tested labels of hits / predictions of the label, 0 if it is never predicted.

    >>> top = TopK.from_scores([[0.9, 0.5, 0.1], [0.9, 0.5, 0.1]], k=1)
    >>> macro_precision_at_k([[1, 0, 0], [0, 1, 0]], top, k=1)
    0.25
    """
    return _label_metric("macro_p", Y_true, topk, k)


def macro_recall_at_k(Y_true: Any, topk: TopK, k: int = 5) -> float:
    """Return the mean over tested labels of hits / true rows of the label.

    >>> top = TopK.from_scores([[0.9, 0.5, 0.1], [0.9, 0.5, 0.1]], k=1)
    >>> macro_recall_at_k([[1, 0, 0], [0, 1, 0]], top, k=1)
    0.5
    """
    return _label_metric("macro_r", Y_true, topk, k)


def macro_f1_at_k(Y_true: Any, topk: TopK, k: int = 5) -> float:
    """Return the mean over tested labels of the label's own F1: 2 hits / (predictions + true rows).

    >>> top = TopK.from_scores([[0.9, 0.5, 0.1], [0.9, 0.5, 0.1]], k=1)
    >>> round(macro_f1_at_k([[1, 0, 0], [0, 1, 0]], top, k=1), 4)
    0.3333
    """
    return _label_metric("macro_f1", Y_true, topk, k)


def label_measures(judged: Judged, k: int) -> list[Measure]:
    """Return coverage and macro-averaged P, R and F1 at k, with one unit per tested label."""
    counts = tally_labels(judged, k)
    tested = counts.true > 0
    true, predicted, hits = counts.true[tested], counts.predicted[tested], counts.hits[tested]
    per_label = {
        "coverage": (hits > 0).astype(np.float64),
        "macro_p": hits / np.maximum(predicted, 1),
        "macro_r": hits / true,
        "macro_f1": 2.0 * hits / (predicted + true),
    }
    return [Measure(f"{name}@{k}", (column,), identity) for name, column in per_label.items()]


def _label_metric(metric: str, Y_true: Any, topk: TopK, k: int) -> float:
    measures = {m.name: m for m in label_measures(judge(Y_true, topk, k), k)}
    return measures[f"{metric}@{k}"].value()
