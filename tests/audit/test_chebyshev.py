"""The kernels behind audits agree with their plain twins."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from plain_simplex import (
    add_candidates_plain,
    exchange_constraint_plain,
    find_centre_plain,
    invert_plain,
    prune_candidates_plain,
    set_vertex_plain,
    signed_margins_plain,
    slack_of_tight_plain,
    solve_candidates_plain,
    start_basis_plain,
    worst_per_block_plain,
)

from longtail.audit.chebyshev_centre import (
    add_candidates,
    find_centre,
    prune_candidates,
    signed_margins,
    slack_of_tight,
    start_basis,
    worst_per_block,
)
from longtail.audit.dual_simplex import ENOUGH, OPTIMAL, exchange_constraint, invert, set_vertex, solve_candidates

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


@settings(max_examples=60)
@given(shapes)
def test_starts_agree(shape):
    W, _, offsets, signs, _ = make(*shape)
    d = shape[1]
    bases = []
    for function in (start_basis, start_basis_plain):
        basis = np.empty(d + 1, np.int64)
        function(W, signs, basis)
        bases.append(basis)
    np.testing.assert_array_equal(*bases)
    z = np.random.default_rng(shape[2]).uniform(-2, 2, d + 1)
    assert slack_of_tight(W, offsets, signs, bases[0], z) == pytest.approx(
        slack_of_tight_plain(W, offsets, signs, bases[0], z), abs=1e-12
    )


@settings(max_examples=60)
@given(shapes, st.floats(-0.5, 0.5), st.integers(0, 20))
def test_candidates_come_and_go_alike(shape, r, most):
    n, d, seed = shape
    W, _, offsets, signs, x = make(*shape)
    rng = np.random.default_rng(seed)
    margins = signs * (W @ x + offsets)
    first, second = rng.integers(n, size=rng.integers(n + 1)), rng.integers(n, size=rng.integers(n + 1))
    basis = np.concatenate([rng.integers(n, size=2), -1 - np.arange(d)])
    results = []
    for add, keep in ((add_candidates, prune_candidates), (add_candidates_plain, prune_candidates_plain)):
        C, c_offsets, ids = np.zeros((d, n)), np.zeros(n), np.full(n, -9)
        listed = np.zeros(n, bool)
        counts = [add(W, offsets, signs, first, C, c_offsets, ids, 0, listed)]
        counts.append(keep(C, c_offsets, ids, counts[-1], basis, margins, r, listed, most))
        counts.append(add(W, offsets, signs, second, C, c_offsets, ids, counts[-1], listed))
        results.append((counts, ids[: counts[-1]], c_offsets[: counts[-1]], C[:, : counts[-1]], listed))
    for fast, slow in zip(*results):
        np.testing.assert_array_equal(fast, slow)


@settings(max_examples=60)
@given(shapes)
def test_exchanges_agree(shape):
    """From the first vertex, one exchange and then all of them: the same tight constraints, vertex and multipliers."""
    n, d, _ = shape
    W, _, offsets, signs, _ = make(*shape)
    C, c_offsets, ids = np.ascontiguousarray((signs[:, None] * W).T), signs * offsets, np.arange(n)
    for steps in (1, 400):
        results = []
        for solve in (solve_candidates, solve_candidates_plain):
            basis = np.empty(d + 1, np.int64)
            start_basis_plain(W, signs, basis)
            M, z, weights = np.empty((d + 1, d + 1)), np.empty(d + 1), np.empty(d + 1)
            assert set_vertex_plain(W, offsets, signs, basis, M, z, weights)
            done = solve(C, c_offsets, ids, basis, M, z, weights, 1e-12, steps)
            results.append((done, z, weights, M))
        if results[0][0] == results[1][0]:  # ties between exchanges may be broken either way
            np.testing.assert_allclose(results[0][1][-1], results[1][1][-1], atol=1e-8)
        if steps > 1:
            assert 0 <= results[0][0] < steps and 0 <= results[1][0] < steps
            np.testing.assert_allclose(results[0][1][-1], results[1][1][-1], atol=1e-8)


@settings(max_examples=60)
@given(st.integers(1, 6), st.integers(0, 10**6))
def test_one_exchange_agrees(d, seed):
    rng = np.random.default_rng(seed)
    W, _, offsets, signs, _ = make(12, d, seed)
    basis = np.empty(d + 1, np.int64)
    start_basis_plain(W, signs, basis)
    M, z, weights = np.empty((d + 1, d + 1)), np.empty(d + 1), np.empty(d + 1)
    set_vertex_plain(W, offsets, signs, basis, M, z, weights)
    place = np.arange(1, d + 1)
    entering = next(i for i in range(12) if i != basis[0])
    alpha = np.append(-signs[entering] * W[entering], 1.0) @ M
    worst = float(rng.uniform(0.1, 3))
    results = []
    for function in (exchange_constraint, exchange_constraint_plain):
        state = [a.copy() for a in (basis, M, z, weights, place, alpha)]
        results.append((function(*state, entering, worst, 1e-12), *state[:5]))
    for fast, slow in zip(*results):
        np.testing.assert_allclose(fast, slow, atol=1e-10)


@settings(max_examples=80)
@given(shapes)
def test_the_centres_agree(shape):
    d = shape[1]
    W, Wt, offsets, signs, _ = make(*shape)
    results = []
    for function in (find_centre, find_centre_plain):
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
    best = find_centre(W, Wt, offsets, signs, 1e-13, np.inf, 5000, x, basis, weights)
    found = find_centre(W, Wt, offsets, signs, 1e-13, best[1] / 100, 5000, x, basis, weights)
    assert found[0] == ENOUGH and found[3] <= best[3]
    assert (signs * (W @ x + offsets)).min() > best[1] / 100
