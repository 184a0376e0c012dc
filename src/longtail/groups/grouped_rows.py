"""Rows, their groups and the labels of the groups: checked once, and laid out as the kernels read them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp

from longtail.errors import DataError
from longtail.text import unit_rows
from longtail.validate import MatrixLike, as_labels, as_rows, as_sparse, check_same_rows, make_csr


@dataclass(frozen=True, eq=False)
class GroupedRows:
    """Rows of unit length, the rows of every group, and the groups of every label with how often each has it.

    A pair is a label in a group; pairs are in the order of the labels.
    """

    X: sp.csr_array  # (n_rows, n_features), unit rows; rows of zeros stay
    groups: sp.csr_array  # (n_rows, n_groups), without memberships that cannot be chosen
    group_indptr: np.ndarray  # int64 (n_groups + 1,)
    group_rows: np.ndarray  # int32 (memberships,)
    label_indptr: np.ndarray  # int64 (n_labels + 1,)
    label_groups: np.ndarray  # int32 (n_pairs,)
    counts: np.ndarray  # int32 (n_pairs,), at most the size of the group
    counted: bool  # some label came more than once in a group: counts are known

    @classmethod
    def make(cls, X: MatrixLike, groups: MatrixLike, Y_groups: MatrixLike) -> GroupedRows:
        """Refuse matrices that do not fit together and lay out the others.

        Rows of zeros tell nothing: they are members only of groups that have no other row. Rows in no group and
        labels of no group are ignored.
        """
        X, groups, Y_groups = as_rows(X, "X"), as_labels(groups, "groups"), as_labels(Y_groups, "Y_groups")
        check_same_rows(X, groups, "X", "groups")
        if X.shape[1] == 0:
            raise DataError("X must have at least one feature; got 0 columns.")
        _check_pair(groups, Y_groups)
        if Y_groups.nnz == 0:
            raise DataError("Y_groups must hold at least one label; every group is empty.")
        if not np.array_equal(Y_groups.data, np.rint(Y_groups.data)):
            wrong = Y_groups.data[Y_groups.data != np.rint(Y_groups.data)][0]
            raise DataError(f"Y_groups must hold counts, whole numbers of 0 or more; got {wrong:g}.")
        unit = unit_rows(as_sparse(X))
        groups = _without_blank_rows(unit, groups)
        by_group, by_label = sp.csc_array(groups), sp.csc_array(Y_groups)
        label_groups = by_label.indices.astype(np.int32, copy=False)
        group_indptr = by_group.indptr.astype(np.int64, copy=False)
        sizes = np.diff(group_indptr)[label_groups]
        return cls(
            X=unit,
            groups=groups,
            group_indptr=group_indptr,
            group_rows=by_group.indices.astype(np.int32, copy=False),
            label_indptr=by_label.indptr.astype(np.int64, copy=False),
            label_groups=label_groups,
            counts=np.minimum(by_label.data, sizes).astype(np.int32),
            counted=bool(Y_groups.data.max() > 1),
        )

    @property
    def n_labels(self) -> int:
        """Columns of Y_groups."""
        return self.label_indptr.size - 1

    @property
    def sizes(self) -> np.ndarray:
        """Number of rows in the group of every pair, int64."""
        return np.diff(self.group_indptr)[self.label_groups]

    @property
    def labels(self) -> np.ndarray:
        """Label of every pair, int32."""
        return np.repeat(np.arange(self.n_labels, dtype=np.int32), np.diff(self.label_indptr))


def propagate(groups: MatrixLike, Y_groups: MatrixLike) -> sp.csr_array:
    """Give every row all labels of its groups, 0/1 CSR (n_rows, n_labels): the baseline that ignores grouping.

    >>> propagate([[1, 0], [1, 0], [0, 1]], [[1, 0], [0, 2]]).toarray().tolist()
    [[1.0, 0.0], [1.0, 0.0], [0.0, 1.0]]
    """
    groups, Y_groups = as_labels(groups, "groups"), as_labels(Y_groups, "Y_groups")
    _check_pair(groups, Y_groups)
    out = as_sparse(groups @ Y_groups)
    return make_csr(out.indptr, out.indices, np.ones(out.nnz, dtype=np.float32), out.shape[1])


def _check_pair(groups: sp.csr_array, Y_groups: sp.csr_array) -> None:
    """Refuse two matrices with different numbers of groups, and labels of a group without rows."""
    if groups.shape[1] != Y_groups.shape[0]:
        raise DataError(
            f"groups must have one column per row of Y_groups, one for each group; "
            f"got {groups.shape[1]} columns and {Y_groups.shape[0]} rows."
        )
    size = np.bincount(groups.indices, minlength=groups.shape[1])
    stranded = np.flatnonzero((size == 0) & (np.diff(Y_groups.indptr) > 0))
    if stranded.size:
        raise DataError(f"group {stranded[0]} has labels but no rows; give it rows or leave its labels out.")


def _without_blank_rows(X: sp.csr_array, groups: sp.csr_array) -> sp.csr_array:
    """Drop the memberships of rows of zeros in groups that have other rows."""
    row_of_member = np.repeat(np.arange(X.shape[0]), np.diff(groups.indptr))
    blank = (np.diff(X.indptr) == 0)[row_of_member]
    if not blank.any():
        return groups
    others = np.bincount(groups.indices[~blank], minlength=groups.shape[1])
    keep = ~blank | (others[groups.indices] == 0)
    indptr = np.concatenate([[0], np.cumsum(np.bincount(row_of_member[keep], minlength=X.shape[0]))])
    return make_csr(indptr, groups.indices[keep], groups.data[keep], groups.shape[1])
