"""`longtail inspect --label` and `longtail train --overlap`: a label's places on the command line."""

import json

import numpy as np
import pytest

import longtail as lt
from longtail.data import Dataset, write
from longtail.pipeline import label_facts
from longtail.tree import LabelTree, LabelTreeClassifier

KINDS = {"sport": ("karate judo kick", ["judo", "karate", "belt"]), "space": ("orbit comet star", ["comet", "belt"])}


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    texts, labels = [], []
    for _ in range(240):
        words, kinds = KINDS[rng.choice(list(KINDS))]
        label = kinds[rng.integers(len(kinds))]
        texts.append(" ".join([*rng.choice(words.split(), 3), label, "a long tail of words " * 8]))
        labels.append([label])
    return Dataset.from_lists(texts, labels, name="senses")


@pytest.fixture(scope="module")
def files(tmp_path_factory, data):
    folder = tmp_path_factory.mktemp("slots")
    write(data, folder / "rows.jsonl")
    write(data.take(data.Y[:, [0]].toarray().ravel() == 0), folder / "without.jsonl")
    for name, both in (("model", 1), ("plain", 0)):
        tagger = lt.Tagger(calibrate=0, random_state=0).fit_dataset(data)
        places = [[label != "comet", label == "comet" or (label == "belt" and both)] for label in tagger.labels_]
        tree = LabelTree.from_clusters([0, 1, 0, 0]).with_slots(np.array(places, dtype=float))
        tagger.model_ = LabelTreeClassifier(random_state=0).fit(tagger.rows(data.texts), data.Y, tree=tree)
        tagger.save(folder / name)
    lt.Tagger("ova", calibrate=0, random_state=0).fit_dataset(data).save(folder / "flat")
    return folder


def test_the_places_are_printed_plain_and_within_80_columns(files, run):
    out = run("inspect", files / "model", "--label", "belt", "--data", files / "rows.jsonl", "--texts", 2)
    assert "\x1b" not in out and out.isascii() and max(len(line) for line in out.splitlines()) <= 80
    plain = " ".join(out.split())
    facts = label_facts(lt.load(files / "model"), "belt")
    assert plain.startswith(f"belt has two leaf slots in the tree. {facts['rows']} training rows have it.")
    for place in facts["slots"]:
        assert "beside " + ", ".join(found["label"] for found in place["neighbours"]) in plain
        assert "words that lead here: " + ", ".join(found["word"] for found in place["words"]) in plain
    assert plain.count("come here:") == 2 and out.count("- row ") == 4


def test_json_holds_the_same_facts(files, run, data):
    tagger = lt.load(files / "model")
    assert json.loads(run("inspect", files / "model", "--label", "belt", "--json")) == label_facts(tagger, "belt")
    found = json.loads(
        run(
            "inspect",
            files / "model",
            "--label",
            "belt",
            "--json",
            "--data",
            files / "rows.jsonl",
            "--texts",
            1,
            "--labels",
            1,
        )
    )
    assert found["data"]["rows"] == data.n_rows
    assert all(len(place["texts"]) == 1 and len(place["neighbours"]) == 1 for place in found["slots"])


def test_a_label_with_one_place_says_so(files, run):
    out = run("inspect", files / "plain", "--label", "belt")
    assert out.startswith("belt has one leaf slot in the tree.") and "words: " in out and "lead here" not in out


def test_data_without_the_label_says_so(files, run):
    out = run("inspect", files / "model", "--label", "belt", "--data", files / "without.jsonl")
    assert "No row of without has it." in out and "come here" not in out


@pytest.mark.parametrize(
    ("args", "code", "sentence"),
    [
        (["{}/model", "--label", "blet"], 2, "label must be one the model knows; got 'blet'. Near it: 'belt'."),
        (["{}/flat", "--label", "belt"], 4, "error: the model is a OneVsAllClassifier and has no label tree"),
        (["{}/model", "--label", "belt", "--tree"], 2, "give one of --tree and --label."),
        (["{}/model", "--data", "x.jsonl"], 2, "--data can only be used with --label."),
        (["{}/model", "--label", "belt", "--texts", "2"], 2, "--texts can only be used with --data."),
        (["{}/model", "--label", "belt", "--depth", "2"], 2, "--depth can only be used with --tree."),
        (["{}/model", "--labels", "2"], 2, "--labels can only be used with --tree or --label."),
        (["{}/model", "--label", "belt", "--labels", "0"], 2, "labels must be an integer >= 1; got 0."),
        (["{}/model", "--label", "belt", "--data", "none.jsonl"], 3, "none.jsonl does not exist."),
    ],
)
def test_what_cannot_be_shown_is_told_in_one_sentence(files, run, args, code, sentence):
    err = run("inspect", *(a.format(files) for a in args), code=code)
    assert sentence in err and "Traceback" not in err and len(err.strip().splitlines()) == 1


@pytest.mark.parametrize(("given", "kept"), [("2", 2), ("auto", "auto")])
def test_train_takes_overlap(files, run, tmp_path, given, kept):
    facts = json.loads(
        run("train", files / "rows.jsonl", "-o", tmp_path / "m", "--overlap", given, "--calibrate", 0, "--json")
    )
    assert facts["params"]["overlap"] == kept
    assert lt.load(tmp_path / "m").model_.overlap == kept


@pytest.mark.parametrize(
    ("args", "sentence"),
    [
        (["--overlap", "two"], "--overlap must be a whole number >= 1 or 'auto'; got 'two'."),
        (["--overlap", "0"], "--overlap must be a whole number >= 1 or 'auto'; got '0'."),
        (["--overlap", "2", "--method", "ova"], "--overlap is not an option of the method 'ova'."),
    ],
)
def test_a_bad_overlap_is_refused_before_anything_is_read(files, run, tmp_path, args, sentence):
    assert sentence in run("train", "none.jsonl", "-o", tmp_path / "m", *args, code=2)


def test_the_report_lists_split_labels_only_where_there_are_some(files, run):
    for model, listed in (("model", True), ("plain", False), ("flat", False)):
        page = files / f"{model}.html"
        run("evaluate", files / model, files / "rows.jsonl", "--report", page, "--resamples", 0)
        assert ("Labels in several clusters" in page.read_text("utf-8")) is listed
    facts = json.loads(run("evaluate", files / "model", files / "rows.jsonl", "--json", "--resamples", 0))
    assert facts["splits"]["listed"][0]["label"] == "belt"
