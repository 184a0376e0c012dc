"""The data sets on which the hybrid and its peers are compared: texts, labels, and what each label is called."""

from __future__ import annotations

import json
import lzma
from pathlib import Path
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp

from benchmarks.harness.data_sets import read_parts
from benchmarks.harness.program import Facts
from longtail.data import TopK, bundled_names, load_bundled
from longtail.metrics import label_counts

DATA = ("debtags", "eurlex57k", "pubmed-mesh", "yso-titles", "debian-relations")
HELD_SHARE, HELD_MOST = 10, 3_000  # rows that ensembles learn from: a tenth, at most so many


Found = list[tuple[str, Facts, TopK]]
"""Name, facts and predictions of every variant of a peer."""


class PeerData(NamedTuple):
    """A data set; `names` holds the name of each label and then its alternative names, `parents` broader labels."""

    texts: list[str]
    Y: sp.csr_array
    test_texts: list[str]
    Y_test: sp.csr_array
    names: list[list[str]]
    parents: list[list[int]]

    def counts(self) -> np.ndarray:
        """Return the number of training rows of every label."""
        return label_counts(self.Y)

    def split(self) -> tuple[np.ndarray, np.ndarray]:
        """Return the training rows in random order, and of these the ones that are held out for ensembles."""
        order = np.random.default_rng(0).permutation(len(self.texts))
        held = min(len(order) // HELD_SHARE, HELD_MOST)
        return order[held:], order[:held]


def read_data(name: str, data: Path | None) -> PeerData:
    """Read a data set, a bundled one or one below `data`, all labels of its list included."""
    if name in bundled_names():
        train, test = (load_bundled(name, part) for part in ("train", "test"))
    elif data is None:
        raise SystemExit(f"{name} needs --data FOLDER")
    else:
        train, test = read_parts(data / name)
    ids, texts = train.names(), train.label_texts or ()
    names = [_label_names(name, label, text) for label, text in zip(ids, texts, strict=True)]
    parents = [[] for _ in ids] if data is None or name in bundled_names() else _parents(data / name, ids)
    return PeerData(list(train.texts or ()), train.Y, list(test.texts or ()), test.Y, names, parents)


def top_of_pairs(rows: list[list[tuple[int, float]]], k: int) -> TopK:
    """Return predictions from (label, score) of every row, the best first; equal scores go by label number."""
    ids = np.full((len(rows), k), -1, dtype=np.int32)
    scores = np.full((len(rows), k), -np.inf, dtype=np.float32)
    for row, pairs in enumerate(rows):
        best = sorted(pairs, key=lambda pair: (-pair[1], pair[0]))[:k]
        ids[row, : len(best)] = [label for label, _ in best]
        scores[row, : len(best)] = [score for _, score in best]
    return TopK(ids, scores)


def _label_names(name: str, label: str, text: str) -> list[str]:
    """Return what a cataloguer would call the label: its text, but for Debian's tags and packages their short names."""
    if name == "debtags":  # "Facet: Short description. Long description"
        return [text.partition(": ")[2].partition(". ")[0].rstrip(".")]
    return [label, text] if name == "debian-relations" else [text]


def _parents(folder: Path, ids: tuple[str, ...]) -> list[list[int]]:
    """Return the numbers of the broader labels of every label."""
    number = {label: i for i, label in enumerate(ids)}
    parents: list[list[int]] = [[] for _ in ids]
    with lzma.open(folder / "labels.jsonl.xz", "rt", encoding="utf-8") as file:
        for line in file:
            label = json.loads(line)
            parents[number[label["id"]]] = [number[p] for p in label.get("parents", ()) if p in number]
    return parents
