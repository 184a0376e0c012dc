"""Words as texts write them, and the stem that each counts as.

A text's words are numbered as they are written; the stem of a number is one entry of an array. So a word is cut to its
stem once, when it is first met, and a text costs little more than without stems.
"""

from __future__ import annotations

import threading
from typing import NamedTuple

import numpy as np

from longtail.text.stemmer import stemmer_of
from longtail.text.string_arrays import string_order
from longtail.text.unicode_tables import SHORTEST_WORD, fold_table
from longtail.text.word_table import PackedTerms, WordTable, encode_texts, grown, pack_terms

MOST_FORMS = 1_000_000  # words beyond those learned that are remembered while texts are tagged
_LOCK = threading.Lock()  # a table is changed by one thread at a time; one lock for all keeps features copyable


class KnownForms(NamedTuple):
    """Words as they were written in the texts learned from, and the number of the stem of each.

    Of the forms of one stem, the first is the one shown to people: the most frequent.
    """

    words: PackedTerms
    stems: np.ndarray  # int32 (n_forms,)


class WordForms:
    """The words of texts as they are written, and the number of each one's stem in a table of stems.

    Parameters
    ----------
    language : str
        The language whose rules cut a word to its stem.
    stop_words : tuple of str
        Words, as written, to leave out.
    stems : WordTable
        Numbers the stems.
    """

    counts: np.ndarray
    language: str
    stems: WordTable
    stop_words: tuple[str, ...]

    def __init__(self, language: str, stop_words: tuple[str, ...], stems: WordTable) -> None:
        self.language, self.stop_words, self.stems = language, stop_words, stems
        self.known: KnownForms | None = None
        self._restart()

    def _restart(self) -> None:
        """Forget all words but the stop words and those learned."""
        self._words = WordTable(self.stop_words)
        self._stem_of = np.full(self._words.n_words, -1, dtype=np.int32)
        self._n_stemmed = self._words.n_words
        self.counts = np.zeros(self._words.n_words, dtype=np.int64)
        if self.known is not None:
            raw, offsets = self.known.words
            self._words.ids(raw, offsets[1:], fold_table("any", False), 1, 0, True)  # in order: no two are the same
            self._stem_of = np.concatenate([self._stem_of, self.known.stems])
            self._n_stemmed = self._words.n_words

    def learn(self, known: KnownForms) -> None:
        """Take over forms with their stems, so that these words need no rules."""
        self.known = known
        self._restart()

    def ids(self, text: np.ndarray, ends: np.ndarray, fold: np.ndarray, grow: bool) -> tuple[np.ndarray, np.ndarray]:
        """Return the numbers of the stems of some texts' words, and where each text ends; -1: an unknown stem.

        With `grow`, stems that are new join the table of stems, and words are counted.
        """
        stemmer_of(self.language)  # refuses before anything is changed
        with _LOCK:
            words = self._words
            ids, id_ends = words.ids(text, ends, fold, SHORTEST_WORD, words.n_skip, True)
            self._stem_new_words(grow)
            if grow:
                self.counts = grown(self.counts, words.n_words)
                self.counts[: words.n_words] += np.bincount(ids, minlength=words.n_words)
            stem_of = self._stem_of
            if not grow and words.n_words > MOST_FORMS + (0 if self.known is None else self.known.stems.size):
                self._restart()
        return stem_of[ids], id_ends

    def add(self, other: WordForms) -> None:
        """Add the words and counts of texts that were counted elsewhere."""
        raw, offsets = other._words.words()
        with _LOCK:
            ids = self._words.ids(raw, offsets[1:], fold_table("any", False), 1, 0, True)[0]
            self._stem_new_words(True)
            self.counts = grown(self.counts, self._words.n_words)
            self.counts[ids] += other.counts[: ids.size]

    def _stem_new_words(self, grow: bool) -> None:
        """Number the stems of words that came since the last time."""
        n_words = self._words.n_words
        if n_words == self._n_stemmed:
            return
        new = stemmer_of(self.language).stems(self._words.words(self._n_stemmed).strings())
        found = self.stems.ids(*encode_texts(new), fold_table("any", False), 1, 0, grow)[0]
        self._stem_of = grown(self._stem_of, n_words, -1)
        self._stem_of[self._n_stemmed : n_words] = found
        self._n_stemmed = n_words

    def forms_of(self, stems: WordTable) -> KnownForms:
        """Return the words whose stems another table has too, numbered as there: by stem, the most frequent first."""
        first, words = self._words.n_skip, self._words.words(self._words.n_skip)
        own = self.stems.words()
        number = stems.ids(own.raw, own.offsets[1:], fold_table("any", False), 1, 0, False)[0]
        stem = number[self._stem_of[first : self._n_stemmed]]
        order = string_order(*words)
        order = order[np.lexsort((-self.counts[first : self._n_stemmed][order], stem[order]))]  # ties: by the alphabet
        order = order[stem[order] >= 0]
        listed = words.strings()
        return KnownForms(pack_terms([listed[i] for i in order]), stem[order].astype(np.int32))


def joined(old: KnownForms, new: KnownForms) -> KnownForms:
    """Return the forms of two lists, those of the first before the words that only the second has."""
    known = set(old.words.strings())
    kept = [
        (word, stem) for word, stem in zip(new.words.strings(), new.stems.tolist(), strict=True) if word not in known
    ]
    words = pack_terms([*old.words.strings(), *(word for word, _ in kept)])
    return KnownForms(words, np.array([*old.stems.tolist(), *(stem for _, stem in kept)], dtype=np.int32))
