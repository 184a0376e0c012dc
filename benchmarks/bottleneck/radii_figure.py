"""Draw the radii of the regions of a DFT layer, from the results of `radii.py`."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path

from benchmarks.harness.program import Facts
from longtail.report.plots.canvas import (
    WIDTH,
    dot,
    drawing,
    line,
    logarithmic,
    path,
    short_number,
    standalone,
    text,
    width_of,
)

FLOOR = 1e-12  # the lowest radius on the axis; smaller ones are drawn there


def draw(
    facts: Facts, target: Path, sizes: Sequence[int], ks: Sequence[int], slack_columns: int, names: Sequence[str]
) -> None:
    """Draw random sets without and with slack, and the label sets of real data."""
    body: list[str] = []
    top = 0.0
    for slack, heading in (
        (0, "Random sets of k labels, no slack"),
        (slack_columns, f"The same with {slack_columns} slack columns"),
    ):
        body += by_size(
            [cell for cell in facts["random"].values() if cell["slack"] == slack], heading, top, sizes, ks, facts["box"]
        )
        top += 262
    real = [cell for cell in facts["real"].values() if cell["order"] != "spectral"]
    if real:
        body += by_data(real, top, [name for name in names if any(cell["data"] == name for cell in real)])
        top += 62 + 46 * len({cell["data"] for cell in real}) + 40
    told = [
        f"{key}: 1% {cell['radius']['1%']:.2g}, 50% {cell['radius']['50%']:.2g}"
        for part in ("random", "real")
        for key, cell in facts[part].items()
    ]
    svg = drawing(top, "Radii of the regions of label sets in a DFT layer", "; ".join(told), body)
    target.write_text(standalone(svg) + "\n", encoding="utf-8")


def by_size(
    cells: Sequence[Facts], heading: str, top: float, sizes: Sequence[int], ks: Sequence[int], box: float
) -> list[str]:
    """Draw the 1% quantile of the radius against the number of labels, one line per k."""
    left, right, high, low = 46.0, WIDTH - 46, top + 30, top + 200
    at_x, at_y = logarithmic(sizes[0], sizes[-1], left + 12, right), logarithmic(FLOOR, box, low, high)
    body = [text(0, top + 14, f"{heading}: 1% quantile of the radius", css="strong small")]
    for power in range(-12, 5, 4):
        y = at_y(10.0**power)
        body.append(line(left, y, right, y, "axis" if power == -12 else "grid"))
        body.append(text(left - 8, y + 4, f"1e{power}" if power else "1", "end", "soft small"))
    for k in ks:
        points = sorted((cell["n"], cell["radius"]["1%"]) for cell in cells if cell["k"] == k)
        body.append(path([(at_x(n), at_y(r)) for n, r in points], "stroke"))
        body += [dot(at_x(n), at_y(r), "dot", f"n = {n:,}, k = {k}: {r:.2g}") for n, r in points]
        if points:
            body.append(text(right + 8, at_y(points[-1][1]) + 4, f"k = {k}", css="small"))
    body += [text(at_x(n), low + 16, short_number(n), "middle", "soft small") for n in sizes]
    body.append(text((left + right) / 2, low + 33, "labels", "middle", "soft small"))
    return body


def by_data(cells: Sequence[Facts], top: float, names: Sequence[str]) -> list[str]:
    """Draw, per data set and order, a line from the 1% to the 50% quantile."""
    left, right = width_of(names) + 12, WIDTH - 12
    lowest = min(cell["radius"]["1%"] for cell in cells)
    highest = max(cell["radius"]["50%"] for cell in cells)
    low, high = (10.0 ** math.floor(math.log10(max(lowest, 1e-8))), 10.0 ** math.ceil(math.log10(highest)))
    at_x, bottom = logarithmic(low, high, left, right), top + 48 + 46 * len(names)
    body = [text(0, top + 14, "Label sets of real test rows: radius, 1% to 50% quantile", css="strong small")]
    powers = range(round(math.log10(low)), round(math.log10(high)) + 1)
    for power in powers[:: 1 + len(powers) // 8]:
        body.append(line(at_x(10.0**power), top + 44, at_x(10.0**power), bottom, "grid"))
        body.append(text(at_x(10.0**power), bottom + 16, f"{10.0**power:g}", "middle", "soft small"))
    start = 0.0
    for name, css in (("labels as listed", "2"), ("labels in order of co-occurrence", "")):
        body += [
            line(start, top + 28, start + 22, top + 28, "stroke" + css),
            text(start + 28, top + 32, name, css="small"),
        ]
        start += 30 + 0.85 * width_of([name])
    for cell in cells:
        css, shift = ("2", 0) if cell["order"] == "as listed" else ("", 14)
        y = top + 60 + 46 * names.index(cell["data"]) + shift
        ends = [cell["radius"][q] for q in ("1%", "50%")]
        body.append(path([(at_x(r), y) for r in ends], "stroke" + css))
        body += [dot(at_x(r), y, "dot" + css, f"{cell['data']}, {cell['order']}: {r:.2g}") for r in ends]
        if shift == 0:
            body.append(text(0, y + 11, cell["data"], css="small"))
    return body
