"""Facts about why labels were suggested for a text."""

from __future__ import annotations

from typing import Required, TypedDict


class WordFacts(TypedDict, total=False):
    """A word behind a label, or a telling word of a cluster."""

    word: Required[str]
    weight: float  # above 0 for the label, below 0 against it
    spans: list[list[int]]  # (start, end) of the word in the text; without it, wherever the word occurs
    pull: float  # how strongly the word leads to one leaf slot of a label rather than to its others
    elsewhere: float  # mean weight of the word in the label's other leaf slots


class PathStepFacts(TypedDict, total=False):
    """One cluster on the way from the root of a label tree to a label."""

    level: int
    node: int
    margin: float  # of the cluster's own classifier
    typical: list[str]  # its most frequent labels
    typical_names: list[str]  # where the model has a vocabulary


class NameMatchFacts(TypedDict):
    """A name of a label that stands in a text."""

    name: str
    spans: list[list[int]]  # (start, end) in the text


class SimilarRowFacts(TypedDict, total=False):
    """A row of the training data that is like a text."""

    row: Required[int]  # its number in the training data
    id: str  # where the data had ids
    text: str  # its first words, where the model keeps them


class ExpertFacts(TypedDict, total=False):
    """What one expert of a hybrid adds to the log-odds of a label, and what that rests on."""

    expert: str  # its name, or "start" for what labels of this frequency start from
    weight: float  # added to the score, beside an expert that knows nothing; all together are the score
    similarity: float  # of text and label, for the experts "prototypes" and "classifier"
    probability: float  # by the label tree
    share: float  # of the similar training texts that carry the label, the nearer counting more
    rows: list[int]  # the nearest of these, by their numbers in the training data
    similar: list[SimilarRowFacts]  # the same rows with their ids and first words
    matches: list[NameMatchFacts]  # names of the label in the text


class SuggestionFacts(TypedDict, total=False):
    """One suggested label with the words behind it."""

    label: str
    name: str  # where the model has a vocabulary
    id: str  # the label of machines, where `label` is the name that people know
    score: float
    probability: float | None  # None if the model is not calibrated
    correct: bool  # of an example, where the true labels are known
    margin: float
    bias: float | None  # None where word weights do not add up to the margin
    words: list[WordFacts]
    path: list[PathStepFacts]
    experts: list[ExpertFacts]  # of a hybrid: which expert brought the label


class ExplanationFacts(TypedDict, total=False):
    """A text with its suggested labels; with its true labels it is a worked example of a report."""

    text: str
    true: list[str]
    true_names: list[str]  # where the model has a vocabulary
    predicted: list[SuggestionFacts]
    labels: list[SuggestionFacts]  # another name of `predicted`
