"""A row store holds what was written, maps it back, and refuses everything that is not as it was written."""

import json
import os
import resource
import subprocess
import sys

import numpy as np
import pytest
import scipy.sparse as sp

import longtail as lt
from longtail.data import StoreWriter, fill_store, iter_texts, open_store, read, write
from longtail.data.row_store import manifest as manifest_module
from longtail.data.row_store import pieces
from longtail.errors import DataError
from longtail.validate import as_sparse

TEXTS = [f"text number {i} of töxts" for i in range(40)]
LABELS = [[f"label {i % 7}", f"odd {i % 3}"] if i % 5 else [] for i in range(40)]


@pytest.fixture
def small_pieces(monkeypatch):
    """Pieces of 64 KiB, so that arrays of a test have many."""
    for module in (pieces, manifest_module):
        monkeypatch.setattr(module, "PIECE_BYTES", 1 << 16)


def texts():
    return lt.Dataset.from_lists(TEXTS, LABELS, ids=[str(i) for i in range(40)], name="rows")


def features(n=3000, seed=0):
    rng = np.random.default_rng(seed)
    X = sp.random_array((n, 500), density=0.02, format="csr", dtype=np.float32, rng=rng)
    Y = sp.random_array((n, 90), density=0.03, format="csr", dtype=np.float32, rng=rng)
    return lt.Dataset(X=X, Y=Y, name="numbers")


def change(store, change_it):
    file = store / "store.json"
    manifest = json.loads(file.read_text())
    change_it(manifest)
    file.write_text(json.dumps(manifest))


@pytest.mark.parametrize("data", [texts(), features()], ids=["texts", "features"])
def test_what_is_written_comes_back(data, tmp_path):
    write(data, tmp_path / "rows.store")
    back = read(tmp_path / "rows.store")
    assert back.digest() == data.digest()
    assert (back.texts, back.ids, back.label_names, back.name) == (data.texts, data.ids, data.label_names, data.name)
    assert back.summary() == data.summary()
    rows = [3, 0, 17]
    assert back.take(rows).digest() == data.take(rows).digest()
    assert (back.Y != data.Y).nnz == 0


def test_arrays_of_many_files_are_one_mapped_array(tmp_path, small_pieces):
    data = features()
    with StoreWriter(tmp_path / "s.store", "numbers", piece_bytes=1 << 16) as store:
        fill_store(store, (data.take(slice(at, at + 100)) for at in range(0, 3000, 100)))
    opened = open_store(tmp_path / "s.store")
    assert len(opened.manifest["arrays"]["X.values"]["files"]) == 2
    assert opened.dataset().digest() == data.digest()
    assert not opened.arrays["X.values"].flags.writeable
    values = opened.arrays["X.values"][-5:]
    del opened
    assert np.array_equal(values, data.X.data[-5:])  # a part keeps the map alive


@pytest.mark.parametrize("given", [False, True], ids=["own labels", "list of labels"])
def test_blocks_of_a_file_make_the_store_of_the_whole_file(given, tmp_path):
    write(texts(), tmp_path / "rows.jsonl", labels_file=tmp_path / "labels.jsonl")
    listed = ["unused", *texts().label_names] if given else None
    with StoreWriter(tmp_path / "s.store", "rows") as store:
        store.label_names = listed
        fill_store(store, iter_texts(tmp_path / "rows.jsonl", 7, labels_column="labels", label_names=listed))
    assert (
        open_store(tmp_path / "s.store").dataset().digest()
        == read(tmp_path / "rows.jsonl", label_names=listed).digest()
    )


def test_a_store_is_replaced_whole_and_an_error_leaves_the_old_one(tmp_path):
    write(texts(), tmp_path / "s.store")
    before = sorted(file.name for file in (tmp_path / "s.store").iterdir())

    def broken():
        yield features().take(slice(0, 100))
        raise DataError("the file ends here")

    with pytest.raises(DataError, match="ends here"), StoreWriter(tmp_path / "s.store") as store:
        fill_store(store, broken())
    assert sorted(file.name for file in (tmp_path / "s.store").iterdir()) == before
    with pytest.raises(DataError, match="ends here"), StoreWriter(tmp_path / "new") as store:
        fill_store(store, broken())
    assert not (tmp_path / "new").exists()
    write(features(), tmp_path / "s.store")
    assert read(tmp_path / "s.store").digest() == features().digest()
    assert not {file.name for file in (tmp_path / "s.store").iterdir()} & set(before) - {"store.json"}


