"""`longtail train`: data in, a model folder out."""

from __future__ import annotations

import math
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from longtail.cli.engine_options import check_apart, engine_options, running_as_asked, take_checkpoint
from longtail.cli.model_options import ModelCommand, check_words_are_read, make_tagger, tagger_options
from longtail.cli.options import (
    check_labelled,
    counted_columns,
    data_options,
    group_options,
    jobs_option,
    json_option,
    memory_option,
    read_data,
    read_grouped_data,
    read_vocabulary,
    told_reading,
    vocabulary_options,
)
from longtail.cli.output import announce_compilation, note, noting_warnings, print_json, stages
from longtail.cli.plan import choice_lines
from longtail.cli.wording import naming_data, renaming
from longtail.errors import LongtailError, ParameterError
from longtail.report import decision_sentences, file_size, imputing_lines, plural

if TYPE_CHECKING:
    from longtail.facts import PlanFacts
    from longtail.pipeline import Imputed, Tagger

LEAST_GAP = 0.05  # points by which an expert must be better than all together to be named


@click.command(cls=ModelCommand)
@click.argument("data")
@click.option("-o", "--output", "model", required=True, type=click.Path(path_type=Path), help="Model folder to write.")
@click.option("--force", is_flag=True, help="Train even where memory seems too little.")
@group_options
@click.option(
    "--impute-rounds", type=int, default=None, help="Times to ask the model where labels belong. [default: 0]"
)
@tagger_options
@engine_options
@memory_option
@jobs_option
@data_options
@vocabulary_options
@click.option(
    "--unknown-labels",
    default=None,
    metavar="keep|drop|error",
    help="What to do with labels that the vocabulary lacks. [default: keep]",
)
@click.option(
    "--deprecated-labels",
    default=None,
    metavar="keep|replace",
    help="Keep labels that the vocabulary calls deprecated, or use what replaced them. [default: keep]",
)
@click.option("--tree-from-vocabulary", is_flag=True, help="Make the label tree of the broader concepts.")
@json_option
def train(data: str, model: Path, as_json: bool, **options: Any) -> None:
    """Train a tagger on DATA and write it to a folder.

    DATA is a file (JSONL, CSV, TSV, Parquet, fastText, XMC text, libsvm, npz; also .gz, .xz), a folder in the layout
    of the XMC repository, or bundled:debtags, bundled:debian-relations. With --groups, labels are known only for groups
    of rows: those of the rows are found first (see `longtail impute`).
    """
    from longtail.storage import check_target
    from longtail.validate import limited_memory

    check_target(model)
    check_apart(options["checkpoint"], model)
    if options["memory"] is not None and options["engine"] != "threads":
        raise ParameterError("--memory is a limit of this machine: it cannot be used with --engine ray.")
    with limited_memory(options["memory"], _folder_above(model)):
        _train_and_write(data, model, as_json, options)


def _folder_above(model: Path) -> Path:
    """Return the folder a model will stand in, or the one above it that is there."""
    return next(folder for folder in model.absolute().parents if folder.is_dir())


def _train_and_write(data: str, model: Path, as_json: bool, options: dict[str, Any]) -> None:
    """Train and write the model, under the limit on memory that is set."""
    from longtail.pipeline import DEPRECATED, UNKNOWN, model_facts
    from longtail.validate import check_choice

    checkpoint = take_checkpoint(options)
    tagger = make_tagger(options)
    unknown = check_choice("--unknown-labels", options["unknown_labels"] or UNKNOWN[0], UNKNOWN)
    deprecated = check_choice("--deprecated-labels", options["deprecated_labels"] or DEPRECATED[0], DEPRECATED)
    vocabulary = read_vocabulary(options)
    for name in ("unknown_labels", "deprecated_labels", "tree_from_vocabulary"):
        if vocabulary is None and options[name]:
            raise ParameterError(f"--{name.replace('_', '-')} can only be used with --vocabulary.")
    started = time.perf_counter()
    more = {"vocabulary": vocabulary, "unknown_labels": unknown, "deprecated_labels": deprecated}
    not_read: set[str] = set()
    with running_as_asked(options, checkpoint) as engine:
        tagger = _train(tagger, data, options, more, not_read)
        tagger.save(model)
    if engine.checkpoint is not None:
        if engine.checkpoint.taken:
            note(f"took up {plural(engine.checkpoint.taken, 'finished task')} of {checkpoint}.")
        engine.checkpoint.drop()
    size = sum(file.stat().st_size for file in model.iterdir())
    facts = {
        "model_folder": str(model),
        "bytes": size,
        "seconds": time.perf_counter() - started,
        **model_facts(tagger),
        "columns_not_read": sorted(not_read),
    }
    if as_json:
        print_json(facts)
        return
    click.echo(summary(facts))


