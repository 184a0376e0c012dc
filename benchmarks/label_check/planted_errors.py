"""Measure how many planted errors a label check finds, against cleanlab on the same probabilities.

    python benchmarks/label_check/planted_errors.py --cleanlab FOLDER

Data is debtags, which is bundled. Of its (row, label) pairs 5% are removed, and as many wrong ones are added, with
labels drawn by their frequency and rows drawn evenly. FOLDER is a virtual environment with cleanlab; without it
cleanlab is left out. Both get the same out-of-fold probabilities: 50 candidates of every row, 0 for other labels, which
cleanlab needs as a dense matrix. `find_multilabel_issues_per_class` says which pairs are issues; these are ranked by
their self-confidence, as cleanlab does. The data has errors of its own, which count as false alarms here, so the true
precision is higher.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import scipy.sparse as sp

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from benchmarks.harness.program import Facts, make_parser, start_facts, write_results
from benchmarks.harness.terminal import show_table
from longtail.data import TopK, load_bundled
from longtail.label_check import find_missing, find_wrong, out_of_fold, recall_of_labels, weigh
from longtail.text import TfidfFeatures

SHARE, FOLDS, CANDIDATES, FEWEST = 0.05, 5, 50, 3
WORKER = """
import resource, sys, time
import cleanlab, numpy as np
from cleanlab.multilabel_classification.filter import find_multilabel_issues_per_class
file, out, how = sys.argv[1:]
z = np.load(file)
n, L = z["shape"]
P = np.zeros((n, L))
listed = z["ids"] >= 0
P[np.nonzero(listed)[0], z["ids"][listed]] = z["scores"][listed]
given = np.zeros((n, L), bool)
given[z["pairs"] // L, z["pairs"] % L] = True
labels = [np.flatnonzero(row).tolist() for row in given]
started = time.perf_counter()
masks = find_multilabel_issues_per_class(labels, P, filter_by=how, n_jobs=1)
masks = np.asarray(masks)
keys = np.arange(n * L).reshape(n, L)
wrong, missing = masks & given, masks & ~given
rank = lambda mask, confidence: keys[mask][np.argsort(confidence[mask], kind="stable")]
np.savez(out, wrong=rank(wrong, P), missing=rank(missing, 1 - P), seconds=time.perf_counter() - started,
    version=cleanlab.__version__, memory=resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20)
"""


def plant(Y: sp.csr_array, seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the pairs with errors, those removed and those added, each as row times labels plus label, sorted."""
    rng, (n_rows, n_labels) = np.random.default_rng(seed), Y.shape
    true = np.repeat(np.arange(n_rows, dtype=np.int64), np.diff(Y.indptr)) * n_labels + Y.indices
    n = round(SHARE * true.size)
    removed = np.sort(rng.choice(true, n, replace=False))
    added = np.empty(0, np.int64)
    while added.size < n:
        drawn = rng.integers(n_rows, size=2 * n) * n_labels + rng.choice(Y.indices, 2 * n)
        added = np.union1d(added, np.setdiff1d(drawn, true))
    added = np.sort(rng.choice(added, n, replace=False))
    return np.union1d(np.setdiff1d(true, removed), added), removed, added


def judge(found: np.ndarray, planted: np.ndarray) -> Facts:
    """Return precision and recall of ranked pairs: of all, of as many as were planted, and of the first."""
    hits = np.isin(found, planted)
    return {
        "found": int(found.size),
        "precision": round(float(hits.mean()) if hits.size else 0.0, 4),
        "recall": round(float(hits.sum() / planted.size), 4),
        "at_planted": round(float(hits[: planted.size].sum() / planted.size), 4),
        "precision_at_100": round(float(hits[:100].sum() / 100), 4),
        "precision_at_1000": round(float(hits[:1000].sum() / 1000), 4),
    }


def ours(Y: sp.csr_array, top: TopK) -> tuple[np.ndarray, np.ndarray]:
    """Return the pairs that look wrong and those that look missing, ranked."""
    evidence, recall = weigh(Y, top), recall_of_labels(Y, top)
    counts = np.bincount(Y.indices, minlength=Y.shape[1])
    wrong = find_wrong(Y, evidence, (counts >= FEWEST) & (recall > 0))
    missing = find_missing(Y, top, evidence)
    return wrong.rows * Y.shape[1] + wrong.labels, missing.rows * Y.shape[1] + missing.labels


def cleanlabs(python: str, how: str, top: TopK, pairs: np.ndarray, shape: tuple[int, int]) -> dict[str, np.ndarray]:
    """Return what cleanlab finds, in its own environment."""
    with tempfile.TemporaryDirectory() as folder:
        given, out = Path(folder) / "in.npz", Path(folder) / "out.npz"
        np.savez(given, ids=top.ids, scores=top.scores, pairs=pairs, shape=shape)
        subprocess.run([python, "-W", "ignore", "-c", WORKER, str(given), str(out), how], check=True)
        with np.load(out) as found:
            return {name: found[name] for name in found.files}


def measure(seed: int, cleanlab: Path | None) -> Facts:
    """Return what each method finds of the errors planted with a seed."""
    data = load_bundled("debtags").compact_labels()
    pairs, removed, added = plant(data.Y, seed)
    n_labels = data.Y.shape[1]
    entries = (np.ones(pairs.size, np.float32), (pairs // n_labels, pairs % n_labels))
    Y = sp.csr_array(sp.coo_array(entries, shape=data.Y.shape))
    Y.sort_indices()
    started = time.perf_counter()
    X = TfidfFeatures().fit_transform(data.texts or ())
    top = out_of_fold(X, Y, FOLDS, CANDIDATES, seed)
    folded = time.perf_counter()
    wrong, missing = ours(Y, top)
    out: Facts = {"planted": int(added.size), "seconds_out_of_fold": round(folded - started, 2), "methods": {}}
    seconds = round(time.perf_counter() - folded, 3)
    out["methods"]["longtail"] = {"wrong": judge(wrong, added), "missing": judge(missing, removed), "seconds": seconds}
    for how in () if cleanlab is None else ("prune_by_noise_rate", "confident_learning"):
        found = cleanlabs(str(Path(cleanlab or "") / "bin" / "python"), how, top, pairs, data.Y.shape)
        out["methods"][f"cleanlab {how}"] = {
            "wrong": judge(found["wrong"], added),
            "missing": judge(found["missing"], removed),
            "seconds": round(float(found["seconds"]), 3),
            "peak_gib": round(float(found["memory"]), 3),
            "version": str(found["version"]),
        }
    return out


def mean_of(seeds: dict[str, Facts]) -> Facts:
    """Return the mean over seeds of every number of every method."""
    runs = [run["methods"] for run in seeds.values()]
    return {
        method: {
            kind: {key: round(float(np.mean([run[method][kind][key] for run in runs])), 4) for key in numbers}
            for kind, numbers in values.items()
            if isinstance(numbers, dict)
        }
        for method, values in runs[0].items()
    }


def main() -> None:
    parser = make_parser(__doc__, "label_check.json", seeds=[0, 1, 2], resume=True)
    parser.add_argument("--cleanlab", type=Path, metavar="FOLDER", help="virtual environment with cleanlab")
    args = parser.parse_args()
    facts = start_facts(args, {"share": SHARE, "folds": FOLDS, "candidates": CANDIDATES, "seeds": {}, "mean": {}})
    for seed in args.seeds:
        if str(seed) in facts["seeds"]:
            continue
        facts["seeds"][str(seed)] = measure(seed, args.cleanlab)
        facts["mean"] = mean_of(facts["seeds"])
        write_results(facts, args.output)
    for kind in ("wrong", "missing"):
        rows = [[method, *map(str, values[kind].values())] for method, values in facts["mean"].items()]
        show_table(kind, ["", *next(iter(facts["mean"].values()))[kind]], rows)


if __name__ == "__main__":
    main()
