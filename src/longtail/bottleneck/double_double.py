"""Numbers of about 32 digits, each the sum of two 64-bit floats, for waves that 64 bits cannot tell from 0.

A pair (high, low) stands for high + low, with |low| at most half a unit in the last place of high. All functions work
element by element on float64 tensors. Every operation of torch is rounded on its own, as these algorithms need it
(Dekker 1971, Knuth 1969; Ogita, Rump and Oishi 2005 for sums of products).
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import NamedTuple

import torch
from torch import Tensor

SPLITTER = 2.0**27 + 1
N_TERMS = 15  # of the Taylor series of sine and cosine up to pi / 4: the next is below 1e-33


ENTRIES = 1 << 15  # of a block of scores, which stays in the cache through all operations
LEAST_BLOCK = 256  # labels


class Pair(NamedTuple):
    """A tensor of numbers high + low, float64."""

    high: Tensor
    low: Tensor

    def __neg__(self) -> Pair:
        return Pair(-self.high, -self.low)


def pair(high: Tensor) -> Pair:
    """Return 64-bit or shorter numbers as pairs."""
    return Pair(high.double(), torch.zeros_like(high, dtype=torch.float64))


def constant(value: Fraction, like: Tensor) -> Pair:
    """Return a fraction, to 32 digits, as a pair of tensors without dimensions."""
    high = float(value)
    low = float(value - Fraction(high))
    return Pair(*(torch.tensor(part, dtype=torch.float64, device=like.device) for part in (high, low)))


def two_sum(a: Tensor, b: Tensor) -> Pair:
    """Return a + b and what rounding took from it.

    >>> two_sum(torch.tensor(1e16, dtype=torch.float64), torch.tensor(1.0, dtype=torch.float64)).low
    tensor(1., dtype=torch.float64)
    """
    total = a + b
    t = total - a
    return Pair(total, (a - (total - t)) + (b - t))


def two_product(a: Tensor, b: Tensor) -> Pair:
    """Return a b and what rounding took from it."""
    product = a * b
    a_high, b_high = _upper_half(a), _upper_half(b)
    a_low, b_low = a - a_high, b - b_high
    return Pair(product, ((a_high * b_high - product) + a_high * b_low + a_low * b_high) + a_low * b_low)


def _upper_half(a: Tensor) -> Tensor:
    scaled = SPLITTER * a
    return scaled - (scaled - a)


def add(a: Pair, b: Pair) -> Pair:
    """Return a + b; its error is some 1e-32 of |a| + |b|."""
    total, low = two_sum(a.high, b.high)
    return _normalised(total, low + (a.low + b.low))


def multiply(a: Pair, b: Pair) -> Pair:
    """Return a b."""
    product, low = two_product(a.high, b.high)
    return _normalised(product, low + (a.high * b.low + a.low * b.high))


def _normalised(high: Tensor, low: Tensor) -> Pair:
    total = high + low
    return Pair(total, low - (total - high))


def divide(a: Tensor, b: float) -> Pair:
    """Return the quotient of a 64-bit tensor by a number."""
    divisor = torch.full_like(a, b)
    quotient = a / divisor
    back, low = two_product(quotient, divisor)
    return _normalised(quotient, ((a - back) - low) / divisor)


PI = Fraction(314159265358979323846264338327950288419716939937510, 10**50)
SQRT_2 = Fraction(141421356237309504880168872420969807856967187537694, 10**50)


def cosine_and_sine(turns: Pair) -> tuple[Pair, Pair]:
    """Return cosine and sine of 2 pi times `turns`.

    >>> third = divide(torch.ones(1, dtype=torch.float64), 3.0)
    >>> (cosine_and_sine(third)[0].high + 0.5).abs().item() < 1e-15
    True
    """
    quarters = torch.round(4 * turns.high)
    rest = add(turns, pair(-quarters / 4))
    angle = multiply(rest, constant(2 * PI, rest.high))
    square = multiply(angle, angle)
    cosine, sine = _series(square, 0), multiply(angle, _series(square, 1))
    quarter = quarters.remainder(4)
    swap, down, left = quarter % 2 == 1, quarter >= 2, (quarter == 1) | (quarter == 2)
    first = Pair(*(torch.where(swap, s, c) for c, s in zip(cosine, sine, strict=True)))
    second = Pair(*(torch.where(swap, c, s) for c, s in zip(cosine, sine, strict=True)))
    return (
        Pair(*(torch.where(left, -part, part) for part in first)),
        Pair(*(torch.where(down, -part, part) for part in second)),
    )


def _series(square: Pair, odd: int) -> Pair:
    """Return the sum over i of (-square)^i / (2 i + odd)!."""
    out = pair(torch.zeros_like(square.high))
    for i in reversed(range(N_TERMS)):
        term = constant(Fraction((-1) ** i, math.factorial(2 * i + odd)), square.high)
        out = add(multiply(out, square), Pair(*(part.expand_as(square.high) for part in term)))
    return out


def linear(x: Pair, weight: Tensor, bias: Tensor) -> Pair:
    """Return weight x + bias for rows x (..., n) and weights (m, n): (..., m)."""
    out = pair(bias.expand(*x.high.shape[:-1], weight.shape[0]))
    for i in range(weight.shape[1]):
        column = pair(weight[:, i])
        out = add(out, multiply(Pair(x.high[..., i, None], x.low[..., i, None]), column))
    return out


def circle_scores(x: Pair, positions: Tensor, size: int) -> Pair:
    """Return the scores (..., n) of coefficients (..., 2k + 1) for labels at positions of a circle: see `dft_scores`.

    >>> x = pair(torch.tensor([[2.0, 0.0, 0.0]]))
    >>> circle_scores(x, torch.arange(4), 4).high
    tensor([[1., 1., 1., 1.]], dtype=torch.float64)
    """
    rows = math.prod(x.high.shape[:-1])
    blocks = positions.double().split(max(LEAST_BLOCK, ENTRIES // max(rows, 1)))
    parts = [_block_scores(x, block, size) for block in blocks]
    return Pair(*(torch.cat(part, dim=-1) for part in zip(*parts, strict=True)))


def _block_scores(x: Pair, positions: Tensor, size: int) -> Pair:
    """Return the scores of some labels."""
    k = x.high.shape[-1] // 2
    cosine, sine = first = cosine_and_sine(divide(positions, float(size)))
    total = pair(torch.zeros(*x.high.shape[:-1], positions.numel(), dtype=torch.float64, device=x.high.device))
    for j in range(1, k + 1):
        for column, wave in ((2 * j - 1, cosine), (2 * j, sine)):
            total = add(total, multiply(Pair(x.high[..., column, None], x.low[..., column, None]), wave))
        cosine, sine = turned(cosine, sine, *first)
    total = multiply(total, constant(SQRT_2, total.high))
    total = add(total, Pair(x.high[..., :1], x.low[..., :1]))
    scale = 1 / math.sqrt(size)
    return Pair(total.high * scale, total.low * scale)


def turned(cosine: Pair, sine: Pair, by_cosine: Pair, by_sine: Pair) -> tuple[Pair, Pair]:
    """Return cosine and sine of the sum of two angles."""
    return (
        add(multiply(cosine, by_cosine), -multiply(sine, by_sine)),
        add(multiply(sine, by_cosine), multiply(cosine, by_sine)),
    )
