"""Train label trees on words, and on words and PRIME's vectors: the stage `trees`."""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch

import longtail as lt
from benchmarks.harness.program import Facts, write_results
from benchmarks.harness.timing import timed
from benchmarks.prime.carried_data import Texts, held_out, held_rows, load, read_pieces, some_rows
from benchmarks.prime.runs import key, line, open_results, ranked, show
from longtail.data import TopK, read
from longtail.encoder import TextEncoder
from longtail.prime import LabelSearch
from longtail.prime.tree_stage import blended
from longtail.storage import Part
from longtail.text import hstack_rows, unit_rows

# of trees on words and PRIME's vectors, from 4,000 held-out training rows of each data set (`trials` in the results):
# how much the vectors count, and which weights are dropped (the default of 0.1 drops most of those of dense features)
WEIGHT = {"yso-titles": 2.0, "eurlex57k": 0.5}
THRESHOLD = 0.0
# trees whose scores are also added to PRIME's, as `Prime(tree=True)` and `fit_tree(weight=...)` do
WITH_TREE = {name: f"PRIME with a {name}" for name in ("tree, words", "tree (overlap 2), words and PRIME")}


def run_trees(args: argparse.Namespace) -> None:
    """Train trees on words (of the whole texts, where --data is given), and on words and PRIME's vectors."""
    facts = open_results(args)
    known = {key(run) for run in facts["runs"]}
    for name in args.only:
        texts = some_rows(held_out(load(name, args.work), args.held_out), args.rows)
        D, Dt = (unit_rows(part) for part in encoded(name, texts, args.keep))
        prototypes = args.keep / f"prototypes-{name}.npy"
        for model, (X, Xt), params in tree_inputs(name, texts, D, Dt, args):
            for seed in args.seeds:
                cell = {"part": "main", "data": name, "seed": seed, "model": model}
                if key(cell) in known:
                    continue
                tree = lt.LabelTreeClassifier(**params, random_state=seed)
                spent, _ = timed(tree.fit, X, texts.Y)
                top = tree.predict_topk(Xt, k=100)
                runs = [{**cell, **ranked(top, texts), "train_s": spent.wall}]
                if prototypes.exists() and model in WITH_TREE:
                    both = with_scores(top, Dt, np.load(prototypes).astype(np.float32), args.share)
                    runs.append({**cell, "model": WITH_TREE[model], **ranked(both, texts)})
                for run in runs:
                    facts["runs"].append(run)
                    print(line(run), flush=True)
                write_results(facts, args.output)
    show(facts)


def tree_inputs(
    name: str, texts: Texts, D: np.ndarray, Dt: np.ndarray, args: argparse.Namespace
) -> list[tuple[str, tuple[Any, Any], Facts]]:
    """Return the trees to train: name, rows of train and test, settings. D and Dt are PRIME's vectors."""
    words = lt.TfidfFeatures(min_df=2)
    whole, whole_test = whole_texts(name, texts, None if args.rows else args.data, args.held_out)
    X, Xt = words.fit_transform(whole), words.transform(whole_test)
    weight = WEIGHT[name] if args.weight is None else args.weight
    joined = hstack_rows(X, D, weight=weight), hstack_rows(Xt, Dt, weight=weight)
    return [
        ("tree, words", (X, Xt), {}),
        ("tree, words and PRIME", joined, {"threshold": THRESHOLD}),
        ("tree (overlap 2), words and PRIME", joined, {"threshold": THRESHOLD, "overlap": 2}),
    ]


def with_scores(top: TopK, queries: np.ndarray, prototypes: np.ndarray, share: float) -> TopK:
    """Return the best labels by the scores of a tree and of PRIME, as `Prime.fit_tree` adds them."""
    stored = {"vectors": prototypes}
    more, _ = LabelSearch(stored).topk(queries, top.k)
    known = np.ones(len(prototypes), dtype=bool)
    return blended(top, queries, stored, more, top.k, known, share=share)


def kept_encoder(name: str, folder: Path, device: str) -> Any:
    """Return PRIME's encoder as `train` kept it."""
    kept = json.loads((folder / f"encoder-{name}.json").read_text())
    part = Part("text-encoder.v1", kept["params"], read_pieces(folder, kept["files"]))
    return TextEncoder.from_part(part).eval().to(device)


def encoded(name: str, texts: Texts, folder: Path) -> Iterator[np.ndarray]:
    """Yield the vectors of train and test by the encoder that was kept; they are kept as well."""
    encoder = kept_encoder(name, folder, "cuda" if torch.cuda.is_available() else "cpu")
    for title, rows in (("train", texts.texts), ("test", texts.test_texts)):
        file = folder / f"vectors-{name}-{title}-{len(rows)}.npy"
        if not file.exists():
            np.save(file, encoder.embed_all(encoder.tokens(rows), mixed=True).cpu().numpy())  # bfloat16, as trained
        yield np.load(file)


def whole_texts(name: str, texts: Texts, data: Path | None, n_held: int) -> tuple[list[str], list[str]]:
    """Return the texts of train and test in full, where the data is here; else as far as they were carried."""
    if data is None:
        return texts.texts, texts.test_texts
    train, test = (list(read(data / name / f"{part}.jsonl.xz").texts or ()) for part in ("train", "test"))
    if n_held:
        inside, outside = held_rows(len(train), n_held)
        train, test = [train[i] for i in inside], [train[i] for i in outside]
    return train, test
