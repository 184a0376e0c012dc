"""Learning from texts with labels: link rates of names in one pass, then weights of what is known of a candidate.

Rows are in five folds. The weights are learned from candidates whose link rates come from the other four folds, and
whose labels have rows in these, so that nothing is learned from the own row.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import scipy.sparse as sp

from longtail.kernels import run_tasks
from longtail.name_matches.candidates import Candidates, NameSearch
from longtail.name_matches.features import FEATURES, NOT_LEARNED, EntryFacts, candidate_features
from longtail.name_matches.find_kernel import ENTRY, LABEL, ROW
from longtail.name_matches.link_rates import N_CONTEXTS, Links, add_links, entry_traits, fit_means
from longtail.name_matches.logistic import fit_logistic, sigmoid
from longtail.name_matches.name_index import NameEntries, Terms, ambiguity
from longtail.text import cut_texts

MOST_EXAMPLES = 300_000  # candidates that weights are learned from
N_FOLDS = 5
LEAST_SPREAD = 0.02  # standard deviation below which a feature gets no weight
UNTRAINED_SHARE = 0.2  # of the labels that are shown a second time, as if they had no training rows
LINK_RATE = FEATURES.index("link rate")
WITHOUT_WEIGHT = [FEATURES.index(name) for name in NOT_LEARNED]
SURE = 1e-6  # means of link rates stay this far from 0 and 1


class Learned(NamedTuple):
    """What was learned from texts with labels."""

    n_rows: int
    strength: float  # rows that the mean link rate of entries alike counts for
    phrase_share: float  # of the rows that have the rarest stem of a name of several words, those that have the name
    no_match: float
    stem_rows: np.ndarray  # int64 (n_stems,), rows that have each stem
    entry_rows: np.ndarray  # int64 (n_entries,), rows that have each entry
    links: Links
    trait_weights: np.ndarray  # float64 (N_TRAITS,)
    feature_weights: np.ndarray  # float64 (len(FEATURES),)

    def with_entries(self, terms: Terms, old: NameEntries, more: NameEntries, n_stems: int) -> Learned:
        """Return this with further entries, of labels without training rows; how often they occur is guessed."""
        stem_rows = np.zeros(n_stems, dtype=np.int64)
        stem_rows[: self.stem_rows.size] = self.stem_rows
        rows = np.full(terms.size, -1, dtype=np.int64)
        np.maximum.at(rows, old.term, self.entry_rows)
        guess = rarest_stem_rows(terms, stem_rows) * np.where(terms.lengths > 1, self.phrase_share, 1.0)
        new_rows = np.where(rows < 0, np.rint(guess).astype(np.int64), rows)[more.term]
        none = np.zeros((more.size, N_CONTEXTS), dtype=np.int64)
        return self._replace(
            stem_rows=stem_rows,
            entry_rows=np.concatenate([self.entry_rows, new_rows]),
            links=Links(*(np.concatenate([counts, none]) for counts in self.links)),
        )

    def only(self, kept: np.ndarray) -> Learned:
        """Return this with some of the entries only."""
        links = Links(*(counts[kept] for counts in self.links))
        return self._replace(entry_rows=self.entry_rows[kept], links=links)


class _Sample(NamedTuple):
    """Candidates that are kept to learn from, of rows drawn at random."""

    columns: np.ndarray  # int32 (n, N_COLUMNS), with rows of the sample
    n_words: np.ndarray  # int32 (n_rows of the sample,)
    right: np.ndarray  # bool (n,)
    folds: np.ndarray  # int64 (n_rows of the sample,)


def entry_facts(terms: Terms, entries: NameEntries, has_rows: np.ndarray, learned: Learned) -> EntryFacts:
    """Return what is known of every entry; `has_rows` says which labels have training rows."""
    n_words, n_labels = terms.lengths[entries.term], ambiguity(terms, entries)
    mean = sigmoid(entry_traits(entries.kind, n_words, n_labels, learned.entry_rows) @ learned.trait_weights)
    rarity = np.log((learned.n_rows + 1) / (np.minimum(learned.entry_rows, learned.n_rows) + 1.0))
    return EntryFacts(
        entries.kind,
        n_words,
        n_labels,
        rarity,
        np.clip(mean, SURE, 1 - SURE),
        has_rows[entries.label],
        learned.strength,
        (learned.links.named.sum(axis=1), learned.links.carried.sum(axis=1)),
        learned.links,
    )


def learn(search: NameSearch, terms: Terms, texts: list[str], Y: sp.csr_array, seed: int, n_jobs: int) -> Learned:
    """Learn link rates and weights from texts and their labels."""
    entries, n_rows = search.entries, len(texts)
    draws = np.random.default_rng(seed).random(n_rows)
    of_folds, stem_rows, sample = _count(search, texts, Y, draws, n_jobs)
    links = Links(*(counts.sum(axis=0, dtype=np.int64) for counts in of_folds))
    n_words, entry_rows = terms.lengths[entries.term], links.named.sum(axis=1)
    has_rows = np.bincount(Y.indices, minlength=Y.shape[1]) > 0
    traits = entry_traits(entries.kind, n_words, ambiguity(terms, entries), entry_rows)
    elsewhere = _has_rows_elsewhere(Y, _folds(draws))
    named, carried = (
        (counts.sum(axis=2) * elsewhere[:, entries.label]).sum(axis=0) for counts in (of_folds.named, of_folds.carried)
    )
    weights, strength = fit_means(traits, named, carried)
    several = n_words > 1
    rarest = rarest_stem_rows(terms, stem_rows)[entries.term[several]].sum()
    share = min(1.0, float((entry_rows[several].sum() + 1) / (rarest + 1)))
    missed = Y.indices.size - int(links.carried.sum())
    unnamed = n_rows * float(Y.shape[1]) - int(links.named.sum())
    no_match = float(np.log(missed + 0.5) - np.log(unnamed - missed + 0.5))
    learned = Learned(n_rows, strength, share, no_match, stem_rows, entry_rows, links, weights, np.zeros(len(FEATURES)))
    facts = entry_facts(terms, entries, has_rows, learned)
    return learned._replace(
        feature_weights=_fit_weights(sample, of_folds, facts, elsewhere, np.random.default_rng(seed))
    )


def rarest_stem_rows(terms: Terms, stem_rows: np.ndarray) -> np.ndarray:
    """Return for each term in how many rows its rarest stem is."""
    if terms.size == 0:
        return np.zeros(0, dtype=np.int64)
    return np.minimum.reduceat(stem_rows[terms.stems], terms.starts[:-1])


def _count(
    search: NameSearch, texts: list[str], Y: sp.csr_array, draws: np.ndarray, n_jobs: int
) -> tuple[Links, np.ndarray, _Sample]:
    """Count links, fold by fold, and stems of all rows, and keep the candidates of some."""
    limit = 1.0
    n_stems, n_entries = search.words.n_stems, search.entries.size
    stem_rows = np.zeros(n_stems, dtype=np.int64)
    links = Links(*(np.zeros((N_FOLDS, n_entries, N_CONTEXTS), dtype=np.int32) for _ in range(2)))
    kept: list[tuple[np.ndarray, Candidates, np.ndarray]] = []  # draws of the rows, their candidates, right or not

    def look(block: slice) -> tuple[slice, Candidates, tuple[np.ndarray, np.ndarray]]:
        content = search.content(texts[block])
        return block, search.candidates(content), _rows_with(content.stems, content.ends, n_stems)

    todo = list(cut_texts(texts))
    for at in range(0, len(todo), 4 * n_jobs):
        for block, candidates, rows_with in run_tasks(look, todo[at : at + 4 * n_jobs], n_jobs):
            stem_rows[rows_with[0]] += rows_with[1]
            right = _is_label(candidates.columns, Y, block.start)
            add_links(links, candidates.columns, right, _folds(draws[block])[candidates.columns[:, ROW]])
            kept.append(_thinned(draws[block], candidates, right, limit))
        while sum(right.size for _, _, right in kept) > MOST_EXAMPLES:
            limit *= 0.75
            kept = [_thinned(*part, limit) for part in kept]
    return links, stem_rows, _joined(kept)


def _has_rows_elsewhere(Y: sp.csr_array, folds: np.ndarray) -> np.ndarray:
    """Say which labels have rows outside each fold: bool (N_FOLDS, n_labels)."""
    key = np.repeat(folds, np.diff(Y.indptr)) * Y.shape[1] + Y.indices
    inside = np.bincount(key, minlength=N_FOLDS * Y.shape[1]).reshape(N_FOLDS, Y.shape[1])
    return inside.sum(axis=0) > inside


def _rows_with(stems: np.ndarray, ends: np.ndarray, n_stems: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the stems of some rows, and in how many of the rows each is."""
    row = np.repeat(np.arange(ends.size, dtype=np.int64), np.diff(ends, prepend=0))
    known = stems >= 0
    pairs = np.unique(row[known] * n_stems + stems[known])
    return np.unique(pairs % max(n_stems, 1), return_counts=True)


