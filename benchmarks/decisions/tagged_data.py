"""Data sets split into training and test rows, a Tagger trained on them, and its candidates for the test rows."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp

import longtail as lt
from benchmarks.harness.data_sets import read_parts
from longtail.data import Dataset, TopK, load_bundled
from longtail.decisions import CANDIDATES

SETS = ("debtags", "eurlex-4k", "yso-titles")
EVERY = {"yso-titles": (10, 2)}  # of training and test rows that is taken


class Tagged(NamedTuple):
    """A trained tagger and test rows with the probabilities of their candidates."""

    tagger: lt.Tagger
    Y: sp.csr_array
    probabilities: TopK

    @property
    def shares(self) -> np.ndarray:
        """The share of training rows of every label."""
        return self.tagger.model_.label_counts_ / self.tagger.model_.n_rows_


def read_set(name: str, folder: Path | None) -> tuple[Dataset, Dataset]:
    """Return training and test rows of a data set, bundled or in a folder."""
    if name == "debtags":
        return load_bundled(name, "train"), load_bundled(name, "test")
    if folder is None:
        raise SystemExit(f"{name} needs --data FOLDER")
    train, test = read_parts(folder / name)
    if name in EVERY:
        train, test = (part.take(slice(None, None, n)) for part, n in zip((train, test), EVERY[name], strict=True))
    return train, test


def train_and_tag(train: Dataset, test: Dataset, seed: int, target: str | None = None) -> Tagged:
    """Train a label tree and predict the candidates of the test rows; labels it does not know stay in the truth."""
    tagger = lt.Tagger(random_state=seed, target=target).fit_dataset(train)
    unknown = sorted(set(test.compact_labels().names()) - set(tagger.labels_))
    Y = test.compact_labels().align((*tagger.labels_, *unknown))[0].Y
    top = tagger.model_.predict_topk(tagger.dataset_rows(test), k=CANDIDATES)
    return Tagged(tagger, Y, tagger.model_.probabilities(top))
