"""Sets of n-grams: a `Lexicon` grows while texts are counted, a `KnownTerms` finds the terms of a fixed list again."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from longtail.errors import DataError
from longtail.text.hash_table import make_slots
from longtail.text.ngrams import gram_counts, gram_nodes
from longtail.text.string_arrays import gram_bytes, gram_offsets
from longtail.text.tokenise import char_ids
from longtail.text.unicode_tables import SHORTEST_WORD, WORD, fold_table, fold_text, irregular, without_accents
from longtail.text.utf8 import BASIC_PLANE, CODE_POINTS, FOUR_BYTES
from longtail.text.word_forms import KnownForms, WordForms
from longtail.text.word_table import PackedTerms, WordTable, encode_texts, grown, larger_table

BLOCK = 1 << 18  # characters handled at once: keeps memory bounded and the work of a block in cache
TEXT_COST = 16  # what a text costs besides its characters
INT32_MAX = int(np.iinfo(np.int32).max)
SOLID = re.compile(r"\S+")  # a run of anything but white space


@dataclass(frozen=True)
class Analysis:
    """The options by which a text is cut into n-grams; not checked here."""

    analyzer: str = "word"  # "word" or "char_wb"
    ngrams: tuple[int, int] = (1, 1)
    lowercase: bool = True
    strip_accents: bool = False
    stop_words: tuple[str, ...] = ()
    language: str = ""  # words count by their stems in this language; "" for words as they are

    @property
    def words(self) -> bool:
        """Whether n-grams are of words, not of characters."""
        return self.analyzer == "word"


class NgramCounts(NamedTuple):
    """How often each n-gram occurs in each text, as the arrays of a CSR matrix in no particular order."""

    indptr: np.ndarray  # int64 (n_texts + 1,)
    nodes: np.ndarray  # int32 (nnz,)
    counts: np.ndarray  # int32 (nnz,)


class Lexicon:
    """A set of n-grams that grows while texts are counted, or finds only those it has; each n-gram is a numbered node.

    >>> Lexicon(Analysis()).count(["red apple", "red red car"], grow=True).counts.tolist()
    [1, 1, 2, 1]
    """

    high: int
    low: int

    def __init__(self, analysis: Analysis) -> None:
        self.analysis = analysis
        self.words: bool = analysis.words
        self.low, self.high = analysis.ngrams
        self.n_nodes: int = 0
        self.table: WordTable = WordTable(() if analysis.language else analysis.stop_words)
        self.forms: WordForms | None = (
            WordForms(analysis.language, analysis.stop_words, self.table) if self.words and analysis.language else None
        )
        self._first = np.full(0 if self.words else CODE_POINTS, -1, dtype=np.int32)
        self._slots = make_slots(0)
        self._parent = np.empty(0, dtype=np.int32)
        self._last = np.empty(0, dtype=np.int32)
        self._fit_first()

    def count(self, texts: Sequence[str], *, grow: bool) -> NgramCounts:
        """Count the n-grams of some texts; with `grow` new ones join the lexicon, else they are left out."""
        if self.forms is not None:
            ids, id_ends = self.forms.ids(*self._folded(texts), grow)
            self._fit_first()
        else:
            ids, id_ends = self._ids(*self._folded(texts), SHORTEST_WORD, self.table.n_skip, grow)
        spread = self.high - self.low + 1
        if grow:
            self._reserve_nodes(ids.size * self.high)
        indptr = np.empty(id_ends.size + 1, dtype=np.int64)
        nodes, counts = np.empty(ids.size * spread, dtype=np.int32), np.empty(ids.size * spread, dtype=np.int32)
        self.n_nodes = gram_counts(
            ids,
            id_ends,
            self.low,
            self.high,
            not self.words,
            grow,
            self._first,
            self._slots,
            self._parent,
            self._last,
            self.n_nodes,
            indptr,
            nodes,
            counts,
        )
        return NgramCounts(indptr, nodes[: indptr[-1]], counts[: indptr[-1]])

    def add(self, grams: PackedTerms) -> np.ndarray:
        """Add whole n-grams and return their nodes."""
        found = [np.empty(0, dtype=np.int32)]
        for block in _cut_blocks(grams.offsets[1:]):
            begin, end = grams.offsets[block.start], grams.offsets[block.stop]
            raw = grams.raw[begin:end].view()
            raw.flags.writeable = False  # as the bytes of texts are: the kernels need compiling only once
            found.append(self._nodes(raw, grams.offsets[block.start + 1 : block.stop + 1] - begin, grow=True))
        return np.concatenate(found)

    def find(self, grams: Sequence[str]) -> np.ndarray:
        """Return the node of each n-gram, or -1."""
        return self._nodes(*encode_texts(grams), grow=False)

    def stems(self, words: Sequence[str]) -> list[str]:
        """Return what each word counts as: itself, or its stem; "" for a stem that is not known."""
        if self.forms is None:
            return list(words)
        ids = self.forms.ids(*encode_texts(words), fold_table("any", False), grow=False)[0].tolist()
        return [self.table.word(i) if i >= 0 else "" for i in ids]

    def strings(self, nodes: np.ndarray) -> PackedTerms:
        """Write n-grams out: words with a space between them, or characters end to end."""
        offsets = np.empty(nodes.size + 1, dtype=np.int64)
        gram_offsets(nodes, self._parent, self._last, self.words, self.table.starts, offsets)
        raw = np.empty(offsets[-1], dtype=np.uint8)
        table = self.table
        gram_bytes(nodes, self._parent, self._last, self.words, table.starts, table.arena, offsets, raw)
        return PackedTerms(raw, offsets)

    def lengths(self, nodes: np.ndarray) -> np.ndarray:
        """Return how many words or characters each n-gram has."""
        parent, lengths = nodes, np.zeros(nodes.size, dtype=np.int64)
        for _ in range(self.high):
            inside = parent >= 0
            lengths += inside
            parent = np.where(inside, self._parent[parent], -1)
        return lengths

    def _folded(self, texts: Sequence[str]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return the texts as bytes, where they end, and the table that lowercases what is not lowercased yet."""
        letters = "word" if self.words else "solid"
        return fold_texts(texts, letters, self.analysis.lowercase, self.analysis.strip_accents)

    def _ids(
        self, text: np.ndarray, ends: np.ndarray, fold: np.ndarray, shortest: int, n_skip: int, grow: bool
    ) -> tuple[np.ndarray, np.ndarray]:
        if self.words:
            found = self.table.ids(text, ends, fold, shortest, n_skip, grow)
            self._fit_first()
            return found
        id_ends = np.zeros(ends.size, dtype=np.int64)
        ids = np.empty(2 * (text.size + ends.size), dtype=np.int32)
        char_ids(text, ends, fold, ids, id_ends)
        return ids[: id_ends[-1] if ends.size else 0], id_ends

    def _fit_first(self) -> None:
        """Make space for the node of every word."""
        if self.table.n_words > self._first.size:
            self._first = grown(self._first, self.table.n_words, -1)

    def _nodes(self, text: np.ndarray, ends: np.ndarray, grow: bool) -> np.ndarray:
        if self.words:
            ids, id_ends = self._ids(text, ends, fold_table("any", False), 1, 0, grow)
        else:
            decoded = text.tobytes().decode("utf-8", "surrogatepass")
            ids = np.frombuffer(decoded.encode("utf-32-le", "surrogatepass"), dtype=np.int32).copy()
            heads = np.concatenate([[0], np.cumsum((text & 0xC0) != 0x80)])
            id_ends = heads[ends]
        if grow:
            self._reserve_nodes(ids.size)
        found = np.empty(id_ends.size, dtype=np.int32)
        self.n_nodes = gram_nodes(
            ids, id_ends, grow, self._first, self._slots, self._parent, self._last, self.n_nodes, found
        )
        return found

    def _reserve_nodes(self, n_new: int) -> None:
        capacity = self.n_nodes + n_new
        if capacity > INT32_MAX:
            raise DataError(f"the texts have more than {INT32_MAX} different n-grams; use shorter n-grams.")
        if self.high > 1 and 2 * capacity > len(self._slots):
            self._slots = larger_table(self._slots, capacity)
        self._parent, self._last = grown(self._parent, capacity), grown(self._last, capacity)


