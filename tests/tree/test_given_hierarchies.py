"""Trees from a hierarchy that the user brings."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from longtail.errors import DataError
from longtail.tree import LabelTree


def leaves(tree):
    return [tree.leaf_labels[a:b].tolist() for a, b in zip(tree.leaf_indptr, tree.leaf_indptr[1:])]


def test_a_label_with_children_stands_with_its_childless_children():
    #        0            5
    #    1   2   3        6
    #           4 7
    tree = LabelTree.from_parents([-1, 0, 0, 0, 3, -1, 5, 3])
    assert leaves(tree) == [[0, 1, 2], [3, 4, 7], [5, 6]]
    assert [level.tolist() for level in tree.parents] == [[0, 0], [0, 0, 1]]


def test_labels_at_different_depths_get_chains():
    # 0 - 1 - 2 - 3 and the lone root 4
    tree = LabelTree.from_parents([-1, 0, 1, 2, -1])
    assert leaves(tree) == [[4], [0], [1], [2, 3]]
    assert tree.n_levels == 3
    assert [tree.path(leaf)[0] for leaf in range(4)] == [0, 1, 1, 1]


def test_roots_only_make_one_leaf():
    assert LabelTree.from_parents([-1, -1, -1]) == LabelTree.flat(3)
    assert LabelTree.from_parents([-1]) == LabelTree.flat(1)


def test_labels_may_be_some_of_the_nodes():
    parents = [-1, 0, 0, 1, 1, 2, 2, -1]  # node 7 has no label below it
    tree = LabelTree.from_parents(parents, labels=[6, 5, 4, 3])
    assert leaves(tree) == [[2, 3], [0, 1]]
    assert [level.tolist() for level in tree.parents] == [[0], [0, 0]]


def test_several_labels_at_one_node_are_a_cluster():
    tree = LabelTree.from_parents([-1, 0, 0], labels=[1, 2, 2, 1, 2])
    assert leaves(tree) == [[0, 3], [1, 2, 4]]
    assert leaves(LabelTree.from_parents([-1, -1], labels=[0, 1, 1])) == [[0], [1, 2]]


@pytest.mark.parametrize(
    ("parents", "labels", "message"),
    [
        ([], None, "parents must be a list of node ids with at least one entry"),
        ([-1, 5], None, r"parents\[1\] must be a node id from -1 to 1; got 5"),
        ([-1, -2], None, r"parents\[1\].*got -2"),
        ([0], None, "node 0 is its own ancestor"),
        ([-1, 0, 3, 4, 2], None, "parents must not have a cycle; node [234] is its own ancestor"),
        ([-1, 2, 3, 2], None, "node [23] is its own ancestor"),
        ([1, 0], None, "cycle"),
        ([-1, 0.0], None, "parents must hold integers"),
        ([[-1]], None, "parents must be a list"),
        ([-1, 0], [], "labels must be a list"),
        ([-1, 0], [0, 2], r"labels\[1\] must be a node id from 0 to 1; got 2"),
        ([-1, 0], [-1], r"labels\[0\]"),
    ],
)
def test_impossible_hierarchies_are_refused(parents, labels, message):
    with pytest.raises(DataError, match=message):
        LabelTree.from_parents(parents, labels)


def test_a_chain_that_would_fill_memory_is_refused():
    with pytest.raises(DataError, match="too deep"):
        LabelTree.from_parents(np.arange(-1, 40_000))


def slow_homes(parents, labels):
    """The set of labels of every leaf, by the rule of the docstring."""
    nodes = range(len(parents))
    children = {n: [c for c in nodes if parents[c] == n] for n in nodes}
    own = {n: [i for i, at in enumerate(labels) if at == n] for n in nodes}

    def below(n):
        return len(own[n]) + sum(map(below, children[n]))

    homes = {}
    for label, n in enumerate(labels):
        cluster = len(own[n]) > 1 or any(below(c) for c in children[n])
        homes.setdefault(n if cluster else parents[n], []).append(label)
    return homes


@settings(max_examples=200, deadline=None)
@given(st.integers(1, 25), st.integers(0, 10**6), st.booleans())
def test_any_hierarchy_is_placed_by_the_rule(n, seed, every):
    rng = np.random.default_rng(seed)
    rank = rng.permutation(n)
    parents = [int(rng.choice([-1, *np.flatnonzero(rank < rank[i])])) for i in range(n)]
    labels = list(range(n)) if every else rng.integers(n, size=rng.integers(1, 2 * n)).tolist()
    tree = LabelTree.from_parents(parents, None if every else labels)
    homes = slow_homes(parents, labels)
    assert sorted(leaves(tree)) == sorted(homes.values())
    # two leaves share as many nodes as their homes share ancestors
    where = {min(found): home for home, found in homes.items()}

    def line(node):
        return [] if node < 0 else [*line(parents[node]), node]

    named = [line(where[found[0]]) for found in leaves(tree)]
    for a in range(tree.n_leaves):
        for b in range(a):
            shared = sum(x == y for x, y in zip(tree.path(a), tree.path(b), strict=True))
            assert shared == sum(x == y for x, y in zip(named[a], named[b]))


def test_many_nodes_are_quick_and_above_65536():
    n = 200_000
    parents = np.concatenate([[-1], np.arange(n - 1) // 50])
    tree = LabelTree.from_parents(parents)
    assert tree.n_labels == n
    assert tree.n_levels == 4
    assert tree.leaf_labels.max() == n - 1
