"""The page of a comparison: two models on one dataset; every difference is the second model minus the first."""

from __future__ import annotations

from longtail.facts import ComparisonFacts
from longtail.report.fact_rows import FAMILIES, band_difference_rows, difference_rows, model_names
from longtail.report.formatting import count, percent, points, points_range
from longtail.report.html.evaluation_page import background
from longtail.report.html.example_section import example_section
from longtail.report.html.rendering import FactBlock, Figure, View, render_page
from longtail.report.model_rows import origin_rows, setting_rows
from longtail.report.plots.canvas import finite
from longtail.report.plots.charts import difference_plot
from longtail.report.sentences import comparison_headline, interval_sentence

X_LABEL = "difference in percentage points"


def comparison_page(facts: ComparisonFacts) -> str:
    """Return the page about two models on one dataset; every key of the facts may be missing.

    >>> "No clear difference" in comparison_page({"comparison": {"ks": [1], "metrics": {"p@1": {"a": 0.5, "b": 0.6}}}})
    True
    """
    a, b = model_names(facts)
    known = ((a, facts.get("a")), (b, facts.get("b")))
    models = [
        FactBlock(name, [*origin_rows(model), *setting_rows(model)]) for name, model in known if isinstance(model, dict)
    ]
    return render_page(
        "comparison.html",
        str(facts.get("title") or "Comparison"),
        facts,
        headline=comparison_headline(facts),
        tiles=[],
        a=a,
        b=b,
        differences=differences_section(facts),
        rows=metric_table(facts),
        examples=example_section(facts.get("examples") or []),
        background=background(facts.get("data") or {}, models, facts.get("timings")),
    )


def differences_section(facts: ComparisonFacts) -> View | None:
    """Return the differences of the metrics, and of the bands, as plots around zero."""
    comparison = facts.get("comparison") or {}
    a, b = model_names(facts)
    plots = []
    rows = difference_rows(comparison.get("metrics") or {})
    if rows:
        clear = sum(row["verdict"] != "unclear" for row in rows)
        note = f"Right of zero, {b} is better. Filled: the interval leaves zero out. Hollow: it may be chance."
        plot = difference_plot(rows, title=f"{b} minus {a}", x_label=X_LABEL)
        plots.append(Figure(f"{clear} of {len(rows)} differences are clear", note, plot))
    bands = band_difference_rows(comparison)
    if bands:
        note = "Head, torso and tail: labels by how often they occur in training."
        plot = difference_plot(bands, title=f"{b} minus {a}, by band", x_label=X_LABEL)
        plots.append(Figure("On frequent and on rare labels", note, plot))
    same = f", on the same {count(comparison['rows'])} rows" if finite(comparison.get("rows")) else ""
    lead = f"Every difference is {b} minus {a}{same}. " + interval_sentence(comparison.get("interval") or {})
    return {"lead": lead, "plots": plots} if plots else None


def metric_table(facts: ComparisonFacts) -> list[View]:
    """Return every metric of both models with difference, interval and p-value; a new family begins apart."""
    rows = difference_rows((facts.get("comparison") or {}).get("metrics") or {}, tuple(FAMILIES))
    out: list[View] = []
    for number, row in enumerate(rows):
        p = row.get("p_value")
        out.append(
            {
                "name": row["name"],
                "a": percent(row.get("a")),
                "b": percent(row.get("b")),
                "difference": points(row.get("difference")),
                "interval": points_range(row) or "–",
                "p_value": f"{p:.4f}" if finite(p) else "–",
                "verdict": row["verdict"],
                "apart": number > 0 and row["group"] != rows[number - 1]["group"],
            }
        )
    return out
