"""Measure what the words at the beginning of a text do to accuracy in columns of their own, beside words and pairs.

    python benchmarks/text/beginnings.py --data FOLDER

FOLDER of --data holds `eurlex57k`, `pubmed-mesh` and `yso-titles`; debtags and debian-relations come along.

Each case trains a label tree with overlap 2 on all training rows but 4,000, drawn anew for every seed, and asks these.
Only training parts are read, so that nothing is chosen on test rows. Texts of fewer than 32 words on average have no
beginning, and are measured with words and pairs alone.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from benchmarks.harness.data_sets import read_parts
from benchmarks.harness.program import Facts, make_parser, start_facts, write_results
from benchmarks.harness.scores import mean_of, precisions, spread
from benchmarks.harness.terminal import show_table
from longtail.data import Dataset, load_bundled
from longtail.metrics import propensities, psp_at_k
from longtail.text import BeginningFeatures, TfidfFeatures, beginning_length
from longtail.tree import LabelTreeClassifier

BUNDLED = ("debtags", "debian-relations")
NAMES = (*BUNDLED, "yso-titles", "pubmed-mesh", "eurlex57k")
HELD_OUT = 4_000
BEGINNING = "words and beginnings"
READERS: dict[str, Callable[[], Any]] = {
    "words": TfidfFeatures,
    "words and pairs": lambda: TfidfFeatures((1, 2)),
    "words and heavier pairs": lambda: TfidfFeatures((1, 2), ngram_weight=0.7),
    BEGINNING: BeginningFeatures,
}
METRICS = ("p@1", "p@3", "p@5", "psp@5")


def training_rows(name: str, folder: Path) -> Dataset:
    """Return the training rows of a data set."""
    return load_bundled(name, "train") if name in BUNDLED else read_parts(folder / name)[0]


def measure(learned: Dataset, asked: Dataset, features: Any, seed: int) -> Facts:
    """Train on some rows and return how the labels of others are found, with times and the number of columns."""
    started = time.perf_counter()
    X = features.fit_transform(list(learned.texts or ()))
    read = time.perf_counter()
    model = LabelTreeClassifier(overlap=2, random_state=seed).fit(X, learned.Y)
    trained = time.perf_counter()
    top = model.predict_topk(features.transform(list(asked.texts or ())), k=5)
    psp = 100 * float(psp_at_k(asked.Y, top, propensities(learned.Y), k=5))
    return {
        "seed": seed,
        **{name: round(value, 3) for name, value in {**precisions(asked.Y, top), "psp@5": psp}.items()},
        "columns": features.n_features_,
        "nonzeros_per_row": round(X.nnz / X.shape[0], 1),
        "features_s": round(read - started, 2),
        "train_s": round(trained - read, 2),
    }


def summary(runs: Sequence[Facts], words: Sequence[Facts]) -> Facts:
    """Return means over seeds, and what they gain over words alone on the same rows."""
    out: Facts = {name: round(mean_of(runs, name) or 0.0, 2) for name in list(runs[0])[1:]}
    for name in METRICS:
        gains = [run[name] - base[name] for run, base in zip(runs, words, strict=True)]
        out[f"gain_{name}"] = round(sum(gains) / len(gains), 2)
        out[f"gain_{name}_sd"] = round(spread(gains) or 0.0, 2)
    return out


def compare(name: str, args: Any) -> Facts:
    """Return the measurements of one data set with all features that suit its texts."""
    data = training_rows(name, args.data)
    n_words = beginning_length(data.texts or ())
    readers = {kind: make for kind, make in READERS.items() if n_words or kind != BEGINNING}
    runs: dict[str, list[Facts]] = {kind: [] for kind in readers}
    for seed in args.seeds:
        order = np.random.default_rng(seed).permutation(data.n_rows)
        asked, learned = (data.take(np.sort(rows)) for rows in (order[:HELD_OUT], order[HELD_OUT:]))
        for kind, make in readers.items():
            runs[kind].append(measure(learned, asked, make(), seed))
    out: Facts = {
        "train_rows": data.n_rows - HELD_OUT,
        "asked_rows": HELD_OUT,
        "words_of_a_beginning": n_words,
        "mean": {kind: summary(found, runs["words"]) for kind, found in runs.items()},
        "runs": runs,
    }
    shown = ("p@1", "p@5", "psp@5", "gain_p@1", "gain_p@5", "gain_psp@5", "train_s")
    rows = [[kind, *(f"{mean[k]:.2f}" for k in shown), mean["columns"]] for kind, mean in out["mean"].items()]
    show_table(name, ["", *shown, "columns"], rows)
    return out


def main() -> None:
    parser = make_parser(__doc__, "beginnings.json", data="required", seeds=(0, 1, 2), resume=True)
    parser.add_argument("--only", nargs="+", choices=NAMES, default=list(NAMES), help="data sets")
    args = parser.parse_args()
    about = "training rows of bundled debtags and debian-relations, of yso-titles, pubmed-mesh and eurlex57k"
    facts = start_facts(args, {"data": about, "results": {}})
    for name in args.only:
        if name not in facts["results"]:
            facts["results"][name] = compare(name, args)
            write_results(facts, args.output)


if __name__ == "__main__":
    main()
