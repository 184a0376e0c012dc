"""A partition of the labels: levels of clusters, as flat arrays."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import scipy.sparse as sp

from longtail.errors import DataError, ModelError
from longtail.storage import Part
from longtail.tree.hierarchy import hierarchy_leaves
from longtail.tree.invariants import check_leaves, check_levels, integers, pointers, spread
from longtail.tree.paths import levels_from_paths
from longtail.validate import as_sparse, check_integer, make_csr


@dataclass(frozen=True, eq=False, repr=False)
class LabelTree:
    """Levels of nodes below a root; the nodes of the last level, the leaves, hold the labels.

    The children of one node are consecutive, and all leaves are at the last level. A label may stand under several
    leaves, and a leaf may be empty. `parents[t][i]` is the node at level t - 1 above node i of level t (the root's
    number is 0), and leaf i holds `leaf_labels[leaf_indptr[i]:leaf_indptr[i + 1]]`, ascending.

    >>> tree = LabelTree((np.array([0, 0]), np.array([0, 0, 1])), np.array([0, 2, 3, 5]), np.array([0, 4, 2, 1, 3]), 5)
    >>> tree.path(2), tree.sizes(0).tolist()
    ([1, 2], [3, 2])
    >>> tree
    LabelTree(n_labels=5, nodes=[2, 3], n_places=5)
    """

    parents: tuple[np.ndarray, ...]  # one int32 array (n_nodes of the level,) per level
    leaf_indptr: np.ndarray  # int64 (n_leaves + 1,)
    leaf_labels: np.ndarray  # int32 (n_places,)
    n_labels: int

    def __post_init__(self) -> None:
        parents = tuple(integers(f"parents[{t}]", level, np.int32) for t, level in enumerate(self.parents))
        indptr = integers("leaf_indptr", self.leaf_indptr, np.int64)
        labels = integers("leaf_labels", self.leaf_labels, np.int32)
        n_labels = int(self.n_labels)
        if n_labels < 1:
            raise DataError(f"a label tree needs at least one label; got {n_labels}.")
        if not parents:
            raise DataError("a label tree needs at least one level; got none.")
        check_levels(parents)
        check_leaves(indptr, labels, parents[-1].size, n_labels)
        for name, value in (
            ("parents", parents),
            ("leaf_indptr", indptr),
            ("leaf_labels", labels),
            ("n_labels", n_labels),
        ):
            object.__setattr__(self, name, value)

    @classmethod
    def flat(cls, n_labels: int) -> Self:
        """Return the tree of one leaf that holds all labels.

        >>> LabelTree.flat(3).leaf_labels.tolist()
        [0, 1, 2]
        """
        n_labels = check_integer("n_labels", n_labels, low=1)
        return cls((np.zeros(1, np.int32),), np.array([0, n_labels]), np.arange(n_labels, dtype=np.int32), n_labels)

    @classmethod
    def from_clusters(cls, assignment: Any, n_clusters: int | None = None) -> Self:
        """Return the tree of one level from one cluster number per label; clusters may be empty.

        >>> LabelTree.from_clusters([1, 0, 1]).leaf_labels.tolist()
        [1, 0, 2]
        """
        leaf_of = integers("assignment", assignment, np.int64)
        if leaf_of.size == 0:
            raise DataError("assignment must have one cluster number per label; got none.")
        if n_clusters is None:
            n_clusters = int(leaf_of.max()) + 1
        n_clusters = check_integer("n_clusters", n_clusters, low=1)
        bad = np.flatnonzero((leaf_of < 0) | (leaf_of >= n_clusters))
        if bad.size:
            value = leaf_of[bad[0]]
            raise DataError(f"assignment[{bad[0]}] must be a cluster from 0 to {n_clusters - 1}; got {value}.")
        return cls.from_leaves((np.zeros(n_clusters, np.int32),), leaf_of)

    @classmethod
    def from_parents(cls, parents: Any, labels: Any = None) -> Self:
        """Return the tree of a given hierarchy: the parent of each node, -1 for a root.

        `labels[l]` is the node of label l; by default every node is a label of its own. Depths may differ. Labels
        without children stand in the leaf of their parent; a label that has children stands in the leaf of its own
        node, together with its childless children. Nodes without labels below them are dropped.

        >>> tree = LabelTree.from_parents([-1, 0, 0, -1, 3, 3])
        >>> tree.leaf_labels.tolist(), tree.leaf_indptr.tolist()
        ([0, 1, 2, 3, 4, 5], [0, 3, 6])
        """
        paths, leaf_of = hierarchy_leaves(parents, labels)
        return cls.from_leaves(levels_from_paths(paths), leaf_of)

    @classmethod
    def from_leaves(cls, parents: tuple[np.ndarray, ...], leaf_of: np.ndarray) -> Self:
        """Return the tree with these levels of nodes and one leaf per label."""
        counts = np.bincount(leaf_of, minlength=parents[-1].size)
        labels = np.argsort(leaf_of, kind="stable").astype(np.int32)
        return cls(parents, pointers(counts), labels, leaf_of.size)

    @property
    def n_levels(self) -> int:
        """The number of levels of nodes; the labels below the last are not counted."""
        return len(self.parents)

    @property
    def n_leaves(self) -> int:
        """The number of nodes of the last level."""
        return int(self.parents[-1].size)

    @property
    def n_places(self) -> int:
        """The number of labels counted once for each leaf they stand in."""
        return int(self.leaf_labels.size)

    def n_nodes(self, level: int) -> int:
        """Return the number of nodes of a level."""
        return int(self.parents[self._level(level)].size)

    def sizes(self, level: int) -> np.ndarray:
        """Return the number of different labels under each node of a level, int64."""
        return np.bincount(self.membership(level).indices, minlength=self.n_nodes(level))

    def children(self, level: int) -> np.ndarray:
        """Return the int64 pointers of the children: node i has those from out[i] up to out[i + 1] at the next level.

        At the last level the children are places, that is, positions in `leaf_labels`.
        """
        level = self._level(level)
        if level == self.n_levels - 1:
            return self.leaf_indptr
        nodes = np.arange(self.n_nodes(level) + 1)
        return np.searchsorted(self.parents[level + 1], nodes).astype(np.int64)

    def ancestors(self, level: int) -> np.ndarray:
        """Return the node of a level above each leaf (the leaf itself at the last level), int32."""
        level = self._level(level)
        out = np.arange(self.n_leaves, dtype=np.int32)
        for parents in self.parents[:level:-1]:
            out = parents[out]
        return out

    def path(self, leaf: int) -> list[int]:
        """Return the node of every level on the way from the root to a leaf, the leaf last."""
        node = check_integer("leaf", leaf, low=0, high=self.n_leaves - 1)
        out = [node]
        for parents in self.parents[:0:-1]:
            node = int(parents[node])
            out.append(node)
        return out[::-1]

    def places(self) -> sp.csr_array:
        """Return which leaves each label stands in: 0/1 CSR float32 (n_labels, n_leaves)."""
        order = np.argsort(self.leaf_labels, kind="stable")
        leaves = np.repeat(np.arange(self.n_leaves, dtype=np.int32), np.diff(self.leaf_indptr))[order]
        counts = np.bincount(self.leaf_labels, minlength=self.n_labels)
        return make_csr(pointers(counts), leaves, np.ones(leaves.size, np.float32), self.n_leaves)

    def membership(self, level: int) -> sp.csr_array:
        """Return which nodes of a level each label stands under: 0/1 CSR float32 (n_labels, n_nodes)."""
        level = self._level(level)
        places = self.places()
        if level == self.n_levels - 1:
            return places
        nodes = self.ancestors(level)[places.indices]  # ascending within a label, since leaves are
        rows = np.repeat(np.arange(self.n_labels), np.diff(places.indptr))
        keep = np.ones(nodes.size, dtype=bool)
        keep[1:] = (nodes[1:] != nodes[:-1]) | (rows[1:] != rows[:-1])
        counts = np.bincount(rows[keep], minlength=self.n_labels)
        return make_csr(pointers(counts), nodes[keep], np.ones(keep.sum(), np.float32), self.n_nodes(level))

    def with_places(self, places: Any) -> LabelTree:
        """Return the same levels of nodes with other labels in the leaves.

        `places` is (n_labels, n_leaves); a label stands in every leaf where its row is not zero.

        >>> tree = LabelTree.from_clusters([0, 0, 1]).with_places([[1, 0], [1, 1], [0, 1]])
        >>> tree.n_places, tree.leaf_labels.tolist()
        (4, [0, 1, 1, 2])
        """
        P = as_sparse(places, "places")
        if P.shape != (self.n_labels, self.n_leaves):
            raise DataError(
                f"places must have the shape (n_labels, n_leaves) = {(self.n_labels, self.n_leaves)}; got {P.shape}."
            )
        labels = np.repeat(np.arange(self.n_labels, dtype=np.int32), np.diff(P.indptr))
        order = np.argsort(P.indices, kind="stable")
        counts = np.bincount(P.indices, minlength=self.n_leaves)
        return LabelTree(self.parents, pointers(counts), labels[order], self.n_labels)

    def describe(self, names: Sequence[str] | None = None, n_examples: int = 3) -> dict[str, Any]:
        """Return JSON-able facts: sizes of every level, of the leaves and the copies per label.

        With `names`, one per label, the labels of some leaves are added by name: the largest leaf, the smallest, and
        leaves between them in size.
        """
        copies = np.bincount(self.leaf_labels, minlength=self.n_labels)
        facts: dict[str, Any] = {
            "n_labels": self.n_labels,
            "n_levels": self.n_levels,
            "n_leaves": self.n_leaves,
            "n_places": self.n_places,
            "levels": [
                {
                    "nodes": self.n_nodes(level),
                    "children": spread(np.diff(self.children(level))),
                    "labels": spread(self.sizes(level)),
                }
                for level in range(self.n_levels)
            ],
            "copies": {**spread(copies), "labels_in_several_leaves": int((copies > 1).sum())},
        }
        if names is not None:
            if len(names) != self.n_labels:
                raise DataError(f"names must have one entry per label, {self.n_labels}; got {len(names)}.")
            order = np.argsort(-np.diff(self.leaf_indptr), kind="stable")
            some = np.unique(np.linspace(0, self.n_leaves - 1, min(n_examples, self.n_leaves)).astype(int))
            facts["examples"] = [
                {"leaf": leaf, "path": self.path(leaf), "labels": [str(names[i]) for i in self._labels_of(leaf)]}
                for leaf in order[some].tolist()
            ]
        return facts

    def to_part(self) -> Part:
        """Return what is saved of the tree: its arrays."""
        levels = {f"parents.{t}": level for t, level in enumerate(self.parents)}
        arrays = {**levels, "leaf_indptr": self.leaf_indptr, "leaf_labels": self.leaf_labels}
        return Part("label-tree.v1", {"n_labels": self.n_labels, "n_levels": self.n_levels}, arrays)

    @classmethod
    def from_part(cls, part: Part) -> Self:
        """Return the saved tree, checked again."""
        try:
            parents = tuple(part.array(f"parents.{t}") for t in range(int(part.params["n_levels"])))
            return cls(parents, part.array("leaf_indptr"), part.array("leaf_labels"), int(part.params["n_labels"]))
        except (DataError, KeyError, TypeError, ValueError) as error:
            raise ModelError(f"the model's part '{part.kind}' is inconsistent: {error}") from error

    def __repr__(self) -> str:
        nodes = [level.size for level in self.parents]
        return f"LabelTree(n_labels={self.n_labels}, nodes={nodes}, n_places={self.n_places})"

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, LabelTree):
            return NotImplemented
        mine, theirs = ((*t.parents, t.leaf_indptr, t.leaf_labels) for t in (self, other))
        return self.n_labels == other.n_labels and len(mine) == len(theirs) and all(map(np.array_equal, mine, theirs))

    __hash__ = None  # type: ignore[assignment]

    def _labels_of(self, leaf: int) -> np.ndarray:
        return self.leaf_labels[self.leaf_indptr[leaf] : self.leaf_indptr[leaf + 1]]

    def _level(self, level: int) -> int:
        return check_integer("level", level, low=0, high=self.n_levels - 1)
