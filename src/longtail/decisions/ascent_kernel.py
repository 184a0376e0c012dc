"""Compiled loops that give every row its k best labels: by gains, and by block coordinate ascent over a batch."""

from __future__ import annotations

import numpy as np

from longtail.decisions.purposes import MACRO_F1, MACRO_RECALL
from longtail.kernels import njit

SUREST = 1.0 - 1e-6  # a probability of 1 would make coverage of a label certain, and its other rows worthless


@njit(nogil=True, cache=True)
def keep_best(values, ids, k, keep):
    """Mark the k largest values of one row; of equal ones the first, and none where there is no label."""
    keep[:] = False
    for _ in range(k):
        best = -1
        for at in range(values.size):
            if ids[at] >= 0 and not keep[at] and (best < 0 or values[at] > values[best]):
                best = at
        if best < 0:
            return
        keep[best] = True


@njit(nogil=True, cache=True)
def keep_best_of_rows(values, ids, k, keep):
    """Mark the k largest values of every row."""
    for row in range(values.shape[0]):
        keep_best(values[row], ids[row], k, keep[row])


@njit(nogil=True, cache=True)
def label_utility(goal, hits, said, true, none):
    """Return the utility of one label: expected hits, times said, expected true rows, log of the chance of no hit."""
    if goal == MACRO_F1:
        return 2.0 * hits / (said + true) if said + true > 0.0 else 0.0
    if goal == MACRO_RECALL:
        return hits / true if true > 0.0 else 0.0
    return 1.0 - np.exp(none)


@njit(nogil=True, cache=True)
def tally(ids, chances, keep, hits, said, none):
    """Count expected hits, times said and the log of the chance of no hit of every label from what is kept."""
    hits[:] = 0.0
    said[:] = 0.0
    none[:] = 0.0
    for row in range(ids.shape[0]):
        for at in range(ids.shape[1]):
            if keep[row, at]:
                label, chance = ids[row, at], chances[row, at]
                hits[label] += chance
                said[label] += 1.0
                none[label] += np.log1p(-min(chance, SUREST))


@njit(nogil=True, cache=True)
def ascend(
    ids,            # IN      label of every candidate, -1 for none          (n_rows, candidates) int32
    chances,        # IN      their probabilities                            (n_rows, candidates) float64
    k,              # IN      labels of every row
    goal,           # IN      number of the goal
    label_weight,   # IN      what the utility of one label counts for
    row_weight,     # IN      what one expected hit counts for
    true,           # IN      expected true rows of every label              (n_labels,) float64
    keep,           # IN OUT  which candidates are chosen                    (n_rows, candidates) bool
    expected,       # OUT     the expected goal after every pass             (passes,) float64
    enough,         # IN      the least rise of the goal that is worth a pass
):  # fmt: skip
    """Improve the choice row by row until nothing changes; return the number of passes."""
    n_rows, width = ids.shape
    hits, said, none = np.zeros(true.size), np.zeros(true.size), np.zeros(true.size)
    gains, chosen = np.zeros(width), np.zeros(width, dtype=np.bool_)
    for number in range(expected.size):
        tally(ids, chances, keep, hits, said, none)
        changed = False
        for row in range(n_rows):
            for at in range(width):
                label, chance = ids[row, at], chances[row, at]
                if label < 0:
                    continue
                if keep[row, at]:
                    hits[label] = max(hits[label] - chance, 0.0)
                    said[label] -= 1.0
                    none[label] = min(none[label] - np.log1p(-min(chance, SUREST)), 0.0)
                before = label_utility(goal, hits[label], said[label], true[label], none[label])
                other = none[label] + np.log1p(-min(chance, SUREST))
                after = label_utility(goal, hits[label] + chance, said[label] + 1.0, true[label], other)
                gains[at] = label_weight * (after - before) + row_weight * chance
            keep_best(gains, ids[row], k, chosen)
            for at in range(width):
                if chosen[at]:
                    label, chance = ids[row, at], chances[row, at]
                    hits[label] += chance
                    said[label] += 1.0
                    none[label] += np.log1p(-min(chance, SUREST))
                if chosen[at] != keep[row, at]:
                    changed = True
                    keep[row, at] = chosen[at]
        tally(ids, chances, keep, hits, said, none)
        total = row_weight * hits.sum()
        for label in range(true.size):
            total += label_weight * label_utility(goal, hits[label], said[label], true[label], none[label])
        expected[number] = total
        if not changed or (number > 0 and total - expected[number - 1] <= enough * abs(total)):
            return number + 1
    return expected.size
