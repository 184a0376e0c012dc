"""Label vectors and chosen rows: the compiled kernel agrees with vectors written out."""

import itertools

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from longtail.kernels.eagle import capped_shares, capped_shares_plain, learn_labels
from longtail.kernels.eagle_plain import learn_labels_plain


def make_problem(seed, overlap=False, n_groups=6, n_labels=5, n_features=9):
    rng = np.random.default_rng(seed)
    sizes = rng.integers(1, 14, size=n_groups)
    n = int(sizes.sum())
    X = np.where(rng.random((n, n_features)) < 0.6, rng.standard_normal((n, n_features)), 0)
    X[:, 0] += 0.3
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    G = np.zeros((n, n_groups))
    G[np.arange(n), np.repeat(np.arange(n_groups), sizes)] = 1
    if overlap:
        G[rng.random(G.shape) < 0.1] = 1
    Y = (rng.random((n_groups, n_labels)) < 0.5) * rng.integers(1, 4, size=(n_groups, n_labels))
    return sp.csr_array(X.astype(np.float32)), sp.csr_array(G), sp.csr_array(Y)


def arguments(X, G, Y, contrast, n_iter, top, threshold=0.0):
    by_group, by_label = sp.csc_array(G), sp.csc_array(Y)
    sums = sp.csr_array((G.T @ X).astype(np.float32))
    groups = by_label.indices.astype(np.int32)
    size = np.diff(by_group.indptr)[groups]
    counts = np.minimum(by_label.data, size)
    take = counts.astype(np.int32) if top else np.ones(groups.size, np.int32)
    start = (take / size if contrast else counts).astype(np.float32)
    weight = np.ones(groups.size, np.float32) if contrast or top else counts.astype(np.float32)
    total = np.asarray(X.T @ np.diff(G.indptr), dtype=np.float32)
    room = np.concatenate([[0], np.cumsum(np.minimum(size, take + 1))]).astype(np.int64)
    out = np.zeros(room[-1], np.int32), np.zeros(room[-1], np.float32), np.zeros(room[-1], np.float32)
    return (
        X.indptr.astype(np.int64), X.indices.astype(np.int32), X.data,
        sums.indptr.astype(np.int64), sums.indices.astype(np.int32), sums.data,
        by_group.indptr.astype(np.int64), by_group.indices.astype(np.int32),
        by_label.indptr.astype(np.int64), groups,
        take, start, weight, 0, Y.shape[1], n_iter, np.float32(0.1), contrast,
        total, np.asarray(X @ total, dtype=np.float32), 1.0, threshold, room, *out,
    )  # fmt: skip


def dense(vectors, n_features):
    return sp.csr_array((vectors[2], vectors[1], vectors[0]), shape=(len(vectors[0]) - 1, n_features)).toarray()


@settings(max_examples=50, deadline=None)
@given(st.integers(0, 10**6), st.booleans(), st.booleans(), st.booleans(), st.integers(0, 6))
def test_the_kernel_agrees_with_its_twin(seed, overlap, contrast, top, n_iter):
    X, G, Y = make_problem(seed, overlap)
    fast, slow = (arguments(X, G, Y, contrast, n_iter, top) for _ in range(2))
    found, expected = learn_labels(*fast), learn_labels_plain(*slow)
    close = np.abs(dense(found, X.shape[1]) - dense(expected, X.shape[1])).max(axis=1) < 1e-3
    assert close.all() or n_iter > 0  # two rows equally near may be told apart by the last digits, and then all differs
    assert close.mean() > 0.5
    for label in np.flatnonzero(close):
        at = slice(*fast[22][[fast[8][label], fast[8][label + 1]]])
        np.testing.assert_allclose(fast[24][at], slow[24][at], atol=2e-3)
        np.testing.assert_allclose(fast[25][at], slow[25][at], atol=2e-2)
        same = fast[23][at] == slow[23][at]
        assert np.allclose(fast[24][at][~same], slow[24][at][~same], atol=1e-4)


@settings(max_examples=100, deadline=None)
@given(st.lists(st.floats(-30, 30), min_size=1, max_size=20), st.integers(1, 25))
def test_shares_agree_and_add_up(scores, take):
    scores = np.array(scores)
    shares, plain = np.empty(scores.size), np.ones(scores.size)
    capped_shares(scores, take, shares)
    if take < scores.size:
        capped_shares_plain(scores, take, plain)
    np.testing.assert_allclose(shares, plain, atol=1e-6)
    assert shares.sum() == pytest.approx(min(take, scores.size), abs=1e-6)
    assert (np.diff(shares[np.argsort(scores)]) >= -1e-9).all()


def test_small_values_are_dropped_and_features_sorted():
    X, G, Y = make_problem(3)
    sizes, ids, values = learn_labels(*arguments(X, G, Y, True, 2, True, threshold=0.3))
    assert np.abs(values).min() >= 0.3
    for low, high in itertools.pairwise(sizes):
        assert (np.diff(ids[low:high]) > 0).all()
