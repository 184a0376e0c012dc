"""Remove pairs of a row and a label that must not count, such as a page recommended for itself."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from longtail.data import TopK
from longtail.errors import DataError


def filter_topk(topk: TopK, pairs: np.ndarray | Sequence[Sequence[int]]) -> TopK:
    """Return the predictions without some pairs of row and label; later predictions move up.

    A row ends in as many missing predictions (id -1) as it loses, so predict more labels than the k you evaluate at.

    Parameters
    ----------
    topk : TopK
        Predictions.
    pairs : array of shape (n_pairs, 2)
        Row number and label number, as in the filter files of the benchmark data sets (see `read_filter`).

    Returns
    -------
    topk : TopK
        The rest, with as many positions.

    Examples
    --------
    >>> top = TopK.from_scores([[0.9, 0.5, 0.1], [0.9, 0.5, 0.1]], k=3)
    >>> filter_topk(top, [[0, 0], [1, 2]]).ids.tolist()
    [[1, 2, -1], [0, 1, -1]]
    """
    wanted = _check_pairs(pairs, topk.n_rows)
    if wanted.size == 0 or topk.ids.size == 0:
        return topk
    width = np.int64(topk.ids.max()) + 1
    wanted = wanted[wanted[:, 1] < width]  # a label that is never predicted needs no removing
    if wanted.size == 0:
        return topk
    removed = np.unique(wanted[:, 0] * width + wanted[:, 1])  # one number per pair: row · width + label
    keys = np.arange(topk.n_rows, dtype=np.int64)[:, None] * width + topk.ids
    at = np.minimum(np.searchsorted(removed, keys), removed.size - 1)
    keep = (removed[at] != keys) & (topk.ids >= 0)
    order = np.argsort(~keep, axis=1, kind="stable")  # kept labels first, in their old order
    kept = np.take_along_axis(keep, order, axis=1)
    ids = np.where(kept, np.take_along_axis(topk.ids, order, axis=1), np.int32(-1))
    scores = np.where(kept, np.take_along_axis(topk.scores, order, axis=1), np.float32(-np.inf))
    return TopK(ids, scores)


def _check_pairs(pairs: np.ndarray | Sequence[Sequence[int]], n_rows: int) -> np.ndarray:
    A = np.asarray(pairs)
    if A.size == 0:
        return np.empty((0, 2), dtype=np.int64)
    if A.ndim != 2 or A.shape[1] != 2:
        raise DataError(f"pairs must have two columns, row and label; got shape {A.shape}.")
    whole = A.dtype.kind in "iu" or (A.dtype.kind == "f" and bool((np.isfinite(A) & (np.floor(A) == A)).all()))
    if not whole:
        raise DataError(f"pairs must hold whole numbers, row and label; got dtype {A.dtype}.")
    bad = np.iinfo(np.int64).max < A if A.dtype.kind in "uf" else np.zeros(A.shape, dtype=bool)
    if bad.any():
        at = int(np.flatnonzero(bad.any(axis=1))[0])
        raise DataError(f"pairs must hold whole numbers below 2**63; got {A[at].max()} in line {at + 1}.")
    out = A.astype(np.int64)
    bad = (out[:, 0] < 0) | (out[:, 0] >= n_rows) | (out[:, 1] < 0)
    if bad.any():
        at = int(np.flatnonzero(bad)[0])
        raise DataError(
            f"pairs must name rows from 0 to {n_rows - 1} and labels >= 0; "
            f"got row {out[at, 0]}, label {out[at, 1]} in line {at + 1}."
        )
    return out
