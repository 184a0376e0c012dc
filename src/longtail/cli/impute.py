"""`longtail impute`: labels of rows from labels of groups."""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from longtail.cli.options import data_options, group_options, jobs_option, json_option, read_grouped_data
from longtail.cli.output import announce_compilation, file_size, print_json, stages
from longtail.errors import DataError, ParameterError

if TYPE_CHECKING:
    from longtail.data import Dataset
    from longtail.pipeline import Imputed


@click.command()
@click.argument("data")
@click.option("-o", "--output", required=True, type=click.Path(path_type=Path), help="File to write.")
@group_options
@click.option("--n-iter", type=int, default=None, help="How often a label's vector is refined at most. [default: 20]")
@click.option("--rounds", type=int, default=None, help="Times to ask a label tree where labels belong. [default: 0]")
@click.option("--confidence", is_flag=True, help="Also write how likely each label is right.")
@click.option("--to", default=None, metavar="NAME", help="Format to write; by the name of the output if not given.")
@click.option("--seed", type=int, default=0, show_default=True)
@jobs_option
@data_options
@json_option
def impute(data: str, output: Path, confidence: bool, to: str | None, as_json: bool, **options: Any) -> None:
    """Find the labels of the rows of DATA from the labels of groups of rows.

    DATA is a file as for `train` (JSONL, CSV, TSV, Parquet, or npz with X and groups) whose rows name their group, or
    a list of groups, and need no labels. The file of --groups has one record per group: its name (group, id or name)
    and its labels; a label that stands twice there belongs to two of the group's rows.
    """
    from longtail.data.formats import write
    from longtail.pipeline import impute_dataset

    if options["groups_file"] is None:
        raise ParameterError("impute needs --groups, the file with the labels of groups.")
    to = _check_target(output, to, confidence, (Path(data), options["groups_file"]))
    started = time.perf_counter()
    grouped = read_grouped_data(data, "train", options)
    if grouped.rows.texts is None and to not in ("npz", "xmc", "libsvm"):
        raise DataError(f"{data} has features and no texts; write it as npz, xmc or libsvm (--to), not as {to}.")
    given = {name: options[name] for name in ("assign", "n_iter", "rounds") if options[name] is not None}
    announce_compilation()
    with stages() as progress:
        found = impute_dataset(
            grouped, random_state=options["seed"], n_jobs=options["jobs"], progress=progress, **given
        )
    written = write(
        _rows(found, confidence, to),
        output,
        to,
        label_separator=options["label_separator"],
        weights_column="confidence" if confidence else None,
    )
    facts = {**written, **found.facts, "seconds": time.perf_counter() - started}
    if as_json:
        print_json(facts)
        return
    for line in imputing_lines(facts):
        click.echo(line)
    click.echo(f"Rows: {output} ({to}, {file_size(facts['bytes'])}).")


def _check_target(output: Path, to: str | None, confidence: bool, inputs: tuple[Path, Path]) -> str:
    """Refuse, before any work, what could not be written after it; return the format."""
    from longtail.data.formats.front import WEIGHED
    from longtail.data.formats.guess import guess_target
    from longtail.data.formats.registry import REGISTRY
    from longtail.validate import check_choice

    to = guess_target(output) if to is None else to
    check_choice("--to", to, [name for name, found in REGISTRY.items() if found.write])
    if confidence and to not in (*WEIGHED, "npz"):
        raise ParameterError(f"--confidence needs one of {[*WEIGHED, 'npz']} as format to write; got {to!r}.")
    if output.resolve() in [path.resolve() for path in inputs]:
        raise ParameterError(f"--output must be another file than those that are read; got {output}.")
    if output.is_dir():
        raise DataError(f"{output} is a folder; choose the name of a file.")
    if not output.absolute().parent.is_dir():
        raise DataError(f"{output} cannot be written: the folder {output.parent} does not exist.")
    return to


def _rows(found: Imputed, confidence: bool, to: str) -> Dataset:
    """Return the rows to write: with confidences where they are wanted; shares of soft labels only where they fit."""
    import numpy as np

    from longtail.validate import make_csr

    Y = found.confidence if confidence else found.data.Y
    if not confidence and to != "npz":
        Y = make_csr(Y.indptr, Y.indices, np.ones_like(Y.data), Y.shape[1])
    return replace(found.data, Y=Y)


def imputing_lines(facts: dict[str, Any]) -> list[str]:
    """Return in a few lines what there was, what was done and which rows got nothing."""
    size, given = facts["group_size"], facts["rows"] - facts["rows_without_labels"]
    alike = round(facts["likeness"], 2) + 0.0  # no -0.00
    sizes = f"{size['smallest']:,} to {size['largest']:,} rows, {size['mean']:.1f} on average"
    lines = [
        f"{facts['rows']:,} rows in {facts['groups']:,} groups of {sizes}, with {facts['labels']:,} labels.",
        f"Rows of a group are {facts['alike']} (likeness {alike:.2f}; 1 is the same).",
        facts["why"],
        f"{given:,} rows got {facts['assigned']:,} labels, with a mean confidence of "
        f"{100 * facts['mean_confidence']:.0f}%.",
    ]
    reasons = (
        ("rows_not_chosen", "that no label of their groups went to"),
        ("rows_without_words", "without a known word"),
        ("rows_in_groups_without_labels", "in groups without labels"),
        ("rows_in_no_group", "in no group"),
    )
    why = ", ".join(f"{facts[key]:,} {words}" for key, words in reasons if facts[key])
    if facts["rows_without_labels"]:
        lines.append(f"{facts['rows_without_labels']:,} rows got no label: {why}.")
    left = (
        ("groups_without_rows", "groups have no rows, so their labels went nowhere"),
        ("labels_in_no_group", "labels are in no group that has rows"),
        ("counts_above_size", "times a group has a label more often than it has rows; all its rows got it"),
    )
    lines += [f"{facts[key]:,} {words}." for key, words in left if facts[key]]
    return lines
