"""`longtail impute`: labels of rows from labels of groups."""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from longtail.cli.options import data_options, group_options, jobs_option, json_option, read_grouped_data
from longtail.cli.output import announce_compilation, print_json, stages
from longtail.cli.wording import naming_data, renaming
from longtail.errors import DataError, ParameterError
from longtail.report import file_size, imputing_lines

if TYPE_CHECKING:
    from longtail.data import Dataset
    from longtail.pipeline import Imputed


class OutputFile(click.Path):
    """A file to write, which must have a name: a Path would take none at all for the folder one is in."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if value == "":
            raise ParameterError("--output must be the name of a file; got an empty one.")
        return super().convert(value, param, ctx)


@click.command()
@click.argument("data")
@click.option("-o", "--output", required=True, type=OutputFile(path_type=Path), help="File to write.")
@group_options
@click.option("--n-iter", type=int, default=None, help="How often a label's vector is refined at most. [default: 20]")
@click.option("--rounds", type=int, default=None, help="Times to ask a label tree where labels belong. [default: 0]")
@click.option("--confidence", is_flag=True, help="Also write how likely each label is right: calibrated.")
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
    from longtail.data import write
    from longtail.pipeline import impute_dataset

    if options["groups_file"] is None:
        raise ParameterError("impute needs --groups, the file with the labels of groups.")
    to = _check_target(output, to, confidence)
    started = time.perf_counter()
    grouped = read_grouped_data(data, "train", options)
    _check_content(data, grouped.rows, to)
    given = {name: options[name] for name in ("assign", "n_iter", "rounds") if options[name] is not None}
    announce_compilation()
    with naming_data(data), stages() as progress:
        imputed = impute_dataset(
            grouped, random_state=options["seed"], n_jobs=options["jobs"], progress=progress, **given
        )
    written = write(
        _rows_to_write(imputed, confidence, to),
        output,
        to,
        label_separator=options["label_separator"] or ";",
        weights_column="confidence" if confidence else None,
    )
    facts = {**written, **imputed.facts, "seconds": time.perf_counter() - started}
    if as_json:
        print_json(facts)
        return
    for line in imputing_lines(imputed.facts):
        click.echo(line)
    click.echo(f"Rows: {output} ({to}, {file_size(facts['bytes'])}).")


def _check_target(output: Path, to: str | None, confidence: bool) -> str:
    """Refuse, before any work, what could not be written after it; return the format."""
    from longtail.data import FORMATS_WITH_WEIGHTS, REGISTRY, check_writable, guess_target
    from longtail.validate import check_choice

    if to is None:
        with renaming(format="to"):
            to = guess_target(output)
    check_choice("--to", to, [name for name, known in REGISTRY.items() if known.write])
    if confidence and to not in (*FORMATS_WITH_WEIGHTS, "npz"):
        raise ParameterError(
            f"--confidence needs one of {[*FORMATS_WITH_WEIGHTS, 'npz']} as format to write; got {to!r}."
        )
    check_writable(output)
    return to


def _check_content(data: str, rows: Dataset, to: str) -> None:
    """Refuse a format that cannot hold what the rows consist of."""
    from longtail.data import REGISTRY

    has, lacks, field = ("features", "texts", "X") if rows.texts is None else ("texts", "features", "texts")
    able = [name for name, known in REGISTRY.items() if known.write and field in known.keeps]
    *some, last = sorted(able, key=lambda name: name != "npz")  # which holds everything, so it comes first
    if to not in (*some, last):
        raise DataError(
            f"{data} has {has} and no {lacks}; write it as {', '.join(some)} or {last} (--to), not as {to}."
        )


def _rows_to_write(imputed: Imputed, confidence: bool, to: str) -> Dataset:
    """Return the rows to write: with confidences where they are wanted; shares of soft labels only where they fit."""
    import numpy as np

    from longtail.validate import make_csr

    Y = imputed.confidence if confidence else imputed.data.Y
    if not confidence and to != "npz":
        Y = make_csr(Y.indptr, Y.indices, np.ones_like(Y.data), Y.shape[1])
    return replace(imputed.data, Y=Y)
