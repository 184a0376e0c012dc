"""A column that is not there is refused with a list of those that are, and with the parameter that names one."""

import json

import pytest

from longtail.cli import main
from longtail.data import iter_texts, read
from longtail.errors import DataError


def refused(file, **options):
    with pytest.raises(DataError) as error:
        read(file, **options)
    return str(error.value).replace(f"{file.parent}/", "")


@pytest.mark.parametrize("name", ["a.csv", "a.jsonl", "a.parquet"])
def test_a_column_of_ids_that_was_named_must_be_there(tmp_path, name):
    file = tmp_path / name
    if name == "a.csv":
        file.write_text("text,labels\nx,a\n")
    elif name == "a.jsonl":
        file.write_text(json.dumps({"text": "x", "labels": ["a"]}) + "\n")
    else:
        pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
        pq.write_table(pa.table({"text": ["x"], "labels": [["a"]]}), file)
    assert read(file).ids is None and read(file, id_column="id").ids is None
    advice = "it has: text, labels (pass id_column= to name the right one, or 'id' if there is none)."
    told = refused(file, id_column="Nummer")
    assert told.endswith(advice) and "'Nummer'" in told
    with pytest.raises(DataError, match="'Nummer'; it has: text, labels"):
        list(iter_texts(file, id_column="Nummer"))


def test_the_columns_of_a_table_are_listed_one_by_one_whatever_its_delimiter(tmp_path):
    file = tmp_path / "alt.csv"
    file.write_text("Nr.;Betreff / Beschreibung;Schlagwort, frei\n1;x;a\n")
    assert refused(file) == (
        "alt.csv has no column 'text'; it has: Nr., Betreff / Beschreibung, Schlagwort, frei "
        "(pass text_column= to name the right one)."
    )
    assert refused(file, text_column="Betreff / Beschreibung") == (
        "alt.csv has no labels: no row has 'labels'; columns that were not read: Nr., Schlagwort, frei "
        "(pass labels_column= if one of them holds the labels)."
    )


def test_long_names_and_long_lists_of_columns_are_cut(tmp_path):
    (tmp_path / "a.tsv").write_text("A text, which, by, commas, would be more cells " * 20 + "\t<http://a>\n")
    told = refused(tmp_path / "a.tsv", format="tsv")
    assert "it has: A text, which, by, commas, would be more…, <http://a> (" in told
    (tmp_path / "b.csv").write_text(",".join(f"c{i}" for i in range(100)) + "\n")
    assert "c28, c29 and 70 more (" in refused(tmp_path / "b.csv")


def test_the_command_line_names_its_options(tmp_path, capsys):
    (tmp_path / "alt.csv").write_text("Nr.;Betreff;Schlagwort\n1;x;a\n")
    for options, told in (
        ([], "it has: Nr., Betreff, Schlagwort (use --text-column to name the right one)."),
        (
            ["--text-column", "Betreff"],
            "not read: Nr., Schlagwort (use --labels-column if one of them holds the labels).",
        ),
        (["--text-column", "Betreff", "--id-column", "Nummer"], "(use --id-column to name the right one, or 'id' if"),
    ):
        with pytest.raises(SystemExit) as end:
            main(["train", str(tmp_path / "alt.csv"), "-o", str(tmp_path / "m"), *options])
        assert end.value.code == 3 and told in capsys.readouterr().err
