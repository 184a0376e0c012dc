"""Build a label tree from label vectors."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from longtail.errors import DataError
from longtail.kernels import Progress
from longtail.tree.grow.balanced import balanced_leaves
from longtail.tree.grow.compact_vectors import Vectors
from longtail.tree.grow.kmeans import MAX_TO_MEAN, Cluster, kmeans_leaves
from longtail.tree.grow.seeding import NodeSeed
from longtail.tree.label_tree import LabelTree
from longtail.validate import check_flag, check_integer, resolve_jobs, resolve_seed

SAMPLE = 2**16  # labels that are enough to find the centres of a larger node
BRANCHING = 128
LEAVES_BELOW_ROOT = 1024  # a tree of no more leaves has them all below the root...
FEW_ROWS = 30  # ... if labels have fewer rows than this on average: a level between then misses labels
PASSES, PASSES_MANY = 20, 4  # of k-means, the second where it finds more than BRANCHING clusters at once
ENTRIES_OF_A_VECTOR = 128  # of a label, to cluster by: more gave no better trees on held-out rows of three data sets


def build_tree(
    Z: Any,
    *,
    branching: int = 16,
    max_leaf: int = 100,
    balanced: bool = True,
    max_iter: int = 20,
    sample: int | None = SAMPLE,
    random_state: Any = None,
    n_jobs: int | None = None,
    progress: Progress | None = None,
) -> LabelTree:
    """Group labels with similar vectors and return the groups, and groups of groups, as a tree.

    Labels whose vector is zero (no training row, no text) fit anywhere: they fill up the smallest leaves, by number.

    Parameters
    ----------
    Z : {array-like, sparse matrix} of shape (n_labels, n_features)
        One vector per label; only its direction counts.
    branching : int, default=16
        Children of a node, at most; powers of two go best with `balanced`.
    max_leaf : int, default=100
        Labels of a leaf, at most. As many labels or fewer make one leaf.
    balanced : bool, default=True
        True divides into halves again and again, so that all leaves have the same size (within one label), and then
        joins neighbouring parts to nodes with `branching` children. False divides every node by k-means into about
        `branching` clusters of any size (a large node into more): truer to the data, less even. Leaves then have a
        quarter of `max_leaf` labels on average.
    max_iter : int, default=20
        Times the labels of a node are divided anew, at most.
    sample : int or None, default=65536
        A node with more labels finds its centres on this many, drawn at random, before all its labels are divided;
        None for all. Memory and time for the upper levels depend on it.
    random_state : int, RandomState instance or None, default=None
        Seed; the same seed gives the same tree for any number of threads.
    n_jobs : int or None, default=None
        Threads; None for all cores.
    progress : callable or None, default=None
        Called as `progress(done, total)`.

    Returns
    -------
    LabelTree
        Every label stands in one leaf.

    Examples
    --------
    >>> tree = build_tree([[1, 0], [0, 1], [2, 0.1], [0.1, 3]], max_leaf=2)
    >>> tree.leaf_labels.reshape(2, 2).tolist() in ([[0, 2], [1, 3]], [[1, 3], [0, 2]])
    True
    """
    branching = check_integer("branching", branching, low=2)
    max_leaf = check_integer("max_leaf", max_leaf, low=1)
    balanced = check_flag("balanced", balanced)
    max_iter = check_integer("max_iter", max_iter, low=1)
    if sample is not None:
        sample = check_integer("sample", sample, low=2)
    seed, n_jobs = NodeSeed(resolve_seed(random_state)), resolve_jobs(n_jobs)
    vectors = Vectors(Z)
    if vectors.n_labels == 0:
        raise DataError("Z must have at least one label; got 0 rows.")
    if vectors.n_labels <= max_leaf:
        return LabelTree.flat(vectors.n_labels)
    if balanced:
        depth = math.ceil(math.log2(vectors.n_labels / max_leaf))
        leaves = balanced_leaves(
            vectors,
            vectors.present,
            depth,
            max_iter=max_iter,
            sample=sample,
            seed=seed,
            n_jobs=n_jobs,
            progress=progress,
        )
        paths = collapsed_paths(np.arange(len(leaves)), len(leaves), branching)
        leaves = _with_absent(leaves, vectors, None)[0]
    else:
        clusters = kmeans_leaves(
            vectors,
            vectors.present,
            branching=branching,
            max_leaf=max_leaf,
            max_iter=max_iter,
            sample=sample,
            seed=seed,
            n_jobs=n_jobs,
            progress=progress,
        )
        leaves, paths = _kmeans_paths(clusters, vectors, max_leaf, branching)
    return assemble(leaves, paths)


def default_branching(n_labels: int, rows_per_label: float, max_leaf: int, balanced: bool) -> tuple[int, int]:
    """Return the branching of a tree of so many labels, and how often k-means divides them anew.

    >>> [default_branching(n, 10, 160, balanced=False) for n in (4000, 20_000, 200_000)]
    [(128, 20), (1024, 4), (128, 20)]
    """
    leaves = n_labels / max_leaf if balanced else n_labels * MAX_TO_MEAN / max_leaf
    flat = BRANCHING < leaves <= LEAVES_BELOW_ROOT and rows_per_label < FEW_ROWS
    return (LEAVES_BELOW_ROOT, PASSES_MANY) if flat else (BRANCHING, PASSES)


def _kmeans_paths(
    clusters: list[Cluster], vectors: Vectors, max_leaf: int, branching: int
) -> tuple[list[np.ndarray], np.ndarray]:
    """Return the leaves of k-means, with the labels that have no vector, and the path of each, filled up with 0."""
    leaves, rest = _with_absent([labels for _, labels in clusters], vectors, max_leaf)
    marks = [path for path, _ in clusters]
    if rest.size:  # more labels without vectors than the leaves take: they get leaves of their own below the root
        parts = np.array_split(rest, -(-rest.size // max_leaf))
        leaves += parts
        below = collapsed_paths(np.arange(len(parts)), len(parts), branching).tolist()
        marks += [(1 + max(path[0] for path in marks), *path) for path in below]
    paths = np.zeros((len(marks), max(1, *map(len, marks))), dtype=np.int64)
    for row, path in zip(paths, marks, strict=True):
        row[: len(path)] = path
    return leaves, paths


def _with_absent(
    leaves: list[np.ndarray], vectors: Vectors, max_leaf: int | None
) -> tuple[list[np.ndarray], np.ndarray]:
    """Fill the smallest leaves with the labels that have no vector; return the leaves and the labels left over."""
    absent = np.flatnonzero(vectors.scale == 0).astype(np.int32)
    more = fill_evenly(np.array([leaf.size for leaf in leaves]), absent.size, max_leaf)
    *parts, rest = np.split(absent, np.cumsum(more))
    return [np.concatenate([leaf, part]) for leaf, part in zip(leaves, parts, strict=True)], rest


def fill_evenly(sizes: np.ndarray, extra: int, cap: int | None = None) -> np.ndarray:
    """Return how much each size grows when `extra` units go one by one to the smallest, none beyond `cap`.

    >>> fill_evenly(np.array([3, 1, 5]), 4).tolist()
    [1, 3, 0]
    """
    if cap is not None:
        extra = min(extra, int(np.maximum(cap - sizes, 0).sum()))
    low, high = int(sizes.min()), int(sizes.max()) + extra + 1  # the level that all sizes can be brought to
    while high - low > 1:
        level = (low + high) // 2
        low, high = (level, high) if np.maximum(level - sizes, 0).sum() <= extra else (low, level)
    out = np.maximum(low - sizes, 0)
    out[np.flatnonzero(sizes <= low)[: extra - int(out.sum())]] += 1
    return out


def assemble(leaves: list[np.ndarray], paths: np.ndarray) -> LabelTree:
    """Return the tree of some leaves; empty ones are dropped."""
    kept = np.flatnonzero([leaf.size for leaf in leaves])
    kept = kept[np.lexsort(paths[kept].T[::-1])]
    leaf_of = np.empty(sum(leaf.size for leaf in leaves), dtype=np.int64)
    for number, leaf in enumerate(kept):
        leaf_of[leaves[leaf]] = number
    return LabelTree.from_paths(paths[kept], leaf_of)


def collapsed_paths(codes: np.ndarray, n_codes: int, branching: int) -> np.ndarray:
    """Return the paths of some of `n_codes` leaves in a row when blocks of `branching` neighbours share a parent.

    Blocks of blocks are formed until at most `branching` are left, which stand below the root. Codes must ascend.

    >>> collapsed_paths(np.array([0, 1, 5]), n_codes=8, branching=4).tolist()
    [[0, 0], [0, 1], [1, 5]]
    """
    columns = [np.asarray(codes, dtype=np.int64)]
    while n_codes > branching:
        columns.append(columns[-1] // branching)
        n_codes = -(-n_codes // branching)
    return np.stack(columns[::-1], axis=1)
