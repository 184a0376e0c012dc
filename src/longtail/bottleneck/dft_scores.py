"""The product with the truncated DFT matrix, and with its transpose, without the matrix.

With x = (x_0, a_1, b_1, ..., a_k, b_k) the score of position i on the circle is
x_0 / sqrt(n) + sqrt(2 / n) * sum_j (a_j cos(j t_i) + b_j sin(j t_i)), t_i = 2 pi i / n.

That is one real FFT, n log n. When n is much larger than k there is a faster way that is right to the last digits as
well: between two crests the wave is smooth, so it is computed at a few Chebyshev points of every stretch of m positions
and interpolated in between; two small matrix products. A plan says which, and how many points make the error vanish.
"""

from __future__ import annotations

import functools
import math
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import pad

HALF = math.sqrt(0.5)
ERROR = {torch.float32: 1e-10, torch.float64: 1e-18}  # of the interpolation, for a wave of height 1
LONGEST = 4096  # positions in a stretch
FFT_COST = 3.0  # of the FFT per position and log2(n), in multiplications of a matrix product; measured
PADDING_COST = 4.0  # of a circle that is no multiple of the stretch: its gradient is copied once


def circle_scores(
    x: Tensor, n: int, order: Tensor | None = None, inverse: Tensor | None = None, *, fft: bool = False
) -> Tensor:
    """Return the scores (..., n) of the coefficients x (..., 2k + 1); label i stands at position `order[i]`.

    `inverse` is the label at each position; the gradient needs it. Half precision is computed in single precision.
    `fft` takes the FFT where a plan would choose stretches.

    >>> circle_scores(torch.tensor([[2.0, 0.0, 0.0]]), 4)
    tensor([[1., 1., 1., 1.]])
    """
    if x.numel() == 0:  # no rows: some FFT libraries refuse
        return x[..., :1].expand(*x.shape[:-1], n)
    with torch.autocast(x.device.type, enabled=False):
        coefficients = x if x.dtype == torch.float64 else x.float()
        tables = None if fft else stretch_tables(n, x.shape[-1] // 2, coefficients.dtype, coefficients.device)
        return _CircleScores.apply(coefficients, n, order, inverse, tables).to(x.dtype)


class _CircleScores(torch.autograd.Function):
    """Scores with a gradient by hand: torch's own for a permutation adds one by one; permuting back is enough."""

    @staticmethod
    def forward(
        ctx: Any, x: Tensor, n: int, order: Tensor | None, inverse: Tensor | None, tables: tuple[Tensor, Tensor] | None
    ) -> Tensor:
        ctx.k, ctx.inverse, ctx.tables = x.shape[-1] // 2, inverse, tables
        z = torch.fft.irfft(_bins(x), n=n, norm="ortho") if tables is None else _interpolated(x, *tables)
        if order is not None:
            return z.index_select(-1, order)
        return z[..., :n]

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> Any:
        g = gradients[0]
        g = g if ctx.inverse is None else g.index_select(-1, ctx.inverse)
        if ctx.tables is None:
            gradient = _coefficients(torch.fft.rfft(g, norm="ortho")[..., : ctx.k + 1])
        else:
            gradient = _gathered(g, *ctx.tables)
        return gradient, None, None, None, None


# --- by FFT -----------------------------------------------------------------------------------------------------------


def _bins(x: Tensor) -> Tensor:
    """Return the frequencies (..., k + 1), complex: x_0, then (a_j - i b_j) / sqrt(2); irfft counts those twice."""
    first = torch.stack([x[..., :1], torch.zeros_like(x[..., :1])], dim=-1)
    pairs = x[..., 1:].unflatten(-1, (-1, 2)) * x.new_tensor([HALF, -HALF])
    return torch.view_as_complex(torch.cat([first, pairs], dim=-2))


def _coefficients(bins: Tensor) -> Tensor:
    """Return Re G_0, then sqrt(2) Re G_j and -sqrt(2) Im G_j: (..., 2k + 1)."""
    parts = torch.view_as_real(bins)
    pairs = parts[..., 1:, :] * parts.new_tensor([2 * HALF, -2 * HALF])
    return torch.cat([parts[..., 0, :1], pairs.flatten(-2)], dim=-1)


# --- by stretches -----------------------------------------------------------------------------------------------------


def _interpolated(x: Tensor, at_points: Tensor, between: Tensor) -> Tensor:
    """Return the wave at all positions, the last stretch in full: (..., n or a little more)."""
    points = (x @ at_points).unflatten(-1, (-1, between.shape[0]))
    return (points @ between).flatten(-2)


def _gathered(g: Tensor, at_points: Tensor, between: Tensor) -> Tensor:
    """Return the transposed product: (..., 2k + 1)."""
    q, m = between.shape
    missing = at_points.shape[1] // q * m - g.shape[-1]
    g = pad(g, (0, missing)) if missing else g
    return (g.unflatten(-1, (-1, m)) @ between.T).flatten(-2) @ at_points.T


@functools.lru_cache(maxsize=16)
def stretch_plan(n: int, k: int, error: float) -> tuple[int, int] | None:
    """Return the positions in a stretch and the points computed in it, or None where the FFT costs less.

    >>> stretch_plan(100_000, 50, 1e-10), stretch_plan(100, 40, 1e-10)
    ((500, 10), None)
    """
    divisors = [m for m in range(16, min(LONGEST, n) + 1) if n % m == 0]
    best: tuple[float, tuple[int, int] | None] = (FFT_COST * math.log2(n), None)
    for m in sorted({*divisors, *(2**p for p in range(4, 13) if 2**p <= n)}):
        q = points_needed(math.pi * k * (m - 1) / n, error)
        cost = q * (1 + (2 * k + 1) / m) + (PADDING_COST if n % m else 0)
        best = min(best, (cost, (m, q)), key=lambda choice: choice[0])
    return best[1]


def points_needed(width: float, error: float) -> int:
    """Return how many Chebyshev points give exp(i w u), u in [-1, 1], to within an error: 2 (w / 2)^q / q! is a bound.

    >>> points_needed(0.5, 1e-10), points_needed(0.5, 1e-18)
    (9, 14)
    """
    q, bound = 1, width
    while bound > error:
        q += 1
        bound *= width / 2 / q
    return q


@functools.lru_cache(maxsize=16)
def stretch_tables(n: int, k: int, dtype: torch.dtype, device: torch.device) -> tuple[Tensor, Tensor] | None:
    """Return the wave's weights at the points of all stretches (2k + 1, p q), and the interpolation (q, m)."""
    plan = stretch_plan(n, k, ERROR[dtype])
    if plan is None:
        return None
    m, q = plan
    nodes = np.cos(np.pi * (np.arange(q) + 0.5) / q)
    positions = np.clip((2 * np.arange(m) - (m - 1)) / (m - 1), -1, 1)
    degree = np.arange(q)[:, None]
    # the Lagrange polynomials of Chebyshev points are sums of Chebyshev polynomials
    between = np.cos(np.arccos(nodes) * degree).T @ (
        np.cos(degree * np.arccos(positions)) * np.where(degree, 2 / q, 1 / q)
    )
    starts, waves = np.arange(-(-n // m), dtype=np.int64) * m, np.arange(1, k + 1, dtype=np.int64)
    turns = (np.outer(waves, starts) % n)[:, :, None] + waves[:, None, None] * ((m - 1) / 2 * (1 + nodes))
    angles = turns.reshape(k, -1) * (2 * np.pi / n)
    at_points = np.full((2 * k + 1, angles.shape[1]), 1 / np.sqrt(n))
    at_points[1::2] = np.cos(angles) * np.sqrt(2 / n)
    at_points[2::2] = np.sin(angles) * np.sqrt(2 / n)
    return torch.from_numpy(at_points).to(device, dtype), torch.from_numpy(between).to(device, dtype)
