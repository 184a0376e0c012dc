"""Ranking by sparse weights agrees with a plain loop."""

import numpy as np
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from longtail.kernels.score import (
    collect_weights,
    count_weights,
    dense_topk,
    row_scales,
    row_scales_plain,
    row_squares,
    row_squares_plain,
    scale_rows,
    scale_rows_plain,
    sparse_topk,
    sparse_topk_plain,
)


def run(function, X, W, start, k):
    ids, scores = np.empty((X.shape[0], k), np.int32), np.empty((X.shape[0], k), np.float32)
    scale = np.linspace(0.5, 1, X.shape[0]).astype(np.float32)
    function(X.indptr, X.indices, X.data, scale, W.indptr, W.indices, W.data, start, ids, scores)
    return ids, scores


@given(st.integers(0, 2**32 - 1), st.integers(1, 12), st.integers(1, 9))
@settings(max_examples=60, deadline=None)
def test_topk_agrees_with_plain(seed, n_labels, k):
    rng = np.random.default_rng(seed)
    # small whole numbers: many ties, and sums that are exact in any order
    X = sp.csr_array(rng.integers(-2, 3, (7, 6)).astype(np.float32) * (rng.random((7, 6)) < 0.5))
    W = sp.csr_array(rng.integers(-2, 3, (6, n_labels)).astype(np.float32) * (rng.random((6, n_labels)) < 0.5))
    start = np.where(rng.random(n_labels) < 0.2, -np.inf, rng.integers(-2, 3, n_labels)).astype(np.float32)
    got, want = run(sparse_topk, X, W, start, k), run(sparse_topk_plain, X, W, start, k)
    assert np.array_equal(got[0], want[0])
    np.testing.assert_allclose(got[1], want[1], atol=1e-5)


def test_negative_scores_are_kept_and_labels_above_65536_found():
    n_labels = 70_000
    start = np.full(n_labels, -5, np.float32)
    start[[69_999, 66_000]] = [-1, -2]
    X, W = sp.csr_array((1, 3), dtype=np.float32), sp.csr_array((3, n_labels), dtype=np.float32)
    ids, scores = run(sparse_topk, X, W, start, 3)
    assert ids.tolist() == [[69_999, 66_000, 0]] and scores.tolist() == [[-1, -2, -5]]


def test_collected_weights_are_those_at_or_above_the_threshold():
    W = np.zeros((4, 16), np.float32)
    W[0, 0], W[2, 0], W[1, 1], W[3, 0] = 0.5, -0.05, 0.1, 9  # the last row is the bias
    counts = count_weights(W, 2, 0.1)
    features, values = np.empty(counts.sum(), np.int32), np.empty(counts.sum(), np.float32)
    collect_weights(W, 2, 0.1, features, values)
    assert counts.tolist() == [1, 1] and features.tolist() == [0, 1]
    np.testing.assert_allclose(values, [0.5, 0.1])


@given(st.integers(0, 2**32 - 1), st.integers(1, 80), st.integers(1, 6))
@settings(max_examples=40, deadline=None)
def test_scoring_in_dense_blocks_is_the_same_to_the_last_bit(seed, n_labels, k):
    rng = np.random.default_rng(seed)
    X = sp.random_array((9, 20), density=0.4, rng=rng, dtype=np.float32).tocsr()
    X.indptr = X.indptr.astype(np.int64)
    W = sp.random_array((20, n_labels), density=0.4, rng=rng, dtype=np.float32).tocsr()
    W.indptr = W.indptr.astype(np.int64)
    start = np.where(rng.random(n_labels) < 0.2, -np.inf, rng.standard_normal(n_labels)).astype(np.float32)
    sparse, dense = run(sparse_topk, X, W, start, k), run(dense_topk, X, W, start, k)
    assert np.array_equal(sparse[0], dense[0]) and np.array_equal(sparse[1], dense[1])


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
