"""One definition of every metric: columns of per-row contributions, and how their means make the value.

A metric that is a function of column means can be resampled without judging the predictions again:
drawing rows only changes the means. P@k is one mean, F1@k the harmonic mean of two, PSP@k a ratio of two.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from longtail.errors import ParameterError
from longtail.metrics.row_metrics import (
    Judged,
    ndcg_rows,
    precision_rows,
    recall_rows,
    weighted_ndcg_rows,
    weighted_rows,
)

ROW_METRICS = ("p", "r", "f1", "ndcg", "psp", "psndcg")
NEEDS_PROPENSITY = ("psp", "psndcg")


@dataclass(frozen=True, eq=False)
class Measure:
    """A metric as contributions of its units (rows or labels) and a function of their means."""

    name: str
    columns: tuple[np.ndarray, ...]  # each float64 (n_units,)
    combine: Callable[..., Any]  # means, scalar or (n_resamples,) each -> value of the same shape

    def value(self) -> float:
        """Return the metric on the data as it is: 0 without any units, NaN where it is undefined."""
        means = [column.mean() if column.size else 0.0 for column in self.columns]
        return float(self.combine(*means))


def plain(mean: Any) -> Any:
    """The mean itself."""
    return mean


def harmonic(p: Any, r: Any) -> Any:
    """2 P R / (P + R), and 0 where both are 0.

    >>> harmonic(0.5, 0.25)
    array(0.33333333)
    """
    total = np.add(p, r)
    return np.divide(2.0 * np.multiply(p, r), total, out=np.zeros(np.shape(total)), where=total > 0)


def ratio(part: Any, whole: Any) -> Any:
    """part / whole, and 0 where the whole is 0: nothing could be gained, nothing was."""
    part, whole = np.asarray(part, dtype=np.float64), np.asarray(whole, dtype=np.float64)
    return np.divide(part, whole, out=np.zeros(whole.shape), where=whole > 0)


def share(part: Any, whole: Any) -> Any:
    """part / whole, and NaN where the whole is 0: the share of nothing is undefined."""
    part, whole = np.asarray(part, dtype=np.float64), np.asarray(whole, dtype=np.float64)
    return np.divide(part, whole, out=np.full(whole.shape, np.nan), where=whole > 0)


def row_measure(metric: str, judged: Judged, k: int) -> Measure:
    """Return one of `ROW_METRICS` at k.

    >>> from longtail.data import TopK
    >>> from longtail.metrics.row_metrics import judge
    >>> judged = judge([[1, 0, 1]], TopK.from_scores([[0.1, 0.9, 0.5]], k=2), 2)
    >>> row_measure("p", judged, 2).value()
    0.5
    """
    name = f"{metric}@{k}"
    if metric == "p":
        return Measure(name, (precision_rows(judged, k),), plain)
    if metric == "r":
        return Measure(name, (recall_rows(judged, k),), plain)
    if metric == "f1":
        return Measure(name, (precision_rows(judged, k), recall_rows(judged, k)), harmonic)
    if metric == "ndcg":
        return Measure(name, (ndcg_rows(judged, k),), plain)
    if metric == "psp":
        return Measure(name, weighted_rows(judged, k), ratio)
    if metric == "psndcg":
        return Measure(name, weighted_ndcg_rows(judged, k), ratio)
    raise ParameterError(name="metric", allowed=f"one of {list(ROW_METRICS)}", got=metric)


def row_measures(judged: Judged, ks: tuple[int, ...]) -> list[Measure]:
    """Return all metrics at all k; the propensity-scored ones where propensities are known."""
    names = [m for m in ROW_METRICS if judged.gains is not None or m not in NEEDS_PROPENSITY]
    return [row_measure(name, judged, k) for name in names for k in ks]
