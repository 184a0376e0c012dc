"""Tour through all labels that puts labels which often occur together side by side: 2-opt and Or-opt moves.

Weights are how often two labels occur together: a symmetric matrix in CSR form with sorted columns and an empty
diagonal. The weight of a tour, a closed circle of all labels, is the sum over its pairs of neighbours. `link_edges`
makes paths from the heaviest pairs and `walk_paths` joins them; `improve_tour` turns stretches around (2-opt) and moves
short ones elsewhere (Or-opt) while that adds weight. Choices depend on the circle alone, not on the direction in which
it is stored.
"""

from __future__ import annotations

import numpy as np

from longtail.kernels import njit

LONGEST = 3  # labels moved at once
SMALLEST = 8  # circles smaller than this are left alone: the ends of a move must be different labels


@njit(nogil=True, cache=True)
def link_edges(
    left, right,  # IN   pairs, heaviest first   (n_pairs,) int32
    beside,       # OUT  filled with -1 before   (n, 2) int32: up to two neighbours of each label
):  # fmt: skip
    """Link pairs, heaviest first, unless a label has two neighbours already or a circle would close."""
    n = beside.shape[0]
    root = np.arange(n)
    for t in range(left.size):
        a, b = left[t], right[t]
        if beside[a, 1] >= 0 or beside[b, 1] >= 0:
            continue
        ra, rb = a, b
        while root[ra] != ra:
            root[ra] = root[root[ra]]
            ra = root[ra]
        while root[rb] != rb:
            root[rb] = root[root[rb]]
            rb = root[rb]
        if ra == rb:
            continue
        root[rb] = ra
        beside[a, 1 if beside[a, 0] >= 0 else 0] = b
        beside[b, 1 if beside[b, 0] >= 0 else 0] = a


@njit(nogil=True, cache=True)
def walk_paths(
    beside,  # IN   neighbours, -1 for none; no circles   (n, 2) int32
    tour,    # OUT  the paths one after another           (n,) int32
):  # fmt: skip
    """Lay paths end to end, in the order of the smaller label of their ends."""
    n, at = beside.shape[0], 0
    done = np.zeros(n, dtype=np.bool_)
    for start in range(n):
        if done[start] or beside[start, 1] >= 0:
            continue
        last, label = -1, start
        while label >= 0:
            tour[at] = label
            done[label] = True
            at += 1
            ahead = beside[label, 0] if beside[label, 0] != last else beside[label, 1]
            last, label = label, ahead


@njit(nogil=True, cache=True)
def weight_of(indptr, indices, values, a, b):
    """Return the weight of a pair, 0 if its labels never occur together."""
    low, high = indptr[a], indptr[a + 1]
    while low < high:
        middle = (low + high) // 2
        if indices[middle] < b:
            low = middle + 1
        else:
            high = middle
    return values[low] if low < indptr[a + 1] and indices[low] == b else 0


@njit(nogil=True, cache=True)
def neighbour(tour, position, label, ahead):
    """Return the neighbour of a label, ahead (1) or behind (-1)."""
    at = position[label] + ahead
    if at == tour.size:
        at = 0
    return tour[at]  # -1 is the last one


