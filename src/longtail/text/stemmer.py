"""Stems of words by Snowball's rules, through the package snowballstemmer; each distinct word is cut once."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from functools import lru_cache

from longtail.errors import MissingExtraError

LANGUAGES = (
    "danish",
    "dutch",
    "english",
    "finnish",
    "french",
    "german",
    "hungarian",
    "italian",
    "norwegian",
    "portuguese",
    "romanian",
    "russian",
    "spanish",
    "swedish",
    "turkish",
)
MOST_KEPT = 500_000  # words whose stems are remembered
LONGEST_STEMMED = 100  # characters


class Stemmer:
    """Cuts words of one language to their stems, and remembers them; for many threads.

    >>> stemmer_of("english").stems(["libraries", "library"])  # doctest: +NEEDS_STEM
    ['librari', 'librari']
    """

    def __init__(self, language: str) -> None:
        try:
            import snowballstemmer
        except ImportError as error:
            raise MissingExtraError(f"The analyzer 'snowball:{language}'", "snowballstemmer", "stem") from error
        self._stem = snowballstemmer.stemmer(language).stemWord
        self._kept: dict[str, str] = {}
        self._lock = threading.Lock()  # the package's stemmers hold the word they are at

    def stems(self, words: Sequence[str]) -> list[str]:
        """Return the stem of each word; a word of which nothing would be left stays."""
        kept = self._kept
        with self._lock:
            if len(kept) > MOST_KEPT:
                kept.clear()
            for word in words:
                if word not in kept:
                    kept[word] = (self._stem(word) or word) if _has_stem(word) else word
            return [kept[word] for word in words]


def _has_stem(word: str) -> bool:
    """Say whether a word can have a stem: numbers, codes and very long strings of letters have none."""
    return word.isalpha() and len(word) <= LONGEST_STEMMED


@lru_cache(maxsize=len(LANGUAGES))
def stemmer_of(language: str) -> Stemmer:
    """Return the stemmer of a language, the same one each time."""
    return Stemmer(language)
