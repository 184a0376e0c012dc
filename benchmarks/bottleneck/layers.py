"""Compare narrow output layers: which label sets each can produce at all, and how well they predict.

    python benchmarks/bottleneck/layers.py --stage prepare --data FOLDER --features FEATURES
    python benchmarks/bottleneck/layers.py --stage train --features FEATURES --weights WEIGHTS     (a GPU helps)
    python benchmarks/bottleneck/layers.py --stage audit --features FEATURES --weights WEIGHTS

FOLDER holds `pubmed-mesh`, `eurlex57k` and `delicious` (default LONGTAIL_DATA). The features are fixed (see
`layer_features.py`); a network with one hidden layer of 512 units stands between them and the output layer. Over d and
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
the scale of the fixed part (`GAIN` in longtail.bottleneck.output_layers) was chosen on held-out rows of pubmed-mesh and
eurlex57k. Results are written after every model; `--resume` goes on. Audits of wide layers with many labels take long;
`--sets` takes a sample of the test rows for them, and the number of sets is in the results.
"""

from __future__ import annotations

import argparse
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

from benchmarks.bottleneck.layer_features import DATA_SETS, Prepared, read_features, write_features
from benchmarks.harness.program import Deadline, Facts, command, make_parser, read_results, write_results
from benchmarks.harness.scores import precisions, spread
from benchmarks.harness.terminal import show_table
from benchmarks.harness.timing import timed
from longtail.audit import argmaxable
from longtail.bottleneck import BottleneckClassifier, circle_order, dft_matrix
from longtail.data import split_random
from longtail.metrics import precision_at_k, recall_at_k

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
        facts |= read_results(args.output)
    facts["command"][args.stage] = command()
    if args.stage == "audit":
        audit_all(args, facts)
    else:
        train_all(args, facts)
    facts["summary"] = summarise(facts)
    write_results(facts, args.output)
    show(facts["summary"])


def arguments() -> argparse.Namespace:
    parser = make_parser(__doc__, "bottleneck.json", data="optional", seeds=(0, 1, 2), resume=True)
    parser.add_argument("--stage", choices=["prepare", "tune", "train", "audit"], required=True)
    parser.add_argument("--work", type=Path, default=Path("build/benchmarks"), help="folder for TF-IDF rows")
    parser.add_argument("--features", type=Path, required=True, help="folder of the prepared features")
    parser.add_argument("--weights", type=Path, help="folder for output weights, one file a data set")
    parser.add_argument("--only", nargs="+", default=list(DATA_SETS), choices=DATA_SETS)
    parser.add_argument("--layers", nargs="+", default=list(LAYERS), choices=LAYERS)
    parser.add_argument("--widths", nargs="+", type=int, default=list(WIDTHS))
    parser.add_argument("--rows", type=int, help="train on so many rows only, for a quick look")
    parser.add_argument("--processes", type=int, default=1, help="models trained side by side")
    parser.add_argument("--device", default=None)
    parser.add_argument("--sets", type=int, help="audit a random sample of so many test rows, for wide layers")
    parser.add_argument("--minutes", type=float, help="end training after so long; --resume goes on")
    args = parser.parse_args()
    if args.stage == "prepare" and args.data is None:
        parser.error("the stage prepare needs --data FOLDER")
    return args


# --- training ---------------------------------------------------------------------------------------------------------


def train_all(args: argparse.Namespace, facts: Facts) -> None:
    """Train all models that have no results yet, and keep their output weights."""
    tuning = args.stage == "tune"
    runs = facts["tuning" if tuning else "runs"]
    done = {key(run) for run in runs}
    wanted = [cell for cell in cells(args) if key(cell) not in done]
    deadline = Deadline(args.minutes)
    kept: dict[str, dict[str, np.ndarray]] = {}
    context = multiprocessing.get_context("spawn")
    with context.Pool(args.processes) as pool:
        for run, weights in pool.imap_unordered(measure, [(cell, vars(args)) for cell in wanted]):
            runs.append(run)
            kept.setdefault(file_of(run), {}).update(weights)
            print(line(run), flush=True)
            write_results(facts, args.output)
            if deadline.passed():
                pool.terminate()
                break
    if args.weights is not None and not tuning:
        args.weights.mkdir(parents=True, exist_ok=True)
        for name, arrays in kept.items():
            if arrays:
                np.savez(args.weights / f"{name}.npz", **arrays)  # type: ignore[arg-type]


