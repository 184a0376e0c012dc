"""Measure how well labels of rows are found from labels of groups, by the size of the groups; draws docs/groups.svg.

    python benchmarks/groups/pages.py [--seeds 0 1 2] [--sizes 2 4 8 16 32] [--plot]

The bundled `debtags`: packages are put on pages, the tags are known for each page only, and the tree learns from what
is found for the packages. Pages are random, or hold packages that are neighbours in the index, which are alike. Groups
know each of their tags once; "auto, counted" also knows how many packages have it. Right: the share of labels
found that are right; P@k: of a tree trained on them, on the test packages. Results are written as they come;
`--resume` goes on where a run ended, and `--plot` only draws.
"""

from __future__ import annotations

import argparse
import itertools
import sys
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

import longtail as lt
from benchmarks.harness.program import DOCS, Facts, make_parser, read_results, start_facts, write_results
from benchmarks.harness.scores import rounded
from benchmarks.harness.terminal import show_table
from longtail.data import Dataset, GroupedDataset, count_labels, group_randomly, load_bundled
from longtail.data.synthetic.group_rows import Grouped
from longtail.metrics import precision_at_k
from longtail.pipeline import Imputed, impute_dataset
from longtail.report.plots.canvas import WIDTH, dot, drawing, line, linear, logarithmic, shorten, standalone, text
from longtail.validate import make_csr

KS = (1, 5)
BLOCK, EVERY = 64, 8  # of the train rows, every 8th block of 64 neighbours
KINDS = {"random": "P@1, percent: packages of all kinds on a page", "neighbours": "P@1, percent: neighbours on a page"}
METHODS = ("propagate", "argmax", "auto", "auto, counted")
STYLES = {
    "auto, counted": ("sgood", "good", "auto, counts known"),
    "auto": ("stroke", "dot", "auto"),
    "propagate": ("stroke2", "dot2", "all tags to all"),
    "argmax": ("ssoft", "hollow", "as published"),
}


