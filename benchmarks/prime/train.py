"""Train PRIME, its relatives and its ablations, and score them on the test rows: the stage `train`."""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator

import numpy as np
import scipy.sparse as sp
import torch

import longtail as lt
from benchmarks.harness.program import Deadline, Facts, write_results
from benchmarks.harness.timing import timed
from benchmarks.prime.carried_data import LENGTH, Texts, held_out, load, some_rows, write_pieces
from benchmarks.prime.runs import (
    ABLATION,
    BATCH,
    EPOCHS,
    FREE,
    LITE,
    MAIN,
    TIMES_BATCH,
    key,
    line,
    open_results,
    ranked,
    show,
)
from longtail.metrics import recall_at_k
from longtail.prime import Prime
from longtail.prime.search import quantize

MODES = ("neighbours", "text", "none")  # ways to place a new label: `centroid` of Prime.add_labels


def run_train(args: argparse.Namespace) -> None:
    """Train every model of the parts asked for, unless the file of results has it."""
    facts = open_results(args)
    deadline = Deadline(args.minutes)
    known = {key(run) for run in facts["runs"]}
    loaded: dict[str, Texts] = {}
    for cell in cells(args):
        if key(cell) in known or (cell["part"] == "zero-shot" and any(k[:3] == key(cell)[:3] for k in known)):
            continue
        if deadline.passed():
            break
        if cell["data"] not in loaded:
            texts = load(cell["data"], args.work)
            loaded = {cell["data"]: some_rows(held_out(texts, args.held_out), args.rows)}
        for run in measured(cell, loaded[cell["data"]], args):
            facts["runs"].append(run)
            print(line(run), flush=True)
            write_results(facts, args.output)
    show(facts)


def cells(args: argparse.Namespace) -> Iterator[Facts]:
    """Yield part, data set, seed and model of everything asked for."""
    for data in args.only:
        for seed in args.seeds:
            if "main" in args.parts:
                yield from ({"part": "main", "data": data, "seed": seed, "model": m} for m in args.models or MAIN)
            if "zero-shot" in args.parts:
                yield {"part": "zero-shot", "data": data, "seed": seed, "model": "PRIME-lite"}
            for part, models in (("ablation", ABLATION), ("free", FREE)):
                if part in args.parts:
                    yield from ({"part": part, "data": data, "seed": seed, "model": model} for model in models)


def measured(cell: Facts, texts: Texts, args: argparse.Namespace) -> Iterator[Facts]:
    """Train the model of a cell and yield its scores, and those of the models built on it."""
    if cell["part"] == "zero-shot":
        yield from unseen(cell, texts, args)
        return
    params = {**MAIN, **ABLATION, **FREE}[cell["model"]]
    model, facts = fitted(params, cell, texts, args)
    yield {**cell, **scored(model, texts), **facts}
    if cell["model"] == "PRIME":
        if cell["seed"] == args.seeds[0]:
            keep_encoder(model, cell["data"], args)
        prototypes = model.output_weights()[0]
        spent, _ = timed(lambda: model.fit_classifier(texts.texts, texts.Y, fusion=1.0))
        yield {**cell, "model": "PRIME(W)", **scored(model, texts), "train_s": spent.wall}
        model.stored_ = quantize((prototypes + model.output_weights()[0]) / 2, "float32")  # fusion=0.5
        model.__dict__.pop("_search", None)
        yield {**cell, "model": "PRIME(θ, W)", **scored(model, texts), "train_s": spent.wall}
        for precision in ("float16", "int8"):
            yield {**cell, "model": f"PRIME(θ, W), {precision}", **scored(shrunk(model, precision), texts)}


def keep_encoder(model: Prime, name: str, args: argparse.Namespace) -> None:
    """Write the weights of the encoder in pieces, and the prototypes, for the stage `trees`."""
    part = model.network_.encoder.to_part()
    kept = {"files": write_pieces(part.arrays, args.keep, f"encoder-{name}"), "params": part.params}
    (args.keep / f"encoder-{name}.json").write_text(json.dumps(kept))
    np.save(args.keep / f"prototypes-{name}.npy", model.output_weights()[0].astype(np.float16))


