"""The front door: guessing formats, npz files, atomic writing."""

import os
import re

import numpy as np
import pytest
import scipy.sparse as sp

from longtail.data import FORMATS, iter_texts, read, write
from longtail.data.dataset import Dataset
from longtail.data.formats.files import replacing
from longtail.data.formats.guess_format import guess_format
from longtail.data.formats.records import Batch
from longtail.data.formats.registry import REGISTRY, Format
from longtail.errors import DataError, ParameterError


def put(folder, text, name):
    path = folder / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def refused(path, reader=read, **options):
    with pytest.raises(DataError) as caught:
        reader(path, **options)
    return str(caught.value).replace(str(path), path.name)


@pytest.fixture
def data():
    return Dataset(
        Y=sp.csr_array(np.array([[1, 0, 1], [0, 0, 0], [0, 1, 0]], dtype=np.float32)),
        X=sp.csr_array(np.array([[0, 1.5], [0.1, 0], [0, 0]], dtype=np.float32)),
        texts=("a", "b", "c"),
        ids=("1", "2", "3"),
        label_names=("x", "y", "z"),
        label_texts=("ex", "why", "zed"),
        groups=sp.csr_array(np.array([[1], [0], [1]], dtype=np.float32)),
        group_names=("g",),
    )


@pytest.mark.parametrize(
    ("name", "text", "expected"),
    [
        ("a.jsonl.gz", None, ("jsonl", "name")),
        ("a.CSV", None, ("csv", "name")),
        ("a.parquet", None, ("parquet", "name")),
        ("a.txt", "3 4 5\n0 1:2\n", ("xmc", "first line")),
        ("a.txt", "0,1 1:2 3:4\n", ("libsvm", "first line")),
        ("a.txt", " 1:2\n", ("libsvm", "first line")),
        ("a.txt", "__label__a text\n", ("fasttext", "first line")),
        ("a.txt", '{"text": "a"}\n', ("jsonl", "first line")),
        ("a.txt", "Meet at 10:30 today\n", ("lines", "first line")),
        ("a.json", '{"text": "a"}\n', ("jsonl", "first line")),
        ("a", "\n3 4 5\n", ("xmc", "first line")),
    ],
)
def test_formats_are_guessed(tmp_path, name, text, expected):
    path = tmp_path / name if text is None else put(tmp_path, text, name)
    assert guess_format(path) == expected


def test_what_cannot_be_guessed_is_said(tmp_path):
    sentence = refused(put(tmp_path, "hello\n", "notes.docx"))
    start = "notes.docx: neither its name nor its first line tells the format; pass format=, one of ["
    assert sentence.startswith(start)
    sentence = refused(put(tmp_path, "[1, 2]", "a.json"))
    assert sentence == "a.json is a JSON array; write one object per line (JSONL) instead."
    assert refused(tmp_path).endswith(
        "the known layouts: it has no trn.json, no *_trn_split.txt, no *.txt beside *.tsv or *.key, "
        "no store.json and no X.npz."
    )
    assert refused(put(tmp_path, "PK", "rows.xlsx")) == (
        "rows.xlsx is a spreadsheet's own format; save it as CSV in the spreadsheet program."
    )
    with pytest.raises(ParameterError, match=r"format must be one of .* got 'jsnol'\. Did you mean 'jsonl'\?"):
        read(put(tmp_path, "x", "x"), format="jsnol")
    assert refused(put(tmp_path, "0 1:2\n1 2:x\n", "a.txt")) == (
        "a.txt line 2: the value of feature 2 must be a number; got 'x' "
        "(read as 'libsvm', guessed from its first line; pass format= to change that)."
    )
    assert refused(tmp_path / "missing.jsonl") == "missing.jsonl does not exist."
    assert refused(put(tmp_path, "", "empty.txt")) == "empty.txt is empty."


def test_the_list_of_formats_is_complete():
    assert list(FORMATS) == list(REGISTRY)
    assert all(FORMATS.values())
    for name, found in REGISTRY.items():
        assert (found.batches is None) != (found.read is None), name


