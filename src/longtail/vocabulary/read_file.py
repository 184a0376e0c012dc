"""Which format a vocabulary file has, and its concepts."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from longtail.data import Limits, open_bytes, plain_name
from longtail.errors import DataError, Keyword
from longtail.validate import check_choice
from longtail.vocabulary.concept import Concept
from longtail.vocabulary.json_lines import jsonl_concepts
from longtail.vocabulary.ntriples import ntriples
from longtail.vocabulary.rdflib_parser import rdflib_triples
from longtail.vocabulary.tables import DELIMITERS, csv_concepts, is_table_header, tsv_concepts
from longtail.vocabulary.triples import PREDICATES, concepts_of

FORMATS = {
    "turtle": "SKOS as Turtle; needs rdflib",
    "ntriples": "SKOS as N-Triples",
    "rdfxml": "SKOS as RDF/XML; needs rdflib",
    "tsv": "<uri>, name and perhaps notation, separated by tabs; or with a header",
    "csv": "a header such as uri,notation,label_fi,label_en",
    "jsonl": "one JSON object per line: id, label, alt_label, notation, broader",
}
SUFFIXES = {
    ".ttl": "turtle",
    ".turtle": "turtle",
    ".nt": "ntriples",
    ".rdf": "rdfxml",
    ".xml": "rdfxml",
    ".owl": "rdfxml",
    ".skos": "rdfxml",
    ".tsv": "tsv",
    ".csv": "csv",
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".json": "jsonl",
}
FIRST_BYTES = 4096
FIRST_LINES = (
    ("jsonl", re.compile(rb"\s*\{")),
    ("rdfxml", re.compile(rb"\s*<(?:\?xml|!DOCTYPE|!--|rdf:RDF)", re.IGNORECASE)),
    ("turtle", re.compile(rb"\s*(?:@prefix|@base|prefix\s|base\s)", re.IGNORECASE)),
    ("ntriples", re.compile(rb"\s*(?:<[^<>\s]*>|_:\S+)[ \t]+<[^<>\s]*>[ \t]+[<_\"]")),
    ("tsv", re.compile(rb"\s*<[^<>\s]+>\t")),
)


def read_concepts(path: Path, format: str | None, limits: Limits) -> Iterator[Concept]:
    """Yield the concepts of a file in a format, or in the one that its name or its first line tells."""
    chosen = guess_format(path, limits) if format is None else check_choice("format", format, tuple(FORMATS))
    if chosen == "jsonl":
        return jsonl_concepts(path, limits)
    if chosen == "tsv":
        return tsv_concepts(path, limits)
    if chosen == "csv":
        return csv_concepts(path, limits)
    if chosen == "ntriples":
        return concepts_of(ntriples(path, limits, PREDICATES))
    return concepts_of(rdflib_triples(path, "turtle" if chosen == "turtle" else "xml", limits, PREDICATES))


def guess_format(path: Path, limits: Limits) -> str:
    """Return the format of a vocabulary file."""
    suffix = Path(plain_name(path)).suffix.lower()
    if suffix in SUFFIXES:
        return SUFFIXES[suffix]
    found = _format_of_content(path, limits)
    if found is None:
        raise DataError(
            "{path} is no vocabulary that is known; name its format with {advice}, one of {formats}.",
            path=path,
            advice=Keyword("format"),
            formats=", ".join(FORMATS),
        )
    return found


def is_vocabulary_file(path: Path, limits: Limits | None = None) -> bool:
    """Say whether a file that should hold labels is a vocabulary: SKOS, or a table of ids and names."""
    suffix = SUFFIXES.get(Path(plain_name(path)).suffix.lower())
    if suffix in ("csv", "tsv"):
        return any(delimiter in _first_line(path, limits or Limits()) for delimiter in DELIMITERS)
    if suffix is not None:
        return suffix != "jsonl"
    return _format_of_content(path, limits or Limits()) not in (None, "jsonl")


def _format_of_content(path: Path, limits: Limits) -> str | None:
    """Return the format that the beginning of a file tells; None if it tells none."""
    begin = _beginning(path, limits)
    for name, pattern in FIRST_LINES:
        if pattern.match(begin):
            return name
    first = _first_line(path, limits)
    for delimiter in DELIMITERS:
        if is_table_header([cell.strip().strip('"') for cell in first.split(delimiter)]):
            return "tsv" if delimiter == "\t" else "csv"
    return None


def _beginning(path: Path, limits: Limits) -> bytes:
    with open_bytes(path, limits) as file:
        return file.read(FIRST_BYTES).removeprefix(b"\xef\xbb\xbf")


def _first_line(path: Path, limits: Limits) -> str:
    return _beginning(path, limits).lstrip().split(b"\n")[0].decode("utf-8", "replace")
