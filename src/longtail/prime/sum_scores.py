"""Compiled: rank labels by `score = trust * s_tree + share * s_prime`, the scores of a tree and of PRIME."""

from __future__ import annotations

import numpy as np

from longtail.kernels import njit


@njit(nogil=True, cache=True)
def blend_lists(
    rows, vectors,        # IN   of queries (n, width), and of labels; both float32
    ids, scores,          # IN   labels and their scores by the first model, -1 where none        (n, m)
    more,                 # IN   further labels, -1 where none                                    (n, e)
    known,                # IN   bool per label: whether the first model knows it
    lowest,               # IN   what stands for the score of a label that is known, but not listed (n,)
    trust,                # IN   what the first model's scores are multiplied with                  (n,)
    share, start, slope,  # IN   what a product counts; what stands for the score of a label that is not known
    out_ids, out_scores,  # OUT  best first, equal scores by label, -1 and -inf where none        (n, k)
):  # fmt: skip
    """Keep the k labels of every row with the largest `trust * base + share * product`.

    `product` is the inner product of query and label, and `base` the first model's score: of a listed label its own, of
    a further label that the model knows `lowest`, of one it does not know `min(0, start + slope * product)`.
    """
    n, k = out_ids.shape
    width = rows.shape[1]
    out_ids[:] = -1
    out_scores[:] = -np.inf
    for row in range(n):
        for i in range(ids.shape[1] + more.shape[1]):
            listed = i < ids.shape[1]
            label = ids[row, i] if listed else more[row, i - ids.shape[1]]
            if label < 0:
                continue
            if not listed:
                for j in range(ids.shape[1]):
                    if ids[row, j] == label:
                        listed = True
                        break
                if listed:
                    continue
            product = np.float32(0.0)
            for j in range(width):
                product += rows[row, j] * vectors[label, j]
            if listed:
                base = scores[row, i]
            elif known[label]:
                base = lowest[row]
            else:
                base = np.float32(min(0.0, start + slope * product))
            score = np.float32(trust[row] * base + share * product)
            rank = k
            while rank > 0 and (
                score > out_scores[row, rank - 1]
                or (score == out_scores[row, rank - 1] and label < out_ids[row, rank - 1])
            ):
                rank -= 1
            if rank == k:
                continue
            for j in range(k - 1, rank, -1):
                out_scores[row, j] = out_scores[row, j - 1]
                out_ids[row, j] = out_ids[row, j - 1]
            out_scores[row, rank] = score
            out_ids[row, rank] = label
