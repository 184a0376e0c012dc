"""--allow and --deny wherever labels are predicted, by id, notation, name or a file of them."""

import json

import pytest

import longtail as lt
from longtail.cli import main
from longtail.data import write
from longtail.pipeline import Tagger, compare_taggers, evaluate_tagger, load_tagger

TEXTS = ["a red apple pie", "a blue car", "an old car", "apple trees", "a pear", "a red bus"] * 6
LABELS = [["u:1", "u:3"], ["u:2"], ["u:2"], ["u:1"], ["u:1"], ["u:2", "u:3"]] * 6
CONCEPTS = [
    {"id": "u:1", "prefLabel": {"en": "fruit"}, "notation": "F"},
    {"id": "u:2", "prefLabel": {"en": "vehicles"}, "notation": "V"},
    {"id": "u:3", "prefLabel": {"en": "red things"}, "notation": "R"},
]


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("limits")
    write(lt.Dataset.from_lists(TEXTS, LABELS), folder / "rows.jsonl")
    (folder / "concepts.jsonl").write_text("".join(json.dumps(concept) + "\n" for concept in CONCEPTS))
    common = [str(folder / "rows.jsonl"), "--vocabulary", str(folder / "concepts.jsonl")]
    for name, more in (("m", []), ("n", ["--method", "ova"])):
        with pytest.raises(SystemExit) as end:
            main(["train", *common, "-o", str(folder / name), *more])
        assert end.value.code == 0
    return folder


def test_predict_takes_ids_notations_names_and_files(files, tmp_path, run):
    (tmp_path / "some.txt").write_text("fruit\nu:3\nnobody knows it\n")
    for given in (["u:1", "u:3"], ["F", "R"], ["fruit", "Red things"], [tmp_path / "some.txt"]):
        options = [word for label in given for word in ("--allow", label)]
        found = {
            tag["label"]
            for line in run("predict", files / "m", files / "rows.jsonl", *options).splitlines()
            for tag in json.loads(line)["labels"]
        }
        assert found == {"u:1", "u:3"}
    assert "--allow" in run("predict", files / "m", files / "rows.jsonl", "--allow", "fruits", code=2)
    (tmp_path / "none.txt").write_text("nobody\n")
    command = ["predict", files / "m", files / "rows.jsonl", "--deny", tmp_path / "none.txt"]
    assert "none.txt lists no label that the model knows; its first is 'nobody'." in run(*command, code=3)
    for nothing in (b"\xef\xbb\xbf", b"\n\n"):
        (tmp_path / "none.txt").write_bytes(nothing)
        assert "none.txt is empty." in run(*command, code=3)


def test_labels_of_a_file_that_the_model_does_not_know_are_told(files, tmp_path, capfd):
    (tmp_path / "some.txt").write_text("fruit\nnobody\n")
    with pytest.raises(SystemExit) as end:
        main(["predict", str(files / "m"), str(files / "rows.jsonl"), "--deny", str(tmp_path / "some.txt")])
    assert end.value.code == 0
    assert "some.txt: the model does not know 1 of 2 labels: 'nobody'." in capfd.readouterr().err


def test_evaluate_and_compare_ask_only_for_what_may_come(files, run):
    rows = files / "rows.jsonl"
    plain = json.loads(run("evaluate", files / "m", rows, "--resamples", 0, "--json"))
    facts = json.loads(run("evaluate", files / "m", rows, "--resamples", 0, "--deny", "red things", "--json"))
    assert {row["label"] for row in plain["labels"]} == {"u:1", "u:2", "u:3"}
    assert {row["label"] for row in facts["labels"] if row["test_count"]} == {"u:1", "u:2"}
    shown = {tag["label"] for example in facts["examples"] for tag in example["predicted"]}
    assert shown and shown <= {"u:1", "u:2"}
    assert facts["evaluation"]["metrics"]["p@1"]["value"] == 1.0  # each row has one label then
    both = json.loads(run("compare", files / "m", files / "n", rows, "--resamples", 0, "--allow", "R", "--json"))
    assert both["comparison"]["metrics"]["r@3"]["a"] == pytest.approx(1 / 3)  # of the rows have it, and get it
    assert "--predictions" in run("evaluate", rows, "--predictions", rows, "--allow", "R", code=2)


def test_explain_takes_them_too(files, run):
    command = ["explain", files / "m", "--text", "a red apple", "--json"]
    assert [tag["label"] for tag in json.loads(run(*command, "--allow", "vehicles"))["predicted"]] == ["u:2"]
    assert "u:1" not in [tag["label"] for tag in json.loads(run(*command, "--deny", "F"))["predicted"]]
    assert "cannot be used with --label" in run(*command, "--deny", "F", "--label", "F", code=2)


def test_every_predicting_method_of_a_tagger_takes_them(files):
    tagger = load_tagger(files / "m")
    for call in (tagger.tag, tagger.predict_topk, tagger.predict):
        assert call(["a red apple"], allow=["vehicles"], deny=["fruit"]) is not None
    assert {tag.label for tag in tagger.tag(["a red apple"], allow=["V", "u:1"])[0]} == {"u:1", "u:2"}
    rows = lt.Dataset.from_lists(TEXTS, LABELS)
    for call in (
        lambda **may: evaluate_tagger(tagger, rows, n_bootstrap=0, **may),
        lambda **may: compare_taggers(tagger, tagger, rows, n_bootstrap=0, **may),
    ):
        assert call(allow=["fruit"])
        with pytest.raises(lt.errors.ParameterError, match="leave no label"):
            call(allow=["fruit"], deny=["fruit"])
    with pytest.raises(lt.errors.ParameterError, match="allow must be labels the model knows; got 'c'"):
        Tagger(calibrate=0).fit(["aa", "bb"], [["x"], ["y"]]).tag(["aa"], allow=["c"])


def test_models_that_know_different_labels_are_compared_within_a_limit(tmp_path):
    a, b = (
        Tagger(calibrate=0).fit(["red", "blue", "old"], labels)
        for labels in ([["x"], ["y"], ["x"]], [["x"], ["z"], ["x"]])
    )
    rows = lt.Dataset.from_lists(["red", "blue"], [["x"], ["y", "z"]])
    facts = compare_taggers(a, b, rows, n_bootstrap=0, allow=["y", "z", "x"], deny=["x"])
    assert facts["comparison"]["metrics"]["r@1"]["a"] == facts["comparison"]["metrics"]["r@1"]["b"]
