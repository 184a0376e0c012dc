"""Which place of a label a row teaches, where labels stand in several leaves."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp

from longtail.kernels import blocks, run_tasks
from longtail.tree.label_tree import LabelTree
from longtail.tree.membership import binary, nodes_of_places
from longtail.tree.overlap_kernels import best_places
from longtail.validate import make_csr

ROWS_AT_ONCE = 16_384


def assign_rows(
    tree: LabelTree, Y: sp.csr_array, nodes: np.ndarray, scores: np.ndarray, n_jobs: int = 1
) -> sp.csr_array:
    """Return for every label of every row the one place where it counts, 0/1 CSR (n_rows, n_places).

    It is the place whose leaf scores best for the row, of the leaves (`nodes`, `scores`) that the row is sent to; a
    label that stands in none of these counts where most of its other rows do.
    """
    by_label = np.argsort(tree.leaf_labels, kind="stable").astype(np.int32)
    place_indptr = np.concatenate([[0], np.cumsum(np.bincount(tree.leaf_labels, minlength=tree.n_labels))])
    leaf_of = np.repeat(np.arange(tree.n_leaves, dtype=np.int32), np.diff(tree.leaf_indptr))
    known = (Y.indptr.astype(np.int64), Y.indices, place_indptr, by_label, leaf_of, nodes, scores)
    usual = np.zeros(tree.n_places, dtype=np.int64)
    found, chosen = np.empty(Y.nnz, dtype=np.bool_), np.empty(Y.nnz, dtype=np.int32)
    for _ in range(2):  # the second time it is known where the rows usually count

        def some(at: slice) -> None:
            best_places(*known, at.start, at.stop, usual, found, chosen)  # noqa: B023

        run_tasks(some, blocks(Y.shape[0], ROWS_AT_ONCE), n_jobs)
        usual = np.bincount(chosen[found], minlength=tree.n_places)
    out = make_csr(Y.indptr, chosen, np.ones(Y.nnz, np.float32), tree.n_places)
    out.has_sorted_indices = False
    out.sort_indices()
    return out


def without_idle_places(tree: LabelTree, assigned: sp.csr_array, least: int) -> LabelTree:
    """Return the tree without places where fewer than `least` rows count; a label keeps the one with most rows."""
    counts = np.bincount(assigned.indices, minlength=tree.n_places)
    order = np.lexsort((np.arange(tree.n_places), -counts, tree.leaf_labels))
    keep = counts >= least
    keep[_first_of_each(tree.leaf_labels, order)] = True
    leaves = np.repeat(np.arange(tree.n_leaves), np.diff(tree.leaf_indptr))[keep]
    where, shape = (tree.leaf_labels[keep], leaves), (tree.n_labels, tree.n_leaves)
    return tree.with_places(sp.csr_array((np.ones(leaves.size, np.float32), where), shape=shape))


def _first_of_each(keys: np.ndarray, order: np.ndarray) -> np.ndarray:
    """Return the first entry of each key, in an order that is sorted by key."""
    line = keys[order]
    return order[np.concatenate([[True], line[1:] != line[:-1]])] if order.size else order


def where_sent(truth: sp.csr_array, assigned: sp.csr_array, sent: sp.csr_array, tree: LabelTree) -> sp.csr_array:
    """Keep the positives of a row in the leaves it is sent to, and in those where a label of it counts."""
    rows = np.repeat(np.arange(truth.shape[0], dtype=np.int64), np.diff(truth.indptr))
    leaves = np.repeat(np.arange(tree.n_leaves), np.diff(tree.leaf_indptr))[truth.indices]
    open_leaves = binary(sent + assigned @ nodes_of_places(tree, tree.n_levels - 1))
    there = np.repeat(np.arange(truth.shape[0], dtype=np.int64), np.diff(open_leaves.indptr))
    keys, wanted = there * tree.n_leaves + open_leaves.indices, rows * tree.n_leaves + leaves
    keep = np.append(keys, -1)[np.searchsorted(keys, wanted)] == wanted  # keys ascend
    indptr = np.concatenate([[0], np.cumsum(np.bincount(rows[keep], minlength=truth.shape[0]))])
    return make_csr(indptr, truth.indices[keep], truth.data[keep], truth.shape[1])
