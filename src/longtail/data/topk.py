"""Predictions: the k best labels of every row with their scores."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp

from longtail.data.shown import topk_html
from longtail.errors import DataError
from longtail.validate import MatrixLike, as_sparse

INT32_MAX = np.iinfo(np.int32).max


@dataclass(frozen=True)
class TopK:
    """The k best labels of every row with their scores, best first.

    A row with fewer than k labels has id -1 and score -inf in its last positions. Nothing of size
    rows × labels is held.

    Parameters
    ----------
    ids : array of shape (n_rows, k)
        Label numbers; kept as int32.
    scores : array of shape (n_rows, k)
        Their scores; kept as float32.

    Attributes
    ----------
    n_rows, k : int
        The number of rows and of positions in each.

    Examples
    --------
    >>> top = TopK.from_scores([[0.1, 0.9, 0.5]], k=2)
    >>> top.ids.tolist()
    [[1, 2]]
    """

    ids: np.ndarray  # int32 (n_rows, k)
    scores: np.ndarray  # float32 (n_rows, k)

    def __post_init__(self) -> None:
        ids = _as_ids(self.ids)
        scores = np.ascontiguousarray(self.scores, dtype=np.float32)
        if ids.ndim != 2 or ids.shape != scores.shape:
            raise DataError(f"TopK needs ids and scores of one shape (n_rows, k); got {ids.shape} and {scores.shape}.")
        object.__setattr__(self, "ids", ids)
        object.__setattr__(self, "scores", scores)

    @property
    def n_rows(self) -> int:
        """The number of rows."""
        return int(self.ids.shape[0])

    @property
    def k(self) -> int:
        """The number of positions in each row."""
        return int(self.ids.shape[1])

    def __len__(self) -> int:
        return self.n_rows

    def _repr_html_(self) -> str:
        """Return what a notebook shows: the best labels of the first rows, with their scores."""
        return topk_html(self)

    def __getitem__(self, rows: int | slice | Sequence[int] | np.ndarray) -> TopK:
        """Return the predictions of some rows: a row number, a slice, a mask or an array of row numbers."""
        if isinstance(rows, int | np.integer):
            rows = [int(rows)]
        return TopK(self.ids[rows], self.scores[rows])

    def head(self, k: int) -> TopK:
        """Return the first k positions of every row."""
        return TopK(self.ids[:, :k], self.scores[:, :k])

    def to_csr(self, n_labels: int) -> sp.csr_array:
        """Return the scores as a CSR matrix (n_rows, n_labels); missing labels are left out."""
        present = self.ids >= 0
        indptr = np.concatenate([[0], np.cumsum(present.sum(axis=1), dtype=np.int64)])
        M = sp.csr_array((self.scores[present], self.ids[present], indptr), shape=(self.n_rows, n_labels))
        M.sort_indices()
        return M

    @classmethod
    def from_scores(cls, scores: MatrixLike, k: int) -> TopK:
        """Return the k best labels of every row of a matrix of scores; equal scores go by label number, lower first.

        Parameters
        ----------
        scores : matrix of shape (n_rows, n_labels)
            Dense, or sparse: then only stored entries are scores.
        k : int
            Labels of each row.

        Returns
        -------
        topk : TopK
        """
        if sp.issparse(scores):
            return _from_csr(scores, k)
        dense = np.asarray(scores, dtype=np.float32)
        order = np.argsort(-dense, axis=1, kind="stable")[:, :k]
        ids = np.full((dense.shape[0], k), -1, dtype=np.int32)
        out = np.full((dense.shape[0], k), -np.inf, dtype=np.float32)
        ids[:, : order.shape[1]] = order
        out[:, : order.shape[1]] = np.take_along_axis(dense, order, axis=1)
        return cls(ids, out)

    @classmethod
    def stack(cls, parts: Sequence[TopK]) -> TopK:
        """Return the predictions of consecutive blocks of rows as one."""
        return cls(np.vstack([p.ids for p in parts]), np.vstack([p.scores for p in parts]))


def _as_ids(values: np.ndarray | Sequence[Sequence[int]]) -> np.ndarray:
    """Return label numbers as int32; those that are none or do not fit are refused."""
    if isinstance(values, np.ndarray) and values.dtype == np.int32:
        return np.ascontiguousarray(values)
    try:
        A = np.asarray(values)
    except (ValueError, OverflowError) as error:
        raise DataError("TopK needs ids of one shape (n_rows, k); got rows of different lengths.") from error
    whole = A.dtype.kind in "iu" or (A.dtype.kind == "f" and bool((np.floor(A) == A).all()))
    if not whole and A.size:
        raise DataError(f"TopK needs whole numbers as ids; got dtype {A.dtype}.")
    if A.size and (A.max() > INT32_MAX or A.min() < -INT32_MAX):
        got = A.max() if A.max() > INT32_MAX else A.min()
        raise DataError(f"TopK needs ids from -1 to {INT32_MAX}; got {got:.0f}.")
    return np.ascontiguousarray(A, dtype=np.int32)


def _from_csr(scores: sp.sparray | sp.spmatrix, k: int) -> TopK:
    M = sp.csr_array(scores)
    rows = np.repeat(np.arange(M.shape[0]), np.diff(M.indptr))
    order = np.lexsort((M.indices, -M.data, rows))
    position = np.arange(order.size) - np.repeat(M.indptr[:-1], np.diff(M.indptr))
    keep = position < k
    ids = np.full((M.shape[0], k), -1, dtype=np.int32)
    out = np.full((M.shape[0], k), -np.inf, dtype=np.float32)
    ids[rows[keep], position[keep]] = M.indices[order][keep]
    out[rows[keep], position[keep]] = M.data[order][keep]
    return TopK(ids, out)


def binary_hits(topk: TopK, Y: MatrixLike) -> np.ndarray:
    """Return which predicted labels are true.

    Parameters
    ----------
    topk : TopK
        Predictions.
    Y : matrix of shape (n_rows, n_labels)
        The true labels.

    Returns
    -------
    hits : ndarray of shape (n_rows, k), bool

    Examples
    --------

    >>> binary_hits(TopK.from_scores([[0.1, 0.9, 0.5]], k=2), [[0, 1, 0]]).tolist()
    [[True, False]]
    """
    Y = as_sparse(Y, "Y")
    n_labels = np.int64(max(Y.shape[1], 1))
    rows = np.repeat(np.arange(Y.shape[0], dtype=np.int64), np.diff(Y.indptr))
    true = rows * n_labels + Y.indices  # sorted, since Y is canonical
    wanted = np.arange(topk.n_rows, dtype=np.int64)[:, None] * n_labels + topk.ids
    if true.size == 0:
        return np.zeros(topk.ids.shape, dtype=bool)
    at = np.minimum(np.searchsorted(true, wanted), true.size - 1)
    return (true[at] == wanted) & (topk.ids >= 0)
