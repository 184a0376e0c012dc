"""Handle closed or broken stdin, stdout and stderr."""

from __future__ import annotations

import contextlib
import os
import sys
from typing import IO

import click

from longtail.errors import DataError, ParameterError


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


def tell(sentence: str) -> None:
    """Print a sentence on stderr; that nobody reads it is no reason to stop."""
    with contextlib.suppress(OSError):
        click.echo(sentence, err=True)
