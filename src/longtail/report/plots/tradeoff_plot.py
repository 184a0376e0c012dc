"""The plot of what rare labels cost: P@k against macro-F1@k, one line for each data set or model."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import TypedDict

from longtail.facts import TradeoffPointFacts
from longtail.report.plots.canvas import WIDTH, dot, drawing, finite, line, linear, text, ticks, width_of

LEFT, RIGHT, TOP, BOTTOM = 40.0, WIDTH - 12, 26.0, 226.0
GAP, SPARE = 36.0, 28.0  # of a name in the legend: its line, and space; what is left after the last one
TONES = (("stroke", "dot"), ("stroke2", "dot2"), ("sgood", "good"))  # of lines and dots


class TradeoffSeries(TypedDict):
    """A named line of the plot."""

    name: str
    points: Sequence[TradeoffPointFacts]


def tradeoff_plot(series: Sequence[TradeoffSeries], k: int, *, title: str) -> str:
    """Draw macro-F1@k against P@k; every dot is a mix of both goals.

    >>> ends = [{"mix": 0.0, "p": 0.469, "macro_f1": 0.262}, {"mix": 1.0, "p": 0.422, "macro_f1": 0.435}]
    >>> svg = tradeoff_plot([{"name": "debtags", "points": ends}], 5, title="What rare labels cost")
    >>> svg.startswith("<svg") and "P@5 42.2, macro-F1@5 43.5" in svg
    True
    """
    kept = [(s["name"], [p for p in s["points"] if finite(p.get("p")) and finite(p.get("macro_f1"))]) for s in series]
    xs = [100 * p["p"] for _, points in kept for p in points] or [0.0, 1.0]
    ys = [100 * p["macro_f1"] for _, points in kept for p in points] or [0.0, 1.0]
    x_marks, y_marks = ticks(min(xs), max(xs)), ticks(min(ys), max(ys))
    at_x, at_y = linear(x_marks[0], x_marks[-1], LEFT, RIGHT), linear(y_marks[0], y_marks[-1], BOTTOM, TOP)
    body = [text(0, 12, f"macro-F1@{k}, percent", css="soft small")]
    for mark in y_marks:
        body.append(line(LEFT, at_y(mark), RIGHT, at_y(mark), "axis" if mark == y_marks[0] else "grid"))
        body.append(text(LEFT - 8, at_y(mark) + 4, f"{mark:g}", "end", "soft small"))
    notes: list[str] = []
    start = RIGHT + SPARE - sum(GAP + width_of([name]) for name, _ in kept[: len(TONES)])
    for number, (name, points) in enumerate(kept[: len(TONES)]):
        stroke, filled = TONES[number]
        at = [(at_x(100 * p["p"]), at_y(100 * p["macro_f1"])) for p in points]
        body += [line(*a, *b, stroke) for a, b in pairwise(at)]
        for p in points:
            note = f"{100 * p['mix']:.0f}% macro-F1: P@{k} {100 * p['p']:.1f}, macro-F1@{k} {100 * p['macro_f1']:.1f}"
            body.append(dot(at_x(100 * p["p"]), at_y(100 * p["macro_f1"]), filled, note))
            notes.append(f"{name}, {note}")
        if len(kept) > 1:
            body += [line(start, 8, start + 18, 8, stroke), text(start + 23, 12, name, css="small")]
            start += GAP + width_of([name])
    body += [text(at_x(m), BOTTOM + 16, f"{m:g}", "middle", "soft small") for m in x_marks]
    body.append(text((LEFT + RIGHT) / 2, BOTTOM + 33, f"P@{k}, percent", "middle", "soft small"))
    return drawing(BOTTOM + 40, title, "; ".join(notes), body)
