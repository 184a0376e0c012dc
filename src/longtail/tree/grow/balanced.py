"""Balanced clustering: divide nodes into halves of like labels, again and again."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from longtail.kernels import (
    Progress,
    add_rows,
    blocks,
    mark_upper,
    project_rows,
    run_tasks,
    set_direction,
    split_rows,
    split_rows_stepwise,
)
from longtail.tree.grow.compact_vectors import Vectors
from longtail.tree.grow.seeding import BLOCK, WORTH_SHARING, NodeSeed, in_blocks, run_nodes, some_of


def balanced_leaves(
    vectors: Vectors,
    members: np.ndarray,
    depth: int,
    *,
    max_iter: int,
    sample: int | None,
    seed: NodeSeed,
    n_jobs: int,
    progress: Progress | None = None,
) -> list[np.ndarray]:
    """Return 2**depth sets of labels, sizes differing by at most 1; neighbours come from the same division.

    Every node has its own random numbers, drawn before anything is divided.
    """
    draws = seed.generator().random((2**depth - 1, 2))
    nodes = [members]
    for level in range(depth):
        first = 2**level - 1

        def divide(i: int, jobs: int, nodes: list[np.ndarray] = nodes, first: int = first) -> np.ndarray:
            return halve(vectors, nodes[i], draws[first + i], seed.below(first + i), max_iter, sample, jobs)

        def report(done: int, total: int, level: int = level) -> None:
            if progress is not None:
                progress(level * members.size + done, depth * members.size)

        upper = run_nodes(divide, [node.size for node in nodes], n_jobs, report)
        nodes = [
            half for node, right in zip(nodes, upper, strict=True) for half in (node[right == 0], node[right == 1])
        ]
    return nodes


def halve(
    vectors: Vectors,
    members: np.ndarray,
    draw: np.ndarray,
    seed: NodeSeed,
    max_iter: int,
    sample: int | None,
    n_jobs: int,
) -> np.ndarray:
    """Return 1 for the labels of the right half and 0 for those of the left, uint8."""
    right = np.zeros(members.size, dtype=np.uint8)
    if members.size < 2:
        return right
    chosen = some_of(members, sample, seed)
    rows = vectors.take(chosen)
    first = int(draw[0] * chosen.size)
    second = int(draw[1] * (chosen.size - 1))
    second += second >= first
    direction = np.empty(rows.features.size, dtype=np.float32)
    half = np.empty(chosen.size, dtype=np.uint8)
    if n_jobs > 1 and rows.values.size >= WORTH_SHARING:
        steps = in_blocks(project_rows, n_jobs), mark_upper, _threaded_add(n_jobs), set_direction
        split_rows_stepwise(*rows.rows, first, second, max_iter, direction, half, steps)
    else:
        split_rows(*rows.rows, first, second, max_iter, direction, half)
    if chosen.size == members.size:
        return half

    def score(at: slice) -> np.ndarray:
        block = vectors.take(members[at], like=rows)
        out = np.empty(block.n_rows, dtype=np.float32)
        project_rows(*block.rows, direction, 0, block.n_rows, out)
        return out

    scores = np.concatenate(run_tasks(score, blocks(members.size, BLOCK), n_jobs))
    mark_upper(scores, members.size - members.size // 2, right)
    return right


def _threaded_add(n_jobs: int) -> Callable[..., int]:
    """Return `add_rows` on threads: sums are exact, so the order in which parts are added up makes no difference."""

    def add(
        indptr: np.ndarray, indices: np.ndarray, values: np.ndarray, old: np.ndarray, new: np.ndarray, sums: np.ndarray
    ) -> int:
        changed = np.count_nonzero(old != new) / old.size * values.size
        if changed < 4 * n_jobs * sums.size:
            return int(add_rows(indptr, indices, values, old, new, sums))

        def part(at: slice) -> tuple[int, np.ndarray]:
            own = np.zeros(sums.size)
            ends = indptr[at.start : at.stop + 1]
            return add_rows(ends, indices, values, old[at], new[at], own), own

        parts = run_tasks(part, blocks(old.size, -(-old.size // n_jobs)), n_jobs)
        for _, own in parts:
            sums += own
        return sum(moved for moved, _ in parts)

    return add
