"""Compare ways from labels of groups to labels of rows: EAGLE, our choice and propagation, with the tree as solver.

    python benchmarks/groups/eagle.py --data FOLDER [--only eurlex-4k] [--seeds 0 1 2 3 4] [--cells ...] [--methods ...]

FOLDER holds `eurlex-4k`, `pubmed-mesh` and `yso-titles`; LONGTAIL_DATA is its default. Rows of train are put into
groups (random of size g; 2**d clusters; clusters with noise), their labels are hidden, labels of rows are found again
and the tree with its defaults learns from them; P@k on test. Rows that get no label are left out of training: a row
without a label found is not a row without labels. Results are written as they come; `--resume` goes on where a run
ended, and adds what other options ask for.

"ours" knows how often a group has a label, "ours, sets" only which labels it has; so do "eagle" and "eagle, sets".
`--plot` only draws the curve over noise (Figure 4c of the paper).

`--as-published` trains the tree with C=0.3 on all rows, also those that got no label, which brings the tree nearest to
the paper's solver; `--trees 3` trains as many trees as Parabel. `--held-out` uses a fifth of train in place of test,
for choosing settings.
"""

from __future__ import annotations

import argparse
import itertools
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import scipy.sparse as sp

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

import longtail as lt
from benchmarks.harness.data_sets import read_rows
from benchmarks.harness.program import DOCS, Facts, make_parser, read_results, start_facts, write_results
from benchmarks.harness.scores import KS, precisions, rounded
from benchmarks.harness.terminal import show_table
from benchmarks.harness.timing import timed
from longtail.data import Dataset, group_by_clusters, group_randomly, split_random
from longtail.groups import Eagle, group_likeness, propagate
from longtail.report.plots.canvas import WIDTH, dot, drawing, line, linear, standalone, text

METHODS = ("oracle", "baseline", "eagle-0", "eagle", "ours", "ours, sets", "ours, asked", "eagle, sets")
PUBLISHED_C = 0.3
NOISES = (0.0, 0.05, 0.1, 0.15, 0.2, 0.3, 0.5, 1.0)  # of the curve, Figure 4c
STYLES = {
    "ours": ("stroke", "dot"),
    "eagle": ("sgood", "good"),
    "eagle-0": ("ssoft", "hollow"),
    "baseline": ("stroke2", "dot2"),
}
CELLS = {
    "eurlex-4k": [*(f"random {g}" for g in (2, 4, 6, 8, 10)), *(f"depth {d}" for d in (8, 9, 10, 11, 12))]
    + [f"depth 10 noise {v:g}" for v in NOISES[1:]],
    "pubmed-mesh": ["random 4", "random 10", "depth 10", *(f"depth 10 noise {v:g}" for v in NOISES[1:6])],
    "yso-titles": ["random 4", "random 10", "depth 14", "depth 14 noise 0.3"],
}
# Shen et al. 2020, Table 5: P@1/3/5 on eurlex-4k with Parabel as solver
PAPER: dict[str, dict[str, tuple[float, float, float]]] = {
    "random 2": {"baseline": (79.90, 66.59, 55.16), "eagle-0": (81.94, 68.10, 56.37), "eagle": (82.00, 68.52, 56.63)},
    "random 4": {"baseline": (76.58, 61.36, 49.50), "eagle-0": (80.16, 63.49, 51.01), "eagle": (80.87, 65.33, 52.88)},
    "random 6": {"baseline": (72.31, 56.66, 44.94), "eagle-0": (75.06, 57.31, 44.63), "eagle": (77.80, 60.20, 47.57)},
    "random 8": {"baseline": (67.71, 51.66, 41.07), "eagle-0": (69.54, 50.76, 38.57), "eagle": (73.02, 54.11, 41.53)},
    "random 10": {"baseline": (62.95, 47.72, 37.59), "eagle-0": (62.58, 44.07, 33.25), "eagle": (67.56, 48.03, 35.91)},
    "depth 8": {"baseline": (17.94, 16.27, 14.83), "eagle-0": (39.11, 28.02, 22.46), "eagle": (43.11, 30.08, 23.78)},
    "depth 9": {"baseline": (34.43, 30.50, 27.29), "eagle-0": (52.22, 37.63, 30.07), "eagle": (56.70, 39.92, 31.83)},
    "depth 10": {"baseline": (49.45, 43.17, 37.55), "eagle-0": (61.92, 46.99, 38.06), "eagle": (63.50, 48.06, 38.83)},
    "depth 11": {"baseline": (62.32, 52.90, 44.87), "eagle-0": (67.64, 54.34, 44.68), "eagle": (68.80, 54.79, 45.00)},
    "depth 12": {"baseline": (72.07, 60.19, 50.66), "eagle-0": (73.76, 60.61, 50.43), "eagle": (74.36, 60.98, 50.81)},
    "none": {"oracle": (82.71, 69.42, 58.14)},
}


