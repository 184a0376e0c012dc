"""Propensities: how likely a true label is to be recorded at all, by its training frequency.

`1/p_l = 1 + C (N_l + B)^-A` with `C = (ln N - 1)(B + 1)^A`, where N counts the training rows and N_l those with label
l. Rare labels have a small propensity, hence a large weight `1/p_l`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

import numpy as np
import scipy.sparse as sp

from longtail.data import inverse_propensities
from longtail.errors import DataError, ParameterError
from longtail.validate import MatrixLike, as_labels, check_integer, check_real

NumberPerLabel: TypeAlias = "np.ndarray | Sequence[float]"
"""One number for every label, such as its propensity or its training rows."""

PROPENSITY_CONSTANTS: dict[str, tuple[float, float]] = {  # name -> (A, B)
    "default": (0.55, 1.5),
    "wikipedia": (0.5, 0.4),
    "amazon": (0.6, 2.6),
}


def propensities(
    labels: MatrixLike | NumberPerLabel,
    n_rows: int | None = None,
    A: float = PROPENSITY_CONSTANTS["default"][0],
    B: float = PROPENSITY_CONSTANTS["default"][1],
) -> np.ndarray:
    """Return the propensity of every label, `p_l = 1 / (1 + C (N_l + B)^-A)` with `C = (ln N - 1)(B + 1)^A`.

    With fewer than three training rows `ln N - 1` is negative and the model has no meaning: every propensity is 1.

    Parameters
    ----------
    labels : matrix of shape (n_rows, n_labels) or array of shape (n_labels,)
        The training labels, or the number N_l of training rows of every label.
    n_rows : int or None, default=None
        The number N of training rows; needed with counts.
    A, B : float, default=0.55, 1.5
        The constants of the data, such as `PROPENSITY_CONSTANTS["amazon"]`.

    Returns
    -------
    propensity : ndarray of shape (n_labels,), float64
        In (0, 1].

    Examples
    --------
    >>> propensities([1, 10, 1000], n_rows=10_000).round(3).tolist()
    [0.109, 0.22, 0.767]
    >>> A, B = PROPENSITY_CONSTANTS["amazon"]
    >>> propensities([1, 10, 1000], 10_000, A, B).round(3).tolist()
    [0.109, 0.205, 0.781]
    """
    A = check_real("A", A, low=0)
    B = check_real("B", B, low=0, open_low=True)
    if sp.issparse(labels) or np.ndim(labels) == 2:
        Y = as_labels(labels, "labels")
        if n_rows is not None and check_integer("n_rows", n_rows, low=1) != Y.shape[0]:
            raise ParameterError(
                name="n_rows", allowed=f"{Y.shape[0]}, the rows of labels", optional=", or None", got=n_rows
            )
        counts, n_rows = label_counts(Y), Y.shape[0]
    else:
        counts = check_counts(np.asarray(labels), "labels")
        if n_rows is None:
            raise ParameterError(name="n_rows", problem="must be given with label counts; got None.")
        n_rows = check_integer("n_rows", n_rows, low=1)
        if counts.size and counts.max() > n_rows:
            raise DataError(f"labels must count at most n_rows ({n_rows}) rows per label; got {counts.max()}.")
    return 1.0 / inverse_propensities(counts, n_rows, A, B)


def label_counts(Y: MatrixLike) -> np.ndarray:
    """Return the number of rows of each label, int64 (n_labels,).

    >>> label_counts([[1, 0, 1], [0, 0, 1]]).tolist()
    [1, 0, 2]
    """
    Y = as_labels(Y, "Y")
    return np.bincount(Y.indices, minlength=Y.shape[1]).astype(np.int64)


def check_counts(counts: NumberPerLabel, name: str = "train_counts", n_labels: int | None = None) -> np.ndarray:
    """Return label counts as int64 (n_labels,); negative and broken numbers are refused."""
    out = np.asarray(counts)
    if out.ndim != 1 or out.dtype.kind not in "iuf":
        raise DataError(f"{name} must be one number per label; got an array of {out.dtype} of shape {out.shape}.")
    if out.size and not (np.isfinite(out).all() and (out >= 0).all() and (out == np.floor(out)).all()):
        raise DataError(f"{name} must hold whole numbers >= 0.")
    if n_labels is not None and out.size != n_labels:
        raise DataError(f"{name} must have one entry per label ({n_labels}); got {out.size}.")
    return out.astype(np.int64)


def check_propensity(propensity: NumberPerLabel, n_labels: int) -> np.ndarray:
    """Return propensities as float64 (n_labels,), each in (0, 1]."""
    p = np.asarray(propensity)
    if p.ndim != 1 or p.dtype.kind not in "iuf" or p.size != n_labels:
        raise DataError(
            f"propensity must hold one number per label ({n_labels}); got an array of {p.dtype} of shape {p.shape}."
        )
    bad = ~((p > 0) & (p <= 1))
    if bad.any():
        label = int(np.flatnonzero(bad)[0])
        raise DataError(
            f"propensity must be above 0 and at most 1 (not its inverse); got {p[label]:g} for label {label}."
        )
    return p.astype(np.float64)
