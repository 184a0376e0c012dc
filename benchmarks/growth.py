"""How the label tree grows: time, memory, accuracy and size against the number of rows and of labels.

    python benchmarks/growth.py

The data is generated in the shape of Amazon-670K (`make_extreme` in longtail.data): 135,909 features, 76 of them
and 5.45 labels in a row, labels with a long tail. Every cell runs in a process of its own: training with the default
settings, then prediction for 5,000 rows that were held out. CPU seconds are summed over all threads and depend less on
what else the machine does than wall seconds. The peak of memory is that of the whole process while it trains, with the
data in it. Results are written after every cell, and cells that are there already are not run again; `--plot` only
draws docs/growth.svg from them.
"""

from __future__ import annotations

import argparse
import gc
import json
import math
import os
import platform
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

from longtail.data.synthetic.generate import make_extreme
from longtail.metrics import precision_at_k
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
HERE = Path(__file__).parent
Facts = dict[str, Any]


def memory(field: str) -> int:
    """Return VmRSS (now) or VmHWM (the most so far) of this process in bytes."""
    status = Path("/proc/self/status")
    if status.exists():
        return 1024 * next(int(row.split()[1]) for row in status.read_text().splitlines() if row.startswith(field))
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)


def forget_peak() -> bool:
    """Start counting the peak of memory anew, where the system can do that; else making the data counts too."""
    try:
        Path("/proc/self/clear_refs").write_text("5")
    except OSError:
        return False
    return True


def timed(task: Callable[[], Any]) -> tuple[float, float, Any]:
    wall, cpu = time.perf_counter(), time.process_time()
    found = task()
    return time.perf_counter() - wall, time.process_time() - cpu, found


def measure(n_rows: int, n_labels: int) -> Facts:
    """Measure one cell, in this process."""
    small = make_extreme(600, 300, 2000)
    LabelTreeClassifier(max_leaf=20, random_state=0).fit(small.X, small.Y).predict_topk(small.X)  # compiles
    made, _, data = timed(lambda: make_extreme(n_rows + HELD_OUT, n_labels))
    X, Y, X_test, Y_test = data.X[:n_rows], data.Y[:n_rows], data.X[n_rows:], data.Y[n_rows:]
    del data
    gc.collect()
    before, anew = memory("VmRSS"), forget_peak()
    wall, cpu, model = timed(lambda: LabelTreeClassifier(random_state=0).fit(X, Y))
    peak = memory("VmHWM")
    passes = [timed(lambda: model.predict_topk(X_test, k=5)) for _ in range(PASSES)]
    with tempfile.TemporaryDirectory() as folder:
        size = sum(file.stat().st_size for file in model.save(Path(folder) / "model").iterdir())
    tree = model.trees_[0]
    return {
        "rows": n_rows,
        "labels": n_labels,
        "labels_used": int((model.label_counts_ > 0).sum()),
        "features": X.shape[1],
        "nonzeros": int(X.nnz),
        "make_seconds": round(made, 2),
        "train_seconds": round(wall, 2),
        "train_cpu_seconds": round(cpu, 2),
        "before_training_bytes": before,
        "peak_bytes": peak,
        "peak_counts_data_making": not anew,
        "predict_us_per_row": round(1e6 * statistics.median(p[0] for p in passes) / HELD_OUT, 1),
        "predict_cpu_us_per_row": round(1e6 * statistics.median(p[1] for p in passes) / HELD_OUT, 1),
        **{f"p@{k}": round(100 * precision_at_k(Y_test, passes[0][2], k=k), 2) for k in (1, 3, 5)},
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
    left, right, high, low = 46.0, WIDTH - 16, top + 46, top + 216
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
    found = sorted(cells.values(), key=lambda cell: (cell["rows"], cell["labels"]))
    by_rows = [cell for cell in found if cell["labels"] == FIXED_LABELS and cell["rows"] in ROWS]
    return by_rows, [cell for cell in found if cell["rows"] == FIXED_ROWS and cell["labels"] in LABELS]


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--output", type=Path, default=HERE / "results" / "growth.json")
    parser.add_argument("--figure", type=Path, default=HERE.parent / "docs" / "growth.svg")
    parser.add_argument("--most", type=float, default=math.inf, help="leave out cells of more rows × labels")
    parser.add_argument("--again", action="store_true", help="run cells that are there already, too")
    parser.add_argument("--plot", action="store_true", help="only draw the figure")
    parser.add_argument("--cell", type=int, nargs=2, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.cell:
        print(json.dumps(measure(*options.cell)))
        return
    facts: Facts = json.loads(options.output.read_text()) if options.output.exists() else {"cells": {}}
    cells = facts["cells"]
    wanted = [(n, FIXED_LABELS) for n in ROWS] + [(FIXED_ROWS, n) for n in LABELS]
    for n_rows, n_labels in sorted(wanted, key=lambda cell: cell[0] * cell[1]):
        key = f"{n_rows} rows, {n_labels} labels"
        if options.plot or n_rows * n_labels > options.most or (key in cells and not options.again):
            continue
        command = [sys.executable, __file__, "--cell", str(n_rows), str(n_labels)]
        cells[key] = json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout)
        facts = {
            "command": "python benchmarks/growth.py",
            "data": "longtail.data.synthetic.generate.make_extreme: generated, in the shape of Amazon-670K",
            "held_out_rows": HELD_OUT,
            "model": {"class": "LabelTreeClassifier", "params": LabelTreeClassifier().get_params()},
            "machine": {"cores": os.cpu_count(), "system": platform.system(), "processor": platform.machine()},
            "versions": {
                "python": platform.python_version(),
                **{name: version(name) for name in ("longtail", "numpy", "scipy", "numba")},
            },
            "slopes": slopes(*sweeps(cells)),
            "cells": cells,
        }
        options.output.parent.mkdir(parents=True, exist_ok=True)
        options.output.write_text(json.dumps(facts, indent=1) + "\n")
        print(f"{key}: {cells[key]['train_cpu_seconds']:.0f} CPU s", flush=True)
    show(facts)
    if cells:
        plot(facts, options.figure)


def show(facts: Facts) -> None:
    names = ("train s", "CPU s", "peak MB", "µs/row", "CPU µs", "P@1", "MB")
    print(f"{'rows':>10}{'labels':>9}" + "".join(f"{name:>9}" for name in names))
    for cells in sweeps(facts["cells"]):
        for c in cells:
            print(
                f"{c['rows']:10,}{c['labels']:9,}{c['train_seconds']:9.1f}{c['train_cpu_seconds']:9.1f}"
                f"{c['peak_bytes'] / 1e6:9.0f}{c['predict_us_per_row']:9.0f}{c['predict_cpu_us_per_row']:9.0f}"
                f"{c['p@1']:9.1f}{c['model_bytes'] / 1e6:9.0f}"
            )
    for name, value in facts.get("slopes", {}).items():
        print(f"  {name} ^ {value}")


if __name__ == "__main__":
    main()
