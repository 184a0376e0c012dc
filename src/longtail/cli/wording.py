"""Errors in the words of the command line: options instead of Python's parameters, one sentence instead of four."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator
from pathlib import Path

import click

from longtail.errors import DataError, LongtailError, ParameterError

# Python's name -> the name of the command's parameter, where they differ
ALIASES = {"random_state": "seed", "n_jobs": "jobs", "n_bootstrap": "resamples", "batch_rows": "batch"}
NAMED = re.compile(r"(\w+)(?:\[\d\])?(?= must | '[^']*' is not )")
PHRASES = (
    (re.compile(r"format to write; pass format="), "format to write; use --to"),
    (re.compile(r"\bpass format="), "use --format"),
    (re.compile(r"\bgot split=(\d+)"), r"got --split \1"),
    (re.compile(r"\bwith zero_based=False\b"), "with --first-id 1"),
    (re.compile(r"\bwith zero_based="), "with --first-id"),
    (re.compile(r"\bn_features=(\d+) allows fewer"), r"the model was trained on \1"),
    (re.compile(r"^X must have (\d+) features"), r"the data must have \1 features"),
    (re.compile(r"^name must be"), "the name after 'bundled:' must be"),
    (
        re.compile(r"^max_df must allow .* and (\d+) for (\d+) rows"),
        r"--min-df must be at most the number of texts trained on, \2; got \1",
    ),
    (re.compile(r", or None;"), ";"),
    (re.compile(r"^(--\w+ must be )None or "), r"\1"),
)


def usage_sentence(error: click.ClickException) -> str:
    """Return what click has to say in one line.

    >>> usage_sentence(click.UsageError("Missing argument 'DATA'."))
    "Missing argument 'DATA'."
    """
    told = " ".join(error.format_message().split())
    if told.endswith(("?", "?)")):  # it names what was meant already
        return told
    context = getattr(error, "ctx", None)
    return told.removesuffix(".") + (f" (see {context.command_path} --help)." if context is not None else ".")


def reword(error: LongtailError, command: click.Command | None) -> None:
    """Change a sentence that names a parameter of Python so that it names the option of the command.

    >>> command = click.Command("train", params=[click.Option(["--trees", "n_trees"])])
    >>> error = ParameterError("n_trees must be an integer >= 1; got 0.")
    >>> reword(error, command)
    >>> print(error)
    --trees must be an integer >= 1; got 0.
    """
    if not isinstance(error, ParameterError | DataError):
        return
    told = str(error)
    found = NAMED.match(told)
    options = _options(command)
    if found is not None and isinstance(error, ParameterError):
        name = found.group(1)
        told = options.get(ALIASES.get(name, name), found.group()) + told[found.end() :]
    for pattern, words in PHRASES:
        told = pattern.sub(words, told)
    error.args = (told,)


@contextlib.contextmanager
def naming_texts(path: str, labels_file: Path | None = None) -> Iterator[None]:
    """Let a sentence on the texts, rows or labels say which file they are from.

    >>> with naming_texts("rows.csv"):
    ...     raise DataError("the texts have no words to learn from.")
    Traceback (most recent call last):
    ...
    longtail.errors.DataError: the texts of rows.csv have no words to learn from.
    """
    try:
        yield
    except DataError as error:
        told = str(error)
        for pattern, words in (
            (r"^(?:the )?texts (?=have\b|must\b)", f"the texts of {path} "),
            (r"^Y (?=must (?:hold|have) at least one label\b)", f"the rows of {path} "),
            (r"\bthe data (?=has only rows of features\b)", f"{path} "),
        ):
            told = re.sub(pattern, words.replace("\\", r"\\"), told)
        if labels_file is not None:
            told = re.sub(r"(?<=every label; )label (?=.* has none\.$)", lambda _: f"in {labels_file} label ", told)
        error.args = (told,)
        raise


@contextlib.contextmanager
def counting_on(first: int) -> Iterator[None]:
    """Let a sentence on a row of a batch count from the first row of all; `first` is the number of the batch's first.

    >>> with counting_on(100):
    ...     raise DataError("texts must be Unicode text; the one of row 3 is not.")
    Traceback (most recent call last):
    ...
    longtail.errors.DataError: texts must be Unicode text; the one of row 103 is not.
    """
    try:
        yield
    except DataError as error:
        told = re.sub(r"(?<=the one of row )\d+", lambda found: str(first + int(found.group())), str(error))
        error.args = (told,)
        raise


def _options(command: click.Command | None) -> dict[str, str]:
    """Return the options of a command by the name of their value and by their own names without dashes."""
    out: dict[str, str] = {}
    for option in command.params if command is not None else ():
        if isinstance(option, click.Option):
            longest = max(option.opts, key=len)
            names = (opt.lstrip("-").replace("-", "_") for opt in option.opts)
            out |= dict.fromkeys((option.name or "", *names), longest)
    return out
