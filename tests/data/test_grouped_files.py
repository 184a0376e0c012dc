"""Reading rows in groups and the labels of groups: every format, and every way the two files can fail to fit."""

import json

import numpy as np
import pytest
import scipy.sparse as sp

from longtail.data import Dataset, GroupedDataset, read_grouped, write
from longtail.data.formats.group_file import read_groups
from longtail.errors import DataError

ROWS = [
    {"id": "a", "text": "a red apple", "group": "p 1"},
    {"id": "b", "text": "a blue car", "group": "p 1"},
    {"id": "c", "text": "a green apple", "group": ["p 2", "p 1"]},
    {"id": "d", "text": "a tree"},
]
GROUPS = [
    {"group": "p 1", "labels": ["fruit", "car", "fruit"]},
    {"group": "p 2", "labels": ["fruit"]},
    {"group": "p 3", "labels": []},
]


def lines(path, records):
    path.write_text("".join(json.dumps(record) + "\n" for record in records))
    return path


def table(path, records, separator=";"):
    delimiter = "\t" if path.suffix == ".tsv" else ","
    keys = list(records[0])

    def cell(value):
        return separator.join(value) if isinstance(value, list) else value or ""

    rows = [delimiter.join(cell(record.get(key)) for key in keys) for record in records]
    path.write_text("\n".join([delimiter.join(keys), *rows]) + "\n")
    return path


def parquet(path, records):
    pa = pytest.importorskip("pyarrow")
    import pyarrow.parquet as pq

    def value(record, key):
        found = record.get(key)
        return found if key in ("id", "text") or isinstance(found, list) else [found] if found else []

    keys = list(records[0])
    columns = {key: [value(record, key) for record in records] for key in keys}
    if "text" not in keys:
        columns["group"] = [record["group"] for record in records]
    pq.write_table(pa.table(columns), path)
    return path


@pytest.fixture
def files(tmp_path):
    return lines(tmp_path / "rows.jsonl", ROWS), lines(tmp_path / "groups.jsonl", GROUPS)


def check(data):
    assert (data.n_rows, data.n_groups, data.rows.label_names) == (4, 3, ("car", "fruit"))
    assert data.groups.toarray().tolist() == [[1, 0, 0], [1, 0, 0], [1, 1, 0], [0, 0, 0]]
    assert data.Y_groups.toarray().tolist() == [[1, 2], [0, 1], [0, 0]]
    assert data.rows.ids == ("a", "b", "c", "d") and data.rows.group_names == ("p 1", "p 2", "p 3")
    assert data.rows.Y.shape == (4, 2) and data.rows.Y.nnz == 0


@pytest.mark.parametrize("make", [lines, table, parquet], ids=["jsonl", "csv", "parquet"])
def test_every_format_gives_the_same(tmp_path, make):
    suffix = {"lines": "jsonl", "table": "csv", "parquet": "parquet"}[make.__name__]
    check(read_grouped(make(tmp_path / f"rows.{suffix}", ROWS), make(tmp_path / f"groups.{suffix}", GROUPS)))


def test_formats_may_differ_and_be_packed(tmp_path, files):
    check(read_grouped(files[0], table(tmp_path / "groups.tsv", GROUPS)))
    import gzip

    (tmp_path / "groups.jsonl.gz").write_bytes(gzip.compress(files[1].read_bytes()))
    check(read_grouped(files[0], tmp_path / "groups.jsonl.gz"))


@pytest.mark.parametrize("key", ["id", "name"])
def test_the_name_of_a_group_may_stand_under_another_key(tmp_path, files, key):
    renamed = [{key: record["group"], "labels": record["labels"]} for record in GROUPS]
    check(read_grouped(files[0], lines(tmp_path / "other.jsonl", renamed)))
    check(read_grouped(files[0], table(tmp_path / "other.csv", renamed)))


def test_columns_and_separators_can_be_named(tmp_path):
    rows = table(tmp_path / "rows.csv", [{"body": "x", "page": ["1", "2"]}, {"body": "y", "page": "2"}], "|")
    groups = table(tmp_path / "groups.csv", [{"page": "1", "tags": ["a", "a"]}, {"page": "2", "tags": ["b"]}], "|")
    found = read_grouped(
        rows, groups, text_column="body", group_column="page", labels_column="tags", label_separator="|"
    )
    assert found.groups.toarray().tolist() == [[1, 1], [0, 1]] and found.Y_groups.toarray().tolist() == [[2, 0], [0, 1]]


