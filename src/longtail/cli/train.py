"""`longtail train`: data in, a model folder out."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import click

from longtail.cli.options import data_options, jobs_option, json_option, read_data
from longtail.cli.output import announce_compilation, file_size, print_json, stages
from longtail.errors import ParameterError


@click.command()
@click.argument("data")
@click.option("-o", "--output", "model", required=True, type=click.Path(path_type=Path), help="Model folder to write.")
@click.option("--method", default="tree", show_default=True, help="tree (label tree) or ova (one-vs-all).")
@click.option("--fast", is_flag=True, help="Settings of the tree that train faster, for a little accuracy.")
@click.option("--trees", "n_trees", type=int, default=None, help="Trees in the ensemble. [default: 1]")
@click.option("--beam", type=int, default=None, help="Clusters of the tree kept at every level. [default: 10]")
@click.option("--C", "cost", type=float, default=None, help="Cost of errors against large weights. [default: 1]")
@click.option("--loss", default=None, help="squared_hinge or logistic. [default: squared_hinge]")
@click.option("--threshold", type=float, default=None, help="Drop weights smaller than this. [default: the method's]")
@click.option("--positive-weight", type=float, default=None, help="Cost of missing a label, times C. [default: 1]")
@click.option("--ngrams", type=int, default=1, show_default=True, help="Longest run of words that is a feature.")
@click.option("--min-df", type=int, default=1, show_default=True, help="Leave out words in fewer texts than this.")
@click.option("--max-features", type=int, default=None, help="Keep this many words, the most frequent.")
@click.option("--calibrate", type=float, default=0.1, show_default=True, help="Share of rows held out; 0 for none.")
@click.option("--seed", type=int, default=0, show_default=True)
@jobs_option
@data_options
@json_option
def train(data: str, model: Path, as_json: bool, **options: Any) -> None:
    """Train a tagger on DATA and write it to a folder.

    DATA is a file (JSONL, CSV, TSV, Parquet, fastText, XMC text, libsvm, npz; also .gz, .xz), a folder in the layout
    of the XMC repository, or bundled:debtags, bundled:debian-relations.
    """
    from longtail.features import TfidfFeatures
    from longtail.pipeline import METHODS, Tagger
    from longtail.pipeline.evaluation import model_facts
    from longtail.storage import check_target
    from longtail.validate import check_choice

    check_target(model)
    method = check_choice("method", options["method"], tuple(METHODS))
    estimator = _estimator(METHODS[method], method, options)
    features = TfidfFeatures(
        ngrams=(1, options["ngrams"]), min_df=options["min_df"], max_features=options["max_features"]
    )
    started = time.perf_counter()
    rows = read_data(data, "train", options)
    announce_compilation()
    tagger = Tagger(
        method,
        features=features,
        model=estimator,
        calibrate=options["calibrate"],
        random_state=options["seed"],
        n_jobs=options["jobs"],
    )
    with stages() as progress:
        tagger.fit_dataset(rows, progress=progress)
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


def _estimator(kind: type[Any], method: str, options: dict[str, Any]) -> Any:
    """Make the estimator from the options that were given; an option the method does not have is refused."""
    names = ("n_trees", "beam", "loss", "threshold", "positive_weight")
    given = {"C": options["cost"], **{name: options[name] for name in names}}
    given = {name: value for name, value in given.items() if value is not None}
    for name in given:
        if name not in kind().get_params():
            raise ParameterError(f"--{name.removeprefix('n_')} is not an option of the method {method!r}.")
    if options["fast"]:
        if not hasattr(kind, "fast"):
            raise ParameterError(f"--fast is not an option of the method {method!r}.")
        return kind.fast(**given)
    return kind(**given)


def summary(facts: dict[str, Any]) -> str:
    """Return in a few lines what training did and where the result is."""
    trained = facts["trained_on"]
    what = "texts" if trained["has_texts"] else "rows"
    lines = [
        f"Trained {facts['method']} on {trained['rows']:,} {what} with {trained['labels_used']:,} labels "
        f"and {facts['features']:,} features in {facts['seconds']:.1f} s.",
    ]
    if facts["held_out"]:
        found = facts["held_out"]["metrics"]
        shown = ", ".join(f"P@{k} {100 * found[f'p@{k}']['value']:.1f}%" for k in (1, 3, 5) if f"p@{k}" in found)
        lines.append(f"On {facts['held_out']['rows']:,} held-out {what}, before they were added: {shown}.")
    else:
        lines.append("Not calibrated: scores only, no probabilities.")
    lines.append(f"Model: {facts['model_folder']} ({file_size(facts['bytes'])}).")
    return "\n".join(lines)
