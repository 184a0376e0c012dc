"""Make data in the shape of the largest public benchmarks: very many labels, most of them with a few rows."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp

from longtail.data.dataset import Dataset
from longtail.errors import ParameterError
from longtail.kernels import blocks
from longtail.validate import RandomState, check_integer, check_real, make_csr, resolve_seed

BLOCK_ROWS = 32_768
LABELS_PER_CLUSTER = 64
OWN_FEATURES = 4  # a label is recognised by these; with more labels than features they are shared, not all at once
CLUSTERS_PER_SECTION = 32
SHARED_FEATURES = 24  # of a cluster, and as many of a section
EXPONENT = 0.5  # label i is drawn in proportion to 1 / (i + 1) ** EXPONENT, as in Amazon-670K
ELSEWHERE = 0.2  # share of labels that do not follow the row's cluster
TOO_FREQUENT = 0.1  # labels with more than this share of their cluster's occurrences are in rows of every cluster
SHARES = (0.22, 0.2, 0.1)  # of a row's words: of its labels, their clusters and sections; the rest are common words
COMMON = 0.02  # share of the features that are common words only


def make_extreme(
    n_rows: int,
    n_labels: int,
    n_features: int = 135_909,
    *,
    labels_per_row: float = 5.45,
    features_per_row: float = 76,
    random_state: RandomState = 0,
) -> Dataset:
    """Make TF-IDF-like rows of unit length with a long tail of labels, in the shape of Amazon-670K by default.

    Labels come in clusters of about 64, clusters in sections of 32, and most labels of a row are of one cluster. A row
    has some of the few features that each of its labels is known by, some of the features of their clusters and
    sections, and common words. The averages per row are met within a few percent. Where there are at least as many
    occurrences of labels as labels, each has a row.

    Amazon-670K has 490,449 rows, 670,091 labels and 135,909 features: `make_extreme(490_449, 670_091)`. Memory is about
    twice the result; nothing takes rows × labels.

    Parameters
    ----------
    n_rows, n_labels : int
        The sizes.
    n_features : int, default=135909
        The number of features.
    labels_per_row : float, default=5.45
        Labels of a row on average.
    features_per_row : float, default=76
        Features of a row on average.
    random_state : int, numpy generator or None, default=0
        The seed; None means 0.

    Returns
    -------
    data : Dataset

    Examples
    --------
    >>> data = make_extreme(200, 50, 1000)
    >>> data.X.shape, data.Y.shape, data.X.nnz // 200 in range(70, 83)
    ((200, 1000), (200, 50), True)
    """
    n_rows = check_integer("n_rows", n_rows, low=1)
    n_labels = check_integer("n_labels", n_labels, low=1)
    n_features = check_integer("n_features", n_features, low=100)
    if check_real("labels_per_row", labels_per_row, low=1) > n_labels:
        raise ParameterError(name="labels_per_row", allowed=f"at most n_labels, {n_labels}", got=labels_per_row)
    check_real("features_per_row", features_per_row, low=4 * labels_per_row, high=n_features / 4)
    rng = np.random.default_rng(resolve_seed(random_state))
    cluster_of = (rng.permutation(n_labels) % -(-n_labels // LABELS_PER_CLUSTER)).astype(np.int32)
    Y = _draw_label_matrix(rng, n_rows, cluster_of, round(n_rows * labels_per_row))
    n_common = max(1, round(COMMON * n_features))
    words = rng.permutation(n_features).astype(np.int32)  # so that common words do not stand first
    own = words[rng.integers(n_common, n_features, size=(n_labels, OWN_FEATURES))]
    n_clusters = int(cluster_of.max()) + 1
    of_cluster, of_section = (
        words[rng.integers(n_common, n_features, size=(n, SHARED_FEATURES))]
        for n in (n_clusters, -(-n_clusters // CLUSTERS_PER_SECTION))
    )
    # what a label adds to its row: features of its own, of its cluster and of its section
    tokens = [max(1, round(part * features_per_row / labels_per_row)) for part in SHARES]
    chance = 1.0 / np.arange(1, n_features + 1)
    chance /= chance.sum()
    common = None
    parts: list[tuple[np.ndarray, np.ndarray, np.ndarray]] = []
    for at in blocks(n_rows, BLOCK_ROWS):
        indptr = Y.indptr[at.start : at.stop + 1]
        labels = Y.indices[indptr[0] : indptr[-1]]
        rows = np.repeat(np.arange(at.stop - at.start), np.diff(indptr))
        clusters = cluster_of[labels]
        sources = own[labels], of_cluster[clusters], of_section[clusters // CLUSTERS_PER_SECTION]
        mine = [_pick_features(rng, rows, source, n) for source, n in zip(sources, tokens, strict=True)]
        if common is None:  # how many common words fill a row up, judged by the first block
            found = np.unique(np.concatenate([r * n_features + f for r, f in mine])).size / (at.stop - at.start)
            common = _draws_for(chance, max(features_per_row - found, 1.0))
        drawn = rng.choice(n_features, size=rng.poisson(common * (at.stop - at.start)), p=chance)
        theirs = rng.integers(at.stop - at.start, size=drawn.size), words[drawn]
        parts.append(_count_features([*mine, theirs], at.stop - at.start, n_features))
    return Dataset(X=_weigh_features(parts, n_rows, n_features), Y=Y, name="extreme")


def _draw_label_matrix(rng: np.random.Generator, n_rows: int, cluster_of: np.ndarray, total: int) -> sp.csr_array:
    """Return Y: occurrences of labels are lined up cluster by cluster, and every row takes the next few of them."""
    n_labels = cluster_of.size
    share = 1.0 / np.arange(1, n_labels + 1) ** EXPONENT
    counts = np.zeros(n_labels, dtype=np.int64)
    if total >= n_labels:  # one each, the rest by chance
        counts += 1
        share = np.maximum(total * share / share.sum() - 1, 1e-9)
    counts += rng.multinomial(total - int(counts.sum()), share / share.sum())
    labels = np.repeat(np.arange(n_labels, dtype=np.int32), counts)
    # occurrences of one label stand far apart in their cluster, so that few meet in a row
    numbers = np.arange(total) - np.repeat(np.cumsum(counts) - counts, counts)
    within = (numbers + rng.random(total)) / counts[labels]
    labels = labels[np.lexsort((within, cluster_of[labels]))]
    of_cluster = np.bincount(cluster_of, weights=counts)
    frequent = counts > TOO_FREQUENT * of_cluster[cluster_of]
    moving = np.flatnonzero(frequent[labels] | (rng.random(total) < ELSEWHERE))
    labels[moving] = labels[rng.permutation(moving)]
    taken = 1 + np.bincount(rng.integers(n_rows, size=total - n_rows), minlength=n_rows)
    rows = np.repeat(rng.permutation(n_rows), taken)
    pairs = np.unique(rows * n_labels + labels)
    indptr = np.concatenate([[0], np.cumsum(np.bincount(pairs // n_labels, minlength=n_rows))])
    return make_csr(indptr, pairs % n_labels, np.ones(pairs.size, dtype=np.float32), n_labels)


def _pick_features(
    rng: np.random.Generator, rows: np.ndarray, among: np.ndarray, n: int
) -> tuple[np.ndarray, np.ndarray]:
    """Return n features out of each line of `among`, drawn with replacement, and their rows."""
    which = rng.integers(among.shape[1], size=(rows.size, n))
    return np.repeat(rows, n), np.take_along_axis(among, which, axis=1).ravel()


def _draws_for(chance: np.ndarray, wanted: float) -> float:
    """Return how many draws give `wanted` different features on average."""
    low, high = wanted, 100.0 * wanted
    for _ in range(40):
        middle = (low + high) / 2
        low, high = (middle, high) if -np.expm1(-middle * chance).sum() < wanted else (low, middle)
    return low


def _count_features(
    tokens: list[tuple[np.ndarray, np.ndarray]], n_rows: int, n_features: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return how many features each row has, which, and 1 + ln(count) of each."""
    keys = np.concatenate([rows * n_features + features for rows, features in tokens])
    keys, counts = np.unique(keys, return_counts=True)
    sizes = np.bincount(keys // n_features, minlength=n_rows)
    return sizes, (keys % n_features).astype(np.int32), 1 + np.log(counts).astype(np.float32)


def _weigh_features(
    parts: list[tuple[np.ndarray, np.ndarray, np.ndarray]], n_rows: int, n_features: int
) -> sp.csr_array:
    """Join the blocks, weigh every feature by its idf and scale the rows to unit length."""
    documents = sum(np.bincount(features, minlength=n_features) for _, features, _ in parts)
    idf = (np.log((1.0 + n_rows) / (1.0 + documents)) + 1.0).astype(np.float32)
    indptr = np.concatenate([[0], *(sizes for sizes, _, _ in parts)]).cumsum()
    ids, values = np.empty(indptr[-1], dtype=np.int32), np.empty(indptr[-1], dtype=np.float32)
    low = 0
    for number, (sizes, features, weights) in enumerate(parts):
        weights = weights * idf[features]
        starts = np.minimum(np.cumsum(sizes) - sizes, max(weights.size - 1, 0))
        squares = np.add.reduceat(weights * weights, starts) if weights.size else np.zeros(sizes.size)
        lengths = np.sqrt(np.where(sizes > 0, squares, 1))
        high = low + features.size
        ids[low:high], values[low:high] = features, weights / np.repeat(lengths, sizes)
        parts[number] = (sizes, features[:0], weights[:0])  # let go of what is copied
        low = high
    return make_csr(indptr, ids, values, n_features)
