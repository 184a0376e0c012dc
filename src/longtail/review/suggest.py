"""Suggestions of a model for the rows under review, how unsure it is of each, and which given labels look wrong.

How unsure a model is of a row: the entropy of every label's probability, moved so that the model's threshold comes to
one half, summed over the labels that nobody has decided. A label at the threshold counts one bit, a certain one
nothing.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from longtail.data import Dataset
from longtail.errors import DataError
from longtail.label_check import check_labels
from longtail.model import Stages
from longtail.pipeline import Tagger, assign, decision_facts, n_candidates
from longtail.review.store import ReviewStore, now
from longtail.validate import check_integer

SUGGESTED = 10  # labels shown for a row, besides all that the model would give
AT_ONCE = 512  # rows
FEWEST_ROWS_TO_CHECK = 50  # with labels; fewer say nothing about each other
FOLDS = 5


class Suggestion(NamedTuple):
    """What a model suggests for one text, as it is stored, and how unsure it is."""

    tags: list[list[object]]  # label, name, score, probability, assigned
    chances: dict[str, float]


def suggest_texts(tagger: Tagger, texts: Sequence[str], k: int = SUGGESTED) -> list[Suggestion]:
    """Return the labels to show for texts: those that the model would give, and the best others up to k."""
    top = tagger.predict_topk(texts, k=n_candidates(tagger))
    assigned = assign(tagger, top)
    out = []
    for tags, given in zip(tagger.name_tags(top), assigned.ids.tolist(), strict=True):
        mine = {tagger.labels_[i] for i in given if i >= 0}
        shown = [tag for place, tag in enumerate(tags) if place < k or tag.label in mine]
        stored: list[list[object]] = [[t.label, t.name, t.score, t.probability, t.label in mine] for t in shown]
        chances = {tag.label: tag.score if tag.probability is None else tag.probability for tag in tags}
        out.append(Suggestion(stored, chances))
    return out


def row_uncertainty(chances: np.ndarray, threshold: float) -> float:
    """Return how unsure a model is of a row, in bits: 1 for a label at the threshold, 0 for certain ones.

    >>> round(row_uncertainty(np.array([0.3, 0.999, 0.0]), 0.3), 3), row_uncertainty(np.array([]), 0.3)
    (1.005, 0.0)
    """
    t = min(max(threshold, 1e-6), 1 - 1e-6)
    p = np.clip(np.asarray(chances, dtype=np.float64), 1e-12, 1 - 1e-12)
    moved = p * (1 - t) / (p * (1 - t) + (1 - p) * t)
    moved = np.clip(moved, 1e-12, 1 - 1e-12)
    entropy = -(moved * np.log2(moved) + (1 - moved) * np.log2(1 - moved))
    return float(np.where(entropy < 1e-9, 0.0, entropy).sum())


def check_belongs(store: ReviewStore, tagger: Tagger) -> None:
    """Refuse a model that knows less than half of the labels that people judged: those of another one were shown."""
    with store.reading() as db:
        asked = "SELECT DISTINCT label FROM decisions WHERE verdict IN ('accept', 'reject')"
        judged = [row[0] for row in db.execute(asked)]
    known = set(tagger.labels_) & set(judged)
    if 2 * len(known) < len(judged):
        raise DataError(
            f"the reviews in {store.path} are those of another model: this one knows {len(known):,} of the "
            f"{len(judged):,} labels that were accepted or rejected there. Begin a review file of its own."
        )


def suggest_items(
    store: ReviewStore, tagger: Tagger, digest: str, *, k: int = SUGGESTED, progress: Stages | None = None
) -> int:
    """Let a model suggest labels for all open rows that it has not seen yet; return how many rows that were.

    `digest` names the model. Rows are ordered by what it is unsure of from now on; suggestions of earlier models stay
    in the file, since people decided by them.
    """
    if not tagger.reads_texts_:
        raise DataError("rows under review are texts, and the model was trained on rows of features.")
    check_integer("k", k, low=1)
    check_belongs(store, tagger)
    threshold = decision_facts(tagger)["threshold"]
    done, total = 0, _count_to_do(store, digest)
    for numbers, texts in _to_do(store, digest):
        found = suggest_texts(tagger, texts, k)
        with store.writing() as db:
            for number, one in zip(numbers, found, strict=True):
                _write(db, number, digest, one, 0.5 if threshold is None else float(threshold))
        done += len(numbers)
        if progress is not None:
            progress("Suggesting", done, max(done, total))
    return done


def suggest_for(store: ReviewStore, tagger: Tagger, digest: str, numbers: Sequence[int], k: int = SUGGESTED) -> None:
    """Let a model suggest labels for a few rows, now; who has one of them open is shown these suggestions."""
    threshold = decision_facts(tagger)["threshold"]
    with store.reading() as db:
        marks = ", ".join("?" * len(numbers))
        rows = db.execute(f"SELECT number, text FROM items WHERE number IN ({marks})", list(numbers)).fetchall()
    found = suggest_texts(tagger, [text for _, text in rows], k)
    with store.writing() as db:
        for (number, _), one in zip(rows, found, strict=True):
            _write(db, number, digest, one, 0.5 if threshold is None else float(threshold))
            db.execute("UPDATE leases SET digest = ? WHERE item = ? AND digest = ''", (digest, number))


def _count_to_do(store: ReviewStore, digest: str) -> int:
    with store.reading() as db:
        return int(db.execute("SELECT COUNT(*) FROM items WHERE open = 1 AND digest <> ?", (digest,)).fetchone()[0])


def _to_do(store: ReviewStore, digest: str) -> Iterator[tuple[list[int], list[str]]]:
    """Yield numbers and texts of open rows without the suggestions of a model, block by block."""
    last = 0
    while True:
        with store.reading() as db:
            rows = db.execute(
                "SELECT number, text FROM items WHERE open = 1 AND digest <> ? AND number > ? ORDER BY number LIMIT ?",
                (digest, last, AT_ONCE),
            ).fetchall()
        if not rows:
            return
        last = rows[-1][0]
        yield [row[0] for row in rows], [row[1] for row in rows]


def _write(db: sqlite3.Connection, number: int, digest: str, found: Suggestion, threshold: float) -> None:
    """Store the suggestions for one row, and how unsure the model is of what nobody has decided."""
    decided = {row[0] for row in db.execute("SELECT label FROM decisions WHERE item = ?", (number,))}
    open_chances = np.array([chance for label, chance in found.chances.items() if label not in decided])
    row = (number, digest, now(), json.dumps(found.tags))
    db.execute("INSERT OR REPLACE INTO suggestions VALUES (?, ?, ?, ?)", row)
    unsure = row_uncertainty(open_chances, threshold)
    db.execute("UPDATE items SET digest = ?, uncertainty = ? WHERE number = ?", (digest, unsure, number))


def check_given_labels(store: ReviewStore, *, n_jobs: int | None = None, progress: Stages | None = None) -> int:
    """Find rows whose given labels look wrong or incomplete (`check_labels`); return how many there are.

    Every row is judged by models that have not learned it. With few rows nothing can be found.
    """
    with store.reading() as db:
        rows = db.execute("SELECT number, text, given FROM items WHERE given <> '[]' ORDER BY number").fetchall()
    if len(rows) < FEWEST_ROWS_TO_CHECK:
        return 0
    data = Dataset.from_lists([row[1] for row in rows], [json.loads(row[2]) for row in rows])
    facts = check_labels(data, folds=FOLDS, limit=None, random_state=store.seed, n_jobs=n_jobs, progress=progress)
    found: dict[int, tuple[float, dict[str, object]]] = {}
    for kind, suspects in (("wrong", facts["wrong"]), ("missing", facts["missing"])):
        for place, one in enumerate(suspects):
            score = 1 - place / len(suspects)  # the first of each kind come first
            number = rows[one["row"]][0]
            if score > found.get(number, (0.0, {}))[0]:
                fact = {"kind": kind, "label": one["label"], "probability": one["probability"], "usual": one["usual"]}
                found[number] = (score, fact)
    with store.writing() as db:
        db.execute("UPDATE items SET suspicion = 0, suspect = '' WHERE suspicion > 0")
        db.executemany(
            "UPDATE items SET suspicion = ?, suspect = ? WHERE number = ?",
            [(score, json.dumps(fact), number) for number, (score, fact) in found.items()],
        )
    return len(found)
