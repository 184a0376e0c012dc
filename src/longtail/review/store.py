"""The review file: rows, what models suggested for them, and what people decided, one transaction each.

A decision that was acknowledged is on the disk: SQLite writes ahead to a log and waits for the disk before a commit
returns. Several processes and threads may use one file at once; each use has a connection of its own.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import math
import os
import sqlite3
import threading
import time
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

from longtail.errors import BREAKING, DataError, LongtailError, ParameterError
from longtail.review.file_schema import (
    SQLITE_ERRORS,
    check_contents,
    check_header,
    connect,
    create_file,
    sqlite_problem,
)
from longtail.validate import check_choice, check_integer, check_real

LONGEST_ID = 500  # characters
LONGEST_LABEL = 2000
LONGEST_NOTE = 4000
LONGEST_REVIEWER = 200
LONGEST_TEXT = 10_000_000
LONGEST_GUIDELINE = 20_000
MOST_LABELS = 10_000  # of one row
CONTROL_SHARE, TWICE_SHARE = 0.2, 0.1
VERDICTS = ("accept", "reject", "add")
NOT_UNDONE = "NOT EXISTS (SELECT 1 FROM decisions u WHERE u.undoes = d.number)"


class NotThere(LongtailError):
    """A row or a decision that the review file does not hold."""

    exit_code = 3


class NewItem(NamedTuple):
    """A row to be reviewed; without an id it is called by a digest of its text."""

    text: str
    labels: Sequence[str] = ()
    id: str | None = None


class SuggestedTag(NamedTuple):
    """A label that a model suggested; `assigned` says whether the model itself would give it."""

    label: str
    name: str | None
    score: float
    probability: float | None
    assigned: bool


class Item(NamedTuple):
    """A row under review, with the suggestions of the model that is named by `digest`."""

    number: int
    id: str
    text: str
    labels: tuple[str, ...]
    control: bool
    twice: bool
    imported_at: str
    digest: str
    suggestions: tuple[SuggestedTag, ...]
    finished: int


class Decision(NamedTuple):
    """What one person said about one label of one row, and when; "done" and "undo" are decisions too."""

    number: int
    item: str
    label: str
    verdict: str
    reviewer: str
    at: str
    note: str
    digest: str
    undoes: int | None = None


class Guideline(NamedTuple):
    """When to give a label, in people's words."""

    label: str
    text: str
    reviewer: str
    at: str


