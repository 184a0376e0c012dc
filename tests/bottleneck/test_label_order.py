"""Orders of labels on the circle: permutations that put together what occurs together."""

import numpy as np
import pytest
import scipy.sparse as sp

from longtail import audit
from longtail.bottleneck.dft import cyclic_runs, dft_matrix
from longtail.bottleneck.label_order import ORDER_METHODS, circle_order, count_runs
from longtail.errors import ParameterError


def chain(n, rows, seed, shuffle=True):
    """Return sets of three labels that follow one another on a hidden circle."""
    rng = np.random.default_rng(seed)
    hidden = rng.permutation(n) if shuffle else np.arange(n)
    ids = hidden[(rng.integers(n, size=rows)[:, None] + np.arange(3)) % n].ravel()
    return sp.csr_array((np.ones(ids.size), ids, np.arange(rows + 1) * 3), shape=(rows, n))


@pytest.mark.parametrize("method", ORDER_METHODS)
def test_a_hidden_circle_is_found(method):
    Y = chain(200, 3000, seed=1)
    order = circle_order(Y, method)
    assert order.dtype == np.int32 and sorted(order.tolist()) == list(range(200))
    assert count_runs(Y).mean() > 2.9
    assert count_runs(Y, order).mean() < 1.05
    assert np.array_equal(order, circle_order(Y, method))


@pytest.mark.parametrize("method", ORDER_METHODS)
def test_labels_alone_come_last_and_any_shape_works(method):
    Y = np.zeros((4, 7), dtype=int)
    Y[0, [1, 5]] = Y[1, [5, 3]] = Y[2, [2]] = 1
    order = circle_order(Y, method)
    assert sorted(order[[1, 3, 5]].tolist()) == [0, 1, 2] and order[[0, 2, 4, 6]].tolist() == [3, 4, 5, 6]
    assert abs(int(order[5]) - int(order[1])) == 1
    for empty in (np.zeros((3, 5)), np.zeros((1, 1)), np.eye(4), np.ones((2, 3))):
        assert sorted(circle_order(empty, method).tolist()) == list(range(empty.shape[1]))


@pytest.mark.parametrize("method", ORDER_METHODS)
def test_parts_that_never_meet(method):
    groups = chain(20, 200, 0), chain(9, 100, 1), np.ones((2, 2)), np.zeros((1, 3))
    Y = sp.block_diag([sp.csr_array(group) for group in groups], format="csr")
    order = circle_order(Y, method)
    assert sorted(order.tolist()) == list(range(Y.shape[1])) and order[-3:].tolist() == [31, 32, 33]
    assert count_runs(Y, order).sum() < 1.2 * np.count_nonzero(np.diff(Y.indptr))


def test_the_callers_matrix_stays_and_weights_do_not_count():
    Y = chain(30, 300, 2)
    heavy = Y.copy()
    heavy.data = np.linspace(0.1, 9, heavy.nnz)
    before = [a.copy() for a in (heavy.data, heavy.indices, heavy.indptr)]
    assert np.array_equal(circle_order(Y), circle_order(heavy))
    for a, b in zip(before, (heavy.data, heavy.indices, heavy.indptr), strict=True):
        np.testing.assert_array_equal(a, b)


def test_runs_are_counted_as_on_the_circle():
    rng = np.random.default_rng(0)
    Y = (rng.random((60, 9)) < rng.random((60, 1))).astype(int)
    Y[0], Y[1] = 0, 1
    order = rng.permutation(9)
    wanted = [len(cyclic_runs(np.sort(order[np.flatnonzero(row)]), 9)) for row in Y]
    assert count_runs(Y, order).tolist() == wanted
    assert count_runs(np.ones((2, 1))).tolist() == [1, 1]


def test_ordering_enlarges_the_regions_of_real_sets():
    Y = chain(120, 2000, seed=3)
    order, few = circle_order(Y), Y[:40]
    radius = [np.median(audit.argmaxable(dft_matrix(120, 5, o), few).radius) for o in (None, order)]
    assert radius[1] > 5 * radius[0]


def test_many_labels():
    rng = np.random.default_rng(0)
    ids = (rng.integers(100_000, size=(60_000, 1)) + rng.integers(0, 40, size=(60_000, 5))) % 100_000
    Y = sp.csr_array((np.ones(ids.size), ids.ravel(), np.arange(60_001) * 5), shape=(60_000, 100_000))
    order = circle_order(Y)
    assert np.array_equal(np.sort(order), np.arange(100_000))
    assert count_runs(Y, order).mean() < 0.75 * count_runs(Y).mean()


def test_a_wrong_method():
    with pytest.raises(ParameterError, match=r"method must be one of .*; got 'gredy'. Did you mean 'greedy'\?"):
        circle_order(np.eye(3), "gredy")
