"""Errors in the words of the command line: options instead of Python's parameters, files instead of arguments."""

from __future__ import annotations

import contextlib
import re
import warnings
from collections.abc import Callable, Hashable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from longtail.cli.foreign_names import unknown_name_sentence
from longtail.cli.model_options import ModelOption
from longtail.cli.output import note
from longtail.errors import (
    NOTHING,
    DataError,
    DataWarning,
    Keyword,
    LongtailError,
    Parameter,
    ParameterError,
    with_decimal_point,
)

# Python's name -> the name of the command's parameter, where they differ
ALIASES = {"random_state": "seed", "n_jobs": "jobs", "n_bootstrap": "resamples", "batch_rows": "batch"}
ARGUMENTS = {"data": "DATA", "name": "the name after 'bundled:'"}  # parameters that are no options
VALUES = {
    ("zero_based", False): "1",
    ("zero_based", True): "0",
    ("experts", ("tree", "names")): "tree,names",
}  # where the option takes other values
OF_TRAINING = {"calibrate": "--calibrate"}  # what other commands advise to train with
NO_NUMBER = re.compile("Invalid value for '(--[a-zA-Z-]+)': '([^']*)' is not a valid float\\.")
GUESSED, EXPECTED = "longtail.guessed_encodings", "longtail.expected_encoding"  # of a command, while it runs
CONSTANT = {"optional": "", "caller": "the command line"}  # fields with one text on the command line


def usage_sentence(error: click.ClickException) -> str:
    """Return the message of a click error in one line.

    >>> usage_sentence(click.UsageError("Missing argument 'DATA'."))
    "Missing argument 'DATA'."
    >>> usage_sentence(click.UsageError("Invalid value for '--eps': '1,5' is not a valid float."))
    "--eps must be a number; got '1,5'. Write 1.5."
    """
    about_name = unknown_name_sentence(error)
    if about_name is not None:
        return about_name
    message = " ".join(error.format_message().split())
    if (found := NO_NUMBER.fullmatch(message)) is not None:
        dotted = with_decimal_point(found[2])
        return f"{found[1]} must be a number; got '{found[2]}'." + ("" if dotted is None else f" Write {dotted}.")
    if message.endswith(("?", "?)")):  # it names what was meant already
        return message
    context = getattr(error, "ctx", None)
    return message.removesuffix(".") + (f" (see {context.command_path} --help)." if context is not None else ".")


def reword(error: LongtailError, command: click.Command | None) -> None:
    """Let an error name the options of a command where it names parameters of Python.

    >>> command = click.Command("train", params=[click.Option(["--trees", "n_trees"])])
    >>> error = ParameterError(name="n_trees", allowed="an integer >= 1", got=0)
    >>> reword(error, command)
    >>> print(error)
    --trees must be an integer >= 1; got 0.
    """
    options = option_names(command)
    error.restate(_own_template(error), **{key: _reworded(error, key, options) for key in error.fields})


@contextlib.contextmanager
def warnings_as_notes(command: Callable[[], click.Command | None]) -> Iterator[None]:
    """Say warnings about data within the block as notes that name the options of a command."""
    with warnings.catch_warnings():
        warnings.simplefilter("always", DataWarning)
        before = warnings.showwarning

        def show(message: Warning | str, category: type[Warning], *where: Any, **more: Any) -> None:
            if isinstance(message, DataWarning) and isinstance(message.args[0], LongtailError):
                if not _is_expected(message.args[0]):
                    reword(message.args[0], command())
                    note(str(message))
            else:
                before(message, category, *where, **more)

        warnings.showwarning = show
        yield


def _is_expected(warning: LongtailError) -> bool:
    """Return whether a warning tells of an encoding that the model's training file had too; keep it in mind if not."""
    encoding, context = warning.fields.get("guessed_encoding"), click.get_current_context(silent=True)
    if encoding is None or context is None:
        return False
    context.meta.setdefault(GUESSED, {})[str(warning.fields.get("path"))] = encoding
    return bool(context.meta.get(EXPECTED) == encoding)


def expect_encoding(encoding: str | None) -> None:
    """Let the command say nothing where this encoding is guessed."""
    context = click.get_current_context(silent=True)
    if context is not None and encoding is not None:
        context.meta[EXPECTED] = encoding


def guessed_encoding(path: str) -> str | None:
    """Return the encoding that was guessed for a file of this command; None where none had to be."""
    context = click.get_current_context(silent=True)
    return None if context is None else context.meta.get(GUESSED, {}).get(str(Path(path)))


