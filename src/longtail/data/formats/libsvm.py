"""Read and write libsvm (svmlight) text with several labels per row: XMC text without the header.

Labels are whole numbers from 0. Feature ids may start at 0 or at 1: with `zero_based="auto"` they start at 0 if the id
0 occurs. Where `n_features` is given (by a model) and the ids of a file fit both ways, a guess could shift all of them
by one, so it is refused. Empty lines and comments (from `#` to the end of the line) are skipped; the widths are those
of the largest ids unless `n_features` and `n_labels` are given.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import scipy.sparse as sp

from longtail.data.dataset import Dataset
from longtail.data.formats.files import line_blocks, replacing
from longtail.data.formats.xmc import (
    INT32_MAX,
    WRITE_ROWS,
    RowStack,
    check_row_labels,
    describe_problem,
    rows_to_text,
)
from longtail.data.formats.xmc_parser import ParsedRows, parse_rows
from longtail.data.limits import DEFAULT_LIMITS, Limits
from longtail.errors import DataError, Keyword, ParameterError

COMMENT = re.compile(rb"#[^\n]*")


def read_libsvm(
    path: str | Path,
    zero_based: bool | str = "auto",
    n_features: int | None = None,
    n_labels: int | None = None,
    name: str = "",
    limits: Limits = DEFAULT_LIMITS,
) -> Dataset:
    """Read a libsvm file, compressed or not.

    >>> import tempfile
    >>> file = Path(tempfile.mkdtemp()) / "tiny.svm"
    >>> _ = file.write_text("0,2 1:1.5 3:1 # a comment\\n1 2:2\\n")
    >>> data = read_libsvm(file)
    >>> data.X.toarray().tolist(), data.n_labels
    ([[1.5, 0.0, 1.0], [0.0, 2.0, 0.0]], 3)
    """
    path = Path(path)
    _check_zero_based(zero_based)
    stack, lowest, highest, tallest = RowStack(), INT32_MAX, -1, -1
    for rows in _parsed_blocks(path, n_labels, limits):
        stack.add(_without_blank(rows))
        limits.check("rows", stack.n_rows, str(path))
        lowest = min(lowest, int(rows.x_indices.min(initial=INT32_MAX)))
        highest = max(highest, int(rows.x_indices.max(initial=-1)))
        tallest = max(tallest, int(rows.y_indices.max(initial=-1)))
    first = _first_id(path, zero_based, lowest, highest, n_features)
    width = highest + 1 - first
    X, Y = stack.matrices(
        width if n_features is None else n_features, tallest + 1 if n_labels is None else n_labels, first
    )
    return Dataset(Y=Y, X=X, name=name)


def libsvm_matrices(
    path: Path, zero_based: bool | str, n_features: int | None = None, limits: Limits = DEFAULT_LIMITS
) -> Iterator[tuple[sp.csr_array, sp.csr_array]]:
    """Yield X and Y, about a megabyte of text at a time.

    To learn where ids start and how wide X is, the file is gone through before, unless both are given.
    """
    _check_zero_based(zero_based)
    first = int(not zero_based)
    if zero_based == "auto" or n_features is None:
        lowest, highest = _id_range(path, n_features is None, limits)
        first = _first_id(path, zero_based, lowest, highest, n_features)
        n_features = highest + 1 - first if n_features is None else n_features
    for rows in _parsed_blocks(path, None, limits):
        ids, stack = rows.x_indices, RowStack()
        _first_id(path, first == 0, int(ids.min(initial=INT32_MAX)), int(ids.max(initial=-1)), n_features)
        stack.add(_without_blank(rows))
        yield stack.matrices(n_features, int(rows.y_indices.max(initial=-1)) + 1, first)


def write_libsvm(dataset: Dataset, path: str | Path, first_id: int = 0) -> None:
    """Write a libsvm file; a row with neither labels nor features is kept as a feature with the value 0."""
    if dataset.X is None:
        raise DataError("the data has no features, which libsvm files need; write it as JSONL or CSV.")
    X, Y = sp.csr_array(dataset.X), dataset.Y
    with replacing(Path(path)) as file:
        for low in range(0, X.shape[0], WRITE_ROWS):
            text = rows_to_text(X[low : low + WRITE_ROWS], Y[low : low + WRITE_ROWS], first_id)
            file.write(re.sub(rb"(?m)^$(?=\n)", f" {first_id}:0".encode(), text))


def _check_zero_based(value: bool | str) -> None:
    if value not in (True, False, "auto"):
        raise ParameterError(name="zero_based", allowed="True, False or 'auto'", got=value)


def _first_id(path: Path, zero_based: bool | str, lowest: int, highest: int, n_features: int | None) -> int:
    """Return the id of the first feature from the lowest and highest that occur; ids that do not fit are refused."""
    if zero_based is False and lowest == 0:
        raise DataError(
            "{path} has the feature id 0; with {setting} ids start at 1.",
            path=path,
            setting=Keyword("zero_based", False),
        )
    first = 1 if highest >= 0 and (zero_based is False or (zero_based == "auto" and lowest > 0)) else 0
    if n_features is not None and highest + 1 - first > n_features:
        raise DataError(
            "{path} has {got} features; {name}={most} allows fewer.",
            path=path,
            got=highest + 1 - first,
            name="n_features",
            most=n_features,
        )
    if n_features is not None and zero_based == "auto" and 0 < lowest <= highest < n_features:
        raise DataError(
            "{path} does not tell whether its feature ids start at 0 or at 1: neither 0 nor {last} occurs; "
            "say which with {setting}.",
            path=path,
            last=n_features,
            setting=Keyword("zero_based"),
        )
    return first


def _id_range(path: Path, whole: bool, limits: Limits) -> tuple[int, int]:
    """Return the lowest and highest feature id of a file, or only so far that an id 0 is found."""
    if not path.is_file():
        raise DataError(
            "{path} can be read once only; say where its feature ids start with {setting}.",
            path=path,
            setting=Keyword("zero_based"),
        )
    lowest, highest = INT32_MAX, -1
    for rows in _parsed_blocks(path, None, limits):
        lowest = min(lowest, int(rows.x_indices.min(initial=INT32_MAX)))
        highest = max(highest, int(rows.x_indices.max(initial=-1)))
        if lowest == 0 and not whole:
            break
    return lowest, highest


def _parsed_blocks(path: Path, n_labels: int | None, limits: Limits) -> Iterator[ParsedRows]:
    most = INT32_MAX if n_labels is None else n_labels
    for line, block in line_blocks(path, limits=limits):
        text = COMMENT.sub(b"", block) if b"#" in block else block
        rows, problem = parse_rows(text, INT32_MAX, most)
        if problem:
            raise DataError(describe_problem(path, line, text, problem, INT32_MAX, most))
        check_row_labels(path, line, rows, limits)
        limits.check("features", int(rows.x_indices.max(initial=-1)) + 1, str(path))
        limits.check("labels", int(rows.y_indices.max(initial=-1)) + 1, str(path))
        yield rows


def _without_blank(rows: ParsedRows) -> ParsedRows:
    filled = np.flatnonzero(np.diff(rows.x_indptr) + np.diff(rows.y_indptr))
    if filled.size == rows.x_indptr.size - 1:
        return rows
    ends = np.concatenate([[0], filled + 1])
    return rows._replace(x_indptr=rows.x_indptr[ends], y_indptr=rows.y_indptr[ends])
