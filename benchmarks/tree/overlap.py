"""Measure label disentanglement, as published and ours: on labels joined on purpose, on real ones, against one-vs-all.

    python benchmarks/tree/overlap.py --data FOLDER

FOLDER holds `eurlex-4k`, `eurlex57k`, `yso-titles` and `pubmed-mesh` (default LONGTAIL_DATA); debian-relations comes
with longtail. Of yso-titles, the first 60,000 and 12,000 training rows of one random order are taken: data with few
rows per label. Three parts, over seeds:

- yardstick: the default tree, `overlap=2`, `overlap="auto"` and the tree of the version before (two levels where there
  are more than 128 leaves) against one-vs-all with the same C; P@k, PSP@k, and CPU times against the default tree.
- published: `LabelTreeClassifier.published`, the method of the paper on a tree like XR-Linear's, against the same tree
  without overlap: λ from 1 to 6 (Figure 3), with and without training the matcher again (Table 4, with PSP@k), times
  (Table 5), and a second leaf at random (appendix A.8).
- fused: labels joined k at a time, easy, medium and hard (Figure 2), with small leaves and a narrow beam, the same for
  all: joined labels are few, and with a beam of 10 almost every leaf is looked at, so that none can be missed.

Scores are on the test rows; settings were chosen on held-out training rows (`overlap_settings.json`). Every model is a
line in the file of results, written as it is measured; `--resume` goes on where a run ended.
"""

from __future__ import annotations

import argparse
import statistics
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

import longtail as lt
from benchmarks.harness.prepared_data import prepare_part, read_prepared
from benchmarks.harness.program import Deadline, Facts, make_parser, start_facts, write_results
from benchmarks.harness.scores import KS, mean_of, precisions, spread
from benchmarks.harness.terminal import show_table
from benchmarks.harness.timing import timed
from longtail.data import entangle_labels, fused_labels
from longtail.metrics import disentanglement, propensities, psp_at_k, share_apart
from longtail.text import pifa
from longtail.tree import LabelTree, build_tree, matched_leaves, recalled
from longtail.tree.estimator import default_C

SMALL, LARGE = ("eurlex-4k", "pubmed-mesh", "yso-titles-60k"), ("debian-relations", "eurlex57k")
YARDSTICK_DATA = (*SMALL[:2], "yso-titles-60k", "yso-titles-12k", *LARGE)
PUBLISHED_DATA = (*SMALL, "eurlex57k")
FUSED_DATA = PUBLISHED_DATA
YARDSTICK: dict[str, Facts] = {
    "default": {},
    "overlap 2": {"overlap": 2},
    "auto": {"overlap": "auto"},
    "before": {"branching": 128},
}
PUBLISHED: dict[str, Facts] = {
    "XR-Linear": {"overlap": 1, "rounds": None},
    "λ=2": {"overlap": 2},
    "λ=2, matcher kept": {"overlap": 2, "rounds": 0},
    "random": {"overlap": 1, "rounds": None},
    "λ=1": {"overlap": 1},
    "λ=3": {"overlap": 3},
    "λ=2, two rounds": {"overlap": 2, "rounds": 2},
    "λ=2, balance 2": {"overlap": 2, "balance": 2.0},
    "λ=4": {"overlap": 4},
    "λ=5": {"overlap": 5},
    "λ=6": {"overlap": 6},
}
NARROW: Facts = {"max_leaf": 40, "beam": 4}
FUSED: dict[str, Facts] = {
    "plain": {},
    "overlap 2": {"overlap": 2},
    "overlap 2, split positives": {"overlap": 2, "split_positives": True},
    "auto": {"overlap": "auto"},
}


