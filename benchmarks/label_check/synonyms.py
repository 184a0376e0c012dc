"""Measure time and memory of the search for synonyms, which must not compare all pairs of labels.

    python benchmarks/label_check/synonyms.py --data FOLDER

FOLDER holds `yso-titles`: all its training rows, and every tenth. The other cases are made up: five rows of fifteen
words for every label and three labels for every row, with words as frequent as Zipf's law says. CPU seconds of one
thread; the peak of memory is of the whole program, which makes the rows too, up to and with the case.
"""

from __future__ import annotations

import resource
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import scipy.sparse as sp

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from benchmarks.harness.program import make_parser, start_facts, write_results
from benchmarks.harness.terminal import show_table
from longtail.data import read
from longtail.label_check.synonyms import find_synonyms
from longtail.text import TfidfFeatures
from longtail.validate import Rows

WORDS, IN_ROW, ROWS_OF_LABEL, LABELS_OF_ROW = 200_000, 15, 5, 3
MADE_UP = (25_000, 50_000, 100_000)

Case = tuple[str, Rows, sp.csr_array, tuple[str, ...]]


def cases(data: Path) -> Iterator[Case]:
    """Yield name, rows, labels of rows and names of labels."""
    titles = read(data / "yso-titles" / "train.jsonl.xz")
    for name, every in (("yso-titles, a tenth", 10), ("yso-titles", 1)):
        part = titles.take(slice(None, None, every)).compact_labels()
        yield name, TfidfFeatures(n_jobs=1).fit_transform(part.texts or ()), part.Y, part.names()
    for n_labels in MADE_UP:
        yield made_up(n_labels)


def made_up(n_labels: int) -> Case:
    """Return rows whose words are as frequent as Zipf's law says, and labels drawn evenly."""
    rng, n = np.random.default_rng(0), n_labels * ROWS_OF_LABEL
    shares = np.cumsum(1 / np.arange(1, WORDS + 1))
    words = np.searchsorted(shares / shares[-1], rng.random((n, IN_ROW))).astype(np.int32)
    labels = rng.integers(0, n_labels, (n, LABELS_OF_ROW)).astype(np.int32)
    idf = np.log(n / np.maximum(np.bincount(words.ravel(), minlength=WORDS), 1))
    X = rows_of(words, idf[words].ravel(), WORDS)
    X.data /= np.repeat(np.sqrt(np.add.reduceat(X.data**2, X.indptr[:-1])), np.diff(X.indptr))
    Y = rows_of(labels, np.ones(labels.size), n_labels)
    Y.data[:] = 1
    return f"made up, {n_labels:,} labels", X, Y, tuple(f"label {number}" for number in range(n_labels))


def rows_of(columns: np.ndarray, values: np.ndarray, width: int) -> sp.csr_array:
    """Return the sparse rows with these columns, values of the same column added."""
    n, in_row = columns.shape
    out = sp.csr_array((values.astype(np.float32), columns.ravel(), np.arange(n + 1) * in_row), shape=(n, width))
    out.sum_duplicates()
    return out


def main() -> None:
    args = make_parser(__doc__, "label_synonyms.json", data="required").parse_args()
    facts = start_facts(args, {"cases": {}})
    _, X, Y, names = made_up(100)
    find_synonyms(X, Y, names, 1)  # compiles
    for name, X, Y, names in cases(args.data):
        start = time.process_time()
        found = find_synonyms(X, Y, names, 1)
        facts["cases"][name] = {
            "rows": X.shape[0],
            "labels": Y.shape[1],
            "found": len(found),
            "cpu_seconds": round(time.process_time() - start, 2),
            "peak_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024,
        }
        write_results(facts, args.output)
    columns = list(next(iter(facts["cases"].values())))
    show_table("synonyms", ["", *columns], [[name, *map(str, one.values())] for name, one in facts["cases"].items()])


if __name__ == "__main__":
    main()
