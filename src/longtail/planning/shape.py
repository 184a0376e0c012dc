"""The shape of data as a model will see it, judged from a sample of its rows; and what an estimate consists of."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from longtail.data import Dataset
from longtail.errors import DataError
from longtail.model import clone
from longtail.text import TfidfFeatures
from longtail.validate import as_sparse

SAMPLE_ROWS = 4000
SAMPLE_CHARACTERS = 4_000_000
SLOW_SAMPLE = 50  # texts for features that are not counted words: encoders take milliseconds for each
FLATTENING = 0.015  # a vocabulary grows by a power of the rows that falls by this with every doubling


@dataclass(frozen=True)
class Shape:
    """What decides how long training takes and how much memory it needs."""

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
    def n_used(self) -> int:
        """The number of labels that have a row."""
        return int((self.label_counts > 0).sum())

    @property
    def labels_per_row(self) -> float:
        return float(self.label_counts.sum()) / max(self.n_rows, 1)

    def distinct(self, n_rows: Any) -> np.ndarray:
        """Return how many different features so many rows have together, on average."""
        return np.minimum(_distinct(self.seen, self.rows.size, n_rows), self.n_features)

    def of_sample(self, rows: np.ndarray, Y: sp.csr_array) -> Shape:
        """Return the shape of some of the sampled rows alone, as if there were no others; Y is theirs."""
        X = self.X[rows]
        counts, seen = np.bincount(Y.indices, minlength=Y.shape[1]), _seen(X)
        return Shape(rows.size, seen.size, X.nnz / max(rows.size, 1), counts, rows, X, seen)


@dataclass(frozen=True)
class Estimate:
    """What fitting one model once is expected to take."""

    seconds: float
    predict_us: float  # for one row of many
    model_bytes: float  # as saved
    memory_bytes: float  # the most in use, beside the data and the rows X
    kept_bytes: float  # in use when it is done
    tree: dict[str, Any] | None = None
    probed_rows: int = 0
    probe_seconds: float = 0.0
    loading_seconds: float = 0.0  # of compiled kernels


def shape_of(data: Dataset, features: Any = None, seed: int = 0) -> Shape:
    """Return the shape of a Dataset: exact where it has features, judged from some thousand texts where it has texts.

    >>> from longtail.data.synthetic.generate import make_topics
    >>> shape = shape_of(make_topics(300, 10)[0])
    >>> shape.n_rows, shape.n_used, shape.n_features
    (300, 10, 130)
    """
    n = data.n_rows
    counts = np.bincount(data.Y.indices, minlength=data.n_labels)
    order = np.random.default_rng(seed).permutation(n)[:SAMPLE_ROWS]
    if data.texts is None:
        X, rows = as_sparse(data.X), np.sort(order)
        return Shape(n, X.shape[1], X.nnz / max(n, 1), counts, rows, X[rows], _seen(X[rows]))
    features = TfidfFeatures() if features is None else features
    words = isinstance(features, TfidfFeatures)
    rows = np.sort(order[: _affordable([len(data.texts[i]) for i in order]) if words else SLOW_SAMPLE])
    found = clone(features)
    if words:  # terms that are rare in the sample may be frequent enough in all texts
        found.set_params(min_df=1, max_features=None)
    started = time.perf_counter()
    clone(found).fit_transform(["warming up"])
    loading = time.perf_counter() - started
    started = time.perf_counter()
    try:
        X = as_sparse(found.fit_transform([data.texts[i] for i in rows]))
    except DataError:  # no words; but other texts may have some
        if rows.size == n:
            raise
        return Shape(n, 1, 0.0, counts, rows, sp.csr_array((rows.size, 1), dtype=np.float32), np.zeros(0, np.int64))
    times = (time.perf_counter() - started) * n / rows.size, loading
    if not words:
        return Shape(n, X.shape[1], X.nnz / rows.size, counts, rows, X, _seen(X), 0.0, *times)
    seen = _seen(X)
    n_features, per_row = _kept(features, seen, rows.size, n, X.nnz / rows.size)
    width = found.to_part().arrays["vocabulary.bytes"].size / X.shape[1]
    return Shape(n, n_features, per_row, counts, rows, X, seen, width, *times)


def _affordable(lengths: list[int]) -> int:
    """Return how many of the texts fit into the sample, one at least."""
    return max(1, int(np.searchsorted(np.cumsum(lengths), SAMPLE_CHARACTERS, side="right")))


def _seen(X: sp.csr_array) -> np.ndarray:
    """Return how many rows have each feature, for features that any has."""
    found = np.bincount(X.indices, minlength=X.shape[1])
    return found[found > 0]


def _distinct(seen: np.ndarray, n_sample: int, n_rows: Any) -> np.ndarray:
    """Return the expected number of different features in so many rows.

    Within the sample of s rows, a feature that d of them have is among c rows with probability 1 - (1 - c/s)^d. Beyond
    it, the vocabulary keeps growing as it did over the last doubling, a little less with each.
    """
    wanted = np.atleast_1d(np.asarray(n_rows, dtype=np.float64))
    kinds, times = np.unique(seen, return_counts=True)
    grid = np.unique(np.concatenate([np.geomspace(1, max(n_sample, 1), 24), [max(n_sample / 2, 1)]]))
    found = [float((times * (1 - np.maximum(1 - c / max(n_sample, 1), 0) ** kinds)).sum()) for c in grid]
    inside = np.exp(np.interp(np.log(np.maximum(wanted, 1)), np.log(grid), np.log(np.maximum(found, 1e-9))))
    rate = _growth(seen, n_sample)
    doublings = np.log2(np.maximum(wanted / max(n_sample, 1), 1))
    at = np.minimum(doublings, rate / FLATTENING)  # beyond that, the vocabulary has come to its end
    return inside * 2.0 ** (rate * at - FLATTENING * at * at / 2)


def _growth(seen: np.ndarray, n_sample: int) -> float:
    """Return the power of the rows by which the vocabulary grew over the last doubling."""
    half = float((1 - 0.5 ** np.asarray(seen, dtype=np.float64)).sum())
    return float(np.log2(max(seen.size, 1) / max(half, 1e-9))) if n_sample > 1 else 0.0


def _kept(features: TfidfFeatures, seen: np.ndarray, n_sample: int, n: int, per_row: float) -> tuple[int, float]:
    """Return how many features all texts give, and how many a row has, after `min_df` and `max_features`."""
    kept, share = float(_distinct(seen, n_sample, n)[0]), 1.0
    if isinstance(features.min_df, float) or n == n_sample:
        enough = seen >= (features.min_df * n_sample if isinstance(features.min_df, float) else features.min_df)
        kept, share = float(enough.sum()), float(seen[enough].sum() / seen.sum())
    else:
        # where a vocabulary grows by the power b, the share b of its words is in one row, b (1 - b) / 2 in two, ...
        power = min(max(_growth(seen, n_sample) - FLATTENING * np.log2(max(n / n_sample, 1)), 0.02), 0.98)
        total, part = kept, power
        for rows in range(1, features.min_df):
            kept -= total * part
            share -= total * part * rows / (per_row * n)
            part *= (rows - power) / (rows + 1)
    if features.max_features is not None and kept > features.max_features:
        most = np.sort(seen)[::-1][: features.max_features]
        kept, share = float(features.max_features), min(share, float(most.sum() / seen.sum()))
    return max(1, round(kept)), per_row * max(share, 0.0)
