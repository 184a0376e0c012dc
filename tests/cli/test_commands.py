"""The command line, as a user meets it: output, files, exit codes."""

import csv
import io
import json
import sys

import pytest

from longtail.cli import main
from longtail.data import write
from longtail.data.synthetic.generate import make_topics


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("cli")
    data = make_topics(300, 10, random_state=1)[0]
    write(data.take(slice(0, 240)), folder / "train.jsonl")
    write(data.take(slice(240, 300)), folder / "test.csv")
    (folder / "new.txt").write_text("\n".join(data.texts[240:250]) + "\n")
    with pytest.raises(SystemExit) as end:
        main(["train", str(folder / "train.jsonl"), "-o", str(folder / "model")])
    assert end.value.code == 0
    return folder


def test_train_says_what_it_did_and_where_the_result_is(files, run):
    out = run("train", files / "train.jsonl", "-o", files / "m2", "--seed", 1)
    assert "Trained tree on 240 texts with 10 labels" in out and "held-out" in out and str(files / "m2") in out
    facts = json.loads(run("train", files / "train.jsonl", "-o", files / "m3", "--calibrate", 0, "--json"))
    assert facts["trained_rows"] == 240 and facts["calibrated"] is False
    assert run("train", files / "train.jsonl", "-o", files / "m4", "--loss", "logistic", "--C", 5, "--ngrams", 2)


def test_predict_to_stdout_and_to_files(files, run):
    lines = [json.loads(line) for line in run("predict", files / "model", files / "new.txt", "-k", 2).splitlines()]
    assert len(lines) == 10 and [len(r["labels"]) for r in lines] == [2] * 10
    assert set(lines[0]["labels"][0]) == {"label", "score", "probability"}
    run("predict", files / "model", files / "test.csv", "-o", files / "out.csv", "--batch", 7)
    table = (files / "out.csv").read_text().splitlines()
    assert table[0] == "id,place,label,score,probability" and len(table) == 1 + 60 * 5
    sure = run("predict", files / "model", files / "new.txt", "--min-probability", 0.5)
    assert all(tag["probability"] >= 0.5 for line in sure.splitlines() for tag in json.loads(line)["labels"])
    assigned = run("predict", files / "model", files / "new.txt", "--assign")
    assert 0 < sum(len(json.loads(line)["labels"]) for line in assigned.splitlines()) < 50


def test_predict_from_stdin(files, run, monkeypatch):
    class Stdin(io.TextIOWrapper):
        def isatty(self):
            return False

    monkeypatch.setattr(sys, "stdin", Stdin(io.BytesIO((files / "new.txt").read_bytes())))
    lines = run("predict", files / "model", "-").splitlines()
    assert [json.loads(line)["id"] for line in lines] == [str(i) for i in range(10)]


def test_evaluate_prints_json_and_writes_a_page(files, run):
    facts = json.loads(run("evaluate", files / "model", files / "test.csv", "--json", "--resamples", 100))
    metrics = facts["evaluation"]["metrics"]
    assert metrics["p@1"]["value"] > 0.8 and metrics["p@1"]["low"] <= metrics["p@1"]["value"] <= metrics["p@1"]["high"]
    assert {"r@5", "ndcg@3", "psp@5"} <= set(metrics)
    out = run("evaluate", files / "model", files / "test.csv", "--report", files / "r.html", "-k", "1,2", "--details")
    assert "Of the 2 suggestions per text" in out and "nDCG" in out and "\x1b[" not in out
    page = (files / "r.html").read_text()
    assert page.lower().startswith("<!doctype html>") and "<svg" in page


def test_judging_a_model_by_the_rows_it_learned_is_noted(files, capfd):
    for file, learned in (("train.jsonl", True), ("test.csv", False)):
        for models in (["evaluate", files / "model"], ["compare", files / "model", files / "model"]):
            with pytest.raises(SystemExit):
                main([*map(str, models), str(files / file), "--resamples", "0"])
            assert ("learned these very rows" in capfd.readouterr().err) is learned


def test_compare_and_its_exit_code(files, run):
    run("train", files / "train.jsonl", "-o", files / "bad", "--C", 0.00001, "--max-features", 5)
    out = json.loads(run("compare", files / "model", files / "bad", files / "test.csv", "--json", "--resamples", 100))
    assert out["comparison"]["metrics"]["p@1"]["difference"] < 0
    run("compare", files / "model", files / "model", files / "test.csv", "--fail-if-worse", "p@1")
    err = run("compare", files / "model", files / "bad", files / "test.csv", "--fail-if-worse", "p@1", code=6)
    assert "is worse than" in err


def test_explain_inspect_and_verify(files, run):
    text = (files / "new.txt").read_text().splitlines()[0]
    facts = json.loads(run("explain", files / "model", "--text", text, "-k", 1, "--json"))
    assert facts["predicted"][0]["words"]
    assert facts["predicted"][0]["label"] in run("explain", files / "model", "--text", text)
    facts = json.loads(run("inspect", files / "model", "--json"))
    assert facts["labels"] == 10 and facts["trained_on"]["rows"] == 240
    assert "digest" in facts["trained_on"] and "digests" not in facts["trained_on"], "they would be the same"
    short, long = run("inspect", files / "model"), run("inspect", files / "model", "--details")
    assert "240" in short and "float32" not in short and "--details shows" in short
    assert "float32" in long and "labels." in long and len(long.splitlines()) > len(short.splitlines()) + 20
    assert "is intact" in run("verify", files / "model")


