"""Count the n-grams of texts that come block by block, in memory that has a limit.

While there are few enough n-grams, the counts are those of all texts at once. When there are more, the rarest so far
are dropped and counted from zero if they come again (lossy counting): a count is then too low by at most the sum of the
cuts, and what is frequent is never dropped. What is dropped depends on the texts and their order alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np

from longtail.errors import DataError
from longtail.text.count_ngrams import CountedTexts, count_texts, merge_counts
from longtail.text.lexicon import Analysis, Lexicon

KEPT_AT_A_CUT = 0.5  # of the most that may be held, so that cuts are rare


class CountedBlocks(NamedTuple):
    """The n-grams of all blocks."""

    counted: CountedTexts
    n_texts: int
    missed: int  # rows by which a count may be too low


def count_blocks(
    blocks: Iterable[Sequence[str]], analysis: Analysis, n_jobs: int, most_terms: int | None
) -> CountedBlocks:
    """Count the n-grams of blocks of texts, holding at most `most_terms` of them between two blocks."""
    total: CountedTexts | None = None
    n_texts = missed = 0
    for texts in blocks:
        n_texts += len(texts)
        part = count_texts(texts, analysis, n_jobs, keep=False)
        total = part if total is None else merge_counts(total, part)
        if most_terms is not None and total.lexicon.n_nodes > most_terms:
            total, cut = without_rarest(total, most_terms)
            missed += cut
    if total is None:
        raise DataError(input="texts", problem="must hold at least one text; got none.")
    return CountedBlocks(total, n_texts, missed)


def without_rarest(counted: CountedTexts, most_terms: int) -> tuple[CountedTexts, int]:
    """Drop the n-grams in the fewest texts until half of the most are left; return in how many texts those were."""
    documents, lexicon = counted.documents, counted.lexicon
    times = np.bincount(np.minimum(documents, most_terms))
    left = times.sum() - np.cumsum(times)  # that are in more texts than so many
    cut = int(np.argmax(left <= KEPT_AT_A_CUT * most_terms))
    kept = np.flatnonzero(documents > cut).astype(np.int32)
    smaller = Lexicon(lexicon.analysis)
    if smaller.forms is not None and lexicon.forms is not None:
        smaller.forms.add(lexicon.forms)
    node = smaller.add(lexicon.strings(kept))
    fewer, totals = np.zeros(smaller.n_nodes, dtype=np.int64), np.zeros(smaller.n_nodes, dtype=np.int64)
    fewer[node], totals[node] = documents[kept], counted.totals[kept]
    return CountedTexts(smaller, fewer, totals, []), cut
