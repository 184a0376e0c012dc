"""Which rows have which nodes of a level, for training data larger than memory: block by block, into files.

The same pairs as those of the sparse products in `train_levels`, without the copies that these make.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp

from longtail.kernels import njit, rows_of_columns
from longtail.tree.membership import NodeRows, binary
from longtail.validate import large_empty

ROWS_AT_ONCE = 1 << 16


@dataclass(frozen=True)
class NodesOfRows:
    """The nodes that every row has a label under, ascending: those of row i are indices[indptr[i]:indptr[i + 1]]."""

    indptr: np.ndarray  # int64
    indices: np.ndarray  # int32
    n_nodes: int

    @classmethod
    def of(cls, Y: sp.csr_array, membership: sp.csr_array) -> NodesOfRows:
        """Return the nodes of the labels of every row; `membership` (n_labels, n_nodes) says which a label is under."""
        most = int(np.diff(membership.indptr).max(initial=0))
        indices = large_empty(Y.indices.size * most, np.int32)
        indptr = np.zeros(Y.shape[0] + 1, dtype=np.int64)
        for low in range(0, Y.shape[0], ROWS_AT_ONCE):
            part = binary(Y[low : low + ROWS_AT_ONCE] @ membership)
            first = int(indptr[low])
            indices[first : first + part.nnz] = part.indices
            indptr[low + 1 : low + 1 + part.shape[0]] = first + part.indptr[1:].astype(np.int64)
        return cls(indptr, indices[: int(indptr[-1])], membership.shape[1])

    def rows_of_nodes(self) -> NodeRows:
        """Return the same pairs the other way round."""
        return NodeRows(*rows_of_columns(self.indptr, self.indices, self.n_nodes))


def rows_at_nodes(sent: np.ndarray, labelled: NodesOfRows | None, n_nodes: int) -> NodeRows:
    """Return the rows that are sent to each node or have a label under it, as `NodeRows.of` does."""
    indptr = np.zeros(1, np.int64) if labelled is None else labelled.indptr
    indices = np.empty(0, np.int32) if labelled is None else labelled.indices
    ends, nothing = np.zeros(n_nodes + 1, dtype=np.int64), np.empty(0, np.int32)
    put_rows_of_nodes(sent, indptr, indices, ends[1:], nothing)
    np.cumsum(ends, out=ends)
    rows = large_empty(int(ends[-1]), np.int32)
    put_rows_of_nodes(sent, indptr, indices, ends[:-1].copy(), rows)
    return NodeRows(ends, rows)


@njit(nogil=True, cache=True)
def put_rows_of_nodes(
    sent,             # IN      nodes each row is sent to, -1 where none    (n_rows, beam) int32; beam may be 0
    indptr, indices,  # IN      further nodes of each row; no row in it: none
    fill,             # IN/OUT  rows of every node so far, or where its next row goes    (n_nodes,) int64
    rows,             # OUT     rows of every node; empty to count only     int32
):  # fmt: skip
    """Count the rows of every node, each once, or write them down."""
    seen = np.full(fill.size, -1, dtype=np.int32)
    for row in range(max(sent.shape[0], indptr.size - 1)):
        for rank in range(sent.shape[1]):
            node = sent[row, rank]
            if node >= 0 and seen[node] != row:
                seen[node] = row
                if rows.size:
                    rows[fill[node]] = row
                fill[node] += 1
        if indptr.size > 1:
            for t in range(indptr[row], indptr[row + 1]):
                node = indices[t]
                if seen[node] != row:
                    seen[node] = row
                    if rows.size:
                        rows[fill[node]] = row
                    fill[node] += 1


@njit(nogil=True, cache=True)
def gather_into(
    indptr, indices, data,  # IN   all rows, CSR
    rows,                   # IN   the rows of the chunk                     (m,)
    position,               # TMP  -1 on entry and on exit                   (n_features,) int32
    local_indptr,           # IN   pointers of the chunk's rows              (m + 1,) int64
    local_indices,          # OUT  their features, by position in those returned
    local_data,             # OUT
):  # fmt: skip
    """Copy rows over their own features into given arrays; return those features, ascending."""
    touched = np.empty(min(local_indptr[-1], position.size), dtype=np.int32)
    n_touched = 0
    at = 0
    for r in range(rows.size):
        for t in range(indptr[rows[r]], indptr[rows[r] + 1]):
            f = indices[t]
            if position[f] < 0:
                position[f] = 0
                touched[n_touched] = f
                n_touched += 1
            local_indices[at] = f
            local_data[at] = data[t]
            at += 1
    features = np.sort(touched[:n_touched])
    for p in range(n_touched):
        position[features[p]] = p
    for t in range(at):
        local_indices[t] = position[local_indices[t]]
    for p in range(n_touched):
        position[features[p]] = -1
    return features
