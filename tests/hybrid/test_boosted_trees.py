"""Boosted trees as plain arrays: they say what scikit-learn's say, and nothing that is no tree is asked."""

import numpy as np
import pytest
from plain_hybrid_kernels import sum_of_leaves
from sklearn.ensemble import HistGradientBoostingClassifier
from threadpoolctl import threadpool_limits

from longtail.hybrid.boosted_trees import FEWEST_IN_LEAF, LEAVES, RATE, TREES, BoostedTrees

N, N_FEATURES = 6000, 4


@pytest.fixture(scope="module")
def given():
    rng = np.random.default_rng(0)
    features = rng.normal(size=(N, N_FEATURES)).astype(np.float32).round(2)
    hits = (features[:, 0] > 0.5) & (features[:, 1] > 0) | (features[:, 2] + rng.normal(size=N) > 2)
    return features, hits, rng.choice([1.0, 10.0], N), np.array([True, True, True, False])


@pytest.fixture(scope="module")
def trees(given):
    return BoostedTrees.fit(*given)


def test_they_say_what_those_of_scikit_learn_say(given, trees):
    features, hits, worth, rising = given
    boosting = HistGradientBoostingClassifier(
        learning_rate=RATE,
        max_iter=TREES,
        max_leaf_nodes=LEAVES,
        min_samples_leaf=FEWEST_IN_LEAF,
        monotonic_cst=rising.astype(int),
        early_stopping=False,
        random_state=0,
    )
    boosting.fit(features, hits, sample_weight=worth)
    fresh = np.random.default_rng(1).normal(size=(500, N_FEATURES)).astype(np.float32)
    for rows in (features[:500], fresh):
        np.testing.assert_allclose(trees.log_odds(rows), boosting.decision_function(rows), atol=1e-4)
    assert trees.n_trees == TREES and trees.problem() is None


def test_the_kernel_adds_what_a_slow_version_adds(given, trees):
    slow = [sum_of_leaves(row, **trees.to_arrays()) for row in given[0][:50]]
    np.testing.assert_allclose(trees.log_odds(given[0][:50]), slow, rtol=1e-5)


def test_no_expert_speaks_against_a_label(given, trees):
    for column in range(3):
        rows = np.repeat(given[0][:40], 20, axis=0)
        rows[:, column] = np.tile(np.linspace(-3, 3, 20), 40)
        assert (np.diff(trees.log_odds(rows).reshape(40, 20), axis=1) >= -1e-5).all()


def test_the_number_of_threads_changes_nothing(given, trees):
    with threadpool_limits(2, user_api="openmp"):
        again = BoostedTrees.fit(*given)
    for name, array in trees.to_arrays().items():
        np.testing.assert_array_equal(array, again.to_arrays()[name])


def test_trees_can_ask_for_features_of_other_numbers(given, trees):
    some = given[0][:20]
    moved = trees.on_features(np.array([5, 1, 0, 2]))
    wide = np.stack([some[:, 2], some[:, 1], some[:, 3], 0 * some[:, 0], 0 * some[:, 0], some[:, 0]], axis=1)
    np.testing.assert_array_equal(moved.log_odds(wide), trees.log_odds(some))


def test_arrays_that_are_no_trees_are_told(trees):
    arrays = trees.to_arrays()
    inner = int(np.flatnonzero(arrays["feature"] >= 0)[0])
    for right in (0, inner, inner + 1, int(trees.starts[2])):
        changed = arrays["right"].copy()
        changed[inner] = right
        assert (
            f"node {inner} of its boosted trees has {right} as"
            in BoostedTrees(**{**arrays, "right": changed}).problem()
        )
    last = arrays["feature"].copy()
    last[-1] = 0  # a node without children
    assert BoostedTrees(**{**arrays, "feature": last}).problem()
    leaf = arrays["right"].copy()
    leaf[-1] = 3
    assert "0, for it is a leaf" in BoostedTrees(**{**arrays, "right": leaf}).problem()
    cut = arrays["feature"].copy()
    cut[inner] = -1  # nobody comes to its children
    assert BoostedTrees(**{**arrays, "feature": cut, "right": np.where(cut < 0, 0, arrays["right"])}).problem()
    assert "begin" in BoostedTrees(**{**arrays, "starts": arrays["starts"][:-1]}).problem()
    none = {name: array[: name == "starts"] for name, array in arrays.items()}
    assert "begin" in BoostedTrees(**none).problem()
