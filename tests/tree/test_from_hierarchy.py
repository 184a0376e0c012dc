"""Label trees from hierarchies: branches become leaves of a fitting size."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import longtail as lt
from longtail.errors import DataError, ParameterError
from longtail.tree import Hierarchy, hierarchy_tree
from longtail.vocabulary import Concept


def halves(labels):
    return np.array_split(np.arange(labels.size), -(-labels.size // 4))


@given(st.lists(st.integers(-1, 30), min_size=1, max_size=60), st.integers(0, 2**32), st.integers(4, 20), st.booleans())
def test_every_label_stands_in_one_leaf_that_is_not_too_large(up, seed, max_leaf, flat):
    parents = np.array([min(node, number - 1) for number, node in enumerate(up)])
    nodes = np.random.default_rng(seed).integers(-1, parents.size, 50)
    tree = hierarchy_tree(Hierarchy(parents, nodes), max_leaf, 1000 if flat else 2, halves)
    assert sorted(tree.leaf_labels.tolist()) == list(range(50))
    assert np.diff(tree.leaf_indptr).max() <= max_leaf
    assert not flat or tree.n_levels == 1


def test_a_branch_stays_together():
    parents = np.array([-1, -1] + [0] * 20 + [1] * 20)
    tree = hierarchy_tree(Hierarchy(parents, np.arange(42)), 25, 8, halves)
    leaves = [set(leaf.tolist()) for leaf in np.split(tree.leaf_labels, tree.leaf_indptr[1:-1])]
    assert leaves == [{0, *range(2, 22)}, {1, *range(22, 42)}]


def test_a_cycle_is_refused():
    with pytest.raises(DataError, match="cycle"):
        hierarchy_tree(Hierarchy(np.array([1, 0]), np.array([0])), 4, 4, halves)


def test_a_tagger_takes_its_tree_from_the_vocabulary():
    words = [f"word{i}" for i in range(12)]
    concepts = [Concept("top1"), Concept("top2")]
    concepts += [Concept(word, broader=("top1" if i % 2 else "top2",)) for i, word in enumerate(words)]
    model = lt.LabelTreeClassifier(max_leaf=6)
    data = (words * 6, [[word] for word in words] * 6)
    tagger = lt.Tagger(model=model, random_state=0, n_jobs=1)
    tagger.fit(*data, vocabulary=lt.Vocabulary(concepts), tree_from_vocabulary=True)
    tree = tagger.model_.trees_[0]
    leaves = [
        {int(tagger.labels_[i][4:]) % 2 for i in leaf} for leaf in np.split(tree.leaf_labels, tree.leaf_indptr[1:-1])
    ]
    assert leaves in ([{0}, {1}], [{1}, {0}])
    assert tagger.tag(["word3"], k=1)[0][0].label == "word3"
    assert tagger.model_.calibrated_
    with pytest.raises(ParameterError, match="tree_from_vocabulary needs broader concepts, and no concept"):
        lt.Tagger().fit(*data, vocabulary=lt.Vocabulary([Concept(word) for word in words]), tree_from_vocabulary=True)
    with pytest.raises(ParameterError, match="tree_from_vocabulary needs vocabulary"):
        lt.Tagger().fit(*data, tree_from_vocabulary=True)
