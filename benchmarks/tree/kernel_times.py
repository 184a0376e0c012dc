"""Measure the share of each kernel in the time of the label tree, and compare prediction with the memory's speed.

    python benchmarks/tree/kernel_times.py --data FOLDER

FOLDER holds `eurlex-4k` and `pubmed-mesh`; LONGTAIL_DATA is its default. One thread, processor time. The floor is the
time the machine needs to read, once, every weight a row meets; the bandwidth is that of summing a large array on the
same thread, so the floor is that of memory, not of cache.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

import longtail as lt
from benchmarks.harness.data_sets import read_rows
from benchmarks.harness.program import Facts, make_parser, start_facts, write_results
from longtail.data import Dataset
from longtail.text import unit_rows
from longtail.tree import chunks as tree_chunks
from longtail.tree import estimator as label_tree
from longtail.tree import search as tree_search
from longtail.tree import solve as tree_solving

KERNELS: list[tuple[Any, str]] = [
    (tree_solving, "hinge_lanes"),
    (tree_solving, "gather_rows"),
    (tree_chunks, "pack_chunk"),
    (tree_search, "search_block"),
    (label_tree, "build_tree"),
    (label_tree, "pifa"),
]


class Watch:
    """Replaces functions by ones that note their processor time."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}
        self.calls: dict[str, int] = {}

    def wrap(self, name: str, function: Callable[..., Any]) -> Callable[..., Any]:
        """Return a function that does the same and notes its time under this name."""

        def timed(*args: Any, **keywords: Any) -> Any:
            started = time.thread_time()
            try:
                return function(*args, **keywords)
            finally:
                self.seconds[name] = self.seconds.get(name, 0.0) + time.thread_time() - started
                self.calls[name] = self.calls.get(name, 0) + 1

        return timed

    def run(self, function: Callable[[], Any]) -> tuple[Any, float]:
        """Run a function with all kernels replaced; return its result and its processor seconds."""
        originals = [(home, name, getattr(home, name)) for home, name in KERNELS]
        for home, name, kernel in originals:
            setattr(home, name, self.wrap(name, kernel))
        started = time.process_time()
        try:
            return function(), time.process_time() - started
        finally:
            for home, name, kernel in originals:
                setattr(home, name, kernel)


def bandwidth() -> float:
    """Return how many bytes a second one thread sums from memory."""
    array = np.ones(64_000_000, dtype=np.float32)
    array.sum()
    best = 0.0
    for _ in range(5):
        started = time.thread_time()
        array.sum()
        best = max(best, array.nbytes / (time.thread_time() - started))
    return best


def entries_met(model: lt.LabelTreeClassifier, X: Any) -> int:
    """Count the weights that the rows meet in the chunks they visit."""
    chunks, tree, total = model.chunks_[0], model.trees_[0], 0
    scale, plan = np.ones(X.shape[0], np.float32), model._beam_plan(tree, 5)
    for level in range(tree.n_levels + 1):
        if level == 0:
            visited = np.zeros((X.shape[0], 1), dtype=np.int64)
        else:
            visited = tree_search.search_rows(chunks, X, scale, plan.first(level), 1)[0] + 1
        for chunk in np.unique(visited[visited > 0]) if level else [0]:
            lines = slice(int(chunks.line_indptr[chunk]), int(chunks.line_indptr[chunk + 1]))
            counts = np.zeros(chunks.n_features, dtype=np.int64)
            counts[chunks.features[lines]] = chunks.counts[lines]
            rows = np.flatnonzero((visited == chunk).any(axis=1))
            total += int(counts[X[rows].indices].sum())
    return total


def shares(watch: Watch, total: float) -> Facts:
    """Return the seconds and the share of every kernel, the slowest first, and of everything else."""
    out = {
        name: {"cpu_s": round(s, 4), "share": round(s / total, 4), "calls": watch.calls[name]}
        for name, s in sorted(watch.seconds.items(), key=lambda item: -item[1])
    }
    out["everything else"] = {
        "cpu_s": round(total - sum(watch.seconds.values()), 4),
        "share": round(1 - sum(watch.seconds.values()) / total, 4),
    }
    return out


def measure(train: Dataset, test: Dataset, speed: float) -> Facts:
    """Train and predict on one thread; return where the time goes."""
    some = train.take(slice(0, 500))
    lt.LabelTreeClassifier().fit(some.X, some.Y).predict_topk(some.X)  # compile
    watch = Watch()
    model, seconds = watch.run(lambda: lt.LabelTreeClassifier(n_jobs=1).fit(train.X, train.Y))
    training = {"cpu_s": round(seconds, 3), "kernels": shares(watch, seconds)}
    watch = Watch()
    X = unit_rows(test.X)
    model.predict_topk(X)
    _, seconds = watch.run(lambda: model.predict_topk(X, k=5))
    met = entries_met(model, X)
    floor = met * 4 / speed  # the dense blocks hold four bytes a weight
    prediction = {
        "cpu_us_per_row": round(1e6 * seconds / test.n_rows, 2),
        "kernels": shares(watch, seconds),
        "weights_met_per_row": round(met / test.n_rows),
        "floor_us_per_row": round(1e6 * floor / test.n_rows, 2),
        "times_the_floor": round(seconds / floor, 2),
    }
    return {"training": training, "prediction": prediction}


def main() -> None:
    parser = make_parser(__doc__, "tree_profile.json", data="required", resume=True)
    parser.add_argument("--only", nargs="+", default=["eurlex-4k", "pubmed-mesh"])
    args = parser.parse_args()
    speed = bandwidth()
    facts = start_facts(args, {"results": {}})
    facts["memory_gb_per_s"] = round(speed / 1e9, 2)
    for name in args.only:
        if name not in facts["results"]:
            facts["results"][name] = measure(*read_rows(args.data / name), speed)
            print(name, json.dumps(facts["results"][name], indent=1), flush=True)
            write_results(facts, args.output)


if __name__ == "__main__":
    main()
