"""A review file keeps every acknowledged decision, and runs nothing that a stranger's file holds."""

import json
import multiprocessing
import os
import shutil
import signal
import sqlite3
import subprocess
import sys
import threading
import time

import pytest

from longtail.errors import DataError, LongtailError, ParameterError
from longtail.review import NewItem, NotThere, ReviewStore, next_items


@pytest.fixture
def store(tmp_path):
    with ReviewStore(tmp_path / "reviews.db", create=True, control=0.0, twice=0.0) as store:
        store.add_items([NewItem(f"text {i}", ["given"], id=str(i)) for i in range(5)])
        yield store


def test_decisions_are_kept_in_order_with_who_and_when(store):
    first = store.decide("1", "apple", "accept", "ada", "clear")
    second = store.decide("1", "pear", "reject", "ada")
    assert (first.number, second.number) == (1, 2) and first.at.endswith("Z")
    again = ReviewStore(store.path)
    assert [(d.label, d.verdict, d.note, d.reviewer) for d in again.decisions("1")] == [
        ("apple", "accept", "clear", "ada"),
        ("pear", "reject", "", "ada"),
    ]


def test_the_same_decision_again_is_the_one_that_is_there(store):
    first = store.decide("1", "apple", "accept", "ada")
    assert store.decide("1", "apple", "accept", "ada") == first
    store.decide("1", "apple", "reject", "ada")
    assert store.decide("1", "apple", "accept", "ada").number == 3


def test_an_undo_is_a_decision_too_and_only_ones_own(store):
    made = store.decide("1", "apple", "reject", "ada")
    with pytest.raises(ParameterError, match="of another reviewer"):
        store.undo(made.number, "bob")
    undone = store.undo(made.number, "ada")
    assert (undone.verdict, undone.undoes) == ("undo", made.number)
    assert store.decisions("1") == [] and len(store.all_decisions()) == 2
    assert store.undo(made.number, "ada") == undone  # asked again by someone who heard no answer
    with pytest.raises(ParameterError, match="is an undo"):
        store.undo(undone.number, "ada")
    with pytest.raises(NotThere, match="no decision 99"):
        store.undo(99, "ada")


def test_a_finished_row_is_open_again_when_that_is_undone(store):
    done = store.finish("1", "ada")
    assert store.finish("1", "ada") == done and store.counts()["finished"] == 1
    store.undo(done.number, "ada")
    assert store.counts()["finished"] == 0 and store.counts()["open"] == 5


def test_rows_come_once_and_never_with_another_text(store):
    assert store.add_items([NewItem("text 1", [], id="1"), NewItem("new", [], id="9")]) == (1, 1)
    with pytest.raises(DataError, match="already, with another text"):
        store.add_items([NewItem("better", [], id="10"), NewItem("other", [], id="1")])
    assert store.counts()["rows"] == 6  # nothing of the refused ones
    assert store.add_items([NewItem("no id"), NewItem("no id")]) == (1, 1)


@pytest.mark.parametrize(
    ("values", "sentence"),
    [
        (("1", "", "accept", "ada"), "label must be a name"),
        (("1", "a\nb", "accept", "ada"), "label must be a name"),
        (("1", "a", "maybe", "ada"), "verdict must be one of"),
        (("1", "a", "accept", " "), "reviewer must be a name"),
        (("1", "\ud800", "accept", "ada"), "half of a surrogate pair"),
        (("1", "a" * 3000, "accept", "ada"), "at most 2,000 characters"),
        (("77", "a", "accept", "ada"), "no row '77'"),
    ],
)
def test_bad_decisions_are_refused_in_one_sentence(store, values, sentence):
    with pytest.raises(LongtailError, match=sentence):
        store.decide(*values)
    assert store.all_decisions() == []


def test_samples_are_drawn_once_by_seed_and_id(tmp_path):
    ids = [str(i) for i in range(2000)]
    stores = [
        ReviewStore(tmp_path / f"{n}.db", create=True, control=0.3, twice=0.1, seed=s) for n, s in enumerate([1, 1, 2])
    ]
    stores[0].add_items(NewItem("t", id=id) for id in ids)
    stores[1].add_items(NewItem("t", id=id) for id in reversed(ids))
    stores[2].add_items(NewItem("t", id=id) for id in ids)
    drawn = [{id for id in ids if store.item(id).control} for store in stores]
    assert drawn[0] == drawn[1] != drawn[2]
    assert 520 < len(drawn[0]) < 680
    twice = {id for id in ids if stores[0].item(id).twice}
    assert 150 < len(twice) < 250 and abs(len(twice & drawn[0]) / len(twice) - 0.3) < 0.15


def test_guidelines_keep_their_history_and_the_last_holds(store):
    assert store.guideline("apple") is None
    store.set_guideline("apple", "Only the fruit.", "ada")
    store.set_guideline("apple", "The fruit and the tree.", "bob")
    assert store.guideline("apple").text == "The fruit and the tree."
    assert [(g.label, g.reviewer) for g in store.guidelines()] == [("apple", "bob")]
    store.set_guideline("apple", "", "bob")
    assert store.guideline("apple") is None and store.guidelines() == []


