"""Turtle and RDF/XML through rdflib: triples are taken as they are parsed, and nothing is ever fetched."""

from __future__ import annotations

import logging
import re
from collections.abc import Container, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any
from xml.parsers import expat

from longtail.data import Limits, open_bytes
from longtail.errors import DataError, Keyword, LongtailError, MissingExtraError
from longtail.vocabulary.triples import Triple

LONGEST_ENTITY = 1000  # characters that an XML entity may stand for; namespaces are shorter
BASE = "urn:x-relative:"  # what relative names are relative to
FIRST_BYTES = 4096
LETTERS = 60  # shown of the text where a parser stopped
XML = re.compile(rb"(?:\xef\xbb\xbf)?\s*<(?:\?xml|!DOCTYPE|!--|rdf:RDF)", re.IGNORECASE)
NAMES = {"turtle": "Turtle", "xml": "RDF/XML"}
LINE = re.compile(r"(?:at line |<unknown>:|^)(\d+)")


def rdflib_triples(path: Path, format: str, limits: Limits, predicates: Container[str]) -> list[Triple]:
    """Return the triples of a Turtle ("turtle") or RDF/XML ("xml") file that have one of some predicates."""
    try:
        import rdflib
        from rdflib.parser import InputSource
        from rdflib.store import Store
    except ImportError:
        raise MissingExtraError(f"{path}: reading {NAMES[format]}", "rdflib", "skos") from None
    found: list[Triple] = []

    class Sink(Store):
        """Takes triples and keeps the wanted ones; it holds no graph."""

        def add(self, triple: Any, context: Any = None, quoted: bool = False) -> None:
            subject, predicate, value = triple
            if str(predicate) in predicates:
                is_literal = isinstance(value, rdflib.Literal)
                language = (value.language or "").lower() if is_literal else ""
                found.append(Triple(str(subject), str(predicate), str(value), is_literal, language))

        def bind(self, prefix: str, namespace: Any, override: bool = True) -> None:
            """Take no notice of prefixes."""

        def namespace(self, prefix: str) -> None:
            return None

        def prefix(self, namespace: Any) -> None:
            return None

        def namespaces(self) -> Iterator[Any]:
            return iter(())

        def __len__(self, context: Any = None) -> int:
            return 0

    if format == "xml":
        with open_bytes(path, limits) as file:
            _refuse_entities(path, file)
    graph = rdflib.Graph(store=Sink(), bind_namespaces="none")
    with open_bytes(path, limits) as file, _quietly():
        source = InputSource(BASE)
        source.setByteStream(file)
        try:
            graph.parse(source, format=format, publicID=BASE)
        except LongtailError:
            raise
        except RecursionError:
            raise DataError(f"{path} is nested too deeply.") from None
        except Exception as error:  # rdflib and the parsers below it raise many kinds
            if format == "turtle":
                _refuse_other_files(path, limits)
            raise DataError(_sentence(path, format, error)) from error
    return found


def _refuse_other_files(path: Path, limits: Limits) -> None:
    """Refuse a file that should be Turtle and is XML, or not in UTF-8."""
    with open_bytes(path, limits) as file:
        if XML.match(file.read(FIRST_BYTES)):
            sentence = "{path} looks like RDF/XML, not Turtle; {advice}."
            raise DataError(sentence, path=path, advice=Keyword("format", "rdfxml", verb="use"))
    with open_bytes(path, limits) as file:
        for number, line in enumerate(file, 1):
            try:
                line.decode("utf-8")
            except UnicodeDecodeError as error:
                byte = f"the byte 0x{line[error.start]:02x}"
                raise DataError(f"{path} line {number} is not UTF-8, as Turtle must be: it has {byte}.") from None


def _refuse_entities(path: Path, file: IO[bytes]) -> None:
    """Refuse XML entities from elsewhere, of other entities or of many characters; short ones name namespaces."""
    parser = expat.ParserCreate()

    def declared(name: str, is_parameter: int, value: str | None, *others: object) -> None:
        if is_parameter or value is None or "&" in value or "%" in value or len(value) > LONGEST_ENTITY:
            line = parser.CurrentLineNumber
            why = "only short names without other entities are read"
            raise DataError(f"{path} line {line} declares the XML entity {name[:100]!r}; {why}.")

    class _Begun(Exception):
        """The first element has come: nothing can be declared after it."""

    def begun(*_: object) -> None:
        raise _Begun

    parser.EntityDeclHandler, parser.StartElementHandler = declared, begun
    try:
        while chunk := file.read(1 << 16):
            parser.Parse(chunk, False)
    except _Begun:
        return
    except expat.ExpatError as error:
        raise DataError(f"{path} line {error.lineno} is not XML: {expat.ErrorString(error.code)}.") from error
    except (ValueError, LookupError) as error:  # an encoding that is none
        raise DataError(f"{path} is not XML: {error}.") from error


@contextmanager
def _quietly() -> Iterator[None]:
    """Keep rdflib from writing about odd literals and URIs to the log."""
    logger = logging.getLogger("rdflib")
    before = logger.level
    logger.setLevel(logging.CRITICAL)
    try:
        yield
    finally:
        logger.setLevel(before)


def _sentence(path: Path, format: str, error: Exception) -> str:
    """Return in one sentence what a parser complained of, with the line where it tells one."""
    line = getattr(error, "lines", None)
    if line is None and hasattr(error, "getLineNumber"):
        line = error.getLineNumber()
    if line is None:
        match = LINE.search(str(error))
        line = int(match[1]) - 1 if match else None
    where = f" line {line + (format == 'turtle')}" if isinstance(line, int) else ""
    return f"{path}{where} is not {NAMES[format]}: {_complaint(error)}."


def _complaint(error: Exception) -> str:
    """Return what a parser complained of: the text it stopped at, where it tells that."""
    text, at = getattr(error, "_str", None), getattr(error, "_i", None)
    if isinstance(text, bytes) and isinstance(at, int):
        rest = text.decode("utf-8", "replace")[at:].strip().splitlines()
        return f"it cannot be read from {rest[0][:LETTERS]!r} on" if rest else "it ends in the middle of a statement"
    told = str(getattr(error, "message", "") or error).strip().splitlines()
    return (told or ["it cannot be parsed"])[0].partition(" at ^ in")[0][:300].rstrip(".")
