"""Ctrl-C and SIGTERM at any moment: half-written files are removed, one sentence, an exit code, no traceback."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import threading
import time
from collections.abc import Iterator
from typing import Any

WORDS = {int(signal.SIGINT): "interrupted", int(signal.SIGTERM): "terminated"}
SAME = 1.0  # seconds within which a second signal is taken for the first: files are being removed
SOON = 0.02


class Interrupted(KeyboardInterrupt):
    """Ctrl-C (SIGINT); Python itself ends by the signal, not by an exit code, once it has seen KeyboardInterrupt."""


class Terminated(BaseException):
    """The system asked the program to end (SIGTERM)."""


class Stop:
    """The signal that is to end the program: its number, None as long as none came."""

    def __init__(self, number: int | None = None) -> None:
        self.number = number
        self.done: bool = False  # the work has ended: a signal changes nothing any more
        self._last = 0.0

    def handle(self, number: int, frame: object) -> None:
        """Raise an exception that passes through everything but those who clean up."""
        now = time.monotonic()
        if self.done:
            return
        if number in WORDS:
            if self.number is not None and now - self._last < SAME:
                return
            self.number, self._last = number, now
        raise Interrupted if self.number == signal.SIGINT else Terminated

    def tell(self) -> int:
        """Say on stderr what ended the program; returns its exit code."""
        self.done = True
        number = self.number or signal.SIGINT
        with contextlib.suppress(OSError):
            os.write(2, f"{WORDS[number]}; what was there before is unchanged.\n".encode("ascii"))
        return 128 + number


@contextlib.contextmanager
def stopped_by_signals(to_the_end: bool) -> Iterator[Stop]:
    """Turn the two signals into exceptions while the block runs; those that are ignored stay so.

    `to_the_end` ignores them after the block: the work is done, and only the end of Python itself is left.
    """
    stop = Stop()
    if threading.current_thread() is not threading.main_thread():  # others may not handle signals
        yield stop
        return
    numbers = [number for number in WORDS if signal.getsignal(number) != signal.SIG_IGN]
    numbers += [signal.SIGALRM] if hasattr(signal, "SIGALRM") else []
    before = {number: signal.signal(number, stop.handle) for number in numbers}
    hook = sys.unraisablehook

    def once_more(found: Any) -> None:
        """Raise anew where the exception came in a place that drops all exceptions, such as a finalizer."""
        if stop.number is None or found.exc_type not in (Interrupted, Terminated):
            hook(found)
        elif hasattr(signal, "setitimer"):
            signal.setitimer(signal.ITIMER_REAL, SOON)

    sys.unraisablehook = once_more
    try:
        yield stop
    finally:
        stop.done = True
        for number, handler in before.items():
            signal.signal(number, signal.SIG_IGN if to_the_end and number in WORDS else handler)
        sys.unraisablehook = hook
