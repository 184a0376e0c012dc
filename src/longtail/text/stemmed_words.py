"""Texts as numbers of their words and of the stems of these, among the words and stems of a fixed list of names."""

from __future__ import annotations

import importlib.util
import re
import threading
from collections.abc import Sequence
from typing import NamedTuple, Self

import numpy as np

from longtail.text.lexicon import fold_texts
from longtail.text.light_stems import light_stems
from longtail.text.stemmer import stemmer_of
from longtail.text.stop_words import stop_words_of
from longtail.text.unicode_tables import fold_table, fold_text
from longtail.text.word_table import PackedTerms, WordTable, encode_texts, grown

UNKNOWN = -1  # in place of the number of a stem
STOP_WORD = -2  # in place of the number of a stem
MOST_WORDS = 1_000_000  # words beyond those of names that are remembered between texts
SHORTEST = 1  # letters of a word: "vitamin C" has two words
WORDS = re.compile(r"\w+")
RULES = ("snowball", "light", "none")
_LOCK = threading.Lock()  # a table is changed by one thread at a time; one lock for all keeps tables copyable


class WordNumbers(NamedTuple):
    """The words of some texts, one after the other."""

    words: np.ndarray  # int32 (n,), the number of each; those of names come first
    stems: np.ndarray  # int32 (n,), UNKNOWN where no name has the stem, STOP_WORD
    ends: np.ndarray  # int64 (n_texts,), where each text ends


def stem_rules(language: str | None) -> str:
    """Return the rules by which words of a language are cut here: those of a package, if it is installed, or our own.

    >>> stem_rules(None)
    'none'
    """
    if language is None:
        return "none"
    if importlib.util.find_spec("snowballstemmer") is not None:
        return "snowball"
    return "light" if language == "english" else "none"


class StemmedWords:
    """Numbers for the words of names and for their stems, and texts as such numbers.

    Parameters
    ----------
    language : str or None
        The language whose stop words are marked and whose rules cut a word to its stem.
    rules : {"snowball", "light", "none"}
        The rules.

    Examples
    --------
    >>> table = StemmedWords("english", "light")
    >>> table.learn(["fish farms"]).stems.tolist()
    [0, 1]
    >>> table.numbers(["the farm of a fish"]).stems.tolist()
    [-2, 1, -2, -1, 0]
    """

    language: str | None
    rules: str

    def __init__(self, language: str | None, rules: str) -> None:
        self.language, self.rules = language, rules
        self._stop_words = frozenset() if language is None else frozenset(stop_words_of(language))
        self._stems = WordTable()
        self._words = WordTable()
        self._stem_of = np.empty(0, dtype=np.int32)
        self.n_words: int = 0  # of names

    @property
    def n_stems(self) -> int:
        """The number of stems of names."""
        return self._stems.n_words

    def short_stems(self) -> np.ndarray:
        """Say which stems have one character only."""
        raw, offsets = self._stems.words()
        begun = np.concatenate([[0], np.cumsum((raw & 0xC0) != 0x80)])  # characters that begin before each byte
        return np.diff(begun[offsets]) == 1

    def learn(self, names: Sequence[str]) -> WordNumbers:
        """Give numbers to the words of names and to their stems, and return the names as numbers."""
        with _LOCK:
            self._forget()
            found = self._numbers(names, grow=True)
            self.n_words = self._words.n_words
            return found

    def numbers(self, texts: Sequence[str]) -> WordNumbers:
        """Return texts as numbers."""
        with _LOCK:
            found = self._numbers(texts, grow=False)
            if self._words.n_words > self.n_words + MOST_WORDS:
                self._forget()
            return found

    def spans(self, text: str) -> list[tuple[int, int]]:
        """Return where the words of a text stand in it, as many as it has numbers."""
        folded, origin = fold_text(text, True, False)
        found = [match.span() for match in WORDS.finditer(folded)]
        return found if origin is None else [(origin[a], origin[b - 1] + 1) for a, b in found]

    def saved(self) -> tuple[PackedTerms, PackedTerms, np.ndarray]:
        """Return the words of names, the stems, and the stem of each word."""
        with _LOCK:
            self._forget()
            return self._words.words(), self._stems.words(), self._stem_of[: self.n_words].copy()

    def copied(self) -> Self:
        """Return a table with the same names that can learn others on its own."""
        return self.restored(self.language, self.rules, *self.saved())

    @classmethod
    def restored(
        cls, language: str | None, rules: str, words: PackedTerms, stems: PackedTerms, stem_of: np.ndarray
    ) -> Self:
        """Return the table that was saved; no word is cut for it."""
        out = cls(language, rules)
        _insert(out._stems, stems)
        _insert(out._words, words)
        out._stem_of = np.array(stem_of, dtype=np.int32)
        out.n_words = out._words.n_words
        return out

    def _numbers(self, texts: Sequence[str], grow: bool) -> WordNumbers:
        """Return texts as numbers; with `grow`, stems that are new get a number."""
        if self.rules == "snowball" and self.language is not None:
            stemmer_of(self.language)  # refuses before anything is changed
        before = self._words.n_words
        ids, ends = self._words.ids(*fold_texts(texts), SHORTEST, 0, True)
        if self._words.n_words > before:
            new = self._words.words(before).strings()
            self._stem_of = grown(self._stem_of, self._words.n_words, UNKNOWN)
            self._stem_of[before : self._words.n_words] = self._stem_numbers(new, grow)
        return WordNumbers(ids, self._stem_of[ids], ends)

    def _stem_numbers(self, words: list[str], grow: bool) -> np.ndarray:
        """Return the numbers of the stems of words."""
        stop = np.fromiter((word in self._stop_words for word in words), dtype=bool, count=len(words))
        kept = [word for word, is_stop in zip(words, stop.tolist(), strict=True) if not is_stop]
        out = np.full(len(words), STOP_WORD, dtype=np.int32)
        out[~stop] = self._stems.ids(*encode_texts(self._cut(kept)), fold_table("any", False), 1, 0, grow)[0]
        return out

    def _cut(self, words: list[str]) -> list[str]:
        """Return the stems of words."""
        if self.rules == "none" or self.language is None:
            return words
        return light_stems(words) if self.rules == "light" else stemmer_of(self.language).stems(words)

    def _forget(self) -> None:
        """Forget the words of texts and keep those of names."""
        if self._words.n_words == self.n_words:
            return
        words = self._words.words()
        kept = PackedTerms(words.raw[: words.offsets[self.n_words]].copy(), words.offsets[: self.n_words + 1].copy())
        self._words = WordTable()
        _insert(self._words, kept)
        self._stem_of = self._stem_of[: self.n_words].copy()


def _insert(table: WordTable, words: PackedTerms) -> None:
    """Give words the numbers of their order in an empty table."""
    raw = words.raw.view()
    raw.flags.writeable = False  # as the bytes of texts are: the kernels need compiling only once
    table.ids(raw, words.offsets[1:], fold_table("any", False), 1, 0, True)
