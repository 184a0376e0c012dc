"""The labels of the training texts that lie nearest to a text, in the space of the trained encoder.

    share(label) = sum of weights of the nearest texts that carry it,   weight = exp(cosine / 0.03), scaled to sum 1

Many texts are kept in cells of like ones, and only the cells nearest to a text are looked through.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Self

import numpy as np
import scipy.sparse as sp

from longtail.hybrid.neighbour_kernels import label_shares, nearest_rows, project, quantize_rows
from longtail.kernels import blocks, run_tasks

NEAREST = 100  # training texts that speak for a text
LISTED = 100  # labels kept of theirs
TEMPERATURE = 0.03
IN_ONE_CELL = 8192  # so many texts are all looked through
SCANNED = 0.06  # share of more texts that are looked through, in cells
ROUNDS = 6  # of two-means, for every division of a cell
SAMPLE = 2000  # vectors of a cell by which it is divided
BLOCK = 64


@dataclass(frozen=True)
class Neighbours:
    """Vectors of training texts, in cells of like ones, with their labels.

    Attributes
    ----------
    vectors, scales : ndarray
        int8 (n_rows, width) and float32 (n_rows,): the vectors, cell after cell.
    centres : ndarray of float32 (n_cells, width)
        Mean vectors of the cells.
    starts : ndarray of int64 (n_cells + 1,)
        Where the rows of each cell begin.
    rows : ndarray of int32 (n_rows,)
        Which row of the training data each is.
    indptr, indices : ndarray
        int64 (n_rows + 1,) and int32: the labels of every row.

    Examples
    --------
    >>> neighbours = Neighbours.of(np.eye(3, dtype=np.float32), sp.csr_array(np.eye(3)), seed=0)
    >>> ids, shares = neighbours.label_shares(np.array([[0.0, 1.0, 0.0]], dtype=np.float32))
    >>> ids[0, 0], shares[0, 0].round(3)
    (np.int32(1), np.float32(1.0))
    """

    vectors: np.ndarray
    scales: np.ndarray
    centres: np.ndarray
    starts: np.ndarray
    rows: np.ndarray
    indptr: np.ndarray
    indices: np.ndarray

    @classmethod
    def of(cls, vectors: np.ndarray, Y: sp.csr_array, seed: int) -> Self:
        """Return the memory of texts with labels, from their vectors at unit length."""
        kept = np.flatnonzero(np.diff(Y.indptr))
        order, starts = cells_of(vectors[kept], seed)
        kept = kept[order]
        stored, scales = quantized_rows(np.ascontiguousarray(vectors[kept], dtype=np.float32))
        centres = np.stack([vectors[kept[at:end]].mean(axis=0) for at, end in pairwise(starts)])
        labels = sp.csr_array(Y[kept])
        return cls(
            stored,
            scales,
            centres.astype(np.float32),
            starts,
            kept.astype(np.int32),
            labels.indptr.astype(np.int64),
            labels.indices.astype(np.int32),
        )

    def nearest(self, queries: np.ndarray, n_jobs: int = 1, k: int = NEAREST) -> tuple[np.ndarray, np.ndarray]:
        """Return positions of the nearest texts in this memory, best first (-1 where there are fewer), and cosines."""
        queries = np.ascontiguousarray(queries, dtype=np.float32)
        rows = np.empty((queries.shape[0], k), dtype=np.int32)
        products = np.empty((queries.shape[0], k), dtype=np.float32)
        n_rows = self.vectors.shape[0]
        n_scanned = max(IN_ONE_CELL, round(SCANNED * n_rows))

        def search(at: slice) -> None:
            nearest_rows(
                queries[at], self.centres, self.starts, self.vectors, self.scales, n_scanned, rows[at], products[at]
            )

        run_tasks(search, blocks(queries.shape[0], BLOCK), n_jobs)
        return rows, products

    def label_shares(self, queries: np.ndarray, n_jobs: int = 1) -> tuple[np.ndarray, np.ndarray]:
        """Return the labels of the nearest texts with their shares, largest first; -1 and 0 where there are fewer."""
        rows, products = self.nearest(queries, n_jobs)
        ids = np.empty((queries.shape[0], LISTED), dtype=np.int32)
        shares = np.empty((queries.shape[0], LISTED), dtype=np.float32)

        def add_up(at: slice) -> None:
            label_shares(rows[at], products[at], self.indptr, self.indices, TEMPERATURE, ids[at], shares[at])

        run_tasks(add_up, blocks(queries.shape[0], BLOCK), n_jobs)
        return ids, shares

    def carriers(self, query: np.ndarray, label: int, k: int) -> list[tuple[int, float]]:
        """Return the training rows nearest to a text that carry a label, with their cosines."""
        rows, products = self.nearest(query[None])
        has = [
            (int(self.rows[row]), float(product))
            for row, product in zip(rows[0], products[0], strict=True)
            if row >= 0 and label in self.indices[self.indptr[row] : self.indptr[row + 1]]
        ]
        return has[:k]

    def to_arrays(self) -> dict[str, np.ndarray]:
        """Return what is saved."""
        return dict(vars(self))


def quantized_rows(vectors: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return vectors as int8 and what each row is to be multiplied with."""
    out, scales = np.empty(vectors.shape, dtype=np.int8), np.empty(vectors.shape[0], dtype=np.float32)
    quantize_rows(vectors, out, scales)
    return out, scales


def cells_of(vectors: np.ndarray, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Return an order of vectors in which those of a cell stand together, and where each cell begins.

    Cells are halved, by two-means, until none has more than `2 * sqrt(n)` vectors; up to `IN_ONE_CELL` vectors are one.

    >>> order, starts = cells_of(np.eye(4, dtype=np.float32), seed=0)
    >>> order.tolist(), starts.tolist()
    ([0, 1, 2, 3], [0, 4])
    """
    n = vectors.shape[0]
    if n <= IN_ONE_CELL:
        return np.arange(n), np.array([0, n], dtype=np.int64)
    largest, rng = 2 * int(np.sqrt(n)), np.random.default_rng(seed)
    waiting, done = [np.arange(n)], []
    while waiting:
        cell = waiting.pop()
        if cell.size <= largest:
            done.append(np.sort(cell))
        else:
            waiting += _halves(vectors, cell, rng)
    starts = np.zeros(len(done) + 1, dtype=np.int64)
    np.cumsum([cell.size for cell in done], out=starts[1:])
    return np.concatenate(done), starts


def _halves(vectors: np.ndarray, cell: np.ndarray, rng: np.random.Generator) -> list[np.ndarray]:
    """Divide a cell into two of equal size, by the direction between the centres of two groups of its vectors."""
    some = vectors[rng.permutation(cell)[:SAMPLE]].astype(np.float32)
    half = some.shape[0] // 2
    first, second = some[0], some[-1]
    for _ in range(ROUNDS):
        order = np.argsort(np.einsum("ij,j->i", some, second - first), kind="stable")
        first, second = some[order[:half]].mean(axis=0), some[order[half:]].mean(axis=0)
    along = np.empty(cell.size, dtype=np.float32)
    project(vectors, cell, second - first, along)
    order = np.argsort(along, kind="stable")
    return [cell[order[cell.size // 2 :]], cell[order[: cell.size // 2]]]
