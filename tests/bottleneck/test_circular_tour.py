"""The search for a good circle does what its plain twin does."""

import numpy as np
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from plain_circular_tour import (
    circle_weight,
    improve_tour_plain,
    link_edges_plain,
    walk_paths_plain,
)

from longtail.bottleneck.circular_tour import improve_tour, link_edges, walk_paths, weight_of
from longtail.bottleneck.label_order import co_occurrence, heaviest_partners


@st.composite
def label_sets(draw, most_labels):
    """Draw the label sets of some rows: a 0/1 matrix (n_rows, n_labels)."""
    n = draw(st.integers(1, most_labels))
    rows = draw(st.lists(st.sets(st.integers(0, n - 1), max_size=4), min_size=1, max_size=3 * n))
    Y = np.zeros((len(rows), n))
    for row, labels in zip(Y, rows, strict=True):
        row[list(labels)] = 1
    return sp.csr_array(Y)


def as_circle(tour):
    labels = np.roll(tour, -int(np.argmin(tour))).tolist()
    return min(labels, [labels[0], *labels[:0:-1]])


@settings(max_examples=60, deadline=None)
@given(label_sets(20), st.randoms(use_true_random=False), st.integers(1, 10))
def test_improving_makes_the_same_moves_and_only_gains(Y, random, rounds):
    C, n = co_occurrence(Y), Y.shape[1]
    start = np.array(random.sample(range(n), n), dtype=np.int32)
    fast, plain = start.copy(), start.copy()
    near = heaviest_partners(C)
    gained = improve_tour(C.indptr.astype(np.int64), C.indices, C.data, near, fast, rounds)
    assert improve_tour_plain(C.indptr, C.indices, C.data, near, plain, rounds) == gained
    assert as_circle(fast) == as_circle(plain)
    W = C.toarray()
    assert circle_weight(fast.tolist(), W) - circle_weight(start.tolist(), W) == gained >= 0
    assert sorted(fast.tolist()) == list(range(n))


@settings(max_examples=60, deadline=None)
@given(label_sets(30), st.randoms(use_true_random=False))
def test_linking_and_walking(Y, random):
    C, n = co_occurrence(Y), Y.shape[1]
    pairs = sp.coo_array(sp.triu(C))
    order = np.array(random.sample(range(pairs.nnz), pairs.nnz), dtype=np.int64)
    left, right = (a[order].astype(np.int32) for a in pairs.coords)
    beside, rings = [np.full((n, 2), -1, np.int32) for _ in range(2)], [np.empty(n, np.int32) for _ in range(2)]
    link_edges(left, right, beside[0])
    link_edges_plain(left, right, beside[1])
    np.testing.assert_array_equal(*beside)
    walk_paths(beside[0], rings[0])
    walk_paths_plain(beside[1], rings[1])
    np.testing.assert_array_equal(*rings)
    assert sorted(rings[0].tolist()) == list(range(n))
    W = C.toarray()
    assert all(weight_of(C.indptr.astype(np.int64), C.indices, C.data, a, 0) == W[a, 0] for a in range(n))
