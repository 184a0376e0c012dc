"""Learning where the labels of groups belong: one vector per label, and the rows of each group nearest to it.

A label's members are the rows of the groups that carry it. Its vector is always a sum of group sums S, members x and
the sum T of all rows, z = Σ κ S + Σ α x + β T, so scores, lengths and steps follow from dot products with members, and
features are touched only when other rows are chosen than before. Two ways to learn, n_iter times at most:

    step      z <- unit(z + step · Σ w x over the chosen rows)                     from z = unit(Σ s x over members)
    contrast  z <- mean of the chosen members - mean of the other members          from the weighted mean of members
              - mean of the rows of groups without the label; it ends when the chosen rows stay

A label whose start is zero (its members cancel out) starts at one of the rows of its first group, another one for the
next label, so that labels that are always seen together can part.
"""

from __future__ import annotations

import numpy as np
from numba import njit

TINY = 1e-10  # a squared length below this share of the members' own is zero
PRIOR = 4.0
FEW = 8  # that many of a group are found one after the other; more by sorting


@njit(nogil=True, cache=True)
def _dots(indptr, indices, data, rows, vector, out):
    """Multiply rows with a vector; four sums at once hide the latency of the additions."""
    for m in range(rows.size):
        t, end = indptr[rows[m]], indptr[rows[m] + 1]
        a, b, c, d = np.float32(0), np.float32(0), np.float32(0), np.float32(0)
        while t + 4 <= end:
            a += data[t] * vector[np.uint32(indices[t])]
            b += data[t + 1] * vector[np.uint32(indices[t + 1])]
            c += data[t + 2] * vector[np.uint32(indices[t + 2])]
            d += data[t + 3] * vector[np.uint32(indices[t + 3])]
            t += 4
        while t < end:
            a += data[t] * vector[np.uint32(indices[t])]
            t += 1
        out[m] = (a + b) + (c + d)


@njit(nogil=True, cache=True)
def _add(indptr, indices, data, row, factor, vector):
    for t in range(indptr[row], indptr[row + 1]):
        vector[np.uint32(indices[t])] += factor * data[t]


@njit(nogil=True, cache=True)
def _add_groups(sum_indptr, sum_indices, sum_data, groups, factors, vector):
    for o in range(groups.size):
        _add(sum_indptr, sum_indices, sum_data, groups[o], np.float32(factors[o]), vector)


@njit(nogil=True, cache=True)
def _clear(sum_indptr, sum_indices, groups, wide, vector):
    """Set the features of some groups back to 0."""
    if wide:
        vector[:] = 0
        return
    for o in range(groups.size):
        for t in range(sum_indptr[groups[o]], sum_indptr[groups[o] + 1]):
            vector[np.uint32(sum_indices[t])] = 0


