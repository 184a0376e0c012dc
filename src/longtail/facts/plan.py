"""Facts of a plan: what a training will take."""

from __future__ import annotations

from typing import Any, Required, TypedDict


class MemoryFacts(TypedDict, total=False):
    """The most memory a training will use, beside what there is."""

    peak_bytes: Required[int]
    used_now_bytes: int
    available_bytes: Required[int | None]  # None if unknown
    fits: bool


class SampleFacts(TypedDict):
    """The rows a plan was made from."""

    rows: int
    probed_rows: int
    probe_seconds: float


class MethodFacts(TypedDict):
    """Which method suits some data, and why."""

    method: str
    name: str  # what it is, in a few words
    settings: dict[str, Any]  # parameters of its model that differ from their defaults
    why: str
    sources: list[str]  # files under benchmarks/results that it rests on
    runner_up: str
    runner_up_why: str
    would_change: list[str]  # what other methods would need to be chosen


class PlanFacts(TypedDict, total=False):
    """Time, memory and size of a training, from `plan_training`; times are None without a probe."""

    method: str
    model: str
    threads: int
    rows: int
    labels: int
    labels_used: int
    labels_per_row: float
    features: int | None
    features_estimated: bool
    nonzeros: int | None
    calibration_rows: int
    trainings: int  # 2 where a first model is trained to calibrate, without these rows
    tree: dict[str, Any] | None  # shape of the label tree
    network: dict[str, Any]  # bytes and shape of an encoder
    memory: Required[MemoryFacts]
    train_seconds: float | None
    model_bytes: int | None
    predict_us_per_row: float | None
    sample: SampleFacts
    choice: MethodFacts  # the method that suits the data, which need not be the one planned
