"""Add labels by their texts alone, and measure what becomes of the rankings of all labels: the stage `new-labels`."""

from __future__ import annotations

import argparse
import json
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from benchmarks.harness.program import write_results
from benchmarks.harness.scores import rounded
from benchmarks.prime.carried_data import LENGTH, Texts, load
from benchmarks.prime.runs import open_results
from longtail.data import TopK
from longtail.metrics import precision_at_k, recall_at_k
from longtail.pipeline import folder_schemas
from longtail.prime import Prime
from longtail.storage import load_folder
from longtail.validate import as_sparse

ROWS, HELD_OUT, EPOCHS, BATCH, LR = 6000, 3000, 3, 400, 5e-4
WAYS: dict[str, dict[str, Any] | None] = {
    "not added": None,
    "text, at the length found in training (default)": {},
    "text, full length": {"text_scale": 1.0},
    "neighbours": {"centroid": "neighbours"},
    "network, own text as centroid": {"centroid": "text"},
}


def run_new_labels(args: argparse.Namespace) -> None:
    """Add held-out labels by their texts in every way, on a CPU in minutes."""
    facts = open_results(args)
    name = "yso-titles"
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch) / "model"
        measured = measure_new_labels(load(name, args.work), args.work / "encoder", LENGTH[name], folder)
    facts["new_labels"] = {**measured, "data": f"{name}, {measured['data']}"}
    print(json.dumps(facts["new_labels"], indent=1))
    write_results(facts, args.output)


def measure_new_labels(texts: Texts, encoder: Path, length: int, scratch: Path, seed: int = 11) -> dict[str, Any]:
    """Train a small PRIME-lite without a tenth of the labels, add them in every way, and score other training rows."""
    rng = np.random.default_rng(seed)
    order = rng.permutation(len(texts.texts))
    test, train = order[:HELD_OUT], order[HELD_OUT : HELD_OUT + ROWS]
    Y = sp.csr_array(texts.Y[train])
    used = np.unique(Y.indices)
    held = np.sort(rng.choice(used, used.size // 10, replace=False))
    kept = np.setdiff1d(used, held)
    Y = sp.csr_array(Y[:, kept])
    rows = np.flatnonzero(np.diff(Y.indptr))
    model = Prime(str(encoder), "prime-lite", epochs=EPOCHS, batch_size=BATCH, lr=LR, max_length=length, random_state=0)
    model.fit([texts.texts[train[i]] for i in rows], sp.csr_array(Y[rows]), [texts.label_texts[i] for i in kept])
    model.save(scratch)
    truth = sp.csr_array(texts.Y[test][:, np.concatenate([kept, held])])
    asked = np.flatnonzero(np.diff(truth.indptr))
    truth, queries = sp.csr_array(truth[asked]), model.encode([texts.texts[test[i]] for i in asked])
    new = [texts.label_texts[i] for i in held]
    runs = [{"new labels": name, **scored(scratch, way, new, queries, truth, kept.size)} for name, way in WAYS.items()]
    model.fit_tree([texts.texts[train[i]] for i in rows], sp.csr_array(Y[rows]))
    with_tree = scratch.with_name("with-tree")
    model.save(with_tree)
    read = as_sparse(model.rows([texts.texts[test[i]] for i in asked]))
    for name in list(WAYS)[:2]:
        scores = scored(with_tree, WAYS[name], new, read, truth, kept.size)
        runs.append({"new labels": f"{name}, with a tree", **scores})
    counted = f"{ROWS:,} training rows ({EPOCHS} epochs), {kept.size:,} labels and {held.size:,} held out"
    told = f"{counted}; scores on {asked.size:,} other training rows"
    return {"data": told, "text_scale": model.text_scale_, "runs": runs}


def scored(
    saved: Path, way: dict[str, Any] | None, names: list[str], queries: Any, truth: sp.csr_array, n_kept: int
) -> dict[str, float]:
    """Return scores over all labels, over the new and over the trained ones, and how often new ones are suggested."""
    model = Prime.from_part(load_folder(saved, folder_schemas()).parts["model"])
    if way is not None:
        model.text_scale_ = way.get("text_scale", model.text_scale_)
        model.add_labels(names, way.get("centroid", "none"))
    top = model.predict_topk(queries, k=10)
    new = top.ids >= n_kept
    scores = {"p@1": precision_at_k(truth, top, 1), "p@5": precision_at_k(truth, top, 5)}
    for title, labels, mine in (
        ("r@10 of new", slice(n_kept, None), new),
        ("r@10 of trained", slice(None, n_kept), ~new),
    ):
        part = sp.csr_array(truth[:, labels])
        has = np.flatnonzero(np.diff(part.indptr))
        ids = np.where(mine, top.ids - (n_kept if title.endswith("new") else 0), -1)
        some = TopK(ids[has], np.where(mine, top.scores, -np.inf)[has])
        scores[title] = recall_at_k(sp.csr_array(part[has]), some, 10)
    scores["share of new in top 5"] = float(new[:, :5].mean())
    return rounded({name: 100 * float(value) for name, value in scores.items()}, 2)
