"""Judge one case: it ends in a result or in one sentence, quickly, in little memory, and touches nothing else.

A case may end in a result that passes its check or in a `LongtailError` of one line. Anything else is a finding:
another exception, more than `SECONDS` of processor time, more memory than `TIMES` the size of the files (beside a
fixed base), a write outside the folder of the case, a file left in it by a reader, a connection, a process, an import
of something that was not loaded by reading sound files. Writes, connections, processes and imports are seen by an audit
hook of Python, which refuses them too.
"""

from __future__ import annotations

import os
import resource
import shutil
import signal
import sys
import time
import traceback
import warnings
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import Any

from fuzz.case import Case, Target, Wrong
from longtail.errors import LongtailError

EXTRAS = ("cryptography", "pyarrow", "highspy", "faiss", "pandas")  # asked for by us or by pyarrow, installed or not
SECONDS = 5.0
TIMES = 20
ADDRESS_SPACE = 1 << 30  # bytes a child may map beyond what it has before the first case
LONGEST_SENTENCE = 3000
WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
CHANGES = {"os.rename", "os.remove", "os.rmdir", "os.mkdir", "os.link", "os.symlink", "os.chmod", "os.chown",
           "os.truncate", "os.utime", "shutil.rmtree", "shutil.move", "shutil.copyfile"}  # fmt: skip
CONNECTIONS = {"socket.connect", "socket.getaddrinfo", "socket.gethostbyname", "socket.bind", "socket.sendto",
               "urllib.Request", "http.client.connect", "ftplib.connect"}  # fmt: skip
PROCESSES = {"subprocess.Popen", "os.system", "os.exec", "os.posix_spawn", "os.spawn", "os.fork", "os.forkpty",
             "os.startfile", "pty.spawn"}  # fmt: skip
RUNNING = {"pickle.find_class", "code.__new__"}
HARMLESS = ("/dev/null", "/dev/tty")


@dataclass(frozen=True)
class Verdict:
    """How a case ended: "read", "refused" or the kind of a finding, with what it took."""

    outcome: str
    sentence: str = ""
    place: str = ""  # of an exception: the innermost line of the library
    seconds: float = 0.0
    growth: int = 0  # bytes of memory at the peak, above those before

    @property
    def is_finding(self) -> bool:
        """Whether something is wrong."""
        return self.outcome not in ("read", "refused")


class TooSlow(BaseException):
    """A case used up its processor time."""


