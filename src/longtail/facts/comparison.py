"""Facts of a comparison of two models on the same rows."""

from __future__ import annotations

from typing import TypedDict

from longtail.facts.dataset import DatasetFacts
from longtail.facts.evaluation import BandRangeFacts, CountFacts, IntervalFacts
from longtail.facts.explanation import ExplanationFacts
from longtail.facts.model import ModelFacts, TimingFacts


class DifferenceFacts(TypedDict, total=False):
    """A metric of both models; `low`, `high` and `p_value` are those of the difference b - a."""

    a: float | None
    b: float | None
    difference: float | None
    low: float | None
    high: float | None
    p_value: float | None


class BandDifferenceFacts(BandRangeFacts, total=False):
    """A band of labels with the differences of its metrics."""

    metrics: dict[str, DifferenceFacts]


class RandomisationFacts(TypedDict, total=False):
    """How the p-values were made."""

    method: str
    permutations: int
    seed: int


class DifferencesFacts(CountFacts, total=False):
    """Every metric of two sets of predictions, from `metrics.compare`."""

    remove_empty: bool
    interval: IntervalFacts
    test: RandomisationFacts
    metrics: dict[str, DifferenceFacts]
    bands: list[BandDifferenceFacts] | None


class ComparisonFacts(TypedDict, total=False):
    """Everything a report says about two models on one dataset."""

    title: str
    command: str
    names: dict[str, str]  # of the models "a" and "b", as the report calls them
    a: ModelFacts | str
    b: ModelFacts | str
    data: DatasetFacts
    comparison: DifferencesFacts
    examples: list[ExplanationFacts]
    timings: TimingFacts