def load(folder: Path, held_out: bool) -> tuple[Dataset, Dataset]:
    """Return train and test as matrices; with `held_out`, a fifth of train in place of test."""
    train, test = read_rows(folder, label_list=False)
    if held_out:
        kept, held = split_random(train.Y, test_size=0.2, random_state=0)
        train, test = train.take(kept), train.take(held)
    return train, test


def impute(method: str, data: Dataset, groups: sp.csr_array, Y_groups: sp.csr_array, seed: int) -> sp.csr_array:
    """Return the labels of the rows, found by a method."""
    if method == "baseline":
        return propagate(groups, Y_groups)
    settings: dict[str, Facts] = {
        "eagle-0": {"n_iter": 0},
        "eagle": {},
        "eagle, sets": {},
        "ours": {"assign": "auto"},
        "ours, sets": {"assign": "auto"},
        "ours, asked": {"assign": "auto", "model": lt.LabelTreeClassifier(random_state=seed), "rounds": 1},
    }
    if method.endswith("sets"):
        Y_groups = sp.csr_array(Y_groups > 0)
    return Eagle(random_state=seed, **settings[method]).fit_transform(data.X, groups, Y_groups)


def grouped(cell: str, data: Dataset, seed: int) -> tuple[sp.csr_array, sp.csr_array]:
    """Return which rows are in which group, and the labels of the groups, for a cell such as "random 4"."""
    kind, number, *noise = cell.split()
    if kind == "random":
        return group_randomly(data.Y, int(number), random_state=seed)
    return group_by_clusters(data.X, data.Y, int(number), float(noise[1]) if noise else 0.0, random_state=seed)


def run(method: str, cell: str, train: Dataset, test: Dataset, seed: int, args: argparse.Namespace) -> dict[str, float]:
    """Find labels of rows, train the tree on them and return precisions on test, with seconds."""
    facts: dict[str, float] = {}
    X, Y = sp.csr_array(train.X), train.Y
    if method != "oracle":
        groups, Y_groups = grouped(cell, train, seed)
        spent, Y = timed(impute, method, train, groups, Y_groups, seed)
        right = float((Y.multiply(train.Y) > 0).sum())
        facts |= {"impute_s": spent.wall, "impute_cpu_s": spent.cpu, "likeness": group_likeness(train.X, groups)}
        facts |= {"right": right / Y.nnz, "found": right / train.Y.nnz}
    if not args.as_published or args.drop_unlabelled:
        labelled = np.flatnonzero(np.diff(Y.indptr))
        X, Y = X[labelled], Y[labelled]
    C = PUBLISHED_C if args.as_published else None
    spent, model = timed(lambda: lt.LabelTreeClassifier(C=C, n_trees=args.trees, random_state=seed).fit(X, Y))
    facts |= {"train_s": spent.wall, "train_cpu_s": spent.cpu}
    return rounded(facts | precisions(test.Y, model.predict_topk(test.X, k=max(KS))))


def warm_up() -> None:
    """Compile everything before anything is timed."""
    data = Dataset(X=np.eye(8, dtype=np.float32), Y=np.eye(8, dtype=np.float32))
    groups, Y_groups = group_randomly(data.Y, 2)
    for method in METHODS[2:5]:
        lt.LabelTreeClassifier(max_leaf=2).fit(data.X, impute(method, data, groups, Y_groups, 0))
    group_by_clusters(data.X, data.Y, 1)


def show(name: str, results: Facts) -> None:
    """Print the mean and standard deviation over seeds beside the paper's numbers."""
    rows = []
    for cell, methods in results.items():
        for method, seeds in methods.items():
            scores = [[run[f"p@{k}"] for k in KS] for run in seeds.values()]
            mean, sd = np.mean(scores, axis=0), np.std(scores, axis=0, ddof=1 if len(scores) > 1 else 0)
            paper = PAPER.get(cell, {}).get(method) if name.startswith("eurlex-4k") else None
            beside = "" if paper is None else " / ".join(f"{v:5.2f}" for v in paper)
            shares = [run["impute_cpu_s"] / run["train_cpu_s"] for run in seeds.values() if "impute_cpu_s" in run]
            cost = f"{100 * np.mean(shares):.0f}% of training" if shares else ""
            ours = [f"{m:5.2f} ± {s:4.2f}" for m, s in zip(mean, sd, strict=True)]
            rows.append([cell, method, len(scores), *ours, beside, cost])
    headings = ["groups", "method", "seeds", *(f"P@{k} ± sd" for k in KS), "paper", "finding labels"]
    show_table(name, headings, rows, left=2)


