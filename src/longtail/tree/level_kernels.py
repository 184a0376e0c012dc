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


@njit(nogil=True, cache=True)
def gather_into(
    indptr, indices, data,  # IN   all rows, CSR
    rows,                   # IN   the rows of the chunk                     (m,)
    position,               # TMP  -1 on entry and on exit                   (n_features,) int32
    local_indptr,           # IN   pointers of the chunk's rows              (m + 1,) int64
    local_indices,          # OUT  their features, by position in those returned
    local_data,             # OUT
):  # fmt: skip
    """Copy rows over their own features into given arrays; return those features, ascending."""
    touched = np.empty(min(local_indptr[-1], position.size), dtype=np.int32)
    n_touched = 0
    at = 0
    for r in range(rows.size):
        for t in range(indptr[rows[r]], indptr[rows[r] + 1]):
            f = indices[t]
            if position[f] < 0:
                position[f] = 0
                touched[n_touched] = f
                n_touched += 1
            local_indices[at] = f
            local_data[at] = data[t]
            at += 1
    features = np.sort(touched[:n_touched])
    for p in range(n_touched):
        position[features[p]] = p
    for t in range(at):
        local_indices[t] = position[local_indices[t]]
    for p in range(n_touched):
        position[features[p]] = -1
    return features
