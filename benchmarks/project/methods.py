"""Measure which method suits which data: a label tree against one classifier per label, for 159 to 14,000 labels.

    python benchmarks/project/methods.py --data FOLDER

FOLDER holds `bibtex`, `delicious`, `eurlex-4k`, `pubmed-mesh` and `yso-titles`; the bundled debtags come along. A case
is the training rows of a data set, or some thousand of them, with the precision on its test rows; the tree with
`overlap="auto"`, both with their defaults otherwise. What larger data and encoders do is in `disentangle.json` and
`prime.json`. `longtail plan` and `--method auto` choose by these three files (`pipeline/choose_method.py`).
"""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from benchmarks.harness.data_sets import read_parts
from benchmarks.harness.program import Facts, make_parser, start_facts, write_results
from benchmarks.harness.scores import mean_of, precisions
from benchmarks.harness.terminal import show_table
from longtail.data import Dataset, load_bundled, rows_per_label
from longtail.one_vs_all import OneVsAllClassifier
from longtail.text import TfidfFeatures
from longtail.tree import LabelTreeClassifier

CASES: dict[str, tuple[str, int | None]] = {  # name: data set, training rows (None: all)
    "bibtex": ("bibtex", None),
    "delicious": ("delicious", None),
    "debtags, 1,000 rows": ("debtags", 1_000),
    "debtags, 5,000 rows": ("debtags", 5_000),
    "debtags": ("debtags", None),
    "eurlex-4k, 2,000 rows": ("eurlex-4k", 2_000),
    "pubmed-mesh, 2,000 rows": ("pubmed-mesh", 2_000),
    "yso-titles, 10,000 rows": ("yso-titles", 10_000),
}
N_TEST = 2_500


def read_case(folder: Path, name: str, n_rows: int | None, seed: int) -> tuple[Dataset, Dataset]:
    """Return training and test rows as matrices; texts become words, learned on the training rows."""
    if name == "debtags":
        train, test = load_bundled(name, "train"), load_bundled(name, "test")
    else:
        train, test = read_parts(folder / name)
    rng = np.random.default_rng(seed)
    train = train if n_rows is None else train.take(np.sort(rng.permutation(train.n_rows)[:n_rows]))
    test = test.take(np.sort(rng.permutation(test.n_rows)[:N_TEST]))
    if train.texts is None or test.texts is None:
        return train, test
    words = TfidfFeatures()
    return Dataset(X=words.fit_transform(train.texts), Y=train.Y), Dataset(X=words.transform(test.texts), Y=test.Y)


def measure(train: Dataset, test: Dataset, seed: int) -> Facts:
    """Return precision and time of both methods on the same rows."""
    models: dict[str, Any] = {
        "tree": LabelTreeClassifier(overlap="auto", random_state=seed),
        "ova": OneVsAllClassifier(),
    }
    out: Facts = {}
    for method, model in models.items():
        started = time.process_time()
        model.fit(train.X, train.Y)
        trained = time.process_time()
        top = model.predict_topk(test.X, k=5)
        scores = {name: round(value, 3) for name, value in precisions(test.Y, top).items()}
        out[method] = {**scores, "train_cpu_s": round(trained - started, 2)}
        out[method]["predict_cpu_us"] = round(1e6 * (time.process_time() - trained) / test.n_rows, 1)
    return out


def summary(runs: list[Facts]) -> Facts:
    """Return means over seeds, and what one classifier per label gains over the tree."""
    out: Facts = {
        method: {name: round(mean_of([run[method] for run in runs], name) or 0.0, 2) for name in runs[0][method]}
        for method in ("tree", "ova")
    }
    out["ova_gain"] = {name: round(out["ova"][name] - out["tree"][name], 2) for name in ("p@1", "p@3", "p@5")}
    return out


def main() -> None:
    parser = make_parser(__doc__, "methods.json", data="required", seeds=(0, 1), resume=True)
    args = parser.parse_args()
    facts = start_facts(args, {"cases": {}})
    for case, (name, n_rows) in CASES.items():
        if case in facts["cases"]:
            continue
        runs = []
        for seed in args.seeds if n_rows is not None else args.seeds[:1]:
            train, test = read_case(args.data, name, n_rows, seed)
            runs.append(measure(train, test, seed))
        counts = rows_per_label(train.Y)
        shape = {"rows": train.n_rows, "labels": int(counts.size), "rows_per_label": round(float(counts.mean()), 1)}
        facts["cases"][case] = {**shape, "seeds": len(runs), **summary(runs)}
        write_results(facts, args.output)
    rows = [
        [case, m["labels"], m["rows_per_label"], *(f"{m['ova_gain'][k]:+.2f}" for k in ("p@1", "p@3", "p@5"))]
        for case, m in facts["cases"].items()
    ]
    show_table("one classifier per label beside the tree", ["", "labels", "rows a label", "P@1", "P@3", "P@5"], rows)


if __name__ == "__main__":
    main()
