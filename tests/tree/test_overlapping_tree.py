"""A label tree whose labels stand in several leaves."""

import numpy as np
import pytest
import scipy.sparse as sp

import longtail as lt
from longtail import LabelTreeClassifier
from longtail.data import make_linear
from longtail.errors import ParameterError
from longtail.metrics import precision_at_k
from longtail.model.base import row_scale
from longtail.tree import LabelTree, disentangle, matched_leaves
from longtail.tree import chunks as tree_chunks
from longtail.tree.search import search_rows


@pytest.fixture(scope="module")
def fused():
    """Labels joined at random, two by two: each has two meanings."""
    data, _ = make_linear(n_rows=3000, n_features=300, n_labels=160, random_state=0)
    order = np.random.default_rng(0).permutation(160)
    join = sp.csr_array((np.ones(160, np.float32), (order, np.arange(160) // 2)), shape=(160, 80))
    Y = sp.csr_array(data.Y @ join)
    Y.data[:] = 1
    return data.X[:2400], Y[:2400], data.X[2400:], Y[2400:]


def fitted(fused, **params):
    settings = {"max_leaf": 16, "beam": 2, "random_state": 0, **params}
    return LabelTreeClassifier(**settings).fit(*fused[:2])


def p_at(model, fused, k):
    return precision_at_k(fused[3], model.predict_topk(fused[2], k=k), k)


@pytest.mark.parametrize("params", [{}, {"merge": "mean"}, {"rounds": 0}, {"rounds": 2}, {"negatives": "tfn"}])
def test_overlap_helps_labels_with_two_meanings(fused, params):
    plain, overlapping = fitted(fused), fitted(fused, overlap=2, **params)
    tree = overlapping.trees_[0]
    assert tree.n_slots > tree.n_labels and np.bincount(tree.leaf_labels).max() == 2
    assert p_at(overlapping, fused, 3) > p_at(plain, fused, 3)


@pytest.mark.parametrize("overlap", [1, 2, 3])
def test_the_published_method_takes_the_largest_counts_and_nothing_else(fused, overlap):
    """Equation 10: the λ largest entries of each row of Yᵀ M, with M from the tree without overlap, same beam."""
    settings = {"max_leaf": 16, "branching": 4, "beam": 2, "random_state": 0}
    plain = LabelTreeClassifier.published(1, rounds=None, **settings).fit(*fused[:2])
    ids = matched_leaves(plain, fused[0]).ids
    M = np.zeros((ids.shape[0], plain.trees_[0].n_leaves))
    np.put_along_axis(M, np.maximum(ids, 0), 1, axis=1)
    counts = fused[1].toarray().T @ M
    model = LabelTreeClassifier.published(overlap, **settings).fit(*fused[:2])
    slots = model.trees_[0].slots().toarray()
    for label in range(counts.shape[0]):
        best = sorted(range(counts.shape[1]), key=lambda leaf: (-counts[label, leaf], leaf))[:overlap]
        assert set(np.flatnonzero(slots[label])) == {leaf for leaf in best if counts[label, leaf] > 0}
    assert model.beam_width == plain.beam_width == 2


def test_two_published_rounds_start_from_the_clusters_of_the_first(fused):
    settings = {"max_leaf": 16, "branching": 4, "beam": 2, "random_state": 0}
    once, twice = (LabelTreeClassifier.published(2, rounds=n, **settings).fit(*fused[:2]) for n in (1, 2))
    ids = matched_leaves(once, fused[0]).ids
    M = np.zeros((ids.shape[0], once.trees_[0].n_leaves))
    np.put_along_axis(M, np.maximum(ids, 0), 1, axis=1)
    expected = disentangle(M, fused[1], 2, start=once.trees_[0])
    assert (twice.trees_[0].slots() != expected).nnz == 0


def test_a_leaf_takes_no_more_than_its_balance(fused):
    free, bounded = fitted(fused, overlap=2, balance=None), fitted(fused, overlap=2, balance=1.2)
    sizes = [np.diff(model.trees_[0].leaf_indptr) for model in (free, bounded)]
    most = np.ceil(1.2 * 2 * 80 / sizes[0].size)
    assert sizes[0].max() > most >= sizes[1].max()


def test_a_label_keeps_its_leaf_if_told(fused):
    first = fitted(fused).trees_[0].slots()
    kept, free = (fitted(fused, overlap=2, keep_leaf=keep).trees_[0].slots() for keep in (True, False))
    assert first.multiply(kept).sum() == 80 > first.multiply(free).sum()


def test_a_further_slot_needs_its_rows(fused):
    n_slots = [fitted(fused, overlap=2, slot_rows=rows).trees_[0].n_slots for rows in (1, 60)]
    assert n_slots[0] > n_slots[1]


def test_auto_overlaps_where_the_beam_misses_labels(fused):
    auto = fitted(fused, overlap="auto")
    assert fused[1].shape[1] < auto.trees_[0].n_slots
    assert p_at(auto, fused, 3) > p_at(fitted(fused), fused, 3)


@pytest.mark.parametrize(("beam", "split"), [(1, False), (2, True), (3, True)])
def test_auto_splits_positives_where_the_beam_then_reaches_more(fused, beam, split):
    narrow = {"max_leaf": 8, "beam": beam}
    auto, expected = (
        fitted(fused, **narrow, **params) for params in ({"overlap": "auto"}, {"overlap": 2, "split_positives": split})
    )
    assert auto.trees_ == expected.trees_
    for name, array in expected.chunks_[0].arrays("").items():
        assert np.array_equal(array, auto.chunks_[0].arrays("")[name]), name
    assert p_at(auto, fused, 3) > p_at(fitted(fused, **narrow), fused, 3) - 0.01


def test_auto_is_the_plain_tree_where_the_beam_misses_hardly_any(fused):
    plain, auto = fitted(fused, beam=20), fitted(fused, beam=20, overlap="auto")
    assert auto.trees_ == plain.trees_
    for name, array in plain.chunks_[0].arrays("").items():
        assert np.array_equal(array, auto.chunks_[0].arrays("")[name]), name


@pytest.mark.parametrize("merge", ["max", "mean"])
@pytest.mark.parametrize("n_trees", [1, 2])
def test_a_label_comes_once_and_single_rows_agree_with_batches(fused, merge, n_trees):
    model = fitted(fused, overlap=3, merge=merge, n_trees=n_trees)
    X = fused[2][:60]
    for k in (1, 5, 30):
        top = model.predict_topk(X, k=k)
        for ids in top.ids:
            assert len(set(ids[ids >= 0])) == (ids >= 0).sum()
        for rows in (*([row] for row in range(0, 60, 7)), [1, 2], list(range(20, 52)), list(range(7, 40))):
            few = model.predict_topk(X[rows], k=k)
            assert np.array_equal(few.ids, top.ids[rows]) and np.array_equal(few.scores, top.scores[rows])


def test_the_best_slot_counts(fused, monkeypatch):
    """merge="max" is the best of all slots that the beam reaches, whatever way of searching is taken."""
    model = fitted(fused, overlap=3, beam=4)
    X = sp.csr_array(fused[2][:50])
    tree, chunks = model.trees_[0], model.chunks_[0]
    slots, scores = search_rows(chunks, X, row_scale(X, True), model._beam_plan(tree, 4 * 40), 1)
    top = model.predict_topk(X, k=5)
    for row in range(50):
        best = {}
        for slot, score in zip(slots[row], scores[row], strict=True):
            if slot >= 0:
                label = tree.leaf_labels[slot - chunks.n_chunks + 1]
                best[label] = max(score, best.get(label, -np.inf))
        assert top.scores[row].tolist() == sorted(best.values(), reverse=True)[:5]
    monkeypatch.setattr(tree_chunks, "LARGEST_SPREAD", 0)
    bare = lt.LabelTreeClassifier.from_part(model.to_part())
    again = bare.predict_topk(X, k=5)
    assert np.array_equal(again.ids, top.ids) and np.array_equal(again.scores, top.scores)


def test_same_model_for_any_number_of_threads(fused):
    one, two = (fitted(fused, overlap=2, rounds=2, n_jobs=n) for n in (1, 2))
    assert one.trees_ == two.trees_
    for name, array in one.chunks_[0].arrays("").items():
        assert np.array_equal(array, two.chunks_[0].arrays("")[name]), name


def test_saved_and_loaded_edited_and_restricted(fused, tmp_path):
    model = fitted(fused, overlap=2)
    top = model.predict_topk(fused[2], k=5)
    again = lt.load(model.save(tmp_path / "model")).predict_topk(fused[2], k=5)
    assert np.array_equal(top.ids, again.ids) and np.array_equal(top.scores, again.scores)
    several = int(np.argmax(np.bincount(model.trees_[0].leaf_labels)))
    assert several not in model.predict_topk(fused[2], k=5, deny=[several]).ids
    assert model.explain(fused[2][[0]], [several])[0].label == several
    smaller = model.remove_labels([several])
    assert smaller.n_labels_ == 79 and smaller.predict_topk(fused[2], k=5).ids.max() < 79


def test_bad_parameters(fused):
    for params, words in (
        ({"overlap": "two"}, "overlap must be a whole number from 1 to 1048576 or 'auto'; got 'two'"),
        ({"overlap": 0}, "overlap"),
        ({"merge": "sum"}, "merge"),
        ({"rounds": -1}, "rounds"),
        ({"slot_rows": 2**21}, "slot_rows must be"),
        ({"balance": 0.5}, "balance must be"),
    ):
        with pytest.raises(ParameterError, match=words):
            fitted(fused, **params)


def test_a_given_tree_may_overlap(fused):
    tree = LabelTree.from_clusters(np.arange(80) % 8)
    slots = tree.slots().toarray()
    slots[:, 0] = 1
    model = LabelTreeClassifier(random_state=0).fit(*fused[:2], tree=tree.with_slots(slots))
    assert model.trees_[0].n_slots == 150 and p_at(model, fused, 1) > 0.5


def test_rows_can_be_learned_where_a_leaf_has_become_empty(fused):
    tree = LabelTree.from_clusters([0] * 5 + [1] * 75)
    model = LabelTreeClassifier(random_state=0).fit(*fused[:2], tree=tree).remove_labels(range(5))
    again = model.partial_fit(fused[0][:500], fused[1][:500][:, 5:])
    assert again.n_labels_ == 75 and again.predict_topk(fused[2], k=3).ids.max() < 75


def test_labels_to_remove_are_whole_numbers(fused):
    with pytest.raises(ParameterError, match="whole numbers"):
        fitted(fused).remove_labels([1.5])
