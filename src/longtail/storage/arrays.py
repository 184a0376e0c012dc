"""Write safetensors files by the safetensors library, and read them as memory maps.

The file is an 8-byte length, a JSON header naming each array's dtype, shape and byte range, and the bytes.
The library's reader copies every array; mapping them keeps loading instant and lets processes share pages.
"""

from __future__ import annotations

import json
import struct
from pathlib import Path
from typing import Any

import numpy as np

from longtail.errors import ModelError

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
MAX_HEADER = 100_000_000


def arrays_to_bytes(arrays: dict[str, np.ndarray]) -> bytes:
    """Return the safetensors file for the arrays; the same arrays give the same bytes."""
    from safetensors.numpy import save

    return save({name: np.ascontiguousarray(a) for name, a in sorted(arrays.items())})


def map_arrays(path: Path) -> dict[str, np.ndarray]:
    """Return the arrays of a safetensors file, read-only and memory-mapped."""
    try:
        size = path.stat().st_size
        with path.open("rb") as f:
            head = f.read(8)
            length = struct.unpack("<Q", head)[0] if len(head) == 8 else -1
            if not 0 < length <= min(MAX_HEADER, size - 8):
                raise ValueError("header length")
            header: dict[str, Any] = json.loads(f.read(length))
            if not isinstance(header, dict):
                raise ValueError("header")
    except (ValueError, RecursionError) as error:
        raise ModelError(f"{path} is not a readable safetensors file.") from error
    start = 8 + length
    mapped = np.memmap(path, dtype=np.uint8, mode="r") if size > start else np.empty(0, np.uint8)
    out: dict[str, np.ndarray] = {}
    for name, entry in header.items():
        if name == "__metadata__":
            continue
        try:
            dtype = np.dtype(DTYPES[entry["dtype"]])
            shape = tuple(int(v) for v in entry["shape"])
            low, high = (int(v) for v in entry["data_offsets"])
            count = int(np.prod(shape, dtype=np.int64))
            inside = 0 <= low <= high <= size - start
            if min(shape, default=0) < 0 or not inside or high - low != count * dtype.itemsize:
                raise ValueError("byte range")
        except (KeyError, TypeError, ValueError, OverflowError) as error:
            raise ModelError(f"{path} has a damaged entry for the array '{name}'.") from error
        if count == 0:
            out[name] = np.empty(shape, dtype=dtype)
        else:
            out[name] = np.asarray(mapped[start + low : start + high]).view(dtype).reshape(shape)
    return out
