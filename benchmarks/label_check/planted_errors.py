"""Measure how many planted errors a label check finds, against cleanlab on the same out-of-fold probabilities.

    python benchmarks/label_check/planted_errors.py --data FOLDER --cleanlab ENVIRONMENT

Of the (row, label) pairs of debtags (bundled), eurlex-4k, pubmed-mesh and yso-titles (from FOLDER) 5% are removed,
and as many wrong ones are added, with labels drawn by their frequency and rows drawn evenly. Of pubmed-mesh and
yso-titles a sample of rows is taken, with the labels that have enough rows there (`SAMPLES`), since cleanlab needs a
dense matrix of rows and labels. ENVIRONMENT is a virtual environment with cleanlab; without it cleanlab is left out.

Both get the probabilities of the same label trees. longtail gets 50 candidates of every row, as in use. cleanlab gets
them in three forms: these candidates with 0 for all other labels; all labels, calibrated; all labels as the trees
give them. Each is scored by its `get_label_quality_scores_per_class` with and without `adjust_pred_probs`; its
filters of issues cut these rankings and do not change their order. Of the six ways the summary takes, for every data
set and kind of error, the one with the best average precision: a choice that nobody has in use. Pairs with the same
score count as in random order. The data has errors of its own, which count as false alarms.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from benchmarks.harness.program import Facts, make_parser, start_facts, write_results
from benchmarks.harness.terminal import show_table
from longtail.data import TopK, binary_hits, load_bundled, read
from longtail.label_check import find_missing, find_wrong, recall_of_labels, unexplained, weigh, with_other_labels
from longtail.label_check.folds import OutOfFold, fold_of_rows
from longtail.model import Calibration
from longtail.text import TfidfFeatures
from longtail.tree import LabelTreeClassifier
from longtail.validate import Rows

SHARE, FOLDS, CANDIDATES, FEWEST = 0.05, 5, 50, 3
FILES = {"eurlex-4k": "train.txt.xz", "pubmed-mesh": "train.jsonl.xz", "yso-titles": "train.jsonl.xz"}
SAMPLES = {"pubmed-mesh": (5000, 5), "yso-titles": (20000, 10)}  # rows, and the fewest rows of a label among them
SEEDS = {"eurlex-4k": 1}  # all labels of all rows take long
WORKER = """
import resource, sys, time
import cleanlab, numpy as np
from cleanlab.multilabel_classification.rank import get_label_quality_scores_per_class
file, out = sys.argv[1:]
z = np.load(file)
n, L = z["shape"]
given = np.zeros((n, L), bool)
given[z["pairs"] // L, z["pairs"] % L] = True
labels = [np.flatnonzero(row).tolist() for row in given]
keys = np.arange(n * L).reshape(n, L)
found, most = {}, 100 * int(SHARE * given.sum())
def keep(name, quality):
    for kind, pairs in (("wrong", given), ("missing", ~given)):
        at, score = keys[pairs], 1 - quality[pairs]
        if at.size > most:  # the rest of a list this long changes nothing at any cut-off
            first = np.argpartition(-score, most)[:most]
            at, score = at[first], score[first]
        found[f"{name}|{kind}|keys"], found[f"{name}|{kind}|scores"] = at, score
started = time.perf_counter()
for form in ("candidates", "all calibrated", "all"):
    P = z[form].astype(np.float64)
    for adjusted in (False, True):
        keep(form + ", adjusted" * adjusted, get_label_quality_scores_per_class(labels, P, adjust_pred_probs=adjusted))
np.savez(out, seconds=time.perf_counter() - started, version=cleanlab.__version__,
    memory=resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20, **found)
""".replace("SHARE", str(SHARE))


class Planted(NamedTuple):
    """Data with planted errors and its out-of-fold scores."""

    pairs: np.ndarray  # row times labels plus label, sorted
    removed: np.ndarray
    added: np.ndarray
    shape: tuple[int, int]
    scores: TopK  # of the candidates
    every: np.ndarray  # float32 (rows, labels): scores of all labels
    seconds: float

    def labels(self) -> sp.csr_array:
        """Return the labels with errors."""
        n_labels = self.shape[1]
        entries = (np.ones(self.pairs.size, np.float32), (self.pairs // n_labels, self.pairs % n_labels))
        Y = sp.csr_array(sp.coo_array(entries, shape=self.shape))
        Y.sort_indices()
        return Y


def load(name: str, folder: Path | None) -> tuple[Rows, sp.csr_array]:
    """Return features and labels of a data set, or of its sample."""
    data = load_bundled(name) if name == "debtags" else read(Path(folder or "") / name / FILES[name])
    n_rows, fewest = SAMPLES.get(name, (data.n_rows, 1))
    if n_rows < data.n_rows:
        data = data.take(np.sort(np.random.default_rng(0).choice(data.n_rows, n_rows, replace=False)))
    used = np.bincount(data.Y.indices, minlength=data.Y.shape[1]) >= fewest
    X = data.X if data.texts is None else TfidfFeatures().fit_transform(data.texts)
    return X, sp.csr_array(data.Y[:, np.flatnonzero(used)])


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


def score(X: Rows, Y: sp.csr_array, seed: int) -> Planted:
    """Return data with planted errors and the scores of label trees that were not trained on the row."""
    empty, started = np.zeros((Y.shape[0], CANDIDATES)), time.perf_counter()
    every = np.full(Y.shape, -np.inf, np.float32)
    out = Planted(*plant(Y, seed), Y.shape, TopK(np.full(empty.shape, -1), empty), every, 0.0)
    dirty, fold = out.labels(), fold_of_rows(Y.shape[0], FOLDS, seed)
    for number in range(FOLDS):
        inside, outside = np.flatnonzero(fold == number), np.flatnonzero(fold != number)
        model = LabelTreeClassifier(random_state=seed).fit(X[outside], dirty[outside])
        top = model.predict_topk(X[inside], k=CANDIDATES)
        out.scores.ids[inside], out.scores.scores[inside] = top.ids, top.scores
        model.beam = 1 << 20  # every leaf: all labels are scored
        for at in range(0, inside.size, 2000):
            rows = inside[at : at + 2000]
            top = model.predict_topk(X[rows], k=Y.shape[1])
            every[np.repeat(rows, (top.ids >= 0).sum(axis=1)), top.ids[top.ids >= 0]] = top.scores[top.ids >= 0]
    return out._replace(seconds=time.perf_counter() - started)


def kept(file: Path | None) -> Planted | None:
    """Return the scores of an earlier run."""
    if file is None or not file.exists():
        return None
    with np.load(file) as z:
        top = TopK(z["ids"], z["scores"])
        seconds = float(z["seconds"]) if "seconds" in z.files else 0.0
        shape = (int(z["shape"][0]), int(z["shape"][1]))
        return Planted(z["pairs"], z["removed"], z["added"], shape, top, z["dense"], seconds)


def judge(keys: np.ndarray, suspicion: np.ndarray, planted: np.ndarray) -> Facts:
    """Return precision and recall of ranked pairs at cut-offs and their average precision, ties in random order."""
    order = np.argsort(-suspicion, kind="stable")
    ranked, right = suspicion[order], np.isin(keys[order], planted).astype(np.float64)
    tie = np.cumsum(np.append(True, ranked[1:] != ranked[:-1])[: ranked.size]) - 1
    size, hits = np.bincount(tie).astype(np.float64), np.bincount(tie, weights=right)
    before, hits_before = np.cumsum(size) - size, np.cumsum(hits) - hits
    place = np.arange(1, ranked.size + 1)
    chance = hits[tie] / size[tie]
    others = (place - before[tie] - 1) * (hits[tie] - 1) / np.maximum(size[tie] - 1, 1)
    reached = np.append(0.0, np.cumsum(chance))
    out: Facts = {"listed": int(ranked.size), "recall": round(float(right.sum() / planted.size), 4)}
    for name, cut in (("half", planted.size // 2), ("planted", planted.size), ("twice", 2 * planted.size)):
        found = float(reached[min(cut, ranked.size)])
        out[f"precision_at_{name}"] = round(found / cut, 4)
        out[f"recall_at_{name}"] = round(found / planted.size, 4)
    out["average_precision"] = round(float((chance * (hits_before[tie] + others + 1) / place).sum() / planted.size), 4)
    return out


def ours(planted: Planted, seed: int) -> Facts:
    """Return how well the label check finds the errors."""
    Y, (n_rows, n_labels) = planted.labels(), planted.shape
    started = time.perf_counter()
    curve = Calibration.fit(planted.scores, binary_hits(planted.scores, Y), np.diff(Y.indptr))
    found = OutOfFold(fold_of_rows(n_rows, FOLDS, seed), FOLDS, planted.scores, curve.apply(planted.scores))
    judged = with_other_labels(Y, found, seed)
    evidence, recall = weigh(Y, *judged), recall_of_labels(Y, found.top)
    learned = (np.bincount(Y.indices, minlength=n_labels) >= FEWEST) & (recall > 0)
    wrong = find_wrong(Y, evidence, learned[Y.indices] & unexplained(Y, found.top))
    missing = find_missing(Y, judged.top, evidence)
    seconds = round(time.perf_counter() - started, 2)
    return {
        "wrong": judge(wrong.rows * n_labels + wrong.labels, wrong.suspicion, planted.added),
        "missing": judge(missing.rows * n_labels + missing.labels, missing.suspicion, planted.removed),
        "seconds": seconds,
    }


def cleanlabs(python: Path, planted: Planted) -> dict[str, Facts]:
    """Return how well cleanlab finds the errors in each way, in its own environment."""
    Y, top = planted.labels(), planted.scores
    curve = Calibration.fit(top, binary_hits(top, Y), np.diff(Y.indptr))
    candidates = np.zeros(planted.shape, np.float32)
    listed = top.ids >= 0
    candidates[np.nonzero(listed)[0], top.ids[listed]] = curve.apply(top).scores[listed]
    forms = {
        "candidates": candidates,
        "all calibrated": np.interp(planted.every, curve.scores, curve.values).astype(np.float32),
        "all": np.exp(planted.every),
    }
    with tempfile.TemporaryDirectory() as folder:
        given, out = Path(folder) / "in.npz", Path(folder) / "out.npz"
        np.savez(given, pairs=planted.pairs, shape=planted.shape, **forms)
        subprocess.run([python, "-W", "ignore", "-c", WORKER, given, out], check=True)
        with np.load(out) as z:
            found = {name: z[name] for name in z.files}
    more = {"seconds": round(float(found["seconds"]), 2), "peak_gib": round(float(found["memory"]), 2)}
    methods = dict.fromkeys(name.split("|")[0] for name in found if "|" in name)
    return {
        f"cleanlab, {method}": {
            kind: judge(found[f"{method}|{kind}|keys"], found[f"{method}|{kind}|scores"], errors)
            for kind, errors in (("wrong", planted.added), ("missing", planted.removed))
        }
        for method in methods
    } | {"cleanlab": {**more, "version": str(found["version"])}}


def mean_of(runs: list[Facts]) -> Facts:
    """Return the mean over seeds of every number of every method."""
    return {
        method: {
            kind: {key: round(float(np.mean([run[method][kind][key] for run in runs])), 4) for key in numbers}
            for kind, numbers in values.items()
            if isinstance(numbers, dict)
        }
        for method, values in runs[0].items()
        if method != "cleanlab"
    }


def summary(means: Facts) -> Facts:
    """Return for each kind of error ours, and that way of cleanlab's with the best average precision."""
    out: Facts = {}
    for kind in ("wrong", "missing"):
        out[kind] = {"longtail": means["longtail"][kind]}
        ways = [method for method in means if method.startswith("cleanlab")]
        if ways:
            best = max(ways, key=lambda method: means[method][kind]["average_precision"])
            out[kind]["cleanlab"] = {**means[best][kind], "way": best.removeprefix("cleanlab, ")}
    return out


def main() -> None:
    parser = make_parser(__doc__, "label_check.json", data="optional", seeds=[0, 1, 2], resume=True)
    parser.add_argument("--cleanlab", type=Path, metavar="ENVIRONMENT", help="virtual environment with cleanlab")
    parser.add_argument("--sets", nargs="+", default=["debtags", "pubmed-mesh", "yso-titles", "eurlex-4k"])
    parser.add_argument("--keep", type=Path, metavar="FOLDER", help="keep the scores there, for the next run")
    args = parser.parse_args()
    facts = start_facts(args, {"share": SHARE, "folds": FOLDS, "candidates": CANDIDATES, "data": {}, "summary": {}})
    for name in args.sets:
        about = facts["data"].setdefault(name, {"seeds": {}})
        for seed in args.seeds[: SEEDS.get(name)]:
            if str(seed) in about["seeds"]:
                continue
            file = None if args.keep is None else args.keep / f"{name}_{seed}.npz"
            planted = kept(file)
            if planted is None:
                planted = score(*load(name, args.data), seed)
                if file is not None:
                    np.savez(
                        file,
                        ids=planted.scores.ids,
                        scores=planted.scores.scores,
                        dense=planted.every,
                        **{key: getattr(planted, key) for key in ("pairs", "removed", "added", "shape", "seconds")},
                    )
            methods: Facts = {"longtail": ours(planted, seed)}
            if args.cleanlab is not None:
                methods |= cleanlabs(args.cleanlab / "bin" / "python", planted)
            about["seeds"][str(seed)] = {"planted": int(planted.added.size), "methods": methods}
            about |= {"rows": planted.shape[0], "labels": planted.shape[1], "pairs": int(planted.pairs.size)}
            about["mean"] = mean_of([run["methods"] for run in about["seeds"].values()])
            facts["summary"][name] = summary(about["mean"])
            write_results(facts, args.output)
    for name, kinds in facts["summary"].items():
        for kind, methods in kinds.items():
            rows = [[method, *map(str, values.values()), ""][:11] for method, values in methods.items()]
            show_table(f"{name}: {kind}", ["", *methods["longtail"], "way"], rows)


if __name__ == "__main__":
    main()
