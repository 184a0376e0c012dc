"""Options that several commands share, and reading the data they describe."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from longtail.errors import DataError, ParameterError, near

if TYPE_CHECKING:
    from longtail.data import Dataset, GroupedDataset, Limits
    from longtail.pipeline import Tagger

Command = TypeVar("Command", bound=Callable[..., Any])
BUNDLED = "bundled:"


def _zero_based(context: click.Context, option: click.Parameter, value: str) -> bool | str:
    """Return whether features are numbered from 0, or "auto"."""
    if value not in ("0", "1", "auto"):
        raise ParameterError(f"--first-id must be 0 or 1; got {value!r}.")
    return value if value == "auto" else value == "0"


first_id_option = click.option(
    "--first-id",
    "zero_based",
    default="auto",
    metavar="0|1",
    callback=_zero_based,
    help="Number of the first feature in libsvm files. [default: 0 if it occurs, else 1]",
)


def _limits(context: click.Context, option: click.Parameter, values: tuple[str, ...]) -> Limits:
    """Return the limits with those that were set."""
    from longtail.data import parse_limits

    return parse_limits(values)


limit_option = click.option(
    "--data-limit",
    "limits",
    multiple=True,
    metavar="NAME=N",
    callback=_limits,
    help="Raise or lower a limit for the data, such as rows=1000000000; repeat for more.",
)


def data_options(function: Command) -> Command:
    """Add the options that say how a data file is to be read."""
    for option in reversed(
        (
            click.option("--format", "format_name", metavar="NAME", help="Format of DATA; guessed if not given."),
            click.option("--labels-file", type=click.Path(path_type=Path), help="JSONL of the labels, with texts."),
            click.option("--text-column", multiple=True, metavar="NAME", help="Column of the text; repeat to join."),
            click.option("--labels-column", default="labels", show_default=True, metavar="NAME"),
            click.option("--label-separator", default=";", show_default=True, help="Between labels in CSV and TSV."),
            click.option("--part", default=None, type=click.Choice(["train", "test"]), help="Part of a folder."),
            click.option("--split", default=0, show_default=True, help="Number of the split of a folder."),
            first_id_option,
            limit_option,
        )
    ):
        function = option(function)
    return function


def json_option(function: Command) -> Command:
    """Add --json: facts for machines on stdout, and nothing else there."""
    return click.option("--json", "as_json", is_flag=True, help="Print facts as JSON.")(function)


def key_option(function: Command) -> Command:
    """Add --key: a model that was not signed with the other half of a public key is refused."""
    file = click.Path(path_type=Path)
    return click.option("--key", type=file, help="Public key that the model must be signed with.")(function)


def jobs_option(function: Command) -> Command:
    """Add --jobs."""
    return click.option("--jobs", type=int, default=None, help="Threads; all cores if not given.")(function)


def read_data(
    path: str, part: str, options: dict[str, Any], labels_required: bool = True, n_features: int | None = None
) -> Dataset:
    """Read DATA: a file, a folder, or `bundled:NAME` (the part that suits the command, or --part).

    `n_features` is the width a model expects, for files that do not tell theirs.
    """
    from longtail.data import bundled_names, load_bundled, read

    part = options["part"] or part
    if path.startswith(BUNDLED):
        return load_bundled(path.removeprefix(BUNDLED), part)
    there = os.path.exists(path)  # noqa: PTH110 - a path that the system does not take is one that is not there
    if not there and path in bundled_names():
        raise DataError(f"{path} does not exist; the data that comes with longtail is called {BUNDLED}{path}.")
    if not there:
        names = [BUNDLED + name for name in bundled_names()]
        raise DataError(f"{path} does not exist.{near(path, names)}")
    return read(
        path,
        options["format_name"],
        labels_file=options["labels_file"],
        labels_required=labels_required,
        text_column=options["text_column"] or "text",
        labels_column=options["labels_column"],
        label_separator=options["label_separator"],
        part=part,
        split=options["split"],
        zero_based=options["zero_based"],
        n_features=n_features,
        limits=options["limits"],
    )


def group_options(function: Command) -> Command:
    """Add the options that say how labels of groups become labels of rows."""
    for option in reversed(
        (
            click.option(
                "--groups",
                "groups_file",
                type=click.Path(path_type=Path),
                metavar="FILE",
                help="Labels of groups: one record per group, with its name and its labels.",
            ),
            click.option("--group-column", default="group", show_default=True, metavar="NAME", help="In both files."),
            click.option(
                "--assign",
                default=None,
                help="auto, argmax, top, soft or propagate: how labels of groups go to rows. [default: auto]",
            ),
        )
    ):
        function = option(function)
    return function


def read_grouped_data(path: str, part: str, options: dict[str, Any]) -> GroupedDataset:
    """Read DATA, whose rows say which groups they are in, and the labels of the groups from the file of --groups."""
    from longtail.data import read_grouped

    if path.startswith(BUNDLED):
        raise DataError(f"{path} has no groups; give a file whose rows have '{options['group_column']}'.")
    return read_grouped(
        path,
        options["groups_file"],
        options["format_name"],
        labels_file=options["labels_file"],
        group_column=options["group_column"],
        text_column=options["text_column"] or "text",
        labels_column=options["labels_column"],
        label_separator=options["label_separator"],
        part=options["part"] or part,
        split=options["split"],
        zero_based=options["zero_based"],
        limits=options["limits"],
    )


def expected_width(*taggers: Tagger) -> int | None:
    """Return how many features the rows must have for models that were trained on rows; None for those on texts."""
    return next((tagger.model_.n_features_in_ for tagger in taggers if not tagger.reads_texts_), None)
