"""Batches for contrastive training: similar queries together, and the labels that are shown with them.

All of it is numpy and follows from the seed, the epoch and the step alone, so a run that was stopped goes on as if
nothing had happened.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp

from longtail.data import inverse_propensities
from longtail.errors import DataError
from longtail.prime.sample_labels import draw_pool, group_rows
from longtail.validate import check_integer, check_real

PROPENSITY_A, PROPENSITY_B = 0.55, 1.5
# when clusters double, as shares of all epochs: after 10, 25, 50, 75, 100, 125, 150 and 200 of 300
GROWTH = tuple(epoch / 300 for epoch in (10, 25, 50, 75, 100, 125, 150, 200))


def sampling_weights(Y: sp.csr_array, A: float = PROPENSITY_A, B: float = PROPENSITY_B) -> np.ndarray:
    """Return the inverse propensity of every label, float64: how much more often a rare label should be shown.

    >>> sampling_weights(sp.csr_array(np.array([[1.0, 1.0]] + [[1.0, 0.0]] * 8))).round(2).tolist()
    [1.54, 2.2]
    """
    counts = np.bincount(Y.indices, minlength=Y.shape[1])
    return inverse_propensities(counts, Y.shape[0], A, B)


def label_weights(Y: sp.csr_array, sampling: str) -> np.ndarray:
    """Return how often each label should be shown: "uniform" or, more often the rarer it is, "propensity"."""
    return np.ones(Y.shape[1]) if sampling == "uniform" else sampling_weights(Y)


class LabelPool(NamedTuple):
    """The labels sampled for the rows of a batch, and which of them are true for which row."""

    rows: np.ndarray  # int64 (n_pool,): the batch row each entry of the pool was sampled for, ascending
    labels: np.ndarray  # int64 (n_pool,): its label; a label may come several times
    unique: np.ndarray  # int64 (n_unique,): the labels once each
    position: np.ndarray  # int64 (n_pool,): unique[position] == labels
    true_rows: np.ndarray  # int64 (n_true,): pairs (batch row, position in `unique`) that are true
    true_positions: np.ndarray


class LabelRows(NamedTuple):
    """All labels of the rows of a batch, and for each label the rows that have it."""

    labels: np.ndarray  # int64 (n,): once each
    counts: np.ndarray  # int64 (n,): how many of the rows have the label
    rows: np.ndarray  # int64 (counts.sum(),): these rows by their number in the batch, label after label, ascending


class PositiveSampler:
    """Draws labels for the rows of a batch: up to `n_positives` of each row's own.

    A row's labels are drawn one after the other in proportion to their `weights`, none twice.

    Parameters
    ----------
    Y : csr_array of shape (n_rows, n_labels)
        Labels of all rows.
    weights : ndarray of shape (n_labels,)
        Weights of the labels, above 0.
    n_positives : int
        Labels drawn per row, at most.

    Examples
    --------
    >>> Y = sp.csr_array([[1.0, 1.0, 0.0], [0.0, 1.0, 1.0]])
    >>> pool = PositiveSampler(Y, np.ones(3), n_positives=2)(np.array([1, 0]), np.random.default_rng(0))
    >>> pool.rows.tolist(), sorted(pool.labels.tolist())
    ([0, 0, 1, 1], [0, 1, 1, 2])
    """

    indptr: np.ndarray
    indices: np.ndarray

    def __init__(self, Y: sp.csr_array, weights: np.ndarray, n_positives: int) -> None:
        if weights.shape != (Y.shape[1],) or not bool((weights > 0).all()):
            raise DataError(f"weights must hold one number above 0 per label ({Y.shape[1]}).")
        self.indptr, self.indices = Y.indptr.astype(np.int64), Y.indices
        self.weights: np.ndarray = weights.astype(np.float64, copy=False)
        self.n_positives: int = check_integer("n_positives", n_positives, low=1)
        self._position = np.full(Y.shape[1], -1, dtype=np.int64)

    def __call__(self, rows: np.ndarray, rng: np.random.Generator) -> LabelPool:
        """Return the labels sampled for some rows."""
        rows = rows.astype(np.int64, copy=False)
        n = int((self.indptr[rows + 1] - self.indptr[rows]).sum())
        # the labels with the smallest exponential variables of rate w are a draw without replacement, weighted by w
        lots = rng.exponential(size=n)
        return LabelPool(
            *draw_pool(rows, self.indptr, self.indices, self.weights, lots, self.n_positives, self._position)
        )

    def label_rows(self, rows: np.ndarray) -> LabelRows:
        """Return all labels of some rows, whether drawn or not, with the rows of each."""
        return LabelRows(*group_rows(rows.astype(np.int64, copy=False), self.indptr, self.indices, self._position))


def cut_batches(
    n_rows: int, batch_size: int, rng: np.random.Generator, cluster: np.ndarray | None = None
) -> list[np.ndarray]:
    """Return the batches of an epoch: all rows in random order, or cluster after cluster in random order.

    >>> batches = cut_batches(6, 4, np.random.default_rng(0), np.array([0, 1, 2, 0, 1, 2]))
    >>> [rows.size for rows in batches], set(batches[1] % 3).__len__()
    ([4, 2], 1)
    """
    if cluster is None:
        order = rng.permutation(n_rows)
    else:
        shuffled = rng.permutation(int(cluster.max(initial=0)) + 1)
        order = np.argsort(shuffled[cluster], kind="stable")
    return [order[at : at + batch_size] for at in range(0, n_rows, batch_size)]


@dataclass(frozen=True)
class Curriculum:
    """Sizes of the clusters of similar queries as training goes on, and the epochs in which they are formed anew.

    Parameters
    ----------
    start : int, default=4
        Queries of a cluster at first.
    growth : sequence of float, default=GROWTH
        Shares of all epochs: no clusters before the first one, and clusters twice as large from every further one.
    refreshes : int, default=60
        How often clusters are formed in all; at most once an epoch.

    Examples
    --------
    >>> [Curriculum(start=4).size(epoch, 300) for epoch in (0, 9, 10, 25, 299)]
    [0, 0, 4, 8, 512]
    """

    start: int = 4
    growth: Sequence[float] = GROWTH
    refreshes: int = 60

    def __post_init__(self) -> None:
        check_integer("start", self.start, low=1)
        check_integer("refreshes", self.refreshes, low=1)
        for share in self.growth:
            check_real("growth", share, low=0, high=1)

    def size(self, epoch: int, epochs: int) -> int:
        """Return the size of clusters in an epoch; 0 for batches at random."""
        passed = sum(epoch >= share * epochs for share in sorted(self.growth))
        return self.start * 2 ** (passed - 1) if passed else 0

    def refresh(self, epoch: int, epochs: int) -> bool:
        """Say whether clusters are formed anew before an epoch: on schedule, and when there are none yet."""
        if not self.size(epoch, epochs):
            return False
        every = max(1, epochs // self.refreshes)
        first = not self.size(epoch - 1, epochs) if epoch else True
        return first or epoch % every == 0
