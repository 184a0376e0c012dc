"""Measure in which arithmetic the guaranteed label sets of a DFT layer come out of a forward pass.

    python benchmarks/bottleneck/precision.py --data FOLDER

That every set of at most k labels can come out is a theorem about real numbers. Here each set is given the input that
an audit knows for it, and the layer computes its scores; the set comes out if exactly its labels score above 0. Parts:

- random: sets of exactly k labels drawn at random, for 200 to 10,000 labels, without slack and with 16 slack columns.
  `formula` is the input of `DFTOutput.input_for` (slack inputs 0), `audit` the centre of the largest ball that the
  audit finds, or the formula's input where that is all there is.
- real: label sets of test rows (FOLDER holds delicious, eurlex57k and pubmed-mesh), labels in order of co-occurrence,
  16 slack columns, k the largest number of labels of a row; the audit's input.
- cost: seconds of a forward pass, and of one with its gradient, of a layer with 64 slack columns.

bfloat16, float32 and float64 round the input and compute in that type; "float64, float32 input" rounds the input to 32
bits and computes in 64; "double-double" takes the sum of two 64-bit numbers for each. Results are written after every
cell; `--resume` goes on.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import scipy.sparse as sp
import torch

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from benchmarks.bottleneck.radii import load, random_sets
from benchmarks.harness.program import Facts, make_parser, start_facts, write_results
from benchmarks.harness.terminal import show_table
from longtail import audit
from longtail.bottleneck import circle_order
from longtail.nn import DFTOutput

SIZES = (200, 1_000, 3_000, 10_000)
KS = (3, 5, 10, 20)
SLACKS = (0, 16)
DATA = ("delicious", "eurlex57k", "pubmed-mesh")
TYPES = {"bfloat16": torch.bfloat16, "float32": torch.float32, "float64": torch.float64}
MIXED = "float64, float32 input"
DOUBLE = "double-double"
WAYS = (*TYPES, MIXED, DOUBLE)
COSTS = ((1_000, 20), (10_000, 20), (10_000, 50))
BATCH = 64


def main() -> None:
    args = options()
    torch.set_num_threads(1)
    facts = start_facts(args, {"random": {}, "real": {}, "cost": {}}, "torch")
    for part, key, cell in cells(args):
        if key not in facts[part]:
            started = time.perf_counter()
            facts[part][key] = {**cell, **measure(part, cell, args)}
            facts[part][key]["seconds"] = round(time.perf_counter() - started, 1)
            print(part, key, facts[part][key], flush=True)
            write_results(facts, args.output)
    show(facts)


def options() -> argparse.Namespace:
    parser = make_parser(__doc__, "bottleneck_precision.json", data="optional", resume=True)
    parser.add_argument("--sets", type=int, default=100, help="random sets per cell")
    parser.add_argument("--audited", type=int, default=20, help="of these, sets whose largest ball is looked for")
    parser.add_argument("--real", type=int, default=60, help="label sets per data set")
    return parser.parse_args()


def cells(args: argparse.Namespace) -> Iterator[tuple[str, str, Facts]]:
    """Yield the part, the name and the settings of every cell."""
    for n, k in COSTS:
        yield "cost", f"n={n} k={k}", {"n": n, "k": k, "slack": 64, "rows": BATCH}
    for n in SIZES:
        for k in KS:
            for slack in SLACKS:
                yield "random", f"n={n} k={k} slack={slack}", {"n": n, "k": k, "slack": slack}
    for name in DATA if args.data is not None else ():
        yield "real", name, {"data": name, "slack": 16}


def measure(part: str, cell: Facts, args: argparse.Namespace) -> Facts:
    """Measure one cell."""
    if part == "cost":
        return cost(cell)
    if part == "random":
        Y = random_sets(cell["n"], cell["k"], args.sets, np.random.default_rng(0))
        layer = new_layer(cell["n"], cell["k"], cell["slack"], None)
        formula: list[tuple[torch.Tensor, torch.Tensor]] = [layer.input_for(Y[[i]].indices) for i in range(Y.shape[0])]
        some = sp.csr_array(Y[: args.audited])
        return {
            "formula": {"sets": Y.shape[0], **shares(layer, Y, formula)},
            "audit": {"sets": some.shape[0], **shares(layer, some, audited_inputs(layer, some))},
        }
    train, test = load(cell["data"], args.data)
    k = int(max(np.diff(train.indptr).max(), np.diff(test.indptr).max()))
    rows = np.random.default_rng(0).choice(test.shape[0], args.real, replace=False)
    Y = sp.csr_array(test[np.sort(rows)])
    layer = new_layer(test.shape[1], k, cell["slack"], circle_order(train))
    return {"n": test.shape[1], "k": k, "sets": Y.shape[0], **shares(layer, Y, audited_inputs(layer, Y))}


def new_layer(n: int, k: int, slack: int, order: np.ndarray | None) -> DFTOutput:
    """Return a layer before training, with the slack that the measured one had: its projection read 4 numbers."""
    width = 2 * k + 1 + slack
    layer = DFTOutput(width, n, k, slack, order=order)
    torch.manual_seed(0)
    torch.nn.Linear(4, width)
    if layer.slack is not None:
        torch.nn.init.uniform_(layer.slack, -1 / slack**0.5, 1 / slack**0.5)
    return layer


def audited_inputs(layer: DFTOutput, Y: sp.csr_array) -> list[tuple[torch.Tensor, torch.Tensor]]:
    """Return, per row, the input of the audit's certificate: high and low part."""
    found = audit.argmaxable(layer, Y, n_jobs=1)
    out: list[tuple[torch.Tensor, torch.Tensor]] = []
    for number in found.set_of_row:
        x = found.certificates[number].x
        if x is None:
            out.append(layer.input_for(found.members[number]))
        else:
            out.append((torch.from_numpy(x), torch.zeros(x.size, dtype=torch.float64)))
    return out


