"""Rows and label sets on a device, handed out in batches; nothing of size rows × labels beyond one batch."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import scipy.sparse as sp
import torch
from torch import Tensor

MOST_ON_GPU = 1 << 33  # bytes of one matrix that are kept on the GPU; a larger one is sent over batch by batch


class SparseRows(NamedTuple):
    """A batch of sparse rows, one after the other: row r has the entries from offsets[r] to offsets[r + 1]."""

    ids: Tensor  # int64 (nnz,)
    offsets: Tensor  # int64 (n_rows,)
    values: Tensor  # float32 (nnz,)


class SparseMatrix:
    """A CSR matrix as tensors, from which batches of rows are taken.

    >>> M = SparseMatrix(sp.csr_array([[0, 2.0], [0, 0], [1, 3]]), torch.device("cpu"))
    >>> M.dense(torch.tensor([2, 0])).tolist()
    [[1.0, 3.0], [0.0, 2.0]]
    >>> M.multi_hot(torch.tensor([0])).tolist()
    [[0.0, 1.0]]
    """

    device: torch.device
    n_columns: int

    def __init__(self, M: sp.csr_array, device: torch.device) -> None:
        self.device, self.n_columns = device, int(M.shape[1])
        home = device if 12 * M.nnz <= MOST_ON_GPU else torch.device("cpu")
        self.indptr: torch.Tensor = torch.from_numpy(M.indptr.astype(np.int64)).to(home)
        self.ids: torch.Tensor = torch.from_numpy(M.indices.astype(np.int32)).to(home)
        self.values: torch.Tensor = torch.from_numpy(M.data.astype(np.float32)).to(home)

    def take(self, rows: Tensor) -> SparseRows:
        """Return some rows, in the order given."""
        at, counts = self._entries(rows)
        offsets = torch.cumsum(counts, 0) - counts
        return SparseRows(self.ids[at].long().to(self.device), offsets.to(self.device), self.values[at].to(self.device))

    def dense(self, rows: Tensor) -> Tensor:
        """Return some rows as a float32 array (n_rows, n_columns)."""
        return self._filled(rows, with_values=True)

    def multi_hot(self, rows: Tensor) -> Tensor:
        """Return which columns some rows have: 1.0 or 0.0, (n_rows, n_columns)."""
        return self._filled(rows, with_values=False)

    def _filled(self, rows: Tensor, with_values: bool) -> Tensor:
        at, counts = self._entries(rows)
        which = torch.repeat_interleave(torch.arange(counts.numel(), device=at.device), counts, output_size=at.numel())
        out = torch.zeros(counts.numel(), self.n_columns, device=self.device)
        where = (which.to(self.device), self.ids[at].long().to(self.device))
        out[where] = self.values[at].to(self.device) if with_values else 1.0
        return out

    def _entries(self, rows: Tensor) -> tuple[Tensor, Tensor]:
        """Return where the entries of some rows stand, row after row, and how many each row has."""
        rows = rows.to(self.indptr.device)
        starts = self.indptr[rows]
        counts = self.indptr[rows + 1] - starts
        total = int(counts.sum())
        shift = starts - (torch.cumsum(counts, 0) - counts)
        shifts = torch.repeat_interleave(shift, counts, output_size=total)
        return torch.arange(total, device=rows.device) + shifts, counts


class DenseMatrix:
    """An array as a tensor, from which batches of rows are taken."""

    def __init__(self, A: np.ndarray, device: torch.device) -> None:
        self.device = device
        self.values: torch.Tensor = torch.from_numpy(A).to(device if A.nbytes <= MOST_ON_GPU else torch.device("cpu"))

    def dense(self, rows: Tensor) -> Tensor:
        """Return some rows as a float32 array."""
        return self.values[rows.to(self.values.device)].to(self.device).float()
