"""The manifest of a row store, `store.json`: what it says, read within limits and checked before any file is opened."""

from __future__ import annotations

import re
from pathlib import Path

from longtail.data.limits import Limits
from longtail.data.row_store.pieces import PIECE_BYTES
from longtail.errors import DataError
from longtail.storage import Facts, ListOf, MapOf, Record, Text, Value, Whole, fields_problem, json_problem, load_json
from longtail.validate import Json

MANIFEST = "store.json"
FORMAT, VERSION = "longtail-rows", 1
LARGEST = 64 << 20  # bytes of a manifest
PIECE = re.compile(r"[A-Za-z_.]+\.[0-9]{4,6}\.[0-9a-f]{16}")
OURS = re.compile(rf"(?:{PIECE.pattern}|[A-Za-z_.]+\.[0-9]{{4,6}}\.tmp|store\.json(?:\.tmp)?)")
SHA256 = re.compile(r"[0-9a-f]{64}")
NUMBER_TYPES = {"X.pointers": "int64", "X.features": "int32", "X.values": "float32"}
LABEL_TYPES = {"Y.pointers": "int64", "Y.labels": "int32", "Y.weights": "float32"}
STRINGS = ("texts", "ids", "label_names", "label_texts")
OF_FEATURES = "features."  # arrays of the part that made X of the texts
DTYPES = ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float32", "float64")

FIELDS: dict[str, Value] = {
    "format": Text(100),
    "version": Whole(1, VERSION),
    "name": Text(1000),
    "rows": Whole(1),
    "labels": Whole(0, 2**31 - 1),
    "features": Whole(0, 2**31 - 1, none=True),
    "arrays": MapOf(Record({"dtype": Text(10), "entries": Whole(), "files": ListOf(Text(200))})),
    "files": MapOf(Record({"bytes": Whole(1, PIECE_BYTES), "sha256": Text(64)}), names=PIECE.pattern),
    "text_features": Record({"kind": Text(100), "params": Facts()}, none=True),
}


def read_manifest(path: Path, limits: Limits) -> Json:
    """Return the checked manifest of a store."""
    file = path / MANIFEST
    try:
        if file.exists() and not file.is_file():
            raise DataError(f"{file} is no file.")
        with file.open("rb") as f:
            raw = f.read(LARGEST + 1)
    except FileNotFoundError as error:
        raise DataError(f"{path} is not a row store: it has no {MANIFEST}.") from error
    except OSError as error:
        raise DataError(f"{file} cannot be read: {error.strerror}.") from error
    if len(raw) > LARGEST:
        raise DataError(f"{file} is larger than a manifest may be, {LARGEST >> 20} MiB.")
    try:
        manifest = load_json(raw.decode("utf-8"))
    except (ValueError, RecursionError) as error:
        raise DataError(f"{file} is damaged: {json_problem(error)}.") from error
    if not isinstance(manifest, dict) or manifest.get("format") != FORMAT:
        raise DataError(f"{file} is not the manifest of a row store.")
    version = manifest.get("version")
    if isinstance(version, int) and not isinstance(version, bool) and version > VERSION:
        raise DataError(
            f"{path} has version {version} of the row store; this longtail reads up to {VERSION}. Upgrade longtail, or "
            "convert the data again."
        )
    problem = fields_problem(manifest, FIELDS, frozenset(), "")
    problem = _files_problem(manifest) if problem is None else problem
    if problem is not None:
        raise DataError(f"{file} is damaged: {problem}.")
    limits.check("rows", manifest["rows"], str(path))
    limits.check("labels", manifest["labels"], str(path))
    limits.check("features", manifest["features"] or 0, str(path))
    return manifest


def _files_problem(manifest: Json) -> str | None:
    """Return why arrays and files do not fit each other, or None."""
    sizes = {"int8": 1, "uint8": 1, "int16": 2, "uint16": 2, "int32": 4, "uint32": 4, "float32": 4}
    named: set[str] = set()
    for name, entry in manifest["arrays"].items():
        if entry["dtype"] not in DTYPES:
            return f"the array {name!r} has the type {entry['dtype']!r}"
        for file in entry["files"]:
            if file in named or file not in manifest["files"]:
                return f"the file {file!r} of the array {name!r} is not listed, or stands twice"
            named.add(file)
        held = [manifest["files"][file]["bytes"] for file in entry["files"]]
        if any(size != PIECE_BYTES for size in held[:-1]):
            return f"a piece of the array {name!r} has not {PIECE_BYTES} bytes"
        if sum(held) != entry["entries"] * sizes.get(entry["dtype"], 8):
            return f"the files of the array {name!r} have not the bytes of its {entry['entries']} entries"
    for name, entry in manifest["files"].items():
        if name not in named:
            return f"the file {name!r} belongs to no array"
        if not SHA256.fullmatch(entry["sha256"]):
            return f"the digest of {name!r} is no SHA-256"
    return None
