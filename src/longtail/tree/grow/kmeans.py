"""Unbalanced clustering: divide every node by k-means into clusters of any size."""

from __future__ import annotations

import math

import numpy as np

from longtail.kernels import LANES, Progress, blocks, run_tasks
from longtail.tree.grow.balanced import balanced_leaves
from longtail.tree.grow.compact_vectors import Vectors
from longtail.tree.grow.kmeans_kernels import (
    cluster_rows,
    cluster_rows_stepwise,
    move_rows,
    nearest_centres,
    set_centres,
)
from longtail.tree.grow.seeding import BLOCK, WORTH_SHARING, NodeSeed, in_blocks, run_nodes, some_of

MAX_TO_MEAN = 4  # the largest cluster may have this many times the labels of the mean one

Cluster = tuple[tuple[int, ...], np.ndarray]  # the path from the root, and the labels


def kmeans_leaves(
    vectors: Vectors,
    members: np.ndarray,
    *,
    branching: int,
    max_leaf: int,
    max_iter: int,
    sample: int | None,
    seed: NodeSeed,
    n_jobs: int,
    progress: Progress | None = None,
) -> list[Cluster]:
    """Return leaves of at most `max_leaf` labels, on average a quarter of that, all equally far from the root.

    k-means finds clusters of very different sizes; aiming at a quarter leaves room for the large ones, and few have to
    be halved. The number of levels is the smallest that `branching` allows, and every node is divided into as many
    clusters as its own size calls for, so that small nodes do not fall apart into leaves of one label. A cluster far
    larger than its siblings is halved too: divided at the next level, it alone would need almost as many centres as
    there are leaves, and the time for that grows with the square of the labels.
    """
    target = max(1.0, max_leaf / MAX_TO_MEAN)
    depth = max(1, math.ceil(math.log(max(members.size / target, 1)) / math.log(branching) - 1e-9))
    nodes: list[Cluster] = [((), members)]
    for level in range(depth):
        left = depth - level

        def divide(i: int, jobs: int, nodes: list[Cluster] = nodes, left: int = left) -> list[Cluster]:
            path, labels = nodes[i]
            here = NodeSeed(seed.number, (*seed.path, *path))
            k = round((labels.size / target) ** (1 / left))
            parts = divide_node(vectors, labels, k, max_iter, sample, here, jobs) if k > 1 else [labels]
            most = max_leaf if left == 1 else max(max_leaf, MAX_TO_MEAN * labels.size // max(k, 1))
            parts = [half for part in parts for half in halved(vectors, part, most, max_iter, sample, here, jobs)]
            return [((*path, c), part) for c, part in enumerate(parts)]

        divided = run_nodes(divide, [labels.size for _, labels in nodes], n_jobs)
        nodes = [child for children in divided for child in children]
        if progress is not None:
            progress(level + 1, depth)
    return nodes


def halved(
    vectors: Vectors, labels: np.ndarray, most: int, max_iter: int, sample: int | None, seed: NodeSeed, n_jobs: int
) -> list[np.ndarray]:
    """Return a cluster whole, or halved until its parts have at most `most` labels."""
    if labels.size <= most:
        return [labels]
    depth = math.ceil(math.log2(labels.size / most))
    here = seed.below(int(labels[0]))
    parts = balanced_leaves(vectors, labels, depth, max_iter=max_iter, sample=sample, seed=here, n_jobs=n_jobs)
    return [part for part in parts if part.size]


def divide_node(
    vectors: Vectors,
    members: np.ndarray,
    branching: int,
    max_iter: int,
    sample: int | None,
    seed: NodeSeed,
    n_jobs: int,
) -> list[np.ndarray]:
    """Return at least two clusters, none of them empty; labels that cannot be told apart are divided by number."""
    k = min(branching, members.size)
    chosen = some_of(members, None if sample is None else max(sample, k), seed.below(0))
    rows = vectors.take(chosen)
    seeds = seed.generator().choice(chosen.size, size=k, replace=False).astype(np.int32)
    W = np.empty((-(-k // LANES), rows.features.size + 1, LANES), dtype=np.float32)
    cluster = np.empty(chosen.size, dtype=np.int32)
    if n_jobs > 1 and rows.values.size >= WORTH_SHARING:
        steps = in_blocks(nearest_centres, n_jobs), move_rows, set_centres
        cluster_rows_stepwise(*rows.rows, seeds, max_iter, W, cluster, steps)
    else:
        cluster_rows(*rows.rows, seeds, max_iter, W, cluster)
    if chosen.size < members.size:

        def assign(at: slice) -> np.ndarray:
            block = vectors.take(members[at], like=rows)
            out = (np.arange(at.start, at.stop) % k).astype(np.int32)
            nearest_centres(*block.rows, W, k, 0, block.n_rows, out)
            return out

        cluster = np.concatenate(run_tasks(assign, blocks(members.size, BLOCK), n_jobs))
    clusters = [members[cluster == c] for c in np.unique(cluster)]
    return clusters if len(clusters) > 1 else np.array_split(members, k)
