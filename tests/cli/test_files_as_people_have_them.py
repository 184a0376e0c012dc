"""Commands on files as people have them: Excel's CSV, Annif's corpora, records on stdin."""

import csv
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


@pytest.fixture(scope="module")
def calibrated(topics, tmp_path_factory):
    folder = tmp_path_factory.mktemp("calibrated")
    write(topics, folder / "train.jsonl")
    with pytest.raises(SystemExit):
        main(["train", str(folder / "train.jsonl"), "-o", str(folder / "m")])
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
    assert "stdin line 1 has no key 'text'; it has: words (use" in run(
        "predict", model, "-", "--format", "jsonl", code=3
    )


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


def test_evaluate_by_a_column_and_all_labels_in_a_table(model, topics, tmp_path, run):
    lines = ["text,labels,year"]
    for row in range(60):
        lines.append(f'"{topics.texts[row]}",{";".join(topics.labels_of(row))},{2000 + (row % 3 == 0)}')
    (tmp_path / "rows.csv").write_text("\n".join(lines) + "\n")
    command = ["evaluate", model, tmp_path / "rows.csv", "--resamples", 50]
    facts = json.loads(run(*command, "--by", "year", "--labels-csv", tmp_path / "all.csv", "--json"))
    assert [(part["value"], part["rows"]) for part in facts["by"]["parts"]] == [("2000", 40), ("2001", 20)]
    by_hand = (40 * facts["by"]["parts"][0]["metrics"]["p@1"]["value"] + 20 * _value(facts, 1)) / 60
    assert by_hand == pytest.approx(facts["evaluation"]["metrics"]["p@1"]["value"])
    assert facts["by"]["parts"][0]["metrics"]["p@1"]["low"] <= facts["by"]["parts"][0]["metrics"]["p@1"]["value"]
    recalls = [row["recall"] for row in facts["worst_labels"]]
    assert recalls == sorted(recalls) and all(row["test_count"] >= 5 for row in facts["worst_labels"])
    with (tmp_path / "all.csv").open(encoding="utf-8-sig") as file:
        table = list(csv.DictReader(file))
    assert {row["label"] for row in table} == set(topics.names()) and set(table[0]) >= {"test_count", "recall"}
    shown = run(*command, "--by", "year")
    assert "By year" in shown and "2001" in shown
    assert "rows.csv has no column 'language'" in run(*command, "--by", "language", code=3)


def _value(facts, part):
    return facts["by"]["parts"][part]["metrics"]["p@1"]["value"]


@pytest.fixture(scope="module")
def judged_rows(topics, tmp_path_factory):
    """Return the folder of rows with ids, to judge predictions by."""
    folder = tmp_path_factory.mktemp("judged")
    labels = [topics.labels_of(row) for row in range(40)]
    rows = Dataset.from_lists(topics.texts[:40], labels, ids=[f"r{row}" for row in range(40)])
    write(rows, folder / "rows.jsonl")
    return folder


@pytest.mark.parametrize("name", ["tags.jsonl", "tags.csv", "tags.tsv", "tags.parquet", "tags.trec", "names.jsonl"])
def test_predictions_of_any_program_are_judged_as_the_model_is(model, judged_rows, tmp_path, run, name):
    rows, file = judged_rows / "rows.jsonl", tmp_path / name
    expected = json.loads(run("evaluate", model, rows, "--resamples", 0, "--json"))["evaluation"]["metrics"]
    if name in ("tags.trec", "names.jsonl"):
        found = [json.loads(line) for line in run("predict", model, rows).splitlines()]
        if name == "tags.trec":
            lines = [f"{r['id']} Q0 {t['label']} {i} {t['score']} x" for r in found for i, t in enumerate(r["labels"])]
        else:
            lines = [json.dumps({"id": r["id"], "labels": [t["label"] for t in r["labels"]]}) for r in found]
        file.write_text("\n".join(lines) + "\n")
    else:
        run("predict", model, rows, "-o", file)
    facts = json.loads(run("evaluate", rows, "--predictions", file, "--resamples", 0, "--json"))
    for metric in ("p@1", "p@5", "r@5", "ndcg@3"):
        assert facts["evaluation"]["metrics"][metric]["value"] == pytest.approx(expected[metric]["value"])
    out = run("evaluate", rows, "--predictions", file, "--resamples", 0, "--labels-csv", tmp_path / "all.csv")
    assert f"{name} on rows" in out and (tmp_path / "all.csv").read_text("utf-8-sig").startswith("label,test_count,")


