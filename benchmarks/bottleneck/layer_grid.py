"""Compare the DFT output layer with the usual bottleneck, each with the best of the same settings.

    python benchmarks/bottleneck/layers.py --stage prepare --data FOLDER --features FEATURES
    python benchmarks/bottleneck/layer_grid.py --stage tune --features FEATURES           (a GPU helps)
    python benchmarks/bottleneck/layer_grid.py --stage train --features FEATURES --resume
    python benchmarks/bottleneck/layer_grid.py --stage curves --features FEATURES --resume

Features, networks and k are those of `layers.py`; d counts trained dimensions.

- tune: for every data set, layer and d the same grid of learning rates and dropout, one seed. A tenth of the training
  rows is set aside and judged by F1@10; the settings with the highest are chosen. Test rows play no part.
- train: the chosen settings, three seeds, all training rows (a tenth of them decides when to stop), F1@10 and P@k on
  the test rows.
- curves: how fast the loss falls on rows held out of train. Three starts at the same settings: the DFT layer, the
  bottleneck as longtail starts it (every label as improbable as labels are), and as it was published (every label at
  1/2). Every run trains for the same number of epochs; the first epoch, step and second are told at which each reaches
  the lowest loss of the bottleneck as published.

Results are written after every model; `--resume` goes on.
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
from typing import Any

import numpy as np
import scipy.sparse as sp

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from benchmarks.bottleneck.layer_features import DATA_SETS, Prepared, read_features
from benchmarks.harness.program import Deadline, Facts, command, make_parser, start_facts, write_results
from benchmarks.harness.scores import mean_and_sd, precisions
from benchmarks.harness.terminal import show_table
from benchmarks.harness.timing import timed
from longtail.bottleneck import BottleneckClassifier, circle_order
from longtail.data import split_random
from longtail.metrics import precision_at_k, recall_at_k

WIDTHS = (25, 50, 100, 200, 400)
LAYERS = ("dft", "bottleneck")
PUBLISHED = "bottleneck, starts at 1/2"
COMMON: Facts = {"hidden": 512, "batch_size": 512, "epochs": 60, "patience": 6, "stop_on": "precision"}
GRID: dict[str, tuple[float, ...]] = {"lr": (2e-3, 4e-3, 1e-3), "dropout": (0.5, 0.7, 0.3)}
CURVES: Facts = {"lr": 2e-3, "dropout": 0.5, "epochs": 20, "patience": 20, "stop_on": "loss"}
MEASURES = ("f1@10", "f1@5", "p@1", "p@3", "p@5")


class StartsAtHalf(BottleneckClassifier):
    """The network with every label at probability 1/2 before training, as the bottleneck was published."""

    def _first_probability(self, Y: sp.csr_array) -> float:
        return 0.5


def main() -> None:
    args = arguments()
    empty = {"settings": {"common": COMMON, "grid": GRID, "curves": CURVES}, "tuning": [], "runs": [], "curves": []}
    facts = start_facts(args, {**empty, "commands": {}}, "torch")
    facts["commands"][args.stage] = command()
    measure_all(args, facts)
    facts["summary"] = summarise(facts)
    write_results(facts, args.output)
    show(facts["summary"])


def arguments() -> argparse.Namespace:
    parser = make_parser(__doc__, "bottleneck_grid.json", seeds=(0, 1, 2), resume=True)
    parser.add_argument("--stage", choices=["tune", "train", "curves"], required=True)
    parser.add_argument("--features", type=Path, required=True, help="folder of the prepared features")
    parser.add_argument("--only", nargs="+", default=list(DATA_SETS), choices=DATA_SETS)
    parser.add_argument("--widths", nargs="+", type=int, default=list(WIDTHS))
    parser.add_argument("--rows", type=int, help="train on so many rows only, for a quick look")
    parser.add_argument("--epochs", type=int, help="train for so many epochs at most, for a quick look")
    parser.add_argument("--processes", type=int, default=1, help="models trained side by side")
    parser.add_argument("--device", default=None)
    parser.add_argument("--minutes", type=float, help="end after so long; --resume goes on")
    return parser.parse_args()


# --- measuring --------------------------------------------------------------------------------------------------------


def measure_all(args: argparse.Namespace, facts: Facts) -> None:
    """Train all models of a stage that have no results yet."""
    runs = facts[{"tune": "tuning", "train": "runs", "curves": "curves"}[args.stage]]
    done = {key(run) for run in runs}
    wanted = [cell for cell in cells(args, facts) if key(cell) not in done]
    deadline = Deadline(args.minutes)
    context = multiprocessing.get_context("spawn")
    with context.Pool(args.processes) as pool:
        for run in pool.imap_unordered(measure, [(cell, vars(args)) for cell in wanted]):
            runs.append(run)
            print(line(run), flush=True)
            write_results(facts, args.output)
            if deadline.passed():
                pool.terminate()
                break


def cells(args: argparse.Namespace, facts: Facts) -> Iterator[Facts]:
    """Yield the models to train; all layers get one setting before any gets the next."""
    places = list(itertools.product(sorted(args.only, key=lambda name: name == "delicious"), sorted(args.widths)[::-1]))
    if args.stage == "tune":
        for settings in grid():
            for (data, d), layer in itertools.product(places, LAYERS):
                yield {"data": data, "layer": layer, "d": d, "seed": args.seeds[0], **settings}
        return
    chosen = choose(facts["tuning"]) if args.stage == "train" else {}
    for seed, (data, d) in itertools.product(args.seeds, places):
        for layer in LAYERS if args.stage == "train" else (*LAYERS, PUBLISHED):
            cell = {"data": data, "layer": layer, "d": d, "seed": seed}
            if args.stage == "curves":
                yield {**cell, "lr": CURVES["lr"], "dropout": CURVES["dropout"]}
            elif (data, layer, d) in chosen:
                yield {**cell, **chosen[data, layer, d]}


def grid() -> list[Facts]:
    """Return the settings to try, the middle of the grid first."""
    return [dict(zip(GRID, values, strict=True)) for values in itertools.product(*GRID.values())]


def choose(tuning: list[Facts]) -> dict[tuple[str, str, int], Facts]:
    """Return the settings with the highest F1@10 on held-out rows, of those that both layers have tried."""
    scores: dict[tuple[str, int], dict[tuple[str, tuple[float, ...]], Facts]] = {}
    for run in tuning:
        scores.setdefault((run["data"], run["d"]), {})[run["layer"], setting(run)] = run
    out = {}
    for (data, d), tried in scores.items():
        common = set.intersection(*({s for layer, s in tried if layer == wanted} for wanted in LAYERS))
        for layer in LAYERS if common else ():
            best = max(common, key=lambda s: (tried[layer, s]["f1@10"], s))
            out[data, layer, d] = {name: tried[layer, best][name] for name in GRID}
    return out


def setting(run: Facts) -> tuple[float, ...]:
    """Return the values of a run in the grid."""
    return tuple(run[name] for name in GRID)


def measure(task: tuple[Facts, Facts]) -> Facts:
    """Train one model and score it on rows it was not trained on."""
    import torch

    cell, args = task
    torch.set_float32_matmul_precision("high")
    if args["device"] != "cpu":
        torch.set_num_threads(1)
    data = load(args["features"] / f"{cell['data']}.npz", args["stage"] != "train", args["rows"])
    seconds: list[float] = []
    model = classifier(cell, data, args)
    spent, model = timed(lambda: model.fit(data.X, data.Y, on_epoch=lambda epoch: seconds.append(epoch.seconds)))
    out = {
        **cell,
        "k": int(getattr(model.network_.head, "k", 0)),
        "parameters": model.network_.head.n_parameters,
        "epochs": len(model.history_),
        "best_epoch": model.best_epoch_,
        "prior_precision": model.prior_precision_,
        "seconds": spent.wall,
        "device": torch.cuda.get_device_name() if next(model.network_.parameters()).is_cuda else "cpu",
    }
    if args["stage"] != "tune":
        out["valid_loss"] = [epoch["valid_loss"] for epoch in model.history_]
        out["epoch_seconds"] = [round(second, 4) for second in seconds]
    return out | scores(model, data)


@cache
def load(file: Path, tuning: bool, rows: int | None) -> Prepared:
    """Read the features of a data set; in tuning, a tenth of the training rows takes the place of the test rows."""
    data = read_features(file)
    if tuning:
        train, test = split_random(data.Y, test_size=0.1, random_state=99)
        data = Prepared(data.X[train], data.Y[train], data.X[test], data.Y[test])
    return Prepared(data.X[:rows], data.Y[:rows], data.Xt, data.Yt)


_orders: dict[tuple[Any, ...], np.ndarray] = {}


def classifier(cell: Facts, data: Prepared, args: Facts) -> BottleneckClassifier:
    """Return the model of a cell, not yet trained."""
    about = (cell["data"], data.Y.shape)
    if about not in _orders and cell["layer"] == "dft":
        _orders[about] = circle_order(data.Y)  # what order="cooccurrence" does, once for all models
    settings = COMMON | ({name: CURVES[name] for name in CURVES} if args["stage"] == "curves" else {})
    settings |= {name: cell[name] for name in GRID}
    settings["epochs"] = args["epochs"] or settings["epochs"]
    kind = StartsAtHalf if cell["layer"] == PUBLISHED else BottleneckClassifier
    return kind(
        head="dft" if cell["layer"] == "dft" else "bottleneck",
        k=int(np.diff(data.Y.indptr).max()),
        width=cell["d"],
        order=_orders.get(about),
        random_state=cell["seed"],
        device=args["device"],
        **settings,
    )


def scores(model: BottleneckClassifier, data: Prepared) -> Facts:
    """Return precision and F1 on the rows set aside, in percent."""
    top = model.predict_topk(data.Xt, k=10)
    out: Facts = precisions(data.Yt, top)
    for k in (5, 10):
        p, r = (100 * float(metric(data.Yt, top, k)) for metric in (precision_at_k, recall_at_k))
        out[f"f1@{k}"] = 2 * p * r / (p + r) if p + r else 0.0
    return out


# --- results ----------------------------------------------------------------------------------------------------------


def summarise(facts: Facts) -> Facts:
    """Return means over seeds, how the DFT layer compares at every d, and how fast the losses fall."""
    out: Facts = {"accuracy": {}, "dft minus bottleneck": {}, "speed": speed(facts["curves"])}
    for run in facts["runs"]:
        out["accuracy"].setdefault(run["data"], {}).setdefault(str(run["d"]), {}).setdefault(run["layer"], []).append(
            run
        )
    for data, widths in out["accuracy"].items():
        for d, layers in widths.items():
            widths[d] = {layer: over_seeds(runs) for layer, runs in layers.items()}
            if set(LAYERS) <= set(widths[d]):
                dft, usual = (widths[d][layer] for layer in LAYERS)
                gains = {name: dft[name]["mean"] - usual[name]["mean"] for name in MEASURES}
                out["dft minus bottleneck"].setdefault(data, {})[d] = {n: round(gain, 4) for n, gain in gains.items()}
    return out


def over_seeds(runs: list[Facts]) -> Facts:
    """Return means and standard deviations of one layer over seeds."""
    facts: Facts = {name: mean_and_sd([run[name] for run in runs]) for name in MEASURES}
    facts |= {name: runs[0][name] for name in ("k", "parameters", *GRID)}
    facts |= {"best_epoch": statistics.mean(run["best_epoch"] for run in runs), "seeds": len(runs)}
    return facts


def speed(curves: list[Facts]) -> Facts:
    """Return, per data set and d, when each layer reaches the lowest loss of the bottleneck as published."""
    out: Facts = {}
    groups: dict[tuple[str, int], list[Facts]] = {}
    for run in curves:
        groups.setdefault((run["data"], run["d"]), []).append(run)
    for (data, d), runs in groups.items():
        goals = {run["seed"]: min(run["valid_loss"]) for run in runs if run["layer"] == PUBLISHED}
        for layer in (*LAYERS, PUBLISHED):
            reached = [when(run, goals[run["seed"]]) for run in runs if run["layer"] == layer and run["seed"] in goals]
            if reached:
                out.setdefault(data, {}).setdefault(str(d), {})[layer] = means(reached)
    return out


def when(run: Facts, goal: float) -> Facts:
    """Return the epoch and the seconds at which a run first has a loss as low as the goal, and losses on the way."""
    at = next((i for i, loss in enumerate(run["valid_loss"]) if loss <= goal), None)
    seconds = np.cumsum(run["epoch_seconds"])
    first = {"loss after 1 epoch": run["valid_loss"][0], "lowest loss": min(run["valid_loss"])}
    if at is None:
        return {**first, "reached": 0.0, "epochs": None, "seconds": None}
    return {**first, "reached": 1.0, "epochs": at + 1, "seconds": float(seconds[at])}


def means(records: list[Facts]) -> Facts:
    """Return the mean of every number over the records that have it."""
    out: Facts = {}
    for name in records[0]:
        values = [record[name] for record in records if record[name] is not None]
        out[name] = round(statistics.mean(values), 6) if values else None
    return out


def key(run: Facts) -> tuple[Any, ...]:
    """Return what tells a run from all others."""
    return run["data"], run["layer"], run["d"], run["seed"], setting(run)


def line(run: Facts) -> str:
    """Return one run in one line."""
    return (
        f"{run['data']}, {run['layer']}, d={run['d']}, seed {run['seed']}, lr {run['lr']:g}, "
        f"dropout {run['dropout']:g}: "
        f"F1@10 {run['f1@10']:.2f}, P@1 {run['p@1']:.2f}, best epoch {run['best_epoch']} of {run['epochs']}, "
        f"{run['seconds']:.1f} s"
    )


def show(summary: Facts) -> None:
    """Print F1@10 of both layers with the gain of the DFT layer, and the speeds."""
    for data, widths in summary["accuracy"].items():
        rows = []
        for d, layers in sorted(widths.items(), key=lambda item: int(item[0])):
            cells = [
                f"{at['f1@10']['mean']:.2f} ± {at['f1@10']['sd'] or 0:.2f}" for at in map(layers.get, LAYERS) if at
            ]
            gains = summary["dft minus bottleneck"].get(data, {}).get(d, {})
            rows.append([d, *cells, *(f"{gains[name]:+.2f}" for name in MEASURES if name in gains)])
        show_table(f"{data}: F1@10 on test rows, and gains", ["d", *LAYERS, *MEASURES], rows)
    rows = [
        [data, d, layer, json.dumps(at)]
        for data, widths in summary["speed"].items()
        for d, layers in widths.items()
        for layer, at in layers.items()
    ]
    show_table("When the lowest loss of the bottleneck as published is reached", ["data", "d", "layer", ""], rows)


if __name__ == "__main__":
    main()
