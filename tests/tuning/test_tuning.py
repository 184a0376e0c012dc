"""A search finds better settings where there are some, the same every time, and goes on where it was broken off."""

import json

import numpy as np
import pytest

import longtail as lt
from longtail.data import Dataset
from longtail.data.synthetic.generate import make_topics
from longtail.engine import Checkpoint, LocalEngine
from longtail.errors import DataError, ParameterError
from longtail.tuning import parse_values

TOPICS = make_topics(1100, 12)[0]
FEW = {"C": (0.001, 10.0), "max_iter": [1, 50]}


def ignoring_time(facts):
    return json.dumps([{**trial, "seconds": 0} for trial in facts["trials"]])


@pytest.fixture(scope="module")
def found():
    return lt.tune(TOPICS, "ova", space=FEW, trials=9, n_jobs=1)


def test_the_best_is_no_worse_than_the_defaults_and_beats_bad_settings(found):
    trials = {trial["number"]: trial for trial in found.facts["trials"]}
    assert sorted(trials) == list(range(9)) and trials[0]["settings"] == {}
    best = found.facts["trials"][0]
    assert best["score"] >= found.facts["default_score"] == trials[0]["score"]
    assert best["score"] > min(trial["scores"][0] for trial in trials.values())
    assert found.settings == best["settings"]


def test_a_third_goes_on_to_three_times_the_rows_with_the_defaults(found):
    assert found.facts["round_rows"] == [330, 990] and found.facts["held_out_rows"] == 110
    reached = [len(trial["scores"]) for trial in found.facts["trials"]]
    assert reached.count(2) in (3, 4) and reached == sorted(reached, reverse=True)
    going_on = {t["number"] for t in found.facts["trials"] if len(t["scores"]) == 2}
    best_first = sorted(found.facts["trials"], key=lambda t: (-t["scores"][0], t["number"]))[:3]
    assert going_on == {0} | {t["number"] for t in best_first}


def test_the_same_seed_finds_the_same_for_any_number_of_threads(found):
    again = lt.tune(TOPICS, "ova", space=FEW, trials=9, n_jobs=2)
    assert ignoring_time(again.facts) == ignoring_time(found.facts)
    other = lt.tune(TOPICS, "ova", space=FEW, trials=9, n_jobs=1, random_state=1)
    assert ignoring_time(other.facts) != ignoring_time(found.facts)


def test_a_search_goes_on_where_it_was_broken_off_and_with_more_trials(found, tmp_path):
    def stop(stage, done, total):
        if done == 5:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        lt.tune(TOPICS, "ova", space=FEW, trials=9, n_jobs=1, checkpoint=tmp_path / "kept", progress=stop)
    engine = LocalEngine(2, checkpoint=Checkpoint(tmp_path / "kept"))
    again = lt.tune(TOPICS, "ova", space=FEW, trials=9, engine=engine)
    assert ignoring_time(again.facts) == ignoring_time(found.facts) and engine.checkpoint.taken == 5
    more = LocalEngine(2, checkpoint=Checkpoint(tmp_path / "kept"))
    lt.tune(TOPICS, "ova", space=FEW, trials=10, engine=more)
    assert more.checkpoint.taken >= 9 and more.checkpoint.added <= 4


def test_the_tagger_has_the_best_settings(found):
    tagger = found.tagger(calibrate=0)
    assert all(tagger.model.get_params()[name] == value for name, value in found.settings.items())
    assert tagger.fit_dataset(TOPICS).predict(TOPICS.texts[:1])


def test_settings_of_texts_are_searched_too():
    found = lt.tune(TOPICS, "tree", space={"ngrams": [(1, 2)], "max_leaf": [4, 8]}, trials=2, metric="ndcg@3")
    trial = next(t for t in found.facts["trials"] if t["number"] == 1)
    assert trial["settings"]["ngrams"] == [1, 2] and set(trial["settings"]) == {"ngrams", "max_leaf"}
    assert found.tagger().features.ngrams == (1, 1 if found.facts["trials"][0]["number"] == 0 else 2)


