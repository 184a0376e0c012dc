"""Label vectors for clustering: some rows at a time, of unit length, in their own few features."""

from __future__ import annotations

from collections import deque
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from longtail.kernels import blocks, compact_rows, round_values, unit_scales
from longtail.validate import as_rows


class RowSet(NamedTuple):
    """Some rows as a sparse matrix of their own; features are numbered anew."""

    indptr: np.ndarray  # int64 (n_rows + 1,)
    indices: np.ndarray  # int32 (nnz,), unsorted within a row
    values: np.ndarray  # float32 (nnz,), multiples of 2**-30
    features: np.ndarray  # int32 (n_features,): their numbers in the full matrix

    @property
    def n_rows(self) -> int:
        return self.indptr.size - 1

    @property
    def rows(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        return self.indptr, self.indices, self.values


class Vectors:
    """The label vectors, sparse or dense; a label counts by the direction of its vector and not by its length.

    >>> vectors = Vectors([[3.0, 0.0, 4.0], [0.0, 0.0, 0.0]])
    >>> vectors.present.tolist(), vectors.take(np.array([0], dtype=np.int32)).values.round(3)
    ([0], array([0.6, 0. , 0.8], dtype=float32))
    """

    n_labels: int
    n_features: int
    indptr: np.ndarray

    def __init__(self, Z: Any) -> None:
        self.matrix: sp.csr_array | np.ndarray = as_rows(Z, "Z")
        self.n_labels, self.n_features = self.matrix.shape
        self.scale: np.ndarray = np.empty(self.n_labels, dtype=np.float64)
        if isinstance(self.matrix, np.ndarray):
            self.indptr = np.arange(self.n_labels + 1, dtype=np.int64) * self.n_features
            unit_scales(self.indptr, self.matrix.reshape(-1), self.scale)
        else:
            self.indptr = self.matrix.indptr.astype(np.int64, copy=False)
            unit_scales(self.indptr, self.matrix.data, self.scale)
        self.present: np.ndarray = np.flatnonzero(self.scale).astype(np.int32)  # labels whose vector is not zero
        self._free: deque[np.ndarray] = deque()  # arrays of -1, one per thread at work

    def weight(self, rows: np.ndarray) -> int:
        """Return the number of stored values of some rows."""
        return int((self.indptr[rows + 1] - self.indptr[rows]).sum())

    def take(self, rows: np.ndarray, like: RowSet | None = None) -> RowSet:
        """Return some rows; with `like`, in the features of that set only."""
        if isinstance(self.matrix, np.ndarray):
            dense = np.empty((rows.size, self.n_features), dtype=np.float32)
            for at in blocks(rows.size, 1024):  # the products are double precision: a few at a time
                dense[at] = round_values(self.matrix[rows[at]] * self.scale[rows[at], None])
            numbers = np.arange(self.n_features, dtype=np.int32)
            ends = np.arange(rows.size + 1, dtype=np.int64) * self.n_features
            return RowSet(ends, np.tile(numbers, rows.size), dense.reshape(-1), numbers)
        matrix = self.indptr, self.matrix.indices, self.matrix.data
        weight = self.weight(rows)
        indptr = np.empty(rows.size + 1, dtype=np.int64)
        indices, values = np.empty(weight, dtype=np.int32), np.empty(weight, dtype=np.float32)
        local = self._borrow()
        if like is None:
            features = np.empty(min(weight, self.n_features), dtype=np.int32)
            n = compact_rows(*matrix, self.scale, rows, local, True, 0, indptr, indices, values, features)
            features = features[:n]
        else:
            features = like.features
            local[features] = np.arange(features.size, dtype=np.int32)
            compact_rows(*matrix, self.scale, rows, local, False, 0, indptr, indices, values, features)
        local[features] = -1
        self._free.append(local)
        return RowSet(indptr, indices[: indptr[-1]], values[: indptr[-1]], features)

    def _borrow(self) -> np.ndarray:
        try:
            return self._free.pop()
        except IndexError:
            return np.full(self.n_features, -1, dtype=np.int32)
