"""The manifest of a model folder: read within limits, and of the declared types, before anything it names is opened."""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from longtail.errors import ModelError
from longtail.storage.open_file import open_regular, short_path
from longtail.storage.values import LARGEST_INT, Facts, MapOf, Record, Text, Value, Whole, fields_problem, shown
from longtail.validate import Json

FORMAT = "longtail-model"
FORMAT_VERSION = 2  # 1: a line of JSON for every label; 2: labels are arrays
MANIFEST = "manifest.json"
SIGNATURE = "manifest.sig"
DATA_FILE = re.compile(r"[a-z_]+\.[0-9a-f]{16}\.(?:safetensors|jsonl)")
OURS = re.compile(rf"(?:{DATA_FILE.pattern}|manifest\.(?:json|sig))(?:\.tmp)?")
LARGEST_MANIFEST = 64 << 20  # bytes
DEEPEST = 16  # levels of lists and objects
DEEP = f"its lists and objects are nested more than {DEEPEST} levels deep"
SHA256 = re.compile(r"[0-9a-f]{64}")

FIELDS: dict[str, Value] = {
    "format": Text(100),
    "version": Whole(1, FORMAT_VERSION),
    "kind": Text(100),
    "libraries": MapOf(Text(200)),
    "parts": MapOf(Record({"kind": Text(100), "params": Facts(), "file": Text(200)}, frozenset({"file"}))),
    "labels": Text(200),
    "files": MapOf(Record({"bytes": Whole(), "sha256": Text(64)}), names=DATA_FILE.pattern),
}
OPTIONAL = frozenset({"libraries", "labels"})
LABEL: dict[str, Value] = {"name": Text(1 << 20), "count": Whole(), "text": Text(1 << 24)}


def read_manifest(path: str | Path) -> Json:
    """Return the checked manifest of a model folder."""
    path = Path(path)
    return parse_manifest(path, manifest_bytes(path))


def manifest_bytes(path: Path) -> bytes:
    """Return the manifest of a model folder as it stands in the file."""
    _check_there(path)
    file = path / MANIFEST
    if not os.path.lexists(file):
        raise ModelError(f"{path} is not a model folder: it has no {MANIFEST}.")
    try:
        with open_regular(file) as f:
            raw = f.read(LARGEST_MANIFEST + 1)
    except OSError as error:
        raise ModelError(f"{file} cannot be read: {error.strerror}.") from error
    if len(raw) > LARGEST_MANIFEST:
        raise ModelError(f"{file} is larger than a manifest may be, {LARGEST_MANIFEST >> 20} MiB.")
    return raw


def manifest_digest(raw: bytes) -> str:
    """Return a short name of a model: the digest of its manifest, which names the digests of all its files."""
    return hashlib.sha256(raw).hexdigest()[:16]


def _check_there(path: Path) -> None:
    """Refuse a path that leads to nothing, or that the system does not take."""
    try:
        path.stat()
    except (FileNotFoundError, NotADirectoryError) as error:
        raise ModelError(f"{short_path(path)} does not exist.") from error
    except (OSError, ValueError) as error:  # the second: a NUL in the path
        why = error.strerror if isinstance(error, OSError) else error
        raise ModelError(f"{short_path(path)} cannot be read: {why}.") from error


