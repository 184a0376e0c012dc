"""Facts about reviews: precision on the control sample, agreement of people, and what an update made of them."""

from __future__ import annotations

from typing import Any, Required, TypedDict


class ShareRightFacts(TypedDict):
    """How many of the labels that a model would give are right, with Wilson's interval."""

    rows: int
    pairs: int  # (row, label) that the model would give
    right: int
    precision: float | None
    low: float | None
    high: float | None


class SharePeriodFacts(ShareRightFacts):
    """The same for one day, and for all days up to it."""

    day: str
    so_far: ShareRightFacts


class ShareModelFacts(ShareRightFacts):
    """The same for one model."""

    digest: str
    since: str  # the first day


class ReviewDayFacts(TypedDict):
    """What was done on one day."""

    day: str
    decisions: int
    rows: int  # finished


class ReviewedLabelFacts(ShareRightFacts):
    """One label: its precision on control rows, and how often it was accepted, rejected and added on all rows."""

    label: str
    accepted: int
    rejected: int
    added: int


class ReviewerFacts(TypedDict):
    """What one person did."""

    reviewer: str
    accepted: int
    rejected: int
    added: int
    undone: int
    rows: int  # finished
    last: str  # when they last decided something


class ReviewFacts(TypedDict):
    """What a dashboard of reviews shows."""

    sentence: str  # what precision means here
    counts: dict[str, int]
    control: ShareRightFacts
    over_time: list[SharePeriodFacts]
    models: list[ShareModelFacts]
    days: list[ReviewDayFacts]
    labels: list[ReviewedLabelFacts]
    reviewers: list[ReviewerFacts]


class LabelAgreementFacts(TypedDict):
    """How far people agree on one label."""

    label: str
    alpha: float | None
    pairs: int  # rows on which at least two people judged it
    disagreements: int


class ReviewedRowsFacts(TypedDict):
    """How many rows one person finished."""

    reviewer: str
    rows: int


class AgreementFacts(TypedDict):
    """How far people agree: Krippendorff's alpha over (row, label) pairs that at least two judged."""

    alpha: float | None
    pairs: int
    rows: int
    agreed: int  # pairs on which all agree
    reviewers: list[ReviewedRowsFacts]
    labels: list[LabelAgreementFacts]  # the most disputed first


class ReviewComparisonFacts(TypedDict):
    """An old and a new model on finished control rows."""

    rows: int
    metric: str
    before: float
    after: float
    difference: float
    low: float  # of the interval of the difference
    high: float
    margin: float  # the interval must lie above minus this
    not_worse: bool
    unjudged: int  # labels that only the new model gives, and that nobody was shown: they count as wrong
    rows_needed: int | None  # about how many control rows would tell, if the difference stays as it is
    precision_at: dict[str, Any]  # P@1, P@3, P@5 before and after


class ReviewUpdateFacts(TypedDict, total=False):
    """What became of the reviews: a new model, and whether it took the place of the old one."""

    state: Required[str]  # "idle", "running", "done" or "failed"
    stage: str
    done: int
    total: int
    rows: int  # reviewed rows that were learned
    control: int  # finished control rows
    fewest: int  # as many of them are needed to compare
    method: str  # "update" or "retrain"
    old_digest: str
    new_digest: str
    comparison: ReviewComparisonFacts | None
    swapped: Required[bool]
    backup: str | None  # the folder that holds the old model
    sentence: Required[str]
    at: str
