"""CSV as spreadsheets write it: other delimiters, other encodings, other separators between labels."""

import gzip

import pytest

from longtail.data import iter_texts, read
from longtail.errors import DataError, DataWarning, ParameterError

GERMAN = 'text;labels;id\r\n"Käfer; grün";"Tiere;Käfer";1\r\nBüro;"Arbeit";2\r\n'
TEXTS = ("Käfer; grün", "Büro")
LABELS = ("Arbeit", "Käfer", "Tiere")


def put(folder, raw, name="rows.csv"):
    file = folder / name
    file.write_bytes(raw)
    return file


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-16-le"])
def test_semicolons_and_unicode_encodings_are_found(tmp_path, encoding):
    mark = b"\xff\xfe" if encoding == "utf-16-le" else b""
    data = read(put(tmp_path, mark + GERMAN.encode(encoding)))
    assert data.texts == TEXTS and data.names() == LABELS and data.ids == ("1", "2")


def test_windows_1252_is_found_and_told(tmp_path):
    file = put(tmp_path, GERMAN.encode("cp1252"))
    with pytest.warns(
        DataWarning, match=r"rows.csv line 2 is not UTF-8, so the file is read as Windows-1252; pass enc"
    ):
        data = read(file)
    assert data.texts == TEXTS and data.names() == LABELS
    assert read(file, encoding="windows-1252").texts == TEXTS
    assert next(iter_texts(file, encoding="cp1252")).texts == TEXTS


def test_a_late_character_decides_and_a_broken_utf8_file_is_still_refused(tmp_path):
    many = b"text,labels\n" + b"plain,x\n" * 200_000
    with pytest.warns(DataWarning, match="line 200002 is not UTF-8"):
        assert read(put(tmp_path, many + "Käse,x\n".encode("cp1252"))).texts[-1] == "Käse"
    with pytest.raises(DataError, match="line 200003 is not UTF-8: byte 0xE4"):
        read(put(tmp_path, many + "Käse,x\n".encode() + "Käse,x\n".encode("cp1252")))
    with pytest.raises(DataError, match="line 2 is not UTF-8, nor Windows-1252: byte 0x81"):  # noqa: SIM117
        with pytest.warns(DataWarning):
            read(put(tmp_path, b"text,labels\n\x81,x\n"))


@pytest.mark.parametrize("delimiter", [",", ";", "\t", "|"])
@pytest.mark.parametrize("name", ["rows.csv", "rows.tsv", "rows.csv.gz"])
def test_the_header_tells_the_delimiter(tmp_path, delimiter, name):
    raw = f"id{delimiter}text{delimiter}labels\n1{delimiter}a, b{delimiter}x\n".replace("a, b", '"a, b; c"').encode()
    data = read(put(tmp_path, gzip.compress(raw) if name.endswith("gz") else raw, name))
    assert data.texts == ("a, b; c",) and data.ids == ("1",) and data.names() == ("x",)


def test_a_delimiter_that_is_given_is_used_and_checked(tmp_path):
    file = put(tmp_path, b"text~labels\na~x\n")
    assert read(file, delimiter="~").names() == ("x",)
    assert read(put(tmp_path, b"text\tlabels\na\tx\n"), delimiter="tab").names() == ("x",)
    with pytest.raises(ParameterError, match="delimiter must be one character, such as ';', or 'tab'; got '::'"):
        read(file, delimiter="::")
    with pytest.raises(ParameterError, match="delimiter cannot be used with the format 'jsonl'; got ';'"):
        read(put(tmp_path, b'{"text": "a", "labels": ["x"]}\n', "rows.jsonl"), delimiter=";")
    assert read(put(tmp_path, b"sep=;\r\ntext;labels\r\na;x\r\n")).texts == ("a",)


@pytest.mark.parametrize("encoding", ["klingon", "zlib", "idna", "unicode_escape", "utf-7", 7])
def test_what_is_no_encoding_is_refused(tmp_path, encoding):
    with pytest.raises(
        ParameterError, match="encoding must be an encoding such as 'utf-8', 'windows-1252' or 'utf-16'"
    ):
        read(put(tmp_path, b"text,labels\na,x\n"), encoding=encoding)


def test_an_encoding_that_does_not_fit_names_the_line(tmp_path):
    with pytest.raises(DataError, match=r"rows.csv line 2 is not ascii"):
        read(put(tmp_path, GERMAN.encode()), encoding="ascii")
    odd = b"\xff\xfe" + "text,labels\nab,x\n".encode("utf-16-le") + b"\x00\xdc\n"
    with pytest.raises(DataError, match=r"rows.csv line 3 is not utf-16"):
        read(put(tmp_path, odd))


@pytest.mark.parametrize("name", ["rows.jsonl", "rows.text", "rows.ft"])
def test_other_text_formats_take_an_encoding(tmp_path, name):
    lines = {"rows.jsonl": '{"text": "Käse", "labels": ["x"]}\n', "rows.text": "Käse\n", "rows.ft": "__label__x Käse\n"}
    file = put(tmp_path, lines[name].encode("cp1252"), name)
    assert read(file, encoding="cp1252", labels_required=False).texts == ("Käse",)


def test_labels_that_were_not_split_are_noticed(tmp_path):
    file = put(tmp_path, b'text,labels\na,"x|y"\nb,"y|z"\nc,x\n')
    with pytest.warns(
        DataWarning, match=r"most labels hold '\|', such as 'x\|y'; pass label_separator='\|' if it stands"
    ):
        assert read(file).n_labels == 3
    assert read(file, label_separator="|").names() == ("x", "y", "z")
    read(put(tmp_path, b'text,labels\na,"Doe, Jane"\nb,"Roe, Rita"\n'))  # names of persons: nothing is shared
    strings = put(tmp_path, b'{"text": "a", "labels": "x;y"}\n{"text": "b", "labels": "y;z"}\n', "rows.jsonl")
    with pytest.warns(DataWarning, match="such as 'x;y'; write a list if it stands between labels"):
        read(strings)


@pytest.mark.parametrize("name", ["rows.csv", "rows.jsonl"])
def test_columns_that_are_not_read_can_be_known(tmp_path, name):
    raw = {"rows.csv": b"text,labels,year\na,x,1\n", "rows.jsonl": b'{"text": "a", "labels": ["x"], "year": 1}\n'}[name]
    ignored = set()
    read(put(tmp_path, raw, name), ignored_columns=ignored)
    assert ignored == {"year"}


@pytest.mark.parametrize(("written", "mark"), [("utf-8-sig", "UTF-8"), ("utf-16", "UTF-16")])
@pytest.mark.parametrize("name", ["a.csv", "a.jsonl"])
def test_a_byte_order_mark_wins_over_another_encoding_that_was_named(tmp_path, name, written, mark):
    text = "text,labels\nÄpfel,öl\n" if name == "a.csv" else '{"text": "Äpfel", "labels": ["öl"]}\n'
    (tmp_path / name).write_text(text, encoding=written)
    with pytest.warns(DataWarning, match=f"{name} begins with the byte order mark of {mark}, so .* not as cp1252"):
        data = read(tmp_path / name, encoding="windows-1252")
    assert data.texts == ("Äpfel",) and data.label_names == ("öl",)
