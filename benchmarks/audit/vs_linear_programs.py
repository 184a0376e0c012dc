"""Compare audits of output layers with one full linear program per label set, and audit a whole test set.

    python benchmarks/audit/vs_linear_programs.py --data FOLDER

FOLDER holds `pubmed-mesh` and `yso-titles` (default LONGTAIL_DATA). Two parts:

1. label sets per second for n = 1,000 to 20,000 labels and d = 25 to 200 dimensions, random and trained weights, one
   thread each: `audit.argmaxable` with exact radii against HiGHS on the full linear program of every set. HiGHS is
   timed from a model that is already built. Times are processor times, so that other programs on the machine do not
   count. Every verdict is compared, and so is every radius.
2. all test rows of pubmed-mesh (10,851 labels) on a bottleneck of 50 dimensions trained on its train rows.

Every case is written as soon as it is finished; `--resume` goes on where a run ended. All of it takes about an hour on
2 cores; `--sizes 1000x25 --only-cases --seconds 2` is a try of a minute.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import highspy
import numpy as np
import scipy.sparse as sp
from sklearn.decomposition import TruncatedSVD

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

import longtail as lt
from benchmarks.harness.program import Facts, make_parser, start_facts, write_results
from benchmarks.harness.terminal import show_table
from benchmarks.harness.timing import timed
from longtail import audit
from longtail.data import read

BOX, EPS = 1e4, 1e-8
SIZES = [(n, d) for n in (1_000, 5_000, 10_000, 20_000) for d in (25, 50, 100, 200)]
FEATURES = 256


class ReducedWords:
    """Words as TF-IDF reduced to 256 dimensions: what the bottleneck is trained on."""

    def __init__(self, texts: tuple[str, ...]) -> None:
        self.words = lt.TfidfFeatures(min_df=3, max_features=50_000).fit(texts)
        self.svd = TruncatedSVD(FEATURES, random_state=0).fit(sp.csr_matrix(self.words.transform(texts)))

    def rows(self, texts: tuple[str, ...]) -> np.ndarray:
        """Return rows of unit length."""
        X = self.svd.transform(sp.csr_matrix(self.words.transform(texts)))
        return (X / np.maximum(np.linalg.norm(X, axis=1, keepdims=True), 1e-12)).astype(np.float32)


def bottleneck(X: np.ndarray, Y: sp.csr_array, d: int, epochs: int, seed: int = 0) -> dict[str, np.ndarray]:
    """Train scores W (P x + c) with the logistic loss by Adam: the bottleneck layer whose W is audited."""
    rng = np.random.default_rng(seed)
    n = Y.shape[1]
    shapes = {"W": (n, d), "P": (d, X.shape[1]), "c": (d,)}
    params = {name: (rng.uniform(-1, 1, s) / np.sqrt(s[-1])).astype(np.float32) for name, s in shapes.items()}
    moments = {name: (np.zeros_like(p), np.zeros_like(p)) for name, p in params.items()}
    step = 0
    for _ in range(epochs):
        for rows in np.array_split(rng.permutation(X.shape[0]), max(1, X.shape[0] // 128)):
            x = X[rows]
            h = x @ params["P"].T + params["c"]
            g = 1 / (1 + np.exp(-(h @ params["W"].T)))
            g -= Y[rows].toarray()
            g /= len(rows)
            back = g @ params["W"]
            grads = {"W": g.T @ h, "P": back.T @ x, "c": back.sum(axis=0)}
            step += 1
            for name, p in params.items():
                first, second = moments[name]
                first += 0.1 * (grads[name] - first)
                second += 0.001 * (grads[name] ** 2 - second)
                size = 3e-3 * np.sqrt(1 - 0.999**step) / (1 - 0.9**step)
                p -= size * first / (np.sqrt(second) + 1e-8)
    return params


def one_full_lp(table: np.ndarray, signs: np.ndarray) -> tuple[bool | None, float, float]:
    """Return verdict, radius and seconds of HiGHS on all rows; `table` holds rows of unit length."""
    n, d = table.shape
    lp = highspy.HighsLp()
    lp.num_col_, lp.num_row_ = d + 1, n
    lp.col_cost_ = np.concatenate([np.zeros(d), [-1.0]])
    lp.col_lower_ = np.concatenate([np.full(d, -BOX), [0.0]])
    lp.col_upper_ = np.concatenate([np.full(d, BOX), [highspy.kHighsInf]])
    lp.row_lower_, lp.row_upper_ = np.full(n, -highspy.kHighsInf), np.zeros(n)
    lp.a_matrix_.format_ = highspy.MatrixFormat.kRowwise
    lp.a_matrix_.start_ = np.arange(0, n * (d + 1) + 1, d + 1, dtype=np.int32)
    lp.a_matrix_.index_ = np.tile(np.arange(d + 1, dtype=np.int32), n)
    lp.a_matrix_.value_ = np.column_stack([-signs[:, None] * table, np.ones(n)]).ravel()
    solver = highspy.Highs()
    solver.setOptionValue("output_flag", False)
    solver.setOptionValue("threads", 1)
    solver.setOptionValue("solver", "simplex")
    for name in ("primal_feasibility_tolerance", "dual_feasibility_tolerance"):
        solver.setOptionValue(name, 1e-9)
    solver.passModel(lp)
    started = time.process_time()
    solver.run()
    seconds = time.process_time() - started
    z = np.array(solver.getSolution().col_value)
    if solver.getModelStatus() != highspy.HighsModelStatus.kOptimal:
        return None, float("nan"), seconds
    if z[d] <= EPS:
        return False, 0.0, seconds
    right = bool((np.sign(table @ z[:d]) == signs).all())
    return (True if right else None), float(z[d]), seconds


def compare(W: np.ndarray, Y: sp.csr_array, seconds: float) -> Facts:
    """Compare on as many sets as HiGHS can do in the given time, at least 4."""
    W = W.astype(np.float64)
    table = W / np.linalg.norm(W, axis=1, keepdims=True)
    verdicts: list[bool | None] = []
    radii: list[float] = []
    theirs: list[float] = []
    while len(theirs) < Y.shape[0] and (len(theirs) < 4 or sum(theirs) < seconds):
        signs = np.where(Y[[len(theirs)]].toarray().ravel() > 0, 1.0, -1.0)
        verdict, radius, took = one_full_lp(table, signs)
        verdicts.append(verdict)
        radii.append(radius)
        theirs.append(took)
    Y = Y[: len(theirs)]
    exact, result = timed(lambda: audit.argmaxable(W, Y, box=BOX, eps=EPS, n_jobs=1))
    quick, bounds = timed(lambda: audit.argmaxable(W, Y, box=BOX, eps=EPS, n_jobs=1, radius="bound"))
    reachable, set_of_row = result.reachable, result.set_of_row
    both = [i for i, v in enumerate(verdicts) if v is not None]
    return {
        "sets": len(theirs),
        "distinct": len(result),
        "reachable": int(reachable[set_of_row].sum()),
        "undecided": result.n_sets("undecided"),
        "highs_failed": len(verdicts) - len(both),
        "verdicts_differ": sum(bool(reachable[set_of_row[i]]) != verdicts[i] for i in both),
        "verdicts_of_bound_differ": int((bounds.reachable != reachable).sum()),
        "largest_radius_difference": max((abs(result.radius[set_of_row[i]] - radii[i]) for i in both), default=0.0),
        "highs_seconds_per_set": float(np.mean(theirs)),
        "seconds_per_set": exact.cpu / len(theirs),
        "seconds_per_set_bound": quick.cpu / len(theirs),
        "speedup": float(np.sum(theirs)) / exact.cpu,
        "speedup_bound": float(np.sum(theirs)) / quick.cpu,
        "decided_by": result.facts()["decided_by"],
    }


def random_case(n: int, d: int) -> tuple[np.ndarray, sp.csr_array]:
    """Return Gaussian weights; half of the sets come from random inputs, half are 1 to 10 random labels."""
    rng = np.random.default_rng(n + d)
    W = rng.standard_normal((n, d))
    out = sp.lil_array((64, n), dtype=np.float32)
    for i in range(64):
        ids = np.flatnonzero(W @ rng.standard_normal(d) > 0) if i % 2 else rng.choice(n, rng.integers(1, 11), False)
        out[[i], ids] = 1
    return W, sp.csr_array(out)


@cache
def load(folder: Path, name: str) -> tuple[np.ndarray, sp.csr_array, np.ndarray, sp.csr_array]:
    """Return features and labels of at most 30,000 train rows and of the test rows, frequent labels first."""
    train, test = (read(folder / name / f"{part}.jsonl.xz") for part in ("train", "test"))
    if train.n_rows > 30_000:
        train = train.take(np.random.default_rng(0).choice(train.n_rows, 30_000, replace=False))
    names = tuple(sorted({*train.names(), *test.names()}))
    train, test = train.align(names)[0], test.align(names)[0]
    order = np.argsort(-np.bincount(train.Y.indices, minlength=len(names)), kind="stable")
    words = ReducedWords(train.texts or ())
    X, X_test = words.rows(train.texts or ()), words.rows(test.texts or ())
    return X, sp.csr_array(train.Y[:, order]), X_test, sp.csr_array(test.Y[:, order])


def trained_case(data: tuple[Any, ...], n: int, d: int, epochs: int) -> tuple[np.ndarray, sp.csr_array]:
    """Return the weights of a bottleneck for the n most frequent labels, and 64 label sets.

    Half are sets of test rows; half are what the layer says for test rows, so that some are reachable.
    """
    X, Y, X_test, Y_test = data
    params = bottleneck(X, sp.csr_array(Y[:, :n]), d, epochs)
    rng = np.random.default_rng(0)
    rows = rng.choice(X_test.shape[0], 64, replace=False)
    sets = sp.lil_array(Y_test[rows][:, :n])
    said = (X_test[rows] @ params["P"].T + params["c"]) @ params["W"].T > 0
    sets[1::2] = said[1::2]
    return params["W"], sp.csr_array(sets)


def whole_test_set(data: tuple[Any, ...], d: int, epochs: int, jobs: int) -> Facts:
    """Audit every test row on a trained bottleneck, exact radii, and check every certificate again."""
    X, Y, _, Y_test = data
    training, params = timed(lambda: bottleneck(X, Y, d, epochs))
    W = params["W"]
    exact, result = timed(lambda: audit.argmaxable(W, Y_test, box=BOX, eps=EPS, n_jobs=jobs))
    quick, bounds = timed(lambda: audit.argmaxable(W, Y_test, box=BOX, eps=EPS, n_jobs=jobs, radius="bound"))
    wrong = 0
    for i in range(0, len(result), 10):
        proof = audit.check_certificate(W, result.members[i], result.certificates[i], box=BOX)
        wrong += proof.reachable is not (None if result.verdicts[i] == "undecided" else bool(result.reachable[i]))
    facts = result.facts(most=5)
    return {
        "data": "pubmed-mesh, test",
        "n_labels": Y.shape[1],
        "width": d,
        "epochs": epochs,
        "threads": jobs,
        "train_seconds": training.wall,
        "audit_seconds": exact.wall,
        "bound_seconds": quick.wall,
        "within_5_minutes": exact.wall < 300,
        "certificates_wrong": wrong,
        "bound_agrees": bool((bounds.verdicts == result.verdicts).all()),
        "robust_at_eps_1": int((result.radius >= 1).sum()),
        **{name: facts[name] for name in ("n_rows", "n_sets", "sets", "rows", "radius_quantiles", "decided_by")},
    }


def show(cases: Facts) -> None:
    """Print the cases as a table."""
    rows = [
        [
            name,
            case["sets"],
            case["reachable"],
            case["verdicts_differ"],
            f"{case['highs_seconds_per_set']:.3f}",
            f"{1e3 * case['seconds_per_set']:.2f}",
            f"{case['speedup']:.0f}",
            f"{case['speedup_bound']:.0f}",
        ]
        for name, case in cases.items()
    ]
    show_table("cases", ["", "sets", "yes", "differ", "HiGHS s", "ours ms", "times", "bound"], rows)


def summarise(cases: Facts) -> Facts:
    """Return counts over all cases, and the median and smallest speedup."""
    speedups = [case["speedup"] for case in cases.values()]
    return {
        "sets": sum(case["sets"] for case in cases.values()),
        "verdicts_differ": sum(case["verdicts_differ"] for case in cases.values()),
        "highs_failed": sum(case["highs_failed"] for case in cases.values()),
        "undecided": sum(case["undecided"] for case in cases.values()),
        "median_speedup": float(np.median(speedups)),
        "smallest_speedup": float(np.min(speedups)),
        "at_least_20_times": bool(np.median(speedups) >= 20),
    }


def cases_to_do(args: argparse.Namespace) -> Iterator[tuple[str, str, int, int]]:
    """Yield name, kind of weights, number of labels and of dimensions."""
    sizes = SIZES if args.sizes is None else [tuple(map(int, size.split("x"))) for size in args.sizes.split(",")]
    for kind in ("random", "trained"):
        for n, d in sizes:
            yield f"{kind} n={n} d={d}", kind, n, d


def measure(kind: str, n: int, d: int, args: argparse.Namespace) -> Facts:
    """Measure one case."""
    if kind == "random":
        return {"weights": "Gaussian", **compare(*random_case(n, d), args.seconds)}
    name = "pubmed-mesh" if n <= 10_000 else "yso-titles"
    W, Y = trained_case(load(args.data, name), n, d, args.epochs)
    return {"weights": f"trained on {name}", **compare(W, Y, args.seconds)}


def main() -> None:
    parser = make_parser(__doc__, "audit.json", data="required", resume=True)
    parser.add_argument("--seconds", type=float, default=60.0, help="for HiGHS, per case; at least 4 sets are done")
    parser.add_argument("--epochs", type=int, default=5)
    parser.add_argument("--sizes", default=None, metavar="1000x25,…", help="labels x dimensions; all if not given")
    parser.add_argument("--only-cases", action="store_true", help="leave the whole test set out")
    parser.add_argument("--jobs", type=int, default=2)
    args = parser.parse_args()
    facts = start_facts(args, {"cases": {}}, "highspy")
    audit.argmaxable(np.eye(3), np.eye(3), radius="bound")  # compile before timing
    if "test set" not in facts and not args.only_cases:
        facts["test set"] = whole_test_set(load(args.data, "pubmed-mesh"), 50, args.epochs, args.jobs)
        print(json.dumps(facts["test set"], indent=1), flush=True)
        write_results(facts, args.output)
    for name, kind, n, d in cases_to_do(args):
        if name not in facts["cases"]:
            facts["cases"][name] = measure(kind, n, d, args)
            facts["summary"] = summarise(facts["cases"])
            write_results(facts, args.output)
            show({name: facts["cases"][name]})
    show(facts["cases"])
    print(json.dumps(facts["summary"], indent=1))


if __name__ == "__main__":
    main()
