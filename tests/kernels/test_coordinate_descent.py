"""The solvers reach the optimum that scikit-learn's liblinear reaches, for every lane at once."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.linear_model import LogisticRegression
from sklearn.svm import LinearSVC

from longtail.kernels.coordinate_descent import EVERY_ROW, hinge_lanes, logistic_lanes


def problem(n=300, d=40, n_lanes=16, seed=0):
    rng = np.random.default_rng(seed)
    X = sp.random_array((n, d), density=0.3, rng=rng, dtype=np.float32).tocsr()
    truth = rng.standard_normal((d, n_lanes))
    Y = X @ truth + 0.3 * rng.standard_normal((n, n_lanes)) > 0.4
    bits = (Y * (1 << np.arange(n_lanes))).sum(axis=1).astype(np.uint16)
    return X, Y, bits


def solve(X, bits, n_lanes, C, function=hinge_lanes, weight=1.0, tolerance=1e-4, bias=1.0, allowed=EVERY_ROW):
    norms = (X.multiply(X).sum(axis=1) + bias * bias).astype(np.float32)
    W = np.zeros((X.shape[1] + 1, 16), np.float32)
    costs = np.array([[C], [C * weight]], np.float32)
    costs = np.repeat(0.5 / costs if function is hinge_lanes else costs, 16, axis=1)
    rows = (X.indptr.astype(np.int64), X.indices.astype(np.int32), X.data, norms, bits)
    if function is hinge_lanes:
        epochs = hinge_lanes(*rows, allowed, n_lanes, bias, costs, False, tolerance, 2000, 1, W)
    else:
        epochs = logistic_lanes(*rows, n_lanes, bias, costs, tolerance, 2000, 1, W)
    return W, epochs


@pytest.mark.parametrize("n_lanes", [1, 3, 16])
@pytest.mark.parametrize("weight", [1.0, 4.0])
def test_squared_hinge_equals_liblinear(n_lanes, weight):
    X, Y, bits = problem(n_lanes=n_lanes)
    W, epochs = solve(X, bits, n_lanes, C=2.0, weight=weight)
    assert (epochs[:n_lanes] < 2000).all() and not W[:, n_lanes:].any()
    for lane in range(n_lanes):
        reference = LinearSVC(C=2.0, tol=1e-8, max_iter=100_000, dual=True, class_weight={1: weight}, random_state=0)
        reference.fit(sp.csr_matrix(X), Y[:, lane].astype(int))
        np.testing.assert_allclose(W[:-1, lane], reference.coef_[0], atol=2e-3)
        np.testing.assert_allclose(W[-1, lane], reference.intercept_[0], atol=2e-3)


@pytest.mark.parametrize(("C", "weight"), [(5.0, 1.0), (5.0, 3.0), (100.0, 1.0)])
def test_logistic_equals_liblinear(C, weight):
    X, Y, bits = problem(n_lanes=4)
    W, epochs = solve(X, bits, 4, C=C, function=logistic_lanes, weight=weight)
    assert (epochs[:4] < 2000).all()
    for lane in range(4):
        reference = LogisticRegression(C=C, tol=1e-8, max_iter=10_000, solver="liblinear", class_weight={1: weight})
        reference.fit(sp.csr_matrix(X), Y[:, lane].astype(int))
        np.testing.assert_allclose(W[:-1, lane], reference.coef_[0], rtol=5e-3, atol=5e-3)
        np.testing.assert_allclose(W[-1, lane], reference.intercept_[0], rtol=5e-3, atol=5e-3)


def test_a_lane_does_not_depend_on_its_neighbours():
    X, _, bits = problem(n_lanes=16)
    together, _ = solve(X, bits, 16, C=1.0, tolerance=1e-5)
    for lane in (0, 7, 15):
        alone, _ = solve(X, (bits >> lane & 1).astype(np.uint16), 1, C=1.0, tolerance=1e-5)
        np.testing.assert_allclose(alone[:, 0], together[:, lane], atol=1e-3)


def test_costs_per_row_equal_costs_per_class():
    X, Y, bits = problem(n_lanes=16)
    norms = (X.multiply(X).sum(axis=1) + 1).astype(np.float32)
    per_row = np.where(Y, np.float32(0.5 / 3), np.float32(0.5)).astype(np.float32)
    per_class = np.repeat(np.array([[0.5], [0.5 / 3]], np.float32), 16, axis=1)
    found = []
    for diagonal, flag in ((per_row, True), (per_class, False)):
        W = np.zeros((X.shape[1] + 1, 16), np.float32)
        rows = (X.indptr.astype(np.int64), X.indices.astype(np.int32), X.data, norms, bits)
        hinge_lanes(*rows, EVERY_ROW, 16, 1.0, diagonal, flag, 1e-4, 2000, 1, W)
        found.append(W)
    assert np.array_equal(*found)


def test_a_lane_that_runs_out_of_passes_says_so():
    X, _, bits = problem(n_lanes=2)
    norms = (X.multiply(X).sum(axis=1) + 1).astype(np.float32)
    W = np.zeros((X.shape[1] + 1, 16), np.float32)
    costs = np.full((2, 16), 0.005, np.float32)
    rows = (X.indptr.astype(np.int64), X.indices.astype(np.int32), X.data, norms, bits, EVERY_ROW, 2, 1.0, costs, False)
    assert hinge_lanes(*rows, 1e-6, 3, 1, W)[:2].tolist() == [3, 3]


def test_empty_rows_and_no_bias():
    X = sp.csr_array(np.array([[1, 0], [0, 0], [0, 1]], np.float32))
    W, _ = solve(X + 0 * X, np.array([1, 0, 0], np.uint16), 1, C=1.0, bias=0.0)
    assert np.isfinite(W).all() and W[0, 0] > 0 > W[1, 0] and W[-1, 0] == 0


def test_rows_that_do_not_count_in_a_lane_might_as_well_not_be_there():
    X, _, bits = problem(n_lanes=2)
    outside = np.arange(X.shape[0]) % 3 == 0
    allowed = np.where(outside, 0b01, 0b11).astype(np.uint16)  # lane 1 sees two thirds of the rows
    both, _ = solve(X, bits, 2, C=1.0, tolerance=1e-5, allowed=allowed)
    alone, _ = solve(X[~outside], (bits[~outside] >> 1).astype(np.uint16), 1, C=1.0, tolerance=1e-5)
    np.testing.assert_allclose(both[:, 1], alone[:, 0], atol=1e-3)