# --- strange files ----------------------------------------------------------------------------------------------------


def test_what_is_no_review_file_is_refused(tmp_path):
    with pytest.raises(DataError, match="does not exist"):
        ReviewStore(tmp_path / "none.db")
    (tmp_path / "text.db").write_text("hello")
    with pytest.raises(DataError, match="is not a review file"):
        ReviewStore(tmp_path / "text.db", create=True)
    sqlite3.connect(tmp_path / "other.db").execute("CREATE TABLE t (x)").connection.close()
    with pytest.raises(DataError, match="is not a review file"):
        ReviewStore(tmp_path / "other.db")
    with pytest.raises(DataError, match=r"the folder .* does not exist"):
        ReviewStore(tmp_path / "no" / "r.db", create=True)


def change(path, script):
    db = sqlite3.connect(path)
    db.executescript(script)
    db.commit()
    db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    db.close()


@pytest.mark.parametrize(
    ("script", "sentence"),
    [
        ("PRAGMA user_version = 2", "of version 2; this longtail reads version 1"),
        (
            "CREATE TRIGGER t AFTER INSERT ON decisions BEGIN DELETE FROM decisions; END",
            "other tables, views or triggers",
        ),
        ("CREATE VIEW v AS SELECT 1", "other tables, views or triggers"),
        ("DROP TABLE guidelines; CREATE VIEW guidelines AS SELECT 1 AS label", "other tables, views or triggers"),
        ("CREATE INDEX i ON items (text)", "other tables, views or triggers"),
        ("DELETE FROM meta", "its shares cannot be read"),
    ],
)
def test_files_that_are_not_as_ours_are_refused(store, script, sentence):
    store.close()
    change(store.path, script)
    with pytest.raises(DataError, match=sentence):
        ReviewStore(store.path)


def test_values_of_other_types_and_damaged_pages_are_refused(store, tmp_path):
    store.close()
    change(store.path, "PRAGMA ignore_check_constraints = ON; UPDATE items SET text = x'00' WHERE id = '1'")
    with pytest.raises(DataError, match="is damaged"):
        ReviewStore(store.path)
    raw = bytearray(store.path.read_bytes())
    raw[4096:12000] = os.urandom(12000 - 4096)
    (tmp_path / "broken.db").write_bytes(bytes(raw))
    with pytest.raises(DataError, match=r"is damaged|cannot be read|other tables"):
        ReviewStore(tmp_path / "broken.db")


def test_every_connection_is_durable_and_trusts_nothing(store):
    with store.reading() as db:
        asked = {name: db.execute(f"PRAGMA {name}").fetchone()[0] for name in ("journal_mode", "synchronous")}
        asked |= {name: db.execute(f"PRAGMA {name}").fetchone()[0] for name in ("trusted_schema", "foreign_keys")}
    assert asked == {"journal_mode": "wal", "synchronous": 2, "trusted_schema": 0, "foreign_keys": 1}


def test_a_full_disk_is_told_and_nothing_is_acknowledged(store):
    with store.reading() as db:
        pages = db.execute("PRAGMA page_count").fetchone()[0]
        db.execute(f"PRAGMA max_page_count = {pages}")  # of this connection, which is used again
    with pytest.raises(LongtailError, match=r"cannot be used: database or disk is full") as error:
        for i in range(2000):
            store.decide("1", f"label {i}", "accept", "ada", note="n" * 500)
    assert not isinstance(error.value, DataError)
    before = len(store.all_decisions())
    assert before == len(ReviewStore(store.path).all_decisions())


# --- several at once --------------------------------------------------------------------------------------------------


