"""Limits: what is over one is refused in a sentence that names it, and can be raised; bombs stop while they unpack."""

import bz2
import dataclasses
import gzip
import io
import json
import lzma
import tracemalloc
import zipfile
import zlib
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp

import longtail as lt
from longtail.audit import read_layer
from longtail.data import Limits, iter_texts, parse_limits, read, read_label_sets, read_labels
from longtail.errors import DataError, ParameterError

FILES = {
    "rows": ("a.jsonl", '{"text": "a", "labels": ["x"]}\n' * 3, 2),
    "rows of libsvm": ("a.svm", "0 1:1\n" * 3, 2),
    "rows of xmc": ("a.xmc", "3 2 2\n0 1:1\n0 1:1\n0 1:1\n", 2),
    "features": ("a.svm", "0 1:1 9:1\n", 8),
    "labels": ("a.xmc", "1 2 9\n0 1:1\n", 8),
    "labels of libsvm": ("a.svm", "8 1:1\n", 8),
    "row_labels": ("a.csv", "text,labels\na,x;y;z\n", 2),
    "row_labels of xmc": ("a.xmc", "1 2 9\n0,1,2 1:1\n", 2),
    "row_labels of fasttext": ("a.ft", "__label__a __label__b __label__c word\n", 2),
    "label_characters": ("a.jsonl", '{"text": "a", "labels": ["abc", "abcd"]}\n', 3),
    "text_characters": ("a.csv", "text,labels\nabcd,x\n", 3),
    "line_bytes": ("a.jsonl", '{"text": "a", "labels": ["x"]}\n', 20),
    "line_bytes of the last line": ("a.jsonl", '{"text": "a", "labels": ["x"]}', 20),
    "table_columns": ("a.csv", "text,labels,other\na,x,y\n", 2),
    "json_depth": ("a.jsonl", '{"text": "a", "labels": ["x"], "more": {"a": [{"b": 1}]}}\n', 3),
}


@pytest.mark.parametrize("case", FILES)
def test_what_is_over_a_limit_is_refused_by_its_name_and_read_once_it_is_raised(tmp_path, case):
    name, content, most = FILES[case]
    limit = case.split()[0]
    (tmp_path / name).write_text(content)
    with pytest.raises(
        DataError, match=rf"{name}.* has more .* than {most}, the limit for {limit}; raise it with"
    ) as e:
        read(tmp_path / name, limits=Limits(**{limit: most}))
    assert f"limits=Limits({limit}=" in str(e.value)
    assert read(tmp_path / name, limits=Limits(**{limit: 10 * most})).n_rows > 0


def test_defaults_allow_long_documents_and_many_labels_of_a_row(tmp_path):
    many = [f"label {i}" for i in range(100_000)]
    (tmp_path / "a.jsonl").write_text(json.dumps({"text": "word " * 1_000_000, "labels": many}) + "\n")
    data = read(tmp_path / "a.jsonl")
    assert data.n_labels == 100_000 and len(data.texts[0]) == 5_000_000


PACKERS = {".gz": gzip.compress, ".xz": lzma.compress, ".bz2": bz2.compress}


@pytest.mark.parametrize("suffix", PACKERS)
def test_a_bomb_stops_while_it_unpacks(tmp_path, suffix):
    file = tmp_path / f"a.jsonl{suffix}"
    file.write_bytes(PACKERS[suffix](b"\n" * 50_000_000))
    tracemalloc.start()
    with pytest.raises(DataError, match=r"has more bytes when unpacked than 2000000, the limit for unpacked_bytes"):
        read(file, limits=Limits(unpacked_bytes=2_000_000))
    with pytest.raises(DataError, match=r"has more bytes when unpacked than 2000000"):
        list(iter_texts(file, limits=Limits(unpacked_bytes=2_000_000)))
    assert tracemalloc.get_traced_memory()[1] < 40_000_000
    tracemalloc.stop()


def xz_asking_for_4_gb(content):
    """Return an .xz file whose block says that its dictionary has 4 GiB."""
    raw = bytearray(lzma.compress(content))
    size = 4 * (raw[12] + 1)  # of the header of the first block: size, flags, filter 0x21, 1, dictionary, ..., CRC
    assert raw[14] == 0x21
    raw[16] = 40
    raw[12 + size - 4 : 12 + size] = zlib.crc32(raw[12 : 12 + size - 4]).to_bytes(4, "little")
    return bytes(raw)


