"""Vectors for labels: from the rows that have them, from their texts, or from both."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp

from longtail.errors import DataError
from longtail.kernels import blocks, run_tasks
from longtail.text.check_texts import as_texts
from longtail.text.row_sums import sum_rows
from longtail.text.row_vectors import scaled, side_by_side, unit_rows
from longtail.validate import (
    as_labels,
    as_rows,
    as_sparse,
    check_choice,
    check_integer,
    check_real,
    check_same_rows,
    make_csr,
    resolve_jobs,
)

HOW = ("concatenate", "mean")
LABELS_AT_ONCE = 256


def pifa(X: Any, Y: Any, keep: int | None = None, n_jobs: int | None = None) -> sp.csr_array | np.ndarray:
    """Return one unit-length vector per label, the sum of its rows (positive instance feature aggregation).

    Each row's labels share a weight of length 1, so a row with many labels says less about each. A label without
    rows gets zeros. Sparse rows give a CSR matrix and are never made dense; dense rows give a dense array. With `keep`,
    sparse vectors keep that many entries at most, the largest: enough to cluster labels by, in far less memory.

    >>> pifa([[1, 0], [0, 1]], [[1, 0], [1, 1]]).round(3)
    array([[0.816, 0.577],
           [0.   , 1.   ]], dtype=float32)
    """
    X, Y = as_rows(X, "X"), as_labels(Y, "Y")
    check_same_rows(X, Y)
    keep = X.shape[1] if keep is None else check_integer("keep", keep, low=1)
    weights = as_sparse(unit_rows(Y, "Y").T, "Y")  # (n_labels, n_rows)
    # Z = normalise(normalise(Y)ᵀ X)
    if isinstance(X, np.ndarray):
        return unit_rows(weights @ X, "Z")
    return unit_rows(_sums(weights, X, keep, resolve_jobs(n_jobs)), "Z")


def _sums(weights: sp.csr_array, X: sp.csr_array, keep: int, n_jobs: int) -> sp.csr_array:
    """Return weights @ X with the largest `keep` entries of every row."""
    lengths = np.diff(X.indptr)
    most = np.add.reduceat(np.append(lengths[weights.indices], 0), weights.indptr[:-1]) if weights.shape[0] else lengths
    most = np.where(np.diff(weights.indptr) > 0, np.minimum(most, min(keep, X.shape[1])), 0)

    def some(at: slice) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        room = int(most[at].sum())
        counts = np.empty(at.stop - at.start, np.int64)
        ids, values = np.empty(room, np.int32), np.empty(room, np.float32)
        total, seen = np.zeros(X.shape[1], np.float32), np.zeros(X.shape[1], np.bool_)
        of_rows = (X.indptr.astype(np.int64, copy=False), X.indices, X.data)
        lists = (weights.indptr.astype(np.int64, copy=False), weights.indices, weights.data)
        size = sum_rows(*lists, *of_rows, at.start, at.stop, keep, total, seen, counts, ids, values)
        return counts, ids[:size].copy(), values[:size].copy()

    found = run_tasks(some, blocks(weights.shape[0], LABELS_AT_ONCE), n_jobs)
    counts, ids, values = (np.concatenate(parts) for parts in zip(*found, strict=True))
    return make_csr(np.concatenate([[0], np.cumsum(counts)]), ids, values, X.shape[1])


def label_text_vectors(features: Any, label_texts: Sequence[str | None]) -> sp.csr_array | np.ndarray:
    """Return one vector per label from its text, made by fitted features; a label without text (None) gets zeros.

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


def combine(first: Any, second: Any, how: str = "mean", alpha: float = 0.5) -> sp.csr_array | np.ndarray:
    """Return one unit-length vector per label from two: `alpha` is the share of the first.

    "mean" adds them up, alpha · first + (1 − alpha) · second, and needs one feature space (TF-IDF of rows and of label
    texts). "concatenate" puts them side by side, √alpha · first and √(1 − alpha) · second, so that the cosine of two
    labels is the same weighted mean of their cosines in each. A label that lacks one of the two has the other alone.

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
