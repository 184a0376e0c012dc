"""Train the classifiers of a label tree, level by level, from the root down.

`train_tree` finds the slots of overlapping labels and trains everything; `train_levels` trains the chunks of one tree.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import scipy.sparse as sp

from longtail.engine import Arrays, Engine, Shared, Work
from longtail.kernels import blocks
from longtail.storage import Part
from longtail.tree.chunks import Chunks, PackedChunk
from longtail.tree.label_tree import LabelTree
from longtail.tree.level_rows import NodesOfRows, rows_at_nodes
from longtail.tree.membership import (
    NO_NODES,
    NodeRows,
    binary,
    children_of,
    keep_reached_positives,
    matches,
    row_shares,
    slot_matrix,
    slot_nodes,
)
from longtail.tree.overlap import assign_rows, disentangle, drop_idle_slots, recalled
from longtail.tree.search import BeamPlan, LevelLink, Ranked, search_level
from longtail.tree.solve import Solver, TrainingRows
from longtail.tree.train_level import Counter, LevelClasses, train_level
from longtail.validate import make_csr, memory_limit

ROWS_OF_A_SLOT = 3  # rows that a slot needs where each row is assigned to one slot
RECALL_ENOUGH = 0.98  # "auto": share of the training positives in leaves that the beam reaches; with more, no overlap
OVERLAP_AUTO = 2  # "auto": leaves of a label where the beam reaches fewer
RECALL_BY_SPLITTING = 0.05  # "auto": positives are split where the beam then reaches this share of them more
ROWS_OF_A_SEARCH = 16_384  # that are sent down the tree as one task of another process


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
            levels.append(train_level(task.rows, task.shared_rows, classes, task.solver, task.engine, done))
            del classes  # large
        above = truth
    return levels


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
