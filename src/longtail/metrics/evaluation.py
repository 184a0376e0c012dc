"""Every metric of one set of predictions with its interval, as facts for reports."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from longtail.data import TopK
from longtail.errors import ParameterError
from longtail.facts import BandFacts, CountFacts, IntervalFacts, MetricFacts, MetricsFacts
from longtail.metrics.bands import BAND_NAMES, LabelBands, band_measures, by_frequency, check_bands, label_bands, pooled
from longtail.metrics.label_metrics import label_measures, tally
from longtail.metrics.measures import Measure, row_measures
from longtail.metrics.propensity import check_counts
from longtail.metrics.reliability import brier_measure, calibration_facts
from longtail.metrics.resample import Bounds, bootstrap_intervals
from longtail.metrics.row_metrics import Judged, check_k, judge
from longtail.validate import check_flag, check_integer, check_real, resolve_seed

UNITS: IntervalFacts = {
    "units": "rows",
    "units_of_macro": "labels",
}  # what is drawn; labels for coverage and macro averages


def evaluate(
    Y_true: Any,
    topk: TopK,
    *,
    ks: Sequence[int] = (1, 3, 5),
    propensity: Any = None,
    train_counts: Any = None,
    bands: LabelBands | None = None,
    probabilities: bool = False,
    n_bootstrap: int = 1000,
    level: float = 0.95,
    random_state: Any = 0,
    remove_empty: bool = False,
) -> MetricsFacts:
    """Return every metric with its bootstrap interval, and the facts a report needs, as a JSON-able dict.

    `propensity` adds psp and psndcg; `train_counts` (training rows of each label) adds head, torso and tail
    and precision against frequency; `probabilities=True` says that the scores are probabilities and adds
    their calibration. `n_bootstrap=0` leaves the intervals out.

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
    judged = judge(Y_true, topk, ks[-1], propensity=propensity, remove_empty=remove_empty)
    counts, bands = check_frequencies(train_counts, bands, judged.n_labels)

    rows = row_measures(judged, ks)
    of_bands = [m for k in ks for m in band_measures(judged, bands, k)] if bands is not None else []
    brier = [brier_measure(judged)] if probabilities else []
    labels = [m for k in ks for m in label_measures(judged, k)]
    by_rows = [*rows, *of_bands, *brier]
    table = metric_table(by_rows, bootstrap_intervals(by_rows, n_bootstrap, level, seed))
    table |= metric_table(labels, bootstrap_intervals(labels, n_bootstrap, level, seed))

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
    return facts


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


def metric_table(measures: Sequence[Measure], bounds: Sequence[Bounds]) -> dict[str, MetricFacts]:
    """Return the value and the interval of every metric, by name; None where undefined."""
    out: dict[str, MetricFacts] = {}
    for measure, (low, high) in zip(measures, bounds, strict=True):
        out[measure.name] = {"value": number(measure.value()), "low": low, "high": high}
    return out


def number(value: float) -> float | None:
    """Return the value, or None for NaN, which JSON does not have."""
    return None if math.isnan(value) else float(value)


def check_ks(topk: TopK, ks: Any) -> tuple[int, ...]:
    """Return the ks sorted, each once."""
    if isinstance(ks, int):
        ks = (ks,)
    if isinstance(ks, str) or not isinstance(ks, Sequence | np.ndarray) or len(ks) == 0:
        raise ParameterError(f"ks must be a list of integers >= 1; got {ks!r}.")
    return tuple(sorted({check_k(topk, k) for k in ks}))


def check_level(level: Any) -> float:
    """Return the level of the intervals, such as 0.95."""
    return check_real("level", level, low=0, high=1, open_low=True)


def check_frequencies(train_counts: Any, bands: Any, n_labels: int) -> tuple[np.ndarray | None, LabelBands | None]:
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
    counts = tally(judged, ks[-1])
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
