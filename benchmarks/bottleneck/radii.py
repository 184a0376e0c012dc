"""Measure how large the regions of a DFT layer are, by the number of labels, with slack and with an order of labels.

    python benchmarks/bottleneck/radii.py --data FOLDER

FOLDER holds `delicious`, `eurlex57k` and `pubmed-mesh` (default LONGTAIL_DATA). Two parts, both with the exact radius
of the largest sphere in the region of a label set, in a box of 10,000:

- random: sets of k labels drawn at random, for 100 to 10,000 labels, without slack and with 16 slack columns as a new
  layer has them. The paper's Figure 4.
- real: label sets of test rows, with 16 slack columns and k as large as the largest set of train and test. Labels stand
  on the circle as the file lists them, or as `circle_order` puts them from the train rows. The width is the same.

A set whose region double precision cannot show counts as radius 0. Every cell is written as it is found; `--resume`
goes on where a run ended. The picture docs/radii.svg is drawn from the file of results; `--plot` only draws.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
import time
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import numpy as np
import scipy.sparse as sp

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from benchmarks.bottleneck.radii_figure import draw
from benchmarks.harness.data_sets import read_parts
from benchmarks.harness.program import DOCS, Facts, make_parser, read_results, start_facts, write_results
from benchmarks.harness.terminal import show_table
from longtail import audit
from longtail.bottleneck import circle_order, count_runs, dft_matrix

SIZES = (100, 300, 1_000, 3_000, 10_000)
KS = (1, 2, 3, 5)
SLACK = 16
DATA = ("delicious", "eurlex57k", "pubmed-mesh")
ORDERS = ("as listed", "greedy", "spectral")
QUANTILES = (0.01, 0.1, 0.5, 0.9)
BOX = 1e4


def main() -> None:
    args = options()
    facts = read_results(args.output) if args.plot else measure_all(args)
    draw(facts, args.figure, SIZES, KS, SLACK, DATA)
    show(facts)


def options() -> argparse.Namespace:
    parser = make_parser(__doc__, "radii.json", data="optional", resume=True)
    parser.add_argument("--sets", type=int, default=300, help="label sets per cell; a third from 10,000 labels on")
    parser.add_argument("--most", type=int, default=SIZES[-1], help="leave out random sets of more labels")
    parser.add_argument("--plot", action="store_true", help="only draw")
    parser.add_argument("--figure", type=Path, default=DOCS / "radii.svg")
    return parser.parse_args()


def measure_all(args: argparse.Namespace) -> Facts:
    """Measure every cell that the file of results does not hold yet."""
    facts = start_facts(args, {"box": BOX, "random": {}, "real": {}, "gains": {}})
    for part, key, cell in cells(args):
        if key not in facts[part]:
            started = time.process_time()
            facts[part][key] = {**cell, **measure(part, cell, args), "cpu_s": time.process_time() - started}
            print(f"{part} {key}: {json.dumps(facts[part][key])}", flush=True)
            facts["gains"] = gains(facts)
            write_results(facts, args.output)
    return facts


def cells(args: argparse.Namespace) -> Iterator[tuple[str, str, Facts]]:
    """Yield the part, the name and the settings of every cell."""
    for n in (size for size in SIZES if size <= args.most):
        for k in KS:
            for slack in (0, SLACK):
                yield "random", f"n={n} k={k} slack={slack}", {"n": n, "k": k, "slack": slack}
    for name in DATA if args.data is not None else ():
        for order in ORDERS:
            yield "real", f"{name} {order}", {"data": name, "order": order, "slack": SLACK}


def measure(part: str, cell: Facts, args: argparse.Namespace) -> Facts:
    """Measure one cell."""
    rng = np.random.default_rng(0)
    if part == "random":
        Y = random_sets(cell["n"], cell["k"], how_many(cell["n"], args.sets), rng)
        return radii(Y, cell["k"], cell["slack"], None)
    train, test = load(cell["data"], args.data)
    k = int(max(np.diff(train.indptr).max(), np.diff(test.indptr).max()))
    chosen = rng.choice(test.shape[0], min(how_many(test.shape[1], args.sets), test.shape[0]), replace=False)
    Y = sp.csr_array(test[np.sort(chosen)])
    order = None if cell["order"] == "as listed" else circle_order(train, cell["order"])
    runs = {"labels_per_set": float(np.diff(test.indptr).mean()), "runs_per_set": float(count_runs(test, order).mean())}
    return {"n": test.shape[1], "k": k, **runs, **radii(Y, k, cell["slack"], order)}


def how_many(n: int, sets: int) -> int:
    """Return how many label sets are drawn where there are n labels."""
    return sets if n < 10_000 else sets // 3


def random_sets(n: int, k: int, count: int, rng: np.random.Generator) -> sp.csr_array:
    """Return sets of exactly k of n labels."""
    ids = np.concatenate([np.sort(rng.choice(n, k, replace=False)) for _ in range(count)])
    return sp.csr_array((np.ones(ids.size, np.float32), ids, np.arange(count + 1) * k), shape=(count, n))


def radii(Y: sp.csr_array, k: int, slack: int, order: np.ndarray | None) -> Facts:
    """Return quantiles over the rows of Y of the radius of their label set."""
    n = Y.shape[1]
    columns = np.random.default_rng(1).uniform(-1, 1, (n, slack)) / math.sqrt(max(slack, 1))
    result = audit.argmaxable(np.hstack([dft_matrix(n, k, order), columns]), Y, box=BOX)
    radius = result.radius[result.set_of_row]
    return {
        "width": 2 * k + 1 + slack,
        "rows": Y.shape[0],
        "sets": {verdict: int((result.verdicts == verdict).sum()) for verdict in sorted(set(result.verdicts.tolist()))},
        "radius": {quantile_name(q): float(np.quantile(radius, q)) for q in QUANTILES},
    }


def quantile_name(q: float) -> str:
    """Return the name of a quantile in the results, such as "50%"."""
    return f"{100 * q:g}%"


@cache
def load(name: str, data: Path) -> tuple[sp.csr_array, sp.csr_array]:
    """Return the label sets of train and test, for the labels that have training rows; no row is empty."""
    train, test = read_parts(data / name)
    kept = np.flatnonzero(np.bincount(train.Y.indices, minlength=train.Y.shape[1]))
    Y, Yt = sp.csr_array(train.Y[:, kept]), sp.csr_array(test.Y[:, kept])
    return Y, sp.csr_array(Yt[np.diff(Yt.indptr) > 0])


def gains(facts: Facts) -> Facts:
    """Return by how many times an order enlarges the quantiles of the radius, and slack does."""
    out: Facts = {}
    for name in DATA:
        plain = facts["real"].get(f"{name} as listed")
        for order in ORDERS[1:]:
            ordered = facts["real"].get(f"{name} {order}")
            if plain and ordered:
                base, new = plain["radius"], ordered["radius"]
                out[f"{name} {order}"] = {q: new[q] / base[q] if base[q] else None for q in base}
    return out


def show(facts: Facts) -> None:
    """Print the quantiles of the radius of every cell, and the gains."""
    names = [quantile_name(q) for q in QUANTILES]
    for part in ("random", "real"):
        rows = [[key, *(f"{cell['radius'][name]:.3g}" for name in names)] for key, cell in facts[part].items()]
        show_table(f"{part} sets: quantiles of the radius", ["", *names], rows)
    rows = [
        [key, *("" if times[name] is None else f"{times[name]:.2f}" for name in names)]
        for key, times in facts["gains"].items()
    ]
    show_table("times as large as with labels as listed", ["", *names], rows)


if __name__ == "__main__":
    main()
