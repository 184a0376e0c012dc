"""Judge the labels found in a group by label vectors that were learned from the other groups."""

from __future__ import annotations

import itertools
from collections.abc import Callable

import numpy as np
import scipy.sparse as sp

from longtail.groups.grouped_rows import GroupedRows
from longtail.groups.held_out_kernel import judge_labels, spread_of_labels
from longtail.kernels import run_tasks

FOLDS = 3  # parts of the groups; the vectors that judge one are learned from the others
SAMPLE = 64  # rows that tell how a label's scores spread where it has no business
FEWEST = 2 * FOLDS  # groups with labels; of fewer, none is judged
BLOCKS = 64  # of labels
LEAST_SPREAD = 0.1  # of the mean variance of all labels, added to each


def held_out_shares(
    grouped: GroupedRows,
    found: sp.csr_array,  # (n_rows, n_labels): labels found
    learn_vectors: Callable[[np.ndarray, np.ndarray], sp.csr_array],  # from rows and groups to (n_labels, n_features)
    seed: int,
    n_jobs: int,
) -> tuple[np.ndarray, np.ndarray]:
    """Return how likely each label found is by vectors learned from other groups, and which share of its group has it.

    Both are float64, one value for each entry of `found`. The groups are dealt into folds; the vectors that judge those
    of a fold are learned from the groups of the others, so that no choice judges itself. A score is measured in
    standard deviations of the label's scores on a sample of rows, s = asinh(z), and the rows of a group get
    probabilities σ(s + b) that add up to how many of them have the label. A label of no other group leaves all rows
    of the group alike.
    """
    expected = _expected(grouped)
    shares, base = np.zeros(found.nnz), np.zeros(found.nnz)
    rng = np.random.default_rng(seed)
    n_groups = grouped.group_indptr.size - 1
    labelled = np.unique(grouped.label_groups)
    fold_of = np.full(n_groups, -1)
    fold_of[labelled] = rng.permutation(labelled.size) % FOLDS
    others = np.setdiff1d(np.arange(n_groups), labelled)
    fold_of[others] = rng.permutation(others.size) % FOLDS
    X = grouped.X
    filled = np.flatnonzero(np.diff(X.indptr) > 0)
    sample = filled[np.sort(rng.permutation(filled.size)[:SAMPLE])]
    for fold in range(FOLDS):
        V = sp.csr_array((grouped.n_labels, X.shape[1]), dtype=np.float32)
        if labelled.size >= FEWEST and filled.size:
            rest = np.flatnonzero(fold_of != fold)
            V = learn_vectors(_rows_of(grouped, rest), rest)
        _judge(grouped, V, fold_of == fold, sample, expected, found, shares, base, n_jobs)
    return shares, base


def expected_rows(sizes: np.ndarray, times: np.ndarray, group_sizes: np.ndarray) -> np.ndarray:
    """Return how many rows of a group to expect a label of, where only sets of labels are known, float64 per pair.

    If a share p of all rows has a label, independently, 1 - (1 - p)^g of the groups of g rows have it, and of the rows
    of these g · p / (1 - (1 - p)^g). `sizes` are those of the pairs' groups, `times` how many groups have the pairs'
    labels, `group_sizes` those of all groups.

    >>> expected_rows(np.array([4, 4]), np.array([1, 90]), np.full(100, 4)).round(2).tolist()
    [1.0, 1.91]
    """
    used = group_sizes[group_sizes > 0]
    p = -np.expm1(np.log1p(-times / (used.size + 1)) / used.mean())
    return np.clip(sizes * p / np.maximum(-np.expm1(sizes * np.log1p(-p)), 1e-12), 1, sizes)


def _expected(grouped: GroupedRows) -> np.ndarray:
    """Return how many rows of its group each label has, float64 per pair: the count if it is known."""
    if grouped.counted:
        return np.minimum(grouped.counts, grouped.sizes).astype(np.float64)
    times = np.diff(grouped.label_indptr)
    return expected_rows(grouped.sizes, np.repeat(times, times), np.diff(grouped.group_indptr))


def _rows_of(grouped: GroupedRows, groups: np.ndarray) -> np.ndarray:
    """Return the rows of some groups, in order."""
    chosen = np.zeros(grouped.group_indptr.size - 1, dtype=bool)
    chosen[groups] = True
    return np.unique(grouped.group_rows[np.repeat(chosen, np.diff(grouped.group_indptr))])


def _judge(
    grouped: GroupedRows,
    V: sp.csr_array,
    judged: np.ndarray,
    sample: np.ndarray,
    expected: np.ndarray,
    found: sp.csr_array,
    shares: np.ndarray,
    base: np.ndarray,
    n_jobs: int,
) -> None:
    """Write shares and base of the labels found in the judged groups."""
    X, n_labels = grouped.X, grouped.n_labels
    x_indptr, v_indptr, f_indptr = (matrix.indptr.astype(np.int64) for matrix in (X, V, found))
    spread = np.zeros((n_labels, 2))
    edges = np.unique(np.linspace(0, n_labels, BLOCKS + 1).astype(np.int64))
    tasks = [(int(a), int(b)) for a, b in itertools.pairwise(edges)]
    vectors = v_indptr, V.indices.astype(np.int32), V.data.astype(np.float32)
    rows = x_indptr, X.indices.astype(np.int32), X.data

    def measure(bounds: tuple[int, int]) -> None:
        spread_of_labels(*bounds, *rows, *vectors, sample.astype(np.int64), X.shape[1], spread)

    run_tasks(measure, tasks, n_jobs)
    known = spread[:, 1] > 0
    spread[known, 1] = np.sqrt(spread[known, 1] + LEAST_SPREAD * spread[known, 1].mean()) if known.any() else 0

    def judge(bounds: tuple[int, int]) -> None:
        judge_labels(
            *bounds,
            *rows,
            *vectors,
            grouped.group_indptr,
            grouped.group_rows,
            grouped.label_indptr,
            grouped.label_groups,
            judged,
            expected,
            spread,
            X.shape[1],
            f_indptr,
            found.indices.astype(np.int32),
            shares,
            base,
        )

    run_tasks(judge, tasks, n_jobs)
