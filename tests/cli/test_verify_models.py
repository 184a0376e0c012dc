"""`longtail verify` and `inspect` on sound, damaged and odd model folders: a line per file, one sentence at the end."""

import hashlib
import json
import os

import numpy as np
import pytest

import longtail as lt
from longtail.errors import ModelError, ParameterError

EYE = np.eye(30, dtype=np.float32)


@pytest.fixture
def tagger(tmp_path):
    return lt.Tagger(calibrate=0).fit(["red apple", "blue car"] * 5, [["a"], ["b"]] * 5).save(tmp_path / "m")


def rewrite_labels(folder, change):
    """Change the records of the labels of a folder; digest and size are made to fit."""
    manifest = json.loads((folder / "manifest.json").read_text())
    old = manifest["labels"]
    raw = change((folder / old).read_bytes().splitlines())
    digest = hashlib.sha256(raw).hexdigest()
    new = f"labels.{digest[:16]}.jsonl"
    (folder / old).unlink()
    (folder / new).write_bytes(raw)
    del manifest["files"][old]
    manifest["files"][new], manifest["labels"] = {"bytes": len(raw), "sha256": digest}, new
    (folder / "manifest.json").write_text(json.dumps(manifest))
    return new


def test_inspect_refuses_what_does_not_load(run, tagger):
    rewrite_labels(tagger, lambda lines: lines[0] + b"\n" + lines[0] + b"\n")
    assert "its label names are not different" in run("inspect", tagger, code=4)
    rewrite_labels(tagger, lambda lines: lines[0] + b"\n")
    assert "1 label names for 2 labels" in run("inspect", tagger, code=4)


def test_counts_of_labels_have_a_limit(run, tagger):
    rewrite_labels(tagger, lambda lines: b'{"name": "a", "count": 1%s}\n{"name": "b", "count": 5}\n' % (b"0" * 30))
    for command in ("verify", "inspect"):
        assert "line 1 is not the record of a label: 'count' must be" in run(command, tagger, code=4)


def test_the_file_is_named_once(run, tagger):
    name = rewrite_labels(tagger, lambda lines: b"\xff\n")
    for command in ("verify", "inspect"):
        assert run(command, tagger, code=4).count(f"{name} is damaged: it is not UTF-8.") == 1
    assert run("verify", tagger, code=4).splitlines()[-1].count(name) == 1


@pytest.mark.parametrize(
    ("value", "why"),
    [
        ("[" * 20 + "]" * 20, "its lists and objects are nested more than 16 levels deep"),
        ("[" * 100_000 + "]" * 100_000, "its lists and objects are nested more than 16 levels deep"),
        ("9" * 5000, "a number in it has too many digits"),
        ("Infinity", "Infinity is no number of JSON"),
        ("]", "it is not JSON"),
    ],
    ids=["deep", "very deep", "long", "infinite", "broken"],
)
def test_odd_json_is_told_apart(run, tagger, value, why):
    manifest = tagger / "manifest.json"
    manifest.write_text(manifest.read_text().rstrip().removesuffix("}") + f', "seed2": {value}}}')
    assert f"manifest.json is damaged: {why}." in run("inspect", tagger, code=4)


