"""A label tree from a hierarchy that people made: its branches become clusters of a size that a search can use.

A branch with at most `max_leaf` labels is a leaf. What stands below a larger one is taken branch by branch; branches
with few labels, and the labels right at the node, are put together, and divided by their vectors where they are many.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from longtail.errors import DataError
from longtail.tree.grow.build import assemble
from longtail.tree.hierarchy import nodes_by_depth
from longtail.tree.label_tree import LabelTree

FEW = 16  # a branch with less than max_leaf / FEW labels is put together with others
Divide = Callable[[np.ndarray], list[np.ndarray]]


class Hierarchy(NamedTuple):
    """Nodes above each other, and where the labels stand among them."""

    parents: np.ndarray  # node above each node, -1 for none  (n_nodes,)
    node_of_label: np.ndarray  # -1 for a label outside the hierarchy  (n_labels,)


def hierarchy_tree(hierarchy: Hierarchy, max_leaf: int, branching: int, divide: Divide) -> LabelTree:
    """Return the label tree of a hierarchy; `divide(labels)` cuts a set that is too large for a leaf into some.

    With at most `branching` leaves all of them stand right below the root.

    >>> parents = np.array([-1, -1, 0, 0, 1, 1])  # two nodes above two each
    >>> tree = hierarchy_tree(Hierarchy(parents, np.array([2, 3, 4, 5])), 2, 8, lambda labels: [labels])
    >>> tree.leaf_labels.reshape(2, 2).tolist()
    [[0, 1], [2, 3]]
    """
    walk = _Walk(hierarchy, max_leaf, divide)
    walk.run()
    paths = np.zeros((len(walk.paths), max(map(len, walk.paths))), dtype=np.int64)
    for row, path in zip(paths, walk.paths, strict=True):
        row[: len(path)] = path
    if len(paths) <= branching:
        paths = np.lexsort(paths.T[::-1]).argsort()[:, None]
    return assemble(walk.leaves, paths)


class _Walk:
    """Goes down a hierarchy and collects leaves."""

    def __init__(self, hierarchy: Hierarchy, max_leaf: int, divide: Divide) -> None:
        self.max_leaf, self.divide = max_leaf, divide
        up = hierarchy.parents
        n = up.size
        levels = nodes_by_depth(up)
        self.own = _lists(hierarchy.node_of_label, n)  # labels of each node; the last entry is for those outside
        self.children = _lists(up, n)  # nodes below each node; the last entry is for the roots
        self.below = np.array([labels.size for labels in self.own], dtype=np.int64)
        for nodes in reversed(levels[1:]):
            np.add.at(self.below, up[nodes], self.below[nodes])
        self.leaves: list[np.ndarray] = []
        self.paths: list[tuple[int, ...]] = []

    def run(self) -> None:
        """Collect the leaves below the root."""
        if not sum(labels.size for labels in self.own):
            raise DataError("the hierarchy has no labels.")
        waiting: list[tuple[int, tuple[int, ...]]] = [(-1, ())]
        while waiting:
            node, path = waiting.pop()
            nodes = self.children[node][self.below[self.children[node]] > 0]
            sizes = self.below[nodes]
            few = sizes < max(1, self.max_leaf // FEW)
            joined = np.concatenate([self.own[node], *(self.labels_below(int(small)) for small in nodes[few])])
            mark = 1
            for part in self.cut(joined):
                self.leaves.append(part)
                self.paths.append((*path, mark))
                mark += 1
            for inner, size in zip(nodes[~few].tolist(), sizes[~few].tolist(), strict=True):
                if size <= self.max_leaf:
                    self.leaves.append(self.labels_below(inner))
                    self.paths.append((*path, mark))
                else:
                    waiting.append((inner, (*path, mark)))
                mark += 1

    def cut(self, labels: np.ndarray) -> list[np.ndarray]:
        """Return labels as leaves that are not too large."""
        if labels.size <= self.max_leaf:
            return [labels] if labels.size else []
        return [labels[part] for part in self.divide(labels) if part.size]

    def labels_below(self, node: int) -> np.ndarray:
        """Return the labels of a node and of all nodes below it."""
        found, waiting = [], [node]
        while waiting:
            at = waiting.pop()
            found.append(self.own[at])
            waiting += self.children[at].tolist()
        return np.concatenate(found)


def _lists(keys: np.ndarray, n: int) -> list[np.ndarray]:
    """Return the positions of each of n keys; the last list has those of -1."""
    order = np.argsort(keys, kind="stable")
    ends = np.searchsorted(keys[order], np.arange(-1, n + 1))
    lists = [order[a:b] for a, b in itertools.pairwise(ends.tolist())]
    return [*lists[1:], lists[0]]
