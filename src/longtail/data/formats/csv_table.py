"""Read and write CSV and TSV with a header line that names the columns `text`, `labels`, `id` and `group`.

Other columns are ignored. A cell of labels or groups holds names separated by `;` (or another separator), with spaces
around them dropped and empty ones skipped. Cells are quoted with `"` as spreadsheets do, so texts may hold separators
and line breaks, and may be of any length. Empty lines are skipped; a line with more or fewer cells than the header is
refused.
"""

from __future__ import annotations

import csv
import io
import threading
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, islice
from pathlib import Path
from typing import IO, Any, Protocol

from longtail.data.dataset import Dataset
from longtail.data.formats.files import UTF_8, replacing, split_lines, text_blocks
from longtail.data.formats.records import Batch, Columns, group_names_of, make_batch, names_in_row, weights_in_row
from longtail.data.limits import DEFAULT_LIMITS, Limits
from longtail.errors import DataError

ROWS = 1024
BATCH_CHARACTERS = 1 << 22  # after so many a batch ends, whatever its rows
DELIMITERS = (",", ";", "\t", "|")  # that spreadsheets write
FIELD_LIMIT = 2**31 - 1  # Python's own limit is 131,072 characters a cell


class TableReader(Protocol):
    """The rows of a table, as `csv.reader` yields them."""

    line_num: int

    def __iter__(self) -> Iterator[list[str]]: ...


def table_batches(
    path: Path,
    columns: Columns,
    delimiter: str,
    limits: Limits = DEFAULT_LIMITS,
    *,
    given: str | None = None,
    encoding: str | None = UTF_8,
) -> Iterator[Batch]:
    """Yield the rows of a CSV (delimiter ",") or TSV (delimiter "\\t") file.

    Without a `given` delimiter it may be another one that spreadsheets write, if the header has more of the columns
    then.
    """
    others = [] if given is not None else [other for other in DELIMITERS if other != delimiter]
    table = _Table(path, given or delimiter, limits, encoding=encoding, others=others, columns=columns.all())
    header = _read_header(path, table, columns)
    limits.check("table_columns", len(header), str(path))
    wanted = {name: header.index(name) for name in columns.all() if name in header}
    columns.note_ignored(name for name in header if name not in wanted)
    while True:
        numbers, rows = _read_rows(path, table, len(header))
        if not rows:
            return
        values: dict[str, list[Any]] = {name: [row[at] for row in rows] for name, at in wanted.items()}
        if columns.id in values:
            values[columns.id] = [cell or None for cell in values[columns.id]]
        yield make_batch(lambda line: f"{path} line {line}", numbers, values, columns, columns.separator)


def header_delimiter(line: str, columns: Sequence[str], delimiter: str | None = None) -> str | None:
    """Return by what a line is the header of a table with all the columns and another one; None if it is none.

    >>> header_delimiter("id;text", ["text"]), header_delimiter("the text, or not", ["text"])
    (';', None)
    """
    for by in DELIMITERS if delimiter is None else (delimiter,):
        try:
            cells = next(csv.reader([line.removeprefix("\ufeff")], delimiter=by), [])
        except csv.Error:
            continue
        if len(cells) > 1 and {cell.strip() for cell in cells}.issuperset(columns):
            return by
    return None


def table_rows(
    path: Path, delimiter: str, limits: Limits = DEFAULT_LIMITS, *, quoted: bool = True, columns: Sequence[str] = ()
) -> Iterator[tuple[int, list[str]]]:
    """Yield the rows of a table, its header too, each with the line it starts in; empty lines are skipped.

    Without `quoted`, a quote is an ordinary character and every line is a row. With names of `columns` the delimiter
    may be another one, by which the header has more of them. The encoding is found.

    >>> import tempfile
    >>> file = Path(tempfile.mkdtemp()) / "a.csv"
    >>> _ = file.write_text('id,label\\n1,"cats, dogs"\\n')
    >>> list(table_rows(file, ","))
    [(1, ['id', 'label']), (2, ['1', 'cats, dogs'])]
    """
    if not quoted:
        for first, text in text_blocks(path, limits=limits, encoding=None, named=False):
            for number, line in enumerate(split_lines(text), first):
                if line.strip():
                    yield number, line.split(delimiter)
        return
    yield from delimited_rows(path, delimiter, limits, columns)[1]


