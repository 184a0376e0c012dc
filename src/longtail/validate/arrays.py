"""Arrays in, canonical arrays out: CSR float32 with sorted int32 ids, or C-ordered dense float32.

The caller's arrays are never changed: whatever has to be sorted or summed is copied first.
"""

from __future__ import annotations

import contextlib
from copy import copy
from functools import lru_cache
from typing import Any

import numpy as np
import scipy.sparse as sp

from longtail.errors import DataError
from longtail.validate.sparse_arrays import POINTED, check_sparse_arrays

INT32_MAX = np.iinfo(np.int32).max
AT_ONCE = 1 << 20  # numbers that are looked at together
COMPLEX = "Complex data not supported: {name} must hold real numbers; got dtype {got}."
NOT_FINITE = "{name} must be finite; got {got} in row {row}, column {column}."


def as_rows(X: Any, name: str = "X") -> sp.csr_array | np.ndarray:
    """Return rows as CSR float32 (sparse input) or C-ordered float32 (dense input).

    >>> as_rows([[1, 0], [0, 2]]).dtype
    dtype('float32')
    """
    if sp.issparse(X):
        return as_sparse(X, name)
    return as_dense(X, name)


def as_sparse(X: Any, name: str = "X") -> sp.csr_array:
    """Return CSR float32 with sorted, unique int32 column ids.

    Dense input is converted. Nothing is copied when the input is canonical already.
    """
    if not sp.issparse(X):
        X = sp.csr_array(as_dense(X, name))
    if X.ndim != 2:
        hint = " Take a single row with two brackets, as in X[[0]]." if X.ndim == 1 else ""
        raise DataError("{name} must have 2 dimensions; got {got}.{hint}", name=name, got=X.ndim, hint=hint)
    if X.shape[1] > INT32_MAX:
        raise DataError("{name} may have at most {most} columns; got {got}.", name=name, most=INT32_MAX, got=X.shape[1])
    if X.dtype.kind == "c":
        raise DataError(COMPLEX, name=name, got=X.dtype)
    if X.dtype.kind not in "biuf":
        raise DataError("{name} must hold numbers; got dtype {got}.", name=name, got=X.dtype)
    check_sparse_arrays(X, name)  # before scipy converts it
    source = X
    if X.format == "csr" and int(X.indptr[-1]) < max(X.indices.size, X.data.size):  # entries that no row points to
        used = int(X.indptr[-1])
        X = sp.csr_array((X.data[:used], X.indices[:used], X.indptr), shape=X.shape)
    M = sp.csr_array(X)
    if X.format not in POINTED:  # made of Python objects, or converted
        check_sparse_arrays(M, name)
    if not _all_finite(M.data):
        raise _not_finite(M, name)
    with np.errstate(over="ignore"):  # reported by name below
        data = M.data.astype(np.float32, copy=False)
    if data is not M.data and not _all_finite(data):
        raise DataError("{name} holds a value too large for float32; scale the rows first.", name=name)
    shares_caller = M.data is getattr(source, "data", None) or np.shares_memory(M.indices, _indices(source))
    # scipy copies int32 ids to int64 when the pointers are int64: give it pointers of the ids' own type
    indptr = M.indptr.astype(M.indices.dtype, copy=False) if M.indices.size <= INT32_MAX else M.indptr
    out = sp.csr_array((data, M.indices, indptr), shape=M.shape)
    if not out.has_canonical_format:
        if shares_caller:  # sorting works in place: never on the caller's arrays
            out = sp.csr_array((data.copy(), M.indices.copy(), M.indptr.copy()), shape=M.shape)
        out.sum_duplicates()
    if out.data.size and not np.all(out.data):
        keep = out.data != 0
        counts = np.concatenate([[0], np.cumsum(keep, dtype=np.int64)])
        out = sp.csr_array((out.data[keep], out.indices[keep], counts[out.indptr]), shape=out.shape)
    return make_csr(out.indptr, out.indices, out.data, out.shape[1])


def make_csr(indptr: np.ndarray, ids: np.ndarray, values: np.ndarray, n_columns: int) -> sp.csr_array:
    """Return canonical CSR on arrays that are known to be sorted and unique, without looking at them again.

    Ids are int32. Row pointers are int32 too, as scipy and scikit-learn want them, unless there are more than 2³¹
    entries; kernels take them as int64.
    """
    out = copy(_empty_csr(len(indptr) - 1, n_columns))  # which costs a tenth of making one
    out.data, out.indices = values, ids.astype(np.int32, copy=False)
    out.indptr = indptr.astype(np.int32 if ids.size <= INT32_MAX else np.int64, copy=False)
    out.has_canonical_format = True
    return out


