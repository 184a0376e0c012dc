"""Training the classifiers of a label tree, level by level, from the root down."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp

from longtail.kernels import EVERY_ROW, LANES, hinge_lanes, logistic_lanes, run_tasks
from longtail.tree.assign_positives import where_sent
from longtail.tree.chunk_kernels import gather_rows, pack_chunk
from longtail.tree.chunks import Chunks, Link, Packed, Plan
from longtail.tree.label_tree import LabelTree
from longtail.tree.membership import (
    NOWHERE,
    Members,
    binary,
    children_of,
    column,
    matches,
    nodes_of_places,
    places_matrix,
    row_shares,
    values_of,
)
from longtail.validate import make_csr

Counter = Callable[[int], None]  # (labels or nodes finished since the last call)


@dataclass(frozen=True)
class Solver:
    """How the binary problems are solved; see `LabelTreeClassifier`."""

    loss: str
    C: float
    positive_weight: float
    bias: float
    tol: float
    max_iter: int
    threshold: float
    seed: int


@dataclass(frozen=True)
class Rows:
    """The training rows, scaled, with what the solver needs of each."""

    indptr: np.ndarray
    indices: np.ndarray
    data: np.ndarray
    norms: np.ndarray  # ‖x‖² + bias²
    n_features: int

    @property
    def n(self) -> int:
        return self.indptr.size - 1

    @property
    def matrix(self) -> sp.csr_array:
        """The same rows as a matrix; nothing is copied but the row pointers."""
        return make_csr(self.indptr, self.indices, self.data, self.n_features)


@dataclass(frozen=True)
class Task:
    """What a tree is trained on and how; see `LabelTreeClassifier`."""

    rows: Rows
    Y: sp.csr_array  # binary
    relevance: sp.csr_array | None  # weighs positives: (n_rows, n_labels)
    solver: Solver
    negatives: str
    beam: int
    n_jobs: int

    def search(self, levels: Sequence[Sequence[Packed]], links: Sequence[Link]) -> tuple[np.ndarray, np.ndarray]:
        """Return the nodes of the last trained level that every row is sent to, -1 where none, and their scores."""
        plan = Plan.of([self.beam] * len(levels), links[: len(levels)])
        ones = np.ones(self.rows.n, dtype=np.float32)
        nodes, scores = Chunks.join(levels, self.rows.n_features).search(self.rows.matrix, ones, plan, self.n_jobs)
        before = sum(len(found) for found in levels) - 1  # children are numbered after those of the levels above
        nodes[nodes >= 0] -= before
        return nodes, scores


def train_levels(
    tree: LabelTree,
    task: Task,
    links: Sequence[Link],
    *,
    known: Sequence[list[Packed]] = (),
    leaves: bool = True,
    assigned: sp.csr_array | None = None,
    done: Counter | None = None,
) -> list[list[Packed]]:
    """Train the chunks of the tree, level by level; those of `known` levels are taken as they are.

    The rows of a chunk are those with a label below it ("tfn"), those that the levels above send there ("man", plus
    the positives of each child), or both. Without `leaves`, the last level is left out. `assigned` (n_rows, n_places)
    says in which of its places a row's label counts: the other places learn from the row only if it is sent there.
    """
    above: sp.csr_array | None = None  # which nodes each row has a label under, at the level above
    levels = list(known)
    for level in range(tree.n_levels + leaves):
        last = level == tree.n_levels
        places = places_matrix(tree) if last else tree.membership(level)
        truth = binary(task.Y @ places if assigned is None or last else assigned @ nodes_of_places(tree, level))
        if level >= len(levels):
            n_nodes = children_of(tree, level).size - 1
            sent = NOWHERE
            if level > 0 and (task.negatives != "tfn" or (last and assigned is not None)):
                sent, _ = task.search(levels, links)
                if last and assigned is not None:
                    truth = where_sent(truth, assigned, matches(sent, n_nodes), tree)
                    above = binary(truth @ nodes_of_places(tree, level - 1))
            near = NOWHERE if task.negatives == "tfn" else sent
            members = None if above is None else Members.of(near, above, n_nodes)
            only = Members.of(sent, None, n_nodes) if task.negatives == "man" and level > 0 else None
            above, sent, near = None, NOWHERE, NOWHERE  # large, and of no more use
            weights: sp.csc_array | None = None
            if task.relevance is not None:
                weights = sp.csc_array(row_shares(sp.csr_array(task.relevance @ places).multiply(truth)))
            levels.append(
                _train_level(
                    task.rows,
                    sp.csc_array(truth),
                    weights,
                    children_of(tree, level),
                    members,
                    only,
                    task.solver,
                    level,
                    task.n_jobs,
                    done,
                )
            )
        above = truth
    return levels


def _train_level(
    rows: Rows,
    truth: sp.csc_array,
    weights: sp.csc_array | None,
    children: np.ndarray,
    of_chunk: Members | None,
    sent: Members | None,
    solver: Solver,
    level: int,
    n_jobs: int,
    done: Counter | None,
) -> list[Packed]:
    widths = np.diff(children)
    empty = np.diff(truth.indptr) == 0  # children without a row: never predicted

    def solve(chunk: int, starts: range) -> tuple[np.ndarray, np.ndarray]:
        """Train some children of a chunk, sixteen at a time; return its features and the weights."""
        low, high = int(children[chunk]), int(children[chunk + 1])
        members = None if of_chunk is None else column(of_chunk, chunk)
        allowed_rows = None if sent is None else column(sent, chunk)
        local = local_rows(rows, members)
        W = np.zeros((len(starts), local.features.size + 1, LANES), dtype=np.float32)
        for batch, start in enumerate(starts):
            labels = range(low + start, min(low + start + LANES, high))
            solve_lanes(local, members, allowed_rows, truth, weights, labels, solver, level, W[batch])
        return local.features, W

    def whole(chunk: int) -> Packed:
        return pack(chunk, *solve(chunk, range(0, int(widths[chunk]), LANES)))

    def pack(chunk: int, features: np.ndarray, W: np.ndarray) -> Packed:
        lines, counts, kids, quanta, scales, bias = pack_chunk(W, int(widths[chunk]), solver.threshold)
        bias = np.where(empty[children[chunk] : children[chunk + 1]], np.float32(-np.inf), bias)
        return Packed(features[lines], counts, kids, quanta, scales, bias)

    def told(sizes: Sequence[int]) -> Callable[[int, int], None] | None:
        return None if done is None else lambda finished, total: done(sizes[finished - 1])

    if widths.size >= 4 * n_jobs:
        return run_tasks(whole, range(widths.size), n_jobs, told(widths.tolist()))
    # few chunks: their batches of children are the tasks, so that no thread waits long
    tasks = [(chunk, start) for chunk in range(widths.size) for start in range(0, int(widths[chunk]), LANES)]
    sizes = [min(LANES, int(widths[chunk]) - start) for chunk, start in tasks]
    found = run_tasks(lambda task: solve(task[0], range(task[1], task[1] + 1, LANES)), tasks, n_jobs, told(sizes))
    out = []
    for chunk in range(widths.size):
        parts = [part for task, part in zip(tasks, found, strict=True) if task[0] == chunk]
        features = parts[0][0] if parts else np.empty(0, np.int32)
        W = np.concatenate([part[1] for part in parts]) if parts else np.zeros((0, 1, LANES), np.float32)
        out.append(pack(chunk, features, W))
    return out


@dataclass(frozen=True)
class Local:
    indptr: np.ndarray
    indices: np.ndarray
    data: np.ndarray
    norms: np.ndarray
    features: np.ndarray


def local_rows(rows: Rows, members: np.ndarray | None) -> Local:
    """Return the rows of a chunk over their own features; all rows as they are for the root."""
    if members is None:
        features = np.arange(rows.n_features, dtype=np.int32)
        return Local(rows.indptr, rows.indices, rows.data, rows.norms, features)
    position = np.full(rows.n_features, -1, dtype=np.int32)
    indptr, indices, data, features = gather_rows(rows.indptr, rows.indices, rows.data, members, position)
    return Local(indptr, indices, data, rows.norms[members], features)


def solve_lanes(
    local: Local,
    members: np.ndarray | None,
    allowed_rows: np.ndarray | None,
    truth: sp.csc_array,
    weights: sp.csc_array | None,
    labels: range,
    solver: Solver,
    level: int,
    W: np.ndarray,
) -> None:
    """Train up to sixteen children of one chunk into W."""
    n = local.indptr.size - 1
    positive = np.zeros(n, dtype=np.uint16)
    hinge = solver.loss == "squared_hinge"
    costs = np.empty((2 if weights is None else n, LANES), dtype=np.float32)
    costs[:] = solver.C
    if weights is None:
        costs[1] *= solver.positive_weight
    for lane, label in enumerate(labels):
        where = column(truth, label)
        at = where if members is None else np.searchsorted(members, where)
        positive[at] |= np.uint16(1 << lane)
        if weights is not None:
            costs[at, lane] = solver.C * solver.positive_weight * values_of(weights, label)
    allowed = EVERY_ROW
    if allowed_rows is not None and members is not None:
        allowed = positive.copy()
        allowed[np.searchsorted(members, allowed_rows)] = 0xFFFF
    seed = (solver.seed * 1_000_003 + level * 7_919 + labels.start) % (2**31)
    rows = (local.indptr, local.indices, local.data, local.norms, positive)
    ends = (solver.tol, solver.max_iter, seed, W)
    if hinge:
        hinge_lanes(*rows, allowed, len(labels), solver.bias, 0.5 / costs, weights is not None, *ends)
    else:
        logistic_lanes(*rows, len(labels), solver.bias, costs, *ends)
