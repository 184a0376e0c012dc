"""Compare the DFT output layer with the usual bottleneck, each with the best of the same settings.

    python benchmarks/bottleneck/layers.py --stage prepare --data FOLDER --features FEATURES
    python benchmarks/bottleneck/layer_grid.py --features FEATURES           (a GPU helps)

Features, networks and k are those of `layers.py`; d counts trained dimensions. Networks of one shape are trained side
by side (`batched_training.py`). For every data set, d and layer:

- tuning: the same grid of learning rates and dropout, one seed. A tenth of the training rows is set aside and judged by
  F1@10; the settings with the highest are chosen. Test rows play no part.
- runs: the chosen settings, three seeds, all training rows (a tenth of them decides when to stop), F1@10 and P@k on the
  test rows.
- curves: how fast the loss falls on rows held out of train, at one setting for all. Three starts: the DFT layer, the
  bottleneck as longtail starts it (every label as improbable as labels are), and as it was published (every label at
  1/2). Every run trains for the same number of epochs; the summary tells the first epoch and second at which each has
  the lowest loss of the bottleneck as published.

Results are written after every layer; `--resume` goes on. `--plot` draws docs/layers.svg from them.
"""

from __future__ import annotations

import argparse
import itertools
import json
import multiprocessing
import statistics
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from benchmarks.bottleneck.grid_figure import draw
from benchmarks.bottleneck.layer_features import DATA_SETS, Prepared, read_features
from benchmarks.harness.program import DOCS, Deadline, Facts, make_parser, read_results, start_facts, write_results
from benchmarks.harness.scores import mean_and_sd
from benchmarks.harness.terminal import show_table
from longtail.bottleneck import circle_order
from longtail.data import split_random

WIDTHS = (25, 50, 100, 200, 400)
LAYERS = ("dft", "bottleneck")
PUBLISHED = "bottleneck, starts at 1/2"
COMMON: Facts = {"hidden": 512, "batch_size": 512, "epochs": 60, "patience": 6}
GRID: dict[str, tuple[float, ...]] = {"lr": (1e-3, 2e-3, 4e-3), "dropout": (0.3, 0.5, 0.7)}
CURVES: Facts = {"lr": 2e-3, "dropout": 0.5, "epochs": 20}
CURVE_WIDTH = 100
MEASURES = ("f1@10", "f1@5", "p@1", "p@3", "p@5")
PARTS = ("tuning", "runs", "curves")


def main() -> None:
    args = arguments()
    if args.plot:
        draw(read_results(args.output)["summary"], args.figure)
        return
    empty: Facts = {"settings": {"common": COMMON, "grid": GRID, "curves": CURVES}, **{part: [] for part in PARTS}}
    facts = start_facts(args, empty, "torch")
    done = {(run["data"], run["layer"], run["d"], part) for part in PARTS for run in facts[part]}
    wanted = [cell for cell in cells(args) if (*cell[:3], "curves" if cell[3] else "runs") not in done]
    deadline = Deadline(args.minutes)
    with multiprocessing.get_context("spawn").Pool(args.processes) as pool:
        for found in pool.imap_unordered(measure, [(cell, vars(args)) for cell in wanted]):
            for part, runs in found.items():
                facts[part] += runs
                print("\n".join(line(part, run) for run in runs), flush=True)
            facts["summary"] = summarise(facts)
            write_results(facts, args.output)
            if deadline.passed():
                pool.terminate()
                break
    show(facts["summary"])


def arguments() -> argparse.Namespace:
    parser = make_parser(__doc__, "bottleneck_grid.json", seeds=(0, 1, 2), resume=True)
    parser.add_argument("--features", type=Path, help="folder of the prepared features")
    parser.add_argument("--plot", action="store_true", help="only draw docs/layers.svg from the file of results")
    parser.add_argument("--figure", type=Path, default=DOCS / "layers.svg")
    parser.add_argument("--only", nargs="+", default=list(DATA_SETS), choices=DATA_SETS)
    parser.add_argument("--widths", nargs="+", type=int, default=list(WIDTHS))
    parser.add_argument("--rows", type=int, help="train on so many rows only, for a quick look")
    parser.add_argument("--epochs", type=int, default=COMMON["epochs"], help="passes over the rows, at most")
    parser.add_argument("--processes", type=int, default=1, help="shapes trained side by side")
    parser.add_argument("--device", default=None)
    parser.add_argument("--minutes", type=float, help="end after so long; --resume goes on")
    args = parser.parse_args()
    if args.features is None and not args.plot:
        parser.error("give the folder of the prepared features, --features FEATURES")
    return args


