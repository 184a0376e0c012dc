"""Compiled: the labels that any expert lists for a row, and what every expert says of them."""

from __future__ import annotations

import numpy as np

from longtail.kernels import njit


@njit(nogil=True, cache=True)
def join_lists(
    lists,        # IN   labels that the experts list, -1 where none (n, m)
    allowed,      # IN   bool per label: which may come
    out,          # OUT  each label once, rising, -1 after the last (n, m)
):  # fmt: skip
    """Join the lists of every row; return how many labels the longest result has."""
    longest = 0
    for row in range(lists.shape[0]):
        count = 0
        last = -1
        for label in np.sort(lists[row]):
            if label > last and allowed[label]:
                out[row, count] = label
                count += 1
                last = label
        out[row, count:] = -1
        longest = max(longest, count)
    return longest


@njit(nogil=True, cache=True)
def look_up(
    candidates,   # IN   labels of every row, rising, -1 after the last (n, m)
    ids, scores,  # IN   labels that an expert lists, in any order, -1 where none, and their scores (n, e)
    missing,      # IN   the score of a label that is not listed (n,)
    out,          # OUT  the scores of the candidates (n, m)
    listed,       # OUT  whether each is listed (n, m)
):  # fmt: skip
    """Write the expert's score of every candidate."""
    for row in range(candidates.shape[0]):
        count = 0
        while count < candidates.shape[1] and candidates[row, count] >= 0:
            count += 1
        for i in range(candidates.shape[1]):
            out[row, i] = missing[row]
            listed[row, i] = False
        for i in range(ids.shape[1]):
            label = ids[row, i]
            if label < 0:
                continue
            low, high = 0, count
            while low < high:
                middle = (low + high) // 2
                if candidates[row, middle] < label:
                    low = middle + 1
                else:
                    high = middle
            if low < count and candidates[row, low] == label:
                out[row, low] = scores[row, i]
                listed[row, low] = True


@njit(nogil=True, cache=True)
def products(
    queries,      # IN   vectors of rows (n, width)
    candidates,   # IN   labels of every row as lines of `vectors`, -1 where none (n, m)
    vectors,      # IN   vectors of labels
    out,          # OUT  inner products, 0 where there is no label (n, m)
):  # fmt: skip
    """Multiply the vector of every row with those of its candidates."""
    for row in range(candidates.shape[0]):
        for i in range(candidates.shape[1]):
            total = np.float32(0.0)
            label = candidates[row, i]
            if label >= 0:
                for j in range(queries.shape[1]):
                    total += queries[row, j] * vectors[label, j]
            out[row, i] = total
