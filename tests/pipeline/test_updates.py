"""Updates: new texts, labels and words are learned without training anew, and nothing that was known gets lost."""

import json

import numpy as np
import pytest

import longtail as lt
from longtail.cli import main as program
from longtail.data import load_bundled, write
from longtail.errors import DataError, DataWarning, ModelError, ParameterError
from longtail.metrics import precision_at_k
from longtail.pipeline import load_tagger
from longtail.pipeline.label_numbering import truth

FRUIT = ["a red apple", "one green apple", "an old apple tree", "apple and pear", "a ripe pear", "pear juice"]
CARS = ["a fast car", "an old car", "the red car", "car and truck", "one heavy truck", "a truck driver"]
BOATS = ["a sailing boat", "the old boat", "boat and harbour", "one wooden boat", "a boat trip", "boat engine"]


@pytest.fixture(params=["tree", "ova"])
def method(request):
    return request.param


@pytest.fixture
def tagger(method):
    labels = [["fruit"]] * len(FRUIT) + [["vehicle"]] * len(CARS)
    return lt.Tagger(method, random_state=0).fit((FRUIT + CARS) * 8, labels * 8)


@pytest.fixture(scope="module")
def debtags():
    train, test = load_bundled("debtags", "train"), load_bundled("debtags", "test")
    order = np.random.default_rng(0).permutation(train.n_rows)
    old, new = (train.take(np.sort(rows)) for rows in (order[:2000], order[2000:4000]))
    return old, new, test.take(slice(0, 1500))


def main(words):
    with pytest.raises(SystemExit) as ended:
        program(words)
    return ended.value.code


def p_at_5(tagger, test):
    return float(precision_at_k(truth(tagger, test)[0], tagger.predict_topk(test.texts, k=5), k=5))


def test_new_labels_and_new_words_are_learned(tagger):
    tagger.partial_fit(BOATS * 4, [["boat"]] * 4 * len(BOATS))
    assert tagger.labels_ == ("fruit", "vehicle", "boat")
    assert tagger.tag(["a boat in the harbour"], k=1)[0][0].label == "boat"
    assert tagger.tag(["green apple"], k=1)[0][0].label == "fruit"
    assert tagger.updated_["labels_added"] == ["boat"] and tagger.updated_["features_added"] > 0
    assert {word["word"] for word in tagger.explain("a boat", k=1)["predicted"][0]["words"]} == {"boat"}
    assert tagger.data_["rows"] == 8 * 12 + 4 * 6 and tagger.data_["updates"] == 1 and tagger.data_["labels"] == 3


def test_an_updated_tagger_is_saved_and_updated_again(tmp_path, tagger):
    tagger.partial_fit(BOATS * 4, [["boat", "vehicle"]] * 4 * len(BOATS))
    loaded = lt.load(tagger.save(tmp_path / "a"))
    assert loaded.labels_ == tagger.labels_ and loaded.data_ == tagger.data_
    assert np.array_equal(loaded.predict_topk(BOATS, k=3).scores, tagger.predict_topk(BOATS, k=3).scores)
    more = ["a tall building", "the building site"] * 5
    for one in (loaded, tagger):
        one.partial_fit(more, [["house"]] * 10)
    assert np.array_equal(loaded.predict_topk(more, k=3).scores, tagger.predict_topk(more, k=3).scores)


@pytest.mark.parametrize("threads", [1, 3])
def test_an_update_is_the_same_for_any_number_of_threads(debtags, method, threads):
    old, new, test = (part.take(slice(0, 400)) for part in debtags)
    one, other = (
        lt.Tagger(method, random_state=0, calibrate=0, n_jobs=jobs).fit_dataset(old).update_dataset(new)
        for jobs in (1, threads)
    )
    assert np.array_equal(one.predict_topk(test.texts).scores, other.predict_topk(test.texts).scores)


