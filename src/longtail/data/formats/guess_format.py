"""Guess a file's format from its name or, where the name leaves it open, from its first line."""

from __future__ import annotations

import os
from pathlib import Path

from longtail.data.formats import annif
from longtail.data.formats.files import line_blocks, plain_name
from longtail.data.formats.registry import REGISTRY
from longtail.data.limits import DEFAULT_LIMITS, Limits
from longtail.errors import DataError, Keyword

PEEK = 1 << 16
SPREADSHEETS = (".xlsx", ".xlsm", ".xlsb", ".xls", ".ods", ".numbers")
TEXT_SUFFIXES = (".txt", ".text")  # of files that may hold one text per line


def guess_format(path: Path, limits: Limits = DEFAULT_LIMITS) -> tuple[str, str]:
    """Return the name of the format and what it was guessed from: "name", "first line" or "files".

    >>> guess_format(Path("train.jsonl.xz"))
    ('jsonl', 'name')
    """
    if path.is_dir():
        if not os.access(path, os.R_OK | os.X_OK):
            raise DataError(f"{path} cannot be read: Permission denied.")
        return _guess_folder(path), "files"
    suffix = Path(plain_name(path)).suffix.lower()
    for name, format in REGISTRY.items():
        if suffix in format.suffixes:
            return ("annif", "first line") if name == "tsv" and _is_annif(path, limits) else (name, "name")
    if suffix in SPREADSHEETS:
        raise DataError(f"{path} is a spreadsheet's own format; save it as CSV in the spreadsheet program.")
    guessed = _guess_first_line(path, limits)
    if guessed == "lines" and suffix not in TEXT_SUFFIXES:
        raise DataError(
            "{path}: neither its name nor its first line tells the format; {advice}, one of {allowed}.",
            path=path,
            advice=Keyword("format", verb="pass"),
            allowed=list(REGISTRY),
        )
    return guessed, "first line"


def guess_target(path: Path) -> str:
    """Return the format to write, from the file's name alone.

    >>> guess_target(Path("rows.csv.gz")), guess_target(Path("rows.txt"))
    ('csv', 'xmc')
    """
    suffix = Path(plain_name(path)).suffix.lower()
    writable = {name: format for name, format in REGISTRY.items() if format.write}
    for name, format in writable.items():
        if suffix in (*format.suffixes, *format.write_suffixes):
            return name
    raise DataError(
        "{path}: its name does not tell the format to write; {advice}, one of {allowed}.",
        path=path,
        advice=Keyword("format", verb="pass"),
        allowed=list(writable),
    )


def _guess_folder(path: Path) -> str:
    """Return the format of a folder; the last in the registry is tried first, since its layout is the most special."""
    layouts = [(name, format.folder) for name, format in reversed(REGISTRY.items()) if format.folder is not None]
    for name, layout in layouts:
        if layout.matches(path):
            return name
    *some, last = (f"no {layout.sign}" for _, layout in layouts)
    sentence = f"{{path}} is a folder in none of the known layouts: it has {', '.join(some)} and {last}"
    if any(file.suffix == ".txt" for file in path.iterdir()):
        remedy = Keyword("format", "annif-folder", verb="pass")
        raise DataError(f"{sentence}; {{remedy}} if every .txt file in it is a document.", path=path, remedy=remedy)
    raise DataError(f"{sentence}.", path=path)


def _is_annif(path: Path, limits: Limits) -> bool:
    """Return whether the first line of a TSV is no header but a text with subjects in angle brackets."""
    if not path.is_file():
        return False
    block = next((block for _, block in line_blocks(path, PEEK, limits=limits, may_be_empty=True)), b"")
    return annif.FIRST_LINE.match(block.lstrip(b"\r\n").partition(b"\n")[0]) is not None


def _guess_first_line(path: Path, limits: Limits) -> str:
    if not path.is_file():  # a pipe can be read once only
        raise DataError(
            "{path} is not a regular file, so its format cannot be guessed; say which it is ({advice}).",
            path=path,
            advice=Keyword("format"),
        )
    for _, block in line_blocks(path, PEEK, limits=limits):
        line = block.lstrip(b"\r\n").partition(b"\n")[0]
        for name, format in REGISTRY.items():
            if format.first_line is not None and format.first_line.match(line):
                return name
        if line.lstrip().startswith(b"[") and Path(plain_name(path)).suffix.lower() == ".json":
            raise DataError(f"{path} is a JSON array; write one object per line (JSONL) instead.")
        break
    return "lines"
