"""Ranking by sparse weights agrees with a plain loop."""

import numpy as np
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from longtail.one_vs_all.topk_kernels import collect_weights, count_weights, dense_topk, sparse_topk


def sparse_topk_plain(
    indptr: np.ndarray,
    indices: np.ndarray,
    data: np.ndarray,
    scale: np.ndarray,
    w_indptr: np.ndarray,
    w_indices: np.ndarray,
    w_data: np.ndarray,
    start: np.ndarray,
    ids: np.ndarray,
    scores: np.ndarray,
) -> None:
    n, k = ids.shape
    for row in range(n):
        line = start.copy()
        for t in range(indptr[row], indptr[row + 1]):
            f = indices[t]
            at = slice(w_indptr[f], w_indptr[f + 1])
            np.add.at(line, w_indices[at], data[t] * scale[row] * w_data[at])
        order = np.argsort(-line, kind="stable")[:k]
        order = order[np.isfinite(line[order])]
        ids[row], scores[row] = -1, -np.inf
        ids[row, : order.size], scores[row, : order.size] = order, line[order]


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
