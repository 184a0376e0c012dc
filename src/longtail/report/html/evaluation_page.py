"""The page of an evaluation: one model on one dataset.

Each section shows its part of the facts and is left out when that part is missing. Nothing is computed here.

>>> html = evaluation_page({"title": "My model", "evaluation": {"ks": [1], "metrics": {"p@1": {"value": 0.8125}}}})
>>> "My model" in html and "81.25" in html
True
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from longtail.facts import (
    AssignedFacts,
    DatasetFacts,
    EvaluationFacts,
    LabelRowFacts,
    MetricFacts,
    MetricsFacts,
    ModelFacts,
    TimingFacts,
    TradeoffFacts,
)
from longtail.report.decision_rows import decision_sentence, set_rows, sets_sentence, tradeoff_sentence
from longtail.report.fact_rows import (
    FrequencyRow,
    band_rows,
    calibration_rows,
    data_rows,
    frequency_rows,
    metric_grid,
    metric_name,
    metric_rows,
    position_rows,
)
from longtail.report.formatting import count, decimal, flat_rows, percent, percent_range, whole_percent
from longtail.report.html.example_section import example_section
from longtail.report.html.rendering import FactBlock, Figure, Tile, View, render_page
from longtail.report.html.tree_sections import splits_section, tree_section
from longtail.report.model_rows import (
    main_settings,
    model_settings,
    origin_rows,
    other_rows,
    setting_rows,
    text_settings,
)
from longtail.report.people import for_people
from longtail.report.plots.canvas import finite
from longtail.report.plots.charts import (
    FrequencyPoint,
    FrequencySeries,
    IntervalRow,
    frequency_plot,
    interval_plot,
    reliability_plot,
    tail_plot,
)
from longtail.report.plots.tradeoff_plot import tradeoff_plot
from longtail.report.sentences import (
    by_sentence,
    calibration_sentence,
    frequency_sentence,
    headline,
    interval_sentence,
    noun,
)

ROWS_AT_ONCE = 25  # a longer table scrolls in its own window
PARTS_DRAWN = 20


def evaluation_page(facts: EvaluationFacts, *, labels_table: str = "`on_labels` of `evaluate_tagger`") -> str:
    """Return the page about one model on one dataset; every key of the facts may be missing.

    `labels_table` says what gives the records of all labels, where they are too many for a page.
    """
    told, facts = facts, for_people(facts)
    evaluation = facts.get("evaluation") or {}
    return render_page(
        "evaluation.html",
        str(facts.get("title") or "Evaluation"),
        told,
        headline=headline(facts),
        tiles=metric_tiles(evaluation),
        model=model_section(facts.get("model") or {}),
        metrics=metrics_section(facts),
        assigned=assigned_section(facts.get("assigned") or {}, facts.get("tradeoff")),
        frequency=frequency_section(evaluation),
        calibration=calibration_section(evaluation),
        by=by_section(facts),
        worst=worst_section(facts.get("worst_labels") or []),
        labels=label_section(facts, labels_table),
        tree=tree_section(facts.get("tree") or {}),
        splits=splits_section(facts.get("splits") or {}),
        examples=example_section(facts.get("examples") or []),
        background=background(facts.get("data") or {}, [], facts.get("timings")),
    )


def metric_tiles(evaluation: MetricsFacts) -> list[Tile]:
    """Return the few numbers most people ask for."""
    metrics, k = evaluation.get("metrics") or {}, max(evaluation.get("ks") or [0])
    tiles = []
    for key in dict.fromkeys(("p@1", f"p@{k}", f"r@{k}", f"ndcg@{k}", f"psp@{k}")):
        row = metrics.get(key) or {}
        if finite(row.get("value")):
            tiles.append(Tile(metric_name(key), percent(row["value"], 1), percent_range(row)))
    return tiles


def metrics_section(facts: EvaluationFacts) -> View | None:
    """Return the metrics as plots and as a table of every metric at every k."""
    evaluation = facts.get("evaluation") or {}
    metrics = evaluation.get("metrics") or {}
    drawn, positions = metric_rows(metrics), position_rows(evaluation)
    interval = evaluation.get("interval") or {}
    plots = []
    if drawn:
        note = (
            f"Each dot is a metric, in percent; the bar is its {whole_percent(interval.get('level', 0.95))} interval."
        )
        plots.append(Figure("The metrics and how sure they are", note, interval_plot(drawn, title="Metrics")))
    if len(positions) > 1:
        first, last = whole_percent(positions[0]["value"]), whole_percent(positions[-1]["value"])
        note, mean = "How often the suggestion at each place is right.", decimal(evaluation.get("labels_per_row"))
        note += f" A {noun(facts)} has {mean} labels on average." if mean else ""
        plot = interval_plot(positions, title="Right suggestions by place")
        plots.append(Figure(f"The first suggestion is right {first} of the time, the last {last}", note, plot))
    ks, grid = metric_grid(metrics)
    rows = [
        {
            "name": row["name"],
            "meaning": row["meaning"],
            "cells": [_cell(metric, 2) for metric in row["at_k"]],
            "apart": number > 0 and row["name"] == "Coverage",
        }
        for number, row in enumerate(grid)
    ]
    if not plots and not rows:
        return None
    measured = f"Measured on {count(evaluation.get('rows'))} rows. " if finite(evaluation.get("rows")) else ""
    return {"lead": (measured + interval_sentence(interval)).strip(), "plots": plots, "ks": ks, "rows": rows}


def assigned_section(assigned: AssignedFacts, tradeoff: TradeoffFacts | None) -> View | None:
    """Return how good the label sets are that rows are given, and what rare labels cost."""
    rows = [
        {"name": row["name"], "meaning": row["meaning"], "cells": [_cell(cell, 1) for cell in row["cells"]]}
        for row in set_rows(assigned)
    ]
    figure = None
    if tradeoff and tradeoff.get("points"):
        k = tradeoff["k"]
        note = f"Every dot is a mix of P@{k} and macro-F1@{k}, decided for all rows together."
        plot = tradeoff_plot([{"name": "", "points": tradeoff["points"]}], k, title="What rare labels cost")
        figure = Figure(tradeoff_sentence(tradeoff), note, plot)
    if not rows and figure is None:
        return None
    lead = " ".join([decision_sentence(assigned.get("decision") or {}), sets_sentence(assigned)]).strip()
    return {"lead": lead, "rows": rows, "figure": figure}


def frequency_section(evaluation: MetricsFacts) -> View | None:
    """Return precision and recall by training frequency, and by head, torso and tail."""
    rows = frequency_rows(evaluation)
    k = (evaluation.get("frequency") or {}).get("k") or max(evaluation.get("ks") or [0])
    figure = None
    if rows:
        series: list[FrequencySeries] = [
            {"name": "precision", "points": [_frequency_point(row, row.get("precision")) for row in rows]},
            {"name": "recall", "points": [_frequency_point(row, row.get("recall")) for row in rows]},
        ]
        note = f"Precision (right when suggested) and recall (suggested when right) of the first {k} suggestions."
        plot = frequency_plot(series, title="Precision and recall by label frequency")
        figure = Figure(frequency_sentence(rows), note, plot)
    bands = [
        {
            "name": band["name"],
            "range": band["range"],
            "labels": count(band["labels"]) or "–",
            "p": _cell(band["p"], 1),
            "r": _cell(band["r"], 1),
        }
        for band in band_rows(evaluation.get("bands"), k)
    ]
    return {"figure": figure, "bands": bands, "k": k} if figure or bands else None


def calibration_section(evaluation: MetricsFacts) -> View | None:
    """Return how far the probabilities can be trusted."""
    rows, facts = calibration_rows(evaluation), evaluation.get("calibration") or {}
    if not rows:
        return None
    brier: Any = facts.get("brier")
    brier = brier.get("value") if isinstance(brier, Mapping) else brier
    gap = facts.get("expected_calibration_error")
    known = [
        ("mean gap", f"{percent(gap)} points" if finite(gap) else None),
        ("Brier score", f"{brier:.4f}" if finite(brier) else None),
        ("suggestions", count(facts.get("pairs"))),
    ]
    note = "On the dashed line probabilities mean what they say; below it the model is too sure, above not sure enough."
    plot = reliability_plot(rows, title="Reliability of the probabilities")
    return {
        "figure": Figure(calibration_sentence(rows), note, plot),
        "facts": [(name, value) for name, value in known if value],
        "rows": [
            [row["name"], count(row["count"]) or "–", percent(row["predicted"], 1), percent(row["observed"], 1)]
            for row in rows
            if row["count"]
        ],
    }


def by_section(facts: EvaluationFacts) -> View | None:
    """Return how good the suggestions are on parts of the rows, by what a column says of them."""
    by = facts.get("by")
    if not by or not by["parts"]:
        return None
    k = max((facts.get("evaluation") or {}).get("ks") or [1])
    shown = [key for key in dict.fromkeys(("p@1", f"p@{k}", f"r@{k}")) if key in by["parts"][0]["metrics"]]
    first: list[IntervalRow] = [
        {"name": str(part["value"]), **part["metrics"].get("p@1", {})} for part in by["parts"][:PARTS_DRAWN]
    ]
    rest = [f"{count(by['parts_left_out'])} smaller parts are left out." if by["parts_left_out"] else ""]
    rest.append(f"Of {count(by['rows_without'])} rows the column says nothing." if by["rows_without"] else "")
    drawn = f"The {PARTS_DRAWN} largest parts." if len(by["parts"]) > PARTS_DRAWN else ""
    note = " ".join(filter(None, ["How often the first suggestion is right; bars are intervals.", drawn]))
    figure = Figure(by_sentence(by), note, interval_plot(first, title=f"P@1 by {by['column']}"))
    rows = [
        {
            "name": part["value"],
            "rows": count(part["rows"]),
            "cells": [_cell(part["metrics"].get(key) or {}, 1) for key in shown],
        }
        for part in by["parts"]
    ]
    return {
        "column": by["column"],
        "figure": figure if "p@1" in shown else None,
        "names": [metric_name(key) for key in shown],
        "rows": rows,
        "rest": " ".join(filter(None, rest)),
        "tall": len(rows) > ROWS_AT_ONCE,
    }


def worst_section(labels: list[LabelRowFacts]) -> View | None:
    """Return the labels that are found least, of those with enough test rows, with the interval of their recall."""
    rows = [
        {
            **_label_row(row),
            "recall": (
                percent(row.get("recall"), 1),
                percent_range({"low": row.get("recall_low"), "high": row.get("recall_high")}, 0),
            ),
        }
        for row in labels
    ]
    return {"rows": rows} if rows else None


def label_section(facts: EvaluationFacts, labels_table: str) -> View | None:
    """Return the labels one by one, in the order of the facts; a reader may sort and filter them."""
    labels = facts.get("labels") or []
    rows = [_label_row(row) for row in labels]
    left, untested = facts.get("labels_left_out") or 0, sum(row.get("test_count") == 0 for row in labels)
    if left:
        lead = f"The {count(len(rows))} labels with most test rows, of {count(len(rows) + left)}; {labels_table} "
        lead += "gives all of them."
    else:
        lead = f"All {count(len(rows))} labels."
    if untested:
        have = "label has" if untested == 1 else "labels have"
        lead += f" {count(untested)} {have} no test row, so their recall is not known."
    return {"rows": rows, "lead": lead, "tall": len(rows) > ROWS_AT_ONCE} if rows else None


def _label_row(row: LabelRowFacts) -> View:
    """Return one line about a label."""
    return {
        "label": row.get("label", ""),
        "id": row.get("id", ""),
        "cells": [
            count(row.get("train_count")) or "–",
            count(row.get("test_count")) or "–",
            percent(row.get("precision"), 1),
            percent(row.get("recall"), 1),
            percent(row.get("f1"), 1),
        ],
    }


def background(data: DatasetFacts, models: list[FactBlock], timings: TimingFacts | None) -> View | None:
    """Return what the numbers were measured on: the long tail of the data, and facts in blocks."""
    figure = None
    tail = data.get("tail")
    if tail:
        caption = f"{tail[-1][0]:,} labels, from {tail[0][1]:,} rows down to {tail[-1][1]:,}"
        plot = tail_plot(tail, title="The long tail of labels")
        figure = Figure(caption, "How often each label occurs; both axes by powers of ten.", plot)
    blocks = [FactBlock("Data", data_rows(data)), *models, FactBlock("Time", flat_rows(timings))]
    blocks = [block for block in blocks if block.rows]
    return {"figure": figure, "blocks": blocks} if figure or blocks else None


def model_section(model: ModelFacts) -> View | None:
    """Return what model this is and the settings that were in effect: the main ones, and all of them in a fold."""
    rows = origin_rows(model)
    if not rows:
        return None
    blocks = [FactBlock("Model", rows), FactBlock("Settings", setting_rows(model))]
    return {
        "blocks": [block for block in blocks if block.rows],
        "chosen": any(setting.chosen for setting in main_settings(model)),
        "all": [
            FactBlock(heading, rows)
            for heading, rows in (
                ("Model", [(setting.name, setting.value) for setting in model_settings(model)]),
                ("Texts", [(setting.name, setting.value) for setting in text_settings(model)]),
                ("Other facts", other_rows(model)),
            )
            if rows
        ],
    }


def _cell(metric: MetricFacts, digits: int) -> tuple[str, str]:
    """Return a metric and its interval as a table shows them."""
    return percent(metric.get("value"), digits), percent_range(metric)


def _frequency_point(row: FrequencyRow, value: float | None) -> FrequencyPoint:
    return {"x": row["x"], "y": value, "count": row.get("labels"), "name": row["name"]}
