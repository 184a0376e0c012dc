"""Read and write XMC text, the format of the extreme classification repository.

The first line is `rows features labels`; every further line is a row, `label,label feature:value feature:value`, with
ids from 0. A row without labels starts with a space (or with its first feature) and is kept, an empty line is a row
with neither, and empty lines after the last row are ignored. A label named twice in a row counts once; a feature named
twice counts with the sum of its values.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp

from longtail.data.dataset import Dataset
from longtail.data.formats.files import BLOCK, line_blocks, replacing
from longtail.data.formats.xmc_parser import (
    BAD_FEATURE,
    BAD_LABEL,
    BAD_VALUE,
    FEATURE_RANGE,
    LABEL_RANGE,
    ParsedRows,
    ParseProblem,
    parse_rows,
)
from longtail.data.limits import DEFAULT_LIMITS, Limits
from longtail.errors import DataError

INT32_MAX = np.iinfo(np.int32).max
WRITE_ROWS = 4096


class XmcHeader(NamedTuple):
    """The three numbers of the first line."""

    rows: int
    features: int
    labels: int


def read_xmc(path: str | Path, name: str = "", limits: Limits = DEFAULT_LIMITS) -> Dataset:
    """Read a file of XMC text, compressed or not.

    >>> import tempfile
    >>> file = Path(tempfile.mkdtemp()) / "tiny.txt"
    >>> _ = file.write_text("2 3 2\\n0,1 0:1.5 2:1\\n 1:2\\n")
    >>> data = read_xmc(file)
    >>> data.Y.toarray().tolist(), data.X.toarray().tolist()
    ([[1.0, 1.0], [0.0, 0.0]], [[1.5, 0.0, 1.0], [0.0, 2.0, 0.0]])
    """
    path = Path(path)
    header, stack = XmcHeader(0, 0, 0), RowStack()
    for file_header, rows in iter_xmc(path, limits=limits):
        header = file_header
        limits.check("rows", header.rows, str(path))
        stack.add(rows)
    X, Y = stack.matrices(header.features, header.labels)
    return Dataset(Y=Y, X=X, name=name)


def iter_xmc(path: Path, size: int = BLOCK, limits: Limits = DEFAULT_LIMITS) -> Iterator[tuple[XmcHeader, ParsedRows]]:
    """Yield the rows of a file, about a megabyte of text at a time; at least one (possibly empty) block comes."""
    header: XmcHeader | None = None
    done, extra = 0, 0
    for line, block in line_blocks(path, size, limits=limits):
        if header is None:
            cut = block.index(b"\n") + 1
            header = _parse_header(path, block[:cut])
            limits.check("features", header.features, f"{path} line 1")
            limits.check("labels", header.labels, f"{path} line 1")
            line, block = line + 1, block[cut:]
        rows, problem = parse_rows(block, header.features, header.labels)
        if problem:
            raise DataError(describe_problem(path, line, block, problem, header.features, header.labels))
        check_row_labels(path, line, rows, limits)
        n_rows = rows.x_indptr.size - 1
        keep = min(n_rows, header.rows - done)
        blank = np.diff(rows.x_indptr[keep:]) + np.diff(rows.y_indptr[keep:]) == 0
        if not blank.all():
            extra += int(np.flatnonzero(~blank)[-1]) + 1
        done += keep
        yield header, head_rows(rows, keep)
    if header is not None and (done < header.rows or extra):
        raise DataError(f"{path} has {done + extra} rows; its header says {header.rows}.")


def xmc_matrices(path: Path, limits: Limits = DEFAULT_LIMITS) -> Iterator[tuple[sp.csr_array, sp.csr_array]]:
    """Yield X and Y of a file, about a megabyte of text at a time."""
    for header, rows in iter_xmc(path, limits=limits):
        stack = RowStack()
        stack.add(rows)
        yield stack.matrices(header.features, header.labels)


def check_row_labels(path: Path, first_line: int, rows: ParsedRows, limits: Limits) -> None:
    """Refuse a row with too many labels."""
    counts = np.diff(rows.y_indptr)
    most = int(counts.max(initial=0))
    if most > limits.row_labels:
        limits.check("row_labels", most, f"{path} line {first_line + int(counts.argmax())}")


class RowStack:
    """Blocks of parsed rows joined in arrays that grow in place, so that the rows are held only once.

    Gathering the blocks in a list and joining them at the end took three times the memory of the result.
    """

    def __init__(self) -> None:
        dtypes = (np.int64, np.int32, np.float32, np.int64, np.int32)
        self.parts: list[GrowingArray] = [GrowingArray(dtype) for dtype in dtypes]

    @property
    def n_rows(self) -> int:
        """The number of rows that were added."""
        return self.parts[0].size

    def add(self, rows: ParsedRows) -> None:
        """Add a block of rows."""
        counts = (np.diff(rows.x_indptr), rows.x_indices, rows.x_data, np.diff(rows.y_indptr), rows.y_indices)
        for part, values in zip(self.parts, counts, strict=True):
            part.add(values)

    def matrices(self, n_features: int, n_labels: int, first_id: int = 0) -> tuple[sp.csr_array, sp.csr_array]:
        """Return X and Y; nothing may be added after."""
        x_counts, x_indices, x_data, y_counts, y_indices = (part.finish() for part in self.parts)
        if first_id:
            x_indices -= first_id
        ones = np.ones(y_indices.size, dtype=np.float32)
        X = sp.csr_array((x_data, x_indices, _pointers(x_counts)), shape=(x_counts.size, n_features))
        Y = sp.csr_array((ones, y_indices, _pointers(y_counts)), shape=(y_counts.size, n_labels))
        X.sum_duplicates()
        Y.sum_duplicates()
        Y.data[:] = 1
        return X, Y


class GrowingArray:
    """An array that grows by a quarter when full; large ones are moved by the memory manager, not copied."""

    def __init__(self, dtype: type) -> None:
        self.values: np.ndarray = np.empty(0, dtype=dtype)
        self.size: int = 0

    def add(self, values: np.ndarray) -> None:
        """Append values."""
        end = self.size + values.size
        if end > self.values.size:
            self.values.resize(max(end, self.values.size * 5 // 4), refcheck=False)
        self.values[self.size : end] = values
        self.size = end

    def finish(self) -> np.ndarray:
        """Return the array at its right size; nothing may be added after."""
        self.values.resize(self.size, refcheck=False)
        return self.values


def head_rows(rows: ParsedRows, n_rows: int) -> ParsedRows:
    """Return the first rows of a block."""
    x_end, y_end = int(rows.x_indptr[n_rows]), int(rows.y_indptr[n_rows])
    return ParsedRows(
        rows.x_indptr[: n_rows + 1],
        rows.x_indices[:x_end],
        rows.x_data[:x_end],
        rows.y_indptr[: n_rows + 1],
        rows.y_indices[:y_end],
    )


def describe_problem(
    path: Path, first_line: int, block: bytes, problem: ParseProblem, n_features: int, n_labels: int
) -> str:
    """Return the error sentence for the first thing in a block that cannot be parsed."""
    match = re.compile(rb"[^ \t\r\n]*").match(block, problem.byte)
    token = (match.group() if match else b"").decode("utf-8", "backslashreplace")
    where = f"{path} line {first_line + problem.row}"
    if problem.code == BAD_LABEL:
        label = token.partition(",")[0]
        return f"{where}: expected label numbers separated by commas; got {_quoted(label)}."
    if problem.code == LABEL_RANGE:
        return f"{where}: the label id {token.partition(',')[0]} is out of range; {_allowed(n_labels)}."
    feature, _, value = token.partition(":")
    if problem.code == FEATURE_RANGE:
        return f"{where}: the feature id {feature} is out of range; {_allowed(n_features)}."
    if problem.code == BAD_FEATURE:
        return f"{where}: expected feature:value; got {_quoted(token)}."
    if problem.code == BAD_VALUE:
        return f"{where}: the value of feature {feature} must be a number; got {_quoted(value)}."
    return f"{where}: the value of feature {feature} must be a finite float32; got {_quoted(value)}."


def write_xmc(dataset: Dataset, path: str | Path) -> None:
    """Write XMC text; every float32 is written with as few digits as read back to the same number."""
    path = Path(path)
    if dataset.X is None:
        raise DataError("the data has no features, which XMC text needs; write it as JSONL or CSV.")
    X, Y = sp.csr_array(dataset.X), dataset.Y
    with replacing(path) as file:
        file.write(f"{X.shape[0]} {X.shape[1]} {Y.shape[1]}\n".encode())
        for low in range(0, X.shape[0], WRITE_ROWS):
            file.write(rows_to_text(X[low : low + WRITE_ROWS], Y[low : low + WRITE_ROWS], first_id=0))


def rows_to_text(X: sp.csr_array, Y: sp.csr_array, first_id: int) -> bytes:
    """Return rows as lines; `first_id` is the number of the first feature (1 in many libsvm files)."""
    values = [v.removesuffix(".0") for v in X.data.astype(str).tolist()]
    pairs = [f"{i}:{v}" for i, v in zip((X.indices + first_id).tolist(), values, strict=True)]
    labels = Y.indices.astype(str).tolist()
    x_at, y_at = X.indptr.tolist(), Y.indptr.tolist()
    lines = [
        " ".join([",".join(labels[y_at[row] : y_at[row + 1]]), *pairs[x_at[row] : x_at[row + 1]]])
        for row in range(X.shape[0])
    ]
    return ("\n".join(lines) + "\n").encode() if lines else b""


def _parse_header(path: Path, line: bytes) -> XmcHeader:
    parts = line.split()
    if len(parts) != 3 or not all(re.fullmatch(rb"[0-9]{1,18}", part) for part in parts):
        got = line.strip().decode("utf-8", "backslashreplace")
        raise DataError(f"{path} line 1 must be the header 'rows features labels'; got {_quoted(got)}.")
    header = XmcHeader(*(int(part) for part in parts))
    for kind in ("features", "labels"):
        if getattr(header, kind) > INT32_MAX:
            raise DataError(f"{path} line 1: at most {INT32_MAX} {kind} are allowed; got {getattr(header, kind)}.")
    return header


def _pointers(counts: np.ndarray) -> np.ndarray:
    """Return row pointers, int32 where they fit: scipy copies int32 ids to int64 when the pointers are int64."""
    fits = int(counts.sum()) <= INT32_MAX
    out = np.zeros(counts.size + 1, dtype=np.int32 if fits else np.int64)
    np.cumsum(counts, out=out[1:])
    return out


def _allowed(count: int) -> str:
    return f"allowed are 0 to {count - 1}" if count else "the header allows none"


def _quoted(text: str) -> str:
    """Return the beginning of a text in quotes, as an error shows it."""
    text = text if len(text) <= 40 else text[:40] + "…"
    return f"'{text}'" if text.isprintable() else repr(text)
