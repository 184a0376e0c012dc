"""Time PRIME one text at a time and in batches, on a CPU: the stage `serve`."""

from __future__ import annotations

import argparse
import json
import os
import statistics
import time
from importlib.util import find_spec

import numpy as np

import longtail as lt
from benchmarks.harness.program import Facts, write_results
from benchmarks.harness.timing import timed
from benchmarks.prime.carried_data import LENGTH, Texts, load, some_rows
from benchmarks.prime.runs import MAIN, open_results
from benchmarks.prime.trees import kept_encoder
from longtail.prime import Prime
from longtail.prime.tree_stage import TreeStage

DATA = "yso-titles"


def run_serve(args: argparse.Namespace) -> None:
    """Time the trained encoder with the search over all labels, exact and by HNSW, and with a tree beside it."""
    facts = open_results(args)
    texts = some_rows(load(DATA, args.work), args.rows)
    model = trained_encoder_model(texts, args)
    facts["serve"] = {"cores": len(os.sched_getaffinity(0)), "labels": len(texts.label_texts)}
    rows = model.encode(texts.test_texts[:2000])
    exact = with_index(model, "exact").predict_topk(rows, k=10).ids
    for index in ("exact", "hnsw") if find_spec("faiss") else ("exact",):
        times = serving_times(with_index(model, index), texts.test_texts)
        ids = model.predict_topk(rows, k=10).ids
        times["top_10_found"] = float(np.mean([np.isin(a, b).mean() for a, b in zip(exact, ids, strict=True)]))
        spent, _ = timed(lambda: model.predict_topk(rows, k=10))
        times["search_only_rows_per_s"] = len(rows) / spent.wall
        facts["serve"][index] = times
    words = lt.TfidfFeatures()
    tree = lt.LabelTreeClassifier(random_state=0).fit(words.fit_transform(texts.texts), texts.Y)
    model.tree_ = TreeStage(words, tree, 0.0, args.share)
    facts["serve"]["exact, with a tree"] = serving_times(with_index(model, "exact"), texts.test_texts)
    print(json.dumps(facts["serve"], indent=1), flush=True)
    write_results(facts, args.output)


def trained_encoder_model(texts: Texts, args: argparse.Namespace) -> Prime:
    """Return a model with the encoder that `train` kept, and a vector for every label text."""
    encoder = kept_encoder(DATA, args.keep, "cpu")
    model = Prime(str(args.work / "encoder"), **{**MAIN["frozen encoder"], "device": "cpu", "max_length": LENGTH[DATA]})
    few = slice(0, 200)
    model.fit(texts.texts[few], texts.Y[few], texts.label_texts)
    model.network_.encoder = encoder
    vectors = encoder.encode(texts.label_texts)  # as far apart as label vectors are: that decides what HNSW misses
    model.stored_ = {"vectors": vectors / np.linalg.norm(vectors, axis=1, keepdims=True)}
    return model


def with_index(model: Prime, index: str) -> Prime:
    """Set the kind of search; one that was made before is dropped."""
    model.set_params(index=index).__dict__.pop("_search", None)
    return model


def serving_times(model: Prime, texts: list[str]) -> Facts:
    """Return the median and 99% quantile of milliseconds for one text, and the texts per second of a batch."""
    model.predict_topk(texts[:8], k=10)
    times = []
    for text in texts[:300]:
        started = time.perf_counter()
        model.predict_topk([text], k=10)
        times.append(1e3 * (time.perf_counter() - started))
    spent, _ = timed(lambda: model.predict_topk(texts[:2000], k=10))
    rate = min(2000, len(texts)) / spent.wall
    return {"p50_ms": statistics.median(times), "p99_ms": float(np.percentile(times, 99)), "rows_per_s": rate}
