"""Facts of an imputation: how labels of rows were found from labels of groups."""

from __future__ import annotations

from typing import Required, TypedDict


class GroupSizeFacts(TypedDict):
    """Rows per group."""

    smallest: int
    mean: float
    largest: int


class ImputationFacts(TypedDict, total=False):
    """Facts about an imputation: the groups, the method, the reasons and the result."""

    rows: int
    groups: int
    labels: int
    group_size: GroupSizeFacts
    groups_without_rows: int
    groups_without_labels: int
    labels_in_no_group: int
    counts_known: bool  # some group has a label more than once
    counts_above_size: int  # (group, label) pairs counted more often than the group has rows
    likeness: float  # of rows of a group, against rows anywhere
    alike: str  # the same in words
    assign: Required[str]
    n_iter: int
    rounds: Required[int]
    assigned: int  # (row, label) pairs
    rows_per_label_of_group: float
    share_of_group: float
    mean_confidence: float
    confidence_means: str  # in one sentence
    rows_without_labels: int
    rows_in_no_group: int
    rows_in_groups_without_labels: int
    rows_without_words: int
    rows_not_chosen: int
    why: str