def shares(layer: DFTOutput, Y: sp.csr_array, inputs: list[tuple[torch.Tensor, torch.Tensor]]) -> Facts:
    """Return the percentage of the sets that come out of the layer's scores in every arithmetic."""
    right = dict.fromkeys(WAYS, 0)
    for i, (high, low) in enumerate(inputs):
        members = np.sort(Y[[i]].indices)
        for way in WAYS:
            right[way] += np.array_equal(on(layer, way, high, low), members)
    return {way: 100 * right[way] / len(inputs) for way in WAYS}


@torch.no_grad()
def on(layer: DFTOutput, way: str, high: torch.Tensor, low: torch.Tensor) -> np.ndarray:
    """Return the labels that score above 0."""
    layer.arithmetic = DOUBLE if way == DOUBLE else None
    x = high.float().double() if way == MIXED else high.to(TYPES.get(way, torch.float64))
    scores = layer.scores(x, low if way == DOUBLE else None)
    return torch.nonzero(scores > 0).ravel().numpy()


def cost(cell: Facts) -> Facts:
    """Return the seconds of a forward pass, and of one with its gradient, in each arithmetic that the layer offers."""
    layer, x = new_layer(cell["n"], cell["k"], cell["slack"], None), torch.randn(BATCH, 4)
    out: Facts = {}
    for arithmetic in (None, "float64", DOUBLE):
        layer.arithmetic = arithmetic
        name = arithmetic or "float32"
        with torch.no_grad():
            out[f"{name}: forward"] = fastest(lambda: layer(x))
        out[f"{name}: with gradient"] = fastest(lambda: layer(x).square().sum().backward())
    for name in ("float64", DOUBLE):
        for what in ("forward", "with gradient"):
            out[f"{name}: {what}, times"] = round(out[f"{name}: {what}"] / out[f"float32: {what}"], 2)
    return out


def fastest(action: Callable[[], object]) -> float:
    """Return the seconds of the fastest of some calls, after one that warms up."""
    action()
    times = []
    for _ in range(7):
        started = time.perf_counter()
        action()
        times.append(time.perf_counter() - started)
    return min(times)


def show(facts: Facts) -> None:
    """Print the shares in percent."""
    for witness in ("formula", "audit"):
        rows = [[key, *(f"{cell[witness][way]:.0f}" for way in WAYS)] for key, cell in facts["random"].items()]
        show_table(f"random sets that come out, in percent: {witness}", ["", *WAYS], rows)
    rows = [[key, *(f"{cell[way]:.0f}" for way in WAYS)] for key, cell in facts["real"].items()]
    show_table("real sets that come out, in percent", ["", *WAYS], rows)


if __name__ == "__main__":
    main()
