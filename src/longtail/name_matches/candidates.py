"""Candidates of texts: the labels that each text names, with what was counted of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from longtail.name_matches.find_kernel import N_COLUMNS, PHRASE, count_candidates, find_names
from longtail.name_matches.name_index import NameEntries, SearchIndex
from longtail.text import STOP_WORD, StemmedWords, WordNumbers

FIRST_GUESS = 2  # matches per word that space is made for at first


class Candidates(NamedTuple):
    """Labels that rows name, row by row."""

    columns: np.ndarray  # int32 (n, N_COLUMNS), see find_kernel
    n_words: np.ndarray  # int32 (n_rows,), words of each row, without stop words


class Matches(NamedTuple):
    """Matches of terms in rows."""

    lines: np.ndarray  # int32 (n, 4): term, first and last position, grade
    ends: np.ndarray  # int64 (n_rows,)


class MatchSpans(NamedTuple):
    """Where a text names a label, in characters: one span, or one of each word where they stand apart."""

    spans: tuple[tuple[int, int], ...]
    entry: int
    grade: int


class NameSearch:
    """Finds names in texts."""

    entries: NameEntries
    index: SearchIndex
    n_labels: int
    window: int
    words: StemmedWords

    def __init__(
        self, words: StemmedWords, index: SearchIndex, entries: NameEntries, n_labels: int, window: int
    ) -> None:
        self.words, self.index, self.entries = words, index, entries
        self.n_labels, self.window = n_labels, window
        self._entries_of_term = np.diff(index.listed_starts)

    def content(self, texts: Sequence[str]) -> WordNumbers:
        """Return the words of texts as numbers, without stop words."""
        words, stems, ends = self.words.numbers(texts)
        keep = stems != STOP_WORD
        kept_before = np.concatenate([np.zeros(1, dtype=np.int64), np.cumsum(keep)])
        return WordNumbers(words[keep], stems[keep], kept_before[ends])

    def candidates(self, content: WordNumbers) -> Candidates:
        """Return the candidates of texts given by their words."""
        words, _, ends = content
        found = self.find(content)
        index, entries = self.index, self.entries
        starts = np.concatenate([np.zeros(1, dtype=np.int64), ends])[: ends.size]
        most = int(self._entries_of_term[found.lines[:, 0]].sum())
        out = np.empty((most, N_COLUMNS), dtype=np.int32)
        n = count_candidates(
            found.lines,
            found.ends,
            words,
            index.term_starts,
            index.listed,
            index.listed_starts,
            starts,
            entries.label,
            entries.kind,
            entries.words,
            entries.starts,
            self.n_labels,
            out,
        )
        return Candidates(out[:n], (ends - starts).astype(np.int32))

    def find(self, content: WordNumbers) -> Matches:
        """Return all matches of terms in rows."""
        index, capacity = self.index, FIRST_GUESS * content.stems.size
        while True:
            lines, found_ends = np.empty((capacity, 4), dtype=np.int32), np.zeros(content.ends.size, dtype=np.int64)
            n = find_names(
                content.stems,
                content.ends,
                self.window,
                index.term_stems,
                index.term_starts,
                index.anchor_at,
                index.phrase_only,
                index.anchored,
                index.anchored_starts,
                lines,
                found_ends,
            )
            if n <= capacity:
                return Matches(lines[:n], found_ends)
            capacity = n

    def spans(self, text: str, label: int) -> list[MatchSpans]:
        """Return where a text names a label."""
        words, stems, _ = self.words.numbers([text])
        kept = np.flatnonzero(stems != STOP_WORD)
        where, own = self.words.spans(text), stems[kept]
        found = self.find(WordNumbers(words[kept], own, np.array([kept.size], dtype=np.int64)))
        index, out = self.index, []
        for term, first, last, grade in found.lines.tolist():
            entries = index.listed[index.listed_starts[term] : index.listed_starts[term + 1]]
            for entry in entries[self.entries.label[entries] == label].tolist():
                spots = [(first, last)]
                if grade < PHRASE:
                    wanted = index.term_stems[index.term_starts[term] : index.term_starts[term + 1]]
                    spots = [(at, at) for at in range(first, last + 1) if own[at] in wanted]
                spans = tuple((where[kept[a]][0], where[kept[b]][1]) for a, b in spots)
                out.append(MatchSpans(spans, entry, grade))
        return out
