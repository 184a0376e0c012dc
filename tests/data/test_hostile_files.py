"""Files that no honest program wrote: each is one sentence, none is read as something else."""

import csv
import json
import threading
import time

import numpy as np
import pytest
import scipy.sparse as sp

import longtail as lt
from longtail.audit import layer_from_file
from longtail.data import read
from longtail.data.formats.csv_table import FIELD_LIMIT
from longtail.errors import DataError


def test_lines_that_are_json_only_together_are_refused(tmp_path):
    lines = ['{"text": "a"},{"text": "b", "labels": [{"x": 1}', '{"y": 2}]}']
    assert len(json.loads("[" + ",".join(lines) + "]")) == 2  # as many objects as lines
    (tmp_path / "a.jsonl").write_text("\n".join(lines) + "\n")
    with pytest.raises(DataError, match=r"a.jsonl line 1 is not JSON: Extra data"):
        read(tmp_path / "a.jsonl")


def test_a_number_with_too_many_digits_is_said_to_be_one(tmp_path):
    (tmp_path / "a.jsonl").write_text('{"text": "a", "n": ' + "9" * 5000 + "}\n")
    with pytest.raises(DataError, match=r"a.jsonl line 1 is not JSON: a number has too many digits"):
        read(tmp_path / "a.jsonl")


def test_a_fasttext_line_with_many_labels_takes_linear_time(tmp_path):
    labels = " ".join(f"__label__{i}" for i in range(100_000))
    (tmp_path / "a.ft").write_text(f"  {labels} some words\n")
    started = time.process_time()
    data = read(tmp_path / "a.ft")
    assert time.process_time() - started < 3  # the quadratic way took 7 seconds
    assert data.n_labels == 100_000 and data.texts == ("some words",)


@pytest.mark.parametrize(
    ("line", "text", "labels"),
    [
        ("__label__a __label__b x y", "x y", ["a", "b"]),
        ("__label__a", "", ["a"]),
        ("\t __label__a\u00a0__label__b x", "x", ["a", "b"]),
        ("x __label__a y", "x y", ["a"]),
        ("__label__a x  y", "x  y", ["a"]),
        ("no labels", "no labels", []),
    ],
)
def test_labels_of_a_fasttext_line(tmp_path, line, text, labels):
    (tmp_path / "a.ft").write_text(line + "\n", encoding="utf-8")
    data = read(tmp_path / "a.ft", label_names=["a", "b"])
    assert data.texts == (text,) and list(data.labels_of(0)) == labels


@pytest.mark.parametrize("value", ["0." + "0" * 100_000 + "1e200000", "1" + "0" * 100_000 + "e-1", "1e99999999999999"])
def test_an_exponent_beyond_all_digits_is_not_made_up_for_by_them(tmp_path, value):
    (tmp_path / "a.xmc").write_text(f"1 2 1\n0 1:{value}\n")
    with pytest.raises(DataError, match=r"line 2: the value of feature 1 must be a finite float32"):
        read(tmp_path / "a.xmc")


def test_an_exponent_that_zeros_make_up_for_is_read(tmp_path):
    (tmp_path / "a.xmc").write_text(f"1 2 1\n0 0:0.{'0' * 150_000}15e150001 1:{'1' + '0' * 150_000}e-150000\n")
    assert read(tmp_path / "a.xmc").X.toarray().tolist() == [[1.5, 1.0]]


