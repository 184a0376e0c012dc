"""The cost of training a network: some steps of one of the full size, on sampled rows."""

from __future__ import annotations

import time
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
import scipy.sparse as sp

from longtail.data import Dataset
from longtail.model import Estimate, Shape, clone
from longtail.training import import_torch

if TYPE_CHECKING:
    from longtail.bottleneck.estimator import BottleneckClassifier

EPOCHS = 30  # until precision on the validation rows stops rising, about
STEPS = 3  # of the probe, after one that loads everything
COPIES = 6  # of the weights: themselves, gradients, two moments of the optimiser, the best so far, saving
BATCHES = 5  # arrays of batch × labels: scores, targets, gradients, what is in between


def estimate_network(data: Dataset, shape: Shape, model: BottleneckClassifier, probe: bool) -> Estimate:
    """Return what fitting takes; without a probe, memory alone. How long it trains is known only afterwards."""
    import_torch()  # nothing to plan without
    weights = count_weights(model, shape.n_features, data.n_labels)
    seconds = loading = taken = predict_us = 0.0
    n_rows = min(int(model.batch_size), int(shape.rows.size))
    if probe:
        X = sp.csr_array((shape.X.data, shape.X.indices, shape.X.indptr), shape=(shape.X.shape[0], shape.n_features))
        Y = sp.lil_array(data.Y[shape.rows])
        Y[0, 0] = 1  # at least one label
        rows = np.resize(np.arange(n_rows), n_rows * STEPS)
        probed = clone(model).set_params(epochs=1, valid=0, order=None, checkpoint=None)
        started = time.perf_counter()
        probed.fit(X[:n_rows], sp.csr_array(Y)[:n_rows])
        loading = time.perf_counter() - started
        started = time.perf_counter()
        probed.fit(X[rows], sp.csr_array(Y)[rows])
        taken = time.perf_counter() - started
        steps = -(-shape.n_rows // int(model.batch_size))
        seconds = min(int(model.epochs), EPOCHS) * steps * taken / STEPS
        started = time.perf_counter()
        probed.predict_topk(X[rows], k=5)
        predict_us = 1e6 * (time.perf_counter() - started) / rows.size
    return Estimate(
        seconds=seconds,
        predict_us=predict_us,
        model_bytes=4.0 * weights + 8 * data.n_labels,
        memory_bytes=12 * shape.nonzeros + 4.0 * COPIES * weights + 4.0 * BATCHES * n_rows * data.n_labels,
        kept_bytes=4.0 * weights,
        probed_rows=n_rows if probe else 0,
        probe_seconds=taken,
        loading_seconds=loading,
    )


def count_weights(model: BottleneckClassifier, n_features: int, n_labels: int) -> int:
    """Return about how many numbers a network has.

    >>> from longtail.bottleneck import BottleneckClassifier
    >>> count_weights(BottleneckClassifier(k=10, width=32, hidden=100), 1000, 500)
    121453
    """
    sizes = [int(s) for s in np.atleast_1d(model.hidden)] if isinstance(model.encoder, str) else [n_features]
    inner = [n_features, *sizes] if isinstance(model.encoder, str) else sizes
    below = sum(a * b + b for a, b in pairwise(inner))
    fixed = 2 * min(int(model.k), max((n_labels - 1) // 2, 0)) + 1 if model.head == "dft" else 0
    width = fixed + int(model.width)
    return below + (sizes[-1] + 1) * width + n_labels * int(model.width)
