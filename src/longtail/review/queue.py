"""Which rows a reviewer gets next: what teaches most, and a random sample that tells how good the suggestions are.

Control rows come by the order "control" alone, in random order, so that those finished so far are a random sample of
all rows. A row that a person was given is theirs for some minutes; others do not get it, unless two people are to
review it.
"""

from __future__ import annotations

import json
import sqlite3
import time
from typing import Any, NamedTuple

from longtail.review.store import LONGEST_REVIEWER, Decision, Item, ReviewStore, SuggestedTag, checked_name
from longtail.validate import check_choice, check_integer, check_real

ORDERS = ("mixed", "uncertain", "suspect", "control", "newest")
SHARES = {"uncertain": 0.5, "suspect": 0.25, "control": 0.25}  # of the rows handed out by the order "mixed"
LEASE_SECONDS = 600.0
MOST_AT_ONCE = 200  # rows handed out to one person
WHICH = {
    "uncertain": "i.control = 0 {and_open} ORDER BY i.uncertainty DESC, i.number",
    "suspect": "i.control = 0 AND i.suspicion > 0 {and_open} ORDER BY i.suspicion DESC, i.number",
    "control": "i.control = 1 {and_open} ORDER BY i.drawn, i.number",
    "newest": "i.control = 0 {and_open} ORDER BY i.number DESC",
}
FREE = (  # not finished by this person, not in their hands, and not in those of as many others as are still wanted
    "AND NOT EXISTS (SELECT 1 FROM finished f WHERE f.item = i.number AND f.reviewer = :me)"
    " AND NOT EXISTS (SELECT 1 FROM leases l WHERE l.item = i.number AND l.reviewer = :me)"
    " AND (SELECT COUNT(*) FROM leases l WHERE l.item = i.number) < 1 + i.twice - i.finished"
)


class Queued(NamedTuple):
    """A row that was handed out: why, in a word and in a sentence, and what this person has decided about it."""

    item: Item
    order: str
    sentence: str
    decided: list[Decision]


def next_items(
    store: ReviewStore, reviewer: str, order: str = "mixed", limit: int = 1, *, seconds: float = LEASE_SECONDS
) -> tuple[list[Queued], int]:
    """Return the next rows for a person, those they have open first, and how many are left for them.

    Parameters
    ----------
    store : ReviewStore
        The review file.
    reviewer : str
        Who asks.
    order : {"mixed", "uncertain", "suspect", "control", "newest"}, default="mixed"
        "uncertain": the model is least sure; "suspect": given labels that look wrong or missing; "control": the random
        sample; "newest": what came last; "mixed": of every four rows two uncertain, one suspect, one control.
    limit : int, default=1
        How many rows, at most 200.
    seconds : float, default=600
        How long nobody else gets them.

    Returns
    -------
    rows, left : list of Queued, int
    """
    reviewer = checked_name("reviewer", reviewer, LONGEST_REVIEWER)
    check_choice("order", order, ORDERS)
    limit, seconds = check_integer("limit", limit, low=1, high=MOST_AT_ONCE), check_real("seconds", seconds, low=0)
    clock = time.time()
    with store.writing() as db:
        db.execute("DELETE FROM leases WHERE until < ?", (clock,))
        db.execute("DELETE FROM leases WHERE reviewer = ? AND asked <> ?", (reviewer, order))
        begun = "EXISTS (SELECT 1 FROM decisions d WHERE d.item = leases.item AND d.reviewer = leases.reviewer)"
        held = f"SELECT item, reason FROM leases WHERE reviewer = ? ORDER BY {begun} DESC, until, item LIMIT ?"
        chosen: list[tuple[int, str]] = db.execute(held, (reviewer, limit)).fetchall()
        until = clock + seconds
        db.executemany(
            "UPDATE leases SET until = ? WHERE item = ? AND reviewer = ?", [(until, i, reviewer) for i, _ in chosen]
        )
        while len(chosen) < limit and (found := _hand_out(db, reviewer, order, until)) is not None:
            chosen.append(found)
        out = [_queued(store, db, reviewer, *one) for one in chosen]
        left = db.execute(
            "SELECT (SELECT COUNT(*) FROM items WHERE open = 1) - (SELECT COUNT(*) FROM finished f"
            " JOIN items i ON i.number = f.item WHERE i.open = 1 AND f.reviewer = ?)",
            (reviewer,),
        ).fetchone()[0]
    return out, int(left)


