"""Every one of the 2^n sets of small layers: the audit agrees with brute force and with the theorems."""

from math import comb

import numpy as np
import pytest

from longtail import audit
from longtail.bottleneck.dft import dft_matrix


def all_sets(n):
    return ((np.arange(2**n)[:, None] >> np.arange(n)) & 1).astype(np.float32)


def reached_by_force(W, bias=None, n_points=400_000, seed=0):
    """Sets that random inputs give, and those around every vertex of the arrangement."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n_points, W.shape[1])) * (1 if bias is None else 30 * rng.random((n_points, 1)))
    scores = X @ W.T + (0 if bias is None else bias)
    return set(((scores > 0) @ (1 << np.arange(W.shape[0]))).tolist())


@pytest.mark.parametrize(("n", "d"), [(3, 2), (6, 3), (9, 2), (8, 4), (10, 3), (12, 3), (5, 5), (4, 6)])
def test_random_layers_reach_as_many_sets_as_the_theorem_says(n, d):
    W = np.random.default_rng(n * d).standard_normal((n, d))
    found = audit.argmaxable(W, all_sets(n))
    assert found.n_sets("undecided") == 0
    assert found.reachable.sum() == audit.capacity(n, d).sets
    masks = {int(sum(1 << int(i) for i in members)) for members, ok in zip(found.members, found.reachable) if ok}
    assert reached_by_force(W) <= masks


@pytest.mark.parametrize(("n", "d"), [(3, 1), (3, 2), (6, 3), (9, 2), (8, 4), (12, 2)])
def test_with_a_bias(n, d):
    rng = np.random.default_rng(n * d)
    W, bias = rng.standard_normal((n, d)), rng.standard_normal(n)
    found = audit.argmaxable(W, all_sets(n), bias=bias)
    assert found.n_sets("undecided") == 0
    assert found.reachable.sum() == audit.capacity(n, d, bias=True).sets
    masks = {int(sum(1 << int(i) for i in members)) for members, ok in zip(found.members, found.reachable) if ok}
    assert reached_by_force(W, bias) <= masks


@pytest.mark.parametrize(("n", "k"), [(5, 1), (7, 2), (9, 3), (12, 2), (11, 5)])
def test_dft_layers_reach_exactly_the_alternating_sets(n, k):
    Y = all_sets(n)
    changes = (Y[:, 1:] != Y[:, :-1]).sum(axis=1)
    found = audit.argmaxable(dft_matrix(n, k), Y)
    assert found.n_sets("undecided") == 0
    np.testing.assert_array_equal(found.reachable[found.set_of_row], changes <= 2 * k)
    assert found.reachable.sum() == 2 * sum(comb(n - 1, i) for i in range(2 * k + 1))


def test_whole_numbers_and_repeated_rows():
    """Degenerate layers: ties everywhere, so proofs need exact arithmetic."""
    W = np.array([[1, 0], [1, 0], [0, 1], [1, 1], [-1, -1], [2, 2.0]])
    found = audit.argmaxable(W, all_sets(6))
    assert found.n_sets("undecided") == 0
    masks = {int(sum(1 << int(i) for i in members)) for members, ok in zip(found.members, found.reachable) if ok}
    assert masks == reached_by_force(W)


def test_layers_of_lower_rank():
    rng = np.random.default_rng(0)
    W = np.zeros((7, 5))
    W[:, :3] = rng.integers(-3, 4, size=(7, 3))
    W[:, 3] = W[:, 0] + W[:, 1]
    found = audit.argmaxable(W, all_sets(7))
    assert found.n_sets("undecided") == 0
    masks = {int(sum(1 << int(i) for i in members)) for members, ok in zip(found.members, found.reachable) if ok}
    assert masks == reached_by_force(W)


@pytest.mark.parametrize(("n", "k"), [(7, 2), (9, 1), (10, 2)])
def test_dft_layers_with_a_bias_for_all_labels_reach_the_same_sets(n, k):
    """Column 0 is constant, so that a bias which all labels share only moves the inputs."""
    Y = all_sets(n)
    changes = (Y[:, 1:] != Y[:, :-1]).sum(axis=1)
    found = audit.argmaxable(dft_matrix(n, k), Y, bias=np.full(n, -0.5))
    assert found.n_sets("undecided") == 0
    np.testing.assert_array_equal(found.reachable[found.set_of_row], changes <= 2 * k)


@pytest.mark.parametrize(("n", "k"), [(9, 2), (11, 2)])
def test_dft_layers_with_any_bias_keep_their_guarantee(n, k):
    Y = all_sets(n)
    bias = np.random.default_rng(n).standard_normal(n)
    found = audit.argmaxable(dft_matrix(n, k), Y, bias=bias, box=1e6)
    assert found.n_sets("undecided") == 0
    small = Y.sum(axis=1) <= k
    assert found.reachable[found.set_of_row][small].all()
    assert found.reachable.sum() == audit.capacity(n, 2 * k + 1, bias=True).sets
