"""Overlapping clusters: a label with several meanings gets several leaf slots (label disentanglement).

A label can only be predicted for a row if the matcher (the upper part of the tree, which picks clusters for a row)
picks a cluster the label stands in. With M the clusters picked for each training row (0/1) and C the clusters of each
label, the positives that can be recalled number

    Tr(Yᵀ Binary(M Cᵀ)).

Counting a row once for every slot that recalls it makes this linear in C, and the best C with λ slots per label
takes the λ largest entries of each row of Yᵀ M (`overlap=λ`, as published; the cap `room` on the labels of a cluster
and `hold`, which keeps the slots one starts from, are ours). Counting it once only, and taking one slot after the
other while it recalls enough further rows, gives fewer slots for the same recall (`overlap="coverage"`).

`disentangle` chooses the slots, `recalled` counts what they recall, `assign_rows` assigns each positive to one slot
of its label, and `drop_idle_slots` removes slots that few rows are assigned to.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from longtail.errors import DataError, ParameterError, near
from longtail.kernels import blocks, run_tasks
from longtail.tree.label_tree import LabelTree
from longtail.tree.overlap_kernels import best_slots, choose_slots, fill_slots
from longtail.validate import (
    as_labels,
    as_sparse,
    check_flag,
    check_integer,
    check_real,
    check_same_rows,
    make_csr,
    resolve_jobs,
)

COVERAGE = "coverage"  # as `overlap`: slots by the rows that they recall and no other slot does
MAX_SLOTS_COVERAGE = 6  # slots of one label, at most, with "coverage"
LEAST_COVERAGE = 2  # rows that a further slot must recall with "coverage"...
SHARE_COVERAGE = 0.02  # ... and this share of the label's rows
MOST = 2**20  # upper bound of slots of a label, and of rows for a further one
LABELS_PER_TASK = 1024
ROWS_PER_TASK = 16_384
ROWS_AT_ONCE = 65_536  # whose recall is counted together


def disentangle(
    matcher: Any,
    Y: Any,
    overlap: int | str = 2,
    *,
    start: LabelTree | Any = None,
    hold: bool = False,
    least: int = 1,
    room: float | None = None,
    n_jobs: int | None = None,
) -> sp.csr_array:
    """Return the clusters each label should stand in, 0/1 CSR (n_labels, n_clusters).

    Parameters
    ----------
    matcher : {array-like, sparse matrix} of shape (n_rows, n_clusters)
        Not zero where the matcher finds a cluster for a training row.
    Y : {array-like, sparse matrix} of shape (n_rows, n_labels)
        The labels of the rows.
    overlap : int or "coverage", default=2
        Slots per label, at most: the largest entries of Yᵀ M, as published. "coverage" counts every row once, and takes
        as many slots as recall at least 2 rows, and 2 % of the label's rows, that no slot before recalls. (The "auto"
        of `LabelTreeClassifier` is another thing: 1 or 2 for all labels.)
    start : LabelTree, {array-like, sparse matrix} of shape (n_labels, n_clusters) or None, default=None
        Where the labels stand now. A label none of whose rows finds any cluster stays there.
    hold : bool, default=False
        Every label keeps its slots of `start`, which come first.
    least : int, default=1
        Rows that a further slot must recall.
    room : float or None, default=None
        Clusters may hold this many times their mean number of labels; None for any number. The largest counts come
        first; a label whose best clusters are full goes to the next best.
    n_jobs : int or None, default=None
        Threads; None for all cores.

    Returns
    -------
    csr_array of shape (n_labels, n_clusters)
        1 where a label stands in a cluster.

    Examples
    --------
    >>> M = [[1, 0], [1, 0], [0, 1], [0, 1], [0, 1]]
    >>> Y = [[1, 0], [1, 0], [1, 0], [0, 1], [0, 1]]
    >>> disentangle(M, Y, overlap=2).toarray().astype(int).tolist()
    [[1, 1], [0, 1]]
    """
    M, Y = as_sparse(matcher, "matcher"), as_labels(Y, "Y")
    check_same_rows(M, Y, "matcher", "Y")
    n_jobs = resolve_jobs(n_jobs)
    overlap, least = _slots_wanted(overlap), check_integer("least", least, low=1, high=MOST)
    if check_flag("hold", hold) and start is None:
        raise ParameterError(name="hold", allowed="False where no start is given", got=True)
    first = _start(start, Y.shape[1], M.shape[1])
    if room is not None:
        room = check_real("room", room, low=1)
    if overlap != COVERAGE:
        return _largest(M, Y, first, hold, int(overlap), least, room)
    held_slots = first if hold else None
    ids, gains = _coverage(M, Y, held_slots, max(least, LEAST_COVERAGE), SHARE_COVERAGE, MAX_SLOTS_COVERAGE, n_jobs)
    kept = ids >= 0
    if room is not None:
        cap = room * kept.sum() / M.shape[1]
        held = np.diff(held_slots.indptr)[:, None] if held_slots is not None else 0
        must = np.arange(ids.shape[1]) < held
        kept = _within(ids, gains, kept, must, cap, M.shape[1])
    labels, at = np.nonzero(kept)
    return _slot_table(labels, ids[labels, at], Y.shape[1], M.shape[1], first)


def check_overlap(overlap: Any) -> int | str:
    """Return `overlap` if it is a number of slots or "auto"."""
    if isinstance(overlap, str) and overlap == "auto":
        return overlap
    whole = isinstance(overlap, int | np.integer) and not isinstance(overlap, bool)
    if not whole or not 1 <= overlap <= MOST:
        raise ParameterError(name="overlap", allowed=f"a whole number from 1 to {MOST} or 'auto'", got=overlap)
    return int(overlap)


def _slots_wanted(overlap: Any) -> int | str:
    """Return `overlap` of `disentangle` if it is a number of slots or "coverage"."""
    whole = isinstance(overlap, int | np.integer) and not isinstance(overlap, bool)
    if whole and 1 <= overlap <= MOST:
        return int(overlap)
    if isinstance(overlap, str) and overlap == COVERAGE:
        return overlap
    hint = (
        f" Did you mean '{COVERAGE}'?" if isinstance(overlap, str) and overlap == "auto" else near(overlap, [COVERAGE])
    )
    allowed = f"a whole number from 1 to {MOST} or '{COVERAGE}'"
    raise ParameterError(name="overlap", allowed=allowed, got=overlap, hint=hint)


def recalled(matcher: Any, Y: Any, slots: Any) -> int:
    """Return how many labels of rows stand in a cluster that the matcher finds for the row: Tr(Yᵀ Binary(M Cᵀ)).

    >>> recalled([[1, 0], [0, 1]], [[1], [1]], [[1, 0]])
    1
    """
    C = slots.slots() if isinstance(slots, LabelTree) else as_sparse(slots, "slots")
    M, Y = as_sparse(matcher, "matcher"), as_labels(Y, "Y")
    check_same_rows(M, Y, "matcher", "Y")
    wanted = (Y.shape[1], M.shape[1])
    if C.shape != wanted:
        raise DataError(f"slots must have the shape (n_labels, n_clusters) = {wanted}; got {C.shape}.")
    total = 0
    for at in blocks(Y.shape[0], ROWS_AT_ONCE):
        labels = Y.indices[Y.indptr[at.start] : Y.indptr[at.stop]]
        rows = np.repeat(np.arange(at.start, at.stop, dtype=np.int64), np.diff(Y.indptr[at.start : at.stop + 1]))
        clusters = C[labels]  # of every label of every row
        which = np.repeat(np.arange(labels.size), np.diff(clusters.indptr))
        matched = np.repeat(np.arange(at.start, at.stop, dtype=np.int64), np.diff(M.indptr[at.start : at.stop + 1]))
        matched = matched * M.shape[1] + M.indices[M.indptr[at.start] : M.indptr[at.stop]]
        total += np.unique(which[np.isin(rows[which] * M.shape[1] + clusters.indices, matched)]).size
    return total


def _start(start: Any, n_labels: int, n_clusters: int) -> sp.csr_array | None:
    """Return the slots to start from, checked."""
    if start is None:
        return None
    slots = start.slots() if isinstance(start, LabelTree) else as_sparse(start, "start")
    wanted = (n_labels, n_clusters)
    if slots.shape != wanted:
        raise DataError(f"start must have the shape (n_labels, n_clusters) = {wanted}; got {slots.shape}.")
    return slots


def _largest(
    M: sp.csr_array,
    Y: sp.csr_array,
    first: sp.csr_array | None,
    hold: bool,
    overlap: int,
    least: int,
    room: float | None,
) -> sp.csr_array:
    """Take the largest counts Yᵀ M of every label, while its clusters have room."""
    matched = make_csr(M.indptr, M.indices, np.ones(M.nnz, np.float32), M.shape[1])
    votes = sp.csr_array(make_csr(Y.indptr, Y.indices, np.ones(Y.nnz, np.float32), Y.shape[1]).T @ matched)
    votes.sort_indices()
    labels = np.repeat(np.arange(Y.shape[1]), np.diff(votes.indptr))
    counts = votes.data.astype(np.int64)
    held = np.zeros(counts.size, dtype=bool)
    if hold and first is not None:
        keys = labels * np.int64(M.shape[1]) + votes.indices
        mine = np.repeat(np.arange(Y.shape[1]), np.diff(first.indptr)) * np.int64(M.shape[1]) + first.indices
        at = np.searchsorted(keys, mine)  # both ascend
        known = np.append(keys, -1)[at] == mine
        held[at[known]] = True
        missing = mine[~known]  # slots in clusters that no row finds: kept all the same
        labels = np.concatenate([labels, missing // M.shape[1]])
        ids = np.concatenate([votes.indices, missing % M.shape[1]])
        counts, held = np.append(counts, np.zeros(missing.size, np.int64)), np.append(held, np.ones(missing.size, bool))
    else:
        ids = votes.indices
    order = np.lexsort((ids, labels, -counts, ~held))
    cap = np.inf if room is None else room * overlap * Y.shape[1] / M.shape[1]
    chosen = fill_slots(
        labels[order].astype(np.int32),
        ids[order].astype(np.int32),
        counts[order],
        held[order],
        overlap,
        least,
        cap,
        np.zeros(Y.shape[1], np.int64),
        np.zeros(M.shape[1], np.int64),
    )
    return _slot_table(labels[order][chosen], ids[order][chosen], Y.shape[1], M.shape[1], first)


def _coverage(
    M: sp.csr_array, Y: sp.csr_array, first: sp.csr_array | None, least: int, share: float, most: int, n_jobs: int
) -> tuple[np.ndarray, np.ndarray]:
    """Take one slot after the other, each the one that recalls most further rows."""
    by_label = sp.csc_array(Y)
    rows = (by_label.indptr.astype(np.int64), by_label.indices.astype(np.int32))
    matched = (M.indptr.astype(np.int64), M.indices.astype(np.int32))
    held = np.zeros(Y.shape[1] + 1, np.int64) if first is None else first.indptr.astype(np.int64)
    mine = np.empty(0, np.int32) if first is None else first.indices.astype(np.int32)
    most = max(most, int(np.diff(held).max(initial=0)))
    longest = int(np.diff(rows[0]).max(initial=0))

    def some(at: slice) -> tuple[np.ndarray, np.ndarray]:
        n = at.stop - at.start
        ids, gains = np.empty((n, most), np.int32), np.empty((n, most), np.int64)
        spare = (np.zeros(M.shape[1], np.int64), np.zeros(M.shape[1], np.bool_), np.zeros(longest, np.bool_))
        choose_slots(*rows, *matched, held, mine, at.start, at.stop, least, share, *spare, ids, gains)
        return ids, gains

    parts = run_tasks(some, blocks(Y.shape[1], LABELS_PER_TASK), n_jobs)
    ids, gains = (np.concatenate(part) for part in zip(*parts, strict=True))
    return ids, gains


def _within(
    ids: np.ndarray, gains: np.ndarray, kept: np.ndarray, must: np.ndarray, cap: float, n_clusters: int
) -> np.ndarray:
    """Leave out choices for which a cluster has no room, the smallest gains first."""
    labels, at = np.nonzero(kept)
    held = must[labels, at] if isinstance(must, np.ndarray) else np.zeros(labels.size, bool)
    order = np.lexsort((labels, -gains[labels, at], ~held))
    labels, at, held = labels[order], at[order], held[order]
    chosen = fill_slots(
        labels.astype(np.int32),
        ids[labels, at],
        gains[labels, at],
        held,
        ids.shape[1],
        0,
        cap,
        np.zeros(ids.shape[0], np.int64),
        np.zeros(n_clusters, np.int64),
    )
    out = np.zeros_like(kept)
    out[labels[chosen], at[chosen]] = True
    return out


def _slot_table(
    labels: np.ndarray, ids: np.ndarray, n_labels: int, n_clusters: int, first: sp.csr_array | None
) -> sp.csr_array:
    """Return choices as a matrix; labels without any keep the slots they had."""
    if first is not None:
        homeless = np.flatnonzero(np.bincount(labels, minlength=n_labels) == 0)
        old = first[homeless]
        labels = np.concatenate([labels, np.repeat(homeless, np.diff(old.indptr))])
        ids = np.concatenate([ids, old.indices])
    order = np.lexsort((ids, labels))
    indptr = np.concatenate([[0], np.cumsum(np.bincount(labels, minlength=n_labels))])
    return make_csr(indptr, ids[order], np.ones(ids.size, np.float32), n_clusters)


def assign_rows(
    tree: LabelTree, Y: sp.csr_array, nodes: np.ndarray, scores: np.ndarray, n_jobs: int = 1
) -> sp.csr_array:
    """Assign each positive to one slot of its label: 0/1 CSR (n_rows, n_slots).

    It is the slot whose leaf scores best for the row, of the leaves (`nodes`, `scores`) that the row is sent to; a
    label that stands in none of these is assigned to the slot that most of its other rows have.
    """
    by_label = np.argsort(tree.leaf_labels, kind="stable").astype(np.int32)
    slot_indptr = np.concatenate([[0], np.cumsum(np.bincount(tree.leaf_labels, minlength=tree.n_labels))])
    leaf_of = np.repeat(np.arange(tree.n_leaves, dtype=np.int32), np.diff(tree.leaf_indptr))
    known = (Y.indptr.astype(np.int64), Y.indices, slot_indptr, by_label, leaf_of, nodes, scores)
    usual = np.zeros(tree.n_slots, dtype=np.int64)
    reached, chosen = np.empty(Y.nnz, dtype=np.bool_), np.empty(Y.nnz, dtype=np.int32)
    for _ in range(2):  # the second time it is known which slot the rows of a label usually have

        def some(at: slice) -> None:
            best_slots(*known, at.start, at.stop, usual, reached, chosen)  # noqa: B023

        run_tasks(some, blocks(Y.shape[0], ROWS_PER_TASK), n_jobs)
        usual = np.bincount(chosen[reached], minlength=tree.n_slots)
    out = make_csr(Y.indptr, chosen, np.ones(Y.nnz, np.float32), tree.n_slots)
    out.has_sorted_indices = False
    out.sort_indices()
    return out


def drop_idle_slots(tree: LabelTree, assigned: sp.csr_array, least: int) -> LabelTree:
    """Return the tree without slots of fewer than `least` assigned rows; a label keeps the one with most."""
    counts = np.bincount(assigned.indices, minlength=tree.n_slots)
    order = np.lexsort((np.arange(tree.n_slots), -counts, tree.leaf_labels))
    keep = counts >= least
    keep[_first_of_each(tree.leaf_labels, order)] = True
    leaves = np.repeat(np.arange(tree.n_leaves), np.diff(tree.leaf_indptr))[keep]
    where, shape = (tree.leaf_labels[keep], leaves), (tree.n_labels, tree.n_leaves)
    return tree.with_slots(sp.csr_array((np.ones(leaves.size, np.float32), where), shape=shape))


def _first_of_each(keys: np.ndarray, order: np.ndarray) -> np.ndarray:
    """Return the first entry of each key, in an order that is sorted by key."""
    line = keys[order]
    return order[np.concatenate([[True], line[1:] != line[:-1]])] if order.size else order
