"""Counting the label sets that a layer of a given shape can produce, and checking its rows for dependence."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from longtail.audit.read_weights import LayerLike, read_layer
from longtail.errors import ParameterError
from longtail.facts import CapacityFacts, PositionFacts
from longtail.validate import LabelNumbers, RandomState, check_flag, check_integer, resolve_seed

MOST_EXACT_LABELS = 2000  # counts are exact integers up to here
MOST_SUBSETS = 20_000
SUSPICIOUS = 1e-9  # smallest singular value of unit rows, below which dependence is decided exactly
MOST_EXACT_DIMENSIONS = 40  # the exact rank of a larger matrix takes too long


@dataclass(frozen=True)
class Capacity:
    """Number of reachable label sets, of the 2^n_labels that there are."""

    n_labels: int
    width: int
    bias: bool
    log2_sets: float  # logarithm of the number of reachable sets
    log2_share: float  # logarithm of their share of all sets
    sets: int | None  # the exact number; None for more than 2,000 labels

    def to_facts(self) -> CapacityFacts:
        """Return a JSON-able dict; a count beyond 2^53 stays a power of two."""
        small = self.sets if self.sets is not None and self.sets < 2**53 else None
        return {
            "n_labels": self.n_labels,
            "width": self.width,
            "bias": self.bias,
            "log2_sets": self.log2_sets,
            "log2_share": self.log2_share,
            "sets": small,
        }


def capacity(n: int, d: int, bias: bool = False) -> Capacity:
    """Return how many label sets n labels in d dimensions can reach when the rows are in general position.

    Without a bias 2 * sum of C(n - 1, i) for i < d (Cover); with one, sum of C(n, i) for i <= d, which is fewer than
    one more dimension would give. Rows in special position reach fewer.

    >>> capacity(3, 2).sets, capacity(3, 2, bias=True).sets
    (6, 7)
    >>> round(capacity(10_000, 50).log2_share)
    -9557
    """
    n, d = check_integer("n", n, low=1), check_integer("d", d, low=1)
    bias = check_flag("bias", bias)
    of, terms, doubled = (n, min(d, n) + 1, 0) if bias else (n - 1, min(d, n), 1)
    if n <= MOST_EXACT_LABELS:
        sets = (1 << doubled) * sum(math.comb(of, i) for i in range(terms))
        log2 = _log2(sets)
        return Capacity(n, d, bias, log2, 0.0 if sets == 1 << n else log2 - n, sets)
    if terms > of:
        return Capacity(n, d, bias, float(n), 0.0, None)
    i = np.arange(terms, dtype=np.float64)
    logs = np.concatenate([[0.0], np.cumsum(np.log2((of - i[1:] + 1) / i[1:]))])
    top = float(logs.max())
    log2 = top + math.log2(float(np.exp2(logs - top).sum())) + doubled
    return Capacity(n, d, bias, min(log2, float(n)), min(log2 - n, 0.0), None)


def _log2(value: int) -> float:
    """Return the logarithm of an integer of any size."""
    shift = max(value.bit_length() - 60, 0)
    return math.log2(value >> shift) + shift


def general_position(W: LayerLike, random_state: RandomState = None) -> PositionFacts:
    """Say whether every d rows of W are independent, as far as that can be decided.

    `general_position` is True if all subsets were looked at, False if dependent rows were found (they are named, and
    exactly dependent), None if a sample of subsets showed nothing.

    >>> general_position([[1, 0], [0, 1], [1, 1]])["general_position"]
    True
    >>> general_position([[1, 0], [0, 1], [2, 0]])["dependent_rows"]
    [0, 2]
    """
    weights, _ = read_layer(W)
    n, d = weights.shape
    rank = int(np.linalg.matrix_rank(weights))
    size = min(n, d)
    out: PositionFacts = {"n_labels": n, "width": d, "rank": rank, "general_position": None, "dependent_rows": None}
    parallel = _parallel_rows(weights)
    exhaustive = math.comb(n, size) <= MOST_SUBSETS
    if parallel is not None and size >= len(parallel):
        return out | {"general_position": False, "dependent_rows": parallel, "checked": 1, "exhaustive": False}
    rng = np.random.default_rng(resolve_seed(random_state))
    lengths = np.linalg.norm(weights, axis=1, keepdims=True)
    unit = weights / np.where(lengths > 0, lengths, 1)
    subsets: Iterable[Sequence[int] | np.ndarray] = itertools.combinations(range(n), size)
    if not exhaustive:
        sample = max(1, min(MOST_SUBSETS, 20_000_000 // size**3))
        subsets = (np.sort(rng.choice(n, size, replace=False)) for _ in range(sample))
    checked, unsure = 0, False
    for subset in subsets:
        rows = np.asarray(subset)
        checked += 1
        if np.linalg.svd(unit[rows], compute_uv=False)[-1] > SUSPICIOUS:
            continue
        if size > MOST_EXACT_DIMENSIONS:
            unsure = True
        elif _rank(weights[rows]) < size:
            out |= {"general_position": False, "dependent_rows": rows.tolist()}
            return out | {"checked": checked, "exhaustive": exhaustive}
    answer = True if exhaustive and not unsure else None
    return out | {"general_position": answer, "checked": checked, "exhaustive": exhaustive}


@dataclass(frozen=True)
class MinorSigns:
    """How many maximal minors of a matrix are above, below and equal to 0."""

    positive: int
    negative: int
    zero: int

    @property
    def one_sign(self) -> bool:
        """Whether none is 0 and all have the same sign: every pattern of at most d - 1 sign changes can come out."""
        return self.zero == 0 and min(self.positive, self.negative) == 0


def minor_signs(W: LayerLike, order: LabelNumbers | None = None) -> MinorSigns:
    """Count the signs of all maximal minors of W (n, d), exactly: the determinants of its d by d submatrices of rows.

    If they agree (`one_sign`), exactly the label sets with at most d - 1 changes between on and off, along the rows,
    can come out (Gantmakher and Krein; Karp 2017): with d = 2k + 1 every set of at most k labels. `order` lists the
    rows in the order along which changes are counted. There may be at most 20,000 minors.

    >>> from longtail.bottleneck import dft_matrix
    >>> minor_signs(dft_matrix(7, 2)), minor_signs(dft_matrix(7, 2)).one_sign
    (MinorSigns(positive=21, negative=0, zero=0), True)
    """
    weights, _ = read_layer(W)
    rows = weights if order is None else weights[np.asarray(order, dtype=np.int64)]
    n, d = rows.shape
    if d > n or math.comb(n, d) > MOST_SUBSETS:
        allowed = f"no wider than tall and have at most {MOST_SUBSETS:,} maximal minors"
        raise ParameterError(name="W", allowed=allowed, got=f"{n} x {d}")
    signs = [_determinant_sign(rows[list(chosen)]) for chosen in itertools.combinations(range(n), d)]
    return MinorSigns(signs.count(1), signs.count(-1), signs.count(0))


def _determinant_sign(A: np.ndarray) -> int:
    """Return the sign of a determinant of doubles; by exact arithmetic where rounding could decide."""
    sign, log_size = np.linalg.slogdet(A)
    if log_size - np.log(np.linalg.norm(A, axis=1)).sum() > math.log(SUSPICIOUS):
        return int(sign)
    rows, out = [[Fraction(float(v)) for v in row] for row in A], 1
    for column in range(len(rows)):
        at = next((r for r in range(column, len(rows)) if rows[r][column]), None)
        if at is None:
            return 0
        if at != column:
            rows[column], rows[at], out = rows[at], rows[column], -out
        out = out if rows[column][column] > 0 else -out
        for r in range(column + 1, len(rows)):
            factor = rows[r][column] / rows[column][column]
            rows[r] = [v - factor * w for v, w in zip(rows[r], rows[column], strict=True)]
    return out


def _parallel_rows(weights: np.ndarray) -> list[int] | None:
    """Return a row of zeros, or two rows of which one is exactly a multiple of the other; None if there are none."""
    zero = np.flatnonzero(~weights.any(axis=1))
    if zero.size:
        return [int(zero[0])]
    first = (weights != 0).argmax(axis=1)
    scaled = np.round(weights / weights[np.arange(len(weights)), first][:, None], 9)
    _, groups = np.unique(scaled + 0.0, axis=0, return_inverse=True)
    order = np.argsort(groups, kind="stable")
    for a, b in itertools.pairwise(order):
        if groups[a] == groups[b] and _rank(weights[[a, b]]) < 2:
            return sorted([int(a), int(b)])
    return None


def _rank(A: np.ndarray) -> int:
    """Return the exact rank of a matrix of doubles."""
    rows = [[Fraction(float(v)) for v in row] for row in A]
    rank = 0
    for column in range(A.shape[1]):
        at = next((r for r in range(rank, len(rows)) if rows[r][column]), None)
        if at is None:
            continue
        rows[rank], rows[at] = rows[at], rows[rank]
        for r in range(rank + 1, len(rows)):
            if rows[r][column]:
                factor = rows[r][column] / rows[rank][column]
                rows[r] = [v - factor * w for v, w in zip(rows[r], rows[rank], strict=True)]
        rank += 1
    return rank