def test_whole_numbers_are_names_in_both_files(tmp_path):
    rows = lines(tmp_path / "rows.jsonl", [{"text": "x", "group": 7}, {"text": "y", "group": [7, 8]}])
    groups = lines(tmp_path / "groups.jsonl", [{"group": 7, "labels": [1]}, {"group": 8, "labels": 2}])
    found = read_grouped(rows, groups)
    assert found.rows.group_names == ("7", "8") and found.rows.label_names == ("1", "2")


def test_a_list_of_labels_fixes_their_order_and_texts(tmp_path, files):
    listed = tmp_path / "labels.jsonl"
    listed.write_text('{"id": "fruit", "text": "grows"}\n{"id": "car", "text": "drives"}\n{"id": "x", "text": "y"}\n')
    found = read_grouped(*files, labels_file=listed)
    assert found.rows.label_names == ("fruit", "car", "x") and found.rows.label_texts == ("grows", "drives", "y")
    listed.write_text('{"id": "fruit"}\n')
    with pytest.raises(DataError, match=r"groups.jsonl line 1: the label 'car' is not in the list of labels\."):
        read_grouped(*files, labels_file=listed)


def test_features_come_with_their_groups_in_npz(tmp_path):
    X, groups = np.eye(3, dtype=np.float32), np.array([[1, 0], [1, 1], [0, 1]])
    counts = sp.csr_array(np.array([[2, 0, 1], [0, 1, 0]]))
    np.savez(tmp_path / "rows.npz", X=X, groups=groups)
    sp.save_npz(tmp_path / "groups.npz", counts)
    found = read_grouped(tmp_path / "rows.npz", tmp_path / "groups.npz")
    assert found.groups.toarray().tolist() == groups.tolist()
    assert found.Y_groups.toarray().tolist() == counts.toarray().tolist()
    assert found.rows.label_names is None and found.rows.n_labels == 3
    by_name = lines(tmp_path / "groups.jsonl", [{"group": "1", "labels": ["b"]}, {"group": "0", "labels": ["a"]}])
    found = read_grouped(tmp_path / "rows.npz", by_name)
    assert found.groups.toarray().tolist() == [[0, 1], [1, 1], [1, 0]] and found.rows.group_names == ("1", "0")


def test_npz_written_here_keeps_names(tmp_path):
    data = Dataset(X=np.eye(2), Y=np.zeros((2, 0)), groups=np.eye(2), group_names=("p", "q"))
    write(data, tmp_path / "rows.npz")
    groups = lines(tmp_path / "g.jsonl", [{"group": "q", "labels": ["b"]}, {"group": "p", "labels": ["a"]}])
    found = read_grouped(tmp_path / "rows.npz", groups)
    assert found.groups.toarray().tolist() == [[0, 1], [1, 0]]


