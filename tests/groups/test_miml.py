"""MIMLClassifier: rows get their labels though only groups have any; it saves, repeats itself and refuses bad input."""

import builtins

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

from longtail.data import group_randomly
from longtail.errors import DataError, MissingExtraError, ModelError, ParameterError
from longtail.groups.bags import SetShares
from longtail.groups.miml import MIMLClassifier
from longtail.pipeline import folder_schemas
from longtail.storage import load_folder

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.torch

QUICK = {"hidden": 16, "epochs": 12, "batch_size": 16, "lr": 0.01, "random_state": 0, "device": "cpu"}
N_LABELS = 5


@pytest.fixture(scope="module")
def toy():
    """Rows around one centre per label, in groups of four; only the groups' labels are known."""
    rng = np.random.default_rng(0)
    y = rng.integers(N_LABELS, size=640)
    X = (3 * rng.standard_normal((N_LABELS, 8))[y] + rng.standard_normal((640, 8))).astype(np.float32)
    grouped = group_randomly(np.eye(N_LABELS)[y], 4, random_state=0)
    return X, y, grouped.groups, grouped.Y_groups


@pytest.fixture(scope="module")
def fitted(toy):
    X, _, groups, counts = toy
    return MIMLClassifier(**QUICK).fit(X, groups, counts)


@pytest.mark.parametrize("mask", ["none", "eagle-0", "eagle", "auto"])
def test_rows_get_their_labels_from_sets_of_labels_of_groups(toy, mask):
    X, y, groups, counts = toy
    model = MIMLClassifier(mask=mask, loss="presence", **QUICK).fit(X, groups, counts.sign())
    assert (model.predict_topk(X, k=1).ids[:, 0] == y).mean() > 0.95
    assert (model.label_vectors_ is None) == (mask == "none")


FEW = {**QUICK, "batch_size": 2, "epochs": 20, "valid": 0}  # for few, large groups


@pytest.fixture(scope="module")
def large(toy):
    """Twenty groups of 32 rows, nearly all with every label: sets of labels would tell next to nothing."""
    groups, counts = group_randomly(np.eye(N_LABELS)[toy[1]], 32, random_state=0)
    assert counts.nnz > 0.95 * counts.shape[0] * N_LABELS
    return groups, counts


@pytest.mark.parametrize(("loss", "mask"), [("counts", "auto"), ("shares", "none"), ("shares", "auto")])
def test_rows_get_their_labels_from_counts_though_every_group_has_every_label(toy, large, loss, mask):
    X, y, _, _ = toy
    model = MIMLClassifier(loss=loss, mask=mask, tau=2.0, **FEW).fit(X, *large)
    assert (model.predict_topk(X, k=1).ids[:, 0] == y).mean() > 0.9


def test_rows_get_their_labels_from_sets_though_one_group_in_ten_lacks_one():
    rng = np.random.default_rng(0)
    y = rng.integers(N_LABELS, size=4000)
    X = (3 * rng.standard_normal((N_LABELS, 8))[y] + rng.standard_normal((4000, 8))).astype(np.float32)
    groups, counts = group_randomly(np.eye(N_LABELS)[y], 20, random_state=0)
    assert (np.diff(counts.indptr) < N_LABELS).mean() < 0.1
    right = {}
    for loss in ("presence", "sets"):
        model = MIMLClassifier(loss=loss, mask="none", **{**QUICK, "valid": 0}).fit(X, groups, counts.sign())
        right[loss] = (model.predict_topk(X, k=1).ids[:, 0] == y).mean()
    assert right["sets"] > 0.95 > right["presence"] + 0.2


def test_the_sets_of_groups_tell_how_frequent_labels_are():
    rng = np.random.default_rng(0)
    shares = np.array([0.02, 0.08, 0.2, 0.7])
    sizes = rng.integers(2, 12, size=20_000)
    counts = rng.multinomial(sizes, shares)
    members = sp.csr_array((np.ones(sizes.sum()), np.arange(sizes.sum()), np.concatenate([[0], np.cumsum(sizes)])))
    known = SetShares.learn(members, sp.csr_array(np.sign(counts)))
    np.testing.assert_allclose(known.usual, shares, atol=0.01)
    assert known.lacking == pytest.approx((counts == 0).any(axis=1).mean())


