"""How large the regions of a DFT layer are: against the number of labels, with slack, and with an order of labels.

    python benchmarks/radii.py --data FOLDER

FOLDER holds `delicious`, `eurlex57k` and `pubmed-mesh` (default LONGTAIL_DATA). Two parts, both with the exact radius
of the largest ball in the region of a label set, in a box of 10,000:

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
import os
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from longtail import audit
from longtail.bottleneck.dft import dft_matrix
from longtail.bottleneck.label_order import circle_order, count_runs
from longtail.data import read
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

Facts = dict[str, Any]
HERE = Path(__file__).parent
SIZES = (100, 300, 1_000, 3_000, 10_000)
KS = (1, 2, 3, 5)
SLACK = 16
DATA = ("delicious", "eurlex57k", "pubmed-mesh")
ORDERS = ("as listed", "greedy", "spectral")
QUANTILES = (0.01, 0.1, 0.5, 0.9)
FLOOR = 1e-12  # of the picture; what is smaller, or not found, stands there
BOX = 1e4


def main() -> None:
    args = options()
    facts: Facts = {"command": command(args), "box": BOX, "random": {}, "real": {}}
    if (args.resume or args.plot) and args.output.exists():
        facts = {**json.loads(args.output.read_text()), "command": command(args)}
    if not args.plot:
        for part, key, cell in cells(args):
            if key in facts[part]:
                continue
            started = time.process_time()
            facts[part][key] = {**cell, **measure(part, cell, args), "cpu_s": time.process_time() - started}
            print(f"{part} {key}: {json.dumps(facts[part][key])}", flush=True)
            write(facts, args.output)
    write(facts, args.output)
    draw(facts, args.figure)
    show(facts)


def options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    default = os.environ.get("LONGTAIL_DATA")
    parser.add_argument("--data", type=Path, default=default, help="default LONGTAIL_DATA; without it only random sets")
    parser.add_argument("--sets", type=int, default=300, help="label sets per cell; a third from 10,000 labels on")
    parser.add_argument("--resume", action="store_true")
    parser.add_argument("--plot", action="store_true", help="only draw")
    parser.add_argument("--output", type=Path, default=HERE / "results" / "radii.json")
    parser.add_argument("--figure", type=Path, default=HERE.parent / "docs" / "radii.svg")
    return parser.parse_args()


def command(args: argparse.Namespace) -> str:
    return f"python benchmarks/radii.py --data FOLDER --sets {args.sets}"


def cells(args: argparse.Namespace) -> Iterator[tuple[str, str, Facts]]:
    """Yield what is to be measured."""
    for n in SIZES:
        for k in KS:
            for slack in (0, SLACK):
                yield "random", f"n={n} k={k} slack={slack}", {"n": n, "k": k, "slack": slack}
    for name in DATA if args.data is not None else ():
        for order in ORDERS:
            yield "real", f"{name} {order}", {"data": name, "order": order, "slack": SLACK}


def measure(part: str, cell: Facts, args: argparse.Namespace) -> Facts:
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
    return sets if n < 10_000 else sets // 3


def random_sets(n: int, k: int, count: int, rng: np.random.Generator) -> sp.csr_array:
    """Return sets of exactly k of n labels."""
    ids = np.concatenate([np.sort(rng.choice(n, k, replace=False)) for _ in range(count)])
    return sp.csr_array((np.ones(ids.size, np.float32), ids, np.arange(count + 1) * k), shape=(count, n))


def radii(Y: sp.csr_array, k: int, slack: int, order: np.ndarray | None) -> Facts:
    """Return quantiles over the rows of Y of the radius of their label set."""
    n = Y.shape[1]
    columns = np.random.default_rng(1).uniform(-1, 1, (n, slack)) / math.sqrt(max(slack, 1))
    found = audit.argmaxable(np.hstack([dft_matrix(n, k, order), columns]), Y, box=BOX)
    radius = found.radius[found.set_of_row]
    return {
        "width": 2 * k + 1 + slack,
        "rows": Y.shape[0],
        "sets": {verdict: int((found.verdicts == verdict).sum()) for verdict in sorted(set(found.verdicts.tolist()))},
        "radius": {quantile_name(q): float(np.quantile(radius, q)) for q in QUANTILES},
    }


def quantile_name(q: float) -> str:
    return f"{100 * q:g}%"


_loaded: dict[str, tuple[sp.csr_array, sp.csr_array]] = {}


def load(name: str, data: Path) -> tuple[sp.csr_array, sp.csr_array]:
    """Return the label sets of train and test, for the labels that have training rows; no row is empty."""
    if name not in _loaded:
        folder = data / name
        if (folder / "train.txt.xz").exists():
            train, test = (read(folder / f"{part}.txt.xz") for part in ("train", "test"))
        else:
            names = folder / "labels.jsonl.xz"
            train, test = (read(folder / f"{part}.jsonl.xz", labels_file=names) for part in ("train", "test"))
        kept = np.flatnonzero(np.bincount(train.Y.indices, minlength=train.Y.shape[1]))
        parts = [sp.csr_array(d.Y[:, kept]) for d in (train, test)]
        _loaded[name] = (parts[0], sp.csr_array(parts[1][np.diff(parts[1].indptr) > 0]))
    return _loaded[name]


def write(facts: Facts, output: Path) -> None:
    facts["gains"] = gains(facts)
    output.parent.mkdir(parents=True, exist_ok=True)
    part = output.with_suffix(".part")
    part.write_text(json.dumps(facts, indent=1) + "\n")
    part.replace(output)


def gains(facts: Facts) -> Facts:
    """Return by how many times an order enlarges the quantiles of the radius, and slack does."""
    out: Facts = {}
    for name in DATA:
        plain = facts["real"].get(f"{name} as listed")
        for order in ORDERS[1:]:
            found = facts["real"].get(f"{name} {order}")
            if plain and found:
                base, new = plain["radius"], found["radius"]
                out[f"{name} {order}"] = {q: new[q] / base[q] if base[q] else None for q in base}
    return out


# --- the picture ------------------------------------------------------------------------------------------------------


def draw(facts: Facts, target: Path) -> None:
    body: list[str] = []
    top = 0.0
    for slack, heading in ((0, "Random sets of k labels, no slack"), (SLACK, f"The same with {SLACK} slack columns")):
        body += by_size([cell for cell in facts["random"].values() if cell["slack"] == slack], heading, top)
        top += 262
    real = [cell for cell in facts["real"].values() if cell["order"] != "spectral"]
    if real:
        body += by_data(real, top)
        top += 62 + 46 * len({cell["data"] for cell in real}) + 40
    told = [
        f"{key}: 1% {cell['radius']['1%']:.2g}, 50% {cell['radius']['50%']:.2g}"
        for part in ("random", "real")
        for key, cell in facts[part].items()
    ]
    svg = drawing(top, "Radii of the regions of label sets in a DFT layer", "; ".join(told), body)
    target.write_text(standalone(svg) + "\n", encoding="utf-8")


def by_size(found: Sequence[Facts], heading: str, top: float) -> list[str]:
    """Draw the 1% quantile of the radius against the number of labels, one line per k."""
    left, right, high, low = 46.0, WIDTH - 46, top + 30, top + 200
    at_x, at_y = logarithmic(SIZES[0], SIZES[-1], left + 12, right), logarithmic(FLOOR, BOX, low, high)
    body = [text(0, top + 14, f"{heading}: 1% quantile of the radius", css="strong small")]
    for power in range(-12, 5, 4):
        y = at_y(10.0**power)
        body.append(line(left, y, right, y, "axis" if power == -12 else "grid"))
        body.append(text(left - 8, y + 4, f"1e{power}" if power else "1", "end", "soft small"))
    for k in KS:
        points = sorted((cell["n"], cell["radius"]["1%"]) for cell in found if cell["k"] == k)
        body.append(path([(at_x(n), at_y(r)) for n, r in points], "stroke"))
        body += [dot(at_x(n), at_y(r), "dot", f"n = {n:,}, k = {k}: {r:.2g}") for n, r in points]
        if points:
            body.append(text(right + 8, at_y(points[-1][1]) + 4, f"k = {k}", css="small"))
    body += [text(at_x(n), low + 16, short_number(n), "middle", "soft small") for n in SIZES]
    body.append(text((left + right) / 2, low + 33, "labels", "middle", "soft small"))
    return body


def by_data(found: Sequence[Facts], top: float) -> list[str]:
    """Draw, per data set and order, a line from the 1% to the 50% quantile."""
    names = [name for name in DATA if any(cell["data"] == name for cell in found)]
    left, right = width_of(names) + 12, WIDTH - 12
    lowest = min(cell["radius"]["1%"] for cell in found)
    highest = max(cell["radius"]["50%"] for cell in found)
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
    for cell in found:
        css, shift = ("2", 0) if cell["order"] == ORDERS[0] else ("", 14)
        y = top + 60 + 46 * names.index(cell["data"]) + shift
        ends = [cell["radius"][q] for q in ("1%", "50%")]
        body.append(path([(at_x(r), y) for r in ends], "stroke" + css))
        body += [dot(at_x(r), y, "dot" + css, f"{cell['data']}, {cell['order']}: {r:.2g}") for r in ends]
        if shift == 0:
            body.append(text(0, y + 11, cell["data"], css="small"))
    return body


def show(facts: Facts) -> None:
    for part in ("random", "real"):
        print(f"\n{part} sets: radius at 1%, 10%, 50%, 90%")
        for key, cell in facts[part].items():
            values = [f"{cell['radius'][quantile_name(q)]:9.3g}" for q in QUANTILES]
            print(f"  {key:<24} {'  '.join(values)}")
    for key, found in facts["gains"].items():
        print(f"{key}: " + ", ".join(f"{q} {value:.2f} times" for q, value in found.items() if value is not None))


if __name__ == "__main__":
    main()
