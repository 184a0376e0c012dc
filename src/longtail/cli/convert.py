"""`longtail convert`: from one file format to another."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from longtail.cli.options import data_options, json_option, read_data
from longtail.cli.output import print_json
from longtail.cli.wording import renaming
from longtail.errors import ParameterError
from longtail.report import file_size, plural

COLUMNS_SHOWN = 20


@click.command()
@click.argument("data", required=False)
@click.argument("output", required=False, type=click.Path(path_type=Path))
@click.option("--to", default=None, metavar="NAME", help="Format to write; by the name of OUTPUT if not given.")
@click.option("--write-labels", type=click.Path(path_type=Path), help="Also write the labels to this JSONL file.")
@click.option("--list", "list_formats", is_flag=True, help="List the formats.")
@data_options
@json_option
@click.pass_context
def convert(
    context: click.Context,
    data: str | None,
    output: Path | None,
    to: str | None,
    write_labels: Path | None,
    list_formats: bool,
    as_json: bool,
    **options: Any,
) -> None:
    """Convert DATA to another format."""
    from longtail.data import FORMATS, REGISTRY, write
    from longtail.validate import check_choice

    if list_formats:
        if as_json:
            print_json(FORMATS)
        else:
            for name, description in FORMATS.items():
                click.echo(f"{name:11} {description}")
        return
    if data is None or output is None:
        raise click.UsageError("give DATA and OUTPUT, or --list.", context)
    if write_labels is not None and write_labels.resolve() == output.resolve():
        raise ParameterError(f"--write-labels and OUTPUT must be different files; got {output} for both.")
    if to is not None:
        check_choice("--to", to, [name for name, known in REGISTRY.items() if known.write])
    ignored: set[str] = set()
    rows = read_data(data, "train", options, labels_required=False, ignored_columns=ignored)
    separator = options["label_separator"] or ";"
    with renaming(format="to"):
        facts = write(rows, output, to, labels_file=write_labels, label_separator=separator)
    facts["columns_not_read"] = sorted(ignored)
    if as_json:
        print_json(facts)
        return
    click.echo(
        f"Wrote {facts['rows']:,} rows with {facts['labels']:,} labels to {facts['file']} "
        f"({facts['format']}, {file_size(facts['bytes'])})."
    )
    if facts["left_out"]:
        click.echo(f"Left out, since the format does not hold it: {', '.join(facts['left_out'])}.")
    if facts["labels_without_rows"]:
        many = plural(facts["labels_without_rows"], "label that no row has", "labels that no row has")
        click.echo(f"Left out: {many}; --write-labels keeps them in a list.")
    if facts["texts_changed"]:
        click.echo(f"Line breaks and tabs became spaces in {plural(facts['texts_changed'], 'text')}.")
    if ignored:
        of = f"{len(ignored):,} columns" if len(ignored) > 1 else "1 column"
        shown = ", ".join(sorted(ignored)[:COLUMNS_SHOWN]) + (", …" if len(ignored) > COLUMNS_SHOWN else "")
        click.echo(f"Not read, and so not written: {of} ({shown}).")
