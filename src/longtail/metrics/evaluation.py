"""All metrics of one set of predictions with their intervals, as JSON-able facts."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import scipy.sparse as sp

from longtail.data import TopK
from longtail.errors import ParameterError
from longtail.facts import BandFacts, CountFacts, IntervalFacts, MetricFacts, MetricsFacts
from longtail.metrics.bands import BAND_NAMES, LabelBands, band_measures, by_frequency, check_bands, label_bands, pooled
from longtail.metrics.hierarchy import check_ancestors
from longtail.metrics.label_metrics import label_measures, tally_labels
from longtail.metrics.measures import Measure, row_measures
from longtail.metrics.propensity import NumberPerLabel, check_counts
from longtail.metrics.reliability import brier_measure, calibration_facts
from longtail.metrics.resample import Bounds, bootstrap_intervals
from longtail.metrics.row_metrics import Judged, check_k, judge
from longtail.metrics.shown import ShownMetrics
from longtail.notebook import shown_as
from longtail.validate import MatrixLike, RandomState, check_flag, check_integer, check_real, resolve_seed

# What is drawn: labels for coverage and macro averages, rows for all others.
UNITS: IntervalFacts = {"units": "rows", "units_of_macro": "labels"}


def evaluate(
    Y_true: MatrixLike,
    topk: TopK,
    *,
    ks: Sequence[int] = (1, 3, 5),
    propensity: NumberPerLabel | None = None,
    train_counts: NumberPerLabel | None = None,
    bands: LabelBands | None = None,
    ancestors: sp.sparray | None = None,
    probabilities: bool = False,
    n_bootstrap: int = 1000,
    level: float = 0.95,
    random_state: RandomState = 0,
    remove_empty: bool = False,
) -> MetricsFacts:
    """Return every metric with its bootstrap interval, and the facts a report needs.

    Parameters
    ----------
    Y_true : matrix of shape (n_rows, n_labels)
        The truth; every non-zero is a true label.
    topk : TopK
        Predictions for the same rows.
    ks : sequence of int, default=(1, 3, 5)
        The k of P@k and the other metrics.
    propensity : array of shape (n_labels,) or None, default=None
        The propensity of every label; adds psp and psndcg.
    train_counts : array of shape (n_labels,) or None, default=None
        The training rows of every label; adds head, torso and tail and precision against frequency.
    bands : LabelBands or None, default=None
        Other bands than those of `label_bands(train_counts)`.
    ancestors : sparse matrix of shape (n_labels, n_concepts) or None, default=None
        Not zero where a concept stands above a label, or is the label; adds hp, hr and hf1, which give partial credit
        for broader and narrower concepts.
    probabilities : bool, default=False
        The scores are probabilities; adds their calibration.
    n_bootstrap : int, default=1000
        Resamples of the intervals; 0 leaves the intervals out.
    level : float, default=0.95
        The level of the intervals.
    random_state : int, numpy generator or None, default=0
        The seed of the resamples; None means 0.
    remove_empty : bool, default=False
        Leave out rows without true labels, which else count as zero.

    Returns
    -------
    facts : dict
        JSON-able; `metrics` holds `value`, `low` and `high` of every metric.

    Examples
    --------
    >>> top = TopK.from_scores([[0.9, 0.5, 0.1], [0.9, 0.5, 0.1]], k=3)
    >>> facts = evaluate([[1, 0, 0], [1, 1, 1]], top, ks=(1, 3))
    >>> facts["metrics"]["p@1"]
    {'value': 1.0, 'low': 1.0, 'high': 1.0}
    >>> round(facts["metrics"]["p@3"]["value"], 4)
    0.6667
    """
    ks = check_ks(topk, ks)
    check_flag("probabilities", probabilities)
    n_bootstrap, level = check_integer("n_bootstrap", n_bootstrap, low=0), check_level(level)
    seed = resolve_seed(random_state)
    judged = with_ancestors(judge(Y_true, topk, ks[-1], propensity=propensity, remove_empty=remove_empty), ancestors)
    counts, bands = check_frequencies(train_counts, bands, judged.n_labels)

    rows = row_measures(judged, ks)
    of_bands = [m for k in ks for m in band_measures(judged, bands, k)] if bands is not None else []
    brier = [brier_measure(judged)] if probabilities else []
    labels = [m for k in ks for m in label_measures(judged, k)]
    by_rows = [*rows, *of_bands, *brier]
    table = values_with_intervals(by_rows, bootstrap_intervals(by_rows, n_bootstrap, level, seed))
    table |= values_with_intervals(labels, bootstrap_intervals(labels, n_bootstrap, level, seed))

    facts: MetricsFacts = {
        **counts_of(judged, ks),
        "remove_empty": bool(remove_empty),
        "interval": {"method": "percentile bootstrap", **UNITS, "level": level, "resamples": n_bootstrap, "seed": seed},
        "metrics": {m.name: table[m.name] for m in [*rows, *labels]},
        "by_place": [float(share) for share in judged.hits.mean(axis=0)] if judged.n_rows else [],
        "bands": None,
        "frequency": None,
        "calibration": None,
    }
    if bands is not None:
        facts["bands"] = _band_facts(judged, bands, ks, table)
    if counts is not None:
        facts["frequency"] = {"k": ks[-1], "bins": by_frequency(judged, counts, ks[-1])}
    if probabilities:
        facts["calibration"] = {**calibration_facts(judged), "brier": table["brier"]}
    return shown_as(ShownMetrics, facts)


def with_ancestors(judged: Judged, ancestors: sp.sparray | None) -> Judged:
    """Return judged predictions that know what stands above each label."""
    return judged if ancestors is None else replace(judged, ancestors=check_ancestors(ancestors, judged.n_labels))


def counts_of(judged: Judged, ks: tuple[int, ...]) -> CountFacts:
    """Return the sizes of what is evaluated."""
    predicted = (judged.ids >= 0).sum(axis=1)
    return {
        "rows": judged.n_rows,
        "rows_without_labels": int((judged.n_true == 0).sum()),
        "rows_short_of_predictions": int((predicted < ks[-1]).sum()),
        "labels": judged.n_labels,
        "labels_tested": int(np.unique(judged.Y.indices).size),
        "labels_per_row": float(judged.n_true.mean()) if judged.n_rows else 0.0,
        "ks": list(ks),
    }


def values_with_intervals(measures: Sequence[Measure], bounds: Sequence[Bounds]) -> dict[str, MetricFacts]:
    """Return the value and the interval of every metric, by name; None where undefined."""
    out: dict[str, MetricFacts] = {}
    for measure, (low, high) in zip(measures, bounds, strict=True):
        out[measure.name] = {"value": number(measure.value()), "low": low, "high": high}
    return out


def number(value: float) -> float | None:
    """Return the value, or None for NaN, which JSON does not have."""
    return None if math.isnan(value) else float(value)


def check_ks(topk: TopK, ks: int | Sequence[int]) -> tuple[int, ...]:
    """Return the ks sorted, each once."""
    if isinstance(ks, int):
        ks = (ks,)
    if isinstance(ks, str) or not isinstance(ks, Sequence | np.ndarray) or len(ks) == 0:
        raise ParameterError(name="ks", allowed="a list of integers >= 1", got=ks)
    return tuple(sorted({check_k(topk, k) for k in ks}))


def check_level(level: float) -> float:
    """Return the level of the intervals, such as 0.95."""
    return check_real("level", level, low=0, high=1, open_low=True)


def check_frequencies(
    train_counts: NumberPerLabel | None, bands: LabelBands | None, n_labels: int
) -> tuple[np.ndarray | None, LabelBands | None]:
    """Return training counts and bands; each is made from the other where only one is given."""
    if bands is not None:
        check_bands(bands, n_labels)
        train_counts = bands.train_counts if train_counts is None else train_counts
    if train_counts is None:
        return None, None
    counts = check_counts(train_counts, "train_counts", n_labels)
    return counts, label_bands(counts) if bands is None else bands


def _band_facts(
    judged: Judged, bands: LabelBands, ks: tuple[int, ...], table: dict[str, MetricFacts]
) -> list[BandFacts]:
    """Return every band with its counts and metrics."""
    counts = tally_labels(judged, ks[-1])
    out: list[BandFacts] = []
    for index, band in enumerate(bands.describe()):
        pool, name = pooled(counts, bands.of_label == index), BAND_NAMES[index]
        facts: BandFacts = {
            **band,
            "tested": pool["tested"],
            "true": pool["true"],
            "predicted": pool["predicted"],
            "right": pool["right"],
            "metrics": {f"{m}@{k}": table[f"{name}:{m}@{k}"] for m in ("p", "r", "f1") for k in ks},
        }
        out.append(facts)
    return out
