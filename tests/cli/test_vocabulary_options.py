"""`--vocabulary` on the command line: from files to tags with names, and what is refused."""

import csv
import io
import json

import pytest

from longtail.cli import main

BASE = "http://ex.org/"
TSV = "".join(
    f"<{BASE}{i}>\t{name}\t{i}\n" for i, name in enumerate(("fruit", "apples", "vehicles", "trains", "ships"))
)
ROWS = [("red apple pie", "0;apples"), ("green pear tart", "fruit"), ("fast car race", "2"), ("slow train ride", "3")]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("vocabulary")
    (folder / "rows.csv").write_text("text,labels\n" + "".join(f"{text},{labels}\n" for text, labels in ROWS * 15))
    (folder / "v.tsv").write_text(TSV)
    concepts = [{"id": f"{BASE}{i}", "label": {"de": f"Wort {i}", "en": f"word {i}"}} for i in range(5)]
    concepts[1]["broader"] = [f"{BASE}0"]
    for number, (concept, name) in enumerate(zip(concepts, ("fruit", "apples", "vehicles", "trains", "ships"))):
        concept |= {"notation": str(number), "alt_label": {"en": [name]}}
    (folder / "v.jsonl").write_text("".join(json.dumps(c) + "\n" for c in concepts))
    args = ["train", folder / "rows.csv", "-o", folder / "model", "--vocabulary", folder / "v.tsv", "--jobs", "1"]
    with pytest.raises(SystemExit) as end:
        main([str(a) for a in args])
    assert end.value.code == 0
    return folder


def refused(capfd, *args):
    with pytest.raises(SystemExit) as end:
        main([str(a) for a in args])
    assert end.value.code != 0
    return capfd.readouterr().err


def test_predictions_have_ids_and_names(folder, run, tmp_path):
    run("predict", folder / "model", folder / "rows.csv", "-o", tmp_path / "out.csv", "-k", 1, "--jobs", 1)
    row = list(csv.DictReader(io.StringIO((tmp_path / "out.csv").read_text())))[2]
    assert (row["label"], row["name"]) == (f"{BASE}2", "vehicles")
    run("predict", folder / "model", folder / "rows.csv", "-o", tmp_path / "out.jsonl", "-k", 1, "--jobs", 1)
    assert json.loads((tmp_path / "out.jsonl").read_text().splitlines()[2])["labels"][0]["name"] == "vehicles"


def test_explain_takes_and_shows_names(folder, run, capfd):
    out = run("explain", folder / "model", "--text", "red apple", "--label", "APPLES")
    assert "\napples " in out and f"{BASE}1" in out
    assert "Did you mean 'apples'" in refused(capfd, "explain", folder / "model", "--text", "x", "--label", "apple")


def test_another_language_or_vocabulary_can_be_shown(folder, run, capfd):
    model, other = folder / "model", folder / "v.jsonl"
    text = ("--text", "red apple", "-k", 1)
    assert "Wort 0" in run("explain", model, *text, "--vocabulary", other, "--lang", "de")
    assert "word 0" in run("explain", model, *text, "--vocabulary", other, "--lang", "en")
    assert "--lang must be a language of the vocabulary (de, en)" in refused(
        capfd, "explain", model, *text, "--vocabulary", other, "--lang", "fr"
    )


def test_inspect_shows_the_vocabulary(folder, run):
    out = run("inspect", folder / "model")
    assert "v.tsv" in out and "vehicles" in out
    facts = json.loads(run("inspect", folder / "model", "--json"))
    assert facts["vocabulary"]["concepts"] == 5 and facts["most_frequent"][0] == {
        "name": "fruit",
        "label": f"{BASE}0",
        "count": 30,
    }
    assert "fruit" in run("inspect", folder / "model", "--tree")
    assert f"{BASE}0" in run("inspect", folder / "model", "--label", "Fruit")


