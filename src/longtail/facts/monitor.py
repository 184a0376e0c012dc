"""Facts of monitoring: how a batch of rows differs from the rows that a model was judged by at its training."""

from __future__ import annotations

from typing import NotRequired, TypedDict

from longtail.facts.evaluation import CalibrationFacts


class HistogramFacts(TypedDict):
    """Two histograms with the same bins, as shares of the rows."""

    bins: list[str]
    batch: list[float]
    reference: list[float]


class DriftFacts(TypedDict):
    """One comparison of a batch with the reference."""

    what: str  # such as "unknown_words"
    title: str
    verdict: str  # "steady", "watch" or "changed"
    batch: float | None  # the number that sums up the batch, such as the mean share of unknown words
    reference: float | None
    unit: str  # of both: "share", "points", "labels", "characters", "features" or ""
    measure: str  # of the distance: "total variation", "Kolmogorov-Smirnov", "difference of means", "largest change"
    distance: float
    chance: float  # distance of two samples of one kind of rows, on average
    limit: float  # which such a distance exceeds once in 1,000 batches
    p_value: float
    watch_from: float  # distance beyond chance that matters
    changed_from: float
    rows: int
    reference_rows: int
    psi: float | None  # population stability index, where it is defined
    sentence: str
    advice: str  # "" where nothing is to be done
    histogram: HistogramFacts | None


class NewWordFacts(TypedDict):
    """A word that the model does not know."""

    word: str
    rows: int  # that have it


class NewLabelFacts(TypedDict):
    """A label of rows that the model does not know."""

    label: str
    name: NotRequired[str]  # what people call it, where there is a vocabulary
    rows: int


class LabelChangeFacts(TypedDict):
    """A label that is assigned far more or less often than in the reference."""

    label: str
    name: NotRequired[str]  # what people call it, where there is a vocabulary
    rows: int
    share: float
    reference_share: float
    times: float | None  # share by reference share; None where that is 0


class StrangeRowFacts(TypedDict):
    """A row with many unknown words."""

    row: int  # from 0
    id: str | None
    unknown: int
    words: int
    text: str  # its beginning


class MonitorFacts(TypedDict, total=False):
    """How a batch of rows differs from the rows that a model was judged by."""

    version: int  # of these facts; 1
    title: str
    command: str
    verdict: str  # the worst of the comparisons
    advice: str
    rows: int
    labelled_rows: int
    reference_rows: int
    reference: str  # where the reference is from: "training" or what it is called
    comparisons: list[DriftFacts]
    not_compared: list[str]  # sentences that say why not, and what would help
    unknown_words: list[NewWordFacts]  # the most frequent
    unknown_labels: list[NewLabelFacts]
    labels_more: list[LabelChangeFacts]
    labels_less: list[LabelChangeFacts]
    strange_rows: list[StrangeRowFacts]
    calibration: CalibrationFacts | None
