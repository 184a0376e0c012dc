"""Concepts to flat arrays, checked: ids are unique, references lead somewhere, broader concepts have no cycle."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np

from longtail.data import Limits
from longtail.errors import DataError
from longtail.storage import Part, pack_strings
from longtail.vocabulary.concept import Concept
from longtail.vocabulary.schema import ALTERNATIVE, LONGEST_LANGUAGE, MOST_LANGUAGES, PREFERRED, VOCABULARY_SCHEMA

EXAMPLES = 3


class Built(NamedTuple):
    """The part of a vocabulary, and sentences about what was left out of it."""

    part: Part
    notes: tuple[str, ...]


def build(concepts: Iterable[Concept], limits: Limits, source: str = "the vocabulary", name: str = "") -> Built:
    """Return concepts as the arrays of a vocabulary."""
    draft = _Draft(limits, source)
    for concept in concepts:
        draft.add(concept)
    if not draft.numbers:
        raise DataError(f"{source} has no concepts.")
    notes: list[str] = []
    indptr, indices = draft.broader(notes)
    indptr, indices = _without_cycles(indptr, indices, list(draft.numbers), notes)
    arrays = {
        **pack_strings("ids", list(draft.numbers)),
        **pack_strings("notations", draft.notations),
        **pack_strings("names", draft.names),
        "name_starts": np.array(draft.name_starts, dtype=np.int64),
        "name_languages": np.array(draft.name_languages, dtype=np.uint16),
        "name_kinds": np.array(draft.name_kinds, dtype=np.uint8),
        "broader.indices": indices.astype(np.int32),
        "broader.indptr": indptr,
        "deprecated": np.array(draft.deprecated, dtype=np.uint8),
        "replaced_by": draft.replacements(notes),
    }
    params = {"name": name[:4096], "languages": list(draft.languages), "language": None}
    return Built(Part(VOCABULARY_SCHEMA.kind, params, arrays, checked=True), tuple(notes))


class _Draft:
    """Concepts as growing lists."""

    def __init__(self, limits: Limits, source: str) -> None:
        self.limits, self.source = limits, source
        self.numbers: dict[str, int] = {}
        self.languages: dict[str, int] = {}
        self.notations: list[str] = []
        self.names: list[str] = []
        self.name_starts = [0]
        self.name_languages: list[int] = []
        self.name_kinds: list[int] = []
        self.deprecated: list[bool] = []
        self.above: list[tuple[str, ...]] = []
        self.replaced_by: list[str | None] = []

    def add(self, concept: Concept) -> None:
        """Add one concept; an id that is empty or was there before is refused."""
        where = f"{self.source}, concept {concept.id[:200]!r}"
        if not concept.id:
            raise DataError(f"{self.source}: the id of a concept is empty.")
        if concept.id in self.numbers:
            raise DataError(f"{self.source} has the concept {concept.id!r} twice.")
        self.limits.check("labels", len(self.numbers) + 1, self.source, "concepts")
        self.limits.check("label_characters", max(len(concept.id), len(concept.notation)), where)
        self.numbers[concept.id] = len(self.numbers)
        for language, name in concept.names.items():
            self._add_name(name, language, PREFERRED, where)
        for language, names in concept.alternatives.items():
            for name in names:
                self._add_name(name, language, ALTERNATIVE, where)
        self.name_starts.append(len(self.names))
        self.limits.check("row_labels", max(len(self.names) - self.name_starts[-2], len(concept.broader)), where)
        self.notations.append(concept.notation)
        self.deprecated.append(concept.deprecated)
        self.above.append(concept.broader)
        self.replaced_by.append(concept.replaced_by)

    def _add_name(self, name: str, language: str, kind: int, where: str) -> None:
        if not name:
            return
        self.limits.check("label_characters", len(name), where)
        number = self.languages.get(language)
        if number is None:
            if len(language) > LONGEST_LANGUAGE or len(self.languages) >= MOST_LANGUAGES:
                raise DataError(f"{where} has a name in the language {language[:200]!r}, which is no language tag.")
            number = self.languages[language] = len(self.languages)
        self.names.append(name)
        self.name_languages.append(number)
        self.name_kinds.append(kind)

    def broader(self, notes: list[str]) -> tuple[np.ndarray, np.ndarray]:
        """Return the concepts right above each as pointers and numbers; those that are not there are counted."""
        indptr, indices, lost = [0], [], []
        for number, ids in enumerate(self.above):
            known = [self.numbers.get(id, -1) for id in ids]
            lost += [id for id, at in zip(ids, known, strict=True) if at < 0]
            indices += [at for at in dict.fromkeys(known) if at >= 0 and at != number]
            indptr.append(len(indices))
        if lost:
            notes.append(f"{_counted(lost, 'broader concept')} not in the vocabulary and left out: {_some(lost)}.")
        return np.array(indptr, dtype=np.int64), np.array(indices, dtype=np.int64)

    def replacements(self, notes: list[str]) -> np.ndarray:
        """Return the concept in the place of each, -1 for none; those that are not there are counted."""
        lost = [id for id in self.replaced_by if id is not None and id not in self.numbers]
        if lost:
            notes.append(f"{_counted(lost, 'replacement')} not in the vocabulary and left out: {_some(lost)}.")
        return np.array([-1 if id is None else self.numbers.get(id, -1) for id in self.replaced_by], dtype=np.int32)


def _without_cycles(
    indptr: np.ndarray, indices: np.ndarray, ids: Sequence[str], notes: list[str]
) -> tuple[np.ndarray, np.ndarray]:
    """Return broader concepts without the links inside cycles; a concept cannot be broader than itself."""
    import scipy.sparse as sp
    from scipy.sparse.csgraph import connected_components

    n = len(ids)
    if not indices.size:
        return indptr, indices
    graph = sp.csr_array((np.ones(indices.size, dtype=np.int8), indices, indptr), shape=(n, n))
    n_parts, part = connected_components(graph, directed=True, connection="strong")
    if n_parts == n:
        return indptr, indices
    rows = np.repeat(np.arange(n), np.diff(indptr))
    inside = part[rows] == part[indices]
    cyclic = np.flatnonzero(np.bincount(part, minlength=n_parts) > 1)
    first = [ids[int(np.flatnonzero(part == c)[0])] for c in cyclic[:EXAMPLES]]
    has = "a cycle" if cyclic.size == 1 else f"{cyclic.size:,} cycles"
    cut = int(inside.sum())
    links = f"its {cut:,} links were" if cyclic.size == 1 else f"their {cut:,} links were"
    notes.append(f"broader concepts go round in {has}, and {links} left out: {_some(first)}.")
    kept = np.bincount(rows[~inside], minlength=n)
    return np.concatenate([[0], np.cumsum(kept)]).astype(np.int64), indices[~inside]


def _counted(lost: Sequence[str], noun: str) -> str:
    n = len(lost)
    return f"1 {noun} is" if n == 1 else f"{n:,} {noun}s are"


def _some(ids: Sequence[str]) -> str:
    """Return a few of some ids, in one line."""
    first = list(dict.fromkeys(ids))
    return ", ".join(id[:200] for id in first[:EXAMPLES]) + (", …" if len(first) > EXAMPLES else "")
