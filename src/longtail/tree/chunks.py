"""The classifiers of a label tree, as flat arrays, and the search through them.

Every inner node and every leaf is a chunk: the classifiers of its children, stored together. Chunks are numbered level
by level from the root (chunk 0); child number j overall is chunk j + 1, or, beyond the last chunk, a place in a leaf.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Self

import numpy as np
import scipy.sparse as sp

from longtail.errors import ModelError
from longtail.kernels import LANES, blocks, run_tasks
from longtail.storage import Part
from longtail.tree.beam import index_lines, search_block, search_one, spread_chunks
from longtail.tree.label_tree import LabelTree

NO_LABELS = np.empty(0, dtype=np.int32)
BLOCK_ROWS = 8192  # searched together
LARGEST_SPREAD = 512 << 20  # bytes
DENSE_FROM = 12  # rows that must visit a chunk before spreading it out pays (measured on eurlex-4k)


@dataclass(frozen=True)
class Link:
    """How a margin becomes a score: link(margin) + weight · score of the node above."""

    power: int = 3
    slope: float = 0.0
    above: float = 1.0


@dataclass(frozen=True)
class Plan:
    """How to walk down a tree: how many children to keep at every level, and how their scores are made."""

    widths: np.ndarray  # int64 (n_levels + 1,)
    powers: np.ndarray  # int64
    slopes: np.ndarray  # float32
    aboves: np.ndarray  # float32

    @classmethod
    def of(cls, widths: Sequence[int], links: Sequence[Link]) -> Self:
        return cls(
            np.array(widths, dtype=np.int64),
            np.array([link.power for link in links], dtype=np.int64),
            np.array([link.slope for link in links], dtype=np.float32),
            np.array([link.above for link in links], dtype=np.float32),
        )

    @property
    def n_kept(self) -> int:
        return int(self.widths[-1])

    def first(self, levels: int) -> Plan:
        """Return the plan for the first levels alone."""
        return Plan(self.widths[:levels], self.powers[:levels], self.slopes[:levels], self.aboves[:levels])


@dataclass(frozen=True)
class Packed:
    """One trained chunk: features and, for each, a list of (child, weight)."""

    features: np.ndarray  # int32 (n_lines,)
    counts: np.ndarray  # uint16 (n_lines,)
    children: np.ndarray  # uint16 (n_entries,)
    weights: np.ndarray  # int8 (n_entries,)
    scales: np.ndarray  # float32 (n_children,)
    bias: np.ndarray  # float32 (n_children,)


@dataclass(frozen=True)
class Chunks:
    """The chunks of a whole tree, or of its first levels while it is being trained."""

    levels: np.ndarray  # int64: chunks of level t are levels[t] up to levels[t + 1]; level 0 is the root
    child_indptr: np.ndarray  # int64 (n_chunks + 1,)
    line_indptr: np.ndarray  # int64 (n_chunks + 1,)
    features: np.ndarray
    counts: np.ndarray
    entry_indptr: np.ndarray  # int64 (n_lines + 1,), made from counts
    children: np.ndarray
    weights: np.ndarray
    scales: np.ndarray
    bias: np.ndarray
    n_features: int

    @classmethod
    def join(cls, levels: Sequence[Sequence[Packed]], n_features: int) -> Self:
        """Put trained chunks, level by level, into flat arrays."""
        packed = [chunk for level in levels for chunk in level]

        def ends(sizes: list[int]) -> np.ndarray:
            return np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)

        def together(field: str, dtype: Any) -> np.ndarray:
            return np.concatenate([np.empty(0, dtype), *(getattr(c, field) for c in packed)]).astype(dtype, copy=False)

        counts = together("counts", np.uint16)
        return cls(
            levels=ends([len(level) for level in levels]),
            child_indptr=ends([c.bias.size for c in packed]),
            line_indptr=ends([c.features.size for c in packed]),
            features=together("features", np.int32),
            counts=counts,
            entry_indptr=_ends_of(counts),
            children=together("children", np.uint16),
            weights=together("weights", np.int8),
            scales=together("scales", np.float32),
            bias=together("bias", np.float32),
            n_features=n_features,
        )

    @property
    def n_levels(self) -> int:
        return self.levels.size - 1

    @property
    def n_chunks(self) -> int:
        return int(self.levels[-1])

    @cached_property
    def spread(self) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """What makes the search fast once it is there: an index of the lines, and the weights as dense int8 blocks.

        The blocks are left out where both would take more than half a gigabyte, and the index where it alone would: the
        search then works on the stored form.
        """
        n_words = (self.n_features + 63) // 64
        widths = -(-np.diff(self.child_indptr) // LANES) * LANES
        block_indptr = np.concatenate([[0], np.cumsum(np.diff(self.line_indptr) * widths)]).astype(np.int64)
        nothing, index_bytes = np.zeros(1, dtype=np.int64), self.n_chunks * n_words * 12
        if index_bytes > LARGEST_SPREAD:
            return *index_lines(nothing, self.features, 0), nothing, np.empty(0, dtype=np.int8)
        index = index_lines(self.line_indptr, self.features, n_words)
        if index_bytes + int(block_indptr[-1]) > LARGEST_SPREAD:
            return *index, nothing, np.empty(0, dtype=np.int8)
        lines = (self.line_indptr, self.child_indptr, self.entry_indptr, self.children, self.weights)
        return *index, block_indptr, spread_chunks(*lines, block_indptr)

    def search(
        self, X: sp.csr_array, scale: np.ndarray, plan: Plan, n_jobs: int, labels: np.ndarray = NO_LABELS
    ) -> tuple[np.ndarray, np.ndarray]:
        """Walk all rows down the levels of the plan; return the numbers of the children kept at the last, and scores.

        Places that no child fills hold -1 and -inf. With `labels`, one per place in a leaf, each label is kept once.
        """
        n = X.shape[0]
        out_nodes, out_scores = np.empty((n, plan.n_kept), np.int32), np.empty((n, plan.n_kept), np.float32)
        indptr = X.indptr.astype(np.int64, copy=False)
        size = max(1, min(BLOCK_ROWS, -(-n // n_jobs)))
        spread = self.spread

        def walk(at: slice) -> None:
            rows = at.stop - at.start
            position = np.full(self.n_features, -1, dtype=np.int32)
            nodes, scores = np.zeros((rows, 1), np.int64), np.zeros((rows, 1), np.float32)
            for level, width in enumerate(plan.widths):
                found, new = np.empty((rows, width), np.int64), np.empty((rows, width), np.float32)
                search_block(
                    indptr[at.start : at.stop + 1],
                    X.indices,
                    X.data,
                    scale[at],
                    nodes,
                    scores,
                    self.child_indptr,
                    self.line_indptr,
                    self.features,
                    self.entry_indptr,
                    self.children,
                    self.weights,
                    self.scales,
                    self.bias,
                    *spread,
                    labels if level == self.n_levels - 1 else NO_LABELS,
                    self.n_chunks - 1,
                    plan.powers[level],
                    plan.slopes[level],
                    plan.aboves[level],
                    DENSE_FROM,
                    position,
                    found,
                    new,
                )
                nodes, scores = np.where(found >= 0, found + 1, -1), new
            out_nodes[at], out_scores[at] = found, scores

        run_tasks(walk, blocks(n, size), n_jobs)
        return out_nodes, out_scores

    def search_row(
        self,
        ids: np.ndarray,
        data: np.ndarray,
        normalize: bool,
        plan: Plan,
        leaf_labels: np.ndarray,
        once: bool,
        k: int,
    ) -> tuple[np.ndarray, np.ndarray] | None:
        """Walk one row down the levels; return its k best labels and scores, as `search` does, with less ado.

        None for a row whose ids are not sorted or whose values are not finite.
        """
        labels, scores = np.empty((1, k), np.int32), np.empty((1, k), np.float32)
        sound = search_one(
            ids,
            data,
            self.n_features,
            normalize,
            self.child_indptr,
            self.line_indptr,
            self.features,
            self.entry_indptr,
            self.children,
            self.weights,
            self.scales,
            self.bias,
            *self.spread,
            plan.widths,
            plan.powers,
            plan.slopes,
            plan.aboves,
            leaf_labels,
            once,
            labels[0],
            scores[0],
        )
        return (labels, scores) if sound else None

    def margin_terms(self, child: int, ids: np.ndarray, values: np.ndarray) -> tuple[float, list[tuple[int, float]]]:
        """Return the bias of a child and what each feature of a row adds to its margin."""
        chunk = int(np.searchsorted(self.child_indptr, child, side="right") - 1)
        lane = child - int(self.child_indptr[chunk])
        low, high = int(self.line_indptr[chunk]), int(self.line_indptr[chunk + 1])
        lines = low + np.searchsorted(self.features[low:high], ids)
        found = []
        for line, f, x in zip(lines, ids, values, strict=True):
            if line < high and self.features[line] == f:
                entries = slice(self.entry_indptr[line], self.entry_indptr[line + 1])
                hit = np.flatnonzero(self.children[entries] == lane)
                if hit.size:
                    w = float(self.weights[entries][hit[0]]) * float(self.scales[child])
                    found.append((int(f), float(x) * w))
        return float(self.bias[child]), found

    def arrays(self, prefix: str) -> dict[str, np.ndarray]:
        """Return what is saved: the flat arrays."""
        names = ("levels", "child_indptr", "line_indptr", "features", "counts", "children", "weights", "scales", "bias")
        out = {f"{prefix}{name}": getattr(self, name) for name in names}
        if self.children.size == 0 or int(self.children.max()) < 256:
            out[f"{prefix}children"] = self.children.astype(np.uint8)
        if self.counts.size == 0 or int(self.counts.max()) < 256:
            out[f"{prefix}counts"] = self.counts.astype(np.uint8)
        return out

    @classmethod
    def from_part(cls, part: Part, prefix: str, tree: LabelTree, n_features: int) -> Self:
        """Return the saved chunks, checked: nothing in them may point outside."""

        def get(name: str, *kinds: Any) -> np.ndarray:
            found = part.array(f"{prefix}{name}")
            if found.ndim != 1 or found.dtype not in [np.dtype(k) for k in kinds]:
                raise ModelError(f"the model's array '{prefix}{name}' is not of the kind it must be.")
            return found

        levels = get("levels", np.int64)
        child_indptr, line_indptr = get("child_indptr", np.int64), get("line_indptr", np.int64)
        features, counts = get("features", np.int32), get("counts", np.uint8, np.uint16)
        children, weights = get("children", np.uint8, np.uint16), get("weights", np.int8)
        scales, bias = get("scales", np.float32), get("bias", np.float32)
        entry_indptr = _ends_of(counts)
        expected = np.concatenate([[0], np.cumsum([1, *(tree.n_nodes(t) for t in range(tree.n_levels))])])
        children_of = [np.diff(np.searchsorted(tree.parents[0], [0, 1]))]
        children_of += [np.diff(tree.children(t)) for t in range(tree.n_levels)]
        n_chunks, widths = int(expected[-1]), np.concatenate(children_of)
        sound = (
            np.array_equal(levels, expected)
            and child_indptr.size == n_chunks + 1
            and line_indptr.size == n_chunks + 1
            and int(child_indptr[0]) == 0
            and np.array_equal(np.diff(child_indptr), widths)
            and int(line_indptr[0]) == 0
            and bool((np.diff(line_indptr) >= 0).all())
            and int(line_indptr[-1]) == features.size == counts.size
            and int(entry_indptr[-1]) == children.size == weights.size
            and int(child_indptr[-1]) == scales.size == bias.size
            and (features.size == 0 or (int(features.min()) >= 0 and int(features.max()) < n_features))
        )
        finite = bool(np.isfinite(scales).all()) and not bool((np.isnan(bias) | np.isposinf(bias)).any())
        sound = sound and finite
        if sound and children.size:
            of_line = np.repeat(widths, np.diff(line_indptr))
            sound = bool((children < np.repeat(of_line, counts)).all())
        if not sound:
            raise ModelError(f"the model's part '{part.kind}' is inconsistent: its chunks do not fit its tree.")
        return cls(
            levels,
            child_indptr,
            line_indptr,
            features,
            counts.astype(np.uint16),
            entry_indptr,
            children.astype(np.uint16),
            weights,
            scales,
            bias,
            n_features,
        )


def _ends_of(counts: np.ndarray) -> np.ndarray:
    out = np.zeros(counts.size + 1, dtype=np.int64)
    np.cumsum(counts, out=out[1:])
    return out
