"""Files that hold a byte order mark alone are as empty as files of no bytes."""

import gzip

import pytest

from longtail.data import iter_texts, read, read_labels, read_predictions
from longtail.errors import DataError

MARKS = (b"", b"\xef\xbb\xbf", b"\xff\xfe")


@pytest.mark.parametrize("mark", MARKS[:2])
@pytest.mark.parametrize("name", ["a.csv", "a.tsv", "a.csv.gz", "a.jsonl", "a.txt", "a.ft", "a.text"])
def test_a_byte_order_mark_alone_is_an_empty_file(tmp_path, name, mark):
    file = tmp_path / name
    file.write_bytes(gzip.compress(mark) if name.endswith(".gz") else mark)
    for reading in (lambda: read(file, labels_required=False), lambda: list(iter_texts(file))):
        with pytest.raises(DataError, match=rf"{name} is empty\.$"):
            reading()


@pytest.mark.parametrize("mark", MARKS)
def test_a_mark_alone_is_no_table_no_list_and_no_predictions(tmp_path, mark):
    for name in ("a.csv", "a.txt", "a.jsonl"):
        (tmp_path / name).write_bytes(mark if name != "a.jsonl" else mark.replace(b"\xff\xfe", b""))
    with pytest.raises(DataError, match=r"a.csv is empty\.$"):
        read(tmp_path / "a.csv")
    for name in ("a.csv", "a.jsonl", "a.txt"):
        with pytest.raises(DataError, match=rf"{name} is empty\.$"):
            read_predictions(tmp_path / name, ["r0"], 1)
    with pytest.raises(DataError, match=r"a.txt is empty\.$"):
        read_labels(tmp_path / "a.txt")
