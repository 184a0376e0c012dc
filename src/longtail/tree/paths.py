"""From the paths of leaves to the levels of a tree."""

from __future__ import annotations

import numpy as np


def levels_from_paths(paths: np.ndarray) -> tuple[np.ndarray, ...]:
    """Return for every level the parent of each of its nodes, from one path (a row of child marks) per leaf.

    Rows must be distinct and sorted. Two leaves share a node at level t if their paths agree up to column t; the marks
    themselves mean nothing beyond that. Leaf i is node i of the last level.

    >>> [level.tolist() for level in levels_from_paths(np.array([[0, 1], [0, 7], [3, 0]]))]
    [[0, 0], [0, 0, 1]]
    """
    starts = np.ones(paths.shape, dtype=bool)  # the leaf is the first below its node at this level
    np.logical_or.accumulate(paths[1:] != paths[:-1], axis=1, out=starts[1:])
    parents = [np.zeros(np.count_nonzero(starts[:, 0]), dtype=np.int32)]
    for level in range(1, paths.shape[1]):
        above = np.cumsum(starts[:, level - 1], dtype=np.int32) - 1
        parents.append(above[starts[:, level]].astype(np.int32))
    return tuple(parents)


def collapsed_paths(codes: np.ndarray, n_codes: int, branching: int) -> np.ndarray:
    """Return the paths of some of `n_codes` leaves in a row when blocks of `branching` neighbours share a parent.

    Blocks of blocks are formed until at most `branching` are left, which stand below the root. Codes must ascend.

    >>> collapsed_paths(np.array([0, 1, 5]), n_codes=8, branching=4).tolist()
    [[0, 0], [0, 1], [1, 5]]
    """
    columns = [np.asarray(codes, dtype=np.int64)]
    while n_codes > branching:
        columns.append(columns[-1] // branching)
        n_codes = -(-n_codes // branching)
    return np.stack(columns[::-1], axis=1)
