"""Labels of rows from labels of groups."""

import numpy as np
import pytest
import scipy.sparse as sp

import longtail as lt
from longtail.data import group_by_clusters, group_randomly, make_linear
from longtail.errors import DataError, ParameterError
from longtail.groups import Eagle, group_likeness, propagate
from longtail.model import clone

X4 = np.array([[1, 0, 0], [0, 1, 0], [1, 0.1, 0], [0.1, 1, 0]])
G4 = np.array([[1, 0], [1, 0], [0, 1], [0, 1]])
ASSIGNS = ("argmax", "top", "soft", "auto")


@pytest.fixture(scope="module")
def data():
    return make_linear(1000, 100, 60, labels_per_row=2, noise_features=14, random_state=5)[0]


def right(Y, found):
    """Return the share of found labels that are right."""
    return (found.multiply(Y) > 0).sum() / found.nnz


def toy():
    """Three groups of x and -x, each with both labels."""
    x = np.array([0.6, 0.8])
    return np.array([x, -x] * 3), np.repeat(np.eye(3), 2, axis=0), np.ones((3, 2))


@pytest.mark.parametrize("assign", ASSIGNS)
def test_the_toy_example_is_separated(assign):
    X, groups, Y_groups = toy()
    found = Eagle(assign=assign).fit_transform(X, groups, Y_groups).toarray() > 0.5
    assert (found.sum(axis=1) == 1).all()
    assert (found[::2] == found[0]).all() and (found[1::2] == found[1]).all() and (found[0] != found[1]).all()
    top = lt.OneVsAllClassifier(random_state=0).fit(X, found).predict_topk(X, k=2)
    assert (top.ids[:, 0] == found.argmax(axis=1)).all() and (top.scores[:, 0] - top.scores[:, 1] > 0.5).all()


def test_plain_propagation_learns_nothing_from_the_toy_example():
    X, groups, Y_groups = toy()
    top = lt.OneVsAllClassifier(random_state=0).fit(X, propagate(groups, Y_groups)).predict_topk(X, k=2)
    np.testing.assert_allclose(top.scores[:, 0], top.scores[:, 1], atol=1e-4)


@pytest.mark.parametrize("assign", ASSIGNS)
def test_groups_of_one_row_give_the_labels_back(data, assign):
    found = Eagle(assign=assign).fit_transform(data.X, sp.eye_array(data.n_rows, format="csr"), data.Y)
    assert (found != data.Y).nnz == 0


def test_label_vectors_are_mean_rows_where_groups_have_one_row(data):
    model = Eagle(threshold=0.0).fit(data.X, sp.eye_array(data.n_rows, format="csr"), data.Y)
    X = data.X.toarray() / np.linalg.norm(data.X.toarray(), axis=1, keepdims=True)
    expected = data.Y.T @ X
    expected /= np.maximum(np.linalg.norm(expected, axis=1, keepdims=True), 1e-12)
    np.testing.assert_allclose(model.label_vectors_.toarray(), expected, atol=1e-5)


@pytest.mark.parametrize("size", [2, 5])
def test_auto_beats_the_published_rule_and_both_beat_chance_in_random_groups(data, size):
    groups, Y_groups = group_randomly(data.Y, size, random_state=1)
    shares = {a: right(data.Y, Eagle(assign=a).fit_transform(data.X, groups, Y_groups)) for a in ("argmax", "auto")}
    chance = right(data.Y, propagate(groups, Y_groups))
    assert shares["argmax"] > 1.2 * chance
    assert shares["auto"] > shares["argmax"] + 0.02 and shares["auto"] > 0.85


def test_auto_beats_the_published_rule_in_clusters(data):
    groups, Y_groups = group_by_clusters(data.X, data.Y, 6, random_state=1)
    argmax, auto = (Eagle(assign=a).fit_transform(data.X, groups, Y_groups) for a in ("argmax", "auto"))
    assert right(data.Y, auto) > right(data.Y, argmax) + 0.05
    assert auto.nnz == data.Y.nnz > argmax.nnz  # counts are known: nothing gets lost


def test_auto_propagates_where_the_rows_of_a_group_are_the_same():
    rng = np.random.default_rng(0)
    centres, Y_groups = rng.standard_normal((30, 20)), rng.random((30, 8)) < 0.3
    Y_groups[Y_groups.sum(axis=1) == 0, 0] = True
    groups = np.repeat(np.eye(30), 6, axis=0)
    X = groups @ centres + 1e-3 * rng.standard_normal((180, 20))
    model = Eagle(assign="auto").fit(X, groups, Y_groups)
    assert model.likeness_ > 0.99
    assert (model.row_labels_ != propagate(groups, Y_groups)).nnz == 0


