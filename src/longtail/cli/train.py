"""`longtail train`: data in, a model folder out."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from longtail.cli.impute import imputing_lines
from longtail.cli.options import (
    data_options,
    group_options,
    jobs_option,
    json_option,
    read_data,
    read_grouped_data,
)
from longtail.cli.output import announce_compilation, file_size, note, print_json, stages
from longtail.cli.settings import make_tagger, tagger_options
from longtail.cli.wording import naming_texts
from longtail.errors import ParameterError

if TYPE_CHECKING:
    from longtail.pipeline import Imputed, Tagger


@click.command()
@click.argument("data")
@click.option("-o", "--output", "model", required=True, type=click.Path(path_type=Path), help="Model folder to write.")
@click.option("--force", is_flag=True, help="Train even where memory seems too little.")
@group_options
@click.option(
    "--impute-rounds", "rounds", type=int, default=None, help="Times to ask the model where labels belong. [default: 0]"
)
@tagger_options
@jobs_option
@data_options
@json_option
def train(data: str, model: Path, as_json: bool, **options: Any) -> None:
    """Train a tagger on DATA and write it to a folder.

    DATA is a file (JSONL, CSV, TSV, Parquet, fastText, XMC text, libsvm, npz; also .gz, .xz), a folder in the layout
    of the XMC repository, or bundled:debtags, bundled:debian-relations. With --groups, labels are known only for groups
    of rows: those of the rows are found first (see `longtail impute`).
    """
    from longtail.pipeline import plan_training, refuse_without_memory
    from longtail.pipeline.evaluation import model_facts
    from longtail.storage import check_target

    check_target(model)
    tagger = make_tagger(options)
    started = time.perf_counter()
    imputed = _impute(data, tagger, options)
    rows = read_data(data, "train", options) if imputed is None else imputed.labelled()
    announce_compilation()
    if not options["force"]:
        warning = refuse_without_memory(plan_training(rows, tagger, probe=False))
        if warning is not None:
            note(warning)
    with naming_texts(data), stages() as progress:
        if imputed is None:
            tagger.fit_dataset(rows, progress=progress)
        else:
            tagger.fit_imputed(imputed, progress=progress)
    tagger.save(model)
    size = sum(file.stat().st_size for file in model.iterdir())
    facts = {
        "model_folder": str(model),
        "bytes": size,
        "seconds": time.perf_counter() - started,
        **model_facts(tagger),
    }
    if as_json:
        print_json(facts)
        return
    click.echo(summary(facts))


def _impute(data: str, tagger: Tagger, options: dict[str, Any]) -> Imputed | None:
    """Find the labels of the rows where --groups is given."""
    given = {"assign": options["assign"], "rounds": options["rounds"]}
    if options["groups_file"] is None:
        for option, value in zip(("--assign", "--impute-rounds"), given.values(), strict=True):
            if value is not None:
                raise ParameterError(f"{option} needs --groups, the file with the labels of groups.")
        return None
    grouped = read_grouped_data(data, "train", options)
    announce_compilation()
    with naming_texts(data), stages() as progress:
        return tagger.impute(grouped, progress=progress, **{k: v for k, v in given.items() if v is not None})


def summary(facts: dict[str, Any]) -> str:
    """Return in a few lines what training did and where the result is."""
    trained = facts["trained_on"]
    what = "texts" if trained["has_texts"] else "rows"
    imputed = trained.get("imputed")
    lines = imputing_lines(imputed) if imputed else []
    lines += [
        f"Trained {facts['method']} on {trained['rows']:,} {what} with {trained['labels_used']:,} labels "
        f"and {facts['features']:,} features in {facts['seconds']:.1f} s.",
    ]
    if facts["held_out"]:
        found = facts["held_out"]["metrics"]
        shown = ", ".join(f"P@{k} {100 * found[f'p@{k}']['value']:.1f}%" for k in (1, 3, 5) if f"p@{k}" in found)
        against = ", against the labels found for them" if imputed else ""
        lines.append(f"On {facts['held_out']['rows']:,} held-out {what}, before they were added{against}: {shown}.")
    else:
        lines.append("Not calibrated: scores only, no probabilities.")
    lines.append(f"Model: {facts['model_folder']} ({file_size(facts['bytes'])}).")
    return "\n".join(lines)
