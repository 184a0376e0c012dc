"""Plain twins, in numpy, of the kernels of EAGLE: vectors written out, one label after the other."""

from __future__ import annotations

import numpy as np

from longtail.groups.choose_rows import PRIOR
from longtail.groups.eagle_kernel import ROUNDING, TINY
from longtail.groups.kernel_arrays import GroupArrays, LabelArrays, LearningRule, MemberRows


def learn_labels_plain(
    members: MemberRows,
    groups: GroupArrays,
    labels: LabelArrays,
    rule: LearningRule,
    total: np.ndarray,
    toward: np.ndarray,
    first: int,
    last: int,
    width: int,
    by_group: bool,
    out_rows: np.ndarray,
    out_scores: np.ndarray,
    out_shares: np.ndarray,
    gaps: list[float] | None = None,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Learn as `learn_labels` does; `gaps` gets the smallest difference of scores that decided each choice of rows."""

    def best_of(scores: np.ndarray, count: int) -> np.ndarray:
        order = np.argsort(-scores, kind="stable")
        if gaps is not None:
            gaps.extend(-np.diff(scores[order[: count + 1]]))
        return order[:count]

    X = np.zeros((groups.rows.max(initial=-1) + 1, total.size))
    for member, row in enumerate(groups.rows):
        at = slice(members.indptr[member], members.indptr[member + 1])
        X[row, members.ids[at]] = members.data[at]
    take, best_indptr = labels.take, labels.best_indptr
    sizes, ids, values = [0], [], []
    for label in range(first, last):
        pairs = np.arange(labels.indptr[label], labels.indptr[label + 1])
        of = [groups.rows[groups.indptr[g] : groups.indptr[g + 1]] for g in labels.groups[pairs]]
        if sum(map(len, of)) == 0:
            sizes.append(sizes[-1])
            continue
        everything = np.asarray(total, dtype=np.float64)
        z = _start(X, of, labels.start[pairs], rule.contrast, everything, groups.rows.size, label)
        before: list[np.ndarray] = []
        for _ in range(rule.n_iter):
            chosen = [best_of(X[rows] @ z, count) for rows, count in zip(of, take[pairs], strict=True)]
            if rule.contrast:
                in_, out = _parts(X, of, chosen)
                if not labels.refined[label]:
                    break
                same = before and all(set(a) == set(b) for a, b in zip(before, chosen, strict=True))
                if same or len(out) == 0:
                    break
                z, before = in_.mean(axis=0) - out.mean(axis=0), chosen
            else:
                for rows, best, w in zip(of, chosen, labels.weight[pairs], strict=True):
                    z = z + rule.step * w * X[rows[best]].sum(axis=0)
            z /= max(np.linalg.norm(z), 1e-15)
        scores = [X[rows] @ z for rows in of]
        left = np.concatenate(
            [np.delete(s, best_of(s, count)) for s, count in zip(scores, take[pairs], strict=True)] or [np.zeros(0)]
        )
        mean = left.mean() if left.size else 0.0
        spread = np.sqrt((((left - mean) ** 2).sum() + PRIOR * np.concatenate(scores).var()) / (left.size + PRIOR))
        for pair, rows, s in zip(pairs, of, scores, strict=True):
            shares = np.ones(s.size)
            if take[pair] < s.size:
                capped_shares_plain((s - mean) / (max(spread, 1e-6) * rule.temperature), take[pair], shares)
            at = slice(best_indptr[pair], best_indptr[pair + 1])
            best = best_of(s, at.stop - at.start)
            out_rows[at], out_scores[at], out_shares[at] = rows[best], s[best], shares[best]
        features = np.flatnonzero((X[np.concatenate(of)] != 0).any(axis=0) & (np.abs(z) >= rule.threshold))
        ids.append(features.astype(np.int32))
        values.append(z[features].astype(np.float32))
        sizes.append(sizes[-1] + features.size)
    empty = np.zeros(0)
    return (
        np.array(sizes),
        np.concatenate([*ids, empty]).astype(np.int32),
        np.concatenate([*values, empty]).astype(np.float32),
    )


def _start(
    X: np.ndarray,
    members: list[np.ndarray],
    weights: np.ndarray,
    contrast: bool,
    total: np.ndarray,
    memberships: int,
    label: int,
) -> np.ndarray:
    every = np.concatenate(members)
    each = np.repeat(weights.astype(np.float64), [len(rows) for rows in members])
    alpha = each / each.sum() if contrast else each
    z, away = alpha @ X[every], 0.0
    if contrast:
        elsewhere = memberships - every.size
        background = (total - X[every].sum(axis=0)) / elsewhere if elsewhere > 0 else total / memberships
        z = z - background
        alpha = alpha + (1 / elsewhere if elsewhere > 0 else 0)
        away = total @ total / (elsewhere or memberships) ** 2
    if z @ z <= TINY * (alpha @ alpha) + ROUNDING * away:
        z = X[members[0][label % len(members[0])]]
    return z / max(np.linalg.norm(z), 1e-15)


def _parts(X: np.ndarray, members: list[np.ndarray], chosen: list[np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    """Return the chosen rows and the others."""
    inside = np.concatenate([rows[best] for rows, best in zip(members, chosen, strict=True)])
    outside = np.concatenate([np.delete(rows, best) for rows, best in zip(members, chosen, strict=True)])
    return X[inside], X[outside]


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


def number_features_plain(
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


def score_by_label_plain(
    members: MemberRows,
    groups: GroupArrays,
    labels: LabelArrays,
    first: int,
    last: int,
    active: np.ndarray,
    bounds: np.ndarray,
    vectors: np.ndarray,
    out: np.ndarray,
) -> None:
    for label in range(first, last):
        for pair in range(labels.indptr[label], labels.indptr[label + 1]):
            group = labels.groups[pair]
            for place, member in enumerate(range(groups.indptr[group], groups.indptr[group + 1])):
                at = slice(members.indptr[member], members.indptr[member + 1])
                if active[label - first]:
                    score = members.data[at] @ vectors[label - first, members.ids[at]]
                    out[bounds[pair - labels.indptr[first]] + place] = score


def score_by_group_plain(
    members: MemberRows,
    groups: GroupArrays,
    indptr: np.ndarray,
    pairs: np.ndarray,
    slots: np.ndarray,
    active: np.ndarray,
    bounds: np.ndarray,
    vectors: np.ndarray,
    block: np.ndarray,
    out: np.ndarray,
) -> None:
    for g in range(groups.indptr.size - 1):
        features = groups.sum_ids[groups.sum_indptr[g] : groups.sum_indptr[g + 1]]
        for pair, slot in zip(pairs[indptr[g] : indptr[g + 1]], slots[indptr[g] : indptr[g + 1]], strict=True):
            if active[slot]:
                for place, member in enumerate(range(groups.indptr[g], groups.indptr[g + 1])):
                    at = slice(members.indptr[member], members.indptr[member + 1])
                    out[bounds[pair] + place] = members.data[at] @ vectors[slot, features[members.local[at]]]


def capped_shares_plain(scores: np.ndarray, take: int, shares: np.ndarray) -> None:
    low, high = -scores.max() - 50, -scores.min() + 50  # logarithm of the factor at which the shares add up to `take`
    for _ in range(200):
        middle = (low + high) / 2
        low, high = (middle, high) if np.exp(np.minimum(0, scores + middle)).sum() < take else (low, middle)
    shares[:] = np.exp(np.minimum(0, scores + high))
