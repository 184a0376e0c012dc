"""Chebyshev centre of a label region by row generation: the centre of the largest ball inside it.

Scan the margins of all labels at the current vertex, make the worst rows candidates, solve the linear program of the
candidates (`dual_simplex`), and begin again until no row is violated.

A margin is sign * (w . x + offset). For the scan the weights lie transposed, one line per input dimension, so that the
inner loop runs over labels and the compiler can use vector instructions without reordering a sum: the result is the
same on every machine and for any number of threads.
"""

from __future__ import annotations

import numpy as np

from longtail.audit.dual_simplex import (
    DEPENDENT,
    ENOUGH,
    OPTIMAL,
    STALLED,
    UNFINISHED,
    set_vertex,
    solve_candidates,
)
from longtail.audit.time_left import TimeLeft
from longtail.kernels import njit

EXCHANGES_PER_CHECK = 50  # exchanges between two looks at the drift
REFRESH = 1000  # exchanges between two fresh inversions of the tight constraints, at the latest
DRIFT = 1e-11  # a tight constraint that is off by more calls for one
NEAR, CLEAR = 1e-12, 1e-6  # rounding of a margin; r far enough from 0 that it changes nothing
WORK_AT_ONCE = 300_000_000  # multiplications of one call of the kernel: some tenths of a second
COUNT, PIVOTS, SCANS, IDLE, SINCE, FRESH, N_COUNTERS = range(7)  # what a search counts from call to call
BLOCK = 512  # labels at a time in a scan: their sums stay in the first cache


