"""Evaluations and comparisons in plain sentences: the headline of a report, and what its plots show."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from longtail.facts import ByFacts, ComparisonFacts, EvaluationFacts, IntervalFacts, MetricFacts
from longtail.report.fact_rows import (
    FAMILIES,
    CalibrationRow,
    FrequencyRow,
    difference_rows,
    model_names,
    verdict,
)
from longtail.report.formatting import plural, whole_percent
from longtail.report.plots.canvas import finite

ROWS_TO_TELL = 50  # of a part of the rows before a sentence names it
SPARSE = 0.01  # a bin with a smaller share of all suggestions is not worth a sentence


def headline(facts: EvaluationFacts) -> str:
    """Return in plain language how good the suggestions are.

    >>> metrics = {"p@1": {"value": 0.81}, "p@5": {"value": 0.58}, "r@5": {"value": 0.62}}
    >>> headline({"data": {"has_texts": True}, "evaluation": {"ks": [1, 5], "metrics": metrics}})
    'Of the 5 suggestions per text, 2.9 are right on average; the first one is right 81% of the time. They include...'
    """
    evaluation = facts.get("evaluation") or {}
    metrics, k = evaluation.get("metrics") or {}, max(evaluation.get("ks") or [0])
    thing, first = noun(facts), _value(metrics, "p@1")
    mean, recall = _value(metrics, f"p@{k}"), _value(metrics, f"r@{k}")
    parts = []
    if k > 1 and mean is not None:
        most = evaluation.get("suggested_at_most", k)
        suggested = f"{k} suggestions" if most >= k else f"at most {plural(most, 'suggestion')}"
        parts.append(f"Of the {suggested} per {thing}, {k * mean:.1f} are right on average")
        if first is not None:
            parts[0] += f"; the first one is right {whole_percent(first)} of the time"
        parts[0] += "."
    elif first is not None:
        parts.append(f"The first suggestion is right {whole_percent(first)} of the time.")
    if parts and k > 1 and recall is not None:
        parts.append(f"They include {whole_percent(recall)} of the labels a {thing} should have.")
    return " ".join(parts)


def noun(facts: EvaluationFacts | ComparisonFacts) -> str:
    """Return what one row of the data is called."""
    return "text" if (facts.get("data") or {}).get("has_texts") else "row"


def frequency_sentence(rows: Sequence[FrequencyRow]) -> str:
    """Return what the frequency plot shows: the rarest and the most frequent labels that are suggested often enough."""
    total = sum(row.get("predicted") or 0 for row in rows)
    seen = [row for row in rows if finite(row.get("precision")) and row["lowest"] > 0]
    told = [row for row in seen if (row.get("predicted") or 0) >= SPARSE * total]
    if len(told) < 2:
        return "How often suggestions are right, by how often the label occurs in training"

    def say(row: FrequencyRow) -> str:
        often = "once" if row["name"] == "1" else f"{row['name']} times"
        return f"seen {often}: {whole_percent(row['precision'])} right, {whole_percent(row.get('recall'))} found"

    return f"Labels {say(told[0])}; {say(told[-1])}"


def calibration_sentence(rows: Sequence[CalibrationRow]) -> str:
    """Return what the reliability plot shows, told by the well-filled bin nearest to 80%."""
    total = sum(row["count"] for row in rows)
    known = [
        (predicted, observed)
        for row in rows
        if finite(predicted := row["predicted"]) and finite(observed := row["observed"])
        if row["count"] >= SPARSE * total
    ]
    if not known:
        return "How often suggestions are right, by the probability the model gave them"
    predicted, observed = min(known, key=lambda pair: abs(pair[0] - 0.8))
    return f"When the model says {whole_percent(predicted)}, it is right {whole_percent(observed)} of the time"


def by_sentence(by: ByFacts) -> str:
    """Return on which part of the rows the first suggestion is right most and least often; small parts do not count.

    >>> parts = [{"value": v, "rows": 90, "metrics": {"p@1": {"value": p}}} for v, p in (("de", 0.8), ("fi", 0.6))]
    >>> by_sentence({"column": "language", "parts": parts, "rows_without": 0, "parts_left_out": 0})
    'The first suggestion is right most often for de (80%), least often for fi (60%)'
    """
    known = [
        (float(value), str(part["value"]))
        for part in by["parts"]
        if part["rows"] >= ROWS_TO_TELL and finite(value := (part["metrics"].get("p@1") or {}).get("value"))
    ]
    if len(known) < 2:
        return f"How often the first suggestion is right, by {by['column']}"
    (high, best), (low, worst) = max(known), min(known)
    return (
        f"The first suggestion is right most often for {best} ({whole_percent(high)}), least often for {worst} "
        f"({whole_percent(low)})"
    )


def interval_sentence(interval: IntervalFacts) -> str:
    """Return how the intervals were made; nothing if there are none."""
    if not interval.get("resamples"):
        return ""
    return (
        f"Intervals: {whole_percent(interval.get('level', 0.95))}, {interval.get('method', 'bootstrap')}, "
        f"{interval['resamples']:,} resamples, seed {interval.get('seed', 0)}."
    )


def comparison_headline(facts: ComparisonFacts) -> str:
    """Return in plain language which of two models is better, and whether that may be chance.

    >>> row = {"a": 0.5, "b": 0.56, "difference": 0.06, "low": 0.02, "high": 0.1}
    >>> comparison_headline({"a": "tree", "b": "ova", "comparison": {"ks": [5], "metrics": {"p@5": row}}})
    'ova is better than tree: 2.8 of its 5 suggestions per row are right on average, against 2.5.'
    """
    comparison = facts.get("comparison") or {}
    metrics, k = comparison.get("metrics") or {}, max(comparison.get("ks") or [0])
    row = metrics.get(f"p@{k}") or {}
    of_a, of_b = row.get("a"), row.get("b")
    if not (finite(of_a) and finite(of_b)):
        return ""
    a, b = model_names(facts)
    better, worse, high, low = (b, a, of_b, of_a) if of_b >= of_a else (a, b, of_a, of_b)
    of = f"suggestions per {noun(facts)} are right on average"
    if verdict(row) == "unclear":
        told = f"{k * of_a:.1f} and {k * of_b:.1f} of {k} {of}" if k > 1 else _firsts(of_a, of_b, "and")
        out = f"No clear difference between {a} and {b}: {told}."
    else:
        told = f"{k * high:.1f} of its {k} {of}, against {k * low:.1f}" if k > 1 else _firsts(high, low, "against")
        out = f"{better} is better than {worse}: {told}."
    verdicts = [row["verdict"] for row in difference_rows(metrics, tuple(FAMILIES))]
    if len(verdicts) > 1:
        won, lost = verdicts.count("better"), verdicts.count("worse")
        told = f"{b} is clearly better in {won or 'none'} and clearly worse in {lost or 'none'}"
        out += f" Of {len(verdicts)} metrics, {told if won or lost else 'none differs clearly'}."
    return out


def _firsts(first: float, second: float, word: str) -> str:
    return f"the first suggestion is right {whole_percent(first)} of the time, {word} {whole_percent(second)}"


def _value(metrics: Mapping[str, MetricFacts], key: str) -> float | None:
    value = (metrics.get(key) or {}).get("value")
    return float(value) if finite(value) else None
