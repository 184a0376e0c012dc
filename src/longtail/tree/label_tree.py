"""`LabelTree`: the partition of the labels into levels of clusters, as flat arrays."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import scipy.sparse as sp

from longtail.errors import DataError, ModelError
from longtail.storage import Part, is_indptr
from longtail.tree.hierarchy import hierarchy_leaves
from longtail.tree.shown import label_tree_html
from longtail.validate import as_sparse, check_integer, make_csr


@dataclass(frozen=True, eq=False, repr=False)
class LabelTree:
    """Levels of nodes below a root; the nodes of the last level, the leaves, hold the labels.

    The children of one node are consecutive, and all leaves are at the last level. A label may stand in several
    leaves, and a leaf may be empty. A label's position in a leaf is a *leaf slot*; slots are numbered leaf by leaf.

    Parameters
    ----------
    parents : tuple of array-like of int
        One array per level: `parents[t][i]` is the node at level t - 1 above node i of level t; the root is number 0.
    leaf_indptr : array-like of int of shape (n_leaves + 1,)
        Leaf i holds the slots from `leaf_indptr[i]` up to `leaf_indptr[i + 1]`.
    leaf_labels : array-like of int of shape (n_slots,)
        The label of every leaf slot, ascending within a leaf.
    n_labels : int
        Number of labels; each has at least one slot.

    Attributes
    ----------
    n_levels, n_leaves, n_slots : int
        Numbers of levels, of leaves and of leaf slots.

    See Also
    --------
    build_tree : Grows a tree from label vectors.
    LabelTreeClassifier : Trains a classifier for every node and leaf slot.

    Examples
    --------
    >>> tree = LabelTree((np.array([0, 0]), np.array([0, 0, 1])), np.array([0, 2, 3, 5]), np.array([0, 4, 2, 1, 3]), 5)
    >>> tree.path(2), tree.sizes(0).tolist()
    ([1, 2], [3, 2])
    >>> tree
    LabelTree(n_labels=5, nodes=[2, 3], n_slots=5)
    """

    parents: tuple[np.ndarray, ...]  # one int32 array (n_nodes of the level,) per level
    leaf_indptr: np.ndarray  # int64 (n_leaves + 1,)
    leaf_labels: np.ndarray  # int32 (n_slots,)
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
    def trusted(
        cls, parents: tuple[np.ndarray, ...], leaf_indptr: np.ndarray, leaf_labels: np.ndarray, n_labels: int
    ) -> Self:
        """Return the tree of arrays that have been checked before, without looking at them again."""
        tree = cls.__new__(cls)
        values = {"parents": parents, "leaf_indptr": leaf_indptr, "leaf_labels": leaf_labels, "n_labels": n_labels}
        for name, value in values.items():
            object.__setattr__(tree, name, value)
        return tree

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
        return cls.from_paths(*hierarchy_leaves(parents, labels))

    @classmethod
    def from_paths(cls, paths: np.ndarray, leaf_of: np.ndarray) -> Self:
        """Return the tree of one path per leaf, (n_leaves, n_levels), and the leaf of every label.

        A path is a row of child marks; rows must be distinct and sorted. Two leaves share a node at level t if their
        paths agree up to column t; the marks themselves mean nothing beyond that. Leaf i is node i of the last level.

        >>> tree = LabelTree.from_paths(np.array([[0, 1], [0, 7], [3, 0]]), np.array([0, 1, 2, 2]))
        >>> [level.tolist() for level in tree.parents]
        [[0, 0], [0, 0, 1]]
        """
        starts = np.ones(paths.shape, dtype=bool)  # the leaf is the first below its node at this level
        np.logical_or.accumulate(paths[1:] != paths[:-1], axis=1, out=starts[1:])
        parents = [np.zeros(np.count_nonzero(starts[:, 0]), dtype=np.int32)]
        for level in range(1, paths.shape[1]):
            above = np.cumsum(starts[:, level - 1], dtype=np.int32) - 1
            parents.append(above[starts[:, level]].astype(np.int32))
        return cls.from_leaves(tuple(parents), leaf_of)

    @classmethod
    def from_leaves(cls, parents: tuple[np.ndarray, ...], leaf_of: np.ndarray) -> Self:
        """Return the tree with these levels of nodes and one leaf per label."""
        counts = np.bincount(leaf_of, minlength=parents[-1].size)
        labels = np.argsort(leaf_of, kind="stable").astype(np.int32)
        return cls(parents, pointers(counts), labels, leaf_of.size)

    @property
    def n_levels(self) -> int:
        """Levels of nodes; the labels below the last are not counted."""
        return len(self.parents)

    @property
    def n_leaves(self) -> int:
        """Nodes of the last level."""
        return int(self.parents[-1].size)

    @property
    def n_slots(self) -> int:
        """Leaf slots: labels counted once for each leaf they stand in."""
        return int(self.leaf_labels.size)

    def n_nodes(self, level: int) -> int:
        """Return the number of nodes of a level."""
        return int(self.parents[self._level(level)].size)

    def sizes(self, level: int) -> np.ndarray:
        """Return the number of different labels under each node of a level, int64."""
        return np.bincount(self.membership(level).indices, minlength=self.n_nodes(level))

    def children(self, level: int) -> np.ndarray:
        """Return the int64 pointers of the children: node i has those from out[i] up to out[i + 1] at the next level.

        At the last level the children are leaf slots, that is, positions in `leaf_labels`.
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

    def slots(self) -> sp.csr_array:
        """Return which leaves each label stands in: 0/1 CSR float32 (n_labels, n_leaves)."""
        order = np.argsort(self.leaf_labels, kind="stable")
        leaves = np.repeat(np.arange(self.n_leaves, dtype=np.int32), np.diff(self.leaf_indptr))[order]
        counts = np.bincount(self.leaf_labels, minlength=self.n_labels)
        return make_csr(pointers(counts), leaves, np.ones(leaves.size, np.float32), self.n_leaves)

    def membership(self, level: int) -> sp.csr_array:
        """Return which nodes of a level each label stands under: 0/1 CSR float32 (n_labels, n_nodes)."""
        level = self._level(level)
        leaves = self.slots()
        if level == self.n_levels - 1:
            return leaves
        nodes = self.ancestors(level)[leaves.indices]  # ascending within a label, since leaves are
        rows = np.repeat(np.arange(self.n_labels), np.diff(leaves.indptr))
        keep = np.ones(nodes.size, dtype=bool)
        keep[1:] = (nodes[1:] != nodes[:-1]) | (rows[1:] != rows[:-1])
        counts = np.bincount(rows[keep], minlength=self.n_labels)
        return make_csr(pointers(counts), nodes[keep], np.ones(keep.sum(), np.float32), self.n_nodes(level))

    def with_slots(self, slots: Any) -> LabelTree:
        """Return the same levels of nodes with other labels in the leaves.

        `slots` is (n_labels, n_leaves); a label gets a slot in every leaf where its row is not zero.

        >>> tree = LabelTree.from_clusters([0, 0, 1]).with_slots([[1, 0], [1, 1], [0, 1]])
        >>> tree.n_slots, tree.leaf_labels.tolist()
        (4, [0, 1, 1, 2])
        """
        P = as_sparse(slots, "slots")
        if P.shape != (self.n_labels, self.n_leaves):
            raise DataError(
                f"slots must have the shape (n_labels, n_leaves) = {(self.n_labels, self.n_leaves)}; got {P.shape}."
            )
        labels = np.repeat(np.arange(self.n_labels, dtype=np.int32), np.diff(P.indptr))
        order = np.argsort(P.indices, kind="stable")
        counts = np.bincount(P.indices, minlength=self.n_leaves)
        return LabelTree(self.parents, pointers(counts), labels[order], self.n_labels)

    def describe(self, names: Sequence[str] | None = None, n_examples: int = 3) -> dict[str, Any]:
        """Return JSON-able facts: sizes of every level and of the leaves, and the slots per label.

        With `names`, one per label, the labels of some leaves are added by name: the largest leaf, the smallest, and
        leaves between them in size.
        """
        copies = np.bincount(self.leaf_labels, minlength=self.n_labels)
        facts: dict[str, Any] = {
            "n_labels": self.n_labels,
            "n_levels": self.n_levels,
            "n_leaves": self.n_leaves,
            "n_slots": self.n_slots,
            "levels": [
                {
                    "nodes": self.n_nodes(level),
                    "children": extent(np.diff(self.children(level))),
                    "labels": extent(self.sizes(level)),
                }
                for level in range(self.n_levels)
            ],
            "copies": {**extent(copies), "labels_in_several_leaves": int((copies > 1).sum())},
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
        return f"LabelTree(n_labels={self.n_labels}, nodes={nodes}, n_slots={self.n_slots})"

    def _repr_html_(self) -> str:
        """Return what a notebook shows: its clusters, which a reader can open."""
        return label_tree_html(self)

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


def integers(name: str, values: Any, dtype: type[np.integer]) -> np.ndarray:
    """Return a one-dimensional array of integers of the given type."""
    array = np.asarray(values)
    if array.ndim != 1:
        raise DataError(f"{name} must have 1 dimension; got {array.ndim}.")
    if array.size == 0:
        return np.empty(0, dtype=dtype)
    if array.dtype.kind not in "iu":
        raise DataError(f"{name} must hold integers; got dtype {array.dtype}.")
    limits = np.iinfo(dtype)
    if array.min() < limits.min or array.max() > limits.max:
        raise DataError(f"{name} must hold numbers up to {limits.max}; got {array.min()} to {array.max()}.")
    return np.ascontiguousarray(array, dtype=dtype)


def check_levels(parents: tuple[np.ndarray, ...]) -> None:
    """Refuse levels whose nodes are not sorted by their parents, or which leave a node above without children."""
    above = 1
    for t, level in enumerate(parents):
        if level.size == 0:
            raise DataError(f"parents[{t}] must have at least one node; got none.")
        fall = np.flatnonzero(level[1:] < level[:-1])
        if fall.size:
            i = int(fall[0])
            raise DataError(f"parents[{t}] must ascend; node {i + 1} has parent {level[i + 1]} after {level[i]}.")
        if level[0] < 0 or level[-1] >= above:
            value = level[0] if level[0] < 0 else level[-1]
            raise DataError(f"parents[{t}] must be nodes from 0 to {above - 1} of the level above; got {value}.")
        childless = np.flatnonzero(np.bincount(level, minlength=above) == 0)
        if childless.size:
            raise DataError(f"node {childless[0]} of level {t - 1} has no children; only leaves may be empty.")
        above = level.size


def check_leaves(indptr: np.ndarray, labels: np.ndarray, n_leaves: int, n_labels: int) -> None:
    """Refuse leaves that do not fit the levels, repeat or miss a label, or are not sorted."""
    if indptr.size != n_leaves + 1:
        raise DataError(f"leaf_indptr must have one more entry than leaves, {n_leaves + 1}; got {indptr.size}.")
    if not is_indptr(indptr, labels.size):
        raise DataError(f"leaf_indptr must ascend from 0 to the number of leaf_labels, {labels.size}.")
    bad = np.flatnonzero((labels < 0) | (labels >= n_labels))
    if bad.size:
        raise DataError(f"leaf_labels must be labels from 0 to {n_labels - 1}; got {labels[bad[0]]}.")
    missing = np.flatnonzero(np.bincount(labels, minlength=n_labels) == 0)
    if missing.size:
        raise DataError(f"every label must stand in a leaf; label {missing[0]} stands in none.")
    step = labels[1:] > labels[:-1]
    first = indptr[1:-1]
    step[first[(first > 0) & (first < labels.size)] - 1] = True  # a new leaf may begin anywhere
    if not step.all():
        at = int(np.flatnonzero(~step)[0])
        leaf = int(np.searchsorted(indptr, at, side="right")) - 1
        raise DataError(f"the labels of leaf {leaf} must ascend; got {labels[at]} before {labels[at + 1]}.")


def extent(counts: np.ndarray) -> dict[str, float]:
    """Return the smallest, mean and largest of some counts."""
    return {"smallest": int(counts.min()), "mean": float(counts.mean()), "largest": int(counts.max())}


def pointers(counts: np.ndarray) -> np.ndarray:
    """Return int64 pointers from counts: where each run starts, and the end."""
    out = np.zeros(counts.size + 1, dtype=np.int64)
    np.cumsum(counts, out=out[1:])
    return out
