"""Annif's vocabulary as longtail's: names, other names and broader concepts by URI."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from annif.project import AnnifProject

from longtail.vocabulary import Concept, Vocabulary


def vocabulary_of(project: AnnifProject, *, all_names: bool) -> Vocabulary:
    """Return the subjects of a project that are in use; with `all_names`, alternative names and hierarchy too.

    Those stand only in the SKOS file that Annif keeps, which takes a while to read where it is large.
    """
    language = project.vocab_lang if isinstance(project.vocab_lang, str) else None
    name = project.vocab.vocab_id
    used = {subject.uri for _, subject in project.subjects.active}
    skos = Path(project.vocab.datadir) / project.vocab.INDEX_FILENAME_TTL
    if all_names and skos.exists():
        read = Vocabulary.read(skos, "turtle", language=language)
        concepts = [concept for concept in read if concept.id in used]
        missing = used - {concept.id for concept in concepts}
        concepts += [concept for concept in _subjects(project) if concept.id in missing]
        return Vocabulary([_within(concept, used) for concept in concepts], language=language, name=name)
    return Vocabulary(_subjects(project), language=language, name=name)


def _subjects(project: AnnifProject) -> Iterator[Concept]:
    """Yield the subjects in use with their preferred names."""
    for _, subject in project.subjects.active:
        names = {language: label for language, label in subject.labels.items() if label}
        yield Concept(subject.uri, names or {"": subject.uri}, notation=subject.notation or "")


def _within(concept: Concept, used: set[str]) -> Concept:
    """Return a concept without the broader ones that are not in use."""
    broader = tuple(uri for uri in concept.broader if uri in used)
    return Concept(concept.id, concept.names, concept.alternatives, concept.notation, broader)