def test_an_xz_file_may_not_ask_for_all_memory(tmp_path):
    file, line = tmp_path / "a.jsonl.xz", b'{"text": "a", "labels": ["x"]}\n'
    file.write_bytes(xz_asking_for_4_gb(line))
    with pytest.raises(DataError, match=r"a\.jsonl\.xz has more bytes in memory .*, the limit for xz_memory; raise it"):
        read(file)
    file.write_bytes(lzma.compress(line, preset=9) + b"\0" * 8 + lzma.compress(line))  # two streams, as xz writes them
    assert read(file).n_rows == 2
    with pytest.raises(DataError, match=r"the limit for xz_memory"):
        read(file, limits=Limits(xz_memory=1 << 20))
    file.write_bytes(lzma.compress(line * 100)[:-20])
    with pytest.raises(DataError, match=r"is truncated or damaged"):
        read(file)


def test_a_long_value_that_stands_in_all_rows_of_parquet_is_not_unpacked_at_once(tmp_path):
    pa = pytest.importorskip("pyarrow", reason="needs the extra [io]")
    pq = pytest.importorskip("pyarrow.parquet")
    text = pa.DictionaryArray.from_arrays(pa.array([0] * 5000, pa.int32()), ["x" * 300_000])
    labels = pa.array([["a"]] * 5000)
    file = tmp_path / "a.parquet"  # of 30 kB, 1.5 GB unpacked
    pq.write_table(pa.table({"text": text, "labels": labels}), file, store_schema=False)
    before, watched = pa.default_memory_pool(), pa.proxy_memory_pool(pa.default_memory_pool())
    pa.set_memory_pool(watched)
    try:
        with pytest.raises(DataError, match="the limit for unpacked_bytes"):
            read(file, limits=Limits(unpacked_bytes=20_000_000))
    finally:
        pa.set_memory_pool(before)
    assert watched.max_memory() < 100_000_000


def test_the_limits_of_a_command_hold_for_all_the_files_it_reads(run, tmp_path):
    rows = [{"text": f"word{i} thing", "labels": [f"l{i % 3}"]} for i in range(30)]
    data, filter_file, labels = tmp_path / "a.jsonl", tmp_path / "filter.txt", tmp_path / "labels.txt"
    data.write_text("".join(json.dumps(row) + "\n" for row in rows))
    filter_file.write_text("0 1\n" + "1" + " " * 100 + "1\n")
    labels.write_text("a" * 90 + "\nb\n")
    np.savez(tmp_path / "w.npz", weight=np.eye(2))
    run("train", data, "-o", tmp_path / "m", "--calibrate", 0)
    limit = ("--data-limit", "line_bytes=80")
    assert "filter.txt line 2 has more bytes" in run(
        "evaluate", tmp_path / "m", data, "--filter", filter_file, *limit, code=3
    )
    weights = ("audit", "--weights", tmp_path / "w.npz")
    assert "w.npz has more bytes" in run(*weights, "--data-limit", "unpacked_bytes=100", code=3)
    assert "labels.txt line 1 has more bytes" in run(*weights, "--labels-file", labels, *limit, code=3)
    assert "labels.txt line 1 has more bytes" in run(
        "add-labels", tmp_path / "m", labels, "-o", tmp_path / "n", *limit, code=3
    )


def test_an_array_that_is_not_finite_is_told_with_its_file(tmp_path):
    np.savez(tmp_path / "a.npz", X=np.array([[1.0, np.nan]]), Y=np.eye(1))
    with pytest.raises(DataError, match=r"a\.npz: X must be finite; got NaN in row 0, column 1\.$"):
        read(tmp_path / "a.npz")
    sp.save_npz(tmp_path / "X.npz", sp.csr_array(np.eye(2)))
    sp.save_npz(tmp_path / "Y.npz", sp.csr_array(np.array([[1.0], [-1.0]])))
    with pytest.raises(DataError, match=r"Y\.npz: Y must not be negative; got -1 in row 1\.$"):
        read(tmp_path / "X.npz")


def test_a_path_that_is_too_long_does_not_exist(run):
    with pytest.raises(DataError, match=r"does not exist\.$"):
        read("a" * 5000)
    assert "does not exist." in run("convert", "a" * 5000, "b.csv", code=3)


