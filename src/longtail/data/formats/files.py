"""Open files, compressed or not, and write them all or nothing; every failure is one sentence.

Text is read in blocks of whole lines, so memory does not grow with the file; the number of the first line travels
with each block, so that a complaint can name the line.
"""

from __future__ import annotations

import bz2
import codecs
import contextlib
import glob
import gzip
import io
import lzma
import os
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any, cast

from longtail.data.limits import DEFAULT_LIMITS, Limits, over_limit
from longtail.errors import DataError, Keyword, ParameterError, warn_of_data

BLOCK = 1 << 20  # bytes of text held at a time
MOST_XZ_MEMORY = (1 << 32) + (1 << 20)  # bytes: what the largest dictionary takes
BOM = b"\xef\xbb\xbf"
UTF_8 = "utf-8"
UTF_16_MARKS = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
FALLBACK = "windows-1252"  # of files that are not UTF-8, as Excel writes them in much of Europe
NO_ENCODINGS = ("idna", "punycode", "undefined", "unicode_escape", "raw_unicode_escape", "utf-7", "mbcs", "oem")
COMPRESSED = (".gz", ".xz", ".bz2")


def plain_name(path: Path) -> str:
    """Return the file's name without its compression suffix.

    >>> plain_name(Path("train.jsonl.xz"))
    'train.jsonl'
    """
    return path.name.removesuffix(path.suffix) if path.suffix.lower() in COMPRESSED else path.name


class _Metered(io.RawIOBase):
    """The bytes of a compressed file, refused when they get more than the limit."""

    def __init__(self, path: Path, file: IO[bytes], limits: Limits) -> None:
        self.path, self.file, self.done, self.most = path, file, 0, limits.bytes_to_unpack()

    def read(self, size: int = -1) -> bytes:
        """Return the next bytes."""
        chunk = self.file.read(size if size >= 0 else self.most - self.done + 1)
        self.done += len(chunk)
        if self.done > self.most:
            over_limit("unpacked_bytes", self.most, 2 * self.most, str(self.path))
        return chunk


class _Xz(io.RawIOBase):
    """The bytes of an .xz file, unpacked within a limit to the memory that the file asks for."""

    def __init__(self, path: Path, file: IO[bytes], limits: Limits) -> None:
        self.path, self.file, self.most = path, file, limits.xz_memory
        self.decoder = lzma.LZMADecompressor(memlimit=self.most)

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        """Unpack into a buffer; 0 at the end of the file."""
        view = memoryview(buffer).cast("B")
        while True:
            packed = b""
            if self.decoder.eof:  # another stream may follow, after zeros
                packed = (self.decoder.unused_data or self.file.read(BLOCK)).lstrip(b"\0")
                while not packed and (more := self.file.read(BLOCK)):
                    packed = more.lstrip(b"\0")
                if not packed:
                    return 0
                self.decoder = lzma.LZMADecompressor(memlimit=self.most)
            elif self.decoder.needs_input:
                packed = self.file.read(BLOCK)
                if not packed:
                    raise EOFError
            chunk = self._unpacked(packed, len(view))
            if chunk:
                view[: len(chunk)] = chunk
                return len(chunk)

    def _unpacked(self, packed: bytes, most: int) -> bytes:
        try:
            return self.decoder.decompress(packed, most)
        except lzma.LZMAError as error:
            if "limit" not in str(error):
                raise
            over_limit("xz_memory", self.most, MOST_XZ_MEMORY, str(self.path))


def _unpack(path: Path, raw: IO[bytes], suffix: str, limits: Limits) -> IO[bytes]:
    """Return the bytes of a compressed file as they are unpacked."""
    if suffix == ".xz":
        return cast(IO[bytes], io.BufferedReader(_Xz(path, raw, limits), BLOCK))
    return cast(IO[bytes], gzip.open(raw, "rb") if suffix == ".gz" else bz2.open(raw, "rb"))


