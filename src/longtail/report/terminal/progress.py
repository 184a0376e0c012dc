"""Progress bars of long work: with rate and time left on a terminal, nothing in a pipe.

Models are below this folder and know nothing of it: they take a plain callable `progress(done, total)`, and
`as_callback` makes one.

>>> with progress(3, "Predicting", quiet=True) as advance:
...     for _ in range(3):
...         advance(1)
>>> advance.done
3
"""

from __future__ import annotations

import contextlib
import os
import sys
import threading
from collections.abc import Callable, Iterator
from typing import Any

from longtail.report.terminal.inert import InertStream

_TERMINAL = threading.Lock()  # held by the one bar that is shown


class Progress:
    """Counter of finished units, for any thread, that moves the bar if there is one.

    >>> count = Progress(total=10)
    >>> count(4)
    >>> count.reach(6, 10)
    >>> count.done, count.total
    (6, 10)
    """

    def __init__(self, total: int | None = None, show: Callable[[int, int | None], None] | None = None) -> None:
        self.total = total
        self.done: int = 0
        self._show = show
        self._lock = threading.Lock()

    def __call__(self, n: int = 1) -> None:
        """Count n more finished units."""
        with self._lock:
            self.done += n
            self._tell()

    def reach(self, done: int, total: int | None = None) -> None:
        """Set the number of finished units; a new total starts a new count.

        Threads may report out of order, so a smaller number than before is ignored.
        """
        with self._lock:
            if total is not None and total != self.total:
                self.total, self.done = total, done
            else:
                self.done = max(self.done, done)
            self._tell()

    def _tell(self) -> None:
        if self._show is not None:
            self._show(self.done, self.total)


@contextlib.contextmanager
def progress(total: int | None, label: str, unit: str = "rows", quiet: bool | None = None) -> Iterator[Progress]:
    """Show a progress bar on stderr while the block runs; yields the callable that advances it.

    `quiet=None` shows it only on a terminal. A bar inside another one is not shown.
    """
    if quiet or (quiet is None and not is_terminal(sys.stderr)) or not _TERMINAL.acquire(blocking=False):
        yield Progress(total)
        return
    try:
        with _bar(unit) as bar, _inert_stderr():
            task = bar.add_task(label, total=total)
            yield Progress(total, lambda done, of: bar.update(task, completed=done, total=of))
    finally:
        _TERMINAL.release()


@contextlib.contextmanager
def _inert_stderr() -> Iterator[None]:
    """Make inert what is said beside a bar; rich, which prints it above the bar then, would follow escapes in it."""
    before = sys.stderr
    sys.stderr = InertStream(before, shown=True)
    try:
        yield
    finally:
        sys.stderr = before


def as_callback(advance: Progress) -> Callable[[int, int], None]:
    """Return the `progress(done, total)` callable that models take.

    >>> count = Progress()
    >>> callback = as_callback(count)
    >>> callback(2, 8)
    >>> count.done, count.total
    (2, 8)
    """

    def callback(done: int, total: int) -> None:
        advance.reach(done, total)

    return callback


def is_terminal(stream: Any) -> bool:
    """Return whether a stream is a terminal that can redraw a line."""
    if os.environ.get("TERM") == "dumb":
        return False
    try:
        return bool(stream.isatty())
    except (AttributeError, ValueError):  # no such stream, or one that is closed
        return False


def _bar(unit: str) -> Any:
    """Return the rich progress bar; rich is imported only where a bar is shown."""
    from rich.progress import BarColumn, ProgressColumn, Task, TaskProgressColumn, TextColumn, TimeRemainingColumn
    from rich.progress import Progress as RichProgress
    from rich.text import Text

    from longtail.report.terminal.console import screen

    class RateColumn(ProgressColumn):
        """Finished units per second."""

        def render(self, task: Task) -> Text:
            speed = task.finished_speed or task.speed
            return Text(f"{speed:,.0f} {unit}/s" if speed else "", style="dim")

    return RichProgress(
        TextColumn("{task.description}", markup=False),
        BarColumn(bar_width=24),
        TaskProgressColumn(),
        RateColumn(),
        TimeRemainingColumn(compact=True),
        console=screen(stderr=True),
        transient=True,
    )
