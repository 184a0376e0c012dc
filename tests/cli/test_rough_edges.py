"""Where the command line meets the unusual: features instead of texts, wrong options, closed streams, signals."""

import io
import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp

from longtail.cli import main
from longtail.data import Dataset, write
from longtail.data.synthetic.generate import make_linear, make_topics
from longtail.errors import ModelError
from longtail.storage import ArraySpec, FolderSchema, Part, PartSchema, load_folder, save_folder


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """A model on features and one on texts, and the test rows of the first in every format of features."""
    folder = tmp_path_factory.mktemp("rough")
    data = make_linear(n_rows=200, n_features=30, n_labels=6, random_state=0)[0]
    train, test = data.take(slice(0, 150)), data.take(slice(150, 200))
    for name in ("rows.xmc", "rows.svm", "rows.npz"):
        write(test, folder / name)
    sp.save_npz(folder / "X_test.npz", sp.csr_matrix(test.X))
    sp.save_npz(folder / "Y_test.npz", sp.csr_matrix(test.Y))
    sp.save_npz(folder / "X_alone.npz", sp.csr_matrix(test.X))
    (folder / "split").mkdir()
    write(data, folder / "split" / "data.txt")
    for part, low, high in (("trn", 1, 151), ("tst", 151, 201)):
        (folder / "split" / f"{part}_split.txt").write_text("".join(f"{row}\n" for row in range(low, high)))
    write(train, folder / "train.xmc")
    texts = make_topics(80, 5, random_state=1)[0]
    write(texts, folder / "texts.jsonl")
    for source, model in (("train.xmc", "rows-model"), ("texts.jsonl", "texts-model")):
        with pytest.raises(SystemExit) as end:
            main(["train", str(folder / source), "-o", str(folder / model), "--calibrate", "0"])
        assert end.value.code == 0
    return folder


def shell(command, folder):
    command = command.replace("longtail", f'"{sys.executable}" -m longtail')
    return subprocess.run(["bash", "-c", command], cwd=folder, capture_output=True, text=True)


# features in, labels out


@pytest.mark.parametrize("name", ["rows.xmc", "rows.svm", "rows.npz", "X_test.npz", "X_alone.npz", "split"])
def test_predict_takes_the_features_that_train_takes(files, run, name):
    expected = run("predict", files / "rows-model", files / "rows.xmc", "-k", 2, "--batch", 50)
    assert len(expected.splitlines()) == 50
    assert run("predict", files / "rows-model", files / name, "-k", 2, "--batch", 7) == expected


@pytest.mark.parametrize("name", ["rows.svm", "X_test.npz", "split"])
def test_evaluate_and_compare_take_them_too(files, run, name):
    expected, found = (
        json.loads(run("evaluate", files / "rows-model", files / file, "--json", "--resamples", 0))["evaluation"]
        for file in ("rows.xmc", name)
    )
    assert found["metrics"] == expected["metrics"]
    same = json.loads(run("compare", files / "rows-model", files / "rows-model", files / name, "--json"))
    assert same["comparison"]["metrics"]["p@1"]["difference"] == 0


def test_predictions_are_not_written_under_the_name_of_another_format(files, run, tmp_path):
    err = run("predict", files / "rows-model", files / "rows.xmc", "-o", tmp_path / "tags.npz", code=2)
    assert "--output must not end in .npz" in err and "jsonl, csv, tsv or parquet" in err
    assert not (tmp_path / "tags.npz").exists()
    run("predict", files / "rows-model", files / "rows.xmc", "-o", tmp_path / "tags.npz", "--to", "csv")
    assert (tmp_path / "tags.npz").read_text().startswith("id,place,label")


@pytest.mark.parametrize("command", ["predict", "evaluate"])
def test_a_model_says_what_it_was_trained_on(files, run, command):
    for name in ("rows.svm", "rows.xmc", "rows.npz"):
        err = run(command, files / "texts-model", files / name, code=3)
        assert err == "error: the model was trained on texts, and the data has only features.\n"
    err = run(command, files / "rows-model", files / "texts.jsonl", code=3)
    assert err == "error: the model was trained on rows of features, and the data has only texts.\n"