def main() -> None:
    args = options()
    facts = start_facts(
        args,
        {"narrow": NARROW, "settings": {"yardstick": YARDSTICK, "published": PUBLISHED, "fused": FUSED}, "runs": []},
    )
    known = {key(run) for run in facts["runs"]}
    deadline = Deadline(args.minutes)
    for cell in cells(args):
        if key(cell) in known or (args.models and cell["model"] not in args.models):
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
    parts = ("yardstick", "published", "fused")
    parser.add_argument("--parts", nargs="+", choices=parts, default=list(parts))
    parser.add_argument("--only", nargs="+", choices=YARDSTICK_DATA, default=list(YARDSTICK_DATA))
    parser.add_argument("--models", nargs="+", help="only these")
    parser.add_argument("--minutes", type=float, help="begin nothing new after so long")
    return parser.parse_args()


def cells(args: argparse.Namespace) -> Iterator[Facts]:
    """Yield what is to be measured, the most telling first, so that a part of a run tells most."""
    for part in args.parts:
        for seed in args.seeds:
            for name in (n for n in YARDSTICK_DATA if n in args.only):
                at = {"part": part, "data": name, "seed": seed}
                if part == "yardstick":
                    once = ["one-vs-all"] if seed == args.seeds[0] else []
                    yield from ({**at, "model": model} for model in (*YARDSTICK, *once))
                elif part == "published" and name in PUBLISHED_DATA:
                    yield from ({**at, "model": model} for model in PUBLISHED)
                elif part == "fused" and name in FUSED_DATA:
                    for mode in ("hard", "easy", "medium"):
                        for k in (2, 4, 8):
                            for model in (*FUSED, "published plain", "published λ=2"):
                                yield {**at, "mode": mode, "k": k, "model": model}


def measure(cell: Facts, args: argparse.Namespace) -> Facts:
    """Measure one cell."""
    X, Y, Xt, Yt = load(cell["data"], args)
    seed, name = cell["seed"], cell["model"]
    if cell["part"] == "yardstick":
        if name == "one-vs-all":
            C = default_C(X.shape[0], X.nnz / X.shape[0])
            return judged(lt.OneVsAllClassifier(C=C, random_state=seed), X, Y, Xt, Yt)
        return judged(lt.LabelTreeClassifier(**YARDSTICK[name], random_state=seed), X, Y, Xt, Yt)
    if cell["part"] == "published":
        model = lt.LabelTreeClassifier.published(**PUBLISHED[name], random_state=seed)
        return judged(model, X, Y, Xt, Yt, scattered(model, X, Y, seed) if name == "random" else None)
    fused, new = joined(X, Y, cell)
    truth = fused_labels(sp.csr_array(Yt[:, : Y.shape[1]]), new)  # labels without training rows are left out
    if name in FUSED:
        model = lt.LabelTreeClassifier(**NARROW, **FUSED[name], random_state=seed)
    else:
        overlap = {"overlap": 2} if name.endswith("2") else {"overlap": 1, "rounds": None}
        model = lt.LabelTreeClassifier.published(**overlap, **NARROW, random_state=seed)
    facts = judged(model, X, fused, Xt, truth)
    if cell["mode"] == "hard" and "overlap 2" in name:
        facts["taken_apart"] = taken_apart(model, X, Y, new)
    return facts


_loaded: dict[str, Any] = {}


def load(name: str, args: argparse.Namespace) -> tuple[sp.csr_array, sp.csr_array, sp.csr_array, sp.csr_array]:
    """Return the rows and labels of train and test, as every comparison of trees here takes them."""
    if name not in _loaded:
        _loaded.clear()
        folder = prepare_part(name, args.data, args.work)
        _loaded[name] = (*read_prepared(folder, "train"), *read_prepared(folder, "test"))
    return _loaded[name]


def joined(X: sp.csr_array, Y: sp.csr_array, cell: Facts) -> tuple[sp.csr_array, np.ndarray]:
    """Return the labels joined k at a time."""
    order = None
    if cell["mode"] != "hard":
        vectors = pifa(X, Y, keep=128)
        order = build_tree(vectors, branching=2, max_leaf=cell["k"], random_state=cell["seed"]).leaf_labels
    return entangle_labels(Y, cell["k"], cell["mode"], order=order, random_state=cell["seed"])


