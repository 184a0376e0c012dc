"""Label vectors: formulas against loops written here, on sparse and dense rows."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from longtail.errors import DataError, ParameterError
from longtail.text import TfidfFeatures, combine, hstack_rows, label_text_vectors, pifa, unit_rows


def matrix(rows: int, columns: int, seed: int, density: float = 0.4) -> np.ndarray:
    rng = np.random.default_rng(seed)
    return (rng.random((rows, columns)) * (rng.random((rows, columns)) < density)).astype(np.float32)


def pifa_by_hand(X: np.ndarray, Y: np.ndarray) -> np.ndarray:
    Z = np.zeros((Y.shape[1], X.shape[1]))
    for label in range(Y.shape[1]):
        for row in range(X.shape[0]):
            if Y[row, label]:
                Z[label] += X[row] * Y[row, label] / np.sqrt(np.sum(Y[row].astype(np.float64) ** 2))
        length = np.sqrt(np.sum(Z[label] ** 2))
        if length:
            Z[label] /= length
    return Z


@st.composite
def rows_and_labels(draw):
    n_rows = draw(st.integers(1, 8))
    value = st.just(0.0) | st.floats(0.125, 8, width=32)
    return tuple(draw(arrays(np.float32, (n_rows, draw(st.integers(1, 6))), elements=value)) for _ in range(2))


@given(rows_and_labels())
def test_pifa_agrees_with_a_loop(pair):
    X, Y = pair
    wanted = pifa_by_hand(X, Y)
    np.testing.assert_allclose(pifa(X, Y), wanted, atol=1e-6)
    Z = pifa(sp.csr_matrix(X), sp.csr_array(Y))
    assert sp.issparse(Z)
    assert Z.indices.dtype == np.int32
    assert Z.indptr.dtype == np.int32
    assert Z.has_sorted_indices
    np.testing.assert_allclose(Z.toarray(), wanted, atol=1e-6)


def test_pifa_leaves_its_inputs_alone_and_refuses_other_lengths():
    X, Y = sp.csr_matrix(matrix(5, 4, 0)), sp.csr_matrix(matrix(5, 3, 1))
    before = X.toarray(), Y.toarray()
    pifa(X, Y)
    assert np.array_equal(X.toarray(), before[0])
    assert np.array_equal(Y.toarray(), before[1])
    with pytest.raises(DataError, match="X and Y must have as many rows; got 5 and 4"):
        pifa(X, Y[:4])


def test_pifa_of_many_features_stays_sparse():
    X = sp.csr_array((np.ones(3, dtype=np.float32), ([0, 1, 2], [0, 5, 4_999_999])), shape=(3, 5_000_000))
    assert pifa(X, np.eye(3)).nnz == 3


def test_label_texts_become_rows_of_the_same_features():
    features = TfidfFeatures().fit(["red apple", "red car"])
    Z = label_text_vectors(features, ["Apple", None, "nothing known"])
    assert Z.toarray().tolist() == [[1, 0, 0], [0, 0, 0], [0, 0, 0]]
    with pytest.raises(DataError, match="label_texts must hold strings; got int at position 1"):
        label_text_vectors(features, ["Apple", 3])


@pytest.mark.parametrize("form", [np.asarray, sp.csr_array])
def test_combining_two_kinds_of_label_vectors(form):
    A, B = matrix(6, 4, 0), matrix(6, 4, 1)
    A[0], B[1] = 0, 0
    a, b = unit_rows(A), unit_rows(B)
    mean = combine(form(A), form(B), alpha=0.25)
    mean = mean.toarray() if sp.issparse(mean) else mean
    np.testing.assert_allclose(mean, unit_rows(0.25 * a + 0.75 * b), atol=1e-6)
    side = combine(form(A), form(B), how="concatenate", alpha=0.25)
    side = side.toarray() if sp.issparse(side) else side
    both = [i for i in range(6) if A[i].any() and B[i].any()]
    np.testing.assert_allclose(
        (side @ side.T)[np.ix_(both, both)], (0.25 * a @ a.T + 0.75 * b @ b.T)[np.ix_(both, both)], atol=1e-6
    )
    np.testing.assert_allclose(side[0], np.concatenate([np.zeros(4), b[0]]), atol=1e-6)


def test_combine_refuses_what_does_not_fit():
    with pytest.raises(ParameterError, match="Did you mean 'mean'"):
        combine(np.eye(2), np.eye(2), how="men")
    with pytest.raises(ParameterError, match="alpha must be a number between 0 and 1; got 2"):
        combine(np.eye(2), np.eye(2), alpha=2)
    with pytest.raises(DataError, match="as many columns for how='mean'; got 2 and 3"):
        combine(np.eye(2), np.eye(2, 3))
    with pytest.raises(DataError, match="both be sparse or both dense"):
        combine(np.eye(2), sp.csr_array(np.eye(2)))
    with pytest.raises(DataError, match="first and second must have as many rows; got 2 and 3"):
        combine(np.eye(2), np.eye(3, 2))


def test_sparse_and_dense_rows_side_by_side():
    S, D = matrix(6, 5, 2, density=0.4) + np.eye(6, 5, k=-1, dtype=np.float32), matrix(6, 3, 3, density=1.0)
    S[0], D[1] = 0, 0
    X = hstack_rows(sp.csr_matrix(S), D, weight=2.0)
    assert X.dtype == np.float32
    assert X.indices.dtype == np.int32
    assert X.indptr.dtype == np.int32
    s, d = unit_rows(S), unit_rows(D)
    wanted = np.hstack([s / np.sqrt(5), d * 2 / np.sqrt(5)])
    wanted[0], wanted[1] = np.concatenate([s[0], d[0]]), np.concatenate([s[1], d[1]])
    np.testing.assert_allclose(X.toarray(), wanted, atol=1e-6)
    with pytest.raises(DataError, match="sparse and dense must have as many rows; got 6 and 5"):
        hstack_rows(S, D[:5])
    with pytest.raises(ParameterError, match="weight must be a number >= 0; got -1"):
        hstack_rows(S, D, weight=-1)


def test_unit_rows_of_extreme_values():
    X = np.array([[1e-30, 0], [3e38, 3e38]], dtype=np.float32)
    for form in (np.asarray, sp.csr_array):
        U = unit_rows(form(X))
        U = U.toarray() if sp.issparse(U) else U
        np.testing.assert_allclose(np.linalg.norm(U, axis=1), 1, rtol=1e-6)
