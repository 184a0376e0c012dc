"""Facts of a label check: pairs that look wrong or missing, duplicates, labels nobody can learn, likely synonyms."""

from __future__ import annotations

from typing import NotRequired, TypedDict

from longtail.facts.vocabulary import VocabularyFacts


class SuspectFacts(TypedDict):
    """One label of one row that looks wrong, or that looks missing."""

    row: int  # from 0
    id: str | None  # of the row, where the data has ids
    label: str
    name: NotRequired[str]  # of the label, where it is a concept of a vocabulary
    probability: float  # by a model that was not trained on the row, from its text and its other labels
    usual: float  # the mean probability of the label on rows that have it, drawn to that of all labels where it is rare
    suspicion: float  # ranks them: the larger, the more suspect
    text: str | None  # the beginning of the row's text


class DuplicateFacts(TypedDict):
    """Rows with the same text whose labels differ."""

    kind: str  # "same text" or "same words"
    rows: list[int]
    shared: list[str]  # labels that all of them have
    differing: list[str]  # labels that only some have
    shared_names: NotRequired[list[str]]
    differing_names: NotRequired[list[str]]
    text: str | None


class UnlearnedFacts(TypedDict):
    """A label that a model does not learn."""

    label: str
    name: NotRequired[str]
    rows: int
    recall: float  # share of its rows, left out of training, that get it among as many labels as they have
    reason: str  # "too few rows" or "never predicted"


class SynonymFacts(TypedDict):
    """Two labels that may mean the same."""

    labels: list[str]
    label_names: NotRequired[list[str]]
    rows: list[int]  # of each
    cosine: float  # of the sums of their rows: 1 where the same words come as often
    together: int  # rows that have both
    expected: float  # rows that would have both by chance
    reason: str  # "same name", "used together" or "used for each other"


class CheckCountFacts(TypedDict):
    """How many there are of each kind, listed or not."""

    wrong: int
    missing: int
    duplicates: int
    unlearned: int
    synonyms: int


class LabelCheckFacts(TypedDict, total=False):
    """What a label check found, the most suspect first."""

    title: str
    command: str
    rows: int
    labels: int
    pairs: int  # labels of all rows together
    folds: int
    limit: int | None
    counts: CheckCountFacts
    wrong: list[SuspectFacts]
    missing: list[SuspectFacts]
    duplicates: list[DuplicateFacts]
    unlearned: list[UnlearnedFacts]
    synonyms: list[SynonymFacts]
    vocabulary: VocabularyFacts  # where one was given
