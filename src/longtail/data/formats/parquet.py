"""Read and write Parquet with the columns `text`, `labels`, `id` and `group`; needs pyarrow (the extra `io`).

`labels` and `group` may be lists of names, whole numbers, or strings of names separated by `;`.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from longtail.data.dataset import Dataset
from longtail.data.formats.files import open_bytes, plain_name, replacing
from longtail.data.formats.records import Batch, Columns, group_names_of, make_batch, names_in_row, weights_in_row
from longtail.errors import DataError, MissingExtraError

ROWS = 4096


def parquet_batches(path: Path, columns: Columns) -> Iterator[Batch]:
    """Yield the rows of a Parquet file, one small batch at a time."""
    if plain_name(path) != path.name:
        raise DataError(f"{path} is a packed Parquet file, which cannot be read in place; unpack it first.")
    pa, pq = _pyarrow("Reading Parquet")
    with open_bytes(path) as file:
        if not file.read(1):
            raise DataError(f"{path} is empty.")
    try:
        with pq.ParquetFile(path) as source:
            names = source.schema_arrow.names
            for name in columns.texts():
                if name not in names:
                    raise DataError(f"{path} has no column '{name}'; it has: {', '.join(names)}.")
            wanted = [name for name in columns.all() if name in names]
            done = 0
            for part in source.iter_batches(batch_size=ROWS, columns=wanted):
                values = {name: part.column(name).to_pylist() for name in wanted}
                lines = range(done + 1, done + 1 + part.num_rows)
                done += part.num_rows
                yield make_batch(lambda row: f"{path} row {row}", lines, values, columns, columns.separator)
    except (pa.ArrowException, OSError) as error:
        raise DataError(f"{path} is not a readable Parquet file.") from error


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
