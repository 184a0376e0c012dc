"""Compiled spherical k-means: a row x goes to the centre c with the largest x · c.

The centre of a cluster is the sum of its rows at unit length. Sixteen centres lie side by side as the lanes of one
vector, `W[group, feature, lane]`, so a row's features are read once for sixteen centres. Sums are exact (see
`row_subsets`), so only rows that changed their cluster are added and subtracted.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from longtail.kernels import LANES, dot_lanes, lanes_at_least, lowest_bit, njit

ROWS_AT_ONCE = 512


@njit(nogil=True, cache=True)
def nearest_centres(
    indptr, indices, values,  # IN      rows, CSR                          (n + 1,), (nnz,), (nnz,)
    W,                        # IN      centres; the last feature is 0     (n_groups, n_features + 1, 16) float32
    n_centres,                # IN
    start, stop,              # IN      the rows to look at
    cluster,                  # IN/OUT  a row stays unless another centre is nearer   (n,) int32
):  # fmt: skip
    """Move rows to their nearest centre: the one they are at if it is among the nearest, else the first of these.

    Sixteen centres at a time for some hundred rows, so that both stay in the processor's cache.
    """
    base = W.shape[1] - 1
    scores = np.empty(LANES, dtype=np.float32)
    nearest, highest = np.empty(ROWS_AT_ONCE, dtype=np.int32), np.empty(ROWS_AT_ONCE, dtype=np.float32)
    own = np.empty(ROWS_AT_ONCE, dtype=np.float32)  # score of the centre that a row is at
    for low in range(start, stop, ROWS_AT_ONCE):
        high = min(low + ROWS_AT_ONCE, stop)
        highest[:] = -np.inf
        for group in range(W.shape[0]):
            first = group * LANES
            for row in range(low, high):
                dot_lanes(W[group], indices, values, indptr[row], indptr[row + 1], base, scores)
                if 0 <= cluster[row] - first < LANES:
                    own[row - low] = scores[cluster[row] - first]
                good = lanes_at_least(scores, 0, highest[row - low])
                while good:
                    lane = lowest_bit(good)
                    good &= good - np.uint64(1)
                    if scores[lane] > highest[row - low] and first + lane < n_centres:
                        highest[row - low] = scores[lane]
                        nearest[row - low] = first + lane
        for row in range(low, high):
            if highest[row - low] > own[row - low]:
                cluster[row] = nearest[row - low]


@njit(nogil=True, cache=True)
def move_rows(
    indptr, indices, values,  # IN      rows, CSR
    old, new,                 # IN      clusters before and after; -1 for none   (n,) int32
    sums,                     # IN/OUT  sum of the rows of each cluster          (n_groups, n_features, 16) float64
):  # fmt: skip
    """Bring the sums up to date and return how many rows changed their cluster."""
    moved = 0
    for row in range(indptr.size - 1):
        a, b = old[row], new[row]
        if a == b:
            continue
        moved += 1
        for t in range(indptr[row], indptr[row + 1]):
            f = np.uint32(indices[t])
            if a >= 0:
                sums[a // LANES, f, a % LANES] -= values[t]
            sums[b // LANES, f, b % LANES] += values[t]
    return moved


@njit(nogil=True, cache=True)
def set_centres(
    sums,  # IN   sum of the rows of each cluster     (n_groups, n_features, 16) float64
    W,     # OUT  centres of unit length, else 0      (n_groups, n_features + 1, 16) float32
):  # fmt: skip
    """Scale the sums to unit length; a cluster without rows, or whose rows cancel out, has the centre 0."""
    scale = np.empty(LANES, dtype=np.float64)
    for group in range(sums.shape[0]):
        scale[:] = 0
        for f in range(sums.shape[1]):
            for lane in range(LANES):
                scale[lane] += sums[group, f, lane] * sums[group, f, lane]
        for lane in range(LANES):
            scale[lane] = 1 / np.sqrt(scale[lane]) if scale[lane] > 0 else 0.0
        for f in range(sums.shape[1]):
            for lane in range(LANES):
                W[group, f, lane] = sums[group, f, lane] * scale[lane]
        W[group, sums.shape[1]] = 0


@njit(nogil=True, cache=True)
def cluster_rows(
    indptr, indices, values,  # IN   rows, CSR: unit length, multiples of 2**-30   (n + 1,), (nnz,), (nnz,)
    seeds,                    # IN   the rows that are the first centres           (n_centres,) int32
    max_iter,                 # IN   how often to assign all rows, at most
    W,                        # OUT  the last centres          (n_groups, n_features + 1, 16) float32
    cluster,                  # OUT  cluster of each row       (n,) int32
):  # fmt: skip
    """Divide rows among centres until no row moves; a row that meets none of the first centres goes to any."""
    n = cluster.size
    sums = np.zeros((W.shape[0], W.shape[1] - 1, LANES), dtype=np.float64)
    for c in range(seeds.size):
        for t in range(indptr[seeds[c]], indptr[seeds[c] + 1]):
            sums[c // LANES, indices[t], c % LANES] += values[t]
    set_centres(sums, W)
    sums[:] = 0
    old = np.full(n, -1, dtype=np.int32)
    for row in range(n):
        cluster[row] = row % seeds.size
    for _ in range(max_iter):
        nearest_centres(indptr, indices, values, W, seeds.size, 0, n, cluster)
        if move_rows(indptr, indices, values, old, cluster, sums) == 0:
            return
        old[:] = cluster
        set_centres(sums, W)


def cluster_rows_stepwise(
    indptr: np.ndarray,
    indices: np.ndarray,
    values: np.ndarray,
    seeds: np.ndarray,
    max_iter: int,
    W: np.ndarray,
    cluster: np.ndarray,
    steps: tuple[Callable[..., None], Callable[..., int], Callable[..., None]],
) -> None:
    """Do the same by three functions like `nearest_centres`, `move_rows` and `set_centres`."""
    nearest, move, centres = steps
    rows = indptr, indices, values
    n = cluster.size
    sums = np.zeros((W.shape[0], W.shape[1] - 1, LANES))
    first = np.full(n, -1, dtype=np.int32)
    first[seeds] = np.arange(seeds.size)
    old = np.full(n, -1, dtype=np.int32)
    move(*rows, old, first, sums)
    centres(sums, W)
    sums[:] = 0
    cluster[:] = np.arange(n) % seeds.size
    for _ in range(max_iter):
        nearest(*rows, W, seeds.size, 0, n, cluster)
        if move(*rows, old, cluster, sums) == 0:
            return
        old[:] = cluster
        centres(sums, W)
