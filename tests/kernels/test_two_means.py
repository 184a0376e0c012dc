"""Balanced 2-means: every compiled step, and the whole, agree with their plain twins."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from longtail.kernels.row_subsets import round_values
from longtail.kernels.two_means import (
    add_rows,
    mark_upper,
    project_rows,
    set_direction,
    split_rows,
    split_rows_stepwise,
)


def project_rows_plain(
    indptr: np.ndarray,
    indices: np.ndarray,
    values: np.ndarray,
    direction: np.ndarray,
    start: int,
    stop: int,
    out: np.ndarray,
) -> None:
    for row in range(start, stop):
        at = slice(indptr[row], indptr[row + 1])
        terms = values[at] * direction[indices[at]]
        fours = terms[: terms.size // 4 * 4].reshape(-1, 4)
        sums = np.zeros(4, dtype=np.float32)
        for four in fours:
            sums += four
        for term in terms[fours.size :]:
            sums[0] += term
        out[row] = (sums[0] + sums[1]) + (sums[2] + sums[3])


def mark_upper_plain(scores: np.ndarray, n_low: int, upper: np.ndarray) -> None:
    upper[:] = 1
    upper[np.argsort(scores, kind="stable")[:n_low]] = 0


def add_rows_plain(
    indptr: np.ndarray, indices: np.ndarray, values: np.ndarray, old: np.ndarray, new: np.ndarray, sums: np.ndarray
) -> int:
    for row in np.flatnonzero(old != new):
        at = slice(indptr[row], indptr[row + 1])
        np.add.at(sums, indices[at], values[at] if old[row] else -values[at])
    return int(np.count_nonzero(old != new))


def set_direction_plain(total: np.ndarray, left: np.ndarray, direction: np.ndarray) -> None:
    right = total - left
    lengths = [np.sqrt(np.add.accumulate(side * side)[-1]) if side.size else 0.0 for side in (right, left)]
    right_scale, left_scale = (1 / length if length > 0 else 0.0 for length in lengths)
    direction[:] = right * right_scale - left * left_scale


def make_rows(n, n_features, density, seed):
    """Rows of unit length, some of them equal, some with negative values."""
    rng = np.random.default_rng(seed)
    kept = rng.random((n, n_features)) < density
    kept[np.arange(n), rng.integers(n_features, size=n)] = True
    dense = np.where(kept, rng.standard_normal((n, n_features)), 0)
    dense[rng.integers(n, size=n // 3)] = dense[0]
    dense /= np.linalg.norm(dense, axis=1, keepdims=True)
    indptr = np.concatenate([[0], np.cumsum((dense != 0).sum(axis=1))]).astype(np.int64)
    return indptr, np.nonzero(dense)[1].astype(np.int32), round_values(dense[dense != 0])


shapes = st.tuples(st.integers(2, 40), st.integers(1, 12), st.floats(0.1, 1.0), st.integers(0, 10**6))


@settings(max_examples=100, deadline=None)
@given(shapes, st.integers(1, 20))
def test_the_whole_split_agrees(shape, max_iter):
    rows = make_rows(*shape)
    n, n_features = shape[0], shape[1]
    first, second = np.random.default_rng(shape[3]).choice(n, size=2, replace=False).tolist()
    results = []
    plain = (project_rows_plain, mark_upper_plain, add_rows_plain, set_direction_plain)
    for kernel, steps in ((split_rows, ()), (split_rows_stepwise, (plain,))):
        direction, right = np.empty(n_features, np.float32), np.full(n, 9, np.uint8)
        kernel(*rows, first, second, max_iter, direction, right, *steps)
        results.append((direction, right))
    np.testing.assert_array_equal(results[0][0], results[1][0])
    np.testing.assert_array_equal(results[0][1], results[1][1])
    assert results[0][1].sum() == n // 2


@settings(max_examples=100, deadline=None)
@given(shapes)
def test_every_step_agrees(shape):
    rows = make_rows(*shape)
    rng = np.random.default_rng(shape[3] + 1)
    n, n_features = shape[0], shape[1]
    direction = rng.standard_normal(n_features).astype(np.float32)
    fast, slow = np.zeros(n, np.float32), np.zeros(n, np.float32)
    project_rows(*rows, direction, 1, n, fast)
    project_rows_plain(*rows, direction, 1, n, slow)
    np.testing.assert_array_equal(fast, slow)

    old, new = rng.integers(2, size=(2, n)).astype(np.uint8)
    total = np.bincount(rows[1], rows[2], minlength=n_features)
    left, left_plain = np.zeros(n_features), np.zeros(n_features)
    assert add_rows(*rows, old, new, left) == add_rows_plain(*rows, old, new, left_plain)
    np.testing.assert_array_equal(left, left_plain)

    direction_plain = direction.copy()
    set_direction(total, left, direction)
    set_direction_plain(total, left, direction_plain)
    np.testing.assert_array_equal(direction, direction_plain)


@settings(max_examples=200, deadline=None)
@given(
    st.lists(st.floats(-2, 2, width=32) | st.sampled_from([0.0, -0.0, 1.0, 1e-30, -1e-30]), min_size=1, max_size=60),
    st.floats(0, 1),
)
def test_marking_the_upper_scores_agrees_with_sorting(scores, share):
    scores = np.array(scores, np.float32)
    n_low = round(share * scores.size)
    fast, slow = np.full(scores.size, 9, np.uint8), np.full(scores.size, 9, np.uint8)
    mark_upper(scores, n_low, fast)
    mark_upper_plain(scores, n_low, slow)
    np.testing.assert_array_equal(fast, slow)


def test_marking_many_scores():
    scores = np.random.default_rng(0).standard_normal(100_000).astype(np.float32)
    scores[::3] = 0
    fast, slow = np.empty((2, scores.size), np.uint8)
    mark_upper(scores, 50_000, fast)
    mark_upper_plain(scores, 50_000, slow)
    np.testing.assert_array_equal(fast, slow)


def test_two_groups_are_told_apart():
    rng = np.random.default_rng(3)
    group = rng.permutation(np.repeat([0, 1], 50))
    indices = np.concatenate([np.sort(rng.choice(20, 5, replace=False)) + 20 * g for g in group]).astype(np.int32)
    values = np.full(indices.size, 0.4472136, np.float32)
    right = np.empty(100, np.uint8)
    split_rows(np.arange(101) * 5, indices, values, 0, 1, 20, np.empty(40, np.float32), right)
    assert (right == group).all() or (right != group).all()
