"""Contributions of every row to the ranking metrics: hits, DCG and their propensity-weighted kin.

Predictions are compared with the truth once (`judge`), over the first k of each row, and nothing is larger than rows
× k or than the stored entries of Y. A missing prediction (id -1) is a miss. With `hit_r` 1 if prediction r is true,
`n` true labels of the row and `w` the inverse propensity of a label, each function below returns one number per row.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import scipy.sparse as sp

from longtail.data import TopK, binary_hits
from longtail.errors import DataError, ParameterError
from longtail.metrics.propensity import NumberPerLabel, check_propensity
from longtail.validate import MatrixLike, as_labels, check_flag, check_integer, check_same_rows


@dataclass(frozen=True, eq=False)
class Judged:
    """Predictions compared with the truth, over the first k of each row."""

    Y: sp.csr_array  # the truth                        (n_rows, n_labels)
    ids: np.ndarray  # predicted labels, -1 = missing   int32 (n_rows, k)
    scores: np.ndarray  # their scores                  float32 (n_rows, k)
    hits: np.ndarray  # is the prediction true?         bool (n_rows, k)
    n_true: np.ndarray  # true labels of each row       int64 (n_rows,)
    gains: np.ndarray | None = None  # w of each hit, else 0                 float64 (n_rows, k)
    ideal: np.ndarray | None = None  # the k largest w of the true labels    float64 (n_rows, k)
    ancestors: sp.csr_array | None = None  # what stands above each label, itself included  (n_labels, n_concepts)
    kept: dict[Any, sp.csr_array] = field(default_factory=dict)  # sets of labels with all above them, for reuse

    @property
    def n_rows(self) -> int:
        """The number of rows that count."""
        return int(self.ids.shape[0])

    @property
    def n_labels(self) -> int:
        """The number of labels."""
        return int(self.Y.shape[1])


def judge(
    Y_true: MatrixLike,
    topk: TopK,
    k: int,
    *,
    propensity: NumberPerLabel | None = None,
    remove_empty: bool = False,
) -> Judged:
    """Compare predictions with the truth and mark the hits among the first k of each row.

    Every stored non-zero of `Y_true` is a true label, whatever its weight. A row that predicts the same
    label twice within the first k is refused: counting it twice would reward it, and dropping it
    silently would hide a fault of the model.

    >>> judge([[1, 0, 1]], TopK.from_scores([[0.1, 0.9, 0.5]], k=2), 2).hits.tolist()
    [[False, True]]
    """
    Y = as_labels(Y_true, "Y_true")
    k = check_k(topk, k)
    check_flag("remove_empty", remove_empty)
    check_same_rows(Y, topk.ids, "Y_true", "topk")
    ids, scores = topk.ids[:, :k], topk.scores[:, :k]
    check_ids(ids, Y.shape[1])
    if remove_empty:
        keep = np.diff(Y.indptr) > 0
        if not keep.all():
            Y, ids, scores = as_labels(Y[keep]), ids[keep], scores[keep]
    hits = binary_hits(TopK(ids, scores), Y)
    gains = ideal = None
    if propensity is not None:
        weights = 1.0 / check_propensity(propensity, Y.shape[1])
        gains = np.zeros(hits.shape)
        gains[hits] = weights[ids[hits]]
        ideal = largest_weights(Y, weights, k)
    return Judged(Y, ids, scores, hits, np.diff(Y.indptr), gains, ideal)


def check_k(topk: TopK, k: int) -> int:
    """Return k if every row has that many predictions."""
    if not isinstance(topk, TopK):
        raise ParameterError(name="topk", problem=f"must be a TopK of predictions; got {type(topk).__name__}.")
    k = check_integer("k", k, low=1)
    if k > topk.k:
        raise ParameterError(name="k", allowed=f"at most {topk.k}, the places predicted for each row", got=k)
    return k


def check_ids(ids: np.ndarray, n_labels: int) -> None:
    """Refuse label ids out of range, and the same label twice in one row."""
    bad = (ids < -1) | (ids >= n_labels)
    if bad.any():
        row, position = (int(v[0]) for v in np.nonzero(bad))
        raise DataError(
            f"topk must hold label ids below {n_labels}, the columns of Y_true, or -1; "
            f"got {ids[row, position]} in row {row}."
        )
    ordered = np.sort(ids, axis=1)
    twice = (ordered[:, 1:] == ordered[:, :-1]) & (ordered[:, 1:] >= 0)
    if twice.any():
        row, position = (int(v[0]) for v in np.nonzero(twice))
        raise DataError(f"topk must hold a label once per row; got {ordered[row, position]} twice in row {row}.")


def largest_weights(Y: sp.csr_array, weights: np.ndarray, k: int) -> np.ndarray:
    """Return the k largest weights among the true labels of each row, largest first; 0 where there are fewer.

    >>> from longtail.validate import as_labels
    >>> largest_weights(as_labels([[1, 1, 0], [0, 0, 1]]), np.array([1.0, 3.0, 2.0]), 2).tolist()
    [[3.0, 1.0], [2.0, 0.0]]
    """
    n_true = np.diff(Y.indptr)
    rows = np.repeat(np.arange(Y.shape[0]), n_true)
    w = weights[Y.indices]
    order = np.lexsort((-w, rows))  # rows stay in order, so `rows` and `position` need no reordering
    position = np.arange(order.size) - np.repeat(Y.indptr[:-1], n_true)
    keep = position < k
    out = np.zeros((Y.shape[0], k))
    out[rows[keep], position[keep]] = w[order][keep]
    return out


def discounts(k: int) -> np.ndarray:
    """Return 1 / log2(rank + 1) for the ranks 1 to k."""
    return 1.0 / np.log2(np.arange(2, k + 2))


def precision_rows(judged: Judged, k: int) -> np.ndarray:
    """Return `Σ_r hit_r / k`: missing predictions count as misses."""
    return judged.hits[:, :k].sum(axis=1) / k


def recall_rows(judged: Judged, k: int) -> np.ndarray:
    """Return `Σ_r hit_r / n`; 0 for a row without true labels."""
    return judged.hits[:, :k].sum(axis=1) / np.maximum(judged.n_true, 1)


def ndcg_rows(judged: Judged, k: int) -> np.ndarray:
    """Return `Σ_r hit_r / log2(r + 1)`, divided by the same sum for a perfect ranking."""
    return judged.hits[:, :k] @ discounts(k) / best_dcg(judged, k)


def gain_rows(judged: Judged, k: int) -> np.ndarray:
    """Return `Σ_r w_r hit_r / k`."""
    return _gains(judged)[:, :k].sum(axis=1) / k


def best_gain_rows(judged: Judged, k: int) -> np.ndarray:
    """Return `Σ_r w_r / k` for the k true labels with the largest w: the most that `gain_rows` can be."""
    return _ideal_gains(judged)[:, :k].sum(axis=1) / k


def discounted_gain_rows(judged: Judged, k: int) -> np.ndarray:
    """Return `Σ_r w_r hit_r / log2(r + 1)`, divided by the row's unweighted best DCG."""
    return _gains(judged)[:, :k] @ discounts(k) / best_dcg(judged, k)


def best_discounted_gain_rows(judged: Judged, k: int) -> np.ndarray:
    """Return the most that `discounted_gain_rows` can be: the k true labels with the largest w, largest first."""
    return _ideal_gains(judged)[:, :k] @ discounts(k) / best_dcg(judged, k)


def best_dcg(judged: Judged, k: int) -> np.ndarray:
    """Return the DCG of a perfect ranking of each row: Σ 1 / log2(r + 1) for r up to min(k, true labels).

    A row without true labels gets 1: its numerator is 0, and so is its nDCG.
    """
    table = np.concatenate([[1.0], np.cumsum(discounts(k))])
    return table[np.minimum(judged.n_true, k)]


def _gains(judged: Judged) -> np.ndarray:
    if judged.gains is None:
        raise ParameterError(name="propensity", problem="must be given for psp and psndcg; got None.")
    return judged.gains


def _ideal_gains(judged: Judged) -> np.ndarray:
    if judged.ideal is None:
        raise ParameterError(name="propensity", problem="must be given for psp and psndcg; got None.")
    return judged.ideal
