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


def test_evaluate_by_a_column_counts_whole_cells_and_takes_decimal_commas(tmp_path, capsys):
    rows, tags = tmp_path / "rows.csv", tmp_path / "tags.csv"
    rows.write_text('id;text;labels;Preis;Jahr\n1;x;a,b;"23,45";1\n2;y;a;"23,45";1\n3;z;b;;2\n')
    tags.write_text("id;label;score\n1;a;-0,000344711\n1;b;-2,5\n2;b;0,25\n2;a;,5\n3;a;1e-3\n3;b;2\n")
    command = [
        "evaluate",
        str(rows),
        "--predictions",
        str(tags),
        "--label-separator",
        ",",
        "--resamples",
        "0",
        "--json",
    ]
    with pytest.raises(SystemExit) as end:
        main([*command, "--by", "Preis"])
    facts = json.loads(capsys.readouterr().out)
    assert end.value.code == 0 and facts["evaluation"]["metrics"]["p@1"]["value"] == 1
    assert [(part["value"], part["rows"]) for part in facts["by"]["parts"]] == [("23,45", 2)]
    assert facts["by"]["rows_without"] == 1
    with pytest.raises(SystemExit) as end:
        main([*command, "--by", "Ort"])
    told = "rows.csv has no column 'Ort', by which the rows were to be judged; it also has: Jahr, Preis."
    assert end.value.code == 3 and told in capsys.readouterr().err
    tags.write_text('id,label,score\n1,a,"1,234"\n')  # which may be a thousand
    with pytest.raises(SystemExit):
        main(command)
    assert "line 2: a score must be a number; got '1,234'." in capsys.readouterr().err


def test_lists_of_groups_stay_lists_where_strings_are_whole(tmp_path):
    (tmp_path / "a.jsonl").write_text('{"text": "x", "labels": [], "group": ["g;h", "i"]}\n')
    assert read(tmp_path / "a.jsonl", split_groups=False).group_names == ("g;h", "i")
    (tmp_path / "a.csv").write_text('text,labels,group\nx,a,"g; h"\n')
    assert read(tmp_path / "a.csv", split_groups=False).group_names == ("g; h",)
    assert read(tmp_path / "a.csv").group_names == ("g", "h")