def _is_label(columns: np.ndarray, Y: sp.csr_array, first: int) -> np.ndarray:
    """Say which candidates are labels of their rows, which are counted from row `first` of Y."""
    if not columns.size or not Y.indices.size:
        return np.zeros(len(columns), dtype=bool)
    last = first + int(columns[:, ROW].max()) + 1
    indptr = np.asarray(Y.indptr[first : last + 1], dtype=np.int64)
    width = np.int64(Y.shape[1])
    row = np.repeat(np.arange(last - first, dtype=np.int64), np.diff(indptr))
    true = row * width + Y.indices[indptr[0] : indptr[-1]]  # sorted, since Y is canonical
    wanted = columns[:, ROW] * width + columns[:, LABEL]
    if not true.size:
        return np.zeros(wanted.size, dtype=bool)
    return true[np.minimum(np.searchsorted(true, wanted), true.size - 1)] == wanted


def _thinned(
    draws: np.ndarray, candidates: Candidates, right: np.ndarray, limit: float
) -> tuple[np.ndarray, Candidates, np.ndarray]:
    """Return the candidates of the rows whose draws are below a limit, with new numbers of rows."""
    if limit >= 1.0:
        return draws, candidates, right
    rows = draws < limit
    keep = rows[candidates.columns[:, ROW]]
    columns = candidates.columns[keep]
    columns[:, ROW] = (np.cumsum(rows) - 1)[columns[:, ROW]]
    return draws[rows], Candidates(columns, candidates.n_words[rows]), right[keep]


