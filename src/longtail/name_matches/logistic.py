"""Logistic regression with a small ridge by Newton's method: few features, many examples, always the same answer."""

from __future__ import annotations

import numpy as np

RIDGE = 1.0
MOST_STEPS = 30
ENOUGH = 1e-9  # relative gain of a step below which it ends
SMALLEST_STEP = 1e-4
BLOCK = 1 << 15  # examples handled at once

HIGHEST = 700.0  # the exponential of more is infinite


def sigmoid(x: np.ndarray) -> np.ndarray:
    """Return 1 / (1 + exp(-x)); that of scipy.special takes longer to import than all of this folder.

    >>> sigmoid(np.array([-1e9, 0.0, 40.0])).round(3).tolist()
    [0.0, 0.5, 1.0]
    """
    return 1.0 / (1.0 + np.exp(np.minimum(-x, HIGHEST)))


def fit_logistic(
    X: np.ndarray, y: np.ndarray, weight: np.ndarray | None = None, centre: np.ndarray | None = None
) -> np.ndarray:
    """Return the weights of the features, float64; the ridge draws them towards `centre`, else towards 0.

    `y` may be shares; `weight` says how much each example counts.

    >>> X = np.array([[1.0, 0.0], [1.0, 1.0]])
    >>> w = fit_logistic(X, np.array([0.25, 0.75]), np.array([1e9, 1e9]))
    >>> [round(float(p), 3) for p in sigmoid(X @ w)]
    [0.25, 0.75]
    """
    weight = np.ones(len(y)) if weight is None else weight
    centre = np.zeros(X.shape[1]) if centre is None else centre
    w = centre
    loss, gradient, curvature = _derivatives(X, y, weight, w, centre)
    for _ in range(MOST_STEPS):
        step, scale = np.linalg.solve(curvature, gradient), 1.0
        following = _derivatives(X, y, weight, w - step, centre)
        while following[0] > loss and scale > SMALLEST_STEP:
            scale /= 2
            following = _derivatives(X, y, weight, w - scale * step, centre)
        if following[0] >= loss:
            break
        w = w - scale * step
        gain, (loss, gradient, curvature) = loss - following[0], following
        if gain <= ENOUGH * abs(loss):
            break
    return w


def _derivatives(
    X: np.ndarray, y: np.ndarray, weight: np.ndarray, w: np.ndarray, centre: np.ndarray
) -> tuple[float, np.ndarray, np.ndarray]:
    """Return the loss at some weights, its gradient and its second derivatives."""
    away = w - centre
    loss, gradient, curvature = 0.5 * RIDGE * float(away @ away), RIDGE * away, RIDGE * np.eye(w.size)
    for at in range(0, len(y), BLOCK):
        part, target, counts = X[at : at + BLOCK], y[at : at + BLOCK], weight[at : at + BLOCK]
        margin = part @ w
        p = sigmoid(margin)
        loss += float(np.sum(counts * (np.logaddexp(0, margin) - target * margin)))
        gradient = gradient + part.T @ (counts * (p - target))
        curvature = curvature + (part * (counts * p * (1 - p))[:, None]).T @ part
    return loss, gradient, curvature
