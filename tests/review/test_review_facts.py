"""Final labels, precision on the control sample, and files in and out."""

import csv
import json

import numpy as np
import pytest

from longtail.data import Dataset, read
from longtail.errors import DataError
from longtail.metrics import share_interval
from longtail.pipeline import Tagger
from longtail.review import (
    NewItem,
    ReviewStore,
    add_rows,
    check_given_labels,
    export_jsonl,
    export_spreadsheet,
    items_of_dataset,
    items_of_jsonl,
    next_items,
    review_facts,
    reviewed_rows,
    row_uncertainty,
    suggest_items,
)

TEXTS = ["red apple", "green apple", "fast car", "old car"] * 20
LABELS = [["fruit", "red"], ["fruit"], ["vehicle"], ["vehicle"]] * 20


@pytest.fixture(scope="module")
def tagger():
    return Tagger(random_state=0).fit(TEXTS, LABELS)


@pytest.fixture
def store(tmp_path, tagger):
    with ReviewStore(tmp_path / "reviews.db", create=True, control=0.5, twice=0.0) as store:
        store.add_items(NewItem(TEXTS[i] + f" {i}", [], id=str(i)) for i in range(20))
        assert suggest_items(store, tagger, "model-1") == 20
        yield store


def suggested(store, tags, id="1", digest="m"):
    """Let a made-up model suggest labels: (label, probability, would it give it)."""
    with store.writing() as db:
        number = db.execute("SELECT number FROM items WHERE id = ?", (id,)).fetchone()[0]
        rows = json.dumps([[label, None, chance, chance, given] for label, chance, given in tags])
        db.execute("INSERT OR REPLACE INTO suggestions VALUES (?, ?, '', ?)", (number, digest, rows))
        db.execute("UPDATE items SET digest = ? WHERE number = ?", (digest, number))


def test_what_was_not_rejected_stands(tmp_path):
    store = ReviewStore(tmp_path / "r.db", create=True)
    store.add_items([NewItem("t", ["given", "wrong"], id="1")])
    suggested(store, [("likely", 0.9, True), ("no", 0.8, True), ("maybe", 0.4, False), ("unlikely", 0.1, False)])
    for label, verdict in (("wrong", "reject"), ("no", "reject"), ("maybe", "accept"), ("new", "add")):
        store.decide("1", label, verdict, "ada")
    assert list(reviewed_rows(store)) == []
    store.finish("1", "ada")
    (row,) = reviewed_rows(store)
    assert row.final() == ("given", "likely", "maybe", "new")


def test_most_people_decide_and_the_last_breaks_a_tie(tmp_path):
    store = ReviewStore(tmp_path / "r.db", create=True, twice=1.0)
    store.add_items([NewItem("t", ["a"], id="1")])
    store.decide("1", "a", "reject", "ada")
    store.finish("1", "ada")
    store.decide("1", "b", "add", "bob")
    store.finish("1", "bob")
    (row,) = reviewed_rows(store)
    assert row.final() == ("a", "b")
    store.decide("1", "a", "reject", "eve")
    store.finish("1", "eve")
    (row,) = reviewed_rows(store)
    assert row.final() == ()


def test_decisions_hold_for_the_suggestions_that_were_shown(tmp_path):
    store = ReviewStore(tmp_path / "r.db", create=True, control=0.0, twice=0.0)
    store.add_items([NewItem("t", id="1")])
    suggested(store, [("old", 0.9, True)], digest="m1")
    next_items(store, "ada", "newest")
    suggested(store, [("new", 0.9, True)], digest="m2")  # a new model comes while the row is open
    assert next_items(store, "ada", "newest")[0][0].item.suggestions[0].label == "old"
    assert store.finish("1", "ada").digest == "m1"
    (row,) = reviewed_rows(store)
    assert row.final() == ("old",)


def test_rows_near_the_threshold_are_the_least_certain():
    assert row_uncertainty([0.3], 0.3) == pytest.approx(1.0)
    assert row_uncertainty([0.3], 0.3) > row_uncertainty([0.5], 0.3) > row_uncertainty([0.9], 0.3)
    assert row_uncertainty([0.0, 1.0], 0.3) == 0.0


def test_suggestions_are_those_of_the_model_and_order_the_queue(store, tagger):
    item = store.item("0")
    assert {tag.label for tag in item.suggestions if tag.assigned} == set(tagger.predict(["red apple 0"])[0])
    assert suggest_items(store, tagger, "model-1") == 0  # nothing new
    with store.reading() as db:
        unsure = dict(db.execute("SELECT id, uncertainty FROM items WHERE control = 0"))
    rows, _ = next_items(store, "ada", "uncertain", 3)
    assert [unsure[row.item.id] for row in rows] == sorted(unsure.values(), reverse=True)[:3]
    assert "unsure" in rows[0].sentence


def test_a_model_of_features_is_refused(store):
    numbers = Tagger("ova", calibrate=0).fit(np.eye(4), np.eye(4))
    with pytest.raises(DataError, match="trained on rows of features"):
        suggest_items(store, numbers, "m")


