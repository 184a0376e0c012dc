"""Measure what it costs to check a large model completely when it is loaded.

    python benchmarks/storage/gate_cost.py

A label tree and a one-vs-all model of several hundred megabytes are made of random numbers, saved and loaded again and
again, with digests and without. The time of the check is measured inside of loading. Wall seconds, medians; files are
in the cache of the system.
"""

from __future__ import annotations

import statistics
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import scipy.sparse as sp

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

import longtail as lt
from benchmarks.harness.program import Facts, make_parser, start_facts, write_results
from longtail.storage import Part, Sizes, pack_csr, reading, save_folder
from longtail.storage.schema import PartSchema
from longtail.tree import LabelTree

GOAL = 20.0  # percent of the time to load, with digests
LEAVES, LABELS_OF_LEAF, LINES_OF_CHUNK, ENTRIES_OF_LINE, FEATURES = 1000, 100, 4000, 24, 500_000
WEIGHTS_OF_FEATURE = 80


def main() -> None:
    parser = make_parser(__doc__, "gate_cost.json")
    parser.add_argument("--repeats", type=int, default=7)
    args = parser.parse_args()
    facts = start_facts(args, {}) | {"goal_percent": GOAL}
    with tempfile.TemporaryDirectory() as folder:
        for name, part in (("tree", tree_part()), ("one_vs_all", one_vs_all_part())):
            path = save_folder(Path(folder) / name, "estimator.v1", {"model": part})
            facts[name] = measured(path, args.repeats)
            facts[name]["megabytes"] = round(sum(array.nbytes for array in part.arrays.values()) / 1e6, 1)
            write_results(facts, args.output)
            print(name, facts[name])


def measured(path: Path, repeats: int) -> Facts:
    """Return the times of loading a folder, with digests and without, and of the check within."""
    spent: list[float] = []
    check = reading.check_part

    def timed(part: Part, schema: PartSchema, inherited: Sizes | None = None, prefix: str = "") -> dict[str, int]:
        started = time.perf_counter()
        try:
            return check(part, schema, inherited, prefix)
        finally:
            spent.append(time.perf_counter() - started)

    reading.check_part = timed
    try:
        lt.load(path)  # compiles the kernels, and brings the files into memory
        with_digests: list[float] = []
        without: list[float] = []
        spent.clear()
        for _ in range(repeats):
            for seconds, verify in ((with_digests, True), (without, False)):
                started = time.perf_counter()
                lt.load(path, verify=verify)
                seconds.append(time.perf_counter() - started)
    finally:
        reading.check_part = check
    load, checked = statistics.median(with_digests), statistics.median(spent)
    return {
        "load_seconds": load,
        "load_without_digests_seconds": statistics.median(without),
        "check_seconds": checked,
        "share_of_load_percent": 100 * checked / load,
        "share_without_digests_percent": 100 * checked / statistics.median(without),
    }


def tree_part() -> Part:
    """Return the part of a label tree whose chunks all have as many lines, of random features and weights."""
    rng = np.random.default_rng(0)
    n_labels = LEAVES * LABELS_OF_LEAF
    tree = LabelTree.from_clusters(np.arange(n_labels) // LABELS_OF_LEAF)
    widths = np.concatenate([[LEAVES], np.full(LEAVES, LABELS_OF_LEAF)])
    n_lines = LINES_OF_CHUNK * widths.size
    step = FEATURES // LINES_OF_CHUNK
    features = np.arange(LINES_OF_CHUNK) * step + rng.integers(0, step, (widths.size, LINES_OF_CHUNK))
    n_entries = n_lines * ENTRIES_OF_LINE
    arrays = {
        "label_counts": np.ones(n_labels, np.int64),
        **{f"0.tree.{name}": array for name, array in tree.to_part().arrays.items()},
        "0.levels": np.array([0, 1, 1 + LEAVES]),
        "0.child_indptr": np.concatenate([[0], np.cumsum(widths)]),
        "0.line_indptr": np.arange(widths.size + 1) * LINES_OF_CHUNK,
        "0.features": features.astype(np.int32).ravel(),
        "0.counts": np.full(n_lines, ENTRIES_OF_LINE, np.uint8),
        "0.children": rng.integers(0, LABELS_OF_LEAF, n_entries, dtype=np.uint8),
        "0.weights": rng.integers(-127, 128, n_entries, dtype=np.int8),
        "0.scales": np.ones(widths.sum(), np.float32),
        "0.bias": np.zeros(widths.sum(), np.float32),
    }
    params = lt.LabelTreeClassifier(random_state=0).saved_params()
    return Part("label-tree.v1", {**params, "n_rows": 1, "n_features": FEATURES, "C_": 1.0, "levels": [1]}, arrays)


def one_vs_all_part() -> Part:
    """Return the part of a one-vs-all model with as many random weights for every feature."""
    rng = np.random.default_rng(0)
    n_labels, n_weights = 20_000, FEATURES * WEIGHTS_OF_FEATURE
    indptr = np.arange(FEATURES + 1, dtype=np.int64) * WEIGHTS_OF_FEATURE
    indices = rng.integers(0, n_labels, n_weights, dtype=np.int32)
    W = sp.csr_array((FEATURES, n_labels), dtype=np.float32)
    W.data, W.indices, W.indptr = rng.standard_normal(n_weights, dtype=np.float32), indices, indptr
    arrays = {
        **pack_csr("weights", W),
        "bias": np.zeros(n_labels, np.float32),
        "label_counts": np.ones(n_labels, np.int64),
        "n_iter": np.ones(n_labels, np.int32),
    }
    return Part("one-vs-all.v1", {**lt.OneVsAllClassifier(random_state=0).saved_params(), "n_rows": 1}, arrays)


if __name__ == "__main__":
    main()
