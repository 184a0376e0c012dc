"""SKOS triples to concepts: names, notations and links are collected as they come, in any order."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from longtail.vocabulary.concept import Concept

SKOS, XL = "http://www.w3.org/2004/02/skos/core#", "http://www.w3.org/2008/05/skos-xl#"
TYPE = "http://www.w3.org/1999/02/22-rdf-syntax-ns#type"
DEPRECATED = "http://www.w3.org/2002/07/owl#deprecated"
REPLACED_BY = "http://purl.org/dc/terms/isReplacedBy"
PREFERRED, ALTERNATIVE, HIDDEN = f"{SKOS}prefLabel", f"{SKOS}altLabel", f"{SKOS}hiddenLabel"
NOTATION, BROADER, NARROWER = f"{SKOS}notation", f"{SKOS}broader", f"{SKOS}narrower"
LITERAL_FORM = f"{XL}literalForm"
OF_XL = {f"{XL}prefLabel": PREFERRED, f"{XL}altLabel": ALTERNATIVE, f"{XL}hiddenLabel": HIDDEN}
PREDICATES = frozenset(
    (TYPE, DEPRECATED, REPLACED_BY, PREFERRED, ALTERNATIVE, HIDDEN, NOTATION, BROADER, NARROWER, LITERAL_FORM, *OF_XL)
)
NOT_CONCEPTS = frozenset((f"{SKOS}ConceptScheme", f"{SKOS}Collection", f"{SKOS}OrderedCollection", f"{XL}Label"))


class Triple(NamedTuple):
    """One statement: its object is a literal, with its language, or the id of something else."""

    subject: str
    predicate: str
    object: str
    is_literal: bool
    language: str = ""


class _Entry:
    """What is known of one subject."""

    __slots__ = ("alternatives", "broader", "deprecated", "names", "notation", "replaced_by", "seen_as")

    def __init__(self) -> None:
        self.names: dict[str, str] = {}
        self.alternatives: list[tuple[str, str]] = []
        self.notation = ""
        self.broader: list[str] = []
        self.deprecated = False
        self.replaced_by: str | None = None
        self.seen_as = ""  # "concept" if it is said to be one, "other" if something else


def concepts_of(triples: Iterable[Triple]) -> Iterator[Concept]:
    """Yield the concepts that triples are about, in the order in which they first occur.

    A concept is what is said to be a `skos:Concept`, or has a preferred name and is not said to be something else.
    """
    entries: dict[str, _Entry] = {}
    labels: list[tuple[str, str, str]] = []  # subject, predicate and SKOS-XL label
    forms: dict[str, list[tuple[str, str]]] = {}  # of SKOS-XL labels: name and language

    for triple in triples:
        subject, predicate, value, is_literal, language = triple
        if predicate == LITERAL_FORM:
            if is_literal:
                forms.setdefault(subject, []).append((value, language))
        elif predicate in OF_XL:
            _entry(entries, subject)
            labels.append((subject, OF_XL[predicate], value))
        elif predicate == NARROWER:
            _entry(entries, value).broader.append(subject)
        else:
            _tell(_entry(entries, subject), predicate, value, is_literal, language)
    for subject, predicate, label in labels:
        for value, language in forms.get(label, ()):
            _tell(entries[subject], predicate, value, True, language)
    for id, entry in entries.items():
        if entry.seen_as == "concept" or (entry.names and not entry.seen_as):
            others: dict[str, list[str]] = {}
            for language, name in entry.alternatives:
                others.setdefault(language, []).append(name)
            yield Concept(
                id,
                entry.names,
                {language: tuple(dict.fromkeys(names)) for language, names in others.items()},
                entry.notation,
                tuple(dict.fromkeys(entry.broader)),
                entry.deprecated,
                entry.replaced_by,
            )


def _entry(entries: dict[str, _Entry], subject: str) -> _Entry:
    entry = entries.get(subject)
    if entry is None:
        entry = entries[subject] = _Entry()
    return entry


def _tell(entry: _Entry, predicate: str, value: str, is_literal: bool, language: str) -> None:
    """Note one statement about a subject; a second preferred name in one language counts as an alternative."""
    if predicate in (PREFERRED, ALTERNATIVE, HIDDEN):
        name = " ".join(value.split()) if is_literal else ""
        if predicate == PREFERRED and name and language not in entry.names:
            entry.names[language] = name
        elif name and entry.names.get(language) != name:
            entry.alternatives.append((language, name))
    elif predicate == NOTATION:
        entry.notation = entry.notation or value.strip()
    elif predicate == BROADER:
        entry.broader.append(value)
    elif predicate == DEPRECATED:
        entry.deprecated = value.strip().lower() in ("true", "1")
    elif predicate == REPLACED_BY:
        entry.replaced_by = entry.replaced_by or value
    elif predicate == TYPE:
        if value == f"{SKOS}Concept":
            entry.seen_as = "concept"
        elif value in NOT_CONCEPTS and not entry.seen_as:
            entry.seen_as = "other"
