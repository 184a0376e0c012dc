"""Operations of numpy on a large array, done block by block: no second array of its size is made."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp

from longtail.validate.arrays import make_csr
from longtail.validate.scratch import large_empty, memory_limit

AT_ONCE = 1 << 20  # entries
ROWS_AT_ONCE = 1 << 15


def count_ids(ids: np.ndarray, n: int) -> np.ndarray:
    """Return how often each id occurs, int64 (n,); numpy would make a copy of the ids in 64 bits.

    >>> count_ids(np.array([0, 2, 2], dtype=np.int32), 4).tolist()
    [1, 0, 2, 0]
    """
    if ids.size <= AT_ONCE:
        return np.bincount(ids, minlength=n).astype(np.int64, copy=False)
    out = np.zeros(n, dtype=np.int64)
    step = max(AT_ONCE, n)
    for low in range(0, ids.size, step):
        out += np.bincount(ids[low : low + step], minlength=n)
    return out


def rows_at(M: sp.csr_array | np.ndarray, rows: np.ndarray) -> sp.csr_array | np.ndarray:
    """Return some rows of a matrix, `M[rows]`; under a limit on memory, a large result is in files.

    >>> rows_at(sp.csr_array([[1.0, 0.0], [0.0, 2.0]]), np.array([1])).toarray().tolist()
    [[0.0, 2.0]]
    """
    if memory_limit() is None or isinstance(M, np.ndarray):
        return M[rows]
    indptr = np.zeros(rows.size + 1, dtype=np.int64)
    np.cumsum(M.indptr[rows + 1].astype(np.int64) - M.indptr[rows], out=indptr[1:])
    ids, values = large_empty(int(indptr[-1]), np.int32), large_empty(int(indptr[-1]), np.float32)
    for low in range(0, rows.size, ROWS_AT_ONCE):
        part = M[rows[low : low + ROWS_AT_ONCE]]
        at = slice(int(indptr[low]), int(indptr[low]) + part.nnz)
        ids[at], values[at] = part.indices, part.data
    return make_csr(indptr, ids, values, M.shape[1])
