"""A note of this user that a model folder was checked completely, valid while its files stay the very same files.

Digests and schemas of a folder of gigabytes take seconds. Who asks for `verify="once"` has them checked the first time
on this machine; after that only that no file was touched since: the device, number, size and times of each, of the open
file, as git does to see which files changed. The time of the last change of a file (ctime) is set by the system alone.
Notes lie in a folder that only this user can write to; who can write there could change this user's programs as well.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import stat
import time
from collections.abc import Mapping
from pathlib import Path

from longtail._version import __version__

JUST_NOW = 2 * 10**9  # nanoseconds: a file changed so short before its check might change again at the same time
LARGEST = 1 << 20  # bytes of a note
Stamp = tuple[int, int, int, int, int]


def stamp_of(number: int) -> Stamp:
    """Return what tells one state of an open file from any other."""
    facts = os.fstat(number)
    return facts.st_dev, facts.st_ino, facts.st_size, facts.st_mtime_ns, facts.st_ctime_ns


def was_checked(manifest: bytes, stamps: Mapping[str, Stamp]) -> bool:
    """Say whether a folder with this manifest was checked by this version, and none of its files was touched since."""
    note = _note(manifest)
    if note is None:
        return False
    try:
        with note.open("rb") as file:
            facts = os.fstat(file.fileno())
            if facts.st_uid != os.getuid() or facts.st_mode & (stat.S_IWGRP | stat.S_IWOTH) or facts.st_size > LARGEST:
                return False
            return bool(json.loads(file.read()) == _content(stamps))
    except (OSError, ValueError):
        return False


def note_checked(manifest: bytes, stamps: Mapping[str, Stamp]) -> None:
    """Write down that a folder was checked; nothing is written where a file is too new, or there is no place."""
    note, now = _note(manifest), time.time_ns()
    if note is None or any(max(stamp[3:]) > now - JUST_NOW for stamp in stamps.values()):
        return
    with contextlib.suppress(OSError):
        note.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        temporary = note.with_name(f"{note.name}.{os.getpid()}.tmp")
        temporary.touch(mode=0o600)
        temporary.write_text(json.dumps(_content(stamps)), "utf-8")
        temporary.replace(note)


def _content(stamps: Mapping[str, Stamp]) -> dict[str, object]:
    return {"longtail": __version__, "files": {name: list(stamp) for name, stamp in sorted(stamps.items())}}


def _note(manifest: bytes) -> Path | None:
    """Return the file for the note about a folder; None where there is no folder that only this user can write to."""
    if os.name != "posix":
        return None
    home = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")  # noqa: PTH111 - which knows no home at times
    folder = Path(home) / "longtail" / "checked"
    if not folder.is_absolute():
        return None
    with contextlib.suppress(FileNotFoundError):
        try:
            facts = folder.stat()
        except FileNotFoundError:
            raise
        except OSError:
            return None
        if facts.st_uid != os.getuid() or facts.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
            return None
    return folder / f"{hashlib.sha256(manifest).hexdigest()}.json"
