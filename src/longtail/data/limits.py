"""Limits: the most that one input may hold, so that a small file cannot take all memory or all time.

Ordinary work stays far below the defaults. What is over a limit is refused in one sentence that names the limit, and
every limit can be raised: `read(path, limits=Limits(rows=10**9))`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import NoReturn

from longtail.errors import DataError, Keyword, ParameterError, near
from longtail.validate import available_memory, check_integer

SHARE_OF_STREAM = 64  # a file that is read row by row may unpack to so many times the free memory
LARGEST = 10**18  # of any limit that a command sets
NO_MEMORY_KNOWN = 1 << 36  # bytes, where the machine does not tell its memory


@dataclass(frozen=True)
class Limits:
    """The most that one input may hold.

    Parameters
    ----------
    rows : int, default=100_000_000
        Rows that are held in memory; files that are read row by row may have more.
    features : int, default=200_000_000
        Columns of X.
    labels : int, default=2_147_483_647
        Columns of Y; memory follows the labels that rows have.
    row_labels : int, default=10_000_000
        Labels, or groups, of one row.
    label_characters : int, default=100_000
        Characters of the name of a label or a group.
    text_characters : int, default=250_000_000
        Characters of one text.
    line_bytes : int, default=1_000_000_000
        Bytes of one line, and of one record of CSV or TSV.
    table_columns : int, default=100_000
        Columns of a CSV, TSV or Parquet file.
    json_depth : int, default=500
        Objects and lists inside each other.
    unpacked_bytes : int or None, default=None
        Bytes that a compressed file may unpack to (.gz, .xz, .bz2, .npz, Parquet). None for the free memory of this
        machine or, where a file is read row by row, for 64 times as much.
    xz_memory : int, default=536_870_912
        Bytes of memory that unpacking an .xz file may take, which the file itself asks for: `xz -9` for 68,000,000.

    Examples
    --------
    >>> Limits(rows=10).check("rows", 11, "a.csv")
    Traceback (most recent call last):
    ...
    longtail.errors.DataError: a.csv has more rows than 10, the limit for rows; raise it with limits=Limits(rows=11).
    """

    rows: int = 100_000_000
    features: int = 200_000_000
    labels: int = 2**31 - 1
    row_labels: int = 10_000_000
    label_characters: int = 100_000
    text_characters: int = 250_000_000
    line_bytes: int = 1_000_000_000
    table_columns: int = 100_000
    json_depth: int = 500
    unpacked_bytes: int | None = None
    xz_memory: int = 1 << 29

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            if value is not None or field.default is not None:
                check_integer(f"limits.{field.name}", value, low=1)

    def check(self, name: str, got: int, where: str, what: str = "") -> None:
        """Refuse a count above the limit of this name; `what` are the words for what was counted."""
        most = getattr(self, name)
        if most is not None and got > most:
            over_limit(name, most, got, where, what)

    def bytes_to_unpack(self, streamed: bool = False) -> int:
        """Return how many bytes a compressed file may unpack to."""
        if self.unpacked_bytes is not None:
            return self.unpacked_bytes
        return (available_memory() or NO_MEMORY_KNOWN) * (SHARE_OF_STREAM if streamed else 1)


DEFAULT_LIMITS = Limits()

WORDS = {  # what a limit counts
    "features": "features",
    "labels": "labels",
    "label_characters": "characters in the name of a label",
    "row_labels": "labels",
    "text_characters": "characters in its text",
    "line_bytes": "bytes",
    "table_columns": "columns",
    "json_depth": "levels of objects and lists",
    "unpacked_bytes": "bytes when unpacked",
    "xz_memory": "bytes in memory while it is unpacked",
}


class RaisedLimit:
    """A limit as it would have to be set: `Limits(rows=5)` in Python, `rows=5` behind the option of a command."""

    name: str
    value: int

    def __init__(self, name: str, value: int) -> None:
        self.name, self.value = name, value

    def __repr__(self) -> str:
        return f"Limits({self})"

    def __str__(self) -> str:
        return f"{self.name}={self.value}"


def over_limit(name: str, most: int, got: int, where: str, what: str = "") -> NoReturn:
    """Raise the complaint about an input that is over a limit; `got` is what is known to be needed."""
    raise DataError(
        "{where} has more {what} than {most}, the limit for {limit}; raise it with {advice}.",
        where=where,
        what=what or WORDS.get(name, name),
        most=most,
        limit=name,
        advice=Keyword("limits", RaisedLimit(name, got)),
    )


def parse_limits(settings: Sequence[str]) -> Limits:
    """Return limits from settings as a command takes them; `_` and `,` between digits are read over.

    >>> parse_limits(["rows=1000", "json_depth=20"]).json_depth
    20
    """
    known, values = [field.name for field in fields(Limits)], {}
    for setting in settings:
        name, _, value = setting.partition("=")
        if name not in known:
            raise ParameterError(
                name="limits", allowed=f"NAME=VALUE with a name of {known}", got=setting, hint=near(name, known)
            )
        plain = value.replace("_", "").replace(",", "")
        if (
            not plain.isascii()
            or not plain.isdigit()
            or len(plain) > len(str(LARGEST))
            or not 1 <= int(plain) <= LARGEST
        ):
            allowed = f"{name}= with a whole number from 1 to {LARGEST:,}"
            raise ParameterError(name="limits", allowed=allowed, got=setting)
        values[name] = int(plain)
    return Limits(**values)
