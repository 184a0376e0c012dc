"""One array as several files, its pieces: written one after the other, and mapped side by side as one array again."""

from __future__ import annotations

import contextlib
import ctypes
import hashlib
import mmap
import os
import stat
import weakref
from collections.abc import Sequence
from pathlib import Path
from typing import BinaryIO

import numpy as np

from longtail.errors import DataError
from longtail.validate import Json

PIECE_BYTES = 1 << 28  # of every piece but the last; a multiple of the pages of any machine
HASHED_AT_ONCE = 1 << 22  # bytes
MAP_FIXED = 0x10
FAILED = ctypes.c_void_p(-1).value


class ArrayWriter:
    """Writes one array piece by piece; a finished piece carries the beginning of its digest in its name."""

    dtype: np.dtype
    folder: Path
    name: str
    piece_bytes: int

    def __init__(self, folder: Path, name: str, dtype: type[np.generic], piece_bytes: int = PIECE_BYTES) -> None:
        self.folder, self.name, self.dtype, self.piece_bytes = folder, name, np.dtype(dtype), piece_bytes
        self.entries: int = 0
        self.files: dict[str, Json] = {}
        self._file: BinaryIO | None = None
        self._written, self._digest = 0, hashlib.sha256()

    def add(self, values: np.ndarray) -> None:
        """Append values."""
        values = np.ascontiguousarray(values, dtype=self.dtype)
        self.entries += values.size
        raw = values.reshape(-1).view(np.uint8).data
        while len(raw):
            if self._file is None:
                self._file = self._temporary.open("xb")
            part = raw[: self.piece_bytes - self._written]
            self._file.write(part)
            self._digest.update(part)
            self._written += len(part)
            raw = raw[len(part) :]
            if self._written == self.piece_bytes:
                self._close_piece()

    def finish(self) -> Json:
        """Close the last piece; return the entry of the array for the manifest."""
        if self._file is not None:
            self._close_piece()
        return {"dtype": self.dtype.name, "entries": self.entries, "files": list(self.files)}

    def mapped(self) -> np.ndarray:
        """Return what was written, mapped; nothing can be added after."""
        self.finish()
        sizes = [entry["bytes"] for entry in self.files.values()]
        return map_pieces([self.folder / name for name in self.files], sizes, self.dtype)

    def remove(self) -> None:
        """Remove the files."""
        for name in self.files:
            (self.folder / name).unlink()

    def close(self) -> None:
        """Let go of an open file, after an error."""
        if self._file is not None:
            with contextlib.suppress(OSError):  # what is left to write may not fit
                self._file.close()
            self._file = None

    @property
    def _temporary(self) -> Path:
        return self.folder / f"{self.name}.{len(self.files):04}.tmp"

    def _close_piece(self) -> None:
        file, temporary = self._file, self._temporary
        if file is None:
            return
        file.flush()
        os.fsync(file.fileno())
        file.close()
        digest = self._digest.hexdigest()
        name = f"{self.name}.{len(self.files):04}.{digest[:16]}"
        temporary.replace(self.folder / name)
        self.files[name] = {"bytes": self._written, "sha256": digest}
        self._file, self._written, self._digest = None, 0, hashlib.sha256()


def map_pieces(files: Sequence[Path], sizes: Sequence[int], dtype: np.dtype) -> np.ndarray:
    """Return the numbers in some files, one behind the other, as one read-only array that is mapped into memory.

    Every file but the last must have a multiple of `PIECE_BYTES`, and each the size that is given; else it is refused.
    """
    if not files:
        return np.empty(0, dtype=dtype)
    opened: list[int] = []
    try:
        for file, size in zip(files, sizes, strict=True):
            opened.append(_open_regular(file))
            there = os.fstat(opened[-1]).st_size
            if there != size:
                raise DataError(f"{file} is damaged: {there} bytes instead of {size}.")
        if len(opened) == 1:
            whole = mmap.mmap(opened[0], sizes[0], access=mmap.ACCESS_READ)
            # a view, for scipy: it copies an array that is a small part of what stands below it
            return np.frombuffer(whole, dtype=dtype)[:]
        return np.frombuffer(_mapped_together(opened, sizes), dtype=dtype)[:]
    except OSError as error:
        raise DataError(f"{files[0].parent} cannot be mapped into memory: {error.strerror}.") from error
    finally:
        for number in opened:
            os.close(number)


def release_pages(raw: np.ndarray) -> None:
    """Let the system take back the memory of mapped files that were read through; they are read again when needed."""
    if not raw.size or os.name != "posix":
        return
    base: object = raw
    while isinstance(base, np.ndarray):
        base = base.base
    base = base.obj if isinstance(base, memoryview) else base
    if isinstance(base, mmap.mmap):
        base.madvise(mmap.MADV_DONTNEED)
    elif isinstance(base, ctypes.Array):
        _library().madvise(ctypes.addressof(base), ctypes.sizeof(base), mmap.MADV_DONTNEED)


def digest_of(raw: np.ndarray) -> str:
    """Return the SHA-256 of bytes."""
    digest = hashlib.sha256()
    for low in range(0, raw.size, HASHED_AT_ONCE):
        digest.update(raw[low : low + HASHED_AT_ONCE].data)
    return digest.hexdigest()


def _open_regular(file: Path) -> int:
    """Open a regular file for reading; opening never waits for a pipe."""
    try:
        number = os.open(file, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))
    except FileNotFoundError as error:
        raise DataError(f"{file} is missing.") from error
    except OSError as error:
        raise DataError(f"{file} cannot be read: {error.strerror}.") from error
    if not stat.S_ISREG(os.fstat(number).st_mode):
        os.close(number)
        raise DataError(f"{file} is not a regular file.")
    return number


def _mapped_together(opened: Sequence[int], sizes: Sequence[int]) -> memoryview:
    """Map open files side by side: addresses are reserved for all, and each file is put in its place there."""
    if os.name != "posix":  # read, where files cannot be mapped to a chosen address
        parts = [mmap.mmap(n, s, access=mmap.ACCESS_READ) for n, s in zip(opened, sizes, strict=True)]
        return memoryview(b"".join(part[:] for part in parts))
    library, total = _library(), sum(sizes)
    reserved = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS
    start = library.mmap(None, total, mmap.PROT_READ, reserved, -1, 0)
    if start in (None, FAILED):
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    block = (ctypes.c_uint8 * total).from_address(start)
    weakref.finalize(block, library.munmap, start, total).atexit = False
    at = start
    for number, size in zip(opened, sizes, strict=True):
        if library.mmap(at, size, mmap.PROT_READ, mmap.MAP_SHARED | MAP_FIXED, number, 0) != at:
            raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
        at += size
    return memoryview(block).cast("B").toreadonly()


def _library() -> ctypes.CDLL:
    """Return the C library, for `mmap` with addresses, which Python's has not."""
    library = ctypes.CDLL(None, use_errno=True)
    library.mmap.restype = ctypes.c_void_p
    library.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, *[ctypes.c_int] * 3, ctypes.c_int64]
    library.munmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t]
    library.madvise.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
    return library
