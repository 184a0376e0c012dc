"""Dual coordinate descent for sixteen binary linear problems at once, over the same sparse rows.

Each lane is one label: its rows are positive where the label is set and negative elsewhere. With w the lane's
weights, b its bias (a feature of constant value, regularised like the rest) and s_i = y_i (w·x_i + b):

    squared hinge   min  ½‖w‖² + Σ C_i max(0, 1 - s_i)²
    logistic        min  ½‖w‖² + Σ C_i log(1 + exp(-s_i))

Labels share their rows, so a row's features are read once for sixteen labels; this, and not a cleverer method, is
why the solver is fast. The visiting order is drawn from `seed` alone: results do not depend on threads.
"""

from __future__ import annotations

import numpy as np

from longtail.kernels.compilation import njit
from longtail.kernels.lanes import LANES, axpy_lanes, dot_lanes, hinge_step_lanes, prefetch

EVERY_ROW = np.empty(0, dtype=np.uint16)  # `allowed` where every row counts in every lane


@njit(nogil=True, cache=True, inline="always")
def _next_random(state):
    """Return the next state of a xorshift generator."""
    state ^= state << np.uint64(13)
    state ^= state >> np.uint64(7)
    state ^= state << np.uint64(17)
    return state


@njit(nogil=True, cache=True)
def _shuffle(order, n, state):
    """Shuffle the first n entries of `order`; return the new state."""
    for i in range(n - 1, 0, -1):
        state = _next_random(state)
        j = np.int64(state % np.uint64(i + 1))
        order[i], order[j] = order[j], order[i]
    return state


@njit(nogil=True, cache=True)
def _seeded(seed):
    """Return the first state of a seed."""
    state = np.uint64(seed) * np.uint64(0x9E3779B97F4A7C15) + np.uint64(0xD1B54A32D192ED03)
    for _ in range(4):
        state = _next_random(state)
    return state


@njit(nogil=True, cache=True)
def hinge_lanes(  # one loop over rows with shared buffers: splitting costs speed
    indptr, indices, data,  # IN   rows, CSR                          (n + 1,), (nnz,), (nnz,)
    norms,                  # IN   ‖x‖² + bias²                       (n,) float32
    positive,               # IN   bit l set: row is positive in lane (n,) uint16
    allowed,                # IN   bit l set: the row counts in lane  (n,) uint16, or (0,) for all rows in all lanes
    n_lanes,                # IN   lanes in use, 1 to 16
    bias,                   # IN   value of the constant feature; 0 for none
    diagonal,               # IN   0.5 / C: negatives, positives (2, 16); with per_row one line a row (n, 16)
    per_row,
    tolerance, max_iter, seed,
    W,                      # OUT  zeros on entry; last row = bias    (n_features + 1, 16)
):  # fmt: skip
    """Solve the squared-hinge problem in every lane; return the epochs each lane took (max_iter: not converged).

    Stops a lane when the spread of its projected gradient is at most `tolerance` over all rows. Rows that a lane
    no longer needs are shrunk away and checked again before the lane is declared done; lanes wait for each other
    so that this check walks all rows once and not once a lane.
    """
    n = indptr.size - 1
    base = W.shape[0] - 1
    bias2 = np.float32(bias * bias)
    alpha = np.zeros((n, LANES), dtype=np.float32)
    active = np.empty(n, dtype=np.uint16)
    order = np.arange(n).astype(np.int32)
    dot, delta = np.zeros(LANES, dtype=np.float32), np.zeros(LANES, dtype=np.float32)
    high, low = np.zeros(LANES, dtype=np.float32), np.zeros(LANES, dtype=np.float32)
    old_max = np.full(LANES, np.inf, dtype=np.float32)
    full = np.ones(LANES, dtype=np.bool_)  # the lane walks all rows in this epoch
    waiting = np.zeros(LANES, dtype=np.bool_)  # converged on its active rows, not yet checked on all
    epochs = np.zeros(LANES, dtype=np.int32)
    alive = (1 << n_lanes) - 1
    everywhere = allowed.size == 0
    for row in range(n):
        active[row] = alive if everywhere else alive & allowed[row]
    n_active = n
    state = _seeded(seed)
    for _ in range(max_iter):
        state = _shuffle(order, n_active, state)
        high[:] = -np.inf
        low[:] = np.inf
        kept = 0
        for at in range(n_active):
            row = order[at]
            bits = np.int64(active[row]) & alive
            if bits == 0:
                continue
            start, stop = indptr[row], indptr[row + 1]
            if at + 2 < n_active:  # rows come in random order: fetch the beginning of the one after next
                ahead = order[at + 2]
                prefetch(alpha, np.int64(ahead) * LANES)
                for t in range(indptr[ahead], min(indptr[ahead + 1], indptr[ahead] + 64), 16):
                    prefetch(indices, t)
                    prefetch(data, t)
            dot_lanes(W, indices, data, start, stop, base, dot)
            d_row = np.int64(row) if per_row else np.int64(-1)
            result = hinge_step_lanes(
                dot,
                alpha,
                np.int64(row),
                np.int64(positive[row]),
                bits,
                norms[row],
                diagonal,
                d_row,
                old_max,
                high,
                low,
                delta,
            )
            if result >> 16:
                axpy_lanes(W, indices, data, start, stop, base, bias2, delta)
            bits = result & 0xFFFF
            active[row] = bits
            if bits:
                order[kept] = row
                kept += 1
        n_active = kept
        for lane in range(n_lanes):
            if not alive >> lane & 1:
                continue
            epochs[lane] += 1
            if high[lane] - low[lane] <= tolerance or high[lane] == -np.inf:
                alive &= ~(1 << lane)
                waiting[lane] = not full[lane]
            else:
                old_max[lane] = high[lane] if high[lane] > 0 else np.inf
                full[lane] = False
        if alive == 0:
            for lane in range(n_lanes):
                if waiting[lane]:
                    alive |= 1 << lane
                    waiting[lane] = False
                    full[lane] = True
                    old_max[lane] = np.inf
            if alive == 0:
                break
            for row in range(n):
                active[row] = alive if everywhere else alive & allowed[row]
                order[row] = row
            n_active = n
    for lane in range(n_lanes):
        if alive >> lane & 1 or waiting[lane]:
            epochs[lane] = max_iter
    return epochs