class KnownTerms:
    """Terms in the order of their columns, and the lexicon that finds them in texts.

    >>> terms = PackedTerms(np.frombuffer(b"appleredred apple", dtype=np.uint8), np.array([0, 5, 8, 17]))
    >>> KnownTerms(terms, Analysis(ngrams=(1, 2))).columns(["red", "blue", "red apple"]).tolist()
    [1, -1, 2]
    """

    analysis: Analysis
    packed: PackedTerms

    def __init__(self, packed: PackedTerms, analysis: Analysis) -> None:
        self.packed, self.analysis = packed, analysis
        self._lexicon = Lexicon(analysis)
        nodes = self._lexicon.add(packed)
        self.column: np.ndarray = np.full(self._lexicon.n_nodes, -1, dtype=np.int32)  # of each node of the lexicon
        self.column[nodes] = np.arange(nodes.size, dtype=np.int32)
        self._terms: list[str] | None = None
        self._names: list[str] | None = None

    def __len__(self) -> int:
        return self.packed.offsets.size - 1

    @property
    def terms(self) -> list[str]:
        """The terms as strings, made when first asked for: a model that only predicts never needs them."""
        if self._terms is None:
            self._terms = self.packed.strings()
        return self._terms

    def lengths(self) -> np.ndarray:
        """Return how many words or characters each term has."""
        nodes = np.empty(len(self), dtype=np.int32)
        used = np.flatnonzero(self.column >= 0)
        nodes[self.column[used]] = used
        return self._lexicon.lengths(nodes)

    @property
    def names(self) -> list[str]:
        """The terms as people write them: in place of a stem, its most frequent form."""
        if self.forms is None:
            return self.terms
        if self._names is None:
            shown: dict[int, str] = {}
            for form, stem in zip(self.forms.words.strings(), self.forms.stems.tolist(), strict=True):
                shown.setdefault(stem, form)
            stems = self._lexicon.table.words().strings()
            form_of = {stem: shown.get(number, stem) for number, stem in enumerate(stems)}
            self._names = [" ".join(form_of[stem] for stem in term.split(" ")) for term in self.terms]
        return self._names

    @property
    def forms(self) -> KnownForms | None:
        """The forms in which texts had the stems, where words count by their stems."""
        return None if self._lexicon.forms is None else self._lexicon.forms.known

    def forms_in(self, counted: Lexicon) -> KnownForms | None:
        """Return the forms in which counted texts had the stems of these terms."""
        return None if counted.forms is None else counted.forms.forms_of(self._lexicon.table)

    def learn_forms(self, forms: KnownForms | None) -> None:
        """Take over the forms in which texts had the stems of these terms."""
        if self._lexicon.forms is not None and forms is not None:
            self._lexicon.forms.learn(forms)
            self._names = None

    def count(self, texts: Sequence[str]) -> NgramCounts:
        """Count the known n-grams of some texts, by node."""
        return self._lexicon.count(texts, grow=False)

    def columns(self, terms: Sequence[str]) -> np.ndarray:
        """Return the column of each term, or -1."""
        nodes = self._lexicon.find(terms)
        if self.analysis.words:  # the lexicon sees words only, not how many spaces stand between them
            loose = np.array([t != t.strip(" ") or "  " in t for t in terms], dtype=bool)
            nodes[loose] = -1
        return np.where(nodes >= 0, self.column[nodes], -1).astype(np.int32)

    def columns_of(self, terms: PackedTerms) -> np.ndarray:
        """Return the column of each of many terms as a lexicon writes them, or -1."""
        raw = terms.raw.view()
        raw.flags.writeable = False  # as the bytes of texts are: the kernels need compiling only once
        nodes = self._lexicon._nodes(raw, terms.offsets[1:], grow=False)
        return np.where(nodes >= 0, self.column[nodes], -1).astype(np.int32)

    def locate(self, text: str) -> list[tuple[int, int, int]]:
        """Return the terms of a text as (start, end, column), counted in characters of the text as given."""
        folded, origin = fold_text(text, self.analysis.lowercase, self.analysis.strip_accents)
        spans = list(self._word_spans(folded) if self.analysis.words else self._character_spans(folded))
        columns = self.columns([term for *_, term in spans]).tolist()
        found = [(start, end, column) for (start, end, _), column in zip(spans, columns, strict=True) if column >= 0]
        if origin is None:
            return found
        return [(origin[start], origin[end - 1] + 1, column) for start, end, column in found]

    def _word_spans(self, text: str) -> Iterator[tuple[int, int, str]]:
        low, high = self.analysis.ngrams
        stop_words = set(self.analysis.stop_words)
        words = [m for m in WORD.finditer(text) if m.group() not in stop_words]
        counted = self._lexicon.stems([m.group() for m in words])
        for i in range(len(words)):
            for n in range(low, min(high, len(words) - i) + 1):
                yield words[i].start(), words[i + n - 1].end(), " ".join(counted[i : i + n])

    def _character_spans(self, text: str) -> Iterator[tuple[int, int, str]]:
        low, high = self.analysis.ngrams
        for word in SOLID.finditer(text):
            padded = f" {word.group()} "
            least = min(low, len(padded))  # a word shorter than the shortest n-gram counts whole
            for i in range(len(padded) - least + 1):
                for n in range(least, min(high, len(padded) - i) + 1):
                    # the padding stands at word.start() - 1 and word.end(), outside the word
                    start, end = max(word.start() + i - 1, word.start()), min(word.start() + i - 1 + n, word.end())
                    if start < end:
                        yield start, end, padded[i : i + n]


