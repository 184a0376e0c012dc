"""The ranking metrics at k, each a number in [0, 1] from predictions and the truth.

In the formulas `hit_r` is 1 if the r-th prediction of a row is true, `n` the number of its true labels, `w_l = 1 / p_l`
the inverse propensity of label l, and `mean` runs over the rows. The functions of the rows stand in `row_metrics.py`.
"""

from __future__ import annotations

from longtail.data import TopK
from longtail.errors import ParameterError
from longtail.metrics.measures import row_measure
from longtail.metrics.propensity import NumberPerLabel
from longtail.metrics.row_metrics import judge
from longtail.validate import MatrixLike


def precision_at_k(Y_true: MatrixLike, topk: TopK, k: int = 5, *, remove_empty: bool = False) -> float:
    """Return P@k, the share of the first k predictions that are true.

    `P@k = mean(Σ_{r≤k} hit_r / k)`; missing predictions count as misses.

    Parameters
    ----------
    Y_true : matrix of shape (n_rows, n_labels)
        The truth; every non-zero is a true label.
    topk : TopK
        Predictions for the same rows.
    k : int, default=5
        How many predictions of each row count.
    remove_empty : bool, default=False
        Leave out rows without true labels, which else count as zero.

    Returns
    -------
    value : float
        In [0, 1].

    Examples
    --------
    >>> top = TopK.from_scores([[0.9, 0.5, 0.1], [0.9, 0.5, 0.1]], k=2)
    >>> precision_at_k([[1, 0, 0], [1, 1, 1]], top, k=2)
    0.75
    """
    return _row_metric("p", Y_true, topk, k, remove_empty)


def recall_at_k(Y_true: MatrixLike, topk: TopK, k: int = 5, *, remove_empty: bool = False) -> float:
    """Return R@k, the share of true labels found among the first k predictions.

    `R@k = mean(Σ_{r≤k} hit_r / n)`, 0 for a row without true labels.

    Parameters
    ----------
    Y_true : matrix of shape (n_rows, n_labels)
        The truth; every non-zero is a true label.
    topk : TopK
        Predictions for the same rows.
    k : int, default=5
        How many predictions of each row count.
    remove_empty : bool, default=False
        Leave out rows without true labels, which else count as zero.

    Returns
    -------
    value : float
        In [0, 1].

    Examples
    --------
    >>> top = TopK.from_scores([[0.9, 0.5, 0.1], [0.9, 0.5, 0.1]], k=2)
    >>> round(recall_at_k([[1, 0, 0], [1, 1, 1]], top, k=2), 4)
    0.8333
    """
    return _row_metric("r", Y_true, topk, k, remove_empty)


def f1_at_k(Y_true: MatrixLike, topk: TopK, k: int = 5, *, remove_empty: bool = False) -> float:
    """Return F1@k, the harmonic mean of P@k and R@k.

    `F1@k = 2 P@k R@k / (P@k + R@k)` of the two means over rows; not a mean of F1 per row.

    Parameters
    ----------
    Y_true : matrix of shape (n_rows, n_labels)
        The truth; every non-zero is a true label.
    topk : TopK
        Predictions for the same rows.
    k : int, default=5
        How many predictions of each row count.
    remove_empty : bool, default=False
        Leave out rows without true labels, which else count as zero.

    Returns
    -------
    value : float
        In [0, 1].

    Examples
    --------
    >>> top = TopK.from_scores([[0.9, 0.5, 0.1], [0.9, 0.5, 0.1]], k=2)
    >>> round(f1_at_k([[1, 0, 0], [1, 1, 1]], top, k=2), 4)
    0.7895
    """
    return _row_metric("f1", Y_true, topk, k, remove_empty)