def _joined(parts: list[tuple[np.ndarray, Candidates, np.ndarray]]) -> _Sample:
    """Return the candidates of consecutive blocks as one."""
    sizes = np.cumsum([0] + [candidates.n_words.size for _, candidates, _ in parts])
    columns = [candidates.columns.copy() for _, candidates, _ in parts]
    for part, first in zip(columns, sizes.tolist(), strict=False):
        part[:, ROW] += first
    return _Sample(
        np.concatenate(columns),
        np.concatenate([candidates.n_words for _, candidates, _ in parts]),
        np.concatenate([right for _, _, right in parts]),
        _folds(np.concatenate([draws for draws, _, _ in parts])),
    )


def _folds(draws: np.ndarray) -> np.ndarray:
    """Return the fold of each row, from a number between 0 and 1 that does not depend on which rows are kept."""
    return (draws * 2**20).astype(np.int64) % N_FOLDS


def _fit_weights(
    sample: _Sample, of_folds: Links, facts: EntryFacts, elsewhere: np.ndarray, random: np.random.Generator
) -> np.ndarray:
    """Return the weights of the features.

    Examples are candidates whose labels have rows `elsewhere`, in other folds. Some labels come twice, the second time
    as if they had no rows, so that labels without rows are judged as they should be. A small ridge draws towards the
    link rate alone.
    """
    labels, folds, entries = sample.columns[:, LABEL], sample.folds[sample.columns[:, ROW]], sample.columns[:, ENTRY]
    untrained = (random.random(size=elsewhere.shape[1:]) < UNTRAINED_SHARE)[labels]
    used = elsewhere[folds, labels]
    weights = np.zeros(len(FEATURES))
    weights[LINK_RATE] = 1.0
    if not used.any():
        return weights
    seen = Links(of_folds.named[folds, entries], of_folds.carried[folds, entries])
    once = candidate_features(sample.columns, sample.n_words, facts, seen)[used]
    again = candidate_features(sample.columns, sample.n_words, facts, seen, untrained)[used & untrained]
    X = np.concatenate([once, again])
    y = np.concatenate([sample.right[used], sample.right[used & untrained]]).astype(np.float64)
    mean, scale = X.mean(axis=0), X.std(axis=0)
    mean[0], scale[0] = 0.0, 1.0
    scale[scale < LEAST_SPREAD] = np.inf
    scale[WITHOUT_WEIGHT] = np.inf
    centre = np.zeros(weights.size)
    centre[0] = mean[LINK_RATE]
    centre[LINK_RATE] = scale[LINK_RATE] if np.isfinite(scale[LINK_RATE]) else 0.0
    learned = fit_logistic((X - mean) / scale, y, centre=centre) / scale
    learned[0] -= mean[1:] @ learned[1:]
    return learned
