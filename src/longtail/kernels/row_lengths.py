"""Row lengths of a sparse matrix: the scale to unit length, and squared norms.

scale = 1 / ‖x‖        square = ‖x‖² + extra
"""

from __future__ import annotations

import numpy as np

from longtail.kernels.compilation import njit

SHORTEST = 1e-60  # squared length below which a row counts as empty: its scale would not fit a float


@njit(nogil=True, cache=True)
def row_scales(indptr, data, scales):
    """Write 1 over the length of every row, 1 for rows of (almost) nothing; summed in double precision."""
    for row in range(scales.size):
        total = 0.0
        for t in range(indptr[row], indptr[row + 1]):
            total += np.float64(data[t]) * np.float64(data[t])
        scales[row] = np.float32(1.0 / np.sqrt(total)) if total > SHORTEST else np.float32(1.0)


@njit(nogil=True, cache=True)
def scale_rows(indptr, data, scales, extra, out, squares):
    """Write every row times its scale, and the squared length of the result plus `extra`, at least 1e-12."""
    for row in range(scales.size):
        total = np.float64(extra)
        for t in range(indptr[row], indptr[row + 1]):
            out[t] = data[t] * scales[row]
            total += np.float64(out[t]) * np.float64(out[t])
        squares[row] = max(total, 1e-12)


@njit(nogil=True, cache=True)
def row_squares(indptr, data, extra, squares):
    """Write the squared length of every row plus `extra`, at least 1e-12."""
    for row in range(squares.size):
        total = np.float64(extra)
        for t in range(indptr[row], indptr[row + 1]):
            total += np.float64(data[t]) * np.float64(data[t])
        squares[row] = max(total, 1e-12)