def test_unknown_counts_are_about_the_true_ones_in_random_groups(data):
    groups, Y_groups = group_randomly(data.Y, 4, random_state=1)
    once = (Y_groups > 0).astype(np.float32)
    found = Eagle(assign="auto").fit_transform(data.X, groups, once)
    assert once.nnz < found.nnz and found.nnz == pytest.approx(data.Y.nnz, rel=0.05)
    assert right(data.Y, found) > 0.85


def test_a_label_counted_twice_goes_to_the_two_nearest_rows():
    X = [[1, 0], [0.9, 0.1], [0, 1], [1, 0]]
    groups = [[1, 0], [1, 0], [1, 0], [0, 1]]
    found = Eagle(assign="top").fit_transform(X, groups, [[2], [1]]).toarray().ravel().tolist()
    assert found == [1, 1, 0, 1]
    assert Eagle(assign="argmax").fit_transform(X, groups, [[2], [1]]).sum() == 2
    assert Eagle(assign="top").fit_transform(X, groups, [[9], [1]]).sum() == 4  # no more than there are rows


def test_soft_weights_add_up_to_the_count(data):
    groups, Y_groups = group_randomly(data.Y, 4, random_state=1)
    found = Eagle(assign="soft").fit_transform(data.X, groups, Y_groups)
    per_group = (groups.T @ found).toarray()
    known = np.minimum(Y_groups.toarray(), 4)
    assert (per_group <= known + 1e-4).all() and (per_group[known > 0] > 0.6).all()
    assert found.data.max() <= 1 and found.data.min() >= 0.1


def test_confidence_tells_right_from_wrong(data):
    groups, Y_groups = group_randomly(data.Y, 8, random_state=1)
    model = Eagle(assign="auto").fit(data.X, groups, Y_groups)
    hit = np.asarray(data.Y[model.row_labels_.nonzero()]).ravel() > 0
    sure = model.confidence_.data
    assert model.confidence_.nnz == model.row_labels_.nnz and (sure > 0).all() and (sure <= 1).all()
    assert sure[hit].mean() > sure[~hit].mean() + 0.1


@pytest.mark.parametrize("assign", ASSIGNS)
def test_threads_and_storage_change_nothing(data, assign):
    groups, Y_groups = group_by_clusters(data.X, data.Y, 7)
    one, two, dense = (
        Eagle(assign=assign, n_jobs=jobs).fit(X, groups, Y_groups)
        for jobs, X in ((1, data.X), (3, sp.csr_matrix(data.X)), (1, data.X.toarray()))
    )
    for other in (two, dense):
        for name in ("row_labels_", "confidence_", "label_vectors_"):
            a, b = getattr(one, name), getattr(other, name)
            assert (a.indptr == b.indptr).all() and (a.indices == b.indices).all() and (a.data == b.data).all()


def test_the_callers_arrays_stay():
    X, groups, Y_groups = sp.csr_array(X4), sp.csr_array(G4), sp.csr_array(np.array([[2, 1], [1, 1]]))
    before = [(M.data.copy(), M.indices.copy()) for M in (X, groups, Y_groups)]
    Eagle(assign="auto").fit(X, groups, Y_groups)
    for M, (values, ids) in zip((X, groups, Y_groups), before, strict=True):
        assert (M.data == values).all() and (M.indices == ids).all()


def test_overlapping_groups_give_a_label_once():
    groups = [[1, 1], [1, 0], [0, 1], [0, 1]]
    found = Eagle().fit_transform(X4, groups, [[1, 1], [1, 1]])
    assert found.data.max() == 1 and found.toarray()[:, 0].sum() + found.toarray()[:, 1].sum() <= 4


@pytest.mark.parametrize("assign", ASSIGNS)
def test_rows_in_no_group_and_labels_of_no_group_are_let_be(assign):
    groups = np.vstack([G4, [0, 0]])
    model = Eagle(assign=assign).fit(np.vstack([X4, [1, 1, 1]]), groups, [[1, 1, 0], [1, 1, 0]])
    found = model.row_labels_.toarray()
    assert found[4].sum() == 0 and found[:, 2].sum() == 0 and found[:4].sum() > 0
    assert model.label_vectors_[[2]].nnz == 0


@pytest.mark.parametrize("assign", ASSIGNS)
def test_rows_of_zeros_are_the_last_resort(assign):
    X = np.array([[0, 0], [-1, 0.2], [1, 0], [0, 0]])
    groups = [[1, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1]]
    found = Eagle(assign=assign).fit_transform(X, groups, [[1], [1], [1]]).toarray().ravel() > 0.5
    assert found.tolist() == [False, True, True, True]