class ReviewStore:
    """A file of rows under review and of all decisions about them, for several people and processes at once.

    Parameters
    ----------
    path : str or Path
        The file.
    create : bool, default=False
        Make the file where it is not there; the three parameters below are those of a new file.
    control : float, default=0.2
        Share of the rows that are drawn at random as the control sample. They are never learned from.
    twice : float, default=0.1
        Share of the rows that two people review, so that their agreement can be measured.
    seed : int, default=0
        Seed of both draws. Which sample a row is in follows from the seed and its id alone.

    Examples
    --------
    >>> import tempfile
    >>> folder = tempfile.TemporaryDirectory()
    >>> store = ReviewStore(folder.name + "/reviews.db", create=True)
    >>> store.add_items([NewItem("a red apple", ["fruit"], id="7")])
    (1, 0)
    >>> store.decide("7", "red", "add", reviewer="ada").verdict
    'add'
    >>> store.finish("7", reviewer="ada").number
    2
    >>> store.close(); folder.cleanup()
    """

    control: float
    seed: int
    twice: float

    def __init__(
        self,
        path: str | Path,
        *,
        create: bool = False,
        control: float = CONTROL_SHARE,
        twice: float = TWICE_SHARE,
        seed: int = 0,
    ) -> None:
        self.path: Path = Path(path)
        self._idle: list[sqlite3.Connection] = []
        self._process, self._abandoned = os.getpid(), list[sqlite3.Connection]()
        self._lock = threading.Lock()
        if create and not os.path.lexists(self.path):
            shares = {"control": check_real("control", control, low=0, high=1)}
            shares |= {"twice": check_real("twice", twice, low=0, high=1)}
            meta = {name: repr(float(value)) for name, value in shares.items()}
            create_file(self.path, {**meta, "seed": str(check_integer("seed", seed, low=0)), "made_at": now()})
        check_header(self.path)
        with self.reading() as db:
            check_contents(self.path, db)
            meta = dict(db.execute("SELECT key, value FROM meta"))
        try:
            self.control, self.twice, self.seed = float(meta["control"]), float(meta["twice"]), int(meta["seed"])
        except (KeyError, ValueError) as error:
            raise DataError(f"{self.path} is damaged: its shares cannot be read.") from error

    def __enter__(self) -> ReviewStore:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __del__(self) -> None:
        with contextlib.suppress(AttributeError, sqlite3.Error):
            self.close()

    def close(self) -> None:
        """Close the file; another use opens it again."""
        with self._lock:
            idle, self._idle = self._idle if self._process == os.getpid() else [], []
        for db in idle:
            db.close()

    @contextlib.contextmanager
    def reading(self) -> Iterator[sqlite3.Connection]:
        """Yield a connection that nobody else uses meanwhile; what SQLite says becomes one sentence."""
        with self._lock:
            if self._process != os.getpid():  # a connection must be neither used nor closed after a fork
                self._abandoned, self._idle, self._process = self._idle, [], os.getpid()
            db = self._idle.pop() if self._idle else None
        db = connect(self.path) if db is None else db
        try:
            yield db
        except SQLITE_ERRORS as error:
            raise sqlite_problem(self.path, error) from error
        finally:
            with self._lock:
                self._idle.append(db)

    @contextlib.contextmanager
    def writing(self) -> Iterator[sqlite3.Connection]:
        """Yield the connection within one transaction: all that is written, on the disk at the end, or nothing."""
        with self.reading() as db:
            db.execute("BEGIN IMMEDIATE")
            try:
                yield db
                db.execute("COMMIT")
            except BaseException:
                if db.in_transaction:
                    db.execute("ROLLBACK")
                raise

    # --- rows -------------------------------------------------------------------------------------------------------

    def add_items(self, items: Iterable[NewItem]) -> tuple[int, int]:
        """Add rows in one transaction; return how many are new, and how many were there already.

        A row that is there already with another text is refused, and nothing is added.
        """
        added = known = 0
        at = now()
        with self.writing() as db:
            for item in items:
                id, text, labels = _checked_item(item)
                there = db.execute("SELECT text FROM items WHERE id = ?", (id,)).fetchone()
                if there is not None and there[0] != text:
                    raise DataError(f"the row {id!r} is in {self.path} already, with another text.")
                if there is not None:
                    known += 1
                    continue
                drawn, control, twice = self._drawn(id)
                row = (id, text, json.dumps(labels), control, twice, drawn, at)
                fields = "(id, text, given, control, twice, drawn, imported_at)"
                db.execute(f"INSERT INTO items {fields} VALUES (?, ?, ?, ?, ?, ?, ?)", row)
                added += 1
        return added, known

    def _drawn(self, id: str) -> tuple[int, int, int]:
        """Return the random position of a row, and whether it is in the control sample and reviewed twice."""
        raw = hashlib.sha256(f"{self.seed}\0{id}".encode()).digest()
        first, second = (int.from_bytes(raw[at : at + 8]) >> 1 for at in (0, 8))
        return first, int(first < self.control * 2.0**63), int(second < self.twice * 2.0**63)

    def item(self, id: str) -> Item:
        """Return a row by its id."""
        with self.reading() as db:
            return self.item_of_number(db, self._number(db, id))

    def item_of_number(self, db: sqlite3.Connection, number: int, digest: str | None = None) -> Item:
        """Return a row by its number in the file, with the suggestions of a model, or of the latest one."""
        fields = "number, id, text, given, control, twice, imported_at, digest, finished"
        row = db.execute(f"SELECT {fields} FROM items WHERE number = ?", (number,)).fetchone()
        shown = row[7] if digest is None else digest
        tags = self.suggestions(db, number, shown)
        given = tuple(self.json_list(row[3], str))
        return Item(row[0], row[1], row[2], given, bool(row[4]), bool(row[5]), row[6], shown, tags, row[8])

    def suggestions(self, db: sqlite3.Connection, number: int, digest: str) -> tuple[SuggestedTag, ...]:
        """Return what a model suggested for a row; nothing where it was not asked."""
        found = db.execute("SELECT tags FROM suggestions WHERE item = ? AND digest = ?", (number, digest)).fetchone()
        if found is None:
            return ()
        tags = [_tag(values) for values in self.json_list(found[0], list)]
        if None in tags:
            raise DataError(f"{self.path} is damaged: the suggestions for a row cannot be read.")
        return tuple(tag for tag in tags if tag is not None)

    def counts(self) -> dict[str, int]:
        """Return how many rows, control rows, finished rows and decisions there are."""
        with self.reading() as db:
            rows = db.execute(
                "SELECT COUNT(*), COALESCE(SUM(control), 0), COALESCE(SUM(finished > 0), 0),"
                " COALESCE(SUM(finished > 0 AND control = 1), 0), COALESCE(SUM(open), 0) FROM items"
            ).fetchone()
            decisions = db.execute("SELECT COUNT(*) FROM decisions").fetchone()[0]
        names = ("rows", "control_rows", "finished", "finished_control", "open")
        return {**dict(zip(names, rows, strict=True)), "decisions": decisions}

    # --- decisions --------------------------------------------------------------------------------------------------

    def decide(self, item: str, label: str, verdict: str, reviewer: str, note: str = "") -> Decision:
        """Write down that a person accepts, rejects or adds a label of a row; on the disk when this returns.

        A later decision of the same person about the same label takes the place of an earlier one. The same one again,
        as from a caller who heard no answer, is the one that is there.
        """
        check_choice("verdict", verdict, VERDICTS)
        label = checked_name("label", label, LONGEST_LABEL)
        reviewer = checked_name("reviewer", reviewer, LONGEST_REVIEWER)
        note = checked_text("note", note, LONGEST_NOTE)
        with self.writing() as db:
            mine = [d for d in self.decisions_of(db, self._number(db, item), reviewer) if d.label == label]
            if mine and (mine[-1].verdict, mine[-1].note) == (verdict, note):
                return mine[-1]
            return self._append(db, item, label, verdict, reviewer, note)

    def finish(self, item: str, reviewer: str) -> Decision:
        """Write down that a person has finished a row: what they did not reject stands.

        That is the given labels, the suggestions that the model itself would give, and what was accepted or added.
        """
        reviewer = checked_name("reviewer", reviewer, LONGEST_REVIEWER)
        with self.writing() as db:
            number = self._number(db, item)
            before = db.execute("SELECT decision FROM finished WHERE item = ? AND reviewer = ?", (number, reviewer))
            done = before.fetchone()
            if done is not None:
                return self._decision(db, done[0])
            decision = self._append(db, item, "", "done", reviewer, "")
            db.execute("INSERT INTO finished VALUES (?, ?, ?)", (number, reviewer, decision.number))
            db.execute("DELETE FROM leases WHERE item = ? AND reviewer = ?", (number, reviewer))
            self._count_finished(db, number)
            return decision

    def undo(self, number: int, reviewer: str) -> Decision:
        """Take back a decision of one's own, "done" included; what was said before it holds again."""
        number = check_integer("decision", number, low=1)
        reviewer = checked_name("reviewer", reviewer, LONGEST_REVIEWER)
        with self.writing() as db:
            old = self._decision(db, number)
            if old.reviewer != reviewer:
                raise ParameterError(f"decision {number} is of another reviewer; only one's own can be undone.")
            if old.verdict == "undo":
                raise ParameterError(f"decision {number} is an undo; decide again instead.")
            before = db.execute("SELECT number FROM decisions WHERE undoes = ?", (number,)).fetchone()
            if before is not None:  # a caller who heard no answer asks again
                return self._decision(db, before[0])
            if old.verdict == "done":
                item = self._number(db, old.item)
                db.execute("DELETE FROM finished WHERE item = ? AND reviewer = ?", (item, reviewer))
                self._count_finished(db, item)
            return self._append(db, old.item, old.label, "undo", reviewer, "", undoes=number, digest=old.digest)

    def decisions(self, item: str, reviewer: str | None = None) -> list[Decision]:
        """Return the decisions about a row that hold, of one person or of all, in their order."""
        with self.reading() as db:
            return self.decisions_of(db, self._number(db, item), reviewer)

    def decisions_of(self, db: sqlite3.Connection, number: int, reviewer: str | None = None) -> list[Decision]:
        """Return the decisions about a row, by its number, that hold."""
        where, values = f"d.item = ? AND d.verdict <> 'undo' AND {NOT_UNDONE}", [number]
        rows = db.execute(f"{SELECT_DECISION} WHERE {where} ORDER BY d.number", values)
        return [made for made in (Decision(*row) for row in rows) if reviewer in (None, made.reviewer)]

    def all_decisions(self) -> list[Decision]:
        """Return every decision that was ever written, undone ones and undos included."""
        with self.reading() as db:
            return [Decision(*row) for row in db.execute(f"{SELECT_DECISION} ORDER BY d.number")]

    def _append(
        self,
        db: sqlite3.Connection,
        item: str,
        label: str,
        verdict: str,
        reviewer: str,
        note: str,
        undoes: int | None = None,
        digest: str | None = None,
    ) -> Decision:
        """Add one row to the decisions, with the model whose suggestions the person was shown."""
        number = self._number(db, item)
        if digest is None:
            digest = db.execute(
                "SELECT COALESCE((SELECT digest FROM leases WHERE item = ?1 AND reviewer = ?2), digest)"
                " FROM items WHERE number = ?1",
                (number, reviewer),
            ).fetchone()[0]
        at = now()
        fields = "(item, label, verdict, undoes, reviewer, at, note, digest)"
        row = (number, label, verdict, undoes, reviewer, at, note, digest)
        written = db.execute(f"INSERT INTO decisions {fields} VALUES (?, ?, ?, ?, ?, ?, ?, ?)", row)
        return Decision(int(written.lastrowid or 0), item, label, verdict, reviewer, at, note, digest or "", undoes)

    def _decision(self, db: sqlite3.Connection, number: int) -> Decision:
        row = db.execute(f"{SELECT_DECISION} WHERE d.number = ?", (number,)).fetchone()
        if row is None:
            raise NotThere(f"there is no decision {number}.")
        return Decision(*row)

    def _count_finished(self, db: sqlite3.Connection, item: int) -> None:
        """Note how many people have finished a row, and whether it waits for another."""
        db.execute(
            "UPDATE items SET finished = (SELECT COUNT(*) FROM finished WHERE item = ?1) WHERE number = ?1", (item,)
        )
        db.execute("UPDATE items SET open = finished < 1 + twice WHERE number = ?", (item,))

    def _number(self, db: sqlite3.Connection, id: str) -> int:
        """Return the number of a row in the file."""
        id = checked_text("item", id, LONGEST_ID)
        found = db.execute("SELECT number FROM items WHERE id = ?", (id,)).fetchone()
        if found is None:
            raise NotThere(f"there is no row {id!r} in {self.path.name}.")
        return int(found[0])

    # --- guidelines -------------------------------------------------------------------------------------------------

    def set_guideline(self, label: str, text: str, reviewer: str) -> Guideline:
        """Write down when to give a label; the earlier words are kept in the file. An empty text takes them away."""
        label = checked_name("label", label, LONGEST_LABEL)
        text = checked_text("text", text, LONGEST_GUIDELINE).strip()
        new = Guideline(label, text, checked_name("reviewer", reviewer, LONGEST_REVIEWER), now())
        with self.writing() as db:
            db.execute("INSERT INTO guidelines (label, text, reviewer, at) VALUES (?, ?, ?, ?)", new)
        return new

    def guideline(self, label: str) -> Guideline | None:
        """Return when to give a label; None where nobody has said so."""
        with self.reading() as db:
            last = "SELECT label, text, reviewer, at FROM guidelines WHERE label = ? ORDER BY number DESC LIMIT 1"
            row = db.execute(last, (checked_text("label", label, LONGEST_LABEL),)).fetchone()
        return Guideline(*row) if row is not None and row[1] else None

    def guidelines(self) -> list[Guideline]:
        """Return the guidelines of all labels that have one."""
        with self.reading() as db:
            last = "number IN (SELECT MAX(number) FROM guidelines GROUP BY label) AND text <> ''"
            rows = db.execute(f"SELECT label, text, reviewer, at FROM guidelines WHERE {last} ORDER BY label")
            return [Guideline(*row) for row in rows]

    def json_list(self, raw: str, inner: type) -> list[Any]:
        """Return a stored JSON list, checked."""
        try:
            value = json.loads(raw)
        except (ValueError, RecursionError):
            value = None
        if not isinstance(value, list) or not all(isinstance(part, inner) for part in value):
            raise DataError(f"{self.path} is damaged: a field of a row cannot be read.")
        return value


