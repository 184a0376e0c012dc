"""Plots of an audit, as SVG text: the radii of label sets, and how sets of few and of many labels fare."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from longtail.report.plots.canvas import WIDTH, box, drawing, finite, line, linear, short_number, text, ticks

Facts = Mapping[str, Any]


def radius_plot(radii: Facts, *, title: str, eps: float | None = None) -> str:
    """Draw how many sets have a ball of which radius; `edges` are ascending, `counts` is one shorter.

    >>> svg = radius_plot({"edges": [1.0, 10.0, 100.0], "counts": [3, 5], "zero": 0}, title="Radii", eps=1.0)
    >>> svg.startswith("<svg") and "5 sets" in svg
    True
    """
    edges, counts = list(radii.get("edges") or []), list(radii.get("counts") or [])
    zero = int(radii.get("zero") or 0)
    left, right, top, bottom = 44.0, WIDTH - 12, 26.0, 190.0
    bins = ([(None, None, zero)] if zero else []) + list(zip(edges, edges[1:], counts, strict=False))
    if not bins:
        return ""
    marks = ticks(0, max([count for _, _, count in bins] + [1]), 4)
    at_x, at_y = linear(0, len(bins), left, right), linear(marks[0], marks[-1], bottom, top)
    body = [text(0, 12, "label sets", css="soft small")]
    for mark in marks:
        body.append(line(left, at_y(mark), right, at_y(mark), "axis" if mark == marks[0] else "grid"))
        body.append(text(left - 8, at_y(mark) + 4, short_number(mark), "end", "soft small"))
    described = []
    every = 1 + len(bins) // 7
    for number, (low, high, count) in enumerate(bins):
        x, width = at_x(number), at_x(number + 1) - at_x(number)
        robust = low is not None and (eps is None or high > eps)
        name = "no ball" if low is None else f"radius {plain(low)} to {plain(high)}"
        described.append(f"{name}: {count:,} sets")
        if count:
            body.append(
                box(
                    x + 1.5,
                    at_y(count),
                    width - 3,
                    bottom - at_y(count),
                    "dot" if robust else "dot2",
                    f"{count:,} sets, {name}",
                )
            )
        if low is None:
            body.append(text(x + width / 2, bottom + 16, "none", "middle", "soft small"))
        elif (number - (zero > 0)) % every == 0:
            body.append(text(x, bottom + 16, plain(low), "middle", "soft small"))
    body.append(text((left + right) / 2, bottom + 33, "radius of the largest ball found", "middle", "soft small"))
    return drawing(bottom + 40, title, "; ".join(described), body)


def size_plot(rows: Sequence[Facts], *, title: str) -> str:
    """Draw the share of sets that cannot come out against the number of labels; rows are those of `sizes`."""
    rows = [row for row in rows if finite(row.get("sets")) and row["sets"]]
    if not rows:
        return ""
    left, right, top, bottom = 44.0, WIDTH - 12, 26.0, 190.0
    shares = [100 * (row["impossible"] + row["undecided"]) / row["sets"] for row in rows]
    marks = ticks(0, max([*shares, 1.0]), 4)
    at_x, at_y = linear(0, len(rows), left, right), linear(marks[0], marks[-1], bottom, top)
    body = [text(0, 12, "percent of label sets", css="soft small")]
    for mark in marks:
        body.append(line(left, at_y(mark), right, at_y(mark), "axis" if mark == marks[0] else "grid"))
        body.append(text(left - 8, at_y(mark) + 4, f"{mark:g}", "end", "soft small"))
    described = []
    for number, (row, share) in enumerate(zip(rows, shares, strict=True)):
        x, width = at_x(number), at_x(number + 1) - at_x(number)
        told = f"{sizes(row)} labels: {row['impossible']:,} of {row['sets']:,} sets never"
        described.append(told)
        certain = 100 * row["impossible"] / row["sets"]
        if share > certain:
            open_ = at_y(certain) - at_y(share)
            body.append(box(x + 3, at_y(share), width - 6, open_, "bar", f"{told}; grey: undecided"))
        if certain:
            body.append(box(x + 3, at_y(certain), width - 6, bottom - at_y(certain), "bad", told))
        body.append(text(x + width / 2, bottom + 16, sizes(row), "middle", "soft small"))
    body.append(text((left + right) / 2, bottom + 33, "labels of the set", "middle", "soft small"))
    return drawing(bottom + 40, title, "; ".join(described), body)


def sizes(row: Facts) -> str:
    """Return how many labels the sets of a group have."""
    low, high = row["smallest"], row["largest"]
    return f"{low}" if low == high else f"{low}–{high}"


def plain(value: float) -> str:
    """Return a radius as it stands on an axis.

    >>> plain(1e-8), plain(316.2), plain(0.0316), plain(2500.0)
    ('1e-8', '316', '0.032', '2.5k')
    """
    if value <= 0 or not math.isfinite(value):
        return "0" if value == 0 else "–"
    if value < 1e-3:
        power = math.floor(math.log10(value) + 1e-9)
        first = f"{value / 10.0**power:.2g}"
        return f"{first}e{power}"
    return short_number(float(f"{value:.3g}")) if value >= 1 else f"{value:.2g}"