def cut_texts(texts: Sequence[str]) -> Iterator[slice]:
    """Cut texts into cut_texts of about `BLOCK` characters; a text is never cut.

    >>> list(cut_texts(["a" * 200_000] * 3))
    [slice(0, 2, None), slice(2, 3, None)]
    """
    sizes = np.fromiter(map(len, texts), dtype=np.int64, count=len(texts))
    return _cut_blocks(np.cumsum(sizes + TEXT_COST))


def _cut_blocks(ends: np.ndarray) -> Iterator[slice]:
    start = 0
    while start < ends.size:
        before = ends[start - 1] if start else 0
        stop = min(int(np.searchsorted(ends, before + BLOCK, side="left")) + 1, ends.size)
        yield slice(start, stop)
        start = stop


def fold_texts(
    texts: Sequence[str], letters: str = "word", lowercase: bool = True, strip_accents: bool = False
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return texts as bytes, where they end, and the table that lowercases what is not lowercased yet."""
    if strip_accents:
        texts, lowercase = [without_accents(t.lower() if lowercase else t) for t in texts], False
    elif lowercase and _has_irregular(texts):
        texts, lowercase = [t.lower() for t in texts], False
    raw, ends = encode_texts(texts)
    basic = raw.size == 0 or raw.max() < FOUR_BYTES
    return raw, ends, fold_table(letters, lowercase, BASIC_PLANE if basic else CODE_POINTS)


def _has_irregular(texts: Sequence[str]) -> bool:
    odd = [t for t in texts if not t.isascii()]
    return any(c in t for t in odd for c in irregular())
