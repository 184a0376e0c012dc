"""Bags of rows for multi-instance learning: checked, scaled, and some of them held out."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import scipy.sparse as sp

from longtail.data import split_random
from longtail.errors import DataError, ParameterError
from longtail.groups.eagle import Eagle
from longtail.validate import MatrixLike, Rows, as_labels, as_rows, as_sparse, check_choice, check_same_rows, make_csr

SCALINGS = ("auto", "center", "standard", "common")
FEWEST_TO_HOLD_OUT = 20  # groups
WITHOUT_COUNTS = ("presence", "sets")  # losses that do not look at counts
Bags: TypeAlias = tuple[sp.csr_array, sp.csr_array]  # (n_bags, n_rows) members, (n_bags, n_labels) counts


@dataclass(frozen=True, eq=False)
class Scale:
    """Scaling of features: `(x - shift) * factor`, both float32 (n_features,)."""

    shift: np.ndarray
    factor: np.ndarray

    @classmethod
    def learn(cls, X: Rows, scaling: str) -> Scale:
        """Learn from rows how to scale them; features come out at about 1, so that one learning rate suits all data.

        >>> X = np.array([[0, 10], [2, 30]], dtype=np.float32)
        >>> Scale.learn(X, "standard").apply(X).tolist()
        [[-1.0, -1.0], [1.0, 1.0]]
        """
        check_choice("scaling", scaling, SCALINGS)
        if scaling == "auto":
            scaling = "center" if isinstance(X, np.ndarray) else "common"
        if scaling != "common" and not isinstance(X, np.ndarray):
            raise ParameterError(f"scaling={scaling!r} would fill sparse rows; give dense rows or use 'common'.")
        mean = np.zeros(X.shape[1])
        if isinstance(X, np.ndarray):
            if scaling != "common":
                mean = X.mean(axis=0, dtype=np.float64)
            squares = np.einsum("ij,ij->j", X, X, dtype=np.float64) / X.shape[0] - mean**2
        else:
            squares = np.bincount(X.indices, X.data.astype(np.float64) ** 2, X.shape[1]) / X.shape[0]
        squares = squares.clip(min=0)
        if scaling != "standard":
            squares = np.full(X.shape[1], squares.mean())
        still = squares <= 1e-12 * squares.max(initial=0)  # a feature that never changes stays 0
        factor = np.where(still, 0.0 if scaling == "standard" else 1.0, 1 / np.sqrt(np.where(still, 1.0, squares)))
        return cls(mean.astype(np.float32), factor.astype(np.float32))

    def apply(self, X: Rows) -> Rows:
        """Return rows scaled; sparse rows are only multiplied."""
        if isinstance(X, np.ndarray):
            return (X - self.shift) * self.factor
        data = X.data * self.factor[X.indices]
        return sp.csr_array((data, X.indices, X.indptr), shape=X.shape)


def checked_bags(
    X: MatrixLike, groups: MatrixLike, Y_groups: MatrixLike, loss: str
) -> tuple[Rows, sp.csr_array, sp.csr_array]:
    """Return rows, the rows of every bag (n_bags, n_rows) and the counts of its labels; refuse what does not fit."""
    X, counts = as_rows(X, "X"), as_labels(Y_groups, "Y_groups")
    if X.shape[1] == 0:
        raise DataError("X must have at least one feature; got 0 columns.")
    members = bags_of(X, groups)
    if members.shape[0] != counts.shape[0]:
        raise DataError(
            f"groups must have one column per row of Y_groups, one for each group; "
            f"got {members.shape[0]} columns and {counts.shape[0]} rows."
        )
    alone = np.flatnonzero(np.bincount(members.indices, minlength=X.shape[0]) == 0)
    if alone.size:
        raise DataError(f"row {alone[0]} is in no group; give it a group or leave it out.")
    if counts.nnz == 0:
        raise DataError("Y_groups must hold at least one label; every group is empty.")
    wrong = counts.data != np.rint(counts.data)
    if wrong.any():
        raise DataError(f"Y_groups must hold counts, whole numbers of 0 or more; got {counts.data[wrong][0]:g}.")
    if loss == "sets":
        _check_sets(members, counts)
    elif loss not in WITHOUT_COUNTS:
        _check_counts(members, counts, loss)
    return X, members, counts


def bags_of(X: Rows, groups: MatrixLike) -> sp.csr_array:
    """Return the rows of every group (n_groups, n_rows); a group without rows is refused."""
    flat = isinstance(groups, list | tuple) and not any(np.iterable(row) and not isinstance(row, str) for row in groups)
    dimensions = 1 if flat else len(getattr(groups, "shape", (0, 0)))
    if groups is None or dimensions != 2:
        got = "None" if groups is None else "one dimension" if dimensions == 1 else f"{dimensions} dimensions"
        raise DataError(
            f"groups must be a (n_rows, n_groups) matrix that says which rows are in which groups; got {got}."
        )
    groups = as_labels(groups, "groups")
    check_same_rows(X, groups, "X", "groups")
    members = as_sparse(sp.csr_array(groups.T))
    empty = np.flatnonzero(np.diff(members.indptr) == 0)
    if empty.size:
        raise DataError(f"group {empty[0]} has no rows; leave it out.")
    return members


def hold_out_bags(members: sp.csr_array, counts: sp.csr_array, share: float, seed: int) -> tuple[Bags, Bags | None]:
    """Return the bags to train on and those held out; none of fewer than 20 bags."""
    n_bags = counts.shape[0]
    if not share or n_bags < FEWEST_TO_HOLD_OUT:
        return (members, counts), None
    rest, out = split_random(counts, test_size=max(1, round(share * n_bags)), random_state=seed)
    return (members[rest], counts[rest]), (members[out], counts[out])


def bags_of_one(n_rows: int) -> sp.csr_array:
    """Return bags that hold one row each, (n_rows, n_rows)."""
    return make_csr(np.arange(n_rows + 1), np.arange(n_rows), np.ones(n_rows, dtype=np.float32), n_rows)


def find_vectors(
    X: Rows, members: sp.csr_array, counts: sp.csr_array, settings: dict[str, Any], loss: str
) -> np.ndarray:
    """Return the labels' vectors that EAGLE finds (n_labels, n_features)."""
    if loss in WITHOUT_COUNTS:
        counts = make_csr(counts.indptr, counts.indices, np.ones_like(counts.data), counts.shape[1])
    return Eagle(**settings, threshold=0.0).fit(X, members.T, counts).label_vectors_.toarray()


