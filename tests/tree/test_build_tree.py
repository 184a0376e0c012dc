"""Trees from label vectors: balance, likeness, odd shapes, and the same tree for any number of threads."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from longtail.errors import DataError, ParameterError
from longtail.tree import LabelTree, build_tree
from longtail.tree.grow.build import fill_evenly

BOTH = pytest.mark.parametrize("balanced", [True, False])


def grouped(n_groups, per_group, seed=0, words=30, shared=20):
    """Sparse vectors: most words from the label's own group, a few that all groups use. Labels are shuffled."""
    rng = np.random.default_rng(seed)
    group = rng.permutation(np.repeat(np.arange(n_groups), per_group))
    own = shared + group[:, None] * words + rng.integers(words, size=(group.size, 12))
    common = rng.integers(shared, size=(group.size, 4))
    columns = np.hstack([own, common])
    values = rng.random(columns.shape) + 0.2
    values[:, 12:] *= 0.2
    rows = np.repeat(np.arange(group.size), columns.shape[1])
    shape = group.size, shared + n_groups * words
    return sp.csr_array((values.ravel(), (rows, columns.ravel())), shape=shape), group


def leaf_sizes(tree):
    return np.diff(tree.leaf_indptr)


def purity(tree, group):
    """The share of labels whose group is the commonest of their leaf."""
    parts = np.split(tree.leaf_labels, tree.leaf_indptr[1:-1])
    return sum(np.bincount(group[part]).max() for part in parts) / group.size


def check_whole(tree, n_labels):
    assert sorted(tree.leaf_labels.tolist()) == list(range(n_labels))
    assert leaf_sizes(tree).min() >= 1


@pytest.mark.parametrize(
    ("n_labels", "max_leaf", "branching", "nodes"),
    [
        (3993, 100, 16, [4, 64]),
        (100, 100, 16, [1]),
        (101, 100, 16, [2]),
        (1600, 100, 16, [16]),
        (1601, 100, 16, [2, 32]),
        (130, 2, 3, [2, 5, 15, 43, 128]),
        (7, 1, 2, [2, 4, 7]),
        (2, 1, 16, [2]),
    ],
)
def test_levels_of_a_balanced_tree(n_labels, max_leaf, branching, nodes):
    Z = sp.random_array((n_labels, 60), density=0.2, rng=np.random.default_rng(1), dtype=np.float32)
    tree = build_tree(Z, max_leaf=max_leaf, branching=branching, max_iter=3)
    assert [tree.n_nodes(level) for level in range(tree.n_levels)] == nodes
    check_whole(tree, n_labels)
    assert leaf_sizes(tree).max() - leaf_sizes(tree).min() <= 1
    assert leaf_sizes(tree).max() <= max_leaf
    assert all(np.diff(tree.children(level)).max() <= branching for level in range(tree.n_levels - 1))


@BOTH
def test_like_labels_end_together(balanced):
    Z, group = grouped(32, 20)
    tree = build_tree(Z, max_leaf=20, branching=8, balanced=balanced, random_state=3)
    check_whole(tree, 640)
    assert purity(tree, group) > (0.75 if balanced else 0.95)


def test_like_labels_end_together_with_dense_vectors():
    Z, group = grouped(16, 20)
    tree = build_tree(Z.toarray(), max_leaf=20, random_state=1)
    assert purity(tree, group) > 0.75


@BOTH
def test_threads_do_not_change_the_tree(balanced):
    Z, _ = grouped(12, 400, words=400)
    big = sp.csr_array(sp.hstack([Z, sp.random_array((4800, 3000), density=0.08, rng=np.random.default_rng(2)) * 0.2]))
    assert big.nnz > 2**20  # so that one node is divided by several threads
    settings = {"max_leaf": 60, "balanced": balanced, "max_iter": 5, "random_state": 4}
    for sample in (None, 700):
        trees = [build_tree(big, sample=sample, n_jobs=n_jobs, **settings) for n_jobs in (1, 2, 5)]
        assert trees[0] == trees[1] == trees[2]
        check_whole(trees[0], 4800)


@BOTH
def test_the_seed_decides(balanced):
    Z, _ = grouped(10, 30)
    one, same, other = (build_tree(Z, max_leaf=20, balanced=balanced, random_state=seed) for seed in (0, None, 1))
    assert one == same
    assert one != other


