"""Compiled: sums of the leaves that rows reach in boosted trees."""

from __future__ import annotations

import numpy as np

from longtail.kernels import njit


@njit(nogil=True, cache=True)
def add_leaves(
    features,                          # IN   float32 rows (n, n_features)
    starts,                            # IN   the first node of every tree, and after the last (n_trees + 1,)
    feature, threshold, right, value,  # IN   of every node: a feature or -1 (leaf), what goes left, right child, value
    out,                               # OUT  the sum of every row (n,)
):  # fmt: skip
    """Add up the values of the leaves that every row reaches; the left child of a node is the next one."""
    for row in range(features.shape[0]):
        total = 0.0
        for tree in range(starts.size - 1):
            node = starts[tree]
            while feature[node] >= 0:
                if features[row, feature[node]] <= threshold[node]:
                    node += 1
                else:
                    node = right[node]
            total += value[node]
        out[row] = np.float32(total)
