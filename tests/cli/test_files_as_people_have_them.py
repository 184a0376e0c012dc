"""Commands on files as people have them: Excel's CSV, Annif's corpora, records on stdin."""

import io
import json
import sys

import pytest

from longtail.cli import main
from longtail.data import Dataset, read, write
from longtail.data.synthetic.generate import make_topics


@pytest.fixture(scope="module")
def topics():
    return make_topics(200, 8, random_state=1)[0]


def excel(data, file, encoding="cp1252"):
    """Write rows as German Excel does, with columns of its own names."""
    lines = ["Nr;Titel;Schlagwörter;Jahr"]
    for row, text in enumerate(data.texts):
        names = ", ".join(data.names()[i] for i in data.Y[[row]].indices)
        lines.append(f'n{row};"{text} ß";"{names}";{2000 + row % 2}')
    file.write_bytes(("\r\n".join(lines) + "\r\n").encode(encoding))


OPTIONS = ["--text-column", "Titel", "--labels-column", "Schlagwörter", "--id-column", "Nr", "--label-separator", ","]


@pytest.fixture(scope="module")
def excel_files(topics, tmp_path_factory):
    folder = tmp_path_factory.mktemp("excel")
    excel(topics.take(slice(0, 150)), folder / "train.csv")
    excel(topics.take(slice(150, 200)), folder / "test.csv")
    return folder


def test_a_model_remembers_how_its_file_was_read(excel_files, topics, tmp_path, run):
    train, test = excel_files / "train.csv", excel_files / "test.csv"
    facts = json.loads(run("train", train, "-o", tmp_path / "m", *OPTIONS, "--calibrate", 0, "--json"))
    assert facts["trained_on"]["labels"] == 8
    assert facts["trained_on"]["reading"]["text_column"] == ["Titel"]
    found = json.loads(run("evaluate", tmp_path / "m", test, "--resamples", 0, "--json"))
    assert found["data"]["rows"] == 50 and found["data"]["labels_unknown_to_model"] == 0
    lines = run("predict", tmp_path / "m", test, "-k", 1).splitlines()
    assert json.loads(lines[0])["id"] == "n0" and len(lines) == 50
    again = json.loads(run("update", tmp_path / "m", test, "-o", tmp_path / "new", "--json"))
    assert again["rows"] == 50 and again["labels_added"] == []
    assert len(run("predict", tmp_path / "new", test, "-k", 1).splitlines()) == 50
    write(topics.take(slice(150, 200)), tmp_path / "test.jsonl")  # another format: its usual columns
    found = json.loads(run("evaluate", tmp_path / "m", tmp_path / "test.jsonl", "--resamples", 0, "--json"))
    assert found["data"]["rows"] == 50


def test_a_format_that_had_to_be_told_is_remembered_by_the_end_of_the_name(topics, tmp_path, run):
    write(topics, tmp_path / "rows.csv")
    (tmp_path / "rows.dat").write_bytes((tmp_path / "rows.csv").read_bytes())
    run("train", tmp_path / "rows.dat", "--format", "csv", "-o", tmp_path / "m", "--calibrate", 0)
    assert len(run("predict", tmp_path / "m", tmp_path / "rows.dat").splitlines()) == 200


def test_guesses_are_told_in_the_words_of_the_command_line(excel_files, tmp_path, run, capfd):
    run("convert", excel_files / "test.csv", tmp_path / "a.jsonl", *OPTIONS)
    with pytest.raises(SystemExit):
        main(["convert", str(excel_files / "test.csv"), str(tmp_path / "a.jsonl"), *OPTIONS[:4]])
    out, err = capfd.readouterr()
    assert "is read as Windows-1252; use --encoding if it is another." in err
    assert "most labels hold ','" in err and "use --label-separator ," in err
    assert "Not read, and so not written: 2 columns (Jahr, Nr)." in out


def test_convert_keeps_ids_and_says_which_columns_it_did_not_read(excel_files, tmp_path, run):
    options = [*OPTIONS, "--encoding", "windows-1252", "--delimiter", ";"]
    out = run("convert", excel_files / "test.csv", tmp_path / "a.jsonl", *options)
    assert "Not read, and so not written: 1 column (Jahr)." in out
    assert read(tmp_path / "a.jsonl").ids[:2] == ("n0", "n1")
    facts = json.loads(run("convert", excel_files / "test.csv", tmp_path / "a.jsonl", *options, "--json"))
    assert facts["columns_not_read"] == ["Jahr"]
    assert "--encoding must be an encoding" in run(
        "convert", excel_files / "test.csv", tmp_path / "a.jsonl", "--encoding", "x", code=2
    )


@pytest.fixture(scope="module")
def model(topics, tmp_path_factory):
    folder = tmp_path_factory.mktemp("model")
    write(topics, folder / "train.jsonl")
    with pytest.raises(SystemExit):
        main(["train", str(folder / "train.jsonl"), "-o", str(folder / "m"), "--calibrate", "0"])
    return folder / "m"


@pytest.fixture
def stdin(monkeypatch):
    """Return a function that puts bytes on stdin."""

    def put(raw):
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(raw)))

    return put


def test_records_on_stdin(model, topics, stdin, run):
    texts = topics.texts[:3]
    expected = [json.loads(line)["labels"] for line in _predict(run, stdin, model, "\n".join(texts).encode(), "lines")]
    records = "".join(json.dumps({"id": f"r{i}", "text": text}) + "\n" for i, text in enumerate(texts)).encode()
    found = [json.loads(line) for line in _predict(run, stdin, model, records, "jsonl")]
    assert [row["id"] for row in found] == ["r0", "r1", "r2"] and [row["labels"] for row in found] == expected
    table = ("id;text\r\n" + "".join(f"{i};{text}\r\n" for i, text in enumerate(texts))).encode("utf-16")
    assert [json.loads(line)["labels"] for line in _predict(run, stdin, model, table, "csv")] == expected
    stdin(b'{"words": "a"}\n')
    assert "stdin line 1 has no key 'text'; it has: words." in run("predict", model, "-", "--format", "jsonl", code=3)


def _predict(run, stdin, model, raw, format):
    stdin(raw)
    return run("predict", model, "-", "--format", format).splitlines()


def test_json_lines_are_no_plain_texts(model, stdin, run):
    stdin(b'{"text": "a red apple"}\n')
    assert "stdin line 1 is a JSON object, not a text; use --format jsonl" in run("predict", model, "-", code=3)
    stdin(b"{not json\n")
    assert run("predict", model, "-")
    assert "--format must be one of 'lines', 'jsonl'" in run("predict", model, "-", "--format", "npz", code=2)


def test_data_that_shares_no_label_with_the_model_is_refused(model, topics, tmp_path, run, capfd):
    write(Dataset(Y=topics.Y, texts=topics.texts, label_names=tuple("abcdefgh")), tmp_path / "other.jsonl")
    for command in (["evaluate", model], ["compare", model, model]):
        err = run(*command, tmp_path / "other.jsonl", code=3)
        assert "share no label: the data has 'a', 'b', 'c', …, " in err and "'topic0', 'topic1', 'topic2', …." in err
    names = (*"abcdefg", topics.names()[-1])
    write(Dataset(Y=topics.Y, texts=topics.texts, label_names=names), tmp_path / "most.jsonl")
    capfd.readouterr()
    with pytest.raises(SystemExit):
        main(["evaluate", str(model), str(tmp_path / "most.jsonl"), "--resamples", "0", "--json"])
    assert "% of the labels of the rows, such as 'a', 'b', 'c', …: they count as misses." in capfd.readouterr().err
