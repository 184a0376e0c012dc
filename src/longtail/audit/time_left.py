"""The time that a search may take: until a moment, or until someone stops it."""

from __future__ import annotations

import threading
import time

import numpy as np


class TimeLeft:
    """How long a search may go on; threads look at it between two steps of their work.

    >>> time_left = TimeLeft()
    >>> time_left.is_over
    False
    >>> time_left.stop()
    >>> time_left.is_over
    True
    """

    def __init__(self, until: float = np.inf) -> None:
        self._until = until  # as time.monotonic counts
        self._stopped = threading.Event()

    def stop(self) -> None:
        """End the search now, in all threads."""
        self._stopped.set()

    @property
    def is_over(self) -> bool:
        """Whether the search has to end."""
        return self._stopped.is_set() or time.monotonic() > self._until

    @property
    def seconds(self) -> float:
        """Seconds that are left, inf without an end."""
        return max(self._until - time.monotonic(), 0.0)
