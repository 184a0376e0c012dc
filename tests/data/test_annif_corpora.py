"""Annif's corpora: TSV without a header, and folders of documents."""

import pytest

from longtail.data import Dataset, guess_format, iter_texts, read, write
from longtail.errors import DataError, DataWarning

ROWS = "cats and dogs\t<http://x/a> <http://x/b>\nonly cats\t<http://x/a>\nnothing\t\n"
DATA = Dataset.from_lists(
    ["cats\tand\ndogs", "nothing"], [["http://x/a", "http://x/b"], []], ids=["d1", "d2"], label_texts=["Cats", "Dogs"]
)


@pytest.fixture
def folder(tmp_path):
    for name, text in {
        "a.txt": "cats and\ndogs\n",
        "a.tsv": "<http://x/a>\tCats\n<http://x/b>\tDogs\n",
        "b.txt": "only Käse",
        "b.key": "cheese\nmilk products\n",
        "c.txt": "",
        "c.key": "",
        "notes.md": "ignored",
    }.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    return tmp_path


def test_a_tsv_without_a_header_is_known_by_its_first_line(tmp_path):
    file = tmp_path / "corpus.tsv"
    file.write_text(ROWS)
    data = read(file)
    assert guess_format(file) == ("annif", "first line")
    assert data.texts == ("cats and dogs", "only cats", "nothing")
    assert [data.labels_of(row) for row in range(3)] == [("http://x/a", "http://x/b"), ("http://x/a",), ()]
    assert [batch.texts for batch in iter_texts(file)] == [data.texts]
    file.write_text("text\tlabels\n<b>a</b>\tx;y\n")  # a header: an ordinary TSV
    assert guess_format(file) == ("tsv", "name") and read(file).names() == ("x", "y")


def test_what_is_no_subject_is_refused_by_its_line(tmp_path):
    file = tmp_path / "corpus.tsv"
    file.write_text(ROWS + "more\thttp://x/a\n")
    with pytest.raises(DataError, match=r"corpus.tsv line 4: subjects must stand in angle brackets, such as <http"):
        read(file)


def test_a_folder_of_documents(folder):
    data = read(folder)
    assert data.ids == ("a", "b", "c") and data.texts == ("cats and\ndogs", "only Käse", "")
    assert [data.labels_of(i) for i in range(3)] == [("http://x/a", "http://x/b"), ("cheese", "milk products"), ()]
    assert sum(batch.n_rows for batch in iter_texts(folder, batch_rows=2)) == 3
    (folder / "a.tsv").write_text("Cats\n")
    with pytest.raises(DataError, match=r"a.tsv line 1: subjects must stand in angle brackets"):
        read(folder)


def test_both_are_written_and_read_back(tmp_path):
    facts = write(DATA, tmp_path / "corpus.tsv", "annif")
    assert facts["left_out"] == ["ids", "label_texts"]
    assert (tmp_path / "corpus.tsv").read_text() == "cats and dogs\t<http://x/a> <http://x/b>\nnothing\t\n"
    facts = write(DATA, tmp_path / "docs", "annif-folder")
    assert facts["left_out"] == [] and facts["bytes"] > 0
    assert (tmp_path / "docs" / "d1.tsv").read_text() == "<http://x/a>\tCats\n<http://x/b>\tDogs\n"
    again = read(tmp_path / "docs")
    assert again.texts == DATA.texts and again.ids == DATA.ids and (again.Y != DATA.Y).nnz == 0


def test_what_a_corpus_cannot_hold_is_refused_and_nothing_is_written(tmp_path):
    spaced = Dataset.from_lists(["a"], [["two words"]])
    for target, format in ((tmp_path / "a.tsv", "annif"), (tmp_path / "docs", "annif-folder")):
        with pytest.raises(DataError, match="'two words' holds a space or an angle bracket"):
            write(spaced, target, format)
    for ids, why in ((["../a", "b"], "only letters"), (["a", "A"], "twice"), ([".a", "b"], "only letters")):
        with pytest.raises(DataError, match=f"cannot be the name of a file: .*{why}"):
            write(Dataset.from_lists(["a", "b"], [["x"], ["y"]], ids=ids), tmp_path / "docs", "annif-folder")
    assert list(tmp_path.iterdir()) == []
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "kept").write_text("")
    with pytest.raises(DataError, match="docs exists already; a folder of documents is written to a new one"):
        write(DATA, tmp_path / "docs", "annif-folder")


def test_documents_without_a_file_of_subjects_are_counted(tmp_path):
    for name in ("a", "b", "c"):
        (tmp_path / f"{name}.txt").write_text(f"text {name}\n")
    with pytest.raises(DataError, match=r"none of the known layouts.*; pass format='annif-folder' if every \.txt file"):
        read(tmp_path)
    with pytest.raises(DataError, match=r"has no labels: no document has any\.$"):
        read(tmp_path, "annif-folder")
    assert read(tmp_path, "annif-folder", labels_required=False).ids == ("a", "b", "c")
    (tmp_path / "b.key").write_text("cats\n")
    with pytest.warns(DataWarning, match=r"2 of 3 documents have no \.tsv or \.key file beside them, and so no labels"):
        assert read(tmp_path).Y.sum() == 1
    assert sum(batch.n_rows for batch in iter_texts(tmp_path)) == 3  # texts alone are wanted: no warning
