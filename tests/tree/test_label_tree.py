"""Label trees: what they promise, what they refuse, and how they travel."""

import json

import numpy as np
import pytest
import scipy.sparse as sp

from longtail.errors import DataError, ModelError, ParameterError
from longtail.storage import Part
from longtail.tree import LabelTree


def small_tree():
    """Two nodes, three leaves; label 1 stands in leaves 0 and 2, label 0 in leaves 0 and 1 of the same node."""
    parents = (np.array([0, 0]), np.array([0, 0, 1]))
    return LabelTree(parents, np.array([0, 2, 4, 6]), np.array([0, 1, 0, 3, 1, 2]), 4)


def test_shapes_and_numbers():
    tree = small_tree()
    assert (tree.n_levels, tree.n_leaves, tree.n_slots, tree.n_labels) == (2, 3, 6, 4)
    assert [tree.n_nodes(0), tree.n_nodes(1)] == [2, 3]
    assert tree.children(0).tolist() == [0, 2, 3]
    assert tree.children(1).tolist() == [0, 2, 4, 6]
    assert [tree.path(leaf) for leaf in range(3)] == [[0, 0], [0, 1], [1, 2]]
    assert tree.ancestors(0).tolist() == [0, 0, 1]
    assert [level.dtype for level in tree.parents] == [np.int32, np.int32]
    assert (tree.leaf_indptr.dtype, tree.leaf_labels.dtype) == (np.int64, np.int32)


def test_membership_counts_a_label_once_per_node():
    tree = small_tree()
    assert tree.slots().toarray().tolist() == [[1, 1, 0], [1, 0, 1], [0, 0, 1], [0, 1, 0]]
    assert tree.membership(1).toarray().tolist() == tree.slots().toarray().tolist()
    assert tree.membership(0).toarray().tolist() == [[1, 0], [1, 1], [0, 1], [1, 0]]
    assert tree.sizes(0).tolist() == [3, 2]
    assert tree.sizes(1).tolist() == [2, 2, 2]
    for level in (0, 1):
        M = tree.membership(level)
        assert (M.dtype, M.indices.dtype) == (np.float32, np.int32)
        assert M.has_canonical_format


def test_slots_can_be_exchanged():
    tree = LabelTree.from_parents([-1, 0, 0, -1, 3, 3])
    assert tree.with_slots(tree.slots()) == tree
    slots = sp.lil_array(tree.slots())
    slots[0, 1] = 1
    both = tree.with_slots(slots)
    assert both.n_slots == tree.n_slots + 1
    assert both.path(1) == tree.path(1)
    assert both.membership(0).toarray()[0].tolist() == [1, 1]
    with pytest.raises(DataError, match=r"shape \(n_labels, n_leaves\) = \(6, 2\); got \(6, 3\)"):
        tree.with_slots(np.ones((6, 3)))
    with pytest.raises(DataError, match="label 0 stands in none"):
        tree.with_slots(np.array([[0, 0]] + [[1, 0]] * 5))


def test_an_emptied_leaf_keeps_its_number():
    tree = LabelTree.from_clusters([0, 1]).with_slots([[0, 1], [0, 1]])
    assert tree.sizes(0).tolist() == [0, 2]


def test_flat():
    tree = LabelTree.flat(1)
    assert (tree.n_levels, tree.n_leaves, tree.n_slots) == (1, 1, 1)
    assert tree.path(0) == [0]
    with pytest.raises(ParameterError, match="n_labels must be an integer >= 1; got 0"):
        LabelTree.flat(0)


