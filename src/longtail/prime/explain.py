"""Which words of a text speak for a label: what its score loses without them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np

WORD = re.compile(r"\w+")


class TextScorer(Protocol):
    """Scores labels of texts, of which it reads so many tokens."""

    max_length: int

    def label_scores(self, texts: Sequence[str], labels: Sequence[int]) -> np.ndarray: ...


def word_weights(model: TextScorer, text: str, labels: Sequence[int]) -> list[list[dict[str, Any]]]:
    """Return for each label the words of a text, strongest first: `word`, `spans` and `weight`.

    The weight of a word is the label's score less its score for the text without that word. An encoder does not add
    up, so neither do these weights; they say what would change. Only the words the encoder reads are tried.

    >>> class Letters:
    ...     max_length = 128
    ...     def label_scores(self, texts, labels): return np.array([[t.count("ab"[i]) for i in labels] for t in texts])
    >>> [(found["word"], found["weight"]) for found in word_weights(Letters(), "aa b", [0])[0]]
    [('aa', 2.0), ('b', 0.0)]
    """
    spans: dict[str, list[list[int]]] = {}
    for match in list(WORD.finditer(text))[: model.max_length]:
        spans.setdefault(match.group().lower(), []).append([match.start(), match.end()])
    words = list(spans)
    scores = model.label_scores([text, *(_without(text, spans[word]) for word in words)], labels)
    out = []
    for lost in (scores[0] - scores[1:]).T:
        order = np.argsort(-np.abs(lost), kind="stable")
        out.append([{"word": words[i], "spans": spans[words[i]], "weight": float(lost[i])} for i in order])
    return out


def _without(text: str, spans: list[list[int]]) -> str:
    for start, end in reversed(spans):
        text = text[:start] + text[end:]
    return text
