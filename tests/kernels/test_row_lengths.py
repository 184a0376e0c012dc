"""Scales and squared norms of rows agree with numpy."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from longtail.kernels.row_lengths import SHORTEST, row_scales, row_squares, scale_rows


def row_scales_plain(indptr: np.ndarray, data: np.ndarray, scales: np.ndarray) -> None:
    for row in range(scales.size):
        length = np.sqrt(np.square(data[indptr[row] : indptr[row + 1]].astype(np.float64)).sum())
        scales[row] = 1.0 / length if length > np.sqrt(SHORTEST) else 1.0


def scale_rows_plain(
    indptr: np.ndarray, data: np.ndarray, scales: np.ndarray, extra: float, out: np.ndarray, squares: np.ndarray
) -> None:
    out[:] = data * np.repeat(scales, np.diff(indptr))
    for row in range(scales.size):
        squares[row] = max(extra + np.square(out[indptr[row] : indptr[row + 1]].astype(np.float64)).sum(), 1e-12)


def row_squares_plain(indptr: np.ndarray, data: np.ndarray, extra: float, squares: np.ndarray) -> None:
    for row in range(squares.size):
        squares[row] = max(extra + np.square(data[indptr[row] : indptr[row + 1]].astype(np.float64)).sum(), 1e-12)


rows = st.lists(st.lists(st.floats(-1000, 1000, width=32), max_size=6), min_size=1, max_size=8)


def packed(rows):
    """Return pointers and values of lists of values."""
    indptr = np.concatenate([[0], np.cumsum([len(row) for row in rows])]).astype(np.int64)
    return indptr, np.array([value for row in rows for value in row], np.float32)


@given(rows)
@settings(max_examples=60, deadline=None)
def test_row_scales_agree_with_plain(rows):
    indptr, data = packed(rows)
    got, want = np.zeros(len(rows), np.float32), np.zeros(len(rows), np.float32)
    row_scales(indptr, data, got)
    row_scales_plain(indptr, data, want)
    np.testing.assert_allclose(got, want, rtol=1e-6)
    assert (got[np.diff(indptr) == 0] == 1).all()


@given(rows, st.booleans())
@settings(max_examples=60, deadline=None)
def test_scaled_rows_agree_with_plain(rows, bias):
    indptr, data = packed(rows)
    n, scales = len(rows), np.linspace(0.1, 1, len(rows)).astype(np.float32)
    got, want = ((np.empty_like(data), np.empty(n, np.float32)) for _ in range(2))
    scale_rows(indptr, data, scales, float(bias), *got)
    scale_rows_plain(indptr, data, scales, float(bias), *want)
    assert np.array_equal(got[0], want[0])
    np.testing.assert_allclose(got[1], want[1], rtol=1e-6)
    assert (got[1] > 0).all()
    again, plain = np.empty(n, np.float32), np.empty(n, np.float32)
    row_squares(indptr, got[0], float(bias), again)
    row_squares_plain(indptr, got[0], float(bias), plain)
    assert np.array_equal(again, got[1])
    np.testing.assert_allclose(again, plain, rtol=1e-6)
