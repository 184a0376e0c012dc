"""The cost of training one-vs-all: some batches of labels, frequent and rare, trained on a sample of the rows."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import numpy as np

from longtail.data import Dataset
from longtail.errors import DataError
from longtail.kernels import LANES
from longtail.model import Estimate, Shape, clone
from longtail.validate import resolve_jobs

if TYPE_CHECKING:
    from longtail.one_vs_all.estimator import OneVsAllClassifier

BATCHES = 8  # of sixteen labels
MORE_WEIGHTS = 0.35  # a label's weights grow by this power of the rows
SLOWER = 0.12  # more rows need more passes, and more memory than the caches have
WEIGHTS_PER_NONZERO = 8.0  # weights of a label against the non-zeros of a row, with 4,000 rows; where nothing is probed
WEIGHTS_PER_US = 1500.0  # that one thread adds up


def estimate_ova(data: Dataset, shape: Shape, model: OneVsAllClassifier, probe: bool) -> Estimate:
    """Return what fitting takes; without a probe, memory alone."""
    jobs = resolve_jobs(model.n_jobs)
    seconds = loading = taken = 0.0
    per_label = WEIGHTS_PER_NONZERO * shape.nonzeros_per_row * max(shape.n_rows / 4000, 1) ** MORE_WEIGHTS
    if probe:
        Y = data.Y[shape.rows][:, spread_labels(shape.label_counts)]
        Y = Y[:, np.unique(Y.indices)]
        if Y.nnz == 0:
            raise DataError("there is nothing to plan: the sampled rows have no labels.")
        started = time.perf_counter()
        some = np.flatnonzero(np.diff(Y.indptr))[:50]
        clone(model).fit(shape.X[some], Y[some])  # loads the compiled kernels
        loading = time.perf_counter() - started
        started = time.perf_counter()
        fitted = clone(model).fit(shape.X, Y)
        taken = time.perf_counter() - started
        more = shape.nonzeros / max(shape.X.nnz, 1)
        rounds = _rounds(Y.shape[1], jobs)
        seconds = taken * more ** (1 + SLOWER) * _rounds(shape.n_used, jobs) / rounds
        per_label = fitted.weights_.nnz / Y.shape[1] * more**MORE_WEIGHTS
    entries = min(per_label, shape.n_features) * shape.n_used
    met = entries / shape.n_features * shape.nonzeros_per_row  # weights that a row meets
    return Estimate(
        seconds=seconds,
        predict_us=met / WEIGHTS_PER_US / jobs,
        model_bytes=8 * entries + 8 * shape.n_features + 24.0 * shape.n_used,
        # a thread's weights and dual variables; what was trained, in pieces, joined, and sorted by feature
        memory_bytes=4 * shape.nonzeros + jobs * (64.0 * shape.n_features + 80 * shape.n_rows) + 45 * entries,
        kept_bytes=8 * entries,
        probed_rows=int(shape.rows.size) if probe else 0,
        probe_seconds=taken,
        loading_seconds=loading,
    )


def _rounds(n_labels: int, jobs: int) -> float:
    """Return how long so many labels take, in batches of sixteen; few batches do not keep all threads busy."""
    batches = max(n_labels / LANES, 1.0)
    return max(batches / jobs, 1.0)


def spread_labels(counts: np.ndarray) -> np.ndarray:
    """Return sixteen labels from each of several places between the most and the least frequent.

    >>> spread_labels(np.array([3, 0, 5])).tolist()
    [2, 0]
    """
    order = np.argsort(-counts, kind="stable")[: int((counts > 0).sum())]
    if order.size <= BATCHES * LANES:
        return order
    starts = np.linspace(0.03, 0.97, BATCHES) * (order.size - LANES)
    return np.unique(np.concatenate([order[int(at) : int(at) + LANES] for at in starts]))
