"""What each choice in PRIME brings: the paper's Tables 6, 9 and 11, Figure 3, and our departures.

    python benchmarks/prime/study.py train   # on a GPU, with prime-carry beside it (vs_relatives.py prepare)
    python benchmarks/prime/study.py train --models PRIME-lite --name before --output before.json   # an older source
    python benchmarks/prime/study.py summary --more before.json   # means over seeds, and docs/prime_curves.svg

On a part of yso-titles, with one encoder, learning rate and number of epochs for all. Part "choices": PRIME-lite with
one thing changed, scored on the test rows (`test`) and on training rows that no model saw (`held_out`), by which
choices are made. Part "curves": P@1 on rows held out of training after every epoch of longer trainings. Several
trainings run at once, so times are only good for comparing them with each other.
"""

from __future__ import annotations

import argparse
import multiprocessing
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
import torch

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from benchmarks.harness.program import DOCS, Deadline, Facts, make_parser, read_results, write_results
from benchmarks.harness.scores import mean_and_sd, rounded
from benchmarks.harness.terminal import show_table
from benchmarks.prime.carried_data import LENGTH, Texts, held_rows, load, some_rows
from benchmarks.prime.curves import draw_curves, first_epoch_at
from benchmarks.prime.runs import key, open_results, ranked
from benchmarks.prime.variants import CHOICES, CLASSIFIERS, CURVES, Variant
from longtail.prime import Prime, mean_queries
from longtail.prime.search import quantize

LR, BATCH = 5e-4, 1600
FUSIONS = (0.25, 0.5, 0.75, 1.0)
VALIDATION = 0.05
METRICS = ("p@1", "p@3", "p@5", "psp@1", "psp@3", "psp@5", "r@100")
_loaded: dict[str, Texts] = {}  # of a worker


def options() -> argparse.Namespace:
    parser = make_parser(__doc__, "prime_study.json", seeds=(0, 1, 2), resume=True)
    parser.add_argument("stage", choices=("train", "summary"))
    parser.add_argument("--work", type=Path, default=Path("prime-carry"), help="folder of prepared data and encoder")
    parser.add_argument("--only", choices=tuple(LENGTH), default="yso-titles", help="data set")
    parser.add_argument("--parts", nargs="+", choices=("choices", "curves"), default=["choices", "curves"])
    parser.add_argument("--curve-seeds", nargs="+", type=int, default=[0, 1], help='seeds of the part "curves"')
    parser.add_argument("--models", nargs="+", help="only these")
    parser.add_argument("--name", help="put behind the names of models: of another source, say")
    parser.add_argument("--rows", type=int, default=60_000, help="rows to train on, drawn at random")
    parser.add_argument("--held-out", type=int, default=4000, help="training rows that are scored, not trained on")
    parser.add_argument("--test-rows", type=int, help="score only so many test rows: for a trial")
    parser.add_argument("--epochs", type=int, default=6)
    parser.add_argument("--curve-epochs", type=int, default=20)
    parser.add_argument("--batch", type=int, default=BATCH)
    parser.add_argument("--workers", type=int, default=4, help="trainings at once")
    parser.add_argument("--minutes", type=float, help="begin nothing new after so long")
    parser.add_argument("--more", nargs="+", type=Path, default=[], help="in `summary`: files of results to add")
    parser.add_argument("--figure", type=Path, default=DOCS / "prime_curves.svg", help="in `summary`")
    return parser.parse_args()


def run_train(args: argparse.Namespace) -> None:
    """Train everything that the file of results does not have, several at once."""
    facts = open_results(args)
    facts |= {"rows": args.rows, "epochs": args.epochs, "curve_epochs": args.curve_epochs, "batch": args.batch}
    known = {key(run) for run in facts["runs"]}
    todo = [cell for cell in cells(args) if key(named(cell, args)) not in known]
    deadline = Deadline(args.minutes)
    pool = multiprocessing.get_context("spawn").Pool(args.workers)
    waiting = [(pool.apply_async(measured, (cell, args)), cell) for cell in todo]
    while waiting and not deadline.passed():
        time.sleep(0.2)
        for result, cell in [item for item in waiting if item[0].ready()]:
            waiting.remove((result, cell))
            try:
                runs = result.get()
            except Exception as error:  # one model that fails must not lose the others
                print(f"{cell}: {error!r}", flush=True)
                continue
            for run in runs:
                facts["runs"].append(named(run, args))
                print(run["seed"], run["part"], run["model"], run["test"], run.get("train_s"), flush=True)
            write_results(facts, args.output)
    pool.terminate()