def test_every_entry_of_a_list_of_labels_is_learned_and_the_model_is_saved(toy, tmp_path):
    X, y, groups, counts = toy
    model = MIMLClassifier(loss="list", mask="none", **QUICK).fit(X, groups, counts)
    assert (model.predict_topk(X, k=1).ids[:, 0] == y).mean() > 0.9
    assert float(model.network_.bias.detach().std()) == 0  # the published network has none
    again = MIMLClassifier.from_part(load_folder(model.save(tmp_path / "model"), folder_schemas()).parts["model"])
    np.testing.assert_array_equal(again.predict_topk(X).scores, model.predict_topk(X).scores)


def test_an_epoch_may_ask_the_model(toy):
    X, y, groups, counts = toy
    right = []
    model = MIMLClassifier(**QUICK)
    model.fit(X, groups, counts, on_epoch=lambda _: right.append((model.predict_topk(X, k=1).ids[:, 0] == y).mean()))
    assert len(right) == len(model.history_) and right[-1] > right[0]


def test_without_the_mask_few_large_groups_mix_labels_up(toy, large):
    X, y, _, _ = toy
    found = {}
    for mask in ("none", "auto"):
        models = [MIMLClassifier(mask=mask, tau=2.0, **{**FEW, "random_state": s}).fit(X, *large) for s in (0, 1)]
        found[mask] = np.mean([(model.predict_topk(X, k=1).ids[:, 0] == y).mean() for model in models])
    assert found["auto"] > found["none"] + 0.2


def test_groups_get_their_labels_too(toy, fitted):
    X, _, groups, counts = toy
    top = fitted.predict_groups(X, groups, k=N_LABELS)
    has = np.take_along_axis(counts.toarray() > 0, top.ids.astype(int), axis=1)
    assert (has == (top.scores > 0)).mean() > 0.95
    ones = fitted.predict_groups(X[:7], sp.eye_array(7), k=3)
    rows = fitted.predict_topk(X[:7], k=3)
    np.testing.assert_array_equal(ones.scores, rows.scores)


def test_auto_uses_counts_where_there_are_some(toy, fitted):
    X, _, groups, counts = toy
    assert fitted.loss_ == "counts"
    model = MIMLClassifier(**{**QUICK, "epochs": 1}).fit(X, groups, counts.sign())
    assert model.loss_ == "presence"


def test_a_row_scores_the_same_alone_and_among_others(toy, fitted):
    X = toy[0]
    alone = np.vstack([fitted.predict_topk(X[[i]], k=2).scores for i in (0, 300, 639)])
    np.testing.assert_array_equal(alone, fitted.predict_topk(X, k=2).scores[[0, 300, 639]])


def test_probabilities_are_those_of_the_scores_until_calibrated(toy, fitted):
    X, y, _, _ = toy
    top, chances = fitted.predict_topk(X, k=2), fitted.predict_proba(X, k=2)
    assert chances.shape == (640, N_LABELS)
    assert float(chances.min()) >= 0 and float(chances.max()) <= 1
    np.testing.assert_allclose(chances.max(axis=1).toarray().ravel(), 1 / (1 + np.exp(-top.scores[:, 0])), rtol=1e-5)
    assert (fitted.predict(X).toarray().argmax(axis=1) == y).mean() > 0.95


def test_a_saved_model_predicts_the_same(toy, fitted, tmp_path):
    X, _, groups, _ = toy
    part = load_folder(fitted.save(tmp_path / "model"), folder_schemas()).parts["model"]
    again = MIMLClassifier.from_part(part)
    for a, b in (
        (again.predict_topk(X), fitted.predict_topk(X)),
        (again.predict_groups(X, groups), fitted.predict_groups(X, groups)),
    ):
        np.testing.assert_array_equal(a.ids, b.ids)
        np.testing.assert_array_equal(a.scores, b.scores)
    assert again.history_ == fitted.history_
    assert {**again.get_params(), "device": None} == {**fitted.get_params(), "device": None}


def test_the_same_seed_gives_the_same_model_and_another_another(toy):
    X, _, groups, counts = toy
    quick = {**QUICK, "epochs": 2, "dropout": 0.2}
    found = [
        MIMLClassifier(**{**quick, "random_state": seed}).fit(X, groups, counts).predict_topk(X).scores
        for seed in (3, 3, 4)
    ]
    np.testing.assert_array_equal(found[0], found[1])
    assert not np.array_equal(found[0], found[2])


def test_sparse_rows_and_dense_rows_agree(toy):
    X, _, groups, counts = toy
    model = MIMLClassifier(scaling="common", **{**QUICK, "epochs": 2})
    dense = clone(model).fit(X, groups, counts).predict_topk(X).scores
    sparse = clone(model).fit(sp.csr_matrix(X), groups, counts).predict_topk(sp.csr_array(X)).scores
    np.testing.assert_allclose(sparse, dense, atol=1e-3)


