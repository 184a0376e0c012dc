"""The Vocabulary: concepts with ids, names by language, notations and broader concepts, kept as flat arrays."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Self

import numpy as np
import scipy.sparse as sp

from longtail.data import Limits
from longtail.errors import ParameterError, near
from longtail.notebook import fact_card
from longtail.storage import Part, checked
from longtail.vocabulary.build import build
from longtail.vocabulary.concept import Concept
from longtail.vocabulary.schema import PREFERRED, VOCABULARY_SCHEMA

if TYPE_CHECKING:
    from longtail.vocabulary.find_concept import ConceptFinder


class Strings:
    """Strings in one array of bytes, decoded when they are asked for."""

    offsets: np.ndarray
    raw: np.ndarray

    def __init__(self, part: Part, name: str) -> None:
        self.raw, self.offsets = part.array(f"{name}.bytes"), part.array(f"{name}.offsets")

    def __len__(self) -> int:
        return self.offsets.size - 1

    def __getitem__(self, number: int) -> str:
        return self.raw[self.offsets[number] : self.offsets[number + 1]].tobytes().decode("utf-8", "surrogatepass")

    def __iter__(self) -> Iterator[str]:
        raw, ends = self.raw.tobytes(), self.offsets.tolist()
        return (raw[a:b].decode("utf-8", "surrogatepass") for a, b in itertools.pairwise(ends))


class Vocabulary:
    """The concepts that labels can be: ids for machines, names for people, and which concept is broader than which.

    Parameters
    ----------
    concepts : iterable of Concept
        The concepts, each with another id.
    language : str or None, default=None
        The language that names are shown in, such as "de"; None for the one with the most preferred names.
    name : str, default=""
        What the vocabulary is called.
    limits : Limits, default=Limits()
        The most that it may hold.

    Attributes
    ----------
    ids : tuple of str
        The ids, in the order of the concepts.
    languages : tuple of str
        The languages that names are in, "" for no language.
    notes : tuple of str
        Sentences about what was left out: references that lead nowhere, cycles.

    Examples
    --------
    >>> animals = Concept("http://ex.org/1", {"en": "animals", "de": "Tiere"})
    >>> cats = Concept("http://ex.org/2", {"en": "cats", "de": "Katzen"}, broader=("http://ex.org/1",))
    >>> vocabulary = Vocabulary([animals, cats], language="de")
    >>> vocabulary.name("http://ex.org/2"), vocabulary.find("CATS"), vocabulary.narrower("http://ex.org/1")
    ('Katzen', 'http://ex.org/2', ('http://ex.org/2',))
    """

    notes: tuple[str, ...]

    def __init__(
        self, concepts: Iterable[Concept], *, language: str | None = None, name: str = "", limits: Limits | None = None
    ) -> None:
        built = build(concepts, limits or Limits(), name=name)
        self._take(built.part, built.notes)
        self.language = language

    @classmethod
    def read(
        cls,
        path: str | Path,
        format: str | None = None,
        *,
        language: str | None = None,
        limits: Limits | None = None,
    ) -> Self:
        """Read a vocabulary from a file: SKOS (Turtle, N-Triples, RDF/XML), TSV, CSV or JSONL, also compressed.

        Parameters
        ----------
        path : str or Path
            The file.
        format : {"turtle", "ntriples", "rdfxml", "tsv", "csv", "jsonl"} or None, default=None
            None guesses it from the file's name, else from its first line. Turtle and RDF/XML need rdflib.
        language : str or None, default=None
            The language that names are shown in; None for the one with the most preferred names.
        limits : Limits, default=Limits()
            The most that the file may hold.

        Examples
        --------
        >>> import tempfile
        >>> file = Path(tempfile.mkdtemp()) / "subjects.tsv"
        >>> _ = file.write_text("<http://ex.org/1>\\tcats\\n<http://ex.org/2>\\tdogs\\n")
        >>> Vocabulary.read(file).name("http://ex.org/2")
        'dogs'
        """
        from longtail.vocabulary.read_file import read_concepts

        path, limits = Path(path), limits or Limits()
        out = cls.__new__(cls)
        built = build(read_concepts(path, format, limits), limits, str(path), path.name)
        out._take(built.part, built.notes)
        out.language = language
        return out

    def _take(self, part: Part, notes: tuple[str, ...] = ()) -> None:
        """Keep the arrays of a part."""
        self._part, self.notes = part, notes
        self._ids, self._notations, self._names = (Strings(part, name) for name in ("ids", "notations", "names"))
        self._starts, self._broader = part.array("name_starts"), part.array("broader.indices")
        self._broader_starts = part.array("broader.indptr")
        self._language: str | None = part.params["language"]

    @property
    def name_of_vocabulary(self) -> str:
        """What the vocabulary is called."""
        return self._part.params["name"]

    @property
    def languages(self) -> tuple[str, ...]:
        """The languages that names are in, those with the most preferred names first."""
        return tuple(self._part.params["languages"][i] for i in self._languages_by_use)

    @property
    def language(self) -> str | None:
        """The language that names are shown in; None for the one with the most preferred names."""
        return self._language

    @language.setter
    def language(self, language: str | None) -> None:
        if language is not None and language not in self.languages:
            listed = [tag for tag in self.languages if tag]
            allowed = f"a language of the vocabulary ({', '.join(listed[:20]) or 'its names have none'})"
            raise ParameterError(name="language", allowed=allowed, got=language, hint=near(language, listed))
        self._language = language
        self.__dict__.pop("_shown", None)
        self.__dict__.pop("_doubled", None)
        self.__dict__.pop("_finder", None)

    @cached_property
    def _languages_by_use(self) -> list[int]:
        """Numbers of the languages, those with the most preferred names first."""
        preferred = self._part.array("name_languages")[self._part.array("name_kinds") == PREFERRED]
        counts = np.bincount(preferred, minlength=len(self._part.params["languages"]))
        return np.argsort(-counts, kind="stable").tolist()

    @cached_property
    def ids(self) -> tuple[str, ...]:
        """The ids, in the order of the concepts."""
        return tuple(self._ids)

    @cached_property
    def _numbers(self) -> dict[str, int]:
        return {id: number for number, id in enumerate(self.ids)}

    def __len__(self) -> int:
        return len(self._ids)

    def __contains__(self, id: object) -> bool:
        return id in self._numbers

    def __iter__(self) -> Iterator[Concept]:
        return (self.concept_at(number) for number in range(len(self)))

    def __getitem__(self, id: str) -> Concept:
        return self.concept_at(self.number_of(id))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Vocabulary):
            return NotImplemented
        return self.languages == other.languages and list(self) == list(other)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        in_languages = f" in {', '.join(filter(None, self.languages[:5]))}" if any(self.languages) else ""
        return f"Vocabulary({self.name_of_vocabulary or 'unnamed'}: {len(self)} concepts{in_languages})"

    def _repr_html_(self) -> str:
        """Return what a notebook shows."""
        facts = [
            ("concepts", f"{len(self):,}"),
            ("languages", ", ".join(filter(None, self.languages)) or "none"),
            ("with a broader concept", f"{self.n_with_broader:,}"),
        ]
        return fact_card(f"Vocabulary {self.name_of_vocabulary}".strip(), facts)

    def number_of(self, id: str) -> int:
        """Return the number of a concept given by its id."""
        number = self._numbers.get(id)
        if number is None:
            raise ParameterError(name="id", allowed="that of a concept of the vocabulary", got=id)
        return number

    def concept_at(self, number: int) -> Concept:
        """Return a concept by its number."""
        names: dict[str, str] = {}
        others: dict[str, list[str]] = {}
        tags, kinds = self._part.array("name_languages"), self._part.array("name_kinds")
        for at in range(int(self._starts[number]), int(self._starts[number + 1])):
            language, name = self._part.params["languages"][tags[at]], self._names[at]
            if kinds[at] == PREFERRED and language not in names:
                names[language] = name
            else:
                others.setdefault(language, []).append(name)
        replaced = int(self._part.array("replaced_by")[number])
        return Concept(
            self._ids[number],
            names,
            {language: tuple(found) for language, found in others.items()},
            self._notations[number],
            tuple(self._ids[i] for i in self.broader_numbers(number)),
            bool(self._part.array("deprecated")[number]),
            None if replaced < 0 else self._ids[replaced],
        )

    def broader_numbers(self, number: int) -> list[int]:
        """Return the numbers of the concepts right above one."""
        return self._broader[self._broader_starts[number] : self._broader_starts[number + 1]].tolist()

    def first_broader(self) -> np.ndarray:
        """Return the number of the first broader concept of each, -1 for none."""
        starts, ends = np.asarray(self._broader_starts[:-1]), np.asarray(self._broader_starts[1:])
        out = np.full(len(self), -1, dtype=np.int64)
        has = ends > starts
        out[has] = self._broader[starts[has]]
        return out

    def ancestors(self, labels: Sequence[str]) -> sp.csr_array:
        """Return a matrix of 0 and 1: which concepts stand above each label, at any height, and the label itself.

        Columns are the concepts; labels that are none have a column of their own after them.

        >>> vocabulary = Vocabulary([Concept("a"), Concept("b", broader=("a",)), Concept("c", broader=("b",))])
        >>> vocabulary.ancestors(["c", "x"]).toarray().astype(int).tolist()
        [[1, 1, 1, 0], [0, 0, 0, 1]]
        """
        n, strange = len(self), [label for label in labels if label not in self]
        own = {label: n + number for number, label in enumerate(dict.fromkeys(strange))}
        width = n + len(own)
        columns = np.array([self._numbers.get(label, own.get(label, 0)) for label in labels], dtype=np.int64)
        rows = np.arange(len(labels))
        found = sp.csr_array((np.ones(rows.size, np.float32), (rows, columns)), shape=(rows.size, width))
        ends = np.concatenate([self._broader_starts, np.full(len(own), self._broader.size)])
        above = sp.csr_array((np.ones(self._broader.size, np.float32), self._broader, ends), shape=(width, width))
        step = found
        while True:  # one level further up in each turn, until nothing new comes
            step = step @ above
            more = found + step
            more.data[:] = 1.0
            step.data[:] = 1.0
            if more.nnz == found.nnz:
                return found
            found = more

    def broader(self, id: str) -> tuple[str, ...]:
        """Return the ids of the concepts right above one."""
        return tuple(self._ids[i] for i in self.broader_numbers(self.number_of(id)))

    def narrower(self, id: str) -> tuple[str, ...]:
        """Return the ids of the concepts right below one."""
        indptr, rows = self._narrower
        number = self.number_of(id)
        return tuple(self._ids[i] for i in rows[indptr[number] : indptr[number + 1]].tolist())

    @cached_property
    def _narrower(self) -> tuple[np.ndarray, np.ndarray]:
        """Pointers and numbers of the concepts right below each."""
        rows = np.repeat(np.arange(len(self)), np.diff(self._broader_starts))
        order = np.argsort(self._broader, kind="stable")
        counts = np.bincount(self._broader, minlength=len(self))
        return np.concatenate([[0], np.cumsum(counts)]), rows[order]

    @property
    def shown_language(self) -> str:
        """The language that names are looked for in first: the chosen one, or the most used."""
        return self._language or (self.languages[0] if self.languages else "")

    @property
    def n_with_broader(self) -> int:
        """How many concepts have a broader one."""
        return int((np.diff(self._broader_starts) > 0).sum())

    @property
    def n_deprecated(self) -> int:
        """How many concepts should no longer be used."""
        return int(self._part.array("deprecated").sum())

    @property
    def has_hierarchy(self) -> bool:
        """Whether any concept has a broader one."""
        return bool(self._broader.size)

    def is_deprecated(self, id: str) -> bool:
        """Say whether a concept should no longer be used."""
        return bool(self._part.array("deprecated")[self.number_of(id)])

    def replacement(self, id: str) -> str | None:
        """Return the id of the concept that took the place of one, if there is any."""
        number = int(self._part.array("replaced_by")[self.number_of(id)])
        return None if number < 0 else self._ids[number]

    @cached_property
    def _shown(self) -> np.ndarray:
        """The number of the name that is shown for every concept, -1 for none.

        The preferred name in the language; else in a kindred one ("de" for "de-AT"), in none, in English, in the most
        used one; else an alternative.
        """
        n, starts = len(self._names), np.asarray(self._starts)
        out = np.full(len(self), -1, dtype=np.int64)
        named = np.flatnonzero(np.diff(starts) > 0)
        if not named.size:
            return out
        rank = self._language_ranks()
        tags, kinds = self._part.array("name_languages"), self._part.array("name_kinds").astype(np.int64)
        key = (kinds * (rank.size + 1) + rank[tags]) * n + np.arange(n)
        out[named] = np.minimum.reduceat(key, starts[named]) % n
        return out

    def _language_ranks(self) -> np.ndarray:
        """Return the place of every language in the order in which a name is looked for."""
        tags = self._part.params["languages"]
        wanted = self.shown_language
        kin = wanted.partition("-")[0]

        def distance(tag: str) -> int:
            near_ones = [tag == wanted, tag.partition("-")[0] == kin, tag == "", tag.partition("-")[0] == "en"]
            return near_ones.index(True) if any(near_ones) else len(near_ones)

        use = {number: place for place, number in enumerate(self._languages_by_use)}
        order = sorted(range(len(tags)), key=lambda number: (distance(tags[number]), use[number]))
        rank = np.empty(len(tags), dtype=np.int64)
        rank[order] = np.arange(len(tags))
        return rank

    @cached_property
    def _doubled(self) -> set[str]:
        """The names that are shown for more than one concept."""
        seen: set[str] = set()
        doubled: set[str] = set()
        for at in self._shown[self._shown >= 0].tolist():
            name = self._names[at]
            (doubled if name in seen else seen).add(name)
        return doubled

    def name_at(self, number: int) -> str:
        """Return the name of a concept that people see; two concepts never have the same one."""
        at = int(self._shown[number])
        notation = self._notations[number]
        if at < 0:
            return notation or self._ids[number]
        name = self._names[at]
        if name not in self._doubled:
            return name
        return f"{name} ({notation or short_id(self._ids[number])})"

    def name(self, id: str) -> str:
        """Return the name of a concept in the chosen language, or in the nearest one that it has a name in.

        Where several concepts have the same name, the notation or the end of the id is added.
        """
        return self.name_at(self.number_of(id))

    def notation(self, id: str) -> str:
        """Return the code that people use for a concept, such as "QA76"; "" where it has none."""
        return self._notations[self.number_of(id)]

    def names_of(self, id: str) -> tuple[str, ...]:
        """Return all names of a concept in the chosen language, the preferred one first.

        Where it has none in this language, the name that is shown for it.
        """
        number = self.number_of(id)
        at = int(self._shown[number])
        if at < 0:
            return (self.name_at(number),)
        tags = self._part.array("name_languages")
        same = [i for i in range(int(self._starts[number]), int(self._starts[number + 1])) if tags[i] == tags[at]]
        return tuple(dict.fromkeys([self._names[at], *(self._names[i] for i in same)]))

    def find(self, word: str, among: Iterable[str] | None = None) -> str:
        """Return the id of the concept that a person means by an id, a notation or a name; capitals do not matter.

        Names in the chosen language go first, then preferred names in any language, then alternatives. An unknown word
        is refused with the nearest names, one that several concepts have with their ids. `among` are the ids to
        choose from.
        """
        return self._finder.find(word, None if among is None else set(among))

    def candidates(self, word: str, among: Iterable[str] | None = None) -> list[str]:
        """Return the ids that a word may mean: none if it is unknown, several if they share a name."""
        return self._finder.candidates(word, None if among is None else set(among))

    @cached_property
    def _finder(self) -> ConceptFinder:
        from longtail.vocabulary.find_concept import ConceptFinder

        return ConceptFinder(self)

    def updated(self, other: Vocabulary) -> Vocabulary:
        """Return a vocabulary with the concepts of another added, or put in the place of those with the same id."""
        concepts = {concept.id: concept for concept in self} | {concept.id: concept for concept in other}
        language = self._language if self._language is not None else other._language
        return Vocabulary(concepts.values(), language=language, name=self.name_of_vocabulary)

    def write(self, path: str | Path, format: str | None = None) -> Path:
        """Write the vocabulary to a file: JSONL and Turtle hold all of it; TSV and CSV what these formats know."""
        from longtail.vocabulary.write_file import write_vocabulary

        return write_vocabulary(self, Path(path), format)

    def to_part(self) -> Part:
        """Return what is saved."""
        params = {**self._part.params, "language": self._language}
        return Part(VOCABULARY_SCHEMA.kind, params, self._part.arrays)

    @classmethod
    def from_part(cls, part: Part) -> Self:
        """Return a saved vocabulary, on the arrays as they are."""
        out = cls.__new__(cls)
        out._take(checked(part, VOCABULARY_SCHEMA))
        return out


def short_id(id: str) -> str:
    """Return the end of a URI, which tells two concepts apart.

    >>> short_id("http://ex.org/subjects/p12"), short_id("p12")
    ('p12', 'p12')
    """
    return id.rstrip("/#").replace("#", "/").rpartition("/")[2] or id
