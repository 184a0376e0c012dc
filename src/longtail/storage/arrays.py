"""Write safetensors files by the safetensors library, and read them as memory maps.

The file is an 8-byte length, a JSON header naming each array's dtype, shape and byte range, and the bytes.
The library's reader copies every array; mapping them keeps loading instant and lets processes share pages.
"""

from __future__ import annotations

import json
import math
import mmap
import os
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from longtail.errors import ModelError
from longtail.storage.checked_before import Stamp, stamp_of
from longtail.storage.manifest import RepeatedKey, object_of
from longtail.storage.open_file import open_regular

DTYPES = {
    "F64": np.float64,
    "F32": np.float32,
    "F16": np.float16,
    "I64": np.int64,
    "I32": np.int32,
    "I16": np.int16,
    "I8": np.int8,
    "U64": np.uint64,
    "U32": np.uint32,
    "U16": np.uint16,
    "U8": np.uint8,
    "BOOL": np.bool_,
}
WRITTEN = ("BOOL", "U8", "I8", "I16", "U16", "F16", "I32", "U32", "F32", "F64", "I64", "U64")  # the last come first
WRITTEN_AT_ONCE = 1 << 24  # bytes
MAX_HEADER = 16 << 20  # bytes
MAX_RANK = 8
COPIED = 1 << 20  # bytes: smaller arrays are copied, so that what happens to the file later cannot change them


def arrays_to_blocks(arrays: dict[str, np.ndarray]) -> Iterator[bytes | memoryview]:
    """Yield the safetensors file for the arrays, block by block; the same arrays give the same bytes.

    They are those of the safetensors library, which would make the whole file in memory.
    """
    named = {name: np.ascontiguousarray(array) for name, array in arrays.items()}
    order = sorted(named, key=lambda name: (-WRITTEN.index(_type_name(named[name])), name))
    header: dict[str, Any] = {}
    at = 0
    for name in order:
        array = named[name]
        entry = {"dtype": _type_name(array), "shape": list(array.shape), "data_offsets": [at, at + array.nbytes]}
        header[name], at = entry, at + array.nbytes
    raw = json.dumps(header, separators=(",", ":"), ensure_ascii=False).encode("utf-8")
    raw += b" " * (-len(raw) % 8)
    yield struct.pack("<Q", len(raw)) + raw
    for name in order:
        flat = named[name].reshape(-1).view(np.uint8)
        for low in range(0, flat.size, WRITTEN_AT_ONCE):
            yield flat[low : low + WRITTEN_AT_ONCE].data


def _type_name(array: np.ndarray) -> str:
    """Return the name that a file has for the type of an array."""
    return next(name for name, dtype in DTYPES.items() if array.dtype == dtype)


def map_arrays(path: Path) -> dict[str, np.ndarray]:
    """Return the arrays of a safetensors file, read-only; large ones are memory-mapped."""
    return arrays_of(path, map_file(path))


def map_file(path: Path, *, in_memory: bool = False) -> np.ndarray:
    """Return the bytes of a file as a read-only array: memory-mapped, or read."""
    return map_stamped(path, in_memory=in_memory)[0]


def map_stamped(path: Path, *, in_memory: bool = False) -> tuple[np.ndarray, Stamp]:
    """Return the bytes of a file, and what tells whether the file was touched later.

    The size is taken from the open file, so that the map cannot be longer than the file was at that moment.
    """
    with open_regular(path) as f:
        stamp = stamp_of(f.fileno())
        return _mapped(f, os.fstat(f.fileno()).st_size, in_memory), stamp


def _mapped(f: BinaryIO, size: int, in_memory: bool) -> np.ndarray:
    if in_memory or size == 0:
        return np.frombuffer(f.read(), dtype=np.uint8)
    return np.frombuffer(mmap.mmap(f.fileno(), size, access=mmap.ACCESS_READ), dtype=np.uint8)


def release_pages(raw: np.ndarray) -> None:
    """Give back the memory of a mapped file that was read through; what is used later is mapped again, from the cache.

    A check touches every page, and a process would keep them all: also those that no prediction ever reads.
    """
    mapped = raw.base.obj if isinstance(raw.base, memoryview) else raw.base
    if isinstance(mapped, mmap.mmap) and hasattr(mapped, "madvise") and hasattr(mmap, "MADV_DONTNEED"):
        mapped.madvise(mmap.MADV_DONTNEED)


def arrays_of(path: Path, raw: np.ndarray) -> dict[str, np.ndarray]:
    """Return the arrays of a safetensors file from its bytes, on the same memory where they are large."""
    header, start = _header(path, raw)
    out: dict[str, np.ndarray] = {}
    for name, entry in header.items():
        if name == "__metadata__":
            continue
        try:
            dtype, shape, low, high = _entry(entry, raw.size - start)
            if low == high:
                array = np.empty(shape, dtype=dtype)
            else:
                stored = raw[start + low : start + high]
                # numbers that do not begin at a multiple of their size would need kernels of their own
                if stored.size < COPIED or (start + low) % dtype.itemsize:
                    stored = stored.copy()
                array = stored.view(dtype).reshape(shape)
        except (KeyError, TypeError, ValueError, OverflowError) as error:
            raise ModelError(f"{path} has a damaged entry for the array {name!r}.") from error
        array.flags.writeable = False
        out[name] = array
    return out


def _header(path: Path, raw: np.ndarray) -> tuple[dict[str, Any], int]:
    """Return the header of a safetensors file, and where its arrays begin."""
    try:
        length = struct.unpack("<Q", raw[:8].tobytes())[0] if raw.size >= 8 else -1
        if not 0 < length <= min(MAX_HEADER, raw.size - 8):
            raise ValueError("header length")
        header = json.loads(raw[8 : 8 + length].tobytes(), object_pairs_hook=object_of)
        if not isinstance(header, dict):
            raise ValueError("header")
    except RepeatedKey as error:
        raise ModelError(f"{path} is damaged: {error}.") from error
    except (ValueError, RecursionError) as error:
        raise ModelError(f"{path} is not a readable safetensors file.") from error
    return header, 8 + length


def _entry(entry: dict[str, Any], n_bytes: int) -> tuple[np.dtype, tuple[int, ...], int, int]:
    """Return type, shape and byte range of an array; raises ValueError and the like where they do not fit."""
    dtype, shape = np.dtype(DTYPES[entry["dtype"]]), tuple(entry["shape"])
    low, high = entry["data_offsets"]
    if not all(isinstance(v, int) and not isinstance(v, bool) and 0 <= v < 1 << 48 for v in (*shape, low, high)):
        raise ValueError("not sizes")
    if len(shape) > MAX_RANK or not low <= high <= n_bytes or high - low != math.prod(shape) * dtype.itemsize:
        raise ValueError("byte range")
    return dtype, shape, low, high
