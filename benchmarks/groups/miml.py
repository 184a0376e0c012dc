"""Compare ways to learn labels of rows from bags of rows: Deep-MIML, the mask of EAGLE and our own.

    python benchmarks/groups/miml.py --data FOLDER --fashion FOLDER [--parts fashion scene] [--seeds 0 1 2] [--jobs 1]

- fashion: images of train are put into random bags of 4 and of 50; only the labels of bags are kept (of 4 as sets, of
  50 with counts, as in the paper: nearly every bag of 50 has all labels; "sets" leaves the counts out). Accuracy is
  measured on single test images. "ours" is the mask with vectors of `Eagle(assign="auto")`; "ours, shares" and "ours,
  sets" are losses for rows with one label each, with counts and without.
  `--fashion` holds the four idx files of the Debian package `dataset-fashion-mnist`.
- scene: `miml-scene` in FOLDER (default LONGTAIL_DATA), 2,000 images of nine patches; ten folds, labels of images.

Settings were chosen by Deep-MIML's accuracy on 10,000 images held out of train (`--held-out` measures there), or on a
fifth of a first fold's training part; so was tau for "eagle-0" and "eagle" with bags of 4, for "eagle-0" with bags of
50 and for scenes; the other taus are set after these. Every model is written to the file of results as it is found;
`--resume` goes on where a run ended. `--jobs` models are trained side by side; on a CPU leave it at 1.
"""

from __future__ import annotations

import argparse
import gzip
import itertools
import json
import multiprocessing
import sys
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.metrics import coverage_error, hamming_loss, label_ranking_average_precision_score, label_ranking_loss

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from benchmarks.harness.program import Facts, make_parser, start_facts, write_results
from benchmarks.harness.scores import mean_and_sd, rounded
from benchmarks.harness.timing import timed
from longtail.data import TopK, group_randomly
from longtail.groups import MIMLClassifier

HELD_OUT = 10_000  # images of train
FOLDS = 10
METHODS: dict[str, Facts] = {
    "deep-miml": {"mask": "none"},
    "eagle-0": {"mask": "eagle-0"},
    "eagle": {"mask": "eagle"},
    "ours": {"mask": "auto"},
    "ours, shares": {"mask": "none", "loss": "shares"},
    "ours, sets": {"mask": "none", "loss": "sets"},
    "deep-miml, sets": {"mask": "none", "loss": "presence"},
    "eagle, sets": {"mask": "eagle", "loss": "presence"},
}
SETTINGS: dict[str, Facts] = {
    "fashion 4": {"loss": "presence", "hidden": 256, "concepts": 5, "dropout": 0.3, "batch_size": 64, "epochs": 40},
    "fashion 50": {"loss": "counts", "hidden": 256, "concepts": 5, "dropout": 0.3, "batch_size": 16, "epochs": 60},
    "scene": {
        "loss": "presence",
        "hidden": 128,
        "concepts": 10,
        "dropout": 0.3,
        "batch_size": 32,
        "epochs": 60,
        "lr": 3e-3,
        "scaling": "standard",
    },
}
TAUS: dict[str, dict[str, float]] = {
    "fashion 4": {"eagle-0": 0.5, "eagle": 0.5, "ours": 0.5},
    "fashion 50": {"eagle-0": 2.0, "eagle": 1.0, "ours": 2.0, "eagle, sets": 1.0},
    "scene": {"eagle-0": 1.0, "eagle": 1.0, "ours": 0.5},
}
# Shen et al. 2020, Table 3: accuracy on the test images
PAPER = {
    "fashion 4": {"deep-miml": 84.70, "eagle-0": 84.89, "eagle": 85.09},
    "fashion 50": {"deep-miml": 19.00, "eagle-0": 27.62, "eagle": 28.65},
}
LOWER_IS_BETTER = ("hamming loss", "ranking loss", "one-error", "coverage")


def main() -> None:
    args = options()
    facts = start_facts(args, {"runs": []})
    known = {key(run) for run in facts["runs"]}
    todo = [cell for cell in cells(args) if key(cell) not in known]
    for run in run_all(todo, args):
        facts["runs"].append(run)
        print(line(run), flush=True)
        facts["settings"], facts["summary"] = SETTINGS, summarise(facts["runs"])
        write_results(facts, args.output)
    show(summarise(facts["runs"]))


