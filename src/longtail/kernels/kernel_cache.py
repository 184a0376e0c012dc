"""Keep compiled kernels on disk, wherever that can be done.

They lie in the first of these folders that can be written: that of `NUMBA_CACHE_DIR`, `__pycache__` beside the source,
the user's cache folder, a private folder among the temporary ones. Where there is none, every process compiles for
itself. A package may bring compiled kernels along for usual processors (`scripts/compile_kernels.py` makes them): where
nothing of its own is kept yet, a process takes these, if its processor has all that they use.

The name of a file holds digests of all that its code depends on, the sources of the kernels it calls and the checked
mode included: old code is never taken for new, and processes that write the same file write the same.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import os
import stat
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numba
from llvmlite.binding import get_host_cpu_features
from numba.core import config
from numba.core.caching import IndexDataCacheFile, NullCache
from numba.core.compiler import CompileResult
from numba.core.runtime import rtsys
from numba.misc.appdirs import AppDirs

CHECKED = os.environ.get("LONGTAIL_CHECKED", "") not in ("", "0")  # compile with bounds checks
_listeners: list[Callable[[bool], None]] = []

BROUGHT = Path(__file__).with_name("compiled")  # kernels that came with the package, if any
# what every processor of a level has, in LLVM's words; code for a level may use any of it
_V2 = ("sse3", "ssse3", "sse4.1", "sse4.2", "crc32", "popcnt", "cx16", "sahf")
_V3 = (*_V2, "avx", "avx2", "bmi", "bmi2", "f16c", "fma", "lzcnt", "movbe", "xsave")
_V4 = (*_V3, "avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl")
PROCESSORS = {"x86-64-v4": _V4, "x86-64-v3": _V3}  # that kernels are brought for, best first: what each must have


def ignore_working_folder() -> None:
    """Let numba take no settings from the working folder, only from the environment.

    It reads `.numba_config.yaml` there, which may be a stranger's and could name a folder of compiled code to load.
    """
    if getattr(config, "_config_fname", ""):
        config._config_fname = ""
        config.reload_config()


ignore_working_folder()


def on_compilation(listener: Callable[[bool], None]) -> None:
    """Call a function, once, just before the next kernel is compiled; it is told whether the result can be kept."""
    _listeners[:] = [listener]


class KernelCache(NullCache):
    """The compiled code of one kernel on disk, one pair of files for each signature."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self._function = function
        self._source = Path(function.__code__.co_filename)
        self._name = f"{self._source.stem}.{function.__qualname__}"

    @property
    def cache_path(self) -> str | None:
        """The folder, or None where nothing can be kept."""
        folder = cache_folder(self._source.parent)
        return None if folder is None else str(folder)

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """Return what was compiled for a signature before, or None; tells the listener that it is compiled then."""
        rtsys.initialize(target_context)  # all that running code needs; what compiling needs is loaded when compiling
        own = self._file(sig, target_context.codegen())
        out = None if own is None else _loaded(own, target_context, ours=True)
        for file in self._brought(sig, target_context.codegen()) if out is None else ():
            out = _loaded(file, target_context, ours=False)
            if out is not None:
                break
        while out is None and _listeners:
            _listeners.pop()(own is not None)
        return out

    def save_overload(self, sig: Any, cres: Any) -> None:
        """Keep what was compiled for a signature and remove code of older sources; a full disk is not told of."""
        file = self._file(sig, cres.codegen)
        if file is None or cres.library.has_dynamic_globals:
            return
        with contextlib.suppress(OSError):
            file.save(0, cres._reduce())
            for other in Path(file._cache_path).glob(f"{self._name}-*.nb[ci]"):
                if not other.name.startswith(f"{self._name}-{self._digest_of_sources}-"):
                    other.unlink()

    @functools.cached_property
    def _digest_of_sources(self) -> str:
        return _digest([_digest_file(source) for source in sorted(_sources_of(self._function))])

    def _file(self, sig: Any, codegen: Any) -> IndexDataCacheFile | None:
        """Return the file of a signature."""
        folder = self.cache_path
        return None if folder is None else self._file_for(folder, sig, codegen.magic_tuple())

    def _brought(self, sig: Any, codegen: Any) -> Iterator[IndexDataCacheFile]:
        """Yield the files of a signature that came with the package and run on this processor, best first."""
        triple, *_ = codegen.magic_tuple()
        for name in _usable_processors():
            yield self._file_for(str(BROUGHT), sig, (triple, name, ""))

    def _file_for(self, folder: str, sig: Any, processor: tuple[str, str, str]) -> IndexDataCacheFile:
        """Return a file whose name says all that the code depends on."""
        how = (CHECKED, config.BOUNDSCHECK, sys.version_info[:2], numba.__version__)
        digest = _digest((str(sig), processor, how))
        return IndexDataCacheFile(folder, f"{self._name}-{self._digest_of_sources}-{digest}", b"")


