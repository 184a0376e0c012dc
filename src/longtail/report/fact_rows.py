"""The one place that knows the keys of the facts: it turns them into named rows.

The page and the terminal both read from here, so they cannot disagree. A fact that is missing gives no row.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from typing import Any

from longtail.report.formatting import count, decimal, flat_rows, number_range, percent, whole
from longtail.report.plots.canvas import finite

Facts = Mapping[str, Any]

FAMILIES: dict[str, tuple[str, str]] = {  # key of the metric -> its name, what it says
    "p": ("P", "share of the first k suggestions that are right"),
    "r": ("R", "share of a row's true labels among the first k"),
    "f1": ("F1", "harmonic mean of P and R"),
    "ndcg": ("nDCG", "like P, but right suggestions count more near the top"),
    "psp": ("PSP", "like P, but rare labels count more"),
    "psndcg": ("PSnDCG", "like nDCG, but rare labels count more"),
    "coverage": ("Coverage", "share of the tested labels that are found at least once"),
    "macro_p": ("Macro P", "P of each label, averaged over labels"),
    "macro_r": ("Macro R", "R of each label, averaged over labels"),
    "macro_f1": ("Macro F1", "F1 of each label, averaged over labels"),
}
DRAWN = ("p", "r", "ndcg", "psp")
WORDS_MARKED = 5  # of each suggestion


def metric_name(key: str) -> str:
    """Return a metric's name as people write it.

    >>> metric_name("ndcg@5"), metric_name("macro_f1@3")
    ('nDCG@5', 'Macro F1@3')
    """
    family, at, k = key.partition("@")
    return FAMILIES.get(family, (family.replace("_", " "), ""))[0] + at + k


def metric_rows(metrics: Facts, families: Sequence[str] = DRAWN) -> list[dict[str, Any]]:
    """Return metrics by family and k, at most three k each; every row has `name`, `group` and the facts."""
    out = []
    for family in families:
        keys = sorted((k for k in metrics if k.partition("@")[0] == family and isinstance(metrics[k], Mapping)), key=_k)
        if len(keys) > 3:
            keys = [keys[0], keys[len(keys) // 2], keys[-1]]
        out += [{"name": metric_name(key), "group": family, **metrics[key]} for key in keys]
    return out


def metric_grid(metrics: Facts) -> tuple[list[int], list[tuple[str, str, list[Facts]]]]:
    """Return the ks and, for each family, its name, what it says and its facts at every k."""
    ks = sorted({_k(key) for key in metrics if "@" in key})
    present = [f for f in FAMILIES if any(key.partition("@")[0] == f for key in metrics)]
    return ks, [(*FAMILIES[f], [metrics.get(f"{f}@{k}") or {} for k in ks]) for f in present]


def place_rows(evaluation: Facts) -> list[dict[str, Any]]:
    """Return how often the suggestion at each of the first ten places is right."""
    shares = (evaluation.get("by_place") or [])[:10]
    return [{"name": f"suggestion {i}", "value": share} for i, share in enumerate(shares, 1)]


def frequency_rows(evaluation: Facts) -> list[dict[str, Any]]:
    """Return precision and recall by training frequency: `name` of the bin, its middle `x`, and the facts."""
    out = []
    for found in (evaluation.get("frequency") or {}).get("bins") or []:
        low, high = found["lowest"], found["highest"]
        out.append({**found, "name": number_range(low, high), "x": math.sqrt(low * high) if low else 0.5})
    return out


def band_rows(bands: Any, k: int) -> list[dict[str, Any]]:
    """Return head, torso, tail and unseen labels that exist, with their precision and recall at k."""
    out = []
    for band in bands or []:
        if band.get("labels"):
            metrics = band.get("metrics") or {}
            found = {"p": metrics.get(f"p@{k}") or {}, "r": metrics.get(f"r@{k}") or {}}
            out.append({**band, **found, "range": number_range(band.get("lowest"), band.get("highest"))})
    return out


def calibration_rows(evaluation: Facts) -> list[dict[str, Any]]:
    """Return the calibration bins: `name`, `start`, `end`, `predicted`, `observed` and `count`."""
    return [
        {
            "name": f"{percent(b['low'], 0)}–{percent(b['high'], 0)}%",
            "start": b["low"],
            "end": b["high"],
            "predicted": b.get("mean_probability"),
            "observed": b.get("share_right"),
            "count": b.get("count"),
        }
        for b in (evaluation.get("calibration") or {}).get("bins") or []
    ]


def model_names(facts: Facts) -> tuple[str, str]:
    """Return the names of both compared models: from `names`, or from `a` and `b` as text or as facts with a `name`.

    >>> model_names({"names": {"a": "tree"}, "b": {"name": "ova"}}), model_names({})
    (('tree', 'ova'), ('a', 'b'))
    """
    out = []
    for key in ("a", "b"):
        model = facts.get(key)
        name = (facts.get("names") or {}).get(key) or (model.get("name") if isinstance(model, Mapping) else model)
        out.append(str(name or key))
    return out[0], out[1]


def difference_rows(metrics: Facts, families: Sequence[str] = DRAWN) -> list[dict[str, Any]]:
    """Return the differences of a comparison with `verdict` better, worse or unclear."""
    return [{**row, "verdict": verdict(row)} for row in metric_rows(metrics, families)]


def verdict(row: Facts) -> str:
    """Say whether b is better or worse than a, or whether that is unclear.

    >>> verdict({"difference": 0.1, "low": -0.1, "high": 0.3})
    'unclear'
    """
    low, high = row.get("low"), row.get("high")
    if not (finite(low) and finite(high)) or low <= 0 <= high:
        return "unclear"
    return "better" if row["difference"] > 0 else "worse"


def band_difference_rows(comparison: Facts) -> list[dict[str, Any]]:
    """Return the differences in precision and recall for head, torso, tail and unseen labels."""
    k = max(comparison.get("ks") or [0])
    return [
        {"name": f"{band['name']}, {metric_name(key)}", **row, "verdict": verdict(row)}
        for band in comparison.get("bands") or []
        for key, row in (band.get("metrics") or {}).items()
        if band.get("labels") and key in (f"p@{k}", f"r@{k}") and finite((row or {}).get("difference"))
    ]


def confidence(predicted: Facts) -> str:
    """Return the probability of a suggestion, or its score where there is none.

    >>> confidence({"score": 1.5, "probability": 0.62}), confidence({"score": 1.5})
    ('62%', '1.500')
    """
    if finite(predicted.get("probability")):
        return whole(predicted["probability"])
    return f"{predicted['score']:.3f}" if finite(predicted.get("score")) else "–"


def suggestions(example: Facts) -> Sequence[Facts]:
    """Return the suggestions of an example (`predicted`) or of an explanation (`labels`)."""
    return example.get("predicted") or example.get("labels") or []


def strongest(predicted: Facts, n: int) -> list[Facts]:
    """Return the n words with the largest weight behind a suggestion, for or against it."""
    words = [word for word in predicted.get("words") or [] if finite(word.get("weight")) and str(word.get("word", ""))]
    return sorted(words, key=lambda word: -abs(word["weight"]))[:n]


def missed(example: Facts) -> list[str]:
    """Return the true labels of an example that were not suggested."""
    said = {p.get("label") for p in suggestions(example)}
    return [str(name) for name in example.get("true") or [] if name not in said]


def marked_parts(text: str, predicted: Sequence[Facts]) -> tuple[list[tuple[str, float | None]], float]:
    """Return the text in parts, each with the strongest weight any suggestion gives it, and the strongest of all.

    Words that know their places (`spans` of start and end) are marked there, others wherever they occur.

    >>> marked_parts("Red wine", [{"words": [{"word": "wine", "weight": 0.5}]}])
    ([('Red ', None), ('wine', 0.5)], 0.5)
    """
    places: dict[tuple[int, int], float] = {}
    for word in (word for p in predicted for word in strongest(p, WORDS_MARKED)):
        spans = word.get("spans")
        if spans is None:
            found = re.finditer(rf"(?<!\w){re.escape(str(word['word']))}(?!\w)", text, re.IGNORECASE)
            spans = [hit.span() for hit in found]
        for start, end in spans:
            if 0 <= start < end <= len(text) and abs(word["weight"]) > abs(places.get((start, end), 0.0)):
                places[start, end] = word["weight"]
    parts: list[tuple[str, float | None]] = []
    last = 0
    chosen: list[tuple[int, int]] = []
    for start, end in sorted(places, key=lambda at: (-abs(places[at]), at)):  # of two that overlap, the stronger
        if all(end <= s or start >= e for s, e in chosen):
            chosen.append((start, end))
    for start, end in sorted(chosen):
        parts += [(text[last:start], None)] if start > last else []
        parts.append((text[start:end], places[start, end]))
        last = end
    parts += [(text[last:], None)] if last < len(text) else []
    return parts, max([abs(weight) for weight in places.values()] + [1e-12])


def data_rows(data: Facts) -> list[tuple[str, str]]:
    """Return the facts about a dataset under plain names."""
    used, labels, rows = data.get("labels_used"), data.get("labels"), data.get("rows")
    found = [
        ("name", data.get("name") or None),
        ("rows", count(rows)),
        ("labels", count(labels)),
        ("labels in use", count(used) if used != labels else None),
        ("labels per row", decimal(data.get("labels_per_row"))),
        ("rows per label", decimal(data.get("rows_per_label"))),
        ("labels seen once", count(data.get("labels_seen_once"))),
        ("labels unknown to the model", count(data.get("labels_unknown_to_model") or None)),
        ("rows without labels", count(data.get("rows_without_labels")) if data.get("rows_without_labels") else None),
        ("features", count(data.get("features"))),
        ("features per row", decimal(data.get("features_per_row"))),
        ("groups", count(data.get("groups"))),
    ]
    return [(name, value) for name, value in found if value is not None]


def fact_rows(facts: Any) -> list[tuple[str, str]]:
    """Return nested facts as named values; a group of metrics becomes one line.

    >>> fact_rows({"held_out": {"rows": 90, "metrics": {"p@1": {"value": 0.5}, "p@5": {"value": 0.25}}}})
    [('held out, rows', '90'), ('held out, metrics', 'P@1 50.0, P@5 25.0')]
    """

    def told(value: Any) -> Any:
        if not isinstance(value, Mapping):
            return value
        found = value.get("metrics")
        rows = metric_rows(found, tuple(FAMILIES)) if isinstance(found, Mapping) else []
        out = {key: told(item) for key, item in value.items() if key != "metrics" or not rows}
        if rows:
            out["metrics"] = ", ".join(f"{row['name']} {percent(row.get('value'), 1)}" for row in rows)
        return out

    return flat_rows(told(facts or {}))


def tail_points(counts: Sequence[int], n: int = 100) -> list[list[int]]:
    """Return (rank, count) pairs of the labels, most frequent first, thinned to about n evenly spaced on a log axis.

    >>> tail_points([1, 8, 0, 3])
    [[1, 8], [2, 3], [3, 1]]
    """
    ordered = sorted((int(c) for c in counts if c > 0), reverse=True)
    if not ordered:
        return []
    last = len(ordered)
    ranks = sorted({round(math.exp(i / max(n - 1, 1) * math.log(last))) for i in range(n)} | {1, last})
    return [[rank, ordered[rank - 1]] for rank in ranks]


def _k(key: str) -> int:
    digits = key.partition("@")[2]
    return int(digits) if digits.isdigit() else 0
