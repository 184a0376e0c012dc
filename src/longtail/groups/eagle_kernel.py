"""The kernel of EAGLE: one vector per label, and the rows of each group nearest to it.

A label's members are the rows of the groups that carry it. Two ways to learn, n_iter times at most:

    step      z <- unit(z + step · Σ w x over the chosen rows)                     from z = unit(Σ s x over members)
    contrast  z <- mean of the chosen members - mean of the other members          from the weighted mean of members
              - mean of the rows of groups without the label; it ends when the chosen rows stay

σ, ρ, α, β are the factors kept for each label (α: one for each member); `start` is the first vector, `run` the sum of
the chosen rows, T the sum of all rows. Vectors are always sums,

    z = σ · start + ρ · run + Σ α x + β T.

So scores, lengths and steps follow from dot products of `start` and `run` with members, which are computed again only
when other rows are chosen than before, and for all labels of a block at once. With contrast, where c of n members are
chosen, run = Σ chosen - c/n · Σ members, and z = (1/c + 1/(n - c)) · run.

A label whose start is zero (its members cancel out) starts at one of the rows of its first group, another one for the
next label, so that labels that are always seen together can part.
"""

from __future__ import annotations

import numpy as np

from longtail.groups.choose_rows import choose, write_best
from longtail.groups.kernel_arrays import LabelBlock, Workspace
from longtail.groups.score_members import pairs_by_group, score_by_group, score_by_label
from longtail.groups.vector_sums import add_row, add_sums, add_sums_twice, clear, touches_most, write_out
from longtail.kernels import njit

TINY = 1e-10  # a squared length below this share of the members' own is zero
ROUNDING = 1e-6  # a squared length below this share of that of the rows taken away (β T) is rounding of float32
FADED = 1e-20  # of the start, so little or less is left in a vector: nothing


@njit(nogil=True, cache=True)
def learn_labels(
    members, groups, labels, rule,  # IN   see `kernel_arrays`
    total, toward,                  # IN   T, sum over memberships; x · T           (n_features,), (n,) float32
    first, last,                    # IN   the labels to learn: first to last - 1
    width,                          # IN   so many labels at once
    by_group,                       # IN   score by group, else by label
    out_rows,                       # OUT  best rows of each pair, best first       (n_best,) int32
    out_scores, out_shares,         # OUT  x · z / ‖z‖ and share of each            (n_best,) float32
):  # fmt: skip
    """Learn the vectors of some labels, and the best rows of each of their groups.

    Returns the vectors, of unit length and without small values, as CSR arrays. Only features of members are kept.
    """
    n_features = total.size
    total_square = 0.0
    for f in range(n_features):
        total_square += np.float64(total[f]) * total[f]
    work = _make_workspace(groups, rule, width, n_features, by_group)
    sizes = np.zeros(last - first + 1, dtype=np.int64)
    ids, values = np.empty(1024, dtype=np.int32), np.empty(1024, dtype=np.float32)
    n_values = 0
    for head in range(first, last, width):
        block = _make_block(groups, labels, rule, head, min(head + width, last), by_group)
        _start_vectors(members, groups, labels, rule, work, block, by_group, toward, total_square)
        for _ in range(rule.n_iter):
            if _choose_rows(members, groups, labels, rule, work, block):
                _score(members, groups, labels, block, work, work.moved, work.run, by_group)
            elif rule.contrast:
                break
            _move_vectors(labels, rule, work, block)
        for slot in range(block.last - head):
            at = _pairs_of(labels, block, slot)
            bounds, of = (
                block.bounds[at.start : at.stop + 1],
                labels.groups[block.pair0 + at.start : block.pair0 + at.stop],
            )
            if bounds[-1] > bounds[0]:
                pairs = slice(block.pair0 + at.start, block.pair0 + at.stop)
                write_best(
                    groups.indptr,
                    groups.rows,
                    of,
                    labels.take[pairs],
                    bounds,
                    block.scores,
                    rule.temperature,
                    labels.best_indptr[pairs.start : pairs.stop + 1],
                    block.new,
                    block.order,
                    out_rows,
                    out_scores,
                    out_shares,
                )
                ids, values = _grow(ids, values, n_values, n_features)
                n_values += _write_vector(
                    members, groups, rule, work, block, slot, of, bounds, total, ids[n_values:], values[n_values:]
                )
            sizes[head + slot - first + 1] = n_values
    return sizes, ids[:n_values].copy(), values[:n_values].copy()


