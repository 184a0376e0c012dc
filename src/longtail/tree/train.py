"""Train the classifiers of a label tree, level by level, from the root down.

`train_tree` finds the slots of overlapping labels and trains everything; `train_levels` trains the chunks of one tree;
`solve_lanes` trains sixteen children of one chunk.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any, NamedTuple, Self

import numpy as np
import scipy.sparse as sp

from longtail.engine import Arrays, Engine, Shared, Work
from longtail.kernels import EVERY_ROW, LANES, blocks, hinge_lanes, logistic_lanes, row_squares, scale_rows
from longtail.model import has_idle_columns, row_scale
from longtail.storage import Part
from longtail.tree.chunk_kernels import gather_into, gather_rows
from longtail.tree.chunks import Chunks, PackedChunk
from longtail.tree.label_tree import LabelTree
from longtail.tree.level_rows import NodesOfRows, rows_at_nodes
from longtail.tree.membership import (
    NO_NODES,
    NodeRows,
    binary,
    children_of,
    column,
    keep_reached_positives,
    matches,
    row_shares,
    slot_matrix,
    slot_nodes,
    values_of,
)
from longtail.tree.overlap import assign_rows, disentangle, drop_idle_slots, recalled
from longtail.tree.search import BeamPlan, LevelLink, Ranked, search_level
from longtail.validate import kept_aside, large_empty, make_csr, memory_limit

ROWS_OF_A_SLOT = 3  # rows that a slot needs where each row is assigned to one slot
RECALL_ENOUGH = 0.98  # "auto": share of the training positives in leaves that the beam reaches; with more, no overlap
OVERLAP_AUTO = 2  # "auto": leaves of a label where the beam reaches fewer
RECALL_BY_SPLITTING = 0.05  # "auto": positives are split where the beam then reaches this share of them more
NEARLY_ONE = 1e-6  # rows this near to unit length are taken as they are
TASKS_OF_A_LEVEL = 1024  # about, where a level has work for so many; not by the machines, so that a restart finds them
LEAST_COST = 1e6  # of a task, as entries of rows times batches of children: about a tenth of a second...
FEWEST_TASKS = 16  # ... where there are more than so many
ROWS_OF_A_SEARCH = 16_384  # that are sent down the tree as one task of another process
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
class TrainingRows:
    """The training rows, scaled, with the norms that the solver needs."""

    indptr: np.ndarray
    indices: np.ndarray
    data: np.ndarray
    norms: np.ndarray  # ‖x‖² + bias²
    n_features: int

    @classmethod
    def of(cls, X: sp.csr_array, normalize: bool, bias: float) -> Self:
        """Scale the rows to unit length, if wanted, and compute their norms."""
        scale = row_scale(X, normalize)
        indptr = X.indptr.astype(np.int64, copy=False)
        as_they_are = bool((np.abs(scale - 1) <= NEARLY_ONE).all())  # most features come at unit length: no copy then
        data = X.data if as_they_are else large_empty(X.data.size, np.float32)
        norms = np.empty(X.shape[0], dtype=np.float32)
        if as_they_are:
            row_squares(indptr, data, bias**2, norms)
        else:
            scale_rows(indptr, X.data, scale, bias**2, data, norms)
        return cls(indptr, X.indices, data, norms, X.shape[1])

    @property
    def n(self) -> int:
        """Number of rows."""
        return self.indptr.size - 1

    @property
    def matrix(self) -> sp.csr_array:
        """The same rows as a matrix; nothing is copied but the row pointers."""
        return make_csr(self.indptr, self.indices, self.data, self.n_features)

    def search(self, chunks: Chunks, plan: BeamPlan, n_jobs: int, level: int) -> Ranked:
        """Return the nodes of a level that every row is sent to, -1 where none, and their scores."""
        return search_level(chunks, self.matrix, np.ones(self.n, dtype=np.float32), plan, n_jobs, level)


@dataclass(frozen=True)
class OverlapSettings:
    """How labels come to stand in several leaves; see `LabelTreeClassifier`."""

    overlap: int | str
    rounds: int | None
    split_positives: bool
    keep_leaf: bool
    slot_rows: int
    balance: float | None

    @property
    def plain(self) -> bool:
        """Whether every label stays in its one leaf."""
        return self.overlap == 1 and self.rounds is None

    @property
    def n_rounds(self) -> int:
        """How often slots are chosen and everything is trained again."""
        return 1 if self.rounds is None else self.rounds


@dataclass(frozen=True)
class TrainingTask:
    """The data a tree is trained on, and how; see `LabelTreeClassifier`."""

    rows: TrainingRows
    Y: sp.csr_array  # binary
    relevance: sp.csr_array | None  # weighs positives: (n_rows, n_labels)
    solver: Solver
    negatives: str
    beam: int
    n_jobs: int
    engine: Engine
    shared_rows: Shared = field(init=False)  # for the engine

    def __post_init__(self) -> None:
        rows = self.rows
        arrays = {"indptr": rows.indptr, "indices": rows.indices, "data": rows.data, "norms": rows.norms}
        object.__setattr__(self, "shared_rows", self.engine.share(arrays))

    def search(self, levels: Sequence[Sequence[PackedChunk]], links: Sequence[LevelLink]) -> Ranked:
        """Return the nodes of the last trained level that every row is sent to, -1 where none, and their scores."""
        plan = BeamPlan.of([self.beam] * len(levels), links[: len(levels)])
        chunks = Chunks.join(levels, self.rows.n_features)
        if self.engine.in_process:
            return self.rows.search(chunks, plan, self.n_jobs, len(levels) - 1)
        shared = self.engine.share({**chunks.arrays(""), **{f"plan.{name}": a for name, a in vars(plan).items()}})
        tasks = [(at.start, at.stop) for at in blocks(self.rows.n, ROWS_OF_A_SEARCH)]
        settings = {"n_features": self.rows.n_features, "level": len(levels) - 1}
        parts = self.engine.map(SEARCH, [self.shared_rows, shared], settings, tasks)
        return np.concatenate([p["nodes"] for p in parts]), np.concatenate([p["scores"] for p in parts])


@dataclass(frozen=True)
class UpperLevels:
    """A tree whose levels above the labels are trained, and the slot that each positive is assigned to, if to one."""

    tree: LabelTree
    levels: list[list[PackedChunk]]
    assigned: sp.csr_array | None = None  # (n_rows, n_slots)

    def reached(self, task: TrainingTask, nodes: np.ndarray) -> int:
        """Return how many labels of the training rows stand in leaves that the beam reaches: `nodes`, for every row."""
        return recalled(matches(nodes, self.tree.n_leaves), task.Y, self.tree)


def train_tree(
    tree: LabelTree, task: TrainingTask, links: Sequence[LevelLink], settings: OverlapSettings, done: Counter
) -> tuple[LabelTree, Chunks]:
    """Train one tree; with overlap, find the slots of the labels first and train again."""
    upper = UpperLevels(tree, []) if settings.plain else choose_slots(tree, task, links, settings, done)
    levels = train_levels(upper.tree, task, links, known=upper.levels, assigned=upper.assigned, done=done)
    return upper.tree, Chunks.join(levels, task.rows.n_features)


def choose_slots(
    tree: LabelTree, task: TrainingTask, links: Sequence[LevelLink], settings: OverlapSettings, done: Counter
) -> UpperLevels:
    """Choose the leaves of every label by where its rows are sent, and train the levels above; once per round."""
    upper = UpperLevels(tree, train_levels(tree, task, links, leaves=False, done=done))
    auto, split = settings.overlap == "auto", settings.split_positives
    for turn in range(max(settings.n_rounds, 1)):
        nodes, scores = task.search(upper.levels, links)
        if auto and turn == 0 and upper.reached(task, nodes) >= RECALL_ENOUGH * task.Y.nnz:
            return upper  # the plain tree
        slots = disentangle(
            matches(nodes, tree.n_leaves),
            task.Y,
            OVERLAP_AUTO if auto else settings.overlap,
            start=upper.tree,
            hold=settings.keep_leaf,
            least=settings.slot_rows,
            room=settings.balance,
            n_jobs=task.n_jobs,
        )
        upper = UpperLevels(upper.tree.with_slots(slots), upper.levels)
        told = done if turn == settings.n_rounds - 1 else None
        if not split and settings.n_rounds > 0:
            upper = _trained(upper, task, links, told)
            if auto and turn == 0:
                enough = upper.reached(task, task.search(upper.levels, links)[0]) + RECALL_BY_SPLITTING * task.Y.nnz
                if enough < task.Y.nnz:  # else splitting cannot reach so many more
                    apart = _trained(_one_slot_each(upper, task, nodes, scores), task, links, None)
                    split = apart.reached(task, task.search(apart.levels, links)[0]) > enough
                    upper = apart if split else upper
        elif split:
            upper = _one_slot_each(upper, task, nodes, scores)
            upper = _trained(upper, task, links, told) if settings.n_rounds > 0 else upper
    return upper


def _one_slot_each(shared: UpperLevels, task: TrainingTask, nodes: np.ndarray, scores: np.ndarray) -> UpperLevels:
    """Assign each positive to one slot of its label, the one whose leaf scores best, and drop slots with few rows."""
    assigned = assign_rows(shared.tree, task.Y, nodes, scores, task.n_jobs)
    tree = drop_idle_slots(shared.tree, assigned, ROWS_OF_A_SLOT)
    return UpperLevels(tree, shared.levels, assign_rows(tree, task.Y, nodes, scores, task.n_jobs))


def _trained(upper: UpperLevels, task: TrainingTask, links: Sequence[LevelLink], done: Counter | None) -> UpperLevels:
    """Train the levels above the labels for new slots."""
    levels = train_levels(upper.tree, task, links, leaves=False, assigned=upper.assigned, done=done)
    return replace(upper, levels=levels)


def train_levels(
    tree: LabelTree,
    task: TrainingTask,
    links: Sequence[LevelLink],
    *,
    known: Sequence[list[PackedChunk]] = (),
    leaves: bool = True,
    assigned: sp.csr_array | None = None,
    done: Counter | None = None,
) -> list[list[PackedChunk]]:
    """Train the chunks of the tree, level by level; those of `known` levels are taken as they are.

    The rows of a chunk are those with a label below it ("tfn"), those that the levels above send there ("man", plus
    the positives of each child), or both. Without `leaves`, the last level is left out. `assigned` (n_rows, n_slots)
    holds the slot that each positive is assigned to: the other slots learn from the row only if it is sent there.
    """
    above: Any = None  # which nodes each row has a label under, at the level above
    in_files = memory_limit() is not None and assigned is None and task.relevance is None
    nodes_at = rows_at_nodes if in_files else NodeRows.of
    levels = list(known)
    for level in range(tree.n_levels + leaves):
        last = level == tree.n_levels
        membership = slot_matrix(tree) if last else tree.membership(level)
        truth: Any = (
            NodesOfRows.of(task.Y, membership)
            if in_files
            else binary(task.Y @ membership if assigned is None or last else assigned @ slot_nodes(tree, level))
        )
        if level >= len(levels):
            n_nodes = children_of(tree, level).size - 1
            sent = NO_NODES
            if level > 0 and (task.negatives != "tfn" or (last and assigned is not None)):
                sent, _ = task.search(levels, links)
                if last and assigned is not None:
                    truth = keep_reached_positives(truth, assigned, matches(sent, n_nodes), tree)
                    above = binary(truth @ slot_nodes(tree, level - 1))
            near = NO_NODES if task.negatives == "tfn" else sent
            members = None if above is None else nodes_at(near, above, n_nodes)
            only = nodes_at(sent, None, n_nodes) if task.negatives == "man" and level > 0 else None
            above, sent, near = None, NO_NODES, NO_NODES  # large, and of no more use
            weights: sp.csc_array | None = None
            if task.relevance is not None:
                weights = sp.csc_array(row_shares(sp.csr_array(task.relevance @ membership).multiply(truth)))
            columns = truth.rows_of_nodes() if in_files else sp.csc_array(truth)
            classes = LevelClasses(children_of(tree, level), columns, weights, members, only, level)
            del columns
            levels.append(_train_level(task, classes, done))
            del classes  # large
        above = truth
    return levels


class Columns(NamedTuple):
    """The parts of a sparse matrix by columns that training reads; the arrays may be shared."""

    indptr: np.ndarray
    indices: np.ndarray
    data: np.ndarray


@dataclass(frozen=True)
class LevelClasses:
    """The targets of the children of one level's chunks, one column per child."""

    children: np.ndarray  # pointers from the chunks to their children
    truth: sp.csc_array | NodeRows | Columns  # (n_rows, n_children)
    weights: sp.csc_array | Columns | None  # of the positives
    members: NodeRows | None  # rows of every chunk; None: all rows, at the root
    sent: NodeRows | None  # rows of every chunk that count for all children; None: all members do
    level: int


