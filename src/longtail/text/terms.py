"""A fixed list of terms: which columns a text has, and where."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Sequence

import numpy as np

from longtail.text.lexicon import Analysis, Counts, Lexicon, Packed
from longtail.text.unicode_tables import WORD, fold_text

SOLID = re.compile(r"\S+")


class Vocabulary:
    """Terms in the order of their columns, and the lexicon that finds them in texts.

    >>> terms = Packed(np.frombuffer(b"appleredred apple", dtype=np.uint8), np.array([0, 5, 8, 17]))
    >>> Vocabulary(terms, Analysis(ngrams=(1, 2))).columns(["red", "blue", "red apple"]).tolist()
    [1, -1, 2]
    """

    def __init__(self, packed: Packed, analysis: Analysis) -> None:
        self.packed, self.analysis = packed, analysis
        self._lexicon = Lexicon(analysis)
        nodes = self._lexicon.add(packed)
        self.column = np.full(self._lexicon.n_nodes, -1, dtype=np.int32)  # of each node of the lexicon
        self.column[nodes] = np.arange(nodes.size, dtype=np.int32)
        self._terms: list[str] | None = None

    def __len__(self) -> int:
        return self.packed.offsets.size - 1

    @property
    def terms(self) -> list[str]:
        """The terms as strings, made when first asked for: a model that only predicts never needs them."""
        if self._terms is None:
            raw, offsets = self.packed.raw.tobytes(), self.packed.offsets.tolist()
            self._terms = [raw[a:b].decode("utf-8", "surrogatepass") for a, b in itertools.pairwise(offsets)]
        return self._terms

    def count(self, texts: Sequence[str]) -> Counts:
        """Count the known n-grams of some texts, by node."""
        return self._lexicon.count(texts, grow=False)

    def columns(self, terms: Sequence[str]) -> np.ndarray:
        """Return the column of each term, or -1."""
        nodes = self._lexicon.find(terms)
        if self.analysis.words:  # the lexicon sees words only, not how many spaces stand between them
            loose = np.array([t != t.strip(" ") or "  " in t for t in terms], dtype=bool)
            nodes[loose] = -1
        return np.where(nodes >= 0, self.column[nodes], -1).astype(np.int32)

    def locate(self, text: str) -> list[tuple[int, int, int]]:
        """Return where a text has which terms, as (start, end, column) in characters of the text as given."""
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
        for i in range(len(words)):
            for n in range(low, min(high, len(words) - i) + 1):
                gram = words[i : i + n]
                yield gram[0].start(), gram[-1].end(), " ".join(m.group() for m in gram)

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


def check_terms(packed: Packed) -> None:
    """Refuse terms that are empty, overlap or are not UTF-8, before a kernel reads them; raises ValueError."""
    raw, offsets = packed
    if raw.dtype != np.uint8 or raw.ndim != 1 or offsets.ndim != 1 or offsets.size < 2:
        raise ValueError("the vocabulary is not an array of bytes with offsets")
    if offsets[0] != 0 or offsets[-1] != raw.size or np.diff(offsets).min() < 1:
        raise ValueError("the vocabulary's offsets do not fit its bytes")
    raw.tobytes().decode("utf-8", "surrogatepass")
    if ((raw[offsets[:-1]] & 0xC0) == 0x80).any():
        raise ValueError("a term of the vocabulary starts inside a character")
