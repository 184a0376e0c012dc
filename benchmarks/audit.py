"""Audits of output layers against one full linear program per label set, and a whole test set within minutes.

    python benchmarks/audit.py --data FOLDER

FOLDER holds `pubmed-mesh` and `yso-titles` (see the data page); default LONGTAIL_DATA. Two parts:

1. label sets per second for n = 1,000 to 20,000 labels and d = 25 to 200 dimensions, random and trained weights, one
   thread each: `audit.argmaxable` with exact radii against HiGHS on the full linear program of every set. HiGHS is
   timed from a model that is already built. Times are processor times, so that other programs on the machine do not
   count. Every verdict is compared, and so is every radius.
2. all test rows of pubmed-mesh (10,851 labels) on a bottleneck of 50 dimensions trained on its train rows.

Every case is written as soon as it is finished; a second call goes on where the first stopped. All of it takes about an
hour on 2 cores; `--sizes 1000x25 --only-cases --seconds 2` is a try of a minute.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import time
from pathlib import Path
from typing import Any

import highspy
import numpy as np
import scipy.sparse as sp
from sklearn.decomposition import TruncatedSVD

import longtail as lt
from longtail import audit
from longtail.data import read

BOX, EPS = 1e4, 1e-8
SIZES = [(n, d) for n in (1_000, 5_000, 10_000, 20_000) for d in (25, 50, 100, 200)]
FEATURES = 256


def features(data: lt.Dataset, fitted: list[Any]) -> np.ndarray:
    """Return TF-IDF rows in 256 dimensions, of unit length; the first call fits."""
    texts = data.texts or ()
    if not fitted:
        words = lt.TfidfFeatures(min_df=3, max_features=50_000).fit(texts)
        fitted += [words, TruncatedSVD(FEATURES, random_state=0).fit(sp.csr_matrix(words.transform(texts)))]
    words, svd = fitted
    X = svd.transform(sp.csr_matrix(words.transform(texts)))
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


def compare(W: np.ndarray, Y: sp.csr_array, seconds: float) -> dict[str, Any]:
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
    started = time.process_time()
    found = audit.argmaxable(W, Y, box=BOX, eps=EPS, n_jobs=1)
    ours = time.process_time() - started
    started = time.process_time()
    quick = audit.argmaxable(W, Y, box=BOX, eps=EPS, n_jobs=1, radius="bound")
    bound = time.process_time() - started
    reachable, place = found.reachable, found.set_of_row
    both = [i for i, v in enumerate(verdicts) if v is not None]
    return {
        "sets": len(theirs),
        "distinct": len(found),
        "reachable": int(reachable[place].sum()),
        "undecided": found.n_sets("undecided"),
        "highs_failed": len(verdicts) - len(both),
        "verdicts_differ": sum(bool(reachable[place[i]]) != verdicts[i] for i in both),
        "verdicts_of_bound_differ": int((quick.reachable != reachable).sum()),
        "largest_radius_difference": max((abs(found.radius[place[i]] - radii[i]) for i in both), default=0.0),
        "highs_seconds_per_set": float(np.mean(theirs)),
        "seconds_per_set": ours / len(theirs),
        "seconds_per_set_bound": bound / len(theirs),
        "speedup": float(np.sum(theirs)) / ours,
        "speedup_bound": float(np.sum(theirs)) / bound,
        "decided_by": found.facts()["decided_by"],
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


def load(folder: Path, name: str) -> tuple[np.ndarray, sp.csr_array, np.ndarray, sp.csr_array]:
    """Return features and labels of at most 30,000 train rows and of the test rows, frequent labels first."""
    train, test = (read(folder / name / f"{part}.jsonl.xz") for part in ("train", "test"))
    if train.n_rows > 30_000:
        train = train.take(np.random.default_rng(0).choice(train.n_rows, 30_000, replace=False))
    names = tuple(sorted({*train.names(), *test.names()}))
    train, test = train.align(names)[0], test.align(names)[0]
    order = np.argsort(-np.bincount(train.Y.indices, minlength=len(names)), kind="stable")
    fitted: list[Any] = []
    X = features(train, fitted)
    return X, sp.csr_array(train.Y[:, order]), features(test, fitted), sp.csr_array(test.Y[:, order])


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


def whole_test_set(data: tuple[Any, ...], d: int, epochs: int, jobs: int) -> dict[str, Any]:
    """Audit every test row on a trained bottleneck, exact radii, and check every certificate again."""
    X, Y, _, Y_test = data
    started = time.perf_counter()
    W = bottleneck(X, Y, d, epochs)["W"]
    trained = time.perf_counter()
    found = audit.argmaxable(W, Y_test, box=BOX, eps=EPS, n_jobs=jobs)
    audited = time.perf_counter()
    quick = audit.argmaxable(W, Y_test, box=BOX, eps=EPS, n_jobs=jobs, radius="bound")
    bound = time.perf_counter()
    wrong = 0
    for i in range(0, len(found), 10):
        proof = audit.check_certificate(W, found.members[i], found.certificates[i], box=BOX)
        wrong += proof.reachable is not (None if found.verdicts[i] == "undecided" else bool(found.reachable[i]))
    facts = found.facts(most=5)
    return {
        "data": "pubmed-mesh, test",
        "n_labels": Y.shape[1],
        "width": d,
        "epochs": epochs,
        "threads": jobs,
        "train_seconds": trained - started,
        "audit_seconds": audited - trained,
        "bound_seconds": bound - audited,
        "within_5_minutes": audited - trained < 300,
        "certificates_wrong": wrong,
        "bound_agrees": bool((quick.verdicts == found.verdicts).all()),
        "robust_at_eps_1": int((found.radius >= 1).sum()),
        **{name: facts[name] for name in ("n_rows", "n_sets", "sets", "rows", "radius_quantiles", "decided_by")},
    }


def table(facts: dict[str, Any]) -> str:
    lines = [f"{'case':<24}{'sets':>6}{'yes':>6}{'differ':>8}{'HiGHS s':>10}{'ours ms':>10}{'times':>8}{'bound':>8}"]
    for name, case in facts["cases"].items():
        lines.append(
            f"{name:<24}{case['sets']:>6}{case['reachable']:>6}{case['verdicts_differ']:>8}"
            f"{case['highs_seconds_per_set']:>10.3f}{1e3 * case['seconds_per_set']:>10.2f}"
            f"{case['speedup']:>8.0f}{case['speedup_bound']:>8.0f}"
        )
    return "\n".join(lines)


def summary(cases: dict[str, Any]) -> dict[str, Any]:
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


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    default = os.environ.get("LONGTAIL_DATA")
    parser.add_argument("--data", type=Path, default=default, required=default is None)
    parser.add_argument("--output", type=Path, default=Path(__file__).parent / "results" / "audit.json")
    parser.add_argument("--seconds", type=float, default=60.0, help="for HiGHS, per case; at least 4 sets are done")
    parser.add_argument("--epochs", type=int, default=5)
    parser.add_argument("--sizes", default=None, metavar="1000x25,…", help="labels x dimensions; all if not given")
    parser.add_argument("--only-cases", action="store_true", help="leave the whole test set out")
    parser.add_argument("--jobs", type=int, default=2)
    args = parser.parse_args()
    facts: dict[str, Any] = {"cases": {}}
    if args.output.exists():
        facts = json.loads(args.output.read_text())
    facts["command"] = f"python benchmarks/audit.py --seconds {args.seconds:g} --epochs {args.epochs}"
    facts["versions"] = {
        "longtail": lt.__version__,
        "highspy": highspy.Highs().version(),
        "python": platform.python_version(),
    }
    facts["cores"] = os.cpu_count()
    loaded: dict[str, Any] = {}

    def data(name: str) -> tuple[Any, ...]:
        if name not in loaded:
            loaded[name] = load(args.data, name)
        return loaded[name]

    def save() -> None:
        if facts["cases"]:
            facts["summary"] = summary(facts["cases"])
        args.output.parent.mkdir(parents=True, exist_ok=True)
        args.output.write_text(json.dumps(facts, indent=1) + "\n")

    audit.argmaxable(np.eye(3), np.eye(3), radius="bound")  # compile before timing
    sizes = SIZES if args.sizes is None else [tuple(map(int, size.split("x"))) for size in args.sizes.split(",")]
    if "test set" not in facts and not args.only_cases:
        facts["test set"] = whole_test_set(data("pubmed-mesh"), 50, args.epochs, args.jobs)
        print(json.dumps(facts["test set"], indent=1), flush=True)
        save()
    for kind in ("random", "trained"):
        for n, d in sizes:
            case = f"{kind} n={n} d={d}"
            if case in facts["cases"]:
                continue
            name = "pubmed-mesh" if n <= 10_000 else "yso-titles"
            W, Y = random_case(n, d) if kind == "random" else trained_case(data(name), n, d, args.epochs)
            about = {"weights": "Gaussian" if kind == "random" else f"trained on {name}"}
            facts["cases"][case] = about | compare(W, Y, args.seconds)
            save()
            print(table({"cases": {case: facts["cases"][case]}}), flush=True)
    print(table(facts))
    print(json.dumps(facts["summary"], indent=1))


if __name__ == "__main__":
    main()
