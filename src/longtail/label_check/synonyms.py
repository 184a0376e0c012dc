"""Pairs of labels that may mean the same: the same name, or rows with the same words."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp

from longtail.kernels import njit
from longtail.text import pifa
from longtail.validate import Rows

WORDS_KEPT = 64  # of every label: its heaviest
LABELS_OF_WORD = 1000  # a word of more labels is not looked up: it finds labels at the cost of all pairs
NEIGHBOURS = 5  # of every label
ALIKE = 0.7  # least cosine
TOGETHER = 0.9  # share of the rarer label's rows that have the other too
FEWEST_ROWS = 3
SEPARATORS = re.compile(r"[\s_.,;:/-]+")  # not + and #: C, C++ and C# are three things


class Synonyms(NamedTuple):
    """Two labels that may mean the same."""

    first: int
    second: int
    cosine: float
    together: int
    expected: float
    reason: str  # "same name", "used together" or "used for each other"


def find_synonyms(X: Rows, Y: sp.csr_array, names: Sequence[str], n_jobs: int | None = None) -> list[Synonyms]:
    """Return pairs of labels with one name, or with alike words and rows shared nearly always or less than by chance.

    Labels that come together now and then have alike rows for that reason; such pairs are left out.
    """
    counts = np.bincount(Y.indices, minlength=Y.shape[1])
    Z = pifa(X, Y, keep=WORDS_KEPT, n_jobs=n_jobs)
    by_name = _same_names(names, counts)
    near = {pair: cosine for pair, cosine in _near_pairs(Z, counts).items() if pair not in by_name}
    by_label = Y.tocsc()
    by_label.sort_indices()
    found = []
    for pair in (*by_name, *near):
        a, b = pair
        rows_a, rows_b = (by_label.indices[by_label.indptr[i] : by_label.indptr[i + 1]] for i in pair)
        together = int(np.intersect1d(rows_a, rows_b, assume_unique=True).size)
        expected = float(counts[a]) * float(counts[b]) / Y.shape[0]
        reason = "same name" if pair in by_name else _reason(together, expected, int(min(counts[a], counts[b])))
        if reason:
            cosine = near[pair] if pair in near else _cosine(Z, a, b)
            found.append(Synonyms(a, b, cosine, together, expected, reason))
    return sorted(found, key=lambda s: (s.reason != "same name", -s.cosine, s.first, s.second))


def _reason(together: int, expected: float, fewest: int) -> str:
    """Return how two labels with alike words share rows: nearly always, less than by chance, or neither."""
    if together >= TOGETHER * fewest:
        return "used together"
    return "used for each other" if together <= expected else ""


def _same_names(names: Sequence[str], counts: np.ndarray) -> list[tuple[int, int]]:
    """Return labels in use whose names differ only in case, punctuation and spacing, with the first of their kind."""
    first: dict[str, int] = {}
    pairs = []
    for number in np.flatnonzero(counts).tolist():
        key = " ".join(SEPARATORS.split(unicodedata.normalize("NFKC", names[number]).casefold())).strip()
        if key and first.setdefault(key, number) != number:
            pairs.append((first[key], number))
    return pairs


def _near_pairs(Z: Rows, counts: np.ndarray) -> dict[tuple[int, int], float]:
    """Return pairs of labels with some rows whose vectors are alike: the nearest few of every label."""
    used = np.flatnonzero(counts >= FEWEST_ROWS)
    V = sp.csr_array(Z[used])
    kept = _telling_words(V)
    lookup = sp.csr_array(kept.T)  # labels of every word
    n = used.size
    ids, cosines = np.full((n, NEIGHBOURS), -1, np.int64), np.zeros((n, NEIGHBOURS), np.float32)
    pointers = [matrix.indptr.astype(np.int64, copy=False) for matrix in (V, kept, lookup)]
    nearest(
        *pointers,
        V.indices,
        V.data,
        kept.indices,
        lookup.indices,
        ALIKE,
        np.zeros(V.shape[1], np.float32),
        ids,
        cosines,
    )
    first, rank = np.nonzero(ids >= 0)
    out: dict[tuple[int, int], float] = {}
    for a, b, cosine in zip(
        used[first].tolist(), used[ids[first, rank]].tolist(), cosines[first, rank].tolist(), strict=True
    ):
        out[min(a, b), max(a, b)] = min(cosine, 1.0)
    return out


def _telling_words(V: sp.csr_array) -> sp.csr_array:
    """Return the vectors without their commonest words, as many as alike vectors cannot be alike by alone.

    Vectors with a cosine of at least `ALIKE` share a word beyond the commonest words of each whose length stays below
    it: a product with that part alone is no larger than its length. Words of more than `LABELS_OF_WORD` labels are
    left out too.
    """
    n_labels = np.bincount(V.indices, minlength=V.shape[1])
    rows = np.repeat(np.arange(V.shape[0]), np.diff(V.indptr))
    order = np.lexsort((V.indices, -n_labels[V.indices], rows))  # the commonest word of every label first
    squares = np.cumsum(V.data[order].astype(np.float64) ** 2)
    before = np.append(0.0, squares)[V.indptr[:-1]]
    telling = (squares - before[rows] >= ALIKE**2 - 1e-6) & (n_labels[V.indices[order]] <= LABELS_OF_WORD)
    at = order[telling]
    kept = sp.coo_array((V.data[at], (rows[at], V.indices[at])), shape=V.shape)
    return sp.csr_array(kept)


@njit(nogil=True, cache=True)
def nearest(
    indptr: np.ndarray,
    kept_indptr: np.ndarray,
    word_indptr: np.ndarray,
    words: np.ndarray,
    values: np.ndarray,
    kept_words: np.ndarray,
    word_labels: np.ndarray,
    least: float,
    total: np.ndarray,
    ids: np.ndarray,
    cosines: np.ndarray,
) -> None:
    """Fill in the nearest labels of every label, among those with which it shares a telling word, best first."""
    n, most = ids.shape
    seen = np.full(n, -1, np.int64)
    for a in range(n):
        for at in range(indptr[a], indptr[a + 1]):
            total[words[at]] = values[at]
        for kept_at in range(kept_indptr[a], kept_indptr[a + 1]):
            word = kept_words[kept_at]
            for label_at in range(word_indptr[word], word_indptr[word + 1]):
                b = word_labels[label_at]
                if b == a or seen[b] == a:
                    continue
                seen[b] = a
                cosine = np.float32(0.0)
                for at in range(indptr[b], indptr[b + 1]):
                    cosine += total[words[at]] * values[at]
                if cosine < least:
                    continue
                place = most
                while place > 0 and (
                    ids[a, place - 1] < 0
                    or cosines[a, place - 1] < cosine
                    or (cosines[a, place - 1] == cosine and ids[a, place - 1] > b)
                ):
                    place -= 1
                for later in range(most - 1, place, -1):
                    ids[a, later], cosines[a, later] = ids[a, later - 1], cosines[a, later - 1]
                if place < most:
                    ids[a, place], cosines[a, place] = b, cosine
        for at in range(indptr[a], indptr[a + 1]):
            total[words[at]] = 0.0


def _cosine(Z: Rows, a: int, b: int) -> float:
    """Return the cosine of two unit vectors."""
    first, second = sp.csr_array(Z[[a]]), sp.csr_array(Z[[b]])
    return min(float((first @ second.T).sum()), 1.0)
