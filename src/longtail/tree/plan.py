"""The cost of training a label tree: a tree trained on a sample of the rows, and how much more work all rows are.

Time is in proportion to how many classifiers each non-zero value meets: the children of the root, those of the nodes a
row is sent to at every level, and the centres that the labels of the row are compared with.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from longtail.data import Dataset
from longtail.errors import DataError
from longtail.kernels import LANES
from longtail.model import Estimate, Shape, clone, has_idle_columns
from longtail.tree.chunks import Chunks, largest_spread
from longtail.tree.grow.build import ENTRIES_OF_A_VECTOR, SAMPLE
from longtail.tree.grow.kmeans import MAX_TO_MEAN
from longtail.validate import SHARE_IN_MEMORY, check_integer, memory_limit, resolve_jobs

if TYPE_CHECKING:
    from longtail.tree.estimator import LabelTreeClassifier

# under a limit on memory, bytes that stay in memory: of a row, of a row on each thread that solves a classifier,
# of a label; and how many arrays just too small for a file there are at once
PER_ROW, PER_ROW_SOLVED, PER_LABEL, ARRAYS = 90.0, 82.0, 500.0, 24
PROBE_SECONDS = 0.8  # of the second, larger probe
COMPILED = 4  # times this long, and kernels were compiled in the second probe
FIRST_ROWS, FIRST_NONZEROS = 500, 50_000  # of the first probe, at most
MORE_WEIGHTS = 0.65  # the weights of a label with more rows than any in the probe grow by this power of them, at most
SLOWER = 0.06  # time grows by this power of the rows beyond proportion: memory in use outgrows the caches
# where nothing is probed: weights of a label with one row, how they grow with rows, share of inner nodes, bytes of each
WEIGHTS, GROWTH, INNER, BYTES = 60.0, 0.7, 0.25, 3.5


@dataclass(frozen=True)
class TreeProbe:
    """Measurements of a training on a few rows."""

    rows: int
    seconds: float
    work: float
    predict_us: float
    predict_work: float
    counts: np.ndarray  # rows of each label
    weights: np.ndarray  # of each label's classifier
    inner: float  # share of the weights that belong to nodes, not labels
    bytes_per_weight: float
    loading_seconds: float = 0.0


def tree_shape(n_labels: int, model: LabelTreeClassifier, rows_per_label: float = 0.0) -> list[int]:
    """Return about how many nodes the label tree will have at each level.

    >>> from longtail.tree import LabelTreeClassifier
    >>> tree_shape(4000, LabelTreeClassifier(max_leaf=160)), tree_shape(100_000, LabelTreeClassifier(max_leaf=160))
    ([100], [50, 2500])
    """
    max_leaf = check_integer("max_leaf", model.max_leaf, low=1)
    branching, _ = model.branching_of(n_labels, rows_per_label)
    if n_labels <= max_leaf:
        return [1]
    if model.balanced:
        leaves = 2 ** int(np.ceil(np.log2(n_labels / max_leaf)))
    else:
        leaves = max(2, round(n_labels * MAX_TO_MEAN / max_leaf))
    depth = max(1, int(np.ceil(np.log(leaves) / np.log(branching) - 1e-9)))
    return [max(1, round(leaves ** ((level + 1) / depth))) for level in range(depth)]


def estimate_tree(data: Dataset, shape: Shape, model: LabelTreeClassifier, probe: bool) -> Estimate:
    """Return what fitting takes; without a probe, memory alone."""
    wide = has_idle_columns(shape.n_features, round(shape.nonzeros))
    n_columns = shape.columns_in_use if wide else float(shape.n_features)  # training numbers those in use anew
    nodes, n_trees = (
        tree_shape(shape.n_used, model, _rows_per_label(shape)),
        check_integer("n_trees", model.n_trees, low=1),
    )
    measured = probe_tree(data, shape, model) if probe else None
    if measured is None:
        weights = float((WEIGHTS * shape.label_counts[shape.label_counts > 0] ** GROWTH).sum()) / (1 - INNER)
        each = BYTES
    else:
        weights, each = expected_weights(measured, shape.label_counts), measured.bytes_per_weight
    lines = weights * max(each - 2, 0.2) / 5  # two bytes a weight, five a line
    index = 0.2 * sum(nodes) * n_columns
    spread = index + 48 * lines  # dense rows of all lines, else of the few with many entries, and the place of each
    most = largest_spread()
    spread = spread if spread < most else index + 13 * lines if index < most else 0.0
    trained = 3 * weights + 14 * lines
    limit = memory_limit()
    if limit is None:
        memory = _memory(shape, model, nodes, n_columns, 2 * trained + n_trees * spread)
    else:
        memory = _memory_in_files(shape, model, nodes, n_columns, n_trees * float(largest_spread()), limit)
    more = 1.0 if measured is None else max(shape.n_rows / measured.rows, 1.0) ** SLOWER
    return Estimate(
        seconds=0.0 if measured is None else measured.seconds * _work(shape, model) / measured.work * more,
        predict_us=0.0
        if measured is None
        else measured.predict_us * _predict_work(shape, model) / measured.predict_work,
        model_bytes=n_trees * (weights * each + 16.0 * shape.n_used),
        memory_bytes=memory,
        kept_bytes=n_trees * (trained + spread),
        tree={"trees": n_trees, "levels": len(nodes), "leaves": nodes[-1], "nodes": nodes},
        probed_rows=0 if measured is None else measured.rows,
        probe_seconds=0.0 if measured is None else measured.seconds,
        loading_seconds=0.0 if measured is None else measured.loading_seconds,
    )


def probe_tree(data: Dataset, shape: Shape, model: LabelTreeClassifier) -> TreeProbe:
    """Train on a few rows, then on as many as fit into less than a second."""
    order = np.random.default_rng(1).permutation(shape.rows.size)
    n = min(order.size, max(20, min(FIRST_ROWS, int(FIRST_NONZEROS / max(shape.nonzeros_per_row, 1)))))
    started = time.perf_counter()
    fit_sample(data, shape, model, order[: max(20, n // 8)])  # loads the compiled kernels
    loading = time.perf_counter() - started
    measured = _quicker_of_two(data, shape, model, order[:n], loading)
    larger = min(order.size, int(n * PROBE_SECONDS / max(measured.seconds, 1e-3)))
    if larger <= 1.3 * n:
        return measured
    last = fit_sample(data, shape, model, order[:larger], loading)
    if last.seconds > COMPILED * PROBE_SECONDS:
        last = _quicker_of_two(data, shape, model, order[:larger], loading)
    return last


def _quicker_of_two(
    data: Dataset, shape: Shape, model: LabelTreeClassifier, at: np.ndarray, loading: float
) -> TreeProbe:
    """Train twice and return the quicker probe: kernels that only more rows need are compiled in the first."""
    return min((fit_sample(data, shape, model, at, loading) for _ in range(2)), key=lambda probe: probe.seconds)


def fit_sample(
    data: Dataset, shape: Shape, model: LabelTreeClassifier, at: np.ndarray, loading: float = 0.0
) -> TreeProbe:
    """Train on some of the sampled rows."""
    at = np.sort(at)
    Y = data.Y[shape.rows[at]]
    Y = Y[:, np.unique(Y.indices)]
    if Y.nnz == 0:
        raise DataError("there is nothing to plan: the sampled rows have no labels.")
    part = shape.of_sample(at, Y)
    started = time.perf_counter()
    fitted = clone(model).fit(part.X, Y)
    seconds = time.perf_counter() - started
    fitted.predict_topk(part.X[:50])
    started = time.perf_counter()
    fitted.predict_topk(part.X)
    predict_us = 1e6 * (time.perf_counter() - started) / at.size
    tree, chunks = fitted.trees_[0], fitted.chunks_[0]
    of_child = _weights_of_children(chunks)
    inner, of_slot = of_child[: chunks.n_chunks - 1], of_child[chunks.n_chunks - 1 :]
    total = max(int(of_child.sum()), 1)
    stored = sum(a.nbytes for a in chunks.arrays("").values()) - 16.0 * of_child.size
    return TreeProbe(
        rows=at.size,
        seconds=seconds,
        work=_work(part, model),
        predict_us=predict_us,
        predict_work=_predict_work(part, model),
        counts=fitted.label_counts_,
        weights=np.bincount(tree.leaf_labels, weights=of_slot, minlength=Y.shape[1]),
        inner=float(inner.sum()) / total,
        bytes_per_weight=min(max(stored / total, 2.0), 7.0),
        loading_seconds=loading,
    )


def expected_weights(measured: TreeProbe, counts: np.ndarray) -> float:
    """Return how many weights the tree will have: a label with as many rows as one of the probe has as many weights."""
    has = (measured.counts > 0) & (measured.weights > 0)
    if not has.any():
        return 0.0
    size = np.log2(measured.counts[has])
    _, group = np.unique(np.floor(size), return_inverse=True)
    n = np.bincount(group)
    x, y = np.bincount(group, weights=size) / n, np.log2(np.bincount(group, weights=measured.weights[has]) / n)
    wanted = np.log2(counts[counts > 0])
    rising = MORE_WEIGHTS if x.size < 3 else min(max((y[-1] - y[-3]) / (x[-1] - x[-3]), 0.0), MORE_WEIGHTS)
    expected = 2.0 ** (np.interp(wanted, x, y) + rising * np.maximum(wanted - x[-1], 0))
    return float(expected.sum()) / max(1 - measured.inner, 0.3)


def _weights_of_children(chunks: Chunks) -> np.ndarray:
    """Return how many weights the classifier of every child has."""
    first = np.repeat(chunks.child_indptr[:-1], np.diff(chunks.line_indptr))
    children = np.repeat(first, chunks.counts) + chunks.children
    return np.bincount(children, minlength=int(chunks.child_indptr[-1]))


def _memory(shape: Shape, model: LabelTreeClassifier, nodes: list[int], n_columns: float, trained: float) -> float:
    """Return the most memory in use, beside the data, in bytes: scaled rows, and the hungriest of three stages."""
    jobs, vectors = resolve_jobs(model.n_jobs), _vector_values(shape)
    making = 24 * vectors + 8 * shape.labels_per_row * shape.n_rows
    centres = jobs * 12.0 * nodes[0] * n_columns
    clustering = 8 * vectors * (1 + min(1.0, SAMPLE / max(shape.n_used, 1))) + centres
    # level by level: the nodes of every row and their children, sixteen dual variables a thread, and dense weights
    per_row = 36.0 * model.beam_width + 24 * _reach(shape, model) + 32 * shape.labels_per_row + 80 * jobs
    widest = max(_widths(shape, nodes, model)[:-1])
    training = per_row * shape.n_rows + 8 * jobs * widest * n_columns + trained
    return 4 * shape.nonzeros + max(making, clustering, training)


def _memory_in_files(
    shape: Shape, model: LabelTreeClassifier, nodes: list[int], n_columns: float, spread: float, limit: int
) -> float:
    """Return the most memory in use where large arrays are in files: what every row, label and feature takes in it."""
    jobs = resolve_jobs(model.n_jobs)
    rows, labels = (PER_ROW + jobs * PER_ROW_SOLVED) * shape.n_rows, PER_LABEL * shape.label_counts.size
    widest = max(_widths(shape, nodes, model)[:-1])
    centres = jobs * 12.0 * min(nodes[0], 128) * n_columns
    weights = 8.0 * widest * n_columns + 64.0 * jobs * n_columns
    return rows + labels + spread + max(centres, weights) + ARRAYS * limit / SHARE_IN_MEMORY


def _work(shape: Shape, model: LabelTreeClassifier) -> float:
    """Return how long training takes, in steps of sixteen children."""
    nodes = tree_shape(shape.n_used, model, _rows_per_label(shape))
    widths = _widths(shape, nodes, model)
    visited = [1.0, *(min(n, _reach(shape, model)) for n in nodes)]
    training = shape.nonzeros * sum(m * (w / LANES + 0.7) for m, w in zip(visited, widths, strict=True))
    clustering = 1.2 * _vector_values(shape) * sum(w / LANES + 0.5 for w in widths[:-1])
    plain = model.overlap == 1 and model.rounds is None
    rounds = 1 if model.rounds is None else model.rounds
    again = 0.0 if plain else rounds * shape.nonzeros * (nodes[0] / LANES + 0.7)
    return max(model.n_trees * (training + clustering + again), 1.0)


def _predict_work(shape: Shape, model: LabelTreeClassifier) -> float:
    nodes = tree_shape(shape.n_used, model, _rows_per_label(shape))
    visited = [1.0, *(min(n, float(model.beam_width)) for n in nodes)]
    # the larger the chunks, the more of a row's features each has
    met = shape.nonzeros_per_row * float(np.log2(2 + shape.nonzeros / 1000.0))
    return max(model.n_trees * sum(visited) * met, 1.0)


def _widths(shape: Shape, nodes: list[int], model: LabelTreeClassifier) -> list[float]:
    """Return how many children a node of each level has, from the root to the leaves."""
    return [
        nodes[0],
        *(below / above for above, below in pairwise(nodes)),
        slots_per_label(model) * shape.n_used / nodes[-1],
    ]


def slots_per_label(model: LabelTreeClassifier) -> float:
    """Return the expected number of leaf slots per label."""
    if isinstance(model.overlap, str):  # "auto"
        return 1.2
    return 1.0 if model.overlap == 1 else 0.9 * model.overlap


def _reach(shape: Shape, model: LabelTreeClassifier) -> float:
    """Return how many nodes of a level a row is trained in: those of its labels, those it is sent to, or both."""
    own = 1 + 0.5 * max(shape.labels_per_row - 1, 0)
    return own if model.negatives == "tfn" else model.beam_width + (0.5 * own if model.negatives == "tfn+man" else 0)


def _rows_per_label(shape: Shape) -> float:
    """Return how many rows a label has on average."""
    return shape.labels_per_row * shape.n_rows / max(shape.n_used, 1)


def _vector_values(shape: Shape) -> float:
    """Return how many values the label vectors have: the different features of each label's rows."""
    counts, times = np.unique(shape.label_counts[shape.label_counts > 0], return_counts=True)
    return float((np.minimum(shape.distinct(counts), ENTRIES_OF_A_VECTOR) * times).sum()) if counts.size else 0.0
