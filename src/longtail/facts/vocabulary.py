"""Facts about the vocabulary of a model, and how far the labels of the data agree with it."""

from __future__ import annotations

from typing import Required, TypedDict


class VocabularyLabelFacts(TypedDict, total=False):
    """A label that the vocabulary lacks, a name of several concepts, or a deprecated concept in use."""

    label: Required[str]
    rows: Required[int]
    name: str
    ids: list[str]  # of the concepts that share the name
    replaced_by: str
    replaced_by_name: str


class VocabularyFacts(TypedDict, total=False):
    """A vocabulary and the labels of the training data."""

    name: str
    concepts: Required[int]
    language: str  # that names are shown in
    labels_known: Required[int]  # labels with rows that are concepts
    labels_by_name: Required[int]  # of those: given by name or notation
    labels_unknown: Required[int]  # labels with rows that the vocabulary lacks
    unknown_labels: Required[str]  # what is done with them, also by updates: keep, drop or error
    unknown: Required[list[VocabularyLabelFacts]]  # the most frequent of them
    labels_ambiguous: int  # labels with rows that are names of several concepts; done with as with unknown ones
    ambiguous: list[VocabularyLabelFacts]  # the most frequent of them
    concepts_without_rows: Required[int]
    deprecated_in_use: Required[int]
    deprecated: Required[list[VocabularyLabelFacts]]  # the most frequent of them
    deprecated_labels: str  # what is done with deprecated concepts: keep or replace
    replaced: int  # deprecated concepts that were replaced
    rows_replaced: int
    replacements: list[VocabularyLabelFacts]  # the most frequent of them
