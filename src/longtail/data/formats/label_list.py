"""Read and write lists of labels: JSONL with one label per line, or a plain file with one name per line.

A JSONL record has a name (`id`, `uid` or `name`) and may have a text (`text` or `title`); other keys, such as
`parents`, are ignored. The label of line 1 gets number 0. In a plain file the empty lines at the end are ignored; a
table or a SKOS file is refused, since no name of a label looks like its lines.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from longtail.data.dataset import Dataset
from longtail.data.formats.files import plain_name, replacing, split_lines, text_blocks
from longtail.data.formats.jsonl import iter_objects
from longtail.data.limits import DEFAULT_LIMITS, Limits
from longtail.errors import DataError, Keyword

NAME_KEYS = ("id", "uid", "name")
TEXT_KEYS = ("text", "title")
SKOS_SUFFIXES = (".ttl", ".turtle", ".nt", ".rdf", ".xml", ".owl", ".skos")
SKOS_BEGIN = re.compile(r"\s*(?:@prefix\s|@base\s|<\?xml|<rdf:RDF|<[^<>\s]+>\s+<[^<>\s]+>\s)", re.IGNORECASE)


class LabelList(NamedTuple):
    """The names of labels in the order of their numbers, and their texts; "" where one is missing, None if all are."""

    names: tuple[str, ...]
    texts: tuple[str, ...] | None

    def texts_of(self, names: Sequence[str]) -> tuple[str, ...] | None:
        """Return the texts of some names, "" for those that are not listed; None if the file has no texts."""
        if self.texts is None or names is self.names:
            return self.texts
        text_of = dict(zip(self.names, self.texts, strict=True))
        return tuple(text_of.get(name, "") for name in names)


def read_labels(path: str | Path, limits: Limits = DEFAULT_LIMITS) -> LabelList:
    """Read a list of labels.

    >>> import tempfile
    >>> file = Path(tempfile.mkdtemp()) / "labels.jsonl"
    >>> _ = file.write_text('{"id": "p1", "text": "art"}\\n{"id": "p2", "text": "law"}\\n')
    >>> read_labels(file)
    LabelList(names=('p1', 'p2'), texts=('art', 'law'))
    """
    path = Path(path)
    json_lines = plain_name(path).lower().endswith((".jsonl", ".json", ".ndjson"))
    numbers, names, texts = _from_jsonl(path, limits) if json_lines else _from_lines(path, limits)
    seen: dict[str, int] = {}
    for number, name in zip(numbers, names, strict=True):
        if name in seen:
            raise DataError(f"{path} line {number}: the label {name!r} stands in line {seen[name]} already.")
        if not name:
            raise DataError(f"{path} line {number}: the name of the label is empty.")
        limits.check("label_characters", len(name), f"{path} line {number}")
        seen[name] = number
    return LabelList(tuple(names), tuple(t or "" for t in texts) if any(t is not None for t in texts) else None)


def write_labels(dataset: Dataset, path: str | Path) -> None:
    """Write the labels of a Dataset as JSONL records with `id` and, where there are any, `text`."""
    with replacing(Path(path)) as file:
        for number, name in enumerate(dataset.names()):
            record = {"id": name}
            if dataset.label_texts is not None:
                record["text"] = dataset.label_texts[number]
            file.write((json.dumps(record, ensure_ascii=False) + "\n").encode("utf-8", "backslashreplace"))


def _from_jsonl(path: Path, limits: Limits) -> tuple[list[int], list[str], list[str | None]]:
    numbers: list[int] = []
    names: list[str] = []
    texts: list[str | None] = []
    if next((text for _, text in text_blocks(path, limits=limits)), "").lstrip().startswith("["):
        raise DataError(
            f"{path} is a JSON list; a list of labels has one name per line, or one JSON object with 'id' per line."
        )
    for lines, records in iter_objects(path, limits=limits):
        for number, record in zip(lines, records, strict=True):
            numbers.append(number)
            names.append(_label_name(path, number, record))
            given = [record[key] for key in TEXT_KEYS if key in record]
            text = next((value for value in given if value is not None), "" if given else None)
            if not isinstance(text, str | None):
                raise DataError(f"{path} line {number}: the text of a label must be a string; got {text!r}.")
            texts.append(text)
    return numbers, names, texts


def _label_name(path: Path, number: int, record: dict[str, Any]) -> str:
    for key in NAME_KEYS:
        value = record.get(key)
        if isinstance(value, str | int) and not isinstance(value, bool):
            return str(value)
    keys = ", ".join(record) or "nothing"
    raise DataError(f"{path} line {number} has no name under 'id', 'uid' or 'name'; it has: {keys}.")


def _refuse_vocabulary(path: Path, line: str) -> None:
    """Refuse a file whose name and first line are those of a table or of SKOS, which no list of names begins with."""
    cells = [cell.strip(' "').lower() for cell in re.split("[,;]", line)]
    suffix = Path(plain_name(path)).suffix.lower()
    if len(cells) > 1 and (suffix == ".csv" or {"uri", "id"} & set(cells)):
        raise _not_one_label(path, 1, "it is a row of a table")
    if suffix in SKOS_SUFFIXES or SKOS_BEGIN.match(line):
        raise _not_one_label(path, 1, "it is SKOS")


def _not_one_label(path: Path, number: int, why: str) -> DataError:
    return DataError(
        "{path} line {line} is not the name of one label: {why}. A list of labels is JSONL, or has one name per line; "
        "a vocabulary is given with {advice}.",
        path=path,
        line=number,
        why=why,
        advice=Keyword("vocabulary"),
    )


def _from_lines(path: Path, limits: Limits) -> tuple[list[int], list[str], list[str | None]]:
    names: list[str] = []
    for first, text in text_blocks(path, limits=limits, encoding=None, named=False):
        lines = split_lines(text)
        if first == 1 and lines:
            _refuse_vocabulary(path, lines[0])
        tabs = [number for number, line in enumerate(lines, first) if "\t" in line.strip()] if "\t" in text else []
        if tabs:
            raise _not_one_label(path, tabs[0], "it has a tab")
        names += [line.strip() for line in lines]
    while names and not names[-1]:
        names.pop()
    return list(range(1, len(names) + 1)), names, [None] * len(names)
