"""Some rows of a large sparse matrix as a small one of their own, of unit length, ready to be summed exactly.

Features are renumbered as they are met, so only those that occur count, and the common ones, met first, lie together
in cache. Values are rounded to multiples of 2**-30. Sums of up to 2**23 of them are exact in float64, whatever their
order: rows can be added and taken away again, in any number of threads, and the result is the same to the last bit.
"""

from __future__ import annotations

import numpy as np

from longtail.kernels.compilation import njit

UNIT = np.float32(2.0**30)  # a value is a whole number of 1 / UNIT


@njit(nogil=True, cache=True)
def unit_scales(
    indptr, data,  # IN   a matrix, CSR                      (n + 1,), (nnz,)
    out,           # OUT  1 / length of each row; 0 for a row of zeros   (n,) float64
):  # fmt: skip
    """Find what each row must be multiplied with to have unit length."""
    for row in range(out.size):
        square = 0.0
        for t in range(indptr[row], indptr[row + 1]):
            square += np.float64(data[t]) * np.float64(data[t])
        out[row] = 1 / np.sqrt(square) if square > 0 else 0.0


@njit(nogil=True, cache=True)
def compact_rows(
    indptr, indices, data,      # IN      a matrix, CSR                        (n + 1,), (nnz,), (nnz,)
    scale,                      # IN      what each row is multiplied with     (n,) float64
    rows,                       # IN      the rows to take                     (m,) int32
    local,                      # IN/OUT  new number of each feature, or -1    (n_features,) int32
    grow,                       # IN      True: number new features; False: leave them out
    n_local,                    # IN      features numbered so far
    out_indptr,                 # OUT                                          (m + 1,) int64
    out_indices, out_values,    # OUT     unsorted within a row                (>= nnz of the rows,) int32, float32
    features,                   # OUT     old numbers of the new features      (>= as many,) int32
):  # fmt: skip
    """Take rows into a matrix of their own and return how many features are numbered now."""
    out = 0
    out_indptr[0] = 0
    for i in range(rows.size):
        row = rows[i]
        for t in range(indptr[row], indptr[row + 1]):
            f = np.uint32(indices[t])
            g = local[f]
            if g < 0:
                if not grow:
                    continue
                g = n_local
                local[f] = g
                features[g] = f
                n_local += 1
            out_indices[out] = g
            out_values[out] = np.rint(np.float32(data[t] * scale[row]) * UNIT) / UNIT
            out += 1
        out_indptr[i + 1] = out
    return n_local


def round_values(values: np.ndarray) -> np.ndarray:
    """Return values as float32 multiples of 2**-30."""
    return np.rint(values.astype(np.float32) * UNIT) / UNIT
