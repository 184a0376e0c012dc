"""Describe a tagger's label tree as facts: clusters with their sizes, typical labels and telling words."""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass
from typing import Self

import numpy as np

from longtail.errors import ModelError
from longtail.facts import ClusterFacts, LabelUseFacts, LevelFacts, RestFacts, TreeFacts, WordFacts
from longtail.model import WordFeatures
from longtail.notebook import shown_as
from longtail.pipeline.shown import ShownTree
from longtail.pipeline.tagger import Tagger
from longtail.tree import Chunks, LabelTree, LabelTreeClassifier, child_weights, tree_inside
from longtail.validate import check_integer
from longtail.vocabulary import add_names

CLUSTERS = (12, 3)  # named below the root, and below each cluster
ON_A_PAGE = 150  # clusters of the first level that a page lists
INSIDE_ON_A_PAGE = 240  # and of the next in all, but at least 8 of each
LABELS_ON_A_PAGE = (12, 3)  # named of a cluster, and of those inside it
LABELS_OF_A_CELL = 3
CELLS_ON_A_PAGE = 2000  # clusters of the second level that are still drawn


def tree_facts(
    tagger: Tagger,
    *,
    tree: int = 0,
    depth: int | None = None,
    clusters: int | Sequence[int] = CLUSTERS,
    labels: int = 4,
    words: int = 5,
) -> TreeFacts:
    """Return the clusters of a tagger's label tree: the most used ones with their typical labels and telling words.

    A label is used once by every training row that has it; `uses` and `share` of a cluster add up those of its labels.
    Typical labels are the most used ones. Telling words are those with the largest weights in the cluster's own
    classifier; a tagger that does not read words has none. `clusters` lists the tree from the top, each cluster
    followed by those below it, the most used first; what is not listed is counted in `rest`.

    Parameters
    ----------
    tree : which tree of an ensemble.
    depth : how many levels to list; None for all.
    clusters : how many clusters to list below the root, below each of those, and so on; the last number counts for all
        deeper levels.
    labels, words : how many to name for each cluster.

    >>> texts = ["red apple", "green pear", "fast car", "slow train"] * 5
    >>> kinds = [["fruit", "apple"], ["fruit", "pear"], ["vehicle", "car"], ["vehicle", "train"]] * 5
    >>> model = LabelTreeClassifier(max_leaf=3, branching=2, balanced=True)
    >>> facts = tree_facts(Tagger(model=model, random_state=0).fit(texts, kinds))
    >>> facts["labels"], facts["uses"], [level["clusters"] for level in facts["levels"]]
    (6, 40, [2])
    >>> sorted((cluster["typical"][0]["label"], cluster["labels"]) for cluster in facts["clusters"])
    [('fruit', 3), ('vehicle', 3)]
    """
    tagger = tree_tagger(tagger)
    model = tree_model(tagger)
    tree = check_integer("tree", tree, low=0, high=len(model.trees_) - 1)
    look = Look.at(tagger, model, tree)
    n_levels = look.tree.n_levels if depth is None else min(check_integer("depth", depth, low=1), look.tree.n_levels)
    given = list(clusters) if isinstance(clusters, list | tuple) else [clusters]
    limits = [check_integer("clusters", n, low=1) for n in given]
    shown = check_integer("labels", labels, low=1), check_integer("words", words, low=0)
    sizes = [look.sizes(level) for level in range(look.tree.n_levels)]
    total = int(look.counts.sum())
    listed: list[ClusterFacts] = []

    def walk(level: int, above: int | None, nodes: np.ndarray) -> RestFacts | None:
        """List the most used of some siblings, each followed by those below it; return the size of the others."""
        n_labels, uses = sizes[level]
        order = nodes[np.lexsort((nodes, -n_labels[nodes], -uses[nodes]))]
        kept = order[: limits[min(level, len(limits) - 1)]] if level < n_levels else order[:0]
        for node in kept.tolist():
            below = look.children(level, node)
            typical, told = look.names(level, node, *shown)
            cluster: ClusterFacts = {
                "level": level,
                "cluster": node,
                "above": above,
                "clusters": below.size,
                "labels": int(n_labels[node]),
                "uses": int(uses[node]),
                "share": int(uses[node]) / total if total else 0.0,
                "typical": typical,
                "words": told,
            }
            listed.append(cluster)
            cluster["rest"] = walk(level + 1, node, below) if below.size else None
        left = order[kept.size :]
        if left.size == 0:
            return None
        return {"clusters": left.size, "labels": int(n_labels[left].sum()), "uses": int(uses[left].sum())}

    rest = walk(0, None, np.arange(look.tree.n_nodes(0)))
    levels: list[LevelFacts] = [
        {
            "clusters": n_labels.size,
            "listed": sum(cluster["level"] == level for cluster in listed),
            "fewest_labels": int(n_labels.min()),
            "most_labels": int(n_labels.max()),
        }
        for level, (n_labels, _) in enumerate(sizes)
    ]
    facts: TreeFacts = {
        "tree": tree,
        "trees": len(model.trees_),
        "labels": look.tree.n_labels,
        "labels_used": int((look.counts > 0).sum()),
        "uses": total,
        "rows": model.n_rows_,
        "depth": n_levels,
        "levels": levels,
        "clusters": listed,
        "rest": rest,
    }
    return shown_as(ShownTree, add_names(facts, tagger.vocabulary_))


