"""Label vectors and chosen rows: the compiled kernel agrees with vectors written out."""

import itertools

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from plain_eagle import (
    capped_shares_plain,
    learn_labels_plain,
    number_features_plain,
    pack_members_plain,
    score_by_group_plain,
    score_by_label_plain,
    sum_groups_plain,
)

from longtail.groups.choose_rows import capped_shares
from longtail.groups.eagle_kernel import learn_labels
from longtail.groups.kernel_arrays import (
    GroupArrays,
    LabelArrays,
    LearningRule,
    MemberRows,
    number_features,
    pack_members,
    sum_groups,
)
from longtail.groups.likeness import group_sums
from longtail.groups.score_members import pairs_by_group, score_by_group, score_by_label

CLEAR = 1e-5  # scores further apart than this are ranked alike in float32 and in float64


@st.composite
def grouped(draw, n_labels=5, n_features=9):
    """Draw group sizes, counts of labels and overlaps; the values of the rows follow from a seed.

    Rows have different lengths: two rows of one length, alone in the only group of a label, are equally near to their
    sum, and which of the two is chosen would be left to rounding. The last group has no labels: a label of every group
    has no other rows to be told from.
    """
    sizes = draw(st.lists(st.integers(1, 13), min_size=2, max_size=7))
    counts = st.lists(st.integers(0, 3), min_size=n_labels, max_size=n_labels)
    Y = [*draw(st.lists(counts, min_size=len(sizes) - 1, max_size=len(sizes) - 1)), [0] * n_labels]
    return make_rows(sizes, np.array(Y), draw(st.integers(0, 10**6)), draw(st.booleans()), n_features)


def make_problem(seed, overlap=False, n_groups=6, n_labels=5, n_features=9):
    rng = np.random.default_rng(seed)
    Y = (rng.random((n_groups, n_labels)) < 0.5) * rng.integers(1, 4, size=(n_groups, n_labels))
    return make_rows(rng.integers(1, 14, size=n_groups), Y, seed, overlap, n_features)


def make_rows(sizes, Y, seed, overlap, n_features):
    rng = np.random.default_rng(seed)
    n, n_groups = int(np.sum(sizes)), len(sizes)
    X = np.where(rng.random((n, n_features)) < 0.6, rng.standard_normal((n, n_features)), 0)
    X[:, 0] += 0.3
    X *= rng.uniform(0.7, 1.3, (n, 1)) / np.linalg.norm(X, axis=1, keepdims=True)
    G = np.zeros((n, n_groups))
    G[np.arange(n), np.repeat(np.arange(n_groups), sizes)] = 1
    if overlap:
        G[rng.random(G.shape) < 0.1] = 1
    return sp.csr_array(X.astype(np.float32)), sp.csr_array(G), sp.csr_array(Y)


