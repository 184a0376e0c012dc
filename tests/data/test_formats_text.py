"""JSONL, CSV, TSV, Parquet, fastText and lists of labels: what is read, and what is refused in which words."""

import csv
import json
import lzma
import sys
import tracemalloc

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from longtail.data import iter_texts, read, read_labels, write, write_labels
from longtail.data.dataset import Dataset
from longtail.errors import DataError, MissingExtraError, ParameterError

TEXT_FORMATS = ["jsonl", "csv", "tsv", "parquet"]


def put(folder, text, name):
    path = folder / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def refused(path, reader=read, **options):
    with pytest.raises(DataError) as caught:
        reader(path, **options)
    return str(caught.value).replace(str(path), path.name)


def rows_of(data):
    return [(text, set(data.labels_of(row))) for row, text in enumerate(data.texts)]


def grouped():
    return Dataset(
        Y=sp.csr_array(np.array([[1, 1, 0], [0, 0, 0], [0, 0, 1]])),
        texts=('a "red", apple;\nfresh', "", "ein blaues Auto — schön"),
        ids=("1", "x,2", "3"),
        label_names=("a label", "fruit", "ÄÖ, car"),
        groups=sp.csr_array(np.array([[1, 0], [0, 0], [1, 1]])),
        group_names=("g1", "g2"),
    )


@pytest.mark.parametrize("name", ["rows.jsonl", "rows.csv", "rows.tsv", "rows.parquet", "rows.jsonl.xz", "rows.csv.gz"])
def test_round_trip_keeps_texts_ids_labels_and_groups(tmp_path, name):
    data, file, format = grouped(), tmp_path / name, name.split(".")[1]
    facts = write(data, file)
    assert facts == {
        "file": str(file),
        "format": format,
        "rows": 3,
        "labels": 3,
        "bytes": file.stat().st_size,
        "left_out": [],
        "labels_without_rows": 0,
        "texts_changed": 0,
    }
    again = read(file)
    assert again.digest() == data.digest()
    assert again.ids == data.ids
    assert again.group_names == data.group_names
    assert again.name == "rows"


texts = st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=20)
names = st.text(st.characters(codec="utf-8", exclude_categories=("Cc", "Zs", "Zl", "Zp")), min_size=1, max_size=6)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(texts, st.lists(names.filter(lambda n: ";" not in n), max_size=3)), min_size=1, max_size=6))
def test_whatever_is_written_reads_back_the_same(tmp_path_factory, rows):
    folder = tmp_path_factory.mktemp("text")
    data = Dataset.from_lists([text for text, _ in rows], [labels for _, labels in rows])
    for format in ("jsonl", "csv", "tsv", "npz"):
        write(data, folder / f"rows.{format}")
        again = read(folder / f"rows.{format}")
        assert again.texts == data.texts, format
        assert rows_of(again) == rows_of(data), format


# JSONL ----------------------------------------------------------------------------------------------------------


def test_jsonl_shapes_of_labels_and_ids(tmp_path):
    lines = [
        '{"text": "a", "labels": ["x", "y", "x"], "id": 7}',
        '{"text": "b", "labels": "x;y", "id": "8"}',
        "",
        '{"text": "", "labels": 5, "id": "9"}',
        '{"text": "d", "labels": null, "id": "10", "group": "g"}',
        '{"text": "e", "id": "11", "group": ["g", "h"], "other": {"deep": 1}}',
        "   ",
    ]
    data = read(put(tmp_path, b"\xef\xbb\xbf" + "\r\n".join(lines).encode(), "rows.jsonl"))
    assert [set(data.labels_of(i)) for i in range(5)] == [{"x", "y"}, {"x;y"}, {"5"}, set(), set()]
    assert data.Y.data.tolist() == [1, 1, 1, 1]
    assert data.ids == ("7", "8", "9", "10", "11")
    assert data.groups.toarray().tolist() == [[0, 0], [0, 0], [0, 0], [1, 0], [1, 1]]


def test_jsonl_line_separator_characters_do_not_end_a_line(tmp_path):
    data = read(put(tmp_path, '{"text": "a\u2028b\x85c", "labels": []}\n', "rows.jsonl"))
    assert data.texts == ("a\u2028b\x85c",)


