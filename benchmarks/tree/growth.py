"""Measure time, memory, accuracy and size of the label tree against the number of rows and of labels.

    python benchmarks/tree/growth.py

The data is generated in the shape of Amazon-670K (`make_extreme` in longtail.data): 135,909 features, 76 of them
and 5.45 labels in a row, labels with a long tail. Every cell runs in a process of its own: training with the default
settings, then prediction for 5,000 rows that were held out. CPU seconds are summed over all threads and depend less on
what else the machine does than wall seconds. The peak of memory is that of the whole process while it trains, with the
data in it. `--plot` only draws docs/growth.svg from the results.
"""

from __future__ import annotations

import argparse
import gc
import json
import math
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

import scipy.sparse as sp

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from benchmarks.harness.program import DOCS, Facts, make_parser, read_results, start_facts, write_results
from benchmarks.harness.scores import precisions
from benchmarks.harness.terminal import show_table
from benchmarks.harness.timing import folder_bytes, forget_peak, memory, timed
from longtail.data.synthetic.generate import make_extreme
from longtail.report.plots.canvas import (
    WIDTH,
    dot,
    drawing,
    line,
    log_ticks,
    logarithmic,
    path,
    short_number,
    standalone,
    text,
    width_of,
)
from longtail.tree import LabelTreeClassifier

ROWS = (10_000, 30_000, 100_000, 300_000, 1_000_000)
LABELS = (1_000, 10_000, 100_000, 500_000)
FIXED_LABELS, FIXED_ROWS = 30_000, 200_000
HELD_OUT = 5_000
PASSES = 3


def measure(n_rows: int, n_labels: int) -> Facts:
    """Measure one cell, in this process."""
    small = make_extreme(600, 300, 2000)
    LabelTreeClassifier(max_leaf=20, random_state=0).fit(small.X, small.Y).predict_topk(small.X)  # compiles
    made, data = timed(lambda: make_extreme(n_rows + HELD_OUT, n_labels))
    rows = sp.csr_array(data.X)
    X, Y, X_test, Y_test = rows[:n_rows], data.Y[:n_rows], rows[n_rows:], data.Y[n_rows:]
    del data, rows
    gc.collect()
    before, anew = memory("VmRSS"), forget_peak()
    training, model = timed(lambda: LabelTreeClassifier(random_state=0).fit(X, Y))
    peak = memory("VmHWM")
    passes = [timed(lambda: model.predict_topk(X_test, k=5)) for _ in range(PASSES)]
    with tempfile.TemporaryDirectory() as folder:
        size = folder_bytes(model.save(Path(folder) / "model"))
    tree = model.trees_[0]
    return {
        "rows": n_rows,
        "labels": n_labels,
        "labels_used": int((model.label_counts_ > 0).sum()),
        "features": X.shape[1],
        "nonzeros": int(X.nnz),
        "make_seconds": round(made.wall, 2),
        "train_seconds": round(training.wall, 2),
        "train_cpu_seconds": round(training.cpu, 2),
        "before_training_bytes": before,
        "peak_bytes": peak,
        "peak_counts_data_making": not anew,
        "predict_us_per_row": round(1e6 * statistics.median(spent.wall for spent, _ in passes) / HELD_OUT, 1),
        "predict_cpu_us_per_row": round(1e6 * statistics.median(spent.cpu for spent, _ in passes) / HELD_OUT, 1),
        **{name: round(value, 2) for name, value in precisions(Y_test, passes[0][1]).items()},
        "model_bytes": size,
        "nodes": [tree.n_nodes(level) for level in range(tree.n_levels)],
    }


def slope(xs: Sequence[float], ys: Sequence[float]) -> float | None:
    """Return b of y = a · x^b, by least squares of the logarithms."""
    if len(xs) < 2:
        return None
    a, b = [math.log(x) for x in xs], [math.log(y) for y in ys]
    mean_a, mean_b = statistics.fmean(a), statistics.fmean(b)
    top = sum((x - mean_a) * (y - mean_b) for x, y in zip(a, b, strict=True))
    return round(top / sum((x - mean_a) ** 2 for x in a), 3)


