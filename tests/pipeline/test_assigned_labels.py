"""What a Tagger assigns: the same sets everywhere, thresholds for a purpose, goals at k, allow and deny."""

import json

import numpy as np
import pytest

import longtail as lt
from longtail.cli import main
from longtail.data import Dataset, write
from longtail.data.synthetic.generate import make_topics
from longtail.errors import DataError, ModelError, ParameterError
from longtail.pipeline import evaluate_tagger
from longtail.storage import Part


@pytest.fixture(scope="module")
def topics():
    return make_topics(600, 30, random_state=1)[0]


@pytest.fixture(scope="module")
def parts(topics):
    return topics.take(np.arange(400)), topics.take(np.arange(400, 500)), topics.take(np.arange(500, 600))


@pytest.fixture(scope="module")
def tagger(parts):
    return lt.Tagger(random_state=0).fit_dataset(parts[0])


@pytest.fixture(scope="module")
def generous(parts):
    """A tagger that assigns many labels, more than the five that are ranked by default."""
    return lt.Tagger(random_state=0, target="labels-per-row=9").fit_dataset(parts[0])


@pytest.fixture
def run(capsys):
    def call(*args, code=0):
        with pytest.raises(SystemExit) as ended:
            main([str(a) for a in args])
        out = capsys.readouterr()
        assert ended.value.code == code, out.err
        return out.out if code == 0 else out.err

    return call


def sets_of(lines):
    return [{tag["label"] for tag in json.loads(line)["labels"]} for line in lines.splitlines()]


def test_predict_and_the_command_and_evaluate_give_the_same_sets(tmp_path, run, generous, parts):
    test = parts[2]
    generous.save(tmp_path / "m")
    write(test, tmp_path / "test.jsonl")
    sets = [set(row) for row in generous.predict(test.texts)]
    assert max(map(len, sets)) > 5
    assert sets_of(run("predict", tmp_path / "m", tmp_path / "test.jsonl", "--assign")) == sets
    facts = json.loads(run("evaluate", tmp_path / "m", tmp_path / "test.jsonl", "--json"))["assigned"]
    assert facts["metrics"]["labels_per_row"]["value"] == pytest.approx(np.mean([len(s) for s in sets]))
    true = [set(test.labels_of(row)) for row in range(test.n_rows)]
    right = sum(len(a & b) for a, b in zip(sets, true, strict=True))
    assert facts["metrics"]["micro_p"]["value"] == pytest.approx(right / sum(map(len, sets)))
    assert facts["metrics"]["micro_r"]["value"] == pytest.approx(right / sum(map(len, true)))
    assert facts["decision"]["purpose"] == "labels-per-row=9"
    four = sets_of(run("predict", tmp_path / "m", tmp_path / "test.jsonl", "--assign", "-k", 4))
    assert four == [set(row) for row in generous.predict(test.texts, k=4)]
    assert max(map(len, four)) == 4


def test_the_text_of_an_evaluation_says_what_is_assigned(tmp_path, run, generous, parts):
    generous.save(tmp_path / "m")
    write(parts[2], tmp_path / "test.jsonl")
    out = run("evaluate", tmp_path / "m", tmp_path / "test.jsonl", "--report", tmp_path / "r.html")
    assert "Assigned labels: precision " in out
    out = run("evaluate", tmp_path / "m", tmp_path / "test.jsonl", "--details")
    assert "What is assigned" in out and "per row" in out and "of the rows get none" in out
    page = (tmp_path / "r.html").read_text("utf-8")
    assert "What is assigned?" in page and "What rare labels cost" in page


@pytest.mark.parametrize("per", ["global", "band", "label"])
def test_a_target_is_chosen_on_held_out_rows_and_kept_with_the_model(tmp_path, parts, per):
    tagger = lt.Tagger(random_state=0, target="labels-per-row=4", per=per).fit_dataset(parts[0])
    assert tagger.decision_.reached["labels_per_row"] == pytest.approx(4, abs=0.1 if per != "label" else 1)
    tagger.save(tmp_path / "m")
    again = lt.load(tmp_path / "m")
    assert again.predict(parts[2].texts) == tagger.predict(parts[2].texts)
    assert (again.target, again.per) == ("labels-per-row=4", per)
    plain = lt.Tagger(random_state=0).fit_dataset(parts[0])
    assert sum(map(len, again.predict(parts[2].texts))) > sum(map(len, plain.predict(parts[2].texts)))


