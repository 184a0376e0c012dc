"""The search for a good circle does what its plain twin does."""

import numpy as np
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from longtail.bottleneck.circular_tour import improve_ring, link_edges, walk_paths, weight_of
from longtail.bottleneck.circular_tour_plain import (
    circle_weight,
    improve_ring_plain,
    link_edges_plain,
    walk_paths_plain,
)
from longtail.bottleneck.label_order import co_occurrence, heaviest_partners


def weights(n, seed):
    rng = np.random.default_rng(seed)
    Y = sp.random_array((3 * n, n), density=min(1.0, 2.5 / n), format="csr", rng=rng)
    return co_occurrence(sp.csr_array((np.ones(Y.nnz), Y.indices, Y.indptr), shape=Y.shape)), rng


def as_circle(ring):
    labels = np.roll(ring, -int(np.argmin(ring))).tolist()
    return min(labels, [labels[0], *labels[:0:-1]])


@settings(max_examples=30, deadline=None)
@given(st.integers(1, 20), st.integers(0, 10**6), st.integers(1, 10))
def test_improving_makes_the_same_moves_and_only_gains(n, seed, rounds):
    C, rng = weights(n, seed)
    start = rng.permutation(n).astype(np.int32)
    fast, plain = start.copy(), start.copy()
    near = heaviest_partners(C)
    gained = improve_ring(C.indptr.astype(np.int64), C.indices, C.data, near, fast, rounds)
    assert improve_ring_plain(C.indptr, C.indices, C.data, near, plain, rounds) == gained
    assert as_circle(fast) == as_circle(plain)
    W = C.toarray()
    assert circle_weight(fast.tolist(), W) - circle_weight(start.tolist(), W) == gained >= 0
    assert sorted(fast.tolist()) == list(range(n))


@settings(max_examples=30, deadline=None)
@given(st.integers(1, 30), st.integers(0, 10**6))
def test_linking_and_walking(n, seed):
    C, rng = weights(n, seed)
    pairs = sp.coo_array(sp.triu(C))
    order = rng.permutation(pairs.nnz)
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