def cells(args: argparse.Namespace) -> Iterator[Facts]:
    """Yield the models to train."""
    for seed, part, method in itertools.product(args.seeds, args.parts, args.methods):
        masked = {**METHODS[method], **json.loads(args.set)}["mask"] != "none"
        taus = args.taus if masked else [None]
        if part == "fashion":
            for size, tau in itertools.product(args.sizes, taus):
                if size == 50 or method not in ("deep-miml, sets", "eagle, sets"):  # bags of 4 have sets anyway
                    yield {"part": f"fashion {size}", "method": method, "seed": seed, "tau": tau}
        elif "," not in method and (args.held_out or seed == args.seeds[0]):  # a scene may have several labels, once
            for fold, tau in itertools.product(range(1 if args.held_out else FOLDS), taus):
                yield {"part": "scene", "method": method, "seed": seed, "fold": fold, "tau": tau}


def run_all(todo: list[Facts], args: argparse.Namespace) -> Iterator[Facts]:
    """Train the models, some side by side, and yield the results as they come."""
    if args.jobs == 1:
        yield from (train_one(cell, args) for cell in todo)
        return
    with ProcessPoolExecutor(args.jobs, mp_context=multiprocessing.get_context("spawn")) as pool:
        for done in as_completed([pool.submit(train_one, cell, args) for cell in todo]):
            yield done.result()


def train_one(cell: Facts, args: argparse.Namespace) -> Facts:
    """Train one model and measure it."""
    import torch

    torch.set_num_threads(args.threads)
    part, method, seed = cell["part"], cell["method"], cell["seed"]
    settings = {**SETTINGS[part], **METHODS[method], **json.loads(args.set)}
    settings |= {"random_state": seed, "device": args.device}
    if settings["mask"] != "none":
        settings["tau"] = TAUS[part][method] if cell["tau"] is None else cell["tau"]
    model = MIMLClassifier(**settings)
    spent, scores = timed(scene if part == "scene" else fashion, cell, model, args)
    device = str(next(model.network_.parameters()).device.type)
    facts = {"epochs": len(model.history_), "seconds": round(spent.wall, 1), "on": device}
    return {**cell, "mask tau": settings.get("tau", 0.0), **scores, **facts}


def fashion(cell: Facts, model: MIMLClassifier, args: argparse.Namespace) -> Facts:
    """Return the accuracy on single test images of a model trained on bags."""
    size = int(cell["part"].split()[1])
    X, y = read_images(args.fashion, "train")
    if args.held_out:
        order = np.random.default_rng(cell["seed"]).permutation(y.size)
        X, y, X_test, y_test = X[order[HELD_OUT:]], y[order[HELD_OUT:]], X[order[:HELD_OUT]], y[order[:HELD_OUT]]
    else:
        X_test, y_test = read_images(args.fashion, "t10k")
    bags = group_randomly(sp.csr_array(np.eye(10, dtype=np.float32)[y]), size, random_state=cell["seed"])
    counts = bags.Y_groups.sign() if model.loss in ("presence", "sets") else bags.Y_groups
    model.fit(X, bags.groups, counts)
    return {"accuracy": round(100 * float((model.predict_topk(X_test, k=1).ids[:, 0] == y_test).mean()), 3)}