@njit(nogil=True, cache=True)
def exchange_edges(tour, position, a, b, c, d):
    """Replace the pairs a-b and c-d by a-c and b-d; d follows c in the direction in which b follows a."""
    n = tour.size
    i, j = (position[b], position[c]) if neighbour(tour, position, a, 1) == b else (position[c], position[b])
    count = (j - i) % n + 1
    if 2 * count > n:  # turning the rest around is the same circle
        i, j, count = (j + 1) % n, (i - 1) % n, n - count
    for _ in range(count // 2):
        p, q = tour[i], tour[j]
        tour[i], tour[j] = q, p
        position[q], position[p] = i, j
        i = i + 1 if i + 1 < n else 0
        j = j - 1 if j > 0 else n - 1


@njit(nogil=True, cache=True)
def turn_stretch(indptr, indices, values, near, tour, position, a, ahead):
    """Bring a label together with one it is near to by turning a stretch around; return the weight gained."""
    b = neighbour(tour, position, a, ahead)
    has = weight_of(indptr, indices, values, a, b)
    for c in near[a]:
        if c < 0:
            break
        new = weight_of(indptr, indices, values, a, c)
        if new <= has:
            break
        d = neighbour(tour, position, c, ahead)
        gain = new + weight_of(indptr, indices, values, b, d) - has - weight_of(indptr, indices, values, c, d)
        if gain > 0:
            exchange_edges(tour, position, a, b, c, d)
            return gain
    return 0


@njit(nogil=True, cache=True)
def move_stretch(indptr, indices, values, near, tour, position, a, ahead):
    """Move 1 to 3 labels, from one on away from its neighbour, beside one it is near to; return the weight gained."""
    p = neighbour(tour, position, a, ahead)
    has = weight_of(indptr, indices, values, a, p)
    if near[a, 0] < 0 or weight_of(indptr, indices, values, a, near[a, 0]) <= has:
        return 0
    end = a
    for length in range(1, LONGEST + 1):
        if length > 1:
            end = neighbour(tour, position, end, -ahead)
        q = neighbour(tour, position, end, -ahead)
        loss = has + weight_of(indptr, indices, values, end, q) - weight_of(indptr, indices, values, p, q)
        for c in near[a]:
            if c < 0:
                break
            new = weight_of(indptr, indices, values, a, c)
            if new <= has:
                break
            if (position[a] - position[c]) * ahead % tour.size < length:
                continue  # in the stretch itself
            first = neighbour(tour, position, c, 1)
            second = neighbour(tour, position, c, -1)
            if second < first:
                first, second = second, first
            for e in (first, second):
                if (position[a] - position[e]) * ahead % tour.size < length:
                    continue
                gain = new + weight_of(indptr, indices, values, end, e) - loss
                gain -= weight_of(indptr, indices, values, c, e)
                if gain > 0:
                    move_between(tour, position, p, a, end, q, c, e, ahead)
                    return gain
    return 0


@njit(nogil=True, cache=True)
def move_between(tour, position, p, a, end, q, c, e, ahead):
    """Move the stretch a..end from between p and q to between c and e, with a beside c.

    Seen from p through the stretch, the circle reads p a .. end q ... u v, where u and v are c and e.
    """
    u, v = (c, e) if neighbour(tour, position, c, -ahead) == e else (e, c)
    exchange_edges(tour, position, p, a, u, v)  # p u ... q end .. a v
    exchange_edges(tour, position, p, u, q, end)  # p q ... u end .. a v
    if u == c:
        exchange_edges(tour, position, u, end, a, v)  # p q ... u a .. end v


@njit(nogil=True, cache=True)
def improve_tour(
    indptr, indices, values,  # IN      weights, CSR                                  (n + 1,), (nnz,), (nnz,)
    near,                     # IN      heaviest partners of each label first, -1     (n, m) int32
    tour,                     # IN/OUT  label at each position                        (n,) int32
    rounds,                   # IN      the most passes over all labels
):  # fmt: skip
    """Improve a tour by local moves until none adds weight; return the weight gained."""
    n, total = tour.size, 0
    if n < SMALLEST:
        return total
    position = np.empty(n, dtype=np.int64)
    for i in range(n):
        position[tour[i]] = i
    for _ in range(rounds):
        gained = 0
        for a in range(n):
            more = True
            while more:
                way = 1 if neighbour(tour, position, a, 1) < neighbour(tour, position, a, -1) else -1
                gain = turn_stretch(indptr, indices, values, near, tour, position, a, way)
                if gain == 0:
                    gain = turn_stretch(indptr, indices, values, near, tour, position, a, -way)
                if gain == 0:
                    gain = move_stretch(indptr, indices, values, near, tour, position, a, way)
                if gain == 0:
                    gain = move_stretch(indptr, indices, values, near, tour, position, a, -way)
                gained += gain
                more = gain > 0
        total += gained
        if gained == 0:
            break
    return total
