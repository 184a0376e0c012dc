"""One definition of every ranking metric: columns of per-row contributions, and how their means make the value.

A metric that is a function of column means can be resampled without judging the predictions again:
drawing rows only changes the means. P@k is one mean, F1@k the harmonic mean of two, PSP@k a ratio of two.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

import numpy as np

from longtail.errors import ParameterError
from longtail.metrics.hierarchy import predicted_rows, shared_rows, true_rows
from longtail.metrics.row_metrics import (
    Judged,
    best_discounted_gain_rows,
    best_gain_rows,
    discounted_gain_rows,
    gain_rows,
    ndcg_rows,
    precision_rows,
    recall_rows,
)

Means: TypeAlias = float | np.ndarray
"""The mean of a column, or one for each resample (n_resamples,)."""


@dataclass(frozen=True, eq=False)
class Measure:
    """A metric as contributions of its units (rows or labels) and a function of their means."""

    name: str
    columns: tuple[np.ndarray, ...]  # each float64 (n_units,)
    combine: Callable[..., Means]  # means, scalar or (n_resamples,) each -> value of the same shape

    def value(self) -> float:
        """Return the metric on the data as it is: 0 without any units, NaN where it is undefined."""
        means = [column.mean() if column.size else 0.0 for column in self.columns]
        return float(self.combine(*means))


def identity(mean: Means) -> Means:
    """Return the mean itself."""
    return mean


def harmonic(p: Means, r: Means) -> Means:
    """Return `2 P R / (P + R)`, and 0 where both are 0.

    >>> harmonic(0.5, 0.25)
    array(0.33333333)
    """
    total = np.add(p, r)
    return np.divide(2.0 * np.multiply(p, r), total, out=np.zeros(np.shape(total)), where=total > 0)


def ratio(part: Means, whole: Means) -> Means:
    """Return `part / whole`, and 0 where the whole is 0: nothing could be gained, nothing was."""
    part, whole = np.asarray(part, dtype=np.float64), np.asarray(whole, dtype=np.float64)
    return np.divide(part, whole, out=np.zeros(whole.shape), where=whole > 0)


def twice_shared(shared: Means, predicted: Means, true: Means) -> Means:
    """Return `2 · shared / (predicted + true)`, the harmonic mean of precision and recall.

    >>> twice_shared(1.0, 2.0, 4.0)
    array(0.33333333)
    """
    return ratio(np.multiply(2.0, shared), np.add(predicted, true))


def share(part: Means, whole: Means) -> Means:
    """Return `part / whole`, and NaN where the whole is 0: the share of nothing is undefined."""
    part, whole = np.asarray(part, dtype=np.float64), np.asarray(whole, dtype=np.float64)
    return np.divide(part, whole, out=np.full(whole.shape, np.nan), where=whole > 0)


class RowMetric(NamedTuple):
    """A metric at k: functions that return one number per row, and how the means of these numbers make its value."""

    columns: tuple[Callable[[Judged, int], np.ndarray], ...]
    combine: Callable[..., Means]
    needs_propensity: bool = False


# To add a metric, write the function of its rows in `row_metrics.py` and add a line here.
ROW_METRICS: dict[str, RowMetric] = {
    "p": RowMetric((precision_rows,), identity),
    "r": RowMetric((recall_rows,), identity),
    "f1": RowMetric((precision_rows, recall_rows), harmonic),
    "ndcg": RowMetric((ndcg_rows,), identity),
    "psp": RowMetric((gain_rows, best_gain_rows), ratio, needs_propensity=True),
    "psndcg": RowMetric((discounted_gain_rows, best_discounted_gain_rows), ratio, needs_propensity=True),
}


# those that need to know which concepts stand above each label
HIERARCHY_METRICS: dict[str, RowMetric] = {
    "hp": RowMetric((shared_rows, predicted_rows), ratio),
    "hr": RowMetric((shared_rows, true_rows), ratio),
    "hf1": RowMetric((shared_rows, predicted_rows, true_rows), twice_shared),
}


def row_measure(metric: str, judged: Judged, k: int) -> Measure:
    """Return one of `ROW_METRICS` at k.

    >>> from longtail.data import TopK
    >>> from longtail.metrics.row_metrics import judge
    >>> judged = judge([[1, 0, 1]], TopK.from_scores([[0.1, 0.9, 0.5]], k=2), 2)
    >>> row_measure("p", judged, 2).value()
    0.5
    """
    if metric in HIERARCHY_METRICS:
        found = HIERARCHY_METRICS[metric]
        return Measure(f"{metric}@{k}", tuple(column(judged, k) for column in found.columns), found.combine)
    if metric not in ROW_METRICS:
        raise ParameterError(name="metric", allowed=f"one of {list(ROW_METRICS)}", got=metric)
    row_metric = ROW_METRICS[metric]
    return Measure(f"{metric}@{k}", tuple(column(judged, k) for column in row_metric.columns), row_metric.combine)


def row_measures(judged: Judged, ks: tuple[int, ...]) -> list[Measure]:
    """Return all metrics at all k; those by propensity and by hierarchy where these are known."""
    names = [name for name, m in ROW_METRICS.items() if judged.gains is not None or not m.needs_propensity]
    names += list(HIERARCHY_METRICS) if judged.ancestors is not None else []
    return [row_measure(name, judged, k) for name in names for k in ks]
