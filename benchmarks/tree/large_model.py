"""Load a model of five gigabytes with three million labels, and predict with it: what is read, and how long it takes.

    python benchmarks/tree/large_model.py --work FOLDER

The model is a label tree of random weights, with names, as `longtail train` saves it. Every measurement is a process of
its own, after one that has compiled the kernels: the model is loaded with `verify="once"`, the first time (everything
is checked), then with its files in the cache of the system and with none of them there; then one row is predicted, ten
more one by one, and a batch of a thousand. `own` is memory of the process itself (RssAnon of /proc/PID/status),
`mapped` pages of files that it has touched (RssFile, which counts sixteen neighbouring pages at a time), `read` what
came from the disk (/proc/PID/io).
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import scipy.sparse as sp

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

import longtail as lt
from benchmarks.harness.program import Facts, make_parser, start_facts, write_results
from benchmarks.harness.timing import folder_bytes, memory, timed
from benchmarks.tree.growth_large import drop_from_cache
from longtail.storage import LabelColumns, MappedStrings, Part, save_folder
from longtail.tree import LabelTree
from longtail.tree.chunks import starts_of

LEAVES, LABELS_OF_LEAF, NODES = 20_000, 150, 150
FEATURES, FEATURES_OF_ROW = 337_067, 49
LINES_OF_CHUNK, ENTRIES_OF_LINE = 11_000, 9
MANY, FEW = 1000, 10  # rows predicted at once, and one by one
MODEL = "large-model"


def make_model(folder: Path) -> Path:
    """Save a model whose clusters all have as many lines, of random features and weights."""
    rng = np.random.default_rng(0)
    n_labels = LEAVES * LABELS_OF_LEAF
    of_leaf = np.sort(np.arange(LEAVES) % NODES).astype(np.int32)
    pointers = np.arange(LEAVES + 1) * LABELS_OF_LEAF
    labels = np.arange(n_labels, dtype=np.int32)
    tree = LabelTree((np.zeros(NODES, np.int32), of_leaf), pointers, labels, n_labels)
    widths = np.concatenate([[NODES], np.bincount(of_leaf), np.full(LEAVES, LABELS_OF_LEAF)])
    step = FEATURES // LINES_OF_CHUNK
    features = np.empty((widths.size, LINES_OF_CHUNK), np.int32)
    for chunk in range(widths.size):
        features[chunk] = np.arange(LINES_OF_CHUNK) * step + rng.integers(0, step, LINES_OF_CHUNK)
    n_lines = features.size
    n_weights = n_lines * ENTRIES_OF_LINE
    counts = np.full(n_lines, ENTRIES_OF_LINE, np.uint8)
    arrays = {
        "label_counts": np.ones(n_labels, np.int64),
        **{f"0.tree.{name}": array for name, array in tree.to_part().arrays.items()},
        "0.levels": np.array([0, 1, 1 + NODES, 1 + NODES + LEAVES]),
        "0.child_indptr": np.concatenate([[0], np.cumsum(widths)]),
        "0.line_indptr": np.arange(widths.size + 1) * LINES_OF_CHUNK,
        "0.features": features.ravel(),
        "0.counts": counts,
        "0.children": rng.integers(0, int(widths.min()), n_weights, dtype=np.uint8),
        "0.weights": rng.integers(-127, 128, n_weights, dtype=np.int8),
        "0.scales": np.full(widths.sum(), 0.01, np.float32),
        "0.bias": np.full(widths.sum(), -0.5, np.float32),
        "0.entry_starts": starts_of(counts),
    }
    params = lt.LabelTreeClassifier(random_state=0).saved_params()
    part = Part("label-tree.v1", {**params, "n_rows": 1, "n_features": FEATURES, "C_": 1.0, "levels": [2]}, arrays)
    names = LabelColumns(MappedStrings.of([f"label {i}" for i in range(n_labels)]), arrays["label_counts"])
    tagger = Part("tagger.v1", {"method": "tree", "calibrate": 0})
    return save_folder(folder, "tagger.v1", {"tagger": tagger, "model": part}, names, {"seed": 0, "data": {}})


def use(folder: Path) -> Facts:
    """Load the model and predict, in this process, and return what it took."""
    rng = np.random.default_rng(1)
    ids = np.sort(rng.integers(0, FEATURES // FEATURES_OF_ROW, (MANY + FEW + 1, FEATURES_OF_ROW)), axis=1)
    ids += np.arange(FEATURES_OF_ROW) * (FEATURES // FEATURES_OF_ROW)
    pointers = np.arange(ids.shape[0] + 1) * FEATURES_OF_ROW
    data = rng.random(ids.size, dtype=np.float32) + np.float32(0.5)
    X = sp.csr_array((data, ids.ravel().astype(np.int32), pointers), shape=(ids.shape[0], FEATURES))
    facts: Facts = {}

    def note(name: str, seconds: float) -> None:
        read = int(Path("/proc/self/io").read_text().split("read_bytes:")[1].split()[0])
        facts[name] = {
            "seconds": round(seconds, 4),
            "own_gigabytes": round(memory("RssAnon") / 1e9, 3),
            "mapped_gigabytes": round(memory("RssFile") / 1e9, 3),
            "read_gigabytes": round(read / 1e9, 3),
        }

    note("before", 0.0)
    spent, tagger = timed(lambda: lt.load(folder, verify="once"))
    note("load", spent.wall)
    if not isinstance(tagger, lt.Tagger):
        raise TypeError(f"{folder} holds no tagger")
    model = tagger.model_
    spent, top = timed(lambda: model.predict_topk(X[:1], k=5))
    note("one_row", spent.wall)
    named = [tagger.labels_[int(label)] for label in top.ids[0]]
    spent, _ = timed(lambda: [model.predict_topk(X[i : i + 1], k=5) for i in range(1, 1 + FEW)])
    note("each_of_ten_more", spent.wall / FEW)
    spent, _ = timed(lambda: model.predict_topk(X[-MANY:], k=5))
    note("a_thousand", spent.wall)
    return {**facts, "labels_of_one_row": named}


def main() -> None:
    parser = make_parser(__doc__, "large_model.json")
    parser.add_argument("--work", type=Path, help="folder for the model: 6 GB")
    parser.add_argument("--keep", action="store_true", help="the model stays in the folder")
    parser.add_argument("--use", type=Path, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.use is not None:
        print(json.dumps(use(args.use)))
        return
    folder = args.work / MODEL
    facts = start_facts(args, {})
    if not folder.exists():
        make_model(folder)
    facts["labels"] = LEAVES * LABELS_OF_LEAF
    facts["gigabytes"] = round(folder_bytes(folder) / 1e9, 3)
    for name in ("compiling", "first", "in_cache", "not_in_cache"):
        if name == "first":  # to the system it is another model then: nobody has checked it
            for file in folder.iterdir():
                file.touch()
            time.sleep(3)  # what was changed a moment ago is never taken as checked
        if name == "not_in_cache":
            drop_from_cache(folder)
        done = subprocess.run(
            [sys.executable, __file__, "--use", str(folder)], capture_output=True, text=True, check=True
        )
        if name != "compiling":
            facts[name] = json.loads(done.stdout)
            print(name, json.dumps(facts[name], indent=1), flush=True)
    write_results(facts, args.output)
    if not args.keep:
        shutil.rmtree(folder)


if __name__ == "__main__":
    main()