def rows_of_train() -> Dataset:
    """Return every 8th block of neighbours of the train rows."""
    data = load_bundled("debtags")
    return data.take(np.arange(data.n_rows) // BLOCK % EVERY == 0)


def pages(kind: str, data: Dataset, size: int, seed: int) -> Grouped:
    """Put the rows on pages."""
    if kind == "random":
        return group_randomly(data.Y, size, random_state=seed)
    of = np.arange(data.n_rows) // size
    ones = np.ones(data.n_rows, dtype=np.float32)
    groups = make_csr(np.arange(data.n_rows + 1), of, ones, int(of[-1]) + 1)
    return Grouped(groups, count_labels(groups, data.Y))


def find(method: str, X: Any, data: Dataset, grouped: Grouped, seed: int) -> Imputed:
    """Find the labels of the rows."""
    Y_groups = grouped.Y_groups if method == "auto, counted" else sp.csr_array(grouped.Y_groups > 0)
    rows = Dataset(X=X, Y=data.Y, groups=grouped.groups, label_names=data.label_names, ids=data.ids)
    return impute_dataset(GroupedDataset(rows, Y_groups), assign=method.partition(",")[0], random_state=seed)


def measure(kind: str, size: int, method: str, seed: int, X: Any, train: Dataset, X_test: Any, test: Dataset) -> Facts:
    """Find labels, train on them and return how good both are."""
    imputed = find(method, X, train, pages(kind, train, size, seed), seed)
    Y = imputed.data.Y
    right = float((Y.multiply(train.Y) > 0).sum())
    used = np.flatnonzero(np.diff(Y.indptr))
    top = lt.LabelTreeClassifier(random_state=seed).fit(X[used], Y[used]).predict_topk(X_test, k=max(KS))
    out = {
        "likeness": imputed.facts["likeness"],
        "right": right / Y.nnz,
        "found": right / train.Y.nnz,
        "confidence": imputed.facts["mean_confidence"],
        **{f"p@{k}": precision_at_k(test.Y, top, k=k) for k in KS},
    }
    return rounded(out)


# --- the figure -------------------------------------------------------------------------------------------------------


def example(X: Any, data: Dataset) -> tuple[list[int], sp.csr_array]:
    """Return the rows of the first page that fits on the drawing, and the tags found for all rows."""
    grouped = pages("random", data, 4, 0)
    Y = find("auto", X, data, grouped, 0).data.Y
    members = sp.csc_array(grouped.groups)
    for page in range(grouped.groups.shape[1]):
        rows = members.indices[members.indptr[page] : members.indptr[page + 1]].tolist()
        wrong = sum(Y[[r]].nnz - Y[[r]].multiply(data.Y[[r]]).nnz for r in rows)
        if grouped.Y_groups[[page]].nnz == 9 and wrong == 1:
            return rows, Y
    raise SystemExit("no page fits the drawing")


def tags_in_lines(tags: list[tuple[str, str]], left: float, y: float) -> tuple[list[str], float]:
    """Draw tags with a mark before each, as many in a line as fit; return the last line's y."""
    body, x = [], left
    for name, css in tags:
        width = 7.2 * len(name) + 26
        if x > left and x + width > WIDTH + 8:
            x, y = left, y + 18
        body += [dot(x + 5, y - 4, css, radius=3.5), text(x + 13, y, name, css="small")]
        x += width
    return body, y


def top_panel(X: Any, data: Dataset) -> tuple[list[str], float]:
    """Draw one page as an example: its tags, and which package each was given to."""
    rows, Y = example(X, data)
    names, ids, texts = data.names(), data.ids or (), data.texts or ()
    every = sorted({names[i] for r in rows for i in data.Y[[r]].indices})
    body = [text(0, 14, "Known: four packages on a page, and the page's tags", css="strong")]
    y = 36.0
    for row in rows:
        about = f"{ids[row]}: {texts[row].splitlines()[0]}"
        body.append(text(8, y, shorten(about, 1.25 * WIDTH), css="soft small"))
        y += 17
    marks, y = tags_in_lines([(name, "bar") for name in every], 8, y + 5)
    body += marks
    y += 34
    body.append(text(0, y, "Found: which package each tag belongs to", css="strong"))
    y += 20
    for row in rows:
        true, given = set(data.Y[[row]].indices), set(Y[[row]].indices)
        tags = [(names[i], "good" if i in true else "bad") for i in sorted(given)]
        tags += [(names[i], "hollow") for i in sorted(true - given)]
        body.append(text(8, y, shorten(ids[row], 160), css="small"))
        marks, y = tags_in_lines(tags, 140, y)
        body += marks
        y += 20
    x = 8.0
    for css, name in (("good", "right"), ("bad", "wrong"), ("hollow", "not found")):
        body += [dot(x + 5, y + 2, css, radius=3.5), text(x + 13, y + 6, name, css="soft small")]
        x += 34 + 6.2 * len(name)
    return body, y + 40


def panel(kind: str, cells: Facts, oracle: float, top: float) -> list[str]:
    """Draw P@1 against the size of the pages."""
    left, right, high, low = 40.0, WIDTH - 12, top + 48, top + 208
    sizes = sorted(int(size) for size in cells)
    at_x, at_y = logarithmic(1, sizes[-1], left + 12, right - 12), linear(0, 100, low, high)
    body = [text(0, top + 14, KINDS[kind], css="strong")]
    start = 0.0
    for stroke, _, name in STYLES.values():
        body += [line(start, top + 30, start + 18, top + 30, stroke), text(start + 23, top + 34, name, css="small")]
        start += 38 + 6.2 * len(name)
    for mark in range(0, 101, 20):
        body.append(line(left, at_y(mark), right, at_y(mark), "grid" if mark else "axis"))
        body.append(text(left - 8, at_y(mark) + 4, mark, "end", "soft small"))
    for method, (stroke, mark_css, name) in STYLES.items():
        points = [(1, 100 * oracle)] + [(size, 100 * mean(cells[str(size)][method], "p@1")) for size in sizes]
        marks = [(at_x(x), at_y(y)) for x, y in points]
        body += [line(*here, *there, stroke) for here, there in itertools.pairwise(marks)]
        body += [dot(at_x(x), at_y(y), mark_css, f"{name}, {x} a page: P@1 {y:.1f}%") for x, y in points]
    body += [text(at_x(size), low + 16, size, "middle", "soft small") for size in [1, *sizes]]
    body.append(text((left + right) / 2, low + 33, "packages on a page (1: labels known)", "middle", "soft small"))
    return body


def plot(facts: Facts, X: Any, train: Dataset, target: Path) -> None:
    """Draw a page as an example, and precision against the size of pages."""
    body, y = top_panel(X, train)
    oracle = mean(facts["oracle"], "p@1")
    for kind in KINDS:
        body += panel(kind, facts["results"][kind], oracle, y)
        y += 260
    told = [
        f"{kind} {size}, {method}: {100 * mean(seeds, 'p@1'):.1f}"
        for kind, cells in facts["results"].items()
        for size, methods in cells.items()
        for method, seeds in methods.items()
    ]
    title = "Tags of a page become tags of packages; percent of first suggestions that are right, by packages on a page"
    target.write_text(standalone(drawing(y, title, "; ".join(told), body)) + "\n", encoding="utf-8")


def mean(seeds: Facts, key: str) -> float:
    """Return the mean of one number over seeds."""
    return float(np.mean([run[key] for run in seeds.values()]))


def means(facts: Facts) -> Facts:
    """Return the means over seeds, in percent."""
    keys = ("right", "found", "confidence", "p@1", "p@5")
    return {
        kind: {
            size: {m: {key: round(100 * mean(seeds, key), 1) for key in keys} for m, seeds in methods.items()}
            for size, methods in cells.items()
        }
        for kind, cells in facts["results"].items()
    } | {"labels known": {f"p@{k}": round(100 * mean(facts["oracle"], f"p@{k}"), 1) for k in KS}}


def show(facts: Facts) -> None:
    """Print the means over seeds."""
    rows = []
    for kind, cells in facts["results"].items():
        for size, methods in cells.items():
            for method, seeds in methods.items():
                shown = (100 * mean(seeds, key) for key in ("right", "found", "confidence", "p@1", "p@5"))
                likeness = f"{mean(seeds, 'likeness'):.3f}"
                rows.append([kind, method, size, likeness, *(f"{value:.1f}" for value in shown)])
    title = f"labels known: P@1 {100 * mean(facts['oracle'], 'p@1'):.1f}"
    show_table(title, ["pages", "method", "size", "likeness", "right", "found", "sure", "P@1", "P@5"], rows, left=2)


def options() -> argparse.Namespace:
    parser = make_parser(__doc__, "groups.json", seeds=(0, 1, 2), resume=True)
    parser.add_argument("--sizes", nargs="+", type=int, default=[2, 4, 8, 16, 32])
    parser.add_argument("--figure", type=Path, default=DOCS / "groups.svg")
    parser.add_argument("--plot", action="store_true", help="only draw the figure")
    return parser.parse_args()


def measure_all(args: argparse.Namespace, X: Any, train: Dataset, X_test: Any, test: Dataset) -> Facts:
    """Measure every kind of page, size, method and seed that the file of results does not hold yet."""
    about = f"bundled:debtags, every {EVERY}th block of {BLOCK} train rows; all test rows"
    facts = start_facts(args, {"data": about, "oracle": {}, "results": {}})
    for seed in args.seeds:
        if str(seed) not in facts["oracle"]:
            top = lt.LabelTreeClassifier(random_state=seed).fit(X, train.Y).predict_topk(X_test, k=max(KS))
            facts["oracle"][str(seed)] = rounded({f"p@{k}": precision_at_k(test.Y, top, k=k) for k in KS})
        for kind, size, method in itertools.product(KINDS, args.sizes, METHODS):
            done = facts["results"].setdefault(kind, {}).setdefault(str(size), {}).setdefault(method, {})
            if str(seed) not in done:
                done[str(seed)] = measure(kind, size, method, seed, X, train, X_test, test)
                print(kind, size, method, seed, done[str(seed)], flush=True)
                write_results(facts, args.output)
    facts["means"] = means(facts)
    write_results(facts, args.output)
    return facts


def main() -> None:
    args = options()
    train, test = rows_of_train(), load_bundled("debtags", "test")
    words = lt.TfidfFeatures()
    X, X_test = words.fit_transform(train.texts or ()), words.transform(test.texts or ())
    facts = read_results(args.output) if args.plot else measure_all(args, X, train, X_test, test)
    show(facts)
    plot(facts, X, train, args.figure)


if __name__ == "__main__":
    main()
