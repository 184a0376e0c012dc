"""Beam search: walk rows down a tree, keep the best children at every level, merge what several trees find.

    score of a node         link(margin) + score of the node above
    score of a leaf slot    link(margin) + path_weight · score of its leaf

`search_rows` and `search_few` prepare the arrays for the compiled search in `beam.py`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Self

import numpy as np
import scipy.sparse as sp

from longtail.kernels import blocks, run_tasks
from longtail.model import take_columns
from longtail.tree.beam import merge_lists, search_block, search_each
from longtail.tree.chunks import Chunks
from longtail.tree.label_tree import LabelTree
from longtail.validate import large_empty

INT32_MAX = np.iinfo(np.int32).max
CSR = (sp.csr_array, sp.csr_matrix)
NO_LABELS = np.empty(0, dtype=np.int32)
NO_PLACES = np.empty(0, dtype=np.int64)
BLOCK_ROWS = 8192  # searched together
FEW_ROWS = 32  # walked down one by one: what a batch prepares for pays from here on (measured on debtags)
DENSE_FROM = 12  # rows that must visit a chunk before spreading it out pays (measured on eurlex-4k)

Ranked = tuple[np.ndarray, np.ndarray]  # ids and scores (n_rows, k), best first; -1 and -inf where none


@dataclass(frozen=True)
class LevelLink:
    """How the score of a child is made: link(margin, power, slope) + parent_weight · score of its parent."""

    power: int = 3
    slope: float = 0.0
    parent_weight: float = 1.0


@dataclass(frozen=True)
class BeamPlan:
    """How to walk down a tree: how many children to keep at every level, and how their scores are made."""

    widths: np.ndarray  # int64 (n_levels + 1,)
    powers: np.ndarray  # int64
    slopes: np.ndarray  # float32
    parent_weights: np.ndarray  # float32

    @classmethod
    def of(cls, widths: Sequence[int], links: Sequence[LevelLink]) -> Self:
        """Return the plan that keeps `widths[t]` children at level t and scores them by `links[t]`."""
        return cls(
            np.array(widths, dtype=np.int64),
            np.array([link.power for link in links], dtype=np.int64),
            np.array([link.slope for link in links], dtype=np.float32),
            np.array([link.parent_weight for link in links], dtype=np.float32),
        )

    @property
    def n_kept(self) -> int:
        """Children kept at the last level."""
        return int(self.widths[-1])

    def first(self, levels: int) -> BeamPlan:
        """Return the plan for the first levels alone."""
        return BeamPlan(self.widths[:levels], self.powers[:levels], self.slopes[:levels], self.parent_weights[:levels])


def search_rows(
    chunks: Chunks, X: sp.csr_array, scale: np.ndarray, plan: BeamPlan, n_jobs: int, labels: np.ndarray = NO_LABELS
) -> Ranked:
    """Walk all rows down the levels of the plan; return the numbers of the children kept at the last, and scores.

    With `labels`, one per leaf slot, each label is kept once.
    """
    own = chunks.own_features
    if own is not None:
        chunks, X = chunks.over_own_features, take_columns(X, own)
    n = X.shape[0]
    out_nodes, out_scores = large_empty((n, plan.n_kept), np.int32), large_empty((n, plan.n_kept), np.float32)
    indptr = X.indptr.astype(np.int64, copy=False)
    size = max(1, min(BLOCK_ROWS, -(-n // n_jobs)))
    spread = chunks.spread_for(n)
    entry_starts = NO_PLACES if spread[0].size else chunks.entry_starts

    def walk(at: slice) -> None:
        rows = at.stop - at.start
        position = np.full(chunks.n_features, -1, dtype=np.int32)
        nodes, scores = np.zeros((rows, 1), np.int64), np.zeros((rows, 1), np.float32)
        for level, width in enumerate(plan.widths):
            kept, new = np.empty((rows, width), np.int64), np.empty((rows, width), np.float32)
            search_block(
                indptr[at.start : at.stop + 1],
                X.indices,
                X.data,
                scale[at],
                nodes,
                scores,
                chunks.child_indptr,
                chunks.line_indptr,
                chunks.features,
                entry_starts,
                chunks.counts,
                chunks.children,
                chunks.weights,
                chunks.scales,
                chunks.bias,
                *spread,
                labels if level == chunks.n_levels - 1 else NO_LABELS,
                chunks.n_chunks - 1,
                plan.powers[level],
                plan.slopes[level],
                plan.parent_weights[level],
                DENSE_FROM,
                position,
                kept,
                new,
            )
            nodes, scores = np.where(kept >= 0, kept + 1, -1), new
        out_nodes[at], out_scores[at] = kept, scores

    run_tasks(walk, blocks(n, size), n_jobs)
    return out_nodes, out_scores


def search_level(chunks: Chunks, X: sp.csr_array, scale: np.ndarray, plan: BeamPlan, n_jobs: int, level: int) -> Ranked:
    """Walk all rows down to the nodes of a level (0: those below the root), numbered within it, and their scores."""
    nodes, scores = search_rows(chunks, X, scale, plan.first(level + 1), n_jobs)
    above = int(chunks.levels[level + 1]) - 1  # nodes of the levels above
    for at in blocks(nodes.shape[0], BLOCK_ROWS):
        nodes[at] = np.where(nodes[at] >= 0, nodes[at] - above, -1)
    return nodes, scores


def search_few(
    chunks: Chunks,
    indptr: np.ndarray,
    ids: np.ndarray,
    data: np.ndarray,
    normalize: bool,
    plan: BeamPlan,
    leaf_labels: np.ndarray,
    once: bool,
    k: int,
) -> Ranked | None:
    """Fast path for a few CSR rows: their k best labels and scores, the same to the last bit as by `search_rows`.

    With `once` a label that has several leaf slots is kept once. None where the ids of a row are not sorted or its
    values are not finite.
    """
    n = indptr.size - 1
    labels, scores = np.empty((n, k), np.int32), np.empty((n, k), np.float32)
    spread = chunks.spread_for(n)
    sound = search_each(
        indptr,
        ids,
        data,
        chunks.n_features,
        normalize,
        chunks.child_indptr,
        chunks.line_indptr,
        chunks.features,
        NO_PLACES if spread[0].size else chunks.entry_starts,
        chunks.counts,
        chunks.children,
        chunks.weights,
        chunks.scales,
        chunks.bias,
        *spread,
        plan.widths,
        plan.powers,
        plan.slopes,
        plan.parent_weights,
        leaf_labels,
        once,
        labels,
        scores,
    )
    return (labels, scores) if sound else None


def are_few_rows(X: Any, n_features: int) -> bool:
    """Say whether X is a few CSR rows of real numbers that point to all entries, with ids that can be read as int32."""
    if not isinstance(X, CSR) or not 1 <= X.shape[0] <= FEW_ROWS or X.shape[1] != n_features:
        return False
    ids, data, pointers = X.indices, X.data, X.indptr
    if data.dtype.kind not in "fiub" or pointers.shape != (X.shape[0] + 1,) or pointers.dtype.kind not in "iu":
        return False
    ends = pointers.tolist()
    return (
        ends[0] == 0
        and ends[-1] == ids.size
        and all(low <= high for low, high in pairwise(ends))
        and ids.shape == data.shape
        and ids.ndim == 1
        and (ids.dtype.char == "i" or _fits_int32(ids))
    )


def _fits_int32(ids: np.ndarray) -> bool:
    """Say whether ids of another type stay what they are as int32; below 0 they are large as unsigned numbers."""
    kind = ids.dtype.kind
    if kind not in "iu" or not ids.size:
        return kind in "iu"
    return int((ids.view(f"u{ids.itemsize}") if kind == "i" else ids).max()) <= INT32_MAX


def labels_of(tree: LabelTree, chunks: Chunks, children: np.ndarray) -> np.ndarray:
    """Return the labels of children of leaves; -1 stays."""
    slots = children - (chunks.n_chunks - 1)
    return np.where(children >= 0, tree.leaf_labels[np.maximum(slots, 0)], np.int32(-1))


def merge_slots(ranked: Ranked, n_jobs: int = 1) -> Ranked:
    """Merge the slots of a label: score = log(mean of exp(score) over the slots that the beam reached)."""
    return _merged(*ranked, 0, 0, ranked[0].shape[1], n_jobs)


def merge_trees(ranked: list[Ranked], k: int, n_jobs: int = 1) -> Ranked:
    """Merge the lists of several trees: score = log(Σ exp(score) / number of trees); keep the k best labels."""
    ids, scores = (np.concatenate(parts, axis=1) for parts in zip(*ranked, strict=True))
    return _merged(ids, scores, len(ranked), len(ranked), k, n_jobs)


def _merged(ids: np.ndarray, scores: np.ndarray, shares: int, lists: int, k: int, n_jobs: int) -> Ranked:
    """Merge equal labels of every row; see `merge_lists`."""
    ids, scores, n = np.ascontiguousarray(ids, dtype=np.int32), np.ascontiguousarray(scores), ids.shape[0]
    out_ids, out_scores = np.empty((n, k), np.int32), np.empty((n, k), np.float32)

    def merge(at: slice) -> None:
        merge_lists(ids[at], scores[at], shares, lists, out_ids[at], out_scores[at])

    run_tasks(merge, blocks(n, max(BLOCK_ROWS // 8, -(-n // n_jobs))), n_jobs)
    return out_ids, out_scores


def pad_lists(ranked: Ranked, k: int) -> Ranked:
    """Bring lists to k entries: cut, or filled up with -1 and -inf."""
    ids, scores = ranked
    if ids.shape[1] == k:
        return ids, scores
    out_ids = np.full((ids.shape[0], k), -1, dtype=np.int32)
    out_scores = np.full((ids.shape[0], k), -np.inf, dtype=np.float32)
    out_ids[:, : ids.shape[1]], out_scores[:, : ids.shape[1]] = ids[:, :k], scores[:, :k]
    return out_ids, out_scores
