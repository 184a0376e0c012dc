"""`longtail monitor`: exit codes, formats, what is said where, and pages."""

import io
import json
import sys

import numpy as np
import pytest

from longtail.cli import main
from longtail.data import write
from longtail.data.synthetic.generate import make_topics


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """Return a folder with a model, rows like those it was trained on in many formats, and other rows."""
    folder = tmp_path_factory.mktemp("monitor")
    data = make_topics(700, 8, random_state=1)[0]
    write(data.take(slice(0, 500)), folder / "train.jsonl")
    new = data.take(slice(500, 700))
    for name in ("new.jsonl", "new.csv", "new.npz"):
        write(new, folder / name)
    (folder / "new.txt").write_text("\n".join(new.texts) + "\n")
    (folder / "other.txt").write_text("\n".join(f"ganz andere {text} Wörter hier" for text in new.texts) + "\n")

    assert main_code("train", folder / "train.jsonl", "-o", folder / "m", "--calibrate", "0.3") == 0
    return folder


def main_code(*args):
    """Run a command and return its exit code."""
    try:
        main([str(arg) for arg in args])
    except SystemExit as end:
        return end.code or 0
    return 0


def test_rows_of_the_same_kind_are_steady_in_any_format(files, capsys):
    for name in ("new.jsonl", "new.csv", "new.txt"):
        assert main_code("monitor", files / "m", files / name, "--json") == 0
        facts = json.loads(capsys.readouterr().out)
        assert facts["version"] == 1 and facts["verdict"] == "steady" and facts["rows"] == 200
        assert facts["labelled_rows"] == (0 if name == "new.txt" else facts["labelled_rows"] or -1)


def test_other_rows_end_with_8_unless_told_otherwise(files, capsys, tmp_path):
    page = tmp_path / "page.html"
    assert main_code("monitor", files / "m", files / "other.txt", "--report", page) == 8
    said = capsys.readouterr()
    assert "Changed: these rows are not like" in said.out and "andere" in said.out and "What to do" in said.out
    assert "Report: " in said.err and "New words" in page.read_text("utf-8")
    assert main_code("monitor", files / "m", files / "other.txt", "--fail-on", "never") == 0
    assert main_code("monitor", files / "m", files / "other.txt", "--fail-on", "watch") == 8


def test_batches_of_any_size_say_the_same(files, capsys):
    found = []
    for size in (1000, 33):
        main_code("monitor", files / "m", files / "other.txt", "--batch", size, "--json")
        found.append(json.loads(capsys.readouterr().out))
    assert found[0] == found[1]


def test_stdin_and_a_reference_of_ones_own(files, capsys, monkeypatch):
    texts = (files / "other.txt").read_bytes()
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(texts)))
    assert main_code("monitor", files / "m", "-", "--reference", files / "other.txt", "--json") == 0
    facts = json.loads(capsys.readouterr().out)
    assert facts["verdict"] == "steady" and facts["reference"].endswith("other.txt")


@pytest.mark.parametrize(
    ("args", "code", "said"),
    [
        (["new.jsonl", "--fail-on", "always"], 2, "--fail-on"),
        (["new.jsonl", "--batch", "0"], 2, "--batch must be an integer >= 1; got 0."),
        (["-", "--reference", "-"], 2, "--reference must not be stdin where DATA is"),
        (["new.jsonl", "--report", "new.jsonl"], 2, "--report is the file that is read (new.jsonl)"),
        (["missing.jsonl"], 3, "missing.jsonl does not exist"),
        (["empty.txt"], 3, "empty.txt is empty"),
        (["new.jsonl", "--labels-file", "labels.jsonl"], 3, "is not in the list of labels"),
    ],
)
def test_what_is_wrong_is_said_in_one_sentence(files, capsys, monkeypatch, args, code, said):
    monkeypatch.chdir(files)
    (files / "empty.txt").write_text("")
    (files / "labels.jsonl").write_text('{"id": "none"}\n')
    assert main_code("monitor", "m", *args) == code
    err = capsys.readouterr().err
    assert said in err and err.count("error: ") == 1


def test_a_model_without_a_reference_says_what_to_do(files, capsys, tmp_path):
    assert main_code("train", files / "train.jsonl", "-o", tmp_path / "m", "--calibrate", "0") == 0
    capsys.readouterr()
    assert main_code("monitor", tmp_path / "m", files / "new.txt") == 4
    err = capsys.readouterr().err
    assert "holds nothing to compare with" in err and "as a reference (--reference)." in err
    assert main_code("monitor", tmp_path / "m", files / "train.jsonl") == 4  # rows with labels too
    capsys.readouterr()
    assert main_code("monitor", tmp_path / "m", files / "new.txt", "--reference", files / "train.jsonl") in (0, 8)


def test_an_error_names_the_row_in_the_file(files, capsys):
    lines = [json.dumps({"text": "fine words"})] * 40 + ['{"text": 7}']
    (files / "bad.jsonl").write_text("\n".join(lines) + "\n")
    assert main_code("monitor", files / "m", files / "bad.jsonl", "--batch", "10") == 3
    assert "bad.jsonl line 41" in capsys.readouterr().err


def test_features_in_files_are_monitored(tmp_path, capsys):
    rng = np.random.default_rng(0)
    lines = []
    for _ in range(600):
        label = int(rng.integers(3))
        lines.append(f"{label} {label}:1 {3 + int(rng.integers(4))}:{rng.random():.2f}")
    (tmp_path / "a.svm").write_text("\n".join(lines[:400]) + "\n")
    (tmp_path / "b.svm").write_text("\n".join(lines[400:]) + "\n")
    assert main_code("train", tmp_path / "a.svm", "-o", tmp_path / "m", "--first-id", "0") == 0
    capsys.readouterr()
    assert main_code("monitor", tmp_path / "m", tmp_path / "b.svm", "--first-id", "0", "--json") == 0
    facts = json.loads(capsys.readouterr().out)
    assert facts["labelled_rows"] == 200 and "unknown_words" not in {one["what"] for one in facts["comparisons"]}
