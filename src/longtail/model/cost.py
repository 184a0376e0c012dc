"""The cost of a training: the shape of the data that decides it, the cost of one fit, and that of the whole."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp

from longtail.data import Dataset
from longtail.validate import Json, memory_limit

FLATTENING = 0.015  # a vocabulary grows by a power of the rows that falls by this with every doubling
TERM_BYTES = 150  # of memory for each term, beside its text


@dataclass(frozen=True)
class Shape:
    """The numbers that decide how long training takes and how much memory it needs, judged from a sample of rows."""

    n_rows: int
    n_features: int
    nonzeros_per_row: float
    label_counts: np.ndarray  # rows with each label
    rows: np.ndarray  # numbers of the sampled rows
    X: sp.csr_array  # the sampled rows
    seen: np.ndarray  # how many of the sampled rows have each feature, for features that any has
    term_bytes: float = 0.0  # of a term's text, on average
    text_seconds: float = 0.0  # to turn all texts into rows
    loading_seconds: float = 0.0  # before the first text: compiled kernels, encoders

    @property
    def nonzeros(self) -> float:
        return self.n_rows * self.nonzeros_per_row

    @property
    def columns_in_use(self) -> float:
        """The number of columns that can have an entry: hashed features have far more columns than entries."""
        return min(float(self.n_features), max(self.nonzeros, 1.0))

    @property
    def n_used(self) -> int:
        """The number of labels that have a row."""
        return int((self.label_counts > 0).sum())

    @property
    def labels_per_row(self) -> float:
        return float(self.label_counts.sum()) / max(self.n_rows, 1)

    @property
    def feature_bytes(self) -> float:
        """The size of saved features: every term with its weight; 0 without texts."""
        return self.n_features * (self.term_bytes + 12)

    def distinct(self, n_rows: np.ndarray) -> np.ndarray:
        """Return how many different features so many rows have together, on average."""
        return np.minimum(distinct_features(self.seen, self.rows.size, n_rows), self.n_features)

    def of_sample(self, rows: np.ndarray, Y: sp.csr_array) -> Shape:
        """Return the shape of some of the sampled rows alone, as if there were no others; Y is theirs."""
        X = self.X[rows]
        counts, seen = np.bincount(Y.indices, minlength=Y.shape[1]), rows_per_feature(X)
        return Shape(rows.size, seen.size, X.nnz / max(rows.size, 1), counts, rows, X, seen)


@dataclass(frozen=True)
class Estimate:
    """The expected cost of fitting one model once."""

    seconds: float
    predict_us: float  # for one row of many
    model_bytes: float  # as saved
    memory_bytes: float  # the most in use, beside the data and the rows X
    kept_bytes: float  # in use when it is done
    tree: Json | None = None
    probed_rows: int = 0
    probe_seconds: float = 0.0
    loading_seconds: float = 0.0  # of compiled kernels


@dataclass(frozen=True)
class TrainingPlan:
    """The expected cost of all that `fit_dataset` does; without a probe, times are 0 and nobody should ask for them."""

    n_features: int | None
    features_estimated: bool  # judged from a sample of the texts
    nonzeros: int | None  # of all rows, where rows are sparse
    memory_bytes: float  # the most in use beside what is in use now
    model_bytes: float  # as saved, without the names of labels
    seconds: float
    predict_us: float  # for one text or row of many
    sampled_rows: int
    probed_rows: int
    probe_seconds: float
    tree: Json | None = None  # of a label tree: trees, levels, leaves, nodes
    network: Json | None = None  # of a network that reads texts: what its memory consists of


def plan_row_training(data: Dataset, shape: Shape, once: Estimate, n_held_out: int, twice: bool = True) -> TrainingPlan:
    """Return the cost of reading texts and of fitting without the rows held out, and, if `twice`, with all rows too."""
    textual = data.texts is not None and data.made_by is None
    with_some = (data.n_rows - n_held_out) / data.n_rows if n_held_out else 0.0  # of the time for all rows
    fits = with_some + 1 if twice or not n_held_out else with_some
    judging = 0.1 + 3 * n_held_out * once.predict_us / 1e6 + n_held_out * 3e-5 if n_held_out else 0.0
    loading = shape.text_seconds + shape.loading_seconds + once.loading_seconds
    X = 8 * shape.nonzeros
    terms = TERM_BYTES * shape.n_features
    reading, rows = (3 * X + terms, X + terms) if textual else (0.0, 0.0)  # counts, blocks of rows, all rows
    without_held_out = X + once.memory_bytes if n_held_out else 0.0  # on a copy of the rows that are not held out
    with_all = once.memory_bytes + (once.kept_bytes if n_held_out else 0.0) if fits >= 1 else 0.0  # beside the first
    features_bytes = shape.feature_bytes if textual else 0.0
    saving = once.kept_bytes + once.model_bytes
    return TrainingPlan(
        n_features=shape.n_features,
        features_estimated=textual,
        nonzeros=round(shape.nonzeros),
        memory_bytes=once.memory_bytes
        if memory_limit() is not None  # then large arrays are in files
        else max(reading, rows + max(without_held_out, with_all, saving)),
        model_bytes=once.model_bytes + features_bytes + sum(map(len, data.label_texts or ())),
        seconds=loading + fits * once.seconds + judging,
        predict_us=once.predict_us + 1e6 * shape.text_seconds / max(data.n_rows, 1),
        sampled_rows=int(shape.rows.size),
        probed_rows=once.probed_rows,
        probe_seconds=once.probe_seconds,
        tree=once.tree,
    )


def rows_per_feature(X: sp.csr_array) -> np.ndarray:
    """Return how many rows have each feature, for features that any has."""
    return np.unique(X.indices, return_counts=True)[1]


def distinct_features(seen: np.ndarray, n_sample: int, n_rows: int | np.ndarray) -> np.ndarray:
    """Return the expected number of different features in so many rows.

    Within the sample of s rows, a feature that d of them have is among c rows with probability 1 - (1 - c/s)^d. Beyond
    it, the vocabulary keeps growing as it did over the last doubling, a little less with each.
    """
    wanted = np.atleast_1d(np.asarray(n_rows, dtype=np.float64))
    kinds, times = np.unique(seen, return_counts=True)
    grid = np.unique(np.concatenate([np.geomspace(1, max(n_sample, 1), 24), [max(n_sample / 2, 1)]]))
    expected = [float((times * (1 - np.maximum(1 - c / max(n_sample, 1), 0) ** kinds)).sum()) for c in grid]
    inside = np.exp(np.interp(np.log(np.maximum(wanted, 1)), np.log(grid), np.log(np.maximum(expected, 1e-9))))
    rate = vocabulary_growth(seen, n_sample)
    doublings = np.log2(np.maximum(wanted / max(n_sample, 1), 1))
    at = np.minimum(doublings, rate / FLATTENING)  # beyond that, the vocabulary has come to its end
    return inside * 2.0 ** (rate * at - FLATTENING * at * at / 2)


def vocabulary_growth(seen: np.ndarray, n_sample: int) -> float:
    """Return b in: vocabulary ~ rows ** b, estimated from the last doubling of the sample."""
    half = float((1 - 0.5 ** np.asarray(seen, dtype=np.float64)).sum())
    return float(np.log2(max(seen.size, 1) / max(half, 1e-9))) if n_sample > 1 else 0.0
