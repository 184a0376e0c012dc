"""`longtail review`: rows for people to review, what came of it, and a new model from it."""

from __future__ import annotations

import getpass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from longtail.cli.options import data_options, jobs_option, json_option, key_option, read_data
from longtail.cli.output import announce_compilation, note, print_json, stages
from longtail.cli.wording import naming_data, reword
from longtail.errors import LongtailError, ParameterError
from longtail.report import plural

if TYPE_CHECKING:
    from longtail.pipeline import Tagger
    from longtail.review import ReviewStore

FILE = click.Path(path_type=Path)
SHOWN = 5  # labels of each kind


class Commands(click.Group):
    """Commands below a command; their errors name their own options."""

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command that was asked for."""
        try:
            return super().invoke(ctx)
        except LongtailError as error:
            reword(error, self.commands.get(ctx.invoked_subcommand or ""))
            raise


@click.group(cls=Commands)
def review() -> None:
    """Let people review what a model suggests, and make a better model of it.

    REVIEWS is one file that holds rows, suggestions and decisions; `longtail serve MODEL --reviews REVIEWS` opens it to
    people.
    """


@review.command(name="import")
@click.argument("reviews", type=FILE)
@click.argument("data")
@click.option("--model", type=FILE, default=None, help="Model folder: its suggestions are stored with the rows.")
@click.option("--control", type=float, default=None, help="Share of the control sample in a new file. [default: 0.2]")
@click.option("--twice", type=float, default=None, help="Share that two people review, in a new file. [default: 0.1]")
@click.option("--seed", type=int, default=None, help="Seed of both draws, in a new file. [default: 0]")
@jobs_option
@data_options
@json_option
def import_(reviews: Path, data: str, model: Path | None, jobs: int | None, as_json: bool, **options: Any) -> None:
    """Add the rows of DATA to REVIEWS, which is made if it is not there.

    DATA are rows with or without labels, in any format. Given labels that look wrong or missing are found here, so that
    they come early; with --model the rows that it is least sure of come early too.
    """
    from longtail.pipeline import load_tagger, match_labels
    from longtail.review import ReviewStore, add_rows, check_given_labels, items_of_dataset

    tagger = None if model is None else load_tagger(model)
    rows = read_data(data, "train", options, labels_required=False, taggers=[] if tagger is None else [tagger])
    if tagger is not None and tagger.vocabulary_ is not None:
        rows, _ = match_labels(rows, tagger.vocabulary_)
    shares = {name: options[name] for name in ("control", "twice", "seed") if options[name] is not None}
    is_new = not reviews.exists()
    with ReviewStore(reviews, create=True, **shares) as store:
        for name, value in shares.items():
            if not is_new and value != getattr(store, name):
                there = f"{reviews} was made with {getattr(store, name)}, by which its rows are drawn"
                raise ParameterError(f"--{name} can only be chosen for a new file; {there}.")
        with naming_data(data):
            added, known = add_rows(store, items_of_dataset(rows), data)
        announce_compilation()
        suggested = 0 if model is None or tagger is None else _suggest(store, model, tagger)
        with stages("folds") as progress:
            suspects = check_given_labels(store, n_jobs=jobs, progress=progress) if added else 0
        facts = {"added": added, "known": known, "suggested": suggested, "suspects": suspects, **store.counts()}
    if as_json:
        print_json(facts)
        return
    there = f"; {plural(known, 'row')} were there already" if known else ""
    click.echo(f"{reviews}: {plural(added, 'new row')}{there}. {plural(facts['control_rows'], 'row')} to measure by.")
    if suspects:
        click.echo(f"{plural(suspects, 'row')} with given labels that look wrong or incomplete.")


def _suggest(store: ReviewStore, model: Path, tagger: Tagger) -> int:
    """Let a model suggest labels for all open rows that it has not seen."""
    from longtail.review import suggest_items
    from longtail.storage import folder_digest

    with stages("rows") as progress:
        return suggest_items(store, tagger, folder_digest(model), progress=progress)


@review.command(name="export")
@click.argument("reviews", type=FILE)
@click.option("-o", "--output", type=FILE, required=True, metavar="FILE", help="JSONL; .csv for a spreadsheet.")
@click.option(
    "--part",
    default="training",
    show_default=True,
    help="training: rows to learn from; control: those to measure by; all.",
)
def export(reviews: Path, output: Path, part: str) -> None:
    """Write the finished rows of REVIEWS with their final labels, and who decided what.

    The JSONL file can be trained on. Control rows are left out of it, so that they can still be measured by.
    """
    from longtail.data import check_writable, plain_name
    from longtail.review import ReviewStore, export_jsonl, export_spreadsheet

    check_writable(output)
    with ReviewStore(reviews) as store:
        is_table = plain_name(output).lower().endswith(".csv")
        rows = (export_spreadsheet if is_table else export_jsonl)(store, output, part)
    click.echo(f"Wrote {plural(rows, 'finished row')} to {output}.")


@review.command()
@click.argument("reviews", type=FILE)
@json_option
def status(reviews: Path, as_json: bool) -> None:
    """Say how far the reviews are, how often suggestions are right, and how far people agree."""
    from longtail.review import ReviewStore, agreement_facts, review_facts, update_state

    with ReviewStore(reviews) as store:
        facts = {"progress": review_facts(store), "agreement": agreement_facts(store), "update": update_state(store)}
    if as_json:
        print_json(facts)
    else:
        click.echo("\n".join(status_lines(facts)))


def status_lines(facts: dict[str, Any]) -> list[str]:
    """Return the state of reviews in a few sentences."""
    counts, control, agreement = facts["progress"]["counts"], facts["progress"]["control"], facts["agreement"]
    lines = [
        f"{counts['finished']:,} of {plural(counts['rows'], 'row')} finished, {counts['finished_control']:,} of the "
        f"{counts['control_rows']:,} control rows; {plural(counts['decisions'], 'decision')}."
    ]
    if control["precision"] is not None:
        right, low, high = (100 * control[name] for name in ("precision", "low", "high"))
        lines.append(
            f"On the control rows {right:.1f}% of the labels that the model would give are right (95% interval "
            f"{low:.1f}% to {high:.1f}%)."
        )
    if agreement["alpha"] is not None:
        pairs = plural(agreement["pairs"], "pair")
        lines.append(f"Agreement of reviewers: alpha {agreement['alpha']:.2f} on {pairs} of rows and labels.")
        worst = ", ".join(one["label"] for one in agreement["labels"][:SHOWN])
        lines += [f"Most disputed: {worst}."] if worst else []
    for one in facts["progress"]["reviewers"]:
        lines.append(
            f"{one['reviewer']}: {plural(one['rows'], 'row')}; {one['accepted']:,} accepted, {one['rejected']:,} "
            f"rejected, {one['added']:,} added."
        )
    if facts["update"]["state"] != "idle":
        lines.append(f"Last update: {facts['update']['sentence']}")
    return lines


@review.command()
@click.argument("reviews", type=FILE)
@click.argument("label", required=False)
@click.option("--text", default=None, help="When to give LABEL; an empty text takes the guideline away.")
@json_option
def guidelines(reviews: Path, label: str | None, text: str | None, as_json: bool) -> None:
    """Show or set when a label is to be given: all guidelines, that of LABEL, or a new one by --text."""
    from longtail.review import ReviewStore

    if text is not None and label is None:
        raise ParameterError("--text needs a LABEL.")
    with ReviewStore(reviews) as store:
        if label is not None and text is not None:
            store.set_guideline(label, text, getpass.getuser())
        one = None if label is None else store.guideline(label)
        found = store.guidelines() if label is None else [one] if one is not None else []
    if as_json:
        print_json([guideline._asdict() for guideline in found])
    else:
        for guideline in found:
            click.echo(f"{guideline.label}: {guideline.text}")


@review.command()
@click.argument("reviews", type=FILE)
@click.argument("model", type=FILE)
@jobs_option
def rank(reviews: Path, model: Path, jobs: int | None) -> None:
    """Let MODEL suggest labels for the open rows of REVIEWS, and order them anew."""
    from longtail.pipeline import load_tagger
    from longtail.review import ReviewStore, check_given_labels

    announce_compilation()
    with ReviewStore(reviews) as store:
        rows = _suggest(store, model, load_tagger(model))
        with stages("folds") as progress:
            suspects = check_given_labels(store, n_jobs=jobs, progress=progress)
    click.echo(f"{plural(rows, 'row')} with new suggestions; {suspects:,} with given labels that look wrong.")


def update_options(function: Any) -> Any:
    """Add the options of making a model from reviews."""
    for option in reversed(
        (
            click.option("--margin", type=float, default=None, help="Points of F1 it may be worse by. [default: 1]"),
            click.option("--fewest", type=int, default=None, help="Control rows needed to compare. [default: 50]"),
            click.option("--dry-run", is_flag=True, help="Compare only; swap nothing."),
        )
    ):
        function = option(function)
    return function


@review.command()
@click.argument("reviews", type=FILE)
@click.argument("model", type=FILE)
@click.option("--train", "train_data", metavar="DATA", default=None, help="Train anew on these rows and the reviewed.")
@update_options
@jobs_option
@data_options
@key_option
@json_option
def update(reviews: Path, model: Path, train_data: str | None, as_json: bool, **options: Any) -> None:
    """Make a new model from REVIEWS, compare it on the control rows, and put it in the place of MODEL if not worse.

    The old model is kept in MODEL.previous; `longtail review put-back MODEL` puts it back.
    """
    run_update(reviews, model, train_data, as_json, options)


def run_update(reviews: Path, model: Path, train_data: str | None, as_json: bool, options: dict[str, Any]) -> None:
    """Make a new model from reviews and say what came of it; exit with 6 where it is not put in place."""
    from longtail.cli.evaluate import WORSE
    from longtail.review import FEWEST_CONTROL_ROWS, MARGIN, ReviewStore, update_from_reviews

    data = None if train_data is None else read_data(train_data, "train", options)
    announce_compilation()
    with ReviewStore(reviews) as store, stages("steps") as progress:
        facts = update_from_reviews(
            store,
            model,
            data=data,
            margin=MARGIN if options["margin"] is None else options["margin"],
            fewest=FEWEST_CONTROL_ROWS if options["fewest"] is None else options["fewest"],
            swap=not options["dry_run"],
            n_jobs=options["jobs"],
            key=options["key"],
            progress=progress,
        )
    if as_json:
        print_json(facts)
    else:
        click.echo(facts["sentence"])
    compared = facts.get("comparison")
    if compared is not None and not compared["not_worse"]:
        raise click.exceptions.Exit(WORSE)


@review.command(name="put-back")
@click.argument("model", type=FILE)
def put_back(model: Path) -> None:
    """Put the model that was there before the last update back in the place of MODEL; a second time undoes that."""
    from longtail.review import put_back as put_model_back

    before, after = put_model_back(model)
    note(f"{model}: {after} in place of {before}, which is kept in {model.name}.previous.")