def arguments(X, G, Y, contrast, n_iter, top, threshold=0.0, width=1, by_group_=False):
    by_group, by_label = sp.csc_array(G), sp.csc_array(Y)
    sums = group_sums(X, G)
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
    group = GroupArrays(indptr, rows, sums.indptr.astype(np.int64), sums.indices.astype(np.int32), sums.data)
    ids, starts = packed.indices.astype(np.int32), packed.indptr.astype(np.int64)
    local = np.empty_like(ids)
    number_features_plain(indptr, starts, ids, group.sum_indptr, group.sum_ids, X.shape[1], local)
    return (
        MemberRows(starts, ids, local, packed.data),
        group,
        LabelArrays(
            by_label.indptr.astype(np.int64),
            groups,
            take,
            start,
            weight,
            room,
            np.arange(Y.shape[1]).astype(np.uint8) % 4 != 3,
        ),
        LearningRule(n_iter, np.float32(0.1), contrast, 1.0, threshold),
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


@settings(max_examples=100, deadline=None)
@given(grouped(), st.booleans(), st.booleans(), st.integers(0, 6), st.integers(0, 5))
def test_the_kernel_agrees_with_its_twin_on_every_label(problem, contrast, top, n_iter, width):
    n_features = problem[0].shape[1]
    how = {"width": max(width, 1), "by_group_": width > 0}
    fast, slow = (arguments(*problem, contrast, n_iter, top, **how) for _ in range(2))
    gaps = []
    expected = learn_labels_plain(*slow, gaps=gaps)
    assume(min(gaps, default=1) > CLEAR)  # no ties: every choice of rows is decided by more than rounding
    vectors = learn_labels(*fast)
    np.testing.assert_allclose(dense(vectors, n_features), dense(expected, n_features), atol=2e-5)
    np.testing.assert_array_equal(fast[-3], slow[-3])
    np.testing.assert_allclose(fast[-2], slow[-2], atol=2e-5)
    np.testing.assert_allclose(fast[-1], slow[-1], atol=2e-4)


@pytest.mark.parametrize("contrast", [False, True])
@pytest.mark.parametrize("n_iter", [0, 5])
def test_labels_whose_rows_cancel_out_start_at_one_row(contrast, n_iter):
    X = np.array([[0.6, 0.8], [-0.6, -0.8]] * 3)
    problem = sp.csr_array(X, dtype=np.float32), sp.csr_array(np.repeat(np.eye(3), 2, axis=0)), np.ones((3, 2))
    fast, slow = (arguments(*problem[:2], sp.csr_array(problem[2]), contrast, n_iter, False) for _ in range(2))
    vectors, expected = (dense(learn(*run), 2) for learn, run in ((learn_labels, fast), (learn_labels_plain, slow)))
    np.testing.assert_allclose(vectors, expected, atol=1e-5)
    np.testing.assert_allclose(vectors, X[:2], atol=1e-5)
    np.testing.assert_array_equal(fast[-3], slow[-3])


def test_a_label_of_every_group_starts_at_one_row():
    """Without other rows to be told from, the start is zero up to rounding, and the label should start at a row."""
    for seed in range(20):
        X, G, _ = make_rows([3] * 10, np.ones((10, 1)), seed, False, 9)
        (vector,) = dense(learn_labels(*arguments(X, G, sp.csr_array(np.ones((10, 1))), True, 0, False)), X.shape[1])
        assert np.linalg.norm(vector) == pytest.approx(1, abs=1e-3)


def test_of_two_equally_near_rows_one_is_chosen():
    """Two rows of one length, alone in the only group of a label: either may be chosen, and then the vector is near."""
    rows = np.array([[0.6, 0.8], [0.8, -0.6]], dtype=np.float32)
    run = arguments(sp.csr_array(rows), sp.csr_array(np.ones((2, 1))), sp.csr_array([[1]]), False, 60, False)
    (vector,) = dense(learn_labels(*run), 2)
    chosen, other = run[-3]
    assert {int(chosen), int(other)} == {0, 1}
    np.testing.assert_allclose(run[-2], rows[run[-3]] @ vector, atol=1e-5)
    assert rows[chosen] @ vector > 0.95 and np.linalg.norm(vector) == pytest.approx(1, abs=1e-5)


@pytest.mark.parametrize("contrast", [False, True])
def test_how_many_labels_are_learned_at_once_changes_nothing(contrast):
    X, G, Y = make_problem(4, n_groups=30, n_labels=40, n_features=30)
    runs = [arguments(X, G, Y, contrast, 5, True, width=width, by_group_=True) for width in (1, 7, 40)]
    found = [learn_labels(*run) for run in runs]
    for vectors, run in zip(found, runs, strict=True):
        assert all((a == b).all() for a, b in zip(vectors, found[0], strict=True))
        assert all((a == b).all() for a, b in zip(run[-3:], runs[0][-3:], strict=True))


@settings(max_examples=30, deadline=None)
@given(grouped(n_labels=40), st.integers(0, 10**6))
def test_scores_by_label_and_by_group_agree_with_their_twins(problem, seed):
    X, G, Y = problem
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
    number_features(groups.indptr, members.indptr, ids, groups.sum_indptr, groups.sum_ids, X.shape[1], local)
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
