"""Dense label vectors: adding rows and sums of groups to them, clearing them, writing them out as sparse ones."""

from __future__ import annotations

import numpy as np

from longtail.kernels import njit


@njit(nogil=True, cache=True)
def add_row(indptr, ids, data, row, factor, vector):
    """vector += factor · row."""
    for t in range(indptr[row], indptr[row + 1]):
        vector[np.uint32(ids[t])] += factor * data[t]


@njit(nogil=True, cache=True)
def add_sums(groups, of, factors, vector):
    """vector += Σ factor · sum of the group, over the groups `of`."""
    for o in range(of.size):
        add_row(groups.sum_indptr, groups.sum_ids, groups.sum_data, of[o], np.float32(factors[o]), vector)


@njit(nogil=True, cache=True)
def add_sums_twice(groups, of, factors, factor, left, right):
    """left += Σ factors · sum and right += factor · Σ sum, over the groups `of`, in one go."""
    for o in range(of.size):
        own = np.float32(factors[o])
        for t in range(groups.sum_indptr[of[o]], groups.sum_indptr[of[o] + 1]):
            f, value = np.uint32(groups.sum_ids[t]), groups.sum_data[t]
            left[f] += own * value
            right[f] += factor * value


@njit(nogil=True, cache=True)
def touches_most(groups, of, n_features):
    """Say whether the groups touch so many features that looking at every feature is faster than following them."""
    touched = 0
    for o in range(of.size):
        touched += groups.sum_indptr[of[o] + 1] - groups.sum_indptr[of[o]]
    return touched > n_features // 4


@njit(nogil=True, cache=True)
def clear(groups, of, all_features, vector):
    """Set the features of some groups back to 0."""
    if all_features:
        vector[:] = 0
        return
    for o in range(of.size):
        for t in range(groups.sum_indptr[of[o]], groups.sum_indptr[of[o] + 1]):
            vector[np.uint32(groups.sum_ids[t])] = 0


@njit(nogil=True, cache=True)
def write_out(groups, of, all_features, vector, scale, shift, total, threshold, ids, values):
    """Write scale · vector + shift · total, where the vector is not 0, features sorted and small values dropped.

    The vector is 0 afterwards. Returns how many values there are.
    """
    n_values = 0
    if all_features:
        for f in range(vector.size):
            if vector[f] != 0:
                value = scale * vector[f] + shift * total[f]
                if abs(value) >= threshold:
                    ids[n_values], values[n_values] = f, value
                    n_values += 1
        vector[:] = 0
        return n_values
    for o in range(of.size):
        for t in range(groups.sum_indptr[of[o]], groups.sum_indptr[of[o] + 1]):
            f = groups.sum_ids[t]
            if vector[f] != 0:  # not seen yet
                value = scale * vector[f] + shift * total[f]
                vector[f] = 0
                if abs(value) >= threshold:
                    ids[n_values], values[n_values] = f, value
                    n_values += 1
    by_id = np.argsort(ids[:n_values], kind="mergesort")
    ids[:n_values], values[:n_values] = ids[:n_values][by_id], values[:n_values][by_id]
    return n_values
