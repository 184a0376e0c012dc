"""Partial credit for broader and narrower concepts: labels count together with all that stands above them.

With `up(S)` the labels of a set and all concepts above them, `T` the true labels of a row and `P` its first k
predictions, each function returns one number per row; means over rows make the metrics (`measures.py`):

    hP@k = Σ |up(P) ∩ up(T)| / Σ |up(P)|        hR@k = Σ |up(P) ∩ up(T)| / Σ |up(T)|

Everything is a product of sparse matrices with as many entries as rows have labels and concepts above them.
"""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp

from longtail.errors import DataError, ParameterError
from longtail.metrics.row_metrics import Judged


def check_ancestors(ancestors: sp.sparray, n_labels: int) -> sp.csr_array:
    """Return which concepts stand above each label, the label itself included, as a sparse matrix of 0 and 1.

    >>> check_ancestors(sp.csr_array([[1, 0], [1, 1]]), 2).nnz
    3
    """
    if not sp.issparse(ancestors) or ancestors.shape[0] != n_labels:
        raise DataError(f"ancestors must be a sparse matrix with one row per label ({n_labels}).")
    out = sp.csr_array(ancestors, dtype=np.float32, copy=True)
    out.sum_duplicates()
    out.eliminate_zeros()
    out.data[:] = 1.0
    return out


def shared_rows(judged: Judged, k: int) -> np.ndarray:
    """Return `|up(P) ∩ up(T)|`."""
    return np.asarray(_predicted(judged, k).multiply(_true(judged)).sum(axis=1), dtype=np.float64).ravel()


def predicted_rows(judged: Judged, k: int) -> np.ndarray:
    """Return `|up(P)|`."""
    return np.diff(_predicted(judged, k).indptr).astype(np.float64)


def true_rows(judged: Judged, k: int) -> np.ndarray:
    """Return `|up(T)|`."""
    return np.diff(_true(judged).indptr).astype(np.float64)


def _true(judged: Judged) -> sp.csr_array:
    """Return the true labels of every row with all that stands above them."""
    if "true" not in judged.kept:
        judged.kept["true"] = _up(judged.Y.indptr, judged.Y.indices, judged)
    return judged.kept["true"]


def _predicted(judged: Judged, k: int) -> sp.csr_array:
    """Return the first k predictions of every row with all that stands above them."""
    if k not in judged.kept:
        given = judged.ids[:, :k] >= 0
        indptr = np.concatenate([[0], np.cumsum(given.sum(axis=1))])
        judged.kept[k] = _up(indptr, judged.ids[:, :k][given], judged)
    return judged.kept[k]


def _up(indptr: np.ndarray, labels: np.ndarray, judged: Judged) -> sp.csr_array:
    """Return sets of labels with all that stands above them, as 0 and 1."""
    above = judged.ancestors
    if above is None:
        raise ParameterError(name="ancestors", problem="must be given for hp, hr and hf1; got None.")
    shape = (indptr.size - 1, above.shape[0])
    up = sp.csr_array((np.ones(labels.size, np.float32), labels, indptr), shape=shape) @ above
    up.data[:] = 1.0
    return up
