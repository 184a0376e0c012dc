"""XMC text, libsvm, the split layout and the raw text layout: what is read, and what is refused in which words."""

import gzip
import json
import lzma

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.datasets import dump_svmlight_file, load_svmlight_file

from longtail.data import (
    read,
    read_filter,
    read_libsvm,
    read_raw_folder,
    read_split_folder,
    read_xmc,
    write_libsvm,
    write_xmc,
)
from longtail.data.dataset import Dataset
from longtail.data.formats.xmc import iter_xmc
from longtail.errors import DataError, ParameterError

SMALL = "3 4 3\n0,2 0:1.5 3:-2\n 1:0.25\n1 0:1e-3 2:4\n"


def refused(path, reader=read_xmc, **options):
    with pytest.raises(DataError) as caught:
        reader(path, **options)
    return str(caught.value).replace(str(path), path.name)


def put(folder, text, name="data.txt"):
    path = folder / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


@pytest.mark.parametrize("ending", ["\n", "\r\n"])
@pytest.mark.parametrize("start", [b"", b"\xef\xbb\xbf"])
def test_reads_rows_without_labels_crlf_and_a_byte_order_mark(tmp_path, ending, start):
    data = read_xmc(put(tmp_path, start + SMALL.replace("\n", ending).encode()))
    np.testing.assert_array_equal(data.Y.toarray(), [[1, 0, 1], [0, 0, 0], [0, 1, 0]])
    np.testing.assert_allclose(data.X.toarray(), [[1.5, 0, 0, -2], [0, 0.25, 0, 0], [1e-3, 0, 4, 0]])


def test_no_newline_at_the_end_and_empty_lines_after_the_last_row(tmp_path):
    expected = read_xmc(put(tmp_path, SMALL)).digest()
    assert read_xmc(put(tmp_path, SMALL.rstrip())).digest() == expected
    assert read_xmc(put(tmp_path, SMALL + "\n \n\n")).digest() == expected


def test_an_empty_line_is_a_row(tmp_path):
    data = read_xmc(put(tmp_path, "3 2 2\n0 0:1\n\n1 1:1\n"))
    assert np.diff(data.Y.indptr).tolist() == [1, 0, 1]


def test_duplicates_in_a_row_labels_count_once_and_values_add_up(tmp_path):
    data = read_xmc(put(tmp_path, "1 3 2\n1,1,0 2:1 0:3 2:0.5\n"))
    assert data.Y.toarray().tolist() == [[1, 1]]
    assert data.X.toarray().tolist() == [[3, 0, 1.5]]


@pytest.mark.parametrize("suffix", ["gz", "xz", "bz2"])
def test_round_trip_through_compressed_files_above_65536(tmp_path, suffix):
    rng = np.random.default_rng(0)
    X = sp.random_array((50, 200_000), density=1e-4, rng=rng, dtype=np.float32, format="csr")
    Y = sp.random_array((50, 90_000), density=1e-4, rng=rng, format="csr")
    Y.data[:] = 1
    data = Dataset(X=X, Y=Y)
    file = tmp_path / f"big.txt.{suffix}"
    write_xmc(data, file)
    assert data.Y.indices.max() > 65_536
    assert read_xmc(file).digest() == data.digest()
    first = file.read_bytes()
    write_xmc(data, file)
    assert file.read_bytes() == first  # no clock in the file


@settings(max_examples=60, deadline=None)
@given(
    st.lists(
        st.tuples(
            st.sets(st.integers(0, 6), max_size=3),
            st.dictionaries(st.integers(0, 9), st.floats(width=32, allow_nan=False, allow_infinity=False), max_size=4),
        ),
        min_size=1,
        max_size=8,
    )
)
def test_whatever_is_written_reads_back_the_same(tmp_path_factory, rows):
    X, Y = np.zeros((len(rows), 10), dtype=np.float32), np.zeros((len(rows), 7), dtype=np.float32)
    for at, (labels, values) in enumerate(rows):
        Y[at, list(labels)] = 1
        X[at, list(values)] = list(values.values())
    data = Dataset(X=sp.csr_array(X), Y=sp.csr_array(Y))
    file = tmp_path_factory.mktemp("xmc") / "data.txt"
    write_xmc(data, file)
    assert read_xmc(file).digest() == data.digest()
    write_libsvm(data, file)
    assert read_libsvm(file, zero_based=True, n_features=10, n_labels=7).digest() == data.digest()


