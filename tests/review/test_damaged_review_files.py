"""Review files that were changed in any way are read, or refused in one sentence."""

import contextlib
import json
import shutil
import sqlite3
from random import Random

import pytest
from fuzz.mutations import change_bytes, change_json
from fuzz.values import string

from longtail.errors import LongtailError
from longtail.review import (
    NewItem,
    ReviewStore,
    agreement_facts,
    export_records,
    next_items,
    review_facts,
    update_state,
)
from longtail.review.update import new_rows

TAGS = [["a", None, 0.9, 0.8, True], ["b", "B", 0.1, None, False]]


@pytest.fixture(scope="module")
def sound(tmp_path_factory):
    path = tmp_path_factory.mktemp("sound") / "reviews.db"
    with ReviewStore(path, create=True, control=0.4, twice=0.5) as store:
        store.add_items(NewItem(f"text {i}", ["a", "c"], id=str(i)) for i in range(8))
        suspect = {"kind": "wrong", "label": "a", "probability": 0.1, "usual": 0.9}
        with store.writing() as db:
            for number in range(1, 9):
                db.execute("INSERT INTO suggestions VALUES (?, 'm', '', ?)", (number, json.dumps(TAGS)))
            db.execute("UPDATE items SET digest = 'm', suspicion = 0.5, suspect = ?", (json.dumps(suspect),))
            db.execute("INSERT INTO updates VALUES (1, '', 'o', 'n', '{}')")
            db.execute("INSERT INTO learned VALUES (1, 1, '[\"a\"]')")
            state = {"state": "done", "swapped": False, "sentence": "x"}
            db.execute("INSERT INTO meta VALUES ('update', ?)", (json.dumps(state),))
        for i in range(5):
            for name in ("ada", "bob")[: 1 + i % 2]:
                store.decide(str(i), "b", "accept" if i % 2 else "reject", name)
                store.finish(str(i), name)
        store.undo(store.decide("6", "a", "reject", "ada").number, "ada")
        store.set_guideline("a", "so", "ada")
    return path


def use(path):
    """Read everything that a file holds, and write to it."""
    with ReviewStore(path) as store:
        review_facts(store)
        agreement_facts(store)
        list(export_records(store, "all"))
        update_state(store)
        new_rows(store, "n")
        store.guidelines()
        store.all_decisions()
        for order in ("mixed", "suspect", "uncertain", "control", "newest"):
            next_items(store, "eve", order, 8)
        store.decide(store.all_decisions()[0].item if store.all_decisions() else "0", "z", "add", "eve")


COLUMNS = (
    *(("items", name) for name in ("id", "text", "given", "digest", "suspect", "suspicion", "finished", "imported_at")),
    *(("decisions", name) for name in ("label", "verdict", "reviewer", "at", "item", "undoes", "digest")),
    *(("suggestions", name) for name in ("tags", "digest", "item")),
    *(("meta", "value"), ("learned", "labels"), ("guidelines", "text"), ("leases", "until"), ("finished", "reviewer")),
)


def changed_values(rng, path):
    """Put odd values into a few fields."""
    db = sqlite3.connect(path)
    for _ in range(rng.choice((1, 1, 3))):
        table, column = rng.choice(COLUMNS)
        rows = db.execute(f"SELECT {column} FROM {table}").fetchall()
        old = rng.choice(rows)[0] if rows else ""
        value = rng.choice((string(rng), "", "[", "null", '{"a": 1}', 5, -1, 2**62, 1.5, None, b"\xff"))
        if isinstance(old, str) and rng.random() < 0.7:
            with contextlib.suppress(ValueError):
                value = json.dumps(change_json(rng, json.loads(old)))
        try:
            db.execute(f"UPDATE {table} SET {column} = ? WHERE {column} IS ?", (value, old))
        except (sqlite3.Error, UnicodeEncodeError, OverflowError):
            continue
    db.commit()
    db.close()


@pytest.mark.parametrize("kind", ["bytes", "values"])
def test_changed_files_are_read_or_refused(sound, tmp_path, kind):
    ended = {"read": 0, "refused": 0}
    for number in range(60):
        rng = Random(f"{kind} {number}")
        path = tmp_path / f"{number}.db"
        shutil.copy(sound, path)
        if kind == "bytes":
            head, body = path.read_bytes()[:100], path.read_bytes()[100:]
            path.write_bytes(head + change_bytes(rng, body))
        else:
            changed_values(rng, path)
        try:
            use(path)
            ended["read"] += 1
        except LongtailError as error:
            assert "\n" not in str(error)
            ended["refused"] += 1
    assert ended["read"] and ended["refused"], ended
