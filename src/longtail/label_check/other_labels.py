"""Probabilities of labels that also follow from a row's other labels.

A text alone does not say all: who calls a row `role::devel-lib` seldom leaves out `devel::library`. So the candidates
of every row are judged once more by gradient-boosted trees, which learn from all rows whether a candidate was given,
from its score by the text, how often it comes with the row's other labels, and how likely it usually is. Counts are
those of the other folds, so a row never speaks for itself. A better score, and labels that come together more often,
can only raise a probability; labels that exclude each other lower none, or a wrong label would hide the right one.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import scipy.sparse as sp
from threadpoolctl import threadpool_limits

from longtail.data import TopK, binary_hits
from longtail.kernels import blocks, njit
from longtail.label_check.folds import OutOfFold
from longtail.label_check.suspects import PRIOR_ROWS, given_probabilities
from longtail.model import Stages

if TYPE_CHECKING:
    from sklearn.ensemble import HistGradientBoostingClassifier

ROWS_LEARNED = 6000  # rows whose candidates are learned from
ROWS_AT_ONCE = 8192
FEWEST_HITS = 200  # candidates that were given; with fewer there is too little to learn from
LONGEST = 100  # rows with more labels do not count for what comes together
PRIOR_COUNT = 5.0  # a share of rows with a label counts as many rows as there are, that of all rows as many as this
SMALLEST_SHARE = 1e-4
RISING = [1, 1, 1, 1, 0]  # features that can only raise a probability: the score, and what comes together
ROUNDS = 50


class LabelProbabilities(NamedTuple):
    """Probabilities by a row's text and its other labels."""

    top: TopK  # of the candidates
    given: np.ndarray  # float64 (nnz of Y): of every label given, in the order of Y


class _Fold(NamedTuple):
    """The rows of one fold, and what those of all others say about labels."""

    rows: np.ndarray  # of this fold
    counts: np.ndarray  # rows with each label
    together: sp.csr_array  # rows with both of two labels
    share: np.ndarray  # of rows with each label
    usual: np.ndarray  # mean probability over rows with the label, drawn to that of all where they are few


class _Pairs(NamedTuple):
    """(row, label) pairs of some rows: the candidates, then the labels given that are none."""

    rows: np.ndarray  # int64
    labels: np.ndarray  # int32
    scores: np.ndarray  # float64
    given_at: np.ndarray  # int64: where the label stands in Y; -1 for a label that is not given
    candidates: int


def with_other_labels(
    Y: sp.csr_array, found: OutOfFold, seed: int, progress: Stages | None = None
) -> LabelProbabilities:
    """Return the probabilities of every row's candidates and of the labels given, by its text and its other labels."""
    own, ids = given_probabilities(Y, found.top), found.top.ids
    hits = binary_hits(found.top, Y)
    if hits.sum() < FEWEST_HITS or hits[ids >= 0].all():
        return LabelProbabilities(found.top, own)
    probabilities, given = np.full(ids.shape, -np.inf, np.float32), own.copy()
    with threadpool_limits(1, user_api="openmp"):  # steps this small are far slower on threads that wait for a core
        model = _learn(Y, found, own, seed)
        for number, fold in enumerate(_folds(Y, found, own)):
            if progress is not None:
                progress("Weighing the other labels", number, found.n_folds)
            for at in blocks(fold.rows.size, ROWS_AT_ONCE):
                rows = fold.rows[at]
                pairs = _pairs(Y, found, rows)
                judged = model.predict_proba(_features(Y, fold, pairs))[:, 1]
                filled = np.full((rows.size, ids.shape[1]), -np.inf, np.float32)
                filled[ids[rows] >= 0] = judged[: pairs.candidates]
                probabilities[rows] = filled
                is_given = pairs.given_at >= 0
                given[pairs.given_at[is_given]] = judged[is_given]
    if progress is not None:
        progress("Weighing the other labels", found.n_folds, found.n_folds)
    order = np.argsort(-probabilities, axis=1, kind="stable")
    return LabelProbabilities(
        TopK(np.take_along_axis(ids, order, 1), np.take_along_axis(probabilities, order, 1)), given
    )


def _learn(Y: sp.csr_array, found: OutOfFold, own: np.ndarray, seed: int) -> HistGradientBoostingClassifier:
    """Return a model of whether a candidate was given, learned from the candidates of some rows."""
    from sklearn.ensemble import HistGradientBoostingClassifier

    chosen = np.zeros(Y.shape[0], np.bool_)
    chosen[np.random.default_rng(seed).permutation(Y.shape[0])[:ROWS_LEARNED]] = True
    features, answers = [], []
    for fold in _folds(Y, found, own):
        pairs = _pairs(Y, found, fold.rows[chosen[fold.rows]])
        features.append(_features(Y, fold, pairs)[: pairs.candidates])
        answers.append(pairs.given_at[: pairs.candidates] >= 0)
    model = HistGradientBoostingClassifier(
        max_iter=ROUNDS, monotonic_cst=RISING, early_stopping=False, random_state=seed
    )
    return model.fit(np.concatenate(features), np.concatenate(answers))