def test_convert_and_back(files, run):
    out = run("convert", files / "train.jsonl", files / "train.csv.gz")
    assert "Wrote 240 rows with 10 labels" in out
    run("convert", files / "train.csv.gz", files / "again.jsonl")
    assert (files / "again.jsonl").read_text() == (files / "train.jsonl").read_text()
    assert "fasttext" in run("convert", "--list")
    run("convert", files / "train.jsonl", code=2)


def test_train_on_features_in_xmc_text(files, run):
    (files / "rows.txt").write_text("4 3 2\n0 0:1\n1 1:1\n0 0:1 2:0.5\n1 1:1 2:0.5\n")
    run("train", files / "rows.txt", "-o", files / "rows-model")
    facts = json.loads(run("evaluate", files / "rows-model", files / "rows.txt", "--json", "-k", 1))
    assert facts["evaluation"]["metrics"]["p@1"]["value"] == 1
    lines = run("predict", files / "rows-model", files / "rows.txt").splitlines()
    assert [json.loads(line)["labels"][0]["label"] for line in lines] == ["0", "1", "0", "1"]
    assert "trained on rows of features" in run("predict", files / "rows-model", files / "new.txt", code=3)


@pytest.mark.parametrize(
    ("args", "code", "sentence"),
    [
        (["train", "{}/none.jsonl", "-o", "{}/x"], 3, "none.jsonl does not exist."),
        (["train", "debtags", "-o", "{}/x"], 3, "is called bundled:debtags"),
        (["train", "{}/train.jsonl", "-o", "{}/new.txt"], 4, "is a file; a model is written as a folder."),
        (["train", "{}/train.jsonl", "-o", "{}/x", "--method", "tre"], 2, "method must be one of"),
        (["train", "{}/train.jsonl", "-o", "{}/x", "--C", "-1"], 2, "C must be a number > 0; got -1.0."),
        (["train", "{}/train.jsonl", "-o", "{}/x", "--ngrams", "0"], 2, "ngrams"),
        (["train", "{}/train.jsonl"], 2, "Missing option"),
        (["train", "{}/test.csv", "-o", "{}/x", "--text-column", "body"], 3, "test.csv has no column 'body'"),
        (["predict", "{}/nowhere", "{}/new.txt"], 4, "nowhere does not exist."),
        (["predict", "{}/model", "{}/none.txt"], 3, "none.txt does not exist."),
        (["predict", "{}/model", "{}/new.txt", "-k", "0"], 2, "-k must be an integer >= 1; got 0."),
        (["evaluate", "{}/model", "{}/test.csv", "-k", "1,x"], 2, "-k must be whole numbers"),
        (["evaluate", "{}/model", "{}/test.csv", "--propensity", "amazn"], 2, "Did you mean 'amazon'?"),
        (["explain", "{}/model"], 2, "give one of --text and --file."),
        (["verify", "{}"], 4, "is not a model folder"),
        (["inspect", "{}/train.jsonl"], 4, "is not a model folder"),
        (["convert", "{}/train.jsonl", "{}/out.unknown"], 3, "out.unknown"),
    ],
)
def test_errors_are_one_sentence_with_an_exit_code(files, run, args, code, sentence):
    err = run(*(a.format(files) for a in args), code=code)
    assert sentence in err
    assert "Traceback" not in err
    assert not (files / "x").exists()


def test_a_flipped_byte_is_reported_by_verify_and_predict(files, run, tmp_path):
    run("train", files / "train.jsonl", "-o", tmp_path / "m")
    file = next((tmp_path / "m").glob("model.*.safetensors"))
    raw = bytearray(file.read_bytes())
    raw[-1] ^= 1
    file.write_bytes(raw)
    assert "is damaged: its digest does not match" in run("verify", tmp_path / "m", code=4)
    assert "is damaged" in run("predict", tmp_path / "m", files / "new.txt", code=4)


def test_a_carriage_return_in_a_label_does_not_cut_a_predicted_row_in_two(tmp_path, run):
    rows = [{"text": f"word{i % 2} and more", "labels": [f"a\rb{i % 2}"]} for i in range(20)]
    (tmp_path / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    run("train", tmp_path / "rows.jsonl", "-o", tmp_path / "model", "--calibrate", 0)
    run("predict", tmp_path / "model", tmp_path / "rows.jsonl", "-k", 1, "-o", tmp_path / "out.csv")
    with (tmp_path / "out.csv").open(newline="") as file:
        table = list(csv.reader(file))
    assert len(table) == 21 and {row[2] for row in table[1:]} == {"a\rb0", "a\rb1"}


def test_a_limit_is_named_and_raised_by_its_option(files, run):
    told = run("train", files / "train.jsonl", "-o", files / "no", "--data-limit", "rows=10", code=3)
    assert "train.jsonl has more rows than 10, the limit for rows; raise it with --data-limit rows=" in told
    told = run("predict", files / "model", files / "new.txt", "--data-limit", "line_bytes=5", code=3)
    assert "line 1 has more bytes than 5, the limit for line_bytes; raise it with --data-limit line_bytes=" in told
    assert "--data-limit must be NAME=VALUE" in run("plan", files / "train.jsonl", "--data-limit", "rowz=3", code=2)
    assert run("plan", files / "train.jsonl", "--data-limit", "rows=1000", "--data-limit", "json_depth=9")