@njit(nogil=True, cache=True)
def _make_workspace(groups, rule, width, n_features, by_group):
    """Return the arrays of a task."""
    largest = 0
    if by_group:
        for g in range(groups.indptr.size - 1):
            largest = max(largest, groups.sum_indptr[g + 1] - groups.sum_indptr[g])
    return Workspace(
        np.zeros((width, n_features), dtype=np.float32),
        np.zeros((width if rule.n_iter > 0 else 0, n_features), dtype=np.float32),
        np.zeros((largest + 1, 16), dtype=np.float32),
        np.ones(width, dtype=np.uint8),
        np.zeros(width, dtype=np.uint8),
        np.zeros(width),
        np.ones(width),
        np.zeros(width),
    )


@njit(nogil=True, cache=True)
def _make_block(groups, labels, rule, first, last, by_group):
    """Return the arrays of the labels first to last - 1."""
    pair0, n_pairs = labels.indptr[first], labels.indptr[last] - labels.indptr[first]
    bounds = np.zeros(n_pairs + 1, dtype=np.int64)
    for o in range(n_pairs):
        g = labels.groups[pair0 + o]
        bounds[o + 1] = bounds[o] + groups.indptr[g + 1] - groups.indptr[g]
    n = bounds[n_pairs]
    group_indptr, group_pairs, group_slots = bounds, bounds, bounds
    if by_group:
        group_indptr, group_pairs, group_slots = pairs_by_group(groups.indptr.size - 1, labels, first, last)
    return LabelBlock(
        first,
        last,
        pair0,
        bounds,
        np.empty(n_pairs, dtype=np.float64),
        np.zeros(n if rule.n_iter > 0 and not rule.contrast else 0, dtype=np.float64),
        np.empty(n, dtype=np.float32),
        np.empty(n, dtype=np.float64),
        np.zeros(n, dtype=np.uint8),
        np.zeros(n, dtype=np.uint8),
        np.empty(n, dtype=np.int64),
        group_indptr,
        group_pairs,
        group_slots,
    )


@njit(nogil=True, cache=True)
def _pairs_of(labels, block, slot):
    """Return which pairs of a block are those of a slot."""
    label = block.first + slot
    return slice(labels.indptr[label] - block.pair0, labels.indptr[label + 1] - block.pair0)


@njit(nogil=True, cache=True)
def _score(members, groups, labels, block, work, active, vectors, by_group):
    """Multiply the vectors of the active slots with their members, into `ahead`."""
    if by_group:
        order = block.group_indptr, block.group_pairs, block.group_slots
        score_by_group(
            members, groups, order[0], order[1], order[2], active, block.bounds, vectors, work.lanes, block.ahead
        )
    else:
        score_by_label(members, groups, labels, block.first, block.last, active, block.bounds, vectors, block.ahead)


@njit(nogil=True, cache=True)
def _start_vectors(members, groups, labels, rule, work, block, by_group, toward, total_square):
    """Set the first vector of every slot and the scores of its members."""
    work.active[:] = 1
    for slot in range(block.last - block.first):
        at = _pairs_of(labels, block, slot)
        bounds = block.bounds[at.start : at.stop + 1]
        work.beta[slot], work.sigma[slot], work.rho[slot] = 0.0, 1.0, 0.0
        if bounds[-1] == bounds[0]:
            work.active[slot] = 0
        else:
            start = work.start[slot]
            run = work.run[slot] if rule.n_iter > 0 else start
            label = block.first + slot
            work.beta[slot] = _begin(
                groups, labels, rule.contrast, rule.n_iter, label, bounds, block.kappa[at], start, run
            )
    _score(members, groups, labels, block, work, work.active, work.start, by_group)
    scores = block.scores
    for slot in range(block.last - block.first):
        if not work.active[slot]:
            continue
        at = _pairs_of(labels, block, slot)
        bounds, of = block.bounds[at.start : at.stop + 1], labels.groups[block.pair0 + at.start : block.pair0 + at.stop]
        square = _first_scores(
            groups, of, bounds, block.kappa[at], work.beta[slot], toward, total_square, block.ahead, scores
        )
        if square == 0:
            square = _start_at_one_row(members, groups, labels, work, block, slot, of, bounds)
        work.sigma[slot] = 1 / np.sqrt(square)
        work.beta[slot] *= work.sigma[slot]
        scores[bounds[0] : bounds[-1]] *= work.sigma[slot]


@njit(nogil=True, cache=True)
def _start_at_one_row(members, groups, labels, work, block, slot, of, bounds):
    """Start at a row of the first group, by the label's number, since the members cancel out; returns ‖z‖²."""
    work.beta[slot] = 0.0
    clear(groups, of, True, work.start[slot])
    chosen = (block.first + slot) % (bounds[1] - bounds[0])
    row = groups.indptr[of[0]] + chosen
    add_row(members.indptr, members.ids, members.data, row, np.float32(1), work.start[slot])
    only = np.zeros(block.last - block.first, dtype=np.uint8)
    only[slot] = 1
    score_by_label(members, groups, labels, block.first, block.last, only, block.bounds, work.start, block.ahead)
    block.scores[bounds[0] : bounds[-1]] = block.ahead[bounds[0] : bounds[-1]]
    return max(block.scores[bounds[0] + chosen], 1e-30)


