"""Bootstrap intervals and randomisation tests, from the contributions of rows (or labels) alone.

A resample is a vector of how often each unit was drawn; the metric's column means follow from one matrix
product. All metrics of one call see the same resamples, so their intervals are paired. Beyond
`MAX_UNITS` units, the units are first put into that many random groups of equal size (to within one),
which are then drawn as a whole: groups of independent units are independent too, and time and memory
stay the same for any number of rows.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from longtail.metrics.measures import Measure

MAX_UNITS = 32_768
CELLS = 2_000_000  # draws held in memory at a time
TINY = 1e-12  # differences closer than this are ties: sums of floats depend on their order

Bounds = tuple[float | None, float | None]


def bootstrap_intervals(measures: Sequence[Measure], n_bootstrap: int, level: float, seed: int) -> list[Bounds]:
    """Return the percentile bootstrap interval of each measure; (None, None) where there is none.

    >>> from longtail.metrics.measures import identity
    >>> [(low, high)] = bootstrap_intervals([Measure("p", (np.array([0.0, 1.0] * 50),), identity)], 1000, 0.95, 0)
    >>> 0.38 < low < 0.45 and 0.55 < high < 0.62
    True
    """
    columns, where = _distinct_columns(measures)
    if not n_bootstrap or not columns or columns[0].size == 0:
        return [(None, None)] * len(measures)
    means = _resampled_means(columns, n_bootstrap, seed)
    return [_bounds(_resampled_values(m, at, means), level) for m, at in zip(measures, where)]


def paired_intervals(
    a: Sequence[Measure], b: Sequence[Measure], n_bootstrap: int, level: float, seed: int
) -> list[Bounds]:
    """Return the percentile bootstrap interval of each difference b - a, with the same units drawn for both."""
    columns_a, where = _distinct_columns(a)
    columns_b = _columns_of_other(b, where, len(columns_a))
    if not n_bootstrap or not columns_a or columns_a[0].size == 0:
        return [(None, None)] * len(a)
    means = _resampled_means(columns_a + columns_b, n_bootstrap, seed)
    c = len(columns_a)
    return [
        _bounds(_resampled_values(mb, at, means[:, c:]) - _resampled_values(ma, at, means[:, :c]), level)
        for ma, mb, at in zip(a, b, where)
    ]


def randomisation_p_values(
    a: Sequence[Measure], b: Sequence[Measure], n_permutations: int, seed: int
) -> list[float | None]:
    """Return the two-sided p-value of each difference: how often it is as large when a and b are swapped at random.

    If a and b were equally good, each unit's pair of contributions could as well be the other way round.
    p = (1 + number of swaps with a difference at least as large) / (1 + number of swaps tried).
    """
    columns_a, where = _distinct_columns(a)
    columns_b = _columns_of_other(b, where, len(columns_a))
    if not n_permutations or not columns_a or columns_a[0].size == 0:
        return [None] * len(a)
    n, c = columns_a[0].size, len(columns_a)
    units, _ = _units(columns_a + columns_b, seed)
    both = (units[:, :c] + units[:, c:]).sum(axis=0)
    apart = units[:, :c] - units[:, c:]
    apart = apart[np.any(apart != 0, axis=1)]  # units where a and b agree cannot matter
    at_least = np.zeros(len(a), dtype=np.int64)
    observed = [mb.value() - ma.value() for ma, mb in zip(a, b)]
    for left in _left_alone(n_permutations, apart.shape[0], seed):
        # s = 1 leaves a unit as it is, s = -1 swaps it:
        # sum_a = (Σ(a + b) + Σ s (a - b)) / 2 and sum_b = (Σ(a + b) - Σ s (a - b)) / 2
        swapped = 2.0 * (left @ apart) - apart.sum(axis=0)
        means_a, means_b = (both + swapped) / (2 * n), (both - swapped) / (2 * n)
        for i, (ma, mb, at) in enumerate(zip(a, b, where)):
            differences = np.abs(_resampled_values(mb, at, means_b) - _resampled_values(ma, at, means_a))
            at_least[i] += int(((differences >= abs(observed[i]) - TINY) | np.isnan(differences)).sum())
    return [
        None if np.isnan(seen) else float((1 + count) / (1 + n_permutations)) for seen, count in zip(observed, at_least)
    ]


def _resampled_means(columns: list[np.ndarray], n_bootstrap: int, seed: int) -> np.ndarray:
    """Return the column means of each resample: float64 (n_bootstrap, n_columns)."""
    units, sizes = _units(columns, seed)
    table = np.hstack([units, sizes[:, None]])
    n = table.shape[0]
    rng = np.random.default_rng([seed, 1])
    sums = np.empty((n_bootstrap, table.shape[1]))
    step = max(1, CELLS // n)
    for start in range(0, n_bootstrap, step):
        size = min(step, n_bootstrap - start)
        drawn = rng.integers(0, n, size=(size, n))
        drawn += np.arange(size)[:, None] * n
        times = np.bincount(drawn.ravel(), minlength=size * n).reshape(size, n)
        sums[start : start + size] = times.astype(np.float64) @ table
    return sums[:, :-1] / sums[:, -1:]


def _left_alone(n_permutations: int, n: int, seed: int) -> Iterator[np.ndarray]:
    """Yield blocks of fair coin tosses, 0 (swap) or 1 (leave): float64 (block, n)."""
    rng = np.random.default_rng([seed, 2])
    step = max(1, CELLS // max(n, 1))
    for start in range(0, n_permutations, step):
        size = min(step, n_permutations - start)
        bits = np.unpackbits(np.frombuffer(rng.bytes((size * n + 7) // 8), dtype=np.uint8), count=size * n)
        yield bits.reshape(size, n).astype(np.float64)


def _units(columns: list[np.ndarray], seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the contributions that are drawn together, and of how many rows each consists."""
    n = columns[0].size
    if n <= MAX_UNITS:
        return np.stack(columns, axis=1).astype(np.float64), np.ones(n)
    group = np.random.default_rng([seed, 0]).permutation(n) % MAX_UNITS
    sums = [np.bincount(group, weights=column, minlength=MAX_UNITS) for column in columns]
    return np.stack(sums, axis=1), np.bincount(group, minlength=MAX_UNITS).astype(np.float64)


