"""Whether the kernels were compiled on this machine before."""

from __future__ import annotations

from pathlib import Path

from longtail.kernels import hinge_lanes
from longtail.tree import search_block


def is_compiled() -> bool:
    """Say whether the compiled kernels lie in numba's cache."""
    for kernel in (hinge_lanes, search_block):
        folder = getattr(getattr(kernel, "_cache", None), "cache_path", None)
        name = f"{kernel.py_func.__module__.rsplit('.', 1)[-1]}.{kernel.py_func.__name__}-*.nbi"
        if folder is None or not any(Path(folder).glob(name)):
            return False
    return True