class Stream:
    """Bytes that come from an open stream, read where a file is read; its name stands in errors."""

    file: IO[bytes]
    name: str

    suffix = ""

    def __init__(self, name: str, file: IO[bytes]) -> None:
        self.name, self.file = name, file

    def __str__(self) -> str:
        return self.name

    def read(self, size: int = -1) -> bytes:
        """Return what has come, waiting only where nothing has."""
        read1 = getattr(self.file, "read1", self.file.read)
        out: bytes = read1(size)
        return out


@contextlib.contextmanager
def open_bytes(path: Path | Stream, limits: Limits = DEFAULT_LIMITS) -> Iterator[IO[bytes]]:
    """Open a file for reading, through .gz, .xz and .bz2; what goes wrong becomes one clear sentence.

    A compressed file can only be read from its beginning to its end.
    """
    if isinstance(path, Stream):
        yield cast(IO[bytes], path)
        return
    if path.is_dir():
        raise DataError(f"{path} is a folder, not a file.")
    suffix = path.suffix.lower()
    try:
        with path.open("rb") as raw:
            packed = suffix in COMPRESSED
            yield cast(IO[bytes], _Metered(path, _unpack(path, raw, suffix, limits), limits)) if packed else raw
    except FileNotFoundError as error:
        raise DataError(f"{path} does not exist.") from error
    except PermissionError as error:
        raise DataError(f"{path} cannot be read: permission denied.") from error
    except (EOFError, lzma.LZMAError, zlib.error, OSError) as error:
        if suffix in COMPRESSED:
            raise DataError(f"{path} is truncated or damaged.") from error
        raise DataError(f"{path} cannot be read: {error.strerror if isinstance(error, OSError) else error}.") from error


class _Recoded(io.RawIOBase):
    """The bytes of a file in another encoding, as UTF-8."""

    def __init__(self, path: Path, file: IO[bytes], encoding: str) -> None:
        self.path, self.file, self.encoding, self.line = path, file, encoding, 1
        self.decoder = codecs.getincrementaldecoder(encoding)()

    def read(self, size: int = -1) -> bytes:
        """Return the next bytes; none at the end of the file."""
        while True:
            chunk = self.file.read(size)
            try:
                out = self.decoder.decode(chunk, final=not chunk).encode()
            except UnicodeError as error:
                raise DataError(f"{self.path} line {self._line_of(error)} is not {self.encoding}.") from error
            self.line += out.count(b"\n")
            if out or not chunk:
                return out

    def _line_of(self, error: UnicodeError) -> int:
        """Return the line, at least, that could not be read."""
        if not isinstance(error, UnicodeDecodeError):
            return self.line
        try:
            before = codecs.getincrementaldecoder(self.encoding)("replace").decode(error.object[: error.start])
        except UnicodeError:  # of which some encodings forgive nothing
            return self.line
        return self.line + before.count("\n")


class _WithHead(io.RawIOBase):
    """A file whose first bytes were read already."""

    def __init__(self, head: bytes, file: IO[bytes]) -> None:
        self.head, self.file = head, file

    def read(self, size: int = -1) -> bytes:
        """Return the next bytes."""
        head, self.head = self.head, b""
        return head + self.file.read(size)


def _as_utf8(path: Path, file: IO[bytes], encoding: str | None) -> IO[bytes]:
    """Return a file's text as UTF-8; None stands for UTF-16 where a byte order mark says so, else for no change.

    A byte order mark wins over the name of another encoding, of which a warning tells.
    """
    if encoding is None or not encoding.startswith("utf"):
        head = file.read(len(BOM))
        file = cast(IO[bytes], _WithHead(head, file))
        marked = UTF_8 if head == BOM else "utf-16" if head[:2] in UTF_16_MARKS else None
        if encoding is not None and marked is not None:
            warn_of_data(
                "{path} begins with the byte order mark of {marked}, so it is read as that and not as {encoding}.",
                path=path,
                marked=marked.upper(),
                encoding=encoding,
            )
        encoding = marked or encoding or UTF_8
    return file if encoding == UTF_8 else cast(IO[bytes], _Recoded(path, file, encoding))


