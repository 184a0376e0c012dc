"""`longtail demo`: the whole story in one command, on real data that comes with the package."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from longtail.cli.options import jobs_option, json_option
from longtail.cli.output import announce_compilation, console, print_json, stages

if TYPE_CHECKING:
    from rich.console import Console

    from longtail.data import Dataset
    from longtail.facts import AuditFacts
    from longtail.pipeline import Tagger

WIDTHS = (8, 16, 32, 64)
ROWS_AUDITED = 1000
EXAMPLE = (
    "A small web server written in Python that streams music from your computer to any browser on the local network. "
    "Reads MP3, Ogg Vorbis and FLAC files, keeps playlists in an SQLite database and shows album covers."
)


@click.command()
@click.option("--data", "name", default="debtags", show_default=True, help="debtags or debian-relations.")
@click.option("-o", "--output", type=click.Path(path_type=Path), default=Path("longtail-demo"), show_default=True)
@jobs_option
@json_option
def demo(name: str, output: Path, jobs: int | None, as_json: bool) -> None:
    """Train, evaluate, audit and explain a tagger on bundled real data, and write the model and a report."""
    from longtail.data import bundled_info, load_bundled
    from longtail.pipeline import Tagger, evaluate_tagger, page_splits, page_tree
    from longtail.report import (
        as_callback,
        evaluation_page,
        progress,
        show_dataset,
        show_evaluation_summary,
        show_explanation,
        show_narrow,
        write_page,
    )
    from longtail.storage import check_target

    model, page = output / "model", output / "report.html"
    info = bundled_info(name)
    check_target(model)
    screen = console()
    train, test = load_bundled(name, "train"), load_bundled(name, "test")
    if not as_json:
        screen.rule("1  the data")
        screen.print(f"{name}: {info['about']}, from {info['index']}.")
        show_dataset(screen, train.summary())
        screen.rule("2  training")
    announce_compilation()
    started = time.perf_counter()
    with stages() as report_progress:
        tagger = Tagger(random_state=0, n_jobs=jobs).fit_dataset(train, progress=report_progress)
    seconds = time.perf_counter() - started
    tagger.save(model)
    if not as_json:
        screen.print(f"Trained {tagger.n_labels_:,} classifiers on {train.n_rows:,} texts in {seconds:.1f} s.")
        screen.rule("3  on texts it has never seen")
    with progress(test.n_rows, "Predicting") as advance:
        facts = evaluate_tagger(tagger, test, progress=as_callback(advance))
    facts["title"] = f"{name}: a first model"
    facts["command"] = f"longtail demo --data {name}"
    facts["timings"]["train_seconds"] = seconds
    facts["tree"], facts["splits"] = page_tree(tagger), page_splits(tagger)
    write_page(page, evaluation_page(facts, labels_table="--labels-csv FILE of `longtail evaluate`"))
    audits = narrow_audits(tagger, train, test, jobs)
    explained = tagger.explain(EXAMPLE, k=5)
    if as_json:
        beside = {"audits": audits, "explanation": explained, "model_folder": str(model), "report": str(page)}
        print_json({**facts, **beside})
        return
    show_evaluation_summary(screen, {**facts, "title": ""}, more=f"The rest is on the page {page}.")
    screen.rule("4  what narrower models can never say")
    show_narrow(screen, audits)
    screen.rule("5  why a label came")
    show_explanation(screen, explained)
    screen.rule("6  yours now")
    _suggest(screen, name, model, page)


def _suggest(screen: Console, name: str, model: Path, page: Path) -> None:
    """Print where the results are, and commands to try next."""
    screen.print(f"The model is in {model}, the report with plots in {page}. Try:", soft_wrap=True)
    for line in (
        f'longtail explain {model} --text "a fast text editor for the terminal"',
        f"longtail evaluate {model} bundled:{name} --report report.html",
        "longtail audit --weights YOUR-LAYER.npz must-work.jsonl",
        'longtail train YOUR.jsonl -o my-model      # {"text": "...", "labels": ["..."]} per line',
    ):
        screen.print(f"  {line}", soft_wrap=True, markup=False)


def narrow_audits(tagger: Tagger, train: Dataset, test: Dataset, jobs: int | None) -> list[AuditFacts]:
    """Audit classifiers on the same texts squeezed into a few numbers each."""
    from longtail.pipeline import audit_model, narrow_layers

    layers = narrow_layers(tagger.dataset_rows(train), train.Y, train.names(), WIDTHS)
    settings: dict[str, Any] = {"rows": ROWS_AUDITED, "radius": "bound", "limit": 3, "n_jobs": jobs}
    return [audit_model(layer, test, **settings).facts for layer in layers]
