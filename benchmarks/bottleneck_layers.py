"""Narrow output layers: what the usual one cannot say, what the DFT layer can, and how well both predict.

    python benchmarks/bottleneck_layers.py --stage prepare --data FOLDER --features FEATURES
    python benchmarks/bottleneck_layers.py --stage train --features FEATURES --weights WEIGHTS     (a GPU helps)
    python benchmarks/bottleneck_layers.py --stage audit --features FEATURES --weights WEIGHTS

FOLDER holds `pubmed-mesh`, `eurlex57k` and `delicious` (default LONGTAIL_DATA). The features are fixed (see
`bottleneck_data.py`); a network with one hidden layer of 512 units stands between them and the output layer. Over d and
seeds, three output layers:

- bottleneck: d trained dimensions;
- dft: d trained dimensions beside 2k + 1 fixed ones, as in the published comparison, which counts trained dimensions;
  k is the largest number of labels of a training row, so every set of as many labels can come out;
- dft, same width: 2k + 1 fixed and some trained dimensions, d together. As large a k as leaves a quarter to train.

`train` stops on a tenth of the training rows, rounds the output weights to 16 bits, which are what is judged, kept and
audited, and scores the test rows. F1@k is the harmonic mean of mean precision and mean recall at k. `audit` asks for
the distinct label sets of the test rows (labels without training rows left out) whether each can come out at all.
`tune` compares settings on rows held out of train. Those below are the same for all layers, from a look at a few values
of lr and dropout for the bottleneck layer (pubmed-mesh, 6,000 rows, d = 50, one seed, held-out rows); of the DFT layer,
the scale of the fixed part (`nn.output.GAIN`) was chosen on held-out rows of pubmed-mesh and eurlex57k. Results are
written after every model; `--resume` goes on. Audits of wide layers with many labels take long; `--sets` takes a sample
of the test rows for them, and the number of sets is in the results.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import statistics
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from bottleneck_data import DATA_SETS, Prepared, read_features, write_features
from longtail.audit import argmaxable
from longtail.bottleneck import BottleneckClassifier
from longtail.bottleneck.dft import dft_matrix
from longtail.bottleneck.label_order import circle_order
from longtail.data.splits import split_random
from longtail.metrics import precision_at_k, recall_at_k

Facts = dict[str, Any]
WIDTHS = (25, 50, 100, 200, 400)
LAYERS = ("bottleneck", "dft", "dft, same width")
SETTINGS: Facts = {
    "hidden": 512,
    "dropout": 0.5,
    "lr": 2e-3,
    "weight_decay": 0.0,
    "batch_size": 512,
    "epochs": 100,
    "patience": 6,
}
TUNED: dict[str, list[Any]] = {
    "lr": [5e-4, 1e-3, 2e-3, 4e-3],
    "dropout": [0.2, 0.5],
    "weight_decay": [0.0, 0.1],
    "order": [None],
}
STARTED = time.monotonic()
KEPT_OF_OTHER_SEEDS = 100  # widest layers whose weights are kept for every seed; wider ones for the first only
KEPT_OF_MANY_LABELS = 200  # widest layers that are kept where there are more than 5,000 labels
SLOW_AUDIT = 600.0  # seconds after which an audit leaves sets undecided


def main() -> None:
    args = arguments()
    if args.stage == "prepare":
        for name in args.only:
            file = write_features(name, args.data, args.work, args.features)
            print(f"{file}: {file.stat().st_size / 2**20:.1f} MiB")
        return
    facts: Facts = {"command": {}, "settings": SETTINGS, "runs": [], "audits": [], "tuning": []}
    if args.output.exists() and (args.resume or args.stage == "audit"):
        facts |= json.loads(args.output.read_text())
    facts["command"][args.stage] = command()
    if args.stage == "audit":
        audit_all(args, facts)
    else:
        train_all(args, facts)
    facts["summary"] = summarise(facts)
    write(facts, args.output)
    show(facts)


def arguments() -> argparse.Namespace:
    results = Path(__file__).parent / "results"
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--stage", choices=["prepare", "tune", "train", "audit"], required=True)
    parser.add_argument("--data", type=Path, default=os.environ.get("LONGTAIL_DATA"), help="folder of the data sets")
    parser.add_argument("--work", type=Path, default=Path("build/benchmarks"), help="folder for TF-IDF rows")
    parser.add_argument("--features", type=Path, required=True, help="folder of the prepared features")
    parser.add_argument("--weights", type=Path, help="folder for output weights, one file a data set")
    parser.add_argument("--only", nargs="+", default=list(DATA_SETS), choices=DATA_SETS)
    parser.add_argument("--layers", nargs="+", default=list(LAYERS), choices=LAYERS)
    parser.add_argument("--widths", nargs="+", type=int, default=list(WIDTHS))
    parser.add_argument("--seeds", nargs="+", type=int, default=[0, 1, 2])
    parser.add_argument("--rows", type=int, help="train on so many rows only, for a quick look")
    parser.add_argument("--processes", type=int, default=1, help="models trained side by side")
    parser.add_argument("--device", default=None)
    parser.add_argument("--sets", type=int, help="audit a random sample of so many test rows, for wide layers")
    parser.add_argument("--minutes", type=float, help="end training after so long; --resume goes on")
    parser.add_argument("--resume", action="store_true")
    parser.add_argument("--output", type=Path, default=results / "bottleneck.json")
    return parser.parse_args()


# --- training ---------------------------------------------------------------------------------------------------------


def train_all(args: argparse.Namespace, facts: Facts) -> None:
    tuning = args.stage == "tune"
    found = facts["tuning" if tuning else "runs"]
    done = {key(run) for run in found}
    wanted = [cell for cell in cells(args) if key(cell) not in done]
    kept: dict[str, dict[str, np.ndarray]] = {}
    context = multiprocessing.get_context("spawn")
    with context.Pool(args.processes) as pool:
        for run, weights in pool.imap_unordered(measure, [(cell, vars(args)) for cell in wanted]):
            found.append(run)
            kept.setdefault(file_of(run), {}).update(weights)
            print(line(run), flush=True)
            write(facts, args.output)
            if args.minutes and time.monotonic() - STARTED > 60 * args.minutes:
                print("time is up; --resume goes on from here")
                pool.terminate()
                break
    if args.weights is not None and not tuning:
        args.weights.mkdir(parents=True, exist_ok=True)
        for name, arrays in kept.items():
            if arrays:
                np.savez(args.weights / f"{name}.npz", **arrays)  # type: ignore[arg-type]


def file_of(run: Facts) -> str:
    """Return the name of the file that keeps the weights of a model; several, so that none is too large to move."""
    return run["data"] + ("" if run["seed"] == 0 else "-more")


def cells(args: argparse.Namespace) -> Iterator[Facts]:
    """Yield the models to train, the slowest first: they would be waited for at the end."""
    for seed in args.seeds:
        for name in sorted(args.only, key=lambda name: name == "delicious"):
            for d in sorted(args.widths, reverse=True):
                for layer in args.layers:
                    if layer == "dft, same width" and seed != args.seeds[0]:
                        continue
                    base = {"data": name, "layer": layer, "d": d, "seed": seed}
                    if args.stage == "train":
                        yield base
                        continue
                    yield {**base, "changed": {}}
                    for what, values in TUNED.items():
                        for value in values:
                            idle = what == "order" and layer == "bottleneck"
                            if not idle and value != SETTINGS.get(what, "cooccurrence"):
                                yield {**base, "changed": {what: value}}


def measure(task: tuple[Facts, Facts]) -> tuple[Facts, dict[str, np.ndarray]]:
    """Train one model; return its scores and, where they are kept, its output weights."""
    import torch

    cell, args = task
    torch.set_float32_matmul_precision("high")
    data = load(args["features"] / f"{cell['data']}.npz", args["stage"] == "tune", args["rows"])
    started = time.perf_counter()
    model = classifier(cell, data, args["device"]).fit(data.X, data.Y)
    seconds = time.perf_counter() - started
    best = min(model.history_, key=lambda epoch: epoch["valid_loss"])
    out = {
        **cell,
        "k": int(getattr(model.network_.head, "k", 0)),
        "dimensions": int(model.network_.head.width),
        "parameters": model.network_.head.n_parameters,
        "epochs": len(model.history_),
        "best_epoch": best["epoch"],
        "valid_loss": best["valid_loss"],
        "seconds": seconds,
        "device": next(model.network_.parameters()).device.type,
    }
    weights: dict[str, np.ndarray] = {}
    if args["stage"] == "train":
        weights = rounded_weights(model, cell)
        few = data.Y.shape[1] <= 5000
        wide = cell["d"] > KEPT_OF_OTHER_SEEDS
        if (wide and cell["seed"] != 0) or (cell["d"] > KEPT_OF_MANY_LABELS and not few):
            weights = {}
        if cell["layer"] == "dft, same width":
            weights = {}
    return out | scores(model, data), weights


_loaded: dict[tuple[Any, ...], Prepared] = {}
_orders: dict[tuple[Any, ...], np.ndarray] = {}


def load(file: Path, tuning: bool, rows: int | None) -> Prepared:
    if (file, tuning, rows) not in _loaded:
        found = read_features(file)
        if tuning:  # a tenth of the training rows takes the place of the test rows
            train, test = split_random(found.Y, test_size=0.1, random_state=99)
            found = Prepared(found.X[train], found.Y[train], found.X[test], found.Y[test])
        _loaded[file, tuning, rows] = Prepared(found.X[:rows], found.Y[:rows], found.Xt, found.Yt)
    return _loaded[file, tuning, rows]


def classifier(cell: Facts, data: Prepared, device: str | None) -> BottleneckClassifier:
    k, width = int(np.diff(data.Y.indptr).max()), cell["d"]
    if cell["layer"] == "dft, same width":
        k = max(1, min(k, (width - width // 4 - 1) // 2))
        width -= 2 * k + 1
    about = (cell["data"], data.Y.shape)
    if about not in _orders and cell["layer"] != "bottleneck":
        _orders[about] = circle_order(data.Y)  # what order="cooccurrence" does, once for all models
    settings = {"order": _orders.get(about), **SETTINGS, **cell.get("changed", {})}
    return BottleneckClassifier(
        head="bottleneck" if cell["layer"] == "bottleneck" else "dft",
        k=k,
        width=width,
        random_state=cell["seed"],
        device=device,
        **settings,
    )


def rounded_weights(model: BottleneckClassifier, cell: Facts) -> dict[str, np.ndarray]:
    """Round the trained output weights to 16 bits, in the model too, and return them with the places of the labels."""
    import torch

    head = model.network_.head
    name = f"{cell['layer']}|{cell['d']}|{cell['seed']}"
    trained = head.scores.weight if cell["layer"] == "bottleneck" else head.slack
    out = {}
    if trained is not None:
        with torch.no_grad():
            trained.copy_(trained.half().float())
        out[f"{name}|trained"] = trained.detach().half().cpu().numpy()
    if cell["layer"] != "bottleneck":
        out[f"{name}|places"] = head.order.cpu().numpy().astype(np.uint16)
        out[f"{name}|k"] = np.array(head.k)
    return out


def scores(model: BottleneckClassifier, data: Prepared) -> Facts:
    top = model.predict_topk(data.Xt, k=10)
    out: Facts = {f"p@{k}": 100 * float(precision_at_k(data.Yt, top, k)) for k in (1, 3, 5)}
    for k in (5, 10):
        p, r = (100 * float(metric(data.Yt, top, k)) for metric in (precision_at_k, recall_at_k))
        out[f"f1@{k}"] = 2 * p * r / (p + r) if p + r else 0.0
    return out


# --- audits -----------------------------------------------------------------------------------------------------------


def audit_all(args: argparse.Namespace, facts: Facts) -> None:
    done = {key(found) for found in facts["audits"]} if args.resume else set()
    facts["audits"] = [found for found in facts["audits"] if key(found) in done]
    for name in args.only:
        data = read_features(args.features / f"{name}.npz")
        for kept in sorted(args.weights.glob(f"{name}*.npz")):
            file = np.load(kept)
            models = sorted({tuple(entry.split("|")[:3]) for entry in file}, key=lambda m: (int(m[1]), m[2], m[0]))
            for layer, d, seed in models:
                cell = {"data": name, "layer": layer, "d": int(d), "seed": int(seed)}
                skipped = layer not in args.layers or int(d) not in args.widths or int(seed) not in args.seeds
                if skipped or key(cell) in done:
                    continue
                W = output_weights(file, f"{layer}|{d}|{seed}", data.Y.shape[1])
                found = cell | audit_one(W, data, args.sets)
                facts["audits"].append(found)
                print(json.dumps(found), flush=True)
                write(facts, args.output)


def output_weights(file: Any, name: str, n_labels: int) -> np.ndarray:
    """Return the weights as the model had them: fixed columns as 32-bit floats, then the trained ones."""
    parts = []
    if f"{name}|places" in file:
        fixed = dft_matrix(n_labels, int(file[f"{name}|k"])).astype(np.float32)
        parts.append(fixed[file[f"{name}|places"].astype(np.int64)])
    if f"{name}|trained" in file:
        parts.append(file[f"{name}|trained"].astype(np.float32))
    return np.hstack(parts)


def audit_one(W: np.ndarray, data: Prepared, sets: int | None) -> Facts:
    truth = sp.csr_array(data.Yt[:, : W.shape[0]])
    if sets is not None and sets < truth.shape[0]:
        truth = truth[np.sort(np.random.default_rng(0).choice(truth.shape[0], sets, replace=False))]
    started = time.perf_counter()
    found = argmaxable(W, truth, radius="bound", eps=1e-8, seconds=SLOW_AUDIT)
    seconds = time.perf_counter() - started
    count = {verdict: int((found.verdicts == verdict).sum()) for verdict in set(found.verdicts.tolist())}
    total = len(found.members)
    never = count.get("not argmaxable", 0)
    rows = int(found.counts[found.verdicts == "not argmaxable"].sum())
    return {
        "sets": total,
        "not_argmaxable": never,
        "eps_argmaxable": count.get("eps-argmaxable", 0),
        "argmaxable": count.get("eps-argmaxable", 0) + count.get("argmaxable", 0),
        "undecided": count.get("undecided", 0),
        "share_not_argmaxable": never / total,
        "rows_not_argmaxable": rows / truth.shape[0],
        "seconds": seconds,
    }


# --- results ----------------------------------------------------------------------------------------------------------


def summarise(facts: Facts) -> Facts:
    """Return means over seeds, by data set, layer and d; and whether dft is at least as good as the bottleneck."""
    out: Facts = {}
    for run in facts["runs"]:
        at = out.setdefault(run["data"], {}).setdefault(run["layer"], {}).setdefault(str(run["d"]), {})
        at.setdefault("_runs", []).append(run)
    for audit in facts["audits"]:
        at = out.get(audit["data"], {}).get(audit["layer"], {}).get(str(audit["d"]))
        if at is not None:
            at.setdefault("_audits", []).append(audit)
    for layers in out.values():
        for widths in layers.values():
            for d, at in widths.items():
                runs, audits = at.pop("_runs"), at.pop("_audits", [])
                names = ("p@1", "p@3", "p@5", "f1@5", "f1@10", "best_epoch", "epochs", "seconds")
                widths[d] = {name: statistics.mean(run[name] for run in runs) for name in names}
                widths[d] |= {"f1@10 sd": spread([run["f1@10"] for run in runs]), "seeds": len(runs)}
                widths[d] |= {name: runs[0][name] for name in ("parameters", "dimensions", "k")}
                if audits:
                    never, undecided, sets = (
                        sum(audit[name] for audit in audits) for name in ("not_argmaxable", "undecided", "sets")
                    )
                    widths[d] |= {"not_argmaxable": never / sets, "undecided": undecided / sets}
                    widths[d] |= {"audited_seeds": len(audits), "audited_sets": sets}
    return out


def spread(values: list[float]) -> float | None:
    return statistics.stdev(values) if len(values) > 1 else None


def key(run: Facts) -> tuple[Any, ...]:
    return run["data"], run["layer"], run["d"], run["seed"], json.dumps(run.get("changed"), sort_keys=True)


def line(run: Facts) -> str:
    changed = f" {run['changed']}" if run.get("changed") else ""
    return (
        f"{run['data']}, {run['layer']}, d={run['d']}, seed {run['seed']}{changed}: F1@10 {run['f1@10']:.2f}, P@1 "
        f"{run['p@1']:.2f}, loss {1e3 * run['valid_loss']:.3f}, best epoch {run['best_epoch']} of {run['epochs']}, "
        f"{run['parameters']:,} parameters, {run['seconds']:.1f} s"
    )


def show(facts: Facts) -> None:
    for data, layers in facts["summary"].items():
        print(f"\n{data}: F1@10, P@5, parameters, best epoch; share of test label sets that can never come out")
        for layer, widths in layers.items():
            for d, at in sorted(widths.items(), key=lambda item: int(item[0])):
                never = f"{100 * at['not_argmaxable']:.2f}%" if "not_argmaxable" in at else "not audited"
                print(
                    f"  {layer:<16} d={d:<4} {at['f1@10']:6.2f} ± {at['f1@10 sd'] or 0:.2f}  {at['p@5']:6.2f}  "
                    f"{at['parameters']:>10,}  {at['best_epoch']:5.1f}  {never}"
                )


def write(facts: Facts, output: Path) -> None:
    output.parent.mkdir(parents=True, exist_ok=True)
    part = output.with_suffix(".part")
    part.write_text(json.dumps(facts, indent=1) + "\n")
    part.replace(output)


def command() -> str:
    return "python benchmarks/bottleneck_layers.py " + " ".join(
        word if not word.startswith("/") else Path(word).name.upper() for word in sys.argv[1:]
    )


if __name__ == "__main__":
    main()
