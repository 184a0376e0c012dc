"""Vocabularies as tables: Annif's TSV and CSV, and CSV with more columns.

TSV without a header has `<uri>`, name and, perhaps, notation. A table with a header has `uri` (or `id`) and any of
`notation`, `label` or `label_LANGUAGE`, `alt_label` or `alt_label_LANGUAGE`, `broader`, `deprecated`, `replaced_by`;
other columns are ignored. Several alternatives or broader concepts in one cell are separated by `|`.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from longtail.data import Limits, table_rows
from longtail.errors import DataError, DataWarning
from longtail.vocabulary.concept import Concept

ID_COLUMNS = ("uri", "id")
NAME_COLUMN = re.compile(r"(?:label|name|prefLabel|pref_label)(?:[_@](.*))?\Z", re.IGNORECASE)
ALTERNATIVE_COLUMN = re.compile(r"(?:alt_label|altLabel|alt_labels)(?:[_@](.*))?\Z", re.IGNORECASE)
BETWEEN = "|"
YES = ("1", "true", "yes")
NO = ("", "0", "false", "no")
TSV_CELLS = 3
DELIMITERS = ",;\t"


class Column(NamedTuple):
    """What a column holds, and in which language."""

    kind: str
    language: str = ""


def is_table_header(cells: Sequence[str]) -> bool:
    """Say whether cells are the header of a vocabulary: an id, and something to call it by.

    >>> is_table_header(["uri", "notation", "label_fi"]), is_table_header(["text", "labels"])
    (True, False)
    """
    kinds = [column.kind for column in map(_column, cells) if column is not None]
    return "id" in kinds and bool({"name", "notation"} & set(kinds))


def tsv_concepts(path: Path, limits: Limits) -> Iterator[Concept]:
    """Yield the concepts of a TSV file, with or without a header."""
    rows = table_rows(path, "\t", limits, quoted=False)
    first = next(rows, None)
    if first is None:
        raise DataError(f"{path} is empty.")
    if is_table_header(first[1]):
        yield from _with_header(path, first[1], rows)
        return
    lines: dict[str, int] = {}
    for line, cells in _chained(first, rows):
        if not 2 <= len(cells) <= TSV_CELLS:
            allowed = "'<uri>', a name and perhaps a notation, separated by tabs"
            raise DataError(f"{path} line {line} must be {allowed}; it has {len(cells)} cells.")
        concept = Concept(_id(cells[0]), _named("", cells[1]), notation=cells[2].strip() if len(cells) > 2 else "")
        yield _unseen(path, line, concept, lines)


def csv_concepts(path: Path, limits: Limits) -> Iterator[Concept]:
    """Yield the concepts of a CSV file with a header; the delimiter is the one that the header has."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DataWarning)  # of a guessed encoding, which is told below
        header_line = next(table_rows(path, "\0", limits, quoted=False), None)
    if header_line is None:
        raise DataError(f"{path} is empty.")
    delimiter = max(DELIMITERS, key=header_line[1][0].count)
    rows = table_rows(path, delimiter, limits)
    _, header = next(rows)
    if not is_table_header(header):
        needed = "a column 'uri' or 'id' and one of 'label', 'label_LANGUAGE', 'notation'"
        raise DataError(f"{path} is no vocabulary: it needs {needed}; it has: {', '.join(header)[:500]}.")
    yield from _with_header(path, header, rows)


def _with_header(path: Path, header: list[str], rows: Iterator[tuple[int, list[str]]]) -> Iterator[Concept]:
    """Yield the concepts below a header."""
    columns = [_column(cell) for cell in header]
    lines: dict[str, int] = {}
    for line, cells in rows:
        if len(cells) != len(columns):
            raise DataError(f"{path} line {line} has {len(cells)} cells; the header has {len(columns)}.")
        yield _unseen(path, line, _concept(f"{path} line {line}", columns, cells), lines)


def _concept(where: str, columns: Sequence[Column | None], cells: Sequence[str]) -> Concept:
    one = {"id": "", "notation": "", "replaced": ""}
    names: dict[str, str] = {}
    others: dict[str, tuple[str, ...]] = {}
    broader: tuple[str, ...] = ()
    deprecated = False
    for column, cell in zip(columns, cells, strict=True):
        value = cell.strip()
        if column is None or not value:
            continue
        if column.kind == "name":
            names.setdefault(column.language, value)
        elif column.kind == "alternative":
            others[column.language] = (*others.get(column.language, ()), *_split(value))
        elif column.kind == "broader":
            broader = tuple(_id(part) for part in _split(value))
        elif column.kind == "deprecated":
            if value.lower() not in YES + NO:
                raise DataError(f"{where}: 'deprecated' must be true or false; got {value!r}.")
            deprecated = value.lower() in YES
        else:
            one[column.kind] = value
    return Concept(_id(one["id"]), names, others, one["notation"], broader, deprecated, _id(one["replaced"]) or None)


def _column(cell: str) -> Column | None:
    """Return what a column of this name holds; None for one that is ignored."""
    name = cell.strip()
    plain = name.lower()
    if plain in ID_COLUMNS:
        return Column("id")
    if plain in ("notation", "broader", "deprecated"):
        return Column(plain)
    if plain in ("replaced_by", "replacedby"):
        return Column("replaced")
    for kind, pattern in (("name", NAME_COLUMN), ("alternative", ALTERNATIVE_COLUMN)):
        match = pattern.match(name)
        if match:
            return Column(kind, match[1] or "")
    return None


def _unseen(path: Path, line: int, concept: Concept, lines: dict[str, int]) -> Concept:
    """Return a concept whose id is there for the first time."""
    if not concept.id:
        raise DataError(f"{path} line {line}: the id of the concept is empty.")
    if concept.id in lines:
        raise DataError(f"{path} line {line}: the concept {concept.id!r} stands in line {lines[concept.id]} already.")
    lines[concept.id] = line
    return concept


def _id(cell: str) -> str:
    """Return an id without the brackets around a URI.

    >>> _id(" <http://ex.org/1> ")
    'http://ex.org/1'
    """
    plain = cell.strip()
    return plain[1:-1] if plain.startswith("<") and plain.endswith(">") else plain


def _named(language: str, cell: str) -> dict[str, str]:
    name = cell.strip()
    return {language: name} if name else {}


def _split(cell: str) -> tuple[str, ...]:
    return tuple(part.strip() for part in cell.split(BETWEEN) if part.strip())


def _chained(first: tuple[int, list[str]], rows: Iterator[tuple[int, list[str]]]) -> Iterator[tuple[int, list[str]]]:
    yield first
    yield from rows
