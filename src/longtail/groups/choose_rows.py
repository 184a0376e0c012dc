"""Choosing the best rows of each group for a label, and how likely each is right."""

from __future__ import annotations

import numpy as np
from numba import njit

PRIOR = 4.0
FEW = 8  # that many of a group are found one after the other; more by sorting


@njit(nogil=True, cache=True)
def choose(scores, low, high, take, chosen, order):
    """Mark the `take` best of low..high and note them in `order`, best first; of equal ones the first is better."""
    chosen[low:high] = 0
    if take <= FEW:
        for place in range(take):
            best = -1
            for m in range(low, high):
                if chosen[m] == 0 and (best < 0 or scores[m] > scores[best]):
                    best = m
            chosen[best] = 1
            order[place] = best
        return
    sorted_ = np.argsort(-scores[low:high], kind="mergesort")
    for place in range(take):
        order[place] = low + sorted_[place]
        chosen[low + sorted_[place]] = 1


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
    for place in range(n - 2, -1, -1):
        rests[place] = 1 + rests[place + 1] * np.exp(scores[order[place + 1]] - scores[order[place]])
    left = float(take)
    place = 0
    while left >= rests[place]:  # the best rows are certain as long as their share would be 1 or more
        shares[order[place]] = 1
        left -= 1
        place += 1
    for later in range(place, n):
        shares[order[later]] = left / rests[place] * np.exp(scores[order[later]] - scores[order[place]])


def capped_shares_plain(scores: np.ndarray, take: int, shares: np.ndarray) -> None:
    low, high = -scores.max() - 50, -scores.min() + 50  # logarithm of the factor at which the shares add up to `take`
    for _ in range(200):
        middle = (low + high) / 2
        low, high = (middle, high) if np.exp(np.minimum(0, scores + middle)).sum() < take else (low, middle)
    shares[:] = np.exp(np.minimum(0, scores + high))


@njit(nogil=True, cache=True)
def write_best(
    group_indptr, group_rows,  # IN   rows of each group
    groups, take,              # IN   the label's groups, rows wanted of each      (n_pairs,)
    bounds,                    # IN   where the members of each pair begin in scores, from bounds[0] on  (n_pairs + 1,)
    scores,                    # IN   x · z / |z| of the members                   float64
    temperature,
    place_indptr,              # IN   room for the best rows of each pair          (n_pairs + 1,)
    chosen, order,             # TEMP like scores
    out_rows,                  # OUT  best rows of each pair, best first           (places,) int32
    out_scores, out_shares,    # OUT  score and share of each                      (places,) float32
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
        at = place_indptr[o]
        places = place_indptr[o + 1] - at
        choose(scores, low, high, places, chosen, order)
        for place in range(places):
            m = order[place]
            out_rows[at + place] = group_rows[group_indptr[groups[o]] + m - low]
            out_scores[at + place] = scores[m]
            out_shares[at + place] = shares[m - low]
