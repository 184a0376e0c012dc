"""Sparse row/label/node membership: which rows, labels, leaf slots and nodes belong together."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple, Self

import numpy as np
import scipy.sparse as sp

from longtail.tree.chunk_kernels import rows_of_nodes
from longtail.tree.label_tree import LabelTree
from longtail.validate import make_csr


def children_of(tree: LabelTree, level: int) -> np.ndarray:
    """Return the pointers from the chunks of a level to their children (level 0: from the root to the first nodes)."""
    return np.array([0, tree.n_nodes(0)], dtype=np.int64) if level == 0 else tree.children(level - 1)


def slot_matrix(tree: LabelTree) -> sp.csr_array:
    """Return which slots each label has: 0/1 CSR (n_labels, n_slots)."""
    order = np.argsort(tree.leaf_labels, kind="stable").astype(np.int32)
    indptr = np.concatenate([[0], np.cumsum(np.bincount(tree.leaf_labels, minlength=tree.n_labels))])
    return make_csr(indptr, order, np.ones(order.size, np.float32), tree.n_slots)


def slot_nodes(tree: LabelTree, level: int) -> sp.csr_array:
    """Return the node of a level above each slot: 0/1 CSR (n_slots, n_nodes)."""
    nodes = np.repeat(tree.ancestors(level), np.diff(tree.leaf_indptr))
    return make_csr(np.arange(tree.n_slots + 1), nodes, np.ones(tree.n_slots, np.float32), tree.n_nodes(level))


def matches(nodes: np.ndarray, n_nodes: int) -> sp.csr_array:
    """Return the nodes that the search kept for each row, as 0/1 CSR."""
    keep = nodes >= 0
    indptr = np.concatenate([[0], np.cumsum(keep.sum(axis=1))])
    out = sp.csr_array((np.ones(int(indptr[-1]), np.float32), nodes[keep], indptr), shape=(nodes.shape[0], n_nodes))
    out.sort_indices()
    return out


def binary(M: sp.csr_array) -> sp.csr_array:
    """Return a matrix with 1 for every stored entry, duplicates joined."""
    out = sp.csr_array(M)
    out.sum_duplicates()
    out.data = np.ones_like(out.data, dtype=np.float32)
    return out


def row_shares(M: sp.csr_array) -> sp.csr_array:
    """Return the entries of every row divided by their sum."""
    out = sp.csr_array(M, dtype=np.float32)
    out.sum_duplicates()
    sums = np.asarray(out.sum(axis=1)).ravel()
    out.data /= np.repeat(np.where(sums > 0, sums, 1), np.diff(out.indptr)).astype(np.float32)
    return out


def keep_reached_positives(
    truth: sp.csr_array, assigned: sp.csr_array, sent: sp.csr_array, tree: LabelTree
) -> sp.csr_array:
    """Drop a row's positive slots in leaves that the row never reaches in training.

    It reaches the leaves it is sent to, and those that one of its positives is assigned to."""
    rows = np.repeat(np.arange(truth.shape[0], dtype=np.int64), np.diff(truth.indptr))
    leaves = np.repeat(np.arange(tree.n_leaves), np.diff(tree.leaf_indptr))[truth.indices]
    open_leaves = binary(sent + assigned @ slot_nodes(tree, tree.n_levels - 1))
    there = np.repeat(np.arange(truth.shape[0], dtype=np.int64), np.diff(open_leaves.indptr))
    keys, wanted = there * tree.n_leaves + open_leaves.indices, rows * tree.n_leaves + leaves
    keep = np.append(keys, -1)[np.searchsorted(keys, wanted)] == wanted  # keys ascend
    indptr = np.concatenate([[0], np.cumsum(np.bincount(rows[keep], minlength=truth.shape[0]))])
    return make_csr(indptr, truth.indices[keep], truth.data[keep], truth.shape[1])


NO_NODES = np.empty((0, 0), dtype=np.int32)  # rows are sent nowhere


@dataclass(frozen=True)
class NodeRows:
    """The rows of every node, ascending: those of node j are indices[indptr[j]:indptr[j + 1]]."""

    indptr: np.ndarray  # int64
    indices: np.ndarray  # int32

    @classmethod
    def of(cls, sent: np.ndarray, labelled: sp.csr_array | None, n_nodes: int) -> Self:
        """Return the rows that are sent to a node, (n_rows, beam) with -1 where none, or have a label below it."""
        if labelled is None:
            return cls(*rows_of_nodes(sent, np.zeros(1, np.int64), np.empty(0, np.int32), n_nodes))
        return cls(*rows_of_nodes(sent, labelled.indptr.astype(np.int64, copy=False), labelled.indices, n_nodes))


class ColumnArrays(NamedTuple):
    """The parts of a sparse matrix by columns that training reads; the arrays may be shared."""

    indptr: np.ndarray
    indices: np.ndarray
    data: np.ndarray


def column(M: sp.csc_array | NodeRows | ColumnArrays, j: int) -> np.ndarray:
    """Return the rows stored in column j, or those of node j."""
    return M.indices[M.indptr[j] : M.indptr[j + 1]]


def values_of(M: sp.csc_array | ColumnArrays, j: int) -> np.ndarray:
    """Return the values stored in column j."""
    return M.data[M.indptr[j] : M.indptr[j + 1]]