def ndcg_at_k(Y_true: MatrixLike, topk: TopK, k: int = 5, *, remove_empty: bool = False) -> float:
    """Return nDCG@k, where a hit counts less the lower it is ranked.

    `nDCG@k = mean(DCG / I_k)` with `DCG = Σ_{r≤k} hit_r / log2(r + 1)` and `I_k = Σ_{r≤min(k, n)} 1 / log2(r + 1)`, the
    DCG of a perfect ranking.

    Parameters
    ----------
    Y_true : matrix of shape (n_rows, n_labels)
        The truth; every non-zero is a true label.
    topk : TopK
        Predictions for the same rows.
    k : int, default=5
        How many predictions of each row count.
    remove_empty : bool, default=False
        Leave out rows without true labels, which else count as zero.

    Returns
    -------
    value : float
        In [0, 1].

    Examples
    --------
    >>> top = TopK.from_scores([[0.9, 0.5, 0.1]], k=2)
    >>> round(ndcg_at_k([[0, 1, 0]], top, k=2), 4)
    0.6309
    """
    return _row_metric("ndcg", Y_true, topk, k, remove_empty)


def psp_at_k(
    Y_true: MatrixLike, topk: TopK, propensity: NumberPerLabel, k: int = 5, *, remove_empty: bool = False
) -> float:
    """Return PSP@k, P@k with each hit worth its inverse propensity, as a share of the best possible value.

    `PSP@k = mean(Σ_{r≤k} w_r hit_r / k) / mean(max Σ w / k)`, where the maximum takes the k true labels with the
    largest w. It is a quotient of two means over rows, not a mean of quotients.

    Parameters
    ----------
    Y_true : matrix of shape (n_rows, n_labels)
        The truth; every non-zero is a true label.
    topk : TopK
        Predictions for the same rows.
    propensity : array of shape (n_labels,)
        The propensity of every label, in (0, 1] (see `propensities`).
    k : int, default=5
        How many predictions of each row count.
    remove_empty : bool, default=False
        Leave out rows without true labels, which else count as zero.

    Returns
    -------
    value : float
        In [0, 1].

    Examples
    --------
    >>> top = TopK.from_scores([[0.9, 0.5, 0.1]], k=1)
    >>> psp_at_k([[1, 1, 0]], top, [0.5, 0.25, 1.0], k=1)
    0.5
    """
    return _row_metric("psp", Y_true, topk, k, remove_empty, _given(propensity))


def psndcg_at_k(
    Y_true: MatrixLike, topk: TopK, propensity: NumberPerLabel, k: int = 5, *, remove_empty: bool = False
) -> float:
    """Return PSnDCG@k, nDCG@k with each hit worth its inverse propensity, as a share of the best possible value.

    `PSnDCG@k = mean(Σ_{r≤k} w_r hit_r / log2(r + 1) / I_k) / mean(the same for the best ranking)`; like `psp_at_k` a
    quotient of two means over rows.

    Parameters
    ----------
    Y_true : matrix of shape (n_rows, n_labels)
        The truth; every non-zero is a true label.
    topk : TopK
        Predictions for the same rows.
    propensity : array of shape (n_labels,)
        The propensity of every label, in (0, 1] (see `propensities`).
    k : int, default=5
        How many predictions of each row count.
    remove_empty : bool, default=False
        Leave out rows without true labels, which else count as zero.

    Returns
    -------
    value : float
        In [0, 1].

    Examples
    --------
    >>> top = TopK.from_scores([[0.9, 0.5, 0.1]], k=1)
    >>> psndcg_at_k([[1, 1, 0]], top, [0.5, 0.25, 1.0], k=1)
    0.5
    """
    return _row_metric("psndcg", Y_true, topk, k, remove_empty, _given(propensity))


def _row_metric(
    metric: str,
    Y_true: MatrixLike,
    topk: TopK,
    k: int,
    remove_empty: bool,
    propensity: NumberPerLabel | None = None,
) -> float:
    judged = judge(Y_true, topk, k, propensity=propensity, remove_empty=remove_empty)
    return row_measure(metric, judged, int(k)).value()


def _given(propensity: NumberPerLabel | None) -> NumberPerLabel:
    if propensity is None:
        raise ParameterError(name="propensity", problem="must be one number per label (see propensities); got None.")
    return propensity
