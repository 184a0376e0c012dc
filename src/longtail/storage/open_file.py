"""Open the files of a model folder: regular files only, and in no case wait for a pipe."""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path
from typing import BinaryIO

from longtail.errors import ModelError, ParameterError
from longtail.storage.values import LONGEST_SHOWN

LONGEST_PATH = 200  # characters of a path in a sentence


def model_path(path: object) -> Path:
    """Return the path of a model folder; what is no path is refused."""
    if not isinstance(path, str | os.PathLike) or not isinstance(os.fspath(path), str) or not os.fspath(path):
        raise ParameterError(name="path", allowed="the path of a model folder", got=path)
    return Path(path)


def short_path(path: Path) -> str:
    """Return a path for a sentence; a very long one loses its middle.

    >>> short_path(Path("model")), len(short_path(Path("a" * 5000)))
    ('model', 123)
    """
    text = str(path)
    return text if len(text) <= LONGEST_PATH else f"{text[:LONGEST_SHOWN]} … {text[-LONGEST_SHOWN:]}"


def open_regular(file: Path) -> BinaryIO:
    """Open a regular file, or a link to one, for reading; what else stands there is told of in one sentence."""
    try:
        _check_kind(file, file.stat().st_mode)
        number = os.open(file, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))
    except (OSError, ValueError) as error:
        raise ModelError(f"{short_path(file)} {_why_not(file, error)}.") from error
    try:
        _check_kind(file, os.fstat(number).st_mode)  # what is open now may be another than what stood there before
        return os.fdopen(number, "rb")
    except BaseException:
        os.close(number)
        raise


def _check_kind(file: Path, mode: int) -> None:
    if stat.S_ISDIR(mode):
        raise ModelError(f"{file} is a folder, not a file.")
    if not stat.S_ISREG(mode):
        raise ModelError(f"{file} is not a regular file.")


def _why_not(file: Path, error: Exception) -> str:
    """Return why a file cannot be opened."""
    if not isinstance(error, OSError):  # a NUL in its name
        return f"cannot be read: {error}"
    if error.errno in (errno.ENOENT, errno.ELOOP) and file.is_symlink():
        return "is a link that leads nowhere"
    return "is missing" if error.errno == errno.ENOENT else f"cannot be read: {error.strerror}"
