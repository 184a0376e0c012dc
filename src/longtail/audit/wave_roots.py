"""Exact certificates for the label sets of a layer whose fixed columns are waves along a circle of labels.

A wave with at most k frequencies can change its sign at any 2k points of the circle, and nowhere else:
p(t) = product of sin((t - r) / 2) over these roots r. A set is proved by roots that stand between its labels and the
others. Which labels lie between which roots is a matter of comparing positions, so the proof is exact whatever the
number of labels, also where p is so small at some labels that no 64-bit input gives the set.
"""

from __future__ import annotations

import numpy as np

from longtail.audit.audited_layer import AuditedLayer
from longtail.model import LabelCircle

SURE = 1 - 1e-9  # for rounding in sums of logarithms and in the coefficients of a wave


def roots_give(circle: LabelCircle, roots: np.ndarray, members: np.ndarray) -> bool:
    """Say whether a wave with these roots, or its negative, is above 0 exactly at the labels of a set.

    >>> circle = LabelCircle(9, 2, np.arange(9))
    >>> [roots_give(circle, np.array([3.5, 5.5]), np.array(members)) for members in ([4, 5], [4])]
    [True, False]
    """
    sound = roots.ndim == 1 and roots.size % 2 == 0 and roots.size <= 2 * circle.k
    if not sound or not np.isfinite(roots).all() or (np.diff(roots) <= 0).any():
        return False
    if roots.size and not (roots[0] >= 0 and roots[-1] < circle.size):
        return False
    at = circle.positions.astype(np.float64)
    below = np.searchsorted(roots, at, side="left")
    if (below != np.searchsorted(roots, at, side="right")).any():  # a label on a root scores 0
        return False
    on = np.zeros(at.size, dtype=bool)
    on[members] = True
    odd = below % 2 == 1
    return bool((on == odd).all() or (on != odd).all())


def roots_radius(layer: AuditedLayer, members: np.ndarray, roots: np.ndarray) -> float | None:
    """Return a lower bound on the radius of the ball that roots prove, 0 where it is too small to compute.

    None if they do not prove the set: the labels lie otherwise, or the biases differ by more than the wave can move.
    """
    circle = layer.circle
    if circle is None or layer.threshold or not roots_give(circle, roots, members):
        return None
    root_n = np.sqrt(circle.size)
    shift = 0.0 if layer.bias is None else float(layer.bias[0])
    rest = None if layer.bias is None or bool((layer.bias == shift).all()) else layer.bias
    shift = shift if rest is None else 0.0
    limit = (layer.box - abs(shift) * root_n) * SURE  # the first column, 1 / sqrt(n), cancels a bias that all have
    if limit <= 0:
        return None
    n_points = 4 * (circle.k + 2)
    grid = circle.size * (np.arange(n_points) + 0.5) / n_points
    logs, at_grid = _log_sizes(circle.positions, roots, circle.size), _log_sizes(grid, roots, circle.size)
    largest = float(at_grid.max())
    waves = np.fft.rfft(_signs(grid, roots) * np.exp(at_grid - largest), norm="forward")
    waves *= np.exp(-1j * np.pi / n_points * np.arange(waves.size))  # the grid begins half a step after 0
    # x_0 = sqrt(n) c_0, and the others are sqrt(2 n) times the real and the imaginary parts of c_j
    most = root_n * max(abs(float(waves[0].real)), np.sqrt(2) * float(np.abs(waves[1:].view(np.float64)).max()))
    margins = np.exp(np.minimum(logs - largest, 700.0)) * (limit / (most / SURE)) * SURE
    if rest is not None:
        margins = margins + layer.signs(members) * rest
        if float(margins.min()) <= 1e-9 * float(np.abs(rest).max()):
            return None
    return float((margins / layer.lengths).min()) * SURE


def _log_sizes(positions: np.ndarray, roots: np.ndarray, size: float) -> np.ndarray:
    """Return log |p| at positions: a sum of logarithms of sines, each right to the last digits."""
    out = np.zeros(len(positions))
    with np.errstate(divide="ignore"):  # -inf at a root
        for root in roots:
            away = np.abs(positions - root)
            out += np.log(np.sin(np.minimum(away, size - away) * (np.pi / size)))
    return out


def _signs(positions: np.ndarray, roots: np.ndarray) -> np.ndarray:
    """Return the sign of p at positions, up to one sign for all."""
    return np.where(np.searchsorted(roots, positions) % 2 == 1, 1.0, -1.0)
