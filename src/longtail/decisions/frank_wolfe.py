"""Gains of labels for single rows: k labels a row, so that a goal over labels is as good as can be expected.

One row alone cannot know how often its labels are given to others. Gains learned on many rows tell it: every label has
a scale and a shift, and a row gets the k labels with the largest scale × probability + shift. At any way to decide, the
slopes of the goal by how often each label is given and found are such gains; the Frank-Wolfe method mixes the best
answer to them into the way so far, again and again, and the gains that were best of all are kept. Nothing is random.
The method: Schultheis, Kotłowski, Wydmuch, Babbar, Borman and Dembczyński, Consistent algorithms for multi-label
classification with macro-at-k metrics, ICLR 2024. Only probabilities are read, not the true labels, of which rare
labels have too few.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from longtail.data import TopK
from longtail.decisions.ascent_kernel import SUREST, keep_best_of_rows
from longtail.decisions.decision import Decision
from longtail.decisions.purposes import COVERAGE, MACRO_F1, KGoal

STEPS = 60
SMOOTHING = 3.0  # true rows that every label is given beside its own: by few rows a rare label looks too good


class Tallies(NamedTuple):
    """Of every label: expected hits, times given, and the log of the chance that no row has a hit."""

    hits: np.ndarray
    said: np.ndarray
    none: np.ndarray

    def mixed(self, other: Tallies, share: float) -> Tallies:
        """Return the tallies of rows that follow the other way with some probability."""
        return Tallies(*((1 - share) * a + share * b for a, b in zip(self, other, strict=True)))


def learn_gains(probabilities: TopK, train_shares: np.ndarray, goal: KGoal) -> Decision:
    """Return the decision that gives every row the k labels of the largest gain, learned from rows of probabilities.

    >>> top = TopK([[0, 1]] * 100, [[0.9, 0.1]] * 90 + [[0.9, 0.8]] * 10)
    >>> decision = learn_gains(top, np.array([0.9, 0.17]), KGoal("macro-f1", 1))
    >>> decision.chosen(top)[[0, 99]].tolist()
    [[True, False], [False, True]]
    """
    n_labels, present = train_shares.size, probabilities.ids >= 0
    chances = np.clip(np.where(present, probabilities.scores, 0), 0, 1).astype(np.float32)
    sums = np.bincount(probabilities.ids[present], weights=chances[present], minlength=n_labels)
    true = (sums + probabilities.n_rows * np.asarray(train_shares, dtype=np.float64)) / 2
    tested = max(float((1 - np.exp(-true)).sum()), 1e-9)
    true = true + SMOOTHING
    weights = goal.mix / tested, (1 - goal.mix) / (probabilities.n_rows * goal.k)
    current = Tallies(np.zeros(n_labels), np.zeros(n_labels), np.zeros(n_labels))
    best, kept = -np.inf, (np.ones(n_labels, np.float32), np.zeros(n_labels, np.float32))
    for step in range(STEPS):
        scales, shifts = _slopes(current, true, goal, weights)
        answer = _answer(probabilities.ids, chances, scales, shifts, goal.k, n_labels)
        value = _value(answer, true, goal, weights)
        if value > best:
            best, kept = value, (scales, shifts)
        current = current.mixed(answer, 2 / (step + 2))
    return Decision(str(goal), *kept, 1.0, 0.0, k=goal.k, candidates=probabilities.k, n_rows=probabilities.n_rows)


def _slopes(at: Tallies, true: np.ndarray, goal: KGoal, weights: tuple[float, float]) -> tuple[np.ndarray, np.ndarray]:
    """Return the slope of the goal by hits and by times given of every label, scaled so that the largest is 1."""
    shifts = np.zeros(true.size)
    if goal.number == MACRO_F1:
        scales = 2 / (at.said + true)
        shifts = -2 * at.hits / (at.said + true) ** 2
    elif goal.number == COVERAGE:
        scales = np.exp(at.none)
    else:
        scales = 1 / true
    scales, shifts = weights[0] * scales + weights[1], weights[0] * shifts
    largest = max(float(scales.max(initial=0.0)), 1e-300)
    return (scales / largest).astype(np.float32), (shifts / largest).astype(np.float32)


def _answer(
    ids: np.ndarray, chances: np.ndarray, scales: np.ndarray, shifts: np.ndarray, k: int, n_labels: int
) -> Tallies:
    """Return the tallies of giving every row the k labels with the largest gains."""
    keep = np.zeros(ids.shape, dtype=np.bool_)
    keep_best_of_rows(scales[ids] * chances + shifts[ids], ids, k, keep)
    labels, likely = ids[keep], chances[keep].astype(np.float64)
    hits = np.bincount(labels, weights=likely, minlength=n_labels)
    none = np.bincount(labels, weights=np.log1p(-np.minimum(likely, SUREST)), minlength=n_labels)
    return Tallies(hits, np.bincount(labels, minlength=n_labels).astype(np.float64), none)


def _value(at: Tallies, true: np.ndarray, goal: KGoal, weights: tuple[float, float]) -> float:
    """Return the expected goal."""
    if goal.number == MACRO_F1:
        utility = 2 * at.hits / (at.said + true)
    elif goal.number == COVERAGE:
        utility = 1 - np.exp(at.none)
    else:
        utility = at.hits / true
    return float(weights[0] * utility.sum() + weights[1] * at.hits.sum())
