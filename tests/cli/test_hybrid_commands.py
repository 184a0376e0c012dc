"""The commands with a hybrid of words: train, explain, inspect, evaluate, add labels; no torch is needed."""

import json

import numpy as np
import pytest

from longtail.cli import main
from longtail.data import load_bundled, write

WORDS = ("--method", "hybrid", "--experts", "tree,names", "--jobs", "1")


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("hybrid")
    write(load_bundled("debtags", "train").take(np.arange(0, 24000, 40)), folder / "rows.jsonl")
    write(load_bundled("debtags", "test").take(np.arange(60)), folder / "test.jsonl")
    return folder


@pytest.fixture(scope="module")
def model(files):
    with pytest.raises(SystemExit) as end:
        main(["train", str(files / "rows.jsonl"), "-o", str(files / "model"), *WORDS])
    assert end.value.code == 0
    return files / "model"


def test_train_says_how_good_every_expert_is(files, run, tmp_path):
    out = run("train", files / "rows.jsonl", "-o", tmp_path / "model", *WORDS)
    assert "Trained hybrid (tree, names) on 600 texts" in out
    assert "Experts on these, P@1/P@5: tree " in out and "together" in out


def test_an_explanation_says_which_expert_brought_a_label(model, run):
    out = run("explain", model, "--text", "bindings for the perl language", "--label", "devel::lang:perl")
    assert "label tree on words" in out and 'name in the text: "perl"' in out
    facts = json.loads(run("explain", model, "--text", "a chess game", "-k", "1", "--json"))
    assert {fact["expert"] for fact in facts["predicted"][0]["experts"]} == {"tree", "names", "start"}


def test_a_report_shows_what_every_expert_adds(model, files, run, tmp_path):
    run("evaluate", model, files / "test.jsonl", "--report", tmp_path / "page.html")
    assert "what each expert of the hybrid adds" in (tmp_path / "page.html").read_text("utf-8")


def test_inspect_shows_the_experts(model, run):
    facts = json.loads(run("inspect", model, "--json"))
    assert set(facts["experts"]) == {"tree", "names", "together"}


def test_labels_are_added_by_their_texts(model, run, tmp_path):
    (tmp_path / "new.jsonl").write_text('{"id": "field::whales", "text": "whale watching"}\n', "utf-8")
    run("add-labels", model, tmp_path / "new.jsonl", "-o", tmp_path / "larger")
    (tmp_path / "texts.jsonl").write_text('{"text": "software for whale watching"}\n', "utf-8")
    assert "field::whales" in run("predict", tmp_path / "larger", tmp_path / "texts.jsonl")


@pytest.mark.parametrize(
    ("args", "sentence"),
    [
        (("--experts", "tree,magic"), "--experts must be some of"),
        (("--experts", "tree", "--tail", "-1"), "--tail"),
        (("--experts", "tree", "--language", "klingon"), "--language"),
        (("--experts", "tree", "--lr", "-1"), "--lr"),
        (("--experts", "tree", "--minutes", "1"), "--minutes has no effect without --experts"),
        (("--experts", "names", "--overlap", "3"), "--overlap has no effect without --experts tree"),
        (("--epochs", "0", "--minutes", "1"), "--minutes has no effect with --epochs 0"),
        (("--experts", "tree", "--ngrams", "2"), "--ngrams is not an option of the method 'hybrid'"),
    ],
)
def test_a_wrong_option_gets_a_sentence_and_leaves_nothing(args, sentence, files, run, tmp_path):
    out = run("train", files / "rows.jsonl", "-o", tmp_path / "none", "--method", "hybrid", *args, code=2)
    assert sentence in out and "Traceback" not in out and not (tmp_path / "none").exists()
