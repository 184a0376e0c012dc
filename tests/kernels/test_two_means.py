"""Balanced 2-means: every compiled step, and the whole, agree with their plain twins."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from longtail.kernels.row_subsets import round_values
from longtail.kernels.two_means import (
    add_rows,
    add_rows_plain,
    mark_upper,
    mark_upper_plain,
    project_rows,
    project_rows_plain,
    set_direction,
    set_direction_plain,
    split_rows,
    split_rows_plain,
)


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
    for kernel in (split_rows, split_rows_plain):
        direction, right = np.empty(n_features, np.float32), np.full(n, 9, np.uint8)
        kernel(*rows, first, second, max_iter, direction, right)
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
