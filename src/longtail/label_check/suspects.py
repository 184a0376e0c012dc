"""Labels of rows that look wrong or missing: confident learning on the likeliest labels of every row.

Northcutt, Jiang and Chuang (2021), "Confident learning", in its form for label sets: every label is a question of its
own, answered yes or no. A label is expected on a row where its probability reaches the mean over rows that have it,
and not expected where its probability by the text stays below the mean over rows that do not. Only the likeliest
labels of a row have a probability above 0, so everything follows the labels given and the candidates, never rows ×
labels.

Pairs are ranked by more than the distance from these means, which puts labels first that no text shows. A wrong label
stands out where a row's other labels are well explained by its text: a row of which nothing is explained has an odd
text rather than wrong labels. A missing label is ranked by its probability.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import scipy.sparse as sp

from longtail.data import TopK, binary_hits

PRIOR_ROWS = 10.0  # a label's mean counts as many rows as it has, that of all labels as many as this
FLOOR = 0.01  # added to probabilities before they are divided: below this they say little


class Suspects(NamedTuple):
    """(row, label) pairs, the most suspect first."""

    rows: np.ndarray  # int64
    labels: np.ndarray  # int32
    probability: np.ndarray  # float64
    usual: np.ndarray  # float64
    suspicion: np.ndarray  # float64, falling


class Evidence(NamedTuple):
    """What out-of-fold probabilities say about labels."""

    given: np.ndarray  # float64 (nnz of Y): the probability of every label given, in the order of Y
    usual: np.ndarray  # float64 (n_labels): mean over rows with the label, shrunk
    background: np.ndarray  # float64 (n_labels): mean over rows without it


def given_probabilities(Y: sp.csr_array, top: TopK) -> np.ndarray:
    """Return the probability of every label given, 0 where it is not among the likeliest."""
    n_rows, n_labels = Y.shape
    hits = binary_hits(top, Y)
    row_of, _ = np.nonzero(hits)
    pair = row_of * np.int64(n_labels) + top.ids[hits]
    true = np.repeat(np.arange(n_rows, dtype=np.int64), np.diff(Y.indptr)) * n_labels + Y.indices
    given = np.zeros(Y.nnz)
    given[np.searchsorted(true, pair)] = top.scores[hits]
    return given


def weigh(Y: sp.csr_array, top: TopK, given: np.ndarray) -> Evidence:
    """Return the two means of every label, from the likeliest labels and the probability of every label given."""
    n_rows, n_labels = Y.shape
    hits = binary_hits(top, Y)
    counts = np.bincount(Y.indices, minlength=n_labels)
    sums = np.bincount(Y.indices, weights=given, minlength=n_labels)
    overall = given.mean() if given.size else 0.0
    usual = (sums + PRIOR_ROWS * overall) / (counts + PRIOR_ROWS)
    others = (top.ids >= 0) & ~hits
    rest = np.bincount(top.ids[others], weights=top.scores[others], minlength=n_labels)
    return Evidence(given, usual, rest / np.maximum(n_rows - counts, 1))


def unexplained(Y: sp.csr_array, top: TopK) -> np.ndarray:
    """Say of every label given whether its text makes it no likelier than on rows without it: bool (nnz of Y)."""
    evidence = weigh(Y, top, given_probabilities(Y, top))
    return evidence.given <= evidence.background[Y.indices]


def find_wrong(Y: sp.csr_array, evidence: Evidence, suspect: np.ndarray) -> Suspects:
    """Return the labels given that are less likely than usual; `suspect` says which of them can be wrong.

    Suspicion is the usual probability over that on this row, times the mean probability of the row's other labels.
    """
    lengths, given = np.diff(Y.indptr), evidence.given
    rows = np.repeat(np.arange(Y.shape[0], dtype=np.int64), lengths)
    sums = np.bincount(rows, weights=given, minlength=Y.shape[0])
    overall = given.mean() if given.size else 0.0
    # a label that stands alone is taken to have one other, of average probability
    others = (sums[rows] - given + overall) / lengths[rows]
    usual = evidence.usual[Y.indices]
    suspicion = others * (usual + FLOOR) / (given + FLOOR)
    at = np.flatnonzero(suspect & (given < usual))
    return _ranked(rows[at], Y.indices[at], given[at], usual[at], suspicion[at])


def find_missing(Y: sp.csr_array, top: TopK, evidence: Evidence) -> Suspects:
    """Return labels not given whose probability reaches what is usual on rows that have them, the likeliest first."""
    others = (top.ids >= 0) & ~binary_hits(top, Y)
    rows, _ = np.nonzero(others)
    labels, probability = top.ids[others], top.scores[others].astype(np.float64)
    at = np.flatnonzero(probability >= evidence.usual[labels])
    return _ranked(rows[at], labels[at], probability[at], evidence.usual[labels[at]], probability[at])


def recall_of_labels(Y: sp.csr_array, top: TopK) -> np.ndarray:
    """Return the share of every label's rows that get it among as many likely labels as they have labels."""
    hits = binary_hits(top, Y) & (np.arange(top.k)[None, :] < np.diff(Y.indptr)[:, None])
    right = np.bincount(top.ids[hits], minlength=Y.shape[1])
    return right / np.maximum(np.bincount(Y.indices, minlength=Y.shape[1]), 1)


def _ranked(
    rows: np.ndarray, labels: np.ndarray, probability: np.ndarray, usual: np.ndarray, suspicion: np.ndarray
) -> Suspects:
    """Return pairs by falling suspicion, equal ones by row and label."""
    order = np.lexsort((labels, rows, -suspicion))
    return Suspects(rows[order], labels[order], probability[order], usual[order], suspicion[order])
