"""The plots of an audit as SVG text: the radii of label sets, and how sets of few and of many labels fare."""

from __future__ import annotations

import math
from collections.abc import Sequence

from longtail.facts import RadiiFacts, SetSizeFacts
from longtail.report.plots.canvas import WIDTH, Scale, box, drawing, finite, line, linear, short_number, text, ticks

LEFT, RIGHT, TOP, BOTTOM = 44.0, WIDTH - 12, 26.0, 190.0  # edges of the plots
MOST_NAMED = 7  # bins with a number below them
Bin = tuple[float | None, float | None, int]  # lowest and highest radius (None: no ball), number of sets


def radius_plot(radii: RadiiFacts, *, title: str, eps: float | None = None) -> str:
    """Draw how many label sets have a radius in each range; those above `eps` are robust and have another colour.

    >>> svg = radius_plot({"edges": [1.0, 10.0, 100.0], "counts": [3, 5], "zero": 0}, title="Radii", eps=1.0)
    >>> svg.startswith("<svg") and "5 sets" in svg
    True
    """
    edges, counts, zero = radii.get("edges") or [], radii.get("counts") or [], int(radii.get("zero") or 0)
    bins: list[Bin] = [(None, None, zero)] if zero else []
    bins += zip(edges, edges[1:], counts, strict=False)
    if not bins:
        return ""
    marks = ticks(0, max([count for _, _, count in bins] + [1]), 4)
    at_x, at_y = linear(0, len(bins), LEFT, RIGHT), linear(marks[0], marks[-1], BOTTOM, TOP)
    body = [text(0, 12, "label sets", css="soft small"), *_grid(marks, at_y, [short_number(mark) for mark in marks])]
    described = []
    every = 1 + len(bins) // MOST_NAMED
    for number, (low, high, count) in enumerate(bins):
        x, width = at_x(number), at_x(number + 1) - at_x(number)
        name, robust = "no ball", False
        if low is not None and high is not None:
            name, robust = f"radius {radius_text(low)} to {radius_text(high)}", eps is None or high > eps
        described.append(f"{name}: {count:,} sets")
        if count:
            css, height = "dot" if robust else "dot2", BOTTOM - at_y(count)
            body.append(box(x + 1.5, at_y(count), width - 3, height, css, f"{count:,} sets, {name}"))
        if low is None:
            body.append(text(x + width / 2, BOTTOM + 16, "none", "middle", "soft small"))
        elif (number - (zero > 0)) % every == 0:
            body.append(text(x, BOTTOM + 16, radius_text(low), "middle", "soft small"))
    body.append(text((LEFT + RIGHT) / 2, BOTTOM + 33, "radius of the largest ball found", "middle", "soft small"))
    return drawing(BOTTOM + 40, title, "; ".join(described), body)


def size_plot(rows: Sequence[SetSizeFacts], *, title: str) -> str:
    """Draw the share of label sets that cannot come out against their number of labels."""
    rows = [row for row in rows if finite(row.get("sets")) and row["sets"]]
    if not rows:
        return ""
    shares = [100 * (row["impossible"] + row["undecided"]) / row["sets"] for row in rows]
    marks = ticks(0, max([*shares, 1.0]), 4)
    at_x, at_y = linear(0, len(rows), LEFT, RIGHT), linear(marks[0], marks[-1], BOTTOM, TOP)
    body = [text(0, 12, "percent of label sets", css="soft small")]
    body += _grid(marks, at_y, [f"{mark:g}" for mark in marks])
    described = []
    for number, (row, share) in enumerate(zip(rows, shares, strict=True)):
        x, width = at_x(number), at_x(number + 1) - at_x(number)
        note = f"{size_range(row)} labels: {row['impossible']:,} of {row['sets']:,} sets never"
        described.append(note)
        certain = 100 * row["impossible"] / row["sets"]
        if share > certain:
            height = at_y(certain) - at_y(share)
            body.append(box(x + 3, at_y(share), width - 6, height, "bar", f"{note}; grey: undecided"))
        if certain:
            body.append(box(x + 3, at_y(certain), width - 6, BOTTOM - at_y(certain), "bad", note))
        body.append(text(x + width / 2, BOTTOM + 16, size_range(row), "middle", "soft small"))
    body.append(text((LEFT + RIGHT) / 2, BOTTOM + 33, "labels of the set", "middle", "soft small"))
    return drawing(BOTTOM + 40, title, "; ".join(described), body)


def size_range(row: SetSizeFacts) -> str:
    """Return how many labels the sets of a group have."""
    low, high = row["smallest"], row["largest"]
    return f"{low}" if low == high else f"{low}–{high}"


def radius_text(value: float) -> str:
    """Return a radius as it is written on an axis.

    >>> radius_text(1e-8), radius_text(316.2), radius_text(0.0316), radius_text(2500.0)
    ('1e-8', '316', '0.032', '2.5k')
    """
    if value <= 0 or not math.isfinite(value):
        return "0" if value == 0 else "–"
    if value < 1e-3:
        power = math.floor(math.log10(value) + 1e-9)
        first = f"{value / 10.0**power:.2g}"
        return f"{first}e{power}"
    return short_number(float(f"{value:.3g}")) if value >= 1 else f"{value:.2g}"


def _grid(marks: Sequence[float], at_y: Scale, names: Sequence[str]) -> list[str]:
    """Draw a horizontal line with its name for each mark; the lowest is the axis."""
    out = []
    for mark, name in zip(marks, names, strict=True):
        out.append(line(LEFT, at_y(mark), RIGHT, at_y(mark), "axis" if mark == marks[0] else "grid"))
        out.append(text(LEFT - 8, at_y(mark) + 4, name, "end", "soft small"))
    return out