@pytest.mark.parametrize(
    ("rows", "groups", "sentence"),
    [
        (ROWS, [{"group": "p 1", "labels": ["a"]}], r"line 3: the group 'p 2' is not in the list of groups\."),
        ([{"text": "x"}], GROUPS, r"rows.jsonl has no groups: no row has 'group'\."),
        ([{"text": "x", "group": []}], GROUPS, r"rows.jsonl: no row is in a group\."),
        ([{"text": "x", "group": {"a": 1}}], GROUPS, r"rows.jsonl line 1: 'group' must be a name or a list of names"),
        ([{"text": "x", "group": ""}], GROUPS, r"rows.jsonl line 1: the group '' is not in the list of groups\."),
        ([*ROWS, {"text": None, "group": "p 1"}], GROUPS, r"rows.jsonl line 5: 'text' must be a string; got null\."),
        (ROWS, [*GROUPS, GROUPS[1]], r"groups.jsonl line 4: the group 'p 2' stands in line 2 already; a group has one"),
        (ROWS, [{"group": "p 1"}, {"group": "p 2"}], r"groups.jsonl has no labels: no group has 'labels'\."),
        (ROWS, [{"group": "p 1", "labels": []}, {"group": "p 2", "labels": []}], r"s.jsonl: no group has a label\."),
        (ROWS, [{"labels": ["a"]}], r"groups.jsonl has no names of groups: no record has 'group' or 'id' or 'name'\."),
        (ROWS, [*GROUPS, {"labels": ["a"]}], r"groups.jsonl line 4 has no 'group', though other rows have one\."),
        (ROWS, [{"group": "", "labels": ["a"]}], r"groups.jsonl line 1: the name of the group is empty\."),
        (ROWS, [{"group": ["p 1"], "labels": ["a"]}], r"line 1: 'group' must be a string or a whole number"),
        (ROWS, [{"group": "p 1", "labels": [""]}], r"s.jsonl line 1: a label or group must not be an empty string"),
        (ROWS, [{"group": "p 1", "labels": [{}]}], r"groups.jsonl line 1: 'labels' must be a name or a list of names"),
        (ROWS, [], r"groups.jsonl is empty\."),
    ],
)
def test_what_does_not_fit_is_refused_in_one_sentence(tmp_path, rows, groups, sentence):
    with pytest.raises(DataError, match=sentence) as caught:
        read_grouped(lines(tmp_path / "rows.jsonl", rows), lines(tmp_path / "groups.jsonl", groups))
    assert "\n" not in str(caught.value)


def test_files_that_cannot_hold_groups_are_refused(tmp_path, files):
    (tmp_path / "rows.xmc").write_text("1 2 1\n0 0:1\n")
    with pytest.raises(DataError, match=r"rows.xmc has no groups; features come with their groups in an npz file"):
        read_grouped(tmp_path / "rows.xmc", files[1])
    with pytest.raises(DataError, match=r"rows.xmc has the format 'xmc'; labels of groups come as jsonl, csv, tsv"):
        read_groups(tmp_path / "rows.xmc")
    with pytest.raises(DataError, match=r"nothing.jsonl does not exist\."):
        read_groups(tmp_path / "nothing.jsonl")
    with pytest.raises(DataError, match=r"nothing.jsonl does not exist\."):
        read_grouped(tmp_path / "nothing.jsonl", files[1])


