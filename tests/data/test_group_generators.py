"""Groups made from rows with known labels."""

import numpy as np
import pytest

from longtail.data import count_labels, group_by_clusters, group_randomly, make_linear
from longtail.errors import DataError, ParameterError
from longtail.groups import group_likeness


@pytest.fixture(scope="module")
def data():
    return make_linear(500, 200, 20, labels_per_row=2, random_state=1)[0]


def test_random_groups_have_their_size_and_all_labels(data):
    groups, Y_groups = group_randomly(data.Y, 7, random_state=3)
    sizes = np.asarray(groups.sum(axis=0)).ravel()
    assert groups.shape == (500, 72) and (sizes[:-1] == 7).all() and sizes[-1] == 500 - 71 * 7
    assert Y_groups.sum() == data.Y.nnz
    np.testing.assert_array_equal(Y_groups.toarray(), (groups.T @ data.Y).toarray())


def test_the_seed_decides(data):
    one, two, other = (group_randomly(data.Y, 5, random_state=s).groups.indices for s in (1, 1, 2))
    assert (one == two).all() and (one != other).any()
    one, two = (group_by_clusters(data.X, data.Y, 4, random_state=1).groups.indices for _ in range(2))
    assert (one == two).all()


def test_clusters_are_even_and_hold_like_rows(data):
    groups, Y_groups = group_by_clusters(data.X, data.Y, 5)
    sizes = np.asarray(groups.sum(axis=0)).ravel()
    assert sizes.size == 32 and sizes.max() - sizes.min() <= 1
    assert Y_groups.sum() == data.Y.nnz and Y_groups.data.max() > 3
    assert group_likeness(data.X, groups) > 0.1


def test_noise_leads_from_clusters_to_random_groups(data):
    found = [group_likeness(data.X, group_by_clusters(data.X, data.Y, 5, noise=v).groups) for v in (0, 0.6, 1)]
    assert found[0] > found[1] > found[2] + 0.01 and abs(found[2]) < 0.02


def test_dense_and_sparse_rows_give_the_same_groups(data):
    dense = group_by_clusters(data.X.toarray(), data.Y, 3)
    assert (dense.groups.indices == group_by_clusters(data.X, data.Y, 3).groups.indices).all()


def test_weights_do_not_count_as_labels():
    assert count_labels([[1], [1]], [[0.5, 0], [2, 0]]).toarray().tolist() == [[2, 0]]


def test_bad_values_are_refused(data):
    with pytest.raises(ParameterError, match="size must be an integer between 1 and 500; got 0"):
        group_randomly(data.Y, 0)
    with pytest.raises(ParameterError, match=r"2\*\*depth <= 500; got 9"):
        group_by_clusters(data.X, data.Y, 9)
    with pytest.raises(ParameterError, match="noise must be a number between 0 and 1; got 2"):
        group_by_clusters(data.X, data.Y, 3, noise=2)
    with pytest.raises(DataError, match="X and Y must have as many rows; got 500 and 3"):
        group_by_clusters(data.X, data.Y[:3], 3)
