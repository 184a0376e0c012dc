"""Read and write Parquet with the columns `text`, `labels`, `id` and `group`; needs pyarrow (the extra `io`).

`labels` and `group` may be lists of names, whole numbers, or strings of names separated by `;`.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import IO, Any, BinaryIO

from longtail.data.dataset import Dataset
from longtail.data.formats.files import open_bytes, plain_name, replacing
from longtail.data.formats.parquet_footer import (
    COLUMNS,
    DATA_PAGE,
    DICTIONARY_PAGE,
    GROUP_BYTES,
    GROUP_ROWS,
    META_DATA,
    PATH,
    ROW_GROUPS,
    VALUES,
    Fields,
    Footer,
    read_footer,
)
from longtail.data.formats.records import Batch, Columns, group_names_of, make_batch, names_in_row, weights_in_row
from longtail.data.limits import DEFAULT_LIMITS, Limits, over_limit
from longtail.errors import DataError, MissingExtraError

ROWS = 4096  # that are written together
TABLE_ROWS = 100_000  # of a table that is written row by row
ROWS_READ = 1024  # together: few, since a value that is stored once may stand in all of them
BATCH_BYTES = 1 << 26  # of rows that are read together, by their mean length
MOST_BATCH_BYTES = 1 << 27  # of a column of rows that are read together, if all had the longest value
DICTIONARY = 2  # type of a page, as its header says
PAGE_FIELD = 0x15  # fields 1 and 2 of the header of a page, its type and its unpacked size
LONGEST_HEADER = 32  # bytes of these two
LAST_OFFSET = 2**63 - 1


class ParquetTable:
    """A Parquet file that is written some rows at a time, in constant memory; `close` ends it.

    `part` gives rows as bytes that can wait in a file one after the other, for `join` to write them later.
    """

    pa: Any
    pq: Any

    def __init__(self, columns: Mapping[str, str], file: IO[bytes] | None = None) -> None:
        self.pa, self.pq = _pyarrow("Writing Parquet")
        self.schema: Any = self.pa.schema([(name, getattr(self.pa, kind)()) for name, kind in columns.items()])
        self.writer: Any = None if file is None else self.pq.ParquetWriter(file, self.schema)
        self.waiting: Any = self.schema.empty_table()

    def add(self, rows: list[tuple[Any, ...]]) -> None:
        """Add rows."""
        self._add_table(self._table(rows))

    def close(self) -> None:
        """Write what waits, and the end of the file."""
        self.writer.write_table(self.waiting.combine_chunks())
        self.writer.close()

    def part(self, rows: list[tuple[Any, ...]]) -> bytes:
        """Return rows as bytes, for `join`."""
        sink = self.pa.BufferOutputStream()
        with self.pa.ipc.new_stream(sink, self.schema) as stream:
            stream.write_table(self._table(rows))
        return sink.getvalue().to_pybytes()

    def join(self, parts: BinaryIO, file: IO[bytes]) -> None:
        """Write a file of parts as Parquet."""
        self.writer = self.pq.ParquetWriter(file, self.schema)
        end = os.fstat(parts.fileno()).st_size
        while parts.tell() < end:
            with self.pa.ipc.open_stream(parts) as stream:
                self._add_table(stream.read_all())
        self.close()

    def _table(self, rows: list[tuple[Any, ...]]) -> Any:
        """Return rows as a table; half a surrogate pair, which UTF-8 cannot hold, becomes an escape."""
        columns = [list(column) for column in zip(*rows, strict=True)] or [[] for _ in self.schema]
        safe = [[_escaped(cell) if isinstance(cell, str) else cell for cell in column] for column in columns]
        return self.pa.table(safe, schema=self.schema)

    def _add_table(self, table: Any) -> None:
        """Write the rows that are enough for a row group."""
        self.waiting = self.pa.concat_tables([self.waiting, table])
        while self.waiting.num_rows >= TABLE_ROWS:
            self.writer.write_table(self.waiting.slice(0, TABLE_ROWS).combine_chunks())
            self.waiting = self.waiting.slice(TABLE_ROWS)


def _escaped(text: str) -> str:
    """Return a text that UTF-8 can hold."""
    return text if text.isascii() else text.encode("utf-8", "backslashreplace").decode("utf-8")


def parquet_batches(path: Path, columns: Columns, limits: Limits = DEFAULT_LIMITS) -> Iterator[Batch]:
    """Yield the rows of a Parquet file, one small batch at a time."""
    for lines, values in parquet_values(path, lambda names: _wanted_columns(path, names, columns), limits):
        yield make_batch(lambda row: f"{path} row {row}", lines, values, columns, columns.separator)


def parquet_values(
    path: Path, choose: Callable[[list[str]], list[str]], limits: Limits = DEFAULT_LIMITS
) -> Iterator[tuple[range, dict[str, list[Any]]]]:
    """Yield the numbers of some rows, from 1 on, and the values of the columns that `choose` takes of all names."""
    if plain_name(path) != path.name:
        raise DataError(f"{path} is a packed Parquet file, which cannot be read in place; unpack it first.")
    pa, pq = _pyarrow("Reading Parquet")
    with open_bytes(path) as file:
        if not file.read(1):
            raise DataError(f"{path} is empty.")
    try:
        with pq.ParquetFile(path) as source:
            limits.check("table_columns", len(source.schema_arrow.names), str(path))
            wanted = choose(source.schema_arrow.names)
            done, unpacked, most = 0, 0, limits.bytes_to_unpack()
            rows = _rows_at_a_time(path, wanted, most)
            for part in source.iter_batches(batch_size=rows, columns=wanted):
                unpacked += sum(_bytes_of(pa, part.column(name)) for name in wanted)
                if unpacked > most:
                    over_limit("unpacked_bytes", most, 2 * most, str(path))
                values = {name: _as_list(path, name, part.column(name), done) for name in wanted}
                lines = range(done + 1, done + 1 + part.num_rows)
                done += part.num_rows
                yield lines, values
    except (pa.ArrowException, OSError, UnicodeDecodeError) as error:  # the last: a name of a column
        raise DataError(f"{path} is not a readable Parquet file.") from error


def once_each(path: Path, names: list[str], wanted: list[str]) -> list[str]:
    """Return the wanted columns, each of which may stand in the file once."""
    for name in wanted:
        if names.count(name) > 1:
            raise DataError(f"{path} has the column '{name}' {names.count(name)} times.")
    return wanted


def _wanted_columns(path: Path, names: list[str], columns: Columns) -> list[str]:
    """Return the columns to read, each of which must stand in the file once."""
    columns.check_there(str(path), names)
    wanted = once_each(path, names, [name for name in columns.all() if name in names])
    columns.note_ignored(name for name in names if name not in wanted)
    return wanted


def _rows_at_a_time(path: Path, wanted: list[str], most: int) -> int:
    """Return how many rows to read together: fewer where they are long, or where one long value may stand in all."""
    mean, longest = 1.0, 1.0
    with path.open("rb") as file:
        try:
            for group in read_footer(file).get(ROW_GROUPS, []):
                rows = max(group[GROUP_ROWS], 1)
                mean = max(mean, group[GROUP_BYTES] / rows)
                for facts in (column[META_DATA] for column in group[COLUMNS]):
                    if facts[PATH][0].decode("utf-8", "replace") in wanted:  # the rest is the inside of a list
                        values = max(facts[VALUES] / rows, 1.0)
                        longest = max(longest, values * _dictionary_bytes(file, facts))
        except (DataError, KeyError, IndexError, TypeError, AttributeError) as error:
            raise DataError(f"{path} is not a readable Parquet file.") from error
    return max(min(int(BATCH_BYTES / mean), int(min(MOST_BATCH_BYTES, most) / longest), ROWS_READ), 1)


def _dictionary_bytes(file: BinaryIO, facts: Fields) -> int:
    """Return how long a value of a column's dictionary may be: the unpacked size of its page, as the header says."""
    start = facts[DATA_PAGE]
    if 0 < facts.get(DICTIONARY_PAGE, 0) < start:
        start = facts[DICTIONARY_PAGE]
    file.seek(min(max(start, 0), LAST_OFFSET))
    header = Footer(file.read(LONGEST_HEADER))
    try:
        if (header.byte(), header.signed()) != (PAGE_FIELD, DICTIONARY) or header.byte() != PAGE_FIELD:
            return 0
        return max(header.signed(), 0)
    except DataError:
        return 0


