"""What a tagger's label tree looks like, as facts: clusters with their typical labels, sizes and telling words."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from longtail.errors import ModelError
from longtail.models import LabelTreeClassifier
from longtail.models.chunked import Chunks
from longtail.partition import LabelTree
from longtail.pipeline.tagger import Tagger
from longtail.validate import check_integer

CLUSTERS = (12, 4)  # named below the root, and below every other cluster
PAGE: dict[str, Any] = {"depth": 2, "clusters": (60, 12), "labels": 12}  # what a page has room for


def has_tree(tagger: Tagger) -> bool:
    """Say whether the tagger's model has a label tree."""
    return isinstance(getattr(tagger, "model_", None), LabelTreeClassifier)


def tree_facts(
    tagger: Tagger,
    *,
    tree: int = 0,
    depth: int | None = None,
    clusters: int | Sequence[int] = CLUSTERS,
    labels: int = 5,
    words: int = 5,
) -> dict[str, Any]:
    """Return the clusters of a tagger's label tree: the most used ones with their typical labels and telling words.

    A label is used once for every training row that has it; `uses` and `share` of a cluster count those of its labels.
    Typical labels are the most used ones. Telling words have the largest weights in the cluster's own classifier, and
    are left out where the tagger does not read words. Clusters that are not named are counted in `rest`.

    Parameters
    ----------
    tree : which tree of an ensemble.
    depth : how many levels to name; None for all.
    clusters : how many clusters to name below the root, below each of those, and so on; the last number counts for all
        deeper levels.
    labels, words : how many to name for each cluster.

    >>> texts = ["red apple", "green pear", "fast car", "slow train"] * 5
    >>> kinds = [["fruit", "apple"], ["fruit", "pear"], ["vehicle", "car"], ["vehicle", "train"]] * 5
    >>> model = LabelTreeClassifier(max_leaf=3, branching=2, balanced=True)
    >>> facts = tree_facts(Tagger(model=model, random_state=0).fit(texts, kinds))
    >>> [level["clusters"] for level in facts["levels"]], facts["labels"], facts["uses"]
    ([2], 6, 40)
    >>> sorted(cluster["typical"][0]["label"] for cluster in facts["clusters"])
    ['fruit', 'vehicle']
    """
    tagger._check_fitted()
    model = tagger.model_
    if not isinstance(model, LabelTreeClassifier):
        raise ModelError(f"the model has no label tree: it is a {type(model).__name__}; train with the method 'tree'.")
    tree = check_integer("tree", tree, low=0, high=len(model.trees_) - 1)
    found, counts = model.trees_[tree], model.label_counts_
    n_levels = found.n_levels if depth is None else min(check_integer("depth", depth, low=1), found.n_levels)
    limits = [check_integer("clusters", n, low=1) for n in ([clusters] if np.isscalar(clusters) else list(clusters))]
    n_labels, n_words = check_integer("labels", labels, low=1), check_integer("words", words, low=0)
    reads_words = hasattr(tagger.features_, "feature_names") and n_words > 0
    names = tagger.features_.feature_names() if reads_words else []
    sizes = [_sizes(found, level, counts) for level in range(found.n_levels)]
    total = int(counts.sum())

    def named(level: int, node: int) -> dict[str, Any]:
        below = _labels_below(found, level, node)
        order = below[np.argsort(-counts[below], kind="stable")][:n_labels]
        top = _strongest(model.chunks_[tree], found, level, node, n_words) if reads_words else []
        n_children = 0 if level == found.n_levels - 1 else int(np.diff(found.children(level))[node])
        return {
            "level": level,
            "cluster": node,
            "above": int(found.parents[level][node]) if level else None,
            "clusters": n_children,
            "labels": int(sizes[level][0][node]),
            "uses": int(sizes[level][1][node]),
            "share": float(sizes[level][1][node] / total) if total else 0.0,
            "typical": [{"label": tagger.labels_[i], "uses": int(counts[i])} for i in order if counts[i]],
            "words": [{"word": names[feature], "weight": weight} for feature, weight in top],
        }

    def walk(level: int, nodes: np.ndarray) -> Iterator[dict[str, Any]]:
        """Name the most used of some siblings, each followed by those below it; last comes what was left out."""
        in_level = sizes[level]
        order = nodes[np.lexsort((nodes, -in_level[0][nodes], -in_level[1][nodes]))]
        kept = order[: limits[min(level, len(limits) - 1)]] if level < n_levels else order[:0]
        for node in kept.tolist():
            record = named(level, node)
            *inner, last = walk(level + 1, _children(found, level, node)) if record["clusters"] else [None]
            yield {**record, "rest": last}
            yield from inner
        left = order[kept.size :]
        rest = {"clusters": left.size, **{k: int(v[left].sum()) for k, v in zip(("labels", "uses"), in_level)}}
        yield rest if left.size else None

    *listed, rest = walk(0, np.arange(found.n_nodes(0)))
    levels = [
        {
            "level": level,
            "clusters": found.n_nodes(level),
            "named": sum(cluster["level"] == level for cluster in listed),
            "fewest_labels": int(sizes[level][0].min()),
            "most_labels": int(sizes[level][0].max()),
        }
        for level in range(found.n_levels)
    ]
    facts = {"tree": tree, "trees": len(model.trees_), "labels": found.n_labels, "places": found.n_places}
    facts |= {"labels_used": int((counts > 0).sum()), "uses": total, "rows": model.n_rows_}
    return {**facts, "depth": n_levels, "levels": levels, "clusters": listed, "rest": rest}


def _sizes(tree: LabelTree, level: int, counts: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the number of labels below every node of a level, and how often they are used."""
    member = tree.membership(level)
    nodes = np.bincount(member.indices, minlength=tree.n_nodes(level))
    uses = np.bincount(
        member.indices, weights=np.repeat(counts, np.diff(member.indptr)), minlength=tree.n_nodes(level)
    )
    return nodes, uses.astype(np.int64)


def _children(tree: LabelTree, level: int, node: int) -> np.ndarray:
    ends = tree.children(level)
    return np.arange(ends[node], ends[node + 1])


def _labels_below(tree: LabelTree, level: int, node: int) -> np.ndarray:
    """Return the different labels below a node; the leaves below it, and so their labels, are consecutive."""
    low, high = node, node + 1
    for t in range(level, tree.n_levels):
        ends = tree.children(t)
        low, high = int(ends[low]), int(ends[high])
    return np.unique(tree.leaf_labels[low:high])


def _strongest(chunks: Chunks, tree: LabelTree, level: int, node: int, n: int) -> list[tuple[int, float]]:
    """Return the n features with the largest weights above zero in a node's own classifier, largest first."""
    child = node + sum(tree.n_nodes(t) for t in range(level))
    chunk = int(np.searchsorted(chunks.child_indptr, child, side="right") - 1)
    lines = slice(int(chunks.line_indptr[chunk]), int(chunks.line_indptr[chunk + 1]))
    start, stop = int(chunks.entry_indptr[lines.start]), int(chunks.entry_indptr[lines.stop])
    own = np.flatnonzero(chunks.children[start:stop] == child - int(chunks.child_indptr[chunk])) + start
    weights = chunks.weights[own].astype(np.float32) * chunks.scales[child]
    best = np.argsort(-weights, kind="stable")[:n]
    best = best[weights[best] > 0]
    at = np.searchsorted(chunks.entry_indptr, own[best], side="right") - 1
    return [(int(f), float(w)) for f, w in zip(chunks.features[at], weights[best], strict=True)]
