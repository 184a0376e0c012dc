"""Compare changing a label tree with training it anew: new rows, new labels, labels that are removed.

    python benchmarks/tree/updates.py --data FOLDER

FOLDER holds `eurlex-4k` and `pubmed-mesh`; LONGTAIL_DATA is its default. Three seeds; P@1/3/5 on the test set as mean
and standard deviation, beside training anew on everything. Times are CPU seconds. `hold` is how the strength of the old
rows was chosen: on training rows alone, half of them old, a twentieth or a fifth new, and a fifth to judge by.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from copy import deepcopy
from functools import partial
from pathlib import Path

import numpy as np
import scipy.sparse as sp

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

import longtail as lt
from benchmarks.harness.data_sets import read_rows
from benchmarks.harness.program import Facts, make_parser, start_facts, write_results
from benchmarks.harness.scores import precisions
from benchmarks.harness.terminal import show_table
from benchmarks.harness.timing import timed
from longtail.data import Dataset
from longtail.model import updates
from longtail.validate import Rows

Cases = dict[str, dict[str, float]]
STRENGTHS = (0.5, 1.0, 2.0, 4.0, 8.0)
CHOSEN = updates.HOLD


def one_seed(train: Dataset, test: Dataset, seed: int) -> Cases:
    """Return precision and CPU seconds of every case, for one seed."""
    rng = np.random.default_rng(seed)
    anew = lt.LabelTreeClassifier(random_state=seed)
    spent, _ = timed(lambda: anew.fit(train.X, train.Y))
    cases = {"trained on everything": {"cpu_s": spent.cpu, **precisions(test.Y, anew.predict_topk(test.X))}}
    cases |= new_rows(train, test, seed, rng.permutation(train.n_rows))
    some = np.sort(rng.permutation(train.n_labels)[: train.n_labels // 10])
    return cases | changed_labels(train, test, seed, some, anew)


def new_rows(train: Dataset, test: Dataset, seed: int, order: np.ndarray) -> Cases:
    """Train without some of the rows, then learn from them by `partial_fit`."""
    cases: Cases = {}
    for share in (0.5, 0.2, 0.05):
        old, new = np.split(order, [round((1 - share) * train.n_rows)])
        before, after = train.take(np.sort(old)), train.take(np.sort(new))
        model = lt.LabelTreeClassifier(random_state=seed).fit(before.X, before.Y)
        cases[f"without {share:.0%} of the rows"] = judged(lambda: None, model, test.X, test.Y)
        learn = partial(model.partial_fit, after.X, after.Y)
        cases[f"the same, partial_fit with the {share:.0%}"] = judged(learn, model, test.X, test.Y)
    return cases


def changed_labels(train: Dataset, test: Dataset, seed: int, some: np.ndarray, whole: lt.LabelTreeClassifier) -> Cases:
    """Add some labels to a tree without them, and remove them from the tree that has all."""
    rest = np.setdiff1d(np.arange(train.n_labels), some)
    numbers = np.concatenate([rest, some])
    model = lt.LabelTreeClassifier(random_state=seed).fit(train.X, train.Y[:, rest])
    spent, _ = timed(lambda: model.add_labels(train.X, train.Y[:, some]))
    top = model.predict_topk(test.X)
    renamed = lt.TopK(np.where(top.ids >= 0, numbers[top.ids], -1), top.scores)
    left = sp.csr_array(test.Y[:, rest])
    without = lt.LabelTreeClassifier(random_state=seed).fit(train.X, train.Y[:, rest])
    return {
        "add_labels with 10% of the labels": {"cpu_s": spent.cpu, **precisions(test.Y, renamed)},
        "trained without 10% of the labels, judged on the rest": judged(lambda: None, without, test.X, left),
        "remove_labels with the same 10%, judged on the rest": judged(
            lambda: whole.remove_labels(some), whole, test.X, left
        ),
    }


def hold_strengths(train: Dataset, seed: int) -> Cases:
    """Return precision on training rows kept aside, for several strengths of the old rows."""
    order = np.random.default_rng(seed).permutation(train.n_rows)
    half, fifth = train.n_rows // 2, train.n_rows // 5
    old, new, aside = (train.take(np.sort(rows)) for rows in np.split(order, [half, train.n_rows - fifth]))
    before = lt.LabelTreeClassifier(random_state=seed).fit(old.X, old.Y)
    cases: Cases = {"before": precisions(aside.Y, before.predict_topk(aside.X))}
    for n in (train.n_rows // 20, fifth):
        for strength in STRENGTHS:
            updates.HOLD = strength
            some = new.take(slice(0, n))
            model = deepcopy(before).partial_fit(some.X, some.Y)
            cases[f"{n} rows, HOLD {strength:g}"] = precisions(aside.Y, model.predict_topk(aside.X))
    updates.HOLD = CHOSEN
    return cases


def judged(change: Callable[[], object], model: lt.LabelTreeClassifier, X: Rows, Y: sp.csr_array) -> dict[str, float]:
    """Change a model; return how long that took, and its precision afterwards."""
    spent, _ = timed(change)
    return {"cpu_s": spent.cpu, **precisions(Y, model.predict_topk(X))}


def summarise(runs: list[Cases]) -> Facts:
    """Return means and standard deviations over seeds (the latter of the seeds as a whole population)."""
    return {
        case: {
            key: {
                "mean": round(float(np.mean([run[case][key] for run in runs])), 3),
                "sd": round(float(np.std([run[case][key] for run in runs])), 3),
            }
            for key in runs[0][case]
        }
        for case in runs[0]
    }


def main() -> None:
    parser = make_parser(__doc__, "tree_updates.json", data="required", seeds=(0, 1, 2), resume=True)
    parser.add_argument("--only", nargs="+", default=["eurlex-4k", "pubmed-mesh"])
    args = parser.parse_args()
    facts = start_facts(args, {"results": {}, "hold": {}})
    for name in args.only:
        if name in facts["results"]:
            continue
        train, test = read_rows(args.data / name)
        cases = summarise([one_seed(train, test, seed) for seed in args.seeds])
        facts["results"][name] = cases
        facts["hold"][name] = summarise([hold_strengths(train, seed) for seed in args.seeds])
        write_results(facts, args.output)
        rows = [[case, *(f"{v['mean']:.2f} ±{v['sd']:.2f}" for v in values.values())] for case, values in cases.items()]
        show_table(name, ["", *next(iter(cases.values()))], rows)


if __name__ == "__main__":
    main()
