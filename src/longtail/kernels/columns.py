"""The rows of every column of a sparse matrix: its transpose, without values and without copies in between."""

from __future__ import annotations

import numpy as np

from longtail.kernels.compilation import njit
from longtail.validate import count_ids, large_empty


def rows_of_columns(indptr: np.ndarray, indices: np.ndarray, n_columns: int) -> tuple[np.ndarray, np.ndarray]:
    """Return where the rows of each column begin, int64 (n_columns + 1,), and the rows, ascending, int32.

    >>> [array.tolist() for array in rows_of_columns(np.array([0, 2, 3]), np.array([0, 2, 0], dtype=np.int32), 3)]
    [[0, 2, 2, 3], [0, 1, 0]]
    """
    ends = np.zeros(n_columns + 1, dtype=np.int64)
    np.cumsum(count_ids(indices, n_columns), out=ends[1:])
    rows = large_empty(indices.size, np.int32)
    put_rows(indptr.astype(np.int64, copy=False), indices, ends[:-1].copy(), rows)
    return ends, rows


@njit(nogil=True, cache=True)
def put_rows(
    indptr, indices,  # IN   sparse rows
    fill,             # TMP  where the rows of each column begin    (n_columns,) int64
    rows,             # OUT  the rows of every column               (nnz,) int32
):  # fmt: skip
    """Write down the rows of every column, ascending."""
    for row in range(indptr.size - 1):
        for t in range(indptr[row], indptr[row + 1]):
            column = indices[t]
            rows[fill[column]] = row
            fill[column] += 1
