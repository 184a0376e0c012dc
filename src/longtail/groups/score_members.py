"""Dot products of label vectors with the members of the labels' groups: EAGLE spends its time here.

By label: one vector, member after member; best where rows are short or a group has few labels. By group: the vectors
of sixteen labels of a group are copied, on the group's features only, to the lanes of a small block, and each member
is read once for all of them. That costs features · labels of a group for the copy, where the other way costs
non-zeros · labels of a group.
"""

from __future__ import annotations

import numpy as np

from longtail.kernels import LANES, dot_lanes, dot_row, njit


@njit(nogil=True, cache=True)
def score_by_label(
    members, groups, labels,  # IN   see `kernel_arrays`
    first, last,              # IN   the labels whose vectors these are: first to last - 1
    active,                   # IN   which of them to score                     (last - first,) uint8
    bounds,                   # IN   where the members of each pair begin       (pairs + 1,) int64
    vectors,                  # IN   one row per label                          (>= last - first, n_features) float32
    out,                      # OUT  scores of the members of active labels     (bounds[-1],) float32
):  # fmt: skip
    """Multiply the vector of each label with the members of its groups."""
    pair0 = labels.indptr[first]
    for label in range(first, last):
        if active[label - first]:
            vector = vectors[label - first]
            for pair in range(labels.indptr[label], labels.indptr[label + 1]):
                low, high = groups.indptr[labels.groups[pair]], groups.indptr[labels.groups[pair] + 1]
                at = bounds[pair - pair0] - low
                for member in range(low, high):
                    out[at + member] = dot_row(members.indptr, members.ids, members.data, member, vector)


@njit(nogil=True, cache=True)
def pairs_by_group(n_groups, labels, first, last):
    """Return the pairs of some labels, group after group: where each group begins, pairs, labels from `first` on."""
    low, high = labels.indptr[first], labels.indptr[last]
    indptr = np.zeros(n_groups + 1, dtype=np.int64)
    for pair in range(low, high):
        indptr[labels.groups[pair] + 1] += 1
    for g in range(n_groups):
        indptr[g + 1] += indptr[g]
    at = indptr[:-1].copy()
    pairs, slots = np.empty(high - low, dtype=np.int64), np.empty(high - low, dtype=np.int64)
    for label in range(first, last):
        for pair in range(labels.indptr[label], labels.indptr[label + 1]):
            to = at[labels.groups[pair]]
            pairs[to], slots[to] = pair - low, label - first
            at[labels.groups[pair]] += 1
    return indptr, pairs, slots


@njit(nogil=True, cache=True)
def _fill(ids, low, high, flat, starts, n, block):
    """Copy `n` vectors, on some features, to the lanes of the block; other lanes hold anything."""
    if n > LANES // 2:
        for t in range(low, high):
            f = np.int64(ids[t])
            for lane in range(LANES):
                block[t - low, lane] = flat[starts[lane] + f]
    else:
        for lane in range(n):
            start = starts[lane]
            for t in range(low, high):
                block[t - low, lane] = flat[start + ids[t]]


@njit(nogil=True, cache=True)
def score_by_group(
    members, groups,           # IN   see `kernel_arrays`
    indptr, pairs, slots,      # IN   pairs of each group with their labels: see `pairs_by_group`
    active,                    # IN   as in `score_by_label`
    bounds,
    vectors,
    block,                     # TEMP sixteen vectors   (features of the widest group + 1, 16) float32
    out,                       # OUT  scores of the members of active labels
):  # fmt: skip
    """Multiply the vectors of labels with the members of their groups, sixteen labels of a group at a time."""
    flat = vectors.ravel()
    width = vectors.shape[1]
    starts = np.zeros(LANES, dtype=np.int64)
    outputs = np.zeros(LANES, dtype=np.int64)
    sums = np.zeros((1, LANES), dtype=np.float32)
    zero = block.shape[0] - 1
    block[zero] = 0
    for g in range(groups.indptr.size - 1):
        p, n = indptr[g], 0
        while p < indptr[g + 1]:
            if active[slots[p]]:
                starts[n], outputs[n] = slots[p] * width, bounds[pairs[p]]
                n += 1
            p += 1
            if n == LANES or (n > 0 and p == indptr[g + 1]):
                starts[n:] = starts[n - 1]
                _fill(groups.sum_ids, groups.sum_indptr[g], groups.sum_indptr[g + 1], flat, starts, n, block)
                low = groups.indptr[g]
                for member in range(low, groups.indptr[g + 1]):
                    begin, end = members.indptr[member], members.indptr[member + 1]
                    dot_lanes(block, members.local, members.data, begin, end, zero, sums)
                    for lane in range(n):
                        out[outputs[lane] + member - low] = sums[0, lane]
                n = 0
