"""The classifiers of a label tree, as flat arrays: made from trained chunks, saved, loaded and taken apart.

Every inner node and every leaf is a chunk: the classifiers of its children, stored together. Chunks are numbered level
by level from the root (chunk 0); child number j overall is chunk j + 1, or, beyond the last chunk, a leaf slot.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Self

import numpy as np

from longtail.kernels import LANES
from longtail.model import has_idle_columns
from longtail.storage import Part
from longtail.tree.chunk_kernels import (
    LOG_STEP,
    WORD_FEATURES,
    entries_before,
    index_lines,
    pack_chunk,
    place_lines,
    spread_chunks,
)
from longtail.validate import large_empty, large_joined, memory_limit

MOST_INDEXED = 1 << 24  # features, so that the lines of a chunk can be counted in 24 bits
DENSE_ENTRIES = 1.5  # for every sixteen children: lines with as many are kept as dense rows
SHARE_OF_SPREAD = 6  # of a limit on memory, that part may be
NOTHING_SPREAD = (np.empty((0, 0), np.uint64), np.empty(0, np.int64), np.empty(0, np.int8), np.empty(0, np.int64))
SPREAD_FROM = 100  # rows that must come before the search is made fast: one text alone is answered sooner without
LARGEST_SPREAD = 512 << 20  # bytes of the index and the dense blocks that make the search fast
LARGEST_PLACES = 1 << 30  # bytes of the places of lines, where not all lines have dense rows
LEFT_IN_FILES = 1 << 27  # entries from which on a tree is read from its file when it is searched, not before


def largest_spread() -> int:
    """Return how many bytes that only make the search fast may take: less under a limit on memory."""
    limit = memory_limit()
    return LARGEST_SPREAD if limit is None else min(LARGEST_SPREAD, limit // SHARE_OF_SPREAD)


@dataclass(frozen=True)
class PackedChunk:
    """One trained chunk: features and, for each, a list of (child, weight)."""

    features: np.ndarray  # int32 (n_lines,)
    counts: np.ndarray  # uint16 (n_lines,): entries of each line
    children: np.ndarray  # uint16 (n_entries,)
    weights: np.ndarray  # int8 (n_entries,), to be multiplied by the child's scale
    scales: np.ndarray  # float32 (n_children,)
    bias: np.ndarray  # float32 (n_children,)

    @classmethod
    def from_lanes(cls, features: np.ndarray, W: np.ndarray, n_children: int, threshold: float) -> Self:
        """Pack weights of sixteen children at a time, (n_batches, n_features + 1, 16), the last line the biases."""
        lines, counts, children, weights, scales, bias = pack_chunk(W, n_children, threshold)
        return cls(features[lines], counts, children, weights, scales, bias)

    @classmethod
    def from_dense(cls, features: np.ndarray, W: np.ndarray, bias: np.ndarray, threshold: float) -> Self:
        """Pack dense weights (n_features, n_children)."""
        n_lines, width = W.shape
        n_batches = -(-width // LANES)
        padded = np.zeros((n_lines + 1, n_batches * LANES), dtype=np.float32)
        padded[:-1, :width] = W
        cut = padded.reshape(n_lines + 1, n_batches, LANES).transpose(1, 0, 2)
        lines, counts, children, weights, scales, _ = pack_chunk(np.ascontiguousarray(cut), width, threshold)
        return cls(features[lines], counts, children, weights, scales, bias.astype(np.float32))


@dataclass(frozen=True)
class Chunks:
    """The chunks of a whole tree, or of its first levels while it is being trained."""

    levels: np.ndarray  # int64: chunks of level t are levels[t] up to levels[t + 1]; level 0 is the root
    child_indptr: np.ndarray  # int64 (n_chunks + 1,)
    line_indptr: np.ndarray  # int64 (n_chunks + 1,)
    features: np.ndarray  # of every line
    counts: np.ndarray  # entries of every line
    children: np.ndarray  # child of every entry, within its chunk
    weights: np.ndarray  # of every entry, to be multiplied by the child's scale
    scales: np.ndarray  # of every child
    bias: np.ndarray  # of every child
    n_features: int
    saved_starts: np.ndarray | None = None  # `entry_starts` of a large tree, from its file

    @classmethod
    def join(cls, levels: Sequence[Sequence[PackedChunk]], n_features: int) -> Self:
        """Put trained chunks, level by level, into flat arrays."""
        packed = [chunk for level in levels for chunk in level]

        def ends(sizes: list[int]) -> np.ndarray:
            return np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)

        def together(field: str, dtype: Any) -> np.ndarray:
            return large_joined([getattr(c, field) for c in packed], dtype)

        counts = together("counts", np.uint16)
        return cls(
            levels=ends([len(level) for level in levels]),
            child_indptr=ends([c.bias.size for c in packed]),
            line_indptr=ends([c.features.size for c in packed]),
            features=together("features", np.int32),
            counts=counts,
            children=together("children", np.uint16),
            weights=together("weights", np.int8),
            scales=together("scales", np.float32),
            bias=together("bias", np.float32),
            n_features=n_features,
        )

    @property
    def n_levels(self) -> int:
        """Levels of chunks: one more than the tree has, with all leaves."""
        return self.levels.size - 1

    @property
    def n_chunks(self) -> int:
        """Chunks of all levels."""
        return int(self.levels[-1])

    @cached_property
    def entry_starts(self) -> np.ndarray:
        """How many entries come before every 64th line, and all of them: int64 (n_lines / 64 rounded up, + 1)."""
        return starts_of(self.counts) if self.saved_starts is None else self.saved_starts

    def entries_of(self, first: int, last: int) -> slice:
        """Return where the entries of some lines stand: of line `first` up to the one before `last`."""
        start, stop = (int(entries_before(self.entry_starts, self.counts, line)) for line in (first, last))
        return slice(start, stop)

    def spread_for(self, n_rows: int) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """Return `spread` once it pays, and empty arrays while too few rows have been searched."""
        self._searched[0] += n_rows
        return self.spread if self._searched[0] >= SPREAD_FROM else NOTHING_SPREAD

    @cached_property
    def _searched(self) -> list[int]:
        """How many rows have been searched, in a list of one number."""
        return [0]

    @cached_property
    def spread(self) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """An index of the lines and their weights as dense int8 rows, which make the search fast; made once.

        Small trees have dense rows of all lines: block_indptr tells where those of each chunk start. Where they would
        take more than half a gigabyte only lines with many entries have one, and `place_lines` tells the place of each.
        All is left out, and the search works on the stored form, where the index alone would take so much.
        """
        n_words = -(-self.n_features // WORD_FEATURES)
        widths = -(-np.diff(self.child_indptr) // LANES) * LANES
        block_indptr = np.concatenate([[0], np.cumsum(np.diff(self.line_indptr) * widths)]).astype(np.int64)
        nothing, index_bytes = np.empty(0, dtype=np.int64), self.n_chunks * n_words * 8
        if index_bytes > largest_spread() or self.n_features > MOST_INDEXED:
            return NOTHING_SPREAD
        few_dense = index_bytes + int(block_indptr[-1]) > largest_spread()
        if few_dense and 8 * self.counts.size > LARGEST_PLACES:
            return NOTHING_SPREAD
        index = index_lines(self.line_indptr, self.features, n_words)
        lines = (self.line_indptr, self.child_indptr, self.counts, self.children, self.weights)
        if few_dense:
            places, rows = place_lines(*lines, DENSE_ENTRIES if memory_limit() is None else np.inf)
            return index, nothing, rows, places
        return index, block_indptr, spread_chunks(*lines, block_indptr), nothing

    @cached_property
    def own_features(self) -> np.ndarray | None:
        """The features with a weight, ascending, where there are far more columns; else None."""
        return np.unique(self.features) if has_idle_columns(self.n_features, self.features.size) else None

    @cached_property
    def over_own_features(self) -> Chunks:
        """The same chunks with features numbered by their position in `own_features`."""
        own = self.own_features
        if own is None:
            return self
        return replace(self, features=np.searchsorted(own, self.features).astype(np.int32), n_features=max(own.size, 1))

    def over_columns(self, columns: np.ndarray, n_features: int) -> Chunks:
        """Return chunks trained on some columns of a matrix as chunks of the whole matrix."""
        return replace(self, features=columns[self.features], n_features=n_features)

    def split(self) -> list[list[PackedChunk]]:
        """Return the chunks level by level, on the same memory: the inverse of `join`."""
        return [
            [self._packed(chunk) for chunk in range(int(self.levels[level]), int(self.levels[level + 1]))]
            for level in range(self.n_levels)
        ]

    def _packed(self, chunk: int) -> PackedChunk:
        """Return one chunk, on the same memory."""
        lines = slice(int(self.line_indptr[chunk]), int(self.line_indptr[chunk + 1]))
        entries = self.entries_of(lines.start, lines.stop)
        kids = slice(int(self.child_indptr[chunk]), int(self.child_indptr[chunk + 1]))
        return PackedChunk(
            self.features[lines],
            self.counts[lines],
            self.children[entries],
            self.weights[entries],
            self.scales[kids],
            self.bias[kids],
        )

    def dense(self, chunk: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return the features of a chunk, its weights as a dense array (n_lines, n_children), and the biases."""
        packed = self._packed(chunk)
        W = np.zeros((packed.features.size, packed.bias.size), dtype=np.float32)
        where, kids = np.repeat(np.arange(W.shape[0]), packed.counts), packed.children.astype(np.int64)
        W[where, kids] = packed.weights.astype(np.float32) * packed.scales[kids]
        return packed.features, W, packed.bias

    def margin_terms(self, child: int, ids: np.ndarray, values: np.ndarray) -> tuple[float, list[tuple[int, float]]]:
        """Return the bias of a child and what each feature of a row adds to its margin."""
        chunk = int(np.searchsorted(self.child_indptr, child, side="right") - 1)
        lane = child - int(self.child_indptr[chunk])
        low, high = int(self.line_indptr[chunk]), int(self.line_indptr[chunk + 1])
        lines = low + np.searchsorted(self.features[low:high], ids)
        terms = []
        for line, f, x in zip(lines, ids, values, strict=True):
            if line < high and self.features[line] == f:
                entries = self.entries_of(int(line), int(line) + 1)
                hit = np.flatnonzero(self.children[entries] == lane)
                if hit.size:
                    w = float(self.weights[entries][hit[0]]) * float(self.scales[child])
                    terms.append((int(f), float(x) * w))
        return float(self.bias[child]), terms

    def arrays(self, prefix: str) -> dict[str, np.ndarray]:
        """Return what is saved: the flat arrays."""
        names = ("levels", "child_indptr", "line_indptr", "features", "counts", "children", "weights", "scales", "bias")
        out = {f"{prefix}{name}": getattr(self, name) for name in names}
        if self.children.size == 0 or int(self.children.max()) < 256:
            out[f"{prefix}children"] = _as_bytes(self.children)
        if self.counts.size == 0 or int(self.counts.max()) < 256:
            out[f"{prefix}counts"] = _as_bytes(self.counts)
        if self.children.size >= LEFT_IN_FILES:
            out[f"{prefix}entry_starts"] = self.entry_starts
        return out

    @classmethod
    def from_part(cls, part: Part, n_features: int) -> Self:
        """Return the saved chunks of one tree, whose part has been checked; large ones stay as they are in the file."""
        counts, children = part.array("counts"), part.array("children")
        if children.size < LEFT_IN_FILES:
            counts, children = counts.astype(np.uint16), children.astype(np.uint16)
        return cls(
            part.array("levels"),
            part.array("child_indptr"),
            part.array("line_indptr"),
            part.array("features"),
            counts,
            children,
            part.array("weights"),
            part.array("scales"),
            part.array("bias"),
            n_features,
            part.arrays.get("entry_starts"),
        )


def starts_of(counts: np.ndarray) -> np.ndarray:
    """Return how many entries come before every 64th line, and all of them.

    >>> starts_of(np.full(100, 2)).tolist()
    [0, 128, 200]
    """
    firsts = np.arange(0, counts.size, 1 << LOG_STEP)
    sums = np.add.reduceat(counts, firsts, dtype=np.int64) if firsts.size else firsts
    return np.concatenate([[0], np.cumsum(sums)]).astype(np.int64, copy=False)


def _as_bytes(numbers: np.ndarray) -> np.ndarray:
    """Return numbers below 256 in one byte each."""
    out = large_empty(numbers.size, np.uint8)
    out[...] = numbers
    return out