def test_blocks_of_any_size_give_the_same_rows(tmp_path):
    path = put(tmp_path, SMALL)
    whole = next(rows for _, rows in iter_xmc(path))
    for size in (1, 7, 20):
        parts = [rows for _, rows in iter_xmc(path, size)]
        assert np.concatenate([p.x_data for p in parts]).tolist() == whole.x_data.tolist()
        assert sum(p.x_indptr.size - 1 for p in parts) == 3


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("", "data.txt is empty."),
        ("0,1 0:1\n", "data.txt line 1 must be the header 'rows features labels'; got '0,1 0:1'."),
        ("3 4\n", "data.txt line 1 must be the header 'rows features labels'; got '3 4'."),
        ("3 -4 1\n", "data.txt line 1 must be the header 'rows features labels'; got '3 -4 1'."),
        ("1 3000000000 1\n", "data.txt line 1: at most 2147483647 features are allowed; got 3000000000."),
        ("2 4 3\n0 0:1\n1 7:1\n", "data.txt line 3: the feature id 7 is out of range; allowed are 0 to 3."),
        ("1 4 3\n0,3 0:1\n", "data.txt line 2: the label id 3 is out of range; allowed are 0 to 2."),
        ("1 4 0\n0 0:1\n", "data.txt line 2: the label id 0 is out of range; the header allows none."),
        ("1 4 3\n0 2:nan\n", "data.txt line 2: the value of feature 2 must be a finite float32; got 'nan'."),
        ("1 4 3\n0 2:-inf\n", "data.txt line 2: the value of feature 2 must be a finite float32; got '-inf'."),
        ("1 4 3\n0 2:1e39\n", "data.txt line 2: the value of feature 2 must be a finite float32; got '1e39'."),
        ("1 4 3\n0 2:x\n", "data.txt line 2: the value of feature 2 must be a number; got 'x'."),
        ("1 4 3\n0 2\n", "data.txt line 2: expected feature:value; got '2'."),
        ("1 4 3\na,b 2:1\n", "data.txt line 2: expected label numbers separated by commas; got 'a'."),
        (b"1 4 3\n\xff 2:1\n", "data.txt line 2: expected label numbers separated by commas; got '\\xff'."),
        ("3 4 3\n0 0:1\n", "data.txt has 1 rows; its header says 3."),
        ("1 4 3\n0 0:1\n\n1 0:1\n", "data.txt has 3 rows; its header says 1."),
    ],
)
def test_bad_files_are_refused_in_one_sentence(tmp_path, text, sentence):
    assert refused(put(tmp_path, text)) == sentence


def test_missing_folder_truncated_and_damaged_files(tmp_path):
    assert refused(tmp_path / "nothing.txt") == "nothing.txt does not exist."
    assert refused(tmp_path) == f"{tmp_path.name} is a folder, not a file."
    whole = lzma.compress(SMALL.encode() * 1000)
    assert refused(put(tmp_path, whole[:-40], "x.txt.xz")) == "x.txt.xz is truncated or damaged."
    assert refused(put(tmp_path, b"", "e.txt.xz")) == "e.txt.xz is truncated or damaged."
    assert refused(put(tmp_path, SMALL, "x.txt.gz")) == "x.txt.gz is truncated or damaged."
    assert refused(put(tmp_path, gzip.compress(SMALL.encode())[:-6], "y.txt.gz")) == "y.txt.gz is truncated or damaged."
    assert refused(put(tmp_path, SMALL, "x.txt.bz2")) == "x.txt.bz2 is truncated or damaged."


