"""The kernels behind audits agree with their plain twins."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from longtail.kernels.ball import largest_ball, largest_ball_plain
from longtail.kernels.chebyshev import ENOUGH, OPTIMAL, invert, invert_plain, set_vertex, set_vertex_plain
from longtail.kernels.margins import signed_margins, signed_margins_plain, worst_per_block, worst_per_block_plain

shapes = st.tuples(st.integers(1, 60), st.integers(1, 8), st.integers(0, 10**6))


def make(n, d, seed):
    rng = np.random.default_rng(seed)
    W = rng.standard_normal((n, d))
    W /= np.linalg.norm(W, axis=1, keepdims=True)
    offsets = 0.1 * rng.standard_normal(n) if seed % 2 else np.zeros(n)
    x = rng.uniform(-1, 1, d)
    signs = np.where(W @ x + offsets > 0, 1.0, -1.0)
    if seed % 3 == 0:
        signs = rng.choice([-1.0, 1.0], n)
    return W, np.ascontiguousarray(W.T), offsets, signs, x


@settings(max_examples=60)
@given(shapes, st.integers(1, 20), st.floats(-0.5, 0.5))
def test_scans_agree(shape, n_blocks, limit):
    _, Wt, offsets, signs, x = make(*shape)
    fast, slow = np.empty(shape[0]), np.empty(shape[0])
    assert signed_margins(Wt, offsets, signs, x, fast) == pytest.approx(
        signed_margins_plain(Wt, offsets, signs, x, slow), abs=1e-12
    )
    np.testing.assert_allclose(fast, slow, atol=1e-12)
    picked, picked_plain = np.full(n_blocks, -1), np.full(n_blocks, -1)
    assert worst_per_block(fast, limit, picked) == worst_per_block_plain(fast, limit, picked_plain)
    np.testing.assert_array_equal(picked, picked_plain)


def test_scans_longer_than_a_block():
    _, Wt, offsets, signs, x = make(3001, 7, 1)
    fast, slow = np.empty(3001), np.empty(3001)
    smallest = signed_margins(Wt, offsets, signs, x, fast)
    assert smallest == pytest.approx(signed_margins_plain(Wt, offsets, signs, x, slow))
    np.testing.assert_allclose(fast, slow, atol=1e-12)


@settings(max_examples=40)
@given(st.integers(1, 30), st.integers(0, 10**6))
def test_inverses_agree(m, seed):
    A = np.random.default_rng(seed).standard_normal((m, m)) + 3 * np.eye(m)
    fast, slow = np.empty((m, m)), np.empty((m, m))
    assert invert(A.copy(), fast) and invert_plain(A, slow)
    np.testing.assert_allclose(fast, slow, rtol=1e-6, atol=1e-8)
    if m > 1:
        A[0] = A[1]
        assert not invert(A.copy(), fast) and not invert_plain(A, slow)


@settings(max_examples=40)
@given(st.integers(1, 8), st.integers(0, 10**6))
def test_vertices_agree(d, seed):
    W, _, offsets, signs, _ = make(20, d, seed)
    rng = np.random.default_rng(seed)
    basis = np.concatenate([[rng.integers(20)], -1 - 2 * np.arange(d) - rng.integers(2, size=d)]).astype(np.int64)
    results = []
    for function in (set_vertex, set_vertex_plain):
        M, z, weights = np.empty((d + 1, d + 1)), np.empty(d + 1), np.empty(d + 1)
        assert function(W, offsets, signs, basis, M, z, weights)
        results.append((M, z, weights))
    for fast, slow in zip(*results):
        np.testing.assert_allclose(fast, slow, atol=1e-10)


@settings(max_examples=80)
@given(shapes)
def test_the_largest_balls_agree(shape):
    d = shape[1]
    W, Wt, offsets, signs, _ = make(*shape)
    results = []
    for function in (largest_ball, largest_ball_plain):
        x, basis, weights = np.empty(d), np.empty(d + 1, np.int64), np.empty(d + 1)
        status, r, smallest, _, _ = function(W, Wt, offsets, signs, 1e-12, np.inf, 5000, x, basis, weights)
        assert status == OPTIMAL
        assert smallest == pytest.approx(r, abs=1e-10) and np.abs(x).max() <= 1 + 1e-10
        rows = basis >= 0
        assert (weights >= 0).all() and weights[rows].sum() == pytest.approx(1)
        tight = signs[basis[rows]] * (W[basis[rows]] @ x + offsets[basis[rows]])
        np.testing.assert_allclose(tight, r, atol=1e-9)
        results.append(r)
    assert results[0] == pytest.approx(results[1], abs=1e-9)


def test_a_search_stops_when_it_has_enough():
    W, Wt, offsets, signs, _ = make(500, 6, 2)
    x, basis, weights = np.empty(6), np.empty(7, np.int64), np.empty(7)
    best = largest_ball(W, Wt, offsets, signs, 1e-13, np.inf, 5000, x, basis, weights)
    found = largest_ball(W, Wt, offsets, signs, 1e-13, best[1] / 100, 5000, x, basis, weights)
    assert found[0] == ENOUGH and found[3] <= best[3]
    assert (signs * (W @ x + offsets)).min() > best[1] / 100
