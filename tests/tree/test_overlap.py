"""Labels in several clusters: what is recalled, how many leaf slots a label gets, and how full clusters become."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from longtail.errors import DataError, ParameterError
from longtail.tree import LabelTree, disentangle, recalled


def drawn(seed, n_rows=60, n_labels=12, n_clusters=6):
    rng = np.random.default_rng(seed)
    Y = (rng.random((n_rows, n_labels)) < 0.2).astype(np.float32)
    M = (rng.random((n_rows, n_clusters)) < 0.3).astype(np.float32)
    return M, Y, LabelTree.from_clusters(rng.integers(0, n_clusters, n_labels), n_clusters)


def recalled_slowly(M, Y, C):
    return sum(bool((M[i] * C[label]).any()) for i, label in zip(*np.nonzero(Y), strict=True))


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 10**6), st.integers(1, 5), st.sampled_from([None, 1.0, 1.5]))
def test_recall_is_never_below_that_of_the_partition(seed, overlap, room):
    """Theorem 3 of the paper, with ≥; where clusters are full it holds if every label keeps its slot."""
    M, Y, tree = drawn(seed)
    before = recalled(M, Y, tree.slots())
    slots = disentangle(M, Y, overlap, start=tree, hold=room is not None, room=room)
    assert before == recalled_slowly(M, Y, tree.slots().toarray())
    assert recalled(M, Y, slots) == recalled_slowly(M, Y, slots.toarray()) >= before
    assert (np.diff(slots.indptr) >= 1).all() and (np.diff(slots.indptr) <= overlap).all()
    auto = disentangle(M, Y, "coverage", start=tree, hold=True, room=room)
    assert recalled(M, Y, auto) >= before and (auto.toarray() >= tree.slots().toarray()).all()


def test_labels_leave_clusters_that_fewer_of_their_rows_find():
    """The closed form of the paper looks at counts alone: a label leaves a cluster that its rows never find."""
    M = np.zeros((24, 3), np.float32)
    M[:12, 1] = M[12:, 2] = 1
    Y = np.ones((24, 1), np.float32)  # Yᵀ M = [0, 12, 12]
    tree = LabelTree.from_clusters([0], 3)
    assert disentangle(M, Y, 2, start=tree).toarray().tolist() == [[0, 1, 1]]
    assert disentangle(M, Y, 2, start=tree, hold=True).toarray().tolist() == [[1, 1, 0]]
    assert disentangle(M, Y, 1, start=tree, room=1.0).toarray().tolist() == [[0, 1, 0]]


def test_recall_may_fall_below_that_of_overlapping_clusters_unless_they_are_held():
    """Theorem 3 is about partitions: the two largest counts may find the same rows twice."""
    M = np.zeros((10, 4), np.float32)
    M[:5, 0] = M[5:, 1] = M[:6, 2] = M[:6, 3] = 1
    Y, start = np.ones((10, 1), np.float32), np.array([[1, 1, 0, 0]])
    assert recalled(M, Y, start) == 10
    assert recalled(M, Y, disentangle(M, Y, 2, start=start)) == 6
    assert recalled(M, Y, disentangle(M, Y, 2, start=start, hold=True)) == 10


def test_the_largest_counts_win():
    M, Y, tree = drawn(3)
    counts = Y.T @ M
    slots = disentangle(M, Y, 2, start=tree).toarray()
    for label in range(Y.shape[1]):
        best = sorted(range(M.shape[1]), key=lambda c: (-counts[label, c], c))[:2]
        assert set(np.flatnonzero(slots[label])) == {c for c in best if counts[label, c] > 0}


def test_labels_that_are_never_matched_stay_where_they_are():
    M, Y, tree = drawn(4)
    Y[:, 5] = 0
    slots = disentangle(M, Y, 3, start=tree).toarray()
    assert np.array_equal(slots[5], tree.slots().toarray()[5])
    assert not disentangle(M, Y, 3).toarray()[5].any()


def test_least_keeps_rare_labels_in_one_slot():
    M, Y, tree = drawn(5)
    strict, lax = (disentangle(M, Y, 3, start=tree, least=least) for least in (8, 1))
    counts = Y.T @ M
    assert strict.nnz < lax.nnz
    for label, cluster in zip(*np.nonzero(strict.toarray()), strict=True):
        assert counts[label, cluster] >= 8 or counts[label, cluster] == counts[label].max()


def test_room_bounds_the_clusters():
    rng = np.random.default_rng(0)
    M = np.zeros((400, 10), np.float32)
    M[:, 0] = 1  # a cluster that is found for every row
    M[np.arange(400), rng.integers(1, 10, 400)] = 1
    Y = (rng.random((400, 50)) < 0.1).astype(np.float32)
    tree = LabelTree.from_clusters(np.arange(50) % 10)
    assert disentangle(M, Y, 2, start=tree)[:, [0]].sum() == 50
    for hold in (False, True):
        bounded = disentangle(M, Y, 2, start=tree, hold=hold, room=1.5)
        assert bounded.sum(axis=0).max() <= 15 and bounded.nnz == 100


def test_auto_gives_a_second_slot_only_to_the_label_that_needs_it():
    M = np.kron(np.eye(3), np.ones((20, 1)))
    Y = np.zeros((60, 3))
    Y[:20, 0] = Y[20:40, 1] = Y[40:, 2] = 1
    Y[45:, 0] = 1  # label 0 has two meanings
    tree = LabelTree.from_clusters([0, 1, 2])
    assert disentangle(M, Y, "coverage", start=tree).toarray().astype(int).tolist() == [[1, 0, 1], [0, 1, 0], [0, 0, 1]]


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_threads_do_not_matter(n_jobs):
    M, Y, tree = drawn(9, 3000, 2500, 40)
    want = disentangle(M, Y, "coverage", start=tree, n_jobs=1)
    assert (disentangle(M, Y, "coverage", start=tree, n_jobs=n_jobs) != want).nnz == 0


def test_bad_input():
    M, Y, _ = drawn(1)
    with pytest.raises(DataError, match="matcher"):
        disentangle(M[:-1], Y)
    with pytest.raises(
        ParameterError, match="overlap must be a whole number from 1 to 1048576 or 'coverage'; got 'many'"
    ):
        disentangle(M, Y, "many")
    with pytest.raises(ParameterError, match=r"or 'coverage'; got 'auto'\. Did you mean 'coverage'\?"):
        disentangle(M, Y, "auto")  # which it was called before
    with pytest.raises(ParameterError, match="overlap"):
        disentangle(M, Y, 0)
    with pytest.raises(ParameterError, match="hold must be False where no start is given"):
        disentangle(M, Y, 2, hold=True)
    with pytest.raises(DataError, match="start must have the shape"):
        disentangle(M, Y, 2, start=LabelTree.flat(12))
    with pytest.raises(DataError, match="slots must have the shape"):
        recalled(M, Y, np.ones((2, 2)))
