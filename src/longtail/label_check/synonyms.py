"""Pairs of labels that may mean the same: the same name, or rows with the same words."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp

from longtail.kernels import blocks
from longtail.text import pifa
from longtail.validate import Rows

WORDS_KEPT = 64  # of every label: its heaviest
LABELS_AT_ONCE = 512
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
    """Return pairs of labels with some rows whose vectors are alike, by block: the nearest few of every label."""
    used = np.flatnonzero(counts >= FEWEST_ROWS)
    V = Z[used]
    out: dict[tuple[int, int], float] = {}
    for at in blocks(used.size, LABELS_AT_ONCE):
        product = sp.coo_array(sp.csr_array(V[at]) @ sp.csr_array(V).T)
        keep = (product.data >= ALIKE) & (product.row + at.start != product.col)
        row, col, value = product.row[keep], product.col[keep], product.data[keep]
        order = np.lexsort((col, -value, row))
        row, col, value = row[order], col[order], value[order]
        few = np.arange(row.size) - np.searchsorted(row, row) < NEIGHBOURS
        firsts, seconds = used[row[few] + at.start].tolist(), used[col[few]].tolist()
        for a, b, cosine in zip(firsts, seconds, value[few].tolist(), strict=True):
            out[min(a, b), max(a, b)] = min(cosine, 1.0)
    return out


def _cosine(Z: Rows, a: int, b: int) -> float:
    """Return the cosine of two unit vectors."""
    first, second = sp.csr_array(Z[[a]]), sp.csr_array(Z[[b]])
    return min(float((first @ second.T).sum()), 1.0)
