"""Train the chunks of one level as tasks of an engine: neighbouring chunks, or some children of a large one."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

import numpy as np
import scipy.sparse as sp

from longtail.engine import Arrays, Engine, Shared, Work
from longtail.kernels import LANES
from longtail.model import has_idle_columns
from longtail.tree.chunks import PackedChunk
from longtail.tree.membership import ColumnArrays, NodeRows, column
from longtail.tree.solve import Solver, TrainingRows, local_rows, solve_lanes
from longtail.validate import kept_aside

TASKS_OF_A_LEVEL = 1024  # about, where a level has work for so many; not by the machines, so that a restart finds them
LEAST_COST = 1e6  # of a task, as entries of rows times batches of children: about a tenth of a second...
FEWEST_TASKS = 16  # ... where there are more than so many
Counter = Callable[[int], None]  # (labels or nodes finished since the last call)


@dataclass(frozen=True)
class LevelClasses:
    """The targets of the children of one level's chunks, one column per child."""

    children: np.ndarray  # pointers from the chunks to their children
    truth: sp.csc_array | NodeRows | ColumnArrays  # (n_rows, n_children)
    weights: sp.csc_array | ColumnArrays | None  # of the positives
    members: NodeRows | None  # rows of every chunk; None: all rows, at the root
    sent: NodeRows | None  # rows of every chunk that count for all children; None: all members do
    level: int


def train_level(
    rows: TrainingRows,
    shared_rows: Shared,
    classes: LevelClasses,
    solver: Solver,
    engine: Engine,
    done: Counter | None = None,
) -> list[PackedChunk]:
    """Train the chunks of one level as tasks of the engine, the heaviest first."""
    tasks, costs = _tasks_of(classes, rows)
    widths = np.diff(classes.children)
    arrays = {"children": classes.children, "truth.indptr": classes.truth.indptr, "truth": classes.truth.indices}
    if classes.weights is not None:
        arrays |= {"weights.indptr": classes.weights.indptr, "weights": classes.weights.data}
    for name, nodes in (("members", classes.members), ("sent", classes.sent)):
        if nodes is not None:
            arrays |= {f"{name}.indptr": nodes.indptr, name: nodes.indices}
    settings = {"solver": asdict(solver), "level": classes.level, "n_features": rows.n_features}

    def told(number: int) -> None:
        first, last, start, stop = tasks[number]
        trained = int(widths[first:last].sum()) if last > first + 1 else min(stop, int(widths[first])) - start
        if done is not None:
            done(trained)

    shared = [shared_rows, engine.share(arrays)]
    parts = engine.map(CHILDREN, shared, settings, tasks, costs=costs, told=told)
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

    truth = ColumnArrays(arrays["truth.indptr"], arrays["truth"], arrays["truth"])
    weights = None
    if "weights" in arrays:
        weights = ColumnArrays(arrays["weights.indptr"], arrays["truth"], arrays["weights"])
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
