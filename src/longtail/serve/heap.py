"""Memory that was needed for a moment goes back to the system, as far as the C library can be told so."""

from __future__ import annotations

import ctypes
import sys

ARENAS = 2
M_ARENA_MAX = -8  # of mallopt, in glibc's malloc.h


def use_few_arenas() -> None:
    """Let threads share two heaps instead of keeping up to eight per core; only glibc knows this."""
    if sys.platform == "linux":
        mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
        if mallopt is not None:
            mallopt(M_ARENA_MAX, ARENAS)


def give_back() -> None:
    """Give free memory back to the system; only glibc knows this."""
    if sys.platform == "linux":
        trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
        if trim is not None:
            trim(0)