def test_rows_of_features_are_searched_too():
    X = lt.TfidfFeatures().fit_transform(TOPICS.texts)
    found = lt.tune(Dataset(X=X, Y=TOPICS.Y), "tree", trials=2, metric="p@1")
    assert "ngrams" not in found.facts["trials"][0]["settings"]
    with pytest.raises(ParameterError, match=r"space must be one of .* 'tree': .*max_leaf.*; got 'min_df'"):
        lt.tune(Dataset(X=X, Y=TOPICS.Y), "tree", space={"min_df": [1, 2]})


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({"method": "prime"}, "method must be one of ['tree', 'ova', 'dft']; got 'prime'."),
        ({"method": "trees"}, "Did you mean 'tree'?"),
        ({"trials": 0}, "trials must be an integer >= 1; got 0."),
        ({"metric": "q@5"}, "metric must be 'precision', or one of p, r, f1, ndcg, psp, psndcg with a k"),
        ({"metric": "p@99"}, "metric must be at most @12, as many as there are labels; got 'p@99'."),
        ({"space": {"C": (0, 5)}, "trials": 1}, "C must be a number > 0; got 0"),  # before anything is drawn
        ({"space": {"ngrams": [(2, 1)]}, "trials": 1}, "ngrams"),
        ({"space": {"maxleaf": [3]}}, "got 'maxleaf'. Did you mean 'max_leaf'?"),
        ({"space": {"C": (2.0, 1.0)}}, "a pair of numbers, the smaller first; got (2.0, 1.0)."),
        ({"space": {"C": []}}, "must be a list of values"),
        ({"method": "dft"}, "space must be given for the method 'dft': none comes with it."),
    ],
)
def test_what_cannot_be_searched_is_refused(given, sentence):
    with pytest.raises(ParameterError) as error:
        lt.tune(TOPICS, **given)
    assert sentence in str(error.value)


def test_too_few_rows_are_refused():
    with pytest.raises(DataError, match="the data must have at least 50 rows with labels to tune on; got 20"):
        lt.tune(TOPICS.take(np.arange(20)))


def test_whole_numbers_are_drawn_only_where_a_setting_takes_them():
    found = lt.tune(TOPICS, "tree", space={"C": (1, 10), "max_leaf": (4, 40)}, trials=6, n_jobs=1)
    drawn = [trial["settings"] for trial in found.facts["trials"] if trial["settings"]]
    assert all(isinstance(settings["max_leaf"], int) for settings in drawn)
    assert len({settings["C"] for settings in drawn}) == 5 and any(settings["C"] % 1 for settings in drawn)


def test_values_are_read_as_a_command_line_writes_them():
    assert parse_values("0.5..2") == (0.5, 2) and parse_values("true,none,x,3") == [True, None, "x", 3]
    with pytest.raises(ParameterError, match=r"try must be NAME=LOW\.\.HIGH or NAME=VALUE,VALUE; got 'a\.\.b'"):
        parse_values("a..b")


def test_the_command_shows_a_table_and_writes_a_model(run, tmp_path):
    rows = [{"text": t, "labels": list(TOPICS.labels_of(i))} for i, t in enumerate(TOPICS.texts)]
    data = tmp_path / "rows.jsonl"
    data.write_text("".join(json.dumps(row) + "\n" for row in rows))
    options = ("--method", "ova", "--try", "C=0.001..10", "--trials", 4, "--metric", "p@1", "--jobs", 1)
    out = run("tune", data, *options, "--checkpoint", tmp_path / "kept")
    assert "defaults" in out and "To train with them: longtail train" in out and "Tried 4 settings" in out
    facts = json.loads(
        run("tune", data, *options, "-o", tmp_path / "model", "--checkpoint", tmp_path / "kept", "--json")
    )
    assert facts["trials"][0]["score"] >= facts["default_score"]
    trained = lt.load(tmp_path / "model")
    assert trained.model_.get_params()["C"] == facts["trials"][0]["settings"].get("C", 1.0)
    assert "--try must be NAME=LOW..HIGH" in run("tune", data, "--try", "C", code=2)
    told = run("tune", data, "--try", "D=1,2", "--trials", 2, code=2)
    assert "--try must be one of the settings" in told and "beam, bias" in told and "got 'D'" in told
    told = run("tune", data, "--try", "C=1..2", "--try", "C=3..4", code=2)
    assert "--try is given twice for C; give all its values once." in told
    told = run("tune", data, "--checkpoint", tmp_path / "both", "-o", tmp_path / "both", code=2)
    assert "--checkpoint and --output are the same folder" in told and not (tmp_path / "both").exists()
    for values in ("5..1", "1..1", "1..Infinity"):
        told = run("tune", data, "--try", f"C={values}", code=2)
        assert f"--try must be NAME=LOW..HIGH, the smaller number first; got '{values}'." in told
