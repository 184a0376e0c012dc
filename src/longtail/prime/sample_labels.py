"""Compiled: draw labels for the rows of a batch, find which are true for which row, and the rows of every label."""

from __future__ import annotations

import numpy as np

from longtail.kernels import njit

Pool = tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, np.ndarray, np.ndarray]


@njit(nogil=True, cache=True)
def draw_pool(
    rows: np.ndarray,  # int64 (n_rows,)
    indptr: np.ndarray,  # int64 (n + 1,)
    indices: np.ndarray,  # int32 (nnz,): labels of every row
    weights: np.ndarray,  # float64 (n_labels,)
    lots: np.ndarray,  # float64 (labels of these rows, row after row): the smallest, divided by weights, are drawn
    n_drawn: int,
    position: np.ndarray,  # int64 (n_labels,), all -1: scratch, left as it was
) -> Pool:
    """Return rows and labels drawn, the different labels, the position of each draw among them, and all true pairs.

    The pairs are (row, position) for every label of a row that was drawn, for whichever row it was.
    """
    n_most = 0
    for i in range(rows.size):
        n_most += min(n_drawn, indptr[rows[i] + 1] - indptr[rows[i]])
    drawn_rows, drawn = np.empty(n_most, np.int64), np.empty(n_most, np.int64)
    best = np.empty(n_drawn, np.float64)
    at = first = 0
    for i in range(rows.size):
        start, count = indptr[rows[i]], indptr[rows[i] + 1] - indptr[rows[i]]
        kept = 0
        for j in range(count):  # the smallest so far, in order
            lot = lots[first + j] / weights[indices[start + j]]
            if kept < n_drawn:
                kept += 1
            elif lot >= best[kept - 1]:
                continue
            spot = kept - 1
            while spot > 0 and best[spot - 1] > lot:
                best[spot] = best[spot - 1]
                drawn[at + spot] = drawn[at + spot - 1]
                spot -= 1
            best[spot] = lot
            drawn[at + spot] = indices[start + j]
        drawn_rows[at : at + kept] = i
        at += kept
        first += count
    unique = np.unique(drawn)
    for i in range(unique.size):
        position[unique[i]] = i
    positions = np.empty(n_most, np.int64)
    for i in range(n_most):
        positions[i] = position[drawn[i]]
    true_rows, true_positions = np.empty(first, np.int64), np.empty(first, np.int64)
    n_true = 0
    for i in range(rows.size):
        for j in range(indptr[rows[i]], indptr[rows[i] + 1]):
            if position[indices[j]] >= 0:
                true_rows[n_true], true_positions[n_true] = i, position[indices[j]]
                n_true += 1
    for i in range(unique.size):
        position[unique[i]] = -1
    return drawn_rows, drawn, unique, positions, true_rows[:n_true], true_positions[:n_true]


@njit(nogil=True, cache=True)
def group_rows(
    rows: np.ndarray,  # int64 (n_rows,)
    indptr: np.ndarray,  # int64 (n + 1,)
    indices: np.ndarray,  # int32 (nnz,): labels of every row
    position: np.ndarray,  # int64 (n_labels,), all -1: scratch, left as it was
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the labels of these rows once each, the number of rows of each, and these rows, label after label.

    Labels come in the order in which they first appear; the rows of a label are numbered as in `rows`, in that order.
    """
    n_pairs = 0
    for i in range(rows.size):
        n_pairs += indptr[rows[i] + 1] - indptr[rows[i]]
    labels, counts = np.empty(n_pairs, np.int64), np.zeros(n_pairs, np.int64)
    n_labels = 0
    for i in range(rows.size):
        for j in range(indptr[rows[i]], indptr[rows[i] + 1]):
            label = indices[j]
            if position[label] < 0:
                position[label] = n_labels
                labels[n_labels] = label
                n_labels += 1
            counts[position[label]] += 1
    ends = np.cumsum(counts[:n_labels])
    following = ends - counts[:n_labels]  # where the next row of a label goes
    grouped = np.empty(n_pairs, np.int64)
    for i in range(rows.size):
        for j in range(indptr[rows[i]], indptr[rows[i] + 1]):
            at = position[indices[j]]
            grouped[following[at]] = i
            following[at] += 1
    for i in range(n_labels):
        position[labels[i]] = -1
    return labels[:n_labels], counts[:n_labels], grouped
