"""The vector steps agree with their plain twins."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from numba import njit

from longtail.kernels import lanes
from longtail.kernels.lanes import LANES


def dot_lanes_plain(
    W: np.ndarray, ids: np.ndarray, values: np.ndarray, start: int, stop: int, base: int, out: np.ndarray
) -> None:
    out[:] = W[base] + (values[start:stop, None] * W[ids[start:stop]]).sum(axis=0, dtype=np.float32)


def axpy_lanes_plain(
    W: np.ndarray, ids: np.ndarray, values: np.ndarray, start: int, stop: int, base: int, bias: float, delta: np.ndarray
) -> None:
    W[ids[start:stop]] += values[start:stop, None] * delta  # ids are unique within a row
    W[base] += np.float32(bias) * delta


def score_lanes_plain(
    W: np.ndarray, ids: np.ndarray, values: np.ndarray, start: int, stop: int, base: int, scale: float, out: np.ndarray
) -> None:
    out[:] = W[base]
    for t in range(start, stop):
        out += values[t] * np.float32(scale) * W[ids[t]]


def sum_int8_lines_plain(
    block: np.ndarray, start: int, lines: np.ndarray, values: np.ndarray, n: int, width: int, out: np.ndarray
) -> None:
    out[:width] = 0
    for t in range(n):
        at = start + lines[t] * width
        out[:width] += values[t] * block[at : at + width].astype(np.float32)


def hinge_step_lanes_plain(
    dot: np.ndarray,  # IN      (16,)
    alpha: np.ndarray,  # IN/OUT  (n_rows, 16)
    row: int,
    positive: int,
    active: int,
    norm: float,
    diagonal: np.ndarray,  # IN      (2, 16), or (n_rows, 16) with d_row
    d_row: int,
    old_max: np.ndarray,  # IN      (16,)
    high: np.ndarray,  # IN/OUT  (16,)
    low: np.ndarray,  # IN/OUT  (16,)
    delta: np.ndarray,  # OUT     (16,)
) -> int:
    f = np.float32
    is_positive, is_active = ((bits >> np.arange(LANES)) & 1 == 1 for bits in (positive, active))
    D = diagonal[d_row] if d_row >= 0 else np.where(is_positive, diagonal[1], diagonal[0])
    y = np.where(is_positive, f(1), f(-1))
    a = alpha[row].copy()
    G = y * dot - f(1) + D * a
    at_zero = a <= 0
    PG = np.where(at_zero, np.minimum(G, f(0)), G)
    is_active &= ~(at_zero & (old_max < G))
    high[:] = np.where(is_active & (high < PG), PG, high)
    low[:] = np.where(is_active & (low > PG), PG, low)
    new = np.where(is_active, np.maximum(a - G / (f(norm) + D), f(0)), a).astype(f)
    alpha[row] = new
    delta[:] = y * (new - a)
    weights = 1 << np.arange(LANES)
    return int(weights[is_active].sum()) | int(weights[new != a].sum()) << 16


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
    dot_lanes_plain(W, ids, values, start, nnz, 50, want)
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
    axpy_lanes_plain(want, ids, values, 0, nnz, 50, 0.5, delta)
    np.testing.assert_allclose(got, want, atol=1e-5)


def floats(low, high, *shape):
    return arrays(np.float32, shape, elements=st.floats(low, high, width=32))


bits = st.integers(0, (1 << 16) - 1)


@given(
    floats(0, 3, 4, 16),
    floats(0.125, 3, 4, 16),
    floats(-3, 3, 16),
    floats(0, 3, 16),
    floats(-3, 3, 2, 16),
    bits,
    bits,
    st.integers(-1, 3),
)
@settings(max_examples=100, deadline=None)
def test_hinge_step_agrees_with_plain(alpha, diagonal, dot, old_max, extremes, positive, active, d_row):
    results = []
    for function in (step, hinge_step_lanes_plain):
        a, (h, lo), d = alpha.copy(), extremes.copy(), np.empty(16, np.float32)
        args = (dot, a, 2, positive, active, np.float32(1.5), diagonal, d_row, old_max, h, lo, d)
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
    score_lanes_plain(W, ids, values, 0, nnz, 50, 0.7, want)
    assert np.array_equal(got, want)


@given(st.integers(0, 2**32 - 1), st.sampled_from([16, 32, 48, 64, 112]), st.integers(0, 9))
@settings(max_examples=40, deadline=None)
def test_sum_int8_lines_equal_plain_to_the_last_bit(seed, width, n):
    rng = np.random.default_rng(seed)
    block = rng.integers(-127, 128, 5 + 11 * width).astype(np.int8)
    lines, values = rng.integers(0, 11, 9).astype(np.int32), rng.standard_normal(9).astype(np.float32)
    got, want = np.zeros(width, np.float32), np.zeros(width, np.float32)
    lanes.sum_int8_lines(block, 5, lines, values, n, width, got)
    sum_int8_lines_plain(block, 5, lines, values, n, width, want)
    assert np.array_equal(got, want)


@given(st.integers(0, 2**32 - 1), st.sampled_from([16, 48, 112]))
@settings(max_examples=20, deadline=None)
def test_add_int8_row_equals_plain_to_the_last_bit(seed, width):
    rng = np.random.default_rng(seed)
    block, out = rng.integers(-127, 128, width + 9).astype(np.int8), rng.standard_normal(width + 4).astype(np.float32)
    x, want = np.float32(rng.standard_normal()), out.copy()
    want[:width] += x * block[7 : 7 + width].astype(np.float32)
    lanes.add_int8_row(block, 7, x, width, out)
    assert np.array_equal(out, want)


@given(st.integers(0, 2**32 - 1), st.sampled_from([-np.inf, -1.0, 0.0, 9.0]))
@settings(max_examples=20, deadline=None)
def test_lanes_at_least_agree_with_numpy(seed, least):
    @njit
    def ask(values, start, least):
        bits = lanes.lanes_at_least(values, start, least)
        return bits, lanes.lowest_bit(bits) if bits else -1

    values = np.random.default_rng(seed).integers(-3, 3, 20).astype(np.float32)
    values[4] = np.nan
    bits, lowest = ask(values, 3, np.float32(least))
    good = values[3:19] >= np.float32(least)
    assert bits == sum(1 << int(lane) for lane in np.flatnonzero(good))
    assert lowest == (np.flatnonzero(good)[0] if good.any() else -1)
