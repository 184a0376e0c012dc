"""Witnesses for label sets of a matrix that is a DFT matrix up to rounding, by formula.

The positives form runs along the circle of labels. For a run with middle m and half width h, cos(t - m) - cos(h) is
positive on the run and negative elsewhere; the product over the runs, with the right sign, is a trigonometric
polynomial whose degree is the number of runs. Its coefficients are the input.
"""

from __future__ import annotations

import numpy as np

from longtail.bottleneck import cyclic_runs, dft_matrix
from longtail.model import LabelCircle

SAME = 1e-5  # weights that came through float32 still count as a DFT matrix
EXACT = 1e-13  # weights that were never rounded to less than 64 bits


def find_circle(W: np.ndarray, same: float = SAME) -> LabelCircle | None:
    """Return the circle if the first 2k + 1 columns of W are rows of a DFT matrix, in any order, for the largest k.

    >>> circle = find_circle(dft_matrix(9, 3)[[4, 0, 7]])
    >>> circle.size, circle.k, circle.positions.tolist()
    (9, 3, [4, 0, 7])
    >>> find_circle(np.eye(3)) is None
    True
    """
    n, d = W.shape
    constant = float(W[0, 0]) if d >= 3 else 0.0
    size = round(constant**-2) if 1e-6 < constant <= 1 else 0
    if size < max(n, 3) or not np.allclose(W[:, 0], size**-0.5, rtol=same, atol=0):
        return None
    turns = np.arctan2(W[:, 2], W[:, 1]) / (2 * np.pi) * size
    positions = np.rint(turns).astype(np.int64) % size
    if np.unique(positions).size < n:
        return None
    most = (min(size, d) - 1) // 2
    equal = np.abs(W[:, : 2 * most + 1] - dft_matrix(size, most, positions)).max(axis=0) <= same * np.sqrt(2 / size)
    wrong = np.flatnonzero(~equal)
    k = int((wrong[0] - 1) // 2) if wrong.size else most
    return LabelCircle(size, k, positions) if k else None


def dft_order(W: np.ndarray, same: float = SAME) -> int:
    """Return k if the first 2k + 1 columns of W are rows of a DFT matrix (the largest such k), else 0.

    `same` is how far they may be from it; only 64-bit numbers, `same=1e-13`, come near the guarantee.

    >>> dft_order(dft_matrix(9, 3)), dft_order(np.eye(3))
    (3, 0)
    """
    circle = find_circle(W, same)
    return 0 if circle is None else circle.k


def dft_witness(
    members: np.ndarray, circle: LabelCircle, width: int, box: float = 1e4, shift: float = 0.0
) -> np.ndarray | None:
    """Return an input (width,) meant to give the set, as large as the box; None if the set has more than k runs.

    `shift` is a bias that all labels have. The input is exact but for rounding: when a region is smaller than that, the
    input misses it, as a check will show.

    >>> W = dft_matrix(9, 3)
    >>> np.flatnonzero(W @ dft_witness(np.array([0, 4, 5]), find_circle(W), 7) > 0).tolist()
    [0, 4, 5]
    """
    n, k = circle.size, circle.k
    positions = np.sort(circle.positions[members])
    runs = cyclic_runs(positions, n)
    limit = box - abs(shift) * np.sqrt(n)
    if len(runs) > k or limit <= 0:
        return None
    x = np.zeros(width)
    if len(runs) == 0 or positions.size == n:
        x[0] = limit if len(runs) else -limit
    else:
        waves = np.fft.rfft(_wave(runs, n), norm="ortho")[: k + 1]  # the transposed DFT matrix times the wave
        x[0], x[1 : 2 * k : 2], x[2 : 2 * k + 1 : 2] = waves[0].real, waves[1:].real, -waves[1:].imag
        x[1 : 2 * k + 1] *= np.sqrt(2)
        x *= limit / np.abs(x).max()
    x[0] -= shift * np.sqrt(n)
    return x


def _wave(runs: np.ndarray, n: int) -> np.ndarray:
    """Return values at the n positions that are above 0 on the runs and below 0 elsewhere, of degree len(runs)."""
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
    z: np.ndarray = np.where(negative, -1.0, 1.0) * np.exp(log_size - log_size.max())
    return z if len(runs) % 2 else -z