def check_encoding(encoding: str | None) -> str | None:
    """Return the name of an encoding as Python knows it; None stays None.

    >>> check_encoding("UTF8"), check_encoding("cp1252")
    ('utf-8', 'cp1252')
    """
    if encoding is None:
        return None
    try:
        found = codecs.lookup(encoding)
        if found.name.replace("_", "-") not in [name.replace("_", "-") for name in NO_ENCODINGS]:
            "".encode(found.name)  # a codec of bytes, such as zlib, is a LookupError here
            return UTF_8 if found.name == "utf-8-sig" else found.name
    except (LookupError, TypeError, ValueError):
        pass
    raise ParameterError(
        name="encoding", allowed="an encoding such as 'utf-8', 'windows-1252' or 'utf-16'", got=encoding
    )


def line_blocks(
    path: Path,
    size: int = BLOCK,
    *,
    may_be_empty: bool = False,
    limits: Limits = DEFAULT_LIMITS,
    encoding: str | None = UTF_8,
    skip: int = 0,
) -> Iterator[tuple[int, bytes]]:
    """Yield whole lines as (number of the first line, bytes ending in a newline), about `size` bytes at a time.

    A byte order mark at the start is dropped. A file with nothing else is refused unless `may_be_empty`. Text in
    another encoding comes as UTF-8; None means UTF-16 where a byte order mark says so, else UTF-8. A mark wins over the
    name of an encoding. The first `skip` blocks are left out.
    """
    line, rest, waiting, anything = 1, [b""], 0, False
    with open_bytes(path, limits) as raw:
        file = raw if encoding == UTF_8 else _as_utf8(path, raw, encoding)
        while chunk := file.read(size):
            if not anything:
                chunk = chunk.removeprefix(BOM)
                anything = bool(chunk)
            cut = chunk.rfind(b"\n") + 1
            waiting += len(chunk) if cut == 0 else chunk.index(b"\n")
            limits.check("line_bytes", waiting, f"{path} line {line}")
            if cut == 0:
                rest.append(chunk)
                continue
            block = b"".join([*rest, chunk[:cut]])
            rest, waiting = [chunk[cut:]], len(chunk) - cut
            if limits.line_bytes < size:
                _check_lines(path, line, block, limits)
            if skip:
                skip -= 1
            else:
                yield line, block
            line += block.count(b"\n")
            limits.check("line_bytes", waiting, f"{path} line {line}")
    if not anything and not may_be_empty:
        raise DataError(f"{path} is empty.")
    last = b"".join(rest)
    if last and not skip:
        yield line, last + b"\n"


def _check_lines(path: Path, first: int, block: bytes, limits: Limits) -> None:
    """Refuse a block with a line that is too long."""
    for number, line in enumerate(block.split(b"\n"), first):
        limits.check("line_bytes", len(line), f"{path} line {number}")


def text_blocks(
    path: Path,
    size: int = BLOCK,
    *,
    may_be_empty: bool = False,
    limits: Limits = DEFAULT_LIMITS,
    encoding: str | None = UTF_8,
    skip: int = 0,
    named: bool = True,
) -> Iterator[tuple[int, str]]:
    """Yield whole lines as (number of the first line, text); a byte that is not UTF-8 is refused by its line.

    The encoding None guesses: UTF-16 with a byte order mark, UTF-8 or, where the first character that is not ASCII is
    not UTF-8, Windows-1252, of which a warning tells. The first `skip` blocks are left out, in a known encoding only.
    `named` says whether the caller could name the encoding.
    """
    guessing, used = encoding is None, UTF_8
    for line, block in line_blocks(path, size, may_be_empty=may_be_empty, limits=limits, encoding=encoding, skip=skip):
        if guessing and not block.isascii():
            guessing = False
            used = _guess_encoding(path, line, block, named)
        yield line, decode(path, line, block, used)


def _guess_encoding(path: Path, line: int, block: bytes, named: bool) -> str:
    """Return UTF-8 or Windows-1252 for the first block that is not ASCII alone."""
    try:
        block.decode(UTF_8)
    except UnicodeDecodeError as error:
        if block[: error.start].isascii():
            warn_of_data(
                "{path} line {line} is not UTF-8, so the file is read as Windows-1252; {advice} if it is another.",
                path=path,
                line=line + block.count(b"\n", 0, error.start),
                guessed_encoding=FALLBACK,
                advice=Keyword("encoding", verb="pass") if named else "save it as UTF-8",
            )
            return FALLBACK
    return UTF_8