def _train_level(task: TrainingTask, classes: LevelClasses, done: Counter | None) -> list[PackedChunk]:
    """Train the chunks of one level as tasks of the engine, the heaviest first."""
    tasks, costs = _tasks_of(classes, task.rows)
    widths = np.diff(classes.children)
    arrays = {"children": classes.children, "truth.indptr": classes.truth.indptr, "truth": classes.truth.indices}
    if classes.weights is not None:
        arrays |= {"weights.indptr": classes.weights.indptr, "weights": classes.weights.data}
    for name, nodes in (("members", classes.members), ("sent", classes.sent)):
        if nodes is not None:
            arrays |= {f"{name}.indptr": nodes.indptr, name: nodes.indices}
    settings = {"solver": asdict(task.solver), "level": classes.level, "n_features": task.rows.n_features}

    def told(number: int) -> None:
        first, last, start, stop = tasks[number]
        trained = int(widths[first:last].sum()) if last > first + 1 else min(stop, int(widths[first])) - start
        if done is not None:
            done(trained)

    shared = [task.shared_rows, task.engine.share(arrays)]
    parts = task.engine.map(CHILDREN, shared, settings, tasks, costs=costs, told=told)
    out: list[PackedChunk] = []
    beside: list[PackedChunk] = []  # parts of the chunk whose last children are still to come
    for (first, last, _, stop), part in zip(tasks, parts, strict=True):
        if last > first + 1 or (not beside and stop >= widths[first]):
            out += _unjoined(part)
            continue
        beside += _unjoined(part)
        if stop >= widths[first]:
            out.append(_side_by_side(beside))
            beside = []
    return out


