"""The command line, `longtail`. Commands import what they need when they run, so `--help` answers at once."""

from __future__ import annotations

import _signal  # type: ignore[import-not-found]  # the half of `signal` in C: the rest takes milliseconds to import
import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["main"]


def main(args: Sequence[str] | None = None) -> None:
    """Run the command line; every error is one sentence on stderr and an exit code.

    Signals are handled before anything is imported that takes time. `args=None` means that this is the program: its
    end is not disturbed by a signal then.
    """
    if args is None and _signal.signal(_signal.SIGINT, _leave) == _signal.SIG_IGN:
        _signal.signal(_signal.SIGINT, _signal.SIG_IGN)
    import signal

    from longtail.cli.signals import Interrupted, Stop, Terminated, stopped_by_signals

    if args is None:
        from longtail.cli.memory_limit import run_in_child

        ended = run_in_child()
        if ended is not None:
            sys.exit(ended)
    try:
        with stopped_by_signals(to_the_end=args is None) as stop:
            try:
                from longtail.cli.app import run

                code = run(args, stop)
                stop.done = True
            except KeyboardInterrupt:
                code = stop.tell()
            except BaseException:
                if stop.number is None:
                    raise
                code = stop.tell()
    except (Interrupted, Terminated) as error:  # between two of the lines above
        code = Stop(signal.SIGINT if isinstance(error, Interrupted) else signal.SIGTERM).tell()
    sys.exit(code)


def _leave(number: int, frame: object) -> None:
    """End at once: nothing has begun."""
    os._exit(128 + number)