def scattered(model: lt.LabelTreeClassifier, X: sp.csr_array, Y: sp.csr_array, seed: int) -> LabelTree:
    """Return the plain tree of a model with a second leaf slot for every label, drawn at random."""
    quick = lt.LabelTreeClassifier(**{**model.get_params(), "max_iter": 1, "tol": 10.0})
    tree = quick.fit(X, Y).trees_[0]
    labels = np.arange(tree.n_labels)
    leaves = np.random.default_rng(seed).integers(tree.n_leaves, size=tree.n_labels)
    ones = np.ones(tree.n_labels, np.float32)
    more = sp.csr_array((ones, (labels, leaves)), shape=(tree.n_labels, tree.n_leaves))
    slots = sp.csr_array(tree.slots() + more)
    slots.data[:] = 1
    return tree.with_slots(slots)


def judged(model: Any, X: Any, Y: Any, Xt: Any, Yt: Any, tree: LabelTree | None = None) -> Facts:
    """Train, predict, and return scores and costs."""
    training, _ = timed(lambda: model.fit(X, Y, tree=tree) if tree is not None else model.fit(X, Y))
    model.predict_topk(Xt[:100], k=max(KS))  # what is made at first use
    predicting, top = timed(lambda: model.predict_topk(Xt, k=max(KS)))
    facts: Facts = precisions(Yt, top)
    every = np.zeros(Yt.shape[1], np.int64)
    every[: Y.shape[1]] = np.bincount(Y.indices, minlength=Y.shape[1])
    share = propensities(every, Y.shape[0])
    facts |= {f"psp@{k}": 100 * float(psp_at_k(Yt, top, share, k=k)) for k in KS}
    facts |= {"train_cpu_s": training.cpu, "predict_cpu_us": 1e6 * predicting.cpu / Xt.shape[0]}
    if hasattr(model, "trees_"):
        grown = model.trees_[0]
        facts |= {"leaves": grown.n_leaves, "slots_per_label": grown.n_slots / Y.shape[1]}
        facts["recalled"] = share_recalled(model, X, Y)
    return facts


def share_recalled(model: lt.LabelTreeClassifier, X: sp.csr_array, Y: sp.csr_array) -> float:
    """Return the share of the labels of rows that stand in leaves which the beam reaches."""
    tree, ids = model.trees_[0], matched_leaves(model, X).ids
    rows, ranks = np.nonzero(ids >= 0)
    ones = np.ones(rows.size, np.float32)
    matched = sp.csr_array((ones, (rows, ids[rows, ranks])), shape=(X.shape[0], tree.n_leaves))
    return recalled(matched, Y, tree.slots()) / Y.nnz


def taken_apart(model: lt.LabelTreeClassifier, X: sp.csr_array, Y: sp.csr_array, new: np.ndarray) -> Facts:
    """Return whether the components of joined labels come to different leaves, against chance."""
    slots, matched = model.trees_[0].slots(), matched_leaves(model, X)
    return {**share_apart(Y, new, slots, matched), "information": disentanglement(Y, new, slots, matched)}


BASE = {"yardstick": "default", "published": "XR-Linear", "fused": "plain"}


def base_of(run: Facts) -> str:
    """Return the model that a run is compared with."""
    return "published plain" if run["model"].startswith("published") else BASE[run["part"]]


