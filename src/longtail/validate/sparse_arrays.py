"""Check the arrays inside a sparse matrix before anything converts or multiplies it.

scipy's compiled loops trust the pointers and ids of a matrix: a row id out of range in a CSC matrix is a write to
foreign memory when it is converted to CSR. `check_format(full_check=True)` is not enough: it takes differences of row
pointers, which wrap around.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from longtail.errors import DataError

POINTED = {
    "csr": ("row", "column"),
    "csc": ("column", "row"),
    "bsr": ("row", "column"),
}  # what pointers count, ids name


def check_sparse_arrays(M: Any, name: str) -> None:
    """Refuse a sparse matrix whose arrays point outside of it; formats made of Python objects are taken as they are.

    >>> import scipy.sparse as sp
    >>> M = sp.csr_array([[1.0, 0.0]])
    >>> M.indices[0] = 7
    >>> check_sparse_arrays(M, "X")
    Traceback (most recent call last):
    ...
    longtail.errors.DataError: X must have column ids from 0 to 1; got 7 in row 0.
    """
    if M.format in POINTED:
        _check_pointed(M, name)
    elif M.format == "coo":
        _check_coordinates(M, name)
    elif M.format == "dia":
        _check_diagonals(M, name)


def _check_pointed(M: Any, name: str) -> None:
    """Check the pointers and ids of CSR, CSC and BSR."""
    pointers, ids, data = M.indptr, M.indices, M.data
    block = data.shape[1:] if M.format == "bsr" and np.ndim(data) == 3 else (1, 1)
    across, along = POINTED[M.format]
    size = [-1 if not step else n // step for n, step in zip(M.shape, block, strict=True)]
    outer, inner = (size[1], size[0]) if across == "column" else size
    sound = (
        all(isinstance(a, np.ndarray) for a in (pointers, ids, data))
        and pointers.dtype.kind in "iu"
        and ids.dtype.kind in "iu"
        and pointers.ndim == ids.ndim == 1
        and data.ndim == (3 if M.format == "bsr" else 1)
        and pointers.size == outer + 1
        and int(pointers[0]) == 0
        and int(pointers[-1]) <= min(ids.size, data.shape[0])
        and not bool((pointers[1:] < pointers[:-1]).any())
    )
    if not sound:
        raise DataError(
            "{name} is not a sound {kind} matrix: its {across} pointers do not fit its entries.",
            name=name,
            kind=M.format.upper(),
            across=across,
        )
    at = _out_of_range(ids, inner)
    if at is not None:
        raise DataError(
            "{name} must have {along} ids from 0 to {last}; got {got} in {across} {row}.",
            name=name,
            along=along,
            across=across,
            last=inner - 1,
            got=int(ids[at]),
            row=int(np.searchsorted(pointers, at, side="right") - 1),
        )


def _check_coordinates(M: Any, name: str) -> None:
    """Check the row and column ids of COO."""
    if M.ndim != 2:
        return  # refused by its dimensions
    for ids, size, what in zip((M.row, M.col), M.shape, ("row", "column"), strict=True):
        if ids.dtype.kind not in "iu" or ids.ndim != 1 or ids.shape != M.data.shape:
            raise DataError("{name} is not a sound COO matrix: its ids do not fit its entries.", name=name)
        at = _out_of_range(ids, size)
        if at is not None:
            told = "{name} must have {what} ids from 0 to {last}; got {got} in entry {at}."
            raise DataError(told, name=name, what=what, last=size - 1, got=int(ids[at]), at=at)


def _check_diagonals(M: Any, name: str) -> None:
    """Check the offsets of DIA."""
    offsets, data = M.offsets, M.data
    sound = offsets.dtype.kind in "iu" and offsets.ndim == 1 and data.ndim == 2 and data.shape[0] == offsets.size
    if not sound or np.unique(offsets).size != offsets.size:
        raise DataError("{name} is not a sound DIA matrix: its offsets do not fit its entries.", name=name)
    low, high = -M.shape[0], M.shape[1]
    if offsets.size and (int(offsets.min()) < low or int(offsets.max()) > high):
        at = int(np.flatnonzero((offsets < low) | (offsets > high))[0])
        told = "{name} must have diagonals from {low} to {high}; got {got}."
        raise DataError(told, name=name, low=low, high=high, got=int(offsets[at]))


def _out_of_range(ids: np.ndarray, size: int) -> int | None:
    """Return where the first id stands that is below 0 or not below `size`; None if all fit."""
    if not ids.size or (int(ids.min()) >= 0 and int(ids.max()) < size):
        return None
    return int(np.flatnonzero((ids < 0) | (ids >= size))[0])
