"""Rows of unit length, and sparse and dense rows side by side."""

from __future__ import annotations

import math

import numpy as np
import scipy.sparse as sp

from longtail.validate import MatrixLike, Rows, as_dense, as_rows, as_sparse, check_real, check_same_rows, make_csr


def unit_rows(X: MatrixLike, name: str = "X") -> Rows:
    """Return the rows divided by their Euclidean length; rows of zeros stay.

    Lengths are summed in double precision.

    Parameters
    ----------
    X : matrix of shape (n_rows, n_columns)
        Sparse or dense rows.
    name : str, default="X"
        The name that an error calls the rows by.

    Returns
    -------
    rows : csr_array or ndarray of shape (n_rows, n_columns), float32
        Sparse if X is.

    >>> unit_rows([[3, 4], [0, 0]]).round(1)
    array([[0.6, 0.8],
           [0. , 0. ]], dtype=float32)
    """
    X = as_rows(X, name)
    if isinstance(X, np.ndarray):
        squares = np.einsum("ij,ij->i", X, X, dtype=np.float64)
        return (X * _inverse_root(squares)[:, None]).astype(np.float32)
    rows = np.repeat(np.arange(X.shape[0]), np.diff(X.indptr))
    squares = np.bincount(rows, weights=X.data.astype(np.float64) ** 2, minlength=X.shape[0])
    return make_csr(X.indptr, X.indices, (X.data * _inverse_root(squares)[rows]).astype(np.float32), X.shape[1])


def hstack_rows(sparse: MatrixLike, dense: MatrixLike, weight: float = 1.0) -> sp.csr_array:
    """Return sparse and dense columns side by side, as CSR float32 rows of unit length.

    Both blocks are scaled to unit length, then joined as `[sparse, weight * dense] / sqrt(1 + weight**2)`. The dot
    product of two such rows is the mean of the blocks' cosines, weighted 1 : weight². A row that has only one of the
    blocks gets it at full length.

    Parameters
    ----------
    sparse : matrix of shape (n_rows, n_sparse)
        The columns on the left.
    dense : array of shape (n_rows, n_dense)
        The columns on the right.
    weight : float, default=1.0
        How much the dense block counts beside the sparse one.

    Returns
    -------
    rows : csr_array of shape (n_rows, n_sparse + n_dense)

    >>> hstack_rows([[2.0, 0.0]], [[0.0, 5.0]]).toarray().round(3)
    array([[0.707, 0.   , 0.   , 0.707]], dtype=float32)
    """
    weight = check_real("weight", weight, low=0)
    left, right = as_sparse(sparse, "sparse"), as_sparse(as_dense(dense, "dense"), "dense")
    check_same_rows(left, right, "sparse", "dense")
    total = math.sqrt(1.0 + weight * weight)
    joined = side_by_side(scaled(unit_rows(left), 1.0 / total), scaled(unit_rows(right), weight / total))
    return unit_rows(joined)


def side_by_side(left: Rows, right: Rows) -> Rows:
    """Return the columns of two matrices side by side; dense if both are."""
    if isinstance(left, np.ndarray) and isinstance(right, np.ndarray):
        return np.hstack([left, right])
    joined = sp.hstack([sp.csr_array(left), sp.csr_array(right)], format="csr")
    return as_sparse(joined)


def scaled(X: Rows, factor: float) -> Rows:
    """Return the matrix times a number, in float32."""
    if isinstance(X, np.ndarray):
        return X * np.float32(factor)
    return make_csr(X.indptr, X.indices, X.data * np.float32(factor), X.shape[1])


def _inverse_root(squares: np.ndarray) -> np.ndarray:
    lengths = np.sqrt(squares, dtype=np.float64)
    return np.divide(1.0, lengths, out=np.zeros_like(lengths), where=lengths > 0)