def _loaded(file: IndexDataCacheFile, target_context: Any, ours: bool) -> Any:
    """Return the compiled code in a file, or None where it is damaged, vanishes or is not there."""
    try:
        reduced = file.load(0)
        return None if reduced is None else CompileResult._rebuild(target_context, *reduced)
    except MemoryError:
        raise
    except Exception:  # of whatever kind: it is compiled then
        with contextlib.suppress(OSError):
            if ours:
                file.flush()
        return None


@functools.cache
def _usable_processors() -> tuple[str, ...]:
    """Return the names in `PROCESSORS` that this processor can stand in for, if the package has kernels for any."""
    if not BROUGHT.is_dir():
        return ()
    try:
        features = get_host_cpu_features()
    except RuntimeError:  # where it cannot be told
        return ()
    return tuple(name for name, needs in PROCESSORS.items() if all(features.get(need) for need in needs))


def _digest(value: object) -> str:
    """Return a short digest of what a value looks like."""
    return hashlib.sha256(repr(value).encode("utf-8", "surrogateescape")).hexdigest()[:16]


@functools.cache
def _digest_file(name: str) -> str:
    """Return the digest of a source file."""
    return hashlib.sha256(Path(name).read_bytes()).hexdigest()


def _sources_of(function: Callable[..., Any]) -> set[str]:
    """Return the files whose code a kernel may be made of: its own, and those of kernels known by a name there."""
    out: set[str] = set()
    waiting: list[Any] = [function]
    while waiting:
        inner = waiting.pop()
        file = inner.__code__.co_filename
        if file in out:
            continue
        out.add(file)
        for value in list(inner.__globals__.values()):
            called = getattr(value, "py_func", None) or getattr(value, "_defn", None)
            if hasattr(called, "__code__"):
                waiting.append(called)
    return out


@functools.cache
def cache_folder(source: Path) -> Path | None:
    """Return the folder where the kernels of a source folder are kept: the first that can be written, or None."""
    for folder in _folders(source):
        with contextlib.suppress(OSError):
            folder.mkdir(parents=True, exist_ok=True)
            tempfile.TemporaryFile(dir=folder).close()
            return folder
    return None


def _folders(source: Path) -> Iterator[Path]:
    """Yield the folders that may hold compiled kernels, best first."""
    own = f"{source.name}_{_digest(str(source))}"
    if config.CACHE_DIR:
        yield Path(config.CACHE_DIR) / own
    yield source / "__pycache__"
    users = Path(AppDirs(appname="numba", appauthor=False).user_cache_dir)
    if users.is_absolute():  # "~" stays "~" where there is no home, and would be a folder of that name
        yield users / own
    private = _private_folder()
    if private is not None:
        yield private / own


def _private_folder() -> Path | None:
    """Return a folder among the temporary files that nobody else can read or write; None if there is none.

    Anyone may have made a folder of that name before us, and what lies there is loaded as code.
    """
    if not hasattr(os, "getuid"):
        return None
    with contextlib.suppress(OSError):
        above = Path(tempfile.gettempdir())
        if above == Path.cwd():  # what `tempfile` takes where no folder for temporary files can be written
            return None
        folder = above / f"longtail-kernels-{os.getuid()}"
        with contextlib.suppress(FileExistsError):
            folder.mkdir(0o700)
        found = folder.lstat()
        if stat.S_ISDIR(found.st_mode) and found.st_uid == os.getuid() and not found.st_mode & 0o077:
            return folder
    return None
