"""What must hold for the arrays of a label tree, each with the sentence that says what is wrong."""

from __future__ import annotations

from typing import Any

import numpy as np

from longtail.errors import DataError


def integers(name: str, values: Any, dtype: type[np.integer]) -> np.ndarray:
    """Return a one-dimensional array of integers of the given type."""
    array = np.asarray(values)
    if array.ndim != 1:
        raise DataError(f"{name} must have 1 dimension; got {array.ndim}.")
    if array.size == 0:
        return np.empty(0, dtype=dtype)
    if array.dtype.kind not in "iu":
        raise DataError(f"{name} must hold integers; got dtype {array.dtype}.")
    limits = np.iinfo(dtype)
    if array.min() < limits.min or array.max() > limits.max:
        raise DataError(f"{name} must hold numbers up to {limits.max}; got {array.min()} to {array.max()}.")
    return np.ascontiguousarray(array, dtype=dtype)


def check_levels(parents: tuple[np.ndarray, ...]) -> None:
    """Refuse levels whose nodes are not sorted by their parents, or which leave a node above without children."""
    above = 1
    for t, level in enumerate(parents):
        if level.size == 0:
            raise DataError(f"parents[{t}] must have at least one node; got none.")
        fall = np.flatnonzero(np.diff(level) < 0)
        if fall.size:
            i = int(fall[0])
            raise DataError(f"parents[{t}] must ascend; node {i + 1} has parent {level[i + 1]} after {level[i]}.")
        if level[0] < 0 or level[-1] >= above:
            value = level[0] if level[0] < 0 else level[-1]
            raise DataError(f"parents[{t}] must be nodes from 0 to {above - 1} of the level above; got {value}.")
        childless = np.flatnonzero(np.bincount(level, minlength=above) == 0)
        if childless.size:
            raise DataError(f"node {childless[0]} of level {t - 1} has no children; only leaves may be empty.")
        above = level.size


def check_leaves(indptr: np.ndarray, labels: np.ndarray, n_leaves: int, n_labels: int) -> None:
    """Refuse leaves that do not fit the levels, repeat or miss a label, or are not sorted."""
    if indptr.size != n_leaves + 1:
        raise DataError(f"leaf_indptr must have one more entry than leaves, {n_leaves + 1}; got {indptr.size}.")
    if indptr[0] != 0 or indptr[-1] != labels.size or (np.diff(indptr) < 0).any():
        raise DataError(f"leaf_indptr must ascend from 0 to the number of leaf_labels, {labels.size}.")
    bad = np.flatnonzero((labels < 0) | (labels >= n_labels))
    if bad.size:
        raise DataError(f"leaf_labels must be labels from 0 to {n_labels - 1}; got {labels[bad[0]]}.")
    missing = np.flatnonzero(np.bincount(labels, minlength=n_labels) == 0)
    if missing.size:
        raise DataError(f"every label must stand in a leaf; label {missing[0]} stands in none.")
    step = np.diff(labels) > 0
    first = indptr[1:-1]
    step[first[(first > 0) & (first < labels.size)] - 1] = True  # a new leaf may begin anywhere
    if not step.all():
        at = int(np.flatnonzero(~step)[0])
        leaf = int(np.searchsorted(indptr, at, side="right")) - 1
        raise DataError(f"the labels of leaf {leaf} must ascend; got {labels[at]} before {labels[at + 1]}.")


def spread(counts: np.ndarray) -> dict[str, float]:
    """Return the smallest, mean and largest of some counts."""
    return {"smallest": int(counts.min()), "mean": float(counts.mean()), "largest": int(counts.max())}


def pointers(counts: np.ndarray) -> np.ndarray:
    """Return int64 pointers from counts: where each run starts, and the end."""
    out = np.zeros(counts.size + 1, dtype=np.int64)
    np.cumsum(counts, out=out[1:])
    return out
