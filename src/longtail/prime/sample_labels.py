"""Drawing a few labels for each row of a batch, and finding which of the drawn labels are true for which row."""

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
    place: np.ndarray,  # int64 (n_labels,), all -1: scratch, left as it was
) -> Pool:
    """Return rows and labels of the draw, the different labels, where each is among them, and all true pairs.

    The pairs are (row, place) for every label of a row that was drawn, for whichever row it was.
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
        place[unique[i]] = i
    places = np.empty(n_most, np.int64)
    for i in range(n_most):
        places[i] = place[drawn[i]]
    true_rows, true_places = np.empty(first, np.int64), np.empty(first, np.int64)
    n_true = 0
    for i in range(rows.size):
        for j in range(indptr[rows[i]], indptr[rows[i] + 1]):
            if place[indices[j]] >= 0:
                true_rows[n_true], true_places[n_true] = i, place[indices[j]]
                n_true += 1
    for i in range(unique.size):
        place[unique[i]] = -1
    return drawn_rows, drawn, unique, places, true_rows[:n_true], true_places[:n_true]


def draw_pool_plain(
    rows: np.ndarray,
    indptr: np.ndarray,
    indices: np.ndarray,
    weights: np.ndarray,
    lots: np.ndarray,
    n_drawn: int,
    place: np.ndarray,
) -> Pool:
    """The same in numpy."""
    counts = indptr[rows + 1] - indptr[rows]
    row = np.repeat(np.arange(rows.size), counts)
    at = np.arange(row.size) - np.repeat(np.cumsum(counts) - counts, counts)  # 0, 1, ... within each row
    labels = indices[np.repeat(indptr[rows], counts) + at].astype(np.int64)
    kept = np.lexsort((lots / weights[labels], row))[at < n_drawn]
    unique, places = np.unique(labels[kept], return_inverse=True)
    where = np.full(place.size, -1)
    where[unique] = np.arange(unique.size)
    true = where[labels] >= 0
    return row[kept], labels[kept], unique, places, row[true], where[labels][true]