@BOTH
def test_the_length_of_a_vector_does_not_matter(balanced):
    Z, _ = grouped(10, 30)
    factor = sp.diags_array(2.0 ** np.random.default_rng(0).integers(-40, 40, size=300))
    settings = {"max_leaf": 20, "balanced": balanced, "random_state": 0}
    assert build_tree(Z, **settings) == build_tree(factor @ Z, **settings)


@BOTH
def test_input_is_left_alone(balanced):
    Z = np.random.default_rng(0).standard_normal((50, 4))
    before = Z.copy()
    build_tree(Z, max_leaf=5, balanced=balanced)
    np.testing.assert_array_equal(Z, before)
    S = sp.csr_matrix((np.ones(6), [2, 0, 1, 1, 2, 0], [0, 2, 3, 4, 6]), shape=(4, 3))  # ids unsorted
    build_tree(S, max_leaf=1, balanced=balanced)
    assert S.indices.tolist() == [2, 0, 1, 1, 2, 0]


def test_unbalanced_leaves_stay_below_the_limit_and_pad_to_one_depth():
    rng = np.random.default_rng(5)
    sizes = [300, 40, 40, 10, 5, 5]
    centre = rng.standard_normal((6, 30)) * 4
    Z = np.repeat(centre, sizes, axis=0) + rng.standard_normal((400, 30))
    tree = build_tree(Z, balanced=False, branching=6, max_leaf=50)
    check_whole(tree, 400)
    assert leaf_sizes(tree).max() <= 50
    assert tree.n_levels >= 2
    assert tree.n_nodes(0) <= 6


@BOTH
@pytest.mark.parametrize("n_labels", [1, 2, 3, 5, 17])
@pytest.mark.parametrize("kind", ["zero", "same", "random", "opposite"])
@pytest.mark.parametrize("max_leaf", [1, 2, 4])
def test_odd_shapes(balanced, n_labels, kind, max_leaf):
    Z = np.random.default_rng(0).standard_normal((n_labels, 3))
    if kind == "zero":
        Z[:] = 0
    elif kind == "same":
        Z[:] = Z[0]
    elif kind == "opposite":
        Z[:] = Z[0]
        Z[::2] *= -1
    for vectors in (Z, sp.csr_array(Z)):
        tree = build_tree(vectors, max_leaf=max_leaf, branching=2, balanced=balanced)
        check_whole(tree, n_labels)
        assert leaf_sizes(tree).max() <= max_leaf
        if balanced:
            assert leaf_sizes(tree).max() - leaf_sizes(tree).min() <= 1


@BOTH
def test_equal_vectors_in_quantity(balanced):
    tree = build_tree(np.ones((3000, 2)), balanced=balanced, max_leaf=10, branching=4)
    check_whole(tree, 3000)
    assert leaf_sizes(tree).max() <= 10


def test_clusters_that_only_shed_single_labels_end():
    Z = np.vstack([np.eye(60), np.hstack([np.ones((500, 1)), np.zeros((500, 59))])])  # one crowd, many loners
    tree = build_tree(Z, balanced=False, branching=2, max_leaf=3)
    check_whole(tree, 560)
    assert leaf_sizes(tree).max() <= 3
    assert tree.n_levels <= 30


@BOTH
@settings(max_examples=40, deadline=None)
@given(st.integers(1, 80), st.integers(1, 9), st.integers(2, 5), st.floats(0, 1), st.integers(0, 10**6))
def test_labels_without_vectors_find_a_place(balanced, n_labels, max_leaf, branching, absent, seed):
    rng = np.random.default_rng(seed)
    Z = rng.random((n_labels, 6)) * (rng.random((n_labels, 1)) > absent)
    tree = build_tree(sp.csr_array(Z), max_leaf=max_leaf, branching=branching, balanced=balanced, sample=5)
    check_whole(tree, n_labels)
    sizes = leaf_sizes(tree)
    assert sizes.max() <= max_leaf
    if balanced:
        assert sizes.max() - sizes.min() <= 1


