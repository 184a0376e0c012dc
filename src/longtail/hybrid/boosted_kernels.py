"""Compiled: sums of the leaves that rows reach in boosted trees."""

from __future__ import annotations

import numpy as np

from longtail.kernels import njit

ROWS_AT_ONCE = 256


@njit(nogil=True, cache=True)
def add_leaves(
    features,                          # IN   float32 rows (n, n_features)
    starts,                            # IN   the first node of every tree, and after the last (n_trees + 1,)
    feature, threshold, right, value,  # IN   of every node: a feature or -1 (leaf), what goes left, right child, value
    out,                               # OUT  the sum of every row (n,)
):  # fmt: skip
    """Add up the values of the leaves that every row reaches; the left child of a node is the next one.

    Some rows go through a tree together, node after node: those that are at the node take a step. All are asked at
    every node, without a branch, so that the processor takes many at once.
    """
    totals = np.empty(ROWS_AT_ONCE)
    at = np.empty(ROWS_AT_ONCE, dtype=np.int32)
    column = np.empty((features.shape[1], ROWS_AT_ONCE), dtype=np.float32)
    for begin in range(0, features.shape[0], ROWS_AT_ONCE):
        n = min(ROWS_AT_ONCE, features.shape[0] - begin)
        totals[:n] = 0
        for number in range(features.shape[1]):
            for row in range(n):
                column[number, row] = features[begin + row, number]
        for tree in range(starts.size - 1):
            at[:n] = starts[tree]
            for node in range(starts[tree], starts[tree + 1]):
                if feature[node] < 0:
                    continue
                asked, most, there = column[feature[node]], threshold[node], right[node]
                for row in range(n):
                    next_node = node + 1 if asked[row] <= most else there
                    at[row] = next_node if at[row] == node else at[row]
            for row in range(n):
                totals[row] += value[at[row]]
        for row in range(n):
            out[begin + row] = np.float32(totals[row])
