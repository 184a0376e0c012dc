"""Label vectors and chosen rows: the compiled kernel agrees with vectors written out."""

import itertools

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from longtail.groups.choose_rows import capped_shares, capped_shares_plain
from longtail.groups.eagle_kernel import learn_labels
from longtail.groups.eagle_plain import learn_labels_plain
from longtail.groups.kernel_arrays import (
    Groups,
    Labels,
    Members,
    Rule,
    pack_members,
    pack_members_plain,
    place_features,
    place_features_plain,
    sum_groups,
    sum_groups_plain,
)
from longtail.groups.score_members import (
    pairs_by_group,
    score_by_group,
    score_by_group_plain,
    score_by_label,
    score_by_label_plain,
)


def make_problem(seed, overlap=False, n_groups=6, n_labels=5, n_features=9):
    rng = np.random.default_rng(seed)
    sizes = rng.integers(1, 14, size=n_groups)
    n = int(sizes.sum())
    X = np.where(rng.random((n, n_features)) < 0.6, rng.standard_normal((n, n_features)), 0)
    X[:, 0] += 0.3
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    G = np.zeros((n, n_groups))
    G[np.arange(n), np.repeat(np.arange(n_groups), sizes)] = 1
    if overlap:
        G[rng.random(G.shape) < 0.1] = 1
    Y = (rng.random((n_groups, n_labels)) < 0.5) * rng.integers(1, 4, size=(n_groups, n_labels))
    return sp.csr_array(X.astype(np.float32)), sp.csr_array(G), sp.csr_array(Y)


def arguments(X, G, Y, contrast, n_iter, top, threshold=0.0, width=1, by_group_=False):
    by_group, by_label = sp.csc_array(G), sp.csc_array(Y)
    sums = sp.csr_array((G.T @ X).astype(np.float32))
    groups = by_label.indices.astype(np.int32)
    size = np.diff(by_group.indptr)[groups]
    counts = np.minimum(by_label.data, size)
    take = counts.astype(np.int32) if top else np.ones(groups.size, np.int32)
    start = (take / size if contrast else counts).astype(np.float32)
    weight = np.ones(groups.size, np.float32) if contrast or top else counts.astype(np.float32)
    total = np.asarray(X.T @ np.diff(G.indptr), dtype=np.float32)
    room = np.concatenate([[0], np.cumsum(np.minimum(size, take + 1))]).astype(np.int64)
    out = np.zeros(room[-1], np.int32), np.zeros(room[-1], np.float32), np.zeros(room[-1], np.float32)
    rows, indptr = by_group.indices.astype(np.int32), by_group.indptr.astype(np.int64)
    packed = sp.csr_array(X[rows])
    group = Groups(indptr, rows, sums.indptr.astype(np.int64), sums.indices.astype(np.int32), sums.data)
    ids, starts = packed.indices.astype(np.int32), packed.indptr.astype(np.int64)
    local = np.empty_like(ids)
    place_features_plain(indptr, starts, ids, group.sum_indptr, group.sum_ids, X.shape[1], local)
    return (
        Members(starts, ids, local, packed.data),
        group,
        Labels(by_label.indptr.astype(np.int64), groups, take, start, weight, room),
        Rule(n_iter, np.float32(0.1), contrast, 1.0, threshold),
        total,
        np.asarray(X @ total, dtype=np.float32),
        0,
        Y.shape[1],
        width,
        by_group_,
        *out,
    )


def dense(vectors, n_features):
    return sp.csr_array((vectors[2], vectors[1], vectors[0]), shape=(len(vectors[0]) - 1, n_features)).toarray()


@settings(max_examples=50, deadline=None)
@given(st.integers(0, 10**6), st.booleans(), st.booleans(), st.booleans(), st.integers(0, 6), st.integers(0, 5))
def test_the_kernel_agrees_with_its_twin(seed, overlap, contrast, top, n_iter, width):
    X, G, Y = make_problem(seed, overlap)
    how = {"width": max(width, 1), "by_group_": width > 0}
    fast, slow = (arguments(X, G, Y, contrast, n_iter, top, **how) for _ in range(2))
    found, expected = learn_labels(*fast), learn_labels_plain(*slow)
    close = np.abs(dense(found, X.shape[1]) - dense(expected, X.shape[1])).max(axis=1) < 1e-3
    assert close.all() or n_iter > 0  # two rows equally near may be told apart by the last digits, and then all differs
    assert close.mean() > 0.5
    for label in np.flatnonzero(close):
        at = slice(*fast[2].place_indptr[fast[2].indptr[label : label + 2]])
        np.testing.assert_allclose(fast[-2][at], slow[-2][at], atol=2e-3)
        np.testing.assert_allclose(fast[-1][at], slow[-1][at], atol=2e-2)
        same = fast[-3][at] == slow[-3][at]
        assert np.allclose(fast[-2][at][~same], slow[-2][at][~same], atol=1e-4)


