"""Read the predictions of any program: JSONL, CSV, TSV and Parquet as `longtail predict` writes them, and TREC runs.

A row is named by its id in the data, or by its number from 0 where the data has no ids.

- JSONL: `{"id": "7", "labels": [{"label": "a", "score": 0.5}, …]}`; names alone are ranked as they stand.
- CSV, TSV, Parquet: the columns `id`, `label` and `score`, one row per label; without `score` ranked as they stand.
  A score may have a decimal comma where no comma stands between the cells. A row without label and score has no labels.
- TREC: `7 Q0 a 1 0.5 run`: row, a word, label, rank, score, name of the run.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from longtail.data.formats.csv_table import delimited_rows
from longtail.data.formats.files import plain_name, split_lines, text_blocks
from longtail.data.formats.jsonl import iter_objects
from longtail.data.formats.parquet import once_each, parquet_values
from longtail.data.formats.records import listed_names, short_repr
from longtail.data.limits import DEFAULT_LIMITS, Limits
from longtail.data.topk import TopK
from longtail.errors import DataError, ParameterError

COLUMNS = ("id", "label", "score")  # the last may be missing
DECIMAL_COMMA = re.compile(r"\s*[+-]?[0-9]*,[0-9]+(?:[eE][+-]?[0-9]+)?\s*", re.ASCII)  # 0,5
PREDICTION_FORMATS = {
    "jsonl": (".jsonl", ".ndjson"),
    "csv": (".csv",),
    "tsv": (".tsv",),
    "parquet": (".parquet",),
    "trec": (".trec", ".run", ".txt"),
}


def read_predictions(
    path: str | Path, ids: Sequence[str], k: int, format: str | None = None, limits: Limits = DEFAULT_LIMITS
) -> tuple[TopK, tuple[str, ...]]:
    """Return the k best labels that a file predicts for rows with the given ids, and the names of the labels.

    >>> import tempfile
    >>> file = Path(tempfile.mkdtemp()) / "run.trec"
    >>> _ = file.write_text("r1 Q0 cats 1 0.5 x\\nr1 Q0 dogs 2 0.25 x\\n")
    >>> top, names = read_predictions(file, ["r1", "r2"], k=2)
    >>> top.ids.tolist(), names
    ([[0, 1], [-1, -1]], ('cats', 'dogs'))
    """
    path = Path(path)
    chosen = _format_of(path, format)
    rows = {name: number for number, name in enumerate(ids)}
    if len(rows) != len(ids):
        raise DataError("the ids of the data must differ, so that predictions can be told apart by them.")
    labels: dict[str, int] = {}
    found: list[list[tuple[float, int]]] = [[] for _ in ids]
    for where, row, label, score in _records(path, chosen, limits):
        if row not in rows:
            raise DataError(f"{where}: the data has no row {short_repr(row)}.")
        if not math.isfinite(score):
            raise DataError(f"{where}: a score must be finite; got {score}.")
        found[rows[row]].append((score, labels.setdefault(label, len(labels))))
    out, scores = np.full((len(ids), k), -1, dtype=np.int32), np.full((len(ids), k), -np.inf, dtype=np.float32)
    for number, tags in enumerate(found):
        best = sorted(tags, key=lambda tag: -tag[0])[:k]
        if len({label for _, label in tags}) != len(tags):
            raise DataError(f"{path} names a label of the row {short_repr(ids[number])} twice.")
        out[number, : len(best)] = [label for _, label in best]
        scores[number, : len(best)] = [score for score, _ in best]
    return TopK(out, scores), tuple(labels)


def _format_of(path: Path, format: str | None) -> str:
    suffix = Path(plain_name(path)).suffix.lower()
    for name, suffixes in PREDICTION_FORMATS.items():
        if name == format or (format is None and suffix in suffixes):
            return name
    allowed = f"one of {', '.join(PREDICTION_FORMATS)}"
    raise ParameterError(name="predictions_format", allowed=allowed, got=format or path.name)


def _records(path: Path, format: str, limits: Limits) -> Iterator[tuple[str, str, str, float]]:
    """Yield where each prediction stands, its row, its label and its score."""
    if format == "jsonl":
        for numbers, objects in iter_objects(path, limits=limits):
            for number, record in zip(numbers, objects, strict=True):
                yield from _of_object(f"{path} line {number}", record)
    elif format == "trec":
        for first, text in text_blocks(path, limits=limits, encoding=None, named=False):
            for number, line in enumerate(split_lines(text), first):
                cells = line.split()
                if not cells:
                    continue
                if len(cells) != 6:
                    raise DataError(f"{path} line {number} has {len(cells)} cells; a TREC run has 6.")
                yield _one(f"{path} line {number}", cells[0], cells[2], cells[4])
    elif format == "parquet":
        yield from _of_parquet(path, limits)
    else:
        yield from _of_table(path, "," if format == "csv" else "\t", limits)


def _of_object(where: str, record: dict[str, Any]) -> Iterator[tuple[str, str, str, float]]:
    tags = record.get("labels")
    if record.get("id") is None or not isinstance(tags, list):
        raise DataError(f"{where} must have 'id' and a list 'labels'.")
    for rank, tag in enumerate(tags):
        named = tag if isinstance(tag, dict) else {"label": tag}
        if not isinstance(named.get("label"), str | int):
            raise DataError(f"{where}: a label must be a name; got {short_repr(tag)}.")
        yield _one(where, record["id"], named["label"], named.get("score", -rank))


def _of_table(path: Path, delimiter: str, limits: Limits) -> Iterator[tuple[str, str, str, float]]:
    delimiter, lines = delimited_rows(path, delimiter, limits, COLUMNS)
    header = [cell.strip() for cell in next(lines, (0, []))[1]]
    _check_columns(path, header)
    row, label = header.index("id"), header.index("label")
    score = header.index("score") if "score" in header else None
    for number, cells in lines:
        if len(cells) != len(header):
            raise DataError(f"{path} line {number} has {len(cells)} cells; the header has {len(header)}.")
        value: str | int = -number if score is None else cells[score]
        if not cells[label] and not (isinstance(value, str) and value):
            continue  # a row that got no label, as batches of `longtail serve` have it
        if delimiter != "," and isinstance(value, str) and DECIMAL_COMMA.fullmatch(value):
            value = value.replace(",", ".")
        yield _one(f"{path} line {number}", cells[row], cells[label], value)


def _of_parquet(path: Path, limits: Limits) -> Iterator[tuple[str, str, str, float]]:
    def choose(names: list[str]) -> list[str]:
        _check_columns(path, names)
        return once_each(path, names, [name for name in COLUMNS if name in names])

    for numbers, values in parquet_values(path, choose, limits):
        scores = values.get("score") or [-number for number in numbers]
        for number, row, label, score in zip(numbers, values["id"], values["label"], scores, strict=True):
            if row is None or not isinstance(label, str | int):
                raise DataError(f"{path} row {number} must have an id and the name of a label.")
            yield _one(f"{path} row {number}", row, label, score)


def _check_columns(path: Path, names: list[str]) -> None:
    for name in COLUMNS[:2]:
        if name not in names:
            raise DataError(f"{path} has no column '{name}'; it has: {listed_names(names)}.")


def _one(where: str, row: object, label: object, score: object) -> tuple[str, str, str, float]:
    try:
        return where, str(row), str(label), float(score)  # type: ignore[arg-type]
    except (TypeError, ValueError, OverflowError):
        raise DataError(f"{where}: a score must be a number; got {short_repr(score)}.") from None
