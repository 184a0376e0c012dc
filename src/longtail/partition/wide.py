"""Unbalanced clustering: every node is divided by k-means into clusters of any size, until they are small enough."""

from __future__ import annotations

import math

import numpy as np

from longtail.kernels.lanes import LANES
from longtail.kernels.lloyd import cluster_rows, cluster_rows_plain, move_rows, nearest_centres, set_centres
from longtail.kernels.threads import Progress, blocks, run_tasks
from longtail.partition.halving import balanced_leaves
from longtail.partition.nodes import BLOCK, WORTH_SHARING, Place, in_blocks, run_nodes, some_of
from longtail.partition.paths import collapsed_paths
from longtail.partition.vectors import Vectors

EXTRA_LEVELS = 4  # levels allowed beyond those that clusters of even size would need

Leaf = tuple[tuple[int, ...], np.ndarray]  # the way from the root, and the labels


def wide_leaves(
    vectors: Vectors,
    members: np.ndarray,
    *,
    branching: int,
    max_leaf: int,
    max_iter: int,
    sample: int | None,
    place: Place,
    n_jobs: int,
    progress: Progress | None = None,
) -> list[Leaf]:
    """Return leaves of at most `max_leaf` labels; their ways from the root differ in length.

    Where k-means keeps splitting off a few labels from one large cluster, the tree would grow without end: a cluster
    that is still too large some levels below the usual depth is divided into even parts instead.
    """
    even = math.ceil(math.log(max(members.size / max_leaf, 1)) / math.log(branching) - 1e-9)
    deepest = even + EXTRA_LEVELS
    nodes: list[Leaf] = [((), members)]
    leaves: list[Leaf] = []
    total, settled = members.size, 0
    while nodes:
        ready = [node for node in nodes if node[1].size <= max_leaf]
        nodes = [node for node in nodes if node[1].size > max_leaf]
        leaves += ready
        settled += sum(labels.size for _, labels in ready)
        if progress is not None:
            progress(settled, total)

        def divide(i: int, jobs: int, nodes: list[Leaf] = nodes) -> list[Leaf]:
            way, labels = nodes[i]
            here = Place(place.seed, (*place.way, *way))
            if len(way) >= deepest:
                depth = math.ceil(math.log2(labels.size / max_leaf))
                parts = balanced_leaves(
                    vectors, labels, depth, max_iter=max_iter, sample=sample, place=here, n_jobs=jobs
                )
                codes = np.flatnonzero([part.size for part in parts])
                ways = collapsed_paths(codes, len(parts), branching).tolist()
                return [((*way, *more), parts[code]) for more, code in zip(ways, codes, strict=True)]
            clusters = divide_node(vectors, labels, branching, max_iter, sample, here, jobs)
            return [((*way, c), part) for c, part in enumerate(clusters)]

        divided = run_nodes(divide, [labels.size for _, labels in nodes], n_jobs)
        nodes = [child for children in divided for child in children]
    return leaves


def divide_node(
    vectors: Vectors, members: np.ndarray, branching: int, max_iter: int, sample: int | None, place: Place, n_jobs: int
) -> list[np.ndarray]:
    """Return at least two clusters, none of them empty; labels that cannot be told apart are divided by number."""
    k = min(branching, members.size)
    chosen = some_of(members, None if sample is None else max(sample, k), place.below(0))
    rows = vectors.take(chosen)
    seeds = place.generator().choice(chosen.size, size=k, replace=False).astype(np.int32)
    W = np.empty((-(-k // LANES), rows.features.size + 1, LANES), dtype=np.float32)
    found = np.empty(chosen.size, dtype=np.int32)
    if n_jobs > 1 and rows.values.size >= WORTH_SHARING:
        steps = in_blocks(nearest_centres, n_jobs), move_rows, set_centres
        cluster_rows_plain(*rows.rows, seeds, max_iter, W, found, steps)
    else:
        cluster_rows(*rows.rows, seeds, max_iter, W, found)
    if chosen.size < members.size:

        def assign(at: slice) -> np.ndarray:
            block = vectors.take(members[at], like=rows)
            out = (np.arange(at.start, at.stop) % k).astype(np.int32)
            nearest_centres(*block.rows, W, k, 0, block.n_rows, out)
            return out

        found = np.concatenate(run_tasks(assign, blocks(members.size, BLOCK), n_jobs))
    clusters = [members[found == c] for c in np.unique(found)]
    return clusters if len(clusters) > 1 else np.array_split(members, k)
