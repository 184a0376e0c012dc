"""Choosing the best rows of each group for a label, and the share of the label that each row gets."""

from __future__ import annotations

import numpy as np

from longtail.kernels import njit

PRIOR = 4.0  # rows of average variance that are added when scores are standardised
FEW = 8  # that many of a group are found one after the other; more by sorting


@njit(nogil=True, cache=True)
def choose(scores, low, high, take, chosen, order):
    """Mark the `take` best of low..high and note them in `order`, best first; of equal ones the first is better."""
    chosen[low:high] = 0
    if take <= FEW:
        for rank in range(take):
            best = -1
            for m in range(low, high):
                if chosen[m] == 0 and (best < 0 or scores[m] > scores[best]):
                    best = m
            chosen[best] = 1
            order[rank] = best
        return
    sorted_ = np.argsort(-scores[low:high], kind="mergesort")
    for rank in range(take):
        order[rank] = low + sorted_[rank]
        chosen[low + sorted_[rank]] = 1


@njit(nogil=True, cache=True)
def capped_shares(
    scores,  # IN   standardised scores of a group's rows          (n,) float64
    take,    # IN   how many rows have the label
    shares,  # OUT  at most 1 each, `take` in all: min(1, f · exp(score))   (n,) float64
):  # fmt: skip
    """Say how likely each row of a group is among the `take` rows that have the label."""
    n = scores.size
    if take >= n:
        shares[:] = 1
        return
    if take == 1:  # nothing can exceed 1: the usual softmax
        top = scores.max()
        rest = 0.0
        for m in range(n):
            shares[m] = np.exp(scores[m] - top)
            rest += shares[m]
        for m in range(n):
            shares[m] /= rest
        return
    order = np.argsort(-scores, kind="mergesort")
    rests = np.ones(n + 1, dtype=np.float64)  # Σ of exp(score) from a row on, in terms of its own
    for rank in range(n - 2, -1, -1):
        rests[rank] = 1 + rests[rank + 1] * np.exp(scores[order[rank + 1]] - scores[order[rank]])
    left = float(take)
    rank = 0
    while left >= rests[rank]:  # the best rows are certain as long as their share would be 1 or more
        shares[order[rank]] = 1
        left -= 1
        rank += 1
    for later in range(rank, n):
        shares[order[later]] = left / rests[rank] * np.exp(scores[order[later]] - scores[order[rank]])


@njit(nogil=True, cache=True)
def write_best(
    group_indptr, group_rows,  # IN   rows of each group
    groups, take,              # IN   the label's groups, rows wanted of each      (n_pairs,)
    bounds,                    # IN   where the members of each pair begin in scores, from bounds[0] on  (n_pairs + 1,)
    scores,                    # IN   x · z / |z| of the members                   float64
    temperature,
    best_indptr,               # IN   where the best rows of each pair are written (n_pairs + 1,)
    chosen, order,             # TEMP like scores
    out_rows,                  # OUT  best rows of each pair, best first           (n_best,) int32
    out_scores, out_shares,    # OUT  score and share of each                      (n_best,) float32
):  # fmt: skip
    """Write the best rows of each group of a label, with shares by scores standardised over the rows not chosen."""
    low, high = bounds[0], bounds[-1]
    for o in range(groups.size):
        choose(scores, bounds[o], bounds[o + 1], take[o], chosen, order)
    count, mean, spread = 0, 0.0, 0.0
    for m in range(low, high):
        if not chosen[m]:
            count += 1
            mean += scores[m]
    mean /= max(count, 1)
    for m in range(low, high):
        if not chosen[m]:
            spread += (scores[m] - mean) ** 2
    # as if PRIOR more rows had the variance of all: few rows do not make sure
    spread = np.sqrt((spread + PRIOR * scores[low:high].var()) / (count + PRIOR))
    spread = max(spread, 1e-6) * temperature
    for o in range(groups.size):
        low, high = bounds[o], bounds[o + 1]
        shares = np.empty(high - low, dtype=np.float64)
        capped_shares((scores[low:high] - mean) / spread, take[o], shares)
        at = best_indptr[o]
        n_best = best_indptr[o + 1] - at
        choose(scores, low, high, n_best, chosen, order)
        for rank in range(n_best):
            m = order[rank]
            out_rows[at + rank] = group_rows[group_indptr[groups[o]] + m - low]
            out_scores[at + rank] = scores[m]
            out_shares[at + rank] = shares[m - low]
