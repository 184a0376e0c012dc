"""Facts about a label tree: its clusters, and the leaf slots of single labels."""

from __future__ import annotations

from typing import Required, TypedDict

from longtail.facts.explanation import WordFacts


class LabelUseFacts(TypedDict, total=False):
    """A label and how many training rows have it."""

    label: Required[str]
    name: str  # where the model has a vocabulary
    uses: int


class RestFacts(TypedDict):
    """Clusters that are not listed."""

    clusters: int
    labels: int
    uses: int


class LevelFacts(TypedDict, total=False):
    """One level of the tree."""

    clusters: Required[int]
    listed: int
    fewest_labels: int
    most_labels: int


class ClusterFacts(TypedDict, total=False):
    """A cluster of labels; `uses` and `share` add up those of its labels."""

    level: Required[int]  # 0 below the root
    cluster: int  # its number in the level
    above: int | None  # number of the cluster it is in
    clusters: int  # right below it
    labels: Required[int]
    uses: Required[int]
    share: float  # of all uses
    typical: list[LabelUseFacts]  # the most used labels
    words: list[WordFacts]  # those with the largest weights in the cluster's classifier
    rest: RestFacts | None  # clusters right below that are not listed
    inside: list[list[int]]  # (labels, uses) of all clusters right below, the most used first; for drawing
    inside_typical: list[list[LabelUseFacts]]  # the most used labels of each of these


class TreeFacts(TypedDict, total=False):
    """A label tree, from `tree_facts`; each listed cluster is followed by those below it."""

    tree: int  # number of the tree in an ensemble
    trees: int
    labels: int
    labels_used: int
    uses: int
    rows: int  # training rows
    depth: int  # listed levels
    levels: list[LevelFacts]
    clusters: list[ClusterFacts]
    rest: RestFacts | None


class SlotTextFacts(TypedDict):
    """A row of data that belongs to a leaf slot."""

    row: int
    id: str | None
    text: str | None
    score: float
    elsewhere: float | None  # best score at another leaf slot of the label; None if there is no other


class SlotFacts(TypedDict, total=False):
    """One leaf slot of a label."""

    tree: int
    leaf: int
    path: list[int]  # node numbers from the top
    labels: int  # in the leaf
    neighbours: list[LabelUseFacts]  # other labels of the leaf
    words: list[WordFacts]  # words of the label that lead here
    heavier: list[WordFacts]  # words that weigh more here than in the label's other leaf slots
    rows: int  # rows of the data that come here
    texts: list[SlotTextFacts]


class LabelDataFacts(TypedDict):
    """The data whose rows were given to the leaf slots of a label."""

    name: str
    rows: int
    rows_with_label: int


class LabelFacts(TypedDict, total=False):
    """Where a label is in the tree, from `label_facts`."""

    label: str
    name: str  # where the model has a vocabulary
    id: str  # the label of machines, where `label` is the name that people know
    rows: int  # training rows
    trees: int
    overlap: int | str
    split_positives: bool
    slots: Required[list[SlotFacts]]
    data: LabelDataFacts | None


class SplitLabelFacts(TypedDict, total=False):
    """A label with more than one leaf slot."""

    label: str
    name: str  # where the model has a vocabulary
    rows: int
    unlike: float  # 1 - mean cosine of the ways to its leaf slots
    slots: Required[list[SlotFacts]]


class SlotCountFacts(TypedDict):
    """How many labels have so many leaf slots."""

    slots: int
    labels: int


class SplitsFacts(TypedDict, total=False):
    """The labels with the most leaf slots, from `page_splits`."""

    labels: int
    several: int  # labels with more than one leaf slot
    by_slots: list[SlotCountFacts]
    trees: int
    listed: list[SplitLabelFacts]
