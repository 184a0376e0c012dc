"""Per-row building blocks: what every row contributes to every ranking metric.

Everything is judged once, over the first k places of the predictions, and nothing here is larger than
rows × k or than the stored entries of Y. A missing place (id -1) is a miss.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from longtail.data import TopK, binary_hits
from longtail.errors import DataError, ParameterError
from longtail.metrics.propensity import check_propensity
from longtail.validate import as_labels, check_flag, check_integer, check_same_rows


@dataclass(frozen=True, eq=False)
class Judged:
    """Predictions held against the truth, over the first k places."""

    Y: sp.csr_array  # the truth                        (n_rows, n_labels)
    ids: np.ndarray  # predicted labels, -1 = missing   int32 (n_rows, k)
    scores: np.ndarray  # their scores                  float32 (n_rows, k)
    hits: np.ndarray  # is the prediction true?         bool (n_rows, k)
    n_true: np.ndarray  # true labels of each row       int64 (n_rows,)
    gains: np.ndarray | None = None  # w of each hit, else 0                 float64 (n_rows, k)
    ideal: np.ndarray | None = None  # the k largest w of the true labels    float64 (n_rows, k)

    @property
    def n_rows(self) -> int:
        return int(self.ids.shape[0])

    @property
    def n_labels(self) -> int:
        return int(self.Y.shape[1])


def judge(Y_true: Any, topk: TopK, k: int, *, propensity: Any = None, remove_empty: bool = False) -> Judged:
    """Check predictions against the truth and mark the hits among the first k places.

    Every stored non-zero of `Y_true` is a true label, whatever its weight. A row that predicts the same
    label twice within the first k places is refused: counting it twice would reward it, and dropping it
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


def check_k(topk: TopK, k: Any) -> int:
    """Return k if the predictions have that many places."""
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
        row, place = (int(v[0]) for v in np.nonzero(bad))
        raise DataError(
            f"topk must hold label ids below {n_labels}, the columns of Y_true, or -1; "
            f"got {ids[row, place]} in row {row}."
        )
    ordered = np.sort(ids, axis=1)
    twice = (ordered[:, 1:] == ordered[:, :-1]) & (ordered[:, 1:] >= 0)
    if twice.any():
        row, place = (int(v[0]) for v in np.nonzero(twice))
        raise DataError(f"topk must hold a label once per row; got {ordered[row, place]} twice in row {row}.")


def largest_weights(Y: sp.csr_array, weights: np.ndarray, k: int) -> np.ndarray:
    """Return the k largest weights among the true labels of each row, largest first; 0 where there are fewer.

    >>> from longtail.validate import as_labels
    >>> largest_weights(as_labels([[1, 1, 0], [0, 0, 1]]), np.array([1.0, 3.0, 2.0]), 2).tolist()
    [[3.0, 1.0], [2.0, 0.0]]
    """
    n_true = np.diff(Y.indptr)
    rows = np.repeat(np.arange(Y.shape[0]), n_true)
    w = weights[Y.indices]
    order = np.lexsort((-w, rows))  # rows stay in order, so `rows` and `place` need no reordering
    place = np.arange(order.size) - np.repeat(Y.indptr[:-1], n_true)
    keep = place < k
    out = np.zeros((Y.shape[0], k))
    out[rows[keep], place[keep]] = w[order][keep]
    return out


def discounts(k: int) -> np.ndarray:
    """Return 1 / log2(rank + 1) for the ranks 1 to k."""
    return 1.0 / np.log2(np.arange(2, k + 2))


def precision_rows(judged: Judged, k: int) -> np.ndarray:
    """hits / k: places that are missing count as misses."""
    return judged.hits[:, :k].sum(axis=1) / k


def recall_rows(judged: Judged, k: int) -> np.ndarray:
    """hits / number of true labels; 0 for a row without any."""
    return judged.hits[:, :k].sum(axis=1) / np.maximum(judged.n_true, 1)


def ndcg_rows(judged: Judged, k: int) -> np.ndarray:
    """Σ hit_r / log2(r + 1), over the same sum for a perfect ranking."""
    return judged.hits[:, :k] @ discounts(k) / best_dcg(judged, k)


def weighted_rows(judged: Judged, k: int) -> tuple[np.ndarray, np.ndarray]:
    """Σ w of the hits / k, and the same for the best possible ranking."""
    gains, ideal = _weighted(judged)
    return gains[:, :k].sum(axis=1) / k, ideal[:, :k].sum(axis=1) / k


def weighted_ndcg_rows(judged: Judged, k: int) -> tuple[np.ndarray, np.ndarray]:
    """Σ w of the hits / log2(r + 1) and its best value, both over the row's unweighted best DCG."""
    gains, ideal = _weighted(judged)
    best = best_dcg(judged, k)
    return gains[:, :k] @ discounts(k) / best, ideal[:, :k] @ discounts(k) / best


def best_dcg(judged: Judged, k: int) -> np.ndarray:
    """Return the DCG of a perfect ranking of each row: Σ 1 / log2(r + 1) for r up to min(k, true labels).

    A row without true labels gets 1: its numerator is 0, and so is its nDCG.
    """
    table = np.concatenate([[1.0], np.cumsum(discounts(k))])
    return table[np.minimum(judged.n_true, k)]


def _weighted(judged: Judged) -> tuple[np.ndarray, np.ndarray]:
    if judged.gains is None or judged.ideal is None:
        raise ParameterError(name="propensity", problem="must be given for psp and psndcg; got None.")
    return judged.gains, judged.ideal
