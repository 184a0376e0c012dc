"""Facts of an audit: which label sets an output layer can give."""

from __future__ import annotations

from typing import Any, Required, TypedDict

from longtail.facts.model import TimingFacts


class LayerFacts(TypedDict, total=False):
    """The audited output layer."""

    source: str
    n_labels: int
    width: int
    bias: bool
    bias_missing: bool  # weights from a file without a bias
    sparse: bool
    score_above: float  # the score above which a label is on
    labels_never_given: int
    guaranteed: int | None  # every set of at most so many labels can come out
    ranked: bool  # scores only rank labels
    sets_beyond_guarantee: int


class CapacityFacts(TypedDict, total=False):
    """How many label sets a layer of this shape can give at most."""

    n_labels: Required[int]
    width: Required[int]
    bias: bool
    log2_sets: float
    log2_share: float
    log10_sets: float
    log10_share: float
    sets: int | None  # None if there are more than 2^53


class PositionFacts(TypedDict, total=False):
    """Whether the rows of the weights are in general position."""

    n_labels: int
    width: int
    rank: int
    general_position: bool | None  # None if unknown
    dependent_rows: list[int] | None
    checked: int
    exhaustive: bool


class ConflictFacts(TypedDict, total=False):
    """Labels of a proof: they cannot be on and off like this at once."""

    on: list[Any]  # names, or numbers where there are no names
    off: list[Any]
    on_names: list[str]  # where the model has a vocabulary
    off_names: list[str]


class LabelSetFacts(TypedDict, total=False):
    """One audited label set."""

    set: int
    labels: list[Any]  # names, or numbers where there are no names
    label_names: list[str]  # where the model has a vocabulary
    rows: int
    verdict: str  # one of `audit.VERDICTS`
    radius: float  # of the largest ball of inputs found that give the set
    radius_over_box: float
    radius_at_most: float | None
    decided_by: str
    certificate: dict[str, Any]
    conflict: ConflictFacts


class SetsFacts(TypedDict, total=False):
    """The verdicts about all audited label sets, from `Audit.facts`."""

    format: str
    kind: str  # "label sets", "classes" or "top sets"
    n_labels: int
    width: int
    bias: bool
    box: float  # inputs are between -box and box
    eps: float  # radius of the ball that makes a set robust
    n_rows: int
    n_sets: int
    sets: dict[str, int]  # number of sets by verdict
    rows: dict[str, int]  # number of rows by verdict
    radius: str  # "exact", or "bound" where radii are lower bounds
    radius_quantiles: dict[str, float]
    radius_over_box_quantiles: dict[str, float]
    decided_by: dict[str, int]
    impossible: list[LabelSetFacts]
    undecided: list[LabelSetFacts]
    hardest: list[LabelSetFacts]


class AuditedDataFacts(TypedDict, total=False):
    """The data whose label sets were audited."""

    name: str
    rows: int
    rows_audited: int  # where only a sample was
    labels_in_order: bool  # no names tell which row of the weights a label of the data is: taken in order


class LabelRowsFacts(TypedDict, total=False):
    """A label and how many rows of the data have it."""

    label: Required[str]
    name: str  # where the model has a vocabulary
    rows: Required[int]


class UnknownFacts(TypedDict, total=False):
    """Rows of the data with labels that the model never gives."""

    labels: Required[int]
    without_training_row: int
    rows: Required[int]
    sets: Required[int]
    listed: list[LabelRowsFacts]


class TopSetFacts(TypedDict):
    """Which sets were asked for as the top k."""

    k: int
    rows_of_other_size: int


class RadiiFacts(TypedDict, total=False):
    """How many sets have a radius in each range."""

    edges: list[float]  # ascending
    counts: list[int]  # one shorter than edges
    zero: int  # sets with an input and no ball around it


class SetSizeFacts(TypedDict):
    """How sets with `smallest` to `largest` labels fare."""

    smallest: int
    largest: int
    sets: int
    impossible: int
    undecided: int
    median_radius: float | None


class AuditFacts(TypedDict, total=False):
    """Everything a report says about an audit."""

    title: str
    command: str
    assumed: list[str]  # what was taken for granted, a sentence each
    layer: LayerFacts
    capacity: CapacityFacts
    position: PositionFacts
    data: AuditedDataFacts
    unknown: UnknownFacts | None
    top_k: TopSetFacts
    audit: SetsFacts
    radii: RadiiFacts
    sizes: list[SetSizeFacts]
    timings: TimingFacts
