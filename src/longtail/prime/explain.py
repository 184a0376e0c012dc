"""Word weights of a text for a label: how much its score falls without each word."""

from __future__ import annotations

import re
from collections.abc import Callable

import numpy as np

from longtail.facts import WordFacts

WORD = re.compile(r"\w+")


def word_weights(label_scores: Callable[[list[str]], np.ndarray], text: str, max_words: int) -> list[list[WordFacts]]:
    """Return for each label the words of a text, strongest first: `word`, `spans` and `weight`.

    ::

        weight(word) = score(text) - score(text without word)

    An encoder is not linear, so the weights do not add up to the score. `label_scores` returns the scores of the labels
    asked about (n_texts, n_labels); only the first `max_words` words are tried, those the encoder reads.

    >>> count = lambda texts: np.array([[text.count("a")] for text in texts])
    >>> [(entry["word"], entry["weight"]) for entry in word_weights(count, "aa b", 128)[0]]
    [('aa', 2.0), ('b', 0.0)]
    """
    spans: dict[str, list[list[int]]] = {}
    for match in list(WORD.finditer(text))[:max_words]:
        spans.setdefault(match.group().lower(), []).append([match.start(), match.end()])
    words = list(spans)
    scores = label_scores([text, *(_without(text, spans[word]) for word in words)])
    out: list[list[WordFacts]] = []
    for lost in (scores[0] - scores[1:]).T:
        order = np.argsort(-np.abs(lost), kind="stable")
        out.append([{"word": words[i], "spans": spans[words[i]], "weight": float(lost[i])} for i in order])
    return out


def _without(text: str, spans: list[list[int]]) -> str:
    for start, end in reversed(spans):
        text = text[:start] + text[end:]
    return text
