"""From label vectors to a label tree."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from longtail.errors import DataError
from longtail.kernels import Progress
from longtail.tree.grow.balanced import balanced_leaves
from longtail.tree.grow.compact_vectors import Vectors
from longtail.tree.grow.kmeans import wide_leaves
from longtail.tree.grow.seeding import Place
from longtail.tree.label_tree import LabelTree
from longtail.tree.paths import collapsed_paths, levels_from_paths
from longtail.validate import check_flag, check_integer, resolve_jobs, resolve_seed

SAMPLE = 2**16  # labels that are enough to find the centres of a larger node


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

    Parameters
    ----------
    Z : one vector per label, sparse or dense; only the direction of a vector counts.
    branching : how many children a node may have; powers of two go best with `balanced`.
    max_leaf : how many labels a leaf may have. As many labels or fewer make one leaf.
    balanced : True divides into halves again and again, so that all leaves have the same size (within one label),
        and then joins neighbouring parts to nodes with `branching` children. False divides every node by k-means into
        about `branching` clusters of any size (a large node into more): truer to the data, less even. Leaves then
        have a quarter of `max_leaf` labels on average.
    max_iter : how often, at most, the labels of a node are divided anew.
    sample : a node with more labels finds its centres on this many, drawn at random, before all its labels are
        divided; None for all. Memory and time for the upper levels depend on it.
    random_state : seed; the same seed gives the same tree for any number of threads.
    n_jobs : threads; None for all cores.
    progress : called as `progress(done, total)`.

    Labels whose vector is zero (no training row, no text) tell nothing about their place: they fill up the smallest
    leaves, by number.

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
    place, n_jobs = Place(resolve_seed(random_state)), resolve_jobs(n_jobs)
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
            place=place,
            n_jobs=n_jobs,
            progress=progress,
        )
        paths = collapsed_paths(np.arange(len(leaves)), len(leaves), branching)
        leaves = _with_absent(leaves, vectors, None)[0]
    else:
        found = wide_leaves(
            vectors,
            vectors.present,
            branching=branching,
            max_leaf=max_leaf,
            max_iter=max_iter,
            sample=sample,
            place=place,
            n_jobs=n_jobs,
            progress=progress,
        )
        leaves, rest = _with_absent([labels for _, labels in found], vectors, max_leaf)
        ways = [way for way, _ in found]
        if rest.size:  # more labels without vectors than room: they get leaves of their own, below the root
            parts = np.array_split(rest, -(-rest.size // max_leaf))
            leaves += parts
            below = collapsed_paths(np.arange(len(parts)), len(parts), branching).tolist()
            ways += [(1 + max(way[0] for way in ways), *way) for way in below]
        paths = np.zeros((len(ways), max(1, *map(len, ways))), dtype=np.int64)
        for path, way in zip(paths, ways, strict=True):
            path[: len(way)] = way
    return _assemble(leaves, paths)


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


def _assemble(leaves: list[np.ndarray], paths: np.ndarray) -> LabelTree:
    """Return the tree of some leaves; empty ones are dropped."""
    kept = np.flatnonzero([leaf.size for leaf in leaves])
    kept = kept[np.lexsort(paths[kept].T[::-1])]
    leaf_of = np.empty(sum(leaf.size for leaf in leaves), dtype=np.int64)
    for number, leaf in enumerate(kept):
        leaf_of[leaves[leaf]] = number
    return LabelTree.from_leaves(levels_from_paths(paths[kept]), leaf_of)
