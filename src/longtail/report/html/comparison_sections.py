"""The sections of a comparison page: every difference is the second model minus the first."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from longtail.report import fact_rows as reading
from longtail.report import sentences
from longtail.report.formatting import count, percent, points, points_span
from longtail.report.html.page import Markup, element, figure, section, table
from longtail.report.plots import charts as svg
from longtail.report.plots.canvas import finite

Facts = Mapping[str, Any]


def plots(facts: Facts) -> Markup:
    """Return the differences of the metrics, and of the bands, around zero."""
    comparison = facts.get("comparison") or {}
    a, b = reading.model_names(facts)
    label, out = "difference in percentage points", []
    rows = reading.difference_rows(comparison.get("metrics") or {})
    if rows:
        clear = sum(row["verdict"] != "unclear" for row in rows)
        note = f"Right of zero, {b} is better. Filled: the interval leaves zero out. Hollow: it may be chance."
        plot = svg.difference_plot(rows, title=f"{b} minus {a}", x_label=label)
        out.append(figure(f"{clear} of {len(rows)} differences are clear", note, plot))
    bands = reading.band_difference_rows(comparison)
    if bands:
        note = "Head, torso and tail: labels by how often they occur in training."
        plot = svg.difference_plot(bands, title=f"{b} minus {a}, by band", x_label=label)
        out.append(figure("On frequent and on rare labels", note, plot))
    same = f", on the same {count(comparison['rows'])} rows" if finite(comparison.get("rows")) else ""
    lead = f"Every difference is {b} minus {a}{same}. " + sentences.interval_sentence(comparison)
    return section(f"How {b} differs from {a}", lead, element("div", *out, css="pair") if out else "")


def numbers(facts: Facts) -> Markup:
    """Return every metric of both models with difference, interval and p-value."""
    comparison = facts.get("comparison") or {}
    a, b = reading.model_names(facts)
    rows, apart = [], []
    found = reading.difference_rows(comparison.get("metrics") or {}, tuple(reading.FAMILIES))
    for number, row in enumerate(found):
        if number and row["group"] != found[number - 1]["group"]:
            apart.append(number)
        p = row.get("p_value")
        rows.append(
            [
                row["name"],
                percent(row.get("a")),
                percent(row.get("b")),
                element("span", points(row.get("difference")), css=row["verdict"]),
                points_span(row) or "–",
                f"{p:.4f}" if finite(p) else "–",
                row["verdict"],
            ]
        )
    return section(
        "All metrics",
        "In percent. The p-value says how often chance alone gives a difference this large; it is not corrected for "
        "looking at several metrics.",
        table(["metric", a, b, "difference", "interval", "p-value", f"{b} is "], rows, apart=apart) if rows else "",
    )
