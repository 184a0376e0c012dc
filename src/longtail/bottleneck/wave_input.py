"""The input of a DFT layer that has a wave with given roots, to 32 digits."""

from __future__ import annotations

import math

import numpy as np
import torch

from longtail.bottleneck import double_double as dd


def wave_with_roots(roots: np.ndarray, size: int, k: int) -> dd.Pair:
    """Return the coefficients (2k + 1,) of a wave with these roots, positive outside the first two; any scale.

    Two roots with the middle m and the half distance h make the factor cos(h) - cos(t - m). As a sum of c_j exp(i j t)
    a product with it has the coefficients cos(h) c_j - (exp(-i m) c_(j-1) + exp(i m) c_(j+1)) / 2.
    """
    first, last = (torch.from_numpy(np.ascontiguousarray(part)).double() for part in (roots[0::2], roots[1::2]))
    cos_m, sin_m = dd.cosine_and_sine(dd.divide(first + last, 2.0 * size))
    cos_h, _ = dd.cosine_and_sine(dd.divide(last - first, 2.0 * size))
    real, imaginary = dd.pair(torch.zeros(2 * k + 3)), dd.pair(torch.zeros(2 * k + 3))
    real.high[k + 1] = 1.0
    for f in range(first.numel()):
        c, s, h = (dd.Pair(part.high[f], part.low[f]) for part in (cos_m, sin_m, cos_h))
        before, after = ((_rolled(real, by), _rolled(imaginary, by)) for by in (1, -1))
        # exp(-i m) c_(j-1) + exp(i m) c_(j+1)
        same, other = dd.add(before[0], after[0]), dd.add(before[1], -after[1])
        beside = dd.add(dd.multiply(same, c), dd.multiply(other, s))
        same, other = dd.add(before[1], after[1]), dd.add(after[0], -before[0])
        beside_i = dd.add(dd.multiply(same, c), dd.multiply(other, s))
        real, imaginary = (
            dd.add(dd.multiply(part, h), dd.Pair(-next_to.high / 2, -next_to.low / 2))
            for part, next_to in ((real, beside), (imaginary, beside_i))
        )
        power = -math.frexp(float(real.high.abs().max()))[1]
        real, imaginary = (dd.Pair(*(torch.ldexp(p, torch.tensor(power)) for p in part)) for part in (real, imaginary))
    root_2 = dd.constant(dd.SQRT_2, real.high)
    cosines, sines = dd.multiply(real, root_2), -dd.multiply(imaginary, root_2)
    out = [
        torch.stack([a[k + 2 : 2 * k + 2], b[k + 2 : 2 * k + 2]], dim=1) for a, b in zip(cosines, sines, strict=True)
    ]
    return dd.Pair(*(torch.cat([level[k + 1 : k + 2], part.flatten()]) for level, part in zip(real, out, strict=True)))


def _rolled(numbers: dd.Pair, by: int) -> dd.Pair:
    return dd.Pair(*(torch.roll(part, by) for part in numbers))
