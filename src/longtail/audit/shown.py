"""Cards of audits without names, for notebooks: verdicts, and label sets by the numbers of their labels."""

from __future__ import annotations

from collections.abc import Sequence

from longtail.audit.certificate import IMPOSSIBLE, REACHABLE, ROBUST, UNDECIDED
from longtail.facts import LabelSetFacts, SetsFacts
from longtail.notebook import Html, card, fold, meter, table

MEANINGS = {
    ROBUST: "a ball of inputs gives it",
    REACHABLE: "an input gives it",
    IMPOSSIBLE: "no input gives it: proved",
    UNDECIDED: "neither is proved",
}
LABELS_SHOWN = 12


def audit_html(facts: SetsFacts) -> str:
    """Return how many label sets have each verdict, the impossible ones of most rows and the hardest possible."""
    sets, rows, n = facts["sets"], facts["rows"], max(facts["n_sets"], 1)
    verdicts = [
        [name, MEANINGS[name], meter(sets[name] / n, f"{sets[name]:,}"), f"{rows[name]:,}"]
        for name in MEANINGS
        if sets[name]
    ]
    note = f"{facts['n_sets']:,} {facts['kind']} of {facts['n_labels']:,} labels in {facts['width']:,} dimensions"
    kinds = (("Impossible", facts["impossible"]), ("Possible, but hardest", facts["hardest"]))
    folds = [fold(title, _sets(found)) for title, found in kinds if found]
    return card("Audit", table(["verdict", "means", "sets", "rows"], verdicts, (3,)), *folds, note=note)


def _sets(found: Sequence[LabelSetFacts]) -> Html:
    """Return label sets with their rows and the radius of their ball."""
    body = [[_numbers(one["labels"]), f"{one['rows']:,}", f"{one['radius']:.3g}"] for one in found]
    return table(["labels, by number", "rows", "radius"], body, (1, 2))


def _numbers(labels: Sequence[int]) -> str:
    more = len(labels) - LABELS_SHOWN
    return ", ".join(map(str, labels[:LABELS_SHOWN])) + (f" and {more} more" if more > 0 else "") or "none"
