"""Make data with a known right answer, for tests and examples; nothing takes rows × labels memory.

Label 0 is the most frequent: label i is drawn in proportion to 1 / (i + 1) ** exponent. Where there are at least as
many rows as labels, every label has a row.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.sparse as sp

from longtail.data.dataset import Dataset
from longtail.data.synthetic.extreme import make_extreme as make_extreme
from longtail.errors import ParameterError
from longtail.validate import RandomState, check_integer, check_real, resolve_seed

BLOCK_ROWS = 4096
SYLLABLES = [c + v for c in "bdfgklmnprstvz" for v in "aeiou"]


@dataclass(frozen=True)
class LinearTruth:
    """The model behind `make_linear`: a row has exactly the labels with `X @ W.T + bias > 0`."""

    W: sp.csr_array  # (n_labels, n_features)
    bias: np.ndarray  # (n_labels,)


@dataclass(frozen=True)
class GroupTruth:
    """The right answer of `make_groups`: the labels of the groups, and the model behind the rows."""

    Y_groups: sp.csr_array  # (n_groups, n_labels)
    linear: LinearTruth


def make_linear(
    n_rows: int = 1000,
    n_features: int = 2000,
    n_labels: int = 200,
    *,
    labels_per_row: float = 3.0,
    features_per_label: int = 3,
    noise_features: int = 5,
    exponent: float = 1.0,
    random_state: RandomState = 0,
) -> tuple[Dataset, LinearTruth]:
    """Make sparse 0/1 rows whose labels a known linear model gives without a mistake.

    Every label stands for a few features; a row has a label exactly if it has all of them, so the right labels score
    0.5 and all others -0.5 or less.

    Parameters
    ----------
    n_rows, n_features, n_labels : int, default=1000, 2000, 200
        The sizes.
    labels_per_row : float, default=3.0
        Labels drawn for a row on average; by chance it may have further ones.
    features_per_label : int, default=3
        Features that make a label.
    noise_features : int, default=5
        Further features of every row, drawn at random.
    exponent : float, default=1.0
        Label i is drawn in proportion to `1 / (i + 1) ** exponent`.
    random_state : int, numpy generator or None, default=0
        The seed; None means 0.

    Returns
    -------
    data : Dataset
    truth : LinearTruth
        `W` and `bias` with `X @ W.T + bias > 0` exactly where Y is 1.

    Examples
    --------
    >>> data, truth = make_linear(100, 300, 20)
    >>> scores = (data.X @ truth.W.T).toarray() + truth.bias
    >>> bool(((scores > 0) == (data.Y.toarray() > 0)).all())
    True
    """
    n_rows, n_features, n_labels = _positive_sizes(n_rows=n_rows, n_features=n_features, n_labels=n_labels)
    check_integer("features_per_label", features_per_label, low=1, high=n_features)
    check_integer("noise_features", noise_features, low=0)
    rng = np.random.default_rng(resolve_seed(random_state))
    features = np.stack([_distinct_numbers(rng, n_features, features_per_label) for _ in range(n_labels)])
    W = sp.csr_array(
        (
            np.ones(features.size, dtype=np.float32),
            np.sort(features, axis=1).ravel().astype(np.int32),
            np.arange(n_labels + 1, dtype=np.int64) * features_per_label,
        ),
        shape=(n_labels, n_features),
    )
    rows, labels = _draw_labels(rng, n_rows, n_labels, labels_per_row, exponent)
    noise = rng.integers(n_features, size=n_rows * noise_features)
    columns = np.concatenate([features[labels].ravel(), noise])
    where = np.concatenate([np.repeat(rows, features_per_label), np.repeat(np.arange(n_rows), noise_features)])
    X = sp.csr_array((np.ones(columns.size, dtype=np.float32), (where, columns)), shape=(n_rows, n_features))
    X.data[:] = 1  # a feature drawn twice counts once
    truth = LinearTruth(W, np.full(n_labels, 0.5 - features_per_label, dtype=np.float32))
    return Dataset(X=X, Y=_linear_labels(X, W, features_per_label), name="linear"), truth


def make_topics(
    n_rows: int = 500,
    n_topics: int = 20,
    *,
    topics_per_row: float = 2.0,
    words_per_topic: int = 8,
    words_per_row: int = 12,
    common_words: int = 50,
    exponent: float = 1.0,
    random_state: RandomState = 0,
) -> tuple[Dataset, dict[str, tuple[str, ...]]]:
    """Make texts of invented words whose labels are their topics.

    No two topics share a word, and common words belong to none: a text has a label exactly if one of the topic's words
    stands in it. The words of a topic are its label text.

    Parameters
    ----------
    n_rows, n_topics : int, default=500, 20
        The number of texts and of labels.
    topics_per_row : float, default=2.0
        Topics of a text on average.
    words_per_topic : int, default=8
        Words that belong to a topic.
    words_per_row : int, default=12
        Words of a text.
    common_words : int, default=50
        Words that belong to no topic.
    exponent : float, default=1.0
        Topic i is drawn in proportion to `1 / (i + 1) ** exponent`.
    random_state : int, numpy generator or None, default=0
        The seed; None means 0.

    Returns
    -------
    data : Dataset
    words : dict of str to tuple of str
        The words of every topic.

    Examples
    --------
    >>> data, words = make_topics(50, 4)
    >>> data.label_names
    ('topic0', 'topic1', 'topic2', 'topic3')
    >>> all(set(data.texts[0].split()) & set(words[name]) for name in data.labels_of(0))
    True
    """
    n_rows, n_topics = _positive_sizes(n_rows=n_rows, n_topics=n_topics)
    for name, value in (("words_per_topic", words_per_topic), ("words_per_row", words_per_row)):
        check_integer(name, value, low=1)
    check_integer("common_words", common_words, low=0)
    rng = np.random.default_rng(resolve_seed(random_state))
    n_words = n_topics * words_per_topic + common_words
    words = [_invent_word(int(number)) for number in rng.permutation(n_words)]
    names = [f"topic{i:0{len(str(n_topics - 1))}d}" for i in range(n_topics)]
    of_topic = [words[i * words_per_topic : (i + 1) * words_per_topic] for i in range(n_topics)]
    common = words[n_topics * words_per_topic :]
    rows, topics = _draw_labels(rng, n_rows, n_topics, topics_per_row, exponent)
    starts = np.searchsorted(rows, np.arange(n_rows + 1))
    texts, labels = [], []
    for row in range(n_rows):
        own = [of_topic[topic] for topic in topics[starts[row] : starts[row + 1]]]
        chosen = [topic[rng.integers(words_per_topic)] for topic in own]  # one word of each topic at least
        pool = [word for topic in own for word in topic]
        for _ in range(words_per_row - len(chosen)):
            source = common if common and rng.random() < 0.5 else pool
            chosen.append(source[rng.integers(len(source))])
        texts.append(" ".join(chosen[at] for at in rng.permutation(len(chosen))))
        labels.append([names[topic] for topic in topics[starts[row] : starts[row + 1]]])
    label_texts = tuple(" ".join(own) for own in of_topic)
    data = Dataset.from_lists(texts, labels, label_names=names, label_texts=label_texts, name="topics")
    return data, {name: tuple(own) for name, own in zip(names, of_topic, strict=True)}


def make_groups(n_groups: int = 200, rows_per_group: int = 4, **linear: Any) -> tuple[Dataset, GroupTruth]:
    """Make rows in groups, with the labels of the groups (what a model is given) and of the rows (the right answer).

    A group has every label that one of its rows has.

    Parameters
    ----------
    n_groups, rows_per_group : int, default=200, 4
        The sizes.
    **linear
        Further parameters of `make_linear`.

    Returns
    -------
    data : Dataset
        The rows with their groups and labels.
    truth : GroupTruth
        `Y_groups`, the labels of the groups, and `linear`, the model behind the rows.

    Examples
    --------
    >>> data, truth = make_groups(10, 3, n_labels=5)
    >>> data.groups.shape, truth.Y_groups.shape
    ((30, 10), (10, 5))
    """
    n_groups, rows_per_group = _positive_sizes(n_groups=n_groups, rows_per_group=rows_per_group)
    data, truth = make_linear(n_groups * rows_per_group, **linear)
    of_row = np.repeat(np.arange(n_groups, dtype=np.int32), rows_per_group)
    groups = sp.csr_array(
        (np.ones(of_row.size, dtype=np.float32), of_row, np.arange(of_row.size + 1)), shape=(of_row.size, n_groups)
    )
    Y_groups = sp.csr_array(groups.T @ data.Y)
    Y_groups.data[:] = 1
    return replace(data, groups=groups, name="groups"), GroupTruth(Y_groups, truth)


def fuse_labels(data: Dataset, n_pairs: int, random_state: RandomState = 0) -> tuple[Dataset, np.ndarray]:
    """Make labels with two meanings by joining random pairs of labels into one.

    Parameters
    ----------
    data : Dataset
        The data whose labels are joined.
    n_pairs : int
        How many pairs are joined.
    random_state : int, numpy generator or None, default=0
        The seed; None means 0.

    Returns
    -------
    data : Dataset
        The same rows with `n_pairs` fewer labels.
    new : ndarray of shape (n_labels,), int32
        The new number of each old label.

    Examples
    --------
    >>> data, _ = make_linear(100, 300, 20)
    >>> fused, new = fuse_labels(data, 5)
    >>> fused.n_labels, np.bincount(new).max()
    (15, np.int64(2))
    """
    check_integer("n_pairs", n_pairs, low=0, high=data.n_labels // 2)
    order = np.random.default_rng(resolve_seed(random_state)).permutation(data.n_labels)
    joined = np.arange(data.n_labels)
    joined[order[n_pairs : 2 * n_pairs]] = joined[order[:n_pairs]]
    new = np.unique(joined, return_inverse=True)[1].astype(np.int32)
    n_new = data.n_labels - n_pairs
    map_to = sp.csr_array((np.ones(new.size, dtype=np.float32), new, np.arange(new.size + 1)), shape=(new.size, n_new))
    Y = sp.csr_array(data.Y @ map_to)
    Y.data[:] = 1
    return replace(data, Y=Y, label_names=None, label_texts=None, name=f"{data.name} fused".strip()), new


def _draw_labels(
    rng: np.random.Generator, n_rows: int, n_labels: int, per_row: float, exponent: float
) -> tuple[np.ndarray, np.ndarray]:
    """Return pairs (row, label), sorted and each once; every row has a label, and every label a row if it can."""
    if check_real("labels per row", per_row, low=1.0) > n_labels:
        raise ParameterError(f"labels per row must be at most the number of labels ({n_labels}); got {per_row!r}.")
    check_real("exponent", exponent, low=0.0)
    counts = 1 + rng.poisson(per_row - 1, size=n_rows)
    share = np.cumsum(1.0 / np.arange(1, n_labels + 1) ** exponent)
    labels = np.searchsorted(share, rng.random(int(counts.sum())) * share[-1], side="right")
    rows = np.repeat(np.arange(n_rows), counts)
    if n_rows >= n_labels:
        first = np.concatenate([[0], np.cumsum(counts)[:-1]])
        labels[first[rng.permutation(n_rows)[:n_labels]]] = np.arange(n_labels)
    pairs = np.unique(rows.astype(np.int64) * n_labels + np.minimum(labels, n_labels - 1))
    return pairs // n_labels, pairs % n_labels


def _linear_labels(X: sp.csr_array, W: sp.csr_array, needed: int) -> sp.csr_array:
    """Return Y: the labels all of whose features a row has; in blocks of rows, to bound the products in between."""
    parts = []
    for low in range(0, X.shape[0], BLOCK_ROWS):
        hits = sp.csr_array(X[low : low + BLOCK_ROWS] @ W.T)
        hits.data = (hits.data > needed - 0.5).astype(np.float32)
        hits.eliminate_zeros()
        parts.append(hits)
    return sp.csr_array(sp.vstack(parts, format="csr"))


def _distinct_numbers(rng: np.random.Generator, high: int, count: int) -> np.ndarray:
    """Return `count` different numbers below `high`, without listing all of them."""
    found = np.unique(rng.integers(high, size=2 * count))
    return rng.permutation(found)[:count] if found.size >= count else rng.permutation(high)[:count]


def _invent_word(number: int) -> str:
    """Return an invented word; different numbers give different words."""
    base, out = len(SYLLABLES), ""
    while number or len(out) < 4:
        number, digit = divmod(number, base)
        out = SYLLABLES[digit] + out
    return out


def _positive_sizes(**values: int) -> tuple[int, ...]:
    return tuple(check_integer(name, value, low=1) for name, value in values.items())
