"""Changing a trained label tree without training it anew: new rows, new labels, labels that go.

Each classifier of a label or node that new rows have minimises

    ½ ‖w - w_old‖² + C Σ over the new rows that come to its chunk of the loss,

which is the usual problem started from the old weights. All others stay as they are: moving those that only meet
negatives was measured to cost accuracy.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import scipy.sparse as sp

from longtail.kernels import LANES
from longtail.tree.chunk_kernels import pack_chunk
from longtail.tree.chunks import Chunks, Packed, Plan
from longtail.tree.label_tree import LabelTree
from longtail.tree.membership import binary, children_of, column, matches, places_matrix
from longtail.tree.train import Rows, Solver, local_rows, solve_lanes


def unpack_chunk(chunks: Chunks, chunk: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the features of a chunk, its weights as a dense array (n_lines, n_children), and the biases."""
    lines = slice(int(chunks.line_indptr[chunk]), int(chunks.line_indptr[chunk + 1]))
    low, high = int(chunks.child_indptr[chunk]), int(chunks.child_indptr[chunk + 1])
    entries = slice(int(chunks.entry_indptr[lines.start]), int(chunks.entry_indptr[lines.stop]))
    W = np.zeros((lines.stop - lines.start, high - low), dtype=np.float32)
    where = np.repeat(np.arange(W.shape[0]), chunks.counts[lines])
    kids = chunks.children[entries].astype(np.int64)
    W[where, kids] = chunks.weights[entries].astype(np.float32) * chunks.scales[low:high][kids]
    return chunks.features[lines], W, chunks.bias[low:high]


