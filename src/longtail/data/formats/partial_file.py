"""Write a long file batch by batch so that it can be continued after a kill.

What is done stands in `NAME.partial` beside the file, and in `NAME.partial.json` a record of how far it goes and what
it belongs to. The file itself appears when it is complete. Whoever continues cuts the partial file back to the last
batch that was recorded, so that the result is the same, byte for byte, as without a break.
"""

from __future__ import annotations

import bz2
import contextlib
import gzip
import hashlib
import json
import lzma
import os
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import IO, BinaryIO, cast

from longtail.data.formats.files import replacing
from longtail.errors import DataError, LongtailError
from longtail.validate import Json

SECONDS = 1.0  # between two records, at least
SHARE = 20  # of the time goes to work for each part that goes to records
PACKED_TOGETHER = 1 << 22  # bytes of text in each stream of a compressed file
READ = 1 << 20  # bytes read at a time where a partial file is checked against its digest
PACK: dict[str, Callable[[bytes], bytes]] = {
    ".gz": lambda text: gzip.compress(text, mtime=0),
    ".xz": lzma.compress,
    ".bz2": bz2.compress,
}


@dataclass
class ReadingPosition:
    """Where a file has been read to: so many blocks of it, and so many batches of the block after them."""

    block: int = 0
    batch: int = 0


@dataclass
class Done:
    """How far a partial file goes: rows, bytes, the position in the file they were read from, a digest of the bytes."""

    rows: int = 0
    bytes: int = 0
    block: int = 0
    batch: int = 0
    digest: str = ""  # of all bytes


@dataclass
class LeftOver:
    """What a run that did not end left beside a file; `facts` is None where its record cannot be read."""

    partial: Path
    facts: Json | None
    done: Done


def partial_names(path: Path) -> tuple[Path, Path]:
    """Return the names of the partial file and of its record.

    >>> [str(name) for name in partial_names(Path("tags.csv"))]
    ['tags.csv.partial', 'tags.csv.partial.json']
    """
    return path.with_name(f"{path.name}.partial"), path.with_name(f"{path.name}.partial.json")


def left_over(path: Path) -> LeftOver | None:
    """Return what a run that did not end left beside a file; None where there is nothing."""
    partial, record = partial_names(path.resolve())
    if not partial.exists():
        return None
    shown = partial_names(path)[0]
    try:
        known = json.loads(record.read_bytes())
        done = Done(**known["done"])
        facts = known["facts"]
        whole = all(type(value) is int and value >= 0 for value in (done.rows, done.bytes, done.block, done.batch))
        if isinstance(facts, dict) and whole and isinstance(done.digest, str):
            return LeftOver(shown, facts, done)
    except (OSError, ValueError, TypeError, KeyError, RecursionError):
        pass
    return LeftOver(shown, None, Done())


