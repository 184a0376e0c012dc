"""Learning new rows without the old ones: hold the weights of features as firmly as the old rows held them.

Training minimises ½ ‖w‖² + C Σ over all rows of the loss. To second order at the old weights, old rows amount to

    ½ Σ over features f of h_f (w_f - w_old_f)²,   h_f = 1 + HOLD · C · Σ over old rows x of x_f²

The last sum is not known. It is estimated from the new rows, as (old rows / new rows) · Σ over new rows x of x_f², and
where it is known how many old rows had a feature, it is at most that number times the feature's mean square. So a few
new rows move little, and a feature that no old row had moves as far as in training anew. The weights of a new label
are 0 and its bias is -1, where old rows cost nothing; they are held in the same way.
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
class Hold:
    """How firmly old rows hold old weights."""

    strength: float  # HOLD · C
    old_per_new: float  # old rows that are not shown again, for each row shown
    keep: float = 1.0  # what old weights are multiplied with first: less than 1 where old rows are shown again

    @classmethod
    def of(cls, C: float, n_old: int, n_shown: int, replayed: int) -> Self:
        """Return the hold of `n_old` rows on `n_shown` rows, `replayed` of which are old ones."""
        again = min(replayed / n_old, 1.0)
        return cls(HOLD * C, (1 - again) * n_old / n_shown, 1 - again)


@dataclass(frozen=True)
class HeldRows:
    """Rows in coordinates in which the problem with h is the usual one: w √h in place of w, x / √h in place of x."""

    data: np.ndarray  # values of the entries
    norms: np.ndarray  # ‖x‖² + constant²
    stretch: np.ndarray  # √h of every feature, a column
    constant: float  # value of the feature that stands for the bias

    @classmethod
    def of(
        cls,
        indptr: np.ndarray,
        indices: np.ndarray,
        data: np.ndarray,
        n_features: int,
        bias: float,
        hold: Hold,
        feature_rows: np.ndarray | None = None,
    ) -> Self:
        """Return the rows with √h; `feature_rows` are the old rows with each feature, where that is known.

        >>> indptr, indices, data = np.array([0, 1]), np.array([1]), np.array([2.0], np.float32)
        >>> one = HeldRows.of(indptr, indices, data, 2, 1.0, Hold(0.25, 3.0))
        >>> one.stretch.ravel().tolist(), one.data.tolist()
        ([1.0, 2.0], [1.0])
        """
        squares = np.bincount(indices, np.square(data, dtype=np.float64), minlength=n_features)
        before = hold.old_per_new * squares
        if feature_rows is not None:
            rows = np.maximum(np.bincount(indices, minlength=n_features), 1)
            before = np.minimum(before, feature_rows * squares / rows)
        stretch = np.sqrt(1 + hold.strength * before).astype(np.float32)
        constant = float(bias / np.sqrt(1 + hold.strength * hold.old_per_new * bias**2 * (indptr.size - 1)))
        new, norms = (data / stretch[indices]).astype(np.float32), np.empty(indptr.size - 1, dtype=np.float32)
        row_squares(indptr, new, constant**2, norms)
        return cls(new, norms, stretch[:, None], constant)


@runtime_checkable
class Updatable(Protocol):
    """A model that learns new rows, takes on new labels and features, and lets labels go, without training anew."""

    n_rows_: int
    n_labels_: int

    def partial_fit(
        self, X: Any, Y: Any, classes: Any = None, *, replayed: int = 0, feature_rows: Any = None
    ) -> Self: ...

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
    """Return the labels of new rows as ones, checked: a column per label of the model, then those of new labels."""
    truth = as_labels(Y, "Y")
    if truth.shape[1] < n_labels:
        check_width(truth, n_labels, "Y", "labels")
    if truth.nnz == 0:
        raise DataError(input="Y", problem="must hold at least one label; every row is empty.")
    return make_csr(truth.indptr, truth.indices, np.ones_like(truth.data), truth.shape[1])