def test_a_cluster_that_gathers_almost_all_labels_is_divided_at_once():
    """Many small groups with one weak word in common: of few centres, one gets all labels that met no centre of theirs.

    Left whole, that cluster would have hundreds of children, and the time to divide it and to train them would grow
    with the square of the labels.
    """
    n = 4000
    group = np.arange(n) // 10
    own = 1 + 4 * group[:, None] + np.arange(4)
    common = np.random.default_rng(0).uniform(0.1, 0.5, size=n)
    columns = np.concatenate([own.ravel(), np.zeros(n, dtype=int)])
    rows = np.concatenate([np.repeat(np.arange(n), 4), np.arange(n)])
    Z = sp.csr_array((np.concatenate([np.ones(4 * n), common]), (rows, columns)), shape=(n, 1 + 4 * 400))
    tree = build_tree(Z, branching=32, max_leaf=40, balanced=False, random_state=0)
    assert tree.n_levels == 2
    assert tree.sizes(0).max() <= 4 * n / 20  # about 20 clusters below the root
    assert np.diff(tree.children(0)).max() <= 4 * 20
    assert np.diff(tree.leaf_indptr).max() <= 40


def test_labels_without_vectors_do_not_disturb_the_others():
    Z, _ = grouped(8, 25)
    full = build_tree(Z, max_leaf=25, random_state=2)
    half = build_tree(sp.csr_array(sp.vstack([Z, sp.csr_array((200, Z.shape[1]))])), max_leaf=50, random_state=2)
    kept = [labels[labels < 200] for labels in np.split(half.leaf_labels, half.leaf_indptr[1:-1])]
    assert [part.tolist() for part in kept] == [
        part.tolist() for part in np.split(full.leaf_labels, full.leaf_indptr[1:-1])
    ]


@settings(max_examples=200, deadline=None)
@given(st.lists(st.integers(0, 12), min_size=1, max_size=12), st.integers(0, 60), st.none() | st.integers(12, 16))
def test_filling_goes_to_the_smallest(sizes, extra, cap):
    slow, left = list(sizes), extra
    while left and (cap is None or min(slow) < cap):
        slow[slow.index(min(slow))] += 1
        left -= 1
    fast = np.array(sizes) + fill_evenly(np.array(sizes), extra, cap)
    assert sorted(fast.tolist()) == sorted(slow)


@BOTH
def test_more_labels_than_65536(balanced):
    n = 70_000
    rng = np.random.default_rng(0)
    columns = np.sort(rng.integers(0, 80_000, size=(n, 3)), axis=1).astype(np.int32)
    Z = sp.csr_array((np.ones(3 * n, np.float32), columns.ravel(), np.arange(n + 1) * 3), shape=(n, 80_000))
    tree = build_tree(Z, balanced=balanced, max_iter=2, max_leaf=1000, sample=20_000)
    assert np.array_equal(np.sort(tree.leaf_labels), np.arange(n))
    assert leaf_sizes(tree).max() <= 1000


def test_progress_rises_to_the_end():
    Z, _ = grouped(10, 30)
    for balanced in (True, False):
        seen = []
        build_tree(Z, max_leaf=20, balanced=balanced, n_jobs=2, progress=lambda *at, seen=seen: seen.append(at))
        assert seen == sorted(seen)
        assert seen[-1][0] == seen[-1][1]


def test_bad_arguments_are_refused():
    Z = np.eye(4)
    for bad, message in [
        ({"branching": 1}, "branching must be an integer >= 2; got 1"),
        ({"max_leaf": 0}, "max_leaf must be an integer >= 1; got 0"),
        ({"balanced": "yes"}, "balanced must be True or False"),
        ({"max_iter": 0}, "max_iter must be an integer >= 1"),
        ({"sample": 1}, "sample must be an integer >= 2"),
        ({"sample": 0.5}, "sample must be an integer >= 2"),
    ]:
        with pytest.raises(ParameterError, match=message):
            build_tree(Z, **bad)
    with pytest.raises(DataError, match="Z must have at least one label"):
        build_tree(np.empty((0, 3)))
    with pytest.raises(DataError, match="Z must be finite"):
        build_tree([[np.nan]])


def test_few_labels_make_one_leaf():
    assert build_tree(np.eye(5)) == LabelTree.flat(5)