@pytest.mark.parametrize(
    ("to", "delimiter", "decimal"), [("spreadsheet", ",", "."), ("spreadsheet-semicolon", ";", ",")]
)
def test_predictions_for_a_spreadsheet_open_there_and_come_back(
    model, judged_rows, tmp_path, run, to, delimiter, decimal
):
    rows, file = judged_rows / "rows.jsonl", tmp_path / "tags.csv"
    run("predict", model, rows, "-o", file, "--to", to)
    raw = file.read_bytes()
    assert raw.startswith(b"\xef\xbb\xbfid") and raw.count(b"\xef\xbb\xbf") == 1
    head, first = (line.split(delimiter) for line in raw.decode("utf-8-sig").splitlines()[:2])
    assert head == ["id", "place", "label", "score", "probability"] and first[0] == "r0"
    assert decimal in first[3] and ("." if decimal == "," else ",") not in first[3]
    expected = json.loads(run("evaluate", model, rows, "--resamples", 0, "--json"))["evaluation"]["metrics"]
    facts = json.loads(run("evaluate", rows, "--predictions", file, "--resamples", 0, "--json"))
    assert facts["evaluation"]["metrics"]["p@5"]["value"] == pytest.approx(expected["p@5"]["value"])


@pytest.mark.parametrize(
    ("to", "delimiter", "decimal"),
    [("csv-rows", ",", "."), ("spreadsheet-rows", ",", "."), ("spreadsheet-semicolon-rows", ";", ",")],
)
def test_predictions_with_one_line_per_row(calibrated, judged_rows, tmp_path, run, to, delimiter, decimal):
    rows, file = judged_rows / "rows.jsonl", tmp_path / "tags.csv"
    run("predict", calibrated, rows, "-o", file, "--to", to, "--min-probability", "0.3")
    found = [json.loads(line) for line in run("predict", calibrated, rows, "--min-probability", "0.3").splitlines()]
    assert file.read_bytes().startswith(b"\xef\xbb\xbf") == to.startswith("spreadsheet")
    table = list(csv.DictReader(io.StringIO(file.read_text("utf-8-sig")), delimiter=delimiter))
    assert list(table[0]) == ["id", "labels", "probabilities"]
    assert [line["id"] for line in table] == [row["id"] for row in found]
    assert [list(filter(None, line["labels"].split("|"))) for line in table] == [
        [tag["label"] for tag in row["labels"]] for row in found
    ]
    two = next(at for at, row in enumerate(found) if len(row["labels"]) > 1)
    chances = [f"{tag['probability']:.6g}".replace(".", decimal) for tag in found[two]["labels"]]
    assert table[two]["probabilities"] == "|".join(chances)


def test_a_row_without_labels_has_its_line_too(model, calibrated, tmp_path, run):
    (tmp_path / "new.csv").write_text("id,text\nx,zzzqqq\n")
    told = run("predict", calibrated, tmp_path / "new.csv", "--to", "csv-rows", "--min-probability", "1")
    assert told.splitlines() == ["id,labels,probabilities", "x,,"]
    line = run("predict", model, tmp_path / "new.csv", "--to", "csv-rows", "-k", 2).splitlines()[1]
    assert line.count("|") == 1 and line.endswith(","), "a model without probabilities"


