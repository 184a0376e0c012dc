"""Which place of a label a row teaches, where labels stand in several leaves."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp

from longtail.models.tree_matrices import binary, nodes_of_places, places_matrix
from longtail.partition import LabelTree
from longtail.validate import make_csr


def assign_rows(tree: LabelTree, Y: sp.csr_array, nodes: np.ndarray, scores: np.ndarray) -> sp.csr_array:
    """Return for every label of every row the one place where it counts, 0/1 CSR (n_rows, n_places).

    It is the place whose leaf scores best for the row, of the leaves (`nodes`, `scores`) that the row is sent to; a
    label that stands in none of these counts where most of its other rows do.
    """
    every = binary(Y @ places_matrix(tree))
    rows = np.repeat(np.arange(Y.shape[0], dtype=np.int64), np.diff(every.indptr))
    places = every.indices.astype(np.int64)
    leaves = np.repeat(np.arange(tree.n_leaves, dtype=np.int64), np.diff(tree.leaf_indptr))[places]
    at, column = np.nonzero(nodes >= 0)
    keys = at * np.int64(tree.n_leaves) + nodes[at, column]
    order = np.argsort(keys, kind="stable")
    keys, found = np.append(keys[order], -1), np.append(scores[at, column][order], np.float32(-np.inf))
    wanted = rows * tree.n_leaves + leaves
    where = np.searchsorted(keys[:-1], wanted)
    score = np.where(keys[where] == wanted, found[where], np.float32(-np.inf))
    labels = tree.leaf_labels[places].astype(np.int64)
    pair = rows * tree.n_labels + labels
    best = _first_of_each(pair, np.lexsort((places, -score, pair)))
    usual = np.bincount(places[best][np.isfinite(score[best])], minlength=tree.n_places)
    best = _first_of_each(pair, np.lexsort((places, -usual[places], -score, pair)))
    chosen = np.sort(best)
    indptr = np.concatenate([[0], np.cumsum(np.bincount(rows[chosen], minlength=Y.shape[0]))])
    return make_csr(indptr, every.indices[chosen], np.ones(chosen.size, np.float32), tree.n_places)


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
    keep = np.isin(rows * tree.n_leaves + leaves, there * tree.n_leaves + open_leaves.indices)
    indptr = np.concatenate([[0], np.cumsum(np.bincount(rows[keep], minlength=truth.shape[0]))])
    return make_csr(indptr, truth.indices[keep], truth.data[keep], truth.shape[1])
