"""Read the arrays of .npz and .npy files: nothing is unpickled, and sizes are checked before memory is taken.

`np.load` takes memory for whatever shape a header claims, and leaves errors of the archive as they are.
"""

from __future__ import annotations

import io
import lzma
import math
import os
import struct
import sys
import tokenize
import zipfile
import zlib
from pathlib import Path
from typing import IO

import numpy as np
import scipy.sparse as sp

from longtail.data.formats.files import COMPRESSED, open_bytes
from longtail.data.limits import DEFAULT_LIMITS, Limits, over_limit
from longtail.errors import DataError
from longtail.validate import check_sparse_arrays

MOST_EMPTY_ROWS = 1_000_000  # that a file may claim without a byte for each
PICKLED = "holds pickled objects, which are not loaded: they can run code"
DAMAGED: tuple[type[Exception], ...] = (
    zipfile.BadZipFile,
    zlib.error,
    lzma.LZMAError,
    struct.error,
    tokenize.TokenError,
    ArithmeticError,
    AttributeError,
    EOFError,
    LookupError,
    NotImplementedError,
    OSError,
    RecursionError,
    SyntaxError,
    TypeError,
    ValueError,
)
HEADERS = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}
MOST_DIMENSIONS = 32


def read_npz_arrays(path: Path, limits: Limits = DEFAULT_LIMITS) -> dict[str, np.ndarray]:
    """Return the arrays of an .npz file by name.

    >>> import tempfile
    >>> file = Path(tempfile.mkdtemp()) / "a.npz"
    >>> np.savez(file, X=np.eye(2))
    >>> read_npz_arrays(file)["X"].tolist()
    [[1.0, 0.0], [0.0, 1.0]]
    """
    with open_bytes(path, limits) as opened:
        file = io.BytesIO(opened.read()) if path.suffix.lower() in COMPRESSED else opened
        start = file.read(6)
        file.seek(0)
        if not start:
            raise DataError(f"{path} is empty.")
        if start == np.lib.format.MAGIC_PREFIX:
            raise DataError(f"{path} holds a single array; an .npz file with X and Y is needed.")
        if start[:1] == b"\x80":
            raise DataError(f"{path} {PICKLED}.")
        try:
            with zipfile.ZipFile(file) as archive:
                return _read_members(path, archive, limits)
        except DAMAGED as error:
            if isinstance(error, DataError):
                raise
            raise DataError(f"{path} is truncated or damaged.") from error


def read_npy_array(path: Path, limits: Limits = DEFAULT_LIMITS) -> np.ndarray:
    """Return the array of an .npy file."""
    with open_bytes(path, limits) as file:
        try:
            return _read_array(path, file, os.fstat(file.fileno()).st_size)
        except DAMAGED as error:
            if isinstance(error, DataError):
                raise
            raise DataError(f"{path} is truncated or damaged.") from error


def scipy_matrix(path: Path, arrays: dict[str, np.ndarray], limits: Limits = DEFAULT_LIMITS) -> sp.csr_array:
    """Return the matrix whose arrays `scipy.sparse.save_npz` wrote, checked before it becomes CSR."""
    try:
        kind = arrays["format"].item()
        kind = kind.decode("ascii") if isinstance(kind, bytes) else kind
        if arrays["shape"].ndim != 1:  # an array of 2**62 empty rows is no bytes in a file, and many as a list
            raise ValueError("shape")
        shape = tuple(int(n) for n in arrays["shape"].tolist())
        if len(shape) != 2 or min(shape) < 0:
            raise DataError(f"{path} must hold a matrix of 2 dimensions; got the shape {shape}.")
        limits.check("rows", shape[0], str(path))
        limits.check("features", shape[1], str(path), "columns")
        if shape[0] > max(MOST_EMPTY_ROWS, sum(array.nbytes for array in arrays.values())):
            raise DataError(
                f"{path} says that it has {shape[0]} rows, nearly all of them empty; it is too small for that."
            )
        return as_checked_csr(path, _matrix_of(kind, arrays, shape))
    except DAMAGED as error:
        if isinstance(error, DataError):
            raise
        raise DataError(f"{path} is not a sparse matrix that scipy can read.") from error


