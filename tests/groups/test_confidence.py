"""Confidence of labels found from groups: calibrated on bundled data, fair to labels that no other group has."""

import numpy as np
import pytest
import scipy.sparse as sp

from longtail.data import Dataset, GroupedDataset, group_by_clusters, group_randomly, load_bundled
from longtail.groups import Eagle, calibrated_confidence, group_shares
from longtail.groups.held_out_kernel import shares_adding_up
from longtail.pipeline import impute_dataset
from longtail.text import TfidfFeatures


@pytest.fixture(scope="module")
def packages():
    """Every 8th block of 64 neighbours of the bundled packages, as rows, and their tags."""
    data = load_bundled("debtags")
    data = data.take(np.arange(data.n_rows) // 64 % 8 == 0)
    return TfidfFeatures().fit_transform(data.texts), data


def neighbours(data, size):
    of = np.arange(data.n_rows) // size
    groups = sp.csr_array((np.ones(of.size, dtype=np.float32), (np.arange(of.size), of)))
    return groups, sp.csr_array(groups.T @ data.Y)


def make_groups(kind, X, data, size):
    if kind == "random":
        return group_randomly(data.Y, size, random_state=0)
    if kind == "clusters":
        return group_by_clusters(X, data.Y, depth=round(np.log2(data.n_rows / size)), random_state=0)
    return neighbours(data, size)


@pytest.mark.parametrize("assign", ["auto", "argmax"])
@pytest.mark.parametrize("kind", ["random", "neighbours", "clusters"])
def test_as_many_labels_are_right_as_confidence_says(packages, kind, assign):
    X, data = packages
    groups, Y_groups = make_groups(kind, X, data, 8)
    rows = Dataset(X=X, Y=data.Y, groups=groups, label_names=data.label_names)
    grouped = GroupedDataset(rows, sp.csr_array(Y_groups > 0))
    found = impute_dataset(grouped, assign=assign, random_state=0)
    right = np.asarray(data.Y[found.data.Y.nonzero()]).ravel() > 0
    chances = found.confidence.data
    assert abs(chances.mean() - right.mean()) < 0.15  # the shares alone: up to 0.48
    bins = np.minimum((chances * 5).astype(int), 4)
    error = np.abs(np.bincount(bins, chances - right, minlength=5)).sum() / right.size
    assert error < 0.16
    assert chances[right].mean() > chances[~right].mean() + 0.05
    assert found.facts["mean_confidence"] == pytest.approx(chances.mean())


def test_a_label_of_one_group_is_a_guess_among_its_rows(packages):
    X, data = packages
    groups, Y_groups = group_randomly(data.Y, 8, random_state=0)
    eagle = Eagle(assign="argmax", random_state=0).fit(X, groups, Y_groups)
    chances = calibrated_confidence(eagle, X, groups, Y_groups, seed=0)
    once = np.bincount(Y_groups.indices, minlength=Y_groups.shape[1])[chances.indices] == 1
    assert once.sum() > 20
    assert eagle.confidence_.data[once].mean() > 0.8 and chances.data[once].mean() < 0.35


def test_confidence_is_the_same_for_any_number_of_threads(packages):
    X, data = packages
    groups, Y_groups = group_randomly(data.Y, 4, random_state=0)
    found = []
    for n_jobs in (1, 3):
        eagle = Eagle(assign="auto", random_state=0, n_jobs=n_jobs).fit(X, groups, Y_groups)
        found.append(calibrated_confidence(eagle, X, groups, Y_groups, seed=0).data)
    np.testing.assert_array_equal(*found)


def test_a_row_alone_in_its_group_is_sure_and_few_groups_make_nobody_sure():
    X = np.eye(4)
    groups, Y_groups = np.eye(3)[[0, 1, 2, 2]], np.array([[1, 0], [0, 1], [1, 0]])
    eagle = Eagle(assign="auto", random_state=0).fit(X, groups, Y_groups)
    chances = calibrated_confidence(eagle, X, groups, Y_groups, seed=0)
    assert chances[[0], [0]] == 1 and chances[[1], [1]] == 1
    assert 0.2 < chances.data.min() < 0.8


def test_shares_of_groups_are_expected_where_counts_are_not_known():
    rng = np.random.default_rng(0)
    Y = (rng.random((4000, 2)) < [0.3, 0.02]).astype(np.float32)
    groups, counts = group_randomly(Y, 5, random_state=0)
    known, expected = group_shares(groups, counts), group_shares(groups, sp.csr_array(counts > 0))
    for label in (0, 1):
        right = Y[expected[:, [label]].nonzero()[0], label].mean()
        assert expected[:, [label]].data.mean() == pytest.approx(right, abs=0.02)
        assert known[:, [label]].data.mean() == pytest.approx(right, abs=1e-6)


def shares_plain(logits, total):
    """Try many shifts and take the best."""
    shifts = np.linspace(-60, 60, 200_001)
    sums = np.zeros(shifts.size)
    for logit in logits:
        sums += 1 / (1 + np.exp(-(logit + shifts)))
    return 1 / (1 + np.exp(-(logits + shifts[np.abs(sums - total).argmin()])))


@pytest.mark.parametrize(("seed", "total"), [(0, 1.0), (1, 2.5), (2, 4.0), (3, 5.0)])
def test_shares_add_up_like_their_plain_twin(seed, total):
    logits = 3 * np.random.default_rng(seed).standard_normal(5)
    out = np.empty(5)
    shares_adding_up(logits, total, out)
    assert out.sum() == pytest.approx(total, abs=1e-6)
    np.testing.assert_allclose(out, np.ones(5) if total == 5 else shares_plain(logits, total), atol=1e-3)
