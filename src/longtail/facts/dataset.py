"""Facts about a dataset, and the long tail of its labels."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TypedDict

from longtail.facts.imputation import ImputationFacts
from longtail.facts.vocabulary import VocabularyFacts


class ReadingFacts(TypedDict, total=False):
    """How the training file was read, as far as that was told: used again for files of the same format."""

    format: str
    suffix: str  # of the file's name, where its format had to be told
    text_column: list[str]
    labels_column: str
    id_column: str
    label_separator: str
    delimiter: str
    encoding: str
    guessed_encoding: str  # that was noticed, where none was told: of a file that is not UTF-8


class DatasetFacts(TypedDict, total=False):
    """Sizes of a dataset, from `Dataset.summary`."""

    name: str
    digest: str  # fingerprint of the content, of the data a model was trained on
    digests: list[str]  # of every file that a model learned from, as it was read: of its training and its updates
    rows: int
    labels: int
    labels_used: int  # labels with at least one row
    labels_per_row: float
    rows_without_labels: int
    rows_per_label: float
    labels_seen_once: int
    has_texts: bool
    has_label_texts: bool
    features: int
    features_per_row: float
    groups: int
    labels_unknown_to_model: int  # labels of test data that the model has never seen
    labels_ambiguous: int  # labels of test data that are names of several concepts
    tail: list[list[int]]  # (rank, rows) pairs of the training labels, from `tail_points`
    imputed: ImputationFacts  # where labels of rows were found from labels of groups
    vocabulary: VocabularyFacts  # where labels are concepts of one
    reading: ReadingFacts  # how the file of the training rows was read
    labels_added: int  # labels added to the model by their texts, after training
    labels_removed: int
    updates: int  # times the model learned new rows after training
    rows_of_updates: int  # how many of the rows came by updates


def tail_points(counts: Sequence[int], n: int = 100) -> list[list[int]]:
    """Return (rank, count) pairs of the labels, most frequent first, thinned to about n evenly spaced on a log axis.

    >>> tail_points([1, 8, 0, 3])
    [[1, 8], [2, 3], [3, 1]]
    """
    ordered = sorted((int(c) for c in counts if c > 0), reverse=True)
    if not ordered:
        return []
    last = len(ordered)
    ranks = sorted({round(math.exp(i / max(n - 1, 1) * math.log(last))) for i in range(n)} | {1, last})
    return [[rank, ordered[rank - 1]] for rank in ranks]
