"""Learning all labels on threads, block by block; each label by itself, so threads change nothing."""

from __future__ import annotations

import itertools
from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp

from longtail.aggregate.problem import Problem
from longtail.kernels.eagle import learn_labels
from longtail.kernels.threads import Progress, run_tasks
from longtail.validate import make_csr

BLOCKS = 64  # about as many tasks, of like numbers of members


@dataclass(frozen=True)
class Plan:
    """How to learn: see `kernels.eagle`."""

    take: np.ndarray  # rows wanted of each pair, int32
    start: np.ndarray  # what a member counts at the start, float32 per pair
    weight: np.ndarray  # what a chosen row counts, float32 per pair
    room: np.ndarray  # best rows to return of each pair, int64
    n_iter: int
    step: float
    contrast: bool
    temperature: float
    threshold: float


@dataclass(frozen=True, eq=False)
class Found:
    """The best rows of every pair, best first."""

    indptr: np.ndarray  # int64 (n_pairs + 1,)
    rows: np.ndarray  # int32 (places,)
    scores: np.ndarray  # float32 (places,): cosine with the label's vector
    shares: np.ndarray  # float32 (places,): how likely the row has the label

    @property
    def ranks(self) -> np.ndarray:
        """Place of every row within its pair, from 0."""
        return np.arange(self.rows.size) - np.repeat(self.indptr[:-1], np.diff(self.indptr))

    @property
    def pairs(self) -> np.ndarray:
        return np.repeat(np.arange(self.indptr.size - 1), np.diff(self.indptr))


def learn(
    problem: Problem, X: sp.csr_array, sums: sp.csr_array, plan: Plan, n_jobs: int, progress: Progress | None = None
) -> tuple[Found, sp.csr_array]:
    """Return the best rows of every (label, group) and the label vectors.

    X are the rows as they are compared, `sums` (n_groups, n_features) what they add up to in every group.
    """
    place_indptr = np.concatenate([[0], np.cumsum(plan.room)]).astype(np.int64)
    found = Found(
        place_indptr,
        np.empty(place_indptr[-1], dtype=np.int32),
        np.empty(place_indptr[-1], dtype=np.float32),
        np.empty(place_indptr[-1], dtype=np.float32),
    )
    indptr = X.indptr.astype(np.int64, copy=False)
    sum_indptr = sums.indptr.astype(np.int64, copy=False)
    times = np.diff(problem.groups.indptr).astype(np.float32)
    total = np.asarray(X.T @ times, dtype=np.float32)  # a row counts once for every group it is in
    toward = np.asarray(X @ total, dtype=np.float32)

    def task(bounds: tuple[int, int]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        return learn_labels(
            indptr, X.indices, X.data,
            sum_indptr, sums.indices, sums.data,
            problem.group_indptr, problem.group_rows, problem.label_indptr, problem.label_groups,
            plan.take, plan.start, plan.weight,
            bounds[0], bounds[1],
            plan.n_iter, np.float32(plan.step), plan.contrast,
            total, toward,
            plan.temperature, plan.threshold,
            place_indptr, found.rows, found.scores, found.shares,
        )  # fmt: skip

    parts = run_tasks(task, _blocks(problem), n_jobs, progress)
    return found, _vectors(parts, X.shape[1])


def _blocks(problem: Problem) -> list[tuple[int, int]]:
    """Return ranges of labels of about equal numbers of members, the same for any number of threads."""
    members = np.concatenate([[0], np.cumsum(problem.sizes)])[problem.label_indptr]
    cuts = np.searchsorted(members, np.linspace(0, members[-1], BLOCKS + 1)[1:-1])
    edges = np.unique(np.concatenate([[0], cuts, [problem.n_labels]]))
    return [(int(a), int(b)) for a, b in itertools.pairwise(edges)]


def _vectors(parts: list[tuple[np.ndarray, np.ndarray, np.ndarray]], n_features: int) -> sp.csr_array:
    """Join the blocks' vectors."""
    counts = np.concatenate([np.diff(sizes) for sizes, _, _ in parts])
    ids = np.concatenate([ids for _, ids, _ in parts])
    values = np.concatenate([values for _, _, values in parts])
    return make_csr(np.concatenate([[0], np.cumsum(counts)]), ids, values, n_features)
