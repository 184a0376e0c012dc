"""The tables of a review file, and the checks that a file must pass before anything in it is used.

A review file is an SQLite database in WAL mode. A stranger's file could hold triggers, views or expressions that run
when it is read or written; so the schema must be ours, word for word, before the first query, and SQLite is told to
trust nothing in it. `decisions` and `guidelines` are only ever added to: an undo is a row too.
"""

from __future__ import annotations

import contextlib
import functools
import os
import sqlite3
from pathlib import Path

from longtail.errors import DataError, LongtailError, one_line

MAGIC = b"SQLite format 3\0"
APPLICATION_ID = 0x4C545256  # "LTRV"
VERSION = 1
BUSY_SECONDS = 20.0  # that a writer waits for another
PRAGMAS = (
    "trusted_schema = OFF",
    "cell_size_check = ON",
    "mmap_size = 0",
    "foreign_keys = ON",
    "journal_mode = WAL",
    "synchronous = FULL",  # a commit is on the disk before it is acknowledged
)
SQLITE_ERRORS = (sqlite3.Error, UnicodeDecodeError)  # the second: a message about a damaged file quotes its bytes
TABLES = """
CREATE TABLE meta (
  key TEXT PRIMARY KEY NOT NULL CHECK (typeof(key) = 'text'),
  value TEXT NOT NULL CHECK (typeof(value) = 'text')
) WITHOUT ROWID;
CREATE TABLE items (
  number INTEGER PRIMARY KEY,
  id TEXT NOT NULL UNIQUE CHECK (typeof(id) = 'text'),
  text TEXT NOT NULL CHECK (typeof(text) = 'text'),
  given TEXT NOT NULL CHECK (typeof(given) = 'text'),
  control INTEGER NOT NULL CHECK (control IN (0, 1)),
  twice INTEGER NOT NULL CHECK (twice IN (0, 1)),
  drawn INTEGER NOT NULL CHECK (typeof(drawn) = 'integer'),
  imported_at TEXT NOT NULL CHECK (typeof(imported_at) = 'text'),
  digest TEXT NOT NULL DEFAULT '' CHECK (typeof(digest) = 'text'),
  uncertainty REAL NOT NULL DEFAULT 0 CHECK (typeof(uncertainty) = 'real'),
  suspicion REAL NOT NULL DEFAULT 0 CHECK (typeof(suspicion) = 'real'),
  suspect TEXT NOT NULL DEFAULT '' CHECK (typeof(suspect) = 'text'),
  finished INTEGER NOT NULL DEFAULT 0 CHECK (typeof(finished) = 'integer'),
  open INTEGER NOT NULL DEFAULT 1 CHECK (open IN (0, 1))
);
CREATE INDEX items_by_uncertainty ON items (uncertainty DESC, number) WHERE open = 1 AND control = 0;
CREATE INDEX items_by_suspicion ON items (suspicion DESC, number) WHERE open = 1 AND control = 0 AND suspicion > 0;
CREATE INDEX items_of_control ON items (drawn, number) WHERE open = 1 AND control = 1;
CREATE INDEX items_open ON items (open) WHERE open = 1;
CREATE TABLE suggestions (
  item INTEGER NOT NULL REFERENCES items (number),
  digest TEXT NOT NULL CHECK (typeof(digest) = 'text'),
  at TEXT NOT NULL CHECK (typeof(at) = 'text'),
  tags TEXT NOT NULL CHECK (typeof(tags) = 'text'),
  PRIMARY KEY (item, digest)
) WITHOUT ROWID;
CREATE TABLE decisions (
  number INTEGER PRIMARY KEY AUTOINCREMENT,
  item INTEGER NOT NULL REFERENCES items (number),
  label TEXT NOT NULL CHECK (typeof(label) = 'text'),
  verdict TEXT NOT NULL CHECK (verdict IN ('accept', 'reject', 'add', 'done', 'undo')),
  undoes INTEGER REFERENCES decisions (number) CHECK ((verdict = 'undo') = (undoes IS NOT NULL)),
  reviewer TEXT NOT NULL CHECK (typeof(reviewer) = 'text'),
  at TEXT NOT NULL CHECK (typeof(at) = 'text'),
  note TEXT NOT NULL CHECK (typeof(note) = 'text'),
  digest TEXT NOT NULL CHECK (typeof(digest) = 'text')
);
CREATE INDEX decisions_by_item ON decisions (item, number);
CREATE UNIQUE INDEX decisions_undone ON decisions (undoes) WHERE undoes IS NOT NULL;
CREATE TABLE finished (
  item INTEGER NOT NULL REFERENCES items (number),
  reviewer TEXT NOT NULL CHECK (typeof(reviewer) = 'text'),
  decision INTEGER NOT NULL REFERENCES decisions (number),
  PRIMARY KEY (item, reviewer)
) WITHOUT ROWID;
CREATE INDEX finished_by_reviewer ON finished (reviewer, item);
CREATE TABLE leases (
  item INTEGER NOT NULL REFERENCES items (number),
  reviewer TEXT NOT NULL CHECK (typeof(reviewer) = 'text'),
  until REAL NOT NULL CHECK (typeof(until) = 'real'),
  digest TEXT NOT NULL CHECK (typeof(digest) = 'text'),
  asked TEXT NOT NULL CHECK (typeof(asked) = 'text'),
  reason TEXT NOT NULL CHECK (typeof(reason) = 'text'),
  PRIMARY KEY (item, reviewer)
) WITHOUT ROWID;
CREATE TABLE handed_out (
  reason TEXT PRIMARY KEY NOT NULL CHECK (typeof(reason) = 'text'),
  times INTEGER NOT NULL CHECK (typeof(times) = 'integer')
) WITHOUT ROWID;
CREATE TABLE guidelines (
  number INTEGER PRIMARY KEY AUTOINCREMENT,
  label TEXT NOT NULL CHECK (typeof(label) = 'text'),
  text TEXT NOT NULL CHECK (typeof(text) = 'text'),
  reviewer TEXT NOT NULL CHECK (typeof(reviewer) = 'text'),
  at TEXT NOT NULL CHECK (typeof(at) = 'text')
);
CREATE INDEX guidelines_by_label ON guidelines (label, number);
CREATE TABLE updates (
  number INTEGER PRIMARY KEY AUTOINCREMENT,
  at TEXT NOT NULL CHECK (typeof(at) = 'text'),
  old_digest TEXT NOT NULL CHECK (typeof(old_digest) = 'text'),
  new_digest TEXT NOT NULL CHECK (typeof(new_digest) = 'text'),
  facts TEXT NOT NULL CHECK (typeof(facts) = 'text')
);
CREATE INDEX updates_by_digest ON updates (new_digest);
CREATE TABLE learned (
  change INTEGER NOT NULL REFERENCES updates (number),
  item INTEGER NOT NULL REFERENCES items (number),
  labels TEXT NOT NULL CHECK (typeof(labels) = 'text'),
  PRIMARY KEY (change, item)
) WITHOUT ROWID;
"""


