"""Count the n-grams of many texts, each thread a share of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from longtail.kernels import njit, run_tasks
from longtail.text.lexicon import Analysis, Lexicon, NgramCounts, cut_texts
from longtail.text.word_table import grown

BLOCKS_PER_SHARE = 16  # a thread with less to do costs more than it saves: its lexicon has to be merged


class CountedTexts(NamedTuple):
    """The n-grams of a collection, in how many texts each is and how often it occurs."""

    lexicon: Lexicon
    documents: np.ndarray  # int64 (n_nodes,)
    totals: np.ndarray  # int64 (n_nodes,)
    blocks: list[NgramCounts]  # all counts, if they were to be kept


def count_texts(texts: Sequence[str], analysis: Analysis, n_jobs: int, *, keep: bool) -> CountedTexts:
    """Count the n-grams of texts; nodes are numbered in no particular order, so name them before using them.

    Each thread counts a run of texts into a lexicon of its own; the lexicons are then merged into the first.
    """
    todo = list(cut_texts(texts))
    n_shares = max(1, min(n_jobs, len(todo) // BLOCKS_PER_SHARE))
    shares = [todo[len(todo) * s // n_shares : len(todo) * (s + 1) // n_shares] for s in range(n_shares)]
    parts = run_tasks(lambda share: _count_share(texts, analysis, share, keep), shares, n_jobs)
    while len(parts) > 1:
        parts[0] = merge_counts(parts[0], parts.pop(1))
    return parts[0]


def _count_share(texts: Sequence[str], analysis: Analysis, share: Sequence[slice], keep: bool) -> CountedTexts:
    lexicon = Lexicon(analysis)
    documents, totals = np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64)
    kept: list[NgramCounts] = []
    for block in share:
        counted = lexicon.count(texts[block], grow=True)
        documents, totals = grown(documents, lexicon.n_nodes), grown(totals, lexicon.n_nodes)
        add_counts(counted.nodes, counted.counts, documents, totals)
        if keep:
            kept.append(NgramCounts(counted.indptr, counted.nodes.copy(), counted.counts.copy()))
    return CountedTexts(lexicon, documents[: lexicon.n_nodes], totals[: lexicon.n_nodes], kept)


def merge_counts(into: CountedTexts, other: CountedTexts) -> CountedTexts:
    """Add the counts of other texts to those of the first, whose lexicon takes on the new n-grams."""
    if into.lexicon.forms is not None and other.lexicon.forms is not None:
        into.lexicon.forms.add(other.lexicon.forms)
    node = into.lexicon.add(other.lexicon.strings(np.arange(other.lexicon.n_nodes, dtype=np.int32)))
    n_nodes = into.lexicon.n_nodes
    documents, totals = grown(into.documents, n_nodes)[:n_nodes], grown(into.totals, n_nodes)[:n_nodes]
    documents[node] += other.documents  # each n-gram of the other has its own node
    totals[node] += other.totals
    kept = [NgramCounts(c.indptr, node[c.nodes], c.counts) for c in other.blocks]
    return CountedTexts(into.lexicon, documents, totals, into.blocks + kept)


@njit(nogil=True, cache=True)
def add_counts(
    nodes: np.ndarray,  # IN      distinct within a document      (nnz,) int32
    counts: np.ndarray,  # IN      how often                       (nnz,) int32
    documents: np.ndarray,  # IN/OUT  documents that have the node    (>= n_nodes,) int64
    totals: np.ndarray,  # IN/OUT  occurrences of the node         (>= n_nodes,) int64
) -> None:
    """Add the counts of some documents to the running totals of every n-gram."""
    for t in range(nodes.size):
        documents[nodes[t]] += 1
        totals[nodes[t]] += counts[t]
