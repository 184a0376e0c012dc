"""The layer under audit: weights, bias and the box of inputs, in one form for label sets, classes and top-k sets.

The region of a label set is the part of the box -box <= x_j <= box in which every label of the set has a score
w . x + b above 0 and every other label one below 0. A class wins the argmax, and a set is the top k, if the same holds
with a free threshold in place of 0: one more column of ones. So all three ask whether a region is empty.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
import scipy.sparse as sp

from longtail.audit.read_weights import BiasLike, LayerLike, read_circle, read_layer
from longtail.errors import DataError
from longtail.model import LabelCircle
from longtail.validate import check_real

LARGEST_BOX = 1e100
UNIT = 2.0**-53  # half the distance from 1 to the next double


def rounding_bound(k: int) -> float:
    """Return a bound on the relative error of a sum of k products in any order, k u / (1 - k u), rounded up."""
    return k * UNIT / (1 - k * UNIT) * (1 + 1e-12)


def row_lengths(rows: np.ndarray | sp.csr_array) -> np.ndarray:
    """Return the Euclidean length of every row, dense or CSR, rounded up, without overflow: (n,)."""
    if isinstance(rows, np.ndarray):
        powers = np.frexp(np.abs(rows).max(axis=1))[1]
        scaled = np.ldexp(rows, -powers[:, None])
        squares = np.einsum("ij,ij->i", scaled, scaled)
    else:
        row_of_entry = np.repeat(np.arange(rows.shape[0]), np.diff(rows.indptr))
        largest = np.zeros(rows.shape[0])
        np.maximum.at(largest, row_of_entry, np.abs(rows.data))
        powers = np.frexp(largest)[1]
        scaled = np.ldexp(rows.data, -powers[row_of_entry])
        squares = np.bincount(row_of_entry, scaled**2, minlength=rows.shape[0])
    return np.ldexp(np.sqrt(squares), powers) * (1 + rounding_bound(rows.shape[1] + 6))


def wave_error(circle: LabelCircle | None) -> float:
    """Return a bound on the rounding error of an entry of `dft_matrix`: angles up to 2 pi, then a cosine; 0 without."""
    if circle is None:
        return 0.0
    multiples = 1 if circle.positions.dtype.kind == "i" else circle.k + 1  # j times a whole position is exact
    return 32 * UNIT * multiples * float(np.sqrt(2 / circle.size))


@dataclass(frozen=True)
class AuditedLayer:
    """Weights, bias and box of a layer; with `threshold` the last column of W multiplies the free threshold.

    `lp_rows`, `lp_columns` and `lp_offsets` are the layer as linear programs read it: inputs in units of the box, rows
    in units of their length, so that the margin of a label is its distance from the border, as part of the box.
    """

    W: np.ndarray | sp.csr_array  # (n, d), d with the threshold's column; CSR where rows are long
    bias: np.ndarray | None  # (n,)
    box: float
    threshold: bool
    lengths: np.ndarray = field(repr=False)  # (n,) at least |w_i|: by how much an input moved by 1 can move a score
    circle: LabelCircle | None = None  # along which the first columns are waves; W holds their rounded values

    @classmethod
    def read(cls, W: LayerLike, bias: BiasLike = None, box: float = 1e4, *, threshold: bool = False) -> AuditedLayer:
        """Read and check a layer."""
        weights, offsets = read_layer(W, bias, keep_sparse=not threshold)
        box = check_real("box", box, low=0, open_low=True, high=LARGEST_BOX)
        lengths = row_lengths(weights)
        zero = np.flatnonzero(lengths == 0)
        circle = read_circle(W)
        if circle is not None and (zero.size or circle.positions.shape != lengths.shape):  # labels that are no wave
            circle = None
        lengths = lengths + wave_error(circle) * np.sqrt(weights.shape[1])
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
        return cls(weights, offsets, box, threshold, lengths, circle)

    @property
    def n_labels(self) -> int:
        """Rows of W."""
        return int(self.W.shape[0])

    @cached_property
    def column_errors(self) -> np.ndarray | None:
        """How far each entry of a column of W may be from the layer's own; None where W is the layer. (d,)"""
        if self.circle is None:
            return None
        out = np.zeros(self.W.shape[1])
        out[1 : 2 * self.circle.k + 1] = wave_error(self.circle)
        out[0] = UNIT * 2
        return out

    @property
    def is_sparse(self) -> bool:
        """Whether rows are so long that they are kept sparse; then no linear program is solved."""
        return sp.issparse(self.W)

    def dense_row(self, label: int) -> np.ndarray:
        """Return the row of one label as a dense vector. (d,)"""
        return self.W[label] if isinstance(self.W, np.ndarray) else self.W[[label]].toarray()[0]

    def dense_rows(self, ids: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return some rows of W as a dense array, of a sparse W without empty columns, and the columns' limits."""
        if isinstance(self.W, np.ndarray):
            return self.W[ids], self.limits
        rows = self.W[ids]
        columns = np.unique(rows.indices)
        return rows[:, columns].toarray(), self.limits[columns]

    @cached_property
    def limits(self) -> np.ndarray:
        """The largest value of each column's input: the box; for a threshold what the scores can reach. (d,)"""
        out = np.full(self.W.shape[1], self.box)
        if self.threshold:
            reach = np.abs(self.W[:, :-1]).sum(axis=1).max() * self.box
            reach += 0.0 if self.bias is None else np.abs(self.bias).max()
            out[-1] = reach * (1 + rounding_bound(self.W.shape[1] + 4))
        return out

    @cached_property
    def lp_rows(self) -> np.ndarray:
        """Rows of the linear program: inputs in units of the box, rows in units of their length. (n, d)"""
        safe = np.where(self.lengths > 0, self.lengths, 1.0)
        return np.ascontiguousarray(self.W * (self.limits / self.box) / safe[:, None])

    @cached_property
    def lp_columns(self) -> np.ndarray:
        """The rows of the linear program, transposed. (d, n)"""
        return np.ascontiguousarray(self.lp_rows.T)

    @cached_property
    def lp_offsets(self) -> np.ndarray:
        """Biases of the linear program. A label whose row is zero scores its bias: it never binds. (n,)"""
        if self.bias is None:
            return np.zeros(self.n_labels)
        out = np.sign(self.bias) * 1e3
        np.divide(self.bias, self.lengths * self.box, out=out, where=self.lengths > 0)
        return out

    def signs(self, members: np.ndarray) -> np.ndarray:
        """Return +1 for the labels of a set and -1 for the others. (n,)"""
        out = np.full(self.n_labels, -1.0)
        out[members] = 1.0
        return out

    def unscaled_weights(self, rows: np.ndarray, weights: np.ndarray) -> np.ndarray:
        """Return multipliers of rows of W from those of rows of the linear program."""
        return weights / np.where(self.lengths[rows] > 0, self.lengths[rows], 1.0)