def test_features_in_any_unit_are_scaled(toy):
    X, y, groups, counts = toy
    units = (np.geomspace(1e-3, 1e3, X.shape[1]) * X + 50).astype(np.float32)
    model = MIMLClassifier(scaling="standard", **QUICK).fit(units, groups, counts)
    assert (model.predict_topk(units, k=1).ids[:, 0] == y).mean() > 0.95


def test_rows_may_be_in_several_groups_of_different_sizes(toy):
    X, y, groups, _ = toy
    rng = np.random.default_rng(1)
    more = sp.random_array((X.shape[0], 60), density=0.01, rng=rng, data_sampler=lambda size: np.ones(size))
    more = more.tocsc()[:, np.diff(more.tocsc().indptr) > 0]
    both = sp.hstack([groups, more]).tocsr()
    counts = sp.csr_array(both.T @ np.eye(N_LABELS)[y])
    model = MIMLClassifier(**QUICK).fit(X, both, counts)
    assert (model.predict_topk(X, k=1).ids[:, 0] == y).mean() > 0.95


def test_an_encoder_of_ones_own_is_trained_along_and_left_as_it_was(toy, tmp_path):
    X, y, groups, counts = toy
    torch.manual_seed(0)
    encoder = torch.nn.Sequential(torch.nn.Linear(8, 12), torch.nn.ReLU())
    before = encoder[0].weight.detach().clone()
    model = MIMLClassifier(encoder=encoder, **QUICK).fit(X, groups, counts)
    assert (model.predict_topk(X, k=1).ids[:, 0] == y).mean() > 0.95
    assert torch.equal(encoder[0].weight, before)
    assert not torch.equal(model.network_.encoder[0].weight, before)
    with pytest.raises(ModelError, match="encoder of your own"):
        model.save(tmp_path / "model")


def test_training_stops_when_held_out_groups_get_no_better(toy):
    X, _, groups, counts = toy
    seen = []
    model = MIMLClassifier(**{**QUICK, "epochs": 200, "patience": 2})
    wrong = counts[np.random.default_rng(0).permutation(counts.shape[0])]  # nothing to learn but by heart
    model.fit(X, groups, wrong, progress=lambda done, total: seen.append((done, total)))
    assert len(model.history_) < 200 and seen[-1][0] == seen[-1][1] and len(seen) > len(model.history_)


def test_labels_of_no_group_are_never_predicted(toy):
    X, _, groups, counts = toy
    wider = sp.hstack([counts, sp.csr_array((counts.shape[0], 2))]).tocsr()
    top = MIMLClassifier(**{**QUICK, "epochs": 1}).fit(X, groups, wider).predict_topk(X, k=7)
    assert top.ids.max() == N_LABELS - 1 and (top.ids[:, N_LABELS:] == -1).all()
    some = MIMLClassifier(**{**QUICK, "epochs": 1}).fit(X, groups, wider).predict_topk(X, k=3, allow=[0, 1], deny=[1])
    assert set(some.ids.ravel().tolist()) == {0, -1}


def test_the_callers_arrays_stay_as_they_are(toy):
    X, _, groups, counts = (a.copy() for a in toy)
    MIMLClassifier(**{**QUICK, "epochs": 1}).fit(X, groups, counts).predict_groups(X, groups)
    np.testing.assert_array_equal(X, toy[0])
    assert (groups != toy[2]).nnz == 0 and (counts != toy[3]).nnz == 0


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"tau": -1}, "tau must be a number >= 0; got -1."),
        ({"mask": "eagel"}, "mask must be one of .* got 'eagel'. Did you mean 'eagle'?"),
        ({"loss": "count"}, "Did you mean 'counts'?"),
        ({"concepts": 0}, "concepts must be an integer >= 1; got 0."),
        ({"hidden": [8, 0]}, r"hidden must be a whole number >= 1 or a list of them; got \[8, 0\]\."),
        ({"hidden": 1.5}, "hidden must be a whole number >= 1 or a list of them; got 1.5."),
        ({"hidden": None}, "hidden must be a whole number >= 1 or a list of them; got None."),
        ({"hidden": "a"}, "hidden must be a whole number >= 1 or a list of them; got 'a'."),
        ({"valid": 0.9}, "valid must be a number between 0 and 0.5; got 0.9."),
        ({"encoder": "cnn"}, "encoder must be a torch module or None; got 'cnn'."),
        ({"scaling": "unit"}, "scaling must be one of"),
        ({"device": "gpu"}, "device must be None or the name of a torch device"),
    ],
)
def test_bad_parameters_are_refused_in_a_sentence(toy, change, sentence):
    X, _, groups, counts = toy
    with pytest.raises(ParameterError, match=sentence):
        MIMLClassifier(**{**QUICK, **change}).fit(X, groups, counts)