def test_groups_without_rows_and_labels_are_ignored():
    groups = np.hstack([G4, np.zeros((4, 1))])
    assert Eagle().fit_transform(X4, groups, [[1, 1], [1, 1], [0, 0]]).sum() == 4


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ((X4, G4[:3], np.ones((2, 2))), "X and groups must have as many rows; got 4 and 3."),
        ((X4, G4, np.ones((3, 2))), "groups must have one column per row of Y_groups, .* got 2 columns and 3 rows."),
        ((X4, np.hstack([G4, np.zeros((4, 1))]), np.ones((3, 2))), "group 2 has labels but no rows; give it rows or"),
        ((X4, G4, np.zeros((2, 2))), "Y_groups must hold at least one label; every group is empty."),
        ((X4, G4, np.full((2, 2), 0.5)), "Y_groups must hold counts, whole numbers of 0 or more; got 0.5."),
        ((X4, G4, -np.ones((2, 2))), "Y_groups must not be negative; got -1 in row 0."),
        ((X4 * np.nan, G4, np.ones((2, 2))), "X must be finite; got NaN in row 0, column 0."),
        ((X4[:, :0], G4, np.ones((2, 2))), "X must have at least one feature; got 0 columns."),
    ],
)
def test_what_does_not_fit_together_is_refused_in_one_sentence(arguments, sentence):
    with pytest.raises(DataError, match=sentence) as caught:
        Eagle().fit(*arguments)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("params", "sentence"),
    [
        ({"assign": "atuo"}, "assign must be one of .* got 'atuo'. Did you mean 'auto'?"),
        ({"n_iter": -1}, "n_iter must be an integer >= 0; got -1."),
        ({"step": 0}, "step must be a number > 0; got 0."),
        ({"temperature": 0}, "temperature must be a number > 0; got 0."),
        ({"damping": 2}, "damping must be a number between 0 and 1; got 2."),
        ({"negatives": "yes"}, "negatives must be True or False; got 'yes'."),
        ({"rounds": 1}, "rounds=1 needs a model with fit and predict_topk; got model=None."),
        ({"rounds": 1, "model": 3}, "model must have fit and predict_topk; got int without fit."),
    ],
)
def test_bad_parameters_are_refused_in_one_sentence(params, sentence):
    with pytest.raises(ParameterError, match=sentence):
        Eagle(**params).fit(X4, G4, np.ones((2, 2)))


def test_asking_a_model_helps_and_does_not_change_it(data):
    groups, Y_groups = group_randomly(data.Y, 10, random_state=1)
    model = lt.OneVsAllClassifier(random_state=0)
    plain = Eagle(assign="auto").fit_transform(data.X, groups, Y_groups)
    asked = Eagle(assign="auto", model=model, rounds=1).fit_transform(data.X, groups, Y_groups)
    assert right(data.Y, asked) > right(data.Y, plain) + 0.01
    assert not hasattr(model, "weights_") and asked.nnz == plain.nnz


def test_clone_and_parameters():
    copy = clone(Eagle(assign="top", n_iter=3))
    assert copy.get_params()["assign"] == "top" and repr(copy) == "Eagle(n_iter=3, assign='top')"
    assert lt.Eagle is Eagle


def test_likeness_of_random_and_equal_groups(data):
    assert abs(group_likeness(data.X, group_randomly(data.Y, 4).groups)) < 0.02
    assert group_likeness([[1, 2]] * 4, G4) == 1.0
    assert group_likeness(X4, np.ones((4, 1))) == 0.0


def test_vectors_of_labels_of_very_many_groups_keep_their_length():
    X = np.random.default_rng(0).standard_normal((4000, 6))
    groups = sp.csr_array((np.ones(4000), (np.arange(4000), np.arange(4000) // 2)), shape=(4000, 2000))
    vectors = Eagle(n_iter=60, threshold=0).fit(X, groups, np.ones((2000, 3))).label_vectors_.toarray()
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1, rtol=1e-4)


def test_soft_shares_add_up_to_the_counts():
    X = np.abs(np.random.default_rng(0).standard_normal((40, 6)))
    for n, counts in ((4, [1, 1, 2, 4]), (9, [1, 2, 3, 1]), (40, [1, 1, 5, 2])):
        found = Eagle(assign="soft", random_state=0).fit_transform(X[:n], np.ones((n, 1)), [counts])
        assert np.allclose(found.sum(axis=0), counts, atol=1e-3) and found.data.max() <= 1


def test_rows_of_zeros_do_not_make_groups_alike():
    X = [[0, 0], [0, 0], [1, 0.2], [0.2, 1]]
    groups = [[1, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1]]
    model = Eagle(assign="auto").fit(X, groups, [[1, 0], [1, 1], [0, 1]])
    assert model.likeness_ == 0
    assert model.row_labels_[[0, 1]].sum() == 1 and model.confidence_.toarray()[:2].max() <= 0.5
