"""Train label trees on millions of rows and on millions of labels within a limit on memory, set by `--memory`.

    python benchmarks/tree/growth_large.py --work FOLDER

The data is generated and written straight into a row store, block by block: never all rows in memory. Two families:
`products`, 15 words with about 2 of 100,000 labels, to ten million rows, and `tail`, rows with about 8 labels in the
shape of Amazon-3M (49 features of 337,067 in a row; its rows have 36 labels), to three million labels for a million
rows. Labels come in clusters, are drawn by a power law and have one row at least.

`longtail train STORE --memory LIMIT` runs in a process of its own, as `longtail plan` with the same limit does before.
The memory that is its own (RssAnon of /proc/PID/status, against which the limit counts) is looked up fifty times a
second, from reading the data to saving the model; a process that takes more than `--kill` is ended. Then one process
loads the model, checked completely, as the first and as a later time with `verify="once"`, and predicts 5,000 rows
that no training has seen. Where `without` stands, the same was trained without a limit too. `--plot` only draws
docs/growth-large.svg from the results.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import shutil
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import scipy.sparse as sp

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

import longtail as lt
from benchmarks.harness.program import DOCS, Facts, make_parser, read_results, start_facts, write_results
from benchmarks.harness.scores import precisions
from benchmarks.harness.terminal import show_table
from benchmarks.harness.timing import folder_bytes, timed
from benchmarks.tree.growth import panel
from longtail.data import Dataset, StoreWriter, fill_store, open_store
from longtail.report.plots.canvas import drawing, standalone

GIGABYTE = 1e9
HELD_OUT, PASSES = 5_000, 3
BLOCK_ROWS = 65_536
LABELS_PER_CLUSTER, CLUSTERS_PER_SECTION = 64, 32
OWN_FEATURES, SHARED_FEATURES = 4, 24
EXPONENT = 0.5  # label i is drawn in proportion to 1 / (i + 1) ** EXPONENT
ELSEWHERE = 0.2  # of the labels after the first, not of the cluster of the first
SHARES = (0.22, 0.2, 0.1)  # of a row's words: of its labels, their clusters and sections; the rest are common words
COMMON = 0.02  # share of the features that are common words only
STRIDE = 7_368_787  # a prime: rows of neighbouring labels do not lie beside each other


@dataclass(frozen=True)
class Family:
    """The shape of rows."""

    n_features: int
    features_per_row: float
    labels_per_row: float


@dataclass(frozen=True)
class Cell:
    """A training: so much data within so much memory."""

    family: str
    rows: int
    labels: int
    memory: str  # as on the command line

    @property
    def key(self) -> str:
        return f"{self.family}, {self.rows} rows, {self.labels} labels"


FAMILIES = {"products": Family(135_909, 15, 2), "tail": Family(337_067, 49, 8)}
CELLS = (
    Cell("products", 500_000, 100_000, "2GB"),
    Cell("products", 2_000_000, 100_000, "2GB"),
    Cell("products", 10_000_000, 100_000, "4GB"),
    Cell("tail", 50_000, 150_000, "2GB"),
    Cell("tail", 250_000, 750_000, "2GB"),
    Cell("tail", 1_000_000, 3_000_000, "4GB"),
)


class Generator:
    """Rows of unit length with labels of a long tail, a block at a time; the same for the same cell."""

    def __init__(self, family: Family, n_rows: int, n_labels: int) -> None:
        self.family, self.n_rows, self.n_labels = family, n_rows, n_labels
        rng = np.random.default_rng(0)
        n_features = family.n_features
        n_common = max(1, round(COMMON * n_features))
        self.words = rng.permutation(n_features).astype(np.int32)
        n_clusters = -(-n_labels // LABELS_PER_CLUSTER)
        n_sections = -(-n_clusters // CLUSTERS_PER_SECTION)
        # labels stand cluster by cluster; `name` is the number that a label has in the data
        self.name = rng.permutation(n_labels).astype(np.int32)
        share = 1.0 / np.sqrt(1.0 + rng.permutation(n_labels))
        self.upto = np.concatenate([[0.0], np.cumsum(share / share.sum())])
        self.own = self._drawn_words(rng, n_common, (n_labels, OWN_FEATURES))
        self.of_cluster = self._drawn_words(rng, n_common, (n_clusters, SHARED_FEATURES))
        self.of_section = self._drawn_words(rng, n_common, (n_sections, SHARED_FEATURES))
        self.tokens = [max(1, round(part * family.features_per_row / family.labels_per_row)) for part in SHARES]
        chance = 1.0 / np.arange(1, n_features + 1)
        self.chance_upto = np.cumsum(chance / chance.sum())
        self.common = 0.0
        self.idf = np.ones(n_features, np.float32)
        X, _ = self._counted(np.random.default_rng(1), np.arange(min(BLOCK_ROWS, n_rows)))
        for _ in range(6):  # how many common words fill a row up
            self.common += max(0.0, (family.features_per_row - X.nnz / X.shape[0]) * 1.5)
            X, _ = self._counted(np.random.default_rng(1), np.arange(min(BLOCK_ROWS, n_rows)))
        documents = np.bincount(X.indices, minlength=n_features) / X.shape[0]  # judged by the first block
        self.idf = (np.log((1.0 + n_rows) / (1.0 + documents * n_rows)) + 1.0).astype(np.float32)

    def blocks(self) -> Iterator[Dataset]:
        """Yield the training rows."""
        for low in range(0, self.n_rows, BLOCK_ROWS):
            yield self._rows(np.random.default_rng([2, low]), np.arange(low, min(low + BLOCK_ROWS, self.n_rows)))

    def held_out(self) -> Dataset:
        """Return rows that are not among those for training."""
        return self._rows(np.random.default_rng(3), np.full(HELD_OUT, -1))

    def _drawn_words(self, rng: np.random.Generator, n_common: int, shape: tuple[int, int]) -> np.ndarray:
        return self.words[rng.integers(n_common, self.family.n_features, size=shape)]

    def _rows(self, rng: np.random.Generator, rows: np.ndarray) -> Dataset:
        X, Y = self._counted(rng, rows)
        X.data = (1 + np.log(X.data)) * self.idf[X.indices]
        lengths = np.sqrt(np.add.reduceat(X.data.astype(np.float64) ** 2, X.indptr[:-1]))
        X.data = (X.data / np.repeat(lengths, np.diff(X.indptr))).astype(np.float32)
        return Dataset(X=X, Y=Y)

    def _counted(self, rng: np.random.Generator, rows: np.ndarray) -> tuple[sp.csr_array, sp.csr_array]:
        """Return how often rows have every word, and their labels."""
        n = rows.size
        of_row, label = self._labels(rng, rows)
        cluster = label // LABELS_PER_CLUSTER
        sources = self.own[label], self.of_cluster[cluster], self.of_section[cluster // CLUSTERS_PER_SECTION]
        places, words = [], []
        for source, n_tokens in zip(sources, self.tokens, strict=True):
            which = rng.integers(source.shape[1], size=(label.size, n_tokens))
            places.append(np.repeat(of_row, n_tokens))
            words.append(np.take_along_axis(source, which, axis=1).ravel())
        drawn = np.searchsorted(self.chance_upto, rng.random(rng.poisson(self.common * n)))
        places.append(rng.integers(n, size=drawn.size))
        words.append(self.words[np.minimum(drawn, self.family.n_features - 1)])
        X = matrix(np.concatenate(places), np.concatenate(words), n, self.family.n_features)
        Y = matrix(of_row, self.name[label], n, self.n_labels)
        Y.data[:] = 1
        return X, Y

    def _labels(self, rng: np.random.Generator, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return pairs of a row and a label, by its place; together the training rows have every label."""
        each = -(-self.n_labels // self.n_rows)  # labels that a row brings, so that each has one
        place = (rows.astype(np.int64) * STRIDE) % self.n_rows
        first = (place * each)[:, None] + np.arange(each)
        brought = (first < self.n_labels) & (rows >= 0)[:, None]
        main = np.where(brought[:, 0], first[:, 0], self._drawn(rng.random(rows.size)))
        more = np.maximum(rng.poisson(self.family.labels_per_row - 1, size=rows.size) - brought[:, 1:].sum(axis=1), 0)
        of_more = np.repeat(np.arange(rows.size), more)
        cluster = main[of_more] // LABELS_PER_CLUSTER
        low = self.upto[cluster * LABELS_PER_CLUSTER]
        high = self.upto[np.minimum((cluster + 1) * LABELS_PER_CLUSTER, self.n_labels)]
        u = rng.random(of_more.size)
        near = rng.random(of_more.size) >= ELSEWHERE
        further = self._drawn(np.where(near, low + u * (high - low), u))
        row_of, which = np.nonzero(brought[:, 1:])
        return (
            np.concatenate([np.arange(rows.size), row_of, of_more]),
            np.concatenate([main, first[:, 1:][row_of, which], further]),
        )

    def _drawn(self, u: np.ndarray) -> np.ndarray:
        return np.clip(np.searchsorted(self.upto, u, side="right") - 1, 0, self.n_labels - 1)


def matrix(rows: np.ndarray, columns: np.ndarray, n_rows: int, n_columns: int) -> sp.csr_array:
    """Return how often every pair occurs."""
    keys, counts = np.unique(rows.astype(np.int64) * n_columns + columns, return_counts=True)
    ends = np.concatenate([[0], np.cumsum(np.bincount(keys // n_columns, minlength=n_rows))])
    ids = (keys % n_columns).astype(np.int32)
    return sp.csr_array((counts.astype(np.float32), ids, ends.astype(np.int64)), shape=(n_rows, n_columns))


def make_store(cell: Cell, work: Path) -> tuple[Path, Path, float]:
    """Write the rows of a cell and those held out, unless they are there; return where, and the seconds it took."""
    name = f"{cell.family}-{cell.rows}-{cell.labels}"
    store, held = work / f"{name}.store", work / f"{name}.held"
    started = time.perf_counter()
    if not (store.exists() and held.exists()):
        made = Generator(FAMILIES[cell.family], cell.rows, cell.labels)
        with StoreWriter(store, cell.family) as writer:
            fill_store(writer, made.blocks())
        with StoreWriter(held, cell.family) as writer:
            fill_store(writer, iter([made.held_out()]))
    return store, held, time.perf_counter() - started


def watched(words: list[str], kill: float) -> Facts:
    """Run a command; return its time, and the most memory that was its own. One that takes too much is ended."""
    started, peak, mapped = time.perf_counter(), 0, 0
    process = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    before = os.times()
    while process.poll() is None:
        own = status(process.pid, "RssAnon")
        peak, mapped = max(peak, own), max(mapped, status(process.pid, "RssFile"))
        if own > kill * GIGABYTE:
            process.kill()
        time.sleep(0.02)
    spent = os.times()
    told, said = process.communicate()
    if process.returncode:
        return {"ended_with": process.returncode, "peak_gigabytes": peak / GIGABYTE, "said": said[-500:]}
    return {
        "seconds": round(time.perf_counter() - started, 1),
        "cpu_seconds": round(
            spent.children_user - before.children_user + spent.children_system - before.children_system, 1
        ),
        "peak_gigabytes": round(peak / GIGABYTE, 3),
        "mapped_gigabytes": round(mapped / GIGABYTE, 3),
        **({"training_seconds": round(json.loads(told)["seconds"], 1)} if told.startswith("{") else {}),
    }


def status(pid: int, field: str) -> int:
    """Return a line of /proc/PID/status in bytes, 0 where there is none."""
    try:
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    except OSError:
        return 0
    return max((1024 * int(line.split()[1]) for line in lines if line.startswith(f"{field}:")), default=0)


def measure(cell: Cell, args: argparse.Namespace) -> Facts:
    """Measure one cell."""
    store, held, made = make_store(cell, args.work)
    size, limit = folder_bytes(store), gigabytes(cell.memory)
    facts: Facts = {
        "family": cell.family,
        "rows": cell.rows,
        "labels": cell.labels,
        "make_seconds": round(made, 1),
        "store_gigabytes": round(size / GIGABYTE, 3),
        "limit_gigabytes": limit,
        "data_by_limit": round(size / GIGABYTE / limit, 2),
    }
    program = [sys.executable, "-m", "longtail"]
    jobs = ["--jobs", str(args.jobs)] if args.jobs else []
    planned = subprocess.run(
        [*program, "plan", str(store), "--memory", cell.memory, "--calibrate", "0", *jobs, "--json"],
        capture_output=True,
        text=True,
    )
    if planned.returncode:
        return facts | {"refused": planned.stderr.strip()}
    said = json.loads(planned.stdout)
    facts |= {
        "planned_gigabytes": round(said["memory"]["peak_bytes"] / GIGABYTE, 3),
        "planned_seconds": said["train_seconds"],
        "planned_model_gigabytes": round((said["model_bytes"] or 0) / GIGABYTE, 3),
    }
    model = args.work / "model"
    train = [*program, "train", str(store), "-o", str(model), "--calibrate", "0", "--json", *jobs]
    facts["within"] = watched([*train, "--memory", cell.memory], args.kill)
    if "ended_with" not in facts["within"]:
        answer = subprocess.run(
            [sys.executable, __file__, "--answer", str(model), str(held)], capture_output=True, text=True, check=True
        )
        facts |= json.loads(answer.stdout)
        if cell.key in args.without:
            within = digest_of(model)
            shutil.rmtree(model)
            facts["without"] = watched(train, args.kill)
            facts["same_bytes"] = digest_of(model) == within
        if not args.keep:
            shutil.rmtree(model)
    if not args.keep:
        shutil.rmtree(store)
        shutil.rmtree(held)
    return facts


def answer(model_folder: Path, held: Path) -> Facts:
    """Load a model in three ways and predict the rows held out, in this process."""
    rows = open_store(held).dataset()
    X = rows.X if rows.X is not None else sp.csr_array((0, 0))
    drop_from_cache(model_folder)
    cold, model = timed(lambda: lt.load(model_folder))
    warm, model = timed(lambda: lt.load(model_folder))
    first, model = timed(lambda: lt.load(model_folder, verify="once"))
    once = [timed(lambda: lt.load(model_folder, verify="once"))[0] for _ in range(PASSES)]
    model = lt.load(model_folder, verify="once")
    before = status(os.getpid(), "RssAnon")
    top = model.predict_topk(X, k=5)  # compiles, and makes the search fast
    passes = [timed(lambda: model.predict_topk(X, k=5))[0] for _ in range(PASSES)]
    few = [timed(lambda i=i: model.predict_topk(X[i : i + 1], k=5))[0].wall for i in range(200)]
    return {
        "model_gigabytes": round(folder_bytes(model_folder) / GIGABYTE, 3),
        "model_digest": digest_of(model_folder)[:16],
        "load_complete_seconds": round(warm.wall, 3),
        "load_complete_from_disk_seconds": round(cold.wall, 3),
        "load_once_first_seconds": round(first.wall, 3),
        "load_once_seconds": round(statistics.median(spent.wall for spent in once), 3),
        "loaded_gigabytes": round(before / GIGABYTE, 3),
        "predicting_gigabytes": round(status(os.getpid(), "RssAnon") / GIGABYTE, 3),
        "predict_us_per_row": round(1e6 * statistics.median(spent.wall for spent in passes) / HELD_OUT, 1),
        "predict_cpu_us_per_row": round(1e6 * statistics.median(spent.cpu for spent in passes) / HELD_OUT, 1),
        "predict_one_us": round(1e6 * statistics.median(few), 1),
        **{name: round(value, 2) for name, value in precisions(rows.Y, top).items()},
    }


def drop_from_cache(folder: Path) -> None:
    """Let the system forget what it has read of a folder, where it can."""
    os.sync()
    for file in folder.iterdir():
        with file.open("rb") as opened:
            if hasattr(os, "posix_fadvise"):
                os.posix_fadvise(opened.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def digest_of(folder: Path) -> str:
    """Return a digest of all files of a model."""
    said = hashlib.sha256()
    for file in sorted(folder.iterdir()):
        with file.open("rb") as opened:
            said.update(file.name.encode() + hashlib.file_digest(opened, "sha256").digest())
    return said.hexdigest()


def gigabytes(memory: str) -> float:
    return float(memory[:-2]) * {"GB": 1.0, "MB": 1e-3}[memory[-2:]]


def options() -> argparse.Namespace:
    parser = make_parser(__doc__, "growth_large.json", resume=True)
    parser.add_argument("--work", type=Path, help="folder for stores and models: 20 GB")
    parser.add_argument("--only", nargs="+", help="of the cells, by the beginning of their names")
    parser.add_argument("--memory", help="instead of the limits of the cells")
    parser.add_argument("--jobs", type=int, default=None)
    parser.add_argument("--without", nargs="*", default=[CELLS[0].key, CELLS[1].key, CELLS[3].key])
    parser.add_argument("--kill", type=float, default=10.0, help="gigabytes that end a training")
    parser.add_argument("--keep", action="store_true", help="stores and models stay in the folder")
    parser.add_argument("--figure", type=Path, default=DOCS / "growth-large.svg")
    parser.add_argument("--plot", action="store_true", help="only draw the figure")
    parser.add_argument("--answer", type=Path, nargs=2, help=argparse.SUPPRESS)
    return parser.parse_args()


def main() -> None:
    args = options()
    if args.answer:
        print(json.dumps(answer(*args.answer)))
        return
    facts = read_results(args.output) if args.plot else measure_all(args)
    show(facts)
    plot(facts, args.figure)


def measure_all(args: argparse.Namespace) -> Facts:
    """Measure every cell, the smallest first."""
    families = {name: vars(family) for name, family in FAMILIES.items()}
    facts = start_facts(args, {"families": families, "held_out_rows": HELD_OUT, "cells": {}})
    facts["families"] = families
    args.work.mkdir(parents=True, exist_ok=True)
    for cell in CELLS:
        wanted = not args.only or any(cell.key.startswith(name) for name in args.only)
        if wanted and cell.key not in facts["cells"]:
            if args.memory:
                cell = Cell(cell.family, cell.rows, cell.labels, args.memory)
            facts["cells"][cell.key] = measure(cell, args)
            write_results(facts, args.output)
            print(cell.key, json.dumps(facts["cells"][cell.key], indent=1), flush=True)
    return facts


def plot(facts: Facts, target: Path) -> None:
    """Draw time and memory against rows, and against labels."""
    body: list[str] = []
    height, told = 0.0, []
    for family, by, heading in (
        ("products", "rows", "More rows (100,000 labels)"),
        ("tail", "labels", "More labels (a third as many rows)"),
    ):
        cells = [
            {
                **cell,
                "train_cpu_seconds": cell["within"]["cpu_seconds"],
                "peak_bytes": GIGABYTE * cell["within"]["peak_gigabytes"],
            }
            for cell in sorted(facts["cells"].values(), key=lambda cell: (cell["rows"], cell["labels"]))
            if cell["family"] == family and "p@1" in cell
        ]
        if len(cells) > 1:
            body += panel(cells, by, heading, height)
            height += 282.0
        told += [
            f"{cell['rows']:,} rows, {cell['labels']:,} labels: {cell['train_cpu_seconds']:.0f} CPU seconds to train "
            f"within {cell['limit_gigabytes']:g} GB, {cell['predict_cpu_us_per_row']:.0f} µs to predict a row"
            for cell in cells
        ]
    svg = drawing(height, "Time and memory of training within a limit on memory", "; ".join(told), body)
    target.write_text(standalone(svg) + "\n", encoding="utf-8")


def show(facts: Facts) -> None:
    """Print a line for every cell."""
    names = ("limit GB", "planned", "own", "train s", "CPU s", "P@1", "P@5", "model GB", "load s", "µs/row")
    rows = [
        [
            key,
            f"{c['limit_gigabytes']:.1f}",
            f"{c['planned_gigabytes']:.2f}",
            f"{c['within']['peak_gigabytes']:.2f}",
            f"{c['within']['seconds']:.0f}",
            f"{c['within']['cpu_seconds']:.0f}",
            f"{c['p@1']:.1f}",
            f"{c['p@5']:.1f}",
            f"{c['model_gigabytes']:.2f}",
            f"{c['load_once_seconds']:.2f}",
            f"{c['predict_us_per_row']:.0f}",
        ]
        for key, c in facts["cells"].items()
        if "p@1" in c
    ]
    show_table("within a limit on memory", ["", *names], rows, left=1)


if __name__ == "__main__":
    main()