def test_one_entry_in_the_registry_adds_a_format(tmp_path, monkeypatch):
    def batches(path, options):
        rows = [line.split("|") for line in path.read_text().splitlines()[1:]]
        yield Batch(range(2, len(rows) + 2), [text for text, _ in rows], [labels.split() for _, labels in rows])

    def write_bars(dataset, path, columns):
        rows = (f"{text}|{' '.join(dataset.labels_of(row))}\n" for row, text in enumerate(dataset.texts))
        path.write_text("%bars\n" + "".join(rows))

    entry = Format(
        "text|labels", (".bars",), first_line=re.compile(rb"%bars"), batches=batches, write=write_bars, keeps=("texts",)
    )
    monkeypatch.setitem(REGISTRY, "bars", entry)
    data = Dataset.from_lists(["a red apple", "a blue car"], [["fruit", "red"], ["car"]], ids=["1", "2"])
    facts = write(data, tmp_path / "rows.bars")
    assert (facts["format"], facts["left_out"]) == ("bars", ["ids", "label_names"])
    (tmp_path / "rows").write_bytes((tmp_path / "rows.bars").read_bytes())
    assert guess_format(tmp_path / "rows") == ("bars", "first line")
    for path, format in ((tmp_path / "rows.bars", None), (tmp_path / "rows", None), (tmp_path / "rows", "bars")):
        again = read(path, format)
        assert (again.texts, again.label_names, again.labels_of(0)) == (data.texts, data.label_names, ("fruit", "red"))
    assert [batch.texts for batch in iter_texts(tmp_path / "rows.bars", 1)] == [("a red apple",), ("a blue car",)]


def test_npz_keeps_everything(tmp_path, data):
    facts = write(data, tmp_path / "all.npz")
    assert facts["left_out"] == []
    again = read(tmp_path / "all.npz")
    assert again.digest() == data.digest()
    assert (again.ids, again.group_names) == (data.ids, data.group_names)
    dense = Dataset(X=np.eye(2, dtype=np.float32), Y=sp.csr_array(np.array([[0.5, 0], [0, 2]], dtype=np.float32)))
    write(dense, tmp_path / "dense.npz")
    assert read(tmp_path / "dense.npz").digest() == dense.digest()
    first = (tmp_path / "dense.npz").read_bytes()
    write(dense, tmp_path / "dense.npz")
    assert (tmp_path / "dense.npz").read_bytes() == first


def test_npz_pairs_and_plain_arrays(tmp_path, data):
    sp.save_npz(tmp_path / "X.npz", sp.csr_matrix(data.X))
    sp.save_npz(tmp_path / "Y.npz", sp.coo_matrix(data.Y.toarray()))
    for path in (tmp_path, tmp_path / "X.npz"):
        found = read(path, label_names=["x", "y", "z"])
        assert (found.X != data.X).nnz == 0
        assert (found.Y != data.Y).nnz == 0
        assert found.label_names == ("x", "y", "z")
    np.savez(tmp_path / "both.npz", X=np.ones((2, 3)), Y=np.eye(2))
    assert read(tmp_path / "both.npz").X.shape == (2, 3)
    np.savez(tmp_path / "other.npz", A=np.ones(2))
    assert refused(tmp_path / "other.npz") == "other.npz has no arrays 'X' and 'Y'; it has: A."
    (tmp_path / "Y.npz").unlink()
    assert refused(tmp_path / "X.npz") == "X.npz has no labels: it has no array 'Y', and there is no Y.npz beside it."


def test_npz_is_not_trusted(tmp_path, data):
    np.savez(tmp_path / "evil.npz", X=np.array([{}], dtype=object), Y=np.eye(2))
    assert refused(tmp_path / "evil.npz") == "evil.npz holds pickled objects, which are not loaded: they can run code."
    write(data, tmp_path / "all.npz")
    raw = (tmp_path / "all.npz").read_bytes()
    assert refused(put(tmp_path, raw[:-50], "cut.npz")) == "cut.npz is truncated or damaged."
    assert refused(put(tmp_path, b"junk" * 30, "junk.npz")) in (
        "junk.npz is truncated or damaged.",
        "junk.npz holds pickled objects, which are not loaded: they can run code.",  # numpy takes it for a pickle
    )
    assert refused(put(tmp_path, b"", "empty.npz")) == "empty.npz is empty."
    arrays = dict(np.load(tmp_path / "all.npz"))
    arrays["Y.indices"] = arrays["Y.indices"] + 1000
    np.savez(tmp_path / "bounds.npz", **arrays)
    assert refused(tmp_path / "bounds.npz") == "bounds.npz: the sparse matrix 'Y' is damaged."


def test_writing_says_what_is_left_out_and_refuses_weights(tmp_path, data):
    facts = write(data, tmp_path / "rows.txt")
    assert facts["format"] == "xmc"
    assert facts["left_out"] == ["texts", "ids", "label_names", "label_texts", "groups", "group_names"]
    assert write(data, tmp_path / "rows.jsonl")["left_out"] == ["X", "label_texts"]
    facts = write(data, tmp_path / "rows.jsonl", labels_file=tmp_path / "labels.jsonl")
    assert facts["left_out"] == ["X"]
    assert read(tmp_path / "rows.jsonl", labels_file=tmp_path / "labels.jsonl").label_texts == data.label_texts
    weighted = Dataset(X=data.X, Y=data.Y * 0.5)
    with pytest.raises(DataError) as caught:
        write(weighted, tmp_path / "w.txt")
    assert str(caught.value) == "Y holds label weights other than 1, which the format 'xmc' cannot keep; use 'npz'."
    for name, needs in (("rows.jsonl", "texts"), ("rows.csv", "texts"), ("rows.ft", "texts"), ("r.parquet", "texts")):
        with pytest.raises(DataError, match=f"the data has no {needs}"):
            write(Dataset(X=data.X, Y=data.Y), tmp_path / name)
    for name in ("rows.txt", "rows.svm"):
        with pytest.raises(DataError, match="the data has no features"):
            write(Dataset(texts=data.texts, Y=data.Y), tmp_path / name)


