"""Balanced spherical 2-means: divide rows into two halves of like rows.

From the sum of the rows in each half, L and R, every row x is scored by

    x · (R / ‖R‖ - L / ‖L‖)

and the higher-scoring half of the rows becomes the right half; again, until no row changes sides. Sums are exact
(see `row_subsets`), so a half's sum is kept up to date by adding and subtracting only the rows that moved, and
R = total - L.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from longtail.kernels.compilation import njit

_SIGN, _ALL = np.uint32(0x80000000), np.uint32(0xFFFFFFFF)


@njit(nogil=True, cache=True)
def dot_row(indptr, indices, values, row, direction):
    """Multiply a row with a vector; four sums at once hide the latency of the additions."""
    t, end = indptr[row], indptr[row + 1]
    a, b, c, d = np.float32(0), np.float32(0), np.float32(0), np.float32(0)
    while t + 4 <= end:
        a += values[t] * direction[np.uint32(indices[t])]
        b += values[t + 1] * direction[np.uint32(indices[t + 1])]
        c += values[t + 2] * direction[np.uint32(indices[t + 2])]
        d += values[t + 3] * direction[np.uint32(indices[t + 3])]
        t += 4
    while t < end:
        a += values[t] * direction[np.uint32(indices[t])]
        t += 1
    return (a + b) + (c + d)


@njit(nogil=True, cache=True)
def project_rows(
    indptr, indices, values,  # IN   rows, CSR                  (n + 1,), (nnz,), (nnz,)
    direction,                # IN   one number per feature     (n_features,) float32
    start, stop,              # IN   the rows to score
    out,                      # OUT  dot products, set from start to stop   (n,) float32
):  # fmt: skip
    """Multiply rows with a vector."""
    for row in range(start, stop):
        out[row] = dot_row(indptr, indices, values, row, direction)


@njit(nogil=True, cache=True)
def mark_upper(
    scores,  # IN   (n,) float32, finite
    n_low,   # IN   how many rows to leave unmarked
    upper,   # OUT  1 for the rows with the highest scores, else 0   (n,) uint8
):  # fmt: skip
    """Mark all but the `n_low` lowest scores; of equal scores the first ones count as lower.

    The score at the border is found a byte at a time, from counts of the bytes' values, without sorting.
    """
    n = scores.size
    upper[:] = 0
    if n_low >= n:
        return
    bits = scores.view(np.uint32)
    keys = np.empty(n, dtype=np.uint32)  # integers in the order of the scores
    for i in range(n):
        if bits[i] == _SIGN:  # -0 is 0
            keys[i] = _SIGN
        else:
            keys[i] = bits[i] ^ (_ALL if bits[i] & _SIGN else _SIGN)
    counts = np.empty(256, dtype=np.int64)
    border, mask, left = np.uint32(0), np.uint32(0), n_low  # `left`: low rows still to find
    for byte in range(3, -1, -1):
        shift = np.uint32(8 * byte)
        counts[:] = 0
        for i in range(n):
            if (keys[i] & mask) == border:
                counts[(keys[i] >> shift) & np.uint32(255)] += 1
        digit = 0
        while left >= counts[digit]:
            left -= counts[digit]
            digit += 1
        border |= np.uint32(digit) << shift
        mask |= np.uint32(255) << shift
    for i in range(n):
        if keys[i] == border:
            upper[i] = left <= 0
            left -= 1
        elif keys[i] > border:
            upper[i] = 1


@njit(nogil=True, cache=True)
def add_rows(
    indptr, indices, values,  # IN      rows, CSR
    old, new,                 # IN      sides before and after, 0 or 1   (n,) uint8
    sums,                     # IN/OUT  sum of the rows on side 0     (n_features,) float64
):  # fmt: skip
    """Add the rows that came to side 0 and subtract those that left it; return how many did either."""
    moved = 0
    for row in range(indptr.size - 1):
        if old[row] != new[row]:
            moved += 1
            sign = np.float32(1) if old[row] else np.float32(-1)
            for t in range(indptr[row], indptr[row + 1]):
                sums[np.uint32(indices[t])] += sign * values[t]
    return moved


@njit(nogil=True, cache=True)
def set_direction(
    total,      # IN   sum of all rows            (n_features,) float64
    left,       # IN   sum of the left rows       (n_features,) float64
    direction,  # OUT  R / ‖R‖ - L / ‖L‖          (n_features,) float32
):  # fmt: skip
    """Set the direction from the left half's centre to the right half's; the centre of rows that cancel out is 0."""
    left_square, right_square = 0.0, 0.0
    for f in range(total.size):
        right = total[f] - left[f]
        left_square += left[f] * left[f]
        right_square += right * right
    left_scale = 1 / np.sqrt(left_square) if left_square > 0 else 0.0
    right_scale = 1 / np.sqrt(right_square) if right_square > 0 else 0.0
    for f in range(total.size):
        direction[f] = (total[f] - left[f]) * right_scale - left[f] * left_scale


@njit(nogil=True, cache=True)
def split_rows(
    indptr, indices, values,  # IN   rows, CSR: unit length, multiples of 2**-30   (n + 1,), (nnz,), (nnz,)
    first, second,            # IN   two rows: the first centres of left and right
    max_iter,                 # IN   how often to score and divide, at most
    direction,                # OUT  from the last left centre to the right one   (n_features,) float32
    right,                    # OUT  1 for rows of the right half, else 0          (n,) uint8
):  # fmt: skip
    """Divide rows into two halves of like rows, the left one larger by one for an odd number."""
    n = right.size
    scores = np.empty(n, dtype=np.float32)
    new = np.zeros(n, dtype=np.uint8)
    right[:] = 1
    total = np.zeros(direction.size, dtype=np.float64)
    add_rows(indptr, indices, values, right, new, total)
    right[:] = 0
    left = total.copy()
    direction[:] = 0
    for t in range(indptr[first], indptr[first + 1]):
        direction[indices[t]] -= values[t]
    for t in range(indptr[second], indptr[second + 1]):
        direction[indices[t]] += values[t]
    for _ in range(max_iter):
        project_rows(indptr, indices, values, direction, 0, n, scores)
        mark_upper(scores, n - n // 2, new)
        if add_rows(indptr, indices, values, right, new, left) == 0:
            return
        right[:] = new
        set_direction(total, left, direction)


def split_rows_stepwise(
    indptr: np.ndarray,
    indices: np.ndarray,
    values: np.ndarray,
    first: int,
    second: int,
    max_iter: int,
    direction: np.ndarray,
    right: np.ndarray,
    steps: tuple[Callable[..., None], Callable[..., None], Callable[..., int], Callable[..., None]],
) -> None:
    """Do the same by four functions like `project_rows`, `mark_upper`, `add_rows` and `set_direction`."""
    project, mark, add, direct = steps
    rows = indptr, indices, values
    n = right.size
    scores = np.empty(n, dtype=np.float32)
    none, new = np.ones(n, dtype=np.uint8), np.zeros(n, dtype=np.uint8)
    total = np.zeros(direction.size)
    add(*rows, none, new, total)
    right[:] = 0
    left = total.copy()
    direction[:] = 0
    for row, sign in ((first, -1), (second, 1)):
        at = slice(indptr[row], indptr[row + 1])
        direction[indices[at]] += np.float32(sign) * values[at]
    for _ in range(max_iter):
        project(*rows, direction, 0, n, scores)
        mark(scores, n - n // 2, new)
        if add(*rows, right, new, left) == 0:
            return
        right[:] = new
        direct(total, left, direction)