def test_a_line_without_an_end_stops_at_its_limit(tmp_path):
    file = tmp_path / "a.jsonl.gz"
    file.write_bytes(gzip.compress(b"x" * 50_000_000))
    with pytest.raises(DataError, match=r"line 1 has more bytes than 3000000, the limit for line_bytes"):
        read(file, limits=Limits(line_bytes=3_000_000))
    quote = tmp_path / "a.csv"  # a quote that is never closed makes one record of the whole file
    quote.write_text('text,labels\n"' + "word\n" * 2_000_000)
    with pytest.raises(DataError, match=r"a record of .*a.csv has more bytes than 3000000, the limit for line_bytes"):
        read(quote, limits=Limits(line_bytes=3_000_000))


def test_an_archive_that_unpacks_to_more_than_memory_is_refused_before_it_is_unpacked(tmp_path):
    np.savez_compressed(tmp_path / "a.npz", X=np.zeros((1000, 1000)), Y=np.ones((1000, 1)))
    with pytest.raises(
        DataError, match=r"a.npz has more bytes when unpacked than 100000, the limit for unpacked_bytes"
    ):
        read(tmp_path / "a.npz", limits=Limits(unpacked_bytes=100_000))


def test_a_matrix_that_claims_rows_it_does_not_have_is_refused(tmp_path):
    sp.save_npz(tmp_path / "X.npz", sp.coo_array((np.ones(1), ([0], [0])), shape=(2**40, 2)))
    sp.save_npz(tmp_path / "Y.npz", sp.csr_array(np.eye(2)))
    with pytest.raises(DataError, match=r"X.npz has more rows than 100000000, the limit for rows"):
        read(tmp_path / "X.npz")


def test_parquet_has_limits_too(tmp_path):
    pytest.importorskip("pyarrow")
    lt.data.write(lt.Dataset.from_lists(["word " * 2000] * 500, [["a"]] * 500), tmp_path / "a.parquet")
    with pytest.raises(DataError, match=r"the limit for unpacked_bytes"):
        read(tmp_path / "a.parquet", limits=Limits(unpacked_bytes=1_000_000))
    with pytest.raises(DataError, match=r"has more columns than 1, the limit for table_columns"):
        read(tmp_path / "a.parquet", limits=Limits(table_columns=1))


def test_files_beside_the_data_have_limits(tmp_path):
    (tmp_path / "labels.txt").write_text("abc\nabcdef\n")
    with pytest.raises(DataError, match=r"labels.txt line 2 has more characters in the name of a label than 5"):
        read_labels(tmp_path / "labels.txt", Limits(label_characters=5))
    (tmp_path / "sets.jsonl").write_text('{"labels": ["a", "b", "c"]}\n')
    with pytest.raises(DataError, match=r"sets.jsonl line 1 has more labels than 2, the limit for row_labels"):
        read_label_sets(tmp_path / "sets.jsonl", limits=Limits(row_labels=2))


def test_limits_are_whole_numbers_above_0_and_known_by_name():
    assert parse_limits(["rows=1_000", "json_depth=7"]) == Limits(rows=1000, json_depth=7)
    with pytest.raises(ParameterError, match=r"got 'row=5'. Did you mean 'rows'\?"):
        parse_limits(["row=5"])
    for bad in ("rows=0", "rows=-1", "rows", "rows=many", "rows=" + "9" * 30):
        with pytest.raises(ParameterError, match="limits must be rows= with a whole number from 1 to"):
            parse_limits([bad])
    with pytest.raises(ParameterError, match=r"limits.rows must be an integer >= 1; got 0"):
        Limits(rows=0)


