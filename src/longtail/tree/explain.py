"""Explain a trained label tree: why a label, where rows are sent, and what each leaf slot of a label weighs.

score of a path   link(margin) + score of the node above, from the root to the leaf
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp

from longtail.data import TopK
from longtail.model import Explanation, row_scale, take_columns
from longtail.tree.beam import link
from longtail.tree.chunks import Chunks
from longtail.tree.label_tree import LabelTree
from longtail.tree.search import BeamPlan, search_level
from longtail.validate import as_sparse, check_integer, check_width, resolve_jobs

if TYPE_CHECKING:
    from longtail.tree.estimator import LabelTreeClassifier


def explain_slot(
    tree: LabelTree, chunks: Chunks, plan: BeamPlan, slot: int, ids: np.ndarray, values: np.ndarray
) -> Explanation:
    """Explain one leaf slot for one row: its score, the margins on the path, and the features behind the last."""
    leaf = leaf_of(tree, slot)
    score, path, before = np.float32(0), [], 0
    for level, node in enumerate(tree.path(leaf)):
        bias, terms = chunks.margin_terms(before + node, ids, values)
        margin = bias + sum(w for _, w in terms)
        score = link(np.float32(margin), plan.powers[level], plan.slopes[level]) + plan.parent_weights[level] * score
        below = tree.leaf_labels[np.repeat(tree.ancestors(level), np.diff(tree.leaf_indptr)) == node]
        path.append({"level": level, "node": node, "margin": margin, "labels": below})
        before += tree.n_nodes(level)
    bias, terms = chunks.margin_terms(before + slot, ids, values)
    margin = bias + sum(w for _, w in terms)
    score = link(np.float32(margin), plan.powers[-1], plan.slopes[-1]) + plan.parent_weights[-1] * score
    terms.sort(key=lambda pair: -abs(pair[1]))
    return Explanation(int(tree.leaf_labels[slot]), float(score), margin, bias, terms, path)


def matched_leaves(model: LabelTreeClassifier, X: Any, tree: int = 0) -> TopK:
    """Return the leaves of one tree that the beam reaches for every row, with the scores of their paths, best first.

    >>> from longtail.tree import LabelTreeClassifier
    >>> model = LabelTreeClassifier(max_leaf=2, branching=2, balanced=True, beam=1).fit(np.eye(4), np.eye(4))
    >>> matched_leaves(model, np.eye(4)).ids.ravel().tolist() == model.trees_[0].slots().indices.tolist()
    True
    """
    grown, chunks = _tree(model, tree)
    X = _rows(model, X)
    plan, scale = model._beam_plan(grown, 1), row_scale(X, model.normalize)
    leaves, scores = search_level(chunks, X, scale, plan, resolve_jobs(model.n_jobs), grown.n_levels - 1)
    return TopK(leaves.astype(np.int32), scores)


def slots_of(tree: LabelTree, label: int) -> np.ndarray:
    """Return the leaf slots of a label: positions in `tree.leaf_labels`, in the order of the leaves.

    >>> slots_of(LabelTree.from_clusters([1, 0]).with_slots([[1, 1], [1, 0]]), 0).tolist()
    [0, 2]
    """
    return np.flatnonzero(tree.leaf_labels == label)


def leaf_of(tree: LabelTree, slot: int) -> int:
    """Return the leaf of a slot."""
    return int(np.searchsorted(tree.leaf_indptr, slot, side="right") - 1)


def child_weights(chunks: Chunks, child: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the features and weights of one classifier, a node's or a leaf slot's, as stored: ascending, not zero."""
    chunk = int(np.searchsorted(chunks.child_indptr, child, side="right") - 1)
    low, high = (int(line) for line in chunks.line_indptr[chunk : chunk + 2])
    entries = chunks.entries_of(low, high)
    own = np.flatnonzero(chunks.children[entries] == child - int(chunks.child_indptr[chunk]))
    lines = low + np.searchsorted(np.cumsum(chunks.counts[low:high], dtype=np.int64), own, side="right")
    own += entries.start
    return chunks.features[lines], chunks.weights[own] * chunks.scales[child]


def path_scores(model: LabelTreeClassifier, X: Any, leaf: int, tree: int = 0) -> np.ndarray:
    """Return the score of the path to a leaf for every row, whether the beam reaches it or not: float32 (n_rows,).

    The same numbers as in the beam search: link(margin) + score of the node above, from the root to the leaf.

    >>> from longtail.tree import LabelTreeClassifier
    >>> model = LabelTreeClassifier(max_leaf=2, branching=2, balanced=True, beam=2).fit(np.eye(4), np.eye(4))
    >>> leaves = matched_leaves(model, np.eye(4)[[0]])
    >>> abs(path_scores(model, np.eye(4)[[0]], int(leaves.ids[0, 1]))[0] - leaves.scores[0, 1]) < 1e-5
    np.True_
    """
    grown, chunks = _tree(model, tree)
    X, plan = _rows(model, X), model._beam_plan(grown, 1)
    scale, score = row_scale(X, model.normalize), np.zeros(X.shape[0], dtype=np.float32)
    for level, child in enumerate(path_children(grown, leaf)):
        features, weights = child_weights(chunks, child)
        margin = (take_columns(X, features) @ weights if features.size else 0) * scale + chunks.bias[child]
        linked = np.array([link(m, plan.powers[level], plan.slopes[level]) for m in margin], dtype=np.float32)
        score = linked + plan.parent_weights[level] * score
    return score


def slot_child(chunks: Chunks, slot: int) -> int:
    """Return the number of a leaf slot among all classifiers."""
    return chunks.n_chunks - 1 + slot


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
    """Return one tree of a model and its chunks."""
    model._check_fitted()
    tree = check_integer("tree", tree, low=0, high=len(model.trees_) - 1)
    return model.trees_[tree], model.chunks_[tree]


def _rows(model: LabelTreeClassifier, X: Any) -> sp.csr_array:
    """Return rows that fit the model."""
    X = as_sparse(X)
    check_width(X, model.n_features_in_)
    return X