class PartialFile:
    """A file that is written batch by batch; used in a `with` block, at whose end it takes its name.

    Where the block ends with an error, what was recorded stays, unless the error is about what was read.
    """

    done: Done
    facts: Json
    failed: bool
    file: BinaryIO
    kept: bool
    named: Path
    partial: Path
    path: Path
    record: Path

    def __init__(self, path: Path, facts: Json, done: Done | None = None) -> None:
        self.named, self.path = path, path.resolve()  # a link stays a link
        self.partial, self.record = partial_names(self.path)
        self.facts, self.done = facts, Done() if done is None else replace(done)
        self.waiting: list[bytes] = []
        self.waiting_bytes: int = 0
        self.failed = self.kept = False
        self.convert: Callable[[BinaryIO, IO[bytes]], None] | None = None  # makes the file of the partial one
        self.pack: Callable[[bytes], bytes] | None = PACK.get(self.path.suffix.lower())
        self.recorded: Done = replace(self.done)  # by the file of the record
        self.next_record: float = 0.0
        self.digest: hashlib.blake2b = hashlib.blake2b(digest_size=32)  # of all that is written

    def __enter__(self) -> PartialFile:
        with self._failing():
            self.file = self._open()
            try:
                end = self.done.bytes
                if end and (_size(self.file) < end or not self._is_as_recorded()):
                    name = partial_names(self.named)[0]
                    raise DataError(f"{name} is not what its record tells; delete it to begin anew.")
                if not end:
                    self._write_record()
                self.file.truncate(end)
                self.file.seek(end)
            except BaseException:
                self.file.close()
                raise
        self.next_record = time.monotonic() + SECONDS
        return self

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        try:
            if error is None:
                self._finish()
                return
            keep = self.failed or not isinstance(error, LongtailError) or _comes_from_the_system(error)
            self._stop(keep)
        except BaseException:
            if error is None:
                self._stop(keep=True)
            raise
        finally:
            self.file.close()

    def write(self, data: bytes) -> None:
        """Add bytes to the batch that is being written."""
        self.waiting.append(data)
        self.waiting_bytes += len(data)

    def end_batch(self, rows: int, position: ReadingPosition) -> None:
        """Write the batch out: so many rows are done, as far as the position in what was read."""
        if self.pack is not None and self.waiting_bytes < PACKED_TOGETHER:
            return
        self._write_out()
        self.done = Done(rows, self.file.tell(), position.block, position.batch, self.digest.hexdigest())
        now = time.monotonic()
        if now >= self.next_record:
            with self._failing():
                self._write_record(sync=True)
            after = time.monotonic()
            self.next_record = after + max(SECONDS, SHARE * (after - now))

    def _open(self) -> BinaryIO:
        """Open the partial file, which nobody else may write at the same time."""
        while True:
            file = self.partial.open("r+b" if self.partial.exists() else "x+b")
            if not _lock(file):
                file.close()
                raise DataError(f"{self.named} is being written by another process.")
            with contextlib.suppress(OSError):
                if os.path.samestat(os.fstat(file.fileno()), self.partial.stat()):
                    return cast(BinaryIO, file)
            file.close()  # its writer has just given it its name

    def _write_out(self) -> None:
        with self._failing():
            text = b"".join(self.waiting)
            written = text if self.pack is None else self.pack(text)
            self.file.write(written)
            self.digest.update(written)
            self.waiting, self.waiting_bytes = [], 0
            self.file.flush()

    def _is_as_recorded(self) -> bool:
        """Return whether the bytes up to the recorded end are those that were written, every one of them."""
        self.file.seek(0)
        left = self.done.bytes
        while left and (block := self.file.read(min(left, READ))):
            self.digest.update(block)
            left -= len(block)
        return self.digest.hexdigest() == self.done.digest

    def _write_record(self, sync: bool = False) -> None:
        """Record what is done, after it is on the disk: the record never tells of more than there is."""
        if sync:
            os.fsync(self.file.fileno())
        new = self.record.with_name(f"{self.record.name}.new")
        new.write_text(json.dumps({"facts": self.facts, "done": asdict(self.done)}), "utf-8")
        new.replace(self.record)
        self.recorded = replace(self.done)

    def _finish(self) -> None:
        """Give the complete file its name."""
        if self.waiting or (self.pack is not None and not self.done.bytes):
            self._write_out()
        with self._failing():
            if self.convert is not None:
                self.file.seek(0)
                with replacing(self.path) as out:
                    self.convert(self.file, out)
                self.partial.unlink()
            else:
                if self.path.exists():
                    self.partial.chmod(self.path.stat().st_mode & 0o777)
                os.fsync(self.file.fileno())
                if os.name == "nt":
                    self.file.close()
                self.partial.replace(self.path)
            self.record.unlink(missing_ok=True)

    def _stop(self, keep: bool) -> None:
        """Record the last whole batch, or remove everything where that is nothing."""
        with contextlib.suppress(OSError, ValueError):
            if keep and self.done.bytes > self.recorded.bytes:
                self._write_record()
        self.kept = keep and self.recorded.bytes > 0
        if not self.kept:
            for file in (self.partial, self.record, self.record.with_name(f"{self.record.name}.new")):
                with contextlib.suppress(OSError):
                    file.unlink(missing_ok=True)

    @contextlib.contextmanager
    def _failing(self) -> Iterator[None]:
        """Let a failure to write name the file."""
        try:
            yield
        except LongtailError:
            self.failed = True
            raise
        except OSError as error:
            self.failed = True
            raise DataError(f"{self.named} cannot be written: {error.strerror or error}.") from error


def _size(file: BinaryIO) -> int:
    return os.fstat(file.fileno()).st_size


def _lock(file: IO[bytes]) -> bool:
    """Mark a file as being written, as long as its process lives; says whether no other process writes it."""
    try:
        import fcntl

        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except (ImportError, OSError):  # no file locks on this system
        return True
    return True


def _comes_from_the_system(error: BaseException | None) -> bool:
    """Return whether an error was caused by the system, such as a disk that could not be read, and not by the data."""
    while error is not None:
        if isinstance(error, OSError):
            return True
        error = error.__cause__
    return False