def _zip(path, name=b"X.npy", content=b"", **fields):
    """Write an archive with one member whose fields are changed as no writer would."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        info = zipfile.ZipInfo(name.decode())
        archive.writestr(info, content)
    raw = bytearray(buffer.getvalue())
    for start, offsets in ((raw.find(b"PK\x03\x04"), (6, 8)), (raw.find(b"PK\x01\x02"), (8, 10))):
        for key, offset in zip(("flags", "method"), offsets, strict=True):
            if key in fields:
                raw[start + offset : start + offset + 2] = fields[key].to_bytes(2, "little")
    path.write_bytes(raw)


def _npy(shape, dtype="<f8", content=b""):
    head = str({"descr": dtype, "fortran_order": False, "shape": shape}).encode()
    return b"\x93NUMPY\x01\x00" + (len(head) + 1).to_bytes(2, "little") + head + b"\n" + content


ARCHIVES = {
    "encrypted": ({"content": _npy((1,), content=b"x" * 8), "flags": 1}, "is encrypted, which cannot be read"),
    "method": ({"content": _npy((1,), content=b"x" * 8), "method": 97}, r"compressed in a way .* \(method 97\)"),
    "header": ({"content": b"\x93NUMPY\x01\x00\x10\x00{'descr': ((((((("}, "is truncated or damaged"),
    "claimed": ({"content": _npy((2**40, 3))}, "is truncated or damaged"),
    "negative": ({"content": _npy((-1, 3))}, "is truncated or damaged"),
    "not an array": ({"name": b"readme.txt", "content": b"hello"}, "holds 'readme.txt', which is no array"),
    "objects": ({"content": _npy((1,), "|O", b"x" * 8)}, "holds pickled objects, which are not loaded"),
}


@pytest.mark.parametrize("case", ARCHIVES)
def test_archives_that_no_writer_made_are_refused_in_a_sentence(tmp_path, case):
    fields, told = ARCHIVES[case]
    _zip(tmp_path / "a.npz", **fields)
    with pytest.raises(DataError, match=told):
        read(tmp_path / "a.npz")
    with pytest.raises(DataError, match=told if "damaged" not in told else "is not a readable .npz file"):
        read_layer(tmp_path / "a.npz")


def test_complex_values_are_refused(tmp_path):
    np.savez(tmp_path / "a.npz", X=np.eye(2) * 1j, Y=np.eye(2))
    with pytest.raises(DataError, match="Complex data not supported"):
        read(tmp_path / "a.npz")
    sp.save_npz(tmp_path / "X.npz", sp.csr_array(np.eye(2) * 1j))
    sp.save_npz(tmp_path / "Y.npz", sp.csr_array(np.eye(2)))
    with pytest.raises(DataError, match="must hold real numbers; got dtype complex128"):
        read(tmp_path / "X.npz")


@pytest.mark.parametrize("kind", ["csr", "csc", "bsr", "coo", "dia"])
def test_every_format_of_scipy_is_read_and_checked_before_it_is_converted(tmp_path, kind):
    X = np.array([[1, 0, 2, 0], [0, 3, 0, 4]], np.float64)
    sp.save_npz(tmp_path / "X.npz", sp.csr_array(X).asformat(kind))
    sp.save_npz(tmp_path / "Y.npz", sp.csr_array(np.eye(2)))
    assert np.array_equal(read(tmp_path / "X.npz").X.toarray(), X)
    with np.load(tmp_path / "X.npz") as saved:
        arrays = dict(saved)
    ids = next(name for name in ("indices", "coords", "row", "offsets") if name in arrays)
    arrays[ids] = arrays[ids].astype(np.int64)
    arrays[ids].flat[-1] = 10**9
    np.savez(tmp_path / "X.npz", **arrays)
    with pytest.raises(DataError, match=r"X.npz must have .* from .*; got 1000000000|is not a sparse matrix"):
        read(tmp_path / "X.npz")
    with pytest.raises(DataError, match=r"X.npz must have .* from .*; got 1000000000|is not a sparse matrix"):
        read_layer(tmp_path / "X.npz")


def test_wrapped_pointers_of_a_file_are_refused(tmp_path):
    arrays = {"format": np.array("csc"), "shape": np.array([3, 3]), "data": np.ones(3), "indices": np.arange(3)}
    np.savez(tmp_path / "X.npz", indptr=np.array([0, 2**63 - 1, -2, 3]), **arrays)
    sp.save_npz(tmp_path / "Y.npz", sp.csr_array(np.eye(3)))
    with pytest.raises(DataError, match=r"not a sound CSC matrix|is not a sparse matrix that scipy can read"):
        read(tmp_path / "X.npz")


def test_the_page_on_data_lists_every_limit_with_its_default():
    page = (Path(__file__).parents[2] / "docs" / "data.md").read_text("utf-8")
    rows = [line.split("|")[1:3] for line in page.splitlines() if line.startswith("| `")]
    listed = {name.strip().strip("`"): value.strip() for name, value in rows}
    for field in dataclasses.fields(Limits):
        shown = "free memory" if field.default is None else f"{field.default:,}"
        assert listed.get(field.name) == shown


def test_a_setting_names_the_largest_number():
    assert parse_limits(["rows=1_000", "labels=2,000"]) == Limits(rows=1000, labels=2000)
    assert parse_limits([f"rows={10**18}"]).rows == 10**18
    for much in ("9" * 26, str(10**18 + 1), "0"):
        with pytest.raises(ParameterError, match=r"rows= with a whole number from 1 to 1,000,000,000,000,000,000; got"):
            parse_limits([f"rows={much}"])
