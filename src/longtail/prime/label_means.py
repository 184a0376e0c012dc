"""Vectors of labels made of those of texts, and how long they must be; numpy alone."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp

from longtail.validate import check_same_rows

COMPARED = 10  # the rank at which texts and label vectors are compared; less for few labels
LABELS_PER_RANK = 100
COMPARED_QUERIES = 2000  # that compare them


def compared_rank(n_labels: int) -> int:
    """Return the rank at which the scores of texts and of label vectors are compared.

    >>> compared_rank(20), compared_rank(5000)
    (1, 10)
    """
    return min(COMPARED, 1 + n_labels // LABELS_PER_RANK)


def compared_queries(n_rows: int) -> np.ndarray:
    """Return the rows whose vectors compare them."""
    return np.unique(np.linspace(0, n_rows - 1, min(COMPARED_QUERIES, n_rows)).astype(np.int64))


def fair_length(ours: float, theirs: float) -> float:
    """Return the length, at most 1, at which vectors with the mean score `theirs` score like others with `ours`.

    >>> round(fair_length(0.6, 0.8), 3), fair_length(-0.1, 0.8)
    (0.75, 1.0)
    """
    return min(1.0, ours / theirs) if ours > 0 and theirs > 0 else 1.0


def mean_queries(queries: np.ndarray, Y: sp.csr_array, instead: np.ndarray) -> np.ndarray:
    """Return the mean of every label's queries, float32 (n_labels, width); `instead` where it has none.

    >>> Y = sp.csr_array([[1.0, 0.0], [1.0, 0.0]])
    >>> mean_queries(np.array([[1.0, 0.0], [0.0, 1.0]]), Y, np.full((2, 2), 9.0)).round(3).tolist()
    [[0.5, 0.5], [9.0, 9.0]]
    """
    check_same_rows(queries, Y, "queries")
    counts = np.bincount(Y.indices, minlength=Y.shape[1])
    ones = sp.csr_array((np.ones(Y.nnz, dtype=np.float32), Y.indices, Y.indptr), shape=Y.shape)
    sums = ones.T @ np.asarray(queries, dtype=np.float32)
    means = sums / np.maximum(counts, 1)[:, None]
    return np.where(counts[:, None] > 0, means, instead).astype(np.float32)
