"""Metrics of assigned label sets: what a row is actually given, not how its labels are ranked.

With `right` the assigned labels of a row that are true, `said` all assigned ones and `true` its true labels:

micro     precision, recall and F1 of all (row, label) pairs together: sum of right / sum of said, / sum of true.
macro     precision, recall and F1 of each label, averaged over the tested labels, those that are true in at least one
          row, as everywhere in these metrics; a tested label that is never assigned has a precision of 0.
per row   precision, recall and F1 of each row, averaged over rows. A row that is given nothing, or has no true label,
          counts 0, but 1 where both hold: nothing to find, and nothing assigned.
"""

from __future__ import annotations

import numpy as np

from longtail.data import TopK
from longtail.facts import SetsMetricsFacts
from longtail.metrics.evaluation import values_with_intervals
from longtail.metrics.label_metrics import LABEL_METRICS, tally_tested_labels
from longtail.metrics.measures import Means, Measure, identity, share
from longtail.metrics.resample import bootstrap_intervals
from longtail.metrics.row_metrics import judge
from longtail.metrics.shown import ShownMetrics
from longtail.notebook import shown_as
from longtail.validate import MatrixLike, RandomState, resolve_seed


def evaluate_sets(
    Y_true: MatrixLike,
    assigned: TopK,
    *,
    n_bootstrap: int = 1000,
    level: float = 0.95,
    random_state: RandomState = 0,
) -> SetsMetricsFacts:
    """Return precision, recall and F1 of assigned label sets, and how many rows get nothing, with intervals.

    Parameters
    ----------
    Y_true : matrix of shape (n_rows, n_labels)
        The truth; every non-zero is a true label.
    assigned : TopK
        The labels assigned to the same rows; id -1 for none.
    n_bootstrap : int, default=1000
        Resamples of the intervals; 0 leaves the intervals out.
    level : float, default=0.95
        The level of the intervals.
    random_state : int, numpy generator or None, default=0
        The seed of the resamples; None means 0.

    Returns
    -------
    facts : dict
        JSON-able; `metrics` holds `value`, `low` and `high` of every metric.

    Examples
    --------
    >>> facts = evaluate_sets([[1, 1, 0], [0, 0, 1]], TopK([[0, 2], [-1, -1]], [[0.9, 0.8], [-np.inf, -np.inf]]))
    >>> [round(facts["metrics"][name]["value"], 3) for name in ("micro_p", "micro_r", "row_f1", "empty_rows")]
    [0.5, 0.333, 0.25, 0.5]
    """
    if assigned.k == 0:
        nothing = (assigned.n_rows, 1)
        assigned = TopK(np.full(nothing, -1), np.full(nothing, -np.inf))
    judged = judge(Y_true, assigned, assigned.k)
    right = judged.hits.sum(axis=1).astype(np.float64)
    said, true = (judged.ids >= 0).sum(axis=1).astype(np.float64), judged.n_true.astype(np.float64)
    nothing_due = (said == 0) & (true == 0)
    rows = [
        Measure("micro_p", (right, said), share),
        Measure("micro_r", (right, true), share),
        Measure("micro_f1", (right, said, true), _pooled_f1),
        Measure("row_p", (np.where(nothing_due, 1.0, right / np.maximum(said, 1)),), identity),
        Measure("row_r", (np.where(nothing_due, 1.0, right / np.maximum(true, 1)),), identity),
        Measure("row_f1", (np.where(nothing_due, 1.0, 2 * right / np.maximum(said + true, 1)),), identity),
        Measure("empty_rows", ((said == 0).astype(np.float64),), identity),
        Measure("labels_per_row", (said,), identity),
    ]
    tested = tally_tested_labels(judged, assigned.k)
    names = ("macro_p", "macro_r", "macro_f1", "coverage")
    labels = [Measure(name, (LABEL_METRICS[name](tested),), identity) for name in names]
    seed = resolve_seed(random_state)
    found = values_with_intervals(rows, bootstrap_intervals(rows, n_bootstrap, level, seed))
    found |= values_with_intervals(labels, bootstrap_intervals(labels, n_bootstrap, level, seed))
    facts: SetsMetricsFacts = {"rows": judged.n_rows, "labels_tested": int(tested.true.size), "metrics": found}
    return shown_as(ShownMetrics, facts)


def _pooled_f1(right: Means, said: Means, true: Means) -> Means:
    return share(2.0 * np.asarray(right), np.asarray(said) + np.asarray(true))