def scored(model: Prime, texts: Texts) -> Facts:
    """Return the scores of a model on the test rows."""
    return ranked(model.predict_topk(texts.test_texts, k=100), texts)


def fitted(params: Facts, cell: Facts, texts: Texts, args: argparse.Namespace) -> tuple[Prime, Facts]:
    """Train one model and return it with what it took."""
    name = cell["data"]
    epochs = args.epochs or EPOCHS[name]
    batch = BATCH[name] * TIMES_BATCH.get(cell["model"], 1)
    settings = {"epochs": epochs, "lr": args.lr, "batch_size": batch, "max_length": LENGTH[name], **params}
    model = Prime(str(args.work / "encoder"), **settings, random_state=cell["seed"])
    if torch.cuda.is_available():
        torch.cuda.reset_peak_memory_stats()
    spent, _ = timed(lambda: model.fit(texts.texts, texts.Y, texts.label_texts))
    facts: Facts = {
        "rows": len(texts.texts),
        "epochs": settings["epochs"],
        "batch_size": batch,
        "train_s": spent.wall,
        "seconds": {name: round(value, 3) for name, value in model.seconds_.items()},
        "losses": [round(record["loss"], 4) for record in model.history_],
    }
    if torch.cuda.is_available():
        facts["gpu_gib"] = torch.cuda.max_memory_allocated() / 2**30
    return model, facts


def shrunk(model: Prime, precision: str) -> Prime:
    """Return a copy whose label vectors take less memory."""
    copy = Prime.from_part(model.to_part()).set_params(precision=precision)
    copy.stored_ = quantize(model.output_weights()[0], precision)
    return copy


def unseen(cell: Facts, texts: Texts, args: argparse.Namespace) -> Iterator[Facts]:
    """Hold a tenth of the labels out of training, add them by text, and search for them among all labels."""
    rng = np.random.default_rng(cell["seed"])
    n = texts.Y.shape[1]
    held = np.sort(rng.choice(n, size=n // 10, replace=False))
    kept = np.setdiff1d(np.arange(n), held)
    Y = sp.csr_array(texts.Y[:, kept])
    rows = np.flatnonzero(np.diff(Y.indptr))
    names = [texts.label_texts[i] for i in kept], [texts.label_texts[i] for i in held]
    seen = Texts([texts.texts[i] for i in rows], sp.csr_array(Y[rows]), [], texts.Y_test, names[0])
    truth = sp.csr_array(texts.Y_test[:, held])
    asked = np.flatnonzero(np.diff(truth.indptr))
    questions = [texts.test_texts[i] for i in asked]
    for name, params in (("frozen encoder", MAIN["frozen encoder"]), ("PRIME-lite", LITE)):
        model, facts = fitted(params, cell, seen, args)
        rows_asked = model.encode(questions)
        state = model.stored_, model.label_texts_, model.label_counts_, model.n_labels_
        for mode in MODES if name == "PRIME-lite" else MODES[-1:]:
            model.stored_, model.label_texts_, model.label_counts_, model.n_labels_ = state
            model.add_labels(names[1], mode)
            new = np.arange(kept.size, n)
            among_all = model.predict_topk(rows_asked, k=10)
            among_new = model.predict_topk(rows_asked, k=10, allow=new)
            recalls = {
                f"r@10 among {where}": 100 * float(recall_at_k(truth[asked], renumbered(top, kept.size), 10))
                for where, top in (("all", among_all), ("new", among_new))
            }
            yield {**cell, "model": f"{name}, {mode}", "asked": int(asked.size), **recalls, **facts}


def renumbered(top: lt.TopK, first: int) -> lt.TopK:
    """Return the new labels among predictions, numbered from 0; the others become missing."""
    new = top.ids >= first
    return lt.TopK(np.where(new, top.ids - first, -1), np.where(new, top.scores, -np.inf))
