"""Learning new rows without the old ones: hold the weights of features as firmly as the old rows held them.

Training minimises ½ ‖w‖² + C Σ over all rows of the loss. To second order at the old weights, old rows amount to

    ½ Σ over features f of h_f (w_f - w_old_f)²
    h_f = 1 + HOLD · C · (old rows / new rows) · Σ over new rows x of x_f²

where the new rows tell how often the old ones had a feature. So a few new rows move little, and a feature that is new
moves as far as in training anew.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol, Self, runtime_checkable

import numpy as np
import scipy.sparse as sp

from longtail.errors import DataError, ParameterError
from longtail.kernels import row_squares
from longtail.validate import LabelNumbers, MatrixLike, as_labels, check_width, make_csr

HOLD = 2.0  # chosen on parts of training sets (benchmarks/results/tree_updates.json)


@dataclass(frozen=True)
class HeldRows:
    """Rows in coordinates in which the problem with h is the usual one: w √h in place of w, x / √h in place of x."""

    data: np.ndarray  # values of the entries
    norms: np.ndarray  # ‖x‖² + constant²
    stretch: np.ndarray  # √h of every feature, a column
    constant: float  # value of the feature that stands for the bias

    @classmethod
    def of(
        cls, indptr: np.ndarray, indices: np.ndarray, data: np.ndarray, n_features: int, bias: float, hold: float
    ) -> Self:
        """Return the rows held by `hold` = HOLD · C · (old rows / new rows).

        >>> one = HeldRows.of(np.array([0, 1]), np.array([1]), np.array([2.0], np.float32), 2, 1.0, 0.75)
        >>> one.stretch.ravel().tolist(), one.data.tolist()
        ([1.0, 2.0], [1.0])
        """
        squares = np.bincount(indices, np.square(data, dtype=np.float64), minlength=n_features)
        stretch = np.sqrt(1 + hold * squares).astype(np.float32)
        constant = float(bias / np.sqrt(1 + hold * bias**2 * (indptr.size - 1)))
        new, norms = (data / stretch[indices]).astype(np.float32), np.empty(indptr.size - 1, dtype=np.float32)
        row_squares(indptr, new, constant**2, norms)
        return cls(new, norms, stretch[:, None], constant)


@runtime_checkable
class Updatable(Protocol):
    """A model that learns new rows, takes on new labels and features, and lets labels go, without training anew."""

    n_rows_: int
    n_labels_: int

    def partial_fit(self, X: Any, Y: Any, classes: Any = None, *, replayed: int = 0) -> Self: ...

    def add_labels(self, X: Any, Y: Any) -> Self: ...

    def remove_labels(self, labels: Any) -> Self: ...

    def widen(self, n_features: int) -> Self: ...


def kept_labels(gone: LabelNumbers, n_labels: int) -> np.ndarray:
    """Return which labels stay when some, given by number, are removed: bool per label; one at least must stay.

    >>> kept_labels([1], 3).tolist()
    [True, False, True]
    """
    given = np.asarray(gone)
    if given.size and given.dtype.kind not in "iu":
        raise ParameterError(name="labels", allowed=f"whole numbers from 0 to {n_labels - 1}", got=gone)
    numbers = np.unique(given.astype(np.int64))
    if numbers.size and (numbers[0] < 0 or numbers[-1] >= n_labels):
        worst = numbers[0] if numbers[0] < 0 else numbers[-1]
        raise ParameterError(name="labels", problem=f"must be numbers from 0 to {n_labels - 1}; got {worst}.")
    if numbers.size == n_labels:
        raise ParameterError(name="labels", problem="must leave at least one label; got all of them.")
    keep = np.ones(n_labels, dtype=bool)
    keep[numbers] = False
    return keep


def check_new_truth(Y: MatrixLike, n_labels: int) -> sp.csr_array:
    """Return the labels of new rows as ones, checked: a column per label of the model, and at least one label."""
    truth = as_labels(Y, "Y")
    check_width(truth, n_labels, "Y", "labels")
    if truth.nnz == 0:
        raise DataError(input="Y", problem="must hold at least one label; every row is empty.")
    return make_csr(truth.indptr, truth.indices, np.ones_like(truth.data), truth.shape[1])
