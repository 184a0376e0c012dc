"""Facts of a search for settings."""

from __future__ import annotations

from typing import Any, TypedDict


class TrialFacts(TypedDict):
    """Settings that were tried, and how good they were."""

    number: int  # 0 for the defaults
    settings: dict[str, Any]  # that differ from the defaults
    scores: list[float]  # of every round it reached
    score: float  # of the last of them
    seconds: float


class TuningFacts(TypedDict):
    """A search for settings, from `tune`."""

    method: str
    metric: str
    rows: int
    held_out_rows: int
    round_rows: list[int]  # that trials were trained on, round by round
    default_score: float
    trials: list[TrialFacts]  # the best first
    seed: int