def scene(cell: Facts, model: MIMLClassifier, args: argparse.Namespace) -> Facts:
    """Return the measures of one fold."""
    X, bag_of, Y = read_scenes(args.data / "miml-scene" / "miml_03_data.arff")
    fold_of = np.random.default_rng(cell["seed"]).permutation(Y.shape[0]) % FOLDS
    train, test = np.flatnonzero(fold_of != cell["fold"]), np.flatnonzero(fold_of == cell["fold"])
    if args.held_out:
        train = np.random.default_rng(cell["seed"]).permutation(train)
        train, test = np.sort(train[len(train) // 5 :]), np.sort(train[: len(train) // 5])
    model.fit(*bags_of(X, bag_of, train), Y[train])
    top = model.predict_groups(*bags_of(X, bag_of, test), k=Y.shape[1])
    return measures(top, Y[test])


def bags_of(X: np.ndarray, bag_of: np.ndarray, bags: np.ndarray) -> tuple[np.ndarray, sp.csr_array]:
    """Return the rows of some bags and which of these bags they are in."""
    rows = np.flatnonzero(np.isin(bag_of, bags))
    column = np.searchsorted(bags, bag_of[rows])
    return X[rows], sp.csr_array((np.ones(rows.size), (np.arange(rows.size), column)), shape=(rows.size, bags.size))


def measures(top: TopK, Y: np.ndarray) -> Facts:
    """Return the measures of the MIML papers; coverage is the depth, from 0, where all labels are found, per label."""
    scores = np.empty(Y.shape)
    np.put_along_axis(scores, top.ids.astype(np.int64), top.scores, axis=1)
    values = {
        "hamming loss": hamming_loss(Y, scores > 0),
        "ranking loss": label_ranking_loss(Y, scores),
        "one-error": 1 - np.take_along_axis(Y, top.ids[:, :1].astype(np.int64), axis=1).mean(),
        "coverage": (coverage_error(Y, scores) - 1) / Y.shape[1],
        "average precision": label_ranking_average_precision_score(Y, scores),
    }
    return rounded(values, 5)


def read_images(folder: Path, part: str) -> tuple[np.ndarray, np.ndarray]:
    """Return images as rows of 784 values from 0 to 1, and their labels."""
    images = gzip.decompress((folder / f"{part}-images-idx3-ubyte.gz").read_bytes())
    labels = gzip.decompress((folder / f"{part}-labels-idx1-ubyte.gz").read_bytes())
    X = np.frombuffer(images, np.uint8, offset=16).reshape(-1, 784).astype(np.float32) / 255
    return X, np.frombuffer(labels, np.uint8, offset=8).astype(np.int64)


def read_scenes(file: Path) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return patches, the number of each patch's image, and the images' labels, from a relational ARFF file."""
    rows: list[list[float]] = []
    bag_of: list[int] = []
    labels: list[list[float]] = []
    lines = iter(file.read_text("utf-8").splitlines())
    for text in lines:
        if text.strip().lower() == "@data":
            break
    for text in lines:
        if not text.strip():
            continue
        _, patches, marks = text.split('"')
        for patch in patches.split("\\n"):
            rows.append([float(value) for value in patch.split(",")])
            bag_of.append(len(labels))
        labels.append([float(mark) for mark in marks.strip(", ").split(",")])
    return np.array(rows, dtype=np.float32), np.array(bag_of), np.array(labels, dtype=np.float32)


def summarise(runs: list[Facts]) -> Facts:
    """Return mean and standard deviation over seeds (or folds), beside the paper's figure where there is one."""
    out: Facts = {}
    groups = sorted({(run["part"], run["method"], run["mask tau"]) for run in runs})
    for part, method, tau in groups:
        same = [run for run in runs if (run["part"], run["method"], run["mask tau"]) == (part, method, tau)]
        names = ("accuracy",) if part != "scene" else (*LOWER_IS_BETTER, "average precision")
        facts: Facts = {"tau": tau, "runs": len(same)}
        for name in names:
            facts[name] = mean_and_sd([run[name] for run in same])
        if method in PAPER.get(part, {}):
            facts["paper"] = PAPER[part][method]
            facts["reached"] = facts["accuracy"]["mean"] >= PAPER[part][method]
        label = method if len({t for p, m, t in groups if (p, m) == (part, method)}) == 1 else f"{method}, tau {tau:g}"
        out.setdefault(part, {})[label] = facts
    return out


def show(summary: Facts) -> None:
    """Print means over seeds or folds, beside the paper's."""
    for part, methods in summary.items():
        print(f"\n{part}")
        for method, facts in methods.items():
            names = [name for name, value in facts.items() if isinstance(value, dict)]
            shown = ", ".join(f"{name} {facts[name]['mean']} ± {facts[name]['sd'] or 0}" for name in names)
            reached = "reached" if facts.get("reached") else "NOT reached"
            paper = f"; paper {facts['paper']}, {reached}" if "paper" in facts else ""
            print(f"  {method:<18} tau {facts['tau']:g}: {shown} ({facts['runs']} runs){paper}")


def line(run: Facts) -> str:
    """Return one run in one line."""
    head = ", ".join(str(part) for part in key(run) if part is not None)
    score = run.get("accuracy", run.get("average precision"))
    return f"{head}: {score} after {run['epochs']} epochs, {run['seconds']} s"


def key(run: Facts) -> tuple[Any, ...]:
    """Return what tells a run from all others."""
    return tuple(run.get(name) for name in ("part", "method", "seed", "fold", "tau"))


def options() -> argparse.Namespace:
    parser = make_parser(__doc__, "miml.json", data="optional", seeds=(0, 1, 2), resume=True)
    parser.add_argument("--fashion", type=Path, default=Path("/usr/share/datasets/fashion-mnist"))
    parser.add_argument("--parts", nargs="+", choices=("fashion", "scene"), default=["fashion", "scene"])
    parser.add_argument("--sizes", nargs="+", type=int, choices=(4, 50), default=[4, 50])
    parser.add_argument("--methods", nargs="+", choices=tuple(METHODS), default=list(METHODS))
    parser.add_argument("--taus", nargs="+", type=float, default=[None], help="instead of the chosen ones")
    parser.add_argument("--set", default="{}", help="JSON of parameters of MIMLClassifier, to try others")
    parser.add_argument("--held-out", action="store_true", help="measure on a part of train, to choose settings")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--threads", type=int, default=2, help="of torch, for each job")
    parser.add_argument("--device", default=None)
    args = parser.parse_args()
    if "scene" in args.parts and args.data is None:
        parser.error("the part scene needs --data FOLDER")
    return args


if __name__ == "__main__":
    main()
