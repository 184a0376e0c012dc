"""The sections of an evaluation page; each takes facts and returns HTML, or nothing where its facts are missing."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from longtail.report import fact_rows as reading
from longtail.report import sentences
from longtail.report.formatting import count, decimal, percent, span, whole
from longtail.report.html.page import Markup, definitions, element, figure, section, table
from longtail.report.plots import charts as svg
from longtail.report.plots.canvas import escape, finite

Facts = Mapping[str, Any]
ROWS_AT_ONCE = 25  # a longer table scrolls in its own window


def tiles(evaluation: Facts) -> Markup:
    """Return the few numbers most people ask for, large."""
    found, k = evaluation.get("metrics") or {}, max(evaluation.get("ks") or [0])
    out = []
    for key in dict.fromkeys(("p@1", f"p@{k}", f"r@{k}", f"ndcg@{k}", f"psp@{k}")):
        row = found.get(key) or {}
        if finite(row.get("value")):
            value = element("dd", percent(row["value"], 1), element("small", span(row)) if span(row) else "")
            out.append(element("div", element("dt", reading.metric_name(key)), value, css="tile"))
    return element("dl", *out, css="tiles") if out else Markup()


def metrics(facts: Facts) -> Markup:
    """Return the metrics as plots and as a table of every metric at every k."""
    evaluation = facts.get("evaluation") or {}
    found = evaluation.get("metrics") or {}
    drawn, places = reading.metric_rows(found), reading.place_rows(evaluation)
    plots = []
    if drawn:
        level = whole((evaluation.get("interval") or {}).get("level", 0.95))
        note = f"Each dot is a metric, in percent; the bar is its {level} interval."
        plots.append(figure("The metrics and how sure they are", note, svg.interval_plot(drawn, title="Metrics")))
    if len(places) > 1:
        first, last, mean = whole(places[0]["value"]), whole(places[-1]["value"]), evaluation.get("labels_per_row")
        note = "How often the suggestion at each place is right."
        if finite(mean):
            note += f" A {sentences.noun(facts)} has {decimal(mean)} labels on average."
        plot = svg.interval_plot(places, title="Right suggestions by place")
        plots.append(figure(f"The first suggestion is right {first} of the time, the last {last}", note, plot))
    ks, grid = reading.metric_grid(found)
    rows = [
        [
            element("span", element("span", name, css="key"), element("span", meaning, css="meaning"), css="named"),
            *(_value(cell) for cell in cells),
        ]
        for name, meaning, cells in grid
    ]
    apart = [i for i, (name, _, _) in enumerate(grid) if i and name == "Coverage"]
    lead = f"Measured on {count(evaluation.get('rows'))} rows. " if finite(evaluation.get("rows")) else ""
    return section(
        "How good are the suggestions?",
        lead + sentences.interval_sentence(evaluation),
        element("div", *plots, css="pair") if plots else "",
        table(["in percent", *(f"at {k}" for k in ks)], rows, apart=apart) if rows else "",
    )


def frequencies(evaluation: Facts) -> Markup:
    """Return precision and recall by training frequency, and by head, torso and tail."""
    rows = reading.frequency_rows(evaluation)
    k = (evaluation.get("frequency") or {}).get("k") or max(evaluation.get("ks") or [0])
    parts = []
    if rows:
        series = [
            {
                "name": name,
                "points": [{"x": r["x"], "y": r.get(name), "count": r.get("labels"), "name": r["name"]} for r in rows],
            }
            for name in ("precision", "recall")
        ]
        note = f"Precision (right when suggested) and recall (suggested when right) of the first {k} suggestions."
        plot = svg.frequency_plot(series, title="Precision and recall by label frequency")
        parts.append(figure(sentences.frequency_sentence(rows), note, plot))
    body = [
        [
            Markup(escape(band["name"]) + element("span", f"{band['range']} in training", css="low")),
            count(band["labels"]) or "–",
            _value(band["p"], 1),
            _value(band["r"], 1),
        ]
        for band in reading.band_rows(evaluation.get("bands"), k)
    ]
    if body:
        columns = ["band", "labels", f"P@{k}", f"R@{k}"]
        parts.append(table(columns, body, caption="Head, torso and tail", css="stacked"))
    return section(
        "Frequent and rare labels",
        "Most labels are rare. A model can look good on average and still know only the frequent ones.",
        element("div", *parts, css="pair") if parts else "",
    )


def calibration(evaluation: Facts) -> Markup:
    """Return how far the probabilities can be trusted."""
    rows, found = reading.calibration_rows(evaluation), evaluation.get("calibration") or {}
    if not rows:
        return Markup()
    brier = found.get("brier")
    brier = brier.get("value") if isinstance(brier, Mapping) else brier
    gap, pairs = found.get("expected_calibration_error"), count(found.get("pairs"))
    known = [
        ("mean gap", f"{percent(gap)} points" if finite(gap) else None),
        ("Brier score", f"{brier:.4f}" if finite(brier) else None),
        ("suggestions", pairs),
    ]
    body = [
        [row["name"], count(row["count"]) or "–", percent(row["predicted"], 1), percent(row["observed"], 1)]
        for row in rows
        if row["count"]
    ]
    note = "On the dashed line probabilities mean what they say; below it the model is too sure, above not sure enough."
    plot = svg.reliability_plot(rows, title="Reliability of the probabilities")
    return section(
        "Can the probabilities be trusted?",
        "A threshold makes sense only if a probability of 80% is right in about 80 of 100 cases.",
        element(
            "div",
            figure(sentences.calibration_sentence(rows), note, plot),
            element(
                "div",
                definitions([(name, value) for name, value in known if value]),
                table(["probability", "suggestions", "said, %", "right, %"], body),
                css="stack",
            ),
            css="pair",
        ),
    )


def labels(facts: Facts) -> Markup:
    """Return the labels one by one, in the order of the facts; a reader may sort and filter them."""
    rows = [
        [
            row.get("label", ""),
            count(row.get("train_count")) or "–",
            count(row.get("test_count")) or "–",
            percent(row.get("precision"), 1),
            percent(row.get("recall"), 1),
        ]
        for row in facts.get("labels") or []
    ]
    columns = ["label", "training rows", "test rows", "precision, %", "recall, %"]
    return section(
        "Label by label",
        "Precision: how often the label is right when suggested. Recall: how often it is suggested when right.",
        table(columns, rows, css="sortable", tall=len(rows) > ROWS_AT_ONCE) if rows else "",
    )


def confusions(facts: Facts) -> Markup:
    """Return pairs of labels: the first was suggested wrongly in rows where the second was missed."""
    rows = [
        [row.get("label", ""), element("bdi", row.get("instead_of", "")), count(row.get("count")) or "–"]
        for row in facts.get("confusions") or []
    ]
    return section(
        "Labels taken for each other",
        "The first was suggested wrongly in rows where the second was missed.",
        table(["suggested", "missed ", "rows"], rows, css="sortable", tall=len(rows) > ROWS_AT_ONCE) if rows else "",
    )


def _value(row: Facts, digits: int = 2) -> Markup:
    value, interval = percent(row.get("value"), digits), span(row)
    return Markup(escape(value) + (element("span", interval, css="low") if interval else ""))
