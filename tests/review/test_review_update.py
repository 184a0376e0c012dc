"""A new model from reviewed rows takes the place of the old one only if it is not worse, whole at any moment."""

import multiprocessing
import shutil
import threading
import time

import pytest

import longtail as lt
from longtail.errors import DataError, ModelError
from longtail.pipeline import Tagger, load_tagger
from longtail.review import (
    NewItem,
    ReviewStore,
    is_updating,
    put_back,
    suggest_items,
    update_from_reviews,
    update_state,
)
from longtail.review.update import compare_on_control, new_rows
from longtail.storage import copy_folder, folder_digest

KINDS = {"apple": ["fruit"], "pear": ["fruit"], "car": ["vehicle"], "train": ["vehicle"]}
TEXTS = [f"{colour} {thing} {i}" for i in range(15) for thing in KINDS for colour in ("red", "old")]


def labels_of(text):
    return KINDS[text.split()[1]]


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    folder = tmp_path_factory.mktemp("model") / "model"
    Tagger(random_state=0).fit(TEXTS, [labels_of(text) for text in TEXTS]).save(folder)
    return folder


@pytest.fixture
def folder(trained, tmp_path):
    shutil.copytree(trained, tmp_path / "model")
    return tmp_path / "model"


@pytest.fixture(scope="module")
def reviewed(tmp_path_factory, trained):
    """Rows about plants, which the model does not know; everything is finished."""
    path = tmp_path_factory.mktemp("reviews") / "reviews.db"
    with ReviewStore(path, create=True, control=0.4, twice=0.0) as store:
        for tree in ("oak", "fir"):
            store.add_items(NewItem(f"tall {tree} tree {i}", id=f"{tree}-{i}") for i in range(24))
        suggest_items(store, load_tagger(trained), folder_digest(trained))
        review(store, "plant")
    return path


@pytest.fixture
def store(tmp_path, reviewed):
    shutil.copy(reviewed, tmp_path / "reviews.db")
    with ReviewStore(tmp_path / "reviews.db") as store:
        yield store


def review(store, label, reviewer="ada"):
    with store.reading() as db:
        ids = [row[0] for row in db.execute("SELECT id FROM items WHERE open = 1").fetchall()]
    for id in ids:
        for tag in store.item(id).suggestions:
            if tag.assigned and tag.label != label:
                store.decide(id, tag.label, "reject", reviewer)
        store.decide(id, label, "add", reviewer)
        store.finish(id, reviewer)


def test_a_better_model_is_put_in_place_and_the_old_one_kept(store, folder):
    before = folder_digest(folder)
    facts = update_from_reviews(store, folder, fewest=10)
    assert facts["state"] == "done" and facts["swapped"], facts["sentence"]
    assert facts["comparison"]["difference"] > 0.3 and facts["comparison"]["low"] > 0
    assert facts["sentence"].endswith("It has 1 new label: 'plant'. The old one is kept in model.previous.")
    assert folder_digest(folder) == facts["new_digest"] != before
    assert lt.load(folder).predict(["a tall oak tree"])[0][0] == "plant"
    assert folder_digest(folder.with_name("model.previous")) == before
    assert not folder.with_name("model.candidate").exists()
    assert update_state(store)["sentence"] == facts["sentence"]
    # control rows were not learned
    assert facts["rows"] + facts["comparison"]["rows"] == 48
    assert lt.load(folder).data_["rows_of_updates"] == facts["rows"]


def test_the_reviews_of_another_model_are_refused(store, tmp_path):
    other = tmp_path / "other"
    Tagger(random_state=0).fit(["a sonnet", "a waltz"] * 20, [["poem"], ["dance"]] * 20).save(other)
    before = folder_digest(other)
    for ask in (
        lambda: update_from_reviews(store, other, fewest=10),
        lambda: suggest_items(store, load_tagger(other), before),
    ):
        with pytest.raises(DataError, match="those of another model: this one knows 0 of the 2 labels"):
            ask()
    assert folder_digest(other) == before


def test_a_signed_model_is_not_replaced_by_one_that_is_not(store, folder):
    before = folder_digest(folder)
    with pytest.raises(ModelError, match="model must be signed, and a new model is not"):
        update_from_reviews(store, folder, key=folder.with_name("key.pub"))
    assert folder_digest(folder) == before and not is_updating(store)


def test_rows_are_learned_once_unless_their_labels_change(store, folder):
    update_from_reviews(store, folder, fewest=10)
    again = update_from_reviews(store, folder, fewest=10)
    assert not again["swapped"] and again["sentence"] == "There are no reviewed rows that the model has not learned."
    first = next(iter(row for row in ("oak-0", "oak-1", "oak-2", "oak-3") if not store.item(row).control))
    store.decide(first, "oak", "add", "ada")
    assert [row.item.id for row in new_rows(store, folder_digest(folder))] == [first]


def test_a_model_that_is_put_back_learns_again(store, folder):
    before = folder_digest(folder)
    update_from_reviews(store, folder, fewest=10)
    after = folder_digest(folder)
    assert put_back(folder) == (after, before)
    assert folder_digest(folder) == before
    assert len(new_rows(store, before)) > 15  # what the model put back has not learned
    assert put_back(folder) == (before, after)  # and forth
    assert new_rows(store, after) == []


