"""Columns, delimiters and encodings wherever a file is read; what a conversion leaves out; labels that do not fit."""

import json

import numpy as np
import pytest
import scipy.sparse as sp

from longtail.cli import main
from longtail.data import Dataset, read, read_grouped, read_labels, read_predictions, write
from longtail.data.formats.group_file import read_groups
from longtail.data.synthetic.generate import make_topics
from longtail.errors import DataWarning
from longtail.vocabulary import Vocabulary

COLUMNS = ["--text-column", "Titel", "--labels-column", "Thema", "--id-column", "Nr"]


@pytest.fixture(scope="module")
def topics():
    return make_topics(300, 6, random_state=2)[0]


def table(data, file, encoding, delimiter):
    """Write rows with columns of other names; the text holds a letter that is not ASCII."""
    lines = [delimiter.join(("Nr", "Titel", "Thema"))]
    for row, text in enumerate(data.texts):
        lines.append(delimiter.join((f"n{row}", f"{text} größe", ";".join(data.labels_of(row)))))
    file.write_bytes(("\r\n".join(lines) + "\r\n").encode(encoding))


@pytest.fixture(scope="module")
def files(topics, tmp_path_factory):
    """Return a folder with a model trained on a table in DOS's encoding, and such tables."""
    folder = tmp_path_factory.mktemp("everywhere")
    table(topics.take(slice(0, 250)), folder / "train.csv", "cp850", "#")
    table(topics.take(slice(250, 300)), folder / "test.csv", "cp850", "#")
    how = ["--delimiter", "#", "--encoding", "cp850", *COLUMNS]
    with pytest.raises(SystemExit) as end:
        main(["train", str(folder / "train.csv"), "-o", str(folder / "m"), "--method", "ova", *how])
    assert end.value.code == 0
    return folder


def test_every_command_with_a_model_reads_as_it_remembers(files, tmp_path, run):
    model, test = files / "m", files / "test.csv"
    assert json.loads(run("evaluate", model, test, "--resamples", 0, "--json"))["data"]["rows"] == 50
    assert json.loads(run("compare", model, model, test, "--resamples", 0, "--json"))["data"]["rows"] == 50
    assert json.loads(run("audit", model, test, "--seconds", 5, "--json"))["data"]["rows"] == 50
    run("decide", model, test, "-o", tmp_path / "decided", "--target", "f1")
    run("update", model, test, "-o", tmp_path / "newer", "--replay", files / "train.csv")
    assert len(run("predict", tmp_path / "newer", test, "-k", 1).splitlines()) == 50
    (tmp_path / "one.txt").write_bytes("größe".encode("cp850"))
    command = ["explain", model, "--file", tmp_path / "one.txt", "--json"]
    assert json.loads(run(*command, "--encoding", "cp850"))["text"] == "größe"


def test_a_guessed_encoding_is_told_once(topics, tmp_path, capfd):
    def err_of(*args):
        capfd.readouterr()
        with pytest.raises(SystemExit) as end:
            main([str(arg) for arg in args])
        out, err = capfd.readouterr()
        assert end.value.code == 0, err
        return out, err

    for name, encoding in (("train", "cp1252"), ("test", "cp1252"), ("utf-8", "utf-8")):
        table(topics.take(slice(0, 100)), tmp_path / f"{name}.csv", encoding, ",")
    train = ["train", tmp_path / "train.csv", "-o", tmp_path / "m", "--method", "ova", *COLUMNS]
    assert "is read as Windows-1252; use --encoding if it is another." in err_of(*train)[1]
    said = [err_of("predict", tmp_path / "m", tmp_path / name, "-k", 2) for name in ("test.csv", "utf-8.csv")]
    assert not any("Windows-1252" in err for _, err in said)
    assert said[0][0] == said[1][0]  # the same letters, read as UTF-8
    assert "Windows-1252" not in err_of("evaluate", tmp_path / "m", tmp_path / "test.csv", "--resamples", 0)[1]


