"""The plots of the reports, as SVG text: rows of facts in, one drawing out, nothing computed but positions.

Every plot has a title and a description for screen readers, and every mark tells its numbers when the pointer
rests on it. Facts that are missing or not finite are left out of the drawing.

>>> svg = interval_plot([{"name": "P@1", "value": 0.81, "low": 0.79, "high": 0.83}], title="Precision")
>>> svg.startswith("<svg") and "81.0" in svg
True
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from longtail.report.plots.canvas import (
    WIDTH,
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

Row = Mapping[str, Any]
ROW_HEIGHT = 25.0


def interval_plot(rows: Sequence[Row], *, title: str, x_label: str = "percent", scale: float = 100.0) -> str:
    """Draw one dot per row with its interval; rows have `name`, `value` and perhaps `low`, `high` and `group`."""
    rows = [row for row in rows if finite(row.get("value"))]
    left, right = width_of([row["name"] for row in rows], low=60, high=150) + 10, WIDTH - 46
    marks = ticks(0.0, max([scale * _high(row) for row in rows] + [scale * 0.01]))
    at = linear(marks[0], marks[-1], left, right)
    body, y, group = [], 20.0, None
    for row in rows:
        y += 9.0 if group is not None and row.get("group") != group else 0.0
        group = row.get("group")
        value, note = scale * row["value"], _interval_note(row, scale)
        body.append(text(left - 10, y + 4, shorten(row["name"], left - 10), "end"))
        if _has_interval(row):
            body.append(_whisker(at(scale * row["low"]), at(scale * row["high"]), y, "stroke"))
        body += [dot(at(value), y, "dot", note, 3.2), text(WIDTH, y + 4, f"{value:.1f}", "end", "strong")]
        y += ROW_HEIGHT
    bottom = y - ROW_HEIGHT / 2 + 4
    grid = [line(at(m), 6, at(m), bottom, "grid") for m in marks]
    axis = [text(at(m), bottom + 16, f"{m:g}", "middle", "soft small") for m in marks]
    axis.append(text((left + right) / 2, bottom + 33, x_label, "middle", "soft small"))
    described = "; ".join(f"{row['name']}: {_interval_note(row, scale)}" for row in rows)
    return drawing(bottom + 40, title, described, [*grid, *body, *axis])


def frequency_plot(
    series: Sequence[Row],
    *,
    title: str,
    x_label: str = "training examples of the label",
    y_label: str = "percent",
    count_label: str = "labels",
    scale: float = 100.0,
) -> str:
    """Draw values against label frequency on a logarithmic axis, with bands, and bars for the counts below.

    Each series has a `name` and `points`; a point has `x`, `y` and perhaps `low`, `high`, `count` and `name`.
    The bars show the counts of the first series. Labels without training examples have the `x` 0.5.
    """
    lines = [(s.get("name", ""), [p for p in s["points"] if finite(p.get("y")) and finite(p.get("x"))]) for s in series]
    counted = [p for s in series[:1] for p in s["points"] if finite(p.get("count")) and finite(p.get("x"))]
    points = [p for _, found in lines for p in found]
    left, right, top, bottom = 40.0, WIDTH - 12, 26.0, 196.0
    lowest, highest = _log_range([p["x"] for p in points + counted])
    marks = ticks(0.0, max([scale * _high(p, "y") for p in points] + [scale * 0.01]))
    at_x = logarithmic(lowest, highest, left + 14, right - 14)
    at_y = linear(marks[0], marks[-1], bottom, top)
    body = [text(0, 12, y_label, css="soft small"), *_y_axis(marks, at_y, left, right)]
    start = left + 64
    for number, (name, found) in enumerate(lines[:2]):
        tone = "2" if number else ""
        banded = [p for p in found if _has_interval(p)]
        if len(banded) > 1 and not tone:
            upper = [(at_x(p["x"]), at_y(scale * p["high"])) for p in banded]
            lower = [(at_x(p["x"]), at_y(scale * p["low"])) for p in reversed(banded)]
            body.append(path(upper + lower, "band", closed=True))
        body.append(path([(at_x(p["x"]), at_y(scale * p["y"])) for p in found], "stroke" + tone))
        body += [dot(at_x(p["x"]), at_y(scale * p["y"]), "dot" + tone, _point_note(p, name, scale)) for p in found]
        if len(lines) > 1:  # the legend stands in one line above the plot
            body += [line(start, 8, start + 24, 8, "stroke" + tone), text(start + 30, 12, name, css="small")]
            start += 54 + width_of([name])
    base = bottom
    if counted:
        base = bottom + 52
        tall = linear(0, max([p["count"] for p in counted] + [1]), 0, 26)
        body.append(text(0, base - 2, count_label, css="soft small"))
        for p in counted:
            height = tall(p["count"])
            body.append(box(at_x(p["x"]) - 11, base - height, 22, height, "bar", f"{p['count']:,} {count_label}"))
            body.append(text(at_x(p["x"]), base - height - 4, short_number(p["count"]), "middle", "soft small"))
        body.append(line(left, base, right, base, "axis"))
    names = [(m, short_number(m)) for m in log_ticks(max(lowest, 1.0), highest)] + ([(0.5, "0")] if lowest < 1 else [])
    body += [text(at_x(mark), base + 16, name, "middle", "soft small") for mark, name in names]
    body.append(text((left + right) / 2, base + 33, x_label, "middle", "soft small"))
    described = "; ".join(_point_note(p, name, scale) for name, found in lines for p in found)
    return drawing(base + 40, title, described, body)


def reliability_plot(bins: Sequence[Row], *, title: str) -> str:
    """Draw how often suggestions were right against how often the model said they would be.

    Bins have `predicted`, `observed`, `start`, `end` and `count`, and perhaps `low` and `high` of the observed share.
    On the dashed diagonal the two agree.
    """
    found = [b for b in bins if finite(b.get("predicted")) and finite(b.get("observed"))]
    left, right, top, bottom = 40.0, WIDTH - 12, 26.0, 236.0
    at_x, at_y = linear(0, 1, left, right), linear(0, 1, bottom, top)
    fifths = [i / 5 for i in range(6)]
    body = [text(0, 12, "right, percent", css="soft small")]
    body += _y_axis([100 * m for m in fifths], linear(0, 100, bottom, top), left, right)
    body.append(line(at_x(0), at_y(0), at_x(1), at_y(1), "zero"))
    body.append(path([(at_x(b["predicted"]), at_y(b["observed"])) for b in found], "stroke"))
    for b in found:
        x = at_x(b["predicted"])
        if _has_interval(b):
            body.append(line(x, at_y(b["low"]), x, at_y(b["high"]), "stroke"))
        body.append(dot(x, at_y(b["observed"]), "dot", _bin_note(b)))
    most = max([b["count"] for b in found if finite(b.get("count"))] + [1])
    base = bottom + 52
    tall = linear(0, most, 0, 40)
    for b in found:
        if finite(b.get("count")) and finite(b.get("start")) and finite(b.get("end")):
            x, height = at_x(b["start"]) + 2, tall(b["count"])
            body.append(box(x, base - height, at_x(b["end"]) - x - 2, height, "bar", _bin_note(b)))
    body += [text(0, base - 16, "how", css="soft small"), text(0, base - 2, "many", css="soft small")]
    body.append(line(left, base, right, base, "axis"))
    body += [text(at_x(m), base + 16, f"{100 * m:.0f}", "middle", "soft small") for m in fifths]
    body.append(text((left + right) / 2, base + 33, "probability the model gave, percent", "middle", "soft small"))
    return drawing(base + 40, title, "; ".join(_bin_note(b) for b in found), body)


def bar_plot(rows: Sequence[Row], *, title: str, digits: int = 2) -> str:
    """Draw one horizontal bar per row (`name`, `value`), to the right if positive and to the left if negative."""
    rows = [row for row in rows if finite(row.get("value"))]
    left = width_of([row["name"] for row in rows], low=40, high=170) + 10
    most = max([abs(row["value"]) for row in rows] + [1e-12])
    room = WIDTH - 56 - left
    negative = max([-row["value"] for row in rows] + [0.0]) / most
    zero = left + room * negative / (negative + max([row["value"] for row in rows] + [0.0]) / most or 1.0)
    unit = (room - (zero - left)) if negative < 1 else zero - left
    body, y = [], 4.0
    for row in rows:
        size = abs(row["value"]) / most * unit
        start, css = (zero, "good") if row["value"] >= 0 else (zero - size, "bad")
        body.append(text(left - 10, y + 13, shorten(row["name"], left - 10), "end"))
        body.append(box(start, y + 2, size, 14, css, f"{row['name']}: {row['value']:+.{digits}f}"))
        body.append(text(WIDTH, y + 13, f"{row['value']:+.{digits}f}", "end", "soft"))
        y += 22.0
    body.append(line(zero, 2, zero, y, "axis"))
    described = "; ".join(f"{row['name']}: {row['value']:+.{digits}f}" for row in rows)
    return drawing(y + 4, title, described, body)


def tail_plot(points: Sequence[Sequence[float]], *, title: str) -> str:
    """Draw how often each label occurs, most frequent first, on two logarithmic axes; points are (rank, count)."""
    found = [(float(p[0]), float(p[1])) for p in points if finite(p[0]) and finite(p[1]) and p[0] >= 1 and p[1] >= 1]
    left, right, top, bottom = 46.0, WIDTH - 12, 26.0, 206.0
    low_x, high_x = 1.0, max([p[0] for p in found] + [10.0])
    low_y, high_y = 1.0, max([p[1] for p in found] + [10.0])
    at_x, at_y = logarithmic(low_x, high_x, left, right), logarithmic(low_y, high_y, bottom, top)
    body = [text(0, 12, "rows with the label", css="soft small")]
    for mark in log_ticks(low_y, high_y):
        body.append(line(left, at_y(mark), right, at_y(mark), "grid"))
        body.append(text(left - 8, at_y(mark) + 4, short_number(mark), "end", "soft small"))
    curve = [(at_x(x), at_y(y)) for x, y in found]
    if curve:
        body.append(path([*curve, (curve[-1][0], bottom), (curve[0][0], bottom)], "band", closed=True))
    body += [path(curve, "stroke"), line(left, bottom, right, bottom, "axis")]
    body += [text(at_x(m), bottom + 16, short_number(m), "middle", "soft small") for m in log_ticks(low_x, high_x)]
    x_label = "label, from the most to the least frequent"
    body.append(text((left + right) / 2, bottom + 33, x_label, "middle", "soft small"))
    ends = [found[0], found[-1]] if found else []
    return drawing(bottom + 40, title, "; ".join(f"label {x:.0f} occurs in {y:.0f} rows" for x, y in ends), body)


def difference_plot(rows: Sequence[Row], *, title: str, x_label: str, scale: float = 100.0) -> str:
    """Draw differences with their intervals around zero; rows have `name`, `difference`, `low` and `high`.

    A filled mark says that the interval leaves zero out; a hollow one that the difference may be chance.
    """
    rows = [row for row in rows if finite(row.get("difference"))]
    left, right = width_of([row["name"] for row in rows], low=60, high=150) + 10, WIDTH - 52
    ends = [scale * v for row in rows for v in (row["difference"], row.get("low"), row.get("high")) if finite(v)]
    reach = max([abs(v) for v in ends] + [0.001 * scale])
    low, high = min([*ends, -0.25 * reach]), max([*ends, 0.25 * reach])
    marks = ticks(low, high, 4)
    at = linear(marks[0], marks[-1], left, right)
    body, y = [], 20.0
    for row in rows:
        value, tone = scale * row["difference"], _tone(row)
        body.append(text(left - 10, y + 4, shorten(row["name"], left - 10), "end"))
        if _has_interval(row):
            body.append(_whisker(at(scale * row["low"]), at(scale * row["high"]), y, "s" + tone))
        body.append(dot(at(value), y, "hollow" if tone == "soft" else tone, _difference_note(row, scale)))
        body.append(text(WIDTH, y + 4, f"{value:+.1f}", "end", "soft" if tone == "soft" else "strong"))
        y += ROW_HEIGHT
    bottom = y - ROW_HEIGHT / 2 + 4
    grid = [line(at(m), 6, at(m), bottom, "zero" if m == 0 else "grid") for m in marks]
    axis = [text(at(m), bottom + 16, f"{m:+g}" if m else "0", "middle", "soft small") for m in marks]
    axis.append(text((left + right) / 2, bottom + 33, x_label, "middle", "soft small"))
    described = "; ".join(f"{row['name']}: {_difference_note(row, scale)}" for row in rows)
    return drawing(bottom + 40, title, described, [*grid, *body, *axis])


def _has_interval(row: Row) -> bool:
    return finite(row.get("low")) and finite(row.get("high"))


def _high(row: Row, key: str = "value") -> float:
    return float(row["high"] if _has_interval(row) else row[key])


def _whisker(x1: float, x2: float, y: float, css: str) -> str:
    return line(x1, y, x2, y, css) + line(x1, y - 4, x1, y + 4, css) + line(x2, y - 4, x2, y + 4, css)


def _y_axis(marks: Sequence[float], at: Any, left: float, right: float) -> list[str]:
    out = []
    for mark in marks:
        out.append(line(left, at(mark), right, at(mark), "axis" if mark == marks[0] else "grid"))
        out.append(text(left - 8, at(mark) + 4, f"{mark:g}", "end", "soft small"))
    return out


def _log_range(values: Sequence[float]) -> tuple[float, float]:
    low = max(min([*values, 1e9]), 0.5) if values else 1.0
    high = max([*values, low])
    return (low, high) if high > low else (low / 2, low * 2)


def _tone(row: Row) -> str:
    if not _has_interval(row) or row["low"] <= 0 <= row["high"]:
        return "soft"
    return "good" if row["difference"] > 0 else "bad"


def _interval_note(row: Row, scale: float) -> str:
    note = f"{scale * row['value']:.1f}"
    return f"{note} ({scale * row['low']:.1f} to {scale * row['high']:.1f})" if _has_interval(row) else note


def _difference_note(row: Row, scale: float) -> str:
    note = f"{scale * row['difference']:+.1f}"
    return f"{note} ({scale * row['low']:+.1f} to {scale * row['high']:+.1f})" if _has_interval(row) else note


def _point_note(point: Row, name: str, scale: float) -> str:
    note = f"{name} {scale * point['y']:.1f}".strip()
    if _has_interval(point):
        note += f" ({scale * point['low']:.1f} to {scale * point['high']:.1f})"
    note += f" at {point.get('name') or short_number(point['x'])}"
    return note


def _bin_note(row: Row) -> str:
    note = f"said {100 * row['predicted']:.1f}%, right {100 * row['observed']:.1f}%"
    return f"{note}, {row['count']:,} suggestions" if finite(row.get("count")) else note
