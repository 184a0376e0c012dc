"""Measure how well labels with several known meanings were taken apart by clusters.

A joined label has components: the labels it was made of. Its rows fall into parts by the component they have, which the
model has not seen, and into parts by the cluster in which the model looks for it first. The closer both divisions are,
the better the label was taken apart. Rows that have several components of a label are left out, as are rows for which
none of its clusters was found. Which labels are judged depends on the truth alone: those with two components or more
that have enough rows.

The distance of two divisions is the variation of information, `VI = H(a | b) + H(b | a)`, in bits: 0 for the same one.
Chance is the same division with the rows shuffled within the label: a model that sends all rows to one cluster gets no
better than chance, though its division is a small one.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import scipy.sparse as sp

from longtail.data import TopK, component_map
from longtail.errors import DataError
from longtail.validate import (
    Json,
    LabelNumbers,
    MatrixLike,
    RandomState,
    as_labels,
    as_sparse,
    check_integer,
    resolve_seed,
)

LEAST = 10  # rows that a component must have to be judged


def variation_of_information(a: LabelNumbers, b: LabelNumbers) -> float:
    """Return the variation of information of two divisions of the same things, `VI = H(a | b) + H(b | a)`.

    Parameters
    ----------
    a, b : arrays of shape (n,)
        The part of each thing, by any number.

    Returns
    -------
    distance : float
        In bits; 0 if the divisions are the same.

    Examples
    --------
    >>> variation_of_information([0, 0, 1, 1], [1, 1, 0, 0]), variation_of_information([0, 0, 1, 1], [0, 1, 0, 1])
    (0.0, 2.0)
    """
    first, second = np.asarray(a), np.asarray(b)
    if first.ndim != 1 or first.shape != second.shape:
        raise DataError(f"both divisions must be one number per thing; got shapes {first.shape} and {second.shape}.")
    if first.size == 0:
        raise DataError("both divisions must have at least one thing; got none.")
    first, second = (np.unique(partition, return_inverse=True)[1] for partition in (first, second))
    return float(_variation(np.zeros(first.size, np.int64), first, second, 1)[0])


def disentanglement(
    Y: MatrixLike,
    fused: LabelNumbers,
    places: MatrixLike,
    matched: TopK,
    *,
    least: int = LEAST,
    n_random: int = 10,
    random_state: RandomState = 0,
) -> Json:
    """Return how close the division of rows by cluster is to the true one, over labels in several clusters.

    Parameters
    ----------
    Y : matrix of shape (n_rows, n_components)
        The labels before they were joined.
    fused : array of shape (n_components,)
        The joined label of each component, as `longtail.data.entangle_labels` returns it.
    places : matrix of shape (n_fused, n_clusters)
        Not zero where a joined label is in a cluster, such as the leaf slots of a label tree.
    matched : TopK
        The clusters found for each row with their scores; a row goes to the cluster of the label that scores highest.
    least : int, default=10
        Rows that a component must have, alone of its label. A label needs two such components; other rows are left out.
    n_random : int, default=10
        Shuffles that stand for chance.
    random_state : int, numpy generator or None, default=0
        The seed of the shuffles; None means 0.

    Returns
    -------
    facts : dict
        `labels_with_meanings`, labels with two components or more; `labels`, those judged, which have several clusters
        and rows of two components that find one; and their `rows`. Means over these labels: `vi` and, for chance,
        `vi_random`; `gain = 1 - vi / vi_random`, 0 for chance and 1 for perfect; `better`, the share of labels closer
        than chance. The last four are None where no label can be judged.

    Examples
    --------
    >>> Y = np.repeat(np.eye(2), 20, axis=0)                                # two meanings with 20 rows each
    >>> matched = TopK(np.repeat([[0], [1]], 20, axis=0), np.zeros((40, 1)))  # each comes to a cluster of its own
    >>> facts = disentanglement(Y, [0, 0], [[1, 1]], matched)
    >>> facts["labels"], facts["vi"], facts["gain"]
    (1, 0.0, 1.0)
    """
    by_cluster = _RowsByCluster.of(Y, fused, places, matched, least)
    n_random, seed = check_integer("n_random", n_random, low=1), resolve_seed(random_state)
    judged = by_cluster.judged()
    facts: Json = {
        "labels": int(np.unique(judged.label).size),
        "labels_with_meanings": by_cluster.n_labels,
        "rows": judged.label.size,
        "vi": None,
        "vi_random": None,
        "gain": None,
        "better": None,
    }
    if judged.label.size:
        variation = judged.variation()
        chance = np.mean([judged.shuffled(seed, turn).variation() for turn in range(n_random)], axis=0)
        facts |= {"vi": float(variation.mean()), "vi_random": float(chance.mean())}
        facts["gain"] = float(1 - variation.mean() / chance.mean()) if chance.mean() > 0 else 0.0
        # the mean of equal numbers may be off by a rounding
        facts["better"] = float((variation < chance - 1e-9).mean())
    return facts


def share_apart(
    Y: MatrixLike,
    fused: LabelNumbers,
    places: MatrixLike,
    matched: TopK,
    *,
    least: int = LEAST,
    n_random: int = 10,
    random_state: RandomState = 0,
) -> Json:
    """Return how many joined labels have components that land in different clusters, against chance.

    A component lands in the cluster to which most of its rows go, the first in a tie; nowhere if none of its rows finds
    one. A label is apart if two of its components land in different clusters; one with a single cluster never is.

    Parameters
    ----------
    Y, fused, places, matched, least, n_random, random_state
        As in `disentanglement`.

    Returns
    -------
    facts : dict
        `labels` with two components or more; `apart`, the share of them that are; `pairs_apart`, the share of pairs of
        components of one label; and both by chance, `apart_random` and `pairs_apart_random`; None without such labels.

    Examples
    --------
    >>> Y = np.repeat(np.eye(2), 20, axis=0)
    >>> matched = TopK(np.repeat([[0], [1]], 20, axis=0), np.zeros((40, 1)))
    >>> share_apart(Y, [0, 0], [[1, 1]], matched)["apart"]
    1.0
    """
    by_cluster = _RowsByCluster.of(Y, fused, places, matched, least)
    n_random, seed = check_integer("n_random", n_random, low=1), resolve_seed(random_state)
    facts: Json = {"labels": by_cluster.n_labels}
    if by_cluster.n_labels == 0:
        return facts | dict.fromkeys(("apart", "pairs_apart", "apart_random", "pairs_apart_random"))
    apart, pairs_apart = by_cluster.apart()
    chance = np.mean([by_cluster.shuffled(seed, turn).apart() for turn in range(n_random)], axis=0).tolist()
    facts |= {"apart": apart, "pairs_apart": pairs_apart}
    return facts | {"apart_random": chance[0], "pairs_apart_random": chance[1]}


@dataclass(frozen=True)
class _RowsByCluster:
    """Rows of joined labels: one entry per row and label, sorted by label."""

    label: np.ndarray  # int64, numbers of the joined labels
    component: np.ndarray  # int64, the one component of the label that the row has
    cluster: np.ndarray  # int64, the cluster of the label that scores highest for the row
    n_clusters: np.ndarray  # int64, clusters of the label
    n_labels: int  # with two components or more, also where no row finds a cluster
    n_pairs: int  # of components of one label

    @classmethod
    def of(cls, Y: MatrixLike, fused: LabelNumbers, places: MatrixLike, matched: TopK, least: int) -> _RowsByCluster:
        """Check the input and gather the rows of all joined labels."""
        Y, C, new = as_labels(Y, "Y"), as_sparse(places, "places"), component_map(fused)
        least = check_integer("least", least, low=1)
        if new.size != Y.shape[1]:
            raise DataError(f"fused must have one number per component ({Y.shape[1]}); got {new.size}.")
        if int(new.max(initial=-1)) >= C.shape[0]:
            n = int(new.max()) + 1
            raise DataError(f"places must have one row per joined label ({n}); got {C.shape[0]}.")
        if matched.n_rows != Y.shape[0]:
            raise DataError(f"matched must have one row per row of Y ({Y.shape[0]}); got {matched.n_rows}.")
        if int(matched.ids.max(initial=-1)) >= C.shape[1]:
            raise DataError(f"matched names cluster {int(matched.ids.max())}; places has {C.shape[1]} clusters.")
        row = np.repeat(np.arange(Y.shape[0], dtype=np.int64), np.diff(Y.indptr))
        component, label = Y.indices.astype(np.int64), new[Y.indices].astype(np.int64)
        order = np.lexsort((component, row, label))
        row, component, label = row[order], component[order], label[order]
        same = (label[1:] == label[:-1]) & (row[1:] == row[:-1])
        alone = ~(np.append(same, False) | np.concatenate([[False], same])[: label.size])
        row, component, label = row[alone], component[alone], label[alone]
        keep = np.bincount(component, minlength=Y.shape[1])[component] >= least
        row, component, label = row[keep], component[keep], label[keep]
        sizes = np.bincount(new[np.unique(component)], minlength=C.shape[0]).astype(np.int64)  # components per label
        keep = sizes[label] > 1
        row, component, label = row[keep], component[keep], label[keep]
        cluster = _best_cluster(row, label, C, matched)
        n_clusters = np.diff(C.indptr).astype(np.int64)[label]
        counts = int((sizes > 1).sum()), int((sizes * (sizes - 1) // 2).sum())
        return cls(label, component, cluster, n_clusters, *counts).only(cluster >= 0)

    def only(self, keep: np.ndarray) -> _RowsByCluster:
        """Return some of the entries."""
        kept = {name: getattr(self, name)[keep] for name in ("label", "component", "cluster", "n_clusters")}
        return replace(self, **kept)

    def judged(self) -> _RowsByCluster:
        """Return the rows of labels in several clusters, where two components or more find one."""
        components = np.unique(self.component, return_index=True)[1]
        several = np.bincount(self.label[components], minlength=int(self.label.max(initial=0)) + 1) > 1
        return self.only((self.n_clusters > 1) & several[self.label])

    def shuffled(self, seed: int, turn: int) -> _RowsByCluster:
        """Return the same with the clusters exchanged at random among the rows of each label."""
        chance = np.random.default_rng([seed, turn]).random(self.label.size)
        return replace(self, cluster=self.cluster[np.lexsort((chance, self.label))])

    def variation(self) -> np.ndarray:
        """Return the variation of information of each label."""
        labels, label = np.unique(self.label, return_inverse=True)
        return _variation(label, self.component, self.cluster, labels.size)

    def apart(self) -> tuple[float, float]:
        """Return the share of labels, and of pairs of components, that land in different clusters."""
        first, count = _groups(self.component, self.cluster)
        component, cluster = self.component[first], self.cluster[first]
        best = np.lexsort((cluster, -count, component))  # most rows first, in a tie the first cluster
        one = best[np.unique(component[best], return_index=True)[1]]  # one entry per component: where it lands
        label = np.unique(self.label[first[one]], return_inverse=True)[1]
        size = np.bincount(label)
        first, count = _groups(label, cluster[one])
        same = np.bincount(label[first], weights=count * (count - 1) / 2, minlength=size.size)
        different = size * (size - 1) / 2 - same  # pairs of components of each label that land apart
        return float((different > 0).sum() / self.n_labels), float(different.sum() / self.n_pairs)


def _best_cluster(row: np.ndarray, label: np.ndarray, places: sp.csr_array, matched: TopK) -> np.ndarray:
    """Return the cluster of each label that scores highest in its row, the first in a tie; -1 if none was found."""
    n = np.int64(max(places.shape[1], 1))
    at, column = np.nonzero(matched.ids >= 0)
    keys = at * n + matched.ids[at, column]
    order = np.argsort(keys, kind="stable")
    keys, scores = keys[order], matched.scores[at, column][order]
    out, best = np.full(label.size, -1, dtype=np.int64), np.full(label.size, -np.inf, dtype=np.float32)
    indptr = places.indptr.astype(np.int64)
    for turn in range(int(np.diff(indptr).max(initial=0))):  # the first cluster of every label, then the second, ...
        has = np.flatnonzero(turn < (indptr[1:] - indptr[:-1])[label])
        cluster = places.indices[indptr[label[has]] + turn].astype(np.int64)
        wanted = row[has] * n + cluster
        where = np.minimum(np.searchsorted(keys, wanted), max(keys.size - 1, 0))
        is_matched = keys[where] == wanted if keys.size else np.zeros(has.size, dtype=bool)
        better = np.flatnonzero(is_matched)
        better = better[(out[has[better]] < 0) | (scores[where[better]] > best[has[better]])]
        out[has[better]], best[has[better]] = cluster[better], scores[where[better]]
    return out


def _variation(label: np.ndarray, a: np.ndarray, b: np.ndarray, n_labels: int) -> np.ndarray:
    """Return VI = 2 H(a, b) - H(a) - H(b) within each label, in bits."""
    joint, one, other = (_entropy(label, parts, n_labels) for parts in ((a, b), (a,), (b,)))
    return np.maximum(2 * joint - one - other, 0.0)


def _entropy(label: np.ndarray, parts: tuple[np.ndarray, ...], n_labels: int) -> np.ndarray:
    """Return H = -Σ p log2 p of a division within each label."""
    first, count = _groups(label, *parts)
    share = count / np.bincount(label, minlength=n_labels)[label[first]]
    return np.bincount(label[first], weights=-share * np.log2(share), minlength=n_labels)


def _groups(*parts: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the first position of every combination of values that occurs, and how often it does."""
    code = np.zeros(parts[0].size, dtype=np.int64)
    for part in parts:
        values, at = np.unique(part, return_inverse=True)
        code = np.unique(code * values.size + at, return_inverse=True)[1]  # numbered anew: products stay small
    return np.unique(code, return_index=True, return_counts=True)[1:]
