"""stdin, stdout and stderr: closed, broken, and inert where they are a screen."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Iterator
from typing import IO, Any

from longtail.errors import DataError, ParameterError
from longtail.report import InertStream


def open_null_for_closed() -> None:
    """Open the null device for closed streams, so that no file we open takes their numbers.

    `sys.stdin`, `sys.stdout` and `sys.stderr` stay None, as Python has them then.
    """
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # takes the lowest free number, which is this one


def open_stdin() -> IO[bytes]:
    """Return stdin, for bytes."""
    if sys.stdin is None:
        raise DataError("stdin is closed, so nothing can be read from it.")
    return sys.stdin.buffer


def open_stdout() -> IO[bytes]:
    """Return stdout, for bytes."""
    if sys.stdout is None:
        raise ParameterError("stdout is closed, so nothing can be written to it; name a file with --output.")
    return sys.stdout.buffer


def flush_stdout() -> None:
    """Write out what waits for stdout, while a failure can still be told."""
    if sys.stdout is not None:
        sys.stdout.flush()


@contextlib.contextmanager
def naming_stdout() -> Iterator[None]:
    """Let a failure to write within the block say that it was stdout which could not be written."""
    try:
        yield
    except BrokenPipeError:
        raise
    except OSError as error:
        if error.filename is None:
            error.filename = "standard output"
        raise


class Stdout:
    """stdout, which is named where it cannot be written; all else is the stream's own."""

    def __init__(self, stream: IO[str]) -> None:
        self._stream = stream

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    def write(self, text: str) -> int:
        """Write text; returns how many characters were written."""
        with naming_stdout():
            return self._stream.write(text)

    def flush(self) -> None:
        """Write out what waits."""
        with naming_stdout():
            self._stream.flush()


def forget_stdout() -> None:
    """Send what is still to be written to stdout nowhere: its reader is gone."""
    if sys.stdout is not None:
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sys.stdout.fileno())
        os.close(nowhere)


def flush_or_discard_stdout() -> None:
    """Write out what waits for stdout or, where that fails, discard it: Python would complain at its end."""
    try:
        flush_stdout()
    except OSError:
        forget_stdout()


@contextlib.contextmanager
def inert_streams() -> Iterator[None]:
    """Make inert what goes to a screen: all of stderr, and stdout where it is a terminal."""
    before = sys.stdout, sys.stderr
    if sys.stdout is not None:
        sys.stdout = InertStream(Stdout(sys.stdout), shown=sys.stdout.isatty())
    if sys.stderr is not None:
        sys.stderr = InertStream(sys.stderr, shown=True)
    try:
        yield
    finally:
        sys.stdout, sys.stderr = before


def tell(sentence: str) -> None:
    """Print a sentence on stderr; that nobody reads it is no reason to stop."""
    if sys.stderr is not None:
        with contextlib.suppress(OSError):
            print(sentence, file=sys.stderr, flush=True)
