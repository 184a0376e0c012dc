"""What the kernels of `eagle` read: members, groups, labels and the rule, each a tuple of arrays."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit


class Members(NamedTuple):
    """The rows of all groups, CSR, group after group: what is read together lies together."""

    indptr: np.ndarray  # int64 (memberships + 1,)
    ids: np.ndarray  # int32 (nnz,), features
    local: np.ndarray  # int32 (nnz,), places of the features in the sum of the group; empty unless scored by group
    data: np.ndarray  # float32 (nnz,)


class Groups(NamedTuple):
    """The rows of each group, and their sum, CSR."""

    indptr: np.ndarray  # int64 (n_groups + 1,)
    rows: np.ndarray  # int32 (memberships,)
    sum_indptr: np.ndarray  # int64 (n_groups + 1,)
    sum_ids: np.ndarray  # int32 (s,)
    sum_data: np.ndarray  # float32 (s,)


class Labels(NamedTuple):
    """The groups of each label: a pair is a label in a group."""

    indptr: np.ndarray  # int64 (n_labels + 1,)
    groups: np.ndarray  # int32 (n_pairs,)
    take: np.ndarray  # int32 (n_pairs,), rows wanted, 1 to the group's size
    start: np.ndarray  # float32 (n_pairs,), what a member counts at the start
    weight: np.ndarray  # float32 (n_pairs,), what a chosen row counts; 1 with contrast
    place_indptr: np.ndarray  # int64 (n_pairs + 1,), room for the best rows of each pair


class Rule(NamedTuple):
    """How to learn."""

    n_iter: int
    step: float | np.float32
    contrast: bool
    temperature: float  # divides standardised scores before they become shares
    threshold: float  # values of a vector below this are dropped


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


def pack_members_plain(
    indptr: np.ndarray,
    indices: np.ndarray,
    data: np.ndarray,
    rows: np.ndarray,
    new_indptr: np.ndarray,
    ids: np.ndarray,
    values: np.ndarray,
) -> None:
    for m, row in enumerate(rows):
        at, of = slice(new_indptr[m], new_indptr[m + 1]), slice(indptr[row], indptr[row + 1])
        ids[at], values[at] = indices[of], data[of]


@njit(nogil=True, cache=True)
def place_features(
    group_indptr, member_indptr, ids,  # IN   members of each group, CSR
    sum_indptr, sum_ids,               # IN   features of each group
    n_features,
    local,                             # OUT  place of each member's features among its group's   (nnz,) int32
):  # fmt: skip
    """Number the features of members by their place in the sum of the group."""
    place = np.empty(n_features, dtype=np.int32)
    for g in range(group_indptr.size - 1):
        for t in range(sum_indptr[g], sum_indptr[g + 1]):
            place[sum_ids[t]] = t - sum_indptr[g]
        for t in range(member_indptr[group_indptr[g]], member_indptr[group_indptr[g + 1]]):
            local[t] = place[ids[t]]


def place_features_plain(
    group_indptr: np.ndarray,
    member_indptr: np.ndarray,
    ids: np.ndarray,
    sum_indptr: np.ndarray,
    sum_ids: np.ndarray,
    n_features: int,
    local: np.ndarray,
) -> None:
    for g in range(group_indptr.size - 1):
        features = sum_ids[sum_indptr[g] : sum_indptr[g + 1]].tolist()
        at = slice(member_indptr[group_indptr[g]], member_indptr[group_indptr[g + 1]])
        local[at] = [features.index(f) for f in ids[at].tolist()]


@njit(nogil=True, cache=True)
def sum_groups(
    indptr, indices, data,       # IN   rows, CSR                            (n + 1,), (nnz,), (nnz,)
    group_indptr, rows,          # IN   rows of each group
    n_features,
    sum_indptr,                  # OUT  where the features of groups begin   (n_groups + 1,) int64
    sum_ids, sum_data,           # OUT  features and sums, as they are met   (nnz of all members,) int32, float32
):  # fmt: skip
    """Add up the rows of each group; sums that cancel out to 0 are kept. Returns how many there are."""
    place = np.full(n_features, -1, dtype=np.int64)
    found = 0
    sum_indptr[0] = 0
    for g in range(group_indptr.size - 1):
        begin = found
        for m in range(group_indptr[g], group_indptr[g + 1]):
            for t in range(indptr[rows[m]], indptr[rows[m] + 1]):
                f = indices[t]
                at = place[f]
                if at < begin:
                    at, place[f] = found, found
                    sum_ids[at], sum_data[at] = f, 0
                    found += 1
                sum_data[at] += data[t]
        sum_indptr[g + 1] = found
    return found


def sum_groups_plain(
    indptr: np.ndarray,
    indices: np.ndarray,
    data: np.ndarray,
    group_indptr: np.ndarray,
    rows: np.ndarray,
    n_features: int,
    sum_indptr: np.ndarray,
    sum_ids: np.ndarray,
    sum_data: np.ndarray,
) -> int:
    found = 0
    sum_indptr[0] = 0
    for g in range(group_indptr.size - 1):
        sums: dict[int, np.float32] = {}
        for row in rows[group_indptr[g] : group_indptr[g + 1]]:
            for t in range(indptr[row], indptr[row + 1]):
                sums[indices[t]] = sums.get(indices[t], np.float32(0)) + data[t]
        at = slice(found, found + len(sums))
        sum_ids[at], sum_data[at] = list(sums), list(sums.values())
        found += len(sums)
        sum_indptr[g + 1] = found
    return found
