"""`longtail plan`: time, memory and size of a training before it is begun."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

import click
from click.core import ParameterSource

from longtail.cli.model_options import (
    ModelCommand,
    check_words_are_read,
    gives_model_options,
    make_tagger,
    tagger_options,
)
from longtail.cli.options import (
    data_options,
    jobs_option,
    json_option,
    memory_option,
    read_data,
    read_vocabulary,
    vocabulary_options,
)
from longtail.cli.output import announce_compilation, print_json
from longtail.cli.wording import naming_data
from longtail.report import duration, file_size, plural


@click.command(cls=ModelCommand)
@click.argument("data")
@tagger_options
@memory_option
@jobs_option
@data_options
@vocabulary_options
@json_option
def plan(data: str, as_json: bool, **options: Any) -> None:
    """Say which method suits DATA and why, and what training will cost: time, memory and the size of the model.

    Takes the options of `train`; without --method the plan is for the method that suits. Reads DATA, trains on a sample
    of the rows for a second and scales up; right within a factor of two.
    """
    from longtail.pipeline import AUTO, plan_training
    from longtail.validate import limited_memory

    by_default = click.get_current_context().get_parameter_source("method") is ParameterSource.DEFAULT
    if by_default and not gives_model_options(options):
        options["method"] = AUTO
    tagger = make_tagger(options)
    vocabulary = read_vocabulary(options)
    started = time.perf_counter()
    rows = read_data(data, "train", options)
    seconds = time.perf_counter() - started
    check_words_are_read(options, data, rows)
    announce_compilation()
    with naming_data(data, options["labels_file"]), limited_memory(options["memory"]):
        facts = plan_training(rows, tagger, vocabulary=vocabulary, read_seconds=seconds)
    if as_json:
        print_json(facts)
    else:
        click.echo("\n".join([*choice_lines(facts["choice"], facts["method"]), summary(facts)]))


def choice_lines(choice: Mapping[str, Any], planned: str | None = None) -> list[str]:
    """Return which method suits, why, the next best, and what would change that; `planned` is the one planned."""
    lines = [
        f"Method: {choice['method']}, {choice['name']}. {choice['why']}",
        f"Runner-up: {choice['runner_up']}, {choice['runner_up_why']}",
    ]
    if choice["would_change"]:
        lines.append(f"It would be {'; '.join(choice['would_change'])}.")
    if planned not in (None, choice["method"]):
        lines.append(f"What follows is for {planned}.")
    return lines


def summary(facts: Mapping[str, Any]) -> str:
    """Return a plan in a few lines."""
    about, memory, tree = "about " if facts["features_estimated"] else "", facts["memory"], facts["tree"]
    if "network" in facts:
        return _textual_summary(facts)
    lines = [
        f"{facts['rows']:,} rows, {about}{facts['features']:,} features, {about}{facts['nonzeros']:,} non-zeros, "
        f"{facts['labels_used']:,} labels with rows.",
    ]
    if tree is not None:
        levels = "1 level" if tree["levels"] == 1 else f"{tree['levels']} levels"
        leaves = "1 leaf" if tree["leaves"] == 1 else f"about {tree['leaves']:,} leaves"
        times = f", {tree['trees']} times" if tree["trees"] > 1 else ""
        lines.append(f"Label tree: {leaves}, {levels} below the root{times}.")
    threads = "1 thread" if facts["threads"] == 1 else f"{facts['threads']} threads"
    lines.append(f"Training: about {duration(facts['train_seconds'])} with {threads}{_calibrating(facts)}.")
    lines.append(_memory_line(memory))
    if not memory["fits"]:
        lines.append("That is too little: train on fewer rows or features (--min-df, --max-features).")
    lines.append(f"Model: about {file_size(facts['model_bytes'])}.")
    lines.append(f"Prediction: about {facts['predict_us_per_row']:,.0f} µs for each of many rows.")
    return "\n".join(lines)


def _calibrating(facts: Mapping[str, Any]) -> str:
    """Return what is done to calibrate, as the end of a sentence."""
    held = facts["calibration_rows"]
    if not held:
        return ""
    if facts["trainings"] == 1:
        return f"; once, without {plural(held, 'row')} held out to calibrate"
    return f", of which nearly half to calibrate on {plural(held, 'row')}"


def _memory_line(memory: Mapping[str, Any]) -> str:
    """Return in one line how much memory is needed, and whether it is there."""
    there = memory["available_bytes"]
    fits = "." if there is None else f"; {file_size(there)} available" + (": it fits." if memory["fits"] else ".")
    return f"Memory: about {file_size(memory['peak_bytes'])} at most{fits}"


def _textual_summary(facts: Mapping[str, Any]) -> str:
    """Return the plan of a model that reads texts."""
    network, memory = facts["network"], facts["memory"]
    gpu = network["device"] == "cuda"
    lines = [
        f"{plural(facts['rows'], 'row')}, {plural(facts['labels'], 'label')}, {facts['labels_used']:,} of them with "
        f"rows; vectors of {plural(facts['features'], 'dimension')}.",
        f"Training: about {duration(facts['train_seconds'])} on the {'GPU' if gpu else 'CPU'}"
        f"{', less if it stops early' if network['batch_size'] else ', the encoder as it is'}{_calibrating(facts)}.",
    ]
    if facts["tree"] is not None:
        lines.append("A label tree on words comes after the encoder.")
    parts = (
        ("weights", "weight"),
        ("optimiser", "optimizer"),
        ("vectors of texts", "query_vector"),
        ("vectors of labels", "label_vector"),
        ("tokens", "token"),
        (f"a batch of {plural(network['batch_size'], 'row')}", "batch"),
    )
    sizes = [(name, network[f"{key}_bytes"]) for name, key in parts]
    listed = ", ".join(f"{name} {file_size(size)}" for name, size in sizes if size)  # a frozen encoder has no optimiser
    lines += [f"On the GPU: {listed}." if gpu else f"Of memory: {listed}.", _memory_line(memory)]
    if not memory["fits"]:
        lines.append("That is too little: use a smaller --batch-size, --max-length or --encoder.")
    lines.append(f"Model: about {file_size(facts['model_bytes'])}.")
    lines.append(f"Prediction: about {facts['predict_us_per_row']:,.0f} µs for each of many rows, and the search.")
    return "\n".join(lines)