def cells(args: argparse.Namespace) -> Iterator[Facts]:
    """Yield part, data set, seed and model of everything asked for, part after part, the first seed first."""
    for part in args.parts:
        models, seeds = (CHOICES, args.seeds) if part == "choices" else (CURVES, args.curve_seeds)
        for seed in seeds:
            for model in models:
                if not args.models or model in args.models:
                    yield {"part": part, "data": args.only, "seed": seed, "model": model}


def named(run: Facts, args: argparse.Namespace) -> Facts:
    """Return a run with the name of its source behind that of its model."""
    return {**run, "model": f"{run['model']}, {args.name}"} if args.name else run


def measured(cell: Facts, args: argparse.Namespace) -> list[Facts]:
    """Train the model of a cell; return its scores, and those of the models built on it."""
    torch.set_num_threads(1)
    texts = study_texts(args)
    if cell["part"] == "curves":
        return [curve(cell, CURVES[cell["model"]], texts, args)]
    variant = CHOICES[cell["model"]]
    model, facts = fitted(variant, cell, texts, args)
    runs = [{**cell, **scored(model, texts, args.held_out), **facts}]
    if cell["model"] == "PRIME-lite":
        runs.append(
            {
                **cell,
                "model": "exact centroids at the end",
                **scored(with_exact_centroids(model, texts), texts, args.held_out),
            }
        )
    if variant.classifier:
        runs += classifiers(model, cell, texts, args.held_out)
    return runs


def study_texts(args: argparse.Namespace) -> Texts:
    """Return the rows to train on; the test rows are followed by training rows held out of everything."""
    if args.only not in _loaded:
        whole = load(args.only, args.work)
        train, held = held_rows(len(whole.texts), args.held_out)
        Y = sp.csr_array(whole.Y[held])
        Y = sp.csr_array((Y.data, Y.indices, Y.indptr), shape=(args.held_out, whole.Y_test.shape[1]))
        scored_texts = [*whole.test_texts[: args.test_rows], *(whole.texts[i] for i in held)]
        Y_scored = sp.csr_array(sp.vstack([whole.Y_test[: args.test_rows], Y]))
        inside = [whole.texts[i] for i in train]
        texts = Texts(inside, sp.csr_array(whole.Y[train]), scored_texts, Y_scored, whole.label_texts)
        _loaded[args.only] = some_rows(texts, args.rows)
    return _loaded[args.only]


def fitted(
    variant: Variant, cell: Facts, texts: Texts, args: argparse.Namespace, **more: Any
) -> tuple[Prime, dict[str, Any]]:
    """Train one model and return it with what it took."""
    settings = {
        "epochs": round(args.epochs * variant.epochs),
        "lr": LR,
        "batch_size": round(args.batch * variant.batch),
        "max_length": LENGTH[cell["data"]],
        "n_jobs": 1,
        **variant.params,
        **more,
    }
    began, ends = time.perf_counter(), []
    model = Prime(str(args.work / "encoder"), **settings, random_state=cell["seed"])
    with variant.patched():
        model.fit(
            texts.texts,
            texts.Y,
            texts.label_texts,
            on_epoch=lambda record: ends.append(round(time.perf_counter() - began, 2)),
        )
    facts = {
        "rows": len(texts.texts),
        "epochs": settings["epochs"],
        "batch_size": settings["batch_size"],
        "train_s": round(time.perf_counter() - began, 2),
        "epoch_ends_s": ends,
        "losses": [round(record["loss"], 4) for record in model.history_],
    }
    return model, facts


