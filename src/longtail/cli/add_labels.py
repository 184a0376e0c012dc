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

    MODEL is a folder of the method prime. LABELS is JSONL with "id" (or "name") and "text" of each new label, or a file
    with one name per line, which is then its text too.
    """
    from longtail.data import read_labels
    from longtail.pipeline import load_tagger
    from longtail.storage import check_target

    check_target(output)
    started = time.perf_counter()
    new = read_labels(labels, limits)
    tagger = load_tagger(model, key=key)
    tagger.model_.n_jobs = jobs
    before = tagger.n_labels_
    try:
        tagger.add_labels(new.names, new.texts)
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
        "labels_added": len(new.names),
        "labels": tagger.n_labels_,
    }
    if as_json:
        print_json(facts)
        return
    click.echo(
        f"Added {plural(len(new.names), 'label')} to {before:,} in {facts['seconds']:.1f} s; nothing was trained.\n"
        f"Model: {output} ({file_size(facts['bytes'])})."
    )
