"""Compiled: draw labels for the rows of a batch, and find which of them are true for which row."""

from __future__ import annotations

import numpy as np
from numba import njit

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
