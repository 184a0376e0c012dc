"""Compare one-vs-all with scikit-learn's LinearSVC in OneVsRestClassifier, and with DiSMEC's published numbers.

    python benchmarks/one_vs_all/vs_scikit_learn.py --data FOLDER

FOLDER holds `eurlex-4k` and `bibtex` (train.txt.xz and test.txt.xz in XMC text); default LONGTAIL_DATA. Two parts:

1. the same C, tolerance, dual solver and number of cores: train time as a ratio, P@k side by side;
2. settings for eurlex-4k chosen on a fifth of train, then P@k on test with three seeds beside DiSMEC's.

scikit-learn takes about a quarter of an hour on eurlex-4k; `--skip-peer` leaves it out.
"""

from __future__ import annotations

import itertools
import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.multiclass import OneVsRestClassifier
from sklearn.preprocessing import normalize
from sklearn.svm import LinearSVC

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

import longtail as lt
from benchmarks.harness.data_sets import read_parts
from benchmarks.harness.program import Facts, make_parser, start_facts, write_results
from benchmarks.harness.scores import KS, precisions, rounded
from benchmarks.harness.timing import timed
from longtail.data import split_random

DISMEC = {"p@1": 82.40, "p@3": 68.50, "p@5": 57.70}
GRID: dict[str, list[float]] = {"C": [0.25, 0.5, 1.0, 2.0, 4.0], "positive_weight": [1.0, 2.0]}
MINE = "eurlex-4k, settings from train"  # the part without a peer


def ours(train: lt.Dataset, test: lt.Dataset, jobs: int, **params: Any) -> Facts:
    """Train our classifier; return times, size and precision."""
    model = lt.OneVsAllClassifier(n_jobs=jobs, **params)
    training, _ = timed(lambda: model.fit(train.X, train.Y))
    predicting, top = timed(lambda: model.predict_topk(test.X, k=max(KS)))
    return {
        "train_seconds": training.wall,
        "predict_us_per_row": 1e6 * predicting.wall / test.n_rows,
        "weights": int(model.weights_.nnz),
        **rounded(precisions(test.Y, top), 3),
    }


def peer(train: lt.Dataset, test: lt.Dataset, jobs: int, C: float, tol: float) -> Facts:
    """Train scikit-learn's; return times and precision."""

    def rows(X: Any) -> sp.csr_matrix:  # LinearSVC takes 64-bit floats and 32-bit ids
        M = sp.csr_matrix(normalize(sp.csr_matrix(X).astype(np.float64)))
        return sp.csr_matrix((M.data, M.indices.astype(np.int32), M.indptr.astype(np.int32)), shape=M.shape)

    used = np.flatnonzero(np.bincount(train.Y.indices, minlength=train.n_labels))
    svc = LinearSVC(C=C, tol=tol, dual=True, max_iter=1000, random_state=0)
    X, Y = rows(train.X), sp.csr_matrix(train.Y[:, used])
    training, model = timed(lambda: OneVsRestClassifier(svc, n_jobs=jobs).fit(X, Y))
    predicting, scores = timed(lambda: model.decision_function(rows(test.X)))
    top = lt.TopK.from_scores(scores, k=max(KS))
    return {
        "train_seconds": training.wall,
        "predict_us_per_row": 1e6 * predicting.wall / test.n_rows,
        **rounded(precisions(test.Y, lt.TopK(used[top.ids], top.scores)), 3),
    }


def against_peer(name: str, folder: Path, jobs: int, C: float, tol: float, repeats: int) -> Facts:
    """Compare with scikit-learn on one data set; ours is the median of `repeats` runs."""
    train, test = read_parts(folder / name)
    runs = [ours(train, test, jobs, C=C, tol=tol, threshold=0.0) for _ in range(repeats)]
    mine = {key: float(np.median([run[key] for run in runs])) for key in runs[0]}
    theirs = peer(train, test, jobs, C, tol)
    return {
        "C": C,
        "tol": tol,
        "longtail": mine,
        "scikit-learn": theirs,
        "train_speedup": theirs["train_seconds"] / mine["train_seconds"],
        "difference": {f"p@{k}": mine[f"p@{k}"] - theirs[f"p@{k}"] for k in KS},
        "within_0.3": all(abs(mine[f"p@{k}"] - theirs[f"p@{k}"]) <= 0.3 for k in KS),
    }


def chosen_on_train(folder: Path, jobs: int, seeds: list[int]) -> Facts:
    """Choose settings on a fifth of train, and measure them on test beside DiSMEC's published numbers."""
    train, test = read_parts(folder / "eurlex-4k")
    part, held = split_random(train.Y, test_size=0.2, random_state=0)
    small, valid = train.take(part), train.take(held)
    tried = []
    for values in itertools.product(*GRID.values()):
        params = dict(zip(GRID, values, strict=True))
        run = ours(small, valid, jobs, **params)
        tried.append({**params, **{f"p@{k}": run[f"p@{k}"] for k in KS}})
        print("  held out", tried[-1], flush=True)
    best = max(tried, key=lambda run: run["p@1"] + run["p@3"] + run["p@5"])
    params = {name: best[name] for name in GRID}
    runs = [ours(train, test, jobs, random_state=seed, **params) for seed in seeds]
    scores = {f"p@{k}": [run[f"p@{k}"] for run in runs] for k in KS}
    return {
        "tried_on_a_fifth_of_train": tried,
        "chosen": params,
        "seeds": seeds,
        "test_mean": {key: float(np.mean(runs_of)) for key, runs_of in scores.items()},
        "test_sd": {key: float(np.std(runs_of)) for key, runs_of in scores.items()},
        "train_seconds": float(np.median([run["train_seconds"] for run in runs])),
        "predict_us_per_row": float(np.median([run["predict_us_per_row"] for run in runs])),
        "dismec_published": DISMEC,
        "at_or_above_dismec": all(np.mean(scores[key]) >= DISMEC[key] for key in DISMEC),
    }


def main() -> None:
    parser = make_parser(__doc__, "one_vs_all.json", data="required", seeds=(0, 1, 2), resume=True)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--tol", type=float, default=0.1)
    parser.add_argument("--C", type=float, default=1.0)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--only", nargs="+", choices=("bibtex", "eurlex-4k"), default=["bibtex", "eurlex-4k"])
    parser.add_argument("--skip-peer", action="store_true")
    args = parser.parse_args()
    lt.OneVsAllClassifier(max_iter=2).fit(np.eye(3), np.eye(3)).predict_topk(np.eye(3))  # compile before timing
    facts = start_facts(args, {})
    parts = [MINE] if "eurlex-4k" in args.only else []
    for name in parts if args.skip_peer else [*parts, *args.only]:
        if name not in facts:
            facts[name] = (
                chosen_on_train(args.data, args.jobs, args.seeds)
                if name == MINE
                else against_peer(name, args.data, args.jobs, args.C, args.tol, args.repeats)
            )
            print(name, json.dumps(facts[name], indent=1), flush=True)
            write_results(facts, args.output)


if __name__ == "__main__":
    main()