class ReviewBusy(LongtailError):
    """Another process holds the review file for too long; try again."""


def create_file(path: Path, meta: dict[str, str]) -> None:
    """Make an empty review file, as a whole or not at all; one that another process makes meanwhile stays."""
    if not path.absolute().parent.is_dir():
        raise DataError(f"{path} cannot be made: the folder {path.parent} does not exist.")
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        temporary.unlink(missing_ok=True)
        os.close(os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))  # what people wrote is theirs
        with contextlib.closing(sqlite3.connect(temporary, isolation_level=None)) as db:
            db.executescript(f"PRAGMA application_id = {APPLICATION_ID}; PRAGMA user_version = {VERSION}; BEGIN;")
            for statement in statements():
                db.execute(statement)
            db.executemany("INSERT INTO meta VALUES (?, ?)", sorted(meta.items()))
            db.execute("COMMIT")
        with temporary.open("rb") as file:
            os.fsync(file.fileno())
        _put_in_place(temporary, path)
        _sync_folder(path.absolute().parent)
    except (OSError, sqlite3.Error) as error:
        raise DataError(f"{path} cannot be made: {_reason(error)}.") from error
    finally:
        with contextlib.suppress(OSError):
            temporary.unlink(missing_ok=True)


def _put_in_place(temporary: Path, path: Path) -> None:
    """Give a finished file its name, never in the place of another file."""
    try:
        os.link(temporary, path)
    except FileExistsError:
        pass
    except OSError:  # a file system without hard links
        if not path.exists():
            temporary.rename(path)


