"""Sentences about a comparison: how batch and reference differ, and what to do about it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from longtail.facts import DriftFacts

LEARN = "If rows like these will keep coming, update or retrain the model with labelled ones."
LABEL_SOME = "Label some of these rows and monitor them again, to see whether the labels given are still right."
WORSE = "The model is worse on these rows than it was: update or retrain it with labelled rows like these."
TOPICS = "Look at the labels that come more or less often: another kind of rows, or a real change of topics?"
OTHER_LABELS = 0.95  # of the rows have a label that is not known: these are labels of something else


def sentence_of(facts: Mapping[str, Any]) -> str:
    """Return in one sentence what was found."""
    return f"{_SENTENCES[facts['what']](facts)}."


def advice_of(facts: Mapping[str, Any]) -> str:
    """Return what to do about a comparison that is not steady."""
    more = (facts["batch"] or 0) > (facts["reference"] or 0)
    what = facts["what"]
    if what == "unknown_words":
        told = f"Look at the new words: another language, broken characters, or new topics? {LEARN}"
        return told if more else "New rows have more of them: was the model trained on these rows?"
    if what == "length":
        return "Look at some rows: are texts cut off, empty, or joined from other fields?"
    if what == "unknown_label":
        told = "Are these labels of another vocabulary, or written in another way?"
        return told if facts["batch"] >= OTHER_LABELS else "Update the model with these rows, so that it learns them."
    return _ADVICE[what]


def monitor_advice(verdict: str, comparisons: Sequence[DriftFacts]) -> str:
    """Return in one or two sentences what all comparisons together mean."""
    if verdict == "steady":
        return "Nothing to do."
    off = {one["what"]: one for one in comparisons if one["verdict"] != "steady"}
    judged = {one["what"] for one in comparisons} & {"precision_at_1", "precision_at_5"}
    strange = off.get("unknown_label")
    if strange is not None and (strange["batch"] or 0.0) >= OTHER_LABELS:
        return f"Almost no row has only labels that the model knows. {strange['advice']}"
    if off.keys() & {"precision_at_1", "precision_at_5"}:
        return WORSE
    if strange is not None:
        return "There are labels that the model does not know: update it with these rows."
    if "calibration" in off:
        return _ADVICE["calibration"]
    if judged:
        return "The rows are different, and the model is as often right as it was: no hurry; look at what is new."
    return f"The rows are different; whether they are still tagged well, rows without labels cannot say. {LABEL_SOME}"


def _percent(value: float) -> str:
    return f"{100 * value:.1f}%"


def _now_and_before(facts: Mapping[str, Any]) -> str:
    """Return two shares, e.g. "12.0%, against 4.0% before"."""
    return f"{_percent(facts['batch'])}, against {_percent(facts['reference'])} before"


def _length(facts: Mapping[str, Any]) -> str:
    unit, now, before = facts["unit"], facts["batch"], facts["reference"]
    return f"Half of the rows have more than {now:,.0f} {unit}, against {before:,.0f} before"


def _single_labels(facts: Mapping[str, Any]) -> str:
    more, less = int(facts["batch"]), int(facts["reference"])
    if not more + less:
        return "No label comes more or less often than chance allows"
    come = f"{more:,} {'label comes' if more == 1 else 'labels come'} more often and {less:,} less often"
    return f"{come} than chance allows, by up to {100 * facts['distance']:.1f} points"


def _calibration(facts: Mapping[str, Any]) -> str:
    gap, before = 100 * facts["batch"], 100 * facts["reference"]
    what = "above" if gap >= 0 else "below"
    return f"Probabilities of labels given are {abs(gap):.1f} points {what} the truth, against {before:+.1f} before"


_SENTENCES: dict[str, Callable[[Mapping[str, Any]], str]] = {
    "unknown_words": lambda f: f"Share of a row's words that the model does not know: {_now_and_before(f)}",
    "length": _length,
    "probability": lambda f: f"Mean probability of the first label: {_now_and_before(f)}",
    "assigned": lambda f: f"A row gets {f['batch']:.2f} labels, against {f['reference']:.2f} before",
    "nothing_assigned": lambda f: f"Rows that get no label: {_now_and_before(f)}",
    "label_mix": lambda f: f"Of 100 rows {100 * f['distance']:.0f} would need another label for the mix of before",
    "single_labels": _single_labels,
    "precision_at_1": lambda f: f"First labels that are right: {_now_and_before(f)}",
    "precision_at_5": lambda f: f"First five labels that are right: {_now_and_before(f)}",
    "calibration": _calibration,
    "unknown_label": lambda f: f"Rows with a label that the model does not know: {_now_and_before(f)}",
}
_ADVICE = {
    "probability": "The model knows less about these rows: look at some with a low probability.",
    "assigned": "Look at rows with very few and very many labels.",
    "nothing_assigned": "Look at rows without a label: what are they about?",
    "label_mix": TOPICS,
    "single_labels": TOPICS,
    "precision_at_1": WORSE,
    "precision_at_5": WORSE,
    "calibration": "Probabilities mean something else here: decide anew which labels to assign, on rows like these.",
}
