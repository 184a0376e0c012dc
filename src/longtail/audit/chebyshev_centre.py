"""The largest ball inside the region of one label set, over all rows: scans, candidates, exchanges."""

from __future__ import annotations

import numpy as np
from numba import njit

from longtail.audit.dual_simplex import DEPENDENT, ENOUGH, OPTIMAL, STALLED, set_vertex, solve_candidates
from longtail.audit.margins import signed_margins, signed_margins_plain, worst_per_block

SPELL = 50  # exchanges between two looks at the drift
REFRESH = 1000  # exchanges between two fresh inversions of the tight constraints, at the latest
DRIFT = 1e-11  # a tight constraint that is off by more calls for one


@njit(nogil=True, cache=True)
def slack_of_tight(W, offsets, signs, basis, z):
    """Return by how much the tight constraints miss the vertex: what the updates of the inverse have lost."""
    d = z.size - 1
    most = 0.0
    for k in range(basis.size):
        c = basis[k]
        if c >= 0:
            total = offsets[c]
            for j in range(d):
                total += W[c, j] * z[j]
            most = max(most, abs(signs[c] * total - z[d]))
        else:
            most = max(most, abs(abs(z[(-1 - c) // 2]) - 1.0))
    return most


def slack_of_tight_plain(
    W: np.ndarray, offsets: np.ndarray, signs: np.ndarray, basis: np.ndarray, z: np.ndarray
) -> float:
    rows = basis[basis >= 0]
    sides = (-1 - basis[basis < 0]) // 2
    missed = np.abs(signs[rows] * (W[rows] @ z[:-1] + offsets[rows]) - z[-1])
    return float(np.concatenate([[0.0], missed, np.abs(np.abs(z[sides]) - 1.0)]).max())


@njit(nogil=True, cache=True)
def start_basis(
    W, signs,  # IN
    basis,     # OUT  the first row that is on (or row 0), at the corner of the box where it is largest   (d + 1,)
):  # fmt: skip
    """Choose tight constraints whose multipliers are all >= 0."""
    first = 0
    for i in range(signs.size):
        if signs[i] > 0:
            first = i
            break
    basis[0] = first
    for j in range(W.shape[1]):
        basis[j + 1] = -1 - 2 * j if signs[first] * W[first, j] >= 0 else -2 - 2 * j


def start_basis_plain(W: np.ndarray, signs: np.ndarray, basis: np.ndarray) -> None:
    first = int(np.argmax(signs > 0))
    basis[0] = first
    basis[1:] = np.where(signs[first] * W[first] >= 0, -1, -2) - 2 * np.arange(W.shape[1])


@njit(nogil=True, cache=True)
def keep_near(C, c_offsets, ids, count, basis, margins, r, listed, most):
    """Drop candidates that are neither tight nor violated, to make room; returns how many are left."""
    kept = 0
    for c in range(count):
        tight = False
        for k in range(basis.size):
            tight = tight or basis[k] == ids[c]
        if tight or (margins[ids[c]] < r and kept < most):
            ids[kept], c_offsets[kept] = ids[c], c_offsets[c]
            for j in range(C.shape[0]):
                C[j, kept] = C[j, c]
            kept += 1
        else:
            listed[ids[c]] = False
    return kept


def keep_near_plain(
    C: np.ndarray,
    c_offsets: np.ndarray,
    ids: np.ndarray,
    count: int,
    basis: np.ndarray,
    margins: np.ndarray,
    r: float,
    listed: np.ndarray,
    most: int,
) -> int:
    chosen: list[int] = []
    for c in range(count):
        if ids[c] in basis or (margins[ids[c]] < r and len(chosen) < most):
            chosen.append(c)
    listed[np.delete(ids[:count], chosen)] = False
    kept = len(chosen)
    C[:, :kept], c_offsets[:kept], ids[:kept] = C[:, chosen], c_offsets[chosen], ids[chosen]
    return kept


@njit(nogil=True, cache=True)
def add_rows(W, offsets, signs, picked, C, c_offsets, ids, count, listed):
    """Make the picked rows candidates, unless they are; returns how many candidates there are then."""
    for i in picked:
        if not listed[i]:
            listed[i] = True
            ids[count], c_offsets[count] = i, signs[i] * offsets[i]
            for j in range(C.shape[0]):
                C[j, count] = signs[i] * W[i, j]
            count += 1
    return count


def add_rows_plain(
    W: np.ndarray,
    offsets: np.ndarray,
    signs: np.ndarray,
    picked: np.ndarray,
    C: np.ndarray,
    c_offsets: np.ndarray,
    ids: np.ndarray,
    count: int,
    listed: np.ndarray,
) -> int:
    new = np.array(list(dict.fromkeys(i for i in picked.tolist() if not listed[i])), dtype=np.int64)
    listed[new] = True
    at = slice(count, count + new.size)
    ids[at], c_offsets[at], C[:, at] = new, signs[new] * offsets[new], (signs[new, None] * W[new]).T
    return count + new.size


@njit(nogil=True, cache=True)
def largest_ball(
    W, Wt,       # IN   rows and their transpose                           (n, d), (d, n) float64
    offsets,     # IN                                                      (n,) float64
    signs,       # IN   +1 for on, -1 for off                              (n,) float64
    tol,         # IN   a constraint violated by less counts as kept
    enough,      # IN   stop at an input whose margins are all above this; inf for the optimum
    max_pivots,  # IN
    x,           # OUT  the centre, or the input found                     (d,) float64
    basis,       # OUT  tight constraints, see `set_vertex`                (d + 1,) int64
    weights,     # OUT  their multipliers; those of the rows sum to 1      (d + 1,) float64
):  # fmt: skip
    """Return (status, r, smallest margin of x, pivots, scans)."""
    n, d = W.shape
    m = d + 1
    batch = min(n, max(16, m // 4))
    cap = min(n, 3 * m // 2 + 64) + m
    margins, picked = np.empty(n), np.empty(batch, np.int64)
    C, c_offsets, ids = np.empty((d, cap)), np.empty(cap), np.empty(cap, np.int64)
    listed = np.zeros(n, np.bool_)
    M, z = np.empty((m, m)), np.empty(m)
    start_basis(W, signs, basis)
    if not set_vertex(W, offsets, signs, basis, M, z, weights):
        return DEPENDENT, np.inf, -np.inf, 0, 0
    count, pivots, scans, idle, since = 0, 0, 0, 0, 0
    fresh = True
    lowest, status = np.inf, OPTIMAL
    while True:
        smallest = signed_margins(Wt, offsets, signs, z[:d], margins)
        scans += 1
        new = False
        inside = True
        for j in range(d):
            x[j] = z[j]
            inside = inside and abs(z[j]) <= 1.0 + tol
        if inside and smallest > enough:
            return ENOUGH, z[d], smallest, pivots, scans
        if status != OPTIMAL:
            return status, z[d], smallest, pivots, scans
        if smallest >= z[d] - tol:  # nothing is violated: once more with a fresh inverse, if it is not
            if fresh and inside:
                return status, z[d], smallest, pivots, scans
            if not set_vertex(W, offsets, signs, basis, M, z, weights):
                return DEPENDENT, z[d], smallest, pivots, scans
            since, fresh = 0, True
        else:
            found = worst_per_block(margins, z[d] - tol, picked)
            if count + found > cap:
                count = keep_near(C, c_offsets, ids, count, basis, margins, z[d], listed, cap - batch - m)
            before = count
            count = add_rows(W, offsets, signs, picked[:found], C, c_offsets, ids, count, listed)
            new = count > before
        while True:
            done = solve_candidates(C[:, :count], c_offsets[:count], ids[:count], basis, M, z, weights, tol, SPELL)
            pivots += max(done, 0)
            idle = 0 if z[d] < lowest - 1e-15 else idle + max(done, 1)
            lowest = min(lowest, z[d])
            since += max(done, 0)
            fresh = since == 0
            if done < 0 or pivots >= max_pivots or idle > 20 * m:
                status = STALLED  # degenerate, or out of digits
            if since >= REFRESH or status != OPTIMAL or slack_of_tight(W, offsets, signs, basis, z) > DRIFT:
                if not set_vertex(W, offsets, signs, basis, M, z, weights):
                    return DEPENDENT, z[d], smallest, pivots, scans
                since, fresh = 0, True
            if done < SPELL or status != OPTIMAL:
                break
        if done == 0 and not new and smallest < z[d] - tol:  # the two sums differ in the last digit: near enough
            return status, z[d], smallest, pivots, scans


def largest_ball_plain(
    W: np.ndarray,
    Wt: np.ndarray,
    offsets: np.ndarray,
    signs: np.ndarray,
    tol: float,
    enough: float,
    max_pivots: int,
    x: np.ndarray,
    basis: np.ndarray,
    weights: np.ndarray,
) -> tuple[int, float, float, int, int]:
    """Do the same with every row a candidate and a fresh inverse at each step; `enough` is looked at in the end."""
    n, d = W.shape
    sides = np.concatenate([np.column_stack([s * np.eye(d), np.zeros(d)]) for s in (1.0, -1.0)])
    G = np.concatenate([np.column_stack([-signs[:, None] * W, np.ones(n)]), sides])
    h = np.concatenate([signs * offsets, np.ones(2 * d)])
    numbers = np.concatenate([np.arange(n), -1 - 2 * np.arange(d), -2 - 2 * np.arange(d)])
    first = int(np.argmax(signs > 0))
    tight = [first, *(n + j if signs[first] * W[first, j] >= 0 else n + d + j for j in range(d))]
    margins = np.empty(n)
    pivots = 0
    while True:
        M = np.linalg.inv(G[tight])
        z, weights[:] = M @ h[tight], np.maximum(M[d], 0)
        excess = G @ z - h
        entering = int(np.argmax(excess))
        alpha = G[entering] @ M
        if excess[entering] <= tol or not (alpha > 1e-9).any() or pivots >= max_pivots:
            break
        pivots += 1
        ratios = np.where(alpha > 1e-9, weights / np.where(alpha > 1e-9, alpha, 1), np.inf)
        tight[int(np.argmin(ratios))] = entering
    x[:], basis[:] = z[:d], numbers[tight]
    smallest = signed_margins_plain(Wt, offsets, signs, x, margins)
    status = STALLED if excess[entering] > tol else ENOUGH if smallest > enough else OPTIMAL
    return status, float(z[d]), smallest, pivots, pivots + 1