def test_matrices_that_do_not_match_in_count_are_refused(tmp_path):
    np.savez(tmp_path / "rows.npz", X=np.eye(3), groups=np.eye(3))
    np.savez(tmp_path / "groups.npz", Y=np.ones((2, 2)))
    with pytest.raises(DataError, match=r"rows.npz and .*groups.npz must have as many groups; got 3 and 2\."):
        read_grouped(tmp_path / "rows.npz", tmp_path / "groups.npz")
    np.savez(tmp_path / "groups.npz", Y=np.full((3, 2), 0.5))
    with pytest.raises(DataError, match=r"Y_groups must hold counts, whole numbers of 0 or more; got 0\.5\."):
        read_grouped(tmp_path / "rows.npz", tmp_path / "groups.npz")
    np.savez(tmp_path / "rows.npz", X=np.eye(3), groups=np.eye(4))
    with pytest.raises(DataError, match=r"X must have as many rows as Y \(4\); got 3\."):
        read_grouped(tmp_path / "rows.npz", tmp_path / "groups.npz")


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ((["x"], ["g", "g"], {"g": ["a"]}), r"texts and groups must be lists of the same length; got 1 and 2\."),
        ((["x"], "g", {"g": ["a"]}), r"groups must be a list with the group, .* of every text; got 'g'\."),
        (("x", ["g"], {"g": ["a"]}), r"texts must be a list of strings; got 'x'\."),
        ((None, ["g"], {"g": ["a"]}), r"texts must be a list of strings; got None\."),
        ((["x", None], ["g", "g"], {"g": ["a"]}), r"texts must hold strings; got None in row 1\."),
        ((["x"], None, {"g": ["a"]}), r"groups must be a list with the group, .* got None\."),
        ((["x", "y"], ["g", float("nan")], {"g": ["a"]}), r"groups must hold strings or .* got nan in row 1\."),
        ((["x"], [True], {"g": ["a"]}), r"groups must hold strings or whole numbers, .* got True in row 0\."),
        ((["x"], [["g", None]], {"g": ["a"]}), r"groups must hold strings or whole numbers, .* got None in row 0\."),
        ((["x"], [{"g": 1}], {"g": ["a"]}), r"groups must hold strings or whole numbers, .* got {'g': 1} in row 0\."),
        ((["x"], ["g"], [["a"]]), r"group_labels must be a mapping from the name .* got \[\['a'\]\]\."),
        ((["x"], ["g"], {"g": [1, 2]}), r"the labels of group 'g' must be strings that are not empty; got 1\."),
        ((["x"], ["g"], {"g": [""]}), r"the labels of group 'g' must be strings that are not empty; got ''\."),
        ((["x"], ["g"], {"g": 5}), r"the labels of group 'g' must be a list of names; got 5\."),
        ((["x"], ["g"], {"g": {"a": 1.5}}), r"group 'g' must have counts, whole numbers .* got 1\.5 for 'a'\."),
        ((["x"], ["g"], {"g": {"a": -1}}), r"group 'g' must have counts, whole numbers .* got -1 for 'a'\."),
        ((["x"], ["7"], {7: ["a"], "7": ["a"]}), r"group_labels has the group '7' twice"),
        ((["x"], ["g"], {None: ["a"]}), r"group_labels must have strings .* as names of groups; got None\."),
        ((["x"], ["g"], {"": ["a"]}), r"group_labels must have strings that are not empty, .* got ''\."),
        ((["x"], ["h"], {"g": ["a"]}), r"row 0: the group 'h' is not in the list of groups\."),
        ((["x"], ["g"], {"g": "a"}), r"the labels of group 'g' must be a list of names; got a string\."),
    ],
)
def test_lists_that_do_not_fit_are_refused(arguments, sentence):
    with pytest.raises(DataError, match=sentence):
        GroupedDataset.from_lists(*arguments)


def test_labels_that_are_not_in_the_list_of_labels_are_refused():
    lists = ["x"], ["g"], {"g": ["b", "b"]}
    assert GroupedDataset.from_lists(*lists, label_names=["b", "a"]).Y_groups.toarray().tolist() == [[2, 0]]
    with pytest.raises(DataError, match=r"group 'g': the label 'b' is not in the list of labels\."):
        GroupedDataset.from_lists(*lists, label_names=["a"])


def test_parts_that_do_not_fit_are_refused():
    rows = Dataset(Y=np.zeros((2, 2)), texts=["x", "y"], label_names=["a", "b"])
    with pytest.raises(DataError, match="the rows of a GroupedDataset need groups; got none"):
        GroupedDataset(rows, np.ones((2, 2)))
    grouped = Dataset(Y=np.zeros((2, 2)), texts=["x", "y"], label_names=["a", "b"], groups=np.eye(2))
    with pytest.raises(DataError, match="got 2 columns and 3 rows"):
        GroupedDataset(grouped, np.ones((3, 2)))
    with pytest.raises(DataError, match=r"label_names must have one entry per label \(3\); got 2"):
        GroupedDataset(grouped, np.ones((2, 3)))


@pytest.mark.parametrize("suffix", ["jsonl", "csv", "tsv", "parquet"])
def test_weights_of_labels_have_a_column_where_it_is_asked_for(tmp_path, suffix):
    if suffix == "parquet":
        pytest.importorskip("pyarrow")
    data = Dataset(Y=np.array([[0.25, 1], [0, 0]]), texts=["x", "y"], label_names=["a", "b"])
    path = tmp_path / f"rows.{suffix}"
    with pytest.raises(DataError, match="Y holds label weights other than 1"):
        write(data, path)
    write(data, path, weights_column="confidence")
    from longtail.data import read

    assert read(path).Y.toarray().tolist() == [[1, 1], [0, 0]]
    if suffix == "jsonl":
        assert json.loads(path.read_text().splitlines()[0]) == {
            "text": "x",
            "labels": ["a", "b"],
            "confidence": [0.25, 1.0],
        }
    if suffix == "csv":
        assert path.read_text() == "text,labels,confidence\nx,a;b,0.25;1\ny,,\n"
