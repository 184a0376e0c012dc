"""Vectors for labels: from the rows that have them, from their texts, or from both."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np
import scipy.sparse as sp

from longtail.errors import DataError
from longtail.kernels import blocks, rows_of_columns, run_tasks
from longtail.text.check_texts import as_texts
from longtail.text.row_sums import sum_rows
from longtail.text.row_vectors import scaled, side_by_side, unit_rows
from longtail.validate import (
    MatrixLike,
    Rows,
    as_labels,
    as_rows,
    as_sparse,
    check_choice,
    check_integer,
    check_real,
    check_same_rows,
    kept_aside,
    large_empty,
    large_joined,
    make_csr,
    memory_limit,
    resolve_jobs,
)

HOW = ("concatenate", "mean")
LABELS_AT_ONCE = 256
ROWS_AT_ONCE, ENTRIES_AT_ONCE = 1 << 13, 1 << 22
SPARSE = (("indices", np.int32), ("data", np.float32))  # the large arrays of sparse rows


def pifa(X: MatrixLike, Y: MatrixLike, keep: int | None = None, n_jobs: int | None = None) -> Rows:
    """Return one unit-length vector per label, the sum of its rows (positive instance feature aggregation).

    `Z = normalise(normalise(Y).T @ X)`, where `normalise` divides every row by its length: a row with many labels
    counts less for each of them. A label without rows gets zeros.

    Parameters
    ----------
    X : matrix of shape (n_rows, n_features)
        Rows; sparse ones are never made dense.
    Y : matrix of shape (n_rows, n_labels)
        Labels of the rows.
    keep : int or None, default=None
        Keep so many entries of each sparse vector, the largest: enough to cluster labels by, in far less memory.
        None keeps all.
    n_jobs : int or None, default=None
        Threads; None for all cores.

    Returns
    -------
    Z : csr_array or ndarray of shape (n_labels, n_features), float32
        Sparse if X is.

    >>> pifa([[1, 0], [0, 1]], [[1, 0], [1, 1]]).round(3)
    array([[0.816, 0.577],
           [0.   , 1.   ]], dtype=float32)
    """
    X, Y = as_rows(X, "X"), as_labels(Y, "Y")
    check_same_rows(X, Y)
    keep = X.shape[1] if keep is None else check_integer("keep", keep, low=1)
    in_files = memory_limit() is not None and sp.issparse(X) and Y.nnz > 0 and Y.data.min() == Y.data.max() == 1
    # (n_labels, n_rows)
    weights = _rows_of_labels(Y) if in_files else as_sparse(unit_rows(Y, "Y").T, "Y")
    # Z = normalise(normalise(Y)ᵀ X)
    if isinstance(X, np.ndarray):
        return unit_rows(weights @ X, "Z")
    Z = _largest_sums(weights, X, keep, resolve_jobs(n_jobs))
    return _unit_blocks(Z) if in_files else unit_rows(Z, "Z")


def _rows_of_labels(Y: sp.csr_array) -> sp.csr_array:
    """Return `normalise(Y).T` of a matrix of ones, in files where it is large."""
    squares = np.diff(Y.indptr).astype(np.float64)
    lengths = np.sqrt(squares)
    weight = np.divide(1.0, lengths, out=np.zeros_like(lengths), where=lengths > 0).astype(np.float32)
    ends, rows = rows_of_columns(Y.indptr, Y.indices, Y.shape[1])
    values = large_empty(rows.size, np.float32)
    for at in blocks(rows.size, ENTRIES_AT_ONCE):
        values[at] = weight[rows[at]]
    return make_csr(ends, rows, values, Y.shape[0])


def _unit_blocks(Z: sp.csr_array) -> sp.csr_array:
    """Return the rows at unit length, some at a time."""
    parts = []
    for at in blocks(Z.shape[0], ROWS_AT_ONCE):
        part: Any = unit_rows(Z[at])
        parts.append(make_csr(part.indptr, kept_aside(part.indices), kept_aside(part.data), Z.shape[1]))
    indptr = np.concatenate([[0], np.cumsum(np.concatenate([np.diff(part.indptr) for part in parts]), dtype=np.int64)])
    ids, values = (large_joined([getattr(part, name) for part in parts], dtype) for name, dtype in SPARSE)
    return make_csr(indptr, ids, values, Z.shape[1])


def _largest_sums(weights: sp.csr_array, X: sp.csr_array, keep: int, n_jobs: int) -> sp.csr_array:
    """Return weights @ X with the largest `keep` entries of every row."""
    lengths = np.diff(X.indptr)

    def sums_of(at: slice) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        ends = weights.indptr[at.start : at.stop + 1].astype(np.int64)
        most = np.append(0, np.cumsum(lengths[weights.indices[ends[0] : ends[-1]]], dtype=np.int64))[ends - ends[0]]
        capacity = int(np.minimum(np.diff(most), min(keep, X.shape[1])).sum())
        counts = np.empty(at.stop - at.start, np.int64)
        ids, values = np.empty(capacity, np.int32), np.empty(capacity, np.float32)
        total, seen = np.zeros(X.shape[1], np.float32), np.zeros(X.shape[1], np.bool_)
        of_rows = (X.indptr.astype(np.int64, copy=False), X.indices, X.data)
        lists = (weights.indptr.astype(np.int64, copy=False), weights.indices, weights.data)
        size = sum_rows(*lists, *of_rows, at.start, at.stop, keep, total, seen, counts, ids, values)
        if memory_limit() is not None:
            return counts, kept_aside(ids[:size]), kept_aside(values[:size])
        return counts, ids[:size].copy(), values[:size].copy()

    parts = run_tasks(sums_of, blocks(weights.shape[0], LABELS_AT_ONCE), n_jobs)
    counts = np.concatenate([part[0] for part in parts])
    ids, values = (large_joined([part[i] for part in parts], dtype) for i, (_, dtype) in enumerate(SPARSE, 1))
    return make_csr(np.concatenate([[0], np.cumsum(counts)]), ids, values, X.shape[1])


class TextTransformer(Protocol):
    """Fitted features that turn texts into rows, such as `TfidfFeatures`."""

    def transform(self, texts: Sequence[str]) -> Rows: ...


def label_text_vectors(features: TextTransformer, label_texts: Sequence[str | None]) -> Rows:
    """Return one unit-length vector per label, made from its text.

    Parameters
    ----------
    features : object with `transform(texts)`
        Fitted features, such as `TfidfFeatures` or `EncoderFeatures`.
    label_texts : sequence of str or None
        The text of every label; a label without one (None or blank) gets zeros.

    Returns
    -------
    Z : csr_array or ndarray of shape (n_labels, n_features), float32

    >>> from longtail.text import TfidfFeatures
    >>> features = TfidfFeatures().fit(["red apple", "red car"])
    >>> label_text_vectors(features, ["cars and a car", None]).toarray().tolist()
    [[0.0, 1.0, 0.0], [0.0, 0.0, 0.0]]
    """
    texts = as_texts(["" if text is None else text for text in label_texts], "label_texts")
    Z = unit_rows(features.transform(texts), "label vectors")
    empty = np.array([not text.strip() for text in texts], dtype=bool)
    if isinstance(Z, np.ndarray) and empty.any():  # encoders give even the empty text a vector
        Z[empty] = 0
    return Z


def combine(first: MatrixLike, second: MatrixLike, how: str = "mean", alpha: float = 0.5) -> Rows:
    """Return one unit-length vector per label from two vectors of it; a label that lacks one has the other alone.

    Parameters
    ----------
    first, second : matrices of n_labels rows
        The two vectors of every label; each is scaled to unit length first.
    how : {"mean", "concatenate"}, default="mean"
        "mean": `alpha * first + (1 - alpha) * second`, in one feature space (TF-IDF of rows and of label texts).
        "concatenate": `[sqrt(alpha) * first, sqrt(1 - alpha) * second]`, so that the cosine of two labels is the same
        weighted mean of their cosines in each.
    alpha : float, default=0.5
        The share of the first, from 0 to 1.

    Returns
    -------
    Z : csr_array or ndarray of n_labels rows, float32

    >>> combine([[1.0, 0.0]], [[0.0, 1.0]], how="concatenate").round(3)
    array([[0.707, 0.   , 0.   , 0.707]], dtype=float32)
    >>> combine([[1.0, 0.0]], [[0.0, 1.0]], alpha=1.0).tolist()
    [[1.0, 0.0]]
    """
    check_choice("how", how, HOW)
    alpha = check_real("alpha", alpha, low=0, high=1)
    a, b = unit_rows(first, "first"), unit_rows(second, "second")
    check_same_rows(a, b, "first", "second")
    if how == "concatenate":
        return unit_rows(side_by_side(scaled(a, alpha**0.5), scaled(b, (1.0 - alpha) ** 0.5)))
    if a.shape[1] != b.shape[1]:
        raise DataError(
            f"first and second must have as many columns for how='mean'; got {a.shape[1]} and {b.shape[1]}."
        )
    if isinstance(a, np.ndarray) != isinstance(b, np.ndarray):
        raise DataError("first and second must both be sparse or both dense for how='mean'.")
    return unit_rows(scaled(a, alpha) + scaled(b, 1.0 - alpha))