def pack_dense(features: np.ndarray, W: np.ndarray, bias: np.ndarray, threshold: float) -> Packed:
    """Return the chunk of dense weights (n_lines, n_children)."""
    n_lines, width = W.shape
    n_batches = -(-width // LANES)
    padded = np.zeros((n_lines + 1, n_batches * LANES), dtype=np.float32)
    padded[:-1, :width] = W
    cut = padded.reshape(n_lines + 1, n_batches, LANES).transpose(1, 0, 2)
    lines, counts, children, weights, scales, _ = pack_chunk(np.ascontiguousarray(cut), width, threshold)
    return Packed(features[lines], counts, children, weights, scales, bias.astype(np.float32))


def as_packed(chunks: Chunks) -> list[list[Packed]]:
    """Return the chunks level by level, on the same memory."""
    out = []
    for level in range(chunks.n_levels):
        found = []
        for chunk in range(int(chunks.levels[level]), int(chunks.levels[level + 1])):
            lines = slice(int(chunks.line_indptr[chunk]), int(chunks.line_indptr[chunk + 1]))
            entries = slice(int(chunks.entry_indptr[lines.start]), int(chunks.entry_indptr[lines.stop]))
            kids = slice(int(chunks.child_indptr[chunk]), int(chunks.child_indptr[chunk + 1]))
            found.append(
                Packed(
                    chunks.features[lines],
                    chunks.counts[lines],
                    chunks.children[entries],
                    chunks.weights[entries],
                    chunks.scales[kids],
                    chunks.bias[kids],
                )
            )
        out.append(found)
    return out


def learn_rows(
    tree: LabelTree, chunks: Chunks, rows: Rows, Y: sp.csr_array, solver: Solver, plan: Plan, n_jobs: int
) -> Chunks:
    """Return the chunks after the new rows, which have the labels Y."""
    X = rows.matrix
    ones = np.ones(rows.n, dtype=np.float32)
    packed = as_packed(chunks)
    above: sp.csr_array | None = None
    for level in range(tree.n_levels + 1):
        last = level == tree.n_levels
        places = places_matrix(tree) if last else tree.membership(level)
        truth = binary(Y @ places)
        children = children_of(tree, level)
        matched = sp.csr_array(np.ones((rows.n, 1), dtype=np.float32))
        if level > 0:
            nodes, _ = chunks.search(X, ones, plan.first(level), n_jobs)
            n_above = int(chunks.levels[level]) - 1
            matched = binary(matches(np.where(nodes >= 0, nodes - n_above, -1), children.size - 1) + above)
        by_chunk, by_child = sp.csc_array(matched), sp.csc_array(truth)
        for chunk in range(children.size - 1):
            members = column(by_chunk, chunk)
            if members.size:
                old = unpack_chunk(chunks, int(chunks.levels[level]) + chunk)
                low, high = int(children[chunk]), int(children[chunk + 1])
                packed[level][chunk] = _learn_chunk(old, rows, members, by_child, range(low, high), solver, level)
        above = truth
    return Chunks.join(packed, rows.n_features)


def _learn_chunk(
    old: tuple[np.ndarray, np.ndarray, np.ndarray],
    rows: Rows,
    members: np.ndarray,
    truth: sp.csc_array,
    labels: range,
    solver: Solver,
    level: int,
) -> Packed:
    """Move the weights of one chunk towards new rows."""
    features, W, bias = old
    local = local_rows(rows, members)
    every = np.union1d(features, local.features).astype(np.int32)
    moved = np.zeros((every.size, W.shape[1]), dtype=np.float32)
    moved[np.searchsorted(every, features)] = W
    here = np.searchsorted(every, local.features)
    bias = bias.copy()
    seen = np.array([column(truth, label).size > 0 for label in labels], dtype=bool)
    bias[seen & np.isneginf(bias)] = -1.0  # its first rows: start from "no"
    for first in range(0, len(labels), LANES):
        lanes = np.arange(first, min(first + LANES, len(labels)))
        start = np.zeros((local.features.size + 1, LANES), dtype=np.float32)
        start[:-1, : lanes.size] = moved[np.ix_(here, lanes)]
        start[-1, : lanes.size] = np.where(np.isfinite(bias[lanes]), bias[lanes], -1.0)
        solve_lanes(local, members, None, truth, None, labels[first : first + LANES], solver, level, start)
        alive = seen[lanes]
        moved[np.ix_(here, lanes[alive])] = start[:-1, : lanes.size][:, alive]
        bias[lanes[alive]] = start[-1, : lanes.size][alive]
    return pack_dense(every, moved, bias, solver.threshold)


def place_labels(tree: LabelTree, chunks: Chunks, rows: Rows, Y: sp.csr_array, plan: Plan, n_jobs: int) -> np.ndarray:
    """Return the leaf for each new label: the one to which the tree sends most of its rows, the lower one in a tie."""
    X = rows.matrix
    nodes, _ = chunks.search(X, np.ones(rows.n, np.float32), plan.first(tree.n_levels), n_jobs)
    n_above = int(chunks.levels[tree.n_levels]) - 1
    sent = matches(np.where(nodes >= 0, nodes - n_above, -1), tree.n_leaves)
    votes = sp.csr_array(binary(Y).T @ sent)
    out = np.argmin(np.diff(tree.leaf_indptr)) * np.ones(Y.shape[1], dtype=np.int64)  # no rows: the smallest leaf
    for label in range(Y.shape[1]):
        found = slice(votes.indptr[label], votes.indptr[label + 1])
        if found.stop > found.start:
            best = np.lexsort((votes.indices[found], -votes.data[found]))[0]
            out[label] = votes.indices[found][best]
    return out


def add_to_leaves(
    tree: LabelTree,
    chunks: Chunks,
    rows: Rows,
    Y: sp.csr_array,
    leaves: np.ndarray,
    solver: Solver,
    plan: Plan,
    n_jobs: int,
) -> tuple[LabelTree, Chunks]:
    """Return the tree and chunks with new labels, numbered after the old ones, in the given leaves.

    Only the new labels' classifiers are trained: on their own rows, against the rows that the tree sends to the leaf.
    """
    n_old, n_new = tree.n_labels, Y.shape[1]
    X = rows.matrix
    nodes, _ = chunks.search(X, np.ones(rows.n, np.float32), plan.first(tree.n_levels), n_jobs)
    n_above = int(chunks.levels[tree.n_levels]) - 1
    sent = sp.csc_array(matches(np.where(nodes >= 0, nodes - n_above, -1), tree.n_leaves))
    truth = sp.csc_array(binary(Y))
    packed = as_packed(chunks)
    labels_of = [tree.leaf_labels[tree.leaf_indptr[i] : tree.leaf_indptr[i + 1]] for i in range(tree.n_leaves)]
    for leaf in np.unique(leaves).tolist():
        new = np.flatnonzero(leaves == leaf)
        positives = [column(truth, int(label)) for label in new]
        members = np.unique(np.concatenate([column(sent, leaf), *positives])).astype(np.int32)
        features, W, bias = unpack_chunk(chunks, int(chunks.levels[tree.n_levels]) + leaf)
        local = local_rows(rows, members)
        fresh = np.zeros((local.features.size + 1, new.size), dtype=np.float32)
        only_new = sp.csc_array(truth[:, new])
        for first in range(0, new.size, LANES):
            lanes = range(first, min(first + LANES, new.size))
            start = np.zeros((local.features.size + 1, LANES), dtype=np.float32)
            solve_lanes(local, members, None, only_new, None, lanes, solver, tree.n_levels, start)
            fresh[:, first : first + LANES] = start[:, : len(lanes)]
        every = np.union1d(features, local.features).astype(np.int32)
        dense = np.zeros((every.size, W.shape[1] + new.size), dtype=np.float32)
        dense[np.searchsorted(every, features), : W.shape[1]] = W
        dense[np.searchsorted(every, local.features), W.shape[1] :] = np.where(
            np.abs(fresh[:-1]) >= solver.threshold, fresh[:-1], 0
        )
        silent = np.array([p.size == 0 for p in positives])
        bias = np.concatenate([bias, np.where(silent, np.float32(-np.inf), fresh[-1])])
        packed[-1][leaf] = pack_dense(every, dense, bias, 0.0)
        labels_of[leaf] = np.concatenate([labels_of[leaf], n_old + new]).astype(np.int32)
    indptr = np.concatenate([[0], np.cumsum([found.size for found in labels_of])])
    grown = LabelTree(tree.parents, indptr, np.concatenate(labels_of), n_old + n_new)
    return grown, Chunks.join(packed, rows.n_features)


def drop_labels(tree: LabelTree, chunks: Chunks, keep: np.ndarray) -> tuple[LabelTree, Chunks]:
    """Return the tree and chunks of the labels to keep (bool per label), renumbered in their old order."""
    packed = as_packed(chunks)
    number = np.cumsum(keep) - 1
    labels_of = []
    for leaf in range(tree.n_leaves):
        labels = tree.leaf_labels[tree.leaf_indptr[leaf] : tree.leaf_indptr[leaf + 1]]
        stays = keep[labels]
        labels_of.append(number[labels[stays]].astype(np.int32))
        if not stays.all():
            features, W, bias = unpack_chunk(chunks, int(chunks.levels[tree.n_levels]) + leaf)
            packed[-1][leaf] = pack_dense(features, W[:, stays], bias[stays], 0.0)
    indptr = np.concatenate([[0], np.cumsum([found.size for found in labels_of])])
    return LabelTree(tree.parents, indptr, np.concatenate(labels_of), int(keep.sum())), Chunks.join(
        packed, chunks.n_features
    )


def silenced(tree: LabelTree, chunks: Chunks, allowed: np.ndarray) -> Chunks:
    """Return the chunks with a bias of -inf for labels that are not allowed, and for nodes with no other label."""
    bias = [chunks.bias[: tree.n_nodes(0)]]
    at = tree.n_nodes(0)
    for level in range(1, tree.n_levels):
        bias.append(chunks.bias[at : at + tree.n_nodes(level)])
        at += tree.n_nodes(level)
    for level in range(tree.n_levels):
        open_nodes = np.zeros(tree.n_nodes(level), dtype=bool)
        membership = tree.membership(level)
        open_nodes[membership[np.flatnonzero(allowed)].indices] = True
        bias[level] = np.where(open_nodes, bias[level], np.float32(-np.inf))
    bias.append(np.where(allowed[tree.leaf_labels], chunks.bias[at:], np.float32(-np.inf)))
    return replace(chunks, bias=np.concatenate(bias).astype(np.float32))
