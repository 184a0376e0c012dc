"""Choosing and filling places, and merging lists: the compiled kernels agree with their plain twins."""

import numpy as np
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from longtail.tree.merge_lists import merge_lists, merge_lists_plain
from longtail.tree.overlap_kernels import (
    best_places,
    best_places_plain,
    choose_places,
    choose_places_plain,
    fill_places,
    fill_places_plain,
)


def zero_one(rng, shape, share):
    return sp.csr_array((rng.random(shape) < share).astype(np.float32))


@settings(max_examples=100, deadline=None)
@given(st.integers(0, 10**6), st.integers(1, 40), st.integers(1, 12), st.integers(1, 9), st.integers(1, 4))
def test_places_are_chosen_alike(seed, n_rows, n_labels, n_clusters, most):
    rng = np.random.default_rng(seed)
    Y, M = sp.csc_array(zero_one(rng, (n_rows, n_labels), 0.3)), zero_one(rng, (n_rows, n_clusters), 0.4)
    first = zero_one(rng, (n_labels, n_clusters), 0.1)
    start, least, share = int(rng.integers(0, n_labels)), int(rng.integers(1, 4)), float(rng.choice([0, 0.3]))
    found = []
    for kernel in (choose_places, choose_places_plain):
        counts, taken = np.zeros(n_clusters, np.int64), np.zeros(n_clusters, np.bool_)
        ids, gains = np.zeros((n_labels - start, most), np.int32), np.zeros((n_labels - start, most), np.int64)
        kernel(
            Y.indptr.astype(np.int64),
            Y.indices.astype(np.int32),
            M.indptr.astype(np.int64),
            M.indices,
            first.indptr.astype(np.int64),
            first.indices,
            start,
            n_labels,
            least,
            share,
            counts,
            taken,
            np.zeros(n_rows, np.bool_),
            ids,
            gains,
        )
        assert not counts.any() and not taken.any()
        found.append((ids.tolist(), gains.tolist()))
    assert found[0] == found[1]


@settings(max_examples=100, deadline=None)
@given(st.integers(0, 10**6), st.integers(0, 60))
def test_places_are_filled_alike(seed, n):
    rng = np.random.default_rng(seed)
    labels, clusters = rng.integers(0, 9, n).astype(np.int32), rng.integers(0, 5, n).astype(np.int32)
    counts, held = np.sort(rng.integers(0, 9, n))[::-1].copy(), rng.random(n) < 0.1
    limits = int(rng.integers(1, 4)), int(rng.integers(0, 4)), float(rng.choice([3, 7.5, np.inf]))
    found = [
        kernel(labels, clusters, counts, held, *limits, np.zeros(9, np.int64), np.zeros(5, np.int64)).tolist()
        for kernel in (fill_places, fill_places_plain)
    ]
    assert found[0] == found[1]


@settings(max_examples=100, deadline=None)
@given(st.integers(0, 10**6), st.integers(1, 20), st.integers(1, 8), st.integers(1, 6), st.integers(1, 4))
def test_places_of_rows_are_chosen_alike(seed, n_rows, n_labels, n_leaves, width):
    rng = np.random.default_rng(seed)
    Y = zero_one(rng, (n_rows, n_labels), 0.4)
    stands = rng.random((n_leaves, n_labels)) < 0.3
    stands[rng.integers(0, n_leaves, n_labels), np.arange(n_labels)] = True  # every label has a place
    leaf_of, labels = (a.astype(np.int32) for a in np.nonzero(stands))
    place_ids = np.argsort(labels, kind="stable").astype(np.int32)
    place_indptr = np.concatenate([[0], np.cumsum(np.bincount(labels, minlength=n_labels))])
    nodes = np.argsort(rng.random((n_rows, max(n_leaves, width))), axis=1)[:, :width].astype(np.int32)
    nodes[(nodes >= n_leaves) | (rng.random(nodes.shape) < 0.3)] = -1
    scores = -rng.integers(0, 3, nodes.shape).astype(np.float32)  # ties are common
    usual, start = rng.integers(0, 3, leaf_of.size), int(rng.integers(0, n_rows))
    found = []
    for kernel in (best_places, best_places_plain):
        there, chosen = np.zeros(Y.nnz, np.bool_), np.full(Y.nnz, -1, np.int32)
        kernel(
            Y.indptr.astype(np.int64),
            Y.indices,
            place_indptr,
            place_ids,
            leaf_of,
            nodes,
            scores,
            start,
            n_rows,
            usual,
            there,
            chosen,
        )
        found.append((there.tolist(), chosen.tolist()))
    assert found[0] == found[1]


@settings(max_examples=100, deadline=None)
@given(st.integers(0, 10**6), st.integers(1, 12), st.integers(1, 8), st.integers(0, 3))
def test_lists_are_merged_alike(seed, m, k, shares):
    rng = np.random.default_rng(seed)
    ids = rng.integers(-1, 5, (6, m)).astype(np.int32)
    scores = np.where(ids < 0, -np.inf, rng.choice([-0.5, -1, -2, -200], (6, m))).astype(np.float32)
    got, want = ((np.empty((6, k), np.int32), np.empty((6, k), np.float32)) for _ in range(2))
    merge_lists(ids, scores, shares, *got)
    merge_lists_plain(ids, scores, shares, *want)
    assert np.array_equal(got[0], want[0])
    np.testing.assert_allclose(got[1], want[1], rtol=1e-6)
    assert ((got[0] >= 0) == np.isfinite(got[1])).all()
