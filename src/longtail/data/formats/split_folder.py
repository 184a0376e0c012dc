"""Read the split layout of the XMC repository: one data file and two files of row numbers.

A folder holds one file of XMC text beside `*_trn_split.txt` and `*_tst_split.txt` (older sets: `*_trSplit.txt` and
`*_tstSplit.txt`). The split files have one column per split; rows are counted from 1.
"""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np

from longtail.data.dataset import Dataset
from longtail.data.formats.files import line_blocks
from longtail.data.formats.xmc import read_xmc
from longtail.data.limits import DEFAULT_LIMITS, Limits
from longtail.errors import DataError, Keyword
from longtail.validate import check_integer

TRAIN_SPLIT = re.compile(r".*(?:trn_split|trsplit)\.txt(?:\.gz|\.xz|\.bz2)?\Z", re.IGNORECASE)
TEST_SPLIT = re.compile(r".*(?:tst_split|tstsplit)\.txt(?:\.gz|\.xz|\.bz2)?\Z", re.IGNORECASE)


def read_split_folder(folder: str | Path, split: int = 0, limits: Limits = DEFAULT_LIMITS) -> tuple[Dataset, Dataset]:
    """Return the training and the test rows of one split (0 is the first column of the split files)."""
    folder = Path(folder)
    split = check_integer("split", split, low=0)
    train_file, test_file = (_one_file(folder, kind, p) for kind, p in (("trn", TRAIN_SPLIT), ("tst", TEST_SPLIT)))
    others = [
        p for p in _files_in(folder) if _is_text(p) and not TRAIN_SPLIT.match(p.name) and not TEST_SPLIT.match(p.name)
    ]
    named = [p for p in others if "data" in p.name.lower()] or others
    if len(named) != 1:
        names = ", ".join(p.name for p in named) or "none"
        raise DataError(f"{folder} must hold one data file beside its split files; found: {names}.")
    data = read_xmc(named[0], folder.name, limits)
    train, test = (data.take(_split_rows(file, split, data.n_rows, limits)) for file in (train_file, test_file))
    return train, test


def is_split_folder(folder: Path) -> bool:
    """Return whether a folder holds split files."""
    return any(TRAIN_SPLIT.match(p.name) or TEST_SPLIT.match(p.name) for p in _files_in(folder))


def read_integers(
    path: Path, width: int | None = None, *, may_be_empty: bool = False, limits: Limits = DEFAULT_LIMITS
) -> np.ndarray:
    """Return a table of whole numbers, separated by spaces, as int64; every line must have as many."""
    pieces = []
    for first, block in line_blocks(path, may_be_empty=may_be_empty, limits=limits):
        lines = block.rstrip().split(b"\n") if block.strip() else []
        width = width or (len(lines[0].split()) if lines else 0) or 1
        try:
            table = np.array(b" ".join(lines).split(), dtype=np.int64)
            if not re.fullmatch(rb"[-0-9\s]*", block) or any(len(line.split()) != width for line in lines):
                raise ValueError("a line of another width")
        except (ValueError, OverflowError):
            raise DataError(_bad_line(path, first, lines, width)) from None
        pieces.append(table.reshape(-1, width))
    return np.concatenate([np.empty((0, width or 1), dtype=np.int64), *pieces])


def _bad_line(path: Path, first: int, lines: list[bytes], width: int) -> str:
    for number, line in enumerate(lines, first):
        parts = line.split()
        if len(parts) != width or not all(re.fullmatch(rb"-?[0-9]{1,18}", part) for part in parts):
            got = line.strip().decode("utf-8", "backslashreplace")[:40]
            wanted = f"{width} whole numbers" if width > 1 else "one whole number"
            return f"{path} line {number} must hold {wanted}; got {got!r}."
    return f"{path} holds a number that is too large."


def _split_rows(path: Path, split: int, n_rows: int, limits: Limits) -> np.ndarray:
    table = read_integers(path, limits=limits)
    if split >= table.shape[1]:
        raise DataError(
            "{path} has {n} splits, numbered from 0; got {got}.",
            path=path,
            n=table.shape[1],
            got=Keyword("split", split),
        )
    rows = table[:, split]
    wrong = np.flatnonzero((rows < 1) | (rows > n_rows))
    if wrong.size:
        raise DataError(
            f"{path} line {wrong[0] + 1}: the row {rows[wrong[0]]} is out of range; allowed are 1 to {n_rows}."
        )
    return rows - 1


def _one_file(folder: Path, kind: str, pattern: re.Pattern[str]) -> Path:
    files = [p for p in _files_in(folder) if pattern.match(p.name)]
    if len(files) != 1:
        names = ", ".join(p.name for p in files) or "none"
        raise DataError(f"{folder} must hold one file *_{kind}_split.txt; found: {names}.")
    return files[0]


def _files_in(folder: Path) -> list[Path]:
    if not folder.is_dir():
        raise DataError(f"{folder} does not exist." if not folder.exists() else f"{folder} is not a folder.")
    return sorted(p for p in folder.iterdir() if p.is_file())


def _is_text(path: Path) -> bool:
    return ".txt" in path.suffixes
