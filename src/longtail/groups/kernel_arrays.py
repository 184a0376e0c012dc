"""The arrays that the kernels of EAGLE work on, in named tuples, and the kernels that make them from CSR rows."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from longtail.kernels import njit


class MemberRows(NamedTuple):
    """The rows of all groups, CSR, group after group: what is read together lies together."""

    indptr: np.ndarray  # int64 (memberships + 1,)
    ids: np.ndarray  # int32 (nnz,), features
    local: np.ndarray  # int32 (nnz,), positions of the features in the sum of the group; empty unless scored by group
    data: np.ndarray  # float32 (nnz,)


class GroupArrays(NamedTuple):
    """The rows of each group, and their sum, CSR."""

    indptr: np.ndarray  # int64 (n_groups + 1,)
    rows: np.ndarray  # int32 (memberships,)
    sum_indptr: np.ndarray  # int64 (n_groups + 1,)
    sum_ids: np.ndarray  # int32 (s,)
    sum_data: np.ndarray  # float32 (s,)


class LabelArrays(NamedTuple):
    """The groups of each label: a pair is a label in a group."""

    indptr: np.ndarray  # int64 (n_labels + 1,)
    groups: np.ndarray  # int32 (n_pairs,)
    take: np.ndarray  # int32 (n_pairs,), rows wanted, 1 to the group's size
    start: np.ndarray  # float32 (n_pairs,), weight of a member at the start
    weight: np.ndarray  # float32 (n_pairs,), weight of a chosen row; 1 with contrast
    best_indptr: np.ndarray  # int64 (n_pairs + 1,), where the best rows of each pair are written
    refined: np.ndarray  # uint8 (n_labels,), with contrast: 0 for labels that keep their start


class LearningRule(NamedTuple):
    """How label vectors are learned: see `eagle_kernel`."""

    n_iter: int
    step: float | np.float32
    contrast: bool
    temperature: float  # divides standardised scores before they become shares
    threshold: float  # values of a vector below this are dropped


class Workspace(NamedTuple):
    """Arrays of one task, used for block after block of labels; a slot is the number of a label in its block."""

    start: np.ndarray  # (width, n_features) float32, first vector of each slot
    run: np.ndarray  # (width, n_features) float32, sum of the rows chosen at the moment; empty without iterations
    lanes: np.ndarray  # (features of the largest group + 1, 16) float32
    active: np.ndarray  # (width,) uint8, slots that are still learned
    moved: np.ndarray  # (width,) uint8, slots that chose other rows than before
    beta: np.ndarray  # (width,) float64, factors of the vector, see `eagle_kernel`
    sigma: np.ndarray
    rho: np.ndarray


class LabelBlock(NamedTuple):
    """Labels that are learned together, with one entry for every pair or for every member of a pair."""

    first: int  # label
    last: int  # one behind the last label
    pair0: int  # pair
    bounds: np.ndarray  # (n_pairs + 1,) int64, where the members of each pair begin
    kappa: np.ndarray  # (n_pairs,) float64, weight of the sum of a group in the start
    alpha: np.ndarray  # (n,) float64, weight of a member in the vector; empty unless vectors move step by step
    ahead: np.ndarray  # (n,) float32, dot product of a member with `start` or `run`
    scores: np.ndarray  # (n,) float64, dot product of a member with the vector
    old: np.ndarray  # (n,) uint8, chosen before
    new: np.ndarray  # (n,) uint8, chosen now
    order: np.ndarray  # (n,) int64
    group_indptr: np.ndarray  # pairs of each group, see `pairs_by_group`; not used when scored by label
    group_pairs: np.ndarray
    group_slots: np.ndarray


@njit(nogil=True, cache=True)
def pack_members(
    indptr, indices, data,  # IN   rows, CSR                     (n + 1,), (nnz,), (nnz,)
    rows,                   # IN   rows wanted, in order         (n_wanted,)
    new_indptr,             # IN   where each begins             (n_wanted + 1,) int64
    ids, values,            # OUT  features and values           (new_indptr[-1],) int32, float32
):  # fmt: skip
    """Copy rows in another order."""
    for m in range(rows.size):
        low, at = indptr[rows[m]], new_indptr[m]
        for t in range(new_indptr[m + 1] - at):
            ids[at + t] = indices[low + t]
            values[at + t] = data[low + t]


@njit(nogil=True, cache=True)
def number_features(
    group_indptr, member_indptr, ids,  # IN   members of each group, CSR
    sum_indptr, sum_ids,               # IN   features of each group
    n_features,
    local,                             # OUT  position of each member's features among its group's   (nnz,) int32
):  # fmt: skip
    """Number the features of members by their position in the sum of the group."""
    position = np.empty(n_features, dtype=np.int32)
    for g in range(group_indptr.size - 1):
        for t in range(sum_indptr[g], sum_indptr[g + 1]):
            position[sum_ids[t]] = t - sum_indptr[g]
        for t in range(member_indptr[group_indptr[g]], member_indptr[group_indptr[g + 1]]):
            local[t] = position[ids[t]]


@njit(nogil=True, cache=True)
def sum_groups(
    indptr, indices, data,       # IN   rows, CSR                            (n + 1,), (nnz,), (nnz,)
    group_indptr, rows,          # IN   rows of each group
    n_features,
    sum_indptr,                  # OUT  where the features of groups begin   (n_groups + 1,) int64
    sum_ids, sum_data,           # OUT  features and sums, as they are met   (nnz of all members,) int32, float32
):  # fmt: skip
    """Add up the rows of each group; sums that cancel out to 0 are kept. Returns how many there are."""
    position = np.full(n_features, -1, dtype=np.int64)
    n_sums = 0
    sum_indptr[0] = 0
    for g in range(group_indptr.size - 1):
        begin = n_sums
        for m in range(group_indptr[g], group_indptr[g + 1]):
            for t in range(indptr[rows[m]], indptr[rows[m] + 1]):
                f = indices[t]
                at = position[f]
                if at < begin:
                    at, position[f] = n_sums, n_sums
                    sum_ids[at], sum_data[at] = f, 0
                    n_sums += 1
                sum_data[at] += data[t]
        sum_indptr[g + 1] = n_sums
    return n_sums
