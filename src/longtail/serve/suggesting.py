"""Labels of texts, as every protocol needs them: one model that is served, and how labels are asked for."""

from __future__ import annotations

import gc
import math
import threading
import time
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp

from longtail.data import TopK
from longtail.errors import ParameterError, near
from longtail.facts import ReadingFacts
from longtail.pipeline import Tagger, n_candidates, threshold_for
from longtail.serve.label_search import LabelSearch
from longtail.text import BeginningFeatures, TfidfFeatures
from longtail.vocabulary import Vocabulary


@dataclass(frozen=True)
class How:
    """How labels are asked for: how many, how likely, for which purpose, and of which labels.

    Parameters
    ----------
    k : int, default=5
        Most labels of a text.
    threshold : float or None, default=None
        Only labels at least so likely; of a model that is not calibrated, with at least this score.
    target : str or None, default=None
        Only labels that reach the threshold for this purpose, such as "precision=0.8" (docs/decisions.md).
    allow, deny : tuple of str or None, default=None
        Only these labels; none of these. Labels by id or by name.
    language : str or None, default=None
        Language of the names of labels, where the model has a vocabulary with several.
    """

    k: int = 5
    threshold: float | None = None
    target: str | None = None
    allow: tuple[str, ...] | None = None
    deny: tuple[str, ...] | None = None
    language: str | None = None


class SuggestedTag(NamedTuple):
    """One suggested label; `assigned` says whether the model's own decision gives it."""

    label: str
    name: str
    score: float
    probability: float | None
    assigned: bool


@dataclass(frozen=True)
class Suggested:
    """Labels of some texts: the digest of the model, its labels of every text, and whether it knew a word of it."""

    digest: str
    rows: list[list[SuggestedTag]]
    known: list[bool]


@dataclass(frozen=True)
class Wish:
    """How labels are asked for, as the model counts: numbers of labels, one threshold."""

    k: int
    depth: int  # labels of a text that are looked at: those asked for, and those that a decision needs
    least: float | None = None
    allow: tuple[int, ...] | None = None
    deny: tuple[int, ...] | None = None
    language: str | None = None


DEPTHS = (10, 50)  # labels of a text that are looked at: the same for many requests, so that they go together
TEXT_COLUMN, ID_COLUMN = "text", "id"  # of files whose columns nobody named
PACE_BATCHES = 9  # that tell how quick a model is


