"""Change a trained label tree without training it anew: new rows, new labels, labels that go.

New rows move the classifiers of the labels they have, and of the nodes above, held by the old rows as `HeldRows` says.
All others stay as they are: moving those that only meet negatives was measured to cost accuracy.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import scipy.sparse as sp

from longtail.kernels import LANES
from longtail.model import HeldRows, Hold
from longtail.tree.chunks import Chunks, PackedChunk
from longtail.tree.label_tree import LabelTree
from longtail.tree.membership import binary, children_of, column, matches, slot_matrix
from longtail.tree.search import BeamPlan
from longtail.tree.solve import Solver, TrainingRows, local_rows, solve_lanes


def update_classifiers(
    tree: LabelTree,
    chunks: Chunks,
    rows: TrainingRows,
    Y: sp.csr_array,
    solver: Solver,
    plan: BeamPlan,
    n_jobs: int,
    hold: Hold,
    feature_rows: np.ndarray | None,
) -> Chunks:
    """Return the chunks with classifiers trained further on rows, which have the labels Y."""
    packed = chunks.split()
    above: sp.csr_array | None = None
    for level in range(tree.n_levels + 1):
        last = level == tree.n_levels
        truth = binary(Y @ (slot_matrix(tree) if last else tree.membership(level)))
        children = children_of(tree, level)
        matched = sp.csr_array(np.ones((rows.n, 1), dtype=np.float32))
        if level > 0:
            nodes, _ = rows.search(chunks, plan, n_jobs, level - 1)
            matched = binary(matches(nodes, children.size - 1) + above)
        by_chunk, by_child = sp.csc_array(matched), sp.csc_array(truth)
        for chunk in range(children.size - 1):
            members = column(by_chunk, chunk)
            if members.size:
                old = chunks.dense(int(chunks.levels[level]) + chunk)
                low, high = int(children[chunk]), int(children[chunk + 1])
                packed[level][chunk] = _learn_chunk(
                    old, rows, members, by_child, range(low, high), solver, level, hold, feature_rows
                )
        above = truth
    return Chunks.join(packed, rows.n_features)


def _learn_chunk(
    old: tuple[np.ndarray, np.ndarray, np.ndarray],
    rows: TrainingRows,
    members: np.ndarray,
    truth: sp.csc_array,
    labels: range,
    solver: Solver,
    level: int,
    hold: Hold,
    feature_rows: np.ndarray | None,
) -> PackedChunk:
    """Move the weights of one chunk towards new rows."""
    features, W, bias = old
    local = local_rows(rows, members)
    seen_before = None if feature_rows is None else feature_rows[local.features]
    arrays = (local.indptr, local.indices, local.data)
    held = HeldRows.of(*arrays, local.features.size, solver.bias, hold, seen_before)
    local, solver = replace(local, data=held.data, norms=held.norms), replace(solver, bias=held.constant)
    every = np.union1d(features, local.features).astype(np.int32)
    seen = np.flatnonzero([column(truth, label).size > 0 for label in labels])
    moved, bias = np.zeros((every.size, W.shape[1]), dtype=np.float32), bias.copy()
    moved[np.searchsorted(every, features)] = W
    moved[:, seen] *= np.float32(hold.keep)
    bias[seen] = np.where(np.isneginf(bias[seen]), np.float32(-1.0), bias[seen])  # its first rows: start from "no"
    bias[seen] *= np.float32(hold.keep)
    here, own = np.searchsorted(every, local.features), sp.csc_array(truth[:, labels.start + seen])
    for first in range(0, seen.size, LANES):
        lanes = seen[first : first + LANES]
        start = np.zeros((local.features.size + 1, LANES), dtype=np.float32)
        start[:-1, : lanes.size] = moved[np.ix_(here, lanes)] * held.stretch
        start[-1, : lanes.size] = bias[lanes]
        solve_lanes(local, members, None, own, None, range(first, first + lanes.size), solver, level, start)
        moved[np.ix_(here, lanes)] = start[:-1, : lanes.size] / held.stretch
        bias[lanes] = start[-1, : lanes.size]
    return PackedChunk.from_dense(every, moved, bias, solver.threshold)


def leaves_for_labels(
    tree: LabelTree, chunks: Chunks, rows: TrainingRows, Y: sp.csr_array, plan: BeamPlan, n_jobs: int
) -> np.ndarray:
    """Return the leaf for each new label: the one to which the tree sends most of its rows, the lower one in a tie."""
    nodes, _ = rows.search(chunks, plan, n_jobs, tree.n_levels - 1)
    sent = matches(nodes, tree.n_leaves)
    votes = sp.csr_array(binary(Y).T @ sent)
    out = np.argmin(np.diff(tree.leaf_indptr)) * np.ones(Y.shape[1], dtype=np.int64)  # no rows: the smallest leaf
    for label in range(Y.shape[1]):
        own = slice(votes.indptr[label], votes.indptr[label + 1])
        if own.stop > own.start:
            best = np.lexsort((votes.indices[own], -votes.data[own]))[0]
            out[label] = votes.indices[own][best]
    return out


def add_to_leaves(
    tree: LabelTree,
    chunks: Chunks,
    rows: TrainingRows,
    Y: sp.csr_array,
    leaves: np.ndarray,
    solver: Solver,
    plan: BeamPlan,
    n_jobs: int,
) -> tuple[LabelTree, Chunks]:
    """Return the tree and chunks with new labels, numbered after the old ones, in the given leaves.

    Only the new labels' classifiers are trained: on their own rows, against the rows that the tree sends to the leaf.
    """
    n_old, n_new = tree.n_labels, Y.shape[1]
    nodes, _ = rows.search(chunks, plan, n_jobs, tree.n_levels - 1)
    sent = sp.csc_array(matches(nodes, tree.n_leaves))
    truth = sp.csc_array(binary(Y))
    packed = chunks.split()
    labels_of = [tree.leaf_labels[tree.leaf_indptr[i] : tree.leaf_indptr[i + 1]] for i in range(tree.n_leaves)]
    for leaf in np.unique(leaves).tolist():
        new = np.flatnonzero(leaves == leaf)
        positives = [column(truth, int(label)) for label in new]
        members = np.unique(np.concatenate([column(sent, leaf), *positives])).astype(np.int32)
        features, W, bias = chunks.dense(int(chunks.levels[tree.n_levels]) + leaf)
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
        packed[-1][leaf] = PackedChunk.from_dense(every, dense, bias, 0.0)
        labels_of[leaf] = np.concatenate([labels_of[leaf], n_old + new]).astype(np.int32)
    indptr = np.concatenate([[0], np.cumsum([labels.size for labels in labels_of])])
    grown = LabelTree(tree.parents, indptr, np.concatenate(labels_of), n_old + n_new)
    return grown, Chunks.join(packed, rows.n_features)


def with_new_labels(tree: LabelTree, chunks: Chunks, leaves: np.ndarray) -> tuple[LabelTree, Chunks]:
    """Return the tree and chunks with a label more in each of the given leaves, which have learned nothing yet."""
    packed, n_old = chunks.split(), tree.n_labels
    labels_of = [tree.leaf_labels[tree.leaf_indptr[i] : tree.leaf_indptr[i + 1]] for i in range(tree.n_leaves)]
    for leaf in np.unique(leaves).tolist():
        new = np.flatnonzero(leaves == leaf)
        chunk = packed[-1][leaf]
        packed[-1][leaf] = replace(
            chunk,
            scales=np.concatenate([chunk.scales, np.ones(new.size, np.float32)]),
            bias=np.concatenate([chunk.bias, np.full(new.size, -np.inf, np.float32)]),
        )
        labels_of[leaf] = np.concatenate([labels_of[leaf], n_old + new]).astype(np.int32)
    indptr = np.concatenate([[0], np.cumsum([labels.size for labels in labels_of])])
    grown = LabelTree(tree.parents, indptr, np.concatenate(labels_of), n_old + leaves.size)
    return grown, Chunks.join(packed, chunks.n_features)


def drop_labels(tree: LabelTree, chunks: Chunks, keep: np.ndarray) -> tuple[LabelTree, Chunks]:
    """Return the tree and chunks of the labels to keep (bool per label), renumbered in their old order."""
    packed = chunks.split()
    number = np.cumsum(keep) - 1
    labels_of = []
    for leaf in range(tree.n_leaves):
        labels = tree.leaf_labels[tree.leaf_indptr[leaf] : tree.leaf_indptr[leaf + 1]]
        stays = keep[labels]
        labels_of.append(number[labels[stays]].astype(np.int32))
        if not stays.all():
            features, W, bias = chunks.dense(int(chunks.levels[tree.n_levels]) + leaf)
            packed[-1][leaf] = PackedChunk.from_dense(features, W[:, stays], bias[stays], 0.0)
    indptr = np.concatenate([[0], np.cumsum([labels.size for labels in labels_of])])
    return LabelTree(tree.parents, indptr, np.concatenate(labels_of), int(keep.sum())), Chunks.join(
        packed, chunks.n_features
    )


def with_silent_labels(tree: LabelTree, chunks: Chunks, allowed: np.ndarray) -> Chunks:
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
