"""The decorator of all compiled kernels, `njit`: numba's, with a cache that works everywhere and a checked mode.

- **Checked mode.** With `LONGTAIL_CHECKED=1` in the environment every kernel is compiled with bounds checks: an index
  outside an array raises IndexError instead of touching foreign memory. Slower by a few times; for tests and doubts.
- **Cache.** Compiled code is kept on disk (`kernel_cache.py`).
- **Read-only arrays** (memory maps, arrays that a caller has locked) run the code for writable ones: kernels are
  compiled once, not once per mixture. In checked mode they are compiled as they are, which refuses a kernel that writes
  to an array it may not write to.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numba
from numba import types
from numba.core import config

from longtail.kernels.kernel_cache import CHECKED, KernelCache


def njit(*, cache: bool = True, **options: Any) -> Any:
    """Return the decorator that compiles a function at its first call; options as those of `numba.njit`.

    >>> @njit(nogil=True, cache=False)
    ... def double(x):
    ...     return 2 * x
    >>> double(3)
    6
    """

    def decorate(function: Callable[..., Any]) -> Any:
        kernel = numba.njit(boundscheck=CHECKED, **options)(function)
        if config.DISABLE_JIT:
            return kernel
        if cache:
            kernel._cache = KernelCache(function)
        if not CHECKED:
            _share_with_read_only(kernel)
        return kernel

    return decorate


def _share_with_read_only(kernel: Any) -> None:
    """Let a kernel run its code for writable arrays on read-only ones as well."""
    as_usual = kernel._compile_for_args
    kept: list[list[Any]] = []  # numba finds code by the numbers of types, which are given up with them

    def compile_for_args(*args: Any) -> Any:
        kernel._compilation_chain_init_hook()
        exact = [types.Omitted(a.value) if hasattr(a, "value") else kernel.typeof_pyval(a) for a in args]
        writable = [_writable(t) for t in exact]
        if exact == writable:
            return as_usual(*args)
        entry = kernel.compile(tuple(writable))
        kept.append(exact)
        kernel._insert([t._code for t in exact], entry, False)
        return entry

    kernel._compile_for_args = compile_for_args


def _writable(t: Any) -> Any:
    """Return the type of an array as that of a writable one; so for arrays within named tuples."""
    if isinstance(t, types.Array) and not t.mutable:
        return t.copy(readonly=False)
    if isinstance(t, types.NamedTuple | types.NamedUniTuple):
        parts = [_writable(one) for one in t.types]
        if len(set(parts)) == 1:
            return types.NamedUniTuple(parts[0], len(parts), t.instance_class)
        return types.NamedTuple(parts, t.instance_class)
    return t