def slopes(by_rows: list[Facts], by_labels: list[Facts]) -> Facts:
    """Return how time and memory grow: exponents, 1 for in proportion."""

    def fit(cells: list[Facts], x: str, y: str) -> float | None:
        return slope([cell[x] for cell in cells], [cell[y] for cell in cells])

    return {
        "train_cpu_seconds_by_nonzeros": fit(by_rows, "nonzeros", "train_cpu_seconds"),
        "peak_bytes_by_nonzeros": fit(by_rows, "nonzeros", "peak_bytes"),
        "predict_cpu_us_per_row_by_rows": fit(by_rows, "rows", "predict_cpu_us_per_row"),
        "model_bytes_by_rows": fit(by_rows, "rows", "model_bytes"),
        "train_cpu_seconds_by_labels": fit(by_labels, "labels", "train_cpu_seconds"),
        "peak_bytes_by_labels": fit(by_labels, "labels", "peak_bytes"),
        "predict_cpu_us_per_row_by_labels": fit(by_labels, "labels", "predict_cpu_us_per_row"),
        "model_bytes_by_labels": fit(by_labels, "labels", "model_bytes"),
    }


SERIES = (
    ("train_cpu_seconds", "training, CPU seconds", "stroke", "dot"),
    ("predict_cpu_us_per_row", "prediction, CPU µs a row", "stroke2", "dot2"),
)


def panel(cells: list[Facts], by: str, heading: str, top: float) -> list[str]:
    """Draw time against rows or labels, both axes logarithmic, and the peak of memory below each mark."""
    left, right, high, low = 62.0, WIDTH - 16, top + 46, top + 216
    values = [cell[key] for cell in cells for key, *_ in SERIES]
    bottom_y, top_y = 10.0 ** math.floor(math.log10(min(values))), 10.0 ** math.ceil(math.log10(max(values)))
    at_x = logarithmic(cells[0][by], cells[-1][by], left + 16, right - 16)
    at_y = logarithmic(bottom_y, top_y, low, high)
    body = [text(0, top + 14, heading, css="strong")]
    start = 0.0
    for _, name, stroke, _ in SERIES:
        body += [line(start, top + 28, start + 22, top + 28, stroke), text(start + 28, top + 32, name, css="small")]
        start += 44 + width_of([name])
    for mark in log_ticks(bottom_y, top_y):
        body.append(line(left, at_y(mark), right, at_y(mark), "axis" if mark == bottom_y else "grid"))
        body.append(text(left - 8, at_y(mark) + 4, short_number(mark), "end", "soft small"))
    for key, name, stroke, mark_css in SERIES:
        body.append(path([(at_x(cell[by]), at_y(cell[key])) for cell in cells], stroke))
        for cell in cells:
            note = f"{cell[by]:,} {by}: {name} {cell[key]:,.0f}; P@1 {cell['p@1']:.1f}%"
            body.append(dot(at_x(cell[by]), at_y(cell[key]), mark_css, note))
    body.append(text(0, low + 32, "memory", css="soft small"))
    for cell in cells:
        body.append(text(at_x(cell[by]), low + 16, short_number(cell[by]), "middle", "soft small"))
        body.append(text(at_x(cell[by]), low + 32, f"{cell['peak_bytes'] / 1e9:.1f} GB", "middle", "soft small"))
    body.append(text((left + right) / 2, low + 50, by, "middle", "soft small"))
    return body


def plot(facts: Facts, target: Path) -> None:
    """Draw the figure from the results."""
    by_rows, by_labels = sweeps(facts["cells"])
    body, height = [], 0.0
    for cells, by, heading in (
        (by_rows, "rows", f"More rows ({FIXED_LABELS:,} labels)"),
        (by_labels, "labels", f"More labels ({FIXED_ROWS:,} rows)"),
    ):
        if len(cells) > 1:
            body += panel(cells, by, heading, height)
            height += 282.0
    told = [
        f"{cell['rows']:,} rows, {cell['labels']:,} labels: {cell['train_cpu_seconds']:.0f} CPU seconds to train, "
        f"{cell['predict_cpu_us_per_row']:.0f} µs to predict a row"
        for cell in by_rows + by_labels
    ]
    svg = drawing(height, "Time and memory of the label tree against rows and labels", "; ".join(told), body)
    target.write_text(standalone(svg) + "\n", encoding="utf-8")