def test_evaluate_gives_partial_credit_where_there_is_a_hierarchy(folder, run):
    args = ("evaluate", folder / "model", folder / "rows.csv", "--resamples", 0, "--jobs", 1, "--json")
    assert "hp@1" not in json.loads(run(*args))["evaluation"]["metrics"]
    facts = json.loads(run(*args, "--vocabulary", folder / "v.jsonl"))
    assert facts["evaluation"]["metrics"]["hp@1"]["value"] > 0
    assert facts["labels"][0]["name"].startswith("Wort")


def test_what_is_refused(folder, capfd, tmp_path):
    rows, out = folder / "rows.csv", ("-o", tmp_path / "model")
    train = ("train", rows, *out)
    assert "--lang can only be used with --vocabulary" in refused(capfd, *train, "--lang", "de")
    assert "--unknown-labels can only be used with --vocabulary" in refused(capfd, *train, "--unknown-labels", "drop")
    assert "--tree-from-vocabulary needs broader concepts" in refused(
        capfd, *train, "--vocabulary", folder / "v.tsv", "--tree-from-vocabulary"
    )
    strange = tmp_path / "rows.csv"
    strange.write_text("text,labels\nred apple,fruit\nfast car,strange\n")
    err = refused(capfd, "train", strange, *out, "--vocabulary", folder / "v.tsv", "--unknown-labels", "error")
    assert "1 of 2 labels of the data are not in the vocabulary: strange; --unknown-labels keep keeps them, " in err
    assert "--unknown-labels drop leaves them out." in err
    assert "a vocabulary is given with --vocabulary" in refused(capfd, *train, "--labels-file", folder / "v.tsv")
    assert not (tmp_path / "model").exists()


def test_add_labels_reads_vocabularies(tmp_path, capfd):
    pytest.importorskip("torch")
    pytest.importorskip("transformers")
    (tmp_path / "v.tsv").write_text(TSV)
    (tmp_path / "rows.csv").write_text("text,labels\n" + "".join(f"{text},{labels}\n" for text, labels in ROWS * 5))
    prime = ("--method", "prime", "--encoder", "none", "--device", "cpu", "--jobs", "1", "--max-length", "8")
    more = ("--epochs", "1", "--calibrate", "0", "--vocabulary", tmp_path / "v.tsv")
    with pytest.raises(SystemExit):
        main([str(a) for a in ("train", tmp_path / "rows.csv", "-o", tmp_path / "model", *prime, *more)])
    with pytest.raises(SystemExit) as end:
        main([str(a) for a in ("add-labels", tmp_path / "model", tmp_path / "v.tsv", "-o", tmp_path / "new")])
    out, err = capfd.readouterr()
    assert end.value.code == 0, err
    assert "Added 1 label to 4" in out
    records = [json.loads(line) for line in next((tmp_path / "new").glob("labels.*")).read_text().splitlines()]
    assert records[-1]["name"] == f"{BASE}4" and records[-1]["text"] == "ships"
    assert {record["text"] for record in records[:-1]} == {"fruit", "apples", "vehicles", "trains"}


def test_deprecated_labels_are_offered_to_be_replaced(folder, run, tmp_path, capfd):
    concepts = [{"id": f"{BASE}{i}", "label": {"en": f"word {i}"}, "notation": str(i)} for i in range(4)]
    for concept, name in zip(concepts, ("fruit", "apples", "vehicles", "trains"), strict=True):
        concept["alt_label"] = {"en": [name]}
    concepts[3] |= {"deprecated": True, "replaced_by": f"{BASE}2"}
    (tmp_path / "v.jsonl").write_text("".join(json.dumps(c) + "\n" for c in concepts))
    train = ("train", folder / "rows.csv", "--vocabulary", tmp_path / "v.jsonl", "--jobs", 1, "--calibrate", 0)
    out = run(*train, "-o", tmp_path / "kept")
    assert "1 deprecated concept is in use: word 3 (replaced by word 2)." in out
    assert "--deprecated-labels replace trains on what replaced them instead." in out
    out = run(*train, "-o", tmp_path / "replaced", "--deprecated-labels", "replace")
    assert "1 deprecated concept was replaced in 15 rows: word 3 by word 2." in out and "in use" not in out
    facts = json.loads(run("inspect", tmp_path / "replaced", "--json"))
    assert facts["labels"] == 3 and facts["trained_on"]["vocabulary"]["replaced"] == 1
    error = refused(capfd, *train, "-o", tmp_path / "x", "--deprecated-labels", "drop")
    assert "--deprecated-labels must be one of ['keep', 'replace']; got 'drop'." in error
    alone = ("train", folder / "rows.csv", "-o", tmp_path / "x", "--deprecated-labels", "replace")
    assert "--deprecated-labels can only be used with --vocabulary." in refused(capfd, *alone)