def test_one_line_per_row_has_names_where_there_are_some(tmp_path, run):
    texts, labels = ["red apple", "old car"] * 30, [["a"], ["b"]] * 30
    write(Dataset.from_lists(texts, labels), tmp_path / "rows.jsonl")
    (tmp_path / "names.csv").write_text("uri,label_en\na,Fruit\nb,Vehicles\n")
    run("train", tmp_path / "rows.jsonl", "-o", tmp_path / "m", "--vocabulary", tmp_path / "names.csv")
    (tmp_path / "new.txt").write_text("red apple\n")
    head, line = run("predict", tmp_path / "m", tmp_path / "new.txt", "--to", "csv-rows").splitlines()
    assert head == "id,labels,probabilities,names" and line.startswith("0,a|b,") and line.endswith(",Fruit|Vehicles")
    (tmp_path / "names.csv").write_text("uri,label_en\na,Fruit | Food\nb,Vehicles\n")
    how = ["--vocabulary", tmp_path / "names.csv", "--to", "csv-rows"]
    told = run("predict", tmp_path / "m", tmp_path / "new.txt", *how, code=2)
    assert "the model has the name 'Fruit | Food'; use --to csv, one line per label." in told


def test_labels_that_hold_what_stands_between_them_have_lines_of_their_own(tmp_path, run):
    write(Dataset.from_lists(["red apple", "old car"] * 30, [["a|b"], ["c"]] * 30), tmp_path / "rows.jsonl")
    run("train", tmp_path / "rows.jsonl", "-o", tmp_path / "m")
    target = tmp_path / "tags.csv"
    told = run("predict", tmp_path / "m", tmp_path / "rows.jsonl", "--to", "spreadsheet-rows", "-o", target, code=2)
    problem = "--to spreadsheet-rows writes '|' between labels, and the model has the label 'a|b'"
    assert f"{problem}; use --to spreadsheet, one line per label." in told and told.count("\n") == 1
    assert not list(tmp_path.glob("tags*"))


def test_a_table_of_predictions_may_have_lines_without_a_label(judged_rows, tmp_path, run):
    file = tmp_path / "labels.csv"
    file.write_text("id,place,label,score\nr0,1,topic0,0.5\nr1,,,\n")
    facts = json.loads(run("evaluate", judged_rows / "rows.jsonl", "--predictions", file, "--resamples", 0, "--json"))
    assert facts["evaluation"]["suggested_at_most"] == 1
    file.write_text("id,place,label,score\nr0,1,,0.5\nr1,1,topic0,\n")
    assert "a score must be a number" in run("evaluate", judged_rows / "rows.jsonl", "--predictions", file, code=3)


def test_no_cell_of_a_spreadsheet_is_a_formula(tmp_path, run):
    texts, labels = ["red apple", "old car"] * 30, [["=1+1"], ["@car"]] * 30
    write(Dataset.from_lists(texts, labels), tmp_path / "rows.jsonl")
    run("train", tmp_path / "rows.jsonl", "-o", tmp_path / "m")
    (tmp_path / "new.txt").write_text("red apple\n")
    assert "'=1+1" in run("predict", tmp_path / "m", tmp_path / "new.txt", "-k", 1, "--to", "spreadsheet")
    assert "'=1+1" not in run("predict", tmp_path / "m", tmp_path / "new.txt", "-k", 1, "--to", "csv")


@pytest.mark.parametrize(
    ("name", "text", "sentence"),
    [
        ("a.trec", "r0 Q0 topic0 1 0.5\n", "a.trec line 1 has 5 cells; a TREC run has 6."),
        ("a.trec", "r99 Q0 topic0 1 0.5 x\n", "a.trec line 1: the data has no row 'r99'."),
        ("a.trec", "r0 Q0 topic0 1 nan x\n", "a.trec line 1: a score must be finite; got nan."),
        ("a.trec", "r0 Q0 topic0 1 high x\n", "a.trec line 1: a score must be a number; got 'high'."),
        ("a.trec", "r0 Q0 other 1 0.5 x\n", "the predictions and the data share no label."),
        ("a.csv", "id,name\nr0,x\n", "a.csv has no column 'label'; it has: id, name."),
        ("a.csv", "id,label\nr0,topic0\nr0,topic0\n", "a.csv names a label of the row 'r0' twice."),
        ("a.parquet", "PAR1", "a.parquet is not a readable Parquet file."),
        ("a.jsonl", '{"id": "r0"}\n', "a.jsonl line 1 must have 'id' and a list 'labels'."),
        ("a.jsonl", '{"id": "r0", "labels": [null]}\n', "a.jsonl line 1: a label must be a name; got None."),
    ],
)
def test_predictions_that_cannot_be_used_are_refused(judged_rows, tmp_path, run, name, text, sentence):
    (tmp_path / name).write_text(text)
    err = run("evaluate", judged_rows / "rows.jsonl", "--predictions", tmp_path / name, code=3)
    assert sentence in err and err.count("\n") == 1