def parse_manifest(path: Path, raw: bytes) -> Json:
    """Return the manifest of a model folder from its bytes, checked."""
    file = path / MANIFEST
    try:
        manifest = load_json(raw.decode("utf-8"))
    except (ValueError, RecursionError) as error:
        raise ModelError(f"{file} is damaged: {json_problem(error)}.") from error
    if not isinstance(manifest, dict) or manifest.get("format") != FORMAT:
        raise ModelError(f"{file} is not the manifest of a longtail model.")
    version = manifest.get("version")
    if not isinstance(version, int) or version < 1:
        raise ModelError(f"{file} is damaged: the format version is {shown(version)}.")
    if version > FORMAT_VERSION:
        raise ModelError(
            f"{path} has format version {shown(version)}; this longtail reads up to {FORMAT_VERSION}. Upgrade longtail."
        )
    known = {name: value for name, value in manifest.items() if name in FIELDS}
    problem = fields_problem(known, FIELDS, OPTIONAL, "")
    if problem is not None:
        raise ModelError(f"{file} is damaged: {problem}.")
    for name, entry in manifest["files"].items():
        if not SHA256.fullmatch(entry["sha256"]):
            raise ModelError(f"{file} is damaged: the digest of {name!r} is no SHA-256.")
    for name in (*(entry["file"] for entry in manifest["parts"].values() if "file" in entry), manifest.get("labels")):
        if name is not None and name not in manifest["files"]:
            raise ModelError(f"{file} is damaged: the file {name!r} is not listed.")
    return manifest


def parse_labels(file: Path, raw: bytes) -> list[Json]:
    """Return the records of a file of labels, one JSON object a line, checked."""
    labels: list[Json] = []
    try:
        lines = raw.decode("utf-8", "surrogatepass").split("\n")
    except UnicodeDecodeError as error:
        raise ModelError(f"{file} is damaged: it is not UTF-8.") from error
    for number, line in enumerate(lines, 1):
        if not line:
            continue
        try:
            record = json.loads(line)
        except (ValueError, RecursionError) as error:
            raise ModelError(f"{file} is damaged: line {number}: {json_problem(error)}.") from error
        if not _is_usual_label(record):
            problem: str | None = "it is no object"
            if isinstance(record, dict):
                problem = fields_problem(record, LABEL, frozenset({"count", "text"}), "")
            if problem:
                raise ModelError(f"{file} is damaged: line {number} is not the record of a label: {problem}.")
        labels.append(record)
    return labels


def _is_usual_label(record: object) -> bool:
    """Say whether a record has a short name and a count and nothing else, as most have: there may be millions."""
    if type(record) is not dict or len(record) != 2:
        return False
    name, count = record.get("name"), record.get("count")
    return type(name) is str and len(name) < 1000 and type(count) is int and 0 <= count <= LARGEST_INT


class RefusedJson(ValueError):
    """JSON that is well formed, or nearly so, and refused all the same; the words say why."""


class RepeatedKey(RefusedJson):
    """An object in JSON has a key twice: which of the values is meant, programs do not agree on."""

    def __init__(self, key: str) -> None:
        super().__init__(f"the key {shown(key)} stands twice in one object")


def json_problem(error: Exception) -> str:
    """Return why a file is no JSON that we read, from what reading it raised."""
    if isinstance(error, RefusedJson):
        return str(error)
    if isinstance(error, RecursionError):
        return DEEP
    if isinstance(error, UnicodeDecodeError):
        return "it is not UTF-8"
    return "it is not JSON" if isinstance(error, json.JSONDecodeError) else "a number in it has too many digits"


def object_of(pairs: list[tuple[str, object]]) -> Json:
    """Return the object with these keys and values; raises RepeatedKey."""
    out = dict(pairs)
    if len(out) < len(pairs):
        raise RepeatedKey(Counter(key for key, _ in pairs).most_common(1)[0][0])
    return out


def load_json(text: str) -> object:
    """Return JSON as objects; refuse NaN and infinity, which are no JSON, deep nesting and keys that stand twice.

    Raises ValueError.
    """
    found = _DECODER.decode(text)
    if text.count("[") + text.count("{") > DEEPEST:
        level = [found]
        for _ in range(DEEPEST):
            level = [inner for outer in level for inner in _within(outer)]
        if level:
            raise RefusedJson(DEEP)
    return found


def _within(value: object) -> Iterator[object]:
    if isinstance(value, dict):
        yield from value.values()
    elif isinstance(value, list):
        yield from value


def _refuse(constant: str) -> object:
    raise RefusedJson(f"{constant} is no number of JSON")


_DECODER = json.JSONDecoder(parse_constant=_refuse, object_pairs_hook=object_of)  # made once: it takes its time
