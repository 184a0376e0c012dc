"""Large arrays in files instead of in memory, while work has a limit on the memory it may take.

Within `limited_memory` an array from `large_empty` that is a good part of the limit is a map of a nameless file: the
system keeps of it in memory what is used and there is room for, and writes the rest back. Without a limit it is an
ordinary array. What is computed with it is the same.
"""

from __future__ import annotations

import contextlib
import ctypes
import mmap
import os
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from longtail.errors import LongtailError

SHARE_IN_MEMORY = 256  # an array of this part of the limit is kept in a file
SMALLEST = 1 << 18  # bytes: smaller ones are not worth a file
SEGMENT = 1 << 26  # bytes of a file that many small arrays share


class Scratch:
    """The files of one piece of work with a limit on memory.

    Parameters
    ----------
    limit : int
        Bytes of memory that the work may take.
    folder : Path
        Where its files are; they have no names and are gone when nothing uses them any more.
    """

    folder: Path
    limit: int

    def __init__(self, limit: int, folder: Path) -> None:
        self.limit, self.folder = limit, folder
        self.smallest: int = max(SMALLEST, limit // SHARE_IN_MEMORY)
        self.n_bytes: int = 0  # of all files so far
        self._segment, self._used = np.empty(0, dtype=np.uint8), 0
        self._lock = threading.Lock()

    def empty(self, size: int, dtype: Any) -> np.ndarray:
        """Return zeros in a file of their own; a full disk is refused before anything is written."""
        n_bytes = size * np.dtype(dtype).itemsize
        try:
            with tempfile.TemporaryFile(dir=self.folder, prefix=".longtail-") as file:
                if hasattr(os, "posix_fallocate"):
                    os.posix_fallocate(file.fileno(), 0, n_bytes)
                else:
                    file.truncate(n_bytes)
                self.n_bytes += n_bytes
                # a view, for scipy: it copies an array that is a small part of what stands below it
                return np.frombuffer(mmap.mmap(file.fileno(), n_bytes), dtype=dtype)[:]
        except OSError as error:
            raise LongtailError(
                f"{self.folder} cannot hold {n_bytes / 1e6:,.0f} MB that the limit on memory keeps in files there: "
                f"{error.strerror or error}; free some space, or allow more memory."
            ) from error

    def keep(self, array: np.ndarray) -> np.ndarray:
        """Return a copy of an array in a file that many share; it cannot be written to."""
        size = -(-array.nbytes // 64) * 64
        if size > SEGMENT // 4:
            out = self.empty(array.size, array.dtype)
        else:
            with self._lock:
                if self._used + size > self._segment.size:
                    self._segment, self._used = self.empty(SEGMENT, np.uint8), 0
                out = self._segment[self._used : self._used + array.nbytes].view(array.dtype)
                self._used += size
        out = out.reshape(array.shape)
        out[...] = array
        return out


_current: Scratch | None = None
MMAP_THRESHOLD, TRIM_THRESHOLD = -3, -1  # of mallopt, as malloc.h of glibc numbers them
RETURNED = 1 << 18  # bytes: blocks of this size go back to the system when they are freed


@contextlib.contextmanager
def limited_memory(limit: int | None, folder: str | Path | None = None) -> Iterator[Scratch | None]:
    """Keep large arrays in files while the block runs; None for no limit.

    Parameters
    ----------
    limit : int or None
        Bytes of memory that the work may take.
    folder : str, Path or None, default=None
        Where the files are; None for the system's folder of temporary files.

    >>> with limited_memory(10**9):
    ...     large_empty(10**8, np.float32).base is None
    False
    """
    global _current
    before = _current
    if limit is not None:
        _return_freed_memory()
        _current = Scratch(limit, Path(tempfile.gettempdir() if folder is None else folder))
    try:
        yield _current
    finally:
        _current = before


def _return_freed_memory() -> None:
    """Let the C library give freed blocks back at once; as a rule it keeps those of up to 32 MB, for each thread."""
    with contextlib.suppress(OSError, AttributeError, TypeError):  # another C library
        library = ctypes.CDLL(None)
        library.mallopt(MMAP_THRESHOLD, RETURNED)
        library.mallopt(TRIM_THRESHOLD, RETURNED)
        library.malloc_trim(0)


def memory_limit() -> int | None:
    """Return the limit on memory of the work that goes on now, or None."""
    return None if _current is None else _current.limit


def large_empty(shape: int | tuple[int, ...], dtype: Any) -> np.ndarray:
    """Return an array like `numpy.empty`; under a limit on memory, a large one is the map of a file.

    >>> large_empty((2, 3), np.int32).shape
    (2, 3)
    """
    n_bytes = int(np.prod(shape, dtype=np.int64)) * np.dtype(dtype).itemsize
    if _current is None or n_bytes < _current.smallest:
        return np.empty(shape, dtype=dtype)
    return _current.empty(n_bytes // np.dtype(dtype).itemsize, dtype).reshape(shape)


def large_joined(arrays: list[np.ndarray], dtype: Any) -> np.ndarray:
    """Return arrays end to end, as `numpy.concatenate` does; under a limit on memory, a large result is in a file."""
    if _current is None:
        return np.concatenate([np.empty(0, dtype), *arrays]).astype(dtype, copy=False)
    out, at = large_empty(sum(a.size for a in arrays), dtype), 0
    for array in arrays:
        out[at : at + array.size] = array
        at += array.size
    return out


def kept_aside(array: np.ndarray) -> np.ndarray:
    """Return an array that is needed later; under a limit on memory, a copy of it in a file."""
    return array if _current is None else _current.keep(array)
