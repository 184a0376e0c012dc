"""Model folders in memory: reading one, changing what it says, and writing it with sizes and digests that fit."""

from __future__ import annotations

import hashlib
import json
import struct
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from longtail.storage import map_arrays

CODES = {
    "f8": "F64", "f4": "F32", "f2": "F16", "i8": "I64", "i4": "I32", "i2": "I16", "i1": "I8", "u8": "U64", "u4": "U32",
    "u2": "U16", "u1": "U8", "b1": "BOOL",
}  # fmt: skip


def safetensors_bytes(arrays: dict[str, np.ndarray], header: dict[str, Any] | None = None) -> bytes:
    """Return a safetensors file; `header` entries replace those that would be right."""
    entries, body = {}, bytearray()
    for name, array in arrays.items():
        raw = np.ascontiguousarray(array).tobytes()
        code = CODES.get(array.dtype.str[1:], "F32")
        entries[name] = {"dtype": code, "shape": list(array.shape), "data_offsets": [len(body), len(body) + len(raw)]}
        body += raw
    head = json.dumps({**entries, **(header or {})}).encode("utf-8", "surrogatepass")
    head += b" " * (-len(head) % 8)
    return struct.pack("<Q", len(head)) + head + bytes(body)


@dataclass
class ModelFiles:
    """A model folder: its manifest, the arrays of each part and the records of labels.

    `headers` holds entries of array files that are written as they are, right or wrong.
    """

    manifest: dict[str, Any]
    arrays: dict[str, dict[str, np.ndarray]]
    labels: list[Any] | None
    headers: dict[str, dict[str, Any]] = field(default_factory=dict)

    @classmethod
    def read(cls, folder: Path) -> ModelFiles:
        """Read a sound folder."""
        manifest = json.loads((folder / "manifest.json").read_text("utf-8"))
        arrays = {
            name: {key: np.array(value) for key, value in map_arrays(folder / part["file"]).items()}
            for name, part in manifest["parts"].items()
            if "file" in part
        }
        labels = None
        if "labels" in manifest:
            lines = (folder / manifest["labels"]).read_text("utf-8", "surrogatepass").splitlines()
            labels = [json.loads(line) for line in lines]
        return cls(manifest, arrays, labels)

    def files(self) -> dict[str, bytes]:
        """Return the files of the folder, with the digests that fit them."""
        manifest = json.loads(json.dumps(self.manifest))
        manifest = manifest if isinstance(manifest, dict) else {"odd": manifest}
        out: dict[str, bytes] = {}
        listed: dict[str, Any] = {}
        for part, arrays in self.arrays.items():
            raw = safetensors_bytes(arrays, self.headers.get(part))
            name = _add(out, listed, part, "safetensors", raw)
            parts = manifest.get("parts")
            entry = parts.get(part) if isinstance(parts, dict) else None
            if isinstance(entry, dict) and "file" in entry:
                entry["file"] = name
        if self.labels is not None:
            raw = "".join(json.dumps(record) + "\n" for record in self.labels).encode()
            name = _add(out, listed, "labels", "jsonl", raw)
            if "labels" in manifest:
                manifest["labels"] = name
        if "files" in manifest:
            manifest["files"] = listed
        out["manifest.json"] = json.dumps(manifest).encode()
        return out


def _add(out: dict[str, bytes], listed: dict[str, Any], part: str, suffix: str, raw: bytes) -> str:
    """Add a file under the name that its digest gives it, and return the name."""
    digest = hashlib.sha256(raw).hexdigest()
    name = f"{part}.{digest[:16]}.{suffix}"
    out[name] = raw
    listed[name] = {"bytes": len(raw), "sha256": digest}
    return name
