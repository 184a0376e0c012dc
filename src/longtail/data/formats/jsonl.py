"""JSONL: one JSON object per line, `{"id": "7", "text": "…", "labels": ["a", "b"], "group": "g"}`.

`labels` and `group` may be a list of names, one name (a string is taken whole, not split) or a whole number; `labels`,
`id` and `group` may be missing. Empty lines are skipped.

Lines are parsed many at a time, as one JSON array: one call into the parser for a thousand lines instead of a thousand
calls. Between the lines stands a number that no file can know; where it does not come out between every two objects,
the lines are parsed singly, to name the bad one.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Iterator, Sequence
from operator import itemgetter
from pathlib import Path
from typing import Any

from longtail.data.dataset import Dataset
from longtail.data.formats.files import UTF_8, replacing, split_lines, text_blocks
from longtail.data.formats.records import (
    Batch,
    Columns,
    group_names_of,
    make_batch,
    missing_column,
    names_in_row,
    weights_in_row,
)
from longtail.data.limits import DEFAULT_LIMITS, Limits
from longtail.errors import DataError

BETWEEN = secrets.randbits(60)  # a line that is JSON only together with the next one does not give it back
JSON_BLOCK = 1 << 16  # parsed objects take several times the room of their text, and should stay in the cache


def iter_objects(
    path: Path, size: int = JSON_BLOCK, limits: Limits = DEFAULT_LIMITS, encoding: str = UTF_8, skip: int = 0
) -> Iterator[tuple[Sequence[int], list[dict[str, Any]]]]:
    """Yield the objects of a file with their line numbers, block by block; the first `skip` blocks are left out."""
    for first, text in text_blocks(path, size, limits=limits, encoding=encoding, skip=skip):
        lines = split_lines(text)
        numbers: Sequence[int] = range(first, first + len(lines))
        objects = _parse_together(lines)
        if objects is None:  # empty lines, or a bad one
            filled = [(number, line) for number, line in zip(numbers, lines, strict=True) if line.strip()]
            numbers, lines = [number for number, _ in filled], [line for _, line in filled]
            objects = _parse_together(lines)
        if objects is None:
            objects = [_parse_line(path, number, line) for number, line in zip(numbers, lines, strict=True)]
        if max(map(len, lines), default=0) > limits.json_depth:
            _check_depth(path, numbers, lines, objects, limits)
        yield numbers, objects


def jsonl_batches(
    path: Path, columns: Columns, limits: Limits = DEFAULT_LIMITS, encoding: str = UTF_8, skip: int = 0
) -> Iterator[Batch]:
    """Yield the rows of a file; a line without a text is refused by its number."""
    wanted = columns.texts()
    for numbers, objects in iter_objects(path, limits=limits, encoding=encoding, skip=skip):
        if columns.ignored is not None:
            columns.note_ignored(set().union(*objects) - set(columns.all()))
        values = {name: _values_of_key(objects, name) for name in columns.all()}
        if wanted and not all(values[wanted[0]]):  # look closer: an empty text is fine, no text is not
            for number, record in zip(numbers, objects, strict=True):
                if all(record.get(name) is None for name in wanted):
                    null = next((name for name in wanted if name in record), None)
                    if null is not None:
                        raise DataError(f"{path} line {number}: '{null}' must be a string; got null.")
                    raise missing_column(
                        f"{path} line {number}", "' or '".join(wanted), list(record), "text_column", kind="key"
                    )
        if columns.needs_id and objects and not any(columns.id in record for record in objects):
            columns.check_id(f"{path} line {numbers[0]}", list(objects[0]), "key")
        for name in {columns.labels, columns.group} & values.keys() - set(wanted):
            if not any(values[name]) and not any(name in record for record in objects):
                del values[name]
        yield make_batch(lambda line: f"{path} line {line}", numbers, values, columns, None)


def write_jsonl(dataset: Dataset, path: str | Path, columns: Columns) -> None:
    """Write one object per row; `group` is a string for one group and a list for none or several."""
    if dataset.texts is None:
        raise DataError("the data has no texts, which JSONL needs; write it as XMC text or npz.")
    label_names, group_names = dataset.names(), group_names_of(dataset)
    with replacing(Path(path)) as file:
        for row, text in enumerate(dataset.texts):
            record: dict[str, Any] = {} if dataset.ids is None else {columns.id: dataset.ids[row]}
            record[columns.texts()[0]] = text
            record[columns.labels] = names_in_row(dataset.Y, row, label_names)
            if columns.weights:
                record[columns.weights] = weights_in_row(dataset.Y, row)
            if dataset.groups is not None:
                groups = names_in_row(dataset.groups, row, group_names)
                record[columns.group] = groups[0] if len(groups) == 1 else groups
            file.write(_record_bytes(record))


def _values_of_key(objects: list[dict[str, Any]], name: str) -> list[Any]:
    try:
        return list(map(itemgetter(name), objects))  # twice as fast as a loop of get
    except KeyError:
        return [record.get(name) for record in objects]


def _record_bytes(record: dict[str, Any]) -> bytes:
    try:
        return (json.dumps(record, ensure_ascii=False) + "\n").encode()
    except UnicodeEncodeError:  # half of a surrogate pair: only an escape can hold it
        return (json.dumps(record) + "\n").encode()


def _parse_together(lines: list[str]) -> list[dict[str, Any]] | None:
    try:
        values = json.loads("[" + f",{BETWEEN},".join(lines) + "]")
    except (ValueError, RecursionError):
        return None
    objects, between = values[::2], values[1::2]
    one_each = (
        len(objects) == len(lines) and set(map(type, objects)) <= {dict} and between.count(BETWEEN) == len(between)
    )
    return objects if one_each else None


def _parse_line(path: Path, number: int, line: str) -> dict[str, Any]:
    try:
        record = json.loads(line)
    except (ValueError, RecursionError) as error:
        other = "nested too deeply" if isinstance(error, RecursionError) else "a number has too many digits"
        reason = getattr(error, "msg", other)
        raise DataError(f"{path} line {number} is not JSON: {reason}.") from error
    if not isinstance(record, dict):
        kind = {list: "a list", str: "a string", type(None): "null"}.get(type(record), f"{record!r}")
        raise DataError(f"{path} line {number} must be a JSON object; got {kind}.")
    return record


def _check_depth(
    path: Path, numbers: Sequence[int], lines: list[str], objects: list[dict[str, Any]], limits: Limits
) -> None:
    """Refuse an object that is nested too deeply."""
    for number, line, value in zip(numbers, lines, objects, strict=True):
        if line.count("{") + line.count("[") > limits.json_depth:  # else it cannot be
            limits.check("json_depth", _depth(value), f"{path} line {number}")


def _depth(value: Any) -> int:
    """Return how many objects and lists stand inside each other."""
    depth, layer = 0, [value]
    while layer:
        depth += 1
        inner = (part.values() if isinstance(part, dict) else part for part in layer)
        layer = [part for parts in inner for part in parts if isinstance(part, dict | list)]
    return depth
