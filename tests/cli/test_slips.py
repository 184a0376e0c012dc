"""Slips of people who try a command for the first time: each is refused in one sentence, and nothing is lost."""

import io
import json
import sys

import pytest

from longtail.cli import main
from longtail.cli.app import SETTINGS, app
from longtail.cli.foreign_names import COMMANDS, OPTIONS
from longtail.cli.given import WRITTEN

ROWS = [("red apple", "fruit;red"), ("green apple", "fruit"), ("fast car", "vehicle"), ("old car", "vehicle")] * 5


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Rows in a CSV file that also has a column which is not read, and a model trained on them."""
    folder = tmp_path_factory.mktemp("slips")
    write_rows(folder / "rows.csv")
    columns = ["--text-column", "title", "--labels-column", "tags"]
    with pytest.raises(SystemExit) as end:
        main(["train", str(folder / "rows.csv"), "-o", str(folder / "tagger"), "--calibrate", "0", *columns])
    assert end.value.code == 0
    return folder


def write_rows(path):
    lines = [f"{row},{title},{tags},2020" for row, (title, tags) in enumerate(ROWS)]
    path.write_text("id,title,tags,year\n" + "\n".join(lines) + "\n")


@pytest.fixture
def rows(folder, tmp_path, monkeypatch):
    """A copy of the rows in the working folder, whose bytes must stay what they are."""
    monkeypatch.chdir(tmp_path)
    write_rows(tmp_path / "rows.csv")
    (tmp_path / "tagger").symlink_to(folder / "tagger")
    before = (tmp_path / "rows.csv").read_bytes()
    yield tmp_path / "rows.csv"
    assert (tmp_path / "rows.csv").read_bytes() == before


# an output is never the file that is read


@pytest.mark.parametrize(
    ("command", "option"),
    [
        ("predict tagger rows.csv -o rows.csv --to csv", "--output"),
        ("predict tagger rows.csv -o ./rows.csv", "--output"),
        ("predict tagger rows.csv -o linked.csv", "--output"),
        ("predict tagger hard.csv -o rows.csv", "--output"),
        ("evaluate tagger rows.csv --report rows.csv", "--report"),
        ("evaluate tagger rows.csv --labels-csv rows.csv", "--labels-csv"),
        ("evaluate rows.csv --predictions hard.csv --report rows.csv", "--report"),
        ("compare tagger tagger rows.csv --report rows.csv", "--report"),
        ("convert rows.csv rows.csv", "OUTPUT"),
        ("convert rows.csv other.csv --write-labels rows.csv", "--write-labels"),
        ("check-labels rows.csv -o rows.csv", "--output"),
        ("monitor tagger rows.csv --report rows.csv", "--report"),
        ("monitor tagger other.csv --reference rows.csv --report rows.csv", "--report"),
        ("audit tagger rows.csv --certificates rows.csv", "--certificates"),
        ("train rows.csv -o rows.csv", "--output"),
        ("impute other.csv --groups rows.csv -o rows.csv", "--output"),
        ("review export rows.csv -o rows.csv", "--output"),
    ],
)
def test_an_output_is_never_the_file_that_is_read(rows, run, command, option):
    (rows.parent / "linked.csv").symlink_to(rows)
    (rows.parent / "hard.csv").hardlink_to(rows)
    err = run(*command.split(), code=2)
    assert f"error: {option} is the file that is read (" in err and "give another name." in err


def test_stdin_is_a_file_that_is_read_too(rows):
    import subprocess

    command = [sys.executable, "-m", "longtail", "predict", "tagger", "-", "-o", "rows.csv"]
    with rows.open() as stdin:
        done = subprocess.run(command, stdin=stdin, capture_output=True, text=True)
    assert done.returncode == 2 and "--output is the file that is read (rows.csv)" in done.stderr


def test_two_outputs_are_two_files(rows, run):
    err = run("evaluate", "tagger", "rows.csv", "--report", "new", "--labels-csv", "./new", code=2)
    assert "--report and --labels-csv must be different files; got ./new for both." in err


def test_every_option_that_writes_a_file_is_watched():
    """An option whose help says that it is written must be listed; a new one is easily forgotten."""
    import click

    def below(command):
        yield command
        for inner in getattr(command, "commands", {}).values():
            yield from below(inner)

    for command in below(app):
        for param in command.get_params(click.Context(command, **SETTINGS)):
            told = (getattr(param, "help", None) or "").lower()
            if isinstance(param.type, click.Path) and "write" in told and param.name != "checkpoint":
                assert WRITTEN & set(param.opts), (command.name, param.opts)


# an option that takes one value is given once


@pytest.mark.parametrize(
    ("command", "option"),
    [
        ("train rows.csv -o new --labels-column tags --labels-column year", "--labels-column is given twice"),
        ("train rows.csv -o new --label-separator | --label-separator ,", "--label-separator is given twice"),
        ("train rows.csv -o new --C 1 -C 2", "--C is given twice"),
        ("predict tagger rows.csv -k 1 -k 2 -k 3", "-k is given 3 times"),
        ("predict tagger rows.csv -o a --output b", "--output is given twice"),
        ("review export rows.csv -o a -o b", "--output is given twice"),
    ],
)
def test_an_option_that_takes_one_value_is_given_once(rows, run, command, option):
    err = run(*command.split(), code=2)
    assert f"error: {option}; it takes one value, so give it once." in err
    assert not (rows.parent / "new").exists()


def test_options_that_may_be_repeated_are(rows, run):
    columns = ["--text-column", "title", "--text-column", "year", "--labels-column", "tags"]
    run("train", "rows.csv", "-o", "new", "--calibrate", "0", *columns)
    found = run("predict", "tagger", "rows.csv", "-k", 3, "--deny", "fruit", "--deny", "red")
    assert {tag["label"] for line in found.splitlines() for tag in json.loads(line)["labels"]} == {"vehicle"}


# files and stdin that are not what they seem


def test_cells_that_are_written_python_lists_are_refused(rows, run):
    path = rows.parent / "pandas.csv"
    path.write_text("text,labels\nred apple,\"['fruit', 'red']\"\nold car,\"['vehicle']\"\n")
    err = run("train", path, "-o", "new", code=3)
    assert "pandas.csv line 2: labels in 'labels' look like Python lists, such as \"['fruit', 'red']\"" in err
    assert "JSON Lines with a list" in err and "--label-separator" in err
    path.write_text("text,labels\nred apple,[draft]\nold car,[1]\n")
    assert "2 labels" in run("convert", path, "good.jsonl")


def test_the_header_of_a_table_on_stdin_is_no_text(rows, run, monkeypatch):
    def give(text):
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(text.encode())))

    for text, name in (("id,title,year\n1,red apple,2020\n", "csv"), ("id\ttitle\n1\tred apple\n", "tsv")):
        give(text)
        err = run("predict", "tagger", "-", code=3)
        assert f"stdin line 1 is the header of a table, with the column 'title', not a text; use --format {name}" in err
    give("id,title,year\n")
    assert len(run("predict", "tagger", "-", "--format", "lines").splitlines()) == 1
    give("a car, the title, and more\n")
    assert len(run("predict", "tagger", "-").splitlines()) == 1


def test_no_header_is_printed_before_rows_were_read(rows, capfd):
    with pytest.raises(SystemExit) as end:
        main(["predict", "tagger", "rows.csv", "--to", "csv", "--text-column", "titel"])
    assert end.value.code == 3 and capfd.readouterr().out == ""


def test_no_text_at_all_is_a_header_alone(rows, run, monkeypatch):
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO()))
    assert run("predict", "tagger", "-", "--to", "csv") == "id,place,label,score,probability\n"


def test_a_separator_that_splits_nothing_is_refused(rows, run):
    path = rows.parent / "rows.jsonl"
    path.write_text('{"text": "red apple", "labels": "fruit|red"}\n')
    for command in (["train", path, "-o", "new"], ["convert", path, "new.jsonl"]):
        err = run(*command, "--label-separator", "|", code=2)
        assert "--label-separator has no effect: labels in" in err and "(format jsonl) are not split" in err
    path.write_text('{"text": "red apple", "labels": ["fruit", "red"]}\n')
    run("convert", path, "new.csv", "--label-separator", "|")
    assert "red apple,fruit|red" in (rows.parent / "new.csv").read_text()


def test_rows_without_any_label_are_no_rows_to_judge_by(rows, run):
    (rows.parent / "some.xmc").write_text("4 3 2\n0 0:1\n1 1:1\n0 0:1\n1 1:1\n")
    (rows.parent / "none.xmc").write_text("2 3 2\n 0:1\n 1:1\n")
    run("train", "some.xmc", "-o", "features")
    for command in (["evaluate", "features"], ["compare", "features", "features"]):
        assert "the rows of none.xmc must have at least one label" in run(*command, "none.xmc", code=3)


def test_rows_without_labels_are_counted(rows, capfd):
    (rows.parent / "half.csv").write_text("id,title,tags\n1,red apple,fruit\n2,old car,\n")
    with pytest.raises(SystemExit):
        main(["evaluate", "tagger", "half.csv"])
    assert "half.csv: 1 of 2 rows have no labels; every suggestion is wrong for them." in capfd.readouterr().err


def test_train_names_the_columns_it_does_not_read(rows, run):
    command = ["train", "rows.csv", "--calibrate", "0", "--text-column", "title", "--labels-column", "tags"]
    assert "Not read: 1 column (year)." in run(*command, "-o", "new")
    assert json.loads(run(*command, "-o", "new", "--json"))["columns_not_read"] == ["year"]


# what was meant


@pytest.mark.parametrize(
    ("command", "code", "sentence"),
    [
        ("train rows.csv -o new --text-column titel", 3, "Did you mean 'title'?"),
        ("train rows.csv -o new --text-column title,year", 3, "use --text-column title --text-column year to name sev"),
        ("evaluate rows.csv tagger", 2, "MODEL comes first: longtail evaluate tagger rows.csv; got rows.csv as MODEL."),
        ("predict rows.csv tagger", 2, "MODEL comes first: longtail predict tagger rows.csv"),
        ("test tagger rows.csv", 2, "No such command 'test'. Did you mean 'evaluate'?"),
        ("evalute tagger rows.csv", 2, "No such command 'evalute'. Did you mean 'evaluate'?"),
        ("xyz", 2, "No such command 'xyz' (see longtail --help)."),
        ("train rows.csv --cluster.k 3", 2, "No such option '--cluster.k'. Did you mean '--branching'?"),
        ("train rows.csv --model_path m", 2, "No such option '--model_path'. Did you mean '--output'?"),
        ("train rows.csv --n_trees 3", 2, "No such option '--n_trees'. Did you mean '--trees'?"),
        ("train rows.csv --max_leaf 3", 2, "No such option '--max_leaf'. Did you mean '--max-leaf'?"),
        ("train rows.csv --whatever 3", 2, "No such option '--whatever' (see longtail train --help)."),
        ("predict tagger rows.csv --top_k 3", 2, "No such option '--top_k'. Did you mean '-k'?"),
        (
            "predict --model tagger",
            2,
            "No such option '--model'; MODEL is given without one: longtail predict MODEL",
        ),
    ],
)
def test_what_was_meant_is_said(rows, run, command, code, sentence):
    assert sentence in run(*command.split(), code=code)


def test_names_of_other_programs_lead_to_names_of_ours():
    import click

    every = {opt for c in app.commands.values() for p in c.get_params(click.Context(c, **SETTINGS)) for opt in p.opts}
    assert set(COMMANDS.values()) <= set(app.commands) and not set(COMMANDS) & set(app.commands)
    meant = {name for names in OPTIONS.values() for name in names if not name.isupper()}
    assert meant <= every
