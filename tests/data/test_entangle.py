"""Labels joined on purpose: the sets of every mode, the fused matrix and the map back."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

import longtail as lt
from longtail.data import entangle_labels, fuse_labels, fused_labels, fused_names, make_linear
from longtail.errors import DataError, ParameterError
from longtail.text import pifa
from longtail.tree import build_tree

modes = st.sampled_from(["easy", "medium", "hard"])


def sets(new):
    return sorted(np.flatnonzero(new == number).tolist() for number in range(new.max() + 1))


@given(st.integers(1, 60).flatmap(lambda n: st.permutations(range(n))), st.integers(1, 9), modes, st.integers(0, 5))
def test_every_mode_joins_every_label_once_k_at_a_time(order, k, mode, seed):
    n_labels = len(order)
    Y, new = entangle_labels(np.eye(n_labels), k, mode, order=order, random_state=seed)
    assert new.dtype == np.int32 and Y.shape == (n_labels, -(-n_labels // k))
    sizes = np.bincount(new)
    assert sizes.max() <= k and (sizes < k).sum() <= 1
    assert new[0] == 0 and (np.diff(np.unique(new, return_index=True)[1]) > 0).all()  # numbered by the smallest label
    assert np.array_equal(Y.indices, new)  # row i has label i alone


def test_easy_joins_neighbours_and_medium_joins_within_a_cluster():
    order = np.random.default_rng(1).permutation(400)
    position = np.argsort(order)
    _, easy = entangle_labels(np.eye(400), 4, "easy", order=order)
    assert sets(easy) == sorted(sorted(order[i : i + 4].tolist()) for i in range(0, 400, 4))
    _, medium = entangle_labels(np.eye(400), 4, "medium", order=order)
    cluster = position // 128
    for found in sets(medium):
        assert len(set(cluster[found].tolist())) == 1
    assert sets(medium) != sets(easy)
    _, hard = entangle_labels(np.eye(400), 4, "hard")
    assert any(len(set(cluster[found].tolist())) > 1 for found in sets(hard))


def test_the_seed_decides_the_random_modes_and_nothing_else():
    order = np.arange(100)
    for mode in ("medium", "hard"):
        first, again, other = (entangle_labels(np.eye(100), 2, mode, order=order, random_state=s)[1] for s in (3, 3, 4))
        assert np.array_equal(first, again) and not np.array_equal(first, other)
    easy = [entangle_labels(np.eye(100), 2, "easy", order=order, random_state=s)[1] for s in (3, 4)]
    assert np.array_equal(*easy)


def test_a_row_has_a_joined_label_if_it_has_a_component():
    data = make_linear(200, 300, 40)[0]
    before = data.Y.toarray()
    Y, new = entangle_labels(data.Y, 3)
    for label in range(Y.shape[1]):
        expected = (before[:, new == label] > 0).any(axis=1)
        assert np.array_equal(Y[:, [label]].toarray().ravel() > 0, expected)
    assert set(Y.data.tolist()) == {1.0} and Y.has_canonical_format
    assert np.array_equal(data.Y.toarray(), before)
    assert np.array_equal(fused_labels(data.Y[:50], new).toarray(), Y[:50].toarray())


def test_k_of_1_changes_nothing_but_weights():
    Y = sp.csr_array(np.array([[0, 2.0], [3.0, 0]]))
    fused, new = entangle_labels(Y, 1)
    assert new.tolist() == [0, 1] and fused.toarray().tolist() == [[0, 1], [1, 0]]


def test_the_leaves_of_a_balanced_tree_are_an_order():
    data = make_linear(400, 300, 64)[0]
    tree = build_tree(pifa(data.X, data.Y), branching=2, max_leaf=4, balanced=True)
    _, new = entangle_labels(data.Y, 4, "easy", order=tree.leaf_labels)
    leaves = tree.slots().indices
    assert all(len(set(leaves[found].tolist())) == 1 for found in sets(new))  # 64 labels in 16 leaves of 4


def test_joined_names():
    assert fused_names(["a", "b", "c"], [1, 0, 1]) == ("b", "a + c")


def test_the_older_generator_of_pairs_stays():
    data = make_linear(100, 300, 20)[0]
    fused, new = fuse_labels(data, 5)
    assert fused.n_labels == 15 and np.array_equal(fused_labels(data.Y, new).toarray(), fused.Y.toarray())


@pytest.mark.parametrize(
    ("change", "error", "sentence"),
    [
        ({"k": 0}, ParameterError, "k must be an integer >= 1; got 0."),
        ({"mode": "hrad"}, ParameterError, "Did you mean 'hard'?"),
        ({"mode": "easy"}, ParameterError, "mode 'easy' needs order"),
        ({"mode": "easy", "order": [0, 1, 1]}, DataError, "order must hold every label number from 0 to 2 once."),
        ({"mode": "medium", "order": [0.0, 1.0, 2.0]}, DataError, "order must hold every label number"),
        ({"random_state": -1}, ParameterError, "random_state must be"),
    ],
)
def test_bad_input_is_refused_in_one_sentence(change, error, sentence):
    with pytest.raises(error) as told:
        entangle_labels(np.eye(3), **change)
    assert sentence in str(told.value)


@pytest.mark.parametrize("new", [[0, 0], [0, -1, 1], [0.5, 0, 1], [[0, 1, 2]]])
def test_bad_maps_are_refused(new):
    with pytest.raises(DataError, match="new must"):
        fused_labels(np.eye(3), new)


def test_the_generators_are_public():
    assert lt.data.entangle_labels is entangle_labels and "entangle_labels" in lt.data.__all__