def _train(tagger: Tagger, data: str, options: dict[str, Any], more: dict[str, Any], not_read: set[str]) -> Tagger:
    """Read DATA and train on it; returns the tagger that was trained. `not_read` receives the columns left aside."""
    from longtail.pipeline import AUTO, plan_training, threads_within_limit
    from longtail.validate import resolve_jobs

    imputed = _impute_labels(data, tagger, options)
    rows = read_data(data, "train", options, ignored_columns=not_read) if imputed is None else imputed.labelled()
    check_words_are_read(options, data, rows)
    check_labelled(data, rows)
    if options["method"] == AUTO:
        choice = tagger.choose_method(rows, more["vocabulary"])
        note(choice_lines(choice)[0])
        tagger = tagger.chosen(choice)
    announce_compilation()
    if options["memory"] is not None:
        jobs = tagger.n_jobs
        with naming_data(data, options["labels_file"]):
            tagger.n_jobs = threads_within_limit(rows, tagger)
        if jobs is None and tagger.n_jobs < resolve_jobs(None):
            note(f"training with {plural(tagger.n_jobs, 'thread')}, for which --memory is enough.")
    elif not options["force"]:
        with naming_data(data, options["labels_file"]):
            _check_memory(plan_training(rows, tagger, probe=False))
    in_epochs = tagger.new_model().has_epochs
    more = {**more, "tree_from_vocabulary": options["tree_from_vocabulary"]}
    if in_epochs:
        more["on_epoch"] = lambda record: note(epoch_line(record))
    with (
        noting_warnings(),
        naming_data(data, options["labels_file"]),
        stages("steps" if in_epochs else "labels") as progress,
    ):
        if imputed is None:
            tagger.fit_dataset(rows, progress=progress, **more)
        else:
            tagger.fit_imputed(imputed, progress=progress, **more)
    told = told_reading(data, options)
    if told:
        tagger.data_["reading"] = told
    return tagger


def _check_memory(plan: PlanFacts) -> None:
    """Refuse a training that clearly needs more memory than there is; note one that may."""
    from longtail.pipeline import refuse_without_memory

    try:
        warning = refuse_without_memory(plan)
    except LongtailError as error:
        if "or_else" in error.fields:
            error.restate(or_else=", or use --force to try all the same")
        raise
    if warning is not None:
        note(warning)


def _impute_labels(data: str, tagger: Tagger, options: dict[str, Any]) -> Imputed | None:
    """Find the labels of the rows where --groups is given."""
    from longtail.validate import check_integer

    given = {"assign": options["assign"], "rounds": options["impute_rounds"]}
    if options["groups_file"] is None:
        for option, value in zip(("--assign", "--impute-rounds"), given.values(), strict=True):
            if value is not None:
                raise ParameterError(f"{option} needs --groups, the file with the labels of groups.")
        return None
    grouped = read_grouped_data(data, "train", options)
    announce_compilation()
    if given["rounds"] is not None:
        check_integer("--impute-rounds", given["rounds"], low=0)
    with renaming(rounds="impute_rounds"), naming_data(data, options["labels_file"]), stages() as progress:
        return tagger.impute(grouped, progress=progress, **{k: v for k, v in given.items() if v is not None})


