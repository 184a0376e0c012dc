"""The label sets to audit: the distinct ones of the rows of a matrix, or of a list."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp

from longtail.errors import DataError
from longtail.validate import LabelNumbers, MatrixLike, as_labels, make_csr


@dataclass(frozen=True, eq=False)
class LabelSets:
    """Distinct label sets, small ones first, and which of them each row has."""

    members: list[np.ndarray]  # sorted label numbers of every distinct set, int64
    set_of_row: np.ndarray  # (n_rows,) int64
    counts: np.ndarray  # rows that have each set, int64

    def __len__(self) -> int:
        return len(self.members)


def distinct_sets(Y: MatrixLike, n_labels: int) -> LabelSets:
    """Return the distinct label sets of the rows of Y.

    >>> sets = distinct_sets([[1, 1, 0], [0, 1, 0], [1, 1, 0]], 3)
    >>> [s.tolist() for s in sets.members], sets.set_of_row.tolist(), sets.counts.tolist()
    ([[1], [0, 1]], [1, 0, 1], [1, 2])
    """
    if _holds_names(Y):
        raise DataError(
            "Y must be a matrix with one column per label of W, 1 where a row has the label; got names of labels: "
            "lt.Dataset.from_lists(texts, labels, label_names=names).Y has the columns in the order of the names."
        )
    Y = as_labels(Y, "Y")
    if Y.shape[1] != n_labels:
        raise DataError(f"Y must have one column per label of W, {n_labels}; got {Y.shape[1]}.")
    if Y.shape[0] == 0:
        raise DataError("Y must have at least one row; got 0.")
    number: dict[bytes, int] = {}
    rows = np.empty(Y.shape[0], dtype=np.int64)
    members: list[np.ndarray] = []
    for i in range(Y.shape[0]):
        ids = Y.indices[Y.indptr[i] : Y.indptr[i + 1]]
        key = ids.tobytes()
        if key not in number:
            number[key] = len(members)
            members.append(ids.astype(np.int64))
        rows[i] = number[key]
    order = sorted(range(len(members)), key=lambda i: (members[i].size, i))  # proofs of small sets serve large ones
    position = np.empty(len(members), dtype=np.int64)
    position[order] = np.arange(len(members))
    rows = position[rows]
    return LabelSets([members[i] for i in order], rows, np.bincount(rows, minlength=len(members)))


def listed_sets(sets: MatrixLike | Iterable[LabelNumbers], n_labels: int) -> LabelSets:
    """Return the distinct sets of a list of lists of label numbers, or of the rows of a matrix with n_labels columns.

    >>> listed_sets([[2, 0], [1]], 3).members[1].tolist()
    [0, 2]
    """
    if sp.issparse(sets) or (isinstance(sets, np.ndarray) and sets.ndim == 2 and sets.shape[1] == n_labels):
        return distinct_sets(sets, n_labels)
    if not isinstance(sets, Iterable):
        raise DataError(f"sets must be lists of label numbers; got {type(sets).__name__}.")
    pointers, ids = [0], []
    for number, entry in enumerate(sets):
        if not isinstance(entry, Iterable) or isinstance(entry, str):
            raise DataError(f"sets must be lists of label numbers; got {entry!r} in place of set {number}.")
        if _holds_names(entry if isinstance(entry, np.ndarray) else list(entry)):
            raise DataError(
                f"sets must hold label numbers from 0 to {n_labels - 1}, not names; got {entry!r} in set {number}: the "
                "number of a name is names.index(name)."
            )
        labels = np.unique(np.asarray(entry if isinstance(entry, np.ndarray) else list(entry)))
        whole = labels.dtype.kind in "iu" or labels.size == 0
        if not whole or (labels.size and not 0 <= labels[0] <= labels[-1] < n_labels):
            raise DataError(f"sets must hold label numbers from 0 to {n_labels - 1}; got {entry!r} in set {number}.")
        ids.append(labels.astype(np.int32))
        pointers.append(pointers[-1] + labels.size)
    flat = np.concatenate(ids) if ids else np.empty(0, np.int32)
    return distinct_sets(make_csr(np.array(pointers), flat, np.ones(flat.size, np.float32), n_labels), n_labels)


def _holds_names(value: object) -> bool:
    """Say whether a list, or one of the lists in it, holds strings."""
    if isinstance(value, np.ndarray):
        return value.dtype.kind in "US"
    if not isinstance(value, list | tuple):
        return False
    return any(isinstance(part, str) or _holds_names(list(part) if isinstance(part, set) else part) for part in value)
