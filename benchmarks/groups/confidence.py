"""Measure whether the confidence of labels found from groups is calibrated, before and after; learn its weights.

    python benchmarks/groups/confidence.py --data FOLDER [--only debtags yso-titles] [--seeds 0]

Rows whose labels are known are put into groups: random ones, neighbours in the index (the bundled `debtags`), clusters;
of different sizes; with counts and without. For the labels found, "before" is the share that EAGLE gave to the row,
"after" the confidence of `longtail.groups.confidence` with weights learned from all data sets but this one, and
"shipped" the same with weights learned from all (`weights` in the file of results), which are those of that module.
Error: expected calibration error, the mean over ten bins of |confidence - share that is right|, weighted by how many
labels are in the bin. FOLDER holds the data sets; a part of their train rows is used. Reliability: per bin how many
labels, mean confidence and share right.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import scipy.sparse as sp

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from benchmarks.groups.pages import pages, rows_of_train
from benchmarks.harness.data_sets import read_rows
from benchmarks.harness.program import Facts, make_parser, start_facts, write_results
from benchmarks.harness.scores import rounded
from longtail.data import Dataset, group_by_clusters
from longtail.data.synthetic.group_rows import Grouped
from longtail.groups import Eagle, propagate
from longtail.groups.confidence import WEIGHTS, ConfidenceWeights, gains_over, logit, weigh
from longtail.groups.grouped_rows import GroupedRows
from longtail.groups.held_out_shares import held_out_shares
from longtail.text import TfidfFeatures
from longtail.validate import as_sparse

BINS = 10
MOST = 8000  # labels found of a cell that weights are learned from
SIZES = {
    "debtags": (2, 8, 32),
    "eurlex-4k": (4, 16),
    "yso-titles": (4, 16),
    "pubmed-mesh": (4, 12),
    "bibtex": (4, 12),
}
ROWS = {"eurlex-4k": 4000, "yso-titles": 8000, "pubmed-mesh": 2500, "bibtex": 2500}
ASSIGNS = ("auto", "argmax", "top", "propagate")
FAMILY = {"auto": "auto", "argmax": "published", "top": "published", "propagate": "propagate"}
EXPECTED = ConfidenceWeights(0, 0, 0, 1, 0)  # the expected share of the group's rows: nothing to learn
Shares = tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]  # own, held out, of the group; which are right
Judgement = tuple[dict[str, np.ndarray], np.ndarray]  # confidences; which are right


def main() -> None:
    args = options()
    facts = start_facts(args, {"cells": []})
    found: list[tuple[Facts, Shares]] = []
    for name in args.only:
        X, Y = rows_and_labels(name, args.data)
        for seed in args.seeds:
            for cell in cells(name, seed):
                grouped = put_into_groups(cell, X, Y)
                found.append((cell, shares_found(cell, X, Y, grouped, args.jobs)))
                print(", ".join(str(value) for value in cell.values()), flush=True)
        every = {cell["data"]: confidences(found, cell["data"]) for cell, _ in found}
        facts["cells"] = [judged(cell, *judgement) for name in every for cell, judgement in every[name]]
        facts["weights"] = {family: learn(found, family)._asdict() for family in WEIGHTS}
        facts["summary"] = summarise(facts["cells"])
        facts["reliability"] = reliability([both for name in every for both in every[name]])
        write_results(facts, args.output)
        show(facts["summary"])


def rows_and_labels(name: str, folder: Path | None) -> tuple[sp.csr_array, sp.csr_array]:
    """Return rows and their labels of a data set."""
    if name == "debtags":
        data = rows_of_train()
        return sp.csr_array(TfidfFeatures().fit_transform(data.texts or ())), data.Y
    if folder is None:
        raise SystemExit(f"{name} needs --data FOLDER")
    train, _ = read_rows(folder / name)
    some = np.sort(np.random.default_rng(0).permutation(train.n_rows)[: ROWS[name]])
    return sp.csr_array(train.X)[some], train.Y[some]


def cells(name: str, seed: int) -> Iterator[Facts]:
    """Yield kinds and sizes of groups, what is known of them, and ways to assign."""
    for kind in ("random", "clusters", *(["neighbours"] if name == "debtags" else [])):
        for size in SIZES[name]:
            for known in ("counts", "sets"):
                for assign in ASSIGNS:
                    if assign != "top" or known == "counts":  # else it is as argmax
                        yield {"data": name, "kind": kind, "size": size, "known": known, "assign": assign, "seed": seed}


def put_into_groups(cell: Facts, X: sp.csr_array, Y: sp.csr_array) -> Grouped:
    """Hide the labels of rows behind groups."""
    if cell["kind"] == "clusters":
        depth = round(np.log2(X.shape[0] / cell["size"]))
        grouped = group_by_clusters(X, Y, depth=depth, random_state=cell["seed"])
    else:
        grouped = pages(cell["kind"], Dataset(X=X, Y=Y), cell["size"], cell["seed"])
    if cell["known"] == "counts":
        return grouped
    return Grouped(grouped.groups, sp.csr_array((grouped.Y_groups > 0).astype(np.float32)))


def shares_found(cell: Facts, X: sp.csr_array, Y: sp.csr_array, grouped: Grouped, n_jobs: int) -> Shares:
    """Find the labels of the rows and return the three shares of each, and which are right."""
    groups, Y_groups = sp.csr_array(grouped.groups), grouped.Y_groups
    how = "auto" if cell["assign"] == "propagate" else cell["assign"]

    def fit(rows: sp.csr_array, members: sp.csr_array, labels: sp.csr_array) -> Eagle:
        return Eagle(assign=how, random_state=0, n_jobs=n_jobs).fit(rows, members, labels)

    if cell["assign"] == "propagate":
        found, own = propagate(groups, Y_groups), plain_shares(groups, Y_groups).data
    else:
        eagle = fit(X, groups, Y_groups)
        found, own = eagle.row_labels_, eagle.confidence_.data

    def learn_vectors(rows: np.ndarray, some: np.ndarray) -> sp.csr_array:
        if cell["assign"] == "propagate":  # its confidence needs no vectors
            return sp.csr_array((Y.shape[1], X.shape[1]), dtype=np.float32)
        return fit(X[rows], groups[rows][:, some], Y_groups[some]).label_vectors_

    held_out, base = held_out_shares(GroupedRows.make(X, groups, Y_groups), found, learn_vectors, 0, n_jobs)
    of = np.repeat(np.arange(found.shape[0]), np.diff(found.indptr))
    return own.astype(np.float64), held_out, base, np.asarray(Y[of, found.indices]).ravel() > 0


def plain_shares(groups: sp.csr_array, Y_groups: sp.csr_array) -> sp.csr_array:
    """Return which share of a row's group has each label if what is counted is taken as it is, one group per row."""
    sizes = np.bincount(groups.indices, minlength=groups.shape[1])
    return as_sparse(sp.csr_array(groups @ (sp.diags_array(1 / np.maximum(sizes, 1)) @ Y_groups)))