def held_by_others(store: ReviewStore, reviewer: str) -> int:
    """Return how many rows that a person could still finish are in the hands of others now, who may give them back."""
    with store.reading() as db:
        found = db.execute(
            "SELECT COUNT(DISTINCT l.item) FROM leases l JOIN items i ON i.number = l.item"
            " WHERE i.open = 1 AND l.reviewer <> :me AND l.until >= :now"
            " AND NOT EXISTS (SELECT 1 FROM finished f WHERE f.item = i.number AND f.reviewer = :me)"
            " AND NOT EXISTS (SELECT 1 FROM leases m WHERE m.item = i.number AND m.reviewer = :me)"
            " AND (SELECT COUNT(*) FROM leases k WHERE k.item = i.number AND k.until >= :now)"
            " >= 1 + i.twice - i.finished",
            {"me": reviewer, "now": time.time()},
        )
        return int(found.fetchone()[0])


def release(store: ReviewStore, reviewer: str) -> None:
    """Give back all rows that a person has open."""
    with store.writing() as db:
        db.execute("DELETE FROM leases WHERE reviewer = ?", (reviewer,))


def _hand_out(db: sqlite3.Connection, reviewer: str, order: str, until: float) -> tuple[int, str] | None:
    """Choose one more row for a person and note that it is theirs; None where none is left."""
    for reason in _reasons(db, order):
        which = WHICH[reason].format(and_open=f"AND i.open = 1 {FREE}")
        row = db.execute(f"SELECT i.number, i.digest FROM items i WHERE {which} LIMIT 1", {"me": reviewer}).fetchone()
        if row is None:
            continue
        db.execute("INSERT INTO leases VALUES (?, ?, ?, ?, ?, ?)", (row[0], reviewer, until, row[1], order, reason))
        if order == "mixed":
            db.execute(
                "INSERT INTO handed_out VALUES (?, 1) ON CONFLICT (reason) DO UPDATE SET times = times + 1", (reason,)
            )
        return int(row[0]), reason
    return None


def _reasons(db: sqlite3.Connection, order: str) -> list[str]:
    """Return the orders to try, first the one that is furthest behind its share."""
    if order != "mixed":
        return [order]
    times = dict(db.execute("SELECT reason, times FROM handed_out"))
    total = 1 + sum(times.get(reason, 0) for reason in SHARES)
    return sorted(SHARES, key=lambda reason: times.get(reason, 0) - SHARES[reason] * total)


def _queued(store: ReviewStore, db: sqlite3.Connection, reviewer: str, number: int, reason: str) -> Queued:
    """Return a row as it is handed out; what others decided is not shown, so that people judge by themselves."""
    shown = db.execute("SELECT digest FROM leases WHERE item = ? AND reviewer = ?", (number, reviewer)).fetchone()[0]
    item = store.item_of_number(db, number, shown)
    suspect = db.execute("SELECT suspect FROM items WHERE number = ?", (number,)).fetchone()[0]
    return Queued(item, reason, sentence_for(item, reason, suspect), store.decisions_of(db, number, reviewer))


def _suspicion(raw: str) -> dict[str, Any] | None:
    """Return which label of a row looks wrong or missing; None where that cannot be read."""
    try:
        found = json.loads(raw)
    except (ValueError, RecursionError):
        return None
    sound = isinstance(found, dict) and isinstance(found.get("label"), str)
    return found if sound and isinstance(found.get("probability"), float) and "kind" in found else None


def sentence_for(item: Item, reason: str, suspect: str) -> str:
    """Return in one sentence why a row is worth looking at."""
    if reason == "control":
        return "Drawn at random, to measure how often the suggestions are right."
    if reason == "newest":
        return "Among the last that came in."
    if reason == "suspect":
        found = _suspicion(suspect)
        if found is not None:
            likely = f"{100 * float(found['probability']):.0f}%"
            if found["kind"] == "missing":
                return f"The label {found['label']!r} looks missing: its probability is {likely}."
            return f"The given label {found['label']!r} looks wrong: its probability is {likely}."
        return "A given label looks wrong, or one looks missing."
    known = [tag for tag in item.suggestions if tag.probability is not None]
    if not known:
        return (
            "The model is unsure of this row." if item.suggestions else "The model has nothing to say about this row."
        )
    edges = [  # the least likely label that it would give, and the likeliest that it would not
        *sorted((tag for tag in known if tag.assigned), key=_chance)[:1],
        *sorted((tag for tag in known if not tag.assigned), key=_chance)[-1:],
    ]
    nearest = min(edges, key=lambda tag: abs(_chance(tag) - 0.5))
    called = nearest.name or nearest.label
    return f"The model is unsure: it gives {called!r} a probability of {100 * _chance(nearest):.0f}%."


def _chance(tag: SuggestedTag) -> float:
    return tag.probability or 0.0