@njit(nogil=True, cache=True)
def _choose_rows(members, groups, labels, rule, work, block):
    """Choose the best rows of every active slot; returns whether any slot chose others than before.

    With contrast a slot that keeps its rows or its start, or has no others to choose from, is finished.
    """
    any_moved = False
    for slot in range(block.last - block.first):
        work.moved[slot] = 0
        if work.active[slot]:
            at = _pairs_of(labels, block, slot)
            pairs = slice(block.pair0 + at.start, block.pair0 + at.stop)
            bounds = block.bounds[at.start : at.stop + 1]
            finished = not labels.refined[block.first + slot] or labels.take[pairs].sum() == bounds[-1] - bounds[0]
            if rule.contrast and finished:
                work.active[slot] = 0
            elif _rechoose(
                members,
                groups,
                labels.groups[pairs],
                labels.take[pairs],
                labels.weight[pairs],
                bounds,
                block.scores,
                block.new,
                block.old,
                block.order,
                work.run[slot],
            ):
                work.moved[slot] = 1
                any_moved = True
            elif rule.contrast:
                work.active[slot] = 0
    return any_moved


@njit(nogil=True, cache=True)
def _move_vectors(labels, rule, work, block):
    """Move the vector of every active slot towards its chosen rows: new factors and new scores."""
    for slot in range(block.last - block.first):
        if work.active[slot]:
            at = _pairs_of(labels, block, slot)
            pairs = slice(block.pair0 + at.start, block.pair0 + at.stop)
            bounds = block.bounds[at.start : at.stop + 1]
            if rule.contrast:
                n_chosen = labels.take[pairs].sum()
                work.rho[slot] = _contrast(bounds[0], bounds[-1], n_chosen, block.old, block.ahead, block.scores)
            else:
                work.sigma[slot] *= _step(
                    labels.weight[pairs], rule.step, bounds, block.old, block.ahead, block.alpha, block.scores
                )


@njit(nogil=True, cache=True)
def _write_vector(members, groups, rule, work, block, slot, of, bounds, total, ids, values):
    """Write the vector of a slot without small values, and clear the slot; returns how many values there are."""
    all_features = touches_most(groups, of, total.size)
    vector, scale, shift = work.start[slot], np.float32(work.sigma[slot]), np.float32(work.beta[slot])
    if work.rho[slot] != 0:
        vector, scale, shift = work.run[slot], np.float32(work.rho[slot]), np.float32(0)
    elif block.alpha.size:
        rest = work.sigma[slot]
        if rest < FADED:  # dividing by it would leave float32
            clear(groups, of, all_features, vector)
            rest, scale = 1.0, np.float32(1)
        for o in range(of.size):
            low = groups.indptr[of[o]] - bounds[o]
            for m in range(bounds[o], bounds[o + 1]):
                if block.alpha[m] != 0:
                    factor = np.float32(block.alpha[m] / rest)
                    add_row(members.indptr, members.ids, members.data, low + m, factor, vector)
    n_values = write_out(groups, of, all_features, vector, scale, shift, total, rule.threshold, ids, values)
    clear(groups, of, all_features, work.start[slot])
    if rule.n_iter > 0:
        clear(groups, of, all_features, work.run[slot])
    return n_values


@njit(nogil=True, cache=True)
def _grow(ids, values, used, more):
    """Return arrays with space for `more` values after the used ones."""
    if ids.size >= used + more:
        return ids, values
    size = 2 * ids.size + more
    new_ids, new_values = np.empty(size, np.int32), np.empty(size, np.float32)
    new_ids[:used], new_values[:used] = ids[:used], values[:used]
    return new_ids, new_values


@njit(nogil=True, cache=True)
def _begin(groups, labels, contrast, n_iter, label, bounds, kappa, start, run):
    """Write a label's first vector into `start`, and `run` before any row is chosen; return the factor of T.

    start = Σ κ · (sum of a group's rows); with contrast run = - c/n · Σ members, otherwise it stays 0.
    """
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
    away, own = beta * beta * total_square, 0.0
    square = away
    for o in range(of.size):
        low = groups.indptr[of[o]] - bounds[o]
        for m in range(bounds[o], bounds[o + 1]):
            shift = beta * toward[groups.rows[low + m]]
            scores[m] = ahead[m] + shift
            square += kappa[o] * (scores[m] + shift)
            own += kappa[o] * kappa[o]
    return square if square > TINY * own + ROUNDING * away else 0.0


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
    """Set scores = x · z of the new z, of unit length; returns the factor of `run`."""
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
    """Set scores = x · z for z <- unit(z + step · g); returns the factor of the rest of z."""
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