def test_bad_bytes_late_in_a_long_file_are_found_by_line(tmp_path):
    lines = ["0 1:0.5"] * 5000
    lines[4321] = "0 99:1"
    path = put(tmp_path, "5000 4 3\n" + "\n".join(lines))
    with pytest.raises(DataError, match="line 4323: the feature id 99 is out of range"):
        list(iter_xmc(path, size=1000))


# libsvm ---------------------------------------------------------------------------------------------------------


def test_libsvm_agrees_with_scikit_learn(tmp_path):
    rng = np.random.default_rng(1)
    X = sp.random_array((40, 30), density=0.2, rng=rng, dtype=np.float64, format="csr")
    Y = (rng.random((40, 6)) < 0.3).astype(int)
    for zero_based in (True, False):
        file = tmp_path / f"{zero_based}.svm"
        dump_svmlight_file(sp.csr_matrix(X), Y, str(file), zero_based=zero_based, multilabel=True, comment="made here")
        data = read_libsvm(file, zero_based=zero_based, n_features=30, n_labels=6)
        expected, labels = load_svmlight_file(str(file), multilabel=True, zero_based=zero_based, n_features=30)
        np.testing.assert_array_equal(data.X.toarray(), expected.toarray().astype(np.float32))
        assert [tuple(data.Y[[row]].indices) for row in range(40)] == [tuple(int(v) for v in row) for row in labels]


def test_libsvm_numbering_is_found_out(tmp_path):
    one = read(put(tmp_path, "0 1:1 3:1\n1 2:1\n", "one.svm"))
    zero = read(put(tmp_path, "0 0:1 2:1\n1 1:1\n", "zero.svm"))
    assert one.digest() == zero.digest()
    assert read(put(tmp_path, "0 1:1 3:1\n", "x.svm"), zero_based=True).n_features == 4
    path = put(tmp_path, "0 0:1\n", "x.svm")
    assert refused(path, read, zero_based=False) == "x.svm has the feature id 0; with zero_based=False ids start at 1."
    with pytest.raises(ParameterError, match="zero_based must be True, False or 'auto'; got 'yes'"):
        read(path, zero_based="yes")


def test_libsvm_skips_empty_lines_and_comments_and_names_lines(tmp_path):
    path = put(tmp_path, "# made by hand\n\n0 1:1 # first\n1 2:oops\n", "x.svm")
    assert refused(path, read) == "x.svm line 4: the value of feature 2 must be a number; got 'oops'."
    assert read(put(tmp_path, "# made by hand\n\n0 1:1 # first\n\n1 2:1\n", "x.svm")).n_rows == 2
    path = put(tmp_path, "0 1:1 9:1\n", "x.svm")
    assert refused(path, read, n_features=5) == "x.svm has 9 features; n_features=5 allows fewer."
    assert refused(path, read, n_labels=0).startswith("x.svm line 1: the label id 0 is out of range")


# the repository's layouts ---------------------------------------------------------------------------------------


def split_folder(folder, train="1 2\n3 3\n", test="2 1\n", names=("toy_trn_split.txt", "toy_tst_split.txt")):
    put(folder, SMALL, "toy_data.txt")
    put(folder, train, names[0])
    put(folder, test, names[1])
    return folder


@pytest.mark.parametrize("names", [("toy_trn_split.txt", "toy_tst_split.txt"), ("toy_trSplit.txt", "toy_tstSplit.txt")])
def test_split_layout(tmp_path, names):
    folder = split_folder(tmp_path, names=names)
    whole = read_xmc(folder / "toy_data.txt")
    train, test = read_split_folder(folder, split=1)
    assert train.digest() == whole.take([1, 2]).digest()
    assert test.digest() == whole.take([0]).digest()
    assert read(folder, part="test", split=0).digest() == whole.take([1]).digest()


