"""Write and read model folders.

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
import re
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from longtail.errors import ModelError
from longtail.storage.arrays import arrays_to_bytes, map_arrays
from longtail.storage.part import Part
from longtail.validate import Json

FORMAT = "longtail-model"
FORMAT_VERSION = 1
MANIFEST = "manifest.json"
OURS = re.compile(r"^(?:[a-z_]+\.[0-9a-f]{16}\.(?:safetensors|jsonl)|manifest\.json)(?:\.tmp)?$")
CHUNK = 1 << 22
RETRIES = 3  # a save may replace the model while it is being read


@dataclass(frozen=True)
class LoadedFolder:
    """A model folder as read: the manifest, its parts and the label records."""

    path: Path
    manifest: Json
    parts: dict[str, Part]
    labels: list[Json]


def check_target(path: str | Path) -> Path:
    """Return the path if a model may be written there: nothing is there, a model folder, or an empty folder.

    Called before training starts, so that an hour's work does not end in a refused folder.
    """
    path = Path(path)
    if path.exists() and not path.is_dir():
        raise ModelError(f"{path} is a file; a model is written as a folder.")
    if path.is_dir():
        foreign = sorted(p.name for p in path.iterdir() if not OURS.match(p.name))
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
    labels: list[Json] | None = None,
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
    labels : list of dict or None, default=None
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
                entry["file"] = _write_file(path, name, "safetensors", arrays_to_bytes(part.arrays), files)
            stored[name] = entry
        manifest: Json = {
            "format": FORMAT,
            "version": FORMAT_VERSION,
            "kind": kind,
            **(facts or {}),
            "libraries": _library_versions(),
            "parts": stored,
        }
        if labels is not None:
            lines = "".join(json.dumps(r, ensure_ascii=False, sort_keys=True) + "\n" for r in labels)
            raw = lines.encode("utf-8", "surrogatepass")
            manifest["labels"] = _write_file(path, "labels", "jsonl", raw, files)
        manifest["files"] = files
        text = json.dumps(manifest, indent=1, ensure_ascii=False, sort_keys=True, allow_nan=False) + "\n"
        # a name that is no UTF-8, such as that of a data file, is kept as the JSON escapes of its odd characters
        _write_atomically(path / MANIFEST, text.encode("utf-8", "backslashreplace"))
        _remove_leftovers(path, keep={MANIFEST, *files})
    return path


def read_manifest(path: str | Path) -> Json:
    """Return the checked manifest of a model folder."""
    path = Path(path)
    if not path.exists():
        raise ModelError(f"{path} does not exist.")
    file = path / MANIFEST
    if not file.is_file():
        raise ModelError(f"{path} is not a model folder: it has no {MANIFEST}.")
    try:
        manifest = json.loads(file.read_text("utf-8"))
    except OSError as error:
        raise ModelError(f"{file} cannot be read: {error.strerror}.") from error
    except (ValueError, RecursionError) as error:
        raise ModelError(f"{file} is damaged: it is not JSON.") from error
    if not isinstance(manifest, dict) or manifest.get("format") != FORMAT:
        raise ModelError(f"{file} is not the manifest of a longtail model.")
    version = manifest.get("version")
    if not isinstance(version, int) or version < 1:
        raise ModelError(f"{file} is damaged: the format version is {version!r}.")
    if version > FORMAT_VERSION:
        raise ModelError(
            f"{path} has format version {version}; this longtail reads up to {FORMAT_VERSION}. Upgrade longtail."
        )
    if not isinstance(manifest.get("files"), dict) or not isinstance(manifest.get("parts"), dict):
        raise ModelError(f"{file} is damaged: 'files' or 'parts' is missing.")
    for name in manifest["files"]:
        if not OURS.match(name):
            raise ModelError(f"{file} is damaged: it names the file {name!r}.")
    return manifest


def verify_folder(path: str | Path) -> list[Json]:
    """Check every file of a model folder against its digest.

    Returns one record per file with `name`, `bytes`, `ok` and `problem`.
    """
    path = Path(path)
    out = []
    for name, entry in sorted(read_manifest(path)["files"].items()):
        problem = _problem(path / name, entry)
        out.append({"name": name, "bytes": entry.get("bytes"), "ok": problem is None, "problem": problem})
    return out


def load_folder(path: str | Path, *, verify: bool = True) -> LoadedFolder:
    """Read a model folder, running no code from it.

    Parameters
    ----------
    path : str or Path
        The folder.
    verify : bool, default=True
        Check every file against its digest; sizes are always checked.

    Returns
    -------
    loaded : LoadedFolder
        The manifest, the parts with memory-mapped arrays, and the label records.
    """
    path = Path(path)
    for _ in range(RETRIES):
        try:
            return _load_once(path, verify)
        except ModelError:
            before = _manifest_bytes(path)
            if before is None or before == _manifest_bytes(path, wait=0.05):
                break  # nobody is replacing the model: it is as it is
    return _load_once(path, verify)


def _manifest_bytes(path: Path, wait: float = 0.0) -> bytes | None:
    time.sleep(wait)
    try:
        return (path / MANIFEST).read_bytes()
    except OSError:
        return None


def _load_once(path: Path, verify: bool) -> LoadedFolder:
    manifest = read_manifest(path)
    for name, entry in manifest["files"].items():
        problem = _problem(path / name, entry, digest=verify)
        if problem:
            raise ModelError(f"{path / name} {problem}.")
    try:
        parts = {
            name: Part(
                kind=str(entry["kind"]),
                params=dict(entry["params"]),
                arrays=map_arrays(path / _listed_file(manifest, entry["file"])) if "file" in entry else {},
            )
            for name, entry in manifest["parts"].items()
        }
        labels = []
        if "labels" in manifest:
            raw = (path / _listed_file(manifest, manifest["labels"])).read_bytes()
            labels = [json.loads(line) for line in raw.decode("utf-8", "surrogatepass").split("\n") if line]
    except OSError as error:
        raise ModelError(f"{error.filename} cannot be read: {error.strerror}.") from error
    except (KeyError, TypeError, ValueError, RecursionError) as error:
        raise ModelError(f"{path / MANIFEST} is damaged: {error}.") from error
    return LoadedFolder(path, manifest, parts, labels)


def _listed_file(manifest: Json, name: str) -> str:
    if name not in manifest["files"]:
        raise ValueError(f"the file {name!r} is not listed")
    return name


def _problem(file: Path, entry: Json, digest: bool = True) -> str | None:
    if not file.is_file():
        return "is missing"
    size = file.stat().st_size
    if size != entry.get("bytes"):
        return f"is damaged: {size} bytes instead of {entry.get('bytes')}"
    if digest and _digest_file(file) != entry.get("sha256"):
        return "is damaged: its digest does not match the manifest"
    return None


def _digest_file(file: Path) -> str:
    h = hashlib.sha256()
    with file.open("rb") as f:
        while chunk := f.read(CHUNK):
            h.update(chunk)
    return h.hexdigest()


def _write_file(path: Path, name: str, suffix: str, raw: bytes, files: dict[str, Json]) -> str:
    digest = hashlib.sha256(raw).hexdigest()
    file = f"{name}.{digest[:16]}.{suffix}"
    entry = {"bytes": len(raw), "sha256": digest}
    if (path / file).is_symlink() or _problem(path / file, entry):
        _write_atomically(path / file, raw)
    files[file] = entry
    return file


def _write_atomically(file: Path, raw: bytes) -> None:
    temporary = file.with_name(file.name + ".tmp")
    try:
        temporary.unlink(missing_ok=True)
        with temporary.open("xb") as f:  # never through a link that stands there
            f.write(raw)
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
        if file.name not in keep and OURS.match(file.name):
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
