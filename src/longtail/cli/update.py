"""`longtail update`: new rows, labels and words for a saved model, without training anew."""

from __future__ import annotations

import time
from copy import copy
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from longtail.cli.evaluate import WORSE
from longtail.cli.options import data_options, expected_width, jobs_option, json_option, key_option, read_data
from longtail.cli.output import announce_compilation, note, print_json, stages
from longtail.cli.review import run_update
from longtail.cli.wording import naming_data
from longtail.errors import ParameterError
from longtail.report import file_size, plural

if TYPE_CHECKING:
    from longtail.pipeline import Tagger

WATCHED = ("p@1", "p@3", "p@5")
SIGNIFICANT = 0.05
FEW_ROWS = 500


@click.command()
@click.argument("model", type=click.Path(path_type=Path))
@click.argument("data", required=False)
@click.option("-o", "--output", type=click.Path(path_type=Path), help="Model folder to write.")
@click.option(
    "--reviews",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Learn the rows reviewed in this file in place of DATA, as `longtail review update` does.",
)
@click.option("--replay", metavar="DATA", help="Rows learned before, to be shown again so that less is forgotten.")
@click.option(
    "--fail-if-worse",
    "bench",
    metavar="DATA",
    help="Exit with 6, and write nothing, if the new model is significantly worse on these rows.",
)
@jobs_option
@data_options
@key_option
@json_option
@click.pass_context
def update(
    context: click.Context,
    model: Path,
    data: str | None,
    output: Path | None,
    reviews: Path | None,
    replay: str | None,
    bench: str | None,
    jobs: int | None,
    as_json: bool,
    **options: Any,
) -> None:
    """Let MODEL learn the new rows of DATA and write the new model to a folder.

    Labels and words that MODEL does not know are added. For models of the methods tree and ova. With --reviews the new
    model takes the place of MODEL, if it is not worse on the control rows.
    """
    if reviews is not None:
        if any(given is not None for given in (data, output, replay, bench)):
            raise ParameterError("--reviews takes neither DATA nor -o, --replay and --fail-if-worse.")
        usual = {"margin": None, "fewest": None, "dry_run": False}
        run_update(reviews, model, None, as_json, {**options, **usual, "jobs": jobs})
        return
    if data is None or output is None:
        raise ParameterError("give DATA and -o, or a file of reviews by --reviews.")
    from longtail.pipeline import load_tagger, updatable
    from longtail.storage import check_target

    check_target(output)
    started = time.perf_counter()
    tagger = load_tagger(model, key=options["key"])
    updatable(tagger)
    tagger.model_.n_jobs = jobs
    old = copy(tagger)  # an update replaces what a Tagger holds, and changes nothing in it
    width = expected_width(tagger)
    own: dict[str, Any] = {"n_features": width, "taggers": [tagger]}
    rows = read_data(data, "train", options, **own)
    again = None if replay is None else read_data(replay, "train", options, **own)
    judged = None if bench is None else read_data(bench, "test", options, **own)
    announce_compilation()
    with naming_data(data, options["labels_file"]), stages("steps") as progress:
        tagger.update_dataset(rows, replay=again, progress=progress)
    facts: dict[str, Any] = {**tagger.updated_, "labels": tagger.n_labels_}
    if judged is not None:
        with naming_data(bench or ""):
            facts["compared"] = _compared(old, tagger, judged)
        worse = [name for name, one in facts["compared"].items() if one["significantly_worse"]]
        if worse:
            if as_json:
                print_json(facts)
            note(f"the new model is worse than {model} on {bench} at {', '.join(worse)}; nothing was written.")
            context.exit(WORSE)
    tagger.save(output)
    facts |= {
        "model_folder": str(output),
        "bytes": sum(file.stat().st_size for file in output.iterdir()),
        "seconds": time.perf_counter() - started,
    }
    if as_json:
        print_json(facts)
    else:
        click.echo(summary(facts))


def _compared(old: Tagger, new: Tagger, rows: Any) -> dict[str, Any]:
    """Return precision of the old and the new model on rows, and where the new one is significantly worse."""
    from longtail.pipeline import compare_taggers

    metrics = compare_taggers(old, new, rows)["comparison"]["metrics"]
    out = {}
    for name in WATCHED:
        one = metrics[name]
        worse = (one["difference"] or 0.0) < 0 and (one["p_value"] or 1.0) < SIGNIFICANT
        out[name] = {"before": one["a"], "after": one["b"], "significantly_worse": worse}
    return out


def summary(facts: dict[str, Any]) -> str:
    """Return in a few lines what an update did and where the result is."""
    added = [plural(len(facts["labels_added"]), "new label")] if facts["labels_added"] else []
    added += [plural(facts["features_added"], "new word")] if facts["features_added"] else []
    more = f" with {' and '.join(added)}" if added else ""
    again = f"; {plural(facts['replayed'], 'old row')} shown again" if facts["replayed"] else ""
    lines = [f"Learned {plural(facts['rows'], 'new row')}{more} in {facts['seconds']:.1f} s{again}."]
    ids = facts["labels_added"]
    if ids:
        shown = ", ".join(_named(id, name) for id, name in zip(ids[:5], facts.get("added_names", ids)[:5], strict=True))
        lines.append(f"New labels: {shown}{', ...' if len(ids) > 5 else ''}.")
    strange = facts.get("vocabulary", {"labels_unknown": 0})
    if strange["labels_unknown"]:
        n, first = strange["labels_unknown"], ", ".join(strange["unknown"][:3])
        what = "dropped, as in training" if strange["unknown_labels"] == "drop" else "kept all the same"
        are = "new label is" if n == 1 else "new labels are"
        lines.append(f"{n:,} {are} not in the vocabulary and {what}: {first}{', ...' if n > 3 else ''}.")
    held_out = facts["held_out"]
    if held_out:
        few = " (a few points are chance with so few)" if held_out["rows"] < FEW_ROWS else ""
        rows = plural(held_out["rows"], "held-out new row")
        lines.append(f"On {rows}, before they were learned: {_changes(held_out)}{few}.")
    if facts.get("compared"):
        before_after = {side: {k: v[side] for k, v in facts["compared"].items()} for side in ("before", "after")}
        lines.append(f"On the rows to compare by: {_changes(before_after)}.")
    if facts["calibration"] == "kept":
        lines.append("Too few new rows to learn again what scores mean: probabilities are those of before.")
    if facts["decision"] == "dropped":
        lines.append("The guarantee of the old model does not hold for the new one; choose it again with `decide`.")
    lines.append(f"Model: {facts['model_folder']} ({file_size(facts['bytes'])}).")
    return "\n".join(lines)


def _named(id: str, name: str) -> str:
    """Return the name of a label with its id, or the id alone where it has no name."""
    return id if id == name else f"{name} ({id})"


def _changes(sides: dict[str, Any]) -> str:
    """Return precision before and after, e.g. "P@1 50.0% -> 52.0%"."""
    before, after = sides["before"], sides["after"]
    return ", ".join(f"{k.upper()} {100 * before[k]:.1f}% -> {100 * after[k]:.1f}%" for k in before if k in after)