def file_of(run: Facts) -> str:
    """Return the name of the file that keeps the weights of a model; two a data set, so that none is too large."""
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
    spent, model = timed(lambda: classifier(cell, data, args["device"]).fit(data.X, data.Y))
    best = min(model.history_, key=lambda epoch: epoch["valid_loss"])
    out = {
        **cell,
        "k": int(getattr(model.network_.head, "k", 0)),
        "dimensions": int(model.network_.head.width),
        "parameters": model.network_.head.n_parameters,
        "epochs": len(model.history_),
        "best_epoch": best["epoch"],
        "valid_loss": best["valid_loss"],
        "seconds": spent.wall,
        "device": next(model.network_.parameters()).device.type,
    }
    weights = rounded_weights(model, cell) if args["stage"] == "train" else {}
    return out | scores(model, data), weights if is_kept(cell, data.Y.shape[1]) else {}


def is_kept(cell: Facts, n_labels: int) -> bool:
    """Say whether the weights of a model are kept for the audit: not all, they are large."""
    if cell["layer"] == "dft, same width" or (cell["d"] > KEPT_OF_OTHER_SEEDS and cell["seed"] != 0):
        return False
    return cell["d"] <= KEPT_OF_MANY_LABELS or n_labels <= 5000


@cache
def load(file: Path, tuning: bool, rows: int | None) -> Prepared:
    """Read the features of a data set; in tuning, a tenth of the training rows takes the place of the test rows."""
    data = read_features(file)
    if tuning:
        train, test = split_random(data.Y, test_size=0.1, random_state=99)
        data = Prepared(data.X[train], data.Y[train], data.X[test], data.Y[test])
    return Prepared(data.X[:rows], data.Y[:rows], data.Xt, data.Yt)


_orders: dict[tuple[Any, ...], np.ndarray] = {}


def classifier(cell: Facts, data: Prepared, device: str | None) -> BottleneckClassifier:
    """Return the model of a cell, not yet trained."""
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
    """Round the trained output weights to 16 bits, in the model too, and return them with the order of the labels."""
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
    """Return precision and F1 on the test rows, in percent."""
    top = model.predict_topk(data.Xt, k=10)
    out: Facts = precisions(data.Yt, top)
    for k in (5, 10):
        p, r = (100 * float(metric(data.Yt, top, k)) for metric in (precision_at_k, recall_at_k))
        out[f"f1@{k}"] = 2 * p * r / (p + r) if p + r else 0.0
    return out


# --- audits -----------------------------------------------------------------------------------------------------------


def audit_all(args: argparse.Namespace, facts: Facts) -> None:
    """Audit all kept layers that have no audit yet."""
    done = {key(audit) for audit in facts["audits"]} if args.resume else set()
    facts["audits"] = [audit for audit in facts["audits"] if key(audit) in done]
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
                facts["audits"].append(cell | audit_one(W, data, args.sets))
                print(json.dumps(facts["audits"][-1]), flush=True)
                write_results(facts, args.output)


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
    """Audit the label sets of the test rows, or of a sample of them; return how many can never come out."""
    truth = sp.csr_array(data.Yt[:, : W.shape[0]])
    if sets is not None and sets < truth.shape[0]:
        truth = truth[np.sort(np.random.default_rng(0).choice(truth.shape[0], sets, replace=False))]
    spent, audit = timed(lambda: argmaxable(W, truth, radius="bound", eps=1e-8, seconds=SLOW_AUDIT))
    count = {verdict: int((audit.verdicts == verdict).sum()) for verdict in set(audit.verdicts.tolist())}
    total = len(audit.members)
    never = count.get("not argmaxable", 0)
    rows = int(audit.counts[audit.verdicts == "not argmaxable"].sum())
    return {
        "sets": total,
        "not_argmaxable": never,
        "eps_argmaxable": count.get("eps-argmaxable", 0),
        "argmaxable": count.get("eps-argmaxable", 0) + count.get("argmaxable", 0),
        "undecided": count.get("undecided", 0),
        "share_not_argmaxable": never / total,
        "rows_not_argmaxable": rows / truth.shape[0],
        "seconds": spent.wall,
    }