def test_libsvm_is_as_wide_as_the_model_and_never_shifted_silently(files, run, tmp_path):
    rows = [json.loads(line) for line in run("predict", files / "rows-model", files / "rows.svm").splitlines()]
    lines = (files / "rows.svm").read_text().splitlines()
    without = [i for i, line in enumerate(lines) if " 0:" not in line and " 29:" not in line]
    few = [lines[i] for i in without[:3]]
    (tmp_path / "few.svm").write_text("\n".join(few) + "\n")
    for command in ("predict", "evaluate"):
        err = run(command, files / "rows-model", tmp_path / "few.svm", code=3)
        assert "whether its feature ids start at 0 or at 1: neither 0 nor 30 occurs; say which with --first-id." in err
    out = run("predict", files / "rows-model", tmp_path / "few.svm", "--first-id", 0, "--batch", 2).splitlines()
    assert [json.loads(line)["labels"] for line in out] == [rows[i]["labels"] for i in without[:3]]
    shifted = Dataset(X=sp.csr_array(np.eye(2, 40, dtype=np.float32)[:, ::-1]), Y=sp.csr_array((2, 6)))
    write(shifted, tmp_path / "wide.svm")
    err = run("predict", files / "rows-model", tmp_path / "wide.svm", "--first-id", 0, code=3)
    assert err.endswith("wide.svm has 40 features; the model was trained on 30.\n")


# wrong options


@pytest.mark.parametrize(
    ("args", "sentence"),
    [
        (["train"], "error: Missing argument 'DATA' (see longtail train --help)."),
        (["train", "a", "-o", "b", "--trees", "x"], "error: Invalid value for '--trees': 'x' is not a valid integer"),
        (
            ["predict", "a", "b", "--min-probability", "1,5"],
            "error: --min-probability must be a number; got '1,5'. Write 1.5.",
        ),
        (["predict", "a", "b", "--min-probability", "x"], "error: --min-probability must be a number; got 'x'."),
        (["train", "a", "-o", "b", "--nothing"], "error: No such option"),
        (["train", "a", "b", "-o", "c"], "error: Got unexpected extra argument (b) (see longtail train --help)."),
        (["trane"], "error: No such command 'trane'"),
        (["convert", "a"], "error: give DATA and OUTPUT, or --list (see longtail convert --help)."),
    ],
)
def test_a_usage_error_is_one_line(run, args, sentence):
    err = run(*args, code=2)
    assert err.startswith(sentence) and err.count("\n") == 1


def test_a_training_without_enough_rows_or_labels_says_so(run, tmp_path):
    rows = tmp_path / "rows.csv"
    rows.write_text("text,labels\n" + "red apple,fruit\nfast car,vehicle\n" * 20)
    out = run("train", rows, "-o", tmp_path / "m")
    assert "Not calibrated, which takes at least 50 rows (there are 40): scores only, no probabilities." in out
    rows.write_text("text,labels\n" + "red apple,\n" * 20)
    err = run("train", rows, "-o", tmp_path / "m2", code=3)
    assert f"the rows of {rows} must have at least one label; every row is empty; a table has them in the column" in err
    assert "--labels-column" in err and not (tmp_path / "m2").exists()


def test_fewer_suggestions_than_asked_for_are_told_as_they_are(run, tmp_path):
    (tmp_path / "rows.csv").write_text("id,text,labels\n" + "".join(f"r{i},red apple,a;b\n" for i in range(60)))
    labels = ["a", "b"]
    lines = [json.dumps({"id": f"r{i}", "labels": [{"label": x, "score": 1.0} for x in labels]}) for i in range(60)]
    (tmp_path / "tags.jsonl").write_text("\n".join(lines) + "\n")
    out = run("evaluate", tmp_path / "rows.csv", "--predictions", tmp_path / "tags.jsonl", "--resamples", 0)
    assert "Of the at most 2 suggestions per text, 2.0 are right on average" in out
    assert not [line for line in out.splitlines() if line.startswith("60 rows") and line.endswith(" ")]


def test_help_stays_as_it_is(run):
    assert run("train", "--help").startswith("Usage: longtail train [OPTIONS] DATA\n")


