"""libsvm (svmlight) text with several labels per row: XMC text without the header.

Labels are whole numbers from 0. Feature ids may start at 0 or at 1: with `zero_based="auto"` they start at 0 if the id
0 occurs. Empty lines and comments (from `#` to the end of the line) are skipped; the widths are those of the largest
ids unless `n_features` and `n_labels` are given.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import scipy.sparse as sp

from longtail.data.dataset import Dataset
from longtail.data.formats.open import line_blocks, replacing
from longtail.data.formats.xmc import INT32_MAX, WRITE_ROWS, RowStack, explain, rows_to_text
from longtail.errors import DataError, ParameterError
from longtail.kernels.xmctext import Rows, parse_rows

COMMENT = re.compile(rb"#[^\n]*")


def read_libsvm(
    path: str | Path,
    zero_based: bool | str = "auto",
    n_features: int | None = None,
    n_labels: int | None = None,
    name: str = "",
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
    if zero_based not in (True, False, "auto"):
        raise ParameterError(f"zero_based must be True, False or 'auto'; got {zero_based!r}.")
    stack, lowest, highest, tallest = RowStack(), INT32_MAX, -1, -1
    for rows in _blocks(path, n_labels):
        stack.add(_without_blank(rows))
        lowest = min(lowest, int(rows.x_indices.min(initial=INT32_MAX)))
        highest = max(highest, int(rows.x_indices.max(initial=-1)))
        tallest = max(tallest, int(rows.y_indices.max(initial=-1)))
    if zero_based is False and lowest == 0:
        raise DataError(f"{path} has the feature id 0; with zero_based=False ids start at 1.")
    first = 1 if highest >= 0 and (zero_based is False or (zero_based == "auto" and lowest > 0)) else 0
    width = highest + 1 - first
    if n_features is not None and width > n_features:
        raise DataError(f"{path} has {width} features; n_features={n_features} allows fewer.")
    X, Y = stack.matrices(
        width if n_features is None else n_features, tallest + 1 if n_labels is None else n_labels, first
    )
    return Dataset(Y=Y, X=X, name=name)


def write_libsvm(dataset: Dataset, path: str | Path, first_id: int = 0) -> None:
    """Write a libsvm file; a row with neither labels nor features is kept as a feature with the value 0."""
    if dataset.X is None:
        raise DataError("the data has no features, which libsvm files need; write it as JSONL or CSV.")
    X, Y = sp.csr_array(dataset.X), dataset.Y
    with replacing(Path(path)) as file:
        for low in range(0, X.shape[0], WRITE_ROWS):
            text = rows_to_text(X[low : low + WRITE_ROWS], Y[low : low + WRITE_ROWS], first_id)
            file.write(re.sub(rb"(?m)^$(?=\n)", f" {first_id}:0".encode(), text))


def _blocks(path: Path, n_labels: int | None) -> Iterator[Rows]:
    most = INT32_MAX if n_labels is None else n_labels
    for line, block in line_blocks(path):
        text = COMMENT.sub(b"", block) if b"#" in block else block
        rows, problem = parse_rows(text, INT32_MAX, most)
        if problem:
            raise DataError(explain(path, line, text, problem, INT32_MAX, most))
        yield rows


def _without_blank(rows: Rows) -> Rows:
    filled = np.flatnonzero(np.diff(rows.x_indptr) + np.diff(rows.y_indptr))
    if filled.size == rows.x_indptr.size - 1:
        return rows
    ends = np.concatenate([[0], filled + 1])
    return rows._replace(x_indptr=rows.x_indptr[ends], y_indptr=rows.y_indptr[ends])
