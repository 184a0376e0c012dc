"""Predictions as files: JSONL, CSV, TSV and Parquet, CSV as spreadsheets want it, and CSV with one line per row."""

from __future__ import annotations

import codecs
import csv
import io
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from longtail.cli.output import as_json_bytes
from longtail.errors import ParameterError

if TYPE_CHECKING:
    from longtail.pipeline import Tag, Tagger


class Table(NamedTuple):
    """How a table of text is written; one for people begins with a byte order mark and holds no formulas.

    It has a line for each label of a row, or one line with all of them.
    """

    delimiter: str
    decimal: str = "."
    for_people: bool = False
    one_line: bool = False


TABLES = {
    "csv": Table(","),
    "tsv": Table("\t"),
    "spreadsheet": Table(",", ".", for_people=True),
    "spreadsheet-semicolon": Table(";", ",", for_people=True),  # where numbers have decimal commas
    "csv-rows": Table(",", one_line=True),
    "spreadsheet-rows": Table(",", ".", for_people=True, one_line=True),
    "spreadsheet-semicolon-rows": Table(";", ",", for_people=True, one_line=True),
}
FORMATS = ("jsonl", "csv", "tsv", "parquet", *(name for name in TABLES if name not in ("csv", "tsv")))
BETWEEN = "|"  # stands between the labels of a row that has one line
COMPRESSED = (".gz", ".xz", ".bz2")
NOT_WRITTEN = ("npz", "npy", "arrow", "feather", "xlsx", "xls", "safetensors", "svm", "libsvm")  # suffixes

RowWriter = Callable[[str, Sequence["Tag"]], None]


def output_format(output: Path | None, to: str | None) -> str:
    """Return the format to write: the one asked for, or that of the output's name; JSONL if none."""
    chosen = to or _format_by_name(output)
    if chosen == "parquet" and (output is None or output.name.endswith(COMPRESSED)):
        raise ParameterError("--to parquet needs --output with the name of a file that is not compressed again.")
    return chosen


def _format_by_name(output: Path | None) -> str:
    if output is None:
        return "jsonl"
    name = output.name.removesuffix(".gz").removesuffix(".xz").removesuffix(".bz2")
    suffix = Path(name).suffix.lstrip(".")
    if suffix in NOT_WRITTEN:
        advice = "predictions are written as jsonl, csv, tsv or parquet; choose such a name, or give --to"
        raise ParameterError(f"--output must not end in .{suffix}; got {output}: {advice}.")
    return suffix if suffix in FORMATS else "jsonl"


def check_joined(to: str, tagger: Tagger) -> None:
    """Refuse one line per row for a model with a label, or a name of one, that could not be told apart there."""
    if to not in TABLES or not TABLES[to].one_line:
        return
    vocabulary = tagger.vocabulary_
    for label in tagger.labels_:
        for what, text in (("label", label), ("name", label if vocabulary is None else vocabulary.name(label))):
            if BETWEEN in text:
                problem = f"writes {BETWEEN!r} between labels, and the model has the {what} {text!r:.60}"
                raise ParameterError(f"--to {to} {problem}; use --to {to.removesuffix('-rows')}, one line per label.")


def columns_of(named: bool) -> list[str]:
    """Return what is written of each label."""
    return ["label", "score", "probability", *(["name"] if named else [])]


def parquet_columns(named: bool) -> dict[str, str]:
    """Return the columns of a Parquet file of predictions with their types."""
    kinds = {"id": "string", "place": "int32", "label": "string", "score": "float32", "probability": "float32"}
    return {**kinds, "name": "string"} if named else kinds


def parquet_rows(ids: Sequence[str], tags: Sequence[Sequence[Tag]], named: bool) -> list[tuple[Any, ...]]:
    """Return one row of a Parquet file for each label of some rows."""
    return [
        (row, rank, tag.label, tag.score, tag.probability, *((tag.name or tag.label,) if named else ()))
        for row, labels in zip(ids, tags, strict=True)
        for rank, tag in enumerate(labels, 1)
    ]


def row_writer(
    to: str, write: Callable[[bytes], object], *, named: bool
) -> tuple[Callable[[], None] | None, RowWriter]:
    """Return two functions that write a text format: its header, if it has one, and the labels of a row by its id."""
    columns = columns_of(named)
    if to == "jsonl":

        def line(row: str, tags: Sequence[Tag]) -> None:
            labels = [{column: getattr(tag, column) for column in columns} for tag in tags]
            write(as_json_bytes({"id": row, "labels": labels}) + b"\n")

        return None, line

    from longtail.data import plain_cell

    delimiter, decimal, for_people, one_line = TABLES[to]

    def write_cells(fields: list[str]) -> None:
        text = io.StringIO()
        plain = not any("\r" in field for field in fields)  # which Python leaves without quotes
        writer = partial(csv.writer, text, delimiter=delimiter, lineterminator="\n")
        (writer() if plain else writer(quoting=csv.QUOTE_ALL)).writerow(fields)
        write(text.getvalue().encode("utf-8", "backslashreplace"))

    def name_cell(text: str) -> str:
        return str(plain_cell(text)) if for_people else text

    def chance(tag: Tag) -> str:
        return "" if tag.probability is None else f"{tag.probability:.6g}".replace(".", decimal)

    def header() -> None:
        if for_people:
            write(codecs.BOM_UTF8)
        joined = ["labels", "probabilities", *(["names"] if named else [])]
        write_cells(["id", *(joined if one_line else ["place", *columns])])

    def lines(row: str, tags: Sequence[Tag]) -> None:
        for rank, tag in enumerate(tags, 1):
            score = f"{tag.score:.6g}".replace(".", decimal)
            cells = [name_cell(row), str(rank), name_cell(tag.label), score, chance(tag)]
            write_cells([*cells, *([name_cell(tag.name or tag.label)] if named else [])])

    def line_of_row(row: str, tags: Sequence[Tag]) -> None:
        labels, names = (BETWEEN.join(words) for words in ([t.label for t in tags], [t.name or t.label for t in tags]))
        chances = BETWEEN.join(filter(None, map(chance, tags)))  # all have one, or none
        write_cells([name_cell(row), name_cell(labels), chances, *([name_cell(names)] if named else [])])

    return header, line_of_row if one_line else lines


def batch_writer(
    to: str,
    write: Callable[[bytes], object],
    add_rows: Callable[[list[tuple[Any, ...]]], object] | None,
    *,
    named: bool,
    head: bool = True,
) -> Callable[[Sequence[str], Sequence[Sequence[Tag]]], None]:
    """Return a function that writes the labels of some rows: as bytes of text, or as rows of a Parquet table.

    The first rows, though they be none, begin the file with its header, unless `head` says that it has one.
    """
    header, line = row_writer(to, write, named=named) if add_rows is None else (None, None)
    begun = not head

    def batch(ids: Sequence[str], tags: Sequence[Sequence[Tag]]) -> None:
        nonlocal begun
        if add_rows is not None:
            add_rows(parquet_rows(ids, tags, named))
        if line is None:
            return
        if not begun and header is not None:
            header()
        begun = True
        for row, labels in zip(ids, tags, strict=True):
            line(row, labels)

    return batch
