"""`longtail add-labels`: new labels for a saved model, by their texts alone."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from longtail.cli.options import jobs_option, json_option, key_option, limit_option
from longtail.cli.output import print_json
from longtail.errors import DataError, ParameterError
from longtail.report import file_size, plural

if TYPE_CHECKING:
    from longtail.data import Limits


@click.command("add-labels")
@click.argument("model", type=click.Path(path_type=Path))
@click.argument("labels", type=click.Path(path_type=Path))
@click.option("-o", "--output", required=True, type=click.Path(path_type=Path), help="Model folder to write.")
@jobs_option
@limit_option
@key_option
@json_option
def add_labels(
    model: Path, labels: Path, output: Path, jobs: int | None, limits: Limits, key: Path | None, as_json: bool
) -> None:
    """Add the labels of the file LABELS to MODEL by their texts, without training, and write the new model.

    MODEL is a folder of the method prime or hybrid. LABELS is JSONL with "id" (or "name") and "text" of each new label,
    or a file with one name per line, which is then its text too; or a vocabulary (SKOS, TSV, CSV), of which all
    concepts are added that MODEL does not have as labels and that are not deprecated.
    """
    from longtail.data import read_labels
    from longtail.pipeline import load_tagger
    from longtail.storage import check_target
    from longtail.vocabulary import Vocabulary, is_vocabulary_file

    check_target(output)
    started = time.perf_counter()
    vocabulary = Vocabulary.read(labels, limits=limits) if is_vocabulary_file(labels, limits) else None
    new = read_labels(labels, limits) if vocabulary is None else None
    tagger = load_tagger(model, key=key)
    tagger.model_.n_jobs = jobs
    before = tagger.n_labels_
    try:
        if new is not None:
            tagger.add_labels(new.names, new.texts)
        else:
            tagger.add_labels(vocabulary=vocabulary)
    except (DataError, ParameterError) as error:
        if error.fields.get("name") == "n_jobs":
            raise
        raise DataError(f"{labels} cannot be added to {model}: {error}") from error
    tagger.save(output)
    facts: dict[str, Any] = {
        "model_folder": str(output),
        "bytes": sum(file.stat().st_size for file in output.iterdir()),
        "seconds": time.perf_counter() - started,
        "labels_before": before,
        "labels_added": tagger.n_labels_ - before,
        "labels": tagger.n_labels_,
    }
    if as_json:
        print_json(facts)
        return
    added = plural(facts["labels_added"], "label")
    click.echo(
        f"Added {added} to {before:,} in {facts['seconds']:.1f} s; nothing was trained.\n"
        f"Model: {output} ({file_size(facts['bytes'])})."
    )