def test_every_command_that_loads_a_model_takes_a_key(run, tagger, tmp_path):
    pytest.importorskip("cryptography", reason="needs the extra [sign]")
    rows = tmp_path / "rows.jsonl"
    rows.write_text('{"text": "red apple", "labels": ["a"]}\n')
    new = tmp_path / "new.txt"
    new.write_text("red car\n")
    new = tmp_path / "new.txt"
    new.write_text("red car\n")
    made = json.loads(run("sign", "--new-key", tmp_path / "team", "--json"))
    assert made["public_key"] == str(tmp_path / "team.pub") and made["signature"] is None
    commands = (
        ("predict", tagger, rows),
        ("evaluate", tagger, rows),
        ("compare", tagger, tagger, rows),
        ("explain", tagger, "--text", "red apple"),
        ("inspect", tagger),
        ("inspect", tagger, "--tree"),
        ("inspect", tagger, "--label", "a"),
        ("audit", tagger),
        ("add-labels", tagger, new, "-o", tmp_path / "new"),
        ("decide", tagger, rows, "-o", tmp_path / "new", "--target", "f1"),
        ("update", tagger, rows, "-o", tmp_path / "new"),
    )
    for command in commands:
        assert "is not signed: it has no manifest.sig." in run(*command, "--key", tmp_path / "team.pub", code=4)
    signed = json.loads(run("sign", tagger, "--key", tmp_path / "team", "--json"))
    assert signed["signature"] == str(tagger / "manifest.sig") and signed["model_folder"] == str(tagger)
    for command in commands[:7]:
        run(*command, "--key", tmp_path / "team.pub")
    assert "--key can only be used with MODEL" in run("audit", "--weights", rows, "--key", rows, code=2)


def test_every_file_is_told_of(run, tagger):
    said = run("verify", tagger)
    for name in ("manifest.json", "features.", "model.", "labels."):
        assert name in said
    assert said.count("digest ok, schema ok, cross-checks ok") == 2 and "is intact." in said
    records = json.loads(run("verify", tagger, "--json"))["files"]
    assert [record["ok"] for record in records] == [True] * 4
    assert {record["schema"] for record in records} == {True}


def test_a_model_with_digests_that_fit_and_arrays_that_do_not_is_damaged(run, tmp_path):
    model = lt.LabelTreeClassifier(max_leaf=4, branching=4).fit(EYE, EYE)
    model.chunks_[0].children[0] = 200
    folder = model.save(tmp_path / "m")
    assert "its chunks do not fit its tree" in run("verify", folder, code=4)
    records = json.loads(json_of(run, "verify", folder, "--json"))["files"]
    assert (records[1]["digest"], records[1]["schema"], records[1]["crosschecks"]) == (True, True, False)
    model.chunks_[0].features[0] = -1
    model.save(tmp_path / "m")
    records = json.loads(json_of(run, "verify", folder, "--json"))["files"]
    assert (records[1]["digest"], records[1]["schema"], records[1]["crosschecks"]) == (True, False, None)
    assert "must hold numbers from 0 to 29; it has -1" in records[1]["problem"]


def json_of(run, *args):
    """Return what a command that fails printed on stdout."""
    import contextlib
    import io

    from longtail.cli import main

    out = io.StringIO()
    with contextlib.redirect_stdout(out), pytest.raises(SystemExit):
        main([str(a) for a in args])
    return out.getvalue()


@pytest.mark.parametrize("missing", ["params", "kind"])
def test_a_part_without_kind_or_parameters_gets_one_sentence(run, tagger, missing):
    manifest = json.loads((tagger / "manifest.json").read_text())
    del manifest["parts"]["model"][missing]
    (tagger / "manifest.json").write_text(json.dumps(manifest))
    for command in ("inspect", "verify"):
        assert f"{missing}' is missing" in run(command, tagger, code=4)


def test_a_model_that_was_loaded_into_memory_does_not_need_its_files(tmp_path):
    X = np.random.default_rng(0).random((400, 900), dtype=np.float32)
    model = lt.OneVsAllClassifier(threshold=0).fit(X, EYE[np.arange(400) % 30])
    folder = model.save(tmp_path / "m")
    file = next(folder.glob("model.*"))
    loaded = lt.load(folder, in_memory=True)
    os.truncate(file, 0)
    assert np.array_equal(loaded.predict_topk(X[:5]).ids, model.predict_topk(X[:5]).ids)
    with pytest.raises(ModelError, match="is damaged: 0 bytes instead of"):
        lt.load(folder)