@pytest.mark.parametrize("contrast", [False, True])
def test_how_many_labels_are_learned_at_once_changes_nothing(contrast):
    X, G, Y = make_problem(4, n_groups=30, n_labels=40, n_features=30)
    runs = [arguments(X, G, Y, contrast, 5, True, width=width, by_group_=True) for width in (1, 7, 40)]
    found = [learn_labels(*run) for run in runs]
    for vectors, run in zip(found, runs, strict=True):
        assert all((a == b).all() for a, b in zip(vectors, found[0], strict=True))
        assert all((a == b).all() for a, b in zip(run[-3:], runs[0][-3:], strict=True))


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 10**6), st.booleans())
def test_scores_by_label_and_by_group_agree_with_their_twins(seed, overlap):
    X, G, Y = make_problem(seed, overlap, n_labels=40)
    members, groups, labels, *_ = arguments(X, G, Y, False, 0, True)
    rng = np.random.default_rng(seed)
    first, last = 3, 38
    active, vectors = rng.random(35) < 0.7, rng.standard_normal((35, X.shape[1])).astype(np.float32)
    pairs = labels.groups[labels.indptr[first] : labels.indptr[last]]
    bounds = np.concatenate([[0], np.cumsum(np.diff(groups.indptr)[pairs])])
    order = pairs_by_group(groups.indptr.size - 1, labels, first, last)
    block = np.empty((np.diff(groups.sum_indptr).max() + 1, 16), np.float32)
    outs = np.zeros((4, bounds[-1]), np.float32)
    score_by_label_plain(members, groups, labels, first, last, active, bounds, vectors, outs[0])
    score_by_label(members, groups, labels, first, last, active, bounds, vectors, outs[1])
    score_by_group(members, groups, *order, active, bounds, vectors, block, outs[2])
    score_by_group_plain(members, groups, *order, active, bounds, vectors, block, outs[3])
    for out in outs[1:]:
        np.testing.assert_allclose(out, outs[0], atol=1e-5)


def test_members_are_packed_group_by_group():
    X, G, Y = make_problem(5, overlap=True)
    members, groups, *_ = arguments(X, G, Y, False, 0, True)
    for pack in (pack_members, pack_members_plain):
        ids, values = np.empty_like(members.ids), np.empty_like(members.data)
        pack(X.indptr, X.indices, X.data, groups.rows, members.indptr, ids, values)
        assert (ids == members.ids).all() and (values == members.data).all()
    sums = []
    for add in (sum_groups, sum_groups_plain):
        indptr, out = np.empty(G.shape[1] + 1, np.int64), (np.zeros(ids.size, np.int32), np.zeros(ids.size, np.float32))
        n = add(X.indptr, X.indices, X.data, groups.indptr, groups.rows, X.shape[1], indptr, *out)
        sums.append(sp.csr_array((out[1][:n], out[0][:n], indptr), shape=(G.shape[1], X.shape[1])).toarray())
    np.testing.assert_allclose(sums, [(G.T @ X).toarray()] * 2, atol=1e-5)
    local = np.empty_like(members.ids)
    place_features(groups.indptr, members.indptr, ids, groups.sum_indptr, groups.sum_ids, X.shape[1], local)
    assert (local == members.local).all()


@settings(max_examples=100, deadline=None)
@given(st.lists(st.floats(-30, 30), min_size=1, max_size=20), st.integers(1, 25))
def test_shares_agree_and_add_up(scores, take):
    scores = np.array(scores)
    shares, plain = np.empty(scores.size), np.ones(scores.size)
    capped_shares(scores, take, shares)
    if take < scores.size:
        capped_shares_plain(scores, take, plain)
    np.testing.assert_allclose(shares, plain, atol=1e-6)
    assert shares.sum() == pytest.approx(min(take, scores.size), abs=1e-6)
    assert (np.diff(shares[np.argsort(scores)]) >= -1e-9).all()


def test_small_values_are_dropped_and_features_sorted():
    X, G, Y = make_problem(3)
    sizes, ids, values = learn_labels(*arguments(X, G, Y, True, 2, True, threshold=0.3))
    assert np.abs(values).min() >= 0.3
    for low, high in itertools.pairwise(sizes):
        assert (np.diff(ids[low:high]) > 0).all()
