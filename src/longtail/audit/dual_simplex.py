"""Dual simplex for the largest ball inside a label region, on the few rows that are candidates.

    maximise r   subject to   signs_i (w_i . x + offsets_i) >= r  for every label i,   -1 <= x_j <= 1

A vertex is held by d + 1 tight constraints (rows, or sides of the box) with multipliers >= 0, so its r is always an
upper bound. The most violated constraint replaces a tight one until none is violated. Between two scans of all rows
only candidate rows are looked at; each scan (`chebyshev_centre`) adds the worst row of every block of labels. Results
are proved by `proof`: nothing here needs to be trusted.

Tried and left out: steepest-edge pricing halves the pivots, but each costs more than twice as much.
"""

from __future__ import annotations

import numpy as np

from longtail.kernels import njit

OPTIMAL, ENOUGH, STALLED, DEPENDENT, UNFINISHED = 0, 1, 2, 3, 4  # the status that find_centre returns first
SMALLEST_PIVOT = 1e-9
NEAR_TIE = 1e-12


@njit(nogil=True, cache=True)
def invert(
    G,  # IN/OUT  square matrix, destroyed   (m, m) float64
    M,  # OUT     its inverse                (m, m) float64
):  # fmt: skip
    """Invert by elimination with row exchanges; returns False for a matrix that is singular or nearly so."""
    m = G.shape[0]
    M[:] = 0.0
    for k in range(m):
        M[k, k] = 1.0
    for k in range(m):
        p = k
        for i in range(k + 1, m):
            if abs(G[i, k]) > abs(G[p, k]):
                p = i
        if abs(G[p, k]) < 1e-14:
            return False
        if p != k:
            for j in range(m):
                G[k, j], G[p, j] = G[p, j], G[k, j]
                M[k, j], M[p, j] = M[p, j], M[k, j]
        scale = 1.0 / G[k, k]
        for j in range(m):
            G[k, j] *= scale
            M[k, j] *= scale
        for i in range(m):
            factor = G[i, k]
            if i != k and factor != 0.0:
                for j in range(m):
                    G[i, j] -= factor * G[k, j]
                    M[i, j] -= factor * M[k, j]
    return True