def delimited_rows(
    path: Path, delimiter: str, limits: Limits = DEFAULT_LIMITS, columns: Sequence[str] = ()
) -> tuple[str, Iterator[tuple[int, list[str]]]]:
    """Return the delimiter that a table turned out to have, and its rows as `table_rows` yields them."""
    others = [other for other in DELIMITERS if other != delimiter] if columns else []
    table = _Table(path, delimiter, limits, encoding=None, others=others, columns=columns, named=False)

    def rows() -> Iterator[tuple[int, list[str]]]:
        while numbered := table.next_rows(ROWS):
            yield from ((line, row) for line, row in numbered if row)

    return table.delimiter, rows()


def write_table(dataset: Dataset, path: str | Path, columns: Columns, delimiter: str) -> None:
    """Write a header and one line per row; a name that the separator would cut in two is refused."""
    if dataset.texts is None:
        raise DataError("the data has no texts, which CSV and TSV need; write it as XMC text or npz.")
    label_names, group_names = dataset.names(), group_names_of(dataset)
    for kind, names in (("label", label_names), ("group", group_names)):
        _check_names(kind, names, columns.separator)
    head = [columns.texts()[0], columns.labels, *filter(None, [columns.weights])]
    head = ([] if dataset.ids is None else [columns.id]) + head + ([] if dataset.groups is None else [columns.group])
    with replacing(Path(path)) as file:
        text = io.StringIO()
        writer = csv.writer(text, delimiter=delimiter, lineterminator="\n")
        quoting = csv.writer(text, delimiter=delimiter, lineterminator="\n", quoting=csv.QUOTE_ALL)
        writer.writerow(head)
        for row, words in enumerate(dataset.texts):
            cells = [] if dataset.ids is None else [dataset.ids[row]]
            cells += [words, columns.separator.join(names_in_row(dataset.Y, row, label_names))]
            if columns.weights:
                cells.append(columns.separator.join(f"{weight:g}" for weight in weights_in_row(dataset.Y, row)))
            if dataset.groups is not None:
                cells.append(columns.separator.join(names_in_row(dataset.groups, row, group_names)))
            (quoting if any("\r" in cell for cell in cells) else writer).writerow(cells)  # Python leaves \r unquoted
            if text.tell() > 1 << 20:
                _write_out(text, file, row)
        _write_out(text, file, dataset.n_rows - 1)


class _Table:
    """The records of a file, read by `csv.reader`, with a count of the characters that wait for their record's end."""

    def __init__(
        self,
        path: Path,
        delimiter: str,
        limits: Limits,
        *,
        encoding: str | None = UTF_8,
        others: Sequence[str] = (),  # delimiters to choose from besides
        columns: Sequence[str] = (),  # by which of them the header has
        named: bool = True,  # whether the caller could name the encoding
    ) -> None:
        self.path, self.limits, self.waiting, self.fed = path, limits, 0, 0
        blocks: Iterator[str] = (text for _, text in text_blocks(path, limits=limits, encoding=encoding, named=named))
        if others:
            first = next(blocks)
            delimiter = _choose_delimiter(first, (delimiter, *others), columns)
            blocks = chain([first], blocks)
        self.delimiter = delimiter
        self.reader: TableReader = csv.reader(self._lines(blocks), delimiter=delimiter, strict=True)

    def _lines(self, blocks: Iterable[str]) -> Iterator[str]:
        """Yield the lines; a quote that is never closed joins them all into one record, which has a limit."""
        for text in blocks:
            self.waiting += len(text)
            self.fed += len(text)
            if self.waiting - len(text) > self.limits.line_bytes:
                self.limits.check("line_bytes", self.waiting, f"a record of {self.path}")
            yield from io.StringIO(text, newline="\n")  # only \n ends a line here; csv sees to \r\n

    def next_rows(self, count: int) -> list[tuple[int, list[str]]]:
        """Return the next rows, at most `count`, fewer where they are long, with the line that each starts in."""
        out: list[tuple[int, list[str]]] = []
        enough, start = self.fed + BATCH_CHARACTERS, self.reader.line_num + 1
        try:
            with _LiftedLimit():
                for row in islice(self.reader, count):
                    out.append((start, row))
                    start, self.waiting = self.reader.line_num + 1, 0
                    if self.fed > enough:
                        break
        except csv.Error as error:
            stray = "a carriage return stands in a cell without quotes"
            quote = "a quoted cell is not closed, or text follows its closing quote"
            raise DataError(f"{self.path} line {start}: {stray if 'new-line' in str(error) else quote}.") from error
        return out