def test_threads_write_at_once(store):
    def work(name):
        for i in range(20):
            store.decide(str(i % 5), f"label {i}", "accept", name)

    threads = [threading.Thread(target=work, args=(f"reviewer {n}",)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    numbers = [d.number for d in store.all_decisions()]
    assert numbers == list(range(1, 81))


def _decide_in_child(store, started):
    store.decide("1", "from a child", "accept", "child")
    started.set()


def test_a_forked_process_opens_the_file_for_itself(store):
    store.decide("1", "before", "accept", "parent")
    context = multiprocessing.get_context("fork")
    done = context.Event()
    child = context.Process(target=_decide_in_child, args=(store, done))
    child.start()
    child.join()
    assert done.is_set()
    store.decide("1", "after", "accept", "parent")
    assert [d.label for d in store.decisions("1")] == ["before", "from a child", "after"]


WRITER = """
import sys
from longtail.review import ReviewStore
store = ReviewStore(sys.argv[1])
for n in range(100000):
    made = store.decide(str(n % 5), f"{sys.argv[2]} {n}", "accept", "ada")
    print(made.number, made.label, flush=True)
"""


def test_what_was_acknowledged_survives_a_kill(store):
    told = []
    for turn in range(3):
        command = [sys.executable, "-c", WRITER, str(store.path), str(turn)]
        env = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=env) as writer:
            lines = [writer.stdout.readline() for _ in range(20)]
            writer.send_signal(signal.SIGKILL)
            lines += [line for line in writer.stdout.read().splitlines(keepends=True) if line.endswith("\n")]
        told += [line.split(maxsplit=1) for line in lines]
    kept = {d.number: d.label for d in ReviewStore(store.path).all_decisions()}
    assert len(told) >= 60
    assert all(kept[int(number)] == label.strip() for number, label in told)


def test_the_copied_file_holds_everything_once_it_is_closed(store, tmp_path):
    store.decide("1", "apple", "accept", "ada")
    store.close()
    shutil.copy(store.path, tmp_path / "copy.db")
    assert len(ReviewStore(tmp_path / "copy.db").all_decisions()) == 1


# --- the queue --------------------------------------------------------------------------------------------------------


def ids(queued):
    return [one.item.id for one in queued]


def rank(store, values, column="uncertainty"):
    with store.writing() as db:
        db.executemany(f"UPDATE items SET {column} = ? WHERE id = ?", [(v, id) for id, v in values.items()])


def test_the_least_certain_rows_come_first_and_stay_with_their_reviewer(store):
    rank(store, {"0": 0.1, "1": 0.5, "2": 0.9, "3": 0.2, "4": 0.0})
    rows, left = next_items(store, "ada", "uncertain", 2)
    assert ids(rows) == ["2", "1"] and left == 5
    assert ids(next_items(store, "bob", "uncertain", 2)[0]) == ["3", "0"]  # those of ada are hers
    assert sorted(ids(next_items(store, "ada", "uncertain", 2)[0])) == ["1", "2"]  # the same again
    store.finish("2", "ada")
    rows, left = next_items(store, "ada", "uncertain", 2)
    assert ids(rows) == ["1", "4"] and left == 4


def test_a_row_is_handed_out_again_after_its_time(store):
    assert ids(next_items(store, "ada", "newest", 1, seconds=0.05)[0]) == ["4"]
    assert ids(next_items(store, "bob", "newest", 1)[0]) == ["3"]
    time.sleep(0.06)
    assert ids(next_items(store, "eve", "newest", 1)[0]) == ["4"]


def test_control_rows_come_by_their_own_order_only(tmp_path):
    store = ReviewStore(tmp_path / "r.db", create=True, control=0.5, twice=0.0)
    store.add_items(NewItem("t", id=str(i)) for i in range(40))
    control = {str(i) for i in range(40) if store.item(str(i)).control}
    assert 8 < len(control) < 32
    for order in ("uncertain", "newest"):
        assert control.isdisjoint(ids(next_items(store, order, order, 100)[0]))
    assert set(ids(next_items(store, "ada", "control", 100)[0])) == control


def test_mixed_rows_keep_their_shares(tmp_path):
    store = ReviewStore(tmp_path / "r.db", create=True, control=0.4, twice=0.0)
    store.add_items(NewItem("t", id=str(i)) for i in range(200))
    rank(store, {str(i): 1 - i / 300 for i in range(200)}, "suspicion")
    orders = []
    for _ in range(40):
        rows, _ = next_items(store, "ada", "mixed", 1)
        orders.append(rows[0].order)
        store.finish(rows[0].item.id, "ada")
    assert {name: orders.count(name) for name in set(orders)} == {"uncertain": 20, "suspect": 10, "control": 10}
    assert orders[:4].count("uncertain") == 2


def test_two_people_get_a_row_that_is_reviewed_twice_and_a_third_does_not(tmp_path):
    store = ReviewStore(tmp_path / "r.db", create=True, control=0.0, twice=1.0)
    store.add_items([NewItem("t", id="1")])
    for name in ("ada", "bob"):
        assert ids(next_items(store, name, "newest")[0]) == ["1"]
    assert next_items(store, "eve", "newest")[0] == []
    store.finish("1", "ada")
    assert next_items(store, "ada", "newest") == ([], 0)
    assert ids(next_items(store, "bob", "newest")[0]) == ["1"]
    store.finish("1", "bob")
    assert next_items(store, "eve", "newest") == ([], 0)


def test_reviewers_do_not_see_what_others_decided(store):
    store.decide("4", "apple", "reject", "ada")
    assert next_items(store, "bob", "newest")[0][0].decided == []
    (mine,) = next_items(store, "ada", "newest", 1)[0]
    assert mine.item.id != "4" or [d.label for d in mine.decided] == ["apple"]


def test_reasons_are_given_in_a_sentence(store):
    fact = {"kind": "wrong", "label": "given", "probability": 0.02, "usual": 0.8}
    with store.writing() as db:
        db.execute("UPDATE items SET suspicion = 1, suspect = ? WHERE id = '3'", (json.dumps(fact),))
    (row,) = next_items(store, "ada", "suspect")[0]
    assert row.sentence == "The given label 'given' looks wrong: its probability is 2%."