def summarise(runs: list[Facts]) -> Facts:
    """Return means and spreads over seeds, and gains over the tree without overlap of the same seed."""
    by_key = {key(run): run for run in runs}
    out: Facts = {part: {} for part in BASE}
    groups: dict[tuple[str, ...], list[Facts]] = {}
    for run in runs:
        cell = (f"{run['mode']} {run['k']}",) if run["part"] == "fused" else ()
        groups.setdefault((run["part"], run["data"], *cell, run["model"]), []).append(run)
    for (part, *where, model), same in groups.items():
        at = out[part]
        for name in where:
            at = at.setdefault(name, {})
        at[model] = over_seeds(same, [by_key.get(key({**run, "model": base_of(run)})) for run in same])
    for models in out["yardstick"].values():
        if "one-vs-all" in models:
            for facts in models.values():
                facts["below one-vs-all"] = {f"p@{k}": models["one-vs-all"][f"p@{k}"] - facts[f"p@{k}"] for k in KS}
    return out


def over_seeds(runs: list[Facts], plain: list[Facts | None]) -> Facts:
    """Return the means of one model over seeds, its gains over the plain trees, and its costs against theirs."""
    facts: Facts = {"seeds": len(runs)}
    names = ("slots_per_label", "recalled", *(f"psp@{k}" for k in KS), "train_cpu_s", "predict_cpu_us")
    facts |= {name: mean_of(runs, name) for name in names}
    pairs = [(run, base) for run, base in zip(runs, plain, strict=True) if base is not None]
    for name in (f"p@{k}" for k in KS):
        values = [run[name] for run in runs]
        gains = [run[name] - base[name] for run, base in pairs]
        facts[name], facts[f"{name} sd"] = statistics.mean(values), spread(values)
        if gains:
            facts[f"{name} gain"], facts[f"{name} gain sd"] = statistics.mean(gains), spread(gains)
    if pairs:
        for name, cost in (("train times", "train_cpu_s"), ("predict times", "predict_cpu_us")):
            facts[name] = statistics.median(run[cost] / base[cost] for run, base in pairs)
    apart = [run["taken_apart"] for run in runs if "taken_apart" in run]
    return facts | ({name: mean_of(apart, name) for name in ("apart", "apart_random")} if apart else {})


def key(run: Facts) -> tuple[Any, ...]:
    """Return what tells a run from all others."""
    return tuple(run.get(name) for name in ("part", "data", "mode", "k", "seed", "model"))


def line(run: Facts) -> str:
    """Return one run in one line."""
    head = ", ".join(str(part) for part in key(run) if part is not None)
    scores = "/".join(f"{run[f'p@{k}']:.2f}" for k in KS)
    slots = f"{run.get('slots_per_label', 1):.2f} leaf slots"
    return f"{head}: P@1/3/5 {scores}, {slots}, {run['train_cpu_s']:.1f} CPU s, {run['predict_cpu_us']:.0f} µs"


def show(summary: Facts) -> None:
    """Print the scores and gains of every part."""
    headings = ["", "seeds", *(f"P@{k}" for k in KS), *(f"gain @{k}" for k in KS), "train", "predict"]
    for part in ("yardstick", "published"):
        for data, models in summary[part].items():
            rows = [
                [
                    model,
                    m["seeds"],
                    *(f"{m[f'p@{k}']:.2f}" for k in KS),
                    *(gain(m, f"p@{k}") for k in KS),
                    *(f"{m[name]:.2f}" if name in m else "" for name in ("train times", "predict times")),
                ]
                for model, m in models.items()
            ]
            show_table(f"{part}: {data}", headings, rows)
    for data, groups in summary["fused"].items():
        names = [name for name in (*FUSED, "published λ=2") if name != "plain"]
        rows = [[name, *(gain(models.get(other), "p@5") for other in names)] for name, models in sorted(groups.items())]
        show_table(f"{data}, labels joined: gains of P@5", ["labels", *names], rows)


def gain(facts: Facts | None, name: str) -> str:
    """Return a gain with its spread, as text; nothing where there is none."""
    if facts is None or f"{name} gain" not in facts:
        return ""
    return f"{facts[f'{name} gain']:+.2f} ± {facts[f'{name} gain sd'] or 0:.2f}"


if __name__ == "__main__":
    main()