def test_from_clusters():
    tree = LabelTree.from_clusters([2, 0, 2, 0], n_clusters=4)
    assert tree.leaf_indptr.tolist() == [0, 2, 2, 4, 4]
    assert tree.leaf_labels.tolist() == [1, 3, 0, 2]
    with pytest.raises(DataError, match=r"assignment\[1\] must be a cluster from 0 to 1; got 2"):
        LabelTree.from_clusters([0, 2], n_clusters=2)
    with pytest.raises(DataError, match=r"assignment\[0\]"):
        LabelTree.from_clusters([-1, 0])
    with pytest.raises(DataError, match="got none"):
        LabelTree.from_clusters([])
    with pytest.raises(DataError, match="must hold integers"):
        LabelTree.from_clusters([0.5, 1])


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"parents": ()}, "at least one level"),
        ({"parents": (np.array([0, 0]), np.array([0, 1, 0]))}, r"parents\[1\] must ascend; node 2 has parent 0"),
        ({"parents": (np.array([0, 1]), np.array([0, 0, 1]))}, r"parents\[0\] must be nodes from 0 to 0"),
        ({"parents": (np.array([0, 0]), np.array([0, 0, 2]))}, r"parents\[1\] must be nodes from 0 to 1.*got 2"),
        ({"parents": (np.array([0, 0]), np.array([0, 0, 0]))}, "node 1 of level 0 has no children"),
        ({"parents": (np.array([0, 0]), np.array([], int))}, r"parents\[1\] must have at least one node"),
        ({"leaf_indptr": np.array([0, 2, 6])}, "leaf_indptr must have one more entry than leaves, 4; got 3"),
        ({"leaf_indptr": np.array([0, 2, 4, 5])}, "leaf_indptr must ascend from 0 to the number of leaf_labels, 6"),
        ({"leaf_indptr": np.array([0, 4, 2, 6])}, "leaf_indptr must ascend"),
        ({"leaf_labels": np.array([0, 1, 0, 3, 1, 4])}, "leaf_labels must be labels from 0 to 3; got 4"),
        ({"leaf_labels": np.array([1, 0, 0, 3, 1, 2])}, "the labels of leaf 0 must ascend; got 1 before 0"),
        ({"leaf_labels": np.array([0, 1, 0, 3, 2, 2])}, "the labels of leaf 2 must ascend; got 2 before 2"),
        ({"leaf_labels": np.array([0, 1, 0, 1, 1, 2])}, "every label must stand in a leaf; label 3 stands in none"),
        ({"leaf_labels": np.array([0, 1.5, 0, 3, 1, 2])}, "leaf_labels must hold integers"),
        ({"n_labels": 0}, "at least one label"),
    ],
)
def test_broken_arrays_are_refused(change, message):
    tree = small_tree()
    given = {name: getattr(tree, name) for name in ("parents", "leaf_indptr", "leaf_labels", "n_labels")}
    with pytest.raises(DataError, match=message):
        LabelTree(**{**given, **change})


def test_levels_and_leaves_out_of_range_are_refused():
    with pytest.raises(ParameterError, match="level must be an integer between 0 and 1; got 2"):
        small_tree().membership(2)
    with pytest.raises(ParameterError, match="leaf must be"):
        small_tree().path(3)


def test_it_survives_saving():
    tree = small_tree()
    part = tree.to_part()
    assert part.kind == "label-tree.v1"
    json.dumps(part.params)
    assert LabelTree.from_part(part) == tree
    assert LabelTree.from_part(part) != LabelTree.flat(4)
    damaged = {**part.arrays, "leaf_labels": part.arrays["leaf_labels"][::-1]}
    with pytest.raises(ModelError, match="inconsistent"):
        LabelTree.from_part(Part(part.kind, part.params, damaged))
    with pytest.raises(ModelError, match=r"lacks the array 'parents\.2'"):
        LabelTree.from_part(Part(part.kind, {**part.params, "n_levels": 3}, part.arrays))
    with pytest.raises(ModelError, match="inconsistent"):
        LabelTree.from_part(Part(part.kind, {}, part.arrays))


def test_facts_are_json_and_right():
    facts = json.loads(json.dumps(small_tree().describe(names=["a", "b", "c", "d"], n_examples=2)))
    assert facts["levels"][0] == {
        "nodes": 2,
        "children": {"smallest": 1, "mean": 1.5, "largest": 2},
        "labels": {"smallest": 2, "mean": 2.5, "largest": 3},
    }
    assert facts["copies"] == {"smallest": 1, "mean": 1.5, "largest": 2, "labels_in_several_leaves": 2}
    assert facts["examples"][0] == {"leaf": 0, "path": [0, 0], "labels": ["a", "b"]}
    assert len(facts["examples"]) == 2
    with pytest.raises(DataError, match="names must have one entry per label, 4; got 1"):
        small_tree().describe(names=["a"])
