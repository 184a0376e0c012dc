"""Likeness of the rows of a group, and the row counts and feature weights that `assign="auto"` derives from it."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp

from longtail.errors import DataError
from longtail.groups.grouped_rows import GroupedRows
from longtail.groups.kernel_arrays import sum_groups
from longtail.text import unit_rows
from longtail.validate import MatrixLike, as_labels, as_rows, as_sparse, check_same_rows, make_csr

# Random groups have a likeness of 0 (within 0.001), clusters 0.03 to 0.5. On held-out parts of the train sets of
# eurlex-4k, pubmed-mesh and yso-titles, refining the start helps from 0.02 on and harms up to 0.002.
ALIKE = 0.01
DAMPING = 0.25  # features are divided by this power of their spread; chosen on held-out parts of eurlex-4k's train
LEAST_VARIANCE = 1e-3  # of the mean variance: no feature counts more for being rarer than this


def group_likeness(X: MatrixLike, groups: MatrixLike) -> float:
    """Return the likeness of the rows of a group: 0 as different as rows anywhere, 1 the same (intraclass correlation).

    It compares the variance between groups with that within, over all features of rows of unit length. Below 0: rows
    of a group differ more than rows anywhere.

    >>> round(group_likeness([[1, 0], [1, 0], [0, 1], [0, 1]], [[1, 0], [1, 0], [0, 1], [0, 1]]), 3)
    1.0
    """
    X, groups = as_sparse(as_rows(X, "X")), as_labels(groups, "groups")
    check_same_rows(X, groups, "X", "groups")
    if groups.nnz == 0:
        raise DataError("groups must hold at least one row; every group is empty.")
    X = unit_rows(X)
    return likeness(X, groups, group_sums(X, groups))


def group_sums(X: sp.csr_array, groups: sp.csr_array) -> sp.csr_array:
    """Return the sum of the rows of every group, CSR (n_groups, n_features); features are not sorted.

    Every feature of a group's rows has an entry, also where the rows cancel out.
    """
    by_group = sp.csc_array(groups)
    rows, indptr = by_group.indices, X.indptr.astype(np.int64, copy=False)
    most = int(np.diff(indptr)[rows].sum())
    sum_indptr = np.empty(groups.shape[1] + 1, dtype=np.int64)
    ids, data = np.empty(most, dtype=np.int32), np.empty(most, dtype=np.float32)
    n = sum_groups(indptr, X.indices, X.data, by_group.indptr, rows, X.shape[1], sum_indptr, ids, data)
    return sp.csr_array((data[:n].copy(), ids[:n].copy(), sum_indptr), shape=(groups.shape[1], X.shape[1]))


def likeness(X: sp.csr_array, groups: sp.csr_array, sums: sp.csr_array) -> float:
    """Return the likeness of rows as they are, whose sums over groups are known; rows of zeros tell nothing."""
    filled = np.diff(X.indptr) > 0
    if not filled.all():
        X, groups = X[filled], groups[filled]
    sizes = np.bincount(groups.indices, minlength=groups.shape[1]).astype(np.float64)
    used = np.flatnonzero(sizes)
    n, m = float(sizes.sum()), used.size
    if m < 2 or n <= m:
        return 0.0  # one group, or one row per group: nothing to compare
    times = np.diff(groups.indptr).astype(np.float64)
    total = np.asarray(X.T @ times, dtype=np.float64)
    every = _weighted_squares(X, times) - float(total @ total) / n
    between = _weighted_squares(sums, 1 / np.maximum(sizes, 1)) - float(total @ total) / n
    within = max(every - between, 0.0)
    if every <= 1e-9 * n:
        return 1.0  # all rows are the same
    mean_between, mean_within = between / (m - 1), within / (n - m)
    size = (n - float(sizes @ sizes) / n) / (m - 1)
    return float((mean_between - mean_within) / (mean_between + (size - 1) * mean_within))


def estimated_counts(grouped: GroupedRows, alike: float) -> np.ndarray:
    """Return how many rows of a group to give a label to where counts are not known, int32 per pair.

    If rows are independent, a label that a share p of them has is in a share 1 - (1 - p)^size of the groups. That gives
    p, and size · p / (1 - (1 - p)^size) rows where a group has the label: one for rare labels, more for frequent ones.
    Of the other rows, likeness² get it too: none in random groups, all in groups of equal rows. Labels agree less than
    features do, hence the square.
    """
    groups_of = np.diff(grouped.label_indptr)
    per_group = np.diff(grouped.group_indptr)
    used = per_group[per_group > 0]
    share = groups_of / (used.size + 1)  # of the groups; below 1: a label of all groups need not be one of all rows
    p = np.repeat(-np.expm1(np.log1p(-share) / max(used.mean(), 1.0)), groups_of)
    sizes = grouped.sizes
    usual = sizes * p / np.maximum(-np.expm1(sizes * np.log1p(-p)), 1e-12)
    usual = np.floor(usual + 1e-6)  # down: a row too many costs more than one too few
    wanted = usual + np.rint(min(max(alike, 0.0), 1.0) ** 2 * (sizes - usual))
    return np.minimum(np.maximum(wanted, 1), sizes).astype(np.int32)


def damped(X: sp.csr_array, power: float) -> sp.csr_array:
    """Return rows whose features are divided by a power of their spread (standard deviation), of mean length 1.

    A dot product then counts features that vary less for more than it would: a half-way whitening.
    """
    n, ids = X.shape[0], X.indices.astype(np.int64)
    mean = np.bincount(ids, X.data, minlength=X.shape[1]) / n
    square = np.bincount(ids, X.data * X.data, minlength=X.shape[1])
    variance = np.maximum(square / n - mean**2, 0)
    used = variance > 0
    if power == 0 or not used.any():
        return X
    factor = (variance + LEAST_VARIANCE * variance[used].mean()) ** (-power / 2)
    factor /= np.sqrt(max(factor**2 @ square / max(np.count_nonzero(np.diff(X.indptr)), 1), 1e-30))
    return make_csr(X.indptr, X.indices, X.data * factor.astype(np.float32)[ids], X.shape[1])


def _weighted_squares(X: sp.csr_array, weights: np.ndarray) -> float:
    """Return Σ weight · ‖row‖²."""
    each = np.repeat(weights.astype(np.float32), np.diff(X.indptr))
    return float(np.einsum("i,i,i->", X.data, X.data, each, dtype=np.float64))