# --- measuring --------------------------------------------------------------------------------------------------------


def cells(args: argparse.Namespace) -> Iterator[tuple[str, str, int, bool]]:
    """Yield data set, layer, d and whether it is about the curves; both layers of a shape one after the other."""
    for d in sorted(args.widths):
        for data, layer in itertools.product(args.only, LAYERS):
            yield data, layer, d, False
        if d == CURVE_WIDTH:
            for data, layer in itertools.product(args.only, (*LAYERS, PUBLISHED)):
                yield data, layer, d, True


def measure(task: tuple[tuple[str, str, int, bool], Facts]) -> Facts:
    """Train all networks of one shape: the grid and then three seeds, or the curves."""
    import torch

    from benchmarks.bottleneck.batched_training import train

    (data_name, layer, d, is_curve), args = task
    torch.backends.cuda.matmul.allow_tf32 = True
    torch.set_num_threads(1)
    device = torch.device(args["device"] or ("cuda" if torch.cuda.is_available() else "cpu"))
    name = torch.cuda.get_device_name() if device.type == "cuda" else "cpu"
    about = {"data": data_name, "layer": layer, "d": d, "device": name}
    how = {**COMMON, "epochs": args["epochs"]}
    tuning, data = (load(args["features"] / f"{data_name}.npz", tuning, args["rows"]) for tuning in (True, False))
    if is_curve:
        how |= {"epochs": min(CURVES["epochs"], args["epochs"]), "patience": CURVES["epochs"] + 1}
        settings = [{**{n: CURVES[n] for n in GRID}, "seed": seed} for seed in args["seeds"]]
        if layer == PUBLISHED:
            settings = [{**one, "prior": 0.5} for one in settings]
        found = train(settings, shape_of(layer, d, tuning, data_name), tuning, how, device)
        return {"curves": [{**about, **one, **run} for one, run in zip(settings, found, strict=True)]}
    settings = [dict(zip(GRID, values, strict=True), seed=0) for values in itertools.product(*GRID.values())]
    tried = train(settings, shape_of(layer, d, tuning, data_name), tuning, how, device)
    best = max(range(len(tried)), key=lambda i: tried[i]["f1@10"])
    chosen = [{**settings[best], "seed": seed} for seed in args["seeds"]]
    found = train(chosen, shape_of(layer, d, data, data_name), data, how, device)
    return {
        "tuning": [{**about, **one, **short(run)} for one, run in zip(settings, tried, strict=True)],
        "runs": [{**about, **one, **short(run)} for one, run in zip(chosen, found, strict=True)],
    }


def short(run: Facts) -> Facts:
    """Return a run without its curves."""
    return {name: value for name, value in run.items() if name not in ("valid_loss", "valid_precision")}


@cache
def load(file: Path, tuning: bool, rows: int | None) -> Prepared:
    """Read the features of a data set; in tuning, a tenth of the training rows takes the place of the test rows."""
    data = read_features(file)
    if tuning:
        train, test = split_random(data.Y, test_size=0.1, random_state=99)
        data = Prepared(data.X[train], data.Y[train], data.X[test], data.Y[test])
    return Prepared(data.X[:rows], data.Y[:rows], data.Xt, data.Yt)


_orders: dict[tuple[str, int], np.ndarray] = {}


def shape_of(layer: str, d: int, data: Prepared, name: str) -> Facts:
    """Return what decides the shape of a network, and the order of its labels."""
    about = (name, data.Y.shape[0])
    if layer == "dft" and about not in _orders:
        _orders[about] = circle_order(data.Y)
    return {
        "n_features": data.X.shape[1],
        "n_labels": data.Y.shape[1],
        "head": "dft" if layer == "dft" else "bottleneck",
        "k": int(np.diff(data.Y.indptr).max()),
        "width": d,
        "encoder": "mlp",
        "hidden": [COMMON["hidden"]],
        "normalized": True,
        "sparse_rows": False,
        "order": _orders[about] if layer == "dft" else None,
    }


# --- results ----------------------------------------------------------------------------------------------------------