def _own_template(error: LongtailError) -> str | None:
    """Return another sentence for the few errors that the command line tells of in its own way."""
    name = error.fields.get("name")
    if isinstance(error, DataError) and name == "n_features":
        return "{path} has {got} features; the model was trained on {most}."
    if isinstance(error, ParameterError) and name == "max_df" and error.got == 1.0:  # as it is if not given
        return "{other} must be at most the number of texts trained on, {n_rows}; got {min_df}."
    return None


def _reworded(error: LongtailError, key: str, options: Mapping[str, str]) -> Any:
    """Return one field of an error as the command line writes it."""
    value = error.fields[key]
    if key in CONSTANT:
        return CONSTANT[key]
    if isinstance(value, Keyword):
        return _keyword(value, options)
    if isinstance(value, Parameter) or (key == "name" and isinstance(error, ParameterError)):
        return _option(value, options) or ARGUMENTS.get(value, value)
    if key == "input" and value == "X":
        return "the data"
    return value


def _keyword(keyword: Keyword, options: Mapping[str, str]) -> Keyword | str:
    """Return a keyword argument as an option with its value."""
    option = _option(keyword.name, options) or OF_TRAINING.get(keyword.name)
    if option is None:
        return keyword
    value = keyword.value
    shown = "" if value is NOTHING or value is True else f" {value}"
    if isinstance(value, Hashable) and (keyword.name, value) in VALUES:
        shown = f" {VALUES[keyword.name, value]}"
    elif isinstance(value, list):  # the option is repeated
        shown = " " + f" {option} ".join(map(str, value))
    return f"{'use ' if keyword.verb else ''}{option}{shown}"


def _option(name: str, options: Mapping[str, str]) -> str | None:
    """Return the option for a parameter, or for one element of it such as `ngrams[1]`; None if there is none."""
    plain = name.partition("[")[0]
    return options.get(ALIASES.get(plain, plain))


def option_names(command: click.Command | None) -> dict[str, str]:
    """Return the options of a command, longest form, by parameter name and by their own names without dashes."""
    out: dict[str, str] = {}
    for option in command.get_params(click.Context(command)) if command is not None else ():
        if isinstance(option, click.Option):
            longest = max(option.opts, key=len)
            names = (opt.lstrip("-").replace("-", "_") for opt in option.opts)
            out |= dict.fromkeys((option.name or "", *names), longest)
            if isinstance(option, ModelOption):
                out.setdefault(option.parameter, longest)
    return out


@contextlib.contextmanager
def naming_data(path: str, labels_file: Path | None = None, first_row: int = 0) -> Iterator[None]:
    """Let an error about texts, rows or labels name the file they are from; rows are counted from `first_row`.

    >>> with naming_data("rows.csv", first_row=100):
    ...     raise DataError("{input} must be Unicode text; the one of row {row} is not.", input="texts", row=3)
    Traceback (most recent call last):
    ...
    longtail.errors.DataError: the texts of rows.csv must be Unicode text; the one of row 103 is not.
    """
    texts = f"the texts of {path}"
    inputs = {"texts": texts, "the texts": texts, "Y": f"the rows of {path}", "the data": path}
    try:
        yield
    except DataError as error:
        fields = dict(error.fields)
        if fields.get("input") in inputs:
            fields["input"] = inputs[fields["input"]]
        if "listed_in" in fields and labels_file is not None:
            fields["listed_in"] = f"in {labels_file} "
        if isinstance(fields.get("row"), int):
            fields["row"] += first_row
        error.restate(**fields)
        raise


@contextlib.contextmanager
def renaming(**names: str) -> Iterator[None]:
    """Let an error speak of another parameter of the command than the one with Python's name.

    >>> with renaming(format="to"):
    ...     raise DataError("the format is not known; {advice}.", advice=Keyword("format", verb="pass"))
    Traceback (most recent call last):
    ...
    longtail.errors.DataError: the format is not known; pass to=.
    """
    try:
        yield
    except LongtailError as error:
        fields = dict(error.fields)
        for key, value in fields.items():
            if isinstance(value, Keyword):
                fields[key] = replace(value, name=names.get(value.name, value.name))
            elif key == "name" and isinstance(error, ParameterError):
                fields[key] = names.get(value, value)
        error.restate(**fields)
        raise