def sweeps(cells: dict[str, Facts]) -> tuple[list[Facts], list[Facts]]:
    """Return the cells with the fixed number of labels, by rows, and those with the fixed number of rows, by labels."""
    ordered = sorted(cells.values(), key=lambda cell: (cell["rows"], cell["labels"]))
    by_rows = [cell for cell in ordered if cell["labels"] == FIXED_LABELS and cell["rows"] in ROWS]
    return by_rows, [cell for cell in ordered if cell["rows"] == FIXED_ROWS and cell["labels"] in LABELS]


def options() -> argparse.Namespace:
    parser = make_parser(__doc__, "growth.json", resume=True)
    parser.add_argument("--figure", type=Path, default=DOCS / "growth.svg")
    parser.add_argument("--most", type=float, default=math.inf, help="leave out cells of more rows × labels")
    parser.add_argument("--plot", action="store_true", help="only draw the figure")
    parser.add_argument("--cell", type=int, nargs=2, help=argparse.SUPPRESS)
    return parser.parse_args()


def main() -> None:
    args = options()
    if args.cell:
        print(json.dumps(measure(*args.cell)))
        return
    facts = read_results(args.output) if args.plot else measure_all(args)
    show(facts)
    plot(facts, args.figure)


def measure_all(args: argparse.Namespace) -> Facts:
    """Measure every cell in a process of its own, the smallest first."""
    about = "longtail.data.synthetic.generate.make_extreme: generated, in the shape of Amazon-670K"
    facts = start_facts(args, {"data": about, "held_out_rows": HELD_OUT, "slopes": {}, "cells": {}})
    facts["model"] = {"class": "LabelTreeClassifier", "params": LabelTreeClassifier().get_params()}
    cells = facts["cells"]
    wanted = [(n, FIXED_LABELS) for n in ROWS] + [(FIXED_ROWS, n) for n in LABELS]
    for n_rows, n_labels in sorted(wanted, key=lambda cell: cell[0] * cell[1]):
        key = f"{n_rows} rows, {n_labels} labels"
        if n_rows * n_labels <= args.most and key not in cells:
            child = [sys.executable, __file__, "--cell", str(n_rows), str(n_labels)]
            cells[key] = json.loads(subprocess.run(child, check=True, stdout=subprocess.PIPE, text=True).stdout)
            facts["slopes"] = slopes(*sweeps(cells))
            write_results(facts, args.output)
            print(f"{key}: {cells[key]['train_cpu_seconds']:.0f} CPU s", flush=True)
    return facts


def show(facts: Facts) -> None:
    """Print both sweeps and the exponents."""
    names = ("labels", "train s", "CPU s", "peak MB", "µs/row", "CPU µs", "P@1", "MB")
    for cells, what in zip(sweeps(facts["cells"]), ("rows", "labels"), strict=True):
        rows = [
            [
                f"{c['rows']:,}",
                f"{c['labels']:,}",
                f"{c['train_seconds']:.1f}",
                f"{c['train_cpu_seconds']:.1f}",
                f"{c['peak_bytes'] / 1e6:.0f}",
                f"{c['predict_us_per_row']:.0f}",
                f"{c['predict_cpu_us_per_row']:.0f}",
                f"{c['p@1']:.1f}",
                f"{c['model_bytes'] / 1e6:.0f}",
            ]
            for c in cells
        ]
        show_table(f"more {what}", ["rows", *names], rows, left=0)
    for name, value in facts["slopes"].items():
        print(f"  {name} ^ {value}")


if __name__ == "__main__":
    main()