def test_several_text_columns_are_joined(tmp_path):
    text = '{"title": "a", "body": "b", "labels": []}\n{"title": "c", "body": null, "labels": []}\n'
    assert read(put(tmp_path, text, "r.jsonl"), text_column=["title", "body"]).texts == ("a b", "c")
    table = put(tmp_path, "title,body,tags\na,b,x\nc,,y\n", "r.csv")
    assert read(table, text_column=["title", "body"], labels_column="tags").texts == ("a b", "c")


@pytest.mark.parametrize(
    ("line", "sentence"),
    [
        ('{"text": "b"', "rows.jsonl line 3 is not JSON: Expecting ',' delimiter."),
        ('["b"]', "rows.jsonl line 3 must be a JSON object; got a list."),
        ('"b"', "rows.jsonl line 3 must be a JSON object; got a string."),
        ("17", "rows.jsonl line 3 must be a JSON object; got 17."),
        ('{"text": "b"}, {"text": "c"}', "rows.jsonl line 3 is not JSON: Extra data."),
        (
            '{"title": "b"}',
            "rows.jsonl line 3 has no key 'text'; it has: title (pass text_column= to name the right one).",
        ),
        ('{"text": null, "id": "3"}', "rows.jsonl line 3: 'text' must be a string; got null."),
        ('{"text": 5}', "rows.jsonl line 3: 'text' must be a string; got 5."),
        ('{"text": "b", "labels": [1.5]}', "rows.jsonl line 3: 'labels' must be a name or a list of names; got [1.5]."),
        (
            '{"text": "b", "labels": {"a": 1}}',
            "rows.jsonl line 3: 'labels' must be a name or a list of names; got {'a': 1}.",
        ),
        ('{"text": "b", "labels": true}', "rows.jsonl line 3: 'labels' must be a name or a list of names; got True."),
        ('{"text": "b", "labels": [""]}', "rows.jsonl line 3: a label or group must not be an empty string."),
        ('{"text": "b", "id": "7"}', "rows.jsonl line 1 has no 'id', though other rows have one."),
        ('{"text": "b", "id": [7]}', "rows.jsonl line 1 has no 'id', though other rows have one."),
        (b'{"text": "caf\xe9"}', "rows.jsonl line 3 is not UTF-8: byte 0xE9."),
    ],
)
def test_jsonl_bad_lines(tmp_path, line, sentence):
    line = line if isinstance(line, bytes) else line.encode()
    path = put(tmp_path, b'{"text": "a", "labels": ["x"]}\n\n' + line + b"\n", "rows.jsonl")
    assert refused(path) == sentence


def test_jsonl_mixed_ids_far_apart_are_refused(tmp_path):
    lines = ['{"text": "%s", "labels": ["x"]}' % ("w" * 100)] * 2000 + ['{"text": "b", "id": "7"}'] * 2000
    assert refused(put(tmp_path, "\n".join(lines), "rows.jsonl")).endswith("though other rows have one.")


def test_jsonl_without_labels_or_rows(tmp_path):
    path = put(tmp_path, '{"text": "a", "tags": ["x"]}\n', "rows.jsonl")
    assert refused(path).startswith("rows.jsonl has no labels: no row has 'labels'; columns that were not read: tags (")
    assert read(path, labels_required=False).n_labels == 0
    assert read(path, labels_column="tags").label_names == ("x",)
    assert refused(put(tmp_path, "\n\n", "rows.jsonl")) == "rows.jsonl has no rows."
    assert refused(put(tmp_path, "", "rows.jsonl")) == "rows.jsonl is empty."