def test_nothing_to_put_back_is_told(folder):
    with pytest.raises(ModelError, match=r"no model\.previous beside it"):
        put_back(folder)


def test_a_worse_model_stays_out(tmp_path, folder):
    store = ReviewStore(tmp_path / "bad.db", create=True, control=0.0, twice=0.0, seed=1)
    store.add_items(NewItem(text, id=f"bad-{i}") for i, text in enumerate(TEXTS) if i % 2)
    suggest_items(store, load_tagger(folder), folder_digest(folder))
    review(store, "nonsense")  # a reviewer who is wrong about everything ...
    with store.writing() as db:  # ... and a control sample that is right
        db.execute("UPDATE items SET control = 1 WHERE number % 2 = 0")
    for row in list(range(1, len(TEXTS), 2)):
        if store.item(f"bad-{row}").control:
            for made in store.decisions(f"bad-{row}"):
                if made.verdict != "done":
                    store.undo(made.number, "ada")
    before = folder_digest(folder)
    facts = update_from_reviews(store, folder, fewest=20)
    assert not facts["swapped"] and facts["comparison"]["difference"] < -0.2
    assert "is worse; the old one stays" in facts["sentence"]
    assert folder_digest(folder) == before and not folder.with_name("model.previous").exists()
    assert new_rows(store, before) != []  # they are not noted as learned


def test_few_control_rows_are_not_enough(store, folder):
    facts = update_from_reviews(store, folder, fewest=40)
    assert not facts["swapped"] and "40 are needed to compare" in facts["sentence"]


def test_a_comparison_can_be_had_without_a_swap(store, folder):
    before = folder_digest(folder)
    facts = update_from_reviews(store, folder, fewest=10, swap=False)
    assert facts["comparison"]["not_worse"] and not facts["swapped"] and "as asked" in facts["sentence"]
    assert folder_digest(folder) == before


def test_a_model_is_trained_anew_with_reviewed_labels_and_without_control_rows(store, folder):
    wrong = lt.Dataset.from_lists(
        [*TEXTS, "tall oak tree 0", *(f"tall fir tree {i}" for i in range(24))],
        [*(labels_of(text) for text in TEXTS), ["vehicle"], *([["vehicle"]] * 24)],
    )
    facts = update_from_reviews(store, folder, data=wrong, fewest=10)
    assert facts["swapped"] and facts["method"] == "retrain"
    new = lt.load(folder)
    assert new.predict(["a tall fir tree"]) == [("plant",)]
    assert new.data_["rows"] == len(TEXTS) + facts["rows"]


def test_equal_models_are_not_worse(store, folder):
    from longtail.review import reviewed_rows

    tagger = load_tagger(folder)
    compared = compare_on_control(tagger, tagger, list(reviewed_rows(store, control=True)), 1.0)
    assert (compared["low"], compared["high"], compared["not_worse"]) == (0.0, 0.0, True)


def test_one_update_at_a_time(store, folder):
    from longtail.review.update import updating

    with updating(store):
        assert is_updating(store)
        with pytest.raises(DataError, match="is running already"):
            update_from_reviews(store, folder)
    assert not is_updating(store)


def test_a_failed_update_says_why_and_changes_nothing(store, folder):
    before = folder_digest(folder)
    with pytest.raises(ModelError, match="does not exist"):
        update_from_reviews(store, folder.with_name("none"))
    assert update_state(store)["state"] == "failed" and "does not exist" in update_state(store)["sentence"]
    assert folder_digest(folder) == before


def test_a_killed_update_leaves_a_whole_model(store, folder):
    old = folder_digest(folder)
    updater = multiprocessing.get_context("fork").Process(
        target=update_from_reviews, args=(store, folder), kwargs={"fewest": 10, "n_jobs": 1}
    )
    updater.start()
    while update_state(store).get("stage") not in ("Saving", "Comparing", "Swapping"):
        assert updater.is_alive()
        time.sleep(0.001)
    updater.kill()
    updater.join()
    state = update_state(store)
    assert state["state"] == "failed" and "stopped before it ended" in state["sentence"]
    assert lt.load(folder).n_labels_ >= 2
    if folder_digest(folder) == old:
        assert update_from_reviews(store, folder, fewest=10)["swapped"]


def test_a_reader_never_sees_half_a_model(folder, trained, tmp_path):
    other = tmp_path / "other"
    Tagger("ova", random_state=0).fit(["one two", "three four"] * 30, [["x"], ["y"]] * 30).save(other)
    first = tmp_path / "first"
    copy_folder(folder, first)
    stop, seen = threading.Event(), set()

    def swap():
        for turn in range(8):
            copy_folder(other if turn % 2 == 0 else first, folder)
        stop.set()

    thread = threading.Thread(target=swap)
    thread.start()
    while not stop.is_set():
        seen.add(lt.load(folder).n_labels_)
    thread.join()
    assert lt.load(folder).predict(["red apple"]) == [("fruit",)]


def test_a_damaged_model_is_not_copied(folder, tmp_path):
    file = next(folder.glob("model.*.safetensors"))
    file.write_bytes(file.read_bytes()[:-1] + b"x")
    with pytest.raises(ModelError, match="is not the file that its manifest names"):
        copy_folder(folder, tmp_path / "copy")
    assert not (tmp_path / "copy").exists()
