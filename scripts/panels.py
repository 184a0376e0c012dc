"""Panels that the pictures of the documentation are put together from: lines over numbers, bars with names, legends."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from longtail.report.plots.canvas import LETTER, box, dot, line, linear, logarithmic, path, shorten, text

ROOT = Path(__file__).resolve().parents[1]
RESULTS = ROOT / "benchmarks" / "results"
SMALL = 0.72 * LETTER  # width of a small letter
Facts = dict[str, Any]


class Series(NamedTuple):
    """A line through points, with the style of its stroke and of its dots."""

    name: str
    points: Sequence[tuple[float, float]]
    stroke: str = "stroke"
    dots: str = "dot"


class Bar(NamedTuple):
    """A bar with its name, its value as a number and as it is written."""

    name: str
    value: float | None
    shown: str
    css: str = "bar"


class Place(NamedTuple):
    """Where a panel stands."""

    left: float
    top: float
    width: float
    height: float


def results(name: str) -> Facts:
    """Return the facts of a file of results."""
    facts: Facts = json.loads((RESULTS / name).read_text("utf-8"))
    return facts


def line_panel(
    place: Place,
    title: str,
    series: Sequence[Series],
    x_marks: dict[float, str],
    y_marks: dict[float, str],
    *,
    logs: tuple[bool, bool] = (False, False),
) -> list[str]:
    """Return a panel with a grid, its marks and the lines of all series."""
    left, right = place.left + 36, place.left + place.width - 12
    top, low = place.top + 20, place.top + place.height - 18
    at_x = (logarithmic if logs[0] else linear)(min(x_marks), max(x_marks), left, right)
    at_y = (logarithmic if logs[1] else linear)(min(y_marks), max(y_marks), low, top)
    body = [text(place.left, place.top + 8, title, css="strong small")]
    body += [line(left, at_y(v), right, at_y(v), "axis" if at_y(v) == low else "grid") for v in y_marks]
    body += [text(left - 5, at_y(v) + 4, name, "end", "soft small") for v, name in y_marks.items()]
    body += [text(at_x(v), low + 15, name, "middle", "soft small") for v, name in x_marks.items()]
    for one in series:
        points = [(at_x(x), at_y(y)) for x, y in one.points]
        body.append(path(points, one.stroke))
        notes = [f"{one.name}: {y:g}" for _, y in one.points]
        body += [dot(x, y, one.dots, note, 3) for (x, y), note in zip(points, notes, strict=True)]
    return body


def bar_panel(
    place: Place,
    title: str,
    bars: Sequence[Bar],
    *,
    names: float,
    low: float = 0.0,
    log: bool = False,
    step: float = 16,
) -> list[str]:
    """Return a panel with a horizontal bar for each name; `names` is the width of their column, 0 for none."""
    values = [bar.value for bar in bars if bar.value is not None]
    start, end = place.left + names + 4, place.left + place.width - 48
    high = max(values)
    least = min(values) / 1.6 if log else low
    scale: Callable[[float], float] = (logarithmic if log else linear)(least, high, start, end)
    body = [text(place.left + (names + 4 if names else 0), place.top + 8, title, css="strong small")]
    for number, bar in enumerate(bars):
        y = place.top + 18 + number * step
        if names:
            body.append(text(start - 5, y + 10, shorten(bar.name, names * LETTER / SMALL), "end", "small"))
        if bar.value is None:
            body.append(text(start, y + 10, "–", css="soft small"))
            continue
        body.append(box(start, y, scale(bar.value) - start, step - 4, bar.css, f"{bar.name}: {bar.shown}"))
        body.append(text(scale(bar.value) + 4, y + 10, bar.shown, css="small"))
    return body


def legend(left: float, y: float, entries: Sequence[tuple[str, str]]) -> list[str]:
    """Return a line of dots with what they stand for; an entry is the style of the dot and its name."""
    body, x = [], left
    for css, name in entries:
        body += [dot(x + 4, y - 4, css), text(x + 13, y, name, css="small")]
        x += 28 + 1.14 * SMALL * len(name)
    return body


def paragraphs(left: float, y: float, lines: Sequence[str], css: str = "small", step: float = 15) -> list[str]:
    """Return lines of text, one below the other."""
    return [text(left, y + number * step, words, css=css) for number, words in enumerate(lines)]
