"""Rows into a review file, and reviewed rows out of it, as JSONL or as a table for a spreadsheet."""

from __future__ import annotations

import io
import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from longtail.data import Dataset, Stream, iter_objects, replacing, write_spreadsheet
from longtail.errors import DataError, ParameterError
from longtail.review.store import NewItem, ReviewStore
from longtail.review.verdicts import ReviewedRow, reviewed_rows
from longtail.validate import check_choice

PARTS = {"training": False, "control": True, "all": None}  # which rows are written
COLUMNS = ("id", "labels", "given", "reviewers", "at", "control", "text")


def items_of_dataset(data: Dataset) -> Iterator[NewItem]:
    """Yield the rows of a Dataset as rows to be reviewed."""
    if data.texts is None:
        raise DataError("rows to be reviewed need texts, and {input} has only features.", input="the data")
    for row, text in enumerate(data.texts):
        yield NewItem(text, data.labels_of(row), None if data.ids is None else data.ids[row])


def items_of_jsonl(raw: bytes, name: str = "the body") -> list[NewItem]:
    """Return the rows of JSONL, `{"id": "7", "text": "…", "labels": ["a"]}` a line; id and labels may be missing.

    >>> items_of_jsonl(b'{"text": "a red apple", "labels": ["fruit"]}')
    [NewItem(text='a red apple', labels=['fruit'], id=None)]
    """
    out = []
    for numbers, objects in iter_objects(Stream(name, io.BytesIO(raw))):  # type: ignore[arg-type]
        for line, record in zip(numbers, objects, strict=True):
            out.append(_item(record, f"{name} line {line}"))
    return out


def _item(record: dict[str, Any], where: str) -> NewItem:
    """Return one row from a JSON object."""
    if not isinstance(record.get("text"), str):
        raise DataError(f"{where} must have a 'text' that is a string.")
    id, labels = record.get("id"), record.get("labels") or []
    if id is not None and (isinstance(id, bool) or not isinstance(id, str | int)):
        raise DataError(f"{where}: 'id' must be a string or a whole number.")
    if isinstance(labels, str):
        labels = [labels]
    if not isinstance(labels, list) or not all(isinstance(label, str) for label in labels):
        raise DataError(f"{where}: 'labels' must be a list of strings.")
    return NewItem(record["text"], labels, None if id is None else str(id))


def add_rows(store: ReviewStore, items: Iterable[NewItem], name: str) -> tuple[int, int]:
    """Add rows to a review file; a row that it cannot hold is named by its position in `name`."""
    at = 0

    def counted() -> Iterator[NewItem]:
        nonlocal at
        for item in items:
            at += 1
            yield item

    try:
        return store.add_items(counted())
    except ParameterError as error:
        raise DataError(f"row {at} of {name}: {error}") from error


def export_records(store: ReviewStore, part: str = "training") -> Iterator[dict[str, Any]]:
    """Yield finished rows with their final labels, and who decided what, as records of a training file.

    `part` is "training" (rows to learn from), "control" (the sample to judge by) or "all".
    """
    check_choice("part", part, tuple(PARTS))
    for row in reviewed_rows(store, control=PARTS[part]):
        yield {"id": row.item.id, "text": row.item.text, "labels": list(row.final()), "review": _provenance(row)}


def _provenance(row: ReviewedRow) -> dict[str, Any]:
    """Return who decided what about a row, and which model's suggestions they were shown."""
    final, given = set(row.final()), set(row.item.labels)
    suggested = {tag.label for tag in row.item.suggestions if tag.assigned}
    return {
        "reviewers": [name for name, _ in row.finishers],
        "at": max(opinion.at for _, opinion in row.finishers),
        "model": row.item.digest,
        "control": row.item.control,
        "given": sorted(given),
        "suggested": sorted(suggested),
        "added": sorted(final - given - suggested),
        "removed": sorted((given | suggested) - final),
    }


def export_jsonl(store: ReviewStore, path: str | Path, part: str = "training") -> int:
    """Write finished rows as JSONL, all or nothing, which `longtail train` reads; return how many."""
    rows = 0
    with replacing(Path(path)) as file:
        for record in export_records(store, part):
            file.write(json_line(record))
            rows += 1
    return rows


def json_line(record: dict[str, Any]) -> bytes:
    """Return a record as one line of JSON."""
    return (json.dumps(record, ensure_ascii=False) + "\n").encode()


def export_spreadsheet(store: ReviewStore, path: str | Path, part: str = "training") -> int:
    """Write finished rows as a table for people, in which no cell is taken for a formula; return how many."""
    records = list(export_records(store, part))
    write_spreadsheet(path, COLUMNS, (_cells(record) for record in records))
    return len(records)


def _cells(record: dict[str, Any]) -> tuple[object, ...]:
    review = record["review"]
    joined = ("; ".join(names) for names in (record["labels"], review["given"], review["reviewers"]))
    return (record["id"], *joined, review["at"], "yes" if review["control"] else "no", record["text"])