def test_without_a_target_the_folder_is_as_before(tmp_path, tagger):
    tagger.save(tmp_path / "m")
    assert "decision" not in json.loads((tmp_path / "m" / "manifest.json").read_text())["parts"]
    assert tagger.decision_ is None


def test_a_decision_is_chosen_later_without_training(tmp_path, run, tagger, parts):
    tagger.save(tmp_path / "m")
    write(parts[1], tmp_path / "valid.jsonl")
    write(parts[2], tmp_path / "test.jsonl")
    out = run("decide", tmp_path / "m", tmp_path / "valid.jsonl", "-o", tmp_path / "m2", "--guarantee", "missed=0.2")
    assert "chosen for missed=0.2 on 100 rows" in out and "On these rows: precision" in out
    decided = lt.load(tmp_path / "m2")
    old, new = lt.load(tmp_path / "m").tag(parts[2].texts), decided.tag(parts[2].texts)
    assert old == new and decided.decision_.purpose == "missed=0.2"
    facts = json.loads(
        run("decide", tmp_path / "m", tmp_path / "valid.jsonl", "-o", tmp_path / "m3", "--target", "f1", "--json")
    )
    assert facts["decision"]["purpose"] == "f1" and facts["decision"]["rows"] == 100
    err = run("decide", tmp_path / "m", tmp_path / "valid.jsonl", "-o", tmp_path / "m4", code=2)
    assert err == "error: give either --target or --guarantee.\n"
    err = run(
        "decide", tmp_path / "m", tmp_path / "valid.jsonl", "-o", tmp_path / "m4", "--guarantee", "wrong=0.001", code=3
    )
    assert "wrong=0.001 cannot be guaranteed on these 100 rows; the least that can be is wrong=0.01, with" in err
    assert not (tmp_path / "m4").exists()


def test_rows_of_the_training_are_refused(tagger, parts):
    with pytest.raises(DataError, match="is what the model was trained on"):
        tagger.learn_decision(parts[0], target="f1")


def test_rows_of_the_training_and_of_every_update_are_refused_after_updates(tmp_path, tagger, parts, topics):
    more = [topics.take(np.arange(400, 440)), topics.take(np.arange(440, 480))]
    updated = tagger
    for rows in more:
        updated.save(tmp_path / "m")
        updated = lt.load(tmp_path / "m")
        updated.update_dataset(rows)
    updated.save(tmp_path / "m2")
    updated = lt.load(tmp_path / "m2")
    for rows in (parts[0], *more):
        for purpose in ({"guarantee": "wrong=0.1"}, {"target": "f1"}):
            with pytest.raises(DataError, match="is what the model was trained or updated on"):
                updated.learn_decision(rows, **purpose)
    updated.learn_decision(parts[2], target="f1")
    assert len(updated.data_["digests"]) == 3


def test_targets_that_cannot_be_chosen_are_refused_before_training(parts):
    for settings, sentence in (
        ({"target": "precision=2"}, "target precision must be"),
        ({"target": "f2"}, "target must be precision=0.8"),
        ({"target": "f1", "per": "row"}, "per must be one of"),
        ({"per": "band"}, "per must be 'global' without a target; got 'band'"),
        ({"target": "f1", "calibrate": 0}, "target needs rows held out to choose by"),
        ({"target": "missed=0.1"}, "target must be"),
    ):
        with pytest.raises(ParameterError, match=sentence):
            lt.Tagger(**settings).fit_dataset(parts[0])


