"""Labels in several leaves: what overlap gains, on labels joined on purpose and on real ones, and what it costs.

    python benchmarks/disentangle.py --data FOLDER

FOLDER holds `eurlex-4k`, `eurlex57k`, `yso-titles` and `pubmed-mesh` (default LONGTAIL_DATA). Three parts, over seeds:

- fused: labels joined k at a time, easy, medium and hard. A tree without overlap, with two places, with as many as pay,
  with two as published (every place learns from all positives, mean of places), and with a second one at random. All
  with small leaves and a narrow beam, the same for all: joined labels are few, and with the default beam of 10 almost
  every leaf is looked at, so that no label can be missed in the first place.
- real: the labels as they are, with the default settings and with a narrow beam: places per label from 1 to 6, "auto",
  as published, without training the levels above again, two rounds; and one-vs-all, which misses no leaf.
- cost: training and prediction time against the plain tree, and against the plain tree with the same beam.

Scores are on the test rows; nothing was chosen by them. Every model is a line in the file of results, written as it is
found; `--resume` goes on where a run ended.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

import longtail as lt
from longtail.data import entangle_labels, fused_labels
from longtail.metrics import disentanglement, precision_at_k, share_apart
from longtail.text import pifa
from longtail.tree import LabelTree, build_tree, matched_leaves, recalled
from peers.prepare import prepare, read_labels

Facts = dict[str, Any]
KS = (1, 3, 5)
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
    facts: Facts = {"command": command(args), "narrow": NARROW, "runs": []}
    if args.resume and args.output.exists():
        facts["runs"] = json.loads(args.output.read_text())["runs"]
    known = {key(run) for run in facts["runs"]}
    for cell in cells(args):
        if key(cell) in known:
            continue
        if args.minutes and time.monotonic() - STARTED > 60 * args.minutes:
            print("time is up; --resume goes on from here")
            break
        run = {**cell, **measure(cell, args)}
        facts["runs"].append(run)
        print(line(run), flush=True)
        write(facts, args.output)
    write(facts, args.output)
    show(facts)


def options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    default = os.environ.get("LONGTAIL_DATA")
    parser.add_argument("--data", type=Path, default=default, required=default is None, help="default LONGTAIL_DATA")
    parser.add_argument("--work", type=Path, default=Path("longtail-disentangle"), help="folder for prepared data")
    parser.add_argument("--parts", nargs="+", choices=("fused", "real", "cost"), default=["fused", "real", "cost"])
    parser.add_argument("--only", nargs="+", choices=REAL_DATA, default=list(REAL_DATA))
    parser.add_argument("--seeds", nargs="+", type=int, default=[0, 1, 2])
    parser.add_argument("--minutes", type=float, help="begin nothing new after so long")
    parser.add_argument("--resume", action="store_true")
    parser.add_argument("--output", type=Path, default=Path(__file__).parent / "results" / "disentangle.json")
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
    found = judged(model, X, fused, Xt, truth, tree)
    if cell["mode"] == "hard" and cell["model"] == "overlap":
        found["taken_apart"] = taken_apart(model, X, Y, new)
    return found


_loaded: dict[str, Any] = {}


def load(name: str, args: argparse.Namespace) -> tuple[sp.csr_array, sp.csr_array, sp.csr_array, sp.csr_array]:
    """Return the rows and labels of train and test, as every comparison of trees here takes them."""
    if name not in _loaded:
        _loaded.clear()
        folder, _ = prepare(name, args.data, args.work)
        found = []
        for part in ("train", "test"):
            with np.load(folder / f"{part}.npz") as file:
                rows = (file["X_data"], file["X_indices"], file["X_indptr"])
                found += [sp.csr_array(rows, shape=tuple(file["X_shape"])), read_labels(folder, part)]
        _loaded[name] = found
    return _loaded[name]


def joined(X: sp.csr_array, Y: sp.csr_array, cell: Facts) -> tuple[sp.csr_array, np.ndarray]:
    """Return the labels joined k at a time."""
    order = None
    if cell["mode"] != "hard":
        vectors = pifa(X, Y, keep=128)
        order = build_tree(vectors, branching=2, max_leaf=cell["k"], random_state=cell["seed"]).leaf_labels
    return entangle_labels(Y, cell["k"], cell["mode"], order=order, random_state=cell["seed"])


def scattered(X: sp.csr_array, Y: sp.csr_array, seed: int) -> LabelTree:
    """Return the plain tree with a second place for every label, drawn at random."""
    quick = lt.LabelTreeClassifier(**NARROW, random_state=seed, max_iter=1, tol=10.0, negatives="tfn")
    tree = quick.fit(X, Y).trees_[0]
    rng = np.random.default_rng(seed)
    places = sp.lil_array(tree.slots())
    for label in range(tree.n_labels):
        places[label, int(rng.integers(tree.n_leaves))] = 1
    return tree.with_slots(sp.csr_array(places))


def judged(model: Any, X: Any, Y: Any, Xt: Any, Yt: Any, tree: LabelTree | None = None) -> Facts:
    """Train, predict, and return scores and costs."""
    started = time.process_time()
    model.fit(X, Y, tree=tree) if tree is not None else model.fit(X, Y)
    trained = time.process_time()
    top = model.predict_topk(Xt, k=max(KS))
    found = {f"p@{k}": 100 * float(precision_at_k(Yt, top, k)) for k in KS}
    found |= {"train_cpu_s": trained - started, "predict_cpu_us": 1e6 * (time.process_time() - trained) / Xt.shape[0]}
    if hasattr(model, "trees_"):
        found |= {"leaves": model.trees_[0].n_leaves, "places_per_label": model.trees_[0].n_slots / Y.shape[1]}
        M = matched_leaves(model, X)
        matched = sp.csr_array(
            (np.ones(int((M.ids >= 0).sum()), np.float32), (np.nonzero(M.ids >= 0)[0], M.ids[M.ids >= 0])),
            shape=(X.shape[0], model.trees_[0].n_leaves),
        )
        found["recalled"] = recalled(matched, Y, model.trees_[0].slots()) / Y.nnz
    return found


def taken_apart(model: lt.LabelTreeClassifier, X: sp.csr_array, Y: sp.csr_array, new: np.ndarray) -> Facts:
    """Return whether the components of joined labels come to different leaves, against chance."""
    places, matched = model.trees_[0].slots(), matched_leaves(model, X)
    return {**share_apart(Y, new, places, matched), "information": disentanglement(Y, new, places, matched)}


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
            started = time.perf_counter()
            model.fit(*(A[:2000] for A in (X, Y)) if repeat == 0 else (X, Y))  # the first turn loads the kernels
            trained = time.perf_counter() - started
            passes = []
            for _ in range(3):
                started = time.perf_counter()
                model.predict_topk(Xt, k=5)
                passes.append(time.perf_counter() - started)
            if repeat:
                times[name].append((trained, statistics.median(passes)))
    medians = {name: [statistics.median(t) for t in zip(*found, strict=True)] for name, found in times.items()}
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
    for (part, *where, model), found in groups.items():
        plain = [by_key.get(key({**run, "model": "plain" if part == "fused" else "1 place"})) for run in found]
        facts = {"seeds": len(found), **{name: mean(found, name) for name in ("places_per_label", "recalled")}}
        for name in (f"p@{k}" for k in KS):
            values = [run[name] for run in found]
            gains = [run[name] - base[name] for run, base in zip(found, plain, strict=True) if base is not None]
            facts[name], facts[f"{name} sd"] = statistics.mean(values), spread(values)
            if gains:
                facts[f"{name} gain"], facts[f"{name} gain sd"] = statistics.mean(gains), spread(gains)
        apart = [run["taken_apart"] for run in found if "taken_apart" in run]
        if apart:
            facts |= {f"{name}": mean(apart, name) for name in ("apart", "apart_random")}
        at = out[part]
        for name in where:
            at = at.setdefault(name, {})
        at[model] = facts
    return out


def mean(found: list[Facts], name: str) -> float | None:
    values = [run[name] for run in found if run.get(name) is not None]
    return statistics.mean(values) if values else None


def spread(values: list[float]) -> float | None:
    return statistics.stdev(values) if len(values) > 1 else None


def key(run: Facts) -> tuple[Any, ...]:
    return tuple(run.get(name) for name in ("part", "data", "mode", "k", "seed", "model"))


def line(run: Facts) -> str:
    head = ", ".join(str(part) for part in key(run) if part is not None)
    if run["part"] == "cost":
        return f"{head}: {json.dumps(run['ratios'])}"
    scores = "/".join(f"{run[f'p@{k}']:.2f}" for k in KS)
    return f"{head}: P@1/3/5 {scores}, {run.get('places_per_label', 1):.2f} places, {run['train_cpu_s']:.1f} CPU s"


def write(facts: Facts, output: Path) -> None:
    facts["summary"] = summarise(facts["runs"])
    output.parent.mkdir(parents=True, exist_ok=True)
    part = output.with_suffix(".part")
    part.write_text(json.dumps(facts, indent=1) + "\n")
    part.replace(output)


def show(facts: Facts) -> None:
    found = facts["summary"]
    for data, groups in found["fused"].items():
        print(f"\n{data}, labels joined: gain in P@5 over the plain tree")
        for name, models in sorted(groups.items()):
            gains = ", ".join(
                f"{model} {m['p@5 gain']:+.2f} ± {m['p@5 gain sd'] or 0:.2f}"
                for model, m in models.items()
                if model != "plain" and "p@5 gain" in m
            )
            print(f"  {name:<9} plain {models['plain']['p@5']:.2f}; {gains}")
    for data, models in found["real"].items():
        print(f"\n{data}, labels as they are: P@1/3/5, and gains")
        for model, m in models.items():
            scores = "/".join(f"{m[f'p@{k}']:.2f}" for k in KS)
            gains = "/".join(f"{m[f'p@{k} gain']:+.2f}" for k in KS) if "p@1 gain" in m else ""
            print(f"  {model:<22} {scores}  {gains}  ({m['seeds']} seeds)")
    for data, ratios in found["cost"].items():
        print(f"\n{data}, times against the plain tree: {json.dumps(ratios)}")


def command(args: argparse.Namespace) -> str:
    words = ["python benchmarks/disentangle.py --data FOLDER", f"--parts {' '.join(args.parts)}"]
    words.append(f"--seeds {' '.join(map(str, args.seeds))}")
    words += [f"--only {' '.join(args.only)}"] if args.only != list(REAL_DATA) else []
    return " ".join(words + (["--resume"] if args.resume else []))


STARTED = time.monotonic()

if __name__ == "__main__":
    main()
