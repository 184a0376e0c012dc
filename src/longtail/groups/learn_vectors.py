"""Learning the vectors of all labels block by block, as tasks of an engine; labels do not influence each other."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from longtail.engine import Arrays, Work, engine_for
from longtail.groups.eagle_kernel import learn_labels
from longtail.groups.grouped_rows import GroupedRows
from longtail.groups.kernel_arrays import (
    GroupArrays,
    LabelArrays,
    LearningRule,
    MemberRows,
    number_features,
    pack_members,
)
from longtail.kernels import LANES, Progress
from longtail.validate import Json, make_csr

BLOCKS = 64  # about as many tasks, of like numbers of members
BLOCK = 1 << 24  # values of label vectors that a task may hold twice
ROUNDS_TO_FILL = 20
COPY, VECTOR = 0.6, 1.5  # what copying a value and a step of sixteen lanes cost, in terms of a multiply-add


@dataclass(frozen=True)
class EaglePlan:
    """Rows wanted of every pair (a label in a group), and the rule by which label vectors are learned."""

    take: np.ndarray  # rows wanted of each pair, int32
    more: np.ndarray  # rows that a label gets beside these, wherever they are nearest, int64 (n_labels,)
    start: np.ndarray  # weight of a member at the start, float32 per pair
    weight: np.ndarray  # weight of a chosen row, float32 per pair
    n_best: np.ndarray  # best rows to return of each pair, int64
    refined: np.ndarray  # whether each label's vector leaves its start (with contrast), uint8 (n_labels,)
    n_iter: int
    step: float
    contrast: bool
    temperature: float
    threshold: float


@dataclass(frozen=True, eq=False)
class BestRows:
    """The best rows of every pair, best first."""

    indptr: np.ndarray  # int64 (n_pairs + 1,)
    rows: np.ndarray  # int32 (indptr[-1],)
    scores: np.ndarray  # float32 (indptr[-1],): cosine with the label's vector
    shares: np.ndarray  # float32 (indptr[-1],): how likely the row has the label

    @classmethod
    def empty(cls, n_best: np.ndarray) -> BestRows:
        """Return arrays for so many rows of each pair, to be filled."""
        indptr = np.concatenate([[0], np.cumsum(n_best)]).astype(np.int64)
        n = indptr[-1]
        return cls(indptr, np.empty(n, dtype=np.int32), np.empty(n, dtype=np.float32), np.empty(n, dtype=np.float32))

    @property
    def ranks(self) -> np.ndarray:
        """Rank of every row within its pair, from 0."""
        return np.arange(self.rows.size) - np.repeat(self.indptr[:-1], np.diff(self.indptr))

    @property
    def pairs(self) -> np.ndarray:
        """Pair of every row."""
        return np.repeat(np.arange(self.indptr.size - 1), np.diff(self.indptr))


def learn(
    grouped: GroupedRows,
    X: sp.csr_array,
    sums: sp.csr_array,
    plan: EaglePlan,
    n_jobs: int,
    progress: Progress | None = None,
) -> tuple[BestRows, sp.csr_array]:
    """Return the best rows of every pair and the label vectors.

    X are the rows as they are compared, `sums` (n_groups, n_features) the sums of the rows of every group.
    """
    best = BestRows.empty(plan.n_best)
    sum_indptr = sums.indptr.astype(np.int64, copy=False)
    sum_ids = sums.indices.astype(np.int32, copy=False)
    groups = GroupArrays(grouped.group_indptr, grouped.group_rows, sum_indptr, sum_ids, sums.data)
    labels = LabelArrays(
        grouped.label_indptr, grouped.label_groups, plan.take, plan.start, plan.weight, best.indptr, plan.refined
    )
    rule = LearningRule(plan.n_iter, np.float32(plan.step), plan.contrast, plan.temperature, plan.threshold)
    members = _member_rows(X, groups)
    by_group = _is_faster_by_group(members, groups, labels, n_jobs)
    if by_group:
        members = members._replace(local=np.empty_like(members.ids))
        number_features(
            groups.indptr, members.indptr, members.ids, groups.sum_indptr, groups.sum_ids, X.shape[1], members.local
        )
    times = np.diff(grouped.groups.indptr).astype(np.float32)
    total = np.asarray(X.T @ times, dtype=np.float32)  # a row counts once for every group it is in
    toward = np.asarray(X @ total, dtype=np.float32)
    most = max(BLOCK // X.shape[1], 1)

    engine = engine_for(n_jobs)
    arrays: Arrays = {"total": total, "toward": toward}
    arrays |= {f"members.{name}": array for name, array in members._asdict().items()}
    arrays |= {f"groups.{name}": array for name, array in groups._asdict().items()}
    arrays |= {f"labels.{name}": array for name, array in labels._asdict().items()}
    settings = {"rule": {**rule._asdict(), "step": float(rule.step)}, "by_group": by_group, "most": most}
    # by group, many labels at once fill the lanes; what they are computed with changes nothing
    at_once = engine.workers
    blocks = _blocks(grouped, 2 * at_once if by_group and at_once > 1 else at_once if by_group else BLOCKS)
    done = 0

    def told(_: int) -> None:
        nonlocal done
        done += 1
        if progress is not None:
            progress(done, len(blocks))

    parts = engine.map(VECTORS, [engine.share(arrays)], settings, blocks, told=told)
    for (first, last), part in zip(blocks, parts, strict=True):
        low, high = (best.indptr[grouped.label_indptr[label]] for label in (first, last))
        best.rows[low:high], best.scores[low:high], best.shares[low:high] = part["rows"], part["scores"], part["shares"]
    return best, _join_vectors([(part["sizes"], part["ids"], part["values"]) for part in parts], X.shape[1])


class VectorTask(NamedTuple):
    """What all tasks of a training need."""

    members: MemberRows
    groups: GroupArrays
    labels: LabelArrays
    rule: LearningRule
    total: np.ndarray
    toward: np.ndarray
    by_group: bool
    most: int  # labels that are learned together, at most


def prepare_vectors(arrays: Arrays, settings: Json) -> VectorTask:
    """Put shared arrays together to rows, groups and labels."""

    def fields(kind: Any, name: str) -> Any:
        return kind(**{field: arrays[f"{name}.{field}"] for field in kind._fields})

    given = fields(MemberRows, "members"), fields(GroupArrays, "groups"), fields(LabelArrays, "labels")
    rule = LearningRule(**{**settings["rule"], "step": np.float32(settings["rule"]["step"])})
    return VectorTask(*given, rule, arrays["total"], arrays["toward"], settings["by_group"], settings["most"])


def learn_some(given: VectorTask, bounds: Sequence[int]) -> Arrays:
    """Learn the vectors of some labels, and the best rows of their pairs."""
    first, last = bounds
    labels = given.labels
    low, high = (int(labels.best_indptr[labels.indptr[label]]) for label in (first, last))
    own = labels._replace(best_indptr=labels.best_indptr - low)  # so that they are written to arrays of their own
    rows = np.empty(high - low, dtype=np.int32)
    scores, shares = np.empty(high - low, dtype=np.float32), np.empty(high - low, dtype=np.float32)
    width = min(last - first, given.most) if given.by_group else 1
    arrays = given.members, given.groups, own, given.rule, given.total, given.toward
    sizes, ids, values = learn_labels(*arrays, first, last, width, given.by_group, rows, scores, shares)
    return {"rows": rows, "scores": scores, "shares": shares, "sizes": sizes, "ids": ids, "values": values}


VECTORS = Work(prepare_vectors, learn_some)


def whole_rest(labels: np.ndarray, rest: np.ndarray, n_labels: int) -> np.ndarray:
    """Return how many whole rows the parts of rows left at the pairs of each label make, int64 (n_labels,)."""
    return np.floor(np.bincount(labels, rest, minlength=n_labels) + 1e-6).astype(np.int64)


def best_of_rest(labels: np.ndarray, scores: np.ndarray, taken: np.ndarray, more: np.ndarray) -> np.ndarray:
    """Mark, of the rows not taken, the `more` nearest of each label, of whichever group; never one with a score < 0."""
    marked = np.zeros(labels.size, dtype=bool)
    rest = np.flatnonzero(~taken & (scores > 0) & (more[labels] > 0))
    rest = rest[np.lexsort((-scores[rest], labels[rest]))]
    first = np.searchsorted(labels[rest], labels[rest])  # where the rows of each label begin
    marked[rest[np.arange(rest.size) - first < more[labels[rest]]]] = True
    return marked


def filled_up(pairs: np.ndarray, shares: np.ndarray, take: np.ndarray) -> np.ndarray:
    """Return shares raised by a common factor per pair, up to 1 each, so that those of a pair add up to its `take`.

    Every pair must have at least as many shares as it takes rows.

    >>> filled_up(np.array([0, 0, 1]), np.array([0.6, 0.2, 0.1]), np.array([1, 1])).round(2).tolist()
    [0.75, 0.25, 1.0]
    """
    out = np.maximum(shares.astype(np.float64), 1e-6)
    for _ in range(ROUNDS_TO_FILL):
        open_ = out < 1
        full = np.bincount(pairs[~open_], minlength=take.size)
        rest = np.bincount(pairs[open_], out[open_], minlength=take.size)
        factor = np.divide(take - full, rest, out=np.ones(take.size), where=rest > 0)
        out[open_] = np.minimum(out[open_] * factor[pairs[open_]], 1.0)
        if np.abs(factor - 1).max(initial=0) < 1e-6:
            break
    return out.astype(np.float32)


def _member_rows(X: sp.csr_array, groups: GroupArrays) -> MemberRows:
    """Copy the rows of every group, so that they lie together."""
    indptr = X.indptr.astype(np.int64, copy=False)
    new_indptr = np.concatenate([[0], np.cumsum(np.diff(indptr)[groups.rows])]).astype(np.int64)
    ids, data = np.empty(new_indptr[-1], dtype=np.int32), np.empty(new_indptr[-1], dtype=np.float32)
    pack_members(indptr, X.indices, X.data, groups.rows, new_indptr, ids, data)
    return MemberRows(new_indptr, ids, np.empty(0, dtype=np.int32), data)


def _is_faster_by_group(members: MemberRows, groups: GroupArrays, labels: LabelArrays, n_jobs: int) -> bool:
    """Compare the cost of the two ways to score that `score_members` describes."""
    n_labels = np.bincount(labels.groups, minlength=groups.indptr.size - 1)
    width, nnz = np.diff(groups.sum_indptr), np.diff(members.indptr[groups.indptr])
    n_features = int(groups.sum_ids.max(initial=0)) + 1
    parts = max(labels.indptr.size * n_features / BLOCK, 2 * n_jobs)
    lanes = n_labels / LANES + np.minimum(parts, n_labels) / 2  # vectors of sixteen, not all of them full
    return bool(COPY * (n_labels @ width) + VECTOR * (lanes @ nnz) < n_labels @ nnz)


def _blocks(grouped: GroupedRows, count: int) -> list[tuple[int, int]]:
    """Return ranges of labels of about equal numbers of members."""
    members = np.concatenate([[0], np.cumsum(grouped.sizes)])[grouped.label_indptr]
    cuts = np.searchsorted(members, np.linspace(0, members[-1], count + 1)[1:-1])
    edges = np.unique(np.concatenate([[0], cuts, [grouped.n_labels]]))
    return [(int(a), int(b)) for a, b in itertools.pairwise(edges)]


def _join_vectors(parts: list[tuple[np.ndarray, np.ndarray, np.ndarray]], n_features: int) -> sp.csr_array:
    """Return the vectors of all blocks as one matrix (n_labels, n_features)."""
    counts = np.concatenate([np.diff(sizes) for sizes, _, _ in parts])
    ids = np.concatenate([ids for _, ids, _ in parts])
    values = np.concatenate([values for _, _, values in parts])
    return make_csr(np.concatenate([[0], np.cumsum(counts)]), ids, values, n_features)