def learn(found: list[tuple[Facts, Shares]], family: str, without: str | None = None) -> ConfidenceWeights:
    """Learn the weights of a family from all data sets, or all but one; each data set counts alike, and each cell."""
    from sklearn.linear_model import LogisticRegression

    if family == "propagate":
        return EXPECTED
    used = [(c, s) for c, s in found if FAMILY[c["assign"]] == family and c["data"] != without]
    names = [cell["data"] for cell, _ in used]
    features, answers, weights = [], [], []
    for cell, (own, held_out, base, right) in used:
        some = np.random.default_rng(0).permutation(right.size)[:MOST]
        own_gain, held_gain = gains_over(own, base), gains_over(held_out, base)
        agreement = held_gain * held_gain.mean()
        features.append(np.stack([own_gain[some], held_gain[some], logit(base[some]), agreement[some]], axis=1))
        answers.append(right[some])
        weights.append(np.full(some.size, 1 / some.size / names.count(cell["data"])))
    if not used or all(answer.all() for answer in answers):
        return WEIGHTS[family]
    weight = np.concatenate(weights)
    model = LogisticRegression(C=1e3, max_iter=1000)
    model.fit(np.concatenate(features), np.concatenate(answers), sample_weight=weight / weight.mean())
    return ConfidenceWeights(*(round(float(value), 3) for value in (model.intercept_[0], *model.coef_[0])))


