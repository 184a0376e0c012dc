"""Scores of a tree and products of vectors added up: the kernel against numpy."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from longtail.prime.sum_scores import blend_lists


def blend_lists_plain(
    rows: np.ndarray,
    vectors: np.ndarray,
    ids: np.ndarray,
    scores: np.ndarray,
    more: np.ndarray,
    known: np.ndarray,
    lowest: np.ndarray,
    trust: np.ndarray,
    share: float,
    start: float,
    slope: float,
    out_ids: np.ndarray,
    out_scores: np.ndarray,
) -> None:
    """Rank labels by both scores in numpy."""
    out_ids[:], out_scores[:] = -1, -np.inf
    for row in range(rows.shape[0]):
        listed = {int(label): score for label, score in zip(ids[row], scores[row], strict=True) if label >= 0}
        labels = np.array(sorted({*listed, *(int(label) for label in more[row] if label >= 0)}), dtype=np.int64)
        products = vectors[labels] @ rows[row]
        unknown = np.minimum(0.0, start + slope * products)
        base = [listed.get(int(m), lowest[row] if known[m] else u) for m, u in zip(labels, unknown, strict=True)]
        total = (trust[row] * np.array(base) + share * products).astype(np.float32)
        best = np.argsort(-total, kind="stable")[: out_ids.shape[1]]
        out_ids[row, : best.size], out_scores[row, : best.size] = labels[best], total[best]


LOWEST, TRUST = np.array([-3], np.float32), np.array([0.5], np.float32)


@settings(max_examples=80, deadline=None)
@given(
    st.integers(0, 2**31), st.integers(0, 5), st.integers(1, 9), st.integers(0, 4), st.integers(0, 5), st.integers(1, 8)
)
def test_blends_agree(seed, n_rows, n_labels, n_listed, n_more, k):
    rng = np.random.default_rng(seed)
    width = 3
    rows, vectors = (rng.integers(-2, 3, size=(n, width)).astype(np.float32) for n in (n_rows, n_labels))

    def lists(m):
        """Different labels in every row, some missing at the end."""
        out = np.full((n_rows, m), -1, dtype=np.int32)
        for row in range(n_rows):
            some = rng.permutation(n_labels)[: rng.integers(0, m + 1)]
            out[row, : some.size] = some
        return out

    ids, more = lists(n_listed), lists(n_more)
    scores = np.where(ids >= 0, -rng.integers(0, 4, size=ids.shape), -np.inf).astype(np.float32)
    lowest, trust = -rng.integers(3, 6, n_rows).astype(np.float32), rng.choice([0, 0.5, 1], n_rows).astype(np.float32)
    how = (rng.random(n_labels) < 0.7, lowest, trust, 2.0, -1.0, 0.5)
    blended, expected = ((np.empty((n_rows, k), np.int32), np.empty((n_rows, k), np.float32)) for _ in range(2))
    blend_lists(rows, vectors, ids, scores, more, *how, *blended)
    blend_lists_plain(rows, vectors, ids, scores, more, *how, *expected)
    for a, b in zip(blended, expected, strict=True):
        np.testing.assert_array_equal(a, b)


def test_what_stands_for_scores_that_are_missing():
    rows, vectors = np.ones((1, 1), np.float32), np.array([[0.1], [0.2], [0.5], [0.3]], np.float32)
    ids, scores = np.array([[0, 1]], np.int32), np.array([[-1.0, -3.0]], np.float32)
    out = np.empty((1, 5), np.int32), np.empty((1, 5), np.float32)
    more = np.array([[2, 3, 1]], np.int32)
    blend_lists(rows, vectors, ids, scores, more, np.arange(4) < 3, LOWEST, TRUST, 10.0, -4.0, 2.0, *out)
    # label 2 is known and not listed: the lowest, -3; label 3 is not known: -4 + 2 × 0.3
    assert out[0].tolist() == [[2, 3, 0, 1, -1]]
    expected = [5 - 3 / 2, 3 - (4 - 0.6) / 2, 1 - 1 / 2, 2 - 3 / 2]
    np.testing.assert_allclose(out[1][0, :4], expected, atol=1e-6)
