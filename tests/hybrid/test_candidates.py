"""The lists of experts joined, and their scores looked up: as slow versions do it."""

import numpy as np
from plain_hybrid_kernels import joined

from longtail.hybrid.candidate_kernels import join_lists, look_up, products


def some_lists(seed=0, n=30, m=12, n_labels=20):
    return np.random.default_rng(seed).integers(-1, n_labels, size=(n, m)).astype(np.int32)


def test_lists_are_joined_without_repetition_and_without_forbidden_labels():
    lists, allowed = some_lists(), np.random.default_rng(1).random(20) < 0.7
    out = np.empty_like(lists)
    longest = join_lists(lists, allowed, out)
    expected = [joined(row, allowed) for row in lists]
    assert longest == max(map(len, expected))
    assert [[int(label) for label in row if label >= 0] for row in out] == expected


def test_scores_are_looked_up_and_missing_ones_filled():
    lists, allowed = some_lists(), np.ones(20, dtype=bool)
    candidates = np.empty_like(lists)
    join_lists(lists, allowed, candidates)
    ids = np.stack([np.random.default_rng(row).permutation(20)[:6] for row in range(30)]).astype(np.int32)
    ids[3, 2:] = -1
    scores = np.random.default_rng(2).normal(size=ids.shape).astype(np.float32)
    missing = np.linspace(-9, -5, 30).astype(np.float32)
    out, listed = np.empty(candidates.shape, dtype=np.float32), np.empty(candidates.shape, dtype=bool)
    look_up(candidates, ids, scores, missing, out, listed)
    for row in range(30):
        known = {int(i): s for i, s in zip(ids[row], scores[row], strict=True) if i >= 0}
        for at, label in enumerate(candidates[row].tolist()):
            if label >= 0:
                assert out[row, at] == known.get(label, missing[row]) and listed[row, at] == (label in known)


def test_products_are_those_of_numpy():
    rng = np.random.default_rng(0)
    queries, vectors = rng.normal(size=(4, 7)).astype(np.float32), rng.normal(size=(9, 7)).astype(np.float32)
    candidates = np.array([[0, 3, -1], [8, -1, -1], [1, 2, 5], [-1, -1, -1]], dtype=np.int32)
    out = np.empty(candidates.shape, dtype=np.float32)
    products(queries, candidates, vectors, out)
    expected = np.where(candidates >= 0, np.einsum("nw,nmw->nm", queries, vectors[candidates]), 0)
    np.testing.assert_allclose(out, expected, atol=1e-5)
