"""Words of texts that features do not know: how many of every text, and which."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from longtail.text.lexicon import KnownTerms, Lexicon, cut_texts


class UnknownTerms(NamedTuple):
    """How many terms every text has, how many of them are not known, and the unknown ones by name.

    Terms are words, or pieces of words where features are made of those.
    """

    terms: np.ndarray  # int64 (n_texts,), a term that comes twice counts twice
    unknown: np.ndarray  # int64 (n_texts,)
    names: list[str]  # unknown terms, each once
    rows: np.ndarray  # int64 (n_names,), texts that have each


def find_unknown(texts: Sequence[str], known: KnownTerms, left_out: np.ndarray | None = None) -> UnknownTerms:
    """Return what of some texts is not among the known terms; columns that are `left_out` count as unknown too."""
    analysis = replace(known.analysis, ngrams=(1, 1)) if known.analysis.words else known.analysis
    lexicon = Lexicon(analysis)
    blocks = [lexicon.count(texts[block], grow=True) for block in cut_texts(texts)]
    sizes = np.concatenate([np.zeros(0, dtype=np.int64), *(np.diff(block.indptr) for block in blocks)])
    nodes = np.concatenate([np.zeros(0, dtype=np.int32), *(block.nodes for block in blocks)])
    counts = np.concatenate([np.zeros(0, dtype=np.int32), *(block.counts for block in blocks)])
    rows_with = np.bincount(nodes, minlength=lexicon.n_nodes)  # texts with each node, which has each at most once
    used = np.flatnonzero(rows_with).astype(np.int32)
    columns = known.columns_of(lexicon.strings(used))
    strange = columns < 0
    if left_out is not None:
        strange |= left_out[columns]
    is_strange = np.zeros(lexicon.n_nodes, dtype=bool)
    is_strange[used[strange]] = True
    row_of = np.repeat(np.arange(sizes.size), sizes)
    total = np.bincount(row_of, weights=counts, minlength=sizes.size).astype(np.int64)
    hit = is_strange[nodes]
    unknown = np.bincount(row_of[hit], weights=counts[hit], minlength=sizes.size).astype(np.int64)
    new = KnownTerms(lexicon.strings(used[strange]), analysis)
    new.learn_forms(new.forms_in(lexicon))  # a stem is called by its most frequent form
    return UnknownTerms(total, unknown, new.names, rows_with[used[strange]])
