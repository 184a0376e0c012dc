"""Shared by both ways of clustering: the random numbers of a node, and threads within and across nodes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, TypeVar

import numpy as np

from longtail.kernels import Progress, blocks, run_tasks

BLOCK = 4096  # rows a thread takes at a time
WORTH_SHARING = 2**20  # stored values from which on one node is divided by several threads
Result = TypeVar("Result")


class NodeSeed(NamedTuple):
    """The random numbers of one node, decided by the tree's seed and the node's path from the root alone.

    >>> root = NodeSeed(7)
    >>> bool(root.below(1).generator().random() == root.below(1).generator().random())
    True
    """

    number: int
    path: tuple[int, ...] = ()

    def below(self, child: int) -> NodeSeed:
        """Return the seed of a child."""
        return NodeSeed(self.number, (*self.path, child))

    def generator(self) -> np.random.Generator:
        """Return a new generator; it gives the same numbers every time."""
        return np.random.default_rng(np.random.SeedSequence(self.number, spawn_key=self.path))


def some_of(members: np.ndarray, sample: int | None, seed: NodeSeed) -> np.ndarray:
    """Return at most `sample` members, chosen at random, in ascending order."""
    if sample is None or members.size <= sample:
        return members
    return np.sort(seed.generator().choice(members, size=sample, replace=False, shuffle=False))


def run_nodes(
    function: Callable[[int, int], Result], sizes: Sequence[int], n_jobs: int, progress: Progress | None = None
) -> list[Result]:
    """Return `function(i, jobs)` for every node i.

    Nodes that would keep one thread busy while the others wait are done first, one after the other, each with all
    threads; the others, largest first, with one thread each.
    """
    share = 1.5 * sum(sizes) / n_jobs
    order = sorted(range(len(sizes)), key=lambda i: -sizes[i])
    large = [i for i in order if sizes[i] > share]
    small = order[len(large) :]
    done = np.cumsum([sizes[i] for i in order]).tolist()

    def report(count: int, _: int) -> None:
        if progress is not None:
            progress(done[count - 1], done[-1])

    results: dict[int, Result] = {}
    for count, i in enumerate(large):
        results[i] = function(i, n_jobs)
        report(count + 1, 0)
    of_small = run_tasks(lambda i: function(i, 1), small, n_jobs, lambda count, _: report(len(large) + count, 0))
    results.update(zip(small, of_small, strict=True))
    return [results[i] for i in range(len(sizes))]


def in_blocks(kernel: Callable[..., None], n_jobs: int) -> Callable[..., None]:
    """Return a kernel that takes `start, stop, out` at the end and runs over blocks of rows on threads."""

    def run(*args: Any) -> None:
        *given, start, stop, out = args
        size = max(1, min(BLOCK, -(-(stop - start) // n_jobs)))
        run_tasks(lambda at: kernel(*given, start + at.start, start + at.stop, out), blocks(stop - start, size), n_jobs)

    return run
