"""Rows held out of a training, and how good the model is on them."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp

from longtail.data import split_random
from longtail.metrics import evaluate, propensities
from longtail.model import HELD_OUT_AT_MOST, HeldOut
from longtail.validate import Json, check_real

FEWEST_ROWS_TO_CALIBRATE = 50


def held_out_rows(n_rows: int, calibrate: float, at_most: int = HELD_OUT_AT_MOST) -> int:
    """Return how many rows are held out; with few rows there is nothing to learn from.

    >>> held_out_rows(1000, 0.1), held_out_rows(40, 0.1), held_out_rows(10**6, 0.1)
    (100, 0, 20000)
    """
    share = check_real("calibrate", calibrate, low=0, high=0.5)
    return min(round(share * n_rows), at_most) if n_rows >= FEWEST_ROWS_TO_CALIBRATE else 0


def hold_out(
    Y: sp.csr_array, calibrate: float, seed: int, at_most: int = HELD_OUT_AT_MOST
) -> tuple[np.ndarray, np.ndarray] | None:
    """Return the rows to train on and those held out; None where none are, or one side would have no label."""
    held = held_out_rows(Y.shape[0], calibrate, at_most)
    if not held:
        return None
    train, test = split_random(Y, test_size=held, random_state=seed)
    labels = np.diff(Y.indptr)
    return (train, test) if labels[train].any() and labels[test].any() else None


def held_out_facts(held_out: HeldOut, seed: int) -> Json:
    """Return how good a model is on rows it was not trained on."""
    weights = propensities(held_out.label_counts, held_out.n_rows)
    facts = evaluate(held_out.Y, held_out.top, propensity=weights, random_state=seed)
    return {"rows": int(held_out.Y.shape[0]), "metrics": facts["metrics"]}
