"""The plots of evaluations and comparisons as SVG text: rows in, one drawing out; only positions are computed.

Every plot has a title and a description for screen readers, and every mark shows its numbers when the pointer
rests on it. Values that are missing or not finite are left out of the drawing.

>>> svg = interval_plot([{"name": "P@1", "value": 0.81, "low": 0.79, "high": 0.83}], title="Precision")
>>> svg.startswith("<svg") and "81.0" in svg
True
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple, Required, TypedDict

from longtail.report.plots.canvas import (
    WIDTH,
    Scale,
    box,
    dot,
    drawing,
    finite,
    line,
    linear,
    log_ticks,
    logarithmic,
    path,
    short_number,
    shorten,
    text,
    ticks,
    width_of,
)

ROW_HEIGHT = 25.0
LEGEND_START = 64.0  # from the left edge of the plot


class IntervalRow(TypedDict, total=False):
    """A value with its interval; rows of one `group` are drawn close to each other."""

    name: Required[str]
    value: float | None
    low: float | None
    high: float | None
    group: str


class DifferenceRow(TypedDict, total=False):
    """A difference of two models with its interval."""

    name: Required[str]
    difference: float | None
    low: float | None
    high: float | None
    group: str
    a: float | None
    b: float | None
    p_value: float | None
    verdict: str  # better, worse or unclear


class FrequencyPoint(TypedDict, total=False):
    """A value `y` of labels with about `x` training rows; labels without training rows have the x 0.5."""

    x: float
    y: float | None
    low: float | None
    high: float | None
    count: int | None  # labels, drawn as a bar
    name: str


class FrequencySeries(TypedDict):
    """A named line of a frequency plot."""

    name: str
    points: Sequence[FrequencyPoint]


class ReliabilityBin(TypedDict, total=False):
    """Suggestions with a probability from `start` to `end`: the mean one, and the share that was right."""

    start: float
    end: float
    predicted: float | None
    observed: float | None
    low: float | None  # of the observed share
    high: float | None
    count: int


class Drawn(NamedTuple):
    """A row that can be drawn: its name, value and interval, all in the units of the axis."""

    name: str
    value: float
    interval: tuple[float, float] | None

    @property
    def top(self) -> float:
        """The highest number that is drawn."""
        return self.value if self.interval is None else self.interval[1]

    def note(self, sign: str = "") -> str:
        """Return the numbers in words; `sign` is "+" to write signs."""
        told = f"{self.value:{sign}.1f}"
        if self.interval is not None:
            told += f" ({self.interval[0]:{sign}.1f} to {self.interval[1]:{sign}.1f})"
        return told


class Frame(NamedTuple):
    """The area of a plot and its scales."""

    left: float
    right: float
    top: float
    bottom: float
    at_x: Scale
    at_y: Scale


def interval_plot(rows: Sequence[IntervalRow], *, title: str, x_label: str = "percent", scale: float = 100.0) -> str:
    """Draw one dot per row with its interval."""
    kept = [(row, drawn) for row in rows if (drawn := _drawn(row["name"], row.get("value"), row, scale)) is not None]
    left, right = width_of([row["name"] for row, _ in kept], low=60, high=150) + 10, WIDTH - 46
    marks = ticks(0.0, max([drawn.top for _, drawn in kept] + [scale * 0.01]))
    at = linear(marks[0], marks[-1], left, right)
    body, y, group = [], 20.0, None
    for row, drawn in kept:
        y += 9.0 if group is not None and row.get("group") != group else 0.0
        group = row.get("group")
        body.append(text(left - 10, y + 4, shorten(drawn.name, left - 10), "end"))
        if drawn.interval is not None:
            body.append(_whisker(at(drawn.interval[0]), at(drawn.interval[1]), y, "stroke"))
        body += [dot(at(drawn.value), y, "dot", drawn.note(), 3.2)]
        body += [text(WIDTH, y + 4, f"{drawn.value:.1f}", "end", "strong")]
        y += ROW_HEIGHT
    bottom = y - ROW_HEIGHT / 2 + 4
    grid = [line(at(m), 6, at(m), bottom, "grid") for m in marks]
    axis = [text(at(m), bottom + 16, f"{m:g}", "middle", "soft small") for m in marks]
    axis.append(text((left + right) / 2, bottom + 33, x_label, "middle", "soft small"))
    described = "; ".join(f"{drawn.name}: {drawn.note()}" for _, drawn in kept)
    return drawing(bottom + 40, title, described, [*grid, *body, *axis])


def frequency_plot(
    series: Sequence[FrequencySeries],
    *,
    title: str,
    x_label: str = "training examples of the label",
    y_label: str = "percent",
    count_label: str = "labels",
    scale: float = 100.0,
) -> str:
    """Draw values against label frequency on a logarithmic axis, with bands, and bars for the counts below.

    The bars show the counts of the first series.
    """
    lines = [(s.get("name", ""), _line_points(s["points"], scale)) for s in series]
    counted = [
        (x, n) for s in series[:1] for p in s["points"] if finite(n := p.get("count")) and finite(x := p.get("x"))
    ]
    points = [point for _, of_line in lines for point in of_line]
    left, right, top, bottom = 40.0, WIDTH - 12, 26.0, 196.0
    lowest, highest = _log_range([x for x, _ in points] + [x for x, _ in counted])
    marks = ticks(0.0, max([drawn.top for _, drawn in points] + [scale * 0.01]))
    at_x = logarithmic(lowest, highest, left + 14, right - 14)
    frame = Frame(left, right, top, bottom, at_x, linear(marks[0], marks[-1], bottom, top))
    body = [text(0, 12, y_label, css="soft small"), *_y_axis(marks, frame)]
    start = left + LEGEND_START
    for number, (name, of_line) in enumerate(lines[:2]):
        tone = "2" if number else ""
        body += _frequency_line(frame, name, of_line, tone)
        if len(lines) > 1:  # the legend is one line above the plot
            body += [line(start, 8, start + 24, 8, "stroke" + tone), text(start + 30, 12, name, css="small")]
            start += 54 + width_of([name])
    base = bottom
    if counted:
        base = bottom + 52
        body += _count_bars(frame, counted, base, count_label)
    names = [(m, short_number(m)) for m in log_ticks(max(lowest, 1.0), highest)] + ([(0.5, "0")] if lowest < 1 else [])
    body += [text(at_x(mark), base + 16, name, "middle", "soft small") for mark, name in names]
    body.append(text((left + right) / 2, base + 33, x_label, "middle", "soft small"))
    described = "; ".join(_point_note(name, drawn) for name, of_line in lines for _, drawn in of_line)
    return drawing(base + 40, title, described, body)


def reliability_plot(bins: Sequence[ReliabilityBin], *, title: str) -> str:
    """Draw how often suggestions were right against how often the model said they would be.

    On the dashed diagonal the two agree.
    """
    kept = [
        (b, predicted, drawn)
        for b in bins
        if finite(predicted := b.get("predicted")) and (drawn := _drawn("", b.get("observed"), b, 1.0)) is not None
    ]
    left, right, top, bottom = 40.0, WIDTH - 12, 26.0, 236.0
    at_x, at_y = linear(0, 1, left, right), linear(0, 1, bottom, top)
    fifths = [i / 5 for i in range(6)]
    body = [text(0, 12, "right, percent", css="soft small")]
    in_percent = Frame(left, right, top, bottom, at_x, linear(0, 100, bottom, top))
    body += _y_axis([100 * m for m in fifths], in_percent)
    body.append(line(at_x(0), at_y(0), at_x(1), at_y(1), "zero"))
    body.append(path([(at_x(predicted), at_y(drawn.value)) for _, predicted, drawn in kept], "stroke"))
    for b, predicted, drawn in kept:
        x = at_x(predicted)
        if drawn.interval is not None:
            body.append(line(x, at_y(drawn.interval[0]), x, at_y(drawn.interval[1]), "stroke"))
        body.append(dot(x, at_y(drawn.value), "dot", _bin_note(b, predicted, drawn.value)))
    most = max([n for b, _, _ in kept if finite(n := b.get("count"))] + [1])
    base = bottom + 52
    tall = linear(0, most, 0, 40)
    for b, predicted, drawn in kept:
        n, start, end = b.get("count"), b.get("start"), b.get("end")
        if finite(n) and finite(start) and finite(end):
            x, height = at_x(start) + 2, tall(n)
            body.append(box(x, base - height, at_x(end) - x - 2, height, "bar", _bin_note(b, predicted, drawn.value)))
    body += [text(0, base - 16, "how", css="soft small"), text(0, base - 2, "many", css="soft small")]
    body.append(line(left, base, right, base, "axis"))
    body += [text(at_x(m), base + 16, f"{100 * m:.0f}", "middle", "soft small") for m in fifths]
    body.append(text((left + right) / 2, base + 33, "probability the model gave, percent", "middle", "soft small"))
    return drawing(base + 40, title, "; ".join(_bin_note(b, p, drawn.value) for b, p, drawn in kept), body)


def tail_plot(points: Sequence[Sequence[float]], *, title: str) -> str:
    """Draw how often each label occurs, most frequent first, on two logarithmic axes; points are (rank, count)."""
    kept = [(float(p[0]), float(p[1])) for p in points if finite(p[0]) and finite(p[1]) and p[0] >= 1 and p[1] >= 1]
    left, right, top, bottom = 46.0, WIDTH - 12, 26.0, 206.0
    low_x, high_x = 1.0, max([p[0] for p in kept] + [10.0])
    low_y, high_y = 1.0, max([p[1] for p in kept] + [10.0])
    at_x, at_y = logarithmic(low_x, high_x, left, right), logarithmic(low_y, high_y, bottom, top)
    body = [text(0, 12, "rows with the label", css="soft small")]
    for mark in log_ticks(low_y, high_y):
        body.append(line(left, at_y(mark), right, at_y(mark), "grid"))
        body.append(text(left - 8, at_y(mark) + 4, short_number(mark), "end", "soft small"))
    curve = [(at_x(x), at_y(y)) for x, y in kept]
    if curve:
        body.append(path([*curve, (curve[-1][0], bottom), (curve[0][0], bottom)], "band", closed=True))
    body += [path(curve, "stroke"), line(left, bottom, right, bottom, "axis")]
    body += [text(at_x(m), bottom + 16, short_number(m), "middle", "soft small") for m in log_ticks(low_x, high_x)]
    x_label = "label, from the most to the least frequent"
    body.append(text((left + right) / 2, bottom + 33, x_label, "middle", "soft small"))
    ends = [kept[0], kept[-1]] if kept else []
    return drawing(bottom + 40, title, "; ".join(f"label {x:.0f} occurs in {y:.0f} rows" for x, y in ends), body)


def difference_plot(rows: Sequence[DifferenceRow], *, title: str, x_label: str, scale: float = 100.0) -> str:
    """Draw differences with their intervals around zero.

    A mark is filled if its interval leaves zero out, and hollow if the difference may be chance.
    """
    kept = [d for row in rows if (d := _drawn(row["name"], row.get("difference"), row, scale)) is not None]
    left, right = width_of([drawn.name for drawn in kept], low=60, high=150) + 10, WIDTH - 52
    ends = [v for drawn in kept for v in (drawn.value, *(drawn.interval or ()))]
    reach = max([abs(v) for v in ends] + [0.001 * scale])
    marks = ticks(min([*ends, -0.25 * reach]), max([*ends, 0.25 * reach]), 4)
    at = linear(marks[0], marks[-1], left, right)
    body, y = [], 20.0
    for drawn in kept:
        tone = _tone(drawn)
        body.append(text(left - 10, y + 4, shorten(drawn.name, left - 10), "end"))
        if drawn.interval is not None:
            body.append(_whisker(at(drawn.interval[0]), at(drawn.interval[1]), y, "s" + tone))
        body.append(dot(at(drawn.value), y, "hollow" if tone == "soft" else tone, drawn.note("+")))
        body.append(text(WIDTH, y + 4, f"{drawn.value:+.1f}", "end", "soft" if tone == "soft" else "strong"))
        y += ROW_HEIGHT
    bottom = y - ROW_HEIGHT / 2 + 4
    grid = [line(at(m), 6, at(m), bottom, "zero" if m == 0 else "grid") for m in marks]
    axis = [text(at(m), bottom + 16, f"{m:+g}" if m else "0", "middle", "soft small") for m in marks]
    axis.append(text((left + right) / 2, bottom + 33, x_label, "middle", "soft small"))
    described = "; ".join(f"{drawn.name}: {drawn.note('+')}" for drawn in kept)
    return drawing(bottom + 40, title, described, [*grid, *body, *axis])


def _drawn(name: str, value: object, row: Mapping[str, object], scale: float) -> Drawn | None:
    """Return a row in the units of the axis; None if its value cannot be drawn."""
    if not finite(value):
        return None
    low, high = row.get("low"), row.get("high")
    return Drawn(name, scale * value, (scale * low, scale * high) if finite(low) and finite(high) else None)


def _line_points(points: Sequence[FrequencyPoint], scale: float) -> list[tuple[float, Drawn]]:
    """Return the points of a series that can be drawn: x, and the rest under the name of the point."""
    out = []
    for p in points:
        x = p.get("x")
        if finite(x) and (drawn := _drawn(p.get("name") or short_number(x), p.get("y"), p, scale)) is not None:
            out.append((x, drawn))
    return out


def _frequency_line(frame: Frame, name: str, points: Sequence[tuple[float, Drawn]], tone: str) -> list[str]:
    """Draw one series of a frequency plot; the first one, which has no tone, with the band of its intervals."""
    body = []
    banded = [(x, drawn.interval) for x, drawn in points if drawn.interval is not None]
    if len(banded) > 1 and not tone:
        upper = [(frame.at_x(x), frame.at_y(high)) for x, (_, high) in banded]
        lower = [(frame.at_x(x), frame.at_y(low)) for x, (low, _) in reversed(banded)]
        body.append(path(upper + lower, "band", closed=True))
    body.append(path([(frame.at_x(x), frame.at_y(drawn.value)) for x, drawn in points], "stroke" + tone))
    return body + [
        dot(frame.at_x(x), frame.at_y(drawn.value), "dot" + tone, _point_note(name, drawn)) for x, drawn in points
    ]


def _count_bars(frame: Frame, counted: Sequence[tuple[float, float]], base: float, label: str) -> list[str]:
    """Draw a bar for every (x, count), standing on `base`."""
    tall = linear(0, max([n for _, n in counted] + [1]), 0, 26)
    body = [text(0, base - 2, label, css="soft small")]
    for x, n in counted:
        body.append(box(frame.at_x(x) - 11, base - tall(n), 22, tall(n), "bar", f"{n:,} {label}"))
        body.append(text(frame.at_x(x), base - tall(n) - 4, short_number(n), "middle", "soft small"))
    return [*body, line(frame.left, base, frame.right, base, "axis")]


def _whisker(x1: float, x2: float, y: float, css: str) -> str:
    return line(x1, y, x2, y, css) + line(x1, y - 4, x1, y + 4, css) + line(x2, y - 4, x2, y + 4, css)


def _y_axis(marks: Sequence[float], frame: Frame) -> list[str]:
    out = []
    for mark in marks:
        y = frame.at_y(mark)
        out.append(line(frame.left, y, frame.right, y, "axis" if mark == marks[0] else "grid"))
        out.append(text(frame.left - 8, y + 4, f"{mark:g}", "end", "soft small"))
    return out


def _log_range(values: Sequence[float]) -> tuple[float, float]:
    low = max(min([*values, 1e9]), 0.5) if values else 1.0
    high = max([*values, low])
    return (low, high) if high > low else (low / 2, low * 2)


def _tone(drawn: Drawn) -> str:
    """Return the colour of a difference: soft if its interval holds zero."""
    if drawn.interval is None or drawn.interval[0] <= 0 <= drawn.interval[1]:
        return "soft"
    return "good" if drawn.value > 0 else "bad"


def _point_note(series: str, drawn: Drawn) -> str:
    return f"{series} {drawn.note()}".strip() + f" at {drawn.name}"


def _bin_note(b: ReliabilityBin, predicted: float, observed: float) -> str:
    note = f"said {100 * predicted:.1f}%, right {100 * observed:.1f}%"
    n = b.get("count")
    return f"{note}, {n:,} suggestions" if finite(n) else note