def plot(results: Facts) -> str:
    """Draw P@1 against the noise of the clustering, one panel for each data set that was run at several levels."""
    body, top, told = [], 20.0, []
    for name, depth in (("eurlex-4k", 10), ("pubmed-mesh", 10)):
        cells = {v: results[name].get(f"depth {depth}" + f" noise {v:g}" * (v > 0), {}) for v in NOISES}
        cells = {v: methods for v, methods in cells.items() if set(STYLES) <= set(methods)}
        if len(cells) < 4:
            continue
        left, right, high, low = 40.0, WIDTH - 12, top + 48, top + 208
        at_x, at_y = linear(0, len(cells) - 1, left + 12, right - 12), linear(0, 100, low, high)
        body.append(text(0, top + 14, f"P@1, percent: {name}, {2**depth} groups", css="strong"))
        start = 0.0
        for method, (stroke, _) in STYLES.items():
            body += [
                line(start, top + 30, start + 18, top + 30, stroke),
                text(start + 23, top + 34, method, css="small"),
            ]
            start += 42 + 6.2 * len(method)
        for mark in range(0, 101, 20):
            body.append(line(left, at_y(mark), right, at_y(mark), "grid" if mark else "axis"))
            body.append(text(left - 8, at_y(mark) + 4, mark, "end", "soft small"))
        for method, (stroke, spot) in STYLES.items():
            means = [np.mean([run["p@1"] for run in methods[method].values()]) for methods in cells.values()]
            marks = [(at_x(i), at_y(mean)) for i, mean in enumerate(means)]
            body += [line(*here, *there, stroke) for here, there in itertools.pairwise(marks)]
            body += [dot(x, y, spot, f"{method}: {mean:.1f}") for (x, y), mean in zip(marks, means, strict=True)]
            told.append(f"{name}, {method}: " + ", ".join(f"{mean:.1f}" for mean in means))
        body += [text(at_x(i), low + 16, f"{v:g}", "middle", "soft small") for i, v in enumerate(cells)]
        body.append(text((left + right) / 2, low + 33, "noise (0: clusters, 1: random groups)", "middle", "soft small"))
        top += 260
    title = "First suggestions that are right, by the noise in the clusters that the rows are grouped by"
    return standalone(drawing(top, title, "; ".join(told), body)) + "\n"


def options() -> argparse.Namespace:
    parser = make_parser(__doc__, "eagle.json", data="required", seeds=range(5), resume=True)
    parser.add_argument("--only", nargs="+", default=list(CELLS), choices=list(CELLS))
    parser.add_argument("--cells", nargs="+", help="such as 'random 10', 'depth 8', 'depth 10 noise 0.5', 'none'")
    parser.add_argument("--methods", nargs="+", default=list(METHODS), choices=METHODS)
    parser.add_argument("--trees", type=int, default=1)
    parser.add_argument("--as-published", action="store_true")
    parser.add_argument("--drop-unlabelled", action="store_true", help="with --as-published: the weight only")
    parser.add_argument("--held-out", action="store_true")
    parser.add_argument("--figure", type=Path, default=DOCS / "eagle-noise.svg")
    parser.add_argument("--plot", action="store_true", help="only draw the figure")
    return parser.parse_args()


def cells(name: str, args: argparse.Namespace) -> Iterator[tuple[int, str, str]]:
    """Yield seed, cell and method of every run on a data set; known labels ("none") need no groups."""
    wanted = ["none", *CELLS[name]] if args.cells is None else args.cells
    for seed, cell, method in itertools.product(args.seeds, wanted, args.methods):
        if (cell == "none") == (method == "oracle"):
            yield seed, cell, method


def main() -> None:
    args = options()
    if args.plot:
        args.figure.write_text(plot(read_results(args.output)["results"]), encoding="utf-8")
        return
    facts = start_facts(args, {"results": {}})
    facts |= {"tested_on": "a fifth of train" if args.held_out else "test", "paper": PAPER}
    warm_up()
    for name in args.only:
        train, test = load(args.data / name, args.held_out)
        title = name + ", as published" * args.as_published + ", labelled rows" * args.drop_unlabelled
        title += f", {args.trees} trees" * (args.trees > 1)
        results = facts["results"].setdefault(title, {})
        for seed, cell, method in cells(name, args):
            done = results.setdefault(cell, {}).setdefault(method, {})
            if str(seed) not in done:
                done[str(seed)] = run(method, cell, train, test, seed, args)
                print(title, cell, method, seed, done[str(seed)], flush=True)
                write_results(facts, args.output)
        show(title, results)


if __name__ == "__main__":
    main()