def test_where_one_cannot_write(tmp_path, data):
    with pytest.raises(DataError, match="its name does not tell the format to write; pass format="):
        write(data, tmp_path / "rows.docx")
    with pytest.raises(DataError, match=r"rows.txt cannot be written: the folder .*deep does not exist\."):
        write(data, tmp_path / "deep" / "rows.txt")
    with pytest.raises(DataError, match="is a folder; choose the name of a file"):
        write(data, tmp_path, "xmc")
    with pytest.raises(ParameterError, match="format must be one of"):
        write(data, tmp_path / "a", "lines")


@pytest.mark.parametrize("suffix", ["", ".gz", ".xz", ".bz2"])
def test_an_interrupted_write_leaves_the_old_file(tmp_path, suffix):
    path = put(tmp_path, "old", f"rows.txt{suffix}")
    with pytest.raises(RuntimeError), replacing(path) as file:
        file.write(b"half of it")
        raise RuntimeError
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.skipif(os.name != "posix", reason="needs file locks")
def test_what_a_killed_writer_left_is_removed_by_the_next_and_that_of_a_living_one_is_not(tmp_path):
    path, other = tmp_path / "rows[1].txt", tmp_path / ".rows[1].txt.x.2.tmp"
    (tmp_path / ".rows[1].txt.1.tmp").write_text("half of it")
    (tmp_path / "precious").write_text("kept")
    (tmp_path / f".rows[1].txt.{os.getpid()}.tmp").symlink_to(tmp_path / "precious")
    with replacing(path) as living:
        living.write(b"whole")
        held = tmp_path / f".rows[1].txt.{os.getpid()}.tmp"
        held.rename(other)  # as if another process wrote it
        with replacing(path) as second:
            second.write(b"second")
        assert path.read_text() == "second" and other.exists()
        other.rename(held)
    assert path.read_text() == "whole" and (tmp_path / "precious").read_text() == "kept"
    assert sorted(file.name for file in tmp_path.iterdir()) == ["precious", "rows[1].txt"]


def test_matrices_cannot_be_walked_through(tmp_path, data):
    write(data, tmp_path / "all.npz")
    with pytest.raises(DataError, match="has the format 'npz', which cannot be read row by row; use one of"):
        iter_texts(tmp_path / "all.npz")


@pytest.mark.parametrize("format", ["jsonl", "csv", "tsv", "fasttext", "annif"])
def test_texts_come_with_their_labels_block_by_block(tmp_path, format):
    data = Dataset.from_lists([f"text {i}" for i in range(7)], [["a", "b"], ["b"], [], ["c"], ["a"], ["b"], ["c", "a"]])
    if format == "annif":  # every row must have a subject there
        data = data.take([0, 1, 3, 4, 5, 6])
    write(data, tmp_path / "rows.x", format)
    parts = list(iter_texts(tmp_path / "rows.x", 2, format, labels_column="labels"))
    found = [part.labels_of(row) for part in parts for row in range(part.n_rows)]
    assert found == [data.labels_of(row) for row in range(data.n_rows)]
    assert all(part.n_labels == 0 for part in iter_texts(tmp_path / "rows.x", 2, format))
    names = ["c", "b", "a"]
    assert {
        part.label_names
        for part in iter_texts(tmp_path / "rows.x", 2, format, labels_column="labels", label_names=names)
    } == {("c", "b", "a")}


def test_a_streamed_label_that_is_not_listed_is_refused_by_its_line(tmp_path):
    path = put(tmp_path, '{"text": "x", "labels": ["a"]}\n{"text": "y", "labels": ["b"]}\n', "r.jsonl")
    batches = iter_texts(path, 1, labels_column="labels", label_names=["a"])
    with pytest.raises(DataError, match=r"line 2: the label 'b' is not in the list of labels"):
        list(batches)


def test_streamed_labels_by_number_have_the_names_of_the_list(tmp_path):
    path = put(tmp_path, "2 3 2\n0 0:1\n1 1:1\n", "r.xmc")
    (part,) = iter_texts(path, labels_column="labels", label_names=["a", "b", "c"])
    assert part.labels_of(1) == ("b",) and part.n_labels == 3
    with pytest.raises(DataError, match="has 2 labels; the list of labels has 1"):
        list(iter_texts(path, label_names=["a"]))
