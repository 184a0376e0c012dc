"""A checkpoint of work: the results of finished tasks, each in a file named by what it was computed from.

The name is a digest of all that a result depends on: work, shared arrays, settings, task and version. So a result is
found again exactly where it is right, whatever else was done in between; other data or settings never meet it.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from longtail._version import __version__
from longtail.errors import ModelError, ParameterError
from longtail.storage import arrays_to_blocks, map_arrays
from longtail.validate import Json

MARK = "longtail-work.json"  # the file that tells a folder of results from any other
FORMAT = "longtail work.v1"
RESULT = re.compile(r"([0-9a-f]{40})\.([0-9a-f]{40})\.safetensors")  # what it was computed from, what it holds
PART = re.compile(r"\.[0-9a-f]{40}\.[0-9]+\.part")


class Checkpoint:
    """A folder with the results of finished tasks.

    Parameters
    ----------
    folder : str or Path
        A folder of its own; made where there is none.

    Attributes
    ----------
    folder : Path
    taken : int
        Results that were found and not computed again.
    added : int
        Results that were written.
    """

    added: int
    folder: Path
    taken: int

    def __init__(self, folder: str | Path) -> None:
        if not isinstance(folder, str | Path) or str(folder) in ("", ".") or "\0" in str(folder):
            raise ParameterError(name="checkpoint", allowed="the name of a folder of its own", got=str(folder))
        self.folder, self.taken, self.added = Path(folder), 0, 0
        mark = self.folder / MARK
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            names = [path.name for path in self.folder.iterdir()]
            if names and MARK not in names:
                raise ModelError(f"the checkpoint {folder} is a folder of other files; give an empty or a new one.")
            if MARK not in names:
                self._put_mark()
            elif not mark.is_file():
                raise ModelError(f"{mark} is no file; remove the folder to begin anew.")
            elif json.loads(mark.read_text("utf-8")) != {"format": FORMAT}:
                raise ModelError(f"the checkpoint {folder} is of another version of longtail; remove it.")
        except OSError as error:
            raise ModelError(f"the checkpoint {folder} cannot be used: {error.strerror}.") from error
        except ValueError as error:
            raise ModelError(f"{mark} is damaged; remove the folder to begin anew.") from error
        found = [RESULT.fullmatch(name) for name in names]
        self._files = {match[1]: match[2] for match in found if match is not None}
        self._used: set[str] = set()

    def _put_mark(self) -> None:
        """Write the file that tells this folder from any other."""
        (self.folder / MARK).write_text(json.dumps({"format": FORMAT}) + "\n", "utf-8")

    def keys(self, work: str, shared: Sequence[str], settings: Json, tasks: Sequence[Any]) -> list[str]:
        """Return the digest of all that each task depends on."""
        common = hashlib.blake2b(json.dumps([__version__, work, list(shared), settings]).encode(), digest_size=20)
        out = []
        for task in tasks:
            one = common.copy()
            one.update(json.dumps(task, default=_digest_of_array).encode())
            out.append(one.hexdigest())
        return out

    def find(self, key: str) -> dict[str, np.ndarray] | None:
        """Return the result of a task; None where there is none, or where its file is damaged."""
        digest = self._files.get(key)
        if digest is None:
            return None
        path = self.folder / f"{key}.{digest}.safetensors"
        if not path.is_file():  # reading a pipe would never end
            return None
        try:
            if hashlib.blake2b(path.read_bytes(), digest_size=20).hexdigest() != digest:
                raise ModelError(f"{path} is damaged.")
            out = map_arrays(path)
        except (OSError, ModelError):
            return None  # computed again
        self.taken += 1
        self._used.add(key)
        return out

    def add(self, key: str, result: dict[str, np.ndarray]) -> None:
        """Keep the result of a task: a file that is complete or not there."""
        raw = b"".join(arrays_to_blocks(result))
        digest = hashlib.blake2b(raw, digest_size=20).hexdigest()
        part = self.folder / f".{key}.{os.getpid()}.part"
        try:
            if not self.folder.is_dir():  # the same work has ended elsewhere and removed it
                self.folder.mkdir(parents=True, exist_ok=True)
                self._put_mark()
            part.write_bytes(raw)
            part.replace(self.folder / f"{key}.{digest}.safetensors")
        except OSError as error:
            with contextlib.suppress(OSError):
                part.unlink()
            raise ModelError(f"the checkpoint {self.folder} cannot be written: {error.strerror}.") from error
        self._files[key] = digest
        self._used.add(key)
        self.added += 1

    def drop(self) -> None:
        """Remove the results of this work when it is done, and the folder where it holds none of other work."""
        mark = self.folder / MARK
        if not mark.is_file():
            return
        others = False
        for path in list(self.folder.iterdir()):
            result = RESULT.fullmatch(path.name)
            if result is not None and result[1] not in self._used:
                others = True
            elif result is not None or PART.fullmatch(path.name):
                path.unlink(missing_ok=True)
        if others:
            return
        mark.unlink(missing_ok=True)
        with contextlib.suppress(OSError):  # it holds files of others too
            self.folder.rmdir()


def _digest_of_array(array: np.ndarray) -> list[str]:
    """Return what stands for an array of a task."""
    raw = np.ascontiguousarray(array)
    return [raw.dtype.str, str(raw.shape), hashlib.blake2b(raw.tobytes(), digest_size=20).hexdigest()]