def statements() -> list[str]:
    """Return the statements that make the tables, one each."""
    return [part.strip() for part in TABLES.split(";") if part.strip()]


def check_header(path: Path) -> None:
    """Refuse what is no review file, or one of another version, before SQLite reads it."""
    try:
        with path.open("rb") as file:
            head = file.read(100)
    except FileNotFoundError as error:
        raise DataError(f"{path} does not exist.") from error
    except OSError as error:
        raise DataError(f"{path} cannot be read: {error.strerror}.") from error
    if len(head) < 100 or not head.startswith(MAGIC) or int.from_bytes(head[68:72]) != APPLICATION_ID:
        raise DataError(f"{path} is not a review file.")
    version = int.from_bytes(head[60:64])
    if version != VERSION:
        raise DataError(f"{path} is a review file of version {version}; this longtail reads version {VERSION}.")


def connect(path: Path) -> sqlite3.Connection:
    """Open a review file: durable, trusting nothing that it holds, and only if its tables are ours."""
    uri = path.absolute().as_uri() + "?mode=rw"
    try:
        db = sqlite3.connect(uri, uri=True, timeout=BUSY_SECONDS, isolation_level=None, check_same_thread=False)
    except sqlite3.Error as error:
        raise _unreadable(path, error) from error
    try:
        for pragma in PRAGMAS:
            db.execute(f"PRAGMA {pragma}").fetchall()
        if _schema(db) != _expected_schema():
            raise DataError(f"{path} is not as longtail makes review files: it holds other tables, views or triggers.")
    except BaseException as error:
        db.close()
        if isinstance(error, SQLITE_ERRORS):
            raise _unreadable(path, error) from error
        raise
    return db


def check_contents(path: Path, db: sqlite3.Connection) -> None:
    """Refuse a file that is damaged."""
    try:
        problem = db.execute("PRAGMA quick_check(1)").fetchone()[0]
    except SQLITE_ERRORS as error:
        raise _unreadable(path, error) from error
    if problem != "ok":
        raise DataError(f"{path} is damaged: {one_line(' '.join(str(problem).split()))}.")


def _schema(db: sqlite3.Connection) -> set[tuple[str, str, str, str | None]]:
    """Return everything that a database declares."""
    return set(db.execute("SELECT type, name, tbl_name, sql FROM sqlite_master"))


@functools.cache
def _expected_schema() -> set[tuple[str, str, str, str | None]]:
    """Return what a review file declares."""
    with contextlib.closing(sqlite3.connect(":memory:")) as db:
        for statement in statements():
            db.execute(statement)
        return _schema(db)


def sqlite_problem(path: Path, error: Exception) -> LongtailError:
    """Return one sentence for what SQLite says while a review file is used."""
    if getattr(error, "sqlite_errorname", "").startswith(("SQLITE_BUSY", "SQLITE_LOCKED")):
        return ReviewBusy(f"{path} is held by another process for more than {BUSY_SECONDS:g} s; try again.")
    if isinstance(error, sqlite3.OperationalError):  # a full disk, a file that cannot be written
        return LongtailError(f"{path} cannot be used: {_reason(error)}.")
    return DataError(f"{path} is damaged: {_reason(error)}.")


def _unreadable(path: Path, error: Exception) -> LongtailError:
    """Return one sentence for a file that cannot be opened."""
    found = sqlite_problem(path, error)
    return found if isinstance(found, ReviewBusy) else DataError(f"{path} cannot be read: {_reason(error)}.")


def _reason(error: Exception) -> str:
    """Return what went wrong in a few words, in one line."""
    if isinstance(error, UnicodeDecodeError):
        return "it is damaged"
    return one_line((error.strerror if isinstance(error, OSError) else None) or str(error))


def _sync_folder(folder: Path) -> None:
    """Make the entry of a new file durable."""
    if hasattr(os, "O_DIRECTORY"):
        handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