def test_split_layout_refusals(tmp_path):
    folder = split_folder(tmp_path)

    def sentence(**options):
        return refused(folder, read_split_folder, **options).replace(f"{folder.name}/", "")

    assert sentence(split=2) == "toy_trn_split.txt has 2 splits, numbered from 0; got split=2."
    put(folder, "1 2\n4 3\n", "toy_trn_split.txt")
    assert sentence() == "toy_trn_split.txt line 2: the row 4 is out of range; allowed are 1 to 3."
    put(folder, "1 2\nx 3\n", "toy_trn_split.txt")
    assert sentence() == "toy_trn_split.txt line 2 must hold 2 whole numbers; got 'x 3'."
    put(folder, "1 2\n3\n", "toy_trn_split.txt")
    assert sentence() == "toy_trn_split.txt line 2 must hold 2 whole numbers; got '3'."
    (folder / "toy_trn_split.txt").unlink()
    assert sentence().endswith("must hold one file *_trn_split.txt; found: none.")
    split_folder(folder)
    (folder / "toy_data.txt").unlink()
    assert sentence().endswith("must hold one data file beside its split files; found: none.")
    with pytest.raises(ParameterError, match="split must be an integer >= 0; got -1"):
        read_split_folder(folder, split=-1)


def raw_folder(folder, rows=None):
    rows = rows or [
        {"uid": "A", "title": "red car", "content": "fast", "target_ind": [1, 0], "target_rel": [1.0, 0.5]},
        {"uid": "B", "title": "tree", "content": "", "target_ind": []},
    ]
    labels = [{"uid": "L0", "title": "things", "content": "x"}, {"uid": "L1", "title": "cars"}]
    for name, records in (("trn.json.gz", rows), ("tst.json.gz", rows[:1]), ("lbl.json.gz", labels)):
        text = "".join(json.dumps(record) + "\n" for record in records).encode()
        (folder / name).write_bytes(gzip.compress(text))
    return folder


def test_raw_text_layout(tmp_path):
    data = read(raw_folder(tmp_path))
    assert data.texts == ("red car fast", "tree")
    assert data.ids == ("A", "B")
    assert data.label_names == ("L0", "L1")
    assert data.label_texts == ("things", "cars")
    assert data.Y.toarray().tolist() == [[0.5, 1], [0, 0]]
    assert read(tmp_path, part="test").n_rows == 1
    assert read_raw_folder(tmp_path, text_fields=("title",)).texts == ("red car", "tree")


def test_raw_text_layout_refusals(tmp_path):
    folder = raw_folder(tmp_path, [{"uid": "A", "title": "t", "target_ind": [2]}])
    found = refused(folder, read_raw_folder).rpartition("/")[2]
    assert found == "trn.json.gz line 1: the label 2 is out of range; allowed are 0 to 1."
    raw_folder(tmp_path, [{"uid": "A", "title": "t", "target_ind": [1], "target_rel": [1, 2]}])
    assert "'target_ind' and 'target_rel' must be lists of one length" in refused(folder, read_raw_folder)
    raw_folder(tmp_path, [{"title": "t", "target_ind": [1]}])
    assert refused(folder, read_raw_folder).endswith("trn.json.gz line 1 has no 'uid'; it has: title, target_ind.")
    (folder / "lbl.json.gz").unlink()
    assert refused(folder, read).endswith(" has no lbl.json or lbl.json.gz.")
    with pytest.raises(ParameterError, match="part must be one of"):
        read(folder, part="trian")
    assert refused(tmp_path / "no", read_raw_folder) == "no does not exist."


def test_filter_files(tmp_path):
    path = put(tmp_path, "0 17\r\n3\t2\n70000 90000\n", "filter_labels_test.txt")
    assert read_filter(path).tolist() == [[0, 17], [3, 2], [70000, 90000]]
    assert read_filter(put(tmp_path, "", "empty.txt")).shape == (0, 2)
    path = put(tmp_path, "0 17\n3\n")
    assert refused(path, read_filter) == "data.txt line 2 must hold 2 whole numbers; got '3'."
