"""Facts of an update: what a model learned, and how it did before and after on rows it had not learned."""

from __future__ import annotations

from typing import Any, Required, TypedDict


class UpdateVocabularyFacts(TypedDict):
    """How the labels of new rows and the vocabulary of a model differ."""

    unknown_labels: str  # what is done with labels that the vocabulary lacks, as in training: keep, drop or error
    labels_unknown: int  # labels of the new rows that were no labels before, and are no concepts
    unknown: list[str]  # the first of them
    labels_ambiguous: int  # labels of the new rows that are names of several concepts


class UpdateFacts(TypedDict, total=False):
    """What an update did."""

    rows: Required[int]  # new rows
    replayed: Required[int]  # old rows shown again
    labels_added: Required[list[str]]
    added_names: list[str]  # what people call them, where there is a vocabulary
    vocabulary: UpdateVocabularyFacts  # where labels are concepts of one
    features_added: Required[int]  # new words
    held_out: Required[dict[str, Any] | None]  # rows, and precision before and after on them; None where too few
    calibration: Required[str | None]  # "learned again", "kept" or None
    decision: Required[str | None]  # "learned again", "kept", "dropped" (a guarantee, which holds no more) or None