def summarise(facts: Facts) -> Facts:
    """Return means over seeds, how the DFT layer compares at every d, and how fast the losses fall."""
    groups: dict[tuple[str, str], dict[str, list[Facts]]] = {}
    for run in facts["runs"]:
        groups.setdefault((run["data"], str(run["d"])), {}).setdefault(run["layer"], []).append(run)
    out: Facts = {"accuracy": {}, "dft minus bottleneck": {}, "speed": speed(facts["curves"])}
    for (data, d), layers in groups.items():
        at = out["accuracy"].setdefault(data, {})[d] = {layer: over_seeds(runs) for layer, runs in layers.items()}
        if set(LAYERS) <= set(at):
            gains = {name: at["dft"][name]["mean"] - at["bottleneck"][name]["mean"] for name in MEASURES}
            out["dft minus bottleneck"].setdefault(data, {})[d] = {name: round(g, 4) for name, g in gains.items()}
    return out


def over_seeds(runs: list[Facts]) -> Facts:
    """Return means and standard deviations of one layer over seeds."""
    facts: Facts = {name: mean_and_sd([run[name] for run in runs]) for name in MEASURES}
    facts |= {name: runs[0][name] for name in ("k", "parameters", *GRID)}
    facts |= {"best_epoch": round(statistics.mean(run["best_epoch"] for run in runs), 1), "seeds": len(runs)}
    return facts


def speed(curves: list[Facts]) -> Facts:
    """Return, per data set, when each layer reaches the lowest loss of the bottleneck as published."""
    out: Facts = {}
    for data in dict.fromkeys(run["data"] for run in curves):
        runs = [run for run in curves if run["data"] == data]
        goals = {run["seed"]: min(run["valid_loss"]) for run in runs if run["layer"] == PUBLISHED}
        for layer in (*LAYERS, PUBLISHED):
            reached = [when(run, goals[run["seed"]]) for run in runs if run["layer"] == layer and run["seed"] in goals]
            if reached:
                out.setdefault(data, {})[layer] = means(reached)
    return out


def when(run: Facts, goal: float) -> Facts:
    """Return the epoch at which a run first has a loss as low as the goal, and losses on the way."""
    at = next((i for i, loss in enumerate(run["valid_loss"]) if loss <= goal), None)
    losses = {f"loss after {n}": run["valid_loss"][n - 1] for n in (1, 2, 5) if n <= len(run["valid_loss"])}
    return {**losses, "lowest loss": min(run["valid_loss"]), "epochs": None if at is None else at + 1}


def means(records: list[Facts]) -> Facts:
    """Return the mean of every number over the records, None where one has none."""
    out: Facts = {}
    for name in records[0]:
        values = [record[name] for record in records]
        out[name] = None if None in values else round(statistics.mean(values), 7)
    return out


def line(part: str, run: Facts) -> str:
    """Return one run in one line."""
    return (
        f"{part}: {run['data']}, {run['layer']}, d={run['d']}, seed {run['seed']}, lr {run['lr']:g}, "
        f"dropout {run['dropout']:g}: F1@10 {run['f1@10']:.2f}, P@1 {run['p@1']:.2f}, best epoch {run['best_epoch']} "
        f"of {run['epochs']}, {run['seconds']:.1f} s"
    )


def show(summary: Facts) -> None:
    """Print F1@10 of both layers with the gain of the DFT layer, and the speeds."""
    for data, widths in summary["accuracy"].items():
        rows = []
        for d, layers in sorted(widths.items(), key=lambda item: int(item[0])):
            gains = summary["dft minus bottleneck"].get(data, {}).get(d)
            if gains:
                f1 = (layers[layer]["f1@10"] for layer in LAYERS)
                shown = [f"{at['mean']:.2f} ± {at['sd'] or 0:.2f}" for at in f1]
                rows.append([d, *shown, *(f"{gains[name]:+.2f}" for name in MEASURES)])
        if rows:
            show_table(f"{data}: F1@10 on test rows, and gains", ["d", *LAYERS, *MEASURES], rows)
    rows = [[data, layer, json.dumps(at)] for data, layers in summary["speed"].items() for layer, at in layers.items()]
    show_table("When the lowest loss of the bottleneck as published is reached", ["data", "layer", ""], rows)


if __name__ == "__main__":
    main()