def test_an_update_comes_close_to_training_anew(debtags, method):
    old, new, test = debtags
    before = lt.Tagger(method, random_state=0, calibrate=0).fit_dataset(old)
    start = p_at_5(before, test)
    names = sorted({*old.names(), *new.names()})
    both = lt.data.Dataset.from_lists(
        [*old.texts, *new.texts], [part.labels_of(row) for part in (old, new) for row in range(part.n_rows)]
    ).align(names)[0]
    anew = p_at_5(lt.Tagger(method, random_state=0, calibrate=0).fit_dataset(both), test)
    updated = p_at_5(before.update_dataset(new), test)
    assert updated - start > 0.8 * (anew - start) > 0


def test_few_rows_do_no_harm(debtags, method):
    old, new, test = debtags
    before = lt.Tagger(method, random_state=0, calibrate=0).fit_dataset(old)
    start = p_at_5(before, test)
    for row in range(5):
        before.update_dataset(new.take([row]))
    assert p_at_5(before, test) > start - 0.001


def test_a_new_label_of_one_row_does_not_crowd_out_the_others(tagger):
    tagger.partial_fit(["an old boat"], [["boat"]])
    firsts = [tags[0].label for tags in tagger.tag(CARS + FRUIT, k=1)]
    assert firsts == ["vehicle"] * len(CARS) + ["fruit"] * len(FRUIT)
    assert tagger.tag(["boat"], k=1)[0][0].label == "boat"


def test_rows_shown_again_are_not_counted_twice(debtags, method):
    old, new, _ = (part.take(slice(0, 300)) for part in debtags)
    tagger = lt.Tagger(method, random_state=0, calibrate=0).fit_dataset(old)
    tagger.update_dataset(new, replay=old)
    assert tagger.data_["rows"] == 600 and tagger.updated_["replayed"] == 300
    named = dict(zip(tagger.labels_, tagger.model_.label_counts_, strict=True))
    counted = {}
    for part in (old, new):
        for row in range(part.n_rows):
            for name in part.labels_of(row):
                counted[name] = counted.get(name, 0) + 1
    assert {name: count for name, count in named.items() if count} == counted


def test_with_all_old_rows_the_classifiers_are_those_of_training_anew():
    rng = np.random.default_rng(0)
    X, Y = rng.random((120, 12)).astype(np.float32), (rng.random((120, 5)) < 0.3).astype(np.float32)
    exact = {"max_iter": 1000, "tol": 1e-6, "threshold": 0.0, "random_state": 0}
    anew = lt.OneVsAllClassifier(**exact).fit(X, Y)
    old = lt.OneVsAllClassifier(**exact).fit(X[:60], Y[:60])
    old.partial_fit(np.vstack([X[60:], X[:60]]), np.vstack([Y[60:], Y[:60]]), replayed=60)
    assert np.allclose(old.weights_.toarray(), anew.weights_.toarray(), atol=1e-3)


def test_probabilities_are_learned_again(debtags):
    old, new, _ = debtags
    tagger = lt.Tagger(random_state=0).fit_dataset(old)
    before = tagger.model_.calibration_
    tagger.update_dataset(new.take(slice(0, 30)))
    assert tagger.model_.calibration_ is before and tagger.updated_["calibration"] == "kept"
    tagger.update_dataset(new)
    after = tagger.model_.calibration_
    assert after.n_rows == before.n_rows + 200 and tagger.updated_["calibration"] == "learned again"
    assert (np.diff(after.values) >= 0).all() and tagger.held_out_["rows"] == 200
    assert set(tagger.updated_["held_out"]) == {"rows", "before", "after"}


def test_labels_can_go(tmp_path, tagger):
    tagger.partial_fit(BOATS * 4, [["boat"]] * 4 * len(BOATS))
    tagger.remove_labels(["vehicle"])
    assert tagger.labels_ == ("fruit", "boat") and tagger.data_["labels_removed"] == 1
    loaded = lt.load(tagger.save(tmp_path / "a"))
    assert {tag.label for tag in loaded.tag(["an old car and a boat"], k=5)[0]} <= {"fruit", "boat"}
    with pytest.raises(ParameterError, match="leave at least one label"):
        tagger.remove_labels(["fruit", "boat"])


