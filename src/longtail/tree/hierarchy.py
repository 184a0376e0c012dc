"""Turn a user's hierarchy into leaves of a label tree.

The labels directly under a node, and the node's own label, form one leaf; all leaves are brought to the same depth:

    animals ─┬─ cat                    [animals] ─┬─ leaf: animals, cat, dog
             ├─ dog           gives               └─ [birds] ── leaf: birds, eagle, gull
             └─ birds ─┬─ eagle
                       └─ gull

A label directly under a node is a node without children that has this one label. The leaf of a node that has further
clusters below it becomes their first sibling, and leaves come to the last level by chains of only children.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from longtail.errors import DataError

MOST_NODES = 5 * 10**7  # a bound on leaves × levels, which only a chain-like hierarchy of many thousand nodes exceeds


def hierarchy_leaves(parents: Any, labels: Any = None) -> tuple[np.ndarray, np.ndarray]:
    """Return the sorted paths of the leaves, (n_leaves, n_levels), and the leaf of every label.

    >>> paths, leaf_of = hierarchy_leaves([-1, 0, 0, 0, 3, 3])  # the example above
    >>> paths.tolist(), leaf_of.tolist()
    ([[1, 0], [1, 4]], [0, 0, 0, 1, 1, 1])
    """
    up = _ids("parents", parents, low=-1, high=None)
    n = up.size
    at = np.arange(n) if labels is None else _ids("labels", labels, low=0, high=n)
    by_depth = nodes_by_depth(up)

    own = np.bincount(at, minlength=n)
    below = own.copy()  # labels of the node and of all nodes below it
    for nodes in reversed(by_depth[1:]):
        np.add.at(below, up[nodes], below[nodes])
    is_cluster = own >= 2
    inner = up[(up >= 0) & (below > 0)]
    is_cluster[inner] = True

    home = np.where(is_cluster[at], at, up[at])  # -1: the leaf of the root
    homes, leaf_of = np.unique(home, return_inverse=True)
    depth = np.zeros(n + 1, dtype=np.int64)  # of a node, counted from 1; the last entry is for the root, -1
    for number, nodes in enumerate(by_depth, start=1):
        depth[nodes] = number
    n_levels = max(1, int(depth[homes].max()))
    if n_levels * homes.size > MOST_NODES:
        raise DataError(f"the hierarchy is too deep: {homes.size} leaves at up to {n_levels} levels.")
    paths = np.zeros((homes.size, n_levels), dtype=np.int32)
    node = homes
    for column in range(n_levels - 1, -1, -1):
        paths[:, column] = node + 1
        node = np.where(node >= 0, up[node], -1)
    # shallow homes were lined up with the deepest from below; move them up so that column 0 is the root's child
    source = (np.arange(n_levels) - depth[homes, None]) % n_levels
    paths = np.take_along_axis(paths, source, axis=1)
    order = np.lexsort(paths.T[::-1])
    rank = np.empty(homes.size, dtype=np.int64)
    rank[order] = np.arange(homes.size)
    return paths[order], rank[leaf_of]


def nodes_by_depth(up: np.ndarray) -> list[np.ndarray]:
    """Return the nodes of each depth, roots first; a cycle is refused."""
    order = np.argsort(up, kind="stable")
    starts = np.searchsorted(up[order], np.arange(-1, up.size + 1))
    levels = []
    nodes = order[: starts[1]]
    seen = 0
    while nodes.size:
        levels.append(nodes)
        seen += nodes.size
        low, count = starts[nodes + 1], starts[nodes + 2] - starts[nodes + 1]
        nodes = order[np.repeat(low - np.cumsum(count) + count, count) + np.arange(count.sum())]
    if seen < up.size:
        reached = np.zeros(up.size, dtype=bool)
        reached[np.concatenate(levels) if levels else []] = True
        node = int(np.flatnonzero(~reached)[0])
        for _ in range(up.size):  # after so many steps up one is inside the cycle
            node = int(up[node])
        raise DataError(f"parents must not have a cycle; node {node} is its own ancestor.")
    return levels


def _ids(name: str, values: Any, low: int, high: int | None) -> np.ndarray:
    array = np.asarray(values)
    if array.ndim != 1 or array.size == 0:
        raise DataError(f"{name} must be a list of node ids with at least one entry; got shape {array.shape}.")
    if array.dtype.kind not in "iu":
        raise DataError(f"{name} must hold integers; got dtype {array.dtype}.")
    high = array.size if high is None else high
    bad = np.flatnonzero((array < low) | (array >= high))
    if bad.size:
        raise DataError(f"{name}[{bad[0]}] must be a node id from {low} to {high - 1}; got {array[bad[0]]}.")
    return array.astype(np.int64)
