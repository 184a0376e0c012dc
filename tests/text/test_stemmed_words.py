"""Words and stems of texts as numbers of a fixed list of names: the same as in plain Python, however much is read."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.text.test_tfidf import NOISE

from longtail.text import STOP_WORD, UNKNOWN, StemmedWords, stem_rules, stemmed_words
from longtail.text.light_stems import light_stems
from longtail.text.stop_words import stop_words_of

NAMES = ["Libraries of the world", "vitamin C", "fast cars", "İx ΣΑΣ"]
TEXTS = st.lists(NOISE | st.lists(st.sampled_from(["the", "library", "cars", "c", "ΣΑΣ", "x1s"])).map(" ".join))


def stems_plain(texts: list[str]) -> list[list[int]]:
    """Plain twin of `StemmedWords.numbers`."""
    stop, known = stop_words_of("english"), {}
    words = [stemmed_words.WORDS.findall(text.lower()) for text in [*NAMES, *texts]]
    for text in words[: len(NAMES)]:
        for word in text:
            if word not in stop:
                known.setdefault(light_stems([word])[0], len(known))
    return [
        [STOP_WORD if word in stop else known.get(light_stems([word])[0], UNKNOWN) for word in text]
        for text in words[len(NAMES) :]
    ]


@given(TEXTS)
@settings(deadline=None, max_examples=60)
def test_numbers_are_those_of_plain_python(texts):
    table = StemmedWords("english", "light")
    table.learn(NAMES)
    words, stems, ends = table.numbers(texts)
    found = [part.tolist() for part in np.split(stems, ends[:-1])] if texts else []
    assert found == stems_plain(texts)
    assert words.size == stems.size
    for text, numbers in zip(texts, found, strict=True):
        assert len(table.spans(text)) == len(numbers)


def test_words_of_names_keep_their_numbers_when_others_are_forgotten(monkeypatch):
    monkeypatch.setattr(stemmed_words, "MOST_WORDS", 5)
    table = StemmedWords("english", "light")
    learned = table.learn(NAMES)
    before = table.numbers(["one two three four five six seven libraries"])
    after = table.numbers(["six libraries of vitamin c"])
    assert after.words[1] == learned.words[0] == before.words[-1]
    assert after.stems.tolist() == [UNKNOWN, 0, STOP_WORD, 2, 3]
    more = table.learn(["seven dwarfs"])
    assert more.stems.tolist() == [table.n_stems - 2, table.n_stems - 1]
    assert table.numbers(["vitamins"]).stems.tolist() == [2]


def test_a_saved_table_is_the_same_without_cutting_a_word(monkeypatch):
    table = StemmedWords("english", "light")
    table.learn(NAMES)
    table.numbers(["something else"])
    monkeypatch.setattr(StemmedWords, "_cut", lambda self, words: pytest.fail("a word is cut"))
    again = StemmedWords.restored("english", "light", *table.saved())
    assert again.numbers(["fast vitamin"]).stems.tolist() == [4, 2]
    short = again.short_stems()
    assert np.flatnonzero(short).tolist() == [3, 6, 7]  # "c", and the two halves of "İx" in small letters
    assert short.tolist() == table.short_stems().tolist()


def test_rules_follow_what_is_installed(monkeypatch):
    assert stem_rules(None) == "none"
    monkeypatch.setattr(stemmed_words.importlib.util, "find_spec", lambda name: None)
    assert [stem_rules("english"), stem_rules("german")] == ["light", "none"]
