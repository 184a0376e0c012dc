"""Counters and histograms in Prometheus' text format, shared by all worker processes through one mapped file."""

from __future__ import annotations

import mmap
import os
import threading
from bisect import bisect_left
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

BUCKETS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0, 30.0)  # seconds
ROWS = (1, 2, 4, 8, 16, 32, 64, 128, 256)
STATUSES = (
    200,
    201,
    202,
    204,
    304,
    307,
    400,
    401,
    403,
    404,
    405,
    408,
    409,
    413,
    414,
    415,
    421,
    422,
    429,
    431,
    500,
    503,
)
OTHER = "other"
COUNTERS = {
    "longtail_texts_total": "Texts that labels were suggested for.",
    "longtail_texts_without_known_words_total": "Texts of which the model knew no word.",
    "longtail_batches_total": "Micro-batches that were scored.",
    "longtail_model_swaps_total": "Models that were replaced while serving.",
    "longtail_model_problems_total": "Model folders that could not be loaded while serving.",
    "longtail_body_bytes_total": "Bytes of bodies that were read.",
    "longtail_workers_started_total": "Worker processes that were started.",
}
HISTOGRAMS = {
    "longtail_request_seconds": ("Time until an answer was sent, by route.", BUCKETS),
    "longtail_batch_rows": ("Texts of a micro-batch.", ROWS),
    "longtail_batch_seconds": ("Time to score a micro-batch.", BUCKETS),
}


@dataclass(frozen=True)
class Layout:
    """Where every number stands among those of one process."""

    routes: tuple[str, ...]

    @property
    def n_cells(self) -> int:
        """Numbers of one process."""
        return self.start_of("", "") + 0

    def start_of(self, name: str, route: str) -> int:
        """Return the first cell of a counter or a histogram; of an unknown name, the end of all."""
        at = 0
        for counter in COUNTERS:
            if counter == name:
                return at
            at += 1
        for histogram, (_, bounds) in HISTOGRAMS.items():
            for one in self.routes if histogram == "longtail_request_seconds" else ("",):
                if (histogram, one) == (name, route):
                    return at
                at += len(bounds) + 2  # the last two: above all bounds, and the sum
        for one in self.routes:
            if (name, route) == ("longtail_requests_total", one):
                return at
            at += len(STATUSES) + 1
        return at


class Metrics:
    """The numbers of all processes of a server; every process writes its own and can show the sums.

    Parameters
    ----------
    routes : sequence of str
        The paths of routes, which requests are counted by.
    path : Path or None, default=None
        The file that processes share; None for numbers of this process alone.
    slot : int, default=0
        The number of this process.
    slots : int, default=1
        How many processes there are.
    """

    def __init__(self, routes: Sequence[str], path: Path | None = None, slot: int = 0, slots: int = 1) -> None:
        self.layout: Layout = Layout((*dict.fromkeys(routes), OTHER))
        n_cells = self.layout.n_cells
        if path is None:
            self._all = np.zeros((slots, n_cells))
        else:
            number = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
            try:
                size = slots * n_cells * 8
                if os.fstat(number).st_size < size:
                    os.ftruncate(number, size)
                self._all = np.frombuffer(mmap.mmap(number, size), dtype=np.float64).reshape(slots, n_cells)
            finally:
                os.close(number)
        self._own = self._all[slot]
        self._lock = threading.Lock()
        self._gauges: dict[str, tuple[str, Callable[[], float]]] = {}
        self._starts = {name: self.layout.start_of(name, "") for name in (*COUNTERS, *HISTOGRAMS)}
        self._requests = {
            route: (
                self.layout.start_of("longtail_requests_total", route),
                self.layout.start_of("longtail_request_seconds", route),
            )
            for route in self.layout.routes
        }
        self._statuses = {status: at for at, status in enumerate(STATUSES)}

    def add(self, name: str, value: float = 1.0) -> None:
        """Add to a counter."""
        with self._lock:
            self._own[self._starts[name]] += value

    def observe(self, name: str, value: float) -> None:
        """Count a value in a histogram."""
        with self._lock:
            self._count(self._starts[name], HISTOGRAMS[name][1], value)

    def request(self, route: str, status: int, seconds: float) -> None:
        """Count an answered request."""
        counts, times = self._requests.get(route) or self._requests[OTHER]
        with self._lock:
            self._own[counts + self._statuses.get(status, len(STATUSES))] += 1
            self._count(times, BUCKETS, seconds)

    def _count(self, start: int, bounds: Sequence[float], value: float) -> None:
        self._own[start + bisect_left(bounds, value)] += 1
        self._own[start + len(bounds) + 1] += value

    def gauge(self, name: str, about: str, value: Callable[[], float]) -> None:
        """Let a number of this process be shown as it is at that moment."""
        self._gauges[name] = (about, value)

    def text(self) -> str:
        """Return all numbers in the text format of Prometheus, those of processes added up."""
        sums = self._all.sum(axis=0)
        lines: list[str] = []
        for name, about in COUNTERS.items():
            lines += [f"# HELP {name} {about}", f"# TYPE {name} counter", f"{name} {sums[self._starts[name]]:g}"]
        lines += [
            "# HELP longtail_requests_total Requests that were answered.",
            "# TYPE longtail_requests_total counter",
        ]
        for route, (counts, _) in self._requests.items():
            for at, status in enumerate((*STATUSES, OTHER)):
                number = int(sums[counts + at])
                if number:
                    lines.append(f'longtail_requests_total{{route="{escaped(route)}",status="{status}"}} {number}')
        for name, (about, bounds) in HISTOGRAMS.items():
            lines += [f"# HELP {name} {about}", f"# TYPE {name} histogram"]
            if name == "longtail_request_seconds":
                for route, (_, start) in self._requests.items():
                    lines += _histogram(
                        name, f'route="{escaped(route)}"', bounds, sums[start : start + len(bounds) + 2]
                    )
            else:
                start = self._starts[name]
                lines += _histogram(name, "", bounds, sums[start : start + len(bounds) + 2])
        for name, (about, value) in self._gauges.items():
            lines += [f"# HELP {name} {about}", f"# TYPE {name} gauge", f"{name} {value():g}"]
        return "\n".join(lines) + "\n"


def _histogram(name: str, labels: str, bounds: Sequence[float], cells: np.ndarray) -> list[str]:
    """Return the lines of one histogram; none where nothing was counted."""
    counts = np.cumsum(cells[:-1])
    if not counts[-1]:
        return []
    comma = "," if labels else ""
    lines = [
        f'{name}_bucket{{{labels}{comma}le="{bound:g}"}} {int(count)}'
        for bound, count in zip(bounds, counts, strict=False)
    ]
    lines.append(f'{name}_bucket{{{labels}{comma}le="+Inf"}} {int(counts[-1])}')
    braces = f"{{{labels}}}" if labels else ""
    return [*lines, f"{name}_sum{braces} {cells[-1]:g}", f"{name}_count{braces} {int(counts[-1])}"]


def escaped(text: str) -> str:
    """Return a text as the value of a label.

    >>> escaped('a"b')
    'a\\\\"b'
    """
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