@pytest.mark.parametrize(
    ("command", "args", "sentence"),
    [
        ("train", ["--trees", "0"], "--trees must be an integer >= 1; got 0."),
        ("train", ["--jobs", "0"], "--jobs must be an integer other than 0; got 0."),
        ("train", ["--seed", "-1"], "--seed must be an integer between 0 and 2147483647; got -1."),
        ("train", ["--ngrams", "0"], "--ngrams must be an integer between 1 and 64; got 0."),
        ("train", ["--min-df", "1000"], "--min-df must be at most the number of texts trained on, 80; got 1000."),
        ("train", ["--positive-weight", "0"], "--positive-weight must be a number > 0; got 0.0."),
        ("train", ["--first-id", "2"], "--first-id must be 0 or 1; got '2'."),
        (
            "train",
            ["--method", "tre"],
            "--method must be one of ['tree', 'ova', 'dft', 'prime', 'hybrid', 'auto']; got 'tre'. "
            "Did you mean 'tree'?",
        ),
        ("evaluate", ["--resamples", "-1"], "--resamples must be an integer >= 0; got -1."),
        ("evaluate", ["--propensity", "x"], "--propensity must be one of ['default', 'wikipedia', 'amazon']; got 'x'."),
        ("predict", ["--batch", "0"], "--batch must be an integer >= 1; got 0."),
        ("explain", ["--text", "a", "-k", "0"], "-k must be an integer >= 1; got 0."),
        ("explain", ["--text", "a", "--label", "zz"], "--label must be one the model knows; got 'zz'."),
    ],
)
def test_errors_name_the_option_that_was_typed(files, run, command, args, sentence):
    model, data = files / "texts-model", files / "texts.jsonl"
    places = {"train": [data, "-o", files / "none"], "explain": [model]}.get(command, [model, data])
    assert run(command, *places, *args, code=2) == f"error: {sentence}\n"


def test_a_format_that_is_not_told_names_the_option(files, run, tmp_path):
    (tmp_path / "rows.what").write_text("some text\n")
    assert "; use --format, one of ['jsonl'," in run("train", tmp_path / "rows.what", "-o", tmp_path / "m", code=3)
    assert "; use --to, one of ['jsonl'," in run("convert", files / "texts.jsonl", tmp_path / "out.what", code=3)
    assert "error: --to must be one of" in run("convert", files / "texts.jsonl", tmp_path / "o", "--to", "x", code=2)


# signals


def test_sigterm_while_a_model_is_written_leaves_nothing_and_exits_with_143(files, run, tmp_path, monkeypatch):
    save_folder(tmp_path / "old", "tagger.v1", {"x": Part("x.v1", {}, {"a": np.arange(3)})})
    before = {file.name: file.read_bytes() for file in (tmp_path / "old").iterdir()}
    real, files_written = os.fsync, []

    def fsync(number):
        files_written.append(number)
        if len(files_written) == 3:  # a file and its folder are done; the next file is still called .tmp
            os.kill(os.getpid(), signal.SIGTERM)
        real(number)

    monkeypatch.setattr(os, "fsync", fsync)
    for name in ("old", "new"):
        files_written.clear()
        err = run("train", files / "texts.jsonl", "-o", tmp_path / name, "--calibrate", 0, code=143)
        assert err == "terminated; what was there before is unchanged.\n"
    assert {file.name: file.read_bytes() for file in (tmp_path / "old").iterdir()} == before
    assert not (tmp_path / "new").exists()


def test_the_handler_of_sigterm_is_put_back(run):
    before = signal.getsignal(signal.SIGTERM)
    run("convert", "--list")
    assert signal.getsignal(signal.SIGTERM) is before


# files


@pytest.mark.parametrize("suffix", [".gz", ".xz", ".bz2"])
def test_parquet_is_not_packed_again(files, run, tmp_path, suffix):
    target = tmp_path / f"rows.parquet{suffix}"
    err = run("convert", files / "texts.jsonl", target, code=3)
    assert err == f"error: {target}: Parquet is compressed already; name the file rows.parquet.\n"
    assert not target.exists()
    target.write_bytes(b"x")
    err = run("convert", target, tmp_path / "rows.csv", code=3)
    assert err == f"error: {target} is a packed Parquet file, which cannot be read in place; unpack it first.\n"


# streams


