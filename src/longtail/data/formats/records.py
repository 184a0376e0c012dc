"""Check rows of text as the text formats hold them (text, labels, id, groups), and gather them into a Dataset.

The rules that JSONL, CSV, TSV and Parquet share:

- A row must have a text. An empty text is kept; a missing one is refused by its line.
- A label named twice in a row counts once. Whole numbers are taken as names (7 is the label "7").
- Ids are given for all rows or for none. A row may belong to no group, to one, or to a list of groups.
- Labels and groups are numbered in the sorted order of their names, unless the order is given.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

import numpy as np
import scipy.sparse as sp

from longtail.data.dataset import Dataset
from longtail.data.limits import DEFAULT_LIMITS, Limits
from longtail.errors import NOTHING, DataError, Keyword, near

DEFAULT_ID = "id"  # the column of ids that may be missing
WRITTEN_LIST = re.compile(r"""\[\s*((['"]).*['"]|\d+(\s*,\s*\d+)+)?\s*\]""", re.DOTALL)  # "['a', 'b']", "[1, 2]", "[]"
NAMES_LISTED, NAME_CHARACTERS = 30, 40  # of the columns that an error lists


@dataclass(frozen=True)
class Columns:
    """The names of the columns, or keys, of a row; several text columns are joined by a space.

    Records without texts are read with `text=()`. `weights` names the column that the weights of labels are written to.
    """

    text: str | Sequence[str] = "text"
    labels: str = "labels"
    id: str = DEFAULT_ID
    group: str = "group"
    separator: str = ";"
    weights: str = ""
    ignored: set[str] | None = None  # receives the names of columns that the file has and that are not read
    splits_groups: bool = True  # else a string of groups is one name
    needs_id: bool = False  # the column of ids was named, so it must be there

    def texts(self) -> tuple[str, ...]:
        """Return the names of the text columns."""
        return (self.text,) if isinstance(self.text, str) else tuple(self.text)

    def check_there(self, source: str, names: Sequence[str]) -> None:
        """Refuse a source of rows that lacks a column of texts, or one of ids that must be there."""
        for column in self.texts():
            if column not in names:
                raise missing_column(source, column, names, "text_column")
        self.check_id(source, names)

    def check_id(self, source: str, names: Sequence[str], kind: str = "column") -> None:
        """Refuse a source of rows that lacks a column of ids that must be there."""
        if self.needs_id and self.id not in names:
            or_none = f", or {DEFAULT_ID!r} if there is none"
            raise missing_column(source, self.id, names, "id_column", or_none, kind)

    def note_ignored(self, names: Iterable[str]) -> None:
        """Note the columns of a file that are not read, where somebody wants to know."""
        if self.ignored is not None:
            self.ignored.update(filter(None, names))

    def all(self) -> tuple[str, ...]:
        """Return every name once, the text columns first; a column named "" is not read."""
        return tuple(filter(None, dict.fromkeys((*self.texts(), self.labels, self.id, self.group))))


@dataclass
class Batch:
    """Some consecutive rows; `labels`, `ids` and `groups` are None where the file does not have them."""

    lines: Sequence[int]  # where each row stands, for complaints
    texts: list[str]
    labels: list[list[str]] | None = None
    ids: list[str] | None = None
    groups: list[list[str]] | None = None

    def take(self, low: int, high: int) -> Batch:
        """Return some of the rows."""

        return Batch(
            self.lines[low:high],
            self.texts[low:high],
            None if self.labels is None else self.labels[low:high],
            None if self.ids is None else self.ids[low:high],
            None if self.groups is None else self.groups[low:high],
        )


def make_batch(
    where: Callable[[int], str],  # line number -> "data.jsonl line 7"
    lines: Sequence[int],
    values: dict[str, list[Any]],  # column -> one value per row, None where missing; absent columns left out
    columns: Columns,
    separator: str | None,  # splits a string of labels; None: a string is one label
) -> Batch:
    """Check one block of raw columns and return it as strings."""

    def names(column: str) -> list[list[str]] | None:
        cells = values.get(column)
        return None if cells is None else as_names(where, lines, column, cells, separator)

    _refuse_written_lists(where, lines, columns.labels, values.get(columns.labels))
    groups = names(columns.group) if columns.splits_groups else None
    if columns.group in values and not columns.splits_groups:
        whole = [(cell.strip() or None) if isinstance(cell, str) else cell for cell in values[columns.group]]
        groups = as_names(where, lines, columns.group, whole, None)

    return Batch(
        lines,
        _check_texts(where, lines, [values[name] for name in columns.texts()], columns.texts()),
        names(columns.labels),
        _check_ids(where, lines, values.get(columns.id), columns.id),
        groups,
    )


def _refuse_written_lists(
    where: Callable[[int], str], lines: Sequence[int], column: str, cells: Sequence[Any] | None
) -> None:
    """Refuse labels that are a Python list written into one cell, as pandas does: no separator reads them."""
    for line, cell in zip(lines, cells or (), strict=cells is not None):
        if isinstance(cell, str) and cell[:1] == "[" and WRITTEN_LIST.fullmatch(cell.strip()):
            raise DataError(
                "{where}: labels in '{column}' look like Python lists, such as {example}; write them as JSON Lines "
                "with a list, or joined by one character ({advice} to name it).",
                where=where(line),
                column=column,
                example=short_repr(cell),
                advice=Keyword("label_separator", verb="pass"),
            )


def as_names(
    where: Callable[[int], str], lines: Sequence[int], column: str, values: list[Any], separator: str | None
) -> list[list[str]]:
    """Return lists of names; a list, a string, a whole number and nothing at all are understood."""
    if set(map(type, values)) <= {list} and set(map(type, chain.from_iterable(values))) <= {str}:
        return values
    out: list[list[str]] = []
    for line, value in zip(lines, values, strict=True):
        if isinstance(value, str) and separator is not None:
            out.append([part for part in map(str.strip, value.split(separator)) if part])
            continue
        parts = [] if value is None else value if isinstance(value, list) else [value]
        if not all(isinstance(part, str | int) and not isinstance(part, bool) for part in parts):
            raise DataError(f"{where(line)}: '{column}' must be a name or a list of names; got {short_repr(value)}.")
        out.append([str(part) for part in parts])
    return out


def _check_texts(
    where: Callable[[int], str], lines: Sequence[int], cells: list[list[Any]], columns: tuple[str, ...]
) -> list[str]:
    if not columns:
        return [""] * len(lines)
    texts = cells[0]
    if len(cells) > 1:  # several columns: a missing one is fine as long as one is there
        texts = [_join_texts(parts) for parts in zip(*cells, strict=True)]
    if set(map(type, texts)) <= {str}:
        return texts
    name = "' or '".join(columns)
    for line, text in zip(lines, texts, strict=True):
        if text is None:
            raise DataError(f"{where(line)} has no '{name}'.")
        if not isinstance(text, str):
            raise DataError(f"{where(line)}: '{name}' must be a string; got {short_repr(text)}.")
    return texts


def _join_texts(parts: Sequence[Any]) -> Any:
    """Return the strings joined, None if all are missing, or the first thing that is not a string."""
    given = [part for part in parts if part is not None]
    odd = [part for part in given if not isinstance(part, str)]
    return odd[0] if odd else " ".join(filter(None, given)) if given else None


def _check_ids(
    where: Callable[[int], str], lines: Sequence[int], values: list[Any] | None, column: str
) -> list[str] | None:
    if values is None or set(map(type, values)) <= {str}:
        return values or None
    if all(value is None for value in values):
        return None
    for line, value in zip(lines, values, strict=True):
        if value is None:
            raise DataError(f"{where(line)} has no '{column}', though other rows have one.")
        if not isinstance(value, str | int) or isinstance(value, bool):
            raise DataError(f"{where(line)}: '{column}' must be a string or a whole number; got {short_repr(value)}.")
    return [str(value) for value in values]


def checked(where: Callable[[int], str], batches: Iterable[Batch], limits: Limits) -> Iterator[Batch]:
    """Pass batches on, refusing texts and lists of names that are over their limits."""
    for batch in batches:
        if batch.texts and max(map(len, batch.texts)) > limits.text_characters:
            for line, text in zip(batch.lines, batch.texts, strict=True):
                limits.check("text_characters", len(text), where(line))
        for rows, kind in ((batch.labels, "labels"), (batch.groups, "groups")):
            if rows and max(map(len, rows)) > limits.row_labels:
                for line, row in zip(batch.lines, rows, strict=True):
                    limits.check("row_labels", len(row), where(line), kind)
        yield batch


def rebatch(batches: Iterable[Batch], rows: int) -> Iterator[Batch]:
    """Cut batches down to at most `rows` rows each."""
    for batch in batches:
        for low in range(0, len(batch.texts), rows):
            yield batch.take(low, low + rows)


def collect(
    where: Callable[[int], str],
    batches: Iterable[Batch],
    label_names: Sequence[str] | None = None,
    group_names: Sequence[str] | None = None,
    label_texts: Sequence[str] | None = None,
    name: str = "",
    limits: Limits = DEFAULT_LIMITS,
) -> Dataset:
    """Return the Dataset of all batches; a label or group that is not among the names given is refused by its line."""
    texts: list[str] = []
    ids: list[str] = []
    labels, groups = NameMatrix(where, label_names, "label", limits), NameMatrix(where, group_names, "group", limits)
    for batch in checked(where, batches, limits):
        if not batch.texts:
            continue
        if texts and bool(ids) != (batch.ids is not None):
            raise DataError(f"{where(batch.lines[0])}: ids must be given for all rows or for none.")
        texts += batch.texts
        ids += batch.ids or []
        labels.add(batch.lines, batch.labels)
        groups.add(batch.lines, batch.groups)
    Y, names = labels.matrix()
    group_matrix, own_groups = groups.matrix() if groups.used else (None, None)
    return Dataset(
        Y=Y,
        texts=tuple(texts),
        ids=tuple(ids) if ids else None,
        label_names=names,
        groups=group_matrix,
        group_names=own_groups,
        label_texts=None if label_texts is None else tuple(label_texts),
        name=name,
    )


class NameMatrix:
    """Rows of names gathered into a CSR matrix of ones; names are numbered as they come and sorted at the end."""

    def __init__(
        self,
        where: Callable[[int], str],
        names: Sequence[str] | None = None,
        kind: str = "label",
        limits: Limits = DEFAULT_LIMITS,
    ) -> None:
        self.where = where
        self.kind = kind
        self.limits = limits
        self.names: tuple[str, ...] | None = None if names is None else tuple(names)
        self.numbers: dict[str, int] = (
            _NumbersOfNames(limits.label_characters) if names is None else {name: i for i, name in enumerate(names)}
        )
        self.counts: list[np.ndarray] = []
        self.codes: list[np.ndarray] = []
        self.used: bool = False

    def add(self, lines: Sequence[int], rows: list[list[str]] | None) -> None:
        """Add the names of some rows; None means that none of them has any."""
        if rows is None:
            self.counts.append(np.zeros(len(lines), dtype=np.int64))
            return
        self.used = True
        counts = np.fromiter(map(len, rows), dtype=np.int64, count=len(rows))
        flat = map(self.numbers.__getitem__, chain.from_iterable(rows))
        try:
            self.codes.append(np.fromiter(flat, dtype=np.int32, count=int(counts.sum())))
        except KeyError as error:
            name = error.args[0]
            where = self.where(next(n for n, row in zip(lines, rows, strict=True) if name in row))
            if self.names is None:
                of = f"characters in the name of a {self.kind}"
                self.limits.check("label_characters", len(name), where, of)
            raise DataError(
                f"{where}: the {self.kind} {short_repr(name)} is not in the list of {self.kind}s."
            ) from None
        self.counts.append(counts)
        if "" in self.numbers:
            line = next(n for n, row in zip(lines, rows, strict=True) if "" in row)
            raise DataError(f"{self.where(line)}: a label or group must not be an empty string.")

    def matrix(self, count: bool = False) -> tuple[sp.csr_array, tuple[str, ...]]:
        """Return the matrix (n_rows, n_names) of ones, or of how often a row has a name, and the names."""
        codes = np.concatenate([np.empty(0, dtype=np.int32), *self.codes])
        counts = np.concatenate([np.zeros(1, dtype=np.int64), *self.counts])
        names = self.names
        if names is None:
            names = tuple(sorted(self.numbers))
            sorted_number = np.empty(len(names), dtype=np.int32)
            sorted_number[[self.numbers[name] for name in names]] = np.arange(len(names), dtype=np.int32)
            codes = sorted_number[codes]
        ones = np.ones(codes.size, dtype=np.float32)
        M = sp.csr_array((ones, codes, np.cumsum(counts)), shape=(counts.size - 1, len(names)))
        M.sum_duplicates()
        if not count:
            M.data[:] = 1
        return M, names


class _NumbersOfNames(dict[str, int]):
    """A number for every name, given in the order they are asked for; a name that is too long is a KeyError."""

    def __init__(self, longest: int) -> None:
        super().__init__()
        self.longest = longest

    def __missing__(self, name: str) -> int:
        if len(name) > self.longest:
            raise KeyError(name)
        self[name] = number = len(self)
        return number


def group_names_of(dataset: Dataset) -> Sequence[str]:
    """Return the names of the groups; groups without names are called by their number."""
    if dataset.groups is None:
        return ()
    return dataset.group_names or [str(i) for i in range(dataset.groups.shape[1])]


def names_in_row(M: sp.csr_array, row: int, names: Sequence[str]) -> list[str]:
    """Return the names of the columns that one row has."""
    return [names[i] for i in M.indices[M.indptr[row] : M.indptr[row + 1]]]


def weights_in_row(M: sp.csr_array, row: int) -> list[float]:
    """Return the values of one row, in the order of its names; four digits say enough."""
    return [round(value, 4) for value in M.data[M.indptr[row] : M.indptr[row + 1]].tolist()]


def short_repr(value: object) -> str:
    """Return a value as an error shows it: on one line, and not all of a long one."""
    text = " ".join(repr(value).splitlines())
    return text if len(text) <= 60 else text[:60] + "…"


def listed_names(names: Iterable[str]) -> str:
    """Return the names of columns as an error lists them: long ones are cut, and of very many some are left out.

    >>> listed_names(["id", "a" * 50])
    'id, aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa…'
    """
    shown = [name if len(name) <= NAME_CHARACTERS else f"{name[:NAME_CHARACTERS]}…" for name in names]
    more = len(shown) - NAMES_LISTED
    return ", ".join(shown[:NAMES_LISTED]) + (f" and {more:,} more" if more > 0 else "")


def missing_column(
    source: str, column: str, names: Sequence[str], parameter: str, or_else: str = "", kind: str = "column"
) -> DataError:
    """Return the error for a column that is not there: it lists those that are, and the parameter that names one.

    >>> print(missing_column("a.csv", "title,body", ["title", "body"], "text_column"))
    a.csv has no column 'title,body'; it has: title, body (pass text_column=['title', 'body'] to name several).
    """
    parts = [part.strip() for part in column.split(",")]
    several = parameter == "text_column" and len(parts) > 1 and set(parts) <= set(names)
    return DataError(
        "{source} has no {kind} '{column}'; it has: {names} ({advice} to name {which}{or_else}).{hint}",
        source=source,
        kind=kind,
        column=column,
        names=listed_names(names) or "nothing",
        advice=Keyword(parameter, parts if several else NOTHING, verb="pass"),
        which="several" if several else "the right one",
        or_else=or_else,
        hint="" if several else near(column, names),
    )
