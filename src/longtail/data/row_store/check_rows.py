"""The compiled check of sparse rows in a mapped file: nothing that is not sorted, in range and finite comes further."""

from __future__ import annotations

import numpy as np

from longtail.kernels import njit

SOUND, POINTERS, RANGE, ORDER, NUMBER = 0, 1, 2, 3, 4


@njit(nogil=True, cache=True)
def find_problem(
    pointers,       # IN  of some rows into all entries    (n + 1,) int64
    ids, values,    # IN  all entries                      (n_entries,) int32, float32
    n_columns,      # IN
    least,          # IN  smallest value that is allowed
):  # fmt: skip
    """Return (what is wrong, the row, the id) of the first row that is not sound, or (0, 0, 0)."""
    for row in range(pointers.size - 1):
        low, high = pointers[row], pointers[row + 1]
        if low < 0 or high < low or high > ids.size:
            return POINTERS, row, 0
        before = np.int64(-1)
        for t in range(low, high):
            column = np.int64(ids[t])
            if column < 0 or column >= n_columns:
                return RANGE, row, column
            if column <= before:
                return ORDER, row, column
            before = column
            value = values[t]
            if not (np.isfinite(value) and value != 0 and value >= least):
                return NUMBER, row, column
    return SOUND, 0, 0
