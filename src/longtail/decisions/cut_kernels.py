"""Compiled scans over pairs sorted by probability that find where to cut."""

from __future__ import annotations

import numpy as np

from longtail.kernels import njit

PRECISION, RECALL, COUNT, WORTH = 0, 1, 2, 3


@njit(nogil=True, cache=True)
def best_cuts(
    starts,   # IN   where the pairs of every group begin, and their end     (n_groups + 1,) int64
    chances,  # IN   probabilities, falling within each group                (n_pairs,) float32
    right,    # IN   whether each pair is true                               (n_pairs,) bool
    true,     # IN   true pairs of every group, also outside the candidates  (n_groups,) float64
    goal,     # IN   PRECISION, RECALL, COUNT or WORTH
    values,   # IN   what must be reached, of every group                    (n_groups,) float64
    cuts,     # OUT  pairs to keep of every group; -1 where out of reach     (n_groups,) int64
):  # fmt: skip
    """Find how many pairs of every group to keep; equal probabilities stay together.

    PRECISION: of the cuts with a share of at least `value` right, the one with the most right pairs, and of equal ones
    the fewest pairs. RECALL: of those that hold a share of at least `value` of the true ones, the one with the greatest
    share right, and of equal ones the most right pairs. COUNT: the number nearest to `value`, and no pair where that is
    nearest. WORTH: the most of 2 × right - value × kept, and of equal ones the fewest.
    """
    for group in range(cuts.size):
        first, last, hits, found = starts[group], starts[group + 1], 0, 0
        value = values[group]
        cuts[group] = -1 if goal <= RECALL else 0
        best = abs(value) if goal == COUNT else 0.0
        for at in range(first, last):
            hits += 1 if right[at] else 0
            if at + 1 < last and chances[at + 1] == chances[at]:
                continue
            kept = at + 1 - first
            if goal == PRECISION:
                if hits >= value * kept and hits > found:
                    found, cuts[group] = hits, kept
            elif goal == RECALL:
                if hits >= value * true[group] and (
                    cuts[group] < 0
                    or hits * cuts[group] > found * kept
                    or (hits * cuts[group] == found * kept and hits > found)
                ):
                    found, cuts[group] = hits, kept
            elif goal == COUNT:
                if abs(kept - value) < best:
                    best, cuts[group] = abs(kept - value), kept
            elif 2.0 * hits - value * kept > best:
                best, cuts[group] = 2.0 * hits - value * kept, kept


@njit(nogil=True, cache=True)
def best_macro_cut(chances, labels, right, true):
    """Return how many of the pairs to keep so that the mean F1 of labels with true rows is best.

    Pairs are sorted by probability, falling; `true` (n_labels,) counts the true rows of every label.
    """
    hits, said = np.zeros(true.size), np.zeros(true.size)
    total, best, cut = 0.0, 0.0, 0
    for at in range(chances.size):
        label = labels[at]
        before = 2.0 * hits[label] / (said[label] + true[label]) if true[label] > 0 else 0.0
        said[label] += 1.0
        if right[at]:
            hits[label] += 1.0
        after = 2.0 * hits[label] / (said[label] + true[label]) if true[label] > 0 else 0.0
        total += after - before
        if at + 1 < chances.size and chances[at + 1] == chances[at]:
            continue
        if total > best + 1e-12:
            best, cut = total, at + 1
    return cut
