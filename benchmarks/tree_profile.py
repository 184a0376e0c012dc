"""Where the label tree spends its time, kernel by kernel, and how far prediction is from the memory's speed.

    python benchmarks/tree_profile.py --data FOLDER

FOLDER holds `eurlex-4k` and `pubmed-mesh`; LONGTAIL_DATA is its default. One thread, processor time. The floor is the
time the machine needs to read, once, every weight a row meets; the bandwidth is that of summing a large array on the
same thread, so the floor is that of memory, not of cache.
"""

from __future__ import annotations

import argparse
import json
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import longtail as lt
from longtail.tree import chunks as tree_chunks
from longtail.tree import estimator as label_tree
from longtail.tree import search as tree_search
from longtail.tree import train as tree_training
from tree_updates import load

KERNELS: list[tuple[Any, str]] = [
    (tree_training, "hinge_lanes"),
    (tree_training, "gather_rows"),
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
        def timed(*args: Any, **keywords: Any) -> Any:
            started = time.thread_time()
            try:
                return function(*args, **keywords)
            finally:
                self.seconds[name] = self.seconds.get(name, 0.0) + time.thread_time() - started
                self.calls[name] = self.calls.get(name, 0) + 1

        return timed

    def run(self, function: Callable[[], Any]) -> tuple[Any, float]:
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
    per_feature: dict[int, np.ndarray] = {}
    for level in range(tree.n_levels + 1):
        if level == 0:
            visited = np.zeros((X.shape[0], 1), dtype=np.int64)
        else:
            visited = tree_search.search_rows(chunks, X, scale, plan.first(level), 1)[0] + 1
        for chunk in np.unique(visited[visited > 0]) if level else [0]:
            lines = slice(int(chunks.line_indptr[chunk]), int(chunks.line_indptr[chunk + 1]))
            counts = np.zeros(chunks.n_features, dtype=np.int64)
            counts[chunks.features[lines]] = chunks.counts[lines]
            per_feature[int(chunk)] = counts
            rows = np.flatnonzero((visited == chunk).any(axis=1))
            total += int(counts[X[rows].indices].sum())
    return total


def shares(watch: Watch, total: float) -> dict[str, Any]:
    out = {
        name: {"cpu_s": round(s, 4), "share": round(s / total, 4), "calls": watch.calls[name]}
        for name, s in sorted(watch.seconds.items(), key=lambda item: -item[1])
    }
    out["everything else"] = {
        "cpu_s": round(total - sum(watch.seconds.values()), 4),
        "share": round(1 - sum(watch.seconds.values()) / total, 4),
    }
    return out


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    default = os.environ.get("LONGTAIL_DATA")
    parser.add_argument("--data", type=Path, default=default, required=default is None)
    parser.add_argument("--only", nargs="*", default=["eurlex-4k", "pubmed-mesh"])
    parser.add_argument("--output", type=Path, default=Path(__file__).parent / "results" / "tree_profile.json")
    args = parser.parse_args()
    speed = bandwidth()
    facts: dict[str, Any] = {
        "command": "python benchmarks/tree_profile.py",
        "memory_gb_per_s": round(speed / 1e9, 2),
        "results": {},
    }
    for name in args.only:
        train, test = load(args.data / name)
        some = train.take(slice(0, 500))
        lt.LabelTreeClassifier().fit(some.X, some.Y).predict_topk(some.X)  # compile
        watch = Watch()
        model, seconds = watch.run(lambda data=train: lt.LabelTreeClassifier(n_jobs=1).fit(data.X, data.Y))  # type: ignore[misc]
        training = {"cpu_s": round(seconds, 3), "kernels": shares(watch, seconds)}
        watch = Watch()
        X = lt.features.unit_rows(test.X)
        model.predict_topk(X)
        _, seconds = watch.run(lambda m=model, rows=X: m.predict_topk(rows, k=5))  # type: ignore[misc]
        met = entries_met(model, X)
        floor = met * 4 / speed  # what the dense blocks hold: four bytes a weight
        prediction = {
            "cpu_us_per_row": round(1e6 * seconds / test.n_rows, 2),
            "kernels": shares(watch, seconds),
            "weights_met_per_row": round(met / test.n_rows),
            "floor_us_per_row": round(1e6 * floor / test.n_rows, 2),
            "times_the_floor": round(seconds / floor, 2),
        }
        facts["results"][name] = {"training": training, "prediction": prediction}
        print(name, json.dumps(facts["results"][name], indent=1), flush=True)
    args.output.write_text(json.dumps(facts, indent=1) + "\n")


if __name__ == "__main__":
    main()
