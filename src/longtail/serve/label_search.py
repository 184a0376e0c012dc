"""Find labels while someone types: by the beginnings of words of their names, folded, the most frequent first.

All names are cut into words; the distinct words stand in one sorted array. The words that begin with some letters are
a run of that array, found by two binary searches, and the names that hold them a run of another one, since the names
of words stand in the order of words. So a keystroke costs two searches and one pass over marks of the names.
"""

from __future__ import annotations

import re
import unicodedata
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

WORD = re.compile(r"[^\W_]+")
MOST_WORDS = 8  # of what is typed, that are looked at
MOST_LETTERS = 200
MOST_ALIKE = 2000  # names as long as what is typed, that are compared with it


@dataclass(frozen=True)
class Found:
    """Labels that were found: how many there are, and those asked for, each with the name that matched."""

    total: int
    labels: list[tuple[int, str]]


def folded(text: str) -> str:
    """Return a text without capitals, accents and other marks.

    >>> folded("Müsli CAFÉ Straße")
    'musli cafe strasse'
    """
    if text.isascii():
        return text.lower()
    plain = unicodedata.normalize("NFKD", text.casefold())
    return "".join(letter for letter in plain if not unicodedata.combining(letter)).casefold()


def words_of(text: str) -> list[str]:
    """Return the folded words of a text.

    >>> words_of("Föhn-Wind (meteorology)")
    ['fohn', 'wind', 'meteorology']
    """
    return WORD.findall(folded(text))


class LabelSearch:
    """An index of the names of labels.

    Parameters
    ----------
    names : iterable of (int, str)
        Number of a label and one of its names; the first name of a label is the one that people see.
    counts : array of shape (n_labels,)
        How often each label occurs: frequent ones come first.
    ids : sequence of str
        What machines call the labels; of URIs the end is looked for.

    Examples
    --------
    >>> search = LabelSearch([(0, "apple tree"), (1, "Äpfel"), (1, "apples")], np.array([3, 9]), ["a1", "a2"])
    >>> search.find("app").labels
    [(1, 'apples'), (0, 'apple tree')]
    >>> search.find("tree a").total
    1
    """

    postings: np.ndarray
    starts: np.ndarray
    words: list[str]

    def __init__(self, names: Iterable[tuple[int, str]], counts: np.ndarray, ids: Sequence[str]) -> None:
        counts = np.asarray(counts)
        # labels, frequent ones first
        self.by_rank: np.ndarray = np.lexsort((np.arange(counts.size), -counts)).astype(np.int32)
        self.ids = ids
        self._names: list[str] = []
        labels: list[int] = []
        lengths: list[int] = []
        where: dict[str, int] = {}  # words by number, in the order of their first use
        starts, of_words = [0], []
        for label, name in _with_ids(names, ids):
            plain = folded(name)
            self._names.append(name)
            labels.append(label)
            lengths.append(len(plain))
            for word in {*WORD.findall(plain)}:
                of_words.append(where.setdefault(word, len(where)))
            starts.append(len(of_words))
        rank = np.empty(counts.size, dtype=np.int32)
        rank[self.by_rank] = np.arange(counts.size, dtype=np.int32)
        ranks = rank[np.array(labels, dtype=np.int64)]
        # names in the order of their labels
        self.name_at: np.ndarray = np.argsort(ranks, kind="stable").astype(np.int32)
        self.rank_of_name: np.ndarray = ranks[self.name_at]
        self.lengths: np.ndarray = np.array(lengths, dtype=np.int32)[self.name_at]
        self.first_name: np.ndarray = np.searchsorted(self.rank_of_name, np.arange(counts.size, dtype=np.int32))
        self._sort(where, np.diff(starts), np.array(of_words, dtype=np.int32))

    def _sort(self, where: dict[str, int], n_words: np.ndarray, of_words: np.ndarray) -> None:
        """Put words in order, and the names of each word one after the other."""
        self.words = sorted(where)
        place = np.empty(len(where), dtype=np.int32)
        place[[where[word] for word in self.words]] = np.arange(len(where), dtype=np.int32)
        position = np.empty(self.name_at.size, dtype=np.int32)
        position[self.name_at] = np.arange(self.name_at.size, dtype=np.int32)
        of_name = np.repeat(position, n_words)
        places = place[of_words]
        self.postings = of_name[np.argsort(places, kind="stable")]
        self.starts = np.concatenate([[0], np.cumsum(np.bincount(places, minlength=len(where)))])

    def find(self, typed: str, limit: int = 20, offset: int = 0) -> Found:
        """Return the labels with a name that holds words beginning with those that were typed, frequent ones first.

        A label that is called exactly what was typed comes before all others. Nothing typed finds every label.
        """
        typed = typed[:MOST_LETTERS].strip()
        words = words_of(typed)[:MOST_WORDS]
        if not words:
            ranks = np.arange(0 if typed else self.by_rank.size)
            return Found(ranks.size, self._page(self.first_name[ranks[offset : offset + limit]]))
        marks = self._marked(words[0])
        for word in words[1:]:
            marks &= self._marked(word)
        names = np.flatnonzero(marks)
        firsts = names[
            np.flatnonzero(np.diff(self.rank_of_name[names], prepend=-1))
        ]  # the first name of every label that matches
        exact = self._exact(names, folded(typed))
        if exact.size:
            others = firsts[~np.isin(self.rank_of_name[firsts], self.rank_of_name[exact])]
            return Found(firsts.size, self._page(np.concatenate([exact, others])[offset : offset + limit]))
        return Found(firsts.size, self._page(firsts[offset : offset + limit]))

    def _marked(self, prefix: str) -> np.ndarray:
        """Return which names hold a word that begins so."""
        low = bisect_left(self.words, prefix)
        high = bisect_left(self.words, prefix + "\U0010ffff", low)
        marks = np.zeros(self.name_at.size, dtype=np.bool_)
        marks[self.postings[self.starts[low] : self.starts[high]]] = True
        return marks

    def _exact(self, names: np.ndarray, whole: str) -> np.ndarray:
        """Return the names that are what was typed, one of each label."""
        alike = names[self.lengths[names] == len(whole)][:MOST_ALIKE]
        same = [at for at in alike.tolist() if folded(self._names[self.name_at[at]]) == whole]
        return np.array(same, dtype=names.dtype)[np.flatnonzero(np.diff(self.rank_of_name[same], prepend=-1))]

    def _page(self, names: np.ndarray) -> list[tuple[int, str]]:
        """Return labels and names at some positions."""
        labels = self.by_rank[self.rank_of_name[names]]
        return [
            (label, self._names[at]) for label, at in zip(labels.tolist(), self.name_at[names].tolist(), strict=True)
        ]


def _with_ids(names: Iterable[tuple[int, str]], ids: Sequence[str]) -> Iterator[tuple[int, str]]:
    """Yield the names of labels and, after them, what machines call those that have another name; ends of URIs only."""
    named = np.zeros(len(ids), dtype=np.bool_)
    for label, name in names:
        named[label] |= name == ids[label]
        yield label, name
    for label in np.flatnonzero(~named).tolist():
        id = ids[label]
        yield label, id.rstrip("/#").replace("#", "/").rpartition("/")[2] or id
