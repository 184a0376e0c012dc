"""Facts of an update: what a model learned, and how it did before and after on rows it had not learned."""

from __future__ import annotations

from typing import Any, TypedDict


class UpdateFacts(TypedDict):
    """What an update did."""

    rows: int  # new rows
    replayed: int  # old rows shown again
    labels_added: list[str]
    features_added: int  # new words
    held_out: dict[str, Any] | None  # rows, and precision before and after on them; None where too few
    calibration: str | None  # "learned again", "kept" or None
    decision: str | None  # "learned again", "kept", "dropped" (a guarantee, which holds no more) or None
