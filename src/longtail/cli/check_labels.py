"""`longtail check-labels`: labels of a dataset that look wrong or missing, duplicates, unlearned labels, synonyms."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from longtail.cli.options import data_options, jobs_option, json_option, read_data, read_vocabulary, vocabulary_options
from longtail.cli.output import announce_compilation, console, note, print_json, stages
from longtail.cli.wording import naming_data


@click.command("check-labels")
@click.argument("data")
@click.option("-o", "--output", type=click.Path(path_type=Path), metavar="FILE", help="Write the findings as CSV.")
@click.option("--report", type=click.Path(path_type=Path), metavar="FILE", help="Write a page (HTML).")
@click.option("--folds", default=5, show_default=True, help="Rows are judged by models of the other folds.")
@click.option("--fewest-rows", default=3, show_default=True, help="A label with fewer rows is not judged.")
@click.option("--limit", default=1000, show_default=True, help="Findings of each kind in CSV and JSON.")
@click.option("--show", "shown", type=click.IntRange(min=1), default=10, show_default=True, help="... on the terminal.")
@click.option("--seed", "random_state", type=int, default=0, show_default=True, help="Of the folds.")
@jobs_option
@data_options
@vocabulary_options
@json_option
def check_labels(data: str, output: Path | None, report: Path | None, as_json: bool, **options: Any) -> None:
    """Find labels of DATA that look wrong or missing.

    Also rows with the same text and different labels, labels that no model learns, and labels that may mean the same.
    DATA are rows with labels; no model is needed. Nothing in DATA is changed.
    """
    from longtail.data import check_writable
    from longtail.label_check import check_labels as check
    from longtail.label_check import write_findings
    from longtail.pipeline import match_labels
    from longtail.report import label_check_page, show_label_check, write_page
    from longtail.vocabulary import add_names

    for path in (output, report):
        if path is not None:
            check_writable(path)
    vocabulary = read_vocabulary(options)
    rows = read_data(data, "train", options)
    matched = None
    if vocabulary is not None:
        rows, matched = match_labels(rows, vocabulary, listed=options["limit"])
    announce_compilation()
    names = ("folds", "fewest_rows", "limit", "random_state")
    with naming_data(data), stages("folds") as progress:
        asked = {name: options[name] for name in names}
        if vocabulary is not None:  # names as they are: shown ones tell doubled names apart
            asked["plain_names"] = {id: vocabulary.names_of(id)[0] for id in rows.names() if id in vocabulary}
        facts = check(rows, n_jobs=options["jobs"], progress=progress, **asked)
    if matched is not None:
        facts["vocabulary"] = matched
    add_names(facts, vocabulary)
    facts["title"] = f"Labels of {rows.name or data}"
    facts["command"] = f"longtail check-labels {data}"
    if output is not None:
        write_findings(output, facts)
    if report is not None:
        write_page(report, label_check_page(facts))
    if as_json:
        print_json(facts)
    else:
        show_label_check(console(), facts, shown=options["shown"])
    for what, path in (("Findings", output), ("Report", report)):
        if path is not None:
            note(f"{what}: {path}")