def test_two_writers_at_once_and_foreign_folders_are_refused(tmp_path):
    with StoreWriter(tmp_path / "s.store") as first:
        first.add_strings("texts", ["a"])
        with pytest.raises(DataError, match="is being written by another process"), StoreWriter(tmp_path / "s.store"):
            pass
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "mine.txt").write_text("x")
    with pytest.raises(DataError, match=r"holds other files \(mine.txt\)"):
        write(texts(), tmp_path / "other", "store")
    with pytest.raises(DataError, match="is a file; a row store is written as a folder"):
        write(texts(), tmp_path / "other" / "mine.txt", "store")


def test_rows_and_texts_must_be_as_many(tmp_path):
    with (
        pytest.raises(DataError, match="must have as many rows; got Y 1, texts 2"),
        StoreWriter(tmp_path / "s.store") as s,
    ):
        s.add_strings("texts", ["a", "b"])
        s.add_labels(sp.csr_array(np.eye(1, dtype=np.float32)))
    assert not (tmp_path / "s.store").exists()


def file_of(store, array):
    return next(file for file in store.iterdir() if file.name.startswith(array))


def test_damaged_files_are_refused_in_one_sentence(tmp_path):
    store = tmp_path / "s.store"
    write(features(), store)
    for array in ("X.features", "X.values", "X.pointers", "Y.labels"):
        file = file_of(store, array)
        sound = file.read_bytes()
        flipped = bytearray(sound)
        flipped[len(sound) // 2] ^= 1
        file.write_bytes(flipped)
        with pytest.raises(DataError, match=f"{file.name} is damaged: its digest does not match the manifest"):
            open_store(store)
        file.write_bytes(sound[:-4])
        with pytest.raises(DataError, match=f"is damaged: {len(sound) - 4} bytes instead of {len(sound)}"):
            open_store(store)
        file.unlink()
        with pytest.raises(DataError, match=f"{file.name} is missing"):
            open_store(store)
        os.mkfifo(file)
        with pytest.raises(DataError, match="is not a regular file"):
            open_store(store)
        file.unlink()
        file.write_bytes(sound)
    open_store(store)


@pytest.mark.parametrize(
    ("array", "entry", "value", "sentence"),
    [
        ("X.features", 7, 500, "it has the id 500, which is not from 0 to 499"),
        ("X.features", 7, -1, "it has the id -1"),
        ("Y.labels", 3, 90, "which is not from 0 to 89"),
        ("X.features", 1, 0, "is out of order"),
        ("X.values", 5, np.nan, "is not allowed"),
        ("X.values", 5, 0, "is not allowed"),
        ("Y.weights", 5, -1, "is not allowed"),
        ("X.pointers", 4, 2**62, "pointers do not fit"),
        ("X.pointers", 4, -5, "pointers do not fit"),
        ("X.pointers", 0, 3, "pointers of X do not fit"),
    ],
)
def test_entries_that_lead_out_of_an_array_are_found_whatever_the_digests_say(tmp_path, array, entry, value, sentence):
    store = tmp_path / "s.store"
    write(features(), store)
    file = file_of(store, array)
    dtype = {**manifest_module.NUMBER_TYPES, **manifest_module.LABEL_TYPES}[array]
    changed = np.fromfile(file, dtype=dtype)
    changed[entry] = value
    changed.tofile(file)
    digest = pieces.digest_of(changed.view(np.uint8))
    change(store, lambda m: m["files"][file.name].update(sha256=digest))
    with pytest.raises(DataError, match=sentence):
        open_store(store)
    with pytest.raises(DataError, match=sentence):
        open_store(store, verify=False)


@pytest.mark.parametrize(
    ("change_it", "sentence"),
    [
        (lambda m: m.update(version=2), "has version 2 of the row store; this longtail reads up to 1"),
        (lambda m: m.update(format="other"), "is not the manifest of a row store"),
        (lambda m: m.update(rows=0), "'rows' must be"),
        (lambda m: m.update(rows=41), "do not fit"),
        (lambda m: m.update(labels=5), "which is not from 0 to 4"),
        (lambda m: m.update(more=1), "'more' is not known"),
        (lambda m: m["arrays"].pop("Y.labels"), "belongs to no array"),
        (lambda m: m["arrays"]["Y.labels"].update(dtype="float32"), "are not those of sparse rows"),
        (lambda m: m["arrays"]["Y.labels"].update(dtype="object"), "has the type"),
        (lambda m: m["arrays"]["Y.labels"].update(entries=7), "have not the bytes of its 7 entries"),
        (lambda m: m["arrays"]["Y.labels"].update(files=["../../etc/passwd"]), "is not listed"),
    ],
)
def test_a_manifest_that_does_not_fit_is_refused(tmp_path, change_it, sentence):
    write(texts(), tmp_path / "s.store")
    change(tmp_path / "s.store", change_it)
    with pytest.raises(DataError, match=sentence):
        open_store(tmp_path / "s.store")


def test_features_that_are_damaged_are_refused_by_the_name_of_the_store(tmp_path, run):
    path = tmp_path / "rows.store"
    rows = [json.dumps({"text": text, "labels": labels}) for text, labels in zip(TEXTS, LABELS)]
    (tmp_path / "rows.jsonl").write_text("\n".join(rows))
    run("convert", tmp_path / "rows.jsonl", "-o", path)
    manifest = json.loads((path / "store.json").read_text())
    for params, sentence in (
        ({**manifest["text_features"], "kind": "x"}, "has features of the kind 'x', not TF-IDF."),
        ({**manifest["text_features"], "params": {}}, "cannot be used: the part 'tfidf.v1' is damaged"),
    ):
        (path / "store.json").write_text(json.dumps({**manifest, "text_features": params}))
        told = run("train", path, "-o", tmp_path / "model", code=3)
        assert "the row store 'rows' " in told and sentence in told and not (tmp_path / "model").exists()


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs named pipes")
def test_a_manifest_that_is_a_pipe_is_refused(tmp_path):
    (tmp_path / "rows.store").mkdir()
    os.mkfifo(tmp_path / "rows.store" / "store.json")
    with pytest.raises(DataError, match=r"store\.json is no file\."):
        open_store(tmp_path / "rows.store")


def test_strings_that_are_none_are_refused(tmp_path):
    store = tmp_path / "s.store"
    write(texts(), store)
    sound = {file: file.read_bytes() for file in store.iterdir()}
    label_names = file_of(store, "label_names.bytes")
    for raw, sentence in (
        (b"label 1" + sound[label_names][7:], "'label 1' stands there twice"),
        (b"\xff" + sound[label_names][1:], "label_names: it is not UTF-8"),
    ):
        label_names.write_bytes(raw)
        with pytest.raises(DataError, match=sentence):
            open_store(store, verify=False)
    label_names.write_bytes(sound[label_names])
    offsets = file_of(store, "texts.offsets")
    ends = np.fromfile(offsets, dtype=np.int64)
    ends[3] = ends[4] + 1
    ends.tofile(offsets)
    with pytest.raises(DataError, match="texts: the offsets do not fit"):
        open_store(store, verify=False)


def test_a_full_disk_is_one_sentence_and_leaves_nothing(tmp_path):
    write(features(), tmp_path / "rows.npz")
    program = (
        "import resource, sys\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (50_000, 50_000))\n"
        "from longtail.cli import main\n"
        "sys.exit(main(['convert', sys.argv[1], '-o', sys.argv[2]]))\n"
    )
    assert resource.getrlimit(resource.RLIMIT_FSIZE)  # on this system there are such limits
    ran = subprocess.run(
        [sys.executable, "-c", program, str(tmp_path / "rows.npz"), str(tmp_path / "s.store")],
        capture_output=True,
        text=True,
    )
    assert ran.returncode == 3
    assert ran.stderr.strip().splitlines()[-1] == f"error: {tmp_path / 's.store'} cannot be written: File too large."
    assert sorted(file.name for file in tmp_path.iterdir()) == ["rows.npz"]


def test_nothing_of_a_store_is_copied(tmp_path, small_pieces):
    with StoreWriter(tmp_path / "s.store", piece_bytes=1 << 16) as store:
        fill_store(store, iter([features()]))
    opened = open_store(tmp_path / "s.store")
    data = opened.dataset()
    for array, name in ((data.X.data, "X.values"), (as_sparse(data.X).indices, "X.features")):
        assert np.shares_memory(array, opened.arrays[name])