def test_goals_over_labels_for_rows_together_and_alone(tmp_path, run, tagger, parts):
    texts = parts[2].texts
    together = tagger.predict(texts, optimise="macro-f1@3")
    assert {len(row) for row in together} == {3}
    assert together == tagger.predict(texts, optimise="macro-f1@3")
    tagger.save(tmp_path / "m")
    write(parts[2], tmp_path / "test.jsonl")
    lines = run("predict", tmp_path / "m", tmp_path / "test.jsonl", "--optimise", "macro-f1@3", "--batch", 7)
    assert sets_of(lines) == [set(row) for row in together]
    single = lt.Tagger(random_state=0, target="coverage@2").fit_dataset(parts[0])
    all_at_once = single.predict(texts[:20])
    assert [single.predict([text])[0] for text in texts[:20]] == all_at_once
    assert {len(row) for row in all_at_once} == {2}
    err = run("predict", tmp_path / "m", tmp_path / "test.jsonl", "--optimise", "f1@3", code=2)
    assert "--optimise must be coverage, macro-f1 or macro-recall" in err
    err = run("predict", tmp_path / "m", tmp_path / "test.jsonl", "--optimise", "coverage@3", "--assign", code=2)
    assert "give one of them" in err


def test_probabilities_are_needed(tmp_path, run, parts):
    plain = lt.Tagger(calibrate=0).fit_dataset(parts[0])
    with pytest.raises(ParameterError, match="optimise needs probabilities"):
        plain.predict(parts[2].texts, optimise="macro-f1@3")
    with pytest.raises(ParameterError, match="target needs probabilities"):
        plain.learn_decision(parts[1], target="f1")
    plain.save(tmp_path / "m")
    write(parts[1], tmp_path / "valid.jsonl")
    err = run("decide", tmp_path / "m", tmp_path / "valid.jsonl", "-o", tmp_path / "m2", "--target", "f1", code=2)
    assert "train it again with --calibrate 0.1, on 50 rows or more." in err
    facts = evaluate_tagger(plain, parts[2], n_bootstrap=0)
    assert facts["tradeoff"] is None and facts["assigned"]["decision"]["purpose"] == "score"


def test_allow_and_deny_on_every_method(parts, tagger):
    texts, names = parts[2].texts[:20], tagger.labels_[:4]
    for found in (tagger.predict(texts, allow=names), tagger.predict(texts, allow=names, optimise="coverage@2")):
        assert all(label in names for row in found for label in row)
    assert not any(label in names for row in tagger.predict(texts, deny=names) for label in row)
    P = tagger.predict_proba(texts, deny=names)
    assert P[:, :4].nnz == 0 and P.nnz
    X, model = tagger.rows(texts), tagger.model_
    assert model.predict(X, deny=[0, 1, 2, 3])[:, :4].nnz == 0 and model.predict_proba(X, allow=[2])[:, 3:].nnz == 0
    with pytest.raises(ParameterError, match="deny must be labels the model knows; got 'no such label'"):
        tagger.predict(texts, deny=["no such label"])


def test_allow_and_deny_on_the_command_line(tmp_path, run, tagger, parts):
    tagger.save(tmp_path / "m")
    write(parts[2], tmp_path / "test.jsonl")
    names = tagger.labels_[:3]
    (tmp_path / "few.txt").write_text("\n".join(names) + "\n")
    command = ["predict", tmp_path / "m", tmp_path / "test.jsonl"]
    found = sets_of(run(*command, "--allow", tmp_path / "few.txt", "--allow", tagger.labels_[7]))
    assert set.union(*found) == {*names, tagger.labels_[7]}
    denied = sets_of(run(*command, "--deny", tmp_path / "few.txt", "--assign"))
    assert not set.union(*denied) & set(names)
    err = run(*command, "--allow", "no such label", code=2)
    assert "--allow must be labels the model knows; got 'no such label'" in err


def test_a_decision_that_does_not_fit_is_refused(tmp_path, tagger, parts):
    other = lt.Tagger(random_state=0, target="macro-f1", per="label").fit_dataset(parts[0])
    narrow = Dataset(Y=parts[0].Y[:, :5], texts=parts[0].texts, label_names=parts[0].label_names[:5])
    small = lt.Tagger(random_state=0).fit_dataset(narrow)
    small.decision_ = other.decision_
    small.save(tmp_path / "m")
    with pytest.raises(ModelError, match="a decision for 30 labels does not fit 5 labels"):
        lt.load(tmp_path / "m")
    part = other.decision_.to_part()
    odd = Part(part.kind, {**part.params, "purpose": "drop tables"}, part.arrays)
    small.decision_ = type("Odd", (), {"to_part": lambda self: odd})()
    with pytest.raises(ModelError, match="purpose"):
        small.save(tmp_path / "odd")
        lt.load(tmp_path / "odd")
