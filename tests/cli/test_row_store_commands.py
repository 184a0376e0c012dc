"""Commands take a row store where they take data, and train on it within the memory that is allowed."""

import json

import numpy as np
import pytest

import longtail as lt
from longtail.cli import main as program
from longtail.data import make_topics, open_store, write


def main(args):
    with pytest.raises(SystemExit) as ended:
        program(args)
    return ended.value.code or 0


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    here = tmp_path_factory.mktemp("stores")
    data = make_topics(600, 12)[0]
    write(data, here / "rows.jsonl")
    write(lt.Dataset(X=lt.text.TfidfFeatures().fit_transform(data.texts), Y=data.Y), here / "rows.xmc")
    for source, target in (("rows.jsonl", "texts"), ("rows.xmc", "numbers")):
        assert main(["convert", str(here / source), "-o", str(here / f"{target}.store")]) == 0
    return here


def files_of(model):
    return {file.name: file.read_bytes() for file in model.iterdir()}


@pytest.mark.parametrize(("source", "store"), [("rows.jsonl", "texts.store"), ("rows.xmc", "numbers.store")])
def test_the_model_is_the_same_bytes_from_a_file_a_store_and_within_a_limit(folder, source, store, tmp_path, capsys):
    for name, data, more in (
        ("file", source, []),
        ("store", store, []),
        ("limit", store, ["--memory", "2GB"]),
    ):
        assert main(["train", str(folder / data), "-o", str(tmp_path / name), "--max-leaf", "4", *more]) == 0
    assert files_of(tmp_path / "store") == files_of(tmp_path / "limit")
    ours, theirs = files_of(tmp_path / "store"), files_of(tmp_path / "file")
    assert ours == theirs
    capsys.readouterr()


def test_commands_read_a_store(folder, tmp_path, capsys):
    store, model = str(folder / "texts.store"), str(tmp_path / "model")
    assert main(["train", store, "-o", model]) == 0
    capsys.readouterr()
    said = {}
    for data in (store, str(folder / "rows.jsonl")):
        assert main(["evaluate", model, data, "--json"]) == 0
        said[data] = json.loads(capsys.readouterr().out)["evaluation"]
        assert main(["predict", model, data, "-o", str(tmp_path / "out.jsonl")]) == 0
        said[data]["predicted"] = (tmp_path / "out.jsonl").read_text()
        capsys.readouterr()
    first, second = said.values()
    assert first == second
    assert main(["plan", store, "--memory", "2GB", "--json"]) == 0
    memory = json.loads(capsys.readouterr().out)["memory"]
    assert memory["fits"] and memory["available_bytes"] == 2 * 10**9


def test_a_store_without_texts_trains_and_is_judged_by_its_features(folder, tmp_path, capsys):
    store = tmp_path / "bare.store"
    assert main(["convert", str(folder / "rows.jsonl"), "-o", str(store), "--no-texts", "--json"]) == 0
    assert not json.loads(capsys.readouterr().out)["texts"]
    assert main(["train", str(store), "-o", str(tmp_path / "m")]) == 0
    assert main(["evaluate", str(tmp_path / "m"), str(store)]) == 0
    tagger = lt.load(tmp_path / "m")
    assert tagger.reads_texts_ and tagger.tag([open_store(folder / "texts.store").strings("texts")[0]])
    capsys.readouterr()


@pytest.mark.parametrize(
    ("args", "sentence"),
    [
        (["train", "{}/texts.store", "-o", "{}/m", "--memory", "1MB"], r"at least [\d.]+GB .* got 1000000 bytes"),
        (["train", "{}/texts.store", "-o", "{}/m", "--memory", "2 bytes"], "--memory must be a size such as 2GB"),
        (["train", "{}/texts.store", "-o", "{}/m", "--memory", "2GB", "--method", "ova"], "other than 'tree'"),
        (["train", "{}/texts.store", "-o", "{}/m", "--ngrams", "2"], "--ngrams has no effect: .* give it to convert"),
        (["convert", "{}/rows.jsonl", "{}/rows.csv", "--no-texts"], "--no-texts is for a row store"),
        (["convert", "{}/rows.jsonl", "{}/rows.csv", "--ngrams", "2"], "--ngrams is for a row store"),
        (["convert", "{}/rows.jsonl", "{}/x", "-o", "{}/y"], "-o names a row store"),
        (["convert", "{}/rows.jsonl", "-o", "{}/y", "--no-features", "--no-texts"], "--no-features leaves no words"),
        (["convert", "{}/rows.jsonl", "-o", "{}/y", "--write-labels", "{}/z"], "--write-labels cannot be used"),
        (["convert", "{}/texts.store", "-o", "{}/texts.store"], "-o is the folder that is read"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_what_cannot_be_is_one_sentence(folder, args, sentence, capsys):
    import re

    assert main([arg.format(folder) for arg in args]) in (2, 3)
    told = capsys.readouterr().err.strip().splitlines()[-1]
    assert re.search(sentence, told), told
    assert not (folder / "m").exists() and not (folder / "y").exists()


def test_a_limit_on_the_words_counted_is_told(tmp_path, monkeypatch, capsys):
    from longtail.pipeline import make_store

    monkeypatch.setattr(make_store, "LEAST_TERMS", 50)
    monkeypatch.setattr(make_store, "CHARACTERS_AT_ONCE", 500)
    write(lt.Dataset.from_lists([f"often word{i}" for i in range(300)], [["a"]] * 300), tmp_path / "rows.jsonl")
    assert main(["convert", str(tmp_path / "rows.jsonl"), "-o", str(tmp_path / "s"), "--memory", "1MB"]) == 0
    assert "more different words than memory allowed" in capsys.readouterr().out
    assert np.isfinite(open_store(tmp_path / "s").arrays["X.values"]).all()


def test_labels_without_rows_and_label_texts_stay(tmp_path, capsys):
    assert main(["convert", "bundled:debtags", "-o", str(tmp_path / "s"), "--no-features"]) == 0
    assert "with 566 labels" in capsys.readouterr().out
    data, bundled = open_store(tmp_path / "s").dataset(), lt.data.load_bundled("debtags")
    assert list(data.label_names) == list(bundled.label_names) and list(data.label_texts) == list(bundled.label_texts)
    assert (data.Y != bundled.Y).nnz == 0
