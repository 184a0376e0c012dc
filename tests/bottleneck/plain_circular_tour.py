"""Plain twins of `circular_tour`: the search makes the same choices on a list that is cut and joined at every move."""

from __future__ import annotations

import numpy as np

from longtail.bottleneck.circular_tour import LONGEST, SMALLEST


def link_edges_plain(left: np.ndarray, right: np.ndarray, beside: np.ndarray) -> None:
    path = {i: {i} for i in range(beside.shape[0])}
    for a, b in zip(left.tolist(), right.tolist(), strict=True):
        if beside[a, 1] >= 0 or beside[b, 1] >= 0 or b in path[a]:
            continue
        joined = path[a] | path[b]
        path.update(dict.fromkeys(joined, joined))
        beside[a, np.argmax(beside[a] < 0)] = b
        beside[b, np.argmax(beside[b] < 0)] = a


def walk_paths_plain(beside: np.ndarray, tour: np.ndarray) -> None:
    walked: list[int] = []
    for start in range(beside.shape[0]):
        if start in walked or beside[start, 1] >= 0:
            continue
        steps = [start]
        while ahead := [int(b) for b in beside[steps[-1]] if b >= 0 and b not in steps]:
            steps.append(ahead[0])
        walked += steps
    tour[:] = walked


def improve_tour_plain(
    indptr: np.ndarray, indices: np.ndarray, values: np.ndarray, near: np.ndarray, tour: np.ndarray, rounds: int
) -> int:
    n, total = tour.size, 0
    W = np.zeros((n, n), dtype=np.int64)
    W[np.repeat(np.arange(n), np.diff(indptr)), indices] = values
    labels = tour.tolist()
    if n < SMALLEST:
        return 0
    for _ in range(rounds):
        gained = 0
        for a in range(n):
            while move := _move(labels, W, near, a):
                gain, labels = move
                gained += gain
        total += gained
        if gained == 0:
            break
    tour[:] = labels
    return total


def circle_weight(labels: list[int], W: np.ndarray) -> int:
    """Return the sum of the weights of all pairs of neighbours."""
    return int(sum(W[a, b] for a, b in zip(labels, [*labels[1:], labels[0]], strict=True)))


def _move(labels: list[int], W: np.ndarray, near: np.ndarray, a: int) -> tuple[int, list[int]] | None:
    """Return the first move for a label that adds weight: what it adds, and the new circle."""
    at = labels.index(a)
    forward = [*labels[at:], *labels[:at]]
    backward = [a, *forward[:0:-1]]
    ways = [forward, backward] if forward[1] < forward[-1] else [backward, forward]
    for candidates in (_turned, _moved):
        for way in ways:  # a is first, and next comes the neighbour it may lose
            for circle in candidates(way, W, near):
                gain = circle_weight(circle, W) - circle_weight(labels, W)
                if gain > 0:
                    return gain, circle
    return None


def _partners(way: list[int], W: np.ndarray, near: np.ndarray) -> list[int]:
    """Return the labels with which the first one stands together more often than with the next one."""
    a, b = way[:2]
    return [int(c) for c in near[a] if c >= 0 and W[a, c] > W[a, b]]


def _turned(way: list[int], W: np.ndarray, near: np.ndarray) -> list[list[int]]:
    out = []
    for c in _partners(way, W, near):
        j = way.index(c)
        out.append([way[0], *way[j:0:-1], *way[j + 1 :]])
    return out


def _moved(way: list[int], W: np.ndarray, near: np.ndarray) -> list[list[int]]:
    out = []
    for length in range(1, LONGEST + 1):
        stretch = [way[0], *way[:-length:-1]]  # a and those on its other side
        rest = [label for label in way if label not in stretch]
        for c in _partners(way, W, near):
            if c in stretch:
                continue
            j = way.index(c)
            sides = sorted(label for label in (way[j - 1], way[(j + 1) % len(way)]) if label not in stretch)
            for e in sides:
                k = rest.index(c)
                after = rest[(k + 1) % len(rest)] == e
                piece = stretch if after else stretch[::-1]
                cut = k + 1 if after else k
                out.append([*rest[:cut], *piece, *rest[cut:]])
    return out