def _tasks_of(classes: LevelClasses, rows: TrainingRows) -> tuple[list[tuple[int, int, int, int]], list[float]]:
    """Cut a level into tasks of like cost: neighbouring chunks, or some children of one large chunk.

    A task is (first chunk, chunk after the last, first child, child after the last); children count in a single chunk.
    """
    widths = np.diff(classes.children)
    batches = -(-widths // LANES)
    n_rows = np.array([rows.n]) if classes.members is None else np.diff(classes.members.indptr)
    each = n_rows * max(1.0, rows.indices.size / max(rows.n, 1))  # entries that one batch of a chunk goes through
    cost = each * batches
    total = float(cost.sum())
    enough = max(min(LEAST_COST, total / FEWEST_TASKS), total / TASKS_OF_A_LEVEL)
    tasks: list[tuple[int, int, int, int]] = []
    costs: list[float] = []
    group, sum_of_group = 0, 0.0
    for chunk, own in enumerate(cost.tolist()):
        if own > 2 * enough and batches[chunk] > 1:
            if chunk > group:
                tasks.append((group, chunk, 0, int(widths[group])))
                costs.append(sum_of_group)
            step = LANES * max(1, int(enough / each[chunk]))
            for start in range(0, int(widths[chunk]), step):
                tasks.append((chunk, chunk + 1, start, start + step))
                costs.append(float(each[chunk]) * step / LANES)
            group, sum_of_group = chunk + 1, 0.0
            continue
        sum_of_group += own
        if sum_of_group >= enough or chunk == widths.size - 1:
            tasks.append((group, chunk + 1, 0, int(widths[group])))
            costs.append(sum_of_group)
            group, sum_of_group = chunk + 1, 0.0
    if group < widths.size:
        tasks.append((group, widths.size, 0, int(widths[group])))
        costs.append(sum_of_group)
    return tasks, costs


@dataclass(frozen=True)
class LevelTask:
    """What all tasks of a level need."""

    rows: TrainingRows
    classes: LevelClasses
    solver: Solver
    free: deque[np.ndarray] = field(default_factory=deque)  # arrays of -1 for all features, one per thread at work

    def position(self) -> np.ndarray | None:
        """Return an array of -1 for all features, until it is put back into `free`; None where there are too many."""
        if has_idle_columns(self.rows.n_features, self.rows.indices.size):
            return None
        try:
            return self.free.pop()
        except IndexError:
            return np.full(self.rows.n_features, -1, dtype=np.int32)


def prepare_level(arrays: Arrays, settings: dict[str, Any]) -> LevelTask:
    """Put shared arrays together to rows and classes."""
    rows = TrainingRows(
        arrays["indptr"], arrays["indices"], arrays["data"], arrays["norms"], int(settings["n_features"])
    )

    def nodes(name: str) -> NodeRows | None:
        return NodeRows(arrays[f"{name}.indptr"], arrays[name]) if name in arrays else None

    truth = Columns(arrays["truth.indptr"], arrays["truth"], arrays["truth"])
    weights = None
    if "weights" in arrays:
        weights = Columns(arrays["weights.indptr"], arrays["truth"], arrays["weights"])
    classes = LevelClasses(arrays["children"], truth, weights, nodes("members"), nodes("sent"), int(settings["level"]))
    return LevelTask(rows, classes, Solver(**settings["solver"]))


def train_children(level: LevelTask, task: Sequence[int]) -> Arrays:
    """Train some chunks of a level, or some children of one; return them joined."""
    first, last, start, stop = task
    rows, classes, solver = level.rows, level.classes, level.solver
    position = level.position()
    out = []
    for chunk in range(first, last):
        low, high = int(classes.children[chunk]), int(classes.children[chunk + 1])
        if last == first + 1:
            low, high = low + start, min(low + stop, high)
        members = None if classes.members is None else column(classes.members, chunk)
        allowed_rows = None if classes.sent is None else column(classes.sent, chunk)
        local = local_rows(rows, members, position)
        W = np.zeros((-(-(high - low) // LANES), local.features.size + 1, LANES), dtype=np.float32)
        for batch, at in enumerate(range(low, high, LANES)):
            labels = range(at, min(at + LANES, high))
            solve_lanes(
                local, members, allowed_rows, classes.truth, classes.weights, labels, solver, classes.level, W[batch]
            )
        packed = PackedChunk.from_lanes(local.features, W, high - low, solver.threshold)
        silent = classes.truth.indptr[low:high] == classes.truth.indptr[low + 1 : high + 1]  # never predicted
        out.append(replace(packed, bias=np.where(silent, np.float32(-np.inf), packed.bias)))
    if position is not None:
        level.free.append(position)
    sizes = {
        "n_lines": np.array([chunk.features.size for chunk in out], np.int64),
        "n_entries": np.array([chunk.weights.size for chunk in out], np.int64),
        "n_children": np.array([chunk.bias.size for chunk in out], np.int64),
    }
    names = ("features", "counts", "children", "weights", "scales", "bias")
    return {**sizes, **{name: kept_aside(np.concatenate([getattr(chunk, name) for chunk in out])) for name in names}}


CHILDREN = Work(prepare_level, train_children)


def _unjoined(part: Arrays) -> list[PackedChunk]:
    """Return the chunks of one task, on the same memory."""
    ends = [np.concatenate([[0], np.cumsum(part[name])]).tolist() for name in ("n_lines", "n_entries", "n_children")]
    out = []
    for i in range(part["n_lines"].size):
        lines, entries, kids = (slice(of[i], of[i + 1]) for of in ends)
        out.append(
            PackedChunk(
                part["features"][lines],
                part["counts"][lines],
                part["children"][entries],
                part["weights"][entries],
                part["scales"][kids],
                part["bias"][kids],
            )
        )
    return out


def _side_by_side(parts: list[PackedChunk]) -> PackedChunk:
    """Return chunks with one parent, whose children follow each other, as one chunk."""
    features = np.concatenate([np.repeat(part.features, part.counts) for part in parts])
    before = np.cumsum([0, *(part.bias.size for part in parts)])
    children = np.concatenate([part.children + np.uint16(n) for part, n in zip(parts, before, strict=False)])
    order = np.argsort(features, kind="stable")  # within a line, children ascend as before
    lines, counts = np.unique(features, return_counts=True)
    return PackedChunk(
        lines.astype(np.int32),
        counts.astype(np.uint16),
        children[order].astype(np.uint16),
        np.concatenate([part.weights for part in parts])[order],
        np.concatenate([part.scales for part in parts]),
        np.concatenate([part.bias for part in parts]),
    )


def prepare_search(arrays: Arrays, settings: dict[str, Any]) -> tuple[sp.csr_array, Chunks, BeamPlan, int]:
    """Put shared arrays together to rows, trained chunks and the plan of a search."""
    n_features = int(settings["n_features"])
    X = make_csr(arrays["indptr"], arrays["indices"], arrays["data"], n_features)
    plan = BeamPlan(**{name: arrays[f"plan.{name}"] for name in ("widths", "powers", "slopes", "parent_weights")})
    return X, Chunks.from_part(Part("chunks", {}, arrays), n_features), plan, int(settings["level"])


def search_some(given: tuple[sp.csr_array, Chunks, BeamPlan, int], task: Sequence[int]) -> Arrays:
    """Send some rows down the tree."""
    X, chunks, plan, level = given
    rows = X[task[0] : task[1]]
    nodes, scores = search_level(chunks, rows, np.ones(rows.shape[0], dtype=np.float32), plan, 1, level)
    return {"nodes": nodes, "scores": scores}


SEARCH = Work(prepare_search, search_some)


@dataclass(frozen=True)
class ChunkRows:
    """The rows of one chunk, CSR over their own features."""

    indptr: np.ndarray
    indices: np.ndarray
    data: np.ndarray
    norms: np.ndarray
    features: np.ndarray


def local_rows(rows: TrainingRows, members: np.ndarray | None, position: np.ndarray | None = None) -> ChunkRows:
    """Return the rows of a chunk over their own features; all rows as they are for the root.

    `position` is -1 for every feature, before and after; None to make it.
    """
    if has_idle_columns(rows.n_features, rows.indices.size):
        part, norms = (rows.matrix, rows.norms) if members is None else (rows.matrix[members], rows.norms[members])
        features, ids = np.unique(part.indices, return_inverse=True)
        return ChunkRows(
            part.indptr.astype(np.int64), ids.astype(np.int32), part.data, norms, features.astype(np.int32)
        )
    if members is None:
        features = np.arange(rows.n_features, dtype=np.int32)
        return ChunkRows(rows.indptr, rows.indices, rows.data, rows.norms, features)
    position = np.full(rows.n_features, -1, dtype=np.int32) if position is None else position
    if memory_limit() is not None:
        indptr = np.zeros(members.size + 1, dtype=np.int64)
        np.cumsum(rows.indptr[members + 1] - rows.indptr[members], out=indptr[1:])
        size = int(indptr[-1])
        indices, data = large_empty(size, np.int32), large_empty(size, np.float32)
        features = gather_into(rows.indptr, rows.indices, rows.data, members, position, indptr, indices, data)
        return ChunkRows(indptr, indices, data, rows.norms[members], features)
    indptr, indices, data, features = gather_rows(rows.indptr, rows.indices, rows.data, members, position)
    return ChunkRows(indptr, indices, data, rows.norms[members], features)


def solve_lanes(
    local: ChunkRows,
    members: np.ndarray | None,
    allowed_rows: np.ndarray | None,
    truth: sp.csc_array | NodeRows | Columns,
    weights: sp.csc_array | Columns | None,
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
