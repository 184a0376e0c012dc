"""Two histograms in one plot: bars for now, steps for before."""

from __future__ import annotations

from collections.abc import Sequence

from longtail.facts import HistogramFacts
from longtail.report.plots.canvas import WIDTH, box, drawing, line, linear, path, text, ticks

NAMES_FIT = 8  # names of bins that stand side by side


def histogram_plot(histogram: HistogramFacts, *, title: str, x_label: str) -> str:
    """Draw the shares of rows by bin: those of a batch as bars, those of the reference as a line of steps.

    >>> "now 100.0%" in histogram_plot({"bins": ["a"], "batch": [1.0], "reference": [0.5]}, title="t", x_label="x")
    True
    """
    bins, now, before = histogram["bins"], histogram["batch"], histogram["reference"]
    left, right, top, bottom = 40.0, WIDTH - 12, 26.0, 176.0
    marks = ticks(0.0, 100 * max([*now, *before, 0.01]))
    at_y, width = linear(marks[0], marks[-1], bottom, top), (right - left) / max(len(bins), 1)
    body = [text(0, 12, "percent of rows", css="soft small"), *_legend()]
    for mark in marks:
        body.append(line(left, at_y(mark), right, at_y(mark), "axis" if mark == marks[0] else "grid"))
        body.append(text(left - 8, at_y(mark) + 4, f"{mark:g}", "end", "soft small"))
    steps: list[tuple[float, float]] = []
    for number, name in enumerate(bins):
        x, high = left + number * width, at_y(100 * now[number])
        body.append(box(x + 2, high, width - 4, bottom - high, "bar", _note(name, now[number], before[number])))
        steps += [(x, at_y(100 * before[number])), (x + width, at_y(100 * before[number]))]
    body.append(path(steps, "stroke"))
    every = 1 + (len(bins) - 1) // NAMES_FIT
    for number in range(0, len(bins), every):
        body.append(text(left + (number + 0.5) * width, bottom + 16, bins[number], "middle", "soft small"))
    body.append(text((left + right) / 2, bottom + 33, x_label, "middle", "soft small"))
    described = "; ".join(_note(*row) for row in zip(bins, now, before, strict=True))
    return drawing(bottom + 40, title, described, body)


def _legend() -> Sequence[str]:
    at = WIDTH - 170
    return [
        box(at, 4, 14, 9, "bar"),
        text(at + 20, 12, "now", css="small"),
        line(at + 66, 8, at + 90, 8, "stroke"),
        text(at + 96, 12, "before", css="small"),
    ]


def _note(name: str, now: float, before: float) -> str:
    return f"{name}: now {100 * now:.1f}%, before {100 * before:.1f}%"
