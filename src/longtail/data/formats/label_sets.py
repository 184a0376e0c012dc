"""Read files that hold label sets and nothing else, for audits."""

from __future__ import annotations

from pathlib import Path

from longtail.data.dataset import Dataset
from longtail.data.formats.files import UTF_8, check_encoding, plain_name
from longtail.data.formats.io import as_text_is_written, check_separator, read_texts
from longtail.data.formats.jsonl import jsonl_batches
from longtail.data.formats.npz import read_npz_counts
from longtail.data.formats.records import Columns, collect
from longtail.data.formats.registry import REGISTRY, Options
from longtail.data.limits import DEFAULT_LIMITS, Limits
from longtail.errors import DataError


def read_label_sets(
    path: str | Path,
    labels_column: str = "labels",
    limits: Limits = DEFAULT_LIMITS,
    encoding: str | None = None,
    *,
    label_separator: str = ";",
    delimiter: str | None = None,
) -> Dataset | None:
    """Read the label sets of a JSONL, CSV or TSV file or of a matrix (npz), which need no texts; None for others.

    Parameters are those of `read`.

    >>> import tempfile
    >>> file = Path(tempfile.mkdtemp()) / "sets.jsonl"
    >>> _ = file.write_text('{"labels": ["a", "b"]}\\n{"labels": []}\\n')
    >>> read_label_sets(file).Y.toarray().tolist()
    [[1.0, 1.0], [0.0, 0.0]]
    """
    path = Path(path)
    if not path.is_file():
        return None
    kind, stem = plain_name(path).lower(), Path(plain_name(path)).stem
    if kind.endswith((".jsonl", ".ndjson")):
        columns = Columns(text=(), labels=labels_column, id="", group="")
        batches = jsonl_batches(path, columns, limits, check_encoding(encoding) or UTF_8)
        data = collect(lambda line: f"{path} line {line}", batches, name=stem, limits=limits)
        if data.n_rows == 0 or data.n_labels == 0:
            raise DataError(f"{path} has no rows." if data.n_rows == 0 else f"{path} has no labels: no row has any.")
        return data
    if kind.endswith((".csv", ".tsv")):
        columns = Columns(text=(), labels=labels_column, id="", group="", separator=check_separator(label_separator))
        delimiter, encoding = as_text_is_written(kind[-3:], delimiter, encoding)
        options = Options(columns, name=stem, limits=limits, delimiter=delimiter, encoding=encoding)
        data = read_texts(path, REGISTRY[kind[-3:]], options, labels_required=True)
        if data.n_rows == 0:
            raise DataError(f"{path} has no rows.")
        return data
    if kind.endswith(".npz") and not path.name.startswith("X"):
        Y, _, names = read_npz_counts(path, limits)
        return Dataset(Y=Y, texts=("",) * Y.shape[0], label_names=names, name=stem)
    return None
