"""The k best labels of every row, by one sparse weight vector per label.

Weights are stored by feature: row f of the matrix lists the labels that use feature f. A row of X then touches
only the weights of its own features, and one dense line of scores per thread is all the memory it takes.
"""

from __future__ import annotations

import numpy as np

from longtail.kernels import njit, score_lanes

WIDTH = 32  # labels scored side by side in `dense_topk`


@njit(nogil=True, cache=True)
def insert_top(ids, scores, label, score):
    """Put a label into a list of the k best, kept best first; equal scores stay in the order they came."""
    k = scores.size
    if not score > scores[k - 1]:
        return
    rank = k - 1
    while rank > 0 and score > scores[rank - 1]:
        scores[rank] = scores[rank - 1]
        ids[rank] = ids[rank - 1]
        rank -= 1
    scores[rank] = score
    ids[rank] = label


@njit(nogil=True, cache=True)
def sparse_topk(
    indptr, indices, data,        # IN   rows of X, CSR                    (n + 1,), (nnz,), (nnz,)
    scale,                        # IN   each row is multiplied by this    (n,)
    w_indptr, w_indices, w_data,  # IN   weights by feature, CSR           (n_features + 1,), ...
    start,                        # IN   score of a row without features   (n_labels,), -inf: never predicted
    ids, scores,                  # OUT  best first, -1 and -inf where missing  (n, k)
):  # fmt: skip
    """Find the k best labels of every row; equal scores are ranked by label id, lower first."""
    n, k = ids.shape
    line = np.empty(start.size, dtype=np.float32)
    for row in range(n):
        line[:] = start
        for t in range(indptr[row], indptr[row + 1]):
            f = indices[t]
            x = data[t] * scale[row]
            for u in range(w_indptr[f], w_indptr[f + 1]):
                line[w_indices[u]] += x * w_data[u]
        ids[row, :] = -1
        scores[row, :] = -np.inf
        for label in range(start.size):
            if line[label] > scores[row, k - 1]:
                insert_top(ids[row], scores[row], label, line[label])


@njit(nogil=True, cache=True)
def dense_topk(
    indptr, indices, data, scale,  # IN   as in sparse_topk
    w_indptr, w_indices, w_data, start,
    ids, scores,                   # OUT  as in sparse_topk, to the last bit
):  # fmt: skip
    """Find the k best labels of every row, 32 labels at a time; for many rows and weights that are not very sparse.

    The weights of 32 labels are spread out once into a small dense block that stays in cache, and every row is
    scored against it with contiguous vector instructions.
    """
    n, k = ids.shape
    n_features, n_labels = w_indptr.size - 1, start.size
    block = np.zeros((n_features + 1, WIDTH), dtype=np.float32)
    at = w_indptr[:-1].copy()  # how far each feature's list of labels is used up
    line = np.empty(WIDTH, dtype=np.float32)
    ids[:] = -1
    scores[:] = -np.inf
    for first in range(0, n_labels, WIDTH):
        last = min(first + WIDTH, n_labels)
        for f in range(n_features):
            block[f, :] = 0
            u = at[f]
            while u < w_indptr[f + 1] and w_indices[u] < last:
                block[f, w_indices[u] - first] = w_data[u]
                u += 1
            at[f] = u
        block[n_features, :] = -np.inf
        block[n_features, : last - first] = start[first:last]
        for row in range(n):
            score_lanes(block, indices, data, indptr[row], indptr[row + 1], n_features, scale[row], line)
            for lane in range(last - first):
                if line[lane] > scores[row, k - 1]:
                    insert_top(ids[row], scores[row], first + lane, line[lane])


@njit(nogil=True, cache=True)
def count_weights(W, n_lanes, threshold):
    """Count the weights of every lane whose size is at least `threshold` (the last row, the bias, left out)."""
    counts = np.zeros(n_lanes, dtype=np.int64)
    for f in range(W.shape[0] - 1):
        for lane in range(n_lanes):
            if W[f, lane] != 0 and abs(W[f, lane]) >= threshold:
                counts[lane] += 1
    return counts


@njit(nogil=True, cache=True)
def collect_weights(W, n_lanes, threshold, features, values):
    """Write the kept weights lane after lane, features ascending, into `features` and `values`."""
    at = 0
    for lane in range(n_lanes):
        for f in range(W.shape[0] - 1):
            if W[f, lane] != 0 and abs(W[f, lane]) >= threshold:
                features[at] = f
                values[at] = W[f, lane]
                at += 1