def decode(path: Path, line: int, block: bytes, encoding: str = UTF_8) -> str:
    """Return the text of a block that starts at the given line."""
    try:
        return block.decode(encoding)
    except UnicodeDecodeError as error:
        line += block.count(b"\n", 0, error.start)
        name = "UTF-8" if encoding == UTF_8 else "UTF-8, nor Windows-1252"
        raise DataError(f"{path} line {line} is not {name}: byte 0x{block[error.start]:02X}.") from error


def split_lines(text: str) -> list[str]:
    """Return the lines of a block without their ends; only \\n and \\r\\n end a line (U+2028 does not)."""
    lines = text.split("\n")
    lines.pop()  # the block ends in a newline
    return [line.removesuffix("\r") for line in lines] if "\r" in text else lines


@contextlib.contextmanager
def replacing(path: Path) -> Iterator[IO[bytes]]:
    """Write a file all or nothing: a temporary file beside it takes its place when the block ends without error.

    Compressed by suffix like `open_bytes`; the same content gives the same bytes.
    """
    if path.is_dir():
        raise DataError(f"{path} is a folder; choose the name of a file.")
    if not path.absolute().parent.is_dir():
        raise DataError(f"{path} cannot be written: the folder {path.parent} does not exist.")
    named, path = path, path.resolve()  # a link stays a link
    through = path.exists() and not path.is_file()  # a device or a pipe: written to, never replaced
    temporary = path if through else path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        if not through:
            _remove_leftovers(path)
        with temporary.open("wb" if through else "xb") as raw:
            if not through:
                _lock(raw)
            if not through and path.exists():
                temporary.chmod(path.stat().st_mode & 0o777)
            suffix = path.suffix.lower()
            if suffix == ".gz":
                with gzip.GzipFile(filename="", mode="wb", fileobj=raw, mtime=0) as packed:
                    yield cast(IO[bytes], packed)
            elif suffix in (".xz", ".bz2"):
                with lzma.LZMAFile(raw, "wb") if suffix == ".xz" else bz2.BZ2File(raw, "wb") as squeezed:
                    yield squeezed
            else:
                yield raw
            raw.flush()
            if not through:
                os.fsync(raw.fileno())
        if not through:
            temporary.replace(path)
    except PermissionError as error:
        raise DataError(f"{named} cannot be written: permission denied.") from error
    except OSError as error:  # which may name the temporary file
        raise DataError(f"{named} cannot be written: {error.strerror or error}.") from error
    finally:
        if not through:
            with contextlib.suppress(OSError):
                temporary.unlink(missing_ok=True)


def _lock(file: IO[bytes]) -> bool:
    """Mark a temporary file as being written, as long as its process lives; says whether nobody else writes it."""
    try:
        import fcntl

        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except (ImportError, OSError):  # no file locks on this system, or another process holds this one
        return False
    return True


def _remove_leftovers(path: Path) -> None:
    """Remove the temporary files of writers that were killed; those of living ones are locked."""
    for left in path.parent.glob(f".{glob.escape(path.name)}.*.tmp"):
        with contextlib.suppress(OSError):
            with left.open("rb") as file:
                dead = _lock(file)
            if dead or left.name == f".{path.name}.{os.getpid()}.tmp":
                left.unlink()


def check_writable(path: Path) -> None:
    """Refuse, before any work, a file that could not be written after it; what stands there stays as it is.

    >>> check_writable(Path("nowhere/rows.csv"))
    Traceback (most recent call last):
    ...
    longtail.errors.DataError: nowhere/rows.csv cannot be written: the folder nowhere does not exist.
    """
    if path.exists() and not path.is_file() and not path.is_dir():  # opening a pipe would wait for its reader
        return
    with contextlib.suppress(_Tried), replacing(path):
        raise _Tried


class _Tried(Exception):
    """Leaves `replacing` before anything is replaced."""