def test_predictions_are_judged_with_the_counts_of_training_rows(model, judged_rows, tmp_path, run):
    rows, train, file = judged_rows / "rows.jsonl", model.parent / "train.jsonl", tmp_path / "tags.csv"
    run("predict", model, rows, "-o", file)
    for constants in ("default", "amazon"):
        how = ["--resamples", 0, "--json", "--propensity", constants]
        expected = json.loads(run("evaluate", model, rows, *how))["evaluation"]
        found = json.loads(run("evaluate", rows, "--predictions", file, "--train", train, *how))
        assert found["evaluation"]["metrics"]["psp@5"] == expected["metrics"]["psp@5"]
        assert found["evaluation"]["bands"] == expected["bands"]
        assert "train_count" in found["labels"][0]
    told = run("evaluate", rows, "--predictions", file, "--train", train, "--resamples", 0)
    assert "PSP" in told and "in training" in told


def test_without_training_rows_there_is_no_psp_and_that_is_said(model, judged_rows, tmp_path, run, capfd):
    rows, file = judged_rows / "rows.jsonl", tmp_path / "tags.csv"
    run("predict", model, rows, "-o", file)
    main_ends = ["evaluate", str(rows), "--predictions", str(file), "--resamples", "0"]
    with pytest.raises(SystemExit):
        main(main_ends)
    out, err = capfd.readouterr()
    assert "PSP" not in out and "No PSP and no bands: they need the counts of training rows; give --train FILE." in err
    told = run(*main_ends, "--propensity", "amazon", code=2)
    assert "--propensity has no effect with --predictions unless --train gives the training rows" in told
    told = run(*main_ends, "--train", rows, "--propensity", "train.txt", code=2)
    assert "must be one of" in told and "train.txt" in told
    told = run("evaluate", model, rows, "--train", rows, code=2)
    assert "--train can only be used with --predictions" in told
    (tmp_path / "others.jsonl").write_text('{"text": "a", "labels": ["other"]}\n')
    told = run(*main_ends, "--train", tmp_path / "others.jsonl", code=3)
    assert "others has none of the labels of the predictions and the data" in told


def test_evaluate_needs_a_model_or_predictions(model, judged_rows, tmp_path, run):
    assert "Missing argument 'DATA'" in run("evaluate", model, code=2)
    rows = judged_rows / "rows.jsonl"
    assert "--predictions takes the place of MODEL" in run("evaluate", model, rows, "--predictions", rows, code=2)
    odd = run("evaluate", rows, "--predictions", tmp_path / "a.odd", code=2)
    assert "--predictions-format must be one of jsonl, csv, tsv, parquet, trec; got 'a.odd'" in odd


def test_predictions_as_parquet(model, judged_rows, tmp_path, run):
    parquet = pytest.importorskip("pyarrow.parquet")
    rows = judged_rows / "rows.jsonl"
    run("predict", model, rows, "-o", tmp_path / "tags.parquet", "-k", 2, "--batch", 7)
    expected = [json.loads(line) for line in run("predict", model, rows, "-k", 2).splitlines()]
    table = parquet.read_table(tmp_path / "tags.parquet").to_pydict()
    assert table["id"] == [row["id"] for row in expected for _ in row["labels"]]
    assert table["label"] == [tag["label"] for row in expected for tag in row["labels"]]
    assert table["score"] == pytest.approx([tag["score"] for row in expected for tag in row["labels"]], rel=1e-6)
    assert table["place"][:2] == [1, 2] and set(table["probability"]) == {None}
    for options in (["--to", "parquet"], ["-o", tmp_path / "tags.parquet.gz"]):
        assert "--to parquet needs --output" in run("predict", model, rows, *options, code=2)
