"""Telling a file's format from its name or, where the name does not say, from its first line."""

from __future__ import annotations

import re
from pathlib import Path

from longtail.data.formats.files import line_blocks, plain_name
from longtail.data.formats.raw_folder import is_raw_folder
from longtail.data.formats.registry import FORMATS, REGISTRY
from longtail.data.formats.split_folder import is_split_folder
from longtail.errors import DataError, Keyword

HEADER = re.compile(rb"\s*[0-9]+[ \t]+[0-9]+[ \t]+[0-9]+\s*\Z")
SPARSE = re.compile(rb"(?:[0-9]+(?:,[0-9]+)*)?[ \t]+[0-9]+:[0-9.+-]|[0-9]+:[0-9.+-]")
PEEK = 1 << 16


def guess_format(path: Path) -> tuple[str, str]:
    """Return the name of the format and what it was guessed from: "name", "first line" or "files".

    >>> guess_format(Path("train.jsonl.xz"))
    ('jsonl', 'name')
    """
    if path.is_dir():
        return _of_folder(path), "files"
    suffix = Path(plain_name(path)).suffix.lower()
    for name, found in REGISTRY.items():
        if suffix in found.suffixes and suffix != ".json":
            return name, "name"
    guessed = _of_first_line(path)
    if guessed == "lines" and suffix not in (".txt", ".text"):
        raise DataError(
            "{path}: neither its name nor its first line tells the format; {advice}, one of {allowed}.",
            path=path,
            advice=Keyword("format", verb="pass"),
            allowed=list(FORMATS),
        )
    return guessed, "first line"


def guess_target(path: Path) -> str:
    """Return the format to write, from the file's name alone."""
    suffix = Path(plain_name(path)).suffix.lower()
    for name, found in REGISTRY.items():
        if suffix in found.suffixes and found.write:
            return name
    if suffix == ".txt":
        return "xmc"
    writable = [name for name, found in REGISTRY.items() if found.write]
    raise DataError(
        "{path}: its name does not tell the format to write; {advice}, one of {allowed}.",
        path=path,
        advice=Keyword("format", verb="pass"),
        allowed=writable,
    )


def _of_folder(path: Path) -> str:
    if is_raw_folder(path):
        return "xmc-raw"
    if is_split_folder(path):
        return "xmc-splits"
    if (path / "X.npz").is_file():
        return "npz"
    raise DataError(
        f"{path} is a folder in none of the known layouts: it has no trn.json, no *_trn_split.txt and no X.npz."
    )


def _of_first_line(path: Path) -> str:
    if not path.is_file():  # a pipe can be read once only
        raise DataError(
            "{path} is not a regular file, so its format cannot be guessed; say which it is ({advice}).",
            path=path,
            advice=Keyword("format"),
        )
    for _, block in line_blocks(path, PEEK):
        line = block.lstrip(b"\r\n").partition(b"\n")[0]
        if HEADER.match(line):
            return "xmc"
        if line.startswith(b"__label__"):
            return "fasttext"
        if line.lstrip().startswith(b"{"):
            return "jsonl"
        if SPARSE.match(line):
            return "libsvm"
        if line.lstrip().startswith(b"[") and Path(plain_name(path)).suffix.lower() == ".json":
            raise DataError(f"{path} is a JSON array; write one object per line (JSONL) instead.")
        break
    return "lines"