def confidences(found: list[tuple[Facts, Shares]], name: str) -> list[tuple[Facts, Judgement]]:
    """Return the cells of a data set with confidences before and after, and which labels are right."""
    learned = {family: learn(found, family, without=name) for family in set(FAMILY.values())}
    final = {family: learn(found, family) for family in set(FAMILY.values())}
    out = []
    for cell, (own, held_out, base, right) in found:
        if cell["data"] == name:
            family = FAMILY[cell["assign"]]
            after = weigh(own, held_out, base, learned[family])
            shipped = weigh(own, held_out, base, final[family])
            out.append((cell, ({"before": own, "after": after, "shipped": shipped}, right)))
    return out


def judged(cell: Facts, chances: dict[str, np.ndarray], right: np.ndarray) -> Facts:
    """Return for a cell how many labels are right, and confidence and error before and after."""
    facts = {"right": float(right.mean())}
    for when, values in chances.items():
        facts |= {when: float(values.mean()), f"error {when}": calibration_error(values, right)}
    return {**cell, "labels": right.size, **rounded(facts)}


def calibration_error(chances: np.ndarray, right: np.ndarray) -> float:
    """Return the expected calibration error over bins of equal width."""
    bins = np.minimum((chances * BINS).astype(int), BINS - 1)
    gaps = np.bincount(bins, chances - right, minlength=BINS)
    return float(np.abs(gaps).sum() / right.size)


def reliability(cells: list[tuple[Facts, Judgement]]) -> Facts:
    """Return, for each way to assign, bins of confidence: labels, mean confidence and share right, before and after."""
    out: Facts = {}
    for assign in dict.fromkeys(cell["assign"] for cell, _ in cells):
        same = [judgement for cell, judgement in cells if cell["assign"] == assign]
        right = np.concatenate([each for _, each in same])
        for when in ("before", "after"):
            every = np.concatenate([chances[when] for chances, _ in same])
            bins = np.minimum((every * BINS).astype(int), BINS - 1)
            out.setdefault(assign, {})[when] = [
                {
                    "labels": int((bins == i).sum()),
                    **rounded({"confidence": every[bins == i].mean(), "right": right[bins == i].mean()}),
                }
                for i in range(BINS)
                if (bins == i).any()
            ]
    return out


def summarise(cells: list[Facts]) -> Facts:
    """Return mean and greatest error over cells: of each way to assign, and of each data set."""
    out: Facts = {}
    for assign in dict.fromkeys(cell["assign"] for cell in cells):
        same = [cell for cell in cells if cell["assign"] == assign]
        for name in ("all", *dict.fromkeys(cell["data"] for cell in same)):
            some = [cell for cell in same if name in ("all", cell["data"])]
            facts: Facts = {"cells": len(some)}
            for when in ("before", "after", "shipped"):
                errors = [100 * cell[f"error {when}"] for cell in some]
                facts[when] = {"mean": round(float(np.mean(errors)), 1), "greatest": round(max(errors), 1)}
                facts[when]["least"] = round(min(errors), 1)
            out.setdefault(assign, {})[name] = facts
    return out


def show(summary: Facts) -> None:
    """Print calibration errors in percent."""
    for assign, sets in summary.items():
        for name, facts in sets.items():
            shown = ", ".join(
                f"{when} {facts[when]['mean']} (up to {facts[when]['greatest']})"
                for when in ("before", "after", "shipped")
            )
            print(f"{assign:<10} {name:<12} {facts['cells']:3} cells: error {shown}")


def options() -> argparse.Namespace:
    parser = make_parser(__doc__, "confidence.json", data="optional", seeds=(0,))
    parser.add_argument("--only", nargs="+", choices=tuple(SIZES), default=list(SIZES))
    parser.add_argument("--jobs", type=int, default=1, help="threads")
    return parser.parse_args()


if __name__ == "__main__":
    main()
