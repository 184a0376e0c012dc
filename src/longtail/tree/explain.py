"""Why a label: its path through the tree and what each feature adds."""

from __future__ import annotations

import numpy as np

from longtail.model import Explanation
from longtail.tree.beam import link
from longtail.tree.chunks import Chunks, Plan
from longtail.tree.label_tree import LabelTree


def explain_place(
    tree: LabelTree, chunks: Chunks, plan: Plan, place: int, ids: np.ndarray, values: np.ndarray
) -> Explanation:
    """Return the score of one place for one row, with the margins on the way there and the features behind the last."""
    leaf = int(np.searchsorted(tree.leaf_indptr, place, side="right") - 1)
    score, path, before = np.float32(0), [], 0
    for level, node in enumerate(tree.path(leaf)):
        bias, terms = chunks.margin_terms(before + node, ids, values)
        margin = bias + sum(w for _, w in terms)
        score = link(np.float32(margin), plan.powers[level], plan.slopes[level]) + plan.aboves[level] * score
        below = tree.leaf_labels[np.repeat(tree.ancestors(level), np.diff(tree.leaf_indptr)) == node]
        path.append({"level": level, "node": node, "margin": margin, "labels": below})
        before += tree.n_nodes(level)
    bias, terms = chunks.margin_terms(before + place, ids, values)
    margin = bias + sum(w for _, w in terms)
    score = link(np.float32(margin), plan.powers[-1], plan.slopes[-1]) + plan.aboves[-1] * score
    terms.sort(key=lambda pair: -abs(pair[1]))
    return Explanation(int(tree.leaf_labels[place]), float(score), margin, bias, terms, path)
