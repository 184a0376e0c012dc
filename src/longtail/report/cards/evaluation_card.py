"""The cards of an evaluation and of a comparison: the headline, the metrics, and the plots of the report."""

from __future__ import annotations

from typing import cast

from longtail.facts import ComparisonFacts, EvaluationFacts
from longtail.notebook import Html, card, fold, h, table
from longtail.notebook import facts as fact_table
from longtail.report.cards.pieces import cell, label, plots
from longtail.report.decision_rows import decision_sentence, set_rows, sets_sentence
from longtail.report.fact_rows import FAMILIES, band_rows, data_rows, difference_rows, metric_grid, model_names
from longtail.report.formatting import count, percent, points, points_range
from longtail.report.html.comparison_page import differences_section
from longtail.report.html.evaluation_page import calibration_section, frequency_section
from longtail.report.html.rendering import Figure
from longtail.report.people import for_people
from longtail.report.plots.canvas import finite, plot_rules
from longtail.report.sentences import comparison_headline, headline, interval_sentence

WORST_SHOWN = 8
WHOLE = "The whole report, with every label and worked examples: evaluation_page(facts), from longtail.report."


def evaluation_html(facts: EvaluationFacts) -> str:
    """Return an evaluation: how good the suggestions are, on frequent and on rare labels; every key may be missing.

    >>> shown = evaluation_html({"evaluation": {"ks": [1], "metrics": {"p@1": {"value": 0.8125}}}})
    >>> "81.2" in shown and "right 81% of the time" in shown
    True
    """
    facts = for_people(facts)
    evaluation = facts.get("evaluation") or {}
    ks, grid = metric_grid(evaluation.get("metrics") or {})
    rows = [[h("span", row["name"], title=row["meaning"]), *(cell(one) for one in row["at_k"])] for row in grid]
    body = [h("p", headline(facts))]
    body += [table(["percent", *(f"at {k}" for k in ks)], rows)] if rows else []
    body.append(h("p", h("small", interval_sentence(evaluation.get("interval") or {})), class_="soft"))
    body += _bands(facts) + plots([_figure(frequency_section(evaluation)), _figure(calibration_section(evaluation))])
    body += _assigned(facts) + _worst(facts)
    data = data_rows(facts.get("data") or {})
    body += [fold("Data", fact_table(data))] if data else []
    body.append(h("p", h("small", WHOLE), class_="soft"))
    return card(facts.get("title") or "Evaluation", *body, style=plot_rules())


def comparison_html(facts: ComparisonFacts) -> str:
    """Return a comparison of two models: which is better, and the differences of all metrics.

    >>> row = {"a": 0.5, "b": 0.56, "difference": 0.06, "low": 0.02, "high": 0.1}
    >>> "+6.00" in comparison_html({"a": "tree", "b": "ova", "comparison": {"ks": [5], "metrics": {"p@5": row}}})
    True
    """
    comparison = facts.get("comparison") or {}
    a, b = model_names(facts)
    rows = []
    for row in difference_rows(comparison.get("metrics") or {}, tuple(FAMILIES)):
        difference = points(row.get("difference"))
        told = difference if row["verdict"] == "unclear" else h("b", difference)
        p = row.get("p_value")
        interval = h("small", points_range(row), class_="soft")
        numbers = [percent(row.get("a")), percent(row.get("b")), told, interval, f"{p:.4f}" if finite(p) else "–"]
        rows.append([row["name"], *numbers])
    columns = ["percent", f"a: {a}", f"b: {b}", "b minus a", "interval", "p-value"]
    drawn = (differences_section(facts) or {}).get("plots") or []
    every = fold("All metrics", table(columns, rows, (1, 2, 3, 4, 5)))
    figures = plots(cast(list[Figure], drawn))
    note = h("p", h("small", "Bold: the interval leaves 0 out."), class_="soft")
    body = [h("p", comparison_headline(facts)), *figures, every if rows else None, note if rows else None]
    return card(facts.get("title") or "Comparison", *body, style=plot_rules())


def _figure(section: dict[str, object] | None) -> Figure | None:
    """Return the plot of a section of the report."""
    return cast("Figure | None", (section or {}).get("figure"))


def _bands(facts: EvaluationFacts) -> list[Html]:
    """Return how good the suggestions are on frequent, middling and rare labels."""
    evaluation = facts.get("evaluation") or {}
    k = (evaluation.get("frequency") or {}).get("k") or max(evaluation.get("ks") or [0])
    rows = [
        [band["name"], band["range"], count(band["labels"]) or "–", cell(band["p"]), cell(band["r"])]
        for band in band_rows(evaluation.get("bands"), k)
    ]
    return [table(["labels", "training rows", "how many", f"P@{k}", f"R@{k}"], rows, (1, 2))] if rows else []


def _assigned(facts: EvaluationFacts) -> list[Html]:
    """Return how good the label sets are that rows are given."""
    assigned = facts.get("assigned") or {}
    rows = [
        [h("span", row["name"], title=row["meaning"]), *(cell(one) for one in row["cells"])]
        for row in set_rows(assigned)
    ]
    if not rows:
        return []
    lead = " ".join([decision_sentence(assigned.get("decision") or {}), sets_sentence(assigned)]).strip()
    return [fold("Label sets that rows are given", h("p", lead), table(["", "precision", "recall", "F1"], rows))]


def _worst(facts: EvaluationFacts) -> list[Html]:
    """Return the labels that are found least, of those with enough test rows."""
    rows = [
        [
            label({"label": row["label"], **({"id": row["id"]} if "id" in row else {})}),
            count(row.get("train_count")) or "–",
            count(row.get("test_count")) or "–",
            percent(row.get("recall"), 1),
        ]
        for row in (facts.get("worst_labels") or [])[:WORST_SHOWN]
    ]
    return (
        [fold("Labels found least", table(["label", "training rows", "test rows", "found, %"], rows, (1, 2, 3)))]
        if rows
        else []
    )
