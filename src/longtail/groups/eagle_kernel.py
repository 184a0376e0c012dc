"""Learning where the labels of groups belong: one vector per label, and the rows of each group nearest to it.

A label's members are the rows of the groups that carry it. Two ways to learn, n_iter times at most:

    step      z <- unit(z + step · Σ w x over the chosen rows)                     from z = unit(Σ s x over members)
    contrast  z <- mean of the chosen members - mean of the other members          from the weighted mean of members
              - mean of the rows of groups without the label; it ends when the chosen rows stay

Vectors are always sums, z = σ · start + ρ · run + Σ α x + β T, with the rows chosen at the moment added up in `run` and
T the sum of all rows. So scores, lengths and steps follow from dot products of `start` and `run` with members, which
are computed again only when other rows are chosen than before, and for all labels of a block at once. With contrast,
where c of n members are chosen, run = Σ chosen - c/n · Σ members, and z = (1/c + 1/(n - c)) · run.

A label whose start is zero (its members cancel out) starts at one of the rows of its first group, another one for the
next label, so that labels that are always seen together can part.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from longtail.groups.choose_rows import choose, write_best
from longtail.groups.label_vectors import add_row, add_sums, add_sums_twice, clear, is_wide, write_out
from longtail.groups.score_members import pairs_by_group, score_by_group, score_by_label

TINY = 1e-10  # a squared length below this share of the members' own is zero
FADED = 1e-20  # of the start, so little or less is left in a vector: nothing


@njit(nogil=True, cache=True)
def _begin(groups, labels, contrast, n_iter, label, bounds, kappa, start, run):
    """Write the start of a label, Σ κ · sum of a group, and what `run` is without chosen rows; returns β."""
    pairs = slice(labels.indptr[label], labels.indptr[label + 1])
    of = labels.groups[pairs]
    n = bounds[-1] - bounds[0]
    kappa[:] = labels.start[pairs]
    if not contrast:
        add_sums(groups, of, kappa, start)
        return 0.0
    # Σ s x / Σ s - (T - Σ x) / (memberships elsewhere); less the mean of all where no group lacks the label
    scale = 0.0
    for o in range(of.size):
        scale += kappa[o] * (bounds[o + 1] - bounds[o])
    elsewhere = groups.rows.size - n
    beta = -1.0 / (elsewhere if elsewhere > 0 else groups.rows.size)
    for o in range(of.size):
        kappa[o] = kappa[o] / scale - (beta if elsewhere > 0 else 0.0)
    if n_iter > 0:
        add_sums_twice(groups, of, kappa, np.float32(-labels.take[pairs].sum() / n), start, run)
    else:
        add_sums(groups, of, kappa, start)
    return beta


@njit(nogil=True, cache=True)
def _first_scores(groups, of, bounds, kappa, beta, toward, total_square, ahead, scores):
    """Turn dot products with the start into scores; returns ‖z‖², 0 if it is nothing but rounding."""
    square, own = beta * beta * total_square, 0.0
    for o in range(of.size):
        low = groups.indptr[of[o]] - bounds[o]
        for m in range(bounds[o], bounds[o + 1]):
            shift = beta * toward[groups.rows[low + m]]
            scores[m] = ahead[m] + shift
            square += kappa[o] * (scores[m] + shift)
            own += kappa[o] * kappa[o]
    return square if square > TINY * own else 0.0


@njit(nogil=True, cache=True)
def _rechoose(members, groups, of, take, weight, bounds, scores, new, old, order, run):
    """Choose the best rows of each group and add what changed to `run`; says whether anything did."""
    moved = False
    for o in range(of.size):
        choose(scores, bounds[o], bounds[o + 1], take[o], new, order)
        low = groups.indptr[of[o]] - bounds[o]
        for m in range(bounds[o], bounds[o + 1]):
            if new[m] != old[m]:
                moved = True
                factor = weight[o] if new[m] else -weight[o]
                add_row(members.indptr, members.ids, members.data, low + m, np.float32(factor), run)
                old[m] = new[m]
    return moved


@njit(nogil=True, cache=True)
def _contrast(low, high, n_chosen, old, ahead, scores):
    """Set scores = x · z of the new z, of unit length; returns what `run` is multiplied with."""
    others = high - low - n_chosen
    factor, square = 1.0 / n_chosen + 1.0 / others, 0.0
    for m in range(low, high):
        scores[m] = factor * ahead[m]
        square += scores[m] / n_chosen if old[m] else -scores[m] / others
    scale = 1 / np.sqrt(max(square, 1e-30))
    scores[low:high] *= scale
    return factor * scale


@njit(nogil=True, cache=True)
def _step(weight, step, bounds, old, ahead, alpha, scores):
    """Set scores = x · z for z <- unit(z + step · g); returns what the rest of z is multiplied with."""
    square = 1.0  # ‖z + step g‖² = 1 + 2 step z·g + step² g·g, for unit z
    for o in range(weight.size):
        for m in range(bounds[o], bounds[o + 1]):
            if old[m]:
                square += weight[o] * step * (2 * scores[m] + step * ahead[m])
                alpha[m] += step * weight[o]
    scale = 1 / np.sqrt(max(square, 1e-30))
    for m in range(bounds[0], bounds[-1]):
        scores[m] = scale * (scores[m] + step * ahead[m])
        alpha[m] *= scale
    return scale


@njit(nogil=True, cache=True)
def learn_labels(
    members, groups, labels, rule,  # IN   see eagle_layout
    total, toward,                  # IN   T, sum over memberships; x · T           (n_features,), (n,) float32
    first, last,                    # IN   the labels to learn: first to last - 1
    width,                          # IN   so many labels at once
    by_group,                       # IN   score by group, else by label
    out_rows,                       # OUT  best rows of each pair, best first       (places,) int32
    out_scores, out_shares,         # OUT  x · z / ‖z‖ and share of each            (places,) float32
):  # fmt: skip
    """Learn the vectors of some labels, and the best rows of each of their groups.

    Returns the vectors, of unit length and without small values, as CSR arrays. Only features of members are kept.
    """
    n_features = total.size
    total_square = 0.0
    for f in range(n_features):
        total_square += np.float64(total[f]) * total[f]
    n_iter, contrast = rule.n_iter, rule.contrast
    start = np.zeros((width, n_features), dtype=np.float32)
    run = np.zeros((width if n_iter > 0 else 0, n_features), dtype=np.float32)
    widest = 0
    if by_group:
        for g in range(groups.indptr.size - 1):
            widest = max(widest, groups.sum_indptr[g + 1] - groups.sum_indptr[g])
    block = np.zeros((widest + 1, 16), dtype=np.float32)
    active = np.ones(width, dtype=np.uint8)
    moved = np.zeros(width, dtype=np.uint8)
    beta, sigma, rho = np.zeros(width), np.ones(width), np.zeros(width)
    sizes = np.zeros(last - first + 1, dtype=np.int64)
    ids, values = np.empty(1024, dtype=np.int32), np.empty(1024, dtype=np.float32)
    found = 0
    for head in range(first, last, width):
        end = min(head + width, last)
        pair0, n_pairs = labels.indptr[head], labels.indptr[end] - labels.indptr[head]
        bounds = np.zeros(n_pairs + 1, dtype=np.int64)
        for o in range(n_pairs):
            g = labels.groups[pair0 + o]
            bounds[o + 1] = bounds[o] + groups.indptr[g + 1] - groups.indptr[g]
        n = bounds[n_pairs]
        kappa = np.empty(n_pairs, dtype=np.float64)
        alpha = np.zeros(n if n_iter > 0 and not contrast else 0, dtype=np.float64)
        ahead, scores = np.empty(n, dtype=np.float32), np.empty(n, dtype=np.float64)
        old, new, order = np.zeros(n, dtype=np.uint8), np.zeros(n, dtype=np.uint8), np.empty(n, dtype=np.int64)
        where, of_group, slot_of = bounds, bounds, bounds
        if by_group:
            where, of_group, slot_of = pairs_by_group(groups.indptr.size - 1, labels, head, end)

        active[:] = 1
        for slot in range(end - head):
            at = slice(labels.indptr[head + slot] - pair0, labels.indptr[head + slot + 1] - pair0)
            mine = bounds[at.start : at.stop + 1]
            beta[slot], sigma[slot], rho[slot] = 0.0, 1.0, 0.0
            if mine[-1] == mine[0]:
                active[slot] = 0
            else:
                vector = run[slot] if n_iter > 0 else start[slot]
                beta[slot] = _begin(groups, labels, contrast, n_iter, head + slot, mine, kappa[at], start[slot], vector)
        if by_group:
            score_by_group(members, groups, where, of_group, slot_of, active, bounds, start, block, ahead)
        else:
            score_by_label(members, groups, labels, head, end, active, bounds, start, ahead)
        for slot in range(end - head):
            if not active[slot]:
                continue
            at = slice(labels.indptr[head + slot] - pair0, labels.indptr[head + slot + 1] - pair0)
            mine = bounds[at.start : at.stop + 1]
            of = labels.groups[pair0 + at.start : pair0 + at.stop]
            square = _first_scores(groups, of, mine, kappa[at], beta[slot], toward, total_square, ahead, scores)
            if square == 0:
                beta[slot] = 0.0
                clear(groups, of, True, start[slot])
                place = (head + slot) % (mine[1] - mine[0])
                one = np.float32(1)
                add_row(members.indptr, members.ids, members.data, groups.indptr[of[0]] + place, one, start[slot])
                only = np.zeros(end - head, dtype=np.uint8)
                only[slot] = 1
                score_by_label(members, groups, labels, head, end, only, bounds, start, ahead)
                scores[mine[0] : mine[-1]] = ahead[mine[0] : mine[-1]]
                square = max(scores[mine[0] + place], 1e-30)
            sigma[slot] = 1 / np.sqrt(square)
            beta[slot] *= sigma[slot]
            scores[mine[0] : mine[-1]] *= sigma[slot]

        for _ in range(n_iter):
            some = False
            for slot in range(end - head):
                moved[slot] = 0
                if active[slot]:
                    at = slice(labels.indptr[head + slot] - pair0, labels.indptr[head + slot + 1] - pair0)
                    pairs = slice(pair0 + at.start, pair0 + at.stop)
                    mine = bounds[at.start : at.stop + 1]
                    if contrast and labels.take[pairs].sum() == mine[-1] - mine[0]:
                        active[slot] = 0
                    elif _rechoose(
                        members,
                        groups,
                        labels.groups[pairs],
                        labels.take[pairs],
                        labels.weight[pairs],
                        mine,
                        scores,
                        new,
                        old,
                        order,
                        run[slot],
                    ):
                        moved[slot] = 1
                        some = True
                    elif contrast:
                        active[slot] = 0
            if some:
                if by_group:
                    score_by_group(members, groups, where, of_group, slot_of, moved, bounds, run, block, ahead)
                else:
                    score_by_label(members, groups, labels, head, end, moved, bounds, run, ahead)
            elif contrast:
                break
            for slot in range(end - head):
                if active[slot]:
                    at = slice(labels.indptr[head + slot] - pair0, labels.indptr[head + slot + 1] - pair0)
                    pairs = slice(pair0 + at.start, pair0 + at.stop)
                    mine = bounds[at.start : at.stop + 1]
                    if contrast:
                        n_chosen = labels.take[pairs].sum()
                        rho[slot] = _contrast(mine[0], mine[-1], n_chosen, old, ahead, scores)
                    else:
                        sigma[slot] *= _step(labels.weight[pairs], rule.step, mine, old, ahead, alpha, scores)

        for slot in range(end - head):
            at = slice(labels.indptr[head + slot] - pair0, labels.indptr[head + slot + 1] - pair0)
            pairs = slice(pair0 + at.start, pair0 + at.stop)
            mine, of = bounds[at.start : at.stop + 1], labels.groups[pairs]
            if mine[-1] > mine[0]:
                write_best(
                    groups.indptr,
                    groups.rows,
                    of,
                    labels.take[pairs],
                    mine,
                    scores,
                    rule.temperature,
                    labels.place_indptr[pairs.start : pairs.stop + 1],
                    new,
                    order,
                    out_rows,
                    out_scores,
                    out_shares,
                )
                wide = is_wide(groups, of, n_features)
                vector, scale, shift = start[slot], np.float32(sigma[slot]), np.float32(beta[slot])
                if rho[slot] != 0:
                    vector, scale, shift = run[slot], np.float32(rho[slot]), np.float32(0)
                elif alpha.size:
                    rest = sigma[slot]
                    if rest < FADED:  # dividing by it would leave float32
                        clear(groups, of, wide, vector)
                        rest, scale = 1.0, np.float32(1)
                    for o in range(of.size):
                        low = groups.indptr[of[o]] - mine[o]
                        for m in range(mine[o], mine[o + 1]):
                            if alpha[m] != 0:
                                factor = np.float32(alpha[m] / rest)
                                add_row(members.indptr, members.ids, members.data, low + m, factor, vector)
                if ids.size < found + n_features:
                    more = 2 * ids.size + n_features
                    more_ids, more_values = np.empty(more, np.int32), np.empty(more, np.float32)
                    more_ids[:found], more_values[:found] = ids[:found], values[:found]
                    ids, values = more_ids, more_values
                found += write_out(
                    groups, of, wide, vector, scale, shift, total, rule.threshold, ids[found:], values[found:]
                )
                clear(groups, of, wide, start[slot])
                if n_iter > 0:
                    clear(groups, of, wide, run[slot])
            sizes[head + slot - first + 1] = found
    return sizes, ids[:found].copy(), values[:found].copy()