@lru_cache(256)
def _empty_csr(n_rows: int, n_columns: int) -> sp.csr_array:
    """Return a matrix without entries, of which copies are made."""
    return sp.csr_array((n_rows, n_columns), dtype=np.float32)


def as_dense(X: Any, name: str = "X") -> np.ndarray:
    """Return a C-ordered two-dimensional float32 array; NaN and infinity are refused."""
    try:
        A = np.asarray(X)
    except ValueError as error:
        raise DataError("{name} must be a rectangular array; got rows of different lengths.", name=name) from error
    A = _as_numbers(A, name)
    if A.ndim != 2:
        hint = f" Reshape your data with {name}.reshape(1, -1) for a single row." if A.ndim == 1 else ""
        raise DataError("{name} must have 2 dimensions; got {got}.{hint}", name=name, got=A.ndim, hint=hint)
    with np.errstate(over="ignore"):
        out = np.ascontiguousarray(A, dtype=np.float32)
    if out.size and not np.isfinite(out).all():
        row, column = (int(v[0]) for v in np.nonzero(~np.isfinite(out)))
        raise DataError(NOT_FINITE, name=name, got=_shown(A[row, column]), row=row, column=column)
    return out


def _as_numbers(A: np.ndarray, name: str) -> np.ndarray:
    """Return an array of numbers; objects that are numbers, as in data frames of mixed columns, are converted."""
    if A.dtype.kind == "c":
        raise DataError(COMPLEX, name=name, got=A.dtype)
    if A.dtype.kind == "O":
        with contextlib.suppress(TypeError, ValueError, OverflowError):
            A = A.astype(np.float64)
    if A.dtype.kind not in "biuf":
        raise DataError("{name} must hold numbers; got dtype {got}.", name=name, got=A.dtype)
    return A


def _all_finite(values: np.ndarray) -> bool:
    """Return whether all numbers are finite, looking at some at a time: there may be more than fit into memory."""
    return all(np.isfinite(values[low : low + AT_ONCE]).all() for low in range(0, values.size, AT_ONCE))


def _shown(value: float) -> str:
    return "NaN" if np.isnan(value) else str(value)


def as_labels(Y: Any, name: str = "Y") -> sp.csr_array:
    """Return labels as canonical CSR float32, one column per label; weights must not be negative."""
    if Y is None:
        told = "{name} must hold the labels: training requires y to be passed, but the target y is None."
        raise DataError(told, name=name)
    out = as_sparse(Y, name)
    if out.data.size and out.data.min() < 0:
        row = int(np.searchsorted(out.indptr, int(np.argmin(out.data)), side="right") - 1)
        raise DataError(
            "{name} must not be negative; got {got:g} in row {row}.", name=name, got=out.data.min(), row=row
        )
    return out


def check_same_rows(X: Any, Y: Any, x_name: str = "X", y_name: str = "Y") -> None:
    """Refuse rows and labels of different length, and no rows at all."""
    if X.shape[0] != Y.shape[0]:
        raise DataError(
            "{name} and {other} must have as many rows; got {got} and {others}.",
            name=x_name,
            other=y_name,
            got=X.shape[0],
            others=Y.shape[0],
        )
    if X.shape[0] == 0:
        raise DataError("{name} must have at least one row; got 0.", name=x_name)


def check_width(X: Any, n_features: int, name: str = "X", columns: str = "features") -> None:
    """Refuse rows of another width than the model was trained on."""
    if X.shape[1] != n_features:
        raise DataError(
            "{input} must have {allowed} {columns}, as at training; got {got}.",
            input=name,
            allowed=n_features,
            columns=columns,
            got=X.shape[1],
        )


def _indices(X: Any) -> np.ndarray:
    """Return the column ids of a sparse matrix; none for a format that has no such array."""
    return getattr(X, "indices", np.empty(0, dtype=np.int32))


def _not_finite(M: sp.csr_array, name: str) -> DataError:
    """Return the complaint about the first number of a matrix that is not finite."""
    at = int(np.flatnonzero(~np.isfinite(M.data))[0])
    row = int(np.searchsorted(M.indptr, at, side="right") - 1)
    return DataError(NOT_FINITE, name=name, got=_shown(M.data[at]), row=row, column=int(M.indices[at]))
