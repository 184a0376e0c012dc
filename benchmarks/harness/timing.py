"""Time and memory of tasks. Only the standard library is imported: this also runs in the environments of peers."""

from __future__ import annotations

import gc
import resource
import statistics
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

T = TypeVar("T")


class Spent(NamedTuple):
    """Wall seconds, and processor seconds of all threads."""

    wall: float
    cpu: float


def timed(task: Callable[..., T], *given: Any) -> tuple[Spent, T]:
    """Run a task and return the time it took and its result."""
    wall, cpu = time.perf_counter(), time.process_time()
    result = task(*given)
    return Spent(time.perf_counter() - wall, time.process_time() - cpu), result


def medians(
    tasks: Mapping[str, Callable[[], Any]], repeats: int, clock: Callable[[], float] = time.perf_counter, warm: int = 0
) -> dict[str, float]:
    """Return the median seconds of each task; the tasks take turns, and the first `warm` turns do not count."""
    times: dict[str, list[float]] = {name: [] for name in tasks}
    for turn in range(warm + repeats):
        for name, task in tasks.items():
            gc.collect()
            started = clock()
            task()
            if turn >= warm:
                times[name].append(clock() - started)
    return {name: statistics.median(values) for name, values in times.items()}


def memory(field: str) -> int:
    """Return VmRSS (now) or VmHWM (the most so far) of this process in bytes.

    On Linux ru_maxrss would begin with the memory of the process that started this one.
    """
    status = Path("/proc/self/status")
    if status.exists():
        lines = status.read_text().splitlines()
        return 1024 * next(int(line.split()[1]) for line in lines if line.startswith(field))
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)


def forget_peak() -> bool:
    """Start counting the peak of memory anew, where the system can do that."""
    try:
        Path("/proc/self/clear_refs").write_text("5")
    except OSError:
        return False
    return True


def folder_bytes(path: Path) -> int:
    """Return the size of all files in a folder, or of one file."""
    return path.stat().st_size if path.is_file() else sum(f.stat().st_size for f in path.rglob("*") if f.is_file())