def curve(cell: Facts, variant: Variant, texts: Texts, args: argparse.Namespace) -> Facts:
    """Train for longer and return P@1 on held-out rows after every epoch."""
    epochs = round(args.curve_epochs * variant.epochs)
    model, facts = fitted(variant, cell, texts, args, epochs=epochs, validation=VALIDATION, patience=epochs)
    p_at_1 = [round(100 * record["p@1"], 3) for record in model.history_]
    return {**cell, **facts, "p@1 by epoch": p_at_1, **scored(model, texts, args.held_out)}


def classifiers(model: Prime, cell: Facts, texts: Texts, n_held_out: int) -> list[Facts]:
    """Train the classifier stage and return the scores of its vectors alone (PRIME(W)) and mixed with prototypes."""
    prototypes = model.output_weights()[0]
    runs = []
    for name, settings in CLASSIFIERS.items():
        model.stored_ = quantize(prototypes, "float32")
        began = time.perf_counter()
        model.fit_classifier(texts.texts, texts.Y, fusion=1.0, **settings)
        seconds, classes = round(time.perf_counter() - began, 2), model.output_weights()[0]
        for fusion in FUSIONS:
            share = np.float32(fusion)
            model.stored_ = quantize((1 - share) * prototypes + share * classes, "float32")
            model.__dict__.pop("_search", None)
            title = f"{cell['model']}, {name}, {fusion:.0%}"
            runs.append({**cell, "model": title, **scored(model, texts, n_held_out), "train_s": seconds})
    return runs


def with_exact_centroids(model: Prime, texts: Texts) -> Prime:
    """Return a model whose centroids are the means of the trained encoder's queries, and its prototypes made again."""
    network = model.network_
    values = network.get_buffer("centroids.values")
    values.copy_(torch.from_numpy(mean_queries(model.encode(texts.texts), texts.Y, values.cpu().numpy())))
    vectors = network.prototypes(network.encoder.tokens(texts.label_texts), values.is_cuda)
    model.stored_ = quantize(vectors.cpu().numpy(), "float32")
    model.__dict__.pop("_search", None)
    return model


def scored(model: Prime, texts: Texts, n_held_out: int) -> Facts:
    """Return the scores on the test rows and on the held-out rows."""
    top = model.predict_topk(texts.test_texts, k=100)
    n_test = len(texts.test_texts) - n_held_out
    out = {}
    for name, rows in (("test", slice(0, n_test)), ("held_out", slice(n_test, None))):
        part = texts._replace(test_texts=texts.test_texts[rows], Y_test=sp.csr_array(texts.Y_test[rows]))
        out[name] = rounded(ranked(top[rows], part), 3)
    return out


def run_summary(args: argparse.Namespace) -> None:
    """Add the runs of other files, write means over seeds, and draw the curves."""
    facts = read_results(args.output)
    for file in args.more:
        more = read_results(file)
        known = {key(run) for run in facts["runs"]}
        facts["command"] += [command for command in more["command"] if command not in facts["command"]]
        facts["runs"] += [run for run in more["runs"] if key(run) not in known]
    groups: dict[tuple[str, str, str], list[Facts]] = {}
    for run in facts["runs"]:
        groups.setdefault((run["data"], run["part"], run["model"]), []).append(run)
    facts["summary"] = {}
    for (data, part, model), runs in groups.items():
        entry: Facts = {"seeds": len(runs)}
        for where in ("test", "held_out"):
            entry[where] = {name: mean_and_sd([run[where][name] for run in runs], 2) for name in METRICS}
        facts["summary"].setdefault(data, {}).setdefault(part, {})[model] = entry
    facts["to_the_level_of"] = first_epoch_at(facts["runs"])
    write_results(facts, args.output)
    for data, parts in facts["summary"].items():
        for part, models in parts.items():
            rows = [
                [name, *(f"{entry[w][m]['mean']:.2f}" for w in ("test", "held_out") for m in METRICS), entry["seeds"]]
                for name, entry in models.items()
            ]
            show_table(f"{data}, {part}", ["", *METRICS, *(f"held {m}" for m in METRICS), "seeds"], rows)
    draw_curves(facts["runs"], args.figure)


def main() -> None:
    args = options()
    {"train": run_train, "summary": run_summary}[args.stage](args)


if __name__ == "__main__":
    main()