SELECT_DECISION = (
    "SELECT d.number, i.id, d.label, d.verdict, d.reviewer, d.at, d.note, d.digest, d.undoes"
    " FROM decisions d JOIN items i ON i.number = d.item"
)


def now() -> str:
    """Return the time in UTC, with milliseconds."""
    return datetime.fromtimestamp(time.time(), UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def checked_text(name: str, value: object, longest: int) -> str:
    """Return a text that the file can hold, or refuse it in one sentence."""
    if not isinstance(value, str):
        raise ParameterError(name=name, allowed="a string", got=value)
    if len(value) > longest:
        raise ParameterError(name=name, problem=f"must have at most {longest:,} characters; got {len(value):,}.")
    try:
        value.encode()
    except UnicodeEncodeError as error:
        raise ParameterError(name=name, problem="must be Unicode text; got half of a surrogate pair.") from error
    return value


def checked_name(name: str, value: object, longest: int) -> str:
    """Return a name: not empty, and without characters that break lines."""
    text = checked_text(name, value, longest)
    if not text.strip() or BREAKING.search(text):
        raise ParameterError(name=name, allowed="a name without line breaks, not empty", got=text[:60])
    return text


def _tag(values: list[Any]) -> SuggestedTag | None:
    """Return a stored suggestion; None where it is none."""
    if len(values) != len(SuggestedTag._fields):
        return None
    label, name, score, probability, assigned = values
    numbers = (score, 0.0 if probability is None else probability)
    sound = isinstance(label, str) and (name is None or isinstance(name, str)) and isinstance(assigned, bool)
    sound = sound and all(isinstance(number, int | float) and math.isfinite(number) for number in numbers)
    return SuggestedTag(label, name, score, probability, assigned) if sound else None


def _checked_item(item: NewItem) -> tuple[str, str, list[str]]:
    """Return id, text and labels of a new row."""
    text = checked_text("text", item.text, LONGEST_TEXT)
    if item.id is None:
        id = "text-" + hashlib.sha256(text.encode()).hexdigest()[:24]
    else:
        id = checked_name("id", item.id, LONGEST_ID)
    labels = list(dict.fromkeys(checked_name("label", label, LONGEST_LABEL) for label in item.labels))
    if len(labels) > MOST_LABELS:
        raise ParameterError(name="labels", problem=f"of a row must be at most {MOST_LABELS:,}; got {len(labels):,}.")
    return id, text, labels
