"""Exact arithmetic on doubles, for the few places where rounding decides.

Every double is an integer times a power of two, so sums of products are integers after a shift.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np

MOST_EXACT = 32  # rows of a linear system that is solved exactly


def dot_sign(a: np.ndarray, b: np.ndarray) -> int:
    """Return the sign of the dot product of two vectors of doubles, exactly.

    >>> import numpy as np
    >>> dot_sign(np.array([1e16, 1.0, -1e16]), np.ones(3))
    1
    """
    (xs, x_powers), (ys, y_powers) = _integers(a), _integers(b)
    powers = [p + q for p, q in zip(x_powers, y_powers, strict=True)]
    low = min(powers, default=0)
    total = sum(x * y << (p - low) for x, y, p in zip(xs, ys, powers, strict=True) if x and y)
    return (total > 0) - (total < 0)


def _integers(values: np.ndarray) -> tuple[list[int], list[int]]:
    parts, powers = np.frexp(values)
    return np.ldexp(parts, 53).astype(np.int64).tolist(), (powers.astype(np.int64) - 53).tolist()


def balanced(
    A: np.ndarray,  # rows                       (m, d)
    weights: np.ndarray,  # nearly balancing, > 0      (m,)
    b: np.ndarray | None = None,
) -> bool:
    """Say whether weights >= 0, not all 0, exist near the given ones with A' weights = 0 (and b . weights <= 0).

    The system is reduced exactly; the free weights are kept as given and the others follow from them.
    """
    m = A.shape[0]
    if m > MOST_EXACT:
        return False
    system = [[Fraction(float(v)) for v in column] for column in A.T]
    order = np.argsort(weights, kind="stable")  # small weights follow from the large ones
    pivots: list[int] = []
    for at in map(int, order):
        row = next((r for r in range(len(pivots), len(system)) if system[r][at]), None)
        if row is None:
            continue
        top = len(pivots)
        system[top], system[row] = system[row], system[top]
        scale = system[top][at]
        system[top] = [v / scale for v in system[top]]
        for r, line in enumerate(system):
            if r != top and line[at]:
                factor = line[at]
                system[r] = [v - factor * w for v, w in zip(line, system[top], strict=True)]
        pivots.append(at)
    exact = [Fraction(float(w)) for w in weights]
    free = [i for i in range(m) if i not in pivots]
    if not free:
        return False
    for r, at in enumerate(pivots):
        exact[at] = -sum((system[r][i] * exact[i] for i in free), Fraction(0))
    if min(exact) < 0 or max(exact) <= 0:
        return False
    return b is None or sum((Fraction(float(v)) * w for v, w in zip(b, exact, strict=True)), Fraction(0)) <= 0