@njit(nogil=True, cache=True)
def _choose(scores, low, high, take, chosen, order):
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
def learn_labels(
    indptr, indices, data,       # IN   rows, CSR                                (n + 1,), (nnz,), (nnz,)
    sum_indptr, sum_indices, sum_data,  # IN  sum of the rows of each group, CSR (n_groups + 1,), (s,), (s,)
    group_indptr, group_rows,    # IN   rows of each group                       (n_groups + 1,), (memberships,)
    label_indptr, label_groups,  # IN   groups of each label                     (n_labels + 1,), (n_pairs,)
    take,                        # IN   rows wanted of each (label, group)       (n_pairs,) int32, 1 to the group's size
    start, weight,               # IN   what a member, a chosen row counts       (n_pairs,) float32; contrast: weight 1
    first, last,                 # IN   the labels to learn: first to last - 1
    n_iter, step, contrast,      # IN   step float32; contrast bool
    total, toward,               # IN   T, sum over memberships; x · T           (n_features,), (n,) float32
    temperature,                 # IN   divides standardised scores before they become shares
    threshold,                   # IN   values of a vector below this are dropped
    place_indptr,                # IN   room for the best rows of each pair      (n_pairs + 1,) int64
    out_rows,                    # OUT  best rows of each pair, best first       (places,) int32
    out_scores, out_shares,      # OUT  x · z / ‖z‖ and share of each            (places,) float32
):  # fmt: skip
    """Learn the vectors of some labels, and the best rows of each of their groups.

    Returns the vectors, of unit length and without small values, as CSR arrays. Only features of members are kept.
    """
    vector = np.zeros(total.size, dtype=np.float32)
    total_square = 0.0
    for f in range(total.size):
        total_square += np.float64(total[f]) * total[f]
    sizes = np.zeros(last - first + 1, dtype=np.int64)
    ids, values = np.empty(1024, dtype=np.int32), np.empty(1024, dtype=np.float32)
    found = 0
    for label in range(first, last):
        pairs = np.arange(label_indptr[label], label_indptr[label + 1])
        groups = label_groups[label_indptr[label] : label_indptr[label + 1]]
        n_pairs = pairs.size
        bounds = np.zeros(n_pairs + 1, dtype=np.int64)
        touched = 0
        for o in range(n_pairs):
            bounds[o + 1] = bounds[o] + group_indptr[groups[o] + 1] - group_indptr[groups[o]]
            touched += sum_indptr[groups[o] + 1] - sum_indptr[groups[o]]
        wide = touched > total.size // 4  # looking at every feature is faster than following the groups
        n = bounds[n_pairs]
        if n == 0:
            sizes[label - first + 1] = found
            continue
        rows = np.empty(n, dtype=np.int32)
        for o in range(n_pairs):
            low = group_indptr[groups[o]]
            for m in range(bounds[o], bounds[o + 1]):
                rows[m] = group_rows[low + m - bounds[o]]

        # the start: z = Σ κ S + β T over the groups' sums S
        kappa = np.empty(n_pairs, dtype=np.float64)
        alpha = np.zeros(n, dtype=np.float64)
        beta, scale = 0.0, 0.0
        for o in range(n_pairs):
            kappa[o] = start[pairs[o]]
            scale += start[pairs[o]] * (bounds[o + 1] - bounds[o])
        sums = np.zeros(n, dtype=np.float32)  # x · Σ of all members; contrast only
        ahead = np.empty(n, dtype=np.float32)  # x · Σ of the chosen
        if contrast:
            # Σ s x / Σ s - (T - Σ x) / (memberships elsewhere); less the mean of all where no group lacks the label
            elsewhere = group_rows.size - n
            beta = -1.0 / (elsewhere if elsewhere > 0 else group_rows.size)
            for o in range(n_pairs):
                kappa[o] = kappa[o] / scale - (beta if elsewhere > 0 else 0.0)
            if n_iter > 0:
                _add_groups(sum_indptr, sum_indices, sum_data, groups, np.ones(n_pairs), vector)
                _dots(indptr, indices, data, rows, vector, sums)
                _clear(sum_indptr, sum_indices, groups, wide, vector)
        _add_groups(sum_indptr, sum_indices, sum_data, groups, kappa, vector)
        _dots(indptr, indices, data, rows, vector, ahead)
        if n_iter > 0:  # else it is the result
            _clear(sum_indptr, sum_indices, groups, wide, vector)
        scores = np.empty(n, dtype=np.float64)
        square, own = beta * beta * total_square, 0.0
        for o in range(n_pairs):
            for m in range(bounds[o], bounds[o + 1]):
                scores[m] = ahead[m] + beta * toward[rows[m]]
                square += kappa[o] * (scores[m] + beta * toward[rows[m]])
                own += kappa[o] * kappa[o]
        if square <= TINY * own:
            beta = 0.0
            kappa[:] = 0
            m = label % bounds[1]
            alpha[m] = 1
            _clear(sum_indptr, sum_indices, groups, wide, vector)
            _add(indptr, indices, data, rows[m], np.float32(1), vector)
            _dots(indptr, indices, data, rows, vector, ahead)
            if n_iter > 0:
                _clear(sum_indptr, sum_indices, groups, wide, vector)
            scores[:] = ahead
            square = max(scores[m], 1e-30)
        scale = 1 / np.sqrt(square)
        written = np.float32(scale)  # what the vector as it stands must be multiplied with
        beta *= scale
        kappa *= scale
        alpha *= scale
        scores *= scale

        # choose, then move: z = Σ κ S + Σ α x + β T
        old, new = np.zeros(n, dtype=np.uint8), np.zeros(n, dtype=np.uint8)
        order = np.empty(n, dtype=np.int64)
        for _ in range(n_iter):
            moved = False
            for o in range(n_pairs):
                _choose(scores, bounds[o], bounds[o + 1], take[pairs[o]], new, order)
                for m in range(bounds[o], bounds[o + 1]):
                    if new[m] != old[m]:
                        moved = True
                        factor = weight[pairs[o]] if new[m] else -weight[pairs[o]]
                        _add(indptr, indices, data, rows[m], np.float32(factor), vector)
                        old[m] = new[m]
            if moved:
                _dots(indptr, indices, data, rows, vector, ahead)
            elif contrast:
                break
            if contrast:
                n_chosen = 0
                for m in range(n):
                    n_chosen += old[m]
                if n_chosen == n:
                    break
                beta, square = 0.0, 0.0
                kappa[:] = -1.0 / (n - n_chosen)
                for m in range(n):
                    alpha[m] = (1.0 / n_chosen + 1.0 / (n - n_chosen)) if old[m] else 0.0
                    scores[m] = ahead[m] / n_chosen - (sums[m] - ahead[m]) / (n - n_chosen)
                    square += scores[m] / n_chosen if old[m] else -scores[m] / (n - n_chosen)
            else:
                square = 1.0  # ‖z + step g‖² = 1 + 2 step z·g + step² g·g, for unit z
                for o in range(n_pairs):
                    for m in range(bounds[o], bounds[o + 1]):
                        if old[m]:
                            square += weight[pairs[o]] * step * (2 * scores[m] + step * ahead[m])
                            alpha[m] += step * weight[pairs[o]]
                for m in range(n):
                    scores[m] += step * ahead[m]
            scale = 1 / np.sqrt(max(square, 1e-30))
            beta *= scale
            kappa *= scale
            alpha *= scale
            scores *= scale
        if n_iter > 0:
            _clear(sum_indptr, sum_indices, groups, wide, vector)

        # the best rows of each group, with their shares by scores standardised over the rows not chosen
        for o in range(n_pairs):
            _choose(scores, bounds[o], bounds[o + 1], take[pairs[o]], new, order)
        count, mean, spread = 0, 0.0, 0.0
        for m in range(n):
            if not new[m]:
                count += 1
                mean += scores[m]
        mean /= max(count, 1)
        for m in range(n):
            if not new[m]:
                spread += (scores[m] - mean) ** 2
        # as if PRIOR more rows had the variance of all: few rows do not make sure
        spread = np.sqrt((spread + PRIOR * scores.var()) / (count + PRIOR))
        spread = max(spread, 1e-6) * temperature
        for o in range(n_pairs):
            low, high = bounds[o], bounds[o + 1]
            shares = np.empty(high - low, dtype=np.float64)
            capped_shares((scores[low:high] - mean) / spread, take[pairs[o]], shares)
            at = place_indptr[pairs[o]]
            places = place_indptr[pairs[o] + 1] - at
            _choose(scores, low, high, places, new, order)
            for place in range(places):
                m = order[place]
                out_rows[at + place] = rows[m]
                out_scores[at + place] = scores[m]
                out_shares[at + place] = shares[m - low]

        # the vector itself, on the features of the members
        if n_iter > 0:
            written = np.float32(1)
            _add_groups(sum_indptr, sum_indices, sum_data, groups, kappa, vector)
            for m in range(n):
                if alpha[m] != 0:
                    _add(indptr, indices, data, rows[m], np.float32(alpha[m]), vector)
        at = found
        while ids.size < found + min(touched, total.size):
            more_ids, more_values = np.empty(2 * ids.size, np.int32), np.empty(2 * ids.size, np.float32)
            more_ids[: ids.size], more_values[: ids.size] = ids, values
            ids, values = more_ids, more_values
        if wide:
            for f in range(total.size):
                if vector[f] != 0:
                    value = written * vector[f] + np.float32(beta) * total[f]
                    if abs(value) >= threshold:
                        ids[found], values[found] = f, value
                        found += 1
            vector[:] = 0
        else:
            for o in range(n_pairs):
                for t in range(sum_indptr[groups[o]], sum_indptr[groups[o] + 1]):
                    f = sum_indices[t]
                    if vector[f] != 0:  # not seen yet
                        value = written * vector[f] + np.float32(beta) * total[f]
                        vector[f] = 0
                        if abs(value) >= threshold:
                            ids[found], values[found] = f, value
                            found += 1
            by_id = np.argsort(ids[at:found], kind="mergesort")
            ids[at:found], values[at:found] = ids[at:found][by_id], values[at:found][by_id]
        sizes[label - first + 1] = found
    return sizes, ids[:found].copy(), values[:found].copy()
