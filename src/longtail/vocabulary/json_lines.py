"""Vocabularies as JSONL: one concept per line.

    {"id": "http://ex.org/2", "label": {"en": "cats", "de": "Katzen"}, "alt_label": {"en": ["felines"]},
     "notation": "59.1", "broader": ["http://ex.org/1"], "deprecated": false, "replaced_by": null}

Names without a language are plain strings: `"label": "cats"`, `"alt_label": ["felines"]`.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from longtail.data import Limits, iter_objects
from longtail.errors import DataError
from longtail.vocabulary.concept import Concept

ID_KEYS = ("id", "uri")
NAME_KEYS = ("label", "name", "prefLabel", "pref_label", "text", "title")
NAMES_OF_CONCEPTS = tuple(key for key in NAME_KEYS if key not in ("text", "title"))  # which rows of data lack
ALTERNATIVE_KEYS = ("alt_label", "altLabel", "alt_labels", "altLabels")
BROADER_KEYS = ("broader", "parents")


def jsonl_concepts(path: Path, limits: Limits) -> Iterator[Concept]:
    """Yield the concepts of a JSONL file."""
    lines: dict[str, int] = {}
    for numbers, records in iter_objects(path, limits=limits):
        for number, record in zip(numbers, records, strict=True):
            where = f"{path} line {number}"
            concept = _concept(where, record)
            if concept.id in lines:
                raise DataError(f"{where}: the concept {concept.id!r} stands in line {lines[concept.id]} already.")
            lines[concept.id] = number
            yield concept


def concept_line(concept: Concept) -> bytes:
    """Return a concept as one line."""
    record: dict[str, Any] = {"id": concept.id}
    if concept.names:
        plain = set(concept.names) == {""}
        record["label"] = concept.names[""] if plain else dict(concept.names)
    if concept.alternatives:
        plain = set(concept.alternatives) == {""}
        others = {language: list(names) for language, names in concept.alternatives.items()}
        record["alt_label"] = others[""] if plain else others
    if concept.notation:
        record["notation"] = concept.notation
    if concept.broader:
        record["broader"] = list(concept.broader)
    if concept.deprecated:
        record["deprecated"] = True
    if concept.replaced_by is not None:
        record["replaced_by"] = concept.replaced_by
    try:
        return (json.dumps(record, ensure_ascii=False) + "\n").encode()
    except UnicodeEncodeError:  # half of a surrogate pair
        return (json.dumps(record) + "\n").encode()


def _concept(where: str, record: dict[str, Any]) -> Concept:
    if "text" in record and "labels" in record and _first(record, NAMES_OF_CONCEPTS) is None:
        raise DataError(f"{where} is a row of data with 'text' and 'labels', no concept of a vocabulary.")
    id = _first(record, ID_KEYS)
    if isinstance(id, bool) or not isinstance(id, str | int) or id == "":
        keys = ", ".join(record) or "nothing"
        raise DataError(f"{where} has no id of a concept under 'id' or 'uri'; it has: {keys[:500]}.")
    deprecated, replaced = record.get("deprecated"), record.get("replaced_by")
    notation = record.get("notation")
    if not isinstance(deprecated, bool | None):
        raise DataError(f"{where}: 'deprecated' must be true or false; got {deprecated!r}.")
    if not isinstance(notation, str | int | None) or isinstance(notation, bool):
        raise DataError(f"{where}: 'notation' must be a string; got {notation!r}.")
    if not isinstance(replaced, str | None):
        raise DataError(f"{where}: 'replaced_by' must be the id of a concept; got {replaced!r}.")
    return Concept(
        str(id),
        {language: names[0] for language, names in _names(where, "label", _first(record, NAME_KEYS)).items() if names},
        _names(where, "alt_label", _first(record, ALTERNATIVE_KEYS)),
        "" if notation is None else str(notation),
        _strings(where, "broader", _first(record, BROADER_KEYS)),
        bool(deprecated),
        replaced or None,
    )


def _first(record: dict[str, Any], keys: tuple[str, ...]) -> Any:
    """Return the value of the first of some keys that is there."""
    return next((record[key] for key in keys if record.get(key) is not None), None)


def _names(where: str, key: str, value: Any) -> dict[str, tuple[str, ...]]:
    """Return names by language."""
    if isinstance(value, dict):
        return {language: _strings(where, key, names) for language, names in value.items()}
    names = _strings(where, key, value)
    return {"": names} if names else {}


def _strings(where: str, key: str, value: Any) -> tuple[str, ...]:
    """Return a string or a list of strings as a tuple, without empty ones."""
    listed = [] if value is None else value if isinstance(value, list) else [value]
    for item in listed:
        if not isinstance(item, str):
            raise DataError(f"{where}: '{key}' must hold strings; got {item!r}.")
    return tuple(item.strip() for item in listed if item.strip())