def as_checked_csr(path: Path, M: sp.sparray) -> sp.csr_array:
    """Return a matrix as CSR after all its arrays were checked."""
    if M.dtype.kind not in "biuf":
        raise DataError(f"{path} must hold real numbers; got dtype {M.dtype}.")
    check_sparse_arrays(M, str(path))
    return sp.csr_array(M)


def _matrix_of(kind: str, arrays: dict[str, np.ndarray], shape: tuple[int, ...]) -> sp.sparray:
    """Return the arrays of one of scipy's formats as a matrix; nothing is converted."""
    data = arrays["data"]
    for name in ("indices", "indptr", "row", "col", "coords", "offsets"):
        if name in arrays and arrays[name].dtype.kind not in "iu":
            raise ValueError(name)
    if kind in ("csr", "csc", "bsr"):
        make = {"csr": sp.csr_array, "csc": sp.csc_array, "bsr": sp.bsr_array}[kind]
        return make((data, arrays["indices"], arrays["indptr"]), shape=shape)
    if kind == "coo":
        ids = tuple(arrays["coords"]) if "coords" in arrays else (arrays["row"], arrays["col"])
        return sp.coo_array((data, ids), shape=shape)
    if kind == "dia":
        return sp.dia_array((data, arrays["offsets"]), shape=shape)
    raise ValueError(kind)


def _read_members(path: Path, archive: zipfile.ZipFile, limits: Limits) -> dict[str, np.ndarray]:
    out: dict[str, np.ndarray] = {}
    most = left = limits.bytes_to_unpack()
    for info in archive.infolist():
        name = info.filename.removesuffix(".npy")
        if name == info.filename:
            raise DataError(f"{path} holds {info.filename!r}, which is no array (.npy).")
        if name in out:
            raise DataError(f"{path} holds the array {name!r} twice.")
        if info.flag_bits & 1:
            raise DataError(f"{path} is encrypted, which cannot be read.")
        if info.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
            raise DataError(f"{path} is compressed in a way that cannot be read (method {info.compress_type}).")
        left -= info.file_size
        if left < 0:
            over_limit("unpacked_bytes", most, most - left, str(path))
        with archive.open(info) as member:
            out[name] = _read_array(path, member, info.file_size)
    return out


def _read_array(path: Path, file: IO[bytes], size: int) -> np.ndarray:
    """Read an array whose header must fit the bytes that follow it."""
    version = np.lib.format.read_magic(file)
    if version not in HEADERS:
        raise ValueError(version)
    shape, fortran, dtype = HEADERS[version](file)
    if dtype.hasobject:
        raise DataError(f"{path} {PICKLED}.")
    if dtype.kind not in "biufUSc" or dtype.itemsize == 0 or len(shape) > MOST_DIMENSIONS or min(shape, default=0) < 0:
        raise ValueError(shape)
    count = math.prod(shape)
    if count * dtype.itemsize > size or (count == 0 and max(shape, default=0) > MOST_EMPTY_ROWS):
        raise ValueError(shape)
    out = np.empty(count, dtype=dtype)
    view, done = out.view(np.uint8).data, 0
    while done < len(view):
        chunk = file.read(min(len(view) - done, 1 << 20))
        if not chunk:
            raise EOFError
        view[done : done + len(chunk)] = chunk
        done += len(chunk)
    if (
        dtype.kind == "U"
        and out.view(np.dtype(np.uint32).newbyteorder(dtype.byteorder)).max(initial=0) > sys.maxunicode
    ):
        raise ValueError("letters that there are not")  # Python would not take them back
    return out.reshape(shape[::-1]).T if fortran else out.reshape(shape)
