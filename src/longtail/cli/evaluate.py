"""`longtail evaluate` and `longtail compare`: how good models are on data they have not seen."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from longtail.cli.engine_options import engine_options, running_as_asked
from longtail.cli.options import (
    Option,
    check_labelled,
    data_options,
    expected_width,
    given_labels,
    jobs_option,
    json_option,
    key_option,
    label_limit_options,
    read_data,
    use_vocabulary,
    vocabulary_options,
)
from longtail.cli.output import announce_compilation, console, note, print_json
from longtail.cli.wording import naming_data
from longtail.errors import DataError, ParameterError

if TYPE_CHECKING:
    import numpy as np

    from longtail.data import Dataset, Limits
    from longtail.facts import EvaluationFacts, LabelRowFacts
    from longtail.pipeline import Tagger

WORSE = 6
PAGE = "the page that --report writes"
MORE = "--details shows the rest here, --report FILE.html writes it as a page."


def _cutoffs(context: click.Context, option: click.Parameter, value: str) -> tuple[int, ...]:
    """Return the numbers of suggestions to judge, ascending, from a list with commas."""
    try:
        ks = tuple(sorted({int(part) for part in value.split(",")}))
    except ValueError:
        ks = ()
    if not ks or ks[0] < 1:
        raise ParameterError(f"-k must be whole numbers >= 1 separated by commas, such as 1,3,5; got {value!r}.")
    return ks


ks_option: Option = click.option(
    "-k", "ks", default="1,3,5", show_default=True, callback=_cutoffs, help="Places to judge at."
)
filter_option: Option = click.option(
    "--filter", "filter_file", type=click.Path(path_type=Path), help="File of (row, label) pairs that do not count."
)
constants_option: Option = click.option(
    "--propensity", "constants", default="default", show_default=True, help="Constants: default, wikipedia or amazon."
)
resamples_option: Option = click.option(
    "--resamples", default=1000, show_default=True, help="Bootstrap resamples; 0 for none."
)
report_option: Option = click.option(
    "--report", type=click.Path(path_type=Path), help="Write a page (HTML) with plots."
)


@click.command()
@click.argument("model")
@click.argument("data", required=False)
@report_option
@click.option(
    "--predictions",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Judge the labels that a program gave the rows (JSONL, CSV, TSV, TREC run) in place of a model.",
)
@click.option(
    "--predictions-format", default=None, metavar="NAME", help="jsonl, csv, tsv, parquet or trec; by name if not given."
)
@click.option(
    "--train",
    "training_rows",
    default=None,
    metavar="TRAIN",
    help="With --predictions: the training rows, whose labels are counted for PSP and bands.",
)
@click.option("--by", default=None, metavar="COLUMN", help="Judge the rows by this column too, e.g. language.")
@click.option("--labels-csv", type=click.Path(path_type=Path), metavar="FILE", help="Write a table of all labels.")
@click.option("--details", is_flag=True, help="Show everything that is known, on more than one screen.")
@ks_option
@filter_option
@constants_option
@resamples_option
@label_limit_options
@engine_options
@jobs_option
@data_options
@vocabulary_options
@key_option
@json_option
@click.pass_context
def evaluate(
    context: click.Context,
    model: str,
    data: str | None,
    report: Path | None,
    details: bool,
    as_json: bool,
    **options: Any,
) -> None:
    """Evaluate MODEL on DATA: metrics with their confidence intervals, by label frequency, with calibration.

    One screen by default; --details adds every metric, every frequency, the calibration and the labels.
    With --predictions FILE it is `longtail evaluate DATA --predictions FILE`: the labels any program gave these rows.
    """
    from longtail.data import check_writable
    from longtail.report import evaluation_page, show_evaluation, show_evaluation_summary, write_page

    table = options["labels_csv"]
    if table is not None:
        check_writable(table)
    if options["predictions"] is not None:
        if data is not None:
            raise ParameterError(f"--predictions takes the place of MODEL: give DATA alone; got {model} and {data}.")
        facts = _of_predictions(model, options)
    elif data is None:
        raise click.UsageError("Missing argument 'DATA'.", context)
    elif options["training_rows"] is not None:
        raise ParameterError("--train can only be used with --predictions; a model knows how many rows a label had.")
    else:
        facts = _of_model(Path(model), data, options)
    if report is not None:
        write_page(report, evaluation_page(facts, labels_table="--labels-csv FILE"))
    if as_json:
        print_json(facts)
    elif details:
        show_evaluation(console(), {**facts, "examples": []}, page=PAGE)  # worked examples are for the page
    else:
        show_evaluation_summary(console(), facts, more=MORE)
    for what, file in (("Report", report), ("Labels", table)):
        if file is not None:
            note(f"{what}: {file}")


def _of_model(model: Path, data: str, options: dict[str, Any]) -> EvaluationFacts:
    """Return the facts about a model on the rows of DATA."""
    from longtail.pipeline import evaluate_tagger, load_tagger, page_splits, page_tree
    from longtail.report import as_callback, progress

    tagger = load_tagger(model, key=options["key"])
    use_vocabulary(tagger, options)
    tagger.model_.n_jobs = options["jobs"]
    allow, deny = (given_labels(name, options, tagger) for name in ("allow", "deny"))
    rows = _read_rows(data, options, n_features=expected_width(tagger), taggers=[tagger])
    announce_compilation()
    with naming_data(data), running_as_asked(options), progress(rows.n_rows, "Predicting") as advance:
        facts = evaluate_tagger(
            tagger,
            rows,
            ks=options["ks"],
            filter_pairs=_read_pairs(options["filter_file"], options["limits"]),
            constants=options["constants"],
            n_bootstrap=options["resamples"],
            by=options["by"],
            on_labels=_labels_writer(options["labels_csv"]),
            progress=as_callback(advance),
            allow=allow,
            deny=deny,
        )
    _note_if_learned(data, rows, tagger)
    facts["title"] = f"{Path(model).name} on {rows.name or data}"
    facts["command"] = f"longtail evaluate {model} {data}"
    facts["tree"], facts["splits"] = page_tree(tagger), page_splits(tagger)
    return facts


def _note_if_learned(data: str, rows: Dataset, *taggers: Tagger) -> None:
    """Say that the rows were learned by one of the models: it is better on them than on any others."""
    from longtail.pipeline import has_learned

    if any(has_learned(tagger, rows) for tagger in taggers):
        note(f"{data}: the model has learned these very rows, and is better on them than on any others.")


def _of_predictions(data: str, options: dict[str, Any]) -> EvaluationFacts:
    """Return the facts about the predictions of --predictions for the rows of DATA."""
    from longtail.data import read_predictions
    from longtail.pipeline import evaluate_predictions

    file: Path = options["predictions"]
    for name in ("filter_file", "vocabulary_file", "lang", "key", "allow", "deny"):
        if options[name]:
            raise ParameterError(f"--{name.removesuffix('_file')} cannot be used with --predictions.")
    if options["training_rows"] is None and options["constants"] != "default":
        raise ParameterError(
            "--propensity has no effect with --predictions unless --train gives the training rows; "
            f"got {options['constants']!r}."
        )
    rows = _read_rows(data, options)
    train = None if options["training_rows"] is None else read_data(options["training_rows"], "train", options)
    ids = [str(row) for row in range(rows.n_rows)] if rows.ids is None else rows.ids
    format_name, ks = options["predictions_format"], options["ks"]
    top, labels = read_predictions(file, ids, max(ks), format_name, limits=options["limits"])
    with naming_data(data):
        facts = evaluate_predictions(
            top,
            labels,
            rows,
            ks=ks,
            n_bootstrap=options["resamples"],
            by=options["by"],
            on_labels=_labels_writer(options["labels_csv"]),
            train=train,
            constants=options["constants"],
        )
    if train is None:
        note("No PSP and no bands: they need the counts of training rows; give --train FILE.")
    empty = int((top.ids[:, 0] < 0).sum())
    if empty:
        note(f"{file} has no labels for {empty:,} of {rows.n_rows:,} rows; they count as misses.")
    facts["title"] = f"{file.name} on {rows.name or data}"
    facts["command"] = f"longtail evaluate {data} --predictions {file}"
    return facts


def _read_rows(data: str, options: dict[str, Any], **more: Any) -> Dataset:
    """Read the rows to judge by, with the column of --by as their groups."""
    from longtail.data import listed_names

    by, others = options["by"], set[str]()
    if by is None:
        return _labelled(data, read_data(data, "test", options, **more))
    whole_cells = {"group_column": by, "split_groups": False, "ignored_columns": others}
    rows = read_data(data, "test", options, **more, **whole_cells)
    if rows.groups is None:
        there = f"; it also has: {listed_names(sorted(others))}" if others else ""
        raise DataError(f"{data} has no column {by!r}, by which the rows were to be judged{there}.")
    return _labelled(data, rows)


def _labelled(data: str, rows: Dataset) -> Dataset:
    """Return the rows to judge by, some of which must have labels; say how many have none."""
    check_labelled(data, rows)
    without = rows.n_rows - int((rows.Y.indptr[1:] > rows.Y.indptr[:-1]).sum())
    if without:
        note(f"{data}: {without:,} of {rows.n_rows:,} rows have no labels; every suggestion is wrong for them.")
    return rows


def _labels_writer(file: Path | None) -> Callable[[list[LabelRowFacts]], None] | None:
    return None if file is None else partial(_write_labels, file)


@click.command()
@click.argument("a", type=click.Path(path_type=Path))
@click.argument("b", type=click.Path(path_type=Path))
@click.argument("data")
@report_option
@ks_option
@filter_option
@constants_option
@resamples_option
@click.option("--fail-if-worse", metavar="METRIC", help="Exit with 6 if B is significantly worse than A, e.g. at p@1.")
@label_limit_options
@jobs_option
@data_options
@vocabulary_options
@key_option
@json_option
@click.pass_context
def compare(
    context: click.Context, a: Path, b: Path, data: str, report: Path | None, as_json: bool, **options: Any
) -> None:
    """Compare model B with model A on DATA: differences with confidence intervals and p-values."""
    from longtail.pipeline import compare_taggers, load_tagger
    from longtail.report import as_callback, comparison_page, progress, show_comparison, write_page
    from longtail.validate import check_choice

    first, second = (load_tagger(model, key=options["key"]) for model in (a, b))
    use_vocabulary(first if first.vocabulary_ is not None or second.vocabulary_ is None else second, options)
    first.model_.n_jobs = second.model_.n_jobs = options["jobs"]
    may = {name: given_labels(name, options, first, second) for name in ("allow", "deny")}
    width = expected_width(first, second)
    rows = _labelled(data, read_data(data, "test", options, n_features=width, taggers=[first, second]))
    announce_compilation()
    with naming_data(data), progress(rows.n_rows, "Predicting") as advance:
        facts = compare_taggers(
            first,
            second,
            rows,
            ks=options["ks"],
            filter_pairs=_read_pairs(options["filter_file"], options["limits"]),
            constants=options["constants"],
            n_bootstrap=options["resamples"],
            progress=as_callback(advance),
            **may,
        )
    _note_if_learned(data, rows, first, second)
    facts["title"] = f"{a} (a) and {b} (b) on {rows.name or data}"
    facts["names"] = {"a": str(a), "b": str(b)}
    facts["command"] = f"longtail compare {a} {b} {data}"
    metrics = facts["comparison"]["metrics"]
    watched = options["fail_if_worse"]
    if watched is not None:
        check_choice("--fail-if-worse", watched, tuple(metrics))
    if report is not None:
        write_page(report, comparison_page(facts))
    if as_json:
        print_json(facts)
    else:
        show_comparison(console(), facts)
    if report is not None:
        note(f"Report: {report}")
    if (
        watched is not None
        and (metrics[watched]["difference"] or 0.0) < 0
        and (metrics[watched]["p_value"] or 1.0) < 0.05
    ):
        note(f"{b} is worse than {a} at {watched}.")
        context.exit(WORSE)


def _write_labels(file: Path, labels: Sequence[LabelRowFacts]) -> None:
    """Write one line per label of the test rows."""
    from longtail.data import write_spreadsheet

    named = any("name" in row for row in labels)
    trained = ["train_count"] if any("train_count" in row for row in labels) else []
    columns = ["label", *(["name"] if named else []), *trained, "test_count", "precision", "recall", "f1"]
    shares = [{name: row[name] for name in ("precision", "recall", "f1")} for row in labels]
    rounded = [{name: "" if share is None else f"{share:.6g}" for name, share in both.items()} for both in shares]
    lines = ({**row, **both} for row, both in zip(labels, rounded, strict=True))
    write_spreadsheet(file, columns, ([line.get(name, "") for name in columns] for line in lines))


def _read_pairs(file: Path | None, limits: Limits) -> np.ndarray | None:
    """Read the (row, label) pairs of --filter, if it is given."""
    from longtail.data import read_filter

    return None if file is None else read_filter(file, limits)
