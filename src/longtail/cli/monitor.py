"""`longtail monitor`: have the rows changed since a model was trained?"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from longtail.cli.options import data_options, jobs_option, json_option, key_option, use_vocabulary, vocabulary_options
from longtail.cli.output import announce_compilation, console, note, print_json
from longtail.cli.predict import read_batches
from longtail.cli.wording import naming_data
from longtail.errors import DataError, ParameterError

if TYPE_CHECKING:
    from longtail.pipeline import Monitor, Tagger

CHANGED = 8
FAIL_ON = {"changed": ("changed",), "watch": ("changed", "watch"), "never": ()}


@click.command()
@click.argument("model", type=click.Path(path_type=Path))
@click.argument("data")
@click.option("--report", type=click.Path(path_type=Path), metavar="FILE", help="Write a page (HTML) with plots.")
@click.option("--reference", metavar="DATA", help="Compare with these rows in place of those held out at training.")
@click.option(
    "--fail-on",
    type=click.Choice(list(FAIL_ON)),
    default="changed",
    show_default=True,
    help="Exit with 8 if the verdict is this, or worse.",
)
@click.option("--show", "shown", type=click.IntRange(min=1), default=10, show_default=True, help="Words, labels, rows.")
@click.option("--batch", type=int, default=1000, show_default=True, help="Rows held in memory at a time.")
@jobs_option
@data_options
@vocabulary_options
@key_option
@json_option
@click.pass_context
def monitor(context: click.Context, model: Path, data: str, report: Path | None, as_json: bool, **options: Any) -> None:
    """Compare the rows of DATA with those that MODEL was judged by at its training.

    Unknown words, lengths, probabilities and the mix of labels are compared; where rows have labels, also how often the
    model is right, its calibration, and labels that it does not know. What chance does to so few rows is no change.
    DATA is a file or folder as for `predict`, or - for stdin; labels are not needed.
    """
    from longtail.data import check_writable
    from longtail.pipeline import load_tagger
    from longtail.report import monitor_page, show_monitor, write_page
    from longtail.validate import check_integer

    check_integer("--batch", options["batch"], low=1)
    reference = options["reference"]
    if data == "-" and reference == "-":
        raise ParameterError("--reference must not be stdin where DATA is; got - for both.")
    if report is not None:
        check_writable(report)
    tagger = load_tagger(model, key=options["key"])
    use_vocabulary(tagger, options)
    tagger.model_.n_jobs = options["jobs"]
    announce_compilation()
    before = None if reference is None else _measured(tagger, reference, options)
    now = _measured(tagger, data, options)
    with naming_data(data):
        facts = now.facts(before, name=reference or "")
    facts["title"] = f"{model.name} and {'stdin' if data == '-' else Path(data).name}"
    facts["command"] = f"longtail monitor {model} {data}" + ("" if reference is None else f" --reference {reference}")
    if report is not None:
        write_page(report, monitor_page(facts))
    if as_json:
        print_json(facts)
    else:
        show_monitor(console(), facts, shown=options["shown"])
    if report is not None:
        note(f"Report: {report}")
    if facts["verdict"] in FAIL_ON[options["fail_on"]]:
        context.exit(CHANGED)


def _measured(tagger: Tagger, data: str, options: dict[str, Any]) -> Monitor:
    """Return a monitor that has seen the rows of a file, batch by batch."""
    from longtail.data import ReadingPosition
    from longtail.pipeline import Monitor
    from longtail.report import progress

    source = "stdin" if data == "-" else data
    out = Monitor(tagger)
    with progress(None, "Measuring") as advance:
        for batch in read_batches(data, options, tagger, ReadingPosition(), labels=True):
            with naming_data(source, first_row=out.rows):
                out.add(batch)
            advance(batch.n_rows)
    if not out.rows:
        raise DataError(f"{source} has no rows.")
    return out
