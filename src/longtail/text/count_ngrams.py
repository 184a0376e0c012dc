"""Counting the n-grams of many texts on several threads, and weighing the counts into rows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp

from longtail.kernels import run_tasks
from longtail.text.lexicon import Analysis, Counts, Lexicon, blocks, grown
from longtail.text.weigh_counts import tally, tfidf_rows
from longtail.validate import make_csr

BLOCKS_PER_SHARE = 16  # a thread with less to do costs more than it saves: its lexicon has to be merged


class Counted(NamedTuple):
    """What counting a collection gives: every n-gram, in how many texts it is and how often it occurs."""

    lexicon: Lexicon
    documents: np.ndarray  # int64 (n_nodes,)
    totals: np.ndarray  # int64 (n_nodes,)
    blocks: list[Counts]  # all counts, if they were to be kept


class Rows(NamedTuple):
    """Some rows as the arrays of a CSR matrix."""

    indptr: np.ndarray  # int64 (n_rows + 1,)
    ids: np.ndarray  # int32
    values: np.ndarray  # float32


def count_texts(texts: Sequence[str], analysis: Analysis, n_jobs: int, *, keep: bool) -> Counted:
    """Count the n-grams of texts; nodes are numbered in no particular order, so name them before using them.

    Each thread counts a run of texts into a lexicon of its own; the lexicons are then merged into the first.
    """
    todo = list(blocks(texts))
    n_shares = max(1, min(n_jobs, len(todo) // BLOCKS_PER_SHARE))
    shares = [todo[len(todo) * s // n_shares : len(todo) * (s + 1) // n_shares] for s in range(n_shares)]
    parts = run_tasks(lambda share: _count_share(texts, analysis, share, keep), shares, n_jobs)
    while len(parts) > 1:
        parts[0] = _merged(parts[0], parts.pop(1))
    return parts[0]


def weigh(counts: Counts, column: np.ndarray, idf: np.ndarray, sublinear: bool) -> Rows:
    """Turn counts into TF-IDF rows of unit length; `column` says where each node goes, -1 that it is left out."""
    indptr = np.empty_like(counts.indptr)
    ids, values = np.empty(counts.nodes.size, dtype=np.int32), np.empty(counts.nodes.size, dtype=np.float32)
    tfidf_rows(*counts, column, idf, sublinear, indptr, ids, values)
    return Rows(indptr, ids[: indptr[-1]], values[: indptr[-1]])


def stack(rows: Sequence[Rows], n_columns: int) -> sp.csr_array:
    """Put blocks of rows below each other."""
    if len(rows) == 1:
        indptr, ids, values = rows[0]
    else:
        sizes = [np.diff(block.indptr) for block in rows]
        indptr = np.concatenate([np.zeros(1, dtype=np.int64), *sizes]).cumsum()
        ids = np.concatenate([np.empty(0, dtype=np.int32), *(block.ids for block in rows)])
        values = np.concatenate([np.empty(0, dtype=np.float32), *(block.values for block in rows)])
    return make_csr(indptr, ids, values, n_columns)


def _count_share(texts: Sequence[str], analysis: Analysis, share: Sequence[slice], keep: bool) -> Counted:
    lexicon = Lexicon(analysis)
    documents, totals = np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64)
    kept: list[Counts] = []
    for block in share:
        found = lexicon.count(texts[block], grow=True)
        documents, totals = grown(documents, lexicon.n_nodes), grown(totals, lexicon.n_nodes)
        tally(found.nodes, found.counts, documents, totals)
        if keep:
            kept.append(Counts(found.indptr, found.nodes.copy(), found.counts.copy()))
    return Counted(lexicon, documents[: lexicon.n_nodes], totals[: lexicon.n_nodes], kept)


def _merged(into: Counted, other: Counted) -> Counted:
    node = into.lexicon.add(other.lexicon.strings(np.arange(other.lexicon.n_nodes, dtype=np.int32)))
    n_nodes = into.lexicon.n_nodes
    documents, totals = grown(into.documents, n_nodes)[:n_nodes], grown(into.totals, n_nodes)[:n_nodes]
    documents[node] += other.documents  # each n-gram of the other has its own node
    totals[node] += other.totals
    kept = [Counts(c.indptr, node[c.nodes], c.counts) for c in other.blocks]
    return Counted(into.lexicon, documents, totals, into.blocks + kept)
