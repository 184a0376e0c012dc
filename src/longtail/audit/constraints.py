"""The question an audit asks, in one shape for labels, classes and retrieval.

A set of labels is reachable if some input x within the box gives every label of the set a score w . x + b above 0 and
every other label one below 0. A class wins the argmax, and a set is the top k, if the same holds with a threshold
that is free: one more column of ones. So all three are the same problem.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse as sp

from longtail.audit.read_weights import read_layer
from longtail.errors import DataError
from longtail.validate import check_real

LARGEST_BOX = 1e100
UNIT = 2.0**-53  # half the distance from 1 to the next double


def gamma(k: int) -> float:
    """Return the bound on the relative error of a sum of k products in any order, a little rounded up."""
    return k * UNIT / (1 - k * UNIT) * (1 + 1e-12)


def lengths_of(rows: Any) -> np.ndarray:
    """Return the Euclidean length of every row, dense or CSR, rounded up, without overflow: (n,)."""
    if sp.issparse(rows):
        of = np.repeat(np.arange(rows.shape[0]), np.diff(rows.indptr))
        largest = np.zeros(rows.shape[0])
        np.maximum.at(largest, of, np.abs(rows.data))
        powers = np.frexp(largest)[1]
        squares = np.bincount(of, np.ldexp(rows.data, -powers[of]) ** 2, minlength=rows.shape[0])
        return np.ldexp(np.sqrt(squares), powers) * (1 + gamma(rows.shape[1] + 6))
    powers = np.frexp(np.abs(rows).max(axis=1))[1]
    scaled = np.ldexp(rows, -powers[:, None])
    return np.ldexp(np.sqrt(np.einsum("ij,ij->i", scaled, scaled)), powers) * (1 + gamma(rows.shape[1] + 6))


@dataclass(frozen=True)
class Problem:
    """Weights, bias, box and lengths; with `threshold` the last column is the free threshold."""

    W: Any  # (n, d), d with the threshold's column; dense, or CSR where rows are long
    bias: np.ndarray | None  # (n,)
    box: float
    threshold: bool
    lengths: np.ndarray = field(repr=False)  # (n,) at least |w_i|: by how much an input moved by 1 can move a score

    @classmethod
    def make(cls, W: Any, bias: Any = None, box: float = 1e4, *, threshold: bool = False) -> Problem:
        """Read and check a layer."""
        weights, offsets = read_layer(W, bias, keep_sparse=not threshold)
        box = check_real("box", box, low=0, open_low=True, high=LARGEST_BOX)
        lengths = lengths_of(weights)
        zero = np.flatnonzero(lengths == 0)
        if zero.size and offsets is None and not threshold:
            raise DataError(
                f"W must not have a row of zeros without a bias; row {zero[0]} is one, so this label scores 0 "
                "whatever the input."
            )
        if zero.size == weights.shape[0]:
            raise DataError("W must not be all zeros.")
        if threshold:
            lengths[zero] = lengths[lengths > 0].mean()  # any length is safe for a row that does not move
            weights = np.column_stack([weights, np.ones(weights.shape[0])])
        return cls(weights, offsets, box, threshold, lengths)

    @property
    def n_labels(self) -> int:
        return int(self.W.shape[0])

    @property
    def is_sparse(self) -> bool:
        """Whether rows are so long that they are kept sparse; then no linear program is solved."""
        return sp.issparse(self.W)

    def some_rows(self, ids: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return some rows of W as a dense array, of a sparse W without empty columns, and the columns' limits."""
        if not self.is_sparse:
            return self.W[ids], self.limits
        found = self.W[ids]
        columns = np.unique(found.indices)
        return found[:, columns].toarray(), self.limits[columns]

    @cached_property
    def limits(self) -> np.ndarray:
        """The largest value of each column's input: the box; for a threshold what the scores can reach. (d,)"""
        out = np.full(self.W.shape[1], self.box)
        if self.threshold:
            reach = np.abs(self.W[:, :-1]).sum(axis=1).max() * self.box
            reach += 0.0 if self.bias is None else np.abs(self.bias).max()
            out[-1] = reach * (1 + gamma(self.W.shape[1] + 4))
        return out

    @cached_property
    def rows(self) -> np.ndarray:
        """Rows of the linear program: inputs in units of the box, rows in units of their length. (n, d)"""
        safe = np.where(self.lengths > 0, self.lengths, 1.0)
        return np.ascontiguousarray(self.W * (self.limits / self.box) / safe[:, None])

    @cached_property
    def columns(self) -> np.ndarray:
        """The same, transposed. (d, n)"""
        return np.ascontiguousarray(self.rows.T)

    @cached_property
    def offsets(self) -> np.ndarray:
        """Biases of the linear program. A label whose row is zero scores its bias: it never binds. (n,)"""
        if self.bias is None:
            return np.zeros(self.n_labels)
        out = np.sign(self.bias) * 1e3
        np.divide(self.bias, self.lengths * self.box, out=out, where=self.lengths > 0)
        return out

    def signs(self, labels: np.ndarray) -> np.ndarray:
        """Return +1 for the labels of a set and -1 for the others. (n,)"""
        out = np.full(self.n_labels, -1.0)
        out[labels] = 1.0
        return out