def test_commands_without_a_model_are_told_how_to_read(files, tmp_path, run):
    how = ["--delimiter", "#", "--encoding", "cp850", *COLUMNS]
    assert json.loads(run("check-labels", files / "test.csv", *how, "--folds", 2, "--json"))["rows"] == 50
    run("convert", files / "test.csv", tmp_path / "a.jsonl", *how)
    assert read(tmp_path / "a.jsonl").texts[0].endswith("größe")
    assert run("plan", files / "test.csv", *how)


def test_inspect_reads_data_as_the_model_remembers(files, topics, tmp_path, run):
    how = ["--delimiter", "#", "--encoding", "cp850", *COLUMNS]
    run("train", files / "train.csv", "-o", tmp_path / "tree", "--overlap", 2, "--calibrate", 0, *how)
    label = topics.names()[0]
    assert run("inspect", tmp_path / "tree", "--label", label, "--data", files / "train.csv")


def test_groups_files_take_delimiter_and_encoding(tmp_path, run):
    rows = "text#group\nrote Äpfel#7\nReifen#7\ngrüne Äpfel#8\nSommerreifen#9\n"
    groups = "group#labels\n7#Früchte;Auto\n8#Früchte\n9#Auto\n"
    (tmp_path / "rows.csv").write_bytes(rows.encode("cp850"))
    (tmp_path / "groups.csv").write_bytes(groups.encode("cp850"))
    how = ["--delimiter", "#", "--encoding", "cp850"]
    run("impute", tmp_path / "rows.csv", "--groups", tmp_path / "groups.csv", "-o", tmp_path / "out.jsonl", *how)
    assert read(tmp_path / "out.jsonl").label_names == ("Auto", "Früchte")
    (tmp_path / "groups.jsonl").write_text(
        '{"group": "7", "labels": ["ü"]}\n{"group": "8", "labels": ["b"]}\n{"group": "9", "labels": ["b"]}\n'
    )
    both = read_grouped(tmp_path / "rows.csv", tmp_path / "groups.jsonl", delimiter="#", encoding="cp850")
    assert both.rows.label_names == ("b", "ü")  # a groups file in another format is read as usual
    excel = groups.replace("Früchte;Auto", '"Früchte;Auto"').replace("#", ";")
    (tmp_path / "excel.csv").write_bytes(excel.encode("cp1252"))
    with pytest.warns(DataWarning, match="is read as Windows-1252"):
        assert read_groups(tmp_path / "excel.csv").label_names == ("Auto", "Früchte")


def test_lists_vocabularies_and_predictions_as_spreadsheets_write_them(tmp_path):
    (tmp_path / "labels.txt").write_bytes("Früchte\r\nAuto\r\n".encode("cp1252"))
    with pytest.warns(DataWarning, match=r"line 1 is not UTF-8, .* Windows-1252; save it as UTF-8 if it is another"):
        assert read_labels(tmp_path / "labels.txt").names == ("Früchte", "Auto")
    (tmp_path / "vocabulary.csv").write_bytes("id;label_de\r\nu:1;Früchte\r\n".encode("cp1252"))
    with pytest.warns(DataWarning, match="Windows-1252") as caught:
        assert Vocabulary.read(tmp_path / "vocabulary.csv").name("u:1") == "Früchte"
    assert len([warning for warning in caught if warning.category is DataWarning]) == 1
    (tmp_path / "run.csv").write_bytes("id;label;score\r\nr1;Früchte;0,5\r\n".replace("0,5", "0.5").encode("utf-16"))
    assert read_predictions(tmp_path / "run.csv", ["r1"], 1)[1] == ("Früchte",)