def _folds(Y: sp.csr_array, found: OutOfFold, own: np.ndarray) -> Iterator[_Fold]:
    """Yield every fold with what the rows of all others say."""
    n_labels, lengths = Y.shape[1], np.diff(Y.indptr)
    overall = own.mean() if own.size else 0.0
    for number in range(found.n_folds):
        others = found.fold != number
        of_others = np.repeat(others, lengths)
        counts = np.bincount(Y.indices[of_others], minlength=n_labels)
        sums = np.bincount(Y.indices[of_others], weights=own[of_others], minlength=n_labels)
        short = sp.csr_array(Y[others & (lengths <= LONGEST)], copy=True)
        short.data[:] = 1.0
        together = sp.csr_array(short.T @ short)
        together.sort_indices()
        usual = (sums + PRIOR_ROWS * overall) / (counts + PRIOR_ROWS)
        yield _Fold(np.flatnonzero(~others), together.diagonal(), together, counts / max(int(others.sum()), 1), usual)


def _pairs(Y: sp.csr_array, found: OutOfFold, rows: np.ndarray) -> _Pairs:
    """Return the pairs of some rows; a label given that is no candidate stands below all that are."""
    n_labels = np.int64(Y.shape[1])
    ids, scores = found.scores.ids[rows], found.scores.scores[rows].astype(np.float64)
    listed = ids >= 0
    last = np.where(listed, scores, np.inf).min(axis=1) - 1.0
    last[~listed.any(axis=1)] = scores[listed].min() - 1.0 if listed.any() else 0.0
    candidate_rows = np.repeat(rows.astype(np.int64), listed.sum(axis=1))
    keys = candidate_rows * n_labels + ids[listed]
    lengths = np.diff(Y.indptr)[rows]
    ends = np.cumsum(lengths)
    at = np.repeat(Y.indptr[rows] - ends + lengths, lengths) + np.arange(int(lengths.sum()))
    true = np.repeat(rows.astype(np.int64), lengths) * n_labels + Y.indices[at]
    order = np.argsort(true)
    position = np.minimum(np.searchsorted(true, keys, sorter=order), max(true.size - 1, 0))
    given_at = np.full(keys.size, -1, np.int64)
    if true.size:
        hit = true[order[position]] == keys
        given_at[hit] = at[order[position[hit]]]
    beyond = ~np.isin(at, given_at)
    return _Pairs(
        np.concatenate([candidate_rows, true[beyond] // n_labels]),
        np.concatenate([ids[listed], Y.indices[at[beyond]]]).astype(np.int32),
        np.concatenate([scores[listed], np.repeat(last, lengths)[beyond]]),
        np.concatenate([given_at, at[beyond]]),
        keys.size,
    )


def _features(Y: sp.csr_array, fold: _Fold, pairs: _Pairs) -> np.ndarray:
    """Return what is known of every pair: five numbers, in the order of `RISING`."""
    out = np.empty((pairs.rows.size, len(RISING)))
    out[:, 0] = pairs.scores
    together = fold.together
    co_occurrence(
        pairs.rows,
        pairs.labels,
        Y.indptr.astype(np.int64, copy=False),
        Y.indices,
        together.indptr.astype(np.int64, copy=False),
        together.indices,
        together.data,
        fold.counts,
        fold.share,
        out[:, 1:4],
    )
    out[:, 4] = fold.usual[pairs.labels]
    return out


@njit(nogil=True, cache=True)
def co_occurrence(
    rows: np.ndarray,
    labels: np.ndarray,
    indptr: np.ndarray,
    ids: np.ndarray,
    co_indptr: np.ndarray,
    co_ids: np.ndarray,
    co_counts: np.ndarray,
    counts: np.ndarray,
    share: np.ndarray,
    out: np.ndarray,
) -> None:
    """Tell of every pair how often its label comes with the row's other labels.

    Of the shares of rows with each of these that have the label too: the logarithms of the largest and of the mean, and
    the sum of the logarithms of how many times more often that is than in all rows.
    """
    for i in range(rows.size):
        label, largest, total, lift, others = labels[i], 0.0, 0.0, 0.0, 0
        for at in range(indptr[rows[i]], indptr[rows[i] + 1]):
            other = ids[at]
            if other == label:
                continue
            low, end = co_indptr[other], co_indptr[other + 1]
            high = end
            while low < high:
                middle = (low + high) // 2
                if co_ids[middle] < label:
                    low = middle + 1
                else:
                    high = middle
            both = co_counts[low] if low < end and co_ids[low] == label else 0.0
            with_other = (both + PRIOR_COUNT * share[label]) / (counts[other] + PRIOR_COUNT)
            with_other = max(with_other, share[label])
            largest = max(largest, with_other)
            total += with_other
            lift += np.log((with_other + 1e-6) / (share[label] + 1e-6))
            others += 1
        if others == 0:  # then it is as likely as in all rows: that there are none must not tell that it was given
            largest, total, others = share[label], share[label], 1
        out[i, 0] = np.log(largest + SMALLEST_SHARE)
        out[i, 1] = np.log(total / others + SMALLEST_SHARE)
        out[i, 2] = min(max(lift, -20.0), 20.0)