def summary(facts: dict[str, Any]) -> str:
    """Return in a few lines what training did and where the result is."""
    from longtail.pipeline import vocabulary_sentences

    trained = facts["trained_on"]
    what = "text" if trained["has_texts"] else "row"
    imputed = trained.get("imputed")
    lines = imputing_lines(imputed) if imputed else []
    if trained.get("vocabulary"):
        lines += vocabulary_sentences(trained["vocabulary"])
        kept = trained["vocabulary"].get("deprecated_labels") != "replace"
        if kept and any("replaced_by" in row for row in trained["vocabulary"]["deprecated"]):
            lines.append("--deprecated-labels replace trains on what replaced them instead.")
    lines.append(_training_line(facts, what))
    if facts.get("budget"):
        lines.append(_budget_line(facts["budget"]))
    if facts["held_out"]:
        metrics = facts["held_out"]["metrics"]
        shown = ", ".join(f"P@{k} {100 * metrics[f'p@{k}']['value']:.1f}%" for k in (1, 3, 5) if f"p@{k}" in metrics)
        against = ", against the labels found for them" if imputed else ""
        apart = "which it was not trained on" if facts["trained_rows"] < trained["rows"] else "before they were added"
        lines.append(f"On {plural(facts['held_out']['rows'], f'held-out {what}')}, {apart}{against}: {shown}.")
        lines += expert_lines(facts.get("experts", {}))
        if facts["decision"].get("reached"):
            lines += decision_sentences(facts["decision"])
    else:
        lines.append(f"Not calibrated{_why_not_calibrated(facts)}: scores only, no probabilities.")
    if facts.get("columns_not_read"):
        lines.append(f"Not read: {counted_columns(facts['columns_not_read'])}.")
    lines.append(f"Model: {facts['model_folder']} ({file_size(facts['bytes'])}).")
    return "\n".join(lines)


def _why_not_calibrated(facts: dict[str, Any]) -> str:
    """Return in words why no rows were held out, where that was not asked for."""
    from longtail.pipeline import FEWEST_ROWS_TO_CALIBRATE

    rows = facts["trained_on"]["rows"]
    if rows < FEWEST_ROWS_TO_CALIBRATE:
        return f", which takes at least {FEWEST_ROWS_TO_CALIBRATE} rows (there are {rows})"
    return ""


def _training_line(facts: dict[str, Any], what: str) -> str:
    """Return in one line which model was trained, on how much, and how long that took."""
    trained, seconds = facts["trained_on"], f"in {facts['seconds']:.1f} s."
    if "experts" in facts:
        return _hybrid_line(facts, what, seconds)
    if "fusion" not in facts:
        of = f"{plural(trained['labels_used'], 'label')} and {plural(facts['features'], 'feature')}"
        if "epochs" in facts:
            of += f" for {plural(len(facts['epochs']), 'epoch')}, of which number {facts['best_epoch']} was kept,"
        return f"Trained {facts['method']} on {plural(facts['trained_rows'], what)} with {of} {seconds}"
    encoder = facts["params"]["encoder"]
    of = plural(trained["labels"], "label")
    of += f" for {plural(len(facts['epochs']), 'epoch')}" if facts["epochs"] else ", the encoder as it was"
    from_what = f"from {encoder}" if isinstance(encoder, str) else "with a new encoder"
    mix = "" if facts["fusion"] is None else f" Vectors per label make {100 * facts['fusion']:.0f}% of a score."
    mix += " A label tree on words ranks with it." if facts["tree"] else ""
    how = f"{facts['method']} ({facts['params']['preset']}) on {plural(facts['trained_rows'], what)}"
    return f"Trained {how} with {of}, {from_what} of {plural(facts['features'], 'dimension')}, {seconds}{mix}"


def _hybrid_line(facts: dict[str, Any], what: str, seconds: str) -> str:
    """Return in one line which experts were trained, on how much, and how long that took."""
    experts, encoder = facts["params"]["experts"], facts["params"]["encoder"]
    of = f"Trained hybrid ({', '.join(experts)}) on {plural(facts['trained_rows'], what)}"
    of += f" with {plural(facts['trained_on']['labels'], 'label')}"
    if set(experts) & {"prototypes", "classifier", "neighbours"}:
        of += f", from {encoder}" if isinstance(encoder, str) else ", with a new encoder"
        of += f" trained for {plural(len(facts['epochs']), 'epoch')}," if facts["epochs"] else " as it was,"
    return f"{of} {seconds}"


