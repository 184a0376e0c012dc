"""From what a person writes (an id, a notation or a name) to a concept."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable, Iterator
from functools import cached_property
from typing import TYPE_CHECKING

from longtail.errors import ParameterError
from longtail.vocabulary.schema import PREFERRED

if TYPE_CHECKING:
    from longtail.vocabulary.vocabulary import Vocabulary

CANDIDATES = 5  # concepts of an ambiguous name that are listed
NEAR = 3  # names that are offered for an unknown one
COMPARED = 20_000  # names that an unknown one is compared with, letter by letter
LETTERS = 200  # of a word that is compared

Table = dict[str, list[int]]


class ConceptFinder:
    """Finds concepts by id, notation or name."""

    def __init__(self, vocabulary: Vocabulary) -> None:
        self.vocabulary = vocabulary

    def find(self, word: str, among: set[str] | None = None) -> str:
        """Return the id of the concept that is meant; unknown and ambiguous words are refused."""
        ids = self.candidates(word, among)
        if len(ids) == 1:
            return ids[0]
        if ids:
            raise self._ambiguous(word, ids)
        allowed = "the id, notation or name of a known concept"
        raise ParameterError(name="label", allowed=allowed, got=word, hint=self.hint(word, among))

    def candidates(self, word: str, among: set[str] | None = None) -> list[str]:
        """Return the ids of the concepts that a word may mean: none, one, or those that share a name."""
        vocabulary = self.vocabulary
        for id in (word, bare(word)):
            if id in vocabulary and (among is None or id in among):
                return [id]
        for table, key in self._tables():
            ids = [vocabulary._ids[number] for number in table().get(key(word), ())]
            ids = [id for id in dict.fromkeys(ids) if among is None or id in among]
            if ids:
                return ids
        return []

    def _tables(self) -> Iterator[tuple[Callable[[], Table], Callable[[str], str]]]:
        """Yield the tables to look into, one after the other, each with the form of its keys."""
        yield lambda: self._notations, str
        yield lambda: self._shown_names, folded
        yield lambda: self._preferred, folded
        yield lambda: self._alternatives, folded

    @cached_property
    def _notations(self) -> Table:
        return _table((notation, number) for number, notation in enumerate(self.vocabulary._notations) if notation)

    @cached_property
    def _shown_names(self) -> Table:
        """Names as they are shown, and plain preferred names in the chosen language."""
        vocabulary, shown = self.vocabulary, self.vocabulary._shown.tolist()
        table = _table((folded(vocabulary._names[at]), number) for number, at in enumerate(shown) if at >= 0)
        if vocabulary._doubled:
            for numbers in [numbers for numbers in table.values() if len(numbers) > 1]:
                for number in numbers:
                    table.setdefault(folded(vocabulary.name_at(number)), [number])
        return table

    @cached_property
    def _preferred(self) -> Table:
        return _table(self._names_of_kind(lambda kind: kind == PREFERRED))

    @cached_property
    def _alternatives(self) -> Table:
        return _table(self._names_of_kind(lambda kind: kind != PREFERRED))

    def _names_of_kind(self, wanted: Callable[[int], bool]) -> Iterator[tuple[str, int]]:
        """Yield the names of a kind with the numbers of their concepts."""
        vocabulary = self.vocabulary
        kinds, starts = vocabulary._part.array("name_kinds").tolist(), vocabulary._starts.tolist()
        names = iter(vocabulary._names)
        for number in range(len(vocabulary)):
            for at in range(starts[number], starts[number + 1]):
                name = next(names)
                if wanted(kinds[at]):
                    yield folded(name), number

    def _ambiguous(self, word: str, ids: list[str]) -> ParameterError:
        listed = ", ".join(f"{self.vocabulary.name(id)!r} <{id}>" for id in ids[:CANDIDATES])
        more = f" and {len(ids) - CANDIDATES} more" if len(ids) > CANDIDATES else ""
        allowed = f"one concept, by its id (it is the name of {len(ids)}: {listed}{more})"
        return ParameterError(name="label", allowed=allowed, got=word)

    def hint(self, word: str, among: set[str] | None = None) -> str:
        """Return the names nearest to an unknown word, as the end of a sentence; nothing if none is near."""
        wanted = folded(word)[:LETTERS]
        if not wanted:
            return ""
        vocabulary = self.vocabulary
        if among is None:
            names = [vocabulary.name_at(number) for number in range(len(vocabulary))]
        else:
            names = [vocabulary.name(id) if id in vocabulary else id for id in among]
        return near_names(wanted, names)


def near_names(wanted: str, names: Iterable[str]) -> str:
    """Return up to three names near a word: those that hold it, then those of similar letters.

    >>> near_names("cat", ["cats", "dogs", "category"])
    " Did you mean 'cats' or 'category'?"
    """
    by_form = {folded(name): name for name in sorted(names, reverse=True)}
    found = sorted((form for form in by_form if wanted in form), key=lambda form: (len(form), form))[:NEAR]
    if len(found) < NEAR:
        similar = [form for form in by_form if abs(len(form) - len(wanted)) <= max(2, len(wanted) // 3)]
        similar = sorted(similar, key=lambda form: (form[:1] != wanted[:1], form))[:COMPARED]
        found += [form for form in difflib.get_close_matches(wanted, similar, n=NEAR, cutoff=0.7) if form not in found]
    told = " or ".join(repr(by_form[form]) for form in found[:NEAR])
    return f" Did you mean {told}?" if told else ""


def bare(word: str) -> str:
    """Return a word without the brackets around a URI.

    >>> bare("<http://ex.org/1>")
    'http://ex.org/1'
    """
    return word[1:-1] if word.startswith("<") and word.endswith(">") else word


def folded(name: str) -> str:
    """Return a name without regard to capitals and spaces.

    >>> folded(" Fine  ARTS ")
    'fine arts'
    """
    return " ".join(name.casefold().split())


def _table(pairs: Iterable[tuple[str, int]]) -> Table:
    out: Table = {}
    for key, number in pairs:
        out.setdefault(key, []).append(number)
    return out
