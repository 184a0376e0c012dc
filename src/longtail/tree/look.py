"""Looking at the places of a label in a trained label tree: where rows are sent, and what each place weighs."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from longtail.data import TopK
from longtail.model import row_scale
from longtail.tree.beam import link
from longtail.tree.chunks import Chunks
from longtail.tree.estimator import LabelTreeClassifier
from longtail.tree.label_tree import LabelTree
from longtail.validate import as_sparse, check_integer, check_width, resolve_jobs


def matched_leaves(model: LabelTreeClassifier, X: Any, tree: int = 0) -> TopK:
    """Return the leaves of one tree that the beam reaches for every row, with the scores of their paths, best first.

    >>> model = LabelTreeClassifier(max_leaf=2, branching=2, balanced=True, beam=1).fit(np.eye(4), np.eye(4))
    >>> matched_leaves(model, np.eye(4)).ids.ravel().tolist() == model.trees_[0].places().indices.tolist()
    True
    """
    grown, chunks = _tree(model, tree)
    X = _rows(model, X)
    plan = model._plan(grown, 1).first(grown.n_levels)
    nodes, scores = chunks.search(X, row_scale(X, model.normalize), plan, resolve_jobs(model.n_jobs))
    above = int(chunks.levels[grown.n_levels]) - 1  # nodes of the levels above the leaves
    return TopK(np.where(nodes >= 0, nodes - above, -1).astype(np.int32), scores)


def places_of(tree: LabelTree, label: int) -> np.ndarray:
    """Return the places of a label: positions in `tree.leaf_labels`, in the order of the leaves.

    >>> places_of(LabelTree.from_clusters([1, 0]).with_places([[1, 1], [1, 0]]), 0).tolist()
    [0, 2]
    """
    return np.flatnonzero(tree.leaf_labels == label)


def leaf_of(tree: LabelTree, place: int) -> int:
    """Return the leaf of a place."""
    return int(np.searchsorted(tree.leaf_indptr, place, side="right") - 1)


def child_weights(chunks: Chunks, child: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the features and weights of one classifier, a node's or a place's, as stored: ascending, not zero."""
    chunk = int(np.searchsorted(chunks.child_indptr, child, side="right") - 1)
    start, stop = (int(chunks.entry_indptr[line]) for line in chunks.line_indptr[chunk : chunk + 2])
    own = start + np.flatnonzero(chunks.children[start:stop] == child - int(chunks.child_indptr[chunk]))
    lines = np.searchsorted(chunks.entry_indptr, own, side="right") - 1
    return chunks.features[lines], chunks.weights[own] * chunks.scales[child]


def path_scores(model: LabelTreeClassifier, X: Any, leaf: int, tree: int = 0) -> np.ndarray:
    """Return the score of the path to a leaf for every row, whether the beam reaches it or not: float32 (n_rows,).

    The same numbers as in the beam search: link(margin) + score of the node above, from the root to the leaf.

    >>> model = LabelTreeClassifier(max_leaf=2, branching=2, balanced=True, beam=2).fit(np.eye(4), np.eye(4))
    >>> found = matched_leaves(model, np.eye(4)[[0]])
    >>> abs(path_scores(model, np.eye(4)[[0]], int(found.ids[0, 1]))[0] - found.scores[0, 1]) < 1e-5
    np.True_
    """
    grown, chunks = _tree(model, tree)
    X, plan = _rows(model, X), model._plan(grown, 1)
    scale, score = row_scale(X, model.normalize), np.zeros(X.shape[0], dtype=np.float32)
    for level, child in enumerate(path_children(grown, leaf)):
        features, weights = child_weights(chunks, child)
        dense = np.zeros(model.n_features_in_, dtype=np.float32)
        dense[features] = weights
        margin = (X @ dense) * scale + chunks.bias[child]
        linked = np.array([link(m, plan.powers[level], plan.slopes[level]) for m in margin], dtype=np.float32)
        score = linked + plan.aboves[level] * score
    return score


def place_child(chunks: Chunks, place: int) -> int:
    """Return the number of a place among all classifiers."""
    return chunks.n_chunks - 1 + place


def path_children(tree: LabelTree, leaf: int) -> list[int]:
    """Return the numbers of the nodes on the way to a leaf among all classifiers, from the top.

    >>> path_children(LabelTree((np.array([0, 0]), np.array([0, 1])), np.array([0, 1, 2]), np.array([0, 1]), 2), 1)
    [1, 3]
    """
    before, out = 0, []
    for level, node in enumerate(tree.path(leaf)):
        out.append(before + node)
        before += tree.n_nodes(level)
    return out


def _tree(model: LabelTreeClassifier, tree: int) -> tuple[LabelTree, Chunks]:
    model._check_fitted()
    tree = check_integer("tree", tree, low=0, high=len(model.trees_) - 1)
    return model.trees_[tree], model.chunks_[tree]


def _rows(model: LabelTreeClassifier, X: Any) -> sp.csr_array:
    X = as_sparse(X)
    check_width(X, model.n_features_in_)
    return X
