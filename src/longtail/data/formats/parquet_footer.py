"""The footer of a Parquet file: Thrift's compact protocol, read by ourselves.

pyarrow's own access to the facts about a column ends the process where a damaged file contradicts itself.
"""

from __future__ import annotations

import os
from typing import Any, BinaryIO

from longtail.errors import DataError

MAGIC = b"PAR1"
TAIL = 8  # bytes at the end: length of the footer, and the magic letters
DEEPEST = 32  # structures within structures
TRUE, FALSE, BYTE, SHORT, INT, LONG, DOUBLE, BINARY, LIST, SET, MAP, STRUCT = range(1, 13)
ROW_GROUPS, COLUMNS, META_DATA = 4, 1, 3  # fields of the file, of a group of rows, of a column in it
PATH, VALUES, DATA_PAGE, DICTIONARY_PAGE = 3, 5, 9, 11  # fields of the facts about a column
GROUP_BYTES, GROUP_ROWS = 2, 3

Fields = dict[int, Any]
Wanted = dict[int, Any]
"""Fields to keep by number, each with those to keep in it."""
FACTS: Wanted = {PATH: {}, VALUES: {}, DATA_PAGE: {}, DICTIONARY_PAGE: {}}
FILE: Wanted = {ROW_GROUPS: {COLUMNS: {META_DATA: FACTS}, GROUP_BYTES: {}, GROUP_ROWS: {}}}


class Footer:
    """Reads the values of a footer one after the other; a footer that ends early is refused."""

    at: int
    raw: bytes

    def __init__(self, raw: bytes) -> None:
        self.raw, self.at = raw, 0

    def byte(self) -> int:
        """Return the next byte."""
        if self.at >= len(self.raw):
            raise DataError("the footer ends early.")
        self.at += 1
        return self.raw[self.at - 1]

    def number(self) -> int:
        """Return a whole number of variable length, at most ten bytes."""
        out = 0
        for shift in range(0, 70, 7):
            byte = self.byte()
            out |= (byte & 0x7F) << shift
            if byte < 0x80:
                return out
        raise DataError("the footer holds a number that is too long.")

    def signed(self) -> int:
        """Return a whole number whose last bit is its sign."""
        value = self.number()
        return (value >> 1) ^ -(value & 1)

    def take(self, n: int) -> bytes:
        """Return the next n bytes."""
        if n > len(self.raw) - self.at:
            raise DataError("the footer ends early.")
        self.at += n
        return self.raw[self.at - n : self.at]

    def value(self, kind: int, wanted: Wanted | None, depth: int) -> Any:
        """Return a value of a kind; of structures the wanted fields, or None."""
        if depth > DEEPEST:
            raise DataError("the footer is nested too deeply.")
        if kind in (TRUE, FALSE):
            return kind == TRUE
        if kind == BYTE:
            return self.byte()
        if kind in (SHORT, INT, LONG):
            return self.signed()
        if kind in (DOUBLE, BINARY):
            return self.take(8 if kind == DOUBLE else self.number())
        if kind in (LIST, SET):
            return self.items(wanted, depth)
        if kind == MAP:
            return self.skip_pairs(depth)
        if kind == STRUCT:
            return self.fields(wanted, depth)
        raise DataError("the footer holds a value of an unknown kind.")

    def items(self, wanted: Wanted | None, depth: int) -> list[Any] | None:
        """Return the values of a list, or None where nothing in it is wanted."""
        head = self.byte()
        size = self.checked(head >> 4 if head >> 4 < 15 else self.number())
        kind = head & 0x0F
        if kind in (TRUE, FALSE):  # inside a list a truth takes a byte
            self.take(size)
            return None
        if wanted is not None:
            return [self.value(kind, wanted, depth + 1) for _ in range(size)]
        for _ in range(size):
            self.value(kind, None, depth + 1)
        return None

    def skip_pairs(self, depth: int) -> None:
        """Pass by the pairs of a map."""
        size = self.checked(self.number())
        kinds = self.byte() if size else 0
        for _ in range(size):
            self.value(kinds >> 4, None, depth + 1)
            self.value(kinds & 0x0F, None, depth + 1)

    def fields(self, wanted: Wanted | None, depth: int = 0) -> Fields | None:
        """Return the wanted fields of a structure by number; all but the page of a dictionary must be there."""
        out: Fields = {}
        field = 0
        while head := self.byte():
            field = field + (head >> 4) if head >> 4 else self.signed()
            inner = None if wanted is None else wanted.get(field)
            found = self.value(head & 0x0F, inner, depth + 1)
            if inner is not None:
                out[field] = found
        if wanted is None:
            return None
        if not wanted.keys() - {DICTIONARY_PAGE} <= out.keys():
            raise DataError("the footer lacks facts.")
        return out

    def checked(self, size: int) -> int:
        """Return a number of values, each of which takes a byte at least."""
        if size > len(self.raw) - self.at:
            raise DataError("the footer claims more values than it has bytes.")
        return size


def read_footer(file: BinaryIO) -> Fields:
    """Return the fields of the footer of an open Parquet file."""
    end = file.seek(0, os.SEEK_END)
    if end < TAIL:
        raise DataError("it is too short.")
    file.seek(end - TAIL)
    tail = file.read(TAIL)
    length = int.from_bytes(tail[:4], "little")
    if tail[4:] != MAGIC or length > end - TAIL:
        raise DataError("it has no footer.")
    file.seek(end - TAIL - length)
    return Footer(file.read(length)).fields(FILE) or {}
