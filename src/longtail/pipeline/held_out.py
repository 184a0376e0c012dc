"""Rows held out of a training: what they teach about scores, and how good the model is on them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse as sp

from longtail.data import split_random
from longtail.metrics import evaluate, propensities
from longtail.model import XMCEstimator, clone
from longtail.validate import check_real

HELD_OUT_AT_MOST = 20_000
FEWEST_ROWS_TO_CALIBRATE = 50
Stage = Callable[[str, int, int], None]  # (what is being done, done, total)


def held_out_rows(n_rows: int, calibrate: Any) -> int:
    """Return how many rows are held out; with few rows there is nothing to learn from.

    >>> held_out_rows(1000, 0.1), held_out_rows(40, 0.1), held_out_rows(10**6, 0.1)
    (100, 0, 20000)
    """
    share = check_real("calibrate", calibrate, low=0, high=0.5)
    return min(round(share * n_rows), HELD_OUT_AT_MOST) if n_rows >= FEWEST_ROWS_TO_CALIBRATE else 0


def hold_out(Y: sp.csr_array, calibrate: Any, seed: int) -> tuple[np.ndarray, np.ndarray] | None:
    """Return the rows to train on and those held out; None where none are, or one side would have no label."""
    held = held_out_rows(Y.shape[0], calibrate)
    if not held:
        return None
    train, test = split_random(Y, test_size=held, random_state=seed)
    return (train, test) if Y[train].nnz and Y[test].nnz else None


def fit_rows(
    model: XMCEstimator,
    X: Any,
    Y: sp.csr_array,
    split: tuple[np.ndarray, np.ndarray] | None,
    seed: int,
    progress: Stage | None,
) -> dict[str, Any] | None:
    """Train on all rows, calibrated by a first model without those held out; return the facts on these."""
    found = None
    if split is not None:
        train, test = split
        first = clone(model).fit(X[train], Y[train], progress=of_stage(progress, "Training (calibration)"))
        found = judge(first, X[test], Y[test], seed)
    model.fit(X, Y, progress=of_stage(progress, "Training"))
    if split is not None:
        model.calibration_ = first.calibration_
    return found


def judge(model: XMCEstimator, X: Any, Y: sp.csr_array, seed: int) -> dict[str, Any]:
    """Calibrate a model on rows it was not trained on; return how good it is on them."""
    model.calibrate(X, Y)
    top = model.predict_topk(X, k=5)
    weights = propensities(model.label_counts_, model.n_rows_)
    facts = evaluate(Y, top, propensity=weights, random_state=seed)
    return {"rows": int(Y.shape[0]), "metrics": facts["metrics"]}


def of_stage(progress: Stage | None, name: str) -> Callable[[int, int], None] | None:
    """Return the callable `(done, total)` of one stage."""
    return None if progress is None else lambda done, total: progress(name, done, total)
