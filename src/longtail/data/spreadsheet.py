"""Tables for people who open them in a spreadsheet: CSV of which no cell is taken for a formula."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Sequence
from pathlib import Path

from longtail.data.formats.files import replacing

FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n", "\uff1d", "\uff0b", "\uff0d", "\uff20")  # the last four are full-width


def plain_cell(cell: object) -> object:
    """Return a cell that spreadsheets show and never run: text like a formula gets an apostrophe; numbers stay.

    >>> plain_cell("=1+1"), plain_cell("-Wall"), plain_cell(-0.5), plain_cell("devel::c")
    ("'=1+1", "'-Wall", -0.5, 'devel::c')
    """
    return f"'{cell}" if isinstance(cell, str) and cell.startswith(FORMULA) else cell


def write_spreadsheet(path: str | Path, columns: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    """Write a table as CSV in UTF-8, all or nothing, with a mark by which spreadsheets know the encoding.

    It is for people: files that programs read back (`longtail.data.write`, predictions) are written as they are.
    """
    with replacing(Path(path)) as file:
        text = io.TextIOWrapper(file, "utf-8-sig", errors="backslashreplace", newline="")
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow(columns)
        writer.writerows([plain_cell(cell) for cell in row] for row in rows)
        text.flush()
        text.detach()
