"""Read and write CSV and TSV with a header line that names the columns `text`, `labels`, `id` and `group`.

Other columns are ignored. A cell of labels or groups holds names separated by `;` (or another separator), with spaces
around them dropped and empty ones skipped. Cells are quoted with `"` as spreadsheets do, so texts may hold separators
and line breaks, and may be of any length. Empty lines are skipped; a line with more or fewer cells than the header is
refused.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import IO, Any, Protocol

from longtail.data.dataset import Dataset
from longtail.data.formats.files import replacing, text_blocks
from longtail.data.formats.records import Batch, Columns, group_names_of, make_batch, names_in_row, weights_in_row
from longtail.errors import DataError

ROWS = 1024
FIELD_LIMIT = 2**31 - 1  # Python's own limit is 131,072 characters a cell


class TableReader(Protocol):
    """The rows of a table, as `csv.reader` yields them."""

    line_num: int

    def __iter__(self) -> Iterator[list[str]]: ...


def table_batches(path: Path, columns: Columns, delimiter: str) -> Iterator[Batch]:
    """Yield the rows of a CSV (delimiter ",") or TSV (delimiter "\\t") file."""
    reader = csv.reader(_iter_lines(path), delimiter=delimiter, strict=True)
    header = _read_header(path, reader, columns)
    wanted = {name: header.index(name) for name in columns.all() if name in header}
    while True:
        numbers, rows = _read_rows(path, reader, len(header))
        if not rows:
            return
        values: dict[str, list[Any]] = {name: [row[at] for row in rows] for name, at in wanted.items()}
        if columns.id in values:
            values[columns.id] = [cell or None for cell in values[columns.id]]
        yield make_batch(lambda line: f"{path} line {line}", numbers, values, columns, columns.separator)


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


def _iter_lines(path: Path) -> Iterator[str]:
    for _, text in text_blocks(path):
        yield from io.StringIO(text, newline="\n")  # only \n ends a line here; csv sees to \r\n


def _read_header(path: Path, reader: TableReader, columns: Columns) -> list[str]:
    header: list[str] = []
    while not header:
        numbered = _next_rows(path, reader, 1)
        if not numbered:
            raise DataError(f"{path} is empty.")
        header = [cell.strip() for cell in numbered[0][1]]
    for name in columns.texts():
        if name not in header:
            raise DataError(f"{path} has no column '{name}'; it has: {', '.join(header)}.")
    for name in columns.all():
        if header.count(name) > 1:
            raise DataError(f"{path} has the column '{name}' {header.count(name)} times.")
    return header


def _read_rows(path: Path, reader: TableReader, width: int) -> tuple[list[int], list[list[str]]]:
    numbers: list[int] = []
    rows: list[list[str]] = []
    while not rows:
        numbered = _next_rows(path, reader, ROWS)
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


def _next_rows(path: Path, reader: TableReader, count: int) -> list[tuple[int, list[str]]]:
    """Return the next rows with the number of the line they start in; the limit on cells is lifted for the while."""
    before = csv.field_size_limit(FIELD_LIMIT)
    out: list[tuple[int, list[str]]] = []
    start = reader.line_num + 1
    try:
        for row in islice(reader, count):
            out.append((start, row))
            start = reader.line_num + 1
    except csv.Error as error:
        stray = "a carriage return stands in a cell without quotes"
        quote = "a quoted cell is not closed, or text follows its closing quote"
        raise DataError(f"{path} line {start}: {stray if 'new-line' in str(error) else quote}.") from error
    finally:
        csv.field_size_limit(before)
    return out


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
