"""An error keeps the parts of its sentence, and stays a plain exception."""

import copy
import pickle

import pytest

from longtail.data import read
from longtail.errors import DataError, Keyword, LongtailError, ModelError, Parameter, ParameterError
from longtail.validate import check_choice, check_flag, check_integer, check_real, check_widths, resolve_jobs

ERRORS = [
    LongtailError("a plain {sentence}."),
    ModelError("m is damaged."),
    ParameterError("allow and deny leave no label."),
    ParameterError(name="k", allowed="an integer >= 1", got=0),
    ParameterError(name="n_jobs", allowed="an integer other than 0", optional=", or None", got=0),
    ParameterError("{name} and {other} exclude each other.", name="classes", other=Parameter("top_k")),
    DataError("{path} has {n} splits; got {got}.", path="{a}.txt", n=1, got=Keyword("split", 3)),
    DataError(input="texts", problem="must hold {strings}."),
    DataError("a; {advice}.", advice=Keyword("format", verb="pass")),
]
SENTENCES = [
    "a plain {sentence}.",
    "m is damaged.",
    "allow and deny leave no label.",
    "k must be an integer >= 1; got 0.",
    "n_jobs must be an integer other than 0, or None; got 0.",
    "classes and top_k exclude each other.",
    "{a}.txt has 1 splits; got split=3.",
    "texts must hold {strings}.",
    "a; pass format=.",
]


@pytest.mark.parametrize(("error", "sentence"), [*zip(ERRORS, SENTENCES, strict=True)])
def test_the_sentence_survives_copies_and_pickles(error, sentence):
    for same in (error, copy.copy(error), copy.deepcopy(error), pickle.loads(pickle.dumps(error))):  # noqa: S301
        assert str(same) == sentence and same.args == (sentence,) and type(same) is type(error)
        same.restate()
        assert str(same) == sentence


@pytest.mark.parametrize(
    ("check", "name", "allowed", "got"),
    [
        (lambda: check_integer("k", 0, low=1), "k", "an integer >= 1", 0),
        (lambda: check_real("C", -1.0, low=0, high=2), "C", "a number between 0 and 2", -1.0),
        (lambda: check_choice("loss", "hing", ("hinge",)), "loss", "one of ['hinge']", "hing"),
        (lambda: check_flag("fast", 3), "fast", "True or False", 3),
        (lambda: check_widths("hidden", [0]), "hidden", "a whole number >= 1 or a list of them", [0]),
        (lambda: resolve_jobs(0), "n_jobs", "an integer other than 0", 0),
    ],
)
def test_checks_say_which_parameter_what_is_allowed_and_what_came(check, name, allowed, got):
    with pytest.raises(ParameterError) as told:
        check()
    assert (told.value.name, told.value.allowed, told.value.got) == (name, allowed, got)
    assert told.value.hint == ("Did you mean 'hinge'?" if name == "loss" else "")


def test_a_plain_sentence_has_no_fields():
    error = ParameterError("{x} is {y}.")
    assert (error.name, error.allowed, error.got, error.hint, error.fields) == (None, None, None, "", {})


def test_more_can_be_said_without_losing_the_fields():
    error = DataError("{path} needs {setting}.", path="a", setting=Keyword("zero_based")).extended(" ({how})", how="so")
    assert str(error) == "a needs zero_based= (so)."
    error.restate(setting="--first-id")
    assert str(error) == "a needs --first-id (so)."


def test_a_sentence_stays_one_line_of_bounded_length_whatever_a_file_says(tmp_path):
    file = tmp_path / "rows.csv"
    for header in (
        '"te\nxt",labels',
        "\x1b[31mred,labels",
        "\u202etext,labels",
        f"{'x' * 100_000},labels",
        f"{chr(7) * 5000},labels",
    ):
        file.write_text(f"{header}\na,b\n", "utf-8")
        with pytest.raises(DataError, match="has no column 'text'") as error:
            read(file)
        assert len(str(error.value).splitlines()) == 1 and len(str(error.value)) < 2500
        assert not any(ord(letter) < 32 or letter == "\u202e" for letter in str(error.value))


def test_advice_on_a_limit_and_on_a_guessed_format_stand_in_one_sentence(tmp_path):
    file = tmp_path / "rows.txt"
    file.write_text("4294967295 6 3\n0 1:1\n")
    with pytest.raises(DataError, match=r"limit for rows; raise it with .*read as 'xmc', .* pass format="):
        read(file)
