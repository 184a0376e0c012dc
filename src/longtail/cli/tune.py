"""`longtail tune`: settings that suit the data, by search."""

from __future__ import annotations

import shlex
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from longtail.cli.engine_options import check_apart, engine_options, running_as_asked
from longtail.cli.model_options import offered
from longtail.cli.options import data_options, jobs_option, json_option, read_data
from longtail.cli.output import announce_compilation, console, note, noting_warnings, print_json, stages
from longtail.cli.wording import naming_data, renaming
from longtail.errors import ParameterError
from longtail.report import file_size, plural

if TYPE_CHECKING:
    from longtail.tuning import Tuning


@click.command()
@click.argument("data")
@click.option(
    "-o",
    "--output",
    "model",
    type=click.Path(path_type=Path),
    help="Folder to write a model with the best settings to.",
)
@click.option("--method", default="tree", show_default=True, help="tree, ova or dft.")
@click.option(
    "--try",
    "tried",
    multiple=True,
    metavar="NAME=VALUES",
    help="Search this setting alone: C=0.1..10 or max_leaf=40,80; repeat for more. [default: a space of the method]",
)
@click.option("--trials", type=int, default=27, show_default=True, help="Settings to try.")
@click.option("--metric", default="precision", show_default=True, help="What is to be high, such as p@5 or ndcg@5.")
@click.option("--held-out", type=float, default=0.1, show_default=True, help="Share of the rows to judge on.")
@click.option("--seed", type=int, default=0, show_default=True, help="The same seed finds the same settings.")
@click.option(
    "--checkpoint",
    type=click.Path(path_type=Path),
    default=None,
    help="Folder that keeps finished trials; the same command, or one with more --trials, goes on from there.",
)
@engine_options
@jobs_option
@data_options
@json_option
def tune(data: str, model: Path | None, as_json: bool, **options: Any) -> None:
    """Search for settings that suit DATA, judged on rows of it that are held out.

    Many settings are tried on a ninth of the rows, the best third on a third, and the best of those on all. DATA is as
    for `train`.
    """
    from longtail.report import show_tuning
    from longtail.storage import check_target
    from longtail.tuning import SEARCHED, parse_values
    from longtail.tuning import tune as search
    from longtail.validate import check_choice

    if model is not None:
        check_target(model)
    check_apart(options["checkpoint"], model)
    check_choice("method", options["method"], SEARCHED)
    space: dict[str, Any] = {}
    with renaming(tried="try"):
        for name, values in map(_setting, options["tried"]):
            if name in space:
                raise ParameterError(f"--try is given twice for {name}; give all its values once.")
            space[name] = parse_values(values)
    started = time.perf_counter()
    rows = read_data(data, "train", options)
    announce_compilation()
    asked = {name: options[name] for name in ("trials", "metric", "held_out")}
    with (
        noting_warnings(),
        running_as_asked(options, options["checkpoint"]) as engine,
        renaming(random_state="seed", space="try"),
        naming_data(data, options["labels_file"]),
        stages("trials") as progress,
    ):
        found = search(
            rows,
            options["method"],
            space=space or None,
            random_state=options["seed"],
            n_jobs=options["jobs"],
            progress=progress,
            **asked,
        )
        taken = 0 if engine.checkpoint is None else engine.checkpoint.taken
        if taken:
            note(f"{plural(taken, 'result')} of trials taken from {options['checkpoint']}.")
        if model is not None:
            found.tagger().fit_dataset(rows, progress=progress).save(model)
    facts: dict[str, Any] = {
        **found.facts,
        "seconds": time.perf_counter() - started,
        "command": train_command(data, found),
    }
    if model is not None:
        size = sum(file.stat().st_size for file in model.iterdir())
        facts |= {"model_folder": str(model), "bytes": size}
    if as_json:
        print_json(facts)
        return
    show_tuning(console(), found.facts)
    click.echo(f"Tried {plural(len(found.facts['trials']), 'setting')} in {facts['seconds']:.1f} s.")
    if model is not None:
        click.echo(f"Model: {model} ({file_size(facts['bytes'])}).")
    else:
        click.echo(f"To train with them: {facts['command']}")


def _setting(given: str) -> tuple[str, str]:
    """Return name and values of one --try."""
    name, sign, values = given.partition("=")
    if not sign or not name or not values:
        raise ParameterError(name="try", allowed="NAME=LOW..HIGH or NAME=VALUE,VALUE", got=given)
    return name.replace("-", "_"), values


def train_command(data: str, found: Tuning) -> str:
    """Return the command that trains with the best settings."""
    words = ["longtail", "train", data, "-o", "MODEL", "--method", found.facts["method"]]
    for section, settings in ((found.facts["method"], found.settings), ("texts", found.text_settings)):
        options = {item.parameter.name: item.option for item in offered() if item.section == section}
        for name, value in settings.items():
            if value is None or name not in options:
                continue
            names = [*options[name].opts, *options[name].secondary_opts]
            longest = max(options[name].opts, key=len)
            if isinstance(value, bool):
                off = next((n for n in names if n.startswith("--no-")), None)
                words += [longest] if value else [off] if off else []
            else:
                shown = ",".join(map(str, value)) if isinstance(value, list) else str(value)
                words += [longest, shown]
    return shlex.join(words)
