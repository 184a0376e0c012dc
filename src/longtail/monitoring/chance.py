"""How far two histograms differ by chance alone: the rows of both are dealt out again, many times.

If batch and reference are rows of one kind, any way to deal the rows of both into two heaps of these sizes is equally
likely. So the share of deals that differ as much as what was seen is an exact p-value, for batches of any size.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

DEALS = 1999  # so that one in a thousand is the second largest of deals and batch together
LEVEL = 0.001
MOST_ROWS = 400_000_000  # of a heap; a larger one is scaled down, which only makes the test more careful


class Chance(NamedTuple):
    """A distance, what chance makes of it, and how likely chance alone gives as much."""

    distance: float
    expected: float  # mean distance by chance
    limit: float  # exceeded by chance once in 1,000 batches
    p_value: float

    @property
    def beyond(self) -> float:
        """What of the distance is not to be expected by chance."""
        return self.distance - self.expected

    def scaled(self, unit: float) -> Chance:
        """Return it in another unit."""
        return Chance(unit * self.distance, unit * self.expected, unit * self.limit, self.p_value)


def total_variation(batch: np.ndarray, reference: np.ndarray) -> np.ndarray:
    """Return the share of rows that would have to change their bin for two histograms to be alike."""
    return 0.5 * np.abs(_shares(batch) - _shares(reference)).sum(axis=-1)


def largest_shift(batch: np.ndarray, reference: np.ndarray) -> np.ndarray:
    """Return the Kolmogorov-Smirnov distance: the most that the shares of rows below a value differ."""
    return np.abs(np.cumsum(_shares(batch) - _shares(reference), axis=-1)).max(axis=-1)


def mean_difference(batch: np.ndarray, reference: np.ndarray) -> np.ndarray:
    """Return how far the mean numbers of bins differ, in bins."""
    return np.abs((_shares(batch) - _shares(reference)) @ np.arange(batch.shape[-1]))


STATISTICS = {
    "total variation": total_variation,
    "Kolmogorov-Smirnov": largest_shift,
    "difference of means": mean_difference,
}


def weigh_chance(statistic: str, batch: np.ndarray, reference: np.ndarray, slack: float = 0.0) -> Chance:
    """Return the distance of two histograms and what chance makes of it, besides a `slack` that has other reasons.

    >>> chance = weigh_chance("total variation", np.array([10, 90]), np.array([500, 500]))
    >>> round(chance.distance, 3), chance.p_value <= 0.001
    (0.4, True)
    """
    distance_of = STATISTICS[statistic]
    batch, reference = (_at_most(heap) for heap in (batch, reference))
    pool = batch + reference
    first, last = (int(np.flatnonzero(pool)[at]) for at in (0, -1))
    batch, pool = batch[first : last + 1], pool[first : last + 1]
    drawn = np.random.default_rng(0)
    used = np.flatnonzero(pool)
    dealt = np.zeros((DEALS, pool.size), dtype=np.int64)
    dealt[:, used] = drawn.multivariate_hypergeometric(pool[used], int(batch.sum()), size=DEALS, method="marginals")
    distance = float(distance_of(batch, pool - batch))
    by_chance = np.sort(distance_of(dealt, pool - dealt))
    above = DEALS - int(np.searchsorted(by_chance, distance - slack - 1e-12))
    return Chance(distance, float(by_chance.mean()), float(by_chance[-2]) + slack, (1 + above) / (1 + DEALS))


def population_stability(batch: np.ndarray, reference: np.ndarray) -> float:
    """Return the population stability index of two histograms, half a row added to every bin that either has.

    >>> round(population_stability(np.array([50, 50]), np.array([500, 500])), 6)
    0.0
    """
    used = (batch + reference) > 0
    p, q = (_shares(heap[used] + 0.5) for heap in (batch, reference))
    return float(((p - q) * np.log(p / q)).sum())


def _at_most(counts: np.ndarray) -> np.ndarray:
    """Return a histogram of at most `MOST_ROWS` rows."""
    total = int(counts.sum())
    return counts if total <= MOST_ROWS else np.floor(counts * (MOST_ROWS / total)).astype(np.int64)


def _shares(counts: np.ndarray) -> np.ndarray:
    return counts / np.maximum(counts.sum(axis=-1, keepdims=True), 1)
