"""Thresholds for a purpose, chosen on rows with known labels: for all labels, per frequency band or per label.

A band or a label is a group of (row, label) pairs with one threshold. A share that must be reached (precision, recall)
is reached by each group by itself; what groups cannot reach is not asked of them: nothing of them is assigned where
precision is out of reach, all candidates where recall is. F1 is made best for all groups together: for any F the
groups maximise 2 × right - F × assigned one by one, and F is raised until it is the F1 that comes out (Dinkelbach).
Macro-F1 is a mean over labels, so that groups are maximised one by one.

A label alone has few rows to choose by. Its own threshold counts by its true rows, that of its band as much as
`SHRINKAGE` such rows.
"""

from __future__ import annotations

import numpy as np

from longtail.decisions.cut_kernels import COUNT, PRECISION, RECALL, WORTH, best_cuts, best_macro_cut
from longtail.decisions.decision import NEVER, Decision
from longtail.decisions.judged_pairs import JudgedRows
from longtail.decisions.purposes import Target
from longtail.errors import DataError
from longtail.metrics import label_bands

SHRINKAGE = 20.0  # true rows of a label that its band's threshold counts for
ROUNDS = 50  # of Dinkelbach's method, which needs less than ten
GOALS = {"precision": PRECISION, "recall": RECALL, "labels-per-row": COUNT}
BANDS = 4


class _Groups:
    """Pairs of some groups, each sorted by falling probability."""

    def __init__(self, judged: JudgedRows, group_of_label: np.ndarray, n_groups: int) -> None:
        labels, chances, right = judged.flat()
        groups = group_of_label[labels]
        order = np.lexsort((labels, -chances, groups))
        self.labels, self.chances, self.right = labels[order], chances[order], right[order]
        self.starts = np.searchsorted(groups[order], np.arange(n_groups + 1)).astype(np.int64)
        self.true = np.bincount(group_of_label, weights=judged.label_true, minlength=n_groups)
        if n_groups == 1:
            self.true = np.array([float(judged.n_true)])  # labels that the model does not know too
        self.label_true = judged.label_true.astype(np.float64)
        self.n_groups = n_groups

    def cuts(self, goal: int, values: np.ndarray) -> np.ndarray:
        """Return how many pairs of every group to keep."""
        out = np.zeros(self.n_groups, dtype=np.int64)
        best_cuts(self.starts, self.chances, self.right, self.true, goal, values.astype(np.float64), out)
        return out

    def macro_cuts(self) -> np.ndarray:
        """Return how many pairs of every group to keep for the best mean F1 of its labels."""
        spans = zip(self.starts[:-1].tolist(), self.starts[1:].tolist(), strict=True)
        return np.array(
            [best_macro_cut(self.chances[a:b], self.labels[a:b], self.right[a:b], self.label_true) for a, b in spans],
            dtype=np.int64,
        )

    def thresholds(self, cuts: np.ndarray, goal: str) -> np.ndarray:
        """Return the threshold half-way between the last pair that is kept and the next one, of every group.

        Where the last one is the least likely of all it is its own probability; where nothing is kept, no
        probability reaches it.
        """
        if not self.chances.size:
            return np.full(self.n_groups, NEVER, dtype=np.float32)
        last = np.clip(self.starts[:-1] + cuts - 1, 0, self.chances.size - 1)
        following = np.minimum(last + 1, self.chances.size - 1)
        inside = self.starts[:-1] + cuts < self.starts[1:]
        middle = ((self.chances[last].astype(np.float64) + self.chances[following]) / 2).astype(np.float32)
        above_next = np.nextafter(self.chances[following], np.float32(2))  # where the middle is rounded down to it
        out = np.where(inside, np.maximum(middle, above_next), self.chances[last])
        out = np.where(cuts == 0, NEVER, out)
        return np.where(cuts < 0, 0.0 if goal == "recall" else NEVER, out).astype(np.float32)


def choose_thresholds(judged: JudgedRows, target: Target, per: str) -> Decision:
    """Return the thresholds that suit a target on rows with known labels; a target out of reach is refused."""
    n_labels = judged.train_counts.size
    whole = _Groups(judged, np.zeros(n_labels, dtype=np.int64), 1)
    cuts = _cuts(whole, judged, target)
    if cuts[0] < 0:
        raise _out_of_reach(whole, target)
    threshold = float(whole.thresholds(cuts, target.name)[0])
    k = judged.probabilities.k
    if per == "global":
        return Decision.of_thresholds(str(target), threshold, per=per, candidates=k, n_rows=judged.n_rows)
    band_of_label = label_bands(judged.train_counts).of_label.astype(np.int64)
    bands = _Groups(judged, band_of_label, BANDS)
    of_band = bands.thresholds(_cuts(bands, judged, target), target.name)
    of_band = np.where(np.diff(bands.starts) > 0, of_band, np.float32(threshold))
    of_labels = of_band[band_of_label]
    if per == "label":
        own = _Groups(judged, np.arange(n_labels), n_labels)
        single = own.thresholds(_cuts(own, judged, target), target.name)
        weight = np.where(np.diff(own.starts) > 0, judged.label_true / (judged.label_true + SHRINKAGE), 0.0)
        single, shared = np.minimum(single, 1.0), np.minimum(of_labels, 1.0)
        shrunk = (weight * single + (1 - weight) * shared).astype(np.float32)
        of_labels = np.where((weight == 0) | (single == shared), of_labels, shrunk)
    return Decision.of_thresholds(str(target), threshold, of_labels, per=per, candidates=k, n_rows=judged.n_rows)


def _cuts(groups: _Groups, judged: JudgedRows, target: Target) -> np.ndarray:
    """Return how many pairs of every group to keep for a target."""
    if target.name == "macro-f1":
        return groups.macro_cuts()
    if target.name == "f1":
        return _f1_cuts(groups, max(judged.n_true, 1))
    values = np.full(groups.n_groups, target.value, dtype=np.float64)
    if target.name == "labels-per-row":  # every group its share of the labels, by its true pairs
        values = values * judged.n_rows * groups.true / max(groups.true.sum(), 1.0)
    return groups.cuts(GOALS[target.name], values)


def _f1_cuts(groups: _Groups, n_true: int) -> np.ndarray:
    """Return the cuts of all groups that make their common micro-F1 best."""
    f1, cuts = 0.0, np.zeros(groups.n_groups, dtype=np.int64)
    running = np.concatenate([[0], np.cumsum(groups.right)])
    for _ in range(ROUNDS):
        found = groups.cuts(WORTH, np.full(groups.n_groups, f1))
        hits = (running[groups.starts[:-1] + found] - running[groups.starts[:-1]]).sum()
        value = 2.0 * hits / (found.sum() + n_true)
        if value <= f1:
            break
        f1, cuts = float(value), found
    return cuts


def _out_of_reach(whole: _Groups, target: Target) -> DataError:
    """Return the complaint about a target that no threshold reaches, with what is within reach."""
    last_of_tie = np.append(whole.chances[1:] != whole.chances[:-1], True) if whole.chances.size else np.zeros(0, bool)
    hits = np.cumsum(whole.right)
    if target.name == "precision":
        best = float((hits / np.arange(1, hits.size + 1))[last_of_tie].max(initial=0.0))
    else:
        best = float(hits[-1] / max(whole.true[0], 1.0)) if hits.size else 0.0
    return DataError(
        f"{target} is out of reach: with any threshold the {target.name} on the rows it is chosen on is at most "
        f"{int(1000 * best) / 1000:g}."
    )
