"""Vocabularies to files: JSONL and Turtle hold everything, TSV and CSV what these formats know."""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from longtail.data import plain_name, replacing
from longtail.errors import DataError, Keyword
from longtail.validate import check_choice
from longtail.vocabulary.concept import Concept
from longtail.vocabulary.json_lines import concept_line
from longtail.vocabulary.triples import DEPRECATED, REPLACED_BY, SKOS

if TYPE_CHECKING:
    from longtail.vocabulary.vocabulary import Vocabulary

WRITTEN = {".jsonl": "jsonl", ".ndjson": "jsonl", ".json": "jsonl", ".tsv": "tsv", ".csv": "csv", ".ttl": "turtle"}
NO_IRI = re.compile(r"[<>\"{}|^`\\\x00-\x20]")
LANGUAGE = re.compile(r"[A-Za-z]+(?:-[A-Za-z0-9]+)*\Z")


def write_vocabulary(vocabulary: Vocabulary, path: Path, format: str | None) -> Path:
    """Write a vocabulary, all or nothing."""
    formats = tuple(dict.fromkeys(WRITTEN.values()))
    chosen = WRITTEN.get(Path(plain_name(path)).suffix.lower()) if format is None else format
    if chosen is None:
        raise DataError(
            "{path} does not tell a format; name one with {advice}: {formats}.",
            path=path,
            advice=Keyword("format"),
            formats=", ".join(formats),
        )
    check_choice("format", chosen, formats)
    writers = {"jsonl": _jsonl, "tsv": _tsv, "csv": _csv, "turtle": _turtle}
    with replacing(path) as file:
        for chunk in writers[chosen](vocabulary):
            file.write(chunk)
    return path


def _jsonl(vocabulary: Vocabulary) -> Iterator[bytes]:
    return (concept_line(concept) for concept in vocabulary)


def _tsv(vocabulary: Vocabulary) -> Iterator[bytes]:
    """Yield lines of Annif's TSV: id, name in the chosen language, notation."""
    for number, id in enumerate(vocabulary.ids):
        cells = [f"<{id}>", vocabulary.name_at(number)]
        cells += [notation] if (notation := vocabulary.concept_at(number).notation) else []
        if any("\t" in cell or "\n" in cell or "\r" in cell for cell in cells):
            raise DataError(f"the concept {id!r} has a tab or a line break, which TSV cannot hold; write it as JSONL.")
        yield ("\t".join(cells) + "\n").encode("utf-8", "backslashreplace")


def _csv(vocabulary: Vocabulary) -> Iterator[bytes]:
    """Yield lines of CSV with a header; alternatives and broader concepts are separated by `|`."""
    languages = vocabulary.languages
    names = [f"label_{tag}" if tag else "label" for tag in languages]
    others = [f"alt_{name}" for name in names]
    yield _row(["uri", "notation", *names, *others, "broader", "deprecated", "replaced_by"])
    for c in vocabulary:
        yield _row(
            [
                c.id,
                c.notation,
                *(c.names.get(tag, "") for tag in languages),
                *("|".join(c.alternatives.get(tag, ())) for tag in languages),
                "|".join(c.broader),
                "true" if c.deprecated else "",
                c.replaced_by or "",
            ]
        )


def _row(cells: Iterable[str]) -> bytes:
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerow(list(cells))
    return text.getvalue().encode("utf-8", "backslashreplace")


def _turtle(vocabulary: Vocabulary) -> Iterator[bytes]:
    """Yield SKOS as Turtle, one block per concept."""
    yield f"@prefix skos: <{SKOS}> .\n".encode()
    for concept in vocabulary:
        lines = "".join(f" ;\n    {line}" for line in _statements(concept))
        yield f"\n{_iri(concept.id)} a skos:Concept{lines} .\n".encode("utf-8", "backslashreplace")


def _statements(concept: Concept) -> Iterator[str]:
    """Yield what is said of a concept."""
    for language, name in concept.names.items():
        yield f"skos:prefLabel {_literal(name, language)}"
    for language, names in concept.alternatives.items():
        for name in names:
            yield f"skos:altLabel {_literal(name, language)}"
    if concept.notation:
        yield f"skos:notation {_literal(concept.notation)}"
    for above in concept.broader:
        yield f"skos:broader {_iri(above)}"
    if concept.deprecated:
        yield f"<{DEPRECATED}> true"
    if concept.replaced_by is not None:
        yield f"<{REPLACED_BY}> {_iri(concept.replaced_by)}"


def _iri(id: str) -> str:
    if NO_IRI.search(id) or ":" not in id:
        raise DataError(f"the id {id!r} is no URI, which Turtle needs; write the vocabulary as JSONL.")
    return f"<{id}>"


def _literal(text: str, language: str = "") -> str:
    if language and not LANGUAGE.match(language):
        raise DataError(f"the language {language!r} is no language tag, which Turtle needs; write it as JSONL.")
    return json.dumps(text, ensure_ascii=False) + (f"@{language}" if language else "")