def test_jsonl_truncated(tmp_path):
    raw = lzma.compress(b"".join(json.dumps({"text": str(i), "labels": ["x"]}).encode() + b"\n" for i in range(5000)))
    assert refused(put(tmp_path, raw[: len(raw) // 2], "rows.jsonl.xz")) == "rows.jsonl.xz is truncated or damaged."


def test_half_a_surrogate_pair_survives_only_jsonl(tmp_path):
    data = Dataset.from_lists(["bad \ud800 half"], [["x"]])
    write(data, tmp_path / "rows.jsonl")
    assert read(tmp_path / "rows.jsonl").texts == data.texts
    for name in ("rows.csv", "rows.ft", "rows.parquet"):
        with pytest.raises(DataError, match="half of a surrogate pair"):
            write(data, tmp_path / name)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["rows.jsonl"]  # nothing half-written stays


# CSV and TSV ----------------------------------------------------------------------------------------------------


def test_csv_labels_quotes_and_unknown_columns(tmp_path):
    text = 'id,labels,views,text\n1, x ; y;;x,9,"a ""b"", c\nd"\n\n2,,3,\n'
    data = read(put(tmp_path, b"\xef\xbb\xbf" + text.replace("\n", "\r\n").encode(), "rows.csv"))
    assert rows_of(data) == [('a "b", c\r\nd', {"x", "y"}), ("", set())]
    assert data.ids == ("1", "2")
    tabs = read(put(tmp_path, "text\tlabels\ta,b\na\tx|y\t\n", "rows.tsv"), label_separator="|")
    assert rows_of(tabs) == [("a", {"x", "y"})]


def test_csv_large_cells_leave_the_global_limit_alone(tmp_path):
    before = csv.field_size_limit()
    data = read(put(tmp_path, "text,labels\n" + "word " * 100_000 + ",x\n", "rows.csv"))
    assert len(data.texts[0]) == 500_000
    assert csv.field_size_limit() == before


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        (
            "title,tags\na,x\n",
            "data.csv has no column 'text'; it has: title, tags (pass text_column= to name the right one).",
        ),
        ("text,labels,text\na,x,b\n", "data.csv has the column 'text' 2 times."),
        ("text,labels\na,x\nb,y,z\n", "data.csv line 3 has 3 cells; the header has 2."),
        ('text,labels\n"a\nb",x\n\nb\n', "data.csv line 5 has 1 cells; the header has 2."),
        ("text,id\na,1\nb,\n", "data.csv line 3 has no 'id', though other rows have one."),
        ("text\na\n", "data.csv has no labels: no row has 'labels'."),
        ("", "data.csv is empty."),
        ("\n\n", "data.csv is empty."),
        ("text,labels\n", "data.csv has no rows."),
        ("text,labels\nä,x\n".encode() + b"b\xff,y\n", "data.csv line 3 is not UTF-8: byte 0xFF."),
    ],
)
def test_csv_bad_files(tmp_path, text, sentence):
    assert refused(put(tmp_path, text, "data.csv")) == sentence


def test_csv_open_quote(tmp_path):
    path = put(tmp_path, 'text,labels\na,x\n"b,y\nc,z\n', "data.csv")
    assert refused(path) == "data.csv line 3: a quoted cell is not closed, or text follows its closing quote."
    path = put(tmp_path, "text,labels\na,x\nb\rc,y\n", "data.csv")
    assert refused(path) == "data.csv line 3: a carriage return stands in a cell without quotes."


def test_csv_names_that_would_be_cut(tmp_path):
    data = Dataset.from_lists(["a"], [["x;y"]])
    file = tmp_path / "rows.csv"
    file.write_text("old")
    with pytest.raises(DataError) as caught:
        write(data, file)
    assert str(caught.value) == "the label 'x;y' holds the separator ';'; choose another separator."
    assert file.read_text() == "old"
    write(data, file, label_separator="|")
    assert rows_of(read(file, label_separator="|")) == rows_of(data)
    with pytest.raises(DataError, match="the label ' x' is empty or has spaces around it"):
        write(Dataset.from_lists(["a"], [[" x"]]), file)
    with pytest.raises(ParameterError, match=r"label_separator must be a string such as ';' or '\|', or .*; got ''"):
        write(data, file, label_separator="")


# Parquet --------------------------------------------------------------------------------------------------------


def test_parquet_columns(tmp_path):
    pa = pytest.importorskip("pyarrow")
    import pyarrow.parquet as pq

    file = tmp_path / "rows.parquet"
    pq.write_table(pa.table({"text": ["a", "b"], "labels": [[3, 4], None], "id": [1, 2]}), file)
    data = read(file)
    assert rows_of(data) == [("a", {"3", "4"}), ("b", set())]
    assert data.ids == ("1", "2")
    pq.write_table(pa.table({"text": ["a"], "labels": ["x; y"]}), file)
    assert rows_of(read(file)) == [("a", {"x", "y"})]
    pq.write_table(pa.table({"text": ["a", None], "labels": ["x", "y"]}), file)
    assert refused(file) == "rows.parquet row 2 has no 'text'."
    pq.write_table(pa.table({"title": ["a"], "tags": ["x"]}), file)
    assert (
        refused(file)
        == "rows.parquet has no column 'text'; it has: title, tags (pass text_column= to name the right one)."
    )
    assert refused(put(tmp_path, "not parquet at all", "x.parquet")) == "x.parquet is not a readable Parquet file."
    assert refused(put(tmp_path, "", "x.parquet")) == "x.parquet is empty."


def test_parquet_without_pyarrow(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    path = put(tmp_path, "x", "rows.parquet")
    with pytest.raises(MissingExtraError) as caught:
        read(path)
    sentence = "Reading Parquet needs the package 'pyarrow'; install it with: pip install 'longtail[io]'"
    assert str(caught.value) == sentence


# fastText and plain lines ---------------------------------------------------------------------------------------


def test_fasttext(tmp_path):
    text = "__label__x __label__y  some words\n\n__label__z\nno label  here\nlate __label__x word\n"
    path = put(tmp_path, text, "rows.ft")
    data = read(path)
    assert rows_of(data) == [
        ("some words", {"x", "y"}),
        ("", {"z"}),
        ("no label  here", set()),
        ("late word", {"x"}),
    ]
    write(data, tmp_path / "again.ft")
    assert rows_of(read(tmp_path / "again.ft")) == rows_of(data)
    assert refused(put(tmp_path, "__label__ a\n", "x.ft")) == "x.ft line 1 has a '__label__' without a name."


@pytest.mark.parametrize(
    ("text", "label", "sentence"),
    [
        ("a", "two words", "the label 'two words' is empty or holds a space, which fastText files cannot keep."),
        ("a __label__b", "x", "the text of row 0 has a word that starts with '__label__', which marks labels."),
    ],
)
def test_fasttext_refuses_what_it_cannot_keep(tmp_path, text, label, sentence):
    with pytest.raises(DataError) as caught:
        write(Dataset.from_lists([text], [[label]]), tmp_path / "x.ft")
    assert str(caught.value) == sentence
    with pytest.raises(DataError, match="row 1 has neither words nor labels"):
        write(Dataset.from_lists(["a", "  "], [["x"], []]), tmp_path / "x.ft")


def test_plain_lines_keep_empty_ones(tmp_path):
    path = put(tmp_path, "first\r\n\nthird", "new.txt")
    assert read(path, labels_required=False).texts == ("first", "", "third")
    assert refused(path) == (
        "new.txt has no labels: no row has 'labels' (read as 'lines', guessed from its first line; "
        "pass format= to change that)."
    )


# lists of labels ------------------------------------------------------------------------------------------------


def test_labels_file_fixes_numbers_and_gives_texts(tmp_path):
    rows = put(tmp_path, '{"text": "a", "labels": ["p2"]}\n', "rows.jsonl")
    text = '{"id": "p9", "text": "nine"}\n{"id": "p2", "text": "two", "parents": ["p9"]}\n{"id": "p1"}\n'
    labels = put(tmp_path, text, "labels.jsonl")
    data = read(rows, labels_file=labels)
    assert data.label_names == ("p9", "p2", "p1")
    assert data.label_texts == ("nine", "two", "")
    assert data.Y.toarray().tolist() == [[0, 1, 0]]
    chosen = read(rows, labels_file=labels, label_names=["p1", "p2"])
    assert (chosen.label_names, chosen.label_texts) == (("p1", "p2"), ("", "two"))
    assert refused(rows, label_names=["p1"]) == "rows.jsonl line 1: the label 'p2' is not in the list of labels."
    write_labels(data, tmp_path / "again.jsonl.xz")
    assert read_labels(tmp_path / "again.jsonl.xz") == read_labels(labels)


def test_labels_file_names_the_labels_of_xmc_text(tmp_path):
    rows = put(tmp_path, "1 2 2\n1 0:1\n", "rows.txt")
    assert read(rows, labels_file=put(tmp_path, "cat\ndog\n\n", "labels.txt")).labels_of(0) == ("dog",)
    assert "has 2 labels; the list of labels has 1" in refused(rows, label_names=["cat"])


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ('{"id": "a"}\n{"id": "a"}\n', "labels.jsonl line 2: the label 'a' stands in line 1 already."),
        ('{"text": "a"}\n', "labels.jsonl line 1 has no name under 'id', 'uid' or 'name'; it has: text."),
        ('{"id": "a", "text": 5}\n', "labels.jsonl line 1: the text of a label must be a string; got 5."),
        ('{"id": ""}\n', "labels.jsonl line 1: the name of the label is empty."),
    ],
)
def test_bad_labels_files(tmp_path, text, sentence):
    assert refused(put(tmp_path, text, "labels.jsonl"), read_labels) == sentence


