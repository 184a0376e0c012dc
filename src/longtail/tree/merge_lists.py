"""Merging lists of labels with scores: those of several trees, or of several places of one label."""

from __future__ import annotations

import numpy as np
from numba import njit


@njit(nogil=True, cache=True)
def merge_lists(
    ids, scores,          # IN   labels and their scores (logarithms), -1 where none     (n, m)
    shares,               # IN   a label's chance is divided by this, or, if it is 0, by how often the label occurs
    out_ids, out_scores,  # OUT  best first, equal scores by label, -1 and -inf where none  (n, k)
):  # fmt: skip
    """Add up the chances exp(score) of every label in a row, divide, and keep the k best."""
    n, k = out_ids.shape
    out_ids[:] = -1
    out_scores[:] = -np.inf
    for row in range(n):
        order = np.argsort(ids[row], kind="mergesort")
        at = 0
        while at < order.size:
            label = ids[row, order[at]]
            total, count = 0.0, 0
            while at < order.size and ids[row, order[at]] == label:
                total += np.exp(np.float64(scores[row, order[at]]))
                count += 1
                at += 1
            total /= shares if shares > 0 else count
            if label < 0 or not total > 0:
                continue
            score = np.float32(np.log(total))
            if not score > out_scores[row, k - 1]:
                continue
            place = k - 1
            while place > 0 and score > out_scores[row, place - 1]:
                out_scores[row, place] = out_scores[row, place - 1]
                out_ids[row, place] = out_ids[row, place - 1]
                place -= 1
            out_scores[row, place] = score
            out_ids[row, place] = label