@njit(nogil=True, cache=True)
def logistic_lanes(  # one loop over rows with shared buffers: splitting costs speed
    indptr, indices, data,  # IN   as in hinge_lanes
    norms, positive, n_lanes, bias,
    cost,                   # IN   C: row 0 negatives, row 1 positives (2, 16)
    tolerance, max_iter, seed,
    W,                      # OUT  zeros on entry
):  # fmt: skip
    """Solve the logistic problem in every lane; return the epochs each lane took (max_iter: not converged).

    The dual variable of a row is kept as its log-odds t, alpha = C σ(t), so that it can never leave (0, C). Along
    one coordinate the gradient is g(t) = q (C σ(t) - alpha) + s + t, with q = ‖x‖² + bias² and s the row's margin:
    increasing, with slope between 1 and 1 + qC/4; Newton's method inside a bracket finds its zero.
    """
    n = indptr.size - 1
    base = W.shape[0] - 1
    bias2 = np.float32(bias * bias)
    t = np.full((n, LANES), np.float32(-7.0), dtype=np.float32)
    order = np.arange(n).astype(np.int32)
    dot, delta = np.zeros(LANES, dtype=np.float32), np.zeros(LANES, dtype=np.float32)
    largest = np.zeros(LANES, dtype=np.float32)
    epochs = np.zeros(LANES, dtype=np.int32)
    alive = (1 << n_lanes) - 1
    inner = 0.1 * tolerance
    for row in range(n):  # w = Σ alpha_i y_i x_i at the start
        for lane in range(n_lanes):
            plus = positive[row] >> lane & 1
            c = cost[plus, lane]
            delta[lane] = np.float32((1.0 if plus else -1.0) * c / (1.0 + np.exp(7.0)))
        axpy_lanes(W, indices, data, indptr[row], indptr[row + 1], base, bias2, delta)
    state = _seeded(seed)
    for _ in range(max_iter):
        state = _shuffle(order, n, state)
        largest[:] = 0.0
        for at in range(n):
            row = order[at]
            start, stop = indptr[row], indptr[row + 1]
            dot_lanes(W, indices, data, start, stop, base, dot)
            q = np.float64(norms[row])
            moved = False
            for lane in range(n_lanes):
                delta[lane] = 0.0
                if not alive >> lane & 1:
                    continue
                plus = positive[row] >> lane & 1
                y = 1.0 if plus else -1.0
                c = np.float64(cost[plus, lane])
                s = y * np.float64(dot[lane])
                x = float(t[row, lane])
                old = c / (1.0 + np.exp(-x))
                g = s + x
                largest[lane] = max(largest[lane], np.float32(abs(g)))
                if abs(g) <= inner:
                    continue
                low, high = -s - q * (c - old), -s + q * old  # where g must change its sign
                for _ in range(60):
                    sigma = 1.0 / (1.0 + np.exp(-x))
                    g = q * (c * sigma - old) + s + x
                    if abs(g) <= inner * 0.1:
                        break
                    if g > 0:
                        high = min(high, x)
                    else:
                        low = max(low, x)
                    x -= g / (1.0 + q * c * sigma * (1.0 - sigma))
                    if not low < x < high:  # on the flat sides of σ Newton's step alone can jump to and fro
                        x = 0.5 * (low + high)
                x = min(max(x, -60.0), 60.0)
                t[row, lane] = np.float32(x)
                new = c / (1.0 + np.exp(-np.float64(t[row, lane])))
                delta[lane] = np.float32(y * (new - old))
                moved = True
            if moved:
                axpy_lanes(W, indices, data, start, stop, base, bias2, delta)
        for lane in range(n_lanes):
            if alive >> lane & 1:
                epochs[lane] += 1
                if largest[lane] <= tolerance:
                    alive &= ~(1 << lane)
        if alive == 0:
            break
    for lane in range(n_lanes):
        if alive >> lane & 1:
            epochs[lane] = max_iter
    return epochs
