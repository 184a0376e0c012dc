"""Choose k labels for every row of a batch together, so that a goal over labels is as good as can be expected.

A goal such as macro-F1@k does not fall into rows: what a label of one row is worth depends on how often the label is
given to the others. Block coordinate ascent takes the rows one after another, and gives each the k labels that add most
while all other rows stay as they are, until no row changes. The expected goal never falls. It works on the candidates
of every row with their probabilities; nothing of size rows × labels is made. The method: Schultheis, Wydmuch,
Kotłowski, Babbar and Dembczyński, Generalized test utilities for long-tail performance in extreme multi-label
classification, NeurIPS 2023.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from longtail.data import TopK
from longtail.decisions.ascent_kernel import SUREST, ascend
from longtail.decisions.purposes import KGoal

MOST_PASSES = 50
ENOUGH = 1e-6  # a pass that raises the goal by less than this share is the last one


@dataclass(frozen=True, eq=False)
class Decoded:
    """The labels chosen for a batch, and the expected goal after every pass over the rows."""

    keep: np.ndarray  # bool (n_rows, candidates)
    expected: tuple[float, ...]  # never falls


def decode_batch(probabilities: TopK, goal: KGoal, shares: np.ndarray | None = None) -> Decoded:
    """Return for every row the k candidates that together make the expected goal best; deterministic.

    `shares` are the shares of training rows that have each label. How many rows of the batch have a label is then the
    mean of what these say and of what the probabilities add up to, which is steadier for rare labels.

    >>> top = TopK([[0, 1], [0, 1], [0, 1]], [[0.9, 0.1], [0.9, 0.1], [0.9, 0.8]])
    >>> decode_batch(top, KGoal("macro-f1", 1)).keep.tolist()
    [[True, False], [True, False], [False, True]]
    """
    ids = probabilities.ids
    present = ids >= 0
    chances = np.clip(np.where(present, probabilities.scores, 0.0), 0.0, 1.0).astype(np.float64)
    known, numbers = np.unique(ids[present], return_inverse=True)  # labels are numbered anew: memory follows candidates
    compact = np.full(ids.shape, -1, dtype=np.int32)
    compact[present] = numbers
    true = np.bincount(numbers, weights=chances[present], minlength=known.size)
    if shares is not None:
        true = (true + probabilities.n_rows * np.asarray(shares, dtype=np.float64)[known]) / 2
    keep = np.zeros(ids.shape, dtype=np.bool_)
    keep[:, : goal.k] = present[:, : goal.k]
    expected = np.zeros(MOST_PASSES)
    weights = _weights(compact, chances, known.size, goal)
    passes = ascend(compact, chances, goal.k, goal.number, *weights, true, keep, expected, ENOUGH)
    return Decoded(keep, tuple(expected[:passes].tolist()))


def _weights(compact: np.ndarray, chances: np.ndarray, n_labels: int, goal: KGoal) -> tuple[float, float]:
    """Return what one label's utility and one expected hit count for, so that both goals of a mix are means."""
    present = compact >= 0
    none = np.bincount(compact[present], weights=np.log1p(-np.minimum(chances[present], SUREST)), minlength=n_labels)
    tested = max(float((1.0 - np.exp(none)).sum()), 1e-9)  # expected number of labels that are true in any row
    return goal.mix / tested, (1.0 - goal.mix) / max(compact.shape[0] * goal.k, 1)