class _LiftedLimit:
    """Lifts Python's limit on cells, which holds for the whole process, while at least one thread reads rows."""

    lock = threading.Lock()
    readers = 0
    before = 0

    def __enter__(self) -> None:
        with _LiftedLimit.lock:
            if _LiftedLimit.readers == 0:
                _LiftedLimit.before = csv.field_size_limit(FIELD_LIMIT)
            _LiftedLimit.readers += 1

    def __exit__(self, *error: object) -> None:
        with _LiftedLimit.lock:
            _LiftedLimit.readers -= 1
            if _LiftedLimit.readers == 0:
                csv.field_size_limit(_LiftedLimit.before)


def _choose_delimiter(text: str, delimiters: Sequence[str], columns: Sequence[str]) -> str:
    """Return the delimiter by which the header in a block of text has most of the columns; the first of equals.

    Where it has none of them by any, the one that cuts it into most cells is taken, a tab before all: the columns will
    be listed in an error.

    >>> _choose_delimiter("text;labels\\n", (",", ";"), ("text", "labels"))
    ';'
    """
    line = next((line for line in io.StringIO(text, newline="\n") if line.strip()), "")
    if line[:4].lower() == "sep=" and line[4:].strip("\r\n") in delimiters:  # the first line that Excel understands
        return line[4]

    def score(delimiter: str) -> tuple[int, bool, int]:
        try:
            cells = next(csv.reader([line], delimiter=delimiter), [])
        except csv.Error:
            return 0, False, 0
        known = len({cell.strip() for cell in cells}.intersection(columns))
        return (known, False, 0) if known else (0, delimiter == "\t" and len(cells) > 1, len(cells))

    return max(delimiters, key=score)


def _read_header(path: Path, table: _Table, columns: Columns) -> list[str]:
    header: list[str] = []
    while not header:
        numbered = table.next_rows(1)
        if not numbered:
            raise DataError(f"{path} is empty.")
        header = [cell.strip() for cell in numbered[0][1]]
        if header == ["sep=", ""]:
            header = []
    columns.check_there(str(path), header)
    for name in columns.all():
        if header.count(name) > 1:
            raise DataError(f"{path} has the column '{name}' {header.count(name)} times.")
    return header


def _read_rows(path: Path, table: _Table, width: int) -> tuple[list[int], list[list[str]]]:
    numbers: list[int] = []
    rows: list[list[str]] = []
    while not rows:
        numbered = table.next_rows(ROWS)
        if not numbered:
            break
        for line, row in numbered:
            if len(row) != width:
                if not row:
                    continue
                raise DataError(f"{path} line {line} has {len(row)} cells; the header has {width}.")
            numbers.append(line)
            rows.append(row)
    return numbers, rows


def _check_names(kind: str, names: Sequence[str], separator: str) -> None:
    for name in names:
        if separator in name:
            raise DataError(f"the {kind} {name!r} holds the separator {separator!r}; choose another separator.")
        if name != name.strip() or not name:
            raise DataError(f"the {kind} {name!r} is empty or has spaces around it, which a table does not keep.")


def _write_out(text: io.StringIO, file: IO[bytes], row: int) -> None:
    try:
        file.write(text.getvalue().encode())
    except UnicodeEncodeError as error:
        raise DataError(
            f"a row up to row {row} holds half of a surrogate pair, which UTF-8 does not have; write it as JSONL."
        ) from error
    text.seek(0)
    text.truncate()
