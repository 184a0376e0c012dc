"""`longtail decide`: which labels a saved model assigns, chosen anew on given rows, without training."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from longtail.cli.options import (
    check_labelled,
    data_options,
    expected_width,
    jobs_option,
    json_option,
    key_option,
    read_data,
)
from longtail.cli.output import announce_compilation, print_json
from longtail.cli.wording import naming_data
from longtail.errors import ParameterError
from longtail.report import decision_sentences, file_size

if TYPE_CHECKING:
    from longtail.facts import DecisionFacts


@click.command()
@click.argument("model", type=click.Path(path_type=Path))
@click.argument("data")
@click.option("-o", "--output", required=True, type=click.Path(path_type=Path), help="Model folder to write.")
@click.option(
    "--target",
    default=None,
    help="precision=0.8, recall=0.9, labels-per-row=3, f1, macro-f1 or macro-f1@5.",
)
@click.option("--guarantee", default=None, help="missed=0.1 or wrong=0.1: at most that share is expected of new rows.")
@click.option(
    "--per", default="global", show_default=True, help="Which labels share a threshold: global, band or label."
)
@jobs_option
@data_options
@key_option
@json_option
def decide(model: Path, data: str, output: Path, as_json: bool, **options: Any) -> None:
    """Choose which labels MODEL assigns, on the rows of DATA, and write the model with this decision.

    DATA are rows with labels that MODEL was not trained on. Nothing is trained; rankings and probabilities stay as they
    are. `predict --assign` and `evaluate` follow the decision.
    """
    from longtail.pipeline import decision_facts, load_tagger
    from longtail.storage import check_target

    check_target(output)
    if (options["target"] is None) == (options["guarantee"] is None):
        raise ParameterError("give either --target or --guarantee.")
    started = time.perf_counter()
    tagger = load_tagger(model, key=options["key"])
    tagger.model_.n_jobs = options["jobs"]
    rows = read_data(data, "test", options, n_features=expected_width(tagger), taggers=[tagger])
    check_labelled(data, rows)
    announce_compilation()
    with naming_data(data):
        tagger.learn_decision(rows, **{name: options[name] for name in ("target", "guarantee", "per")})
    tagger.save(output)
    decision: DecisionFacts = decision_facts(tagger)
    facts: dict[str, Any] = {
        "model_folder": str(output),
        "bytes": sum(file.stat().st_size for file in output.iterdir()),
        "seconds": time.perf_counter() - started,
        "decision": decision,
    }
    if as_json:
        print_json(facts)
        return
    click.echo("\n".join([*decision_sentences(decision), f"Model: {output} ({file_size(facts['bytes'])})."]))