def test_given_labels_that_look_wrong_are_found(tmp_path):
    store = ReviewStore(tmp_path / "r.db", create=True, control=0.0)
    labels = [list(names) for names in LABELS]
    labels[6] = ["fruit"]
    store.add_items(NewItem(text, names, id=str(i)) for i, (text, names) in enumerate(zip(TEXTS, labels, strict=True)))
    assert check_given_labels(store) > 0
    (row,) = next_items(store, "ada", "suspect")[0]
    assert row.item.id == "6" and row.sentence.startswith("The given label 'fruit' looks wrong")


# --- the dashboard ----------------------------------------------------------------------------------------------------


def test_precision_counts_finished_control_rows_only(store):
    control = [str(i) for i in range(20) if store.item(str(i)).control]
    others = [str(i) for i in range(20) if not store.item(str(i)).control]
    right = given = 0
    for id in [*control[:4], *others]:
        tags = [tag.label for tag in store.item(id).suggestions if tag.assigned]
        if id in others or id == control[0]:
            store.decide(id, tags[0], "reject", "ada")
        if id in control:
            given += len(tags)
            right += len(tags) - (id == control[0])
        store.finish(id, "ada")
    store.decide(control[5], "fruit", "reject", "bob")  # not finished: does not count
    facts = review_facts(store)
    assert (facts["control"]["rows"], facts["control"]["pairs"], facts["control"]["right"]) == (4, given, right)
    assert facts["control"]["low"] < facts["control"]["precision"] < facts["control"]["high"]
    assert facts["over_time"][0]["so_far"] == facts["control"]
    assert [one["digest"] for one in facts["models"]] == ["model-1"]
    assert facts["days"][0]["rows"] == 4 + len(others)
    ada, bob = facts["reviewers"]
    assert (ada["rows"], ada["rejected"], bob["rejected"]) == (4 + len(others), 1 + len(others), 1)
    assert sum(one["pairs"] for one in facts["labels"]) == given


def test_intervals_take_the_labels_of_a_row_together():
    from longtail.review.progress import share_right

    alone = share_right([(1, 1)] * 8 + [(0, 1)] * 8)
    assert (alone["low"], alone["high"]) == pytest.approx(share_interval(8, 16), abs=0.02)
    together = share_right([(5, 5)] * 8 + [(0, 5)] * 8)  # 80 labels, but 16 rows that are right or wrong as a whole
    assert together["high"] - together["low"] == pytest.approx(alone["high"] - alone["low"], abs=0.02)
    assert share_right([])["precision"] is None and share_right([(0, 0)])["low"] is None
    assert share_right([(3, 3)])["low"] < 0.3  # one row says little


# --- in and out -------------------------------------------------------------------------------------------------------


def test_reviewed_rows_come_out_as_a_training_file(store, tmp_path):
    others = [str(i) for i in range(20) if not store.item(str(i)).control]
    store.decide(others[0], "extra", "add", "ada")
    for id in map(str, range(20)):
        store.finish(id, "ada")
    assert export_jsonl(store, tmp_path / "train.jsonl") == len(others)
    data = read(tmp_path / "train.jsonl")
    assert list(data.ids) == others and "extra" in data.labels_of(0)
    first = json.loads((tmp_path / "train.jsonl").read_text().splitlines()[0])
    assert first["review"]["added"] == ["extra"] and first["review"]["reviewers"] == ["ada"]
    assert first["review"]["model"] == "model-1" and first["review"]["control"] is False
    assert export_jsonl(store, tmp_path / "control.jsonl", "control") == 20 - len(others)
    assert export_jsonl(store, tmp_path / "all.jsonl", "all") == 20


def test_no_cell_of_a_table_is_a_formula(tmp_path):
    store = ReviewStore(tmp_path / "r.db", create=True, control=0.0)
    store.add_items([NewItem('=HYPERLINK("http://x")', ["@sum"], id="-1")])
    store.finish("-1", "=ada")
    assert export_spreadsheet(store, tmp_path / "out.csv") == 1
    with (tmp_path / "out.csv").open(encoding="utf-8-sig", newline="") as file:
        cells = list(csv.reader(file))[1]
    assert not any(cell.startswith(("=", "+", "-", "@")) for cell in cells)


def test_rows_of_files_and_bodies_are_read(store, tmp_path):
    data = Dataset.from_lists(["one", "two"], [["a"], []], ids=["x", "y"])
    assert add_rows(store, items_of_dataset(data), "rows.csv") == (2, 0)
    assert store.item("x").labels == ("a",)
    items = items_of_jsonl(b'{"id": 7, "text": "seven", "labels": "a"}\n\n{"text": "none"}\n')
    assert [(item.id, list(item.labels)) for item in items] == [("7", ["a"]), (None, [])]
    for raw, sentence in [
        (b'{"text": "a"}\n{"id": "1"}', "the body line 2 must have a 'text'"),
        (b'{"text": "a", "labels": {"a": 1}}', "line 1: 'labels' must be a list"),
        (b'{"text": "a", "id": []}', "line 1: 'id' must be"),
        (b"nonsense", "the body line 1 is not JSON"),
    ]:
        with pytest.raises(DataError, match=sentence):
            items_of_jsonl(raw)
    with pytest.raises(DataError, match="row 2 of rows: id must be a name"):
        add_rows(store, [NewItem("a", id="z"), NewItem("b", id="")], "rows")