# streaming ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("format", [*TEXT_FORMATS, "fasttext"])
def test_iter_texts_gives_the_same_texts_in_small_batches(tmp_path, format):
    texts = [f"text number {i}" for i in range(2500)]
    data = Dataset.from_lists(texts, [[f"l{i % 7}"] for i in range(2500)], ids=tuple(map(str, range(2500))))
    write(data, tmp_path / "rows.x", format)
    batches = list(iter_texts(tmp_path / "rows.x", 400, format))
    assert [text for batch in batches for text in batch.texts] == texts
    assert max(batch.n_rows for batch in batches) <= 400
    if format != "fasttext":
        assert [i for batch in batches for i in batch.ids] == list(data.ids)
    assert {batch.n_labels for batch in batches} == {0}


def test_iter_texts_needs_no_labels_and_names_the_line(tmp_path):
    path = put(tmp_path, '{"text": "a"}\n{"title": "b"}\n', "rows.jsonl")
    assert (
        refused(path, lambda p: list(iter_texts(p)))
        == "rows.jsonl line 2 has no key 'text'; it has: title (pass text_column= to name the right one)."
    )
    assert [b.texts for b in iter_texts(put(tmp_path, "text\na\n", "rows.csv"))] == [("a",)]
    with pytest.raises(ParameterError, match="batch_rows must be an integer >= 1; got 0"):
        iter_texts(path, 0)
    with pytest.raises(DataError, match=r"no\.jsonl does not exist\."):
        iter_texts(tmp_path / "no.jsonl")  # said at once, not at the first batch