def expert_lines(experts: dict[str, Any]) -> list[str]:
    """Return how precise every expert of a hybrid is on the rows held out, beside all together.

    >>> expert_lines({"tree": {"P@1": 0.78, "P@5": 0.39}, "together": {"P@1": 0.8, "P@5": 0.41}})
    ['Experts on these, P@1/P@5: tree 78.0/39.0; together 80.0/41.0.']
    >>> both = {"tree": {"P@1": 0.81, "P@5": 0.39}, "names": {"P@1": 0.3, "P@5": 0.1}}
    >>> expert_lines({**both, "together": {"P@1": 0.8, "P@5": 0.41}})[1]
    'On these the expert tree alone is 1.0 points better in P@1 than all together.'
    """
    shown = [f"{name} {100 * of['P@1']:.1f}/{100 * of['P@5']:.1f}" for name, of in experts.items()]
    lines = [f"Experts on these, P@1/P@5: {'; '.join(shown)}."] if shown else []
    alone = {name: of for name, of in experts.items() if name != "together"}
    for metric in ("P@1", "P@5") if len(alone) > 1 else ():
        best = max(alone, key=lambda name: alone[name][metric])
        gap = 100 * (alone[best][metric] - experts["together"][metric])
        if gap >= LEAST_GAP:
            lines.append(f"On these the expert {best} alone is {gap:.1f} points better in {metric} than all together.")
    return lines


def _budget_line(budget: dict[str, Any]) -> str:
    """Return in one line how the minutes given were used, and what more of them would have brought.

    >>> _budget_line({"minutes": 5.0, "minutes_used": 4.8, "epochs": 7, "epochs_asked": 20, "more_minutes": 8.13})
    '7 of 20 epochs fitted into 5 minutes (4.8 used); with 8.2 more minutes it would train all 20.'
    >>> _budget_line({"minutes": 0.3, "minutes_used": 2.14, "epochs": 1, "epochs_asked": 4, "more_minutes": 5.5})
    'One epoch, the least there is, took 2.1 minutes, not 0.3; with 5.5 more minutes it would train all 4.'
    """
    planned, asked = budget["epochs"], budget["epochs_asked"]
    if planned == 1 and budget["minutes_used"] > budget["minutes"]:
        took = f"{budget['minutes_used']:.1f} minutes, not {budget['minutes']:g}"
        return f"One epoch, the least there is, took {took}; {_more_minutes(budget)}."
    used = f"{budget['minutes']:g} minutes ({budget['minutes_used']:.1f} used)"
    if planned == asked:
        return f"All {plural(asked, 'epoch')} fitted into {used}."
    return f"{planned} of {plural(asked, 'epoch')} fitted into {used}; {_more_minutes(budget)}."


def _more_minutes(budget: dict[str, Any]) -> str:
    """Return how many minutes more all epochs would take."""
    if budget["epochs"] == budget["epochs_asked"]:
        return "no more were asked for"
    more = math.ceil(10 * budget["more_minutes"]) / 10
    return f"with {more:g} more minutes it would train all {budget['epochs_asked']}"


def epoch_line(record: dict[str, Any]) -> str:
    """Return in one line how an epoch went.

    >>> epoch_line({"epoch": 3, "loss": 0.25, "p@1": 0.5, "best": True})
    'Epoch 3: loss 0.2500, P@1 50.0% on validation rows (best so far).'
    """
    out = f"Epoch {record['epoch']}: loss {record['loss']:.4f}"
    if "valid_precision" in record:
        out += f", mean of P@1, P@3 and P@5 {100 * record['valid_precision']:.1f}% on validation rows"
        out += " (best so far)" if record["best"] else ""
    elif record.get("valid_loss") is not None:
        out += f", {record['valid_loss']:.4f} on validation rows" + (" (best so far)" if record["best"] else "")
    if "p@1" in record:
        out += f", P@1 {100 * record['p@1']:.1f}% on validation rows" + (" (best so far)" if record["best"] else "")
    return out + "."
