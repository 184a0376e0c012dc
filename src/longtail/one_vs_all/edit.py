"""Change one-vs-all classifiers without training them anew: new rows, new labels, labels that go, more columns."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, NamedTuple, Self

import numpy as np
import scipy.sparse as sp

from longtail.kernels import LANES, blocks, run_tasks
from longtail.model import HeldRows, Hold, row_scale

if TYPE_CHECKING:
    from longtail.one_vs_all.estimator import BatchSolver


@dataclass(frozen=True)
class OwnColumns:
    """Rows over the columns that they use: CSR arrays, and the number of each column in the whole matrix."""

    indptr: np.ndarray
    indices: np.ndarray
    data: np.ndarray
    columns: np.ndarray

    @classmethod
    def of(cls, X: sp.csr_array, normalize: bool) -> Self:
        """Scale the rows to unit length, if wanted, and number their columns from 0."""
        columns, ids = np.unique(X.indices, return_inverse=True)
        data = X.data * np.repeat(row_scale(X, normalize), np.diff(X.indptr))
        return cls(X.indptr.astype(np.int64), ids.astype(np.int32), data.astype(np.float32), columns.astype(np.int32))


def moved_weights(
    weights: sp.csr_array,
    bias: np.ndarray,
    rows: OwnColumns,
    Y: sp.csr_array,
    solver: BatchSolver,
    hold: Hold,
    feature_rows: np.ndarray | None,
    n_jobs: int,
) -> tuple[sp.csr_array, np.ndarray, np.ndarray]:
    """Return weights, biases and passes with the classifiers of the labels in Y trained further on rows."""
    seen_before = None if feature_rows is None else feature_rows[rows.columns]
    held = HeldRows.of(rows.indptr, rows.indices, rows.data, rows.columns.size, solver.bias, hold, seen_before)
    keep = np.float32(hold.keep)
    arrays = (rows.indptr, rows.indices, held.data, held.norms)
    by_label, seen = sp.csc_array(Y), np.flatnonzero(np.bincount(Y.indices, minlength=Y.shape[1])).astype(np.int32)
    is_seen = np.zeros(Y.shape[1], dtype=bool)
    is_seen[seen] = True
    entries = entries_of(weights)
    old = sp.csc_array((entries.values, (entries.features, entries.labels)), shape=weights.shape)[:, seen]
    solver = replace(solver, bias=held.constant)
    before = keep * np.where(np.isneginf(bias), np.float32(-1.0), bias)  # its first rows: start from "no"

    def move(at: slice) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        labels = seen[at]
        W = np.zeros((rows.columns.size + 1, LANES), dtype=np.float32)
        dense = old[:, at].tocsr()[rows.columns].toarray() * keep
        W[:-1, : labels.size], W[-1, : labels.size] = dense * held.stretch, before[labels]
        passes = solver.solve(arrays, (by_label.indptr, by_label.indices), labels, solver.seed + int(at.start), W)
        return W[:-1, : labels.size] / held.stretch, W[-1, : labels.size].copy(), passes

    batches = run_tasks(move, blocks(seen.size, LANES), n_jobs)
    used = np.zeros(weights.shape[0], dtype=bool)
    used[rows.columns] = True
    stays = ~(is_seen[entries.labels] & used[entries.features])
    kept = entries.values[stays] * np.where(is_seen[entries.labels[stays]], keep, np.float32(1.0))
    parts = [(entries.features[stays], entries.labels[stays], kept)]
    bias, n_iter = bias.copy(), np.zeros(Y.shape[1], dtype=np.int32)
    for at, (W, biases, passes) in zip(blocks(seen.size, LANES), batches, strict=True):
        line, lane = np.nonzero(np.abs(W) >= max(solver.threshold, np.finfo(np.float32).tiny))
        parts.append((rows.columns[line], seen[at][lane], W[line, lane]))
        bias[seen[at]], n_iter[seen[at]] = biases, passes
    line, column, value = (np.concatenate(arrays) for arrays in zip(*parts, strict=True))
    return by_feature(line, column, value, weights.shape), bias, n_iter


class Entries(NamedTuple):
    """Weights one by one."""

    features: np.ndarray
    labels: np.ndarray
    values: np.ndarray


def entries_of(weights: sp.csr_array) -> Entries:
    """Return the weights one by one; scipy's own way refuses row pointers of another type than the ids."""
    features = np.repeat(np.arange(weights.shape[0], dtype=np.int32), np.diff(weights.indptr))
    return Entries(features, weights.indices, weights.data)


def by_feature(features: np.ndarray, labels: np.ndarray, values: np.ndarray, shape: tuple[int, int]) -> sp.csr_array:
    """Return a matrix (n_features, n_labels), stored by feature, of weights in any order."""
    at = np.lexsort((labels, features))
    indptr = np.zeros(shape[0] + 1, dtype=np.int64)
    np.cumsum(np.bincount(features, minlength=shape[0]), out=indptr[1:])
    W = sp.csr_array(shape, dtype=np.float32)
    W.data, W.indices, W.indptr = values[at].astype(np.float32), labels[at].astype(np.int32), indptr
    return W


def with_shape(weights: sp.csr_array, n_features: int, n_labels: int) -> sp.csr_array:
    """Return the weights with more features, or more labels, that have none yet."""
    W = sp.csr_array((n_features, n_labels), dtype=np.float32)
    more = np.full(n_features - weights.shape[0], weights.indptr[-1], dtype=np.int64)
    W.data, W.indices, W.indptr = weights.data, weights.indices, np.concatenate([weights.indptr, more])
    return W
