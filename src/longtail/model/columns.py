"""Matrices with far more columns than entries, as hashed features have: number the columns in use from 0.

Working memory then follows what is there, not the largest column number.
"""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp

from longtail.validate import make_csr

MANY_FEATURES = 1_000_000  # columns beyond the entries from which on those in use are numbered anew


def has_idle_columns(n_features: int, n_entries: int) -> bool:
    """Say whether there are far more columns than entries."""
    return n_features > MANY_FEATURES + n_entries


def take_columns(X: sp.csr_array, columns: np.ndarray) -> sp.csr_array:
    """Return the rows with these columns alone, ascending, in the order given; entries elsewhere are left out.

    >>> take_columns(sp.csr_array([[0.0, 5.0, 0.0, 7.0], [3.0, 0.0, 0.0, 0.0]]), np.array([1, 3])).toarray()
    array([[5., 7.],
           [0., 0.]])
    """
    if not columns.size:
        return make_csr(np.zeros_like(X.indptr), X.indices[:0], X.data[:0], 1)
    at = np.minimum(np.searchsorted(columns, X.indices), columns.size - 1)
    known = columns[at] == X.indices
    indptr = np.concatenate([[0], np.cumsum(known)])[X.indptr].astype(X.indptr.dtype)
    return make_csr(indptr, at[known].astype(np.int32), X.data[known], columns.size)
