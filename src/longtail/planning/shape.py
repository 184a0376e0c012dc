"""The shape of data as a model will see it, judged from a sample of its rows."""

from __future__ import annotations

import time
from collections.abc import Sequence

import numpy as np
import scipy.sparse as sp

from longtail.data import Dataset
from longtail.errors import DataError
from longtail.model import (
    FLATTENING,
    Shape,
    TextFeatures,
    clone,
    distinct_features,
    rows_per_feature,
    vocabulary_growth,
)
from longtail.text import BeginningFeatures, TfidfFeatures, first_words, side_by_side
from longtail.validate import as_sparse, count_ids, make_csr

SAMPLE_ROWS = 4000
SAMPLE_CHARACTERS = 4_000_000
MOST_COLUMNS = 100_000  # beyond the entries of the sample, from which on those without any are left out
SLOW_SAMPLE = 50  # texts for features that are not counted words: encoders take milliseconds for each


def shape_of(data: Dataset, features: TextFeatures | None = None, seed: int = 0) -> Shape:
    """Return the shape of a Dataset: exact where it has features, judged from some thousand texts where it has texts.

    >>> from longtail.data.synthetic.generate import make_topics
    >>> shape = shape_of(make_topics(300, 10)[0])
    >>> shape.n_rows, shape.n_used, shape.n_features
    (300, 10, 130)
    """
    n = data.n_rows
    counts = count_ids(data.Y.indices, data.n_labels)
    order = np.random.default_rng(seed).permutation(n)[:SAMPLE_ROWS]
    if data.texts is None or data.made_by is not None:
        X, rows = as_sparse(data.X), np.sort(order)
        sampled_rows = _columns_in_use(X[rows])
        return Shape(n, X.shape[1], X.nnz / max(n, 1), counts, rows, sampled_rows, rows_per_feature(sampled_rows))
    wanted = TfidfFeatures() if features is None else features
    if isinstance(wanted, BeginningFeatures):
        return _with_beginnings(data.texts, wanted, counts, order)
    return _shape_of_texts(data.texts, wanted, counts, order)


def _with_beginnings(texts: Sequence[str], wanted: BeginningFeatures, counts: np.ndarray, order: np.ndarray) -> Shape:
    """Return the shape of rows in which the beginnings of texts have columns of their own."""
    whole, first, n_words = wanted.unfitted(texts)
    shape = _shape_of_texts(texts, whole, counts, order)
    if first is None:
        return shape
    try:
        more = _shape_of_texts(first_words(texts, n_words), first, counts, order[: shape.rows.size])
    except DataError:  # beginnings without words, such as signs alone
        return shape
    n_features = shape.n_features + more.n_features
    return Shape(
        shape.n_rows,
        n_features,
        shape.nonzeros_per_row + more.nonzeros_per_row,
        counts,
        shape.rows,
        as_sparse(side_by_side(shape.X, more.X)),
        np.concatenate([shape.seen, more.seen]),
        (shape.term_bytes * shape.n_features + more.term_bytes * more.n_features) / n_features,
        shape.text_seconds + more.text_seconds,
        shape.loading_seconds + more.loading_seconds,
    )


def _shape_of_texts(texts: Sequence[str], wanted: TextFeatures, counts: np.ndarray, order: np.ndarray) -> Shape:
    """Return the shape of the rows that features make of texts; `order` says which texts are looked at first."""
    n = len(texts)
    words = wanted if isinstance(wanted, TfidfFeatures) else None
    rows = np.sort(order[: SLOW_SAMPLE if words is None else _affordable([len(texts[i]) for i in order])])
    # terms that are rare or frequent in the sample may be frequent or rare enough in all texts
    sampled = (
        clone(wanted)
        if words is None
        else clone(words).set_params(min_df=1, max_df=1.0, max_features=None, ngram_min_df=1)
    )
    started = time.perf_counter()
    clone(sampled).fit_transform(["warming up"])
    loading = time.perf_counter() - started
    started = time.perf_counter()
    try:
        X = as_sparse(sampled.fit_transform([texts[i] for i in rows]))
    except DataError:  # no words; but other texts may have some
        if rows.size == n:
            raise
        return Shape(n, 1, 0.0, counts, rows, sp.csr_array((rows.size, 1), dtype=np.float32), np.zeros(0, np.int64))
    times = (time.perf_counter() - started) * n / rows.size, loading
    seen, per_row = rows_per_feature(X), X.nnz / rows.size
    if words is None or not isinstance(sampled, TfidfFeatures):
        return Shape(n, X.shape[1], per_row, counts, rows, X, seen, 0.0, *times)
    lengths = sampled.term_lengths()
    runs = lengths > lengths.min() if words.analyzer != "char_wb" else np.zeros(seen.size, dtype=bool)
    n_features, per_row = _kept(words, seen, runs, rows.size, n)
    width = sampled.to_part().arrays["vocabulary.bytes"].size / X.shape[1]
    return Shape(n, n_features, per_row, counts, rows, X, seen, width, *times)


def _columns_in_use(X: sp.csr_array) -> sp.csr_array:
    """Return rows with the columns that have an entry numbered from 0, if most have none: a probe takes less memory."""
    if X.shape[1] <= MOST_COLUMNS + X.nnz:
        return X
    used, columns = np.unique(X.indices, return_inverse=True)
    return make_csr(X.indptr, columns.astype(np.int32), X.data, max(used.size, 1))


def _affordable(lengths: list[int]) -> int:
    """Return how many of the texts fit into the sample, one at least."""
    return max(1, int(np.searchsorted(np.cumsum(lengths), SAMPLE_CHARACTERS, side="right")))


def _kept(features: TfidfFeatures, seen: np.ndarray, runs: np.ndarray, n_sample: int, n: int) -> tuple[int, float]:
    """Return how many features all texts give, and how many a row has, after `min_df` and `max_features`.

    `runs` says which of the features are longer n-grams of words; these must be in `ngram_min_df` rows too.
    """
    kept, per_row = 0.0, 0.0
    for part, least in ((~runs, 1), (runs, features.ngram_min_df)):
        if part.any():
            more = _kept_of(features.min_df, least, seen[part], n_sample, n)
            kept, per_row = kept + more[0], per_row + more[1]
    if features.max_features is not None and kept > features.max_features:
        most = np.sort(seen)[::-1][: features.max_features]
        kept, per_row = float(features.max_features), min(per_row, float(most.sum()) / n_sample)
    return max(1, round(kept)), max(per_row, 0.0)


def _kept_of(min_df: float, least: int, seen: np.ndarray, n_sample: int, n: int) -> tuple[float, float]:
    """Return how many of some features are in `min_df` rows, `least` at least, and how many of them a row has."""
    kept, per_row, share = float(distinct_features(seen, n_sample, n)[0]), seen.sum() / n_sample, 1.0
    if isinstance(min_df, float) or n == n_sample:
        enough = seen >= max(min_df * n_sample if isinstance(min_df, float) else min_df, least if n == n_sample else 1)
        return float(enough.sum()), float(seen[enough].sum() / n_sample)
    # where a vocabulary grows by the power b, the share b of its words is in one row, b (1 - b) / 2 in two, ...
    power = min(max(vocabulary_growth(seen, n_sample) - FLATTENING * np.log2(max(n / n_sample, 1)), 0.02), 0.98)
    total, part = kept, power
    for rows in range(1, max(int(min_df), least)):
        kept -= total * part
        share -= total * part * rows / (per_row * n)
        part *= (rows - power) / (rows + 1)
    return kept, float(per_row * max(share, 0.0))
