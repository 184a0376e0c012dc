"""The options that say where work runs: on threads of this machine or on a Ray cluster, and what is kept of it."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from longtail.cli.output import note
from longtail.errors import ParameterError

if TYPE_CHECKING:
    from longtail.engine import Engine

Command = TypeVar("Command", bound=Callable[..., Any])
OF_THE_ENGINE = ("tree", "ova", "auto")  # methods whose --checkpoint is that of their tasks; the others keep their own


def engine_options(function: Command) -> Command:
    """Add --engine and --address."""
    for option in reversed(
        (
            click.option(
                "--engine",
                default="threads",
                show_default=True,
                metavar="threads|ray",
                help="Where work runs: on threads, or on a Ray cluster; the result is the same.",
            ),
            click.option(
                "--address",
                default=None,
                metavar="HOST:PORT",
                help="Of the Ray cluster, or auto. [default: one of this machine alone, begun now]",
            ),
        )
    ):
        function = option(function)
    return function


@contextlib.contextmanager
def running_as_asked(options: dict[str, Any], checkpoint: Path | None = None) -> Iterator[Engine]:
    """Let all work within run where --engine says, with a checkpoint of its tasks; say what is kept of broken work."""
    from longtail.engine import open_engine, running_on

    asked = {"address": options["address"], "checkpoint": checkpoint, "n_jobs": options["jobs"]}
    with open_engine(options["engine"], **asked) as engine, running_on(engine):
        try:
            yield engine
        except BaseException:
            if engine.checkpoint is not None and engine.checkpoint.added + engine.checkpoint.taken:
                note(f"{checkpoint} keeps the work that was finished; the same command goes on from there.")
            raise


def check_apart(checkpoint: Path | None, model: Path | None) -> None:
    """Refuse one folder for the checkpoint and for the model."""
    if checkpoint is not None and model is not None and checkpoint.resolve() == model.resolve():
        raise ParameterError(f"--checkpoint and --output are the same folder, {model}; give each one of its own.")


def take_checkpoint(options: dict[str, Any]) -> Path | None:
    """Take the folder of --checkpoint out of the options of the model, where its method keeps none of its own."""
    if options["method"] not in OF_THE_ENGINE:
        return None
    folder: Path | None = options["checkpoint"]
    options["checkpoint"] = None
    return folder