@njit(nogil=True, cache=True)
def set_vertex(
    W, offsets, signs,  # IN   the rows                                                            (n, d), (n,), (n,)
    basis,              # IN   tight constraints: a row, -1 - 2j (x_j = 1) or -2 - 2j (x_j = -1)   (m,) int64
    M,                  # OUT  inverse of the tight constraints' normals                           (m, m)
    z,                  # OUT  the vertex: x, then r                                               (m,)
    weights,            # OUT  multipliers                                                         (m,)
):  # fmt: skip
    """Compute vertex and multipliers afresh from the tight constraints; returns False if they are dependent.

    Coordinates at a side of the box are known. Only the free ones and r need a matrix: as many as tight rows.
    """
    m = basis.size
    d = m - 1
    side_at = np.full(d, -1)
    for k in range(m):
        if basis[k] < 0:
            side_at[(-1 - basis[k]) // 2] = k
    free = np.append(np.flatnonzero(side_at < 0), d)
    tight = np.flatnonzero(basis >= 0)
    p = tight.size
    G, K = np.ones((p, p)), np.empty((p, p))
    for a in range(p):  # r - s (w . x) <= s * offset
        for f in range(p - 1):
            G[a, f] = -signs[basis[tight[a]]] * W[basis[tight[a]], free[f]]
    if free.size != p or not invert(G, K):
        return False
    M[:] = 0.0
    z[:] = 0.0
    for f in range(p):
        for a in range(p):
            c = basis[tight[a]]
            M[free[f], tight[a]] = K[f, a]
            z[free[f]] += K[f, a] * signs[c] * offsets[c]
    for j in range(d):
        k = side_at[j]
        if k < 0:
            continue
        side = 1.0 if (-1 - basis[k]) % 2 == 0 else -1.0
        M[j, k] = z[j] = side
        for f in range(p):
            total = 0.0
            for a in range(p):
                total += K[f, a] * signs[basis[tight[a]]] * W[basis[tight[a]], j]
            M[free[f], k] = total * side
            z[free[f]] += total * side
    for k in range(m):
        weights[k] = max(M[d, k], 0.0)
    return True


@njit(nogil=True, cache=True)
def exchange_constraint(
    basis, M, z, weights,  # IN/OUT  as in set_vertex
    side_at,               # IN/OUT  where each coordinate's side is among the tight constraints, else -1   (d,)
    alpha,                 # IN      the entering normal in terms of the tight ones; overwritten   (m,)
    entering, worst, tol,  # IN      the constraint, how far it is violated, what is too little to matter
):  # fmt: skip
    """Make the entering constraint tight in place of another; returns False if none can leave.

    The one whose multiplier reaches 0 first leaves; among near ties the largest pivot. A side of the box moves over
    to the opposite side instead, as long as the entering constraint stays violated: fewer, longer steps.
    """
    m = basis.size
    while True:
        bound = np.inf
        for k in range(m):
            if alpha[k] > SMALLEST_PIVOT:
                bound = min(bound, (weights[k] + NEAR_TIE) / alpha[k])
        out = -1
        for k in range(m):
            near = alpha[k] > SMALLEST_PIVOT and weights[k] / alpha[k] <= bound
            if near and (out < 0 or alpha[k] > alpha[out]):
                out = k
        if out < 0:
            return False
        if basis[out] >= 0 or worst - 2.0 * alpha[out] <= tol:
            break
        worst -= 2.0 * alpha[out]
        for j in range(m):
            z[j] -= 2.0 * M[j, out]
            M[j, out] = -M[j, out]
        basis[out] += -1 if (-1 - basis[out]) % 2 == 0 else 1
        alpha[out], weights[out] = -alpha[out], -weights[out]
    theta = weights[out] / alpha[out]
    for k in range(m):
        weights[k] = max(weights[k] - theta * alpha[k], 0.0)
    weights[out] = theta
    for j in range(m):
        factor = M[j, out] / alpha[out]
        z[j] -= worst * factor
        if factor != 0.0:
            for k in range(m):
                M[j, k] -= factor * alpha[k]
        M[j, out] = factor
    if basis[out] < 0:
        side_at[(-1 - basis[out]) // 2] = -1
    if entering < 0:
        side_at[(-1 - entering) // 2] = out
    basis[out] = entering
    return True


@njit(nogil=True, cache=True)
def solve_candidates(
    C, c_offsets, ids,     # IN      candidate rows with their signs, transposed   (d, count), (count,), (count,)
    basis, M, z, weights,  # IN/OUT  as in set_vertex
    tol, most,             # IN      most exchanges
):  # fmt: skip
    """Exchange constraints until no candidate and no side of the box is violated; returns exchanges, -1 when stuck."""
    d, count = C.shape
    values, alpha, old = np.empty(count), np.empty(d + 1), np.empty(d)
    side_at = np.full(d, -1)
    for k in range(d + 1):
        if basis[k] < 0:
            side_at[(-1 - basis[k]) // 2] = k
    values[:] = c_offsets
    old[:] = 0.0
    for step in range(most):
        for j in range(d):  # coordinates at a side of the box mostly stay
            line, value = C[j], z[j] - old[j]
            if value != 0.0:
                for c in range(count):
                    values[c] += value * line[c]
            old[j] = z[j]
        worst, entering, column = tol, 0, -1
        for c in range(count):
            if z[d] - values[c] > worst:
                worst, entering, column = z[d] - values[c], ids[c], c
        for j in range(d):
            if abs(z[j]) - 1.0 > worst:
                worst, entering, column = abs(z[j]) - 1.0, (-1 - 2 * j if z[j] > 0 else -2 - 2 * j), -1
        if worst <= tol:
            return step
        if column >= 0:
            alpha[:] = M[d]
            for j in range(d):
                factor, k = C[j, column], side_at[j]
                if k >= 0:
                    alpha[k] -= factor * M[j, k]
                else:
                    for k in range(d + 1):
                        alpha[k] -= factor * M[j, k]
        else:
            side = 1.0 if (-1 - entering) % 2 == 0 else -1.0
            for k in range(d + 1):
                alpha[k] = side * M[(-1 - entering) // 2, k]
        if not exchange_constraint(basis, M, z, weights, side_at, alpha, entering, worst, tol):
            return -1
    return most
