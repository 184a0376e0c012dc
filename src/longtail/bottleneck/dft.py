"""The truncated real DFT matrix, and runs of labels along a circle.

Column 0 is 1/sqrt(n); then come, for each frequency j = 1..k, sqrt(2/n) cos(j t_i) and sqrt(2/n) sin(j t_i) with
t_i = 2 pi i / n. All its maximal minors have one sign, so every pattern with at most 2k sign changes can come out.
"""

from __future__ import annotations

import numpy as np

from longtail.errors import ParameterError
from longtail.model import LabelCircle
from longtail.validate import check_choice, check_integer

SPACINGS = ("even", "learned")  # of labels on the circle of a layer
ARITHMETICS = ("float64", "double-double")  # of its scores, besides that of its weights


def check_arithmetic(value: object) -> str | None:
    """Return the arithmetic of an output layer, checked; None for that of its weights, 32 bits.

    >>> check_arithmetic("float64"), check_arithmetic(None)
    ('float64', None)
    """
    if value is None:
        return None
    if isinstance(value, str) and value in ("float32", "single", "32"):
        raise ParameterError(
            name="arithmetic",
            allowed=f"one of {list(ARITHMETICS)}",
            optional=", or None for 32 bits",
            got=value,
            hint=" Leave it out for 32 bits.",
        )
    return check_choice("arithmetic", value, ARITHMETICS)


def dft_matrix(n: int, k: int, positions: np.ndarray | None = None) -> np.ndarray:
    """Return the truncated real DFT matrix (n, 2k + 1) as float64, or only its rows at some positions.

    Its columns are orthonormal. Positions need not be whole numbers: any n different ones in [0, n) keep the sign of
    the maximal minors.

    >>> import numpy as np
    >>> W = dft_matrix(7, 2)
    >>> W.shape, bool(np.allclose(W.T @ W, np.eye(5)))
    ((7, 5), True)
    """
    n, k = check_integer("n", n, low=1), check_integer("k", k, low=0)
    if 2 * k + 1 > n:
        raise ParameterError(name="k", allowed=f"at most {(n - 1) // 2} for {n} labels, so that 2k + 1 <= n", got=k)
    # j * i modulo n keeps the angle small, so that it is exact for any n
    positions = np.arange(n, dtype=np.int64) if positions is None else positions
    turns = np.outer(positions, np.arange(1, k + 1)) % n
    angles = turns * (2 * np.pi / n)
    out = np.empty((angles.shape[0], 2 * k + 1))
    out[:, 0] = 1 / np.sqrt(n)
    out[:, 1::2] = np.cos(angles) * np.sqrt(2 / n)
    out[:, 2::2] = np.sin(angles) * np.sqrt(2 / n)
    return out


def cyclic_runs(positives: np.ndarray, n: int) -> np.ndarray:
    """Return first and last index of every maximal run of positives along the circle 0..n-1: int64 (n_runs, 2).

    A run over the end has a last index of n or more. All of them is one run.

    >>> import numpy as np
    >>> cyclic_runs(np.array([0, 1, 4, 9]), 10).tolist()
    [[4, 4], [9, 11]]
    """
    ids = np.asarray(positives, dtype=np.int64)
    if ids.size == 0:
        return np.empty((0, 2), dtype=np.int64)
    if ids.size == n:
        return np.array([[0, n - 1]], dtype=np.int64)
    starts = ids[np.diff(ids, prepend=ids[-1] - n) != 1]
    ends = ids[np.diff(ids, append=ids[0] + n) != 1]
    if starts[0] > ends[0]:
        ends = np.append(ends[1:], ends[0] + n)
    return np.stack([starts, ends], axis=1)


def wave_roots(circle: LabelCircle, members: np.ndarray) -> np.ndarray | None:
    """Return positions at which a wave may change its sign so that exactly a set is on; None if it needs more than 2k.

    >>> circle = LabelCircle(9, 2, np.arange(9))
    >>> wave_roots(circle, np.array([0, 4, 5])).tolist(), wave_roots(circle, np.array([0, 2, 4]))
    ([0.5, 3.5, 5.5, 8.5], None)
    """
    by_position = np.argsort(circle.positions, kind="stable")
    at = circle.positions[by_position].astype(np.float64)
    on = np.zeros(at.size, dtype=bool)
    on[members] = True
    on = on[by_position]
    last = np.flatnonzero(on != np.roll(on, -1))  # before each change, the circle closed
    if last.size > 2 * circle.k:
        return None
    after = np.append(at[1:], at[0] + circle.size)
    roots = at[last] + (after[last] - at[last]) / 2
    return np.sort(np.where(roots >= circle.size, roots - circle.size, roots))
