"""Which rows have which nodes of a level, for training data larger than memory: block by block, into files.

The same pairs as those of the sparse products in `train_levels`, without the copies that these make.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp

from longtail.kernels import rows_of_columns
from longtail.tree.level_kernels import put_rows_of_nodes
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