def test_convert_names_all_that_it_leaves_out(tmp_path, run):
    Y = sp.csr_array(np.array([[1, 0, 0], [0, 1, 0]], dtype=np.float32))
    data = Dataset(Y=Y, texts=("a\nred apple", "a car"), ids=("r1", "r2"), label_names=("u:1", "u:2", "u:3"))
    write(data, tmp_path / "a.npz")
    out = run("convert", tmp_path / "a.npz", tmp_path / "a.ft")
    assert "Left out, since the format does not hold it: ids." in out
    assert "Left out: 1 label that no row has; --write-labels keeps them in a list." in out
    assert "Line breaks and tabs became spaces in 1 text." in out
    out = run("convert", tmp_path / "a.npz", tmp_path / "a.jsonl", "--write-labels", tmp_path / "labels.jsonl")
    assert "Left out" not in out and "spaces" not in out
    assert "Line breaks" in run("convert", tmp_path / "a.npz", tmp_path / "a.tsv", "--to", "annif")
    run("convert", tmp_path / "a.npz", tmp_path / "annif", "--to", "annif-folder")
    out = run("convert", tmp_path / "annif", tmp_path / "b.jsonl")
    assert "Not read, and so not written: 1 column (names of subjects in .tsv files)." in out
    arrays = dict(np.load(tmp_path / "a.npz"))
    np.savez(tmp_path / "more.npz", **arrays, year=np.arange(2))
    assert "1 column (year)." in run("convert", tmp_path / "more.npz", tmp_path / "c.jsonl")
    raw = tmp_path / "raw"
    raw.mkdir()
    (raw / "lbl.json").write_text('{"uid": "1", "title": "x"}\n')
    (raw / "trn.json").write_text('{"uid": "7", "title": "t", "content": "c", "target_ind": [0], "year": 1999}\n')
    assert "1 column (year)." in run("convert", raw, tmp_path / "d.jsonl")


def test_rows_in_groups_keep_their_ids_and_texts_in_npz(tmp_path, run):
    data = Dataset(
        Y=sp.csr_array(np.eye(2, dtype=np.float32)),
        X=np.eye(2, dtype=np.float32),
        ids=("r1", "r2"),
        groups=sp.csr_array(np.eye(2, dtype=np.float32)),
        group_names=("g", "h"),
    )
    write(data, tmp_path / "a.npz")
    arrays = {name: array for name, array in np.load(tmp_path / "a.npz").items() if not name.startswith("Y")}
    np.savez(tmp_path / "b.npz", **arrays)
    found = read(tmp_path / "b.npz", labels_required=False)
    assert found.ids == ("r1", "r2") and found.group_names == ("g", "h")


@pytest.mark.parametrize(("separator", "shown"), [(",", ","), ("\n", "newline"), (" ", "space")])
def test_one_giant_label_per_row_is_noticed(tmp_path, capfd, separator, shown):
    names = [f"http://x/{i}" for i in range(4)]
    lines = ["text,labels"]
    lines += [f'text number {i} here,"{separator.join((names[i % 4], names[(i + 1) % 4]))}"' for i in range(60)]
    lines.append('an odd one,"one;two"')
    (tmp_path / "rows.csv").write_text("\n".join(lines) + "\n")
    for command in (
        ["convert", "rows.csv", "out.jsonl"],
        ["train", "rows.csv", "-o", "m", "--calibrate", "0"],
        ["check-labels", "rows.csv", "--folds", "2"],
    ):
        capfd.readouterr()
        with pytest.raises(SystemExit):
            main(
                [
                    command[0],
                    *(str(tmp_path / part) if part in ("rows.csv", "out.jsonl", "m") else part for part in command[1:]),
                ]
            )
        err = capfd.readouterr().err
        assert "hardly a row has more than one label, and most labels hold " in err
        assert f"use --label-separator {shown} if it stands between labels." in err
    assert read(tmp_path / "rows.csv", label_separator=shown).label_names[:4] == tuple(names)


def test_decide_needs_labels_that_the_model_knows(files, topics, tmp_path, run):
    other = Dataset(Y=topics.Y, texts=topics.texts, label_names=tuple("abcdef"))
    write(other, tmp_path / "other.jsonl")
    command = ["decide", files / "m", tmp_path / "other.jsonl", "-o", tmp_path / "d", "--target", "f1"]
    assert "other.jsonl and the model share no label" in run(*command, code=3)
