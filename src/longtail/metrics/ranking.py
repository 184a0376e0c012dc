"""The ranking metrics at k, each a number in [0, 1] from predictions and the truth.

All take `Y_true` (n_rows, n_labels) and a `TopK`, and average over all rows; rows without true labels
count as zero unless `remove_empty=True`.
"""

from __future__ import annotations

from typing import Any

from longtail.data import TopK
from longtail.errors import ParameterError
from longtail.metrics.measures import row_measure
from longtail.metrics.row_metrics import judge


def precision_at_k(Y_true: Any, topk: TopK, k: int = 5, *, remove_empty: bool = False) -> float:
    """Return P@k: the mean over rows of hits / k; missing predictions count as misses.

    >>> top = TopK.from_scores([[0.9, 0.5, 0.1], [0.9, 0.5, 0.1]], k=2)
    >>> precision_at_k([[1, 0, 0], [1, 1, 1]], top, k=2)
    0.75
    """
    return _value("p", Y_true, topk, k, remove_empty)


def recall_at_k(Y_true: Any, topk: TopK, k: int = 5, *, remove_empty: bool = False) -> float:
    """Return R@k: the mean over rows of hits / number of true labels, 0 for a row without any.

    >>> top = TopK.from_scores([[0.9, 0.5, 0.1], [0.9, 0.5, 0.1]], k=2)
    >>> round(recall_at_k([[1, 0, 0], [1, 1, 1]], top, k=2), 4)
    0.8333
    """
    return _value("r", Y_true, topk, k, remove_empty)


def f1_at_k(Y_true: Any, topk: TopK, k: int = 5, *, remove_empty: bool = False) -> float:
    """Return F1@k: the harmonic mean of P@k and R@k, both averaged over the rows first.

    >>> top = TopK.from_scores([[0.9, 0.5, 0.1], [0.9, 0.5, 0.1]], k=2)
    >>> round(f1_at_k([[1, 0, 0], [1, 1, 1]], top, k=2), 4)
    0.7895
    """
    return _value("f1", Y_true, topk, k, remove_empty)


def ndcg_at_k(Y_true: Any, topk: TopK, k: int = 5, *, remove_empty: bool = False) -> float:
    """Return nDCG@k: the mean over rows of DCG / best DCG, with the discount 1 / log2(rank + 1).

    >>> top = TopK.from_scores([[0.9, 0.5, 0.1]], k=2)
    >>> round(ndcg_at_k([[0, 1, 0]], top, k=2), 4)
    0.6309
    """
    return _value("ndcg", Y_true, topk, k, remove_empty)


def psp_at_k(Y_true: Any, topk: TopK, propensity: Any, k: int = 5, *, remove_empty: bool = False) -> float:
    """Return PSP@k: P@k with each hit worth 1 / propensity, over the best value any ranking could reach.

    The quotient is taken once, of the two means over rows; it is not a mean of quotients.

    >>> top = TopK.from_scores([[0.9, 0.5, 0.1]], k=1)
    >>> psp_at_k([[1, 1, 0]], top, [0.5, 0.25, 1.0], k=1)
    0.5
    """
    return _value("psp", Y_true, topk, k, remove_empty, _given(propensity))


def psndcg_at_k(Y_true: Any, topk: TopK, propensity: Any, k: int = 5, *, remove_empty: bool = False) -> float:
    """Return PSnDCG@k: nDCG@k with each hit worth 1 / propensity, over the best value any ranking could reach.

    Like `psp_at_k` it is a quotient of two means over rows.

    >>> top = TopK.from_scores([[0.9, 0.5, 0.1]], k=1)
    >>> psndcg_at_k([[1, 1, 0]], top, [0.5, 0.25, 1.0], k=1)
    0.5
    """
    return _value("psndcg", Y_true, topk, k, remove_empty, _given(propensity))


def _value(metric: str, Y_true: Any, topk: TopK, k: int, remove_empty: bool, propensity: Any = None) -> float:
    judged = judge(Y_true, topk, k, propensity=propensity, remove_empty=remove_empty)
    return row_measure(metric, judged, int(k)).value()


def _given(propensity: Any) -> Any:
    if propensity is None:
        raise ParameterError(name="propensity", problem="must be one number per label (see propensities); got None.")
    return propensity