def test_the_limit_on_cells_of_the_process_is_as_before_after_concurrent_reads(tmp_path):
    (tmp_path / "a.csv").write_text("text,labels\n" + "some words,a;b\n" * 20_000)
    before = csv.field_size_limit()
    threads = [threading.Thread(target=read, args=(tmp_path / "a.csv",)) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert csv.field_size_limit() == before != FIELD_LIMIT


@pytest.mark.parametrize("kind", ["csr", "csc", "coo", "dia", "bsr"])
def test_every_format_of_scipy_is_audited_as_the_matrix_it_is(tmp_path, kind):
    W = np.array([[1, 0, 0], [0, 2, 0], [5, 0, 3]], np.float64)
    sp.save_npz(tmp_path / "W.npz", sp.csr_array(W).asformat(kind))
    assert np.array_equal(layer_from_file(tmp_path / "W.npz")[0].toarray(), W)


def _raw_folder(folder, **row):
    (folder / "lbl.json").write_text('{"uid": "l0", "title": "a"}\n')
    (folder / "trn.json").write_text(json.dumps({"uid": "r0", "title": "t", "target_ind": [0], **row}) + "\n")


@pytest.mark.parametrize("weight", [10**400, 1e39, -1])
def test_weights_of_a_raw_folder_fit_float32(tmp_path, weight):
    _raw_folder(tmp_path, target_rel=[weight])
    with pytest.raises(DataError, match=r"trn.json line 1: 'target_rel' must hold numbers from 0 to 3.40282e\+38; got"):
        read(tmp_path)


def test_parquet_that_no_honest_program_wrote(tmp_path):
    pa = pytest.importorskip("pyarrow")
    pq = pytest.importorskip("pyarrow.parquet")
    file = tmp_path / "a.parquet"
    texts = pa.array(["a", "b"])
    pq.write_table(pa.table([texts, texts], names=["text", "text"]), file)
    with pytest.raises(DataError, match=r"a.parquet has the column 'text' 2 times"):
        read(file)
    broken = _not_utf8(pa)
    pq.write_table(pa.table({"text": broken, "labels": texts}), file)
    with pytest.raises(DataError, match=r"a.parquet row 2: 'text' is not UTF-8"):
        read(file)
    days = pa.array([0, 2**40], pa.int64()).cast(pa.timestamp("s"))
    pq.write_table(pa.table({"text": texts, "labels": days}), file, version="2.6")
    with pytest.raises(DataError, match=r"a.parquet row \d: 'labels' (holds a value out of range|must be a name)"):
        read(file)


def _not_utf8(pa):
    """Return an array of strings of which the second is not UTF-8."""
    raw = pa.array([b"fine", b"\xff\xfe"], pa.binary())
    return pa.Array.from_buffers(pa.string(), 2, raw.buffers())


def test_a_packed_parquet_file_is_neither_written_nor_read(tmp_path):
    pytest.importorskip("pyarrow")
    data = lt.Dataset.from_lists(["a"], [["x"]])
    with pytest.raises(DataError, match=r"Parquet is compressed already; name the file a.parquet"):
        lt.data.write(data, tmp_path / "a.parquet.gz")
    assert not list(tmp_path.iterdir())
    (tmp_path / "a.parquet.gz").write_bytes(b"x")
    with pytest.raises(DataError, match=r"is a packed Parquet file"):
        read(tmp_path / "a.parquet.gz")


def test_an_array_file_that_cannot_be_read_is_a_sentence(tmp_path):
    (tmp_path / "W.npy").mkdir()
    with pytest.raises(DataError, match=r"W.npy is no file"):
        layer_from_file(tmp_path / "W.npy")
    (tmp_path / "V.npy").write_bytes(b"\x93NUMPY\x01\x00\x76\x00{'descr': '<f8', 'fortran_order': False, 'shape': (9")
    with pytest.raises(DataError, match=r"V.npy is not a readable .npy file"):
        layer_from_file(tmp_path / "V.npy")


def test_a_value_of_a_parquet_dictionary_counts_as_often_as_it_is_meant(tmp_path):
    pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    texts = pa.array(["a" * 1000] * 20_000).dictionary_encode()
    pq.write_table(pa.table({"text": texts, "labels": ["x"] * 20_000}), tmp_path / "rows.parquet")
    with pytest.raises(DataError, match=r"more bytes when unpacked than 1000000, the limit for unpacked_bytes"):
        lt.data.read(tmp_path / "rows.parquet", limits=lt.data.Limits(unpacked_bytes=10**6))
