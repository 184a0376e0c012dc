"""The vector steps agree with their plain twins."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from numba import njit

from longtail.kernels import lanes


@njit
def dot(W, ids, values, start, stop, base, out):
    lanes.dot_lanes(W, ids, values, start, stop, base, out)


@njit
def axpy(W, ids, values, start, stop, base, bias, delta):
    lanes.axpy_lanes(W, ids, values, start, stop, base, bias, delta)


@njit
def step(dot, alpha, row, positive, active, norm, diagonal, d_row, old_max, high, low, delta):
    return lanes.hinge_step_lanes(dot, alpha, row, positive, active, norm, diagonal, d_row, old_max, high, low, delta)


def random_row(rng, n_features, nnz):
    ids = rng.permutation(n_features)[:nnz].astype(np.int32)
    return ids, rng.standard_normal(nnz).astype(np.float32)


@given(st.integers(0, 2**32 - 1), st.integers(0, 40))
@settings(max_examples=60, deadline=None)
def test_dot_agrees_with_plain(seed, nnz):
    rng = np.random.default_rng(seed)
    W = rng.standard_normal((51, 16)).astype(np.float32)
    ids, values = random_row(rng, 50, nnz)
    start = int(rng.integers(0, nnz + 1))
    got, want = np.empty(16, np.float32), np.empty(16, np.float32)
    dot(W, ids, values, start, nnz, 50, got)
    lanes.dot_lanes_plain(W, ids, values, start, nnz, 50, want)
    np.testing.assert_allclose(got, want, atol=1e-4)


@given(st.integers(0, 2**32 - 1), st.integers(0, 40))
@settings(max_examples=60, deadline=None)
def test_axpy_agrees_with_plain(seed, nnz):
    rng = np.random.default_rng(seed)
    got = rng.standard_normal((51, 16)).astype(np.float32)
    want = got.copy()
    ids, values = random_row(rng, 50, nnz)
    delta = rng.standard_normal(16).astype(np.float32)
    axpy(got, ids, values, 0, nnz, 50, np.float32(0.5), delta)
    lanes.axpy_lanes_plain(want, ids, values, 0, nnz, 50, 0.5, delta)
    np.testing.assert_allclose(got, want, atol=1e-5)


@given(st.integers(0, 2**32 - 1))
@settings(max_examples=100, deadline=None)
def test_hinge_step_agrees_with_plain(seed):
    rng = np.random.default_rng(seed)

    def vector():
        return rng.standard_normal(16).astype(np.float32)

    alpha = np.maximum(rng.standard_normal((4, 16)), 0).astype(np.float32)
    diagonal = np.abs(rng.standard_normal((4, 16))).astype(np.float32) + np.float32(0.1)
    high, low, delta = vector(), vector(), vector()
    fixed = (vector() * 2, np.abs(vector()))
    positive, active = (int(v) for v in rng.integers(0, 1 << 16, 2))
    d_row = int(rng.integers(-1, 4))
    results = []
    for function in (step, lanes.hinge_step_lanes_plain):
        a, h, lo, d = alpha.copy(), high.copy(), low.copy(), delta.copy()
        args = (fixed[0], a, 2, positive, active, np.float32(1.5), diagonal, d_row, fixed[1], h, lo, d)
        results.append((function(*args), a, h, lo, d))
    assert results[0][0] == results[1][0]
    for got, want in zip(results[0][1:], results[1][1:], strict=True):
        np.testing.assert_allclose(got, want, atol=1e-5)


def test_lanes_reach_features_above_65536():
    n = 70_000
    W = np.zeros((n + 1, 16), np.float32)
    ids, values = np.array([n - 1, 66_000], np.int32), np.array([2.0, 3.0], np.float32)
    delta = np.ones(16, np.float32)
    axpy(W, ids, values, 0, 2, n, np.float32(0), delta)
    out = np.empty(16, np.float32)
    dot(W, ids, values, 0, 2, n, out)
    assert np.flatnonzero(W[:, 0]).tolist() == [66_000, n - 1]
    assert out.tolist() == [13.0] * 16


@njit
def score(W, ids, values, start, stop, base, scale, out):
    lanes.score_lanes(W, ids, values, start, stop, base, scale, out)


@given(st.integers(0, 2**32 - 1), st.integers(0, 40))
@settings(max_examples=40, deadline=None)
def test_score_equals_plain_to_the_last_bit(seed, nnz):
    rng = np.random.default_rng(seed)
    W = rng.standard_normal((51, 32)).astype(np.float32)
    ids, values = random_row(rng, 50, nnz)
    got, want = np.empty(32, np.float32), np.empty(32, np.float32)
    score(W, ids, values, 0, nnz, 50, np.float32(0.7), got)
    lanes.score_lanes_plain(W, ids, values, 0, nnz, 50, 0.7, want)
    assert np.array_equal(got, want)