def label_prior(members: sp.csr_array, counts: sp.csr_array, loss: str) -> float:
    """Return how likely a label is, on average over bags (or instances) and labels; never 0 or 1."""
    n_entries = (counts.shape[0] if loss == "presence" else members.nnz) * counts.shape[1]
    return float(np.clip((counts.nnz if loss == "presence" else float(counts.sum())) / n_entries, 1e-4, 0.75))


@dataclass(frozen=True, eq=False)
class SetShares:
    """What the sets of labels of all bags tell about rows with one label each."""

    usual: np.ndarray  # (n_labels,) float32: share of the rows that has each label
    lacking: float  # share of the bags that lack a label which others have

    @classmethod
    def learn(cls, members: sp.csr_array, counts: sp.csr_array) -> SetShares:
        """Learn from bags how frequent labels are among their rows.

        If rows are independent and a share p of them has a label, a bag of g rows has it with probability
        1 - (1 - p)^g. p is where the expected number of bags with the label is the number seen, as if one more bag
        lacked it.

        >>> members, counts = sp.csr_array(np.ones((4, 2))), sp.csr_array([[1, 1], [1, 0], [1, 1], [0, 1]])
        >>> known = SetShares.learn(members, counts)
        >>> known.usual.tolist(), known.lacking
        ([0.5, 0.5], 0.5)
        """
        sizes, times = np.unique(np.diff(members.indptr), return_counts=True)
        n_bags = counts.shape[0]
        seen = np.bincount(counts.indices, minlength=counts.shape[1]) * (n_bags / (n_bags + 1))
        low, high = np.zeros(seen.size), np.ones(seen.size)
        for _ in range(60):  # bisection
            middle = (low + high) / 2
            few = times @ (1 - (1 - middle[None, :]) ** sizes[:, None]) < seen
            low, high = np.where(few, middle, low), np.where(few, high, middle)
        shares = np.where(seen > 0, (low + high) / 2, 0.0)
        lacking = (np.diff(counts.indptr) < np.count_nonzero(seen)).mean()
        return cls((shares / shares.sum()).astype(np.float32), max(float(lacking), 1 / n_bags))


def _check_counts(members: sp.csr_array, counts: sp.csr_array, loss: str) -> None:
    sizes = np.diff(members.indptr)
    of = np.repeat(np.arange(counts.shape[0]), np.diff(counts.indptr))
    over = np.flatnonzero(counts.data > sizes[of])
    if over.size:
        group, label, times = of[over[0]], counts.indices[over[0]], counts.data[over[0]]
        raise DataError(f"group {group} has label {label} {times:g} times but only {sizes[group]} rows.")
    totals = np.bincount(of, counts.data, counts.shape[0])
    if loss == "shares" and bool((totals != sizes).any()):
        group = int(np.flatnonzero(totals != sizes)[0])
        raise DataError(
            f"loss='shares' needs one label per row; group {group} has {sizes[group]} rows and "
            f"{totals[group]:g} labels."
        )


def _check_sets(members: sp.csr_array, counts: sp.csr_array) -> None:
    """Refuse groups whose rows cannot have one label each: more labels than rows, or none at all."""
    sizes, labels = np.diff(members.indptr), np.diff(counts.indptr)
    of = np.repeat(np.arange(counts.shape[0]), labels)
    totals = np.bincount(of, counts.data, counts.shape[0])  # of labels, or of what is known of their counts
    wrong = np.flatnonzero((totals > sizes) | (labels == 0))
    if wrong.size:
        group = int(wrong[0])
        rows = "1 row" if sizes[group] == 1 else f"{sizes[group]} rows"
        got = f"{totals[group]:g} labels" if labels[group] else "no label"
        raise DataError(
            f"loss='sets' needs groups whose rows have exactly one label each; group {group} has {rows} and {got}."
        )