def page_tree(tagger: Tagger) -> TreeFacts | None:
    """Return the facts of a tagger's label tree that a page draws; None where the model has no tree.

    The clusters of the first level with more than one also have `inside`: labels and uses of all clusters right below
    them, the most used first, unless these are too many to be drawn.
    """
    if tree_inside(tagger.model_, tagger.features_) is None:
        return None
    tagger = tree_tagger(tagger)
    look = Look.at(tagger, tree_model(tagger), 0)
    tree = look.tree
    first = next((level for level in range(tree.n_levels) if tree.n_nodes(level) > 1), 0)  # one cluster says nothing
    clusters = [1] * first + [ON_A_PAGE, max(8, INSIDE_ON_A_PAGE // tree.n_nodes(first))]
    facts = tree_facts(tagger, depth=first + 2, clusters=clusters, labels=LABELS_ON_A_PAGE[0])
    for cluster in facts["clusters"]:
        if cluster["level"] > first:  # there may be a thousand of them
            cluster["typical"], cluster["words"] = cluster["typical"][: LABELS_ON_A_PAGE[1]], []
    if first + 1 < tree.n_levels and tree.n_nodes(first + 1) <= CELLS_ON_A_PAGE:
        n_labels, uses = look.sizes(first + 1)
        for cluster in facts["clusters"]:
            if cluster["level"] == first:
                below = look.children(first, cluster["cluster"])
                order = below[np.lexsort((below, -n_labels[below], -uses[below]))]
                cluster["inside"] = np.column_stack([n_labels[order], uses[order]]).tolist()
                cluster["inside_typical"] = [look.typical(first + 1, node, LABELS_OF_A_CELL) for node in order.tolist()]
    return add_names(facts, tagger.vocabulary_)


def tree_tagger(tagger: Tagger) -> Tagger:
    """Return a tagger whose model is the label tree: the same, or one for the tree beside an encoder."""
    tagger._check_fitted()
    inside = tree_inside(tagger.model_, tagger.features_)
    if inside is None:
        return tagger
    view = copy(tagger)
    view.model_, view.features_ = inside.tree, inside.features
    view.labels_ = tagger.labels_[: inside.tree.n_labels_]  # it does not know those that came later
    return view


def tree_model(tagger: Tagger) -> LabelTreeClassifier:
    """Return the tagger's model if it is a label tree; any other is refused."""
    tagger._check_fitted()
    inside = tree_inside(tagger.model_, tagger.features_)
    if inside is None:
        raise ModelError(
            f"the model is a {type(tagger.model_).__name__} and has no label tree; train with the method 'tree', or "
            "'prime' with a tree beside it."
        )
    return inside.tree


@dataclass(frozen=True)
class Look:
    """A tree with the classifiers, counts and names that describe its nodes."""

    tree: LabelTree
    chunks: Chunks
    counts: np.ndarray  # training rows per label
    labels: Sequence[str]
    words: np.ndarray | None  # by column, str

    @classmethod
    def at(cls, tagger: Tagger, model: LabelTreeClassifier, tree: int) -> Self:
        """Return the view of one tree of a tagger."""
        words = tagger.features_.get_feature_names_out() if isinstance(tagger.features_, WordFeatures) else None
        return cls(model.trees_[tree], model.chunks_[tree], model.label_counts_, tagger.labels_, words)

    def sizes(self, level: int) -> tuple[np.ndarray, np.ndarray]:
        """Return the number of labels below every node of a level, and how often they are used."""
        member, n = self.tree.membership(level), self.tree.n_nodes(level)
        weights = np.repeat(self.counts, np.diff(member.indptr))
        return np.bincount(member.indices, minlength=n), np.bincount(member.indices, weights, n).astype(np.int64)

    def children(self, level: int, node: int) -> np.ndarray:
        """Return the nodes right below a node; none below a leaf."""
        if level == self.tree.n_levels - 1:
            return np.empty(0, dtype=np.int64)
        ends = self.tree.children(level)
        return np.arange(ends[node], ends[node + 1])

    def names(self, level: int, node: int, n_labels: int, n_words: int) -> tuple[list[LabelUseFacts], list[WordFacts]]:
        """Return the typical labels and the telling words of a node."""
        typical = self.typical(level, node, n_labels)
        return typical, [] if self.words is None else self.strongest(level, node, n_words, self.words)

    def typical(self, level: int, node: int, n_labels: int) -> list[LabelUseFacts]:
        """Return the most used labels below a node."""
        low, high = node, node + 1
        for t in range(level, self.tree.n_levels):  # what is below a node is consecutive at every level
            ends = self.tree.children(t)
            low, high = int(ends[low]), int(ends[high])
        below = np.unique(self.tree.leaf_labels[low:high])
        best = below[np.argsort(-self.counts[below], kind="stable")][:n_labels].tolist()
        return [{"label": self.labels[i], "uses": int(self.counts[i])} for i in best if self.counts[i]]

    def strongest(self, level: int, node: int, n: int, words: np.ndarray) -> list[WordFacts]:
        """Return the words with the largest weights above 0 in a node's own classifier, largest first."""
        child = node + sum(self.tree.n_nodes(t) for t in range(level))
        features, weights = child_weights(self.chunks, child)
        best = np.argsort(-weights, kind="stable")[:n]
        best = best[weights[best] > 0]
        pairs = zip(features[best], weights[best], strict=True)
        return [{"word": words[feature], "weight": float(weight)} for feature, weight in pairs]
