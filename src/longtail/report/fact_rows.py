"""Turn facts into named rows, read by both the pages and the terminal, so that they cannot disagree.

A fact that is missing gives no row.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Required, TypedDict

from longtail.facts import (
    BandFacts,
    ComparisonFacts,
    DatasetFacts,
    DifferenceFacts,
    DifferencesFacts,
    ExplanationFacts,
    FrequencyBinFacts,
    MetricFacts,
    MetricsFacts,
    SuggestionFacts,
    WordFacts,
)
from longtail.report.formatting import count, decimal, flat_rows, number_range, percent, whole_percent
from longtail.report.plots.canvas import finite
from longtail.report.plots.charts import DifferenceRow, IntervalRow, ReliabilityBin

FAMILIES: dict[str, tuple[str, str]] = {  # key of the metric -> its name, what it means
    "p": ("P", "share of the first k suggestions that are right"),
    "r": ("R", "share of a row's true labels among the first k"),
    "f1": ("F1", "harmonic mean of P and R"),
    "ndcg": ("nDCG", "like P, but right suggestions count more near the top"),
    "psp": ("PSP", "like P, but rare labels count more"),
    "psndcg": ("PSnDCG", "like nDCG, but rare labels count more"),
    "hp": ("hP", "like P, with part of the credit for a broader or narrower concept"),
    "hr": ("hR", "like R, with part of the credit for a broader or narrower concept"),
    "hf1": ("hF1", "harmonic mean of hP and hR"),
    "coverage": ("Coverage", "share of the tested labels that are found at least once"),
    "macro_p": ("Macro P", "P of each label, averaged over labels"),
    "macro_r": ("Macro R", "R of each label, averaged over labels"),
    "macro_f1": ("Macro F1", "F1 of each label, averaged over labels"),
}
DRAWN = ("p", "r", "ndcg", "psp")
WORDS_MARKED = 5  # of each suggestion


class FrequencyRow(FrequencyBinFacts, total=False):
    """A bin of training frequencies with its name and its middle on a logarithmic axis."""

    name: Required[str]
    x: Required[float]


class BandRow(BandFacts, total=False):
    """A band of labels with its precision and recall at k and the range of its training frequencies."""

    p: Required[MetricFacts]
    r: Required[MetricFacts]
    range: Required[str]


class CalibrationRow(ReliabilityBin, total=False):
    """A calibration bin with its name."""

    name: Required[str]


class MetricGridRow(TypedDict):
    """A family of metrics: its name, what it means and its facts at every k."""

    name: str
    meaning: str
    at_k: list[MetricFacts]


def metric_name(key: str) -> str:
    """Return a metric's name as people write it.

    >>> metric_name("ndcg@5"), metric_name("macro_f1@3")
    ('nDCG@5', 'Macro F1@3')
    """
    family, at, k = key.partition("@")
    return FAMILIES.get(family, (family.replace("_", " "), ""))[0] + at + k


def metric_rows(metrics: Mapping[str, MetricFacts], families: Sequence[str] = DRAWN) -> list[IntervalRow]:
    """Return metrics by family and k, at most three k each, as rows with `name`, `group` and the facts."""
    return [{"name": metric_name(key), "group": family, **metrics[key]} for family, key in _keys(metrics, families)]


def metric_grid(metrics: Mapping[str, MetricFacts]) -> tuple[list[int], list[MetricGridRow]]:
    """Return the ks, and a row for each family of metrics."""
    ks = sorted({_k(key) for key in metrics if "@" in key})
    present = [f for f in FAMILIES if any(key.partition("@")[0] == f for key in metrics)]
    rows: list[MetricGridRow] = []
    for family in present:
        name, meaning = FAMILIES[family]
        rows.append({"name": name, "meaning": meaning, "at_k": [metrics.get(f"{family}@{k}") or {} for k in ks]})
    return ks, rows


def position_rows(evaluation: MetricsFacts) -> list[IntervalRow]:
    """Return how often the suggestion at each of the first ten positions is right."""
    shares = (evaluation.get("by_place") or [])[:10]
    return [{"name": f"suggestion {i}", "value": share} for i, share in enumerate(shares, 1)]


def frequency_rows(evaluation: MetricsFacts) -> list[FrequencyRow]:
    """Return precision and recall by training frequency."""
    out: list[FrequencyRow] = []
    for facts in (evaluation.get("frequency") or {}).get("bins") or []:
        low, high = facts["lowest"], facts["highest"]
        out.append({**facts, "name": number_range(low, high), "x": math.sqrt(low * high) if low else 0.5})
    return out


def band_rows(bands: Sequence[BandFacts] | None, k: int) -> list[BandRow]:
    """Return head, torso, tail and unseen labels that exist, with their precision and recall at k."""
    out: list[BandRow] = []
    for band in bands or []:
        if band.get("labels"):
            metrics = band.get("metrics") or {}
            frequencies = number_range(band.get("lowest"), band.get("highest"))
            p, r = metrics.get(f"p@{k}") or {}, metrics.get(f"r@{k}") or {}
            out.append({**band, "p": p, "r": r, "range": frequencies})
    return out


def calibration_rows(evaluation: MetricsFacts) -> list[CalibrationRow]:
    """Return the calibration bins with names such as "20–30%"."""
    return [
        {
            "name": f"{percent(b['low'], 0)}–{percent(b['high'], 0)}%",
            "start": b["low"],
            "end": b["high"],
            "predicted": b.get("mean_probability"),
            "observed": b.get("share_right"),
            "count": b.get("count") or 0,
        }
        for b in (evaluation.get("calibration") or {}).get("bins") or []
    ]


def model_names(facts: ComparisonFacts) -> tuple[str, str]:
    """Return the names of both compared models: from `names`, or from `a` and `b` as text or as facts with a `name`.

    >>> model_names({"names": {"a": "tree"}, "b": {"name": "ova"}}), model_names({})
    (('tree', 'ova'), ('a', 'b'))
    """
    names = facts.get("names") or {}
    out = []
    for key, model in (("a", facts.get("a")), ("b", facts.get("b"))):
        own = model.get("name") if isinstance(model, dict) else model
        out.append(str(names.get(key) or own or key))
    return out[0], out[1]


def difference_rows(metrics: Mapping[str, DifferenceFacts], families: Sequence[str] = DRAWN) -> list[DifferenceRow]:
    """Return the differences of a comparison with `verdict` better, worse or unclear."""
    return [
        {"name": metric_name(key), "group": family, **metrics[key], "verdict": verdict(metrics[key])}
        for family, key in _keys(metrics, families)
    ]


def verdict(difference: DifferenceFacts) -> str:
    """Return "better" or "worse" (b than a), or "unclear" if the interval of the difference holds 0.

    >>> verdict({"difference": 0.1, "low": -0.1, "high": 0.3})
    'unclear'
    """
    low, high = difference.get("low"), difference.get("high")
    if not (finite(low) and finite(high)) or low <= 0 <= high:
        return "unclear"
    return "better" if (difference["difference"] or 0.0) > 0 else "worse"


def band_difference_rows(comparison: DifferencesFacts) -> list[DifferenceRow]:
    """Return the differences in precision and recall for head, torso, tail and unseen labels."""
    k = max(comparison.get("ks") or [0])
    return [
        {"name": f"{band['name']}, {metric_name(key)}", **row, "verdict": verdict(row)}
        for band in comparison.get("bands") or []
        for key, row in (band.get("metrics") or {}).items()
        if band.get("labels") and key in (f"p@{k}", f"r@{k}") and finite((row or {}).get("difference"))
    ]


def confidence(suggestion: SuggestionFacts) -> str:
    """Return the probability of a suggestion, or its score where there is none.

    >>> confidence({"score": 1.5, "probability": 0.62}), confidence({"score": 1.5})
    ('62%', '1.500')
    """
    if finite(suggestion.get("probability")):
        return whole_percent(suggestion["probability"])
    return f"{suggestion['score']:.3f}" if finite(suggestion.get("score")) else "–"


def suggestions(example: ExplanationFacts) -> Sequence[SuggestionFacts]:
    """Return the suggestions of an example (`predicted`) or of an explanation (`labels`)."""
    return example.get("predicted") or example.get("labels") or []


def strongest(suggestion: SuggestionFacts, n: int) -> list[WordFacts]:
    """Return the n words with the largest weight behind a suggestion, for or against it."""
    words = [word for word in suggestion.get("words") or [] if finite(word.get("weight")) and str(word.get("word", ""))]
    return sorted(words, key=lambda word: -abs(word["weight"]))[:n]


def missed(example: ExplanationFacts) -> list[str]:
    """Return the true labels of an example that were not suggested."""
    suggested = {suggestion.get("label") for suggestion in suggestions(example)}
    return [str(name) for name in example.get("true") or [] if name not in suggested]


def marked_parts(text: str, suggested: Sequence[SuggestionFacts]) -> tuple[list[tuple[str, float | None]], float]:
    """Return the text in parts, each with the strongest weight any suggestion gives it, and the strongest of all.

    Words that know their positions (`spans` of start and end) are marked there, others wherever they occur.

    >>> marked_parts("Red wine", [{"words": [{"word": "wine", "weight": 0.5}]}])
    ([('Red ', None), ('wine', 0.5)], 0.5)
    """
    weights: dict[tuple[int, int], float] = {}
    for word in (word for suggestion in suggested for word in strongest(suggestion, WORDS_MARKED)):
        for start, end in _word_spans(text, word):
            if 0 <= start < end <= len(text) and abs(word["weight"]) > abs(weights.get((start, end), 0.0)):
                weights[start, end] = word["weight"]
    parts: list[tuple[str, float | None]] = []
    last = 0
    chosen: list[tuple[int, int]] = []
    for start, end in sorted(weights, key=lambda at: (-abs(weights[at]), at)):  # of two that overlap, the stronger
        if all(end <= s or start >= e for s, e in chosen):
            chosen.append((start, end))
    for start, end in sorted(chosen):
        parts += [(text[last:start], None)] if start > last else []
        parts.append((text[start:end], weights[start, end]))
        last = end
    parts += [(text[last:], None)] if last < len(text) else []
    return parts, max([abs(weight) for weight in weights.values()] + [1e-12])


def data_rows(data: DatasetFacts) -> list[tuple[str, str]]:
    """Return the facts about a dataset under plain names."""
    used, labels = data.get("labels_used"), data.get("labels")
    rows = [
        ("name", data.get("name") or None),
        ("rows", count(data.get("rows"))),
        ("labels", count(labels)),
        ("labels in use", count(used) if used != labels else None),
        ("labels per row", decimal(data.get("labels_per_row"))),
        ("rows per label", decimal(data.get("rows_per_label"))),
        ("labels seen once", count(data.get("labels_seen_once"))),
        ("labels unknown to the model", count(data.get("labels_unknown_to_model") or None)),
        ("rows without labels", count(data.get("rows_without_labels") or None)),
        ("features", count(data.get("features"))),
        ("features per row", decimal(data.get("features_per_row"))),
        ("groups", count(data.get("groups"))),
    ]
    return [(name, value) for name, value in rows if value is not None]


def fact_rows(facts: Mapping[str, Any] | None) -> list[tuple[str, str]]:
    """Return nested facts as named values; a group of metrics becomes one line.

    >>> fact_rows({"held_out": {"rows": 90, "metrics": {"p@1": {"value": 0.5}, "p@5": {"value": 0.25}}}})
    [('held out, rows', '90'), ('held out, metrics', 'P@1 50.0, P@5 25.0')]
    """
    return flat_rows(_with_metric_lines(facts or {}))


def _with_metric_lines(value: Any) -> Any:
    """Return nested facts with every group of metrics as one line of text."""
    if not isinstance(value, Mapping):
        return value
    metrics = value.get("metrics")
    rows = metric_rows(metrics, tuple(FAMILIES)) if isinstance(metrics, Mapping) else []
    out = {key: _with_metric_lines(item) for key, item in value.items() if key != "metrics" or not rows}
    if rows:
        out["metrics"] = ", ".join(f"{row['name']} {percent(row.get('value'), 1)}" for row in rows)
    return out


def _word_spans(text: str, word: WordFacts) -> Iterable[Sequence[int]]:
    """Return the (start, end) of a word in a text."""
    spans = word.get("spans")
    if spans is not None:
        return spans
    pattern = rf"(?<!\w){re.escape(str(word['word']))}(?!\w)"
    return [hit.span() for hit in re.finditer(pattern, text, re.IGNORECASE)]


def _keys(metrics: Mapping[str, Any], families: Sequence[str]) -> list[tuple[str, str]]:
    """Return (family, key) of the metrics of some families, at most three k each: the first, the middle, the last."""
    out = []
    for family in families:
        keys = sorted((k for k in metrics if k.partition("@")[0] == family and isinstance(metrics[k], Mapping)), key=_k)
        if len(keys) > 3:
            keys = [keys[0], keys[len(keys) // 2], keys[-1]]
        out += [(family, key) for key in keys]
    return out


def _k(key: str) -> int:
    digits = key.partition("@")[2]
    return int(digits) if digits.isdigit() else 0
