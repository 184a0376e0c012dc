"""Read model folders through one gate: size, digest, signature, schema and cross-checks, and only then objects.

Every file is opened once. What was digested and checked is what is used: the same open file, mapped into memory.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from longtail.errors import ModelError, ParameterError, near
from longtail.storage.arrays import arrays_of, map_stamped, release_pages
from longtail.storage.check import ARRAYS, CROSSCHECKS, PARAMETERS, PartProblem, check_part
from longtail.storage.checked_before import Stamp, note_checked, was_checked
from longtail.storage.label_file import LabelColumns, columns_problem
from longtail.storage.manifest import (
    MANIFEST,
    SIGNATURE,
    manifest_bytes,
    manifest_digest,
    parse_labels,
    parse_manifest,
    read_manifest,
)
from longtail.storage.open_file import model_path
from longtail.storage.part import Part
from longtail.storage.schema import FolderSchema, PartSchema
from longtail.storage.signing import check_signature, checked_key
from longtail.storage.values import fields_problem, shown
from longtail.validate import Json, check_flag

ONCE = "once"  # of `verify`: check all the first time on this machine
RETRIES = 3  # a save may replace the model while it is being read
HASHED_AT_ONCE = 1 << 24  # bytes
Folders = Mapping[str, FolderSchema]


@dataclass(frozen=True)
class LoadedFolder:
    """A model folder as read and checked: the manifest, its parts and the label records."""

    path: Path
    manifest: Json
    parts: dict[str, Part]
    labels: Sequence[Json] = field(default_factory=list)
    digest: str = ""  # of the manifest: a short name of this very model


def load_folder(
    path: str | Path,
    folders: Folders,
    *,
    verify: bool | str = True,
    in_memory: bool = False,
    key: str | Path | bytes | None = None,
) -> LoadedFolder:
    """Read a model folder, running no code from it; nothing comes out that does not follow its schema.

    Parameters
    ----------
    path : str or Path
        The folder.
    folders : dict of str to FolderSchema
        The kinds of folders that are read, by kind.
    verify : bool or "once", default=True
        Check every file against its digest; sizes and schemas are always checked. "once": check all the first time on
        this machine, and later only that no file was touched since.
    in_memory : bool, default=False
        Read all arrays instead of mapping them: what happens to the files later does not matter then.
    key : str, Path, bytes or None, default=None
        A public key, or its file: the folder must have been signed with its other half. Digests are checked then.

    Returns
    -------
    loaded : LoadedFolder
        The manifest, the parts and the label records.
    """
    path, key = model_path(path), checked_key(key)
    in_memory = check_flag("in_memory", in_memory)
    if not (isinstance(verify, bool | np.bool_) or (isinstance(verify, str) and verify == ONCE)):
        raise ParameterError(name="verify", allowed=f"True, False or {ONCE!r}", got=verify)
    for _ in range(RETRIES):
        before = _manifest_now(path)
        try:
            return _load_once(path, folders, verify, in_memory, key)
        except ModelError:
            if before == _manifest_now(path):  # nobody has replaced the model meanwhile: it is as it is
                raise
    return _load_once(path, folders, verify, in_memory, key)


def _manifest_now(path: Path) -> bytes | None:
    try:
        return manifest_bytes(path)
    except ModelError:
        return None


def _load_once(
    path: Path, folders: Folders, verify: bool | str, in_memory: bool, key: str | Path | bytes | None
) -> LoadedFolder:
    raw = manifest_bytes(path)
    if key is not None:
        check_signature(path, raw, key)
    manifest = parse_manifest(path, raw)
    schema = folder_schema(path, manifest, folders)
    opened = {name: _open_stamped(path / name, entry, in_memory) for name, entry in manifest["files"].items()}
    files = {name: mapped for name, (mapped, _) in opened.items()}
    stamps = {name: stamp for name, (_, stamp) in opened.items()}
    known = verify == ONCE and key is None and not in_memory and was_checked(raw, stamps)
    if (verify or key is not None) and not known:
        for name, entry in manifest["files"].items():
            _check_digest(path / name, files[name], entry)
    parts = {}
    for name, entry in manifest["parts"].items():
        part = _part(path, entry, files)
        part_schema = _part_schema(path, schema, name, part.kind)
        try:
            if not known:
                check_part(part, part_schema)
        except PartProblem as error:
            raise ModelError(f"{path}: the part '{name}' ({part.kind}) is damaged: {error}.") from error
        parts[name] = Part(part.kind, part.params, part.arrays, checked=True)
    labels: Sequence[Json] = []
    if "labels" in manifest:
        labels = _labels(path / manifest["labels"], files[manifest["labels"]], known)
    if verify == ONCE and not known and not in_memory:
        note_checked(raw, stamps)
    for mapped in files.values():
        release_pages(mapped)
    return LoadedFolder(path, manifest, parts, labels, manifest_digest(raw))


def _labels(file: Path, raw: np.ndarray, known: bool = False) -> Sequence[Json]:
    """Return the records of the labels of a model, checked: lines of JSON, or arrays that stay mapped."""
    if file.suffix != ".safetensors":
        return parse_labels(file, raw.tobytes())
    arrays = arrays_of(file, raw)
    problem = None if known else columns_problem(arrays)
    if problem is not None:
        raise ModelError(f"{file} is damaged: {problem}.")
    return LabelColumns.of_arrays(arrays)


def folder_schema(path: Path, manifest: Json, folders: Folders) -> FolderSchema:
    """Return the schema of a folder of this kind; unknown kinds, parts and entries of the manifest are refused."""
    kind = manifest["kind"]
    if kind not in folders:
        _refuse_newer(f"{path} holds a model", kind, folders)
        raise ModelError(f"{path} holds a model of the unknown kind {shown(kind)}.{near(kind, list(folders))}")
    schema = folders[kind]
    facts = {name: value for name, value in manifest.items() if name in schema.facts}
    problem = fields_problem(facts, schema.facts, frozenset(schema.facts), "")
    if problem is not None:
        raise ModelError(f"{path / MANIFEST} is damaged: {problem}.")
    for name in manifest["parts"]:
        if name not in schema.parts:
            raise ModelError(f"{path / MANIFEST} is damaged: it has an unknown part {shown(name)}.")
    for name in schema.parts:
        if name not in manifest["parts"] and name not in schema.optional:
            raise ModelError(f"{path} is damaged: the part '{name}' is missing.")
    if schema.has_labels != ("labels" in manifest):
        raise ModelError(
            f"{path} is damaged: its file of labels {'is missing' if schema.has_labels else 'is not known'}."
        )
    return schema


def verify_folder(path: str | Path, folders: Folders, *, key: str | Path | bytes | None = None) -> list[Json]:
    """Check every file of a model folder completely, and say what holds.

    Returns one record per file with `name`, `bytes`, `ok`, `problem` (a sentence without the file's name, or None) and
    what was looked at: `digest`, `schema` and `crosschecks`, each True, False, or None where it could not be looked at
    or there is nothing to look at. The manifest comes first; with a `key` its record also has `signature`.
    """
    path, key = model_path(path), checked_key(key)
    raw = manifest_bytes(path)
    if key is not None:
        check_signature(path, raw, key)
    manifest = parse_manifest(path, raw)
    schema = folder_schema(path, manifest, folders)
    first: Json = {"name": MANIFEST, "bytes": len(raw), "digest": None, "schema": True, "crosschecks": None}
    if key is not None:
        first["signature"] = True
    by_file = {entry["file"]: name for name, entry in manifest["parts"].items() if "file" in entry}
    records = [{**first, **_manifest_only_parts(path, manifest, schema)}]
    for name, entry in sorted(manifest["files"].items()):
        records.append(_verified(path, name, entry, manifest, schema, by_file.get(name)))
    return records


def unnamed_files(path: str | Path) -> list[str]:
    """Return the names of what lies in a model folder and is not named by its manifest: never read, never signed."""
    path = model_path(path)
    named = {MANIFEST, SIGNATURE, *read_manifest(path)["files"]}
    try:
        return sorted({file.name for file in path.iterdir()} - named)
    except OSError as error:
        raise ModelError(f"{path} cannot be read: {error.strerror}.") from error


def _manifest_only_parts(path: Path, manifest: Json, schema: FolderSchema) -> Json:
    """Return whether the parts that have no file, and so stand in the manifest alone, follow their schemas."""
    for name, entry in manifest["parts"].items():
        if "file" not in entry:
            problem = _part_problem(path, schema, name, _part(path, entry, {}))
            if problem is not None:
                return {"ok": False, "problem": f"is damaged: the part '{name}': {problem}", "schema": False}
    return {"ok": True, "problem": None}


def _verified(path: Path, name: str, entry: Json, manifest: Json, schema: FolderSchema, part: str | None) -> Json:
    """Return the record of one file."""
    out: Json = {"name": name, "bytes": entry["bytes"], "ok": False, "problem": None}
    out |= {"digest": None, "schema": None, "crosschecks": None}
    try:
        raw, _ = _open_stamped(path / name, entry, False)
        _check_digest(path / name, raw, entry)
    except ModelError as error:
        return {**out, "digest": False, "problem": str(error).removeprefix(f"{path / name} ").removesuffix(".")}
    out["digest"] = True
    try:
        if part is not None:
            _verify_part(path, schema, part, _part(path, manifest["parts"][part], {name: raw}), out)
        elif name == manifest.get("labels"):
            _labels(path / name, raw)
            out["schema"] = True
    except ModelError as error:
        problem = str(error).removeprefix(f"{path / name} is damaged: ").removesuffix(".")
        return {**out, "schema": False, "problem": f"is damaged: {problem}"}
    return {**out, "ok": out["problem"] is None}


def _verify_part(path: Path, schema: FolderSchema, name: str, part: Part, out: Json) -> None:
    """Note in the record of a part's file what holds of its schema."""
    problem = _part_problem(path, schema, name, part)
    stage = None if problem is None else problem.stage
    out["schema"] = stage not in (PARAMETERS, ARRAYS)
    out["crosschecks"] = None if not out["schema"] else stage != CROSSCHECKS
    out["problem"] = None if problem is None else f"is damaged: {problem}"


def _part_problem(path: Path, schema: FolderSchema, name: str, part: Part) -> PartProblem | None:
    try:
        check_part(part, _part_schema(path, schema, name, part.kind))
    except PartProblem as problem:
        return problem
    return None


def _part(path: Path, entry: Json, files: Mapping[str, np.ndarray]) -> Part:
    arrays = arrays_of(path / entry["file"], files[entry["file"]]) if "file" in entry else {}
    return Part(entry["kind"], entry["params"], arrays)


def _part_schema(path: Path, schema: FolderSchema, name: str, kind: str) -> PartSchema:
    known = schema.parts[name].get(kind)
    if known is None:
        kinds = sorted(schema.parts[name])
        _refuse_newer(f"{path} has a part", kind, kinds)
        raise ModelError(f"{path} has a part of the kind {shown(kind)}; this longtail knows {kinds}.")
    return known


def _refuse_newer(whose: str, kind: str, known: Iterable[str]) -> None:
    """Refuse a kind that is a later version of one that is known."""
    name, _, version = kind.partition(".v")
    versions = [
        int(older) for of, _, older in (other.partition(".v") for other in known) if of == name and older.isdigit()
    ]
    if versions and version.isascii() and version.isdigit() and int(version[:9]) > max(versions):
        newest = f"{name}.v{max(versions)}"
        raise ModelError(f"{whose} of the kind {shown(kind)}; this longtail reads up to '{newest}'. Upgrade longtail.")


def _open_stamped(file: Path, entry: Json, in_memory: bool) -> tuple[np.ndarray, Stamp]:
    """Return the bytes of a file that has the size that the manifest says, and what tells if it was touched."""
    try:
        raw, stamp = map_stamped(file, in_memory=in_memory)
    except OSError as error:
        raise ModelError(f"{file} cannot be read: {error.strerror}.") from error
    if raw.size != entry["bytes"]:
        raise ModelError(f"{file} is damaged: {raw.size} bytes instead of {entry['bytes']}.")
    return raw, stamp


def _check_digest(file: Path, raw: np.ndarray, entry: Json) -> None:
    """Refuse a file that has not the digest that the manifest says."""
    if _digest(raw) != entry["sha256"]:
        raise ModelError(f"{file} is damaged: its digest does not match the manifest.")


def _digest(raw: np.ndarray) -> str:
    h = hashlib.sha256()
    for start in range(0, raw.size, HASHED_AT_ONCE):
        h.update(raw[start : start + HASHED_AT_ONCE].data)
    return h.hexdigest()
