"""Draw F1@10 of both output layers against trained dimensions and parameters, from the results of `layer_grid.py`."""

from __future__ import annotations

from pathlib import Path

from benchmarks.harness.program import Facts
from longtail.report.plots.canvas import (
    WIDTH,
    dot,
    drawing,
    line,
    linear,
    logarithmic,
    path,
    short_number,
    standalone,
    text,
    ticks,
    width_of,
)

HEIGHT = 190  # of a panel
STYLES = (("dft", "", "DFT layer"), ("bottleneck", "2", "bottleneck"))


def draw(summary: Facts, target: Path) -> None:
    """Draw one panel per data set: the mean over seeds and one standard deviation, by d (the paper's Figure 5b)."""
    body: list[str] = []
    for number, (data, widths) in enumerate(summary["accuracy"].items()):
        body += panel(data, widths, number * HEIGHT)
    told = "; ".join(
        f"{data}, d = {d}, {layer}: {at['f1@10']['mean']:.2f}"
        for data, widths in summary["accuracy"].items()
        for d, layers in widths.items()
        for layer, at in layers.items()
    )
    svg = drawing(HEIGHT * len(summary["accuracy"]), "F1@10 by trained dimensions of the output layer", told, body)
    target.write_text(standalone(svg) + "\n", encoding="utf-8")


def panel(data: str, widths: Facts, top: float) -> list[str]:
    """Draw one data set."""
    ds = sorted(int(d) for d in widths)
    points = {
        layer: [(d, widths[str(d)][layer]) for d in ds if layer in widths[str(d)]] for layer, _, _ in STYLES
    }  # of each layer
    ends = [
        at["f1@10"]["mean"] + side * (at["f1@10"]["sd"] or 0)
        for listed in points.values()
        for _, at in listed
        for side in (-1, 1)
    ]
    left, right, high, low = 46.0, WIDTH - 20, top + 34, top + 150
    at_x = logarithmic(ds[0], ds[-1], left + 12, right - 12)
    at_y = linear(min(ends) - 0.2, max(ends) + 0.2, low, high)
    body = [text(0, top + 14, f"{data}: F1@10", css="strong small")]
    for value in ticks(min(ends), max(ends), 4):
        body += [
            line(left, at_y(value), right, at_y(value), "grid"),
            text(left - 8, at_y(value) + 4, f"{value:g}", "end", "soft small"),
        ]
    start = width_of([f"{data}: F1@10"]) + 20
    for layer, css, name in STYLES:
        body += [
            line(start, top + 10, start + 20, top + 10, "stroke" + css),
            text(start + 26, top + 14, name, css="small"),
        ]
        start += 40 + width_of([name])
        body.append(path([(at_x(d), at_y(at["f1@10"]["mean"])) for d, at in points[layer]], "stroke" + css))
        for d, at in points[layer]:
            mean, sd = at["f1@10"]["mean"], at["f1@10"]["sd"] or 0
            body.append(line(at_x(d), at_y(mean - sd), at_x(d), at_y(mean + sd), "stroke" + css))
            note = f"{name}, d = {d}: {mean:.2f} ± {sd:.2f}, {at['parameters']:,} parameters"
            body.append(dot(at_x(d), at_y(mean), "dot" + css, note))
    body += [text(at_x(d), low + 16, short_number(d), "middle", "soft small") for d in ds]
    return [*body, text((left + right) / 2, low + 32, "trained dimensions d", "middle", "soft small")]
