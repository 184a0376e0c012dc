"""Facts of an evaluation: metrics with intervals, label bands, calibration, labels and examples."""

from __future__ import annotations

from typing import Required, TypedDict

from longtail.facts.dataset import DatasetFacts
from longtail.facts.explanation import ExplanationFacts
from longtail.facts.model import ModelFacts, TimingFacts
from longtail.facts.tree import SplitsFacts, TreeFacts


class MetricFacts(TypedDict, total=False):
    """A metric with its interval; None where it is undefined."""

    value: float | None
    low: float | None
    high: float | None


class IntervalFacts(TypedDict, total=False):
    """How the intervals were made."""

    method: str
    units: str  # what is drawn for most metrics: rows
    units_of_macro: str  # what is drawn for coverage and macro averages: labels
    level: float
    resamples: int
    seed: int


class PooledFacts(TypedDict, total=False):
    """Counts and quotients of (row, label) pairs, pooled over some labels; a quotient of nothing is None."""

    tested: int  # labels with at least one test row
    true: int  # pairs
    predicted: int  # pairs
    right: int  # pairs
    precision: float | None
    recall: float | None
    f1: float | None


class BandRangeFacts(TypedDict, total=False):
    """A band of labels of similar training frequency."""

    name: Required[str]  # head, torso, tail or unseen
    labels: Required[int]
    lowest: int | None  # training rows of the rarest label; None if the band is empty
    highest: int | None


class BandFacts(BandRangeFacts, PooledFacts, total=False):
    """A band with its metrics, by name such as "p@5"."""

    metrics: dict[str, MetricFacts]


class FrequencyBinFacts(PooledFacts, total=False):
    """Labels with `lowest` to `highest` training rows."""

    lowest: Required[int]
    highest: Required[int]
    labels: int


class FrequencyFacts(TypedDict, total=False):
    """Precision and recall of the first k suggestions by training frequency."""

    k: int
    bins: list[FrequencyBinFacts]


class CalibrationBinFacts(TypedDict, total=False):
    """Suggestions with a probability from `low` to `high`."""

    low: Required[float]
    high: Required[float]
    count: int
    mean_probability: float | None
    share_right: float | None


class CalibrationFacts(TypedDict, total=False):
    """How far the probabilities of suggestions agree with how often these are right."""

    k: int
    pairs: int  # judged suggestions
    bins: list[CalibrationBinFacts]
    expected_calibration_error: float | None
    brier: float | MetricFacts | None  # with an interval from `metrics.evaluate`


class CountFacts(TypedDict, total=False):
    """Sizes of what is evaluated."""

    rows: int
    rows_without_labels: int
    rows_short_of_predictions: int
    labels: int
    labels_tested: int  # labels with at least one test row
    labels_per_row: float
    ks: list[int]


class MetricsFacts(CountFacts, total=False):
    """Every metric of one set of predictions, from `metrics.evaluate`."""

    remove_empty: bool
    suggested_at_most: int  # labels of a row, where the predictions came from a file
    interval: IntervalFacts
    metrics: dict[str, MetricFacts]  # by name such as "p@5"
    by_place: list[float]  # share of rows whose suggestion at each position is right
    bands: list[BandFacts] | None
    frequency: FrequencyFacts | None
    calibration: CalibrationFacts | None


class LabelRowFacts(TypedDict, total=False):
    """One line of the table of labels."""

    label: str
    name: str  # where the model has a vocabulary
    id: str  # the label of machines, where `label` is the name that people know
    train_count: int
    test_count: int
    precision: float | None  # None where the label was never suggested
    recall: float | None  # None where no test row has the label
    f1: float | None
    recall_low: float  # of the labels found least: the interval of the recall
    recall_high: float


class SetsMetricsFacts(TypedDict, total=False):
    """Metrics of assigned label sets, from `metrics.evaluate_sets`."""

    rows: int
    labels_tested: int  # labels with at least one test row
    metrics: dict[str, MetricFacts]  # by name such as "micro_p"


class DecisionFacts(TypedDict, total=False):
    """How labels are assigned."""

    purpose: str  # such as "precision=0.8"
    per: str  # global, band or label
    threshold: float | None  # of labels without one of their own; None where every row gets k labels
    k: int | None
    candidates: int  # labels of a row that are looked at
    rows: int  # that it was chosen on
    reached: dict[str, float | None]  # what it came to on these rows


class ThresholdFacts(TypedDict):
    """What one threshold gives on the rows held out of a training."""

    threshold: float
    precision: float | None  # None where no suggestion reaches it
    recall: float
    labels_per_row: float


class ThresholdsFacts(TypedDict):
    """What thresholds give on the rows held out of a training."""

    points: list[ThresholdFacts] | None
    default: float | None  # the one by which the model itself assigns labels
    rows: int
    reason: str | None  # why there are no points


class AssignedFacts(SetsMetricsFacts, total=False):
    """The label sets that a model assigns, and how it decides."""

    decision: DecisionFacts


class TradeoffPointFacts(TypedDict, total=False):
    """Metrics at k of labels chosen for a mix of P@k and macro-F1@k."""

    mix: float  # share of macro-F1@k
    p: float
    macro_f1: float
    coverage: float


class TradeoffFacts(TypedDict, total=False):
    """What rare labels cost: P@k against macro-F1@k, from one end to the other."""

    k: int
    rows: int
    points: list[TradeoffPointFacts]


class PartOfRowsFacts(TypedDict):
    """How good a model is on some of the rows."""

    value: str  # what the column says of them
    rows: int
    metrics: dict[str, MetricFacts]


class ByFacts(TypedDict):
    """An evaluation of parts of the rows, by what a column says of them; the largest parts first."""

    column: str
    parts: list[PartOfRowsFacts]
    rows_without: int  # rows of which the column says nothing
    parts_left_out: int


class EvaluationFacts(TypedDict, total=False):
    """Everything a report says about one model on one dataset; what is missing is left out of the report."""

    title: str
    command: str
    model: ModelFacts
    data: DatasetFacts
    evaluation: MetricsFacts
    assigned: AssignedFacts
    tradeoff: TradeoffFacts | None
    labels: list[LabelRowFacts]  # those with most test rows first
    labels_left_out: int  # labels that are not in that list
    worst_labels: list[LabelRowFacts]  # those with the lowest recall among labels of at least five test rows
    by: ByFacts
    tree: TreeFacts | None
    splits: SplitsFacts | None
    examples: list[ExplanationFacts]
    timings: TimingFacts
