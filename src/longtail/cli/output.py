"""Output of commands: facts as JSON on request, else sentences and tables; notes go to stderr."""

from __future__ import annotations

import contextlib
import json
import sys
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import click

from longtail.cli.streams import tell
from longtail.errors import GuaranteeWarning

if TYPE_CHECKING:
    from rich.console import Console

SILENCE = 30.0  # seconds after which long work says how far it is, where there is no terminal
COMPILING = "compiling the kernels that this work needs; "
ONCE = "it takes up to half a minute, and they are kept for the next time."
ALWAYS = "they cannot be kept, since no folder for them can be written; NUMBA_CACHE_DIR can name one."


def print_json(facts: Any) -> None:
    """Print facts for machines."""
    click.echo(as_json_bytes(facts, indent=1).decode("utf-8"))


def as_json_bytes(facts: Any, indent: int | None = None) -> bytes:
    """Return facts as JSON in UTF-8; half a surrogate pair, which UTF-8 cannot hold, is written as \\u escape.

    >>> as_json_bytes({"é": "\\ud800"})
    b'{"\\\\u00e9": "\\\\ud800"}'
    """
    try:
        return json.dumps(facts, ensure_ascii=False, indent=indent, allow_nan=False).encode("utf-8")
    except UnicodeEncodeError:
        return json.dumps(facts, ensure_ascii=True, indent=indent, allow_nan=False).encode("ascii")


def console() -> Console:
    """Return the rich console for stdout."""
    from longtail.report import screen

    return screen()


def note(sentence: str) -> None:
    """Say something beside the result; above a progress bar if one is shown."""
    tell(sentence)


@contextlib.contextmanager
def noting_warnings() -> Iterator[None]:
    """Say the last warning of a training that has not learned, or has no guarantee, as a note; leave others as is."""
    from sklearn.exceptions import ConvergenceWarning

    told = (GuaranteeWarning, ConvergenceWarning)
    with warnings.catch_warnings(record=True) as caught:
        for kind in told:
            warnings.simplefilter("always", kind)
        yield
    for warning in caught:
        if not issubclass(warning.category, told):
            warnings.warn_explicit(warning.message, warning.category, warning.filename, warning.lineno)
    for kind in told:
        sentences = [str(warning.message) for warning in caught if issubclass(warning.category, kind)]
        if sentences:
            note(sentences[-1][:1].upper() + sentences[-1][1:])


@contextlib.contextmanager
def stages(units: str = "labels") -> Iterator[Callable[[str, int, int], None]]:
    """Show one progress bar per stage of long work, counting `units`; yields the callable `(stage, done, total)`.

    Where stderr is no terminal, such as in a pipe, a line says every half minute how far it is.
    """
    from longtail.report import Progress, progress

    opened: list[tuple[str, contextlib.ExitStack, Progress]] = []
    told = _ToldNowAndThen()

    def tell(stage: str, done: int, total: int) -> None:
        if not opened or opened[-1][0] != stage:
            if opened:
                opened.pop()[1].close()
            stack = contextlib.ExitStack()
            unit = "texts" if stage.startswith("Reading") else units
            opened.append((stage, stack, stack.enter_context(progress(total, stage, unit=unit))))
        opened[-1][2].reach(done, total)
        told.reached = (stage, done, total)

    try:
        with told:
            yield tell
    finally:
        for _, stack, _ in opened:
            stack.close()


class _ToldNowAndThen:
    """Says on a stderr that is no terminal, every half minute, which stage of long work is how far."""

    def __init__(self) -> None:
        self.reached = ("Getting ready", 0, 0)
        self._done = threading.Event()
        self._started = time.monotonic()

    def __enter__(self) -> None:
        from longtail.report import is_terminal

        if not is_terminal(sys.stderr):
            threading.Thread(target=self._tell, daemon=True).start()

    def __exit__(self, *_: object) -> None:
        self._done.set()

    def _tell(self) -> None:
        while not self._done.wait(SILENCE):
            stage, done, total = self.reached
            share = f"{100 * done // total}%, " if done and total else ""
            note(f"{stage}: {share}{time.monotonic() - self._started:.0f} s so far.")


def announce_compilation() -> None:
    """Let the first kernel that is compiled be announced, once; those that were kept from before need no word."""
    from longtail.kernels import on_compilation

    on_compilation(lambda kept: note(COMPILING + (ONCE if kept else ALWAYS)))
