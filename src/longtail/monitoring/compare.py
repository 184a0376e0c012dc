"""Compare the rows of a batch with the reference, and judge each difference: steady, watch or changed.

Every comparison asks two things. Is the difference more than chance gives once in 1,000 batches of this size? And is
what goes beyond chance large enough to matter? Only both together make "watch" or "changed".

The rows held out were judged by a model that had not learned them; the model that is kept has, and is a little surer of
new rows. So what depends on the model differs though no row has changed: half of what is worth watching is allowed for
that, besides chance, and to be surer, to give more labels, to be more often right or better calibrated is no alarm.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import numpy as np

from longtail.facts import DriftFacts, HistogramFacts
from longtail.monitoring.chance import LEVEL, population_stability, weigh_chance
from longtail.monitoring.label_changes import LabelChanges, changed_labels
from longtail.monitoring.reference import Profile, Reference
from longtail.monitoring.wording import advice_of, sentence_of

VERDICTS = ("steady", "watch", "changed")
BIN_ROWS = 5  # of a batch that a bin of labels should have, at least
OF_ROWS_ALONE = ("unknown_words", "length", "unknown_label")  # which no model has a part in
MEANS, SHIFT, VARIATION = "difference of means", "Kolmogorov-Smirnov", "total variation"


class Question(NamedTuple):
    """One comparison of two histograms."""

    what: str
    title: str
    histogram: str
    measure: str
    unit: str
    floors: tuple[float, float]  # distance beyond chance from which on it is worth watching, and has changed
    summary: Callable[[np.ndarray], float]  # the number that sums up a histogram
    scale: float = 1.0  # distance in the unit, of one bin
    alarming: str = "both"  # which direction is: "both", "more", "less", or "farther" from 0


def _mean(scale: float = 1.0, offset: float = 0.0) -> Callable[[np.ndarray], float]:
    """Return the mean of a histogram whose bin i stands for scale * (i + offset)."""
    return lambda counts: scale * (float(counts @ np.arange(counts.size)) / max(int(counts.sum()), 1) + offset)


def _median_length(counts: np.ndarray) -> float:
    """Return the median of the histogram of lengths, whose bin i stands for 2^(i/4) - 1 and more."""
    middle = int(np.searchsorted(np.cumsum(counts), counts.sum() / 2))
    return float(round(2 ** ((middle + 0.5) / 4) - 1))


QUESTIONS = (
    Question("unknown_words", "Unknown words", "unknown_words", MEANS, "share", (0.02, 0.05), _mean(1 / 200), 1 / 200),
    Question("length", "Length", "length", SHIFT, "characters", (0.05, 0.15), _median_length),
    Question(
        "probability",
        "First probability",
        "probability",
        MEANS,
        "share",
        (0.03, 0.06),
        _mean(1 / 40, 0.5),
        1 / 40,
        "less",
    ),
    Question("assigned", "Labels per row", "assigned", SHIFT, "labels", (0.05, 0.10), _mean(), 1, "less"),
    Question("nothing_assigned", "Rows without label", "nothing", VARIATION, "share", (0.03, 0.10), _mean(), 1, "more"),
    Question("label_mix", "Mix of labels", "drawn", VARIATION, "", (0.05, 0.10), lambda counts: np.nan),
    Question("precision_at_1", "Right at 1 (P@1)", "hits_at_1", MEANS, "share", (0.02, 0.05), _mean(), 1, "less"),
    Question(
        "precision_at_5",
        "Right at 5 (P@5)",
        "hits_at_5",
        MEANS,
        "share",
        (0.02, 0.05),
        _mean(1 / 5),
        1 / 5,
        "less",
    ),
    Question(
        "calibration",
        "Calibration",
        "gap",
        MEANS,
        "points",
        (0.03, 0.06),
        _mean(1 / 100, -100),
        1 / 100,
        "farther",
    ),
    Question(
        "unknown_label",
        "Unknown labels",
        "unknown_label",
        VARIATION,
        "share",
        (0.03, 0.10),
        _mean(),
        1,
        "more",
    ),
)


def compare_profiles(
    reference: Reference, batch: Profile, length_unit: str = "characters"
) -> tuple[list[DriftFacts], LabelChanges]:
    """Return all comparisons that batch and reference allow, and the labels whose frequency has changed."""
    changes = changed_labels(reference, batch)
    out = []
    for question in QUESTIONS:
        now, then = _histograms(question.histogram, reference, batch)
        if now is None or then is None or not now.sum() or not then.sum():
            continue
        if question.what == "length":
            question = question._replace(unit=length_unit)
        out.append(_compare(question, now, then))
        if question.what == "label_mix" and changes.n_tested:
            out.append(_compare_labels(changes, batch, reference))
    return out, changes


def worst_verdict(verdicts: Iterable[str]) -> str:
    """Return the worst of some verdicts.

    >>> worst_verdict(["steady", "changed", "watch"]), worst_verdict([])
    ('changed', 'steady')
    """
    return max(verdicts, key=VERDICTS.index, default="steady")


def _histograms(name: str, reference: Reference, batch: Profile) -> tuple[np.ndarray | None, np.ndarray | None]:
    """Return the histograms of batch and reference."""
    if name == "drawn":
        return _label_histograms(reference, batch)
    if name == "nothing":
        pair = (batch.histograms.get("assigned"), reference.histograms.get("assigned"))
        now, then = (None if one is None else np.array([one[1:].sum(), one[0]]) for one in pair)
        return now, then
    return batch.histograms.get(name), reference.histograms.get(name)


def _label_histograms(reference: Reference, batch: Profile) -> tuple[np.ndarray, np.ndarray]:
    """Return rows by a label drawn of those they get; labels too rare for a batch of this size are one bin."""
    listed = reference.drawn.labels
    now = np.append(batch.drawn[listed], batch.drawn.sum() - batch.drawn[listed].sum())
    then = np.append(reference.drawn.rows, reference.drawn_other)
    both = now + then
    often = both[:-1] * (now.sum() / max(both.sum(), 1)) >= BIN_ROWS
    now, then = (np.append(heap[:-1][often], heap[-1] + heap[:-1][~often].sum()) for heap in (now, then))
    return now, then


def _compare(question: Question, now: np.ndarray, then: np.ndarray) -> DriftFacts:
    """Return one comparison of two histograms."""
    slack = 0.0 if question.what in OF_ROWS_ALONE else question.floors[0] / 2 / question.scale
    chance = weigh_chance(question.measure, now, then, slack).scaled(question.scale)
    batch, before = question.summary(now), question.summary(then)
    watch, changed = question.floors
    verdict = "steady"
    if _is_alarming(question.alarming, batch, before) and chance.p_value <= LEVEL:
        verdict = VERDICTS[(chance.beyond >= watch) + (chance.beyond >= changed)]
    facts: dict[str, Any] = {
        "what": question.what,
        "title": question.title,
        "verdict": verdict,
        "batch": None if np.isnan(batch) else batch,
        "reference": None if np.isnan(before) else before,
        "unit": question.unit,
        "measure": question.measure,
        "distance": chance.distance,
        "chance": chance.expected,
        "limit": chance.limit,
        "p_value": chance.p_value,
        "watch_from": watch,
        "changed_from": changed,
        "rows": int(now.sum()),
        "reference_rows": int(then.sum()),
        "psi": population_stability(now, then),
        "histogram": _shown_histogram(question.histogram, now, then),
    }
    return _worded(facts)


def _is_alarming(direction: str, batch: float, before: float) -> bool:
    """Say whether a change goes in the direction that matters."""
    if direction == "farther":
        return abs(batch) > abs(before)
    return direction == "both" or (batch > before) == (direction == "more")


def _compare_labels(changes: LabelChanges, batch: Profile, reference: Reference) -> DriftFacts:
    """Return the comparison of single labels: how much the one that changed most did."""
    largest = float(np.abs(changes.differences[:1]).sum())
    watch, changed = 0.02, 0.05
    facts: dict[str, Any] = {
        "what": "single_labels",
        "title": "Single labels",
        "verdict": VERDICTS[(largest >= watch) + (largest >= changed)],
        "batch": float(np.count_nonzero(changes.differences > 0)),
        "reference": float(np.count_nonzero(changes.differences < 0)),
        "unit": "labels",
        "measure": "largest change",
        "distance": largest,
        "chance": 0.0,
        "limit": 0.0,
        "p_value": changes.smallest_p,
        "watch_from": watch,
        "changed_from": changed,
        "rows": batch.given_rows,
        "reference_rows": reference.given_rows,
        "psi": None,
        "histogram": None,
    }
    return _worded(facts)


def _worded(facts: dict[str, Any]) -> DriftFacts:
    """Return a comparison with its sentences."""
    facts["sentence"] = sentence_of(facts)
    facts["advice"] = advice_of(facts) if facts["verdict"] != "steady" else ""
    return facts  # type: ignore[return-value]  # built key by key


def _shown_histogram(name: str, now: np.ndarray, then: np.ndarray) -> HistogramFacts | None:
    """Return two histograms with few bins that have names, for plots."""
    if name == "probability":
        groups, bins = np.arange(40) // 4, [f"{10 * i}–{10 * i + 10}%" for i in range(10)]
    elif name == "unknown_words":
        share = np.arange(201) / 200
        groups = np.searchsorted([0.0, 0.05, 0.1, 0.2, 0.3, 0.5], share, side="left")
        bins = ["none", "to 5%", "to 10%", "to 20%", "to 30%", "to 50%", "above"]
    elif name == "assigned":
        groups, bins = np.minimum(np.arange(21), 10), [*map(str, range(10)), "10+"]
    elif name == "length":
        used = np.flatnonzero(now + then) // 4
        low = int(used.min())
        groups = np.clip(np.arange(96) // 4, low, int(used.max())) - low
        bins = [f"{2 ** (low + i) - 1:,}–" for i in range(int(groups.max()) + 1)]
    else:
        return None
    shares = [np.bincount(groups, heap, minlength=len(bins)) / heap.sum() for heap in (now, then)]
    return {"bins": bins, "batch": shares[0].tolist(), "reference": shares[1].tolist()}
