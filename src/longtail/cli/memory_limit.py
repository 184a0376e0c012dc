"""Commands under a limit on memory (`ulimit -v`): a sentence where libraries would spin, abort or blame a signal.

Libraries below Python do not expect that memory is refused to them. OpenBLAS tries again for ever or sends its own
process SIGINT, LLVM aborts, an import fails with words about shared objects. So a command that has a limit runs in a
child process, with one thread for linear algebra, and this process tells what became of it.
"""

from __future__ import annotations

import errno
import os
import signal
import sys

LEAST = 800_000_000  # bytes of addresses: Python, numpy, scipy, numba with its compiler, and a small model
NATIVE = {getattr(signal, name) for name in ("SIGABRT", "SIGSEGV", "SIGBUS", "SIGILL") if hasattr(signal, name)}
SIGNS = ("map segment", "allocate", "new thread", "llvmlite.so", "out of memory")  # in errors of imports and threads


def address_limit() -> int | None:
    """Return how many bytes of addresses this process may have; None where there is no limit."""
    try:
        import resource
    except ImportError:
        return None
    least = min(n for n in (*resource.getrlimit(resource.RLIMIT_AS)[:1], sys.maxsize) if n != resource.RLIM_INFINITY)
    return None if least == sys.maxsize else least


def run_in_child() -> int | None:
    """Go on in a child process if there is a limit, and return its exit code; None in the child, or without a limit."""
    limit = address_limit()
    if limit is None or {"-h", "--help", "--version"} & set(sys.argv[1:]):
        return None
    if limit < LEAST:
        return _tell(f"it needs {_size(LEAST)} at least, and this process is limited to {_size(limit)} (ulimit -v)")
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    child = 0

    def pass_on(number: int, frame: object) -> None:
        if child:
            os.kill(child, number)

    before = {
        signal.SIGINT: signal.signal(signal.SIGINT, signal.SIG_IGN),  # Ctrl-C reaches the child as well
        signal.SIGTERM: signal.signal(signal.SIGTERM, pass_on),
    }
    child = os.fork()
    if child == 0:
        for number, handler in before.items():
            signal.signal(number, handler)
        return None
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    if -code in NATIVE:
        name = signal.Signals(-code).name
        return _tell(f"{name} in a library, where memory is limited to {_size(limit)} (ulimit -v)")
    return code if code >= 0 else 128 - code


def is_lack_of_memory(error: BaseException) -> bool:
    """Return whether an error means that memory was refused.

    >>> is_lack_of_memory(MemoryError())
    True
    """
    if isinstance(error, MemoryError) or (isinstance(error, OSError) and error.errno == errno.ENOMEM):
        return True
    libraries = isinstance(error, ImportError | OSError | RuntimeError | SystemError)
    return libraries and address_limit() is not None and any(sign in str(error) for sign in SIGNS)


def lack_of_memory() -> str:
    """Return the sentence about memory that was refused."""
    limit = address_limit()
    return "out of memory" + ("" if limit is None else f": this process is limited to {_size(limit)} (ulimit -v)") + "."


def _tell(why: str) -> int:
    os.write(2, f"error: out of memory: {why}.\n".encode("ascii"))
    return 1


def _size(n_bytes: int) -> str:
    return f"{n_bytes / 1e6:.0f} MB"
