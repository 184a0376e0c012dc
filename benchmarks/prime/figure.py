"""Draw the results of the benchmark of PRIME: bars of the models on each data set, and of the ablation."""

from __future__ import annotations

import statistics
import textwrap
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from longtail.report.plots.canvas import WIDTH, box, drawing, finite, line, linear, standalone, text, ticks

Facts = Mapping[str, Any]
FAMILIES = {  # models in the order of the picture, and the colours of their bars
    "baselines": ("frozen encoder", "NGAME-like", "DEXA-like"),
    "PRIME": ("PRIME-lite", "PRIME", "PRIME, batch not doubled", "PRIME(W)", "PRIME(θ, W)"),
    "label trees": ("tree, words", "tree, words and PRIME", "tree (overlap 2), words and PRIME"),
    "both": ("PRIME with a tree, words",),
}
COLOURS = {"baselines": "bar", "PRIME": "dot", "label trees": "dot2", "both": "good"}
LETTERS, LEFT = 20, 128.0  # of a line of a model's name, and where bars begin
ROW, BAR, HEAD, FOOT = 27.0, 13.0, 50.0, 44.0
GAP = 9.0  # between families
VALUE = 38.0  # width of the number at a bar
NAMES = {"p@1": "P@1", "p@5": "P@5", "psp@5": "PSP@5"}


class Row(NamedTuple):
    """One model: the family it stands with, and each metric by seed."""

    name: str
    family: str
    values: Mapping[str, Sequence[float]]

    def note(self, metric: str) -> str:
        values = self.values[metric]
        seeds = " (seeds " + ", ".join(f"{value:.1f}" for value in values) + ")" if len(values) > 1 else ""
        return f"{self.name}: {NAMES[metric]} {statistics.fmean(values):.1f}{seeds}"


def draw(facts: Facts, data: Sequence[str], ablation: Sequence[str], target: Path) -> None:
    """Draw a panel per data set and one of the ablation on the first; models without results are left out."""
    three, two = ("p@1", "p@5", "psp@5"), ("p@1", "p@5")
    families = {model: family for family, models in FAMILIES.items() for model in models}
    panels: list[tuple[str, list[Row], Sequence[str]]] = [
        (name, with_results(facts, "main", name, families, three), three) for name in data
    ]
    title = f"{data[0]}, parts of PRIME-lite" + rows_of(facts, "ablation", data[0])
    groups = {model: group_of(number, model) for number, model in enumerate(ablation)}
    panels.append((title, with_results(facts, "ablation", data[0], groups, two), two))
    shown = {row.family for _, rows, _ in panels for row in rows}
    body, top, told = legend(shown), 26.0, []
    for heading, rows, metrics in panels:
        if rows:
            marks, height = panel(heading, rows, metrics, top)
            body += marks
            top += height
            told.append(f"{heading}. " + "; ".join(row.note(metric) for row in rows for metric in metrics))
    svg = drawing(top - 18, "Accuracy of PRIME, its relatives and label trees, percent", ". ".join(told), body)
    target.write_text(standalone(svg) + "\n", encoding="utf-8")


def with_results(facts: Facts, part: str, data: str, families: Mapping[str, str], metrics: Sequence[str]) -> list[Row]:
    """Return the models that have results, in the order of `families`."""
    rows = []
    for model, family in families.items():
        runs = [run for run in facts["runs"] if (run["part"], run["data"], run["model"]) == (part, data, model)]
        runs = [run for run in runs if all(finite(run.get(metric)) for metric in metrics)]
        if runs:
            rows.append(Row(model, family, {metric: [run[metric] for run in runs] for metric in metrics}))
    return rows


def rows_of(facts: Facts, part: str, data: str) -> str:
    """Return on how many rows the models of a part were trained, in words; nothing where they differ."""
    sizes = {run["rows"] for run in facts["runs"] if (run["part"], run["data"]) == (part, data) and "rows" in run}
    return f" ({sizes.pop():,} training rows)" if len(sizes) == 1 else ""


def group_of(number: int, model: str) -> str:
    """Return with which models one of the ablation stands: the whole first, then built up, then with one part less."""
    return "less" if model.startswith("without") else "built" if number else "PRIME"


def legend(shown: set[str]) -> list[str]:
    body, x = [], 0.0
    for family, css in COLOURS.items():
        if family in shown:
            body += [box(x, 4, 12, 10, css), text(x + 17, 13, family, css="small")]
            x += 34 + 6.4 * len(family)
    return [*body, box(x, 1.5, 1, 15, "soft"), text(x + 7, 13, "one seed (bar: mean)", css="small")]


def panel(heading: str, rows: Sequence[Row], metrics: Sequence[str], top: float) -> tuple[list[str], float]:
    """Return the marks of one panel, a column of bars per metric on one scale, and its height."""
    places = heights(rows, top + HEAD)
    low, high = top + HEAD - 4, places[-1] + BAR + 5
    marks = ticks(0.0, max(value for row in rows for metric in metrics for value in row.values[metric]), 2)
    body = [text(0, top + 16, heading, css="strong")]
    for row, y in zip(rows, places, strict=True):
        body += name_of(row.name, y + BAR / 2)
    wide = (WIDTH - LEFT) / len(metrics)
    for column, metric in enumerate(metrics):
        left = LEFT + column * wide
        at = linear(0.0, marks[-1], left, left + wide - VALUE)
        body.append(text(left, top + 36, f"{NAMES[metric]}, %", css="soft small"))
        body += [line(left, low, left, high, "axis"), line(left, high, at(marks[-1]), high, "axis")]
        for mark in marks:  # no lines across: they would run through the numbers at the bars
            body.append(line(at(mark), high, at(mark), high + 4, "axis"))
            body.append(text(at(mark), high + 16, f"{mark:g}", "middle", "soft small"))
        for row, y in zip(rows, places, strict=True):
            values, note = row.values[metric], row.note(metric)
            mean = statistics.fmean(values)
            body.append(box(left, y, at(mean) - left, BAR, COLOURS.get(row.family, "dot"), note))
            body += [box(at(value) - 0.5, y - 2.5, 1, BAR + 5, "soft", note) for value in values]
            body.append(text(at(max(values)) + 4, y + BAR - 2, f"{mean:.1f}"))
    return body, high - top + FOOT


def heights(rows: Sequence[Row], top: float) -> list[float]:
    """Return where the bars of each row begin: there is a gap before a new family."""
    out, y = [], top
    for before, row in zip([None, *rows], rows, strict=False):
        y += GAP if before and before.family != row.family else 0.0
        out.append(y)
        y += ROW
    return out


def name_of(name: str, middle: float) -> list[str]:
    """Draw a name at the left of its bars, long ones in lines of about the same length."""
    count = len(textwrap.wrap(name, LETTERS))
    width = next(n for n in range(1, LETTERS + 1) if len(textwrap.wrap(name, n, break_long_words=False)) <= count)
    lines = textwrap.wrap(name, width, break_long_words=False)
    start = middle + 4 - 6.0 * (len(lines) - 1)
    return [text(LEFT - 8, start + 12.0 * i, part, "end", "small") for i, part in enumerate(lines)]
