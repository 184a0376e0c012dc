"""How many rows of a group to expect with a label, and which rows get what is left of whole rows."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

import longtail as lt
from longtail.groups import Eagle, propagate
from longtail.groups.grouped_rows import GroupedRows
from longtail.groups.learn_vectors import best_of_rest, whole_rest
from longtail.groups.likeness import expected_counts
from longtail.metrics import precision_at_k


def make_groups(counts, size):
    """Return groups of one size whose rows say nothing, with labels that some of them have."""
    of = np.repeat(np.arange(len(counts)), size)
    groups = sp.csr_array((np.ones(of.size), (np.arange(of.size), of)))
    return GroupedRows.make(np.ones((of.size, 1)), groups, counts)


def draw_counts(n_groups, size, shares, correlation, seed):
    """Draw how many rows of each group have each label, two rows of a group with this correlation."""
    rng = np.random.default_rng(seed)
    total = (1 - correlation) / correlation
    chances = rng.beta(total * shares, total * (1 - shares), (n_groups, shares.size))
    return rng.binomial(size, chances)


@pytest.mark.parametrize(("size", "correlation"), [(4, 0.3), (16, 0.15), (32, 0.05)])
def test_expected_counts_are_those_of_correlated_rows(size, correlation):
    shares = np.array([0.02, 0.1, 0.3])
    counts = draw_counts(3000, size, shares, correlation, 0)
    grouped = make_groups(counts > 0, size)
    expected = expected_counts(grouped, correlation)
    true = counts.T[counts.T > 0]
    for label in range(shares.size):
        mine = grouped.labels == label
        assert expected[mine].mean() == pytest.approx(true[mine].mean(), rel=0.06)
    alone = expected_counts(grouped, 0.0)
    assert alone.mean() < expected.mean() - 0.1 * (size - 1) * correlation  # alike rows share labels


def test_independent_rows_need_no_correlation():
    rng = np.random.default_rng(1)
    counts = rng.binomial(10, [0.02, 0.2], (4000, 2))
    for alike in (0.0, -0.01):
        expected = expected_counts(make_groups(counts > 0, 10), alike)
        assert expected.mean() == pytest.approx(counts[counts > 0].mean(), rel=0.03)


@settings(max_examples=40, deadline=None)
@given(st.lists(st.integers(1, 12), min_size=1, max_size=6), st.floats(-0.5, 1.0), st.integers(0, 10**6))
def test_at_least_one_row_and_at_most_all_are_expected(sizes, alike, seed):
    rng = np.random.default_rng(seed)
    groups = np.zeros((sum(sizes), len(sizes)))
    groups[np.arange(sum(sizes)), np.repeat(np.arange(len(sizes)), sizes)] = 1
    has = rng.random((len(sizes), 3)) < 0.6
    has[0, 0] = True
    grouped = GroupedRows.make(np.ones((sum(sizes), 1)), groups, has)
    expected = expected_counts(grouped, alike)
    assert (expected >= 1).all() and (expected <= grouped.sizes).all()
    more = expected_counts(grouped, min(alike + 0.3, 1.0))
    assert more.mean() >= expected.mean() - 1e-6


def test_all_rows_are_expected_where_they_are_the_same():
    grouped = make_groups([[1, 0], [0, 1], [1, 1]], 7)
    np.testing.assert_allclose(expected_counts(grouped, 1.0), 7, atol=1e-3)


def test_parts_of_rows_go_to_the_nearest_rows_of_any_group():
    labels = np.array([0, 0, 0, 0, 1, 1])
    assert whole_rest(np.array([0, 0, 1]), np.array([0.7, 0.8, 0.4]), 3).tolist() == [1, 0, 0]
    scores = np.array([0.9, 0.2, 0.8, 0.5, 0.4, -0.1])
    taken = np.array([True, False, True, False, False, False])
    assert best_of_rest(labels, scores, taken, np.array([1, 2])).tolist() == [0, 0, 0, 1, 1, 0]


def test_auto_finds_about_as_many_labels_as_there_are_without_counts():
    """Groups of alike rows, each label known once per group: the number of labels found is near the true one."""
    rng = np.random.default_rng(0)
    n_groups, size, n_labels = 150, 8, 12
    centres = rng.standard_normal((n_labels, 30))
    mixes = rng.dirichlet(np.full(n_labels, 0.4), n_groups)  # every group prefers some labels
    Y = np.stack([rng.multinomial(1, mixes[group]) for group in np.repeat(np.arange(n_groups), size)])
    X = Y @ centres + 0.8 * rng.standard_normal((Y.shape[0], 30))
    groups = sp.csr_array(np.repeat(np.eye(n_groups), size, axis=0))
    once = (groups.T @ Y > 0).astype(float)
    model = Eagle(assign="auto").fit(X, groups, once)
    assert model.likeness_ > 0.05
    assert 0.7 * Y.sum() < model.row_labels_.nnz < 1.5 * Y.sum()
    assert model.row_labels_.multiply(Y).sum() > 0.6 * Y.sum()


@pytest.mark.parametrize("size", [16, 32])
def test_auto_without_counts_does_not_lose_to_propagation_in_large_groups_of_alike_rows(size):
    """Packages that are neighbours in the index on a page: P@1 and P@5 of a model trained on what is found."""
    train, test = lt.data.load_bundled("debtags"), lt.data.load_bundled("debtags", "test")
    train = train.take(np.arange(train.n_rows) // 64 % 8 == 0)
    words = lt.TfidfFeatures()
    X, X_test = words.fit_transform(train.texts), words.transform(test.texts)
    of = np.arange(train.n_rows) // size
    groups = sp.csr_array((np.ones(of.size), (np.arange(of.size), of)))
    once = (groups.T @ train.Y > 0).astype(np.float32)
    found = Eagle(assign="auto").fit_transform(X, groups, once)
    scores = []
    for Y in (found, propagate(groups, once)):
        used = np.diff(Y.indptr) > 0
        top = lt.LabelTreeClassifier(random_state=0).fit(X[used], Y[used]).predict_topk(X_test, k=5)
        scores.append([precision_at_k(test.Y, top, k=k) for k in (1, 5)])
    assert scores[0][0] > scores[1][0] + 0.02 and scores[0][1] > scores[1][1]
