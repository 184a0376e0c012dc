"""Compiled loops for training data in files: they write into arrays that are given, wherever these are."""

from __future__ import annotations

import numpy as np

from longtail.kernels import njit


@njit(nogil=True, cache=True)
def put_rows_of_nodes(
    sent,             # IN      nodes each row is sent to, -1 where none    (n_rows, beam) int32; beam may be 0
    indptr, indices,  # IN      further nodes of each row; no row in it: none
    fill,             # IN/OUT  rows of every node so far, or where its next row goes    (n_nodes,) int64
    rows,             # OUT     rows of every node; empty to count only     int32
):  # fmt: skip
    """Count the rows of every node, each once, or write them down."""
    seen = np.full(fill.size, -1, dtype=np.int32)
    for row in range(max(sent.shape[0], indptr.size - 1)):
        for rank in range(sent.shape[1]):
            node = sent[row, rank]
            if node >= 0 and seen[node] != row:
                seen[node] = row
                if rows.size:
                    rows[fill[node]] = row
                fill[node] += 1
        if indptr.size > 1:
            for t in range(indptr[row], indptr[row + 1]):
                node = indices[t]
                if seen[node] != row:
                    seen[node] = row
                    if rows.size:
                        rows[fill[node]] = row
                    fill[node] += 1
