"""Measure what overlap gains (labels in more than one leaf), on labels joined on purpose and on real ones, and costs.

    python benchmarks/tree/overlap.py --data FOLDER

FOLDER holds `eurlex-4k`, `eurlex57k`, `yso-titles` and `pubmed-mesh` (default LONGTAIL_DATA). Three parts, over seeds:

- fused: labels joined k at a time, easy, medium and hard. A tree without overlap, with two leaf slots a label, with as
  many as pay, with two as published (every slot learns from all positives, mean of slots), and with a second one at
  random. All with small leaves and a narrow beam, the same for all: joined labels are few, and with the default beam of
  10 almost every leaf is looked at, so that no label can be missed in the first place.
- real: the labels as they are, with the default settings and with a narrow beam: leaf slots per label from 1 to 6
  (called places in the results), "auto", as published, without training the levels above again, two rounds; and
  one-vs-all, which misses no leaf.
- cost: training and prediction time against the plain tree, and against the plain tree with the same beam.

Scores are on the test rows; nothing was chosen by them. Every model is a line in the file of results, written as it is
found; `--resume` goes on where a run ended.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

import longtail as lt
from benchmarks.harness.prepared_data import prepare, read_prepared
from benchmarks.harness.program import Deadline, Facts, make_parser, start_facts, write_results
from benchmarks.harness.scores import KS, mean_of, precisions, spread
from benchmarks.harness.terminal import show_table
from benchmarks.harness.timing import timed
from longtail.data import entangle_labels, fused_labels
from longtail.metrics import disentanglement, share_apart
from longtail.text import pifa
from longtail.tree import LabelTree, build_tree, matched_leaves, recalled

NARROW: Facts = {"max_leaf": 40, "beam": 4}
FUSED_DATA = ("eurlex-4k", "pubmed-mesh", "eurlex57k")
REAL_DATA = (*FUSED_DATA, "yso-titles")
PUBLISHED: Facts = {"overlap": 2, "split_positives": False, "merge": "mean"}
FUSED: dict[str, Facts] = {
    "plain": {},
    "overlap": {"overlap": 2},
    "auto": {"overlap": "auto"},
    "published": PUBLISHED,
    "random": {"split_positives": False},
}
REAL: dict[str, Facts] = {
    "1 place": {},
    "2 places": {"overlap": 2},
    "auto": {"overlap": "auto"},
    "2 as published": PUBLISHED,
    "2, levels above kept": {"overlap": 2, "rounds": 0},
    "beam 4": {"beam": 4},
    "beam 4, 2 places": {"overlap": 2, "beam": 4},
    "beam 4, auto": {"overlap": "auto", "beam": 4},
    "3 places": {"overlap": 3},
    "2, beam 10": {"overlap": 2, "beam": 10},
    "2, two rounds": {"overlap": 2, "rounds": 2},
    "4 places": {"overlap": 4},
    "5 places": {"overlap": 5},
    "6 places": {"overlap": 6},
}
LONG = ("2, beam 10", "2, two rounds", "4 places", "5 places", "6 places")  # one seed on the two large data sets
CEILING_DATA = ("eurlex-4k", "pubmed-mesh")  # one-vs-all takes hours on the others


def main() -> None:
    args = options()
    facts = start_facts(args, {"narrow": NARROW, "runs": []})
    known = {key(run) for run in facts["runs"]}
    deadline = Deadline(args.minutes)
    for cell in cells(args):
        if key(cell) in known:
            continue
        if deadline.passed():
            break
        run = {**cell, **measure(cell, args)}
        facts["runs"].append(run)
        print(line(run), flush=True)
        facts["summary"] = summarise(facts["runs"])
        write_results(facts, args.output)
    show(summarise(facts["runs"]))


def options() -> argparse.Namespace:
    parser = make_parser(__doc__, "disentangle.json", data="required", seeds=(0, 1, 2), resume=True)
    parser.add_argument("--work", type=Path, default=Path("longtail-disentangle"), help="folder for prepared data")
    parser.add_argument("--parts", nargs="+", choices=("fused", "real", "cost"), default=["fused", "real", "cost"])
    parser.add_argument("--only", nargs="+", choices=REAL_DATA, default=list(REAL_DATA))
    parser.add_argument("--minutes", type=float, help="begin nothing new after so long")
    return parser.parse_args()


def cells(args: argparse.Namespace) -> Iterator[Facts]:
    """Yield what is to be measured: all of one seed first, small data first, so that a part of a run tells most."""
    for seed in args.seeds:
        for name in (name for name in REAL_DATA if name in args.only):
            if "cost" in args.parts and seed == args.seeds[0]:
                yield {"part": "cost", "data": name, "seed": seed, "model": "all"}
            if "fused" in args.parts and name in FUSED_DATA:
                for mode in ("hard", "easy", "medium"):
                    for k in (2, 4, 8):
                        for model in FUSED:
                            yield {"part": "fused", "data": name, "mode": mode, "k": k, "seed": seed, "model": model}
            if "real" in args.parts:
                for model in (m for m in REAL if name not in REAL_DATA[2:] or m not in LONG or seed == args.seeds[0]):
                    yield {"part": "real", "data": name, "seed": seed, "model": model}
                if name in CEILING_DATA and seed == args.seeds[0]:
                    yield {"part": "real", "data": name, "seed": seed, "model": "one-vs-all"}


def measure(cell: Facts, args: argparse.Namespace) -> Facts:
    """Measure one cell."""
    X, Y, Xt, Yt = load(cell["data"], args)
    if cell["part"] == "cost":
        return costs(X, Y, Xt, cell["seed"])
    if cell["part"] == "real":
        if cell["model"] == "one-vs-all":
            return judged(lt.OneVsAllClassifier(random_state=cell["seed"]), X, Y, Xt, Yt)
        return judged(lt.LabelTreeClassifier(**REAL[cell["model"]], random_state=cell["seed"]), X, Y, Xt, Yt)
    fused, new = joined(X, Y, cell)
    truth = fused_labels(sp.csr_array(Yt[:, : Y.shape[1]]), new)  # labels without training rows are left out
    model = lt.LabelTreeClassifier(**NARROW, **FUSED[cell["model"]], random_state=cell["seed"])
    tree = scattered(X, fused, cell["seed"]) if cell["model"] == "random" else None
    facts = judged(model, X, fused, Xt, truth, tree)
    if cell["mode"] == "hard" and cell["model"] == "overlap":
        facts["taken_apart"] = taken_apart(model, X, Y, new)
    return facts


_loaded: dict[str, Any] = {}


def load(name: str, args: argparse.Namespace) -> tuple[sp.csr_array, sp.csr_array, sp.csr_array, sp.csr_array]:
    """Return the rows and labels of train and test, as every comparison of trees here takes them."""
    if name not in _loaded:
        _loaded.clear()
        folder, _ = prepare(name, args.data, args.work)
        _loaded[name] = (*read_prepared(folder, "train"), *read_prepared(folder, "test"))
    return _loaded[name]


def joined(X: sp.csr_array, Y: sp.csr_array, cell: Facts) -> tuple[sp.csr_array, np.ndarray]:
    """Return the labels joined k at a time."""
    order = None
    if cell["mode"] != "hard":
        vectors = pifa(X, Y, keep=128)
        order = build_tree(vectors, branching=2, max_leaf=cell["k"], random_state=cell["seed"]).leaf_labels
    return entangle_labels(Y, cell["k"], cell["mode"], order=order, random_state=cell["seed"])


def scattered(X: sp.csr_array, Y: sp.csr_array, seed: int) -> LabelTree:
    """Return the plain tree with a second leaf slot for every label, drawn at random."""
    quick = lt.LabelTreeClassifier(**NARROW, random_state=seed, max_iter=1, tol=10.0, negatives="tfn")
    tree = quick.fit(X, Y).trees_[0]
    rng = np.random.default_rng(seed)
    slots = sp.lil_array(tree.slots())
    for label in range(tree.n_labels):
        slots[label, int(rng.integers(tree.n_leaves))] = 1
    return tree.with_slots(sp.csr_array(slots))


def judged(model: Any, X: Any, Y: Any, Xt: Any, Yt: Any, tree: LabelTree | None = None) -> Facts:
    """Train, predict, and return scores and costs."""
    training, _ = timed(lambda: model.fit(X, Y, tree=tree) if tree is not None else model.fit(X, Y))
    predicting, top = timed(lambda: model.predict_topk(Xt, k=max(KS)))
    facts: Facts = precisions(Yt, top)
    facts |= {"train_cpu_s": training.cpu, "predict_cpu_us": 1e6 * predicting.cpu / Xt.shape[0]}
    if hasattr(model, "trees_"):
        grown = model.trees_[0]
        facts |= {"leaves": grown.n_leaves, "places_per_label": grown.n_slots / Y.shape[1]}
        ids = matched_leaves(model, X).ids
        rows, ranks = np.nonzero(ids >= 0)
        ones = np.ones(rows.size, np.float32)
        matched = sp.csr_array((ones, (rows, ids[rows, ranks])), shape=(X.shape[0], grown.n_leaves))
        facts["recalled"] = recalled(matched, Y, grown.slots()) / Y.nnz
    return facts


def taken_apart(model: lt.LabelTreeClassifier, X: sp.csr_array, Y: sp.csr_array, new: np.ndarray) -> Facts:
    """Return whether the components of joined labels come to different leaves, against chance."""
    slots, matched = model.trees_[0].slots(), matched_leaves(model, X)
    return {**share_apart(Y, new, slots, matched), "information": disentanglement(Y, new, slots, matched)}


def costs(X: sp.csr_array, Y: sp.csr_array, Xt: sp.csr_array, seed: int, repeats: int = 3) -> Facts:
    """Return wall times of the plain tree and of overlap=2, taking turns, and their ratios."""
    models: dict[str, Facts] = {
        "plain": {},
        "overlap": {"overlap": 2},
        "plain, same beam": {"beam": 7},
        "two rounds": {"overlap": 2, "rounds": 2},
    }
    times: dict[str, list[tuple[float, float]]] = {name: [] for name in models}
    for repeat in range(repeats + 1):
        for name, params in models.items():
            model = lt.LabelTreeClassifier(**params, random_state=seed)
            rows = slice(2000) if repeat == 0 else slice(None)  # the first turn loads the kernels
            training, _ = timed(model.fit, X[rows], Y[rows])
            passes = [timed(partial(model.predict_topk, Xt, k=5))[0].wall for _ in range(3)]
            if repeat:
                times[name].append((training.wall, statistics.median(passes)))
    medians = {name: [statistics.median(t) for t in zip(*runs, strict=True)] for name, runs in times.items()}
    return {
        "seconds": {
            name: {"train": t, "predict_us_per_row": 1e6 * p / Xt.shape[0]} for name, (t, p) in medians.items()
        },
        "ratios": {
            name: {"train": t / medians["plain"][0], "predict": p / medians["plain"][1]}
            for name, (t, p) in medians.items()
            if name != "plain"
        },
    }


def summarise(runs: list[Facts]) -> Facts:
    """Return means and spreads over seeds, and gains over the plain tree of the same seed."""
    scored = [run for run in runs if run["part"] != "cost"]
    by_key = {key(run): run for run in scored}
    out: Facts = {"fused": {}, "real": {}, "cost": {r["data"]: r["ratios"] for r in runs if r["part"] == "cost"}}
    groups: dict[tuple[str, ...], list[Facts]] = {}
    for run in scored:
        cell = (f"{run['mode']} {run['k']}",) if run["part"] == "fused" else ()
        groups.setdefault((run["part"], run["data"], *cell, run["model"]), []).append(run)
    for (part, *where, model), same in groups.items():
        base = "plain" if part == "fused" else "1 place"
        at = out[part]
        for name in where:
            at = at.setdefault(name, {})
        at[model] = over_seeds(same, [by_key.get(key({**run, "model": base})) for run in same])
    return out


def over_seeds(runs: list[Facts], plain: list[Facts | None]) -> Facts:
    """Return the means of one model over seeds, and its gains over the plain trees."""
    facts: Facts = {"seeds": len(runs), **{name: mean_of(runs, name) for name in ("places_per_label", "recalled")}}
    for name in (f"p@{k}" for k in KS):
        values = [run[name] for run in runs]
        gains = [run[name] - base[name] for run, base in zip(runs, plain, strict=True) if base is not None]
        facts[name], facts[f"{name} sd"] = statistics.mean(values), spread(values)
        if gains:
            facts[f"{name} gain"], facts[f"{name} gain sd"] = statistics.mean(gains), spread(gains)
    apart = [run["taken_apart"] for run in runs if "taken_apart" in run]
    return facts | ({name: mean_of(apart, name) for name in ("apart", "apart_random")} if apart else {})


def key(run: Facts) -> tuple[Any, ...]:
    """Return what tells a run from all others."""
    return tuple(run.get(name) for name in ("part", "data", "mode", "k", "seed", "model"))


def line(run: Facts) -> str:
    """Return one run in one line."""
    head = ", ".join(str(part) for part in key(run) if part is not None)
    if run["part"] == "cost":
        return f"{head}: {json.dumps(run['ratios'])}"
    scores = "/".join(f"{run[f'p@{k}']:.2f}" for k in KS)
    return f"{head}: P@1/3/5 {scores}, {run.get('places_per_label', 1):.2f} leaf slots, {run['train_cpu_s']:.1f} CPU s"


def show(summary: Facts) -> None:
    """Print the gains of every part."""
    for data, groups in summary["fused"].items():
        names = [name for name in FUSED if name != "plain"]
        rows = [
            [name, f"{models['plain']['p@5']:.2f}", *(gain(models.get(other), "p@5") for other in names)]
            for name, models in sorted(groups.items())
        ]
        show_table(f"{data}, labels joined: P@5 of the plain tree, and gains", ["labels", "plain", *names], rows)
    for data, models in summary["real"].items():
        rows = [
            [model, m["seeds"], *(f"{m[f'p@{k}']:.2f}" for k in KS), *(gain(m, f"p@{k}") for k in KS)]
            for model, m in models.items()
        ]
        headings = ["", "seeds", *(f"P@{k}" for k in KS), *(f"gain @{k}" for k in KS)]
        show_table(f"{data}, labels as they are", headings, rows)
    for data, ratios in summary["cost"].items():
        rows = [[name, f"{r['train']:.2f}", f"{r['predict']:.2f}"] for name, r in ratios.items()]
        show_table(f"{data}, times against the plain tree", ["", "train", "predict"], rows)


def gain(facts: Facts | None, name: str) -> str:
    """Return a gain with its spread, as text; nothing where there is none."""
    if facts is None or f"{name} gain" not in facts:
        return ""
    return f"{facts[f'{name} gain']:+.2f} ± {facts[f'{name} gain sd'] or 0:.2f}"


if __name__ == "__main__":
    main()
