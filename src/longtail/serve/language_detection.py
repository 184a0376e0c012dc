"""Which language a text is in, by the word lists of the package simplemma, as Annif does it."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from longtail.errors import MissingExtraError

LANGUAGES_AT_ONCE = 5  # and so many word lists are kept in memory


class UnsupportedLanguage(ValueError):
    """A language that there is no word list of."""


def detect_language(text: str, languages: tuple[str, ...]) -> dict[str | None, float]:
    """Return the share of the words that each language knows, most first; None stands for no language."""
    try:
        shares = _detector(languages).proportion_in_each_language(text)
    except ValueError as error:
        raise UnsupportedLanguage(str(error)) from error
    ranked = sorted(shares.items(), key=lambda pair: pair[1], reverse=True)
    return {None if language == "unk" else language: float(share) for language, share in ranked}


def _detector(languages: tuple[str, ...]) -> Any:
    """Return a detector of some languages."""
    strategy = _strategy()
    from simplemma import LanguageDetector

    return LanguageDetector(languages, lemmatization_strategy=strategy)


@lru_cache(maxsize=1)
def _strategy() -> Any:
    """Return what looks words up, with the word lists that it has read."""
    try:
        from simplemma.strategies import DefaultStrategy
        from simplemma.strategies.dictionaries import DefaultDictionaryFactory
    except ImportError:
        raise MissingExtraError("detecting the language of a text", "simplemma", "language") from None
    return DefaultStrategy(dictionary_factory=DefaultDictionaryFactory(cache_max_size=LANGUAGES_AT_ONCE))
