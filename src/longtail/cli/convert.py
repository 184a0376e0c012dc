"""`longtail convert`: from one file format to another."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from longtail.cli.model_options import WordCommand, given_words, offered
from longtail.cli.options import (
    BUNDLED,
    counted_columns,
    data_options,
    how_to_read,
    jobs_option,
    joins_labels,
    json_option,
    memory_option,
    read_data,
    splits_labels,
)
from longtail.cli.output import announce_compilation, print_json, stages
from longtail.cli.wording import renaming
from longtail.errors import ParameterError
from longtail.report import file_size, plural

STORE = "store"


@click.command(cls=WordCommand)
@click.argument("data", required=False)
@click.argument("output", required=False, type=click.Path(path_type=Path))
@click.option("-o", "store", metavar="FOLDER", type=click.Path(path_type=Path), help="Row store to write, as OUTPUT.")
@click.option("--to", default=None, metavar="NAME", help="Format to write; by the name of OUTPUT if not given.")
@click.option("--write-labels", type=click.Path(path_type=Path), help="Also write the labels to this JSONL file.")
@click.option("--list", "list_formats", is_flag=True, help="List the formats.")
@click.option("--no-texts", is_flag=True, help="Leave the texts out of a row store, once they are features.")
@click.option("--no-features", is_flag=True, help="Leave the texts of a row store as they are.")
@memory_option
@jobs_option
@data_options
@json_option
@click.pass_context
def convert(
    context: click.Context,
    data: str | None,
    output: Path | None,
    store: Path | None,
    to: str | None,
    write_labels: Path | None,
    list_formats: bool,
    as_json: bool,
    **options: Any,
) -> None:
    """Convert DATA to another format.

    A row store (-o FOLDER, or --to store) is for data larger than memory: it is written block by block, with the
    features of its texts, and every command maps it instead of reading it.
    """
    from longtail.data import FORMATS, REGISTRY, guess_target, write
    from longtail.validate import check_choice

    if list_formats:
        if as_json:
            print_json(FORMATS)
        else:
            for name, description in FORMATS.items():
                click.echo(f"{name:11} {description}")
        return
    if store is not None:
        if output is not None or to not in (None, STORE):
            raise ParameterError("-o names a row store; give OUTPUT alone for another format.")
        output, to = store, STORE
    if data is None or output is None:
        raise click.UsageError("give DATA and OUTPUT, or --list.", context)
    if to is not None:
        check_choice("--to", to, [name for name, known in REGISTRY.items() if known.write])
    if to == STORE or (to is None and output.suffix.lower() == ".store"):
        if write_labels is not None:
            raise ParameterError("--write-labels cannot be used with a row store, which keeps all labels.")
        facts = _make_store(data, output, options)
        print_json(facts) if as_json else click.echo("\n".join(store_lines(facts)))
        return
    _refuse_store_options(options)
    ignored: set[str] = set()
    separator = options["label_separator"] or ";"
    with renaming(format="to"):
        joins = joins_labels(to or guess_target(output))
    if joins and not splits_labels(data, options):
        options["label_separator"] = None  # it is for OUTPUT alone
    rows = read_data(data, "train", options, labels_required=False, ignored_columns=ignored)
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
        click.echo(f"Not read, and so not written: {counted_columns(ignored)}.")


def _make_store(data: str, output: Path, options: dict[str, Any]) -> dict[str, Any]:
    """Write DATA as a row store."""
    from longtail.data import write
    from longtail.pipeline import convert_to_store
    from longtail.text import TfidfFeatures

    words = given_words(options)
    if options["no_features"] and (words or options["no_texts"]):
        raise ParameterError("--no-features leaves no words to count, and texts are all there is then.")
    features = None if options["no_features"] else TfidfFeatures(**words, n_jobs=options["jobs"])
    if data.startswith(BUNDLED):
        import tempfile

        with tempfile.TemporaryDirectory() as folder:
            copy = Path(folder) / f"{data.removeprefix(BUNDLED)}.npz"
            write(read_data(data, "train", options), copy)
            return convert_to_store(copy, output, features=features, keep_texts=not options["no_texts"])
    announce_compilation()
    with stages("rows") as progress:
        return convert_to_store(
            data,
            output,
            features=features,
            keep_texts=not options["no_texts"],
            memory=options["memory"],
            part=options["part"] or "train",
            split=options["split"],
            labels_file=options["labels_file"],
            zero_based=options["zero_based"],
            limits=options["limits"],
            progress=progress,
            **how_to_read(data, options),
        )


def store_lines(facts: dict[str, Any]) -> list[str]:
    """Return in words what a row store holds."""
    width = "" if facts["features"] is None else f" and {facts['features']:,} features"
    of = f"{facts['rows']:,} rows with {facts['labels']:,} labels{width}"
    lines = [f"Wrote {of} to {facts['file']} (row store, {file_size(facts['bytes'])} in {facts['files']:,} files)."]
    if facts["terms_missed"]:
        lines.append(
            f"There were more different words than memory allowed: some in up to {facts['terms_missed']:,} rows were "
            "dropped or counted in fewer rows than they are in."
        )
    return lines


def _refuse_store_options(options: dict[str, Any]) -> None:
    """Refuse options that only a row store has."""
    given = [name for name in ("no_texts", "no_features") if options[name]]
    given += ["memory"] * (options["memory"] is not None)
    words = given_words(options)
    given += [item.option.name or "" for item in offered() if item.section == "texts" and item.parameter.name in words]
    if given:
        raise ParameterError(f"--{given[0].replace('_', '-')} is for a row store (-o FOLDER).")
