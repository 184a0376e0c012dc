"""The plain twin of `eagle.learn_labels`: vectors written out, one label after the other."""

from __future__ import annotations

import numpy as np

from longtail.groups.choose_rows import PRIOR, capped_shares_plain
from longtail.groups.eagle_kernel import TINY
from longtail.groups.kernel_arrays import Groups, Labels, Members, Rule


def learn_labels_plain(
    members: Members,
    groups: Groups,
    labels: Labels,
    rule: Rule,
    total: np.ndarray,
    toward: np.ndarray,
    first: int,
    last: int,
    width: int,
    by_group: bool,
    out_rows: np.ndarray,
    out_scores: np.ndarray,
    out_shares: np.ndarray,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    X = np.zeros((groups.rows.max(initial=-1) + 1, total.size))
    for member, row in enumerate(groups.rows):
        at = slice(members.indptr[member], members.indptr[member + 1])
        X[row, members.ids[at]] = members.data[at]
    take, place_indptr = labels.take, labels.place_indptr
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
            chosen = [_best(X[rows] @ z, count) for rows, count in zip(of, take[pairs], strict=True)]
            if rule.contrast:
                in_, out = _parts(X, of, chosen)
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
            [np.delete(s, _best(s, count)) for s, count in zip(scores, take[pairs], strict=True)] or [np.zeros(0)]
        )
        mean = left.mean() if left.size else 0.0
        spread = np.sqrt((((left - mean) ** 2).sum() + PRIOR * np.concatenate(scores).var()) / (left.size + PRIOR))
        for pair, rows, s in zip(pairs, of, scores, strict=True):
            shares = np.ones(s.size)
            if take[pair] < s.size:
                capped_shares_plain((s - mean) / (max(spread, 1e-6) * rule.temperature), take[pair], shares)
            at = slice(place_indptr[pair], place_indptr[pair + 1])
            best = _best(s, at.stop - at.start)
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
    z = alpha @ X[every]
    if contrast:
        elsewhere = memberships - every.size
        background = (total - X[every].sum(axis=0)) / elsewhere if elsewhere > 0 else total / memberships
        z = z - background
        alpha = alpha + (1 / elsewhere if elsewhere > 0 else 0)
    if z @ z <= TINY * (alpha @ alpha):
        z = X[members[0][label % len(members[0])]]
    return z / max(np.linalg.norm(z), 1e-15)


def _best(scores: np.ndarray, count: int) -> np.ndarray:
    return np.argsort(-scores, kind="stable")[:count]


def _parts(X: np.ndarray, members: list[np.ndarray], chosen: list[np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    """Return the chosen rows and the others."""
    inside = np.concatenate([rows[best] for rows, best in zip(members, chosen, strict=True)])
    outside = np.concatenate([np.delete(rows, best) for rows, best in zip(members, chosen, strict=True)])
    return X[inside], X[outside]