def _bytes_of(pa: Any, column: Any) -> int:
    """Return the bytes of a column's values, each as often as it is meant: a dictionary holds it once."""
    if not pa.types.is_dictionary(column.type) or column.dictionary.type not in (pa.string(), pa.large_string()):
        return column.nbytes
    import pyarrow.compute as pc

    return pc.sum(pc.binary_length(column.dictionary).take(column.indices)).as_py() or 0


def _as_list(path: Path, name: str, column: Any, done: int) -> list[Any]:
    """Return the values of a column; one that Python cannot hold is refused by its row."""
    try:
        return column.to_pylist()
    except (ValueError, OverflowError):
        pass
    for row, value in enumerate(column, done + 1):
        try:
            value.as_py()
        except UnicodeDecodeError:
            raise DataError(f"{path} row {row}: '{name}' is not UTF-8.") from None
        except (ValueError, OverflowError):
            raise DataError(f"{path} row {row}: '{name}' holds a value out of range.") from None
    raise DataError(f"{path}: the column '{name}' cannot be read.")


def write_parquet(dataset: Dataset, path: str | Path, columns: Columns) -> None:
    """Write one row per row, labels and groups as lists of strings; not in .gz, which nobody could read in place."""
    path = Path(path)
    if plain_name(path) != path.name:
        raise DataError(f"{path}: Parquet is compressed already; name the file {plain_name(path)}.")
    pa, pq = _pyarrow("Writing Parquet")
    if dataset.texts is None:
        raise DataError("the data has no texts, which our Parquet files need; write it as XMC text or npz.")
    fields = [] if dataset.ids is None else [(columns.id, pa.string())]
    fields += [(columns.texts()[0], pa.string()), (columns.labels, pa.list_(pa.string()))]
    fields += [(columns.weights, pa.list_(pa.float32()))] if columns.weights else []
    fields += [] if dataset.groups is None else [(columns.group, pa.list_(pa.string()))]
    schema, label_names, group_names = pa.schema(fields), dataset.names(), group_names_of(dataset)
    with replacing(path) as file, pq.ParquetWriter(file, schema) as writer:
        for low in range(0, dataset.n_rows, ROWS):
            rows = range(low, min(low + ROWS, dataset.n_rows))
            values: list[list[Any]] = [] if dataset.ids is None else [list(dataset.ids[low : rows.stop])]
            values += [list(dataset.texts[low : rows.stop])]
            values.append([names_in_row(dataset.Y, row, label_names) for row in rows])
            if columns.weights:
                values.append([weights_in_row(dataset.Y, row) for row in rows])
            if dataset.groups is not None:
                values.append([names_in_row(dataset.groups, row, group_names) for row in rows])
            try:
                writer.write_table(pa.table(dict(zip(schema.names, values, strict=True)), schema=schema))
            except UnicodeEncodeError as error:
                raise DataError(
                    f"a row from row {low} on holds half of a surrogate pair, which UTF-8 does not have; "
                    "write it as JSONL."
                ) from error


def _pyarrow(what: str) -> tuple[Any, Any]:
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError as error:
        raise MissingExtraError(what, "pyarrow", "io") from error
    return pyarrow, pyarrow.parquet
