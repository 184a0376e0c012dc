"""The labels of reviewed rows: by each person, and the final ones.

On a row that a person has finished, these labels stand: the given ones, the suggestions that the model itself would
give, and those that the person accepted or added; without those they rejected. Where several people finished a row, a
label is final if most of them let it stand; in a tie the one who finished last decides.
"""

from __future__ import annotations

import itertools
import sqlite3
from collections.abc import Iterator
from dataclasses import dataclass, field

from longtail.review.store import NOT_UNDONE, Item, ReviewStore

DECIDED = (
    "SELECT d.item, d.number, d.label, d.verdict, d.reviewer, d.at, d.digest FROM decisions d"
    f" JOIN items i ON i.number = d.item WHERE d.verdict <> 'undo' AND {NOT_UNDONE}"
)


@dataclass
class Opinion:
    """What one person says about one row."""

    decided: dict[str, bool] = field(default_factory=dict)  # labels: do they stand?
    added: set[str] = field(default_factory=set)
    finished: int = 0  # number of the decision that finished the row; 0 where it is not finished
    at: str = ""
    digest: str = ""  # of the model whose suggestions were shown
    assigned: frozenset[str] = frozenset()  # labels that this model would give


@dataclass
class ReviewedRow:
    """A row with everything that people said about it."""

    item: Item
    opinions: dict[str, Opinion]

    @property
    def finishers(self) -> list[tuple[str, Opinion]]:
        """The people who finished the row, in the order in which they did."""
        done = [(name, opinion) for name, opinion in self.opinions.items() if opinion.finished]
        return sorted(done, key=lambda pair: pair[1].finished)

    def standing(self, opinion: Opinion) -> set[str]:
        """Return the labels that stand after what one person said."""
        out = set(self.item.labels) | opinion.assigned
        out -= {label for label, stands in opinion.decided.items() if not stands}
        return out | {label for label, stands in opinion.decided.items() if stands}

    def final(self) -> tuple[str, ...]:
        """Return the final labels, sorted; none where nobody finished the row."""
        sets = [self.standing(opinion) for _, opinion in self.finishers]
        candidates = set().union(*sets)
        votes = {label: sum(label in one for one in sets) for label in candidates}
        return tuple(
            sorted(
                label for label in candidates if 2 * votes[label] > len(sets) or self._tied(votes[label], sets, label)
            )
        )

    def _tied(self, votes: int, sets: list[set[str]], label: str) -> bool:
        """Say whether half of the people let a label stand, among them the one who finished last."""
        return 2 * votes == len(sets) and label in sets[-1]

    def values(self) -> dict[str, dict[str, bool]]:
        """Return for every label shown, suggested or added what each person said: does it stand?

        Who finished the row has said something about all of them; who did not, about those they decided.
        """
        sets = {name: self.standing(opinion) for name, opinion in self.finishers}
        labels = set(self.item.labels) | {tag.label for tag in self.item.suggestions}
        labels = labels.union(*sets.values(), *(opinion.decided for opinion in self.opinions.values()))
        out: dict[str, dict[str, bool]] = {}
        for label in sorted(labels):
            said = {name: label in standing for name, standing in sets.items()}
            said |= {name: o.decided[label] for name, o in self.opinions.items() if label in o.decided}
            out[label] = said
        return out


def reviewed_rows(store: ReviewStore, *, control: bool | None = None, finished: bool = True) -> Iterator[ReviewedRow]:
    """Yield rows with decisions, in the order in which they came; with `finished` only those that someone finished.

    `control` picks the control sample or the other rows; None for both.
    """
    where = " AND i.finished > 0" if finished else ""
    where += "" if control is None else f" AND i.control = {int(control)}"
    with store.reading() as db:
        rows = db.execute(f"{DECIDED}{where} ORDER BY d.item, d.number").fetchall()
        for number, decided in itertools.groupby(rows, key=lambda row: row[0]):
            yield _row(store, db, number, list(decided))


def _row(store: ReviewStore, db: sqlite3.Connection, number: int, decided: list[tuple]) -> ReviewedRow:
    """Return one row from its decisions that hold."""
    opinions: dict[str, Opinion] = {}
    for _, decision, label, verdict, reviewer, at, digest in decided:
        opinion = opinions.setdefault(reviewer, Opinion())
        opinion.at = at
        if verdict == "done":
            opinion.finished, opinion.digest = decision, digest
        else:
            opinion.decided[label] = verdict != "reject"
            (opinion.added.add if verdict == "add" else opinion.added.discard)(label)
    shown = next((opinion.digest for opinion in opinions.values() if opinion.finished), None)
    item = store.item_of_number(db, number, shown)
    tags = {item.digest: item.suggestions}
    for opinion in opinions.values():
        if opinion.digest not in tags:
            tags[opinion.digest] = store.suggestions(db, number, opinion.digest)
        if opinion.finished:
            opinion.assigned = frozenset(tag.label for tag in tags[opinion.digest] if tag.assigned)
    return ReviewedRow(item, opinions)
