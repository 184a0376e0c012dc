"""The page of monitoring: the verdict, every comparison in words and plots, what is new, and how sure it is."""

from __future__ import annotations

from longtail.facts import DriftFacts, MonitorFacts
from longtail.report.fact_rows import calibration_rows
from longtail.report.formatting import count
from longtail.report.html.rendering import Figure, Tile, View, render_page
from longtail.report.monitor_tables import (
    MARKS,
    monitor_headline,
    monitor_sentence,
    monitor_tables,
    verdict_rows,
)
from longtail.report.plots.charts import reliability_plot
from longtail.report.plots.histogram_plot import histogram_plot

LISTED, TEXT_LETTERS = 50, 80
TONES = {"steady": "better", "watch": "", "changed": "worse"}
X_LABELS = {
    "unknown_words": "unknown words of a row",
    "length": "length of a row, at least",
    "probability": "probability of the first label",
    "assigned": "labels that a row gets",
}


def monitor_page(facts: MonitorFacts) -> str:
    """Return the page about a batch of rows and a model; every key of the facts may be missing.

    >>> "Steady" in monitor_page({"verdict": "steady", "rows": 40})
    True
    """
    comparisons = facts.get("comparisons") or []
    tables = monitor_tables(facts, LISTED, TEXT_LETTERS)
    counted = [sum(one["verdict"] == verdict for one in comparisons) for verdict in MARKS]
    return render_page(
        "monitor.html",
        str(facts.get("title") or "Monitoring"),
        facts,
        headline=f"{monitor_headline(facts)} {facts.get('advice', '')}".strip(),
        tiles=[
            Tile("rows", count(facts.get("rows"))),
            Tile("with labels", count(facts.get("labelled_rows"))),
            Tile("rows to compare with", count(facts.get("reference_rows"))),
            *(Tile(name, f"{n}", f"of {len(comparisons)}") for name, n in zip(MARKS, counted, strict=True) if n),
        ],
        lead=monitor_sentence(facts),
        comparisons=_comparisons(comparisons),
        figures=_figures(comparisons, facts),
        tables=tables,
        not_compared=facts.get("not_compared") or [],
        words=sorted({name for table in tables for name in table.columns if name.endswith(" ")}),
    )


def _comparisons(comparisons: list[DriftFacts]) -> list[View]:
    """Return every comparison with its verdict and sentences."""
    return [
        {
            "title": row[0],
            "verdict": row[1],
            "tone": TONES[one["verdict"]],
            "before": row[2],
            "now": row[3],
            "differ": row[4],
            "limit": row[5],
            "sentence": one["sentence"],
            "advice": one["advice"],
        }
        for row, one in zip(verdict_rows(comparisons), comparisons, strict=True)
    ]


def _figures(comparisons: list[DriftFacts], facts: MonitorFacts) -> list[Figure]:
    """Return a plot of every comparison that has a histogram, and one of the calibration."""
    out = []
    for one in comparisons:
        histogram, label = one["histogram"], X_LABELS.get(one["what"])
        if histogram is not None and label is not None:
            plot = histogram_plot(histogram, title=one["title"], x_label=label)
            out.append(Figure(f"{one['title']}: {one['verdict']}", "", plot))
    bins = calibration_rows({"calibration": facts.get("calibration")})
    if bins:
        note = "On the dashed line probabilities mean what they say; below it the model is too sure of these rows."
        out.append(Figure("Probabilities against the truth", note, reliability_plot(bins, title="Reliability now")))
    return out
