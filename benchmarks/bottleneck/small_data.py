"""Train the networks with a narrow output layer on few rows: what decides when to stop, and what that is worth.

    python benchmarks/bottleneck/small_data.py

2,000 rows of each bundled data set, with the labels these rows have; judged on 1,500 test rows. Both output layers with
their default settings, stopped by precision on held-out rows (the default) and by the loss with a patience of 5 (the
default before November 2026); the DFT layer also with learned distances between labels. Beside them one linear
classifier per label, and the label prior: the labels that most training rows have, for every row. "most common first"
counts the test rows that get the same label first. Results are written after every model; `--resume` goes on.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import warnings
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

import longtail as lt
from benchmarks.harness.program import Facts, make_parser, start_facts, write_results
from benchmarks.harness.scores import mean_and_sd, precisions
from benchmarks.harness.terminal import show_table
from benchmarks.harness.timing import timed
from longtail.bottleneck import BottleneckClassifier
from longtail.data import TopK

DATA = ("debtags", "debian-relations")
ROWS, TEST_ROWS = 2_000, 1_500
BEFORE: Facts = {"stop_on": "loss", "patience": 5}
NETWORKS: dict[str, Facts] = {
    "dft, stopped by precision": {"head": "dft"},
    "dft, stopped by loss": {"head": "dft", **BEFORE},
    "dft, learned distances": {"head": "dft", "spacing": "learned"},
    "bottleneck, stopped by precision": {"head": "bottleneck"},
    "bottleneck, stopped by loss": {"head": "bottleneck", **BEFORE},
}
OTHERS = ("one classifier per label", "label prior")
MEASURES = ("p@1", "p@3", "p@5", "most common first")


class Rows(NamedTuple):
    """Rows and labels, to train on and to test."""

    X: sp.csr_array
    Y: sp.csr_array
    Xt: sp.csr_array
    Yt: sp.csr_array


def main() -> None:
    args = options()
    facts = start_facts(args, {"rows": ROWS, "test_rows": TEST_ROWS, "labels": {}, "runs": []}, "torch")
    done = {(run["data"], run["model"], run["seed"]) for run in facts["runs"]}
    for cell in cells(args):
        if (cell["data"], cell["model"], cell["seed"]) not in done:
            facts["runs"].append({**cell, **measure(cell)})
            facts["labels"][cell["data"]] = load(cell["data"], cell["seed"]).Y.shape[1]
            facts["summary"] = summarise(facts["runs"])
            print(facts["runs"][-1], flush=True)
            write_results(facts, args.output)
    show(facts["summary"])


def options() -> argparse.Namespace:
    return make_parser(__doc__, "bottleneck_small.json", seeds=(0, 1, 2), resume=True).parse_args()


def cells(args: argparse.Namespace) -> Iterator[Facts]:
    """Yield the models to train; a seed also chooses the rows."""
    for seed in args.seeds:
        for data in DATA:
            for model in (*NETWORKS, *OTHERS):
                yield {"data": data, "model": model, "seed": seed}


def measure(cell: Facts) -> Facts:
    """Train one model and judge it on the test rows."""
    rows = load(cell["data"], cell["seed"])
    out: Facts = {}
    if cell["model"] == "label prior":
        best = np.argsort(-np.bincount(rows.Y.indices, minlength=rows.Y.shape[1]), kind="stable")[:5]
        ids = np.tile(best.astype(np.int32), (rows.Xt.shape[0], 1))
        top = TopK(ids, np.tile(np.linspace(1, 0.1, 5, dtype=np.float32), (ids.shape[0], 1)))
    elif cell["model"] in NETWORKS:
        model = BottleneckClassifier(random_state=cell["seed"], n_jobs=1, **NETWORKS[cell["model"]])
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # that it is no better than the prior is what is measured here
            spent, _ = timed(lambda: model.fit(rows.X, rows.Y))
        top = model.predict_topk(rows.Xt, k=5)
        out = {"epochs": len(model.history_), "best_epoch": model.best_epoch_, "seconds": spent.wall}
    else:
        top = lt.OneVsAllClassifier(random_state=cell["seed"], n_jobs=1).fit(rows.X, rows.Y).predict_topk(rows.Xt, k=5)
    out["most common first"] = int(np.bincount(top.ids[:, 0]).max())
    return {**precisions(rows.Yt, top), **out}


@cache
def load(name: str, seed: int) -> Rows:
    """Return rows as TF-IDF and the labels that the training rows have; others of the test rows count as missed."""
    train, test = lt.data.load_bundled(name), lt.data.load_bundled(name, "test")
    rng = np.random.default_rng(seed)
    train = train.take(np.sort(rng.choice(train.n_rows, ROWS, replace=False)))
    test = test.take(np.sort(rng.choice(test.n_rows, TEST_ROWS, replace=False)))
    words = lt.TfidfFeatures(n_jobs=1)
    X, Xt = words.fit_transform(list(train.texts or ())), words.transform(list(test.texts or ()))
    known = np.bincount(train.Y.indices, minlength=train.n_labels) > 0
    used = np.concatenate([np.flatnonzero(known), np.flatnonzero(~known)])
    return Rows(X, sp.csr_array(train.Y[:, np.flatnonzero(known)]), Xt, sp.csr_array(test.Y[:, used]))


def summarise(runs: list[Facts]) -> Facts:
    """Return means over seeds by data set and model."""
    out: Facts = {}
    for data in DATA:
        for model in (*NETWORKS, *OTHERS):
            same = [run for run in runs if run["data"] == data and run["model"] == model]
            if same:
                entry: Facts = {name: mean_and_sd([run[name] for run in same], 2) for name in MEASURES}
                if "best_epoch" in same[0]:
                    entry["best_epoch"] = round(statistics.mean(run["best_epoch"] for run in same), 1)
                out.setdefault(data, {})[model] = entry
    return out


def show(summary: Facts) -> None:
    """Print the means."""
    for data, models in summary.items():
        rows = [
            [model, *(f"{at[name]['mean']:.1f}" for name in MEASURES), str(at.get("best_epoch", ""))]
            for model, at in models.items()
        ]
        show_table(data, ["", *MEASURES, "best epoch"], rows)


if __name__ == "__main__":
    main()