def _distinct_columns(measures: Sequence[Measure]) -> tuple[list[np.ndarray], list[list[int]]]:
    """Return each column once, and for each measure the positions of its columns."""
    columns: list[np.ndarray] = []
    position: dict[int, int] = {}
    where = []
    for measure in measures:
        at = []
        for column in measure.columns:
            if id(column) not in position:
                position[id(column)] = len(columns)
                columns.append(column)
            at.append(position[id(column)])
        where.append(at)
    return columns, where


def _columns_of_other(measures: Sequence[Measure], where: list[list[int]], size: int) -> list[np.ndarray]:
    """Return the columns of the other model, in the order of the first one's."""
    columns = {i: column for m, at in zip(measures, where) for i, column in zip(at, m.columns)}
    return [columns[i] for i in range(size)]


def _resampled_values(measure: Measure, at: list[int], means: np.ndarray) -> np.ndarray:
    """Return the value of a measure in each resample."""
    return np.asarray(measure.combine(*(means[:, i] for i in at)))


def _bounds(values: np.ndarray, level: float) -> Bounds:
    values = values[~np.isnan(values)]  # resamples in which the measure is undefined
    if values.size == 0:
        return None, None
    low, high = np.quantile(values, [(1 - level) / 2, (1 + level) / 2])
    return float(low), float(high)


def share_interval(hits: float, n: float, z: float = 1.96) -> tuple[float, float]:
    """Return Wilson's interval of a share, 95% unless z says otherwise: for single labels, too few to resample.

    >>> [round(end, 3) for end in share_interval(0, 10)], [round(end, 3) for end in share_interval(5, 10)]
    ([0.0, 0.278], [0.237, 0.763])
    """
    middle, width = hits + z * z / 2, z * (hits * (n - hits) / n + z * z / 4) ** 0.5
    return max(0.0, (middle - width) / (n + z * z)), min(1.0, (middle + width) / (n + z * z))
