"""Overlapping clusters: a label with several meanings gets several places (label disentanglement).

A label can only be predicted for a row if the matcher finds a cluster it stands in. With M the clusters found for each
training row (0/1) and C the places of each label, the positives that can be recalled number

    Tr(Yᵀ Binary(M Cᵀ)).

Counting a row once for every place that recalls it makes this linear in C, and the best C with λ places per label
takes the λ largest entries of each row of Yᵀ M (`overlap=λ`). Counting it once only, and taking one place after the
other while it recalls enough further rows, gives fewer copies for the same recall (`overlap="auto"`).
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from longtail.errors import DataError, ParameterError
from longtail.kernels import blocks, run_tasks
from longtail.tree.label_tree import LabelTree
from longtail.tree.overlap_kernels import choose_places, fill_places
from longtail.validate import as_labels, as_sparse, check_integer, check_real, check_same_rows, make_csr, resolve_jobs

MOST_PLACES_AUTO = 6  # places of one label, at most, with "auto"
LEAST_AUTO = 2  # rows that a further place must recall with "auto"...
SHARE_AUTO = 0.02  # ... and this share of the label's rows
LABELS_AT_ONCE = 1024
MOST = 2**20  # places of a label, and rows for a further one
ROWS_AT_ONCE = 65_536


def disentangle(
    matcher: Any,
    Y: Any,
    overlap: int | str = 2,
    *,
    start: LabelTree | Any = None,
    least: int = 1,
    room: float | None = None,
    n_jobs: int | None = None,
) -> sp.csr_array:
    """Return the clusters each label should stand in, 0/1 CSR (n_labels, n_clusters).

    Parameters
    ----------
    matcher : (n_rows, n_clusters), not zero where the matcher finds a cluster for a training row.
    Y : (n_rows, n_labels), the labels of the rows.
    overlap : places per label, at most; or "auto": as many as pay, each further one recalling at least 2 rows and 2 %
        of the label's rows that no place before it recalls.
    start : where the labels stand now, a `LabelTree` or (n_labels, n_clusters). A label none of whose rows finds any
        cluster stays there. With `room` or "auto" every label keeps these places.
    least : rows that a further place must recall.
    room : clusters may hold so many times their mean number of labels; None for any number. The largest counts come
        first; a label for which its best clusters are full goes to the next best.

    >>> M = [[1, 0], [1, 0], [0, 1], [0, 1], [0, 1]]
    >>> Y = [[1, 0], [1, 0], [1, 0], [0, 1], [0, 1]]
    >>> disentangle(M, Y, overlap=2).toarray().astype(int).tolist()
    [[1, 1], [0, 1]]
    """
    M, Y = as_sparse(matcher, "matcher"), as_labels(Y, "Y")
    check_same_rows(M, Y, "matcher", "Y")
    n_jobs = resolve_jobs(n_jobs)
    overlap, least = check_overlap(overlap), check_integer("least", least, low=1, high=MOST)
    first = _start(start, Y.shape[1], M.shape[1])
    if room is not None:
        room = check_real("room", room, low=1)
    if overlap == "auto":
        ids, gains = _coverage(M, Y, first, max(least, LEAST_AUTO), SHARE_AUTO, MOST_PLACES_AUTO, n_jobs)
        kept = ids >= 0
    else:
        return _largest(M, Y, first, int(overlap), least, room)
    if room is not None:
        cap = room * kept.sum() / M.shape[1]
        held = np.diff(first.indptr)[:, None] if first is not None else 0
        must = np.arange(ids.shape[1]) < held
        kept = _within(ids, gains, kept, must, cap, M.shape[1])
    labels, at = np.nonzero(kept)
    return _places(labels, ids[labels, at], Y.shape[1], M.shape[1], first)


def check_overlap(overlap: Any) -> int | str:
    """Return `overlap` if it is a number of places or "auto"."""
    if isinstance(overlap, str) and overlap == "auto":
        return overlap
    whole = isinstance(overlap, int | np.integer) and not isinstance(overlap, bool)
    if not whole or not 1 <= overlap <= MOST:
        raise ParameterError(name="overlap", allowed=f"a whole number from 1 to {MOST} or 'auto'", got=overlap)
    return int(overlap)


def recalled(matcher: Any, Y: Any, places: Any) -> int:
    """Return how many labels of rows stand in a cluster that the matcher finds for the row: Tr(Yᵀ Binary(M Cᵀ)).

    >>> recalled([[1, 0], [0, 1]], [[1], [1]], [[1, 0]])
    1
    """
    C = places.places() if isinstance(places, LabelTree) else as_sparse(places, "places")
    M, Y = as_sparse(matcher, "matcher"), as_labels(Y, "Y")
    check_same_rows(M, Y, "matcher", "Y")
    wanted = (Y.shape[1], M.shape[1])
    if C.shape != wanted:
        raise DataError(f"places must have the shape (n_labels, n_clusters) = {wanted}; got {C.shape}.")
    total = 0
    for at in blocks(Y.shape[0], ROWS_AT_ONCE):
        labels = Y.indices[Y.indptr[at.start] : Y.indptr[at.stop]]
        rows = np.repeat(np.arange(at.start, at.stop, dtype=np.int64), np.diff(Y.indptr[at.start : at.stop + 1]))
        several = C[labels]  # the places of every label of every row
        which = np.repeat(np.arange(labels.size), np.diff(several.indptr))
        found = np.repeat(np.arange(at.start, at.stop, dtype=np.int64), np.diff(M.indptr[at.start : at.stop + 1]))
        found = found * M.shape[1] + M.indices[M.indptr[at.start] : M.indptr[at.stop]]
        total += np.unique(which[np.isin(rows[which] * M.shape[1] + several.indices, found)]).size
    return total


def _start(start: Any, n_labels: int, n_clusters: int) -> sp.csr_array | None:
    if start is None:
        return None
    places = start.places() if isinstance(start, LabelTree) else as_sparse(start, "start")
    wanted = (n_labels, n_clusters)
    if places.shape != wanted:
        raise DataError(f"start must have the shape (n_labels, n_clusters) = {wanted}; got {places.shape}.")
    return places


def _largest(
    M: sp.csr_array, Y: sp.csr_array, first: sp.csr_array | None, overlap: int, least: int, room: float | None
) -> sp.csr_array:
    """Take the largest counts of every label, within the room that clusters have."""
    found = make_csr(M.indptr, M.indices, np.ones(M.nnz, np.float32), M.shape[1])
    votes = sp.csr_array(make_csr(Y.indptr, Y.indices, np.ones(Y.nnz, np.float32), Y.shape[1]).T @ found)
    votes.sort_indices()
    labels = np.repeat(np.arange(Y.shape[1]), np.diff(votes.indptr))
    counts = votes.data.astype(np.int64)
    held = np.zeros(counts.size, dtype=bool)
    if room is not None and first is not None:
        keys = labels * np.int64(M.shape[1]) + votes.indices
        mine = np.repeat(np.arange(Y.shape[1]), np.diff(first.indptr)) * np.int64(M.shape[1]) + first.indices
        at = np.searchsorted(keys, mine)  # both ascend
        known = np.append(keys, -1)[at] == mine
        held[at[known]] = True
        missing = mine[~known]  # places of which no row finds the cluster: kept all the same
        labels = np.concatenate([labels, missing // M.shape[1]])
        ids = np.concatenate([votes.indices, missing % M.shape[1]])
        counts, held = np.append(counts, np.zeros(missing.size, np.int64)), np.append(held, np.ones(missing.size, bool))
    else:
        ids = votes.indices
    order = np.lexsort((ids, labels, -counts, ~held))
    cap = np.inf if room is None else room * overlap * Y.shape[1] / M.shape[1]
    chosen = fill_places(
        labels[order].astype(np.int32),
        ids[order].astype(np.int32),
        counts[order],
        held[order],
        overlap,
        least,
        cap,
        np.zeros(Y.shape[1], np.int64),
        np.zeros(M.shape[1], np.int64),
    )
    return _places(labels[order][chosen], ids[order][chosen], Y.shape[1], M.shape[1], first)


def _coverage(
    M: sp.csr_array, Y: sp.csr_array, first: sp.csr_array | None, least: int, share: float, most: int, n_jobs: int
) -> tuple[np.ndarray, np.ndarray]:
    """Take one place after the other, each the one that recalls most further rows."""
    by_label = sp.csc_array(Y)
    rows = (by_label.indptr.astype(np.int64), by_label.indices.astype(np.int32))
    found = (M.indptr.astype(np.int64), M.indices.astype(np.int32))
    held = np.zeros(Y.shape[1] + 1, np.int64) if first is None else first.indptr.astype(np.int64)
    mine = np.empty(0, np.int32) if first is None else first.indices.astype(np.int32)
    most = max(most, int(np.diff(held).max(initial=0)))
    longest = int(np.diff(rows[0]).max(initial=0))

    def some(at: slice) -> tuple[np.ndarray, np.ndarray]:
        n = at.stop - at.start
        ids, gains = np.empty((n, most), np.int32), np.empty((n, most), np.int64)
        spare = (np.zeros(M.shape[1], np.int64), np.zeros(M.shape[1], np.bool_), np.zeros(longest, np.bool_))
        choose_places(*rows, *found, held, mine, at.start, at.stop, least, share, *spare, ids, gains)
        return ids, gains

    parts = run_tasks(some, blocks(Y.shape[1], LABELS_AT_ONCE), n_jobs)
    ids, gains = (np.concatenate(part) for part in zip(*parts, strict=True))
    return ids, gains


def _within(
    ids: np.ndarray, gains: np.ndarray, kept: np.ndarray, must: np.ndarray, cap: float, n_clusters: int
) -> np.ndarray:
    """Leave out choices for which a cluster has no room, the smallest gains first."""
    labels, at = np.nonzero(kept)
    held = must[labels, at] if isinstance(must, np.ndarray) else np.zeros(labels.size, bool)
    order = np.lexsort((labels, -gains[labels, at], ~held))
    labels, at, held = labels[order], at[order], held[order]
    chosen = fill_places(
        labels.astype(np.int32),
        ids[labels, at],
        gains[labels, at],
        held,
        ids.shape[1],
        0,
        cap,
        np.zeros(ids.shape[0], np.int64),
        np.zeros(n_clusters, np.int64),
    )
    out = np.zeros_like(kept)
    out[labels[chosen], at[chosen]] = True
    return out


def _places(
    labels: np.ndarray, ids: np.ndarray, n_labels: int, n_clusters: int, first: sp.csr_array | None
) -> sp.csr_array:
    """Return choices as a matrix; labels without any keep the places they had."""
    if first is not None:
        homeless = np.flatnonzero(np.bincount(labels, minlength=n_labels) == 0)
        old = first[homeless]
        labels = np.concatenate([labels, np.repeat(homeless, np.diff(old.indptr))])
        ids = np.concatenate([ids, old.indices])
    order = np.lexsort((ids, labels))
    indptr = np.concatenate([[0], np.cumsum(np.bincount(labels, minlength=n_labels))])
    return make_csr(indptr, ids[order], np.ones(ids.size, np.float32), n_clusters)
