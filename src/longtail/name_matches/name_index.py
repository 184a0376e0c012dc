"""All forms of all names by the stems of their words, as flat arrays that the search reads.

A term is a sequence of different stems; an entry says that a term is a form of the name of a label. Each term is kept
under its rarest stem, its anchor: a text is searched for the anchors of its words only.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from longtail.name_matches.name_forms import name_forms
from longtail.text import STOP_WORD, StemmedWords

MOST_SHARED = 100  # labels that may share a term: a name of more says nothing, and would cost time in every row


class Names(NamedTuple):
    """The names of labels: those of label l are texts[starts[l]:starts[l + 1]], the preferred one first."""

    texts: list[str]
    starts: np.ndarray  # int64 (n_labels + 1,)

    @property
    def labels(self) -> np.ndarray:
        """The label of each name."""
        return np.repeat(np.arange(self.starts.size - 1, dtype=np.int32), np.diff(self.starts))


class NameEntries(NamedTuple):
    """Forms of names: which term stands for which name."""

    term: np.ndarray  # int32 (n_entries,)
    label: np.ndarray  # int32
    name: np.ndarray  # int32, number of the name
    kind: np.ndarray  # int8
    words: np.ndarray  # int32, numbers of the words of each entry, as many as its term has stems
    starts: np.ndarray  # int64 (n_entries + 1,), first word of each

    @property
    def size(self) -> int:
        """The number of entries."""
        return self.term.size

    def plus(self, more: NameEntries, n_labels: int, n_names: int) -> NameEntries:
        """Return these entries and, after them, those of further labels and names."""
        return NameEntries(
            np.concatenate([self.term, more.term]),
            np.concatenate([self.label, more.label + np.int32(n_labels)]),
            np.concatenate([self.name, more.name + np.int32(n_names)]),
            np.concatenate([self.kind, more.kind]),
            np.concatenate([self.words, more.words]),
            np.concatenate([self.starts, self.starts[-1] + more.starts[1:]]),
        )

    def only(self, kept_labels: np.ndarray, kept_names: np.ndarray) -> NameEntries:
        """Return the entries of the labels that are kept, with new numbers of labels and names."""
        kept = kept_labels[self.label]
        lengths = np.diff(self.starts)
        return NameEntries(
            self.term[kept],
            (np.cumsum(kept_labels) - 1).astype(np.int32)[self.label[kept]],
            (np.cumsum(kept_names) - 1).astype(np.int32)[self.name[kept]],
            self.kind[kept],
            self.words[np.repeat(kept, lengths)],
            np.concatenate([[0], np.cumsum(lengths[kept])]).astype(np.int64),
        )


class Terms(NamedTuple):
    """Sequences of stems: term t is stems[starts[t]:starts[t + 1]]."""

    stems: np.ndarray  # int32
    starts: np.ndarray  # int64 (n_terms + 1,)

    @property
    def size(self) -> int:
        """The number of terms."""
        return self.starts.size - 1

    @property
    def lengths(self) -> np.ndarray:
        """How many stems each has."""
        return np.diff(self.starts).astype(np.int32)

    def tuples(self) -> list[tuple[int, ...]]:
        """Return each term as a tuple of stems."""
        stems, starts = self.stems.tolist(), self.starts.tolist()
        return [tuple(stems[a:b]) for a, b in pairwise(starts)]


class SearchIndex(NamedTuple):
    """What the search needs: terms by their anchors, and the entries of each term."""

    term_stems: np.ndarray  # int32
    term_starts: np.ndarray  # int64 (n_terms + 1,)
    anchor_at: np.ndarray  # int32 (n_terms,), which of its stems is the anchor
    phrase_only: np.ndarray  # bool (n_terms,), whether its words must stand together and in order
    anchored: np.ndarray  # int32 (at most n_terms,), terms by anchor, without those that too many labels share
    anchored_starts: np.ndarray  # int64 (n_stems + 1,)
    listed: np.ndarray  # int32 (n_entries,), entries by term
    listed_starts: np.ndarray  # int64 (n_terms + 1,)


def as_names(names: Sequence[Sequence[str]]) -> Names:
    """Return lists of names as one list."""
    texts = [name for listed in names for name in listed]
    starts = np.zeros(len(names) + 1, dtype=np.int64)
    np.cumsum([len(listed) for listed in names], out=starts[1:])
    return Names(texts, starts)


def make_entries(
    names: Names, words: StemmedWords, max_words: int, old: Terms | None = None
) -> tuple[Terms, NameEntries]:
    """Return the terms and entries of names; a form with more words than `max_words`, or none, is left out.

    With `old` terms, those of the names are numbered after them, unless they are among them.
    """
    labels, first = names.labels.tolist(), names.starts.tolist()
    forms = [
        (form, number)
        for number, name in enumerate(names.texts)
        for form in name_forms(name, number > first[labels[number]])
    ]
    found = words.learn([form.text for form, _ in forms])
    all_stems, all_words = found.stems.tolist(), found.words.tolist()
    known = {} if old is None else {term: number for number, term in enumerate(old.tuples())}
    best: dict[tuple[int, int], tuple[int, int, tuple[int, ...]]] = {}  # (label, term) -> kind, name, words
    begin = 0
    for (form, number), end in zip(forms, found.ends.tolist(), strict=True):
        pairs: dict[int, int] = {}
        for stem, word in zip(all_stems[begin:end], all_words[begin:end], strict=True):
            if stem != STOP_WORD:
                pairs.setdefault(stem, word)
        begin = end
        if not 0 < len(pairs) <= max_words:
            continue
        term = known.setdefault(tuple(pairs), len(known))
        kept = best.get((labels[number], term))
        if kept is None or form.kind < kept[0]:
            best[labels[number], term] = (form.kind, number, tuple(pairs.values()))
    return _as_terms(list(known)), _as_entries(best)


def _as_terms(known: list[tuple[int, ...]]) -> Terms:
    starts = np.zeros(len(known) + 1, dtype=np.int64)
    np.cumsum([len(term) for term in known], out=starts[1:])
    return Terms(np.array([stem for term in known for stem in term], dtype=np.int32), starts)


def _as_entries(best: dict[tuple[int, int], tuple[int, int, tuple[int, ...]]]) -> NameEntries:
    starts = np.zeros(len(best) + 1, dtype=np.int64)
    np.cumsum([len(words) for _, _, words in best.values()], out=starts[1:])
    return NameEntries(
        np.array([term for _, term in best], dtype=np.int32),
        np.array([label for label, _ in best], dtype=np.int32),
        np.array([name for _, name, _ in best.values()], dtype=np.int32),
        np.array([kind for kind, _, _ in best.values()], dtype=np.int8),
        np.array([word for _, _, words in best.values() for word in words], dtype=np.int32),
        starts,
    )


def search_index(terms: Terms, entries: NameEntries, n_stems: int, short: np.ndarray) -> SearchIndex:
    """Return terms by anchor and entries by term; `short` marks stems of one letter."""
    lengths = np.diff(terms.starts)
    often = np.bincount(terms.stems, minlength=n_stems)
    term_of = np.repeat(np.arange(terms.size), lengths)
    order = np.lexsort((np.arange(terms.stems.size), often[terms.stems], term_of))
    anchor = order[terms.starts[:-1]]  # of each term, the position of its rarest stem
    phrase_only = np.zeros(terms.size, dtype=bool)
    phrase_only[term_of[short[terms.stems]]] = True
    shared = np.bincount(entries.term, minlength=terms.size)
    sought = np.flatnonzero((shared > 0) & (shared <= MOST_SHARED))
    anchors = terms.stems[anchor[sought]]
    listed = np.argsort(entries.term, kind="stable").astype(np.int32)
    return SearchIndex(
        terms.stems,
        terms.starts,
        (anchor - terms.starts[:-1]).astype(np.int32),
        phrase_only,
        sought[np.argsort(anchors, kind="stable")].astype(np.int32),
        _starts(anchors, n_stems),
        listed,
        _starts(entries.term, terms.size),
    )


def _starts(groups: np.ndarray, n: int) -> np.ndarray:
    """Return where each of n groups begins in a list that is sorted by group."""
    return np.concatenate([[0], np.cumsum(np.bincount(groups, minlength=n))]).astype(np.int64)


def ambiguity(terms: Terms, entries: NameEntries) -> np.ndarray:
    """Return for each entry how many labels have a term of the same stems, in any order.

    >>> terms = Terms(np.array([4, 7, 7, 4], dtype=np.int32), np.array([0, 2, 4]))
    >>> labels = np.array([0, 1], dtype=np.int32)
    >>> zeros = np.zeros(2, dtype=np.int8)
    >>> ambiguity(terms, NameEntries(labels, labels, labels, zeros, labels, np.array([0, 2, 4]))).tolist()
    [2, 2]
    """
    groups: dict[tuple[int, ...], int] = {}
    numbers = [groups.setdefault(tuple(sorted(term)), len(groups)) for term in terms.tuples()]
    group = np.array(numbers, dtype=np.int64)
    pairs = np.unique(np.stack([group[entries.term], entries.label.astype(np.int64)]), axis=1)
    return np.bincount(pairs[0], minlength=len(groups))[group[entries.term]]