@pytest.mark.skipif(os.name != "posix", reason="needs a POSIX shell")
@pytest.mark.parametrize(
    ("command", "code", "sentence"),
    [
        ("longtail inspect texts-model >&- 2>&-", 0, ""),
        ("longtail predict texts-model - <&-", 3, "error: stdin is closed, so nothing can be read from it.\n"),
        ("set -o pipefail; longtail predict texts-model many.txt | head -1", 0, ""),
        ("set -o pipefail; longtail inspect texts-model | true", 0, ""),
        ("longtail convert --list > /dev/full", 1, "error: No space left on device: standard output.\n"),
    ],
)
def test_closed_and_broken_streams_end_in_a_sentence_at_most(files, command, code, sentence):
    if "/dev/full" in command and not Path("/dev/full").exists():
        pytest.skip("needs /dev/full")
    (files / "many.txt").write_text("some text\n" * 3000)  # more than a pipe holds, once tagged
    done = shell(command, files)
    assert (done.returncode, done.stderr) == (code, sentence)
    assert len(done.stdout.splitlines()) <= 1


def test_what_needs_a_closed_stream_says_so(files, run, monkeypatch):
    with monkeypatch.context() as closed:
        closed.setattr(sys, "stdin", None)
        assert "stdin is closed" in run("explain", files / "texts-model", "--text", "-", code=3)
        closed.setattr(sys, "stdout", None)
        assert "stdout is closed" in run("predict", files / "texts-model", files / "texts.jsonl", code=2)
        assert run("evaluate", files / "texts-model", files / "texts.jsonl", "--json", "--resamples", 0) == ""


def test_a_note_that_nobody_reads_does_not_stop_the_work(files, run, tmp_path, monkeypatch):
    class Broken(io.StringIO):
        def write(self, text):
            raise BrokenPipeError

    monkeypatch.setattr(sys, "stderr", Broken())
    run("predict", files / "rows-model", files / "rows.xmc", "-o", tmp_path / "tags.csv")
    assert (tmp_path / "tags.csv").stat().st_size


# reports


def test_the_page_of_a_very_long_text_is_short(files, run, tmp_path):
    texts = make_topics(80, 5, random_state=1)[0]
    long = Dataset(
        Y=texts.Y[:2],
        texts=(" ".join([texts.texts[0]] * 5_000), texts.texts[1] + " " + "x" * 500_000),
        label_names=texts.label_names,
    )
    write(long, tmp_path / "long.jsonl")
    model = files / "texts-model"
    run("evaluate", model, tmp_path / "long.jsonl", "--report", tmp_path / "page.html", "--resamples", 0)
    assert (tmp_path / "page.html").stat().st_size < 300_000
    facts = json.loads(run("evaluate", model, tmp_path / "long.jsonl", "--json", "--resamples", 0))
    assert [len(example["text"]) for example in facts["examples"]] == [2002, 2002]


# model folders


@pytest.mark.parametrize("verify", [True, False])
def test_a_cut_file_is_refused_at_loading_before_it_is_mapped(tmp_path, verify):
    save_folder(tmp_path / "m", "x.v1", {"x": Part("x.v1", {}, {"a": np.arange(10_000)})})
    file = next((tmp_path / "m").glob("x.*.safetensors"))
    os.truncate(file, 4096)
    one = PartSchema("x.v1", arrays=(ArraySpec("a", "int64", ("n",)),))
    folders = {"x.v1": FolderSchema("x.v1", {"x": {one.kind: one}})}
    with pytest.raises(ModelError, match="is damaged: 4096 bytes instead of"):
        load_folder(tmp_path / "m", folders, verify=verify)


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (("--max-leaf", 0), "--max-leaf must be an integer >= 1; got 0."),
        (("--branching", 1), "--branching must be an integer >= 2; got 1."),
        (
            ("--min-df", 5, "--max-df", 2),
            "--max-df must allow at least as many rows as --min-df; got 2 and 5 for 8 rows.",
        ),
    ],
)
def test_what_only_the_plan_would_stumble_over_is_refused_by_its_option(run, tmp_path, options, sentence):
    (tmp_path / "rows.jsonl").write_text(
        '{"text": "red apple", "labels": ["a"]}\n{"text": "car", "labels": ["b"]}\n' * 4
    )
    told = run("train", tmp_path / "rows.jsonl", "-o", tmp_path / "m", *options, code=2)
    assert sentence in told and not (tmp_path / "m").exists()