class Watch:
    """Watches over the cases that run in this process, one after the other, in a folder of their own."""

    def __init__(self, sandbox: Path) -> None:
        self.sandbox = sandbox
        self.folder = sandbox / "case"
        self.inside = f"{sandbox}{os.sep}"
        self.seen: list[tuple[str, str]] = []
        self.active = False
        self.peak = os.open("/proc/self/clear_refs", os.O_WRONLY)
        _clear(sandbox)
        (sandbox / "work").mkdir(parents=True)
        self.folder.mkdir()
        warnings.simplefilter("ignore")
        os.chdir(sandbox / "work")
        sys.addaudithook(self._hook)
        signal.signal(signal.SIGPROF, _too_slow)

    def limit_memory(self, base: int) -> None:
        """Let this process map no more than it has now and a gigabyte, or eight times the base of a target."""
        mapped = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
        limit = mapped + max(ADDRESS_SPACE, 8 * base)
        resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))

    def judge(self, target: Target, case: Case) -> Verdict:
        """Write the files of a case, run it, and say how it ended."""
        case.write(self.folder)
        os.write(self.peak, b"5")  # the peak of the memory is what is taken now
        before, started = _peak(), time.thread_time()
        self.seen, self.active = [], True
        signal.setitimer(signal.ITIMER_PROF, SECONDS)
        try:
            outcome, sentence, place = _outcome(target, case, self.folder)
        except TooSlow:
            outcome, sentence, place = "slow", f"more than {SECONDS:g} s of processor time", ""
        finally:
            signal.setitimer(signal.ITIMER_PROF, 0)
            self.active = False
        seconds, growth = time.thread_time() - started, _peak() - before
        more = [*self.seen, *self._left_behind(case, may_write=target.group == "commands")]
        if more:
            outcome, sentence = more[0]
        elif growth > target.base + TIMES * case.size and outcome in ("read", "refused"):
            outcome, sentence = "memory", f"{growth >> 20} MiB for {case.size} bytes; {sentence}"
        if case.expect and outcome in ("read", "refused") and outcome != case.expect:
            outcome, sentence = "wrong", f"it must be {case.expect}, and is {outcome}: {sentence}"
        return Verdict(outcome, sentence, place, seconds, growth)

    def _left_behind(self, case: Case, may_write: bool) -> list[tuple[str, str]]:
        """Remove the files of a case; whatever is there besides is a finding."""
        kept = {name.split("/", 1)[0] for name in case.files}
        made = _names(self.sandbox / "work")
        found = [*(name for name in _names(self.folder) if name not in kept), *made]
        extra = [name for name in _names(self.sandbox) if name not in ("case", "work")]
        if any("/" in name for name in case.files) or found or may_write:
            _clear(self.folder)
            self.folder.mkdir()
            for name in made:
                _clear(self.sandbox / "work" / name)
        else:
            for name in case.files:
                os.unlink(f"{self.folder}/{name}")  # noqa: PTH108 (a million times)
        for name in extra:
            _clear(self.sandbox / name)
        found = extra if may_write else [*found, *extra]
        return [("write", f"left {found[0]!r}")] if found else []

    def _hook(self, event: str, args: tuple[Any, ...]) -> None:
        if not self.active:
            return
        if event == "open":
            path, mode, flags = args
            writing = (isinstance(mode, str) and any(c in mode for c in "wax+")) or bool((flags or 0) & WRITING)
            if writing and not isinstance(path, int):
                self._check_path(event, path)
        elif event in CHANGES:
            for path in args[: 2 if event in ("os.rename", "os.link") else 1]:
                self._check_path(event, path)
        elif event in CONNECTIONS:
            self._refuse("connection", f"{event}{args!r}")
        elif event in PROCESSES:
            self._refuse("process", f"{event}{args!r}")
        elif event in RUNNING or (event == "ctypes.dlopen" and str(args[0]).startswith(self.inside)):
            self._refuse("code", f"{event}{args!r}")
        elif event == "import" and not _may_import(args[0]):
            self._refuse("import", str(args[0]))

    def _check_path(self, event: str, path: Any) -> None:
        if path is None or isinstance(path, int):
            return
        name = os.path.abspath(os.fsdecode(path))  # noqa: PTH100 (links are not followed)
        if not name.startswith(self.inside) and name not in HARMLESS:
            self._refuse("write", f"{event} {name!r}")

    def _refuse(self, kind: str, what: str) -> None:
        self.seen.append((kind, what[:300]))
        raise PermissionError(f"the fuzzer refuses {kind}: {what[:100]}")


def _outcome(target: Target, case: Case, folder: Path) -> tuple[str, str, str]:
    """Run a case and return how it ended, the sentence and the place of an exception."""
    try:
        how = target.run(case, folder)
        return "refused" if how == "refused" else "read", "", ""
    except LongtailError as error:
        sentence = str(error)
        one_line = sentence.strip() and "\n" not in sentence and "\r" not in sentence
        if one_line and len(sentence) <= LONGEST_SENTENCE:
            return "refused", sentence, ""
        return "sentence", sentence[:500] or "an empty sentence", _place(error)
    except Wrong as error:
        return "wrong", str(error)[:500], ""
    except (Exception, SystemExit, KeyboardInterrupt) as error:
        return "exception", f"{type(error).__name__}: {str(error)[:400]}", f"{type(error).__name__} {_place(error)}"


def _place(error: BaseException) -> str:
    """Return the innermost line of the library that an exception passed."""
    frames = traceback.extract_tb(error.__traceback__)
    ours = [frame for frame in frames if f"{os.sep}longtail{os.sep}" in frame.filename]
    if not ours:
        return ""
    return f"{ours[-1].filename.rpartition(f'{os.sep}longtail{os.sep}')[2]}:{ours[-1].lineno}"


def _may_import(name: str) -> bool:
    """Say whether a module may be loaded in a case: of the standard library, an extra, or what is loaded already."""
    top = name.partition(".")[0]
    if name.startswith("transformers.models."):
        return ".".join(name.split(".")[:3]) in sys.modules
    return top in sys.stdlib_module_names or top in sys.modules or top in EXTRAS


def _peak() -> int:
    """Return the most memory that this process has had since the peak was reset, in bytes."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss << 10


def _too_slow(number: int, frame: FrameType | None) -> None:
    raise TooSlow


def _names(folder: Path) -> list[str]:
    """Return what is in a folder."""
    return os.listdir(folder)  # noqa: PTH208 (a million times)


def _clear(path: Path) -> None:
    """Remove a file or a folder, if it is there."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)