class Pace:
    """How long a model takes for some texts, learned while it works.

    >>> pace = Pace()
    >>> pace.learn(["a" * 1000], 0.1)
    >>> pace.seconds(["a"]) < 0.1 < pace.seconds(["a" * 3000])
    True
    """

    def __init__(self) -> None:
        self._rates: deque[float] = deque(maxlen=PACE_BATCHES)
        self._rate = math.inf  # seconds per unit of work; nothing is known yet

    def seconds(self, texts: Sequence[str]) -> float:
        """Return how long some texts will take."""
        return self._rate * _work(texts)

    def learn(self, texts: Sequence[str], seconds: float) -> None:
        """Take in how long some texts took; the median of the last ones counts, and a pause of the machine does not."""
        self._rates.append(seconds / _work(texts))
        self._rate = sorted(self._rates)[len(self._rates) // 2]


def _work(texts: Sequence[str]) -> int:
    """Return how much work some texts are: their characters, and as much as 500 for each."""
    return sum(map(len, texts)) + 500 * len(texts)


@dataclass(eq=False)
class ServedModel:
    """A loaded model, ready to answer; never changed, only replaced."""

    id: str
    folder: Path
    tagger: Tagger
    digest: str
    loaded_at: float = field(default_factory=time.time)
    pace: Pace = field(default_factory=Pace)
    _languages: dict[str, Vocabulary] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _search_lock: threading.Lock = field(default_factory=threading.Lock)

    @property
    def reading(self) -> ReadingFacts:
        """How the file that the model learned from was read, as far as that was told."""
        return self.tagger.data_.get("reading", {})

    @cached_property
    def numbers(self) -> dict[str, int]:
        """The numbers of labels by what the model calls them."""
        return {label: number for number, label in enumerate(self.tagger.labels_)}

    @cached_property
    def search(self) -> LabelSearch:
        """The index of the names of labels; made when it is first needed, by one thread."""
        with self._search_lock:
            if "search" in self.__dict__:
                return self.__dict__["search"]
            counts = np.asarray(self.tagger.model_.label_counts_)
            made = LabelSearch(self._names(self.tagger.labels_), counts, self.tagger.labels_)
            gc.freeze()  # it stays: collecting garbage need not look at hundreds of thousands of names each time
            return made

    @cached_property
    def other_concepts(self) -> list[str]:
        """The concepts of the vocabulary that are no labels of the model: no row that it learned from had them."""
        vocabulary = self.tagger.vocabulary_
        return [] if vocabulary is None else [id for id in vocabulary.ids if id not in self.numbers]

    @cached_property
    def other_search(self) -> LabelSearch:
        """The index of the names of the other concepts."""
        with self._search_lock:
            if "other_search" in self.__dict__:
                return self.__dict__["other_search"]
            counts = np.zeros(len(self.other_concepts), dtype=np.int64)
            made = LabelSearch(self._names(self.other_concepts), counts, self.other_concepts)
            gc.freeze()
            return made

    def _names(self, labels: Sequence[str]) -> Iterator[tuple[int, str]]:
        """Yield all names of labels, in all languages, the one that is shown first."""
        vocabulary = self.tagger.vocabulary_
        for number, label in enumerate(labels):
            if vocabulary is None or label not in vocabulary:
                yield number, label
                continue
            concept = vocabulary[label]
            names = dict.fromkeys([vocabulary.name(label), *concept.names.values()])
            names |= dict.fromkeys(name for others in concept.alternatives.values() for name in others)
            names |= dict.fromkeys([concept.notation] if concept.notation else ())
            for name in names:
                yield number, name

    @cached_property
    def top_concepts(self) -> list[str]:
        """The concepts of the vocabulary that have none above them and some below."""
        vocabulary = self.tagger.vocabulary_
        if vocabulary is None:
            return []
        tops = np.flatnonzero(vocabulary.first_broader() < 0).tolist()
        found = [id for id in (vocabulary.ids[number] for number in tops) if vocabulary.narrower(id)]
        return sorted(found, key=lambda id: vocabulary.name(id).casefold())

    def label_numbers(self, names: Sequence[str], argument: str) -> tuple[int, ...]:
        """Return the numbers of labels that are given by id, by notation or by name."""
        return tuple(self.label_number(name, argument) for name in names)

    def label_number(self, name: str, argument: str = "label") -> int:
        """Return the number of one label."""
        number = self.numbers.get(name)
        if number is not None:
            return number
        vocabulary = self.tagger.vocabulary_
        meant = [] if vocabulary is None else [id for id in vocabulary.candidates(name) if id in self.numbers]
        if len(meant) == 1:
            return self.numbers[meant[0]]
        if meant:
            hint = f" It may mean {', '.join(repr(id) for id in meant[:3])}."
        else:
            hint = near(name, self.tagger.labels_)
        raise ParameterError(name=argument, allowed=f"a label of the model {self.id!r}", got=name[:200], hint=hint)

    def wish(self, how: How) -> Wish:
        """Return how labels are asked for in the model's own numbers; what it does not know is refused."""
        allow = None if how.allow is None else self.label_numbers(how.allow, "allow")
        deny = None if how.deny is None else self.label_numbers(how.deny, "deny")
        if how.language is not None:
            self.vocabulary(how.language)
        needed = 0 if self.tagger.decision_ is None else n_candidates(self.tagger)  # a threshold looks at each alone
        depth = max(needed, next((depth for depth in DEPTHS if how.k <= depth), how.k))
        depth = min(depth, self.tagger.n_labels_)
        return Wish(how.k, depth, self._least(how), allow, deny, how.language)

    def _least(self, how: How) -> float | None:
        """Return the least probability (or score) of a label."""
        if how.threshold is not None and self.tagger.model_.calibrated_ and not 0 <= how.threshold <= 1:
            allowed = f"a probability between 0 and 1, since the model {self.id!r} is calibrated"
            raise ParameterError(name="threshold", allowed=allowed, got=how.threshold)
        if how.target is None:
            return how.threshold
        least = threshold_for(self.tagger, how.target)
        return least if how.threshold is None else max(least, how.threshold)

    def vocabulary(self, language: str | None = None) -> Vocabulary | None:
        """Return the vocabulary with names in a language; None where the model has none."""
        own = self.tagger.vocabulary_
        if own is None and language is not None:
            problem = f"cannot be chosen: the model {self.id!r} has no vocabulary, so its labels have one name each."
            raise ParameterError(name="language", problem=problem)
        if own is None or language is None or language == own.shown_language:
            return own
        if language not in own.languages:  # refused before a vocabulary is made for it
            listed = ", ".join(filter(None, own.languages[:20])) or "its names have none"
            raise ParameterError(name="language", allowed=f"a language of the vocabulary ({listed})", got=language[:50])
        with self._lock:
            if language not in self._languages:
                shown = Vocabulary.from_part(own.to_part())
                shown.language = language
                self._languages[language] = shown
            return self._languages[language]

    def label_name(self, number: int, language: str | None = None) -> str:
        """Return what people call a label."""
        label = self.tagger.labels_[number]
        vocabulary = self.vocabulary(language)
        return label if vocabulary is None or label not in vocabulary else vocabulary.name(label)

    def suggest(self, texts: Sequence[str], wishes: Sequence[Wish]) -> list[tuple[list[SuggestedTag], bool]]:
        """Return the labels of every text and whether a word of it is known; all look at the same labels."""
        first = wishes[0]
        rows = self.tagger.rows(texts)
        known = self._known(texts, rows)
        top = self.tagger.model_.predict_topk(rows, k=first.depth, allow=first.allow, deny=first.deny)
        return self._named(top, wishes, known)

    def _known(self, texts: Sequence[str], rows: object) -> list[bool]:
        """Say of every text whether the model knows any of its words."""
        if isinstance(self.tagger.features_, TfidfFeatures | BeginningFeatures) and sp.issparse(rows):
            return (rows.indptr[1:] > rows.indptr[:-1]).tolist()  # type: ignore[attr-defined]
        return [any(letter.isalnum() for letter in text) for text in texts]

    def _named(self, top: TopK, wishes: Sequence[Wish], known: Sequence[bool]) -> list[tuple[list[SuggestedTag], bool]]:
        """Return the predictions of rows by the names of labels, as many as each asks for."""
        model, decision = self.tagger.model_, self.tagger.decision_
        calibrated = model.calibrated_
        chances = model.probabilities(top) if calibrated else top
        if decision is not None:
            given = decision.chosen(chances.head(decision.candidates))
        else:
            given = model.calibration_.reached(chances) if calibrated else model.chosen(top)
        lists = zip(
            top.ids.tolist(), top.scores.tolist(), chances.scores.tolist(), given.tolist(), wishes, known, strict=True
        )
        labels, plain = self.tagger.labels_, self.tagger.vocabulary_ is None
        out: list[tuple[list[SuggestedTag], bool]] = []
        for ids, scores, likely, assigned, wish, is_known in lists:
            row: list[SuggestedTag] = []
            if is_known:
                for at in range(min(wish.k, len(ids))):
                    number = ids[at]
                    if number < 0 or (wish.least is not None and likely[at] < wish.least):
                        break
                    name = labels[number] if plain else self.label_name(number, wish.language)
                    chance = likely[at] if calibrated else None
                    row.append(
                        SuggestedTag(labels[number], name, scores[at], chance, at < len(assigned) and assigned[at])
                    )
            out.append((row, is_known))
        return out
