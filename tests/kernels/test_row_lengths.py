"""Scales and squared norms of rows agree with numpy."""

import numpy as np
import scipy.sparse as sp
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


@given(st.integers(0, 2**32 - 1))
@settings(max_examples=30, deadline=None)
def test_row_scales_agree_with_plain(seed):
    rng = np.random.default_rng(seed)
    X = sp.random_array((8, 20), density=0.2, rng=rng, dtype=np.float32).tocsr()
    got, want = np.zeros(8, np.float32), np.zeros(8, np.float32)
    row_scales(X.indptr.astype(np.int64), X.data, got)
    row_scales_plain(X.indptr, X.data, want)
    np.testing.assert_allclose(got, want, rtol=1e-6)


@given(st.integers(0, 2**32 - 1), st.booleans())
@settings(max_examples=30, deadline=None)
def test_scaled_rows_agree_with_plain(seed, bias):
    rng = np.random.default_rng(seed)
    X = sp.random_array((8, 20), density=0.2, rng=rng, dtype=np.float32).tocsr()
    scales = rng.random(8).astype(np.float32)
    got, want = ((np.empty_like(X.data), np.empty(8, np.float32)) for _ in range(2))
    scale_rows(X.indptr.astype(np.int64), X.data, scales, float(bias), *got)
    scale_rows_plain(X.indptr, X.data, scales, float(bias), *want)
    assert np.array_equal(got[0], want[0])
    np.testing.assert_allclose(got[1], want[1], rtol=1e-6)
    assert (got[1] > 0).all()
    again, plain = np.empty(8, np.float32), np.empty(8, np.float32)
    row_squares(X.indptr.astype(np.int64), got[0], float(bias), again)
    row_squares_plain(X.indptr, got[0], float(bias), plain)
    assert np.array_equal(again, got[1])
    np.testing.assert_allclose(again, plain, rtol=1e-6)