def test_iter_texts_holds_little_of_a_long_file(tmp_path):
    line = json.dumps({"id": "7", "text": "many words " * 20, "labels": ["a", "b"]}) + "\n"
    path = put(tmp_path, line * 30_000, "rows.jsonl")
    tracemalloc.start()
    try:
        rows = sum(batch.n_rows for batch in iter_texts(path, 500))
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert rows == 30_000
    assert peak < 0.25 * path.stat().st_size


def test_iter_texts_walks_through_xmc_text(tmp_path):
    path = put(tmp_path, "3 4 3\n0,2 0:1.5 3:-2\n 1:0.25\n1 0:1e-3 2:4\n", "rows.txt")
    batches = list(iter_texts(path, 2))
    assert [batch.n_rows for batch in batches] == [2, 1]
    whole = read(path)
    assert (sp.vstack([b.X for b in batches]) != whole.X).nnz == 0
    assert (sp.vstack([b.Y for b in batches]) != whole.Y).nnz == 0


@pytest.mark.parametrize(
    ("name", "text", "why"),
    [
        ("labels.tsv", "<http://ex.org/1>\tcats\n", "line 1 is not the name of one label: it has a tab"),
        ("labels.txt", "cats\ndogs\t59\n", "line 2 is not the name of one label: it has a tab"),
        ("labels.csv", "uri,notation,label_fi\n1,2,3\n", "line 1 is not the name of one label: it is a row of a table"),
        ("labels.ttl", "@prefix a: <b> .\n", "line 1 is not the name of one label: it is SKOS"),
        ("labels", "<a> <b> <c> .\n", "line 1 is not the name of one label: it is SKOS"),
    ],
)
def test_a_vocabulary_is_not_read_as_one_odd_name_per_line(tmp_path, name, text, why):
    sentence = refused(put(tmp_path, text, name), read_labels)
    assert why in sentence and "a vocabulary is given with vocabulary=" in sentence


def test_names_with_commas_and_colons_are_labels(tmp_path):
    names = ("law, order", "devel::lang:c; c++", "<b>")
    assert read_labels(put(tmp_path, "\n".join(names) + "\n", "labels.txt")).names == names