def find_centre(
    W: np.ndarray,  # rows and their transpose                            (n, d), (d, n) float64
    Wt: np.ndarray,
    offsets: np.ndarray,  #                                                     (n,) float64
    signs: np.ndarray,  # +1 for on, -1 for off                               (n,) float64
    tol: float,  # a constraint violated by less counts as kept
    enough: float,  # stop at an input whose margins are all above this; inf for the optimum
    max_pivots: int,
    x: np.ndarray,  # OUT  the centre, or an input that will do                   (d,) float64
    basis: np.ndarray,  # OUT  tight constraints, see `set_vertex`                    (d + 1,) int64
    weights: np.ndarray,  # OUT  their multipliers; those of the rows sum to 1          (d + 1,) float64
    time_left: TimeLeft | None = None,
) -> tuple[int, float, float, int, int]:
    """Find the centre of the largest ball inside a label region, |x_j| <= 1.

    Returns (status, radius r, smallest margin of x, exchanges, scans). The kernel comes back every fraction of a
    second, so that signals are handled; when no time is left the status is UNFINISHED, with multipliers that bound r.
    """
    n, d = W.shape
    m = d + 1
    batch = min(n, max(16, m // 4))
    cap = min(n, 3 * m // 2 + 64) + m
    rows = np.empty((d, cap)), np.empty(cap), np.empty(cap, np.int64), np.zeros(n, np.bool_)
    vertex = np.empty((m, m)), np.empty(m)
    scanned = np.empty(n), np.empty(batch, np.int64)
    counters, lowest = np.zeros(N_COUNTERS, np.int64), np.full(1, np.inf)
    given = W, Wt, offsets, signs, tol, enough, max_pivots, x, basis, weights
    while True:
        status, r, smallest = advance_search(*given, *rows, *vertex, *scanned, counters, lowest)
        if status != UNFINISHED or (time_left is not None and time_left.is_over):
            return status, r, smallest, int(counters[PIVOTS]), int(counters[SCANS])


@njit(nogil=True, cache=True)
def advance_search(
    W, Wt, offsets, signs, tol, enough, max_pivots, x, basis, weights,  # as in find_centre
    C, c_offsets, ids, listed,  # IN/OUT  candidate rows, see `solve_candidates`; which rows are  (d, cap), ..., (n,)
    M, z,                       # IN/OUT  the vertex, see `set_vertex`
    margins, picked,            # OUT     of the last scan
    counters,                   # IN/OUT  COUNT, PIVOTS, ...; 0 to begin    (N_COUNTERS,) int64
    lowest,                     # IN/OUT  the smallest r so far             (1,) float64
):  # fmt: skip
    """Search for a fraction of a second; returns (status, r, smallest margin), UNFINISHED if there is more to do."""
    n, d = W.shape
    m = d + 1
    batch, cap = picked.size, ids.size
    if counters[SCANS] == 0:
        start_basis(W, signs, basis)
        if not set_vertex(W, offsets, signs, basis, M, z, weights):
            return DEPENDENT, np.inf, -np.inf
        counters[FRESH] = 1
    count, pivots, idle, since = counters[COUNT], counters[PIVOTS], counters[IDLE], counters[SINCE]
    fresh = counters[FRESH] == 1
    status, work = OPTIMAL, 0
    while True:
        smallest = signed_margins(Wt, offsets, signs, z[:d], margins)
        counters[SCANS] += 1
        work += n * d
        new = False
        inside = True
        for j in range(d):
            x[j] = z[j]
            inside = inside and abs(z[j]) <= 1.0 + tol
        if inside and smallest > enough:
            return ENOUGH, z[d], smallest
        if status != OPTIMAL:
            return status, z[d], smallest
        if inside and idle > 0 and smallest >= z[d] - NEAR and abs(z[d]) > CLEAR:
            return status, z[d], smallest  # exchanges that gain nothing: what is left is rounding
        if work > WORK_AT_ONCE:
            counters[COUNT], counters[IDLE], counters[SINCE], counters[FRESH] = count, idle, since, int(fresh)
            return UNFINISHED, z[d], smallest
        if smallest >= z[d] - tol:  # nothing is violated: once more with a fresh inverse, if it is not
            if fresh and inside:
                return status, z[d], smallest
            if not set_vertex(W, offsets, signs, basis, M, z, weights):
                return DEPENDENT, z[d], smallest
            since, fresh = 0, True
        else:
            n_picked = worst_per_block(margins, z[d] - tol, picked)
            if count + n_picked > cap:
                count = prune_candidates(C, c_offsets, ids, count, basis, margins, z[d], listed, cap - batch - m)
            before = count
            count = add_candidates(W, offsets, signs, picked[:n_picked], C, c_offsets, ids, count, listed)
            new = count > before
        while True:
            done = solve_candidates(
                C[:, :count], c_offsets[:count], ids[:count], basis, M, z, weights, tol, EXCHANGES_PER_CHECK
            )
            pivots += max(done, 0)
            counters[PIVOTS] = pivots
            work += (max(done, 0) + 1) * m * m
            idle = 0 if z[d] < lowest[0] - 1e-15 else idle + max(done, 1)
            lowest[0] = min(lowest[0], z[d])
            since += max(done, 0)
            fresh = since == 0
            if done < 0 or pivots >= max_pivots or idle > 20 * m:
                status = STALLED  # degenerate, or out of digits
            if since >= REFRESH or status != OPTIMAL or slack_of_tight(W, offsets, signs, basis, z) > DRIFT:
                work += 8 * m * m
                if not set_vertex(W, offsets, signs, basis, M, z, weights):
                    return DEPENDENT, z[d], smallest
                since, fresh = 0, True
            if done < EXCHANGES_PER_CHECK or status != OPTIMAL or work > WORK_AT_ONCE:
                break
        if done == 0 and not new and smallest < z[d] - tol:  # the two sums differ in the last digit: near enough
            return status, z[d], smallest


@njit(nogil=True, cache=True)
def signed_margins(
    Wt,       # IN   weights, transposed     (d, n) float64
    offsets,  # IN                           (n,) float64
    signs,    # IN   +1 for on, -1 for off   (n,) float64
    x,        # IN   the input               (d,) float64
    out,      # OUT  signs * (W x + offsets) (n,) float64
):  # fmt: skip
    """Compute the signed margins of all labels for one input and return the smallest."""
    d, n = Wt.shape
    smallest = np.inf
    for start in range(0, n, BLOCK):
        stop = min(start + BLOCK, n)
        total = out[start:stop]
        total[:] = offsets[start:stop]
        for j in range(d):
            line, value = Wt[j, start:stop], x[j]
            for i in range(stop - start):
                total[i] += value * line[i]
        for i in range(stop - start):
            total[i] *= signs[start + i]
            if total[i] < smallest:
                smallest = total[i]
    return smallest


@njit(nogil=True, cache=True)
def worst_per_block(
    margins,  # IN   signed margins                                                    (n,) float64
    limit,    # IN   only margins below this count
    picked,   # OUT  the label with the smallest margin of each block that has one     (n_blocks,) int64
):  # fmt: skip
    """Pick the most violated label of each of `picked.size` equal blocks and return how many blocks have one."""
    n, n_blocks = margins.size, picked.size
    count = 0
    for block in range(n_blocks):
        best, at = limit, -1
        for i in range(block * n // n_blocks, (block + 1) * n // n_blocks):
            if margins[i] < best:
                best, at = margins[i], i
        if at >= 0:
            picked[count] = at
            count += 1
    return count


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


@njit(nogil=True, cache=True)
def prune_candidates(C, c_offsets, ids, count, basis, margins, r, listed, most):
    """Drop candidates that are neither tight nor violated, to make space; returns how many are left."""
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


@njit(nogil=True, cache=True)
def add_candidates(W, offsets, signs, picked, C, c_offsets, ids, count, listed):
    """Make the picked rows candidates, unless they are; returns how many candidates there are then."""
    for i in picked:
        if not listed[i]:
            listed[i] = True
            ids[count], c_offsets[count] = i, signs[i] * offsets[i]
            for j in range(C.shape[0]):
                C[j, count] = signs[i] * W[i, j]
            count += 1
    return count