ROWS = np.eye(3)
TWO = np.array([[1, 0], [1, 0], [0, 1]])


@pytest.mark.parametrize(
    ("groups", "labels", "loss", "sentence"),
    [
        ([[1, 0], [0, 0], [0, 1]], [[1], [1]], "auto", "row 1 is in no group; give it a group or leave it out."),
        ([[1, 0], [1, 0], [1, 0]], [[1], [0]], "auto", "group 1 has no rows; leave it out."),
        ([0, 0, 1], [[1], [1]], "auto", r"groups must be a \(n_rows, n_groups\) matrix .* got one dimension."),
        (np.array([0, 0, 1]), [[1], [1]], "auto", r"groups must be a \(n_rows, n_groups\) .* got one dimension."),
        (TWO, [[1], [1], [1]], "auto", "one for each group; got 2 columns and 3 rows."),
        (TWO[:2], [[1], [1]], "auto", "X and groups must have as many rows; got 3 and 2."),
        (TWO, [[3], [1]], "auto", "group 0 has label 0 3 times but only 2 rows."),
        (TWO, [[0.5], [1]], "auto", "Y_groups must hold counts, whole numbers of 0 or more; got 0.5."),
        (TWO, [[0], [0]], "auto", "Y_groups must hold at least one label; every group is empty."),
        (TWO, [[1], [1]], "shares", "loss='shares' needs one label per row; group 0 has 2 rows and 1 labels."),
    ],
)
def test_data_that_does_not_fit_together_is_refused_in_a_sentence(groups, labels, loss, sentence):
    with pytest.raises(DataError, match=sentence):
        MIMLClassifier(loss=loss).fit(ROWS, groups, labels)


def test_sparse_rows_are_not_filled_behind_ones_back():
    with pytest.raises(ParameterError, match="would fill sparse rows"):
        MIMLClassifier(scaling="center").fit(sp.csr_array(ROWS), TWO, [[1], [1]])


def test_prediction_refuses_what_training_did_not_see(toy, fitted):
    with pytest.raises(DataError, match="X must have 8 features, as at training; got 3"):
        fitted.predict_topk(ROWS)
    with pytest.raises(DataError, match="group 1 has no rows"):
        fitted.predict_groups(toy[0][:2], [[1, 0], [1, 0]])
    with pytest.raises(DataError, match=r"groups must be a \(n_rows, n_groups\) matrix .* got None\."):
        fitted.predict_groups(toy[0], None)
    with pytest.raises(NotFittedError, match=r"call fit\(X, groups, Y_groups\) first"):
        MIMLClassifier().predict_topk(ROWS)


def test_without_torch_it_says_how_to_get_it(monkeypatch):
    real = builtins.__import__

    def no_torch(name, *args, **kwargs):
        if name == "torch":
            raise ImportError(name)
        return real(name, *args, **kwargs)

    monkeypatch.setattr(builtins, "__import__", no_torch)
    with pytest.raises(MissingExtraError, match=r"MIMLClassifier needs the package 'torch'; .*longtail\[torch\]"):
        MIMLClassifier().fit(ROWS, TWO, [[1], [1]])


@pytest.mark.parametrize(
    ("Y_groups", "said"),
    [
        ([[1, 1, 1], [1, 0, 0]], "group 0 has 2 rows and 3 labels"),
        ([[1, 1, 0], [0, 0, 0]], "group 1 has 1 row and no label"),
        ([[1, 2, 0], [1, 0, 0]], "group 0 has 2 rows and 3 labels"),
        ([[1, 1, 0], [5, 0, 0]], "group 1 has 1 row and 5 labels"),
    ],
)
def test_sets_of_labels_that_rows_with_one_label_each_cannot_have_are_refused(Y_groups, said):
    groups = [[1, 0], [1, 0], [0, 1]]
    with pytest.raises(DataError, match=f"loss='sets' needs groups whose rows have exactly one label each; {said}"):
        MIMLClassifier(loss="sets", device="cpu").fit(np.eye(3), groups, Y_groups)
