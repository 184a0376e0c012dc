"""An input for any set of a DFT layer, by formula.

The positives form runs along the circle of labels. For a run with middle m and half width h, cos(t - m) - cos(h) is
positive on the run and negative elsewhere; the product over the runs, with the right sign, is a trigonometric
polynomial whose degree is the number of runs. Its coefficients are the input.
"""

from __future__ import annotations

import numpy as np

from longtail.kernels.dft import cyclic_runs, dft_matrix

SAME = 1e-5  # weights that came through float32 still count as a DFT matrix


def dft_order(W: np.ndarray) -> int:
    """Return k if the first 2k + 1 columns of W are a DFT matrix (the largest such k), else 0.

    >>> dft_order(dft_matrix(9, 3)), dft_order(np.eye(3))
    (3, 0)
    """
    n, d = W.shape
    k = (min(n, d) - 1) // 2
    if k < 1 or not np.allclose(W[:, 0], 1 / np.sqrt(n), rtol=SAME, atol=0):
        return 0
    same = np.abs(W[:, : 2 * k + 1] - dft_matrix(n, k)).max(axis=0) <= SAME * np.sqrt(2 / n)
    wrong = np.flatnonzero(~same)
    return int((wrong[0] - 1) // 2) if wrong.size else k


def dft_witness(members: np.ndarray, W: np.ndarray, k: int, box: float = 1e4) -> np.ndarray | None:
    """Return an input (d,) meant to give the set, as large as the box; None if the set has more than k runs.

    It is exact but for rounding: when a region is smaller than that, the input misses it, as a check will show.

    >>> W = dft_matrix(9, 3)
    >>> np.flatnonzero(W @ dft_witness(np.array([0, 4, 5]), W, 3) > 0).tolist()
    [0, 4, 5]
    """
    n, d = W.shape
    runs = cyclic_runs(members, n)
    if len(runs) > k:
        return None
    x = np.zeros(d)
    if len(runs) == 0 or members.size == n:
        x[0] = box if len(runs) else -box
        return x
    step = 2 * np.pi / n
    middle = (runs[:, 0] + runs[:, 1]) / 2
    half = (runs[:, 1] - runs[:, 0] + 1) / 2 * step
    labels = np.arange(n)
    log_size, negative = np.zeros(n), np.zeros(n, dtype=bool)
    for m, h in zip(middle, half, strict=True):
        # cos a - cos h = -2 sin((a + h) / 2) sin((a - h) / 2): no digits lost near the ends of the run
        a = (labels - m) * step
        value = -2 * np.sin((a + h) / 2) * np.sin((a - h) / 2)
        log_size += np.log(np.abs(value))
        negative ^= value < 0
    z = np.where(negative, -1.0, 1.0) * np.exp(log_size - log_size.max())
    x[: 2 * k + 1] = dft_matrix(n, k).T @ z * (1 if len(runs) % 2 else -1)
    return x * (box / np.abs(x).max())