def test_a_small_model_survives_the_end_of_its_files(tagger):
    loaded = lt.load(tagger)
    for file in tagger.glob("*.safetensors"):
        os.truncate(file, 0)
    assert loaded.predict(["a red apple"]) == [("a",)]


def test_training_from_a_file_whose_name_is_no_utf8_keeps_the_model(run, tmp_path):
    name = os.fsdecode(os.fsencode(tmp_path) + b"/caf\xe9.jsonl")
    try:
        with open(name, "w") as file:  # noqa: PTH123 - the name is the point
            for text, label in (("red apple", "a"), ("blue car", "b")) * 5:
                file.write(json.dumps({"text": text, "labels": [label]}) + "\n")
    except OSError:
        pytest.skip("this system has no such names")
    run("train", name, "-o", tmp_path / "m")
    assert lt.load(tmp_path / "m").predict(["a car"]) == [("b",)]
    assert "caf" in run("inspect", tmp_path / "m")


def test_parameters_that_would_take_all_memory_are_refused(run, tagger):
    manifest = json.loads((tagger / "manifest.json").read_text())
    manifest["parts"]["features"]["params"]["ngrams"] = [1, 2**31]
    (tagger / "manifest.json").write_text(json.dumps(manifest))
    assert "'ngrams[1]' must be a whole number from 1 to 64" in run("predict", tagger, "x.txt", code=4)


@pytest.mark.parametrize("name", ["model.*", "manifest.json"])
def test_what_stands_in_place_of_a_file_is_told(tagger, name):
    file = next(tagger.glob(name))
    raw = file.read_bytes()
    for make, remove, sentence in (
        (lambda: os.mkfifo(file), file.unlink, "is not a regular file"),
        (file.mkdir, file.rmdir, "is a folder, not a file"),
        (lambda: file.symlink_to("nowhere"), file.unlink, "is a link that leads nowhere"),
        (lambda: file.symlink_to(file.name), file.unlink, "is a link that leads nowhere"),
    ):
        file.unlink(missing_ok=True)
        make()
        with pytest.raises(ModelError, match=rf"{file.name} {sentence}\.$"):
            lt.load(tagger)
        remove()
    with pytest.raises(ModelError, match=r"is missing\.$|has no manifest"):
        lt.load(tagger)
    (tagger.parent / "elsewhere").write_bytes(raw)
    file.symlink_to(tagger.parent / "elsewhere")  # a link to a file is as good as the file
    lt.load(tagger)


def test_a_key_that_stands_twice_in_a_manifest_is_refused(tagger):
    file = tagger / "manifest.json"
    text = file.read_text()
    file.write_text(text.replace('"seed": 0', '"seed": 0, "seed": 1'))
    with pytest.raises(ModelError, match=r"manifest\.json is damaged: the key 'seed' stands twice in one object\.$"):
        lt.load(tagger)


@pytest.mark.parametrize("version", [10**400, -(10**400)])
def test_a_version_of_hundreds_of_digits_gets_a_short_sentence(tagger, version):
    file = tagger / "manifest.json"
    file.write_text(json.dumps({**json.loads(file.read_text()), "version": version}))
    with pytest.raises(ModelError, match="a number of more than 70 digits") as refused:
        lt.load(tagger)
    assert len(str(refused.value)) < 300 + len(str(tagger))


@pytest.mark.parametrize("path", [5, None, "", b"model"])
def test_what_is_no_path_is_refused_by_its_name(path):
    with pytest.raises(ParameterError, match=r"^path must be the path of a model folder; got "):
        lt.load(path)


def test_a_path_that_is_too_long_gets_a_short_sentence(run, tagger):
    long = "a" * 5000
    for command in (("inspect", long), ("verify", long), ("predict", long, "x.txt")):
        said = run(*command, code=4)
        assert "cannot be read: File name too long." in said and len(said) < 300
    with pytest.raises(ModelError, match=r"cannot be written: File name too long\.$"):
        lt.load(tagger).save(long)
