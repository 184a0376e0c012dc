"""Facts about a trained model."""

from __future__ import annotations

from typing import Any, TypedDict

from longtail.facts.dataset import DatasetFacts


class TimingFacts(TypedDict, total=False):
    """Measured times."""

    train_seconds: float
    predict_seconds: float
    predict_ms_per_row: float
    audit_seconds: float


class ModelFacts(TypedDict, total=False):
    """Facts about a tagger: its model, its parameters and its training data."""

    name: str
    method: str
    model: str  # name of the class
    params: dict[str, Any]  # as they were given
    settings: dict[str, Any]  # the same as they were used: what was chosen where None or "auto" was given
    reads: dict[str, Any]  # of a model of texts: the class of the features, and their parameters
    labels: int
    features: int
    trained_rows: int
    calibrated: bool
    decision: Any  # how labels are assigned: DecisionFacts
    held_out: dict[str, Any] | None  # rows and metrics of the rows held out to calibrate
    trained_on: DatasetFacts
    epochs: list[Any]  # of a model trained in epochs: one record each
    best_epoch: int  # the one whose weights were kept
    budget: Any  # of a training in given minutes: these, those used, epochs planned and asked for, minutes for all
    prior_precision: float | None  # of giving every validation row the most frequent labels
    fusion: Any  # of a model with a tree beside it: how both scores are added
    tree: bool  # whether a model that reads texts has a tree beside it
    experts: dict[str, Any]  # of a hybrid: precision of every expert, and of all together, on the rows held out
    weights: dict[str, Any]  # of a hybrid: what the experts' numbers are multiplied with, by band of labels
