"""Learning curves of the study of PRIME: when a model reaches the level of another, and a drawing of all."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path

from benchmarks.harness.program import Facts
from longtail.report.plots.canvas import WIDTH, drawing, line, linear, path, standalone, text, ticks

BY_EPOCH = "p@1 by epoch"
REFERENCE = "DEXA-like"  # whose last level is to be reached
STROKES = {  # models of the drawing, with their lines
    "PRIME-lite": "stroke",
    "without free vectors": "sgood",
    "without centroids": "sbad",
    "PRIME-lite, without warm start": "stroke2",
    REFERENCE: "ssoft",
    "NGAME-like": "zero",
}
LEFT, RIGHT, HEIGHT, HEAD, FOOT = 34.0, 150.0, 210.0, 34.0, 44.0
LETTERS = 13.0  # height of a line of letters


def mean_curves(runs: Sequence[Facts], data: str) -> dict[str, list[float]]:
    """Return P@1 after every epoch, the mean over seeds, by model."""
    found: dict[str, list[list[float]]] = {}
    for run in runs:
        if run["part"] == "curves" and run["data"] == data:
            found.setdefault(run["model"], []).append(run[BY_EPOCH])
    return {model: [statistics.fmean(at) for at in zip(*curves, strict=True)] for model, curves in found.items()}


def first_epoch_at(runs: Sequence[Facts]) -> Facts:
    """Return by data set the last level of the reference, and the first epoch in which each model is there, if any.

    `times_sooner` is the number of epochs of the reference until its own last level, divided by the model's.
    """
    out: Facts = {}
    for data in {run["data"]: None for run in runs if run["part"] == "curves"}:
        curves = mean_curves(runs, data)
        if REFERENCE not in curves:
            continue
        level = curves[REFERENCE][-1]
        own = _first(curves[REFERENCE], level)
        entry: Facts = {"reference": REFERENCE, "p@1": round(level, 2), "epochs_of_the_reference": own, "models": {}}
        for model, curve in curves.items():
            epoch = _first(curve, level)
            sooner = None if epoch is None or own is None else round(own / epoch, 2)
            last = {
                "first_epoch": epoch,
                "times_sooner": sooner,
                "last": round(curve[-1], 2),
                "first": round(curve[0], 2),
            }
            entry["models"][model] = last
        out[data] = entry
    return out


def _first(curve: Sequence[float], level: float) -> int | None:
    """Return the first epoch, from 1, at or above a level."""
    return next((epoch for epoch, value in enumerate(curve, 1) if value >= level), None)


def draw_curves(runs: Sequence[Facts], target: Path) -> None:
    """Draw a panel per data set; models without results are left out."""
    body: list[str] = []
    told, top = [], 0.0
    for data in {run["data"]: None for run in runs if run["part"] == "curves"}:
        curves = {model: curve for model, curve in mean_curves(runs, data).items() if model in STROKES}
        rows = next(run["rows"] for run in runs if run["part"] == "curves" and run["data"] == data)
        body += panel(f"{data} ({rows:,} rows): P@1 on held-out rows, %", curves, top)
        told.append(
            f"{data}: " + "; ".join(f"{model} {curve[0]:.1f} to {curve[-1]:.1f}" for model, curve in curves.items())
        )
        top += HEAD + HEIGHT + FOOT
    if body:
        svg = drawing(top, "P@1 of PRIME and its relatives after every epoch, percent", ". ".join(told), body)
        target.write_text(standalone(svg) + "\n", encoding="utf-8")


def panel(heading: str, curves: dict[str, list[float]], top: float) -> list[str]:
    """Return the marks of one data set."""
    values = [value for curve in curves.values() for value in curve]
    marks = ticks(min(values), max(values), 5)
    n_epochs = max(map(len, curves.values()))
    low, high = top + HEAD + HEIGHT, top + HEAD
    x = linear(1, n_epochs, LEFT, WIDTH - RIGHT)
    y = linear(min(marks[0], min(values)), max(marks[-1], max(values)), low, high)
    body = [text(0, top + 16, heading, css="strong")]
    for mark in marks:
        body += [
            line(LEFT, y(mark), WIDTH - RIGHT, y(mark), "grid"),
            text(LEFT - 6, y(mark) + 4, f"{mark:g}", "end", "soft small"),
        ]
    for epoch in (1, *range(5, n_epochs + 1, 5)):
        body.append(text(x(epoch), low + 16, epoch, "middle", "soft small"))
    body.append(text((LEFT + WIDTH - RIGHT) / 2, low + 32, "epochs", "middle", "soft small"))
    below = high - LETTERS
    for model, curve in sorted(curves.items(), key=lambda item: -item[1][-1]):
        points = [(x(epoch), y(value)) for epoch, value in enumerate(curve, 1)]
        css = STROKES[model]
        if css.startswith("stroke"):
            body.append(path(points, css))
        else:
            body += [line(*a, *b, css) for a, b in pairwise(points)]
        at = max(points[-1][1] + 4, below + LETTERS)  # names do not overlap
        sample = [(points[-1][0] + 6, at - 4), (points[-1][0] + 22, at - 4)]
        body.append(path(sample, css) if css.startswith("stroke") else line(*sample[0], *sample[1], css))
        body.append(text(points[-1][0] + 27, at, model.replace("PRIME-lite, without", "without"), css="small"))
        below = at
    return body
