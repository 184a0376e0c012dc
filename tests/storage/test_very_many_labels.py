"""Labels as mapped arrays, saving in blocks, and models that are checked once on a machine."""

import json
import os
import shutil
import time

import numpy as np
import pytest
from safetensors.numpy import save

import longtail as lt
from longtail.errors import ModelError, ParameterError
from longtail.pipeline import tagger as tagger_module
from longtail.storage import LabelColumns, MappedStrings, checked_before, reading
from longtail.storage.arrays import DTYPES, arrays_to_blocks

TEXTS, LABELS = ["red äpfel", "old car"] * 40, [["frücht", "red"], ["vehicle"]] * 40


@pytest.fixture
def model(tmp_path, monkeypatch):
    """A model whose labels are arrays, in a folder that was saved long ago, for a user with a new cache folder."""
    monkeypatch.setattr(tagger_module, "MANY_LABELS", 1)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(checked_before, "JUST_NOW", 0)
    return (
        lt.Tagger(random_state=0)
        .fit(TEXTS, LABELS, label_texts=["fruit", "a colour", "it drives"])
        .save(tmp_path / "model")
    )


def test_label_columns_are_the_labels(model):
    assert json.loads((model / "manifest.json").read_text())["version"] == 2
    loaded = lt.load(model)
    assert isinstance(loaded.labels_, MappedStrings) and loaded.labels_ == ("frücht", "red", "vehicle")
    assert loaded.label_texts_ == ("fruit", "a colour", "it drives")
    assert loaded.predict(["an old car"]) == [("vehicle",)]
    assert loaded.tag(["red äpfel"], k=1, allow=["frücht"])[0][0].label == "frücht"
    before = {file.name: file.read_bytes() for file in model.iterdir()}
    loaded.save(model)
    assert {file.name: file.read_bytes() for file in model.iterdir()} == before
    assert loaded.partial_fit(["a tall tree"] * 3, [["plant"]] * 3).labels_ == ("frücht", "red", "vehicle", "plant")


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (lambda a: a.pop("counts"), "it has not the arrays of labels"),
        (lambda a: a.update(more=np.zeros(1)), "it has not the arrays of labels"),
        (lambda a: a.update(counts=np.array([1, -1, 1])), "are not whole numbers from 0"),
        (lambda a: a.update(counts=np.array([1, 1])), "the names of labels: the offsets do not fit"),
        (lambda a: a["names.offsets"].__setitem__(1, 99), "the offsets do not fit"),
        (lambda a: a["names.bytes"].__setitem__(2, 0xFF), "it is not UTF-8"),
        (lambda a: a["names.offsets"].__setitem__(1, 3), "it is not UTF-8"),
        (lambda a: a["texts.offsets"].__setitem__(3, 0), "the texts of labels: the offsets do not fit"),
    ],
)
def test_damaged_label_columns_are_refused(model, change, sentence):
    arrays = LabelColumns(
        MappedStrings.of(["frücht", "red", "vehicle"]), np.array([40, 40, 40]), MappedStrings.of(["a", "b", "c"])
    ).arrays()
    arrays = {name: array.copy() for name, array in arrays.items()}
    change(arrays)
    manifest = json.loads((model / "manifest.json").read_text())
    raw = b"".join(arrays_to_blocks(arrays))
    manifest["files"][manifest["labels"]]["bytes"] = len(raw)
    (model / manifest["labels"]).write_bytes(raw)
    (model / "manifest.json").write_text(json.dumps(manifest))
    with pytest.raises(ModelError, match=sentence):
        lt.load(model, verify=False)


def test_files_are_those_of_the_safetensors_library():
    rng = np.random.default_rng(0)
    for n in range(30):
        types = rng.permutation(list(DTYPES.values()))[: n % 13]
        arrays = {f"{'é' * (i % 2)}{i}": rng.integers(0, 2, size=(i, 3)).astype(t) for i, t in enumerate(types)}
        assert b"".join(arrays_to_blocks(arrays)) == save(arrays)


@pytest.fixture
def digests(monkeypatch):
    """The files whose digests are computed."""
    computed = []

    def counted(file, raw, entry):
        computed.append(file.name)
        return whole(file, raw, entry)

    whole = reading._check_digest
    monkeypatch.setattr(reading, "_check_digest", counted)
    return computed


def test_a_model_is_checked_once(model, digests):
    first = lt.load(model, verify="once")
    assert len(digests) == len(list(model.iterdir())) - 1
    digests.clear()
    again = lt.load(model, verify="once")
    assert digests == []
    assert again.predict(TEXTS) == first.predict(TEXTS)
    lt.load(model)  # as ever
    assert digests


def test_other_words_for_verify_are_refused(model):
    for wrong in ("sometimes", None, 1):
        with pytest.raises(ParameterError, match=f"verify must be True, False or 'once'; got {wrong!r}"):
            lt.load(model, verify=wrong)


def damage(model):
    file = next(model.glob("model.*"))
    times = file.stat()
    raw = bytearray(file.read_bytes())
    raw[-1] ^= 1
    file.write_bytes(raw)
    os.utime(file, ns=(times.st_atime_ns, times.st_mtime_ns))  # as one who hides a change would do


def test_a_file_that_was_touched_is_checked_again(model):
    lt.load(model, verify="once")
    time.sleep(0.05)  # the clock of the file system ticks a hundred times a second or more
    damage(model)
    with pytest.raises(ModelError, match="its digest does not match the manifest"):
        lt.load(model, verify="once")


def test_a_copy_a_new_file_and_notes_of_others_are_not_trusted(model, tmp_path, digests, monkeypatch):
    lt.load(model, verify="once")
    shutil.copytree(model, tmp_path / "copy")
    digests.clear()
    lt.load(tmp_path / "copy", verify="once")
    assert digests
    lt.load(model, verify="once")  # the note is that of the copy now
    digests.clear()
    note = next((tmp_path / "cache" / "longtail" / "checked").iterdir())
    note.chmod(0o666)
    lt.load(model, verify="once")
    assert digests
    monkeypatch.setattr(checked_before, "JUST_NOW", 10**15)
    note.unlink()
    lt.load(model, verify="once")
    assert not note.exists()  # a file that new may change again without a trace