def test_a_model_changed_on_its_own_is_told(tagger):
    tagger.model_.remove_labels([0])
    with pytest.raises(ModelError, match="has 1 labels, and the Tagger 2 names"):
        tagger.predict(["a car"])


def test_rows_without_any_label_are_refused(tagger):
    with pytest.raises(DataError, match="at least one label"):
        tagger.partial_fit(["a car"], [[]])
    assert tagger.labels_ == ("fruit", "vehicle")


@pytest.fixture
def files(tmp_path, debtags):
    old, new, test = (part.take(slice(0, n)) for part, n in zip(debtags, (600, 300, 300), strict=True))
    for name, part in (("old", old), ("new", new), ("test", test)):
        write(part, tmp_path / f"{name}.jsonl")
    assert main(["train", str(tmp_path / "old.jsonl"), "-o", str(tmp_path / "m")]) == 0
    return tmp_path


def test_the_command_updates_a_model(files, capsys):
    words = ["update", str(files / "m"), str(files / "new.jsonl"), "-o", str(files / "n")]
    code = main([*words, "--replay", str(files / "old.jsonl"), "--fail-if-worse", str(files / "test.jsonl"), "--json"])
    facts = json.loads(capsys.readouterr().out)
    assert code == 0 and facts["rows"] == 300 and facts["replayed"] == 600
    assert set(facts["compared"]) == {"p@1", "p@3", "p@5"}
    assert load_tagger(files / "n").data_["rows"] == 900
    assert main([*words[:3], "-o", str(files / "n2")]) == 0
    said = capsys.readouterr().out
    assert "Learned 300 new rows" in said and "held-out new rows, before they were learned: P@1" in said


def test_a_worse_model_is_not_written(files, capsys):
    wrong = files / "wrong.jsonl"
    lines = [json.loads(line) for line in (files / "old.jsonl").read_text().splitlines()]
    labels = [line["labels"] for line in lines]
    records = [{**line, "labels": other} for line, other in zip(lines, [*labels[7:], *labels[:7]], strict=True)]
    wrong.write_text("\n".join(json.dumps(record) for record in records * 20))
    before = sorted(path.name for path in files.iterdir())
    words = ["update", str(files / "m"), str(wrong), "-o", str(files / "n"), "--fail-if-worse"]
    assert main([*words, str(files / "test.jsonl")]) == 6
    assert "nothing was written" in capsys.readouterr().err
    assert sorted(path.name for path in files.iterdir()) == before


def test_methods_that_cannot_are_told():
    torch = pytest.importorskip("torch")
    assert torch
    tagger = lt.Tagger("dft", random_state=0, calibrate=0).fit(
        (FRUIT + CARS) * 4, ([["fruit"]] * 6 + [["car"]] * 6) * 4
    )
    with pytest.raises(ModelError, match="'dft' cannot learn new rows; train it anew"):
        tagger.partial_fit(["a car"], [["car"]])


def test_rows_learned_before_and_rows_of_other_labels_are_warned_of():
    texts, labels = (FRUIT + CARS) * 2, [["fruit"]] * 6 + [["vehicle"]] * 6
    tagger = lt.Tagger(random_state=0, calibrate=0).fit(texts, labels * 2)
    with pytest.warns(DataWarning, match="the model has learned the new rows before"):
        tagger.partial_fit(texts, labels * 2)
    tagger.partial_fit(FRUIT, [["fruit"]] * 6)
    with pytest.warns(DataWarning, match="the model has learned the new rows before"):
        tagger.partial_fit(FRUIT, [["fruit"]] * 6)
    others = [[f"other {number}"] for number in range(12)]
    with pytest.warns(DataWarning, match="the model knows none of the labels of the new rows: they have 'other 0'"):
        tagger.partial_fit(FRUIT + CARS, others)
    with pytest.warns(DataWarning, match="the model has learned the new rows before"):
        tagger.partial_fit(FRUIT + CARS, others)
