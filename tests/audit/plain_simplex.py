"""Plain twins, in numpy, of the kernels that find the Chebyshev centre of a label region."""

import numpy as np

from longtail.audit.dual_simplex import ENOUGH, NEAR_TIE, OPTIMAL, SMALLEST_PIVOT, STALLED


def signed_margins_plain(
    Wt: np.ndarray, offsets: np.ndarray, signs: np.ndarray, x: np.ndarray, out: np.ndarray
) -> float:
    out[:] = signs * (x @ Wt + offsets)
    return float(out.min(initial=np.inf))


def worst_per_block_plain(margins: np.ndarray, limit: float, picked: np.ndarray) -> int:
    n, n_blocks = margins.size, picked.size
    count = 0
    for block in range(n_blocks):
        part = margins[block * n // n_blocks : (block + 1) * n // n_blocks]
        if part.size and part.min() < limit:
            picked[count] = block * n // n_blocks + int(np.argmin(part))
            count += 1
    return count


def invert_plain(G: np.ndarray, M: np.ndarray) -> bool:
    if np.linalg.cond(G) > 1e14:
        return False
    M[:] = np.linalg.inv(G)
    return True


def set_vertex_plain(
    W: np.ndarray,
    offsets: np.ndarray,
    signs: np.ndarray,
    basis: np.ndarray,
    M: np.ndarray,
    z: np.ndarray,
    weights: np.ndarray,
) -> bool:
    G, h = np.zeros_like(M), np.ones(basis.size)
    for k, c in enumerate(basis.tolist()):
        if c >= 0:
            G[k], h[k] = np.append(-signs[c] * W[c], 1.0), signs[c] * offsets[c]
        else:
            G[k, (-1 - c) // 2] = 1.0 - 2.0 * ((-1 - c) % 2)
    if not invert_plain(G, M):
        return False
    z[:], weights[:] = M @ h, np.maximum(M[-1], 0.0)
    return True


def exchange_constraint_plain(
    basis: np.ndarray,
    M: np.ndarray,
    z: np.ndarray,
    weights: np.ndarray,
    side_at: np.ndarray,
    alpha: np.ndarray,
    entering: int,
    worst: float,
    tol: float,
) -> bool:
    while True:
        able = np.flatnonzero(alpha > SMALLEST_PIVOT)
        if able.size == 0:
            return False
        bound = ((weights[able] + NEAR_TIE) / alpha[able]).min()
        near = able[weights[able] / alpha[able] <= bound]
        out = int(near[np.argmax(alpha[near])])
        if basis[out] >= 0 or worst - 2.0 * alpha[out] <= tol:
            break
        worst -= 2.0 * alpha[out]
        z -= 2.0 * M[:, out]
        M[:, out] *= -1
        basis[out] += -1 if (-1 - basis[out]) % 2 == 0 else 1
        alpha[out], weights[out] = -alpha[out], -weights[out]
    theta = weights[out] / alpha[out]
    weights[:] = np.maximum(weights - theta * alpha, 0.0)
    weights[out] = theta
    factor = M[:, out] / alpha[out]
    z -= worst * factor
    M -= np.outer(factor, alpha)
    M[:, out] = factor
    if basis[out] < 0:
        side_at[(-1 - basis[out]) // 2] = -1
    if entering < 0:
        side_at[(-1 - entering) // 2] = out
    basis[out] = entering
    return True


def solve_candidates_plain(
    C: np.ndarray,
    c_offsets: np.ndarray,
    ids: np.ndarray,
    basis: np.ndarray,
    M: np.ndarray,
    z: np.ndarray,
    weights: np.ndarray,
    tol: float,
    most: int,
) -> int:
    d = C.shape[0]
    side_at = np.full(d, -1)
    sides = np.flatnonzero(basis < 0)
    side_at[(-1 - basis[sides]) // 2] = sides
    for step in range(most):
        violated = np.concatenate([z[d] - (z[:d] @ C + c_offsets), np.abs(z[:d]) - 1.0])
        at = int(np.argmax(violated)) if violated.size else 0
        if violated.size == 0 or violated[at] <= tol:
            return step
        if at < ids.size:
            entering = int(ids[at])
            alpha = M[d] - C[:, at] @ M[:d]
        else:
            j = at - ids.size
            entering = -1 - 2 * j if z[j] > 0 else -2 - 2 * j
            alpha = np.sign(z[j]) * M[j]
        if not exchange_constraint_plain(basis, M, z, weights, side_at, alpha, entering, float(violated[at]), tol):
            return -1
    return most


def slack_of_tight_plain(
    W: np.ndarray, offsets: np.ndarray, signs: np.ndarray, basis: np.ndarray, z: np.ndarray
) -> float:
    rows = basis[basis >= 0]
    sides = (-1 - basis[basis < 0]) // 2
    missed = np.abs(signs[rows] * (W[rows] @ z[:-1] + offsets[rows]) - z[-1])
    return float(np.concatenate([[0.0], missed, np.abs(np.abs(z[sides]) - 1.0)]).max())


def start_basis_plain(W: np.ndarray, signs: np.ndarray, basis: np.ndarray) -> None:
    first = int(np.argmax(signs > 0))
    basis[0] = first
    basis[1:] = np.where(signs[first] * W[first] >= 0, -1, -2) - 2 * np.arange(W.shape[1])


def prune_candidates_plain(
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


def add_candidates_plain(
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


def find_centre_plain(
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
