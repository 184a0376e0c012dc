"""N-Triples, line by line: the one form of RDF that needs no package and no memory.

<http://ex.org/2> <http://www.w3.org/2004/02/skos/core#prefLabel> "cats"@en .
"""

from __future__ import annotations

import re
from collections.abc import Container, Iterator
from pathlib import Path

from longtail.data import Limits, split_lines, text_blocks
from longtail.errors import DataError
from longtail.vocabulary.triples import Triple

IRI = r"<([^<>\"{}|^`\x00-\x20]*+)>"
LINE = re.compile(
    rf"\s*+(?:{IRI}|(_:\S++))\s*+{IRI}\s*+"  # subject and predicate
    rf"(?:{IRI}|(_:[^\s.]++(?:\.+[^\s.]++)*+)"  # object: an IRI, a blank node,
    r'|"([^"\\]*+(?:\\.[^"\\]*+)*+)"(?:@([A-Za-z][A-Za-z0-9-]*+)|\^\^<[^<>]*+>)?)'  # or a literal
    r"\s*+\.\s*+(?:#.*)?\Z",
    re.DOTALL,
)
ESCAPE = re.compile(r"\\(?:u([0-9A-Fa-f]{4})|U([0-9A-Fa-f]{8})|(.))", re.DOTALL)
ESCAPED = {"t": "\t", "b": "\b", "n": "\n", "r": "\r", "f": "\f", '"': '"', "'": "'", "\\": "\\"}


def ntriples(path: Path, limits: Limits, predicates: Container[str]) -> Iterator[Triple]:
    """Yield the triples of a file that have one of some predicates; every line must be sound."""
    for first, text in text_blocks(path, limits=limits):
        for number, line in enumerate(split_lines(text), first):
            match = LINE.match(line)
            if match is None:
                if not line.strip() or line.lstrip().startswith("#"):
                    continue
                raise DataError(f"{path} line {number} is no N-Triples statement; it begins with {line[:60]!r}.")
            iri, blank, predicate, other, other_blank, literal, language = match.groups()
            predicate = _unescaped(path, number, predicate)
            if predicate in predicates:
                is_literal = literal is not None
                value = literal if is_literal else other if other is not None else other_blank
                yield Triple(
                    _unescaped(path, number, iri if iri is not None else blank),
                    predicate,
                    _unescaped(path, number, value),
                    is_literal,
                    (language or "").lower(),
                )


def _unescaped(path: Path, number: int, value: str) -> str:
    """Return a value with its escapes replaced."""
    if "\\" not in value:
        return value

    def character(match: re.Match[str]) -> str:
        code = match[1] or match[2]
        if code is None:
            if match[3] not in ESCAPED:
                raise DataError(f"{path} line {number} has the unknown escape {match[0]!r}.")
            return ESCAPED[match[3]]
        point = int(code, 16)
        if point > 0x10FFFF or 0xD800 <= point <= 0xDFFF:
            raise DataError(f"{path} line {number} has the escape {match[0]!r}, which is no character.")
        return chr(point)

    return ESCAPE.sub(character, value)