def test_a_vocabulary_names_the_labels_of_a_model_trained_without_one(folder, run, tmp_path):
    rows = "".join(f"{text},{name}\n" for text, name in zip((t for t, _ in ROWS * 15), "0123" * 15, strict=True))
    (tmp_path / "rows.csv").write_text("text,labels\n" + rows)  # notations of the vocabulary
    run("train", tmp_path / "rows.csv", "-o", tmp_path / "m", "--jobs", 1, "--calibrate", 0)
    facts = json.loads(
        run(
            "evaluate",
            tmp_path / "m",
            tmp_path / "rows.csv",
            "--vocabulary",
            folder / "v.tsv",
            "--json",
            "--resamples",
            0,
        )
    )
    assert facts["data"]["labels_unknown_to_model"] == 0 and facts["labels"][0]["name"] in TSV
    pair = ("compare", tmp_path / "m", tmp_path / "m", tmp_path / "rows.csv", "--json", "--resamples", 0)
    for named in ((), ("--vocabulary", folder / "v.tsv")):
        same = json.loads(run(*pair, *named))["comparison"]["metrics"]["p@1"]
        assert same["a"] == same["b"] > 0.9
    pair = ("compare", folder / "model", tmp_path / "m", tmp_path / "rows.csv", "--json", "--resamples", 0)
    assert json.loads(run(*pair))["comparison"]["metrics"]["p@1"]["b"] > 0.9  # one has a vocabulary, one has notations
    shown = json.loads(run("inspect", tmp_path / "m", "--json"))["settings"]
    assert shown["C"] > 0 and shown["beam"] == 10 and None not in shown.values()


def test_update_names_new_labels_and_counts_those_the_vocabulary_lacks(folder, run, tmp_path):
    (tmp_path / "new.csv").write_text("text,labels\n" + "a tall ship,ships;strange\nan old ship,ships;fruit\n" * 10)
    out = run("update", folder / "model", tmp_path / "new.csv", "-o", tmp_path / "m", "--jobs", 1)
    assert f"New labels: ships ({BASE}4), strange." in out
    assert "1 new label is not in the vocabulary and kept all the same: strange." in out


def test_wrong_vocabularies_are_refused(folder, capfd, tmp_path):
    (tmp_path / "rows.jsonl").write_text('{"id": "7", "text": "red apple", "labels": ["fruit"]}\n')
    train = ("train", folder / "rows.csv", "-o", tmp_path / "m", "--vocabulary")
    error = refused(capfd, *train, tmp_path / "rows.jsonl")
    assert "rows.jsonl line 1 is a row of data with 'text' and 'labels', no concept of a vocabulary." in error
    (tmp_path / "other.tsv").write_text("<http://a/1>\tminerals\n")
    error = refused(capfd, *train, tmp_path / "other.tsv")
    assert "none of the 5 labels of " in error and "'http://a/1'" in error
    error = refused(capfd, "evaluate", folder / "model", folder / "rows.csv", "--vocabulary", tmp_path / "other.tsv")
    assert "none of the 4 labels of the model is in the vocabulary" in error and "'http://a/1'" in error
