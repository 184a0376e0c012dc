"""Turn n-gram counts into TF-IDF rows of unit length: weight = tf * idf, columns sorted, unknown n-grams left out."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp

from longtail.kernels import njit
from longtail.text.lexicon import NgramCounts
from longtail.validate import make_csr

_FEW = 24  # rows up to this long are sorted by insertion, longer ones by radix


class TfidfRows(NamedTuple):
    """TF-IDF rows of some texts as the arrays of a CSR matrix."""

    indptr: np.ndarray  # int64 (n_rows + 1,)
    ids: np.ndarray  # int32
    values: np.ndarray  # float32


def to_tfidf_rows(counts: NgramCounts, column: np.ndarray, idf: np.ndarray, sublinear: bool) -> TfidfRows:
    """Return the TF-IDF rows of counted texts; `column` holds the column of each node, or -1 where it is left out."""
    indptr = np.empty_like(counts.indptr)
    ids, values = np.empty(counts.nodes.size, dtype=np.int32), np.empty(counts.nodes.size, dtype=np.float32)
    tfidf_rows(*counts, column, idf, sublinear, indptr, ids, values)
    return TfidfRows(indptr, ids[: indptr[-1]], values[: indptr[-1]])


def stack_rows(rows: Sequence[TfidfRows], n_columns: int) -> sp.csr_array:
    """Return blocks of rows below each other as one CSR matrix."""
    if len(rows) == 1:
        indptr, ids, values = rows[0]
    else:
        sizes = [np.diff(block.indptr) for block in rows]
        indptr = np.concatenate([np.zeros(1, dtype=np.int64), *sizes]).cumsum()
        ids = np.concatenate([np.empty(0, dtype=np.int32), *(block.ids for block in rows)])
        values = np.concatenate([np.empty(0, dtype=np.float32), *(block.values for block in rows)])
    return make_csr(indptr, ids, values, n_columns)


@njit(nogil=True, cache=True)
def _sort_keys(keys: np.ndarray, spare: np.ndarray, size: int, n_bytes: int) -> None:
    """Sort keys[:size] by the `n_bytes` bytes above the lower 32 bits, which must be distinct."""
    if size <= _FEW:
        for i in range(1, size):
            key = keys[i]
            j = i
            while j > 0 and keys[j - 1] > key:
                keys[j] = keys[j - 1]
                j -= 1
            keys[j] = key
        return
    tally = np.empty(256, dtype=np.int64)
    source, target = keys, spare
    for byte in range(n_bytes):
        shift = 32 + 8 * byte
        tally[:] = 0
        for i in range(size):
            tally[source[i] >> shift & 255] += 1
        total = 0
        for digit in range(256):
            total += tally[digit]
            tally[digit] = total - tally[digit]
        for i in range(size):
            digit = source[i] >> shift & 255
            target[tally[digit]] = source[i]
            tally[digit] += 1
        source, target = target, source
    if n_bytes % 2 == 1:
        keys[:size] = spare[:size]


@njit(nogil=True, cache=True)
def tfidf_rows(
    indptr: np.ndarray,  # IN   row pointers of the counts                   (n_rows + 1,) int64
    nodes: np.ndarray,  # IN   distinct within a row, in any order          (nnz,) int32
    counts: np.ndarray,  # IN   how often                                    (nnz,) int32
    column: np.ndarray,  # IN   the column of each node, or -1: left out     (n_nodes,) int32
    idf: np.ndarray,  # IN   weight of each column                        (n_columns,) float32
    sublinear: bool,  # IN   1 + log(count) in place of the count
    out_indptr: np.ndarray,  # OUT  row pointers                                 (n_rows + 1,) int64
    out_ids: np.ndarray,  # OUT  columns, sorted within a row                 (>= kept,) int32
    out_values: np.ndarray,  # OUT  rows of unit length                          (>= kept,) float32
) -> None:
    """Turn counts into rows of TF-IDF weights with unit Euclidean length; sums run in double precision."""
    widest = 0
    for row in range(indptr.size - 1):
        widest = max(widest, indptr[row + 1] - indptr[row])
    keys = np.empty(widest, dtype=np.int64)
    spare = np.empty(widest, dtype=np.int64)
    weights = np.empty(widest, dtype=np.float64)
    n_bytes = 1
    while n_bytes < 4 and (idf.size - 1) >> (8 * n_bytes) > 0:
        n_bytes += 1
    out = 0
    out_indptr[0] = 0
    for row in range(indptr.size - 1):
        size = 0
        for t in range(indptr[row], indptr[row + 1]):
            kept = np.int64(column[nodes[t]])
            if kept >= 0:
                keys[size] = kept << 32 | np.int64(counts[t])
                size += 1
        _sort_keys(keys, spare, size, n_bytes)
        squares = 0.0
        for t in range(size):
            count = keys[t] & 0xFFFFFFFF
            tf = float(count)
            if sublinear:
                tf = 1.0 + math.log(tf) if count > 1 else 1.0
            # weight = tf * idf
            weights[t] = tf * idf[keys[t] >> 32]
            squares += weights[t] * weights[t]
        scale = 1.0 / math.sqrt(squares) if squares > 0.0 else 0.0
        for t in range(size):
            out_ids[out] = keys[t] >> 32
            out_values[out] = weights[t] * scale
            out += 1
        out_indptr[row + 1] = out
