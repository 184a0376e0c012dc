"""How much memory this process uses and how much it may have, on Linux and, less exactly, elsewhere."""

from __future__ import annotations

import os
import sys
from pathlib import Path

MEMINFO = Path("/proc/meminfo")
STATUS = Path("/proc/self/status")
CGROUP = Path("/sys/fs/cgroup")


def available_memory() -> int | None:
    """Return how many bytes this process may still take without pushing others out; None where nothing tells.

    The machine's available memory, or what a container's limit leaves, whichever is less.

    >>> free = available_memory()
    >>> free is None or free > 0
    True
    """
    limits = [n for n in (_machine(), _container()) if n is not None]
    return max(min(limits), 1) if limits else None


def used_memory() -> int:
    """Return the bytes of memory this process occupies now; 0 where nothing tells."""
    return _kilobytes(STATUS, "VmRSS:") or 0


def private_memory() -> int:
    """Return the bytes of memory that this process has to itself, maps of files left out; 0 where nothing tells."""
    return _kilobytes(STATUS, "RssAnon:") or used_memory()


def _machine() -> int | None:
    available = _kilobytes(MEMINFO, "MemAvailable:")
    if available is not None:
        return available
    try:
        pages = "SC_PHYS_PAGES" if sys.platform == "darwin" else "SC_AVPHYS_PAGES"
        return os.sysconf(pages) * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, OSError, ValueError):
        return None


def _container() -> int | None:
    """Return what the control group's limit leaves (versions 2 and 1); files it can drop do not count as used."""
    for limit, used, stat in (
        ("memory.max", "memory.current", "memory.stat"),
        ("memory/memory.limit_in_bytes", "memory/memory.usage_in_bytes", "memory/memory.stat"),
    ):
        try:
            most, now = int((CGROUP / limit).read_text()), int((CGROUP / used).read_text())
            lines = (CGROUP / stat).read_text().splitlines()
        except (OSError, ValueError):  # no such group, or "max": no limit
            continue
        dropped = next((int(line.split()[1]) for line in lines if line.startswith("inactive_file ")), 0)
        return max(most - now + dropped, 0)
    return None


def _kilobytes(file: Path, name: str) -> int | None:
    try:
        return next(int(line.split()[1]) * 1024 for line in file.read_text().splitlines() if line.startswith(name))
    except (OSError, StopIteration, ValueError, IndexError):
        return None
