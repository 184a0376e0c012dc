"""Train sixteen children of one chunk: the rows of the chunk in its own features, and the solver on them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np
import scipy.sparse as sp

from longtail.kernels import EVERY_ROW, LANES, hinge_lanes, logistic_lanes, row_squares, scale_rows
from longtail.model import has_idle_columns, row_scale
from longtail.tree.chunk_kernels import gather_into, gather_rows
from longtail.tree.chunks import Chunks
from longtail.tree.membership import ColumnArrays, NodeRows, column, values_of
from longtail.tree.search import BeamPlan, Ranked, search_level
from longtail.validate import large_empty, make_csr, memory_limit

NEARLY_ONE = 1e-6  # rows this near to unit length are taken as they are


@dataclass(frozen=True)
class Solver:
    """How the binary problems are solved; see `LabelTreeClassifier`."""

    loss: str
    C: float
    positive_weight: float
    bias: float
    tol: float
    max_iter: int
    threshold: float
    seed: int


@dataclass(frozen=True)
class TrainingRows:
    """The training rows, scaled, with the norms that the solver needs."""

    indptr: np.ndarray
    indices: np.ndarray
    data: np.ndarray
    norms: np.ndarray  # ‖x‖² + bias²
    n_features: int

    @classmethod
    def of(cls, X: sp.csr_array, normalize: bool, bias: float) -> Self:
        """Scale the rows to unit length, if wanted, and compute their norms."""
        scale = row_scale(X, normalize)
        indptr = X.indptr.astype(np.int64, copy=False)
        as_they_are = bool((np.abs(scale - 1) <= NEARLY_ONE).all())  # most features come at unit length: no copy then
        data = X.data if as_they_are else large_empty(X.data.size, np.float32)
        norms = np.empty(X.shape[0], dtype=np.float32)
        if as_they_are:
            row_squares(indptr, data, bias**2, norms)
        else:
            scale_rows(indptr, X.data, scale, bias**2, data, norms)
        return cls(indptr, X.indices, data, norms, X.shape[1])

    @property
    def n(self) -> int:
        """Number of rows."""
        return self.indptr.size - 1

    @property
    def matrix(self) -> sp.csr_array:
        """The same rows as a matrix; nothing is copied but the row pointers."""
        return make_csr(self.indptr, self.indices, self.data, self.n_features)

    def search(self, chunks: Chunks, plan: BeamPlan, n_jobs: int, level: int) -> Ranked:
        """Return the nodes of a level that every row is sent to, -1 where none, and their scores."""
        return search_level(chunks, self.matrix, np.ones(self.n, dtype=np.float32), plan, n_jobs, level)


@dataclass(frozen=True)
class ChunkRows:
    """The rows of one chunk, CSR over their own features."""

    indptr: np.ndarray
    indices: np.ndarray
    data: np.ndarray
    norms: np.ndarray
    features: np.ndarray


def local_rows(rows: TrainingRows, members: np.ndarray | None, position: np.ndarray | None = None) -> ChunkRows:
    """Return the rows of a chunk over their own features; all rows as they are for the root.

    `position` is -1 for every feature, before and after; None to make it.
    """
    if has_idle_columns(rows.n_features, rows.indices.size):
        part, norms = (rows.matrix, rows.norms) if members is None else (rows.matrix[members], rows.norms[members])
        features, ids = np.unique(part.indices, return_inverse=True)
        return ChunkRows(
            part.indptr.astype(np.int64), ids.astype(np.int32), part.data, norms, features.astype(np.int32)
        )
    if members is None:
        features = np.arange(rows.n_features, dtype=np.int32)
        return ChunkRows(rows.indptr, rows.indices, rows.data, rows.norms, features)
    position = np.full(rows.n_features, -1, dtype=np.int32) if position is None else position
    if memory_limit() is not None:
        indptr = np.zeros(members.size + 1, dtype=np.int64)
        np.cumsum(rows.indptr[members + 1] - rows.indptr[members], out=indptr[1:])
        size = int(indptr[-1])
        indices, data = large_empty(size, np.int32), large_empty(size, np.float32)
        features = gather_into(rows.indptr, rows.indices, rows.data, members, position, indptr, indices, data)
        return ChunkRows(indptr, indices, data, rows.norms[members], features)
    indptr, indices, data, features = gather_rows(rows.indptr, rows.indices, rows.data, members, position)
    return ChunkRows(indptr, indices, data, rows.norms[members], features)


def solve_lanes(
    local: ChunkRows,
    members: np.ndarray | None,
    allowed_rows: np.ndarray | None,
    truth: sp.csc_array | NodeRows | ColumnArrays,
    weights: sp.csc_array | ColumnArrays | None,
    labels: range,
    solver: Solver,
    level: int,
    W: np.ndarray,
) -> None:
    """Train up to sixteen children of one chunk into W."""
    n = local.indptr.size - 1
    positive = np.zeros(n, dtype=np.uint16)
    hinge = solver.loss == "squared_hinge"
    costs = np.empty((2 if weights is None else n, LANES), dtype=np.float32)
    costs[:] = solver.C
    if weights is None:
        costs[1] *= solver.positive_weight
    for lane, label in enumerate(labels):
        where = column(truth, label)
        at = where if members is None else np.searchsorted(members, where)
        positive[at] |= np.uint16(1 << lane)
        if weights is not None:
            costs[at, lane] = solver.C * solver.positive_weight * values_of(weights, label)
    allowed = EVERY_ROW
    if allowed_rows is not None and members is not None:
        allowed = positive.copy()
        allowed[np.searchsorted(members, allowed_rows)] = 0xFFFF
    seed = (solver.seed * 1_000_003 + level * 7_919 + labels.start) % (2**31)
    rows = (local.indptr, local.indices, local.data, local.norms, positive)
    ends = (solver.tol, solver.max_iter, seed, W)
    if hinge:
        hinge_lanes(*rows, allowed, len(labels), solver.bias, 0.5 / costs, weights is not None, *ends)
    else:
        logistic_lanes(*rows, len(labels), solver.bias, costs, *ends)
