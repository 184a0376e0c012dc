"""Write model folders.

A folder holds `manifest.json` and the files it names. Every other file carries its own digest in its name
(`model.3f9ac2d1b0e47a55.safetensors`), so a new model never overwrites a file of the old one; replacing the
manifest is the one atomic step that makes the new model the model. A crash at any moment leaves the old model or
the new one, and the next save removes what the crash left behind.

Nothing in a manifest depends on the clock, the machine or the number of threads: the same seed and data give
byte-identical folders.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TypeAlias

import numpy as np

from longtail.errors import ModelError
from longtail.storage.arrays import arrays_to_blocks
from longtail.storage.label_file import LabelColumns
from longtail.storage.manifest import (
    FORMAT,
    MANIFEST,
    OURS,
    SIGNATURE,
    manifest_bytes,
    manifest_digest,
    parse_manifest,
    read_manifest,
)
from longtail.storage.open_file import model_path, open_regular, short_path
from longtail.storage.part import Part
from longtail.validate import Json

VERSION_OF_COLUMNS = 2  # of folders whose labels are arrays
Blocks: TypeAlias = "Callable[[], Iterator[bytes | memoryview]]"
COPIED_AT_ONCE = 1 << 22  # bytes
LARGEST_SIGNATURE = 1 << 12


def check_target(path: str | Path) -> Path:
    """Return the path if a model may be written there: nothing is there, a model folder, or an empty folder.

    Called before training starts, so that an hour's work does not end in a refused folder.
    """
    path = model_path(path)
    try:
        there = path.exists()
    except OSError as error:  # a name that is too long, or a folder above that may not be looked into
        raise ModelError(f"{short_path(path)} cannot be written: {error.strerror}.") from error
    if there and not path.is_dir():
        raise ModelError(f"{path} is a file; a model is written as a folder.")
    if path.is_dir():
        foreign = sorted(p.name for p in path.iterdir() if not OURS.fullmatch(p.name))
        if foreign and not (path / MANIFEST).exists():
            raise ModelError(f"{path} is not a model folder and holds other files ({foreign[0]}); choose another.")
        if (path / MANIFEST).exists():
            with contextlib.suppress(ValueError, OSError):
                manifest = json.loads((path / MANIFEST).read_text("utf-8"))
                if not isinstance(manifest, dict) or manifest.get("format") != FORMAT:
                    raise ModelError(f"{path / MANIFEST} is not a longtail model; choose another.")
        if not os.access(path, os.W_OK):
            raise ModelError(f"{path} cannot be written to.")
    else:
        above = path.absolute().parent
        while not above.exists():
            above = above.parent
        if not above.is_dir() or not os.access(above, os.W_OK):
            raise ModelError(f"{path} cannot be made: {above} cannot be written to.")
    return path


def save_folder(
    path: str | Path,
    kind: str,
    parts: dict[str, Part],
    labels: Sequence[Json] | None = None,
    facts: Json | None = None,
) -> Path:
    """Write a model folder atomically; leftovers of an interrupted save are removed.

    Parameters
    ----------
    path : str or Path
        The folder, which may hold an older model.
    kind : str
        The class with its version, such as "tagger.v1".
    parts : dict of str to Part
        What each object saves, by name.
    labels : sequence of dict, LabelColumns or None, default=None
        One JSON-able record per label.
    facts : dict or None, default=None
        JSON-able entries of the manifest: seed, data digest, metrics.

    Returns
    -------
    path : Path
    """
    path = check_target(path)
    fresh = not path.exists()
    path.mkdir(parents=True, exist_ok=True)
    with _lock(path), _tidy(path, fresh):
        files: dict[str, Json] = {}
        stored: Json = {}
        for name, part in parts.items():
            entry: Json = {"kind": part.kind, "params": part.params}
            if part.arrays:
                entry["file"] = _write_arrays(path, name, part.arrays, files)
            stored[name] = entry
        manifest: Json = {
            "format": FORMAT,
            "version": 1,
            "kind": kind,
            **(facts or {}),
            "libraries": _library_versions(),
            "parts": stored,
        }
        if isinstance(labels, LabelColumns):
            manifest["version"] = VERSION_OF_COLUMNS
            manifest["labels"] = _write_arrays(path, "labels", labels.arrays(), files)
        elif labels is not None:
            lines = "".join(json.dumps(r, ensure_ascii=False, sort_keys=True) + "\n" for r in labels)
            raw = lines.encode("utf-8", "surrogatepass")
            manifest["labels"] = _write_file(path, "labels", "jsonl", raw, files)
        manifest["files"] = files
        text = json.dumps(manifest, indent=1, ensure_ascii=False, sort_keys=True, allow_nan=False) + "\n"
        # a name that is no UTF-8, such as that of a data file, is kept as the JSON escapes of its odd characters
        _write_atomically(path / MANIFEST, text.encode("utf-8", "backslashreplace"))
        _remove_leftovers(path, keep={MANIFEST, *files})
    return path


def copy_folder(source: str | Path, target: str | Path) -> Path:
    """Put a copy of a model folder in the place of another, or of nothing; every file is checked against its digest.

    The manifest comes last, as in `save_folder`: a crash at any moment leaves the old model or the new one.
    """
    source, target = model_path(source), check_target(target)
    raw = manifest_bytes(source)
    files, signature = parse_manifest(source, raw)["files"], _signature(source)
    fresh = not target.exists()
    target.mkdir(parents=True, exist_ok=True)
    with _lock(target), _tidy(target, fresh):
        for name, entry in files.items():
            _copy_file(source / name, target / name, entry)
        _write_atomically(target / MANIFEST, raw)
        if signature is not None:
            _write_atomically(target / SIGNATURE, signature)
        _remove_leftovers(target, keep={MANIFEST, *files, *([SIGNATURE] if signature is not None else [])})
    return target


def _signature(path: Path) -> bytes | None:
    """Return the signature of a model folder as it stands in the file; None where it has none."""
    if not os.path.lexists(path / SIGNATURE):
        return None
    try:
        with open_regular(path / SIGNATURE) as file:
            return file.read(LARGEST_SIGNATURE)
    except OSError as error:
        raise ModelError(f"{path / SIGNATURE} cannot be read: {error.strerror}.") from error


def _copy_file(source: Path, target: Path, entry: Json) -> None:
    """Copy one file of a model, unless it is there already; one that is not as its manifest says is refused."""
    if not target.is_symlink() and target.is_file() and _digest_of(target, entry) == entry["sha256"]:
        return
    temporary = target.with_name(target.name + ".tmp")
    try:
        temporary.unlink(missing_ok=True)
        digest = hashlib.sha256()
        with open_regular(source) as old, temporary.open("xb") as new:
            while block := old.read(COPIED_AT_ONCE):
                digest.update(block)
                new.write(block)
            new.flush()
            os.fsync(new.fileno())
        if digest.hexdigest() != entry["sha256"]:
            raise ModelError(f"{source} is damaged: it is not the file that its manifest names.")
        temporary.replace(target)
    except OSError as error:
        raise ModelError(f"{target} cannot be written: {error.strerror}.") from error


def _digest_of(file: Path, entry: Json) -> str:
    """Return the digest of a file that has the size its manifest says; else nothing."""
    if file.stat().st_size != entry["bytes"]:
        return ""
    with file.open("rb") as f:
        return hashlib.file_digest(f, "sha256").hexdigest()


def folder_digest(path: str | Path) -> str:
    """Return a short name of the model in a folder, the digest of its manifest; `LoadedFolder` has that of its own."""
    return manifest_digest(manifest_bytes(model_path(path)))


def _write_arrays(path: Path, name: str, arrays: dict[str, np.ndarray], files: dict[str, Json]) -> str:
    """Write arrays, which may be larger than memory, as a file; return its name."""
    return _write_file(path, name, "safetensors", lambda: arrays_to_blocks(arrays), files)


def _write_file(path: Path, name: str, suffix: str, raw: bytes | Blocks, files: dict[str, Json]) -> str:
    blocks = raw if callable(raw) else lambda: iter((raw,))
    digest, size = hashlib.sha256(), 0
    for block in blocks():
        digest.update(block)
        size += len(block)
    entry: Json = {"bytes": size, "sha256": digest.hexdigest()}
    file = f"{name}.{digest.hexdigest()[:16]}.{suffix}"
    if not _is_written(path / file, entry):
        _write_atomically(path / file, blocks())
    files[file] = entry
    return file


def _is_written(file: Path, entry: Json) -> bool:
    """Say whether a file, not a link, has this content already."""
    return not file.is_symlink() and file.is_file() and bool(_digest_of(file, entry) == entry["sha256"])


def _write_atomically(file: Path, raw: bytes | Iterator[bytes | memoryview]) -> None:
    temporary = file.with_name(file.name + ".tmp")
    try:
        temporary.unlink(missing_ok=True)
        with temporary.open("xb") as f:  # never through a link that stands there
            for block in (raw,) if isinstance(raw, bytes) else raw:
                f.write(block)
            f.flush()
            os.fsync(f.fileno())
        temporary.replace(file)
    except OSError as error:
        raise ModelError(f"{file} cannot be written: {error.strerror}.") from error
    if hasattr(os, "O_DIRECTORY"):  # make the rename itself durable
        folder = os.open(file.parent, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)


@contextlib.contextmanager
def _tidy(path: Path, fresh: bool) -> Iterator[None]:
    """Remove what a save has written if it is stopped; only a killed one leaves that to the next save."""
    try:
        yield
    except BaseException:
        with contextlib.suppress(OSError, ModelError):
            _remove_leftovers(
                path, keep={MANIFEST, *read_manifest(path)["files"]} if (path / MANIFEST).exists() else set()
            )
            if fresh:
                path.rmdir()
        raise


def _remove_leftovers(path: Path, keep: set[str]) -> None:
    for file in path.iterdir():
        if file.name not in keep and OURS.fullmatch(file.name):
            with contextlib.suppress(OSError):
                file.unlink()


@contextlib.contextmanager
def _lock(path: Path) -> Iterator[None]:
    """Hold the folder for one writer; a killed writer's lock vanishes with it."""
    try:
        import fcntl
    except ImportError:  # no file locks on this system: the manifest swap alone keeps readers safe
        yield
        return
    folder = os.open(path, os.O_RDONLY)
    try:
        try:
            fcntl.flock(folder, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            raise ModelError(f"{path} is being written by another process.") from error
        yield
    finally:
        os.close(folder)


def _library_versions() -> dict[str, str]:
    from importlib.metadata import version

    from longtail._version import __version__

    return {"longtail": __version__, **{name: version(name) for name in ("numpy", "scipy", "scikit-learn", "numba")}}
