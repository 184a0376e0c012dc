"""Options that several commands share, and reading the data they describe."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeVar, cast

import click

from longtail.cli.output import note
from longtail.cli.wording import expect_encoding, guessed_encoding, renaming
from longtail.errors import DataError, ParameterError, near

if TYPE_CHECKING:
    from longtail.data import Dataset, GroupedDataset, Limits
    from longtail.facts import ReadingFacts
    from longtail.pipeline import Tagger
    from longtail.vocabulary import Vocabulary

Command = TypeVar("Command", bound=Callable[..., Any])
BUNDLED = "bundled:"
SIZE = re.compile(r"([0-9]+(?:\.[0-9]+)?) ?(GB|MB|kB|KB|gb|mb|kb|G|M|g|m)")
COLUMNS_SHOWN = 20
UNITS = {"GB": 10**9, "G": 10**9, "MB": 10**6, "M": 10**6, "KB": 10**3}


class Option(Protocol):
    """What gives a command an option: a decorator."""

    def __call__(self, command: Command, /) -> Command: ...


def _zero_based(context: click.Context, option: click.Parameter, value: str) -> bool | str:
    """Return whether features are numbered from 0, or "auto"."""
    if value not in ("0", "1", "auto"):
        raise ParameterError(f"--first-id must be 0 or 1; got {value!r}.")
    return value if value == "auto" else value == "0"


first_id_option: Option = click.option(
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


limit_option: Option = click.option(
    "--data-limit",
    "limits",
    multiple=True,
    metavar="NAME=N",
    callback=_limits,
    help="Raise or lower a limit for the data, such as rows=1000000000; repeat for more.",
)


column_options: tuple[Option, ...] = (
    click.option("--text-column", multiple=True, metavar="NAME", help="Column of the text; repeat to join."),
    click.option("--id-column", default=None, metavar="NAME", help="[default: id]"),
    click.option("--delimiter", default=None, help="Between the cells of DATA, if CSV or TSV; found if not given."),
    click.option("--encoding", default=None, metavar="NAME", help="Such as windows-1252; CSV and TSV tell it mostly."),
)
REMEMBERED: dict[str, Any] = {  # what a model remembers of the file it was trained on, and what it is if never told
    "text_column": "text",
    "id_column": "id",
    "labels_column": "labels",
    "label_separator": ";",
    "delimiter": None,
    "encoding": None,
}


def column_option_group(function: Command) -> Command:
    """Add the options that name columns, and say how their file is written."""
    for option in reversed(column_options):
        function = option(function)
    return function


def data_options(function: Command) -> Command:
    """Add the options that say how a data file is to be read."""
    for option in reversed(
        (
            click.option("--format", "format_name", metavar="NAME", help="Format of DATA; guessed if not given."),
            click.option("--labels-file", type=click.Path(path_type=Path), help="JSONL of the labels, with texts."),
            *column_options,
            click.option("--labels-column", default=None, metavar="NAME", help="[default: labels]"),
            click.option("--label-separator", default=None, help="Between labels in CSV and TSV. [default: ;]"),
            click.option("--part", default=None, type=click.Choice(["train", "test"]), help="Part of a folder."),
            click.option("--split", default=0, show_default=True, help="Number of the split of a folder."),
            first_id_option,
            limit_option,
        )
    ):
        function = option(function)
    return function


def label_limit_options(function: Command) -> Command:
    """Add --allow and --deny."""
    for option in reversed(
        (
            click.option(
                "--allow",
                multiple=True,
                metavar="LABEL|FILE",
                help="Only these labels; repeat, or give a file of them.",
            ),
            click.option(
                "--deny", multiple=True, metavar="LABEL|FILE", help="None of these labels; repeat, or give a file."
            ),
        )
    ):
        function = option(function)
    return function


def given_labels(name: str, options: Mapping[str, Any], *taggers: Tagger) -> list[str] | None:
    """Return the labels of --allow or --deny as the models call them; None where the option is not given.

    A word is a label (by id, notation or name) or a file that lists labels; those of a file that no model knows are
    told about, and a word that is neither is refused.
    """
    from longtail.data import read_labels
    from longtail.pipeline import split_known

    if not options[name]:
        return None
    meant: dict[str, None] = {}
    for word in options[name]:
        file = Path(word)
        known = any(split_known(tagger.labels_, [word], tagger.vocabulary_)[0] for tagger in taggers)
        if not known and not file.is_file():
            taggers[0].label_numbers([word], name)  # which refuses it
        listed = [word] if known else read_labels(file, options["limits"]).names
        if not listed:
            raise DataError(f"{file} is empty.")
        unknown: Sequence[str] = listed
        for tagger in taggers:
            meant.update(dict.fromkeys(split_known(tagger.labels_, listed, tagger.vocabulary_)[0]))
            unknown = split_known(tagger.labels_, unknown, tagger.vocabulary_)[1]
        if len(unknown) == len(listed):
            raise DataError(f"{file} lists no label that the model knows; its first is {listed[0]!r}.")
        if unknown:
            some = ", ".join(repr(label) for label in unknown[:3]) + (", …" if len(unknown) > 3 else "")
            note(f"{file}: the model does not know {len(unknown):,} of {len(listed):,} labels: {some}.")
    return list(meant)


def vocabulary_options(function: Command) -> Command:
    """Add the options that name a vocabulary."""
    for option in reversed(
        (
            click.option(
                "--vocabulary",
                "vocabulary_file",
                type=click.Path(path_type=Path),
                metavar="FILE",
                help="Vocabulary of the labels: SKOS (Turtle, N-Triples, RDF/XML), TSV, CSV or JSONL.",
            ),
            click.option("--vocabulary-format", default=None, metavar="NAME", help="Its format; guessed if not given."),
            click.option("--lang", default=None, metavar="TAG", help="Language of the names to show, such as de."),
        )
    ):
        function = option(function)
    return function


def read_vocabulary(options: dict[str, Any]) -> Vocabulary | None:
    """Read the vocabulary of --vocabulary, if it is given, and note what was left out of it."""
    from longtail.vocabulary import Vocabulary

    if options["vocabulary_file"] is None:
        for name in ("vocabulary_format", "lang"):
            if options[name] is not None:
                raise ParameterError(f"--{name.replace('_', '-')} can only be used with --vocabulary.")
        return None
    with renaming(format="vocabulary_format", language="lang"):
        vocabulary = Vocabulary.read(
            options["vocabulary_file"],
            options["vocabulary_format"],
            language=options["lang"],
            limits=options.get("limits"),
        )
    for sentence in vocabulary.notes:
        note(f"{options['vocabulary_file']}: {sentence}")
    return vocabulary


def use_vocabulary(tagger: Tagger, options: dict[str, Any]) -> None:
    """Let a tagger show the names of --vocabulary in place of its own, or its own in the language of --lang.

    The labels of a model that was trained without a vocabulary may be notations or names; they are called by ids then.
    """
    from longtail.pipeline import check_any_known, label_ids

    if options["lang"] is not None and options["vocabulary_file"] is None and tagger.vocabulary_ is not None:
        with renaming(language="lang"):
            tagger.vocabulary_.language = options["lang"]
        return
    if options["vocabulary_file"] is None and options["lang"] is not None:
        raise ParameterError("--lang needs a model that was trained with --vocabulary, or --vocabulary here.")
    vocabulary = read_vocabulary(options)
    if vocabulary is not None:
        check_any_known(tagger.labels_, vocabulary, "the model")
        if tagger.vocabulary_ is None:
            tagger.labels_ = label_ids(tagger.labels_, vocabulary)
        tagger.vocabulary_ = vocabulary


def json_option(function: Command) -> Command:
    """Add --json: facts for machines on stdout, and nothing else there."""
    return click.option("--json", "as_json", is_flag=True, help="Print facts as JSON.")(function)


def key_option(function: Command) -> Command:
    """Add --key: a model that was not signed with the other half of a public key is refused."""
    file = click.Path(path_type=Path)
    return click.option("--key", type=file, help="Public key that the model must be signed with.")(function)


class _Bytes(click.ParamType):
    """A number of bytes, such as 2GB or 500MB."""

    name = "size"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if isinstance(value, int):
            return value
        found = SIZE.fullmatch(value.strip())
        if found is None or float(found[1]) <= 0:
            raise ParameterError(name="--memory", allowed="a size such as 2GB, 500MB or 64KB", got=value)
        return round(float(found[1]) * UNITS[found[2].upper()])


def memory_option(function: Command) -> Command:
    """Add --memory."""
    told = "Memory that may be in use, such as 2GB; files that are mapped do not count."
    return click.option("--memory", type=_Bytes(), default=None, metavar="SIZE", help=told)(function)


def jobs_option(function: Command) -> Command:
    """Add --jobs."""
    return click.option("--jobs", type=int, default=None, help="Threads; all cores if not given.")(function)


def check_labelled(data: str, rows: Dataset) -> None:
    """Refuse rows without any label, and say where labels are looked for."""
    if rows.Y.nnz:
        return
    table = "; a table has them in the column 'labels' or the one that --labels-column names"
    where = "" if rows.texts is None else table
    raise DataError(f"the rows of {data} must have at least one label; every row is empty{where}.")


def counted_columns(names: Collection[str]) -> str:
    """Return how many columns there are, and the first of their names.

    >>> counted_columns({"b", "a"})
    '2 columns (a, b)'
    """
    of = f"{len(names):,} columns" if len(names) > 1 else "1 column"
    return f"{of} ({', '.join(sorted(names)[:COLUMNS_SHOWN])}{', …' if len(names) > COLUMNS_SHOWN else ''})"


def joins_labels(format_name: str) -> bool:
    """Say whether a format holds the labels of a row in one string, which a separator cuts."""
    from longtail.data import REGISTRY

    return format_name in REGISTRY and REGISTRY[format_name].splits_strings


def splits_labels(path: str, options: Mapping[str, Any]) -> bool:
    """Say whether the format of a file is one whose strings of labels are split."""
    from longtail.data import guess_format

    there = not path.startswith(BUNDLED) and os.path.exists(path)  # noqa: PTH110 - whatever the path
    format_name = options["format_name"] or (guess_format(Path(path), options["limits"])[0] if there else "")
    return joins_labels(format_name)


def told_reading(path: str, options: Mapping[str, Any]) -> ReadingFacts:
    """Return what the options tell about reading a file of training rows, for the model to remember."""
    from longtail.data import guess_format

    told: dict[str, Any] = {name: options[name] for name in REMEMBERED if options.get(name)}
    if "text_column" in told:
        told["text_column"] = list(told["text_column"])
    if (guessed := guessed_encoding(path)) is not None:
        told["guessed_encoding"] = guessed
    if path.startswith(BUNDLED) or not (told or options["format_name"]):
        return {}
    told["format"] = options["format_name"] or guess_format(Path(path))[0]
    if options["format_name"]:
        told["suffix"] = _suffix(path)
    return cast("ReadingFacts", told)


def how_to_read(path: str, options: Mapping[str, Any], *taggers: Tagger) -> dict[str, Any]:
    """Return how to read a file: as the options say, else as a model remembers of such a file, else as usual."""
    from longtail.data import guess_format

    format_name: str | None = options["format_name"]
    remembered: dict[str, Any] = next((dict(t.data_["reading"]) for t in taggers if t.data_.get("reading")), {})
    if remembered and format_name is None and path != "-" and remembered.get("suffix") == _suffix(path):
        format_name = remembered["format"]
    if remembered:
        actual = format_name or ("lines" if path == "-" else guess_format(Path(path), options["limits"])[0])
        remembered = remembered if actual == remembered.get("format") else {}
        expect_encoding(remembered.get("guessed_encoding"))
    if path != "-" and options.get("label_separator") is not None:
        actual = format_name or guess_format(Path(path), options["limits"])[0]
        if not joins_labels(actual):
            raise ParameterError(
                f"--label-separator has no effect: labels in {path} (format {actual}) are not split; one string is one "
                "label, and several are a list."
            )
    out = {name: options.get(name) or remembered.get(name, usual) for name, usual in REMEMBERED.items()}
    return {"format": format_name, **out}


def _suffix(path: str) -> str:
    """Return how the name of a file ends, before .gz, .xz and .bz2."""
    from longtail.data import plain_name

    return Path(plain_name(Path(path))).suffix.lower()


def read_data(
    path: str,
    part: str,
    options: dict[str, Any],
    labels_required: bool = True,
    n_features: int | None = None,
    *,
    taggers: Sequence[Tagger] = (),
    **more: Any,
) -> Dataset:
    """Read DATA: a file, a folder, or `bundled:NAME` (the part that suits the command, or --part).

    `n_features` is the width a model expects, for files that do not tell theirs; `taggers` may remember how such files
    are read; `more` are further arguments of `longtail.data.read`.
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
        labels_file=options["labels_file"],
        labels_required=labels_required,
        part=part,
        split=options["split"],
        zero_based=options["zero_based"],
        n_features=n_features,
        limits=options["limits"],
        **how_to_read(path, options, *taggers),
        **more,
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
    reading = how_to_read(path, {**options, "label_separator": None})
    if options["label_separator"] is not None:  # of the labels of groups too, in a file of another format perhaps
        reading["label_separator"] = options["label_separator"]
    return read_grouped(
        path,
        options["groups_file"],
        labels_file=options["labels_file"],
        group_column=options["group_column"],
        **reading,
        part=options["part"] or part,
        split=options["split"],
        zero_based=options["zero_based"],
        limits=options["limits"],
    )


def expected_width(*taggers: Tagger) -> int | None:
    """Return how many features the rows must have for models that were trained on rows; None for those on texts."""
    return next((tagger.model_.n_features_in_ for tagger in taggers if not tagger.reads_texts_), None)
