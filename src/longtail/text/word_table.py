"""A table that numbers words, and lists of strings as one UTF-8 array."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from longtail.text.hash_table import make_slots, refill
from longtail.text.tokenise import word_ids
from longtail.text.unicode_tables import WORD, fold_table


class PackedTerms(NamedTuple):
    """Many terms as one UTF-8 array: term t is raw[offsets[t]:offsets[t + 1]]."""

    raw: np.ndarray  # uint8
    offsets: np.ndarray  # int64 (n + 1,)

    def strings(self) -> list[str]:
        """Return the terms as strings."""
        raw, offsets = self.raw.tobytes(), self.offsets.tolist()
        return [raw[a:b].decode("utf-8", "surrogatepass") for a, b in itertools.pairwise(offsets)]


class WordTable:
    """Words numbered in the order in which they are met; stop words come first, so that one comparison finds them.

    >>> table = WordTable()
    >>> table.ids(*encode_texts(["red red car"]), fold_table("any", False), 1, 0, True)[0].tolist()
    [0, 0, 1]
    """

    n_words: int
    n_skip: int  # the first words, which are stop words

    def __init__(self, stop_words: Sequence[str] = ()) -> None:
        self.n_words = self.n_skip = 0
        self.starts: np.ndarray = np.zeros(1, dtype=np.int64)  # word w is arena[starts[w]:starts[w + 1]]
        self.arena: np.ndarray = np.empty(0, dtype=np.uint8)
        self._slots = make_slots(0)
        if stop_words:
            reachable = [w for w in stop_words if WORD.fullmatch(w)]
            self.ids(*encode_texts(reachable), fold_table("any", False), 1, 0, True)
            self.n_skip = self.n_words

    def ids(
        self, text: np.ndarray, ends: np.ndarray, fold: np.ndarray, shortest: int, n_skip: int, grow: bool
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return the numbers of the words of some texts and where each text ends among them.

        Words below `n_skip` are left out; a word that is new joins the table with `grow`, else it is -1.
        """
        id_ends = np.zeros(ends.size, dtype=np.int64)
        capacity = (text.size + ends.size) // (shortest + 1)
        ids = np.empty(capacity, dtype=np.int32)
        if grow:
            self._reserve(capacity, 2 * text.size)
        self.n_words = word_ids(
            text,
            ends,
            fold,
            shortest,
            n_skip,
            grow,
            self._slots,
            self.starts,
            self.arena,
            self.n_words,
            ids,
            id_ends,
        )
        return ids[: id_ends[-1] if ends.size else 0], id_ends

    def word(self, number: int) -> str:
        """Return one word as a string."""
        return self.arena[self.starts[number] : self.starts[number + 1]].tobytes().decode("utf-8", "surrogatepass")

    def words(self, start: int = 0) -> PackedTerms:
        """Return the words from a number on, as one array."""
        begin, end = int(self.starts[start]), int(self.starts[self.n_words])
        return PackedTerms(self.arena[begin:end], self.starts[start : self.n_words + 1] - begin)

    def _reserve(self, n_new: int, n_bytes: int) -> None:
        """Make space for so many new words of so many bytes in all."""
        capacity = self.n_words + n_new
        if 2 * capacity > len(self._slots):
            self._slots = larger_table(self._slots, capacity)
        self.starts = grown(self.starts, capacity + 1)
        self.arena = grown(self.arena, int(self.starts[self.n_words]) + n_bytes + 8)


def encode_texts(texts: Sequence[str]) -> tuple[np.ndarray, np.ndarray]:
    """Return the texts as UTF-8, end to end, and where each ends."""
    try:
        parts = list(map(str.encode, texts))
    except UnicodeEncodeError:  # lone surrogates
        parts = [t.encode("utf-8", "surrogatepass") for t in texts]
    sizes = np.fromiter(map(len, parts), dtype=np.int64, count=len(parts))
    return np.frombuffer(b"".join(parts), dtype=np.uint8), np.cumsum(sizes)


def pack_terms(terms: Sequence[str]) -> PackedTerms:
    """Return strings as one array."""
    raw, ends = encode_texts(terms)
    return PackedTerms(raw, np.concatenate([np.zeros(1, dtype=np.int64), ends]))


def grown(array: np.ndarray, size: int, fill: int = 0) -> np.ndarray:
    """Return an array of at least `size` entries that starts with the old one; it grows by half at least."""
    if array.size >= size:
        return array
    out = np.full(max(size, array.size * 3 // 2), fill, dtype=array.dtype)
    out[: array.size] = array
    return out


def larger_table(slots: np.ndarray, n_entries: int) -> np.ndarray:
    """Return a table with the same entries and space for so many."""
    out = make_slots(n_entries)
    refill(slots, out)
    return out