# --- results ----------------------------------------------------------------------------------------------------------


def summarise(facts: Facts) -> Facts:
    """Return means over seeds, by data set, layer and d, with the audits of the same layers."""
    groups: dict[tuple[str, str, str], tuple[list[Facts], list[Facts]]] = {}
    for run in facts["runs"]:
        groups.setdefault((run["data"], run["layer"], str(run["d"])), ([], []))[0].append(run)
    for audit in facts["audits"]:
        at = audit["data"], audit["layer"], str(audit["d"])
        if at in groups:
            groups[at][1].append(audit)
    out: Facts = {}
    for (data, layer, d), (runs, audits) in groups.items():
        out.setdefault(data, {}).setdefault(layer, {})[d] = over_seeds(runs, audits)
    return out


def over_seeds(runs: list[Facts], audits: list[Facts]) -> Facts:
    """Return the means of one layer over seeds."""
    names = ("p@1", "p@3", "p@5", "f1@5", "f1@10", "best_epoch", "epochs", "seconds")
    facts: Facts = {name: statistics.mean(run[name] for run in runs) for name in names}
    facts |= {"f1@10 sd": spread([run["f1@10"] for run in runs]), "seeds": len(runs)}
    facts |= {name: runs[0][name] for name in ("parameters", "dimensions", "k")}
    if audits:
        never, undecided, sets = (
            sum(audit[name] for audit in audits) for name in ("not_argmaxable", "undecided", "sets")
        )
        facts |= {"not_argmaxable": never / sets, "undecided": undecided / sets}
        facts |= {"audited_seeds": len(audits), "audited_sets": sets}
    return facts


def key(run: Facts) -> tuple[Any, ...]:
    """Return what tells a run from all others."""
    return run["data"], run["layer"], run["d"], run["seed"], json.dumps(run.get("changed"), sort_keys=True)


def line(run: Facts) -> str:
    """Return one run in one line."""
    changed = f" {run['changed']}" if run.get("changed") else ""
    return (
        f"{run['data']}, {run['layer']}, d={run['d']}, seed {run['seed']}{changed}: F1@10 {run['f1@10']:.2f}, P@1 "
        f"{run['p@1']:.2f}, loss {1e3 * run['valid_loss']:.3f}, best epoch {run['best_epoch']} of {run['epochs']}, "
        f"{run['parameters']:,} parameters, {run['seconds']:.1f} s"
    )


def show(summary: Facts) -> None:
    """Print means, and the share of label sets of test rows that can never come out."""
    for data, layers in summary.items():
        rows = []
        for layer, widths in layers.items():
            for d, at in sorted(widths.items(), key=lambda item: int(item[0])):
                never = f"{100 * at['not_argmaxable']:.2f}%" if "not_argmaxable" in at else "not audited"
                f1 = f"{at['f1@10']:.2f} ± {at['f1@10 sd'] or 0:.2f}"
                rows.append([layer, d, f1, f"{at['p@5']:.2f}", f"{at['parameters']:,}", at["best_epoch"], never])
        show_table(data, ["layer", "d", "F1@10", "P@5", "parameters", "best epoch", "never"], rows)


if __name__ == "__main__":
    main()
