"""Signed margins of all labels for one input: the scan that finds the rows an LP does not know yet.

A margin is sign * (w . x + offset). The weights lie transposed, one line per input dimension, so that the inner loop
runs over labels and the compiler can use vector instructions without reordering a sum: the result is the same on every
machine and for any number of threads.
"""

from __future__ import annotations

import numpy as np
from numba import njit

BLOCK = 512  # labels at a time: their sums stay in the first cache


@njit(nogil=True, cache=True)
def signed_margins(
    Wt,       # IN   weights, transposed     (d, n) float64
    offsets,  # IN                           (n,) float64
    signs,    # IN   +1 for on, -1 for off   (n,) float64
    x,        # IN   the input               (d,) float64
    out,      # OUT  signs * (W x + offsets) (n,) float64
):  # fmt: skip
    """Fill `out` and return its smallest value."""
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


def signed_margins_plain(
    Wt: np.ndarray, offsets: np.ndarray, signs: np.ndarray, x: np.ndarray, out: np.ndarray
) -> float:
    out[:] = signs * (x @ Wt + offsets)
    return float(out.min(initial=np.inf))


@njit(nogil=True, cache=True)
def worst_per_block(
    margins,  # IN   signed margins                                                    (n,) float64
    limit,    # IN   only margins below this count
    picked,   # OUT  the label with the smallest margin of each block that has one     (n_blocks,) int64
):  # fmt: skip
    """Divide the labels into `picked.size` equal blocks, note the worst of each and return how many were found."""
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


def worst_per_block_plain(margins: np.ndarray, limit: float, picked: np.ndarray) -> int:
    n, n_blocks = margins.size, picked.size
    count = 0
    for block in range(n_blocks):
        part = margins[block * n // n_blocks : (block + 1) * n // n_blocks]
        if part.size and part.min() < limit:
            picked[count] = block * n // n_blocks + int(np.argmin(part))
            count += 1
    return count
