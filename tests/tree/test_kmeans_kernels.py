"""Spherical k-means: the compiled steps agree with their plain twins."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from longtail.kernels.row_subsets import round_values
from longtail.tree.grow.kmeans_kernels import (
    LANES,
    cluster_rows,
    cluster_rows_stepwise,
    move_rows,
    nearest_centres,
    set_centres,
)


def nearest_centres_plain(
    indptr: np.ndarray,
    indices: np.ndarray,
    values: np.ndarray,
    W: np.ndarray,
    n_centres: int,
    start: int,
    stop: int,
    cluster: np.ndarray,
) -> None:
    centres = np.concatenate(list(W), axis=1)[:, :n_centres]
    for row in range(start, stop):
        at = slice(indptr[row], indptr[row + 1])
        scores = values[at] @ centres[indices[at]]
        if scores.max() > scores[cluster[row]]:
            cluster[row] = np.argmax(scores)


def move_rows_plain(
    indptr: np.ndarray, indices: np.ndarray, values: np.ndarray, old: np.ndarray, new: np.ndarray, sums: np.ndarray
) -> int:
    for row in np.flatnonzero(old != new):
        at = slice(indptr[row], indptr[row + 1])
        if old[row] >= 0:
            np.subtract.at(sums, (old[row] // LANES, indices[at], old[row] % LANES), values[at])
        np.add.at(sums, (new[row] // LANES, indices[at], new[row] % LANES), values[at])
    return int(np.count_nonzero(old != new))


def set_centres_plain(sums: np.ndarray, W: np.ndarray) -> None:
    lengths = np.sqrt(np.add.accumulate(sums * sums, axis=1)[:, -1:])
    W[:, :-1] = np.divide(sums, lengths, out=np.zeros_like(sums), where=lengths > 0)
    W[:, -1] = 0


def make_rows(n, n_features, seed):
    rng = np.random.default_rng(seed)
    dense = np.where(rng.random((n, n_features)) < 0.5, rng.standard_normal((n, n_features)), 0)
    dense[:, 0] += 0.1
    dense /= np.linalg.norm(dense, axis=1, keepdims=True)
    indptr = np.concatenate([[0], np.cumsum((dense != 0).sum(axis=1))]).astype(np.int64)
    return dense, (indptr, np.nonzero(dense)[1].astype(np.int32), round_values(dense[dense != 0]))


shapes = st.tuples(st.integers(2, 60), st.integers(2, 12), st.integers(0, 10**6))


@settings(max_examples=100, deadline=None)
@given(shapes, st.integers(2, 40))
def test_every_step_agrees(shape, k):
    n, n_features, seed = shape
    _, rows = make_rows(*shape)
    rng = np.random.default_rng(seed + 1)
    groups = -(-k // LANES)
    old, new = rng.integers(-1, k, size=n).astype(np.int32), rng.integers(0, k, size=n).astype(np.int32)
    sums, sums_plain = np.zeros((2, groups, n_features, LANES))
    assert move_rows(*rows, old, new, sums) == move_rows_plain(*rows, old, new, sums_plain)
    np.testing.assert_array_equal(sums, sums_plain)

    W, W_plain = np.full((2, groups, n_features + 1, LANES), 9, np.float32)
    set_centres(sums, W)
    set_centres_plain(sums, W_plain)
    np.testing.assert_allclose(W, W_plain, atol=1e-6)

    fast, slow = new.copy(), new.copy()
    nearest_centres(*rows, W, k, 0, n, fast)
    nearest_centres_plain(*rows, W, k, 0, n, slow)
    centres = np.concatenate(list(W), axis=1)[:, :k]
    for row in np.flatnonzero(fast != slow):  # only where two centres are equally near but for the last digits
        at = slice(rows[0][row], rows[0][row + 1])
        scores = rows[2][at] @ centres[rows[1][at]]
        assert scores[fast[row]] == pytest.approx(scores[slow[row]], abs=1e-5)


@settings(max_examples=40, deadline=None)
@given(st.integers(2, 20), st.integers(0, 10**6))
def test_separate_groups_are_found_by_both(k, seed):
    rng = np.random.default_rng(seed)
    group = np.concatenate([np.arange(k), rng.integers(k, size=4 * k)])
    dense = np.zeros((group.size, 3 * k))
    for row, g in zip(dense, group, strict=True):
        row[3 * g : 3 * g + 3] = rng.random(3) + 0.2
    dense /= np.linalg.norm(dense, axis=1, keepdims=True)
    indptr, indices = np.arange(group.size + 1, dtype=np.int64) * 3, np.nonzero(dense)[1].astype(np.int32)
    rows = indptr, indices, round_values(dense[dense > 0])
    found = []
    plain = (nearest_centres_plain, move_rows_plain, set_centres_plain)
    for kernel, steps in ((cluster_rows, ()), (cluster_rows_stepwise, (plain,))):
        cluster = np.empty(group.size, np.int32)
        W = np.empty((-(-k // LANES), 3 * k + 1, LANES), np.float32)
        kernel(*rows, np.arange(k, dtype=np.int32), 20, W, cluster, *steps)
        found.append(cluster)
    np.testing.assert_array_equal(found[0], found[1])
    np.testing.assert_array_equal(found[0], group)


def test_rows_that_meet_no_centre_are_spread():
    indptr = np.arange(9, dtype=np.int64)
    rows = indptr, np.array([0, 1, 2, 2, 2, 2, 2, 2], np.int32), np.ones(8, np.float32)
    cluster = np.empty(8, np.int32)
    cluster_rows(*rows, np.array([0, 1], np.int32), 1, np.empty((1, 4, LANES), np.float32), cluster)
    assert np.bincount(cluster).tolist() == [4, 4]
