"""Divide rows into train and test so that every label keeps its share in both, the rarest label first.

Again and again the label with the fewest undecided rows is taken and all of them are decided: each goes to the side
that is still owed more rows of that label. Rare labels are thus served while there is still a choice, and the common
ones even out what that costs. Undecided counts only fall, so labels wait in buckets by their count (linked lists) and
the whole takes time in proportion to the number of labels of all rows.

A row never goes to test if one of its labels would be left without a row in train. Both sides have a fixed size; once
one is full, the other takes the rest.
"""

from __future__ import annotations

import numpy as np

from longtail.kernels import njit

UNDECIDED, TRAIN, TEST = 0, 1, 2


@njit(nogil=True, cache=True)
def stratify_rows(
    indptr: np.ndarray,  # IN   labels of rows, CSR               (n_rows + 1,)
    indices: np.ndarray,  # IN                                    (nnz,)
    label_indptr: np.ndarray,  # IN   rows of labels, CSC         (n_labels + 1,)
    label_rows: np.ndarray,  # IN   in the order to decide them   (nnz,)
    n_test: int,
    side: np.ndarray,  # OUT  int8, TRAIN or TEST                 (n_rows,)
) -> int:  # pragma: no cover - compiled
    """Fill `side` for the rows that have labels and return how many of all rows went to test."""
    n_rows, n_labels = side.size, label_indptr.size - 1
    share = n_test / n_rows
    left = np.empty(n_labels, dtype=np.int64)  # undecided rows of a label
    in_train = np.zeros(n_labels, dtype=np.int64)
    owed = np.empty(n_labels, dtype=np.float64)  # rows of a label test is still owed
    most = 0
    for label in range(n_labels):
        left[label] = label_indptr[label + 1] - label_indptr[label]
        owed[label] = left[label] * share
        most = max(most, left[label])
    head = np.full(most + 1, -1, dtype=np.int64)
    after = np.full(n_labels, -1, dtype=np.int64)
    before = np.full(n_labels, -1, dtype=np.int64)
    for label in range(n_labels - 1, -1, -1):
        _push(head, after, before, label, left[label])

    side[:] = UNDECIDED
    room_test, room_train = n_test, n_rows - n_test
    lowest = 1
    while lowest <= most:
        label = head[lowest]
        if label < 0:
            lowest += 1
            continue
        for at in range(label_indptr[label], label_indptr[label + 1]):
            row = label_rows[at]
            if side[row] != UNDECIDED:
                continue
            gain = owed[label] - (left[label] - owed[label])  # owed to test, minus owed to train
            to_test = room_test > 0 and (gain > 0 or room_train <= 0 or (gain == 0 and room_test > room_train))
            if to_test:
                for k in range(indptr[row], indptr[row + 1]):
                    other = indices[k]
                    if in_train[other] == 0 and left[other] == 1:
                        to_test = False  # the last chance of this label to be seen in train
                        break
            side[row] = TEST if to_test else TRAIN
            if to_test:
                room_test -= 1
            else:
                room_train -= 1
            for k in range(indptr[row], indptr[row + 1]):
                other = indices[k]
                if to_test:
                    owed[other] -= 1
                else:
                    in_train[other] += 1
                _remove(head, after, before, other, left[other])
                left[other] -= 1
                _push(head, after, before, other, left[other])
                if 0 < left[other] < lowest:
                    lowest = left[other]
    return n_test - room_test


@njit(nogil=True, cache=True)
def _push(head: np.ndarray, after: np.ndarray, before: np.ndarray, label: int, count: int) -> None:
    after[label] = head[count]
    before[label] = -1
    if head[count] >= 0:
        before[head[count]] = label
    head[count] = label


@njit(nogil=True, cache=True)
def _remove(head: np.ndarray, after: np.ndarray, before: np.ndarray, label: int, count: int) -> None:
    if before[label] >= 0:
        after[before[label]] = after[label]
    else:
        head[count] = after[label]
    if after[label] >= 0:
        before[after[label]] = before[label]
