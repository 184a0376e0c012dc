"""The label tree: as good as one-vs-all where it can be, and everything around it works."""

import itertools
import sys
from concurrent.futures import ThreadPoolExecutor
from copy import copy

import numpy as np
import pytest
import scipy.sparse as sp

import longtail as lt
from longtail.checks import CHECKS
from longtail.data.synthetic.generate import make_linear
from longtail.errors import DataError, ModelError, ParameterError
from longtail.metrics import precision_at_k
from longtail.one_vs_all import OneVsAllClassifier
from longtail.storage import Part
from longtail.tree import LabelTree, LabelTreeClassifier
from longtail.tree.plan import tree_shape


@pytest.fixture(scope="module")
def data():
    made = make_linear(n_rows=1500, n_features=800, n_labels=120, random_state=1)[0]
    return made.take(slice(0, 1200)), made.take(slice(1200, 1500))


def p_at_1(model, test):
    return model.score(test.X, test.Y)


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
@pytest.mark.parametrize("params", [{"n_trees": 3}, {"max_leaf": 4, "branching": 3}], ids=["ensemble", "deep"])
def test_conformance_of_ensembles_and_deep_trees(check, params):
    check(LabelTreeClassifier(**params))


def test_a_wide_beam_comes_close_to_one_vs_all(data):
    train, test = data
    exact = p_at_1(OneVsAllClassifier().fit(train.X, train.Y), test)
    tree = p_at_1(LabelTreeClassifier(max_leaf=40, beam=50).fit(train.X, train.Y), test)
    assert tree >= exact - 0.03


@pytest.mark.parametrize(
    "params",
    [
        {"negatives": "tfn"},
        {"negatives": "man"},
        {"balanced": True, "max_leaf": 10},
        {"loss": "logistic", "C": 10, "link": "sigmoid"},
        {"cost_sensitive": True},
        {"link": "noop", "path_weight": 0},
        {"link": "l1-hinge"},
        {"n_trees": 3},
        {"branching": 2, "max_leaf": 4},
        {"positive_weight": 3.0},
    ],
    ids=str,
)
def test_every_setting_learns(data, params):
    train, test = data
    settings = {"max_leaf": 40, **params}
    assert p_at_1(LabelTreeClassifier(**settings).fit(train.X, train.Y), test) > 0.6


def test_fast_is_a_preset_and_not_a_model(data):
    fast = LabelTreeClassifier.fast(C=2.0)
    assert isinstance(fast, LabelTreeClassifier) and fast.C == 2.0
    assert fast.beam_width < LabelTreeClassifier().beam_width
    assert LabelTreeClassifier.fast(beam=7).beam == 7


def test_given_trees_and_label_vectors(data):
    train, test = data
    parents = np.concatenate([np.full(10, -1), np.arange(120) % 10])
    tree = LabelTree.from_parents(parents, labels=np.arange(10, 130))
    model = LabelTreeClassifier().fit(train.X, train.Y, tree=tree)
    assert model.trees_[0] == tree and p_at_1(model, test) > 0.6
    vectors = np.random.default_rng(0).standard_normal((120, 5))
    assert p_at_1(LabelTreeClassifier(max_leaf=40).fit(train.X, train.Y, label_vectors=vectors), test) > 0.5
    with pytest.raises(DataError, match=r"label_vectors must have one row per label \(120\); got 3"):
        LabelTreeClassifier().fit(train.X, train.Y, label_vectors=np.eye(3))
    with pytest.raises(DataError, match="tree must be a LabelTree of 120 labels"):
        LabelTreeClassifier().fit(train.X, train.Y, tree=LabelTree.flat(3))
    with pytest.raises(ParameterError, match="n_trees must be 1 where a tree is given; got 2"):
        LabelTreeClassifier(n_trees=2).fit(train.X, train.Y, tree=tree)


def test_new_rows_teach(data):
    train, test = data
    model = LabelTreeClassifier(max_leaf=40).fit(train.X[:100], train.Y[:100])
    before = precision_at_k(test.Y, model.predict_topk(test.X, k=3), k=3)
    model.partial_fit(train.X[100:], train.Y[100:])
    assert precision_at_k(test.Y, model.predict_topk(test.X, k=3), k=3) > before + 0.05 and model.n_rows_ == 1200
    assert model.label_counts_.sum() == train.Y.nnz
    assert LabelTreeClassifier(max_leaf=40).partial_fit(train.X, train.Y).score(test.X, test.Y) > 0.6


def test_new_rows_teach_a_label_that_had_none(data):
    train, _ = data
    Y = train.Y.toarray()
    rows = np.flatnonzero(Y[:, 0])
    without = np.delete(np.arange(train.n_rows), rows)
    model = LabelTreeClassifier(max_leaf=40).fit(train.X[without], Y[without])
    assert 0 not in model.predict_topk(train.X[rows], k=20).ids
    model.partial_fit(train.X[rows], Y[rows])
    assert 0 in model.predict_topk(train.X[rows], k=20).ids


def test_new_labels_are_found_and_old_ones_stay(data):
    train, test = data
    Y, T = train.Y.toarray(), test.Y.toarray()
    model = LabelTreeClassifier(max_leaf=40).fit(train.X, Y[:, :110])
    old = model.predict_topk(test.X, k=110)
    model.add_labels(train.X, Y[:, 110:])
    assert model.n_labels_ == 120 and model.trees_[0].n_labels == 120
    assert p_at_1(model, test) > 0.6
    new = model.predict_topk(test.X, k=120, deny=range(110, 120))
    for row in range(20):  # the old labels' scores are untouched
        a = dict(zip(old.ids[row].tolist(), old.scores[row].tolist(), strict=True))
        b = dict(zip(new.ids[row].tolist(), new.scores[row].tolist(), strict=True))
        assert all(abs(a[label] - b[label]) < 1e-6 for label in a.keys() & b.keys() if label >= 0)
    rows = np.flatnonzero(T[:, 110:].any(axis=1))
    found = model.predict_topk(test.X[rows], k=5).ids
    hits = [bool(set(found[i]) & set(110 + np.flatnonzero(T[row, 110:]))) for i, row in enumerate(rows)]
    assert np.mean(hits) > 0.5


def test_removed_labels_are_gone_and_the_rest_move_up(tmp_path, data):
    train, test = data
    model = LabelTreeClassifier(max_leaf=40).fit(train.X, train.Y)
    before = model.predict_topk(test.X, k=3, deny=[0, 5, 119])
    model.remove_labels([5, 0, 119])
    after = model.predict_topk(test.X, k=3)
    kept = np.delete(np.arange(120), [0, 5, 119])
    assert model.n_labels_ == 117 and np.mean(kept[after.ids] == before.ids) > 0.98
    model.save(tmp_path / "m")
    assert np.array_equal(lt.load(tmp_path / "m").predict_topk(test.X, k=3).ids, after.ids)
    with pytest.raises(ParameterError, match="labels must be numbers from 0 to 116; got 117"):
        model.remove_labels([117])
    with pytest.raises(ParameterError, match="must leave at least one label"):
        model.remove_labels(range(117))


def test_a_model_whose_arrays_point_outside_is_refused(data):
    train, _ = data
    part = LabelTreeClassifier(max_leaf=40).fit(train.X, train.Y).to_part()
    for name, change in (
        ("0.features", lambda a: a + 10_000),
        ("0.children", lambda a: np.full_like(a, 255)),
        ("0.counts", lambda a: a[:-1]),
        ("0.line_indptr", lambda a: a[::-1].copy()),
        ("0.child_indptr", lambda a: a + 1),
        ("0.tree.leaf_labels", lambda a: a + 500),
        ("0.weights", lambda a: a.astype(np.float32)),
        ("0.bias", lambda a: a[:3]),
    ):
        broken = Part(part.kind, dict(part.params), {**part.arrays, name: change(part.arrays[name])})
        with pytest.raises(ModelError):
            LabelTreeClassifier.from_part(broken)


def test_dense_and_sparse_with_dense_rows(data):
    train, test = data
    dense = np.random.default_rng(0).standard_normal((train.n_rows, 8)).astype(np.float32)
    X = lt.text.hstack_rows(train.X, dense, weight=0.2)
    assert LabelTreeClassifier(max_leaf=40).fit(X, train.Y).score(X, train.Y) > 0.8
    full = sp.csr_array(train.X).toarray()
    assert LabelTreeClassifier(max_leaf=40).fit(full, train.Y).score(test.X.toarray(), test.Y) > 0.6


@pytest.mark.parametrize(
    ("params", "sentence"),
    [
        ({"branching": 1}, "branching must be an integer >= 2; got 1"),
        ({"max_leaf": 0}, "max_leaf must be an integer >= 1; got 0"),
        ({"beam": 0}, "beam must be an integer between 1 and 1048576; got 0"),
        ({"negatives": "tnf"}, r"negatives must be one of \['tfn', 'man', 'tfn\+man'\]; got 'tnf'. Did you mean 'tfn'"),
        ({"link": "l9"}, "link must be one of"),
        ({"path_weight": -1}, r"path_weight must be a number between 0 and 1e\+06; got -1"),
        ({"n_trees": 0}, "n_trees must be an integer >= 1; got 0"),
        ({"cost_sensitive": True, "loss": "logistic"}, "cost_sensitive=True needs loss='squared_hinge'"),
    ],
)
def test_bad_parameters_are_refused_at_fit(data, params, sentence):
    with pytest.raises(ParameterError, match=sentence):
        LabelTreeClassifier(**params).fit(data[0].X, data[0].Y)


def test_threads_may_ask_for_different_numbers_of_labels(data):
    train, test = data
    model = LabelTreeClassifier(max_leaf=40, n_jobs=1).fit(train.X, train.Y)
    rows = [test.X[[i]] for i in range(20)]
    want = {k: [model.predict_topk(row, k=k).ids.tolist() for row in rows] for k in range(1, 9)}

    def ask(k):
        return all(model.predict_topk(row, k=k).ids.tolist() == ids for row, ids in zip(rows, want[k], strict=True))

    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)  # threads take turns within a prediction
    try:
        with ThreadPoolExecutor(4) as pool:
            assert all(pool.map(ask, list(range(1, 9)) * 25))
    finally:
        sys.setswitchinterval(interval)


def test_predicting_leaves_the_model_as_it_is(data):
    train, test = data
    model = LabelTreeClassifier(max_leaf=40).fit(train.X, train.Y)
    before = dict(vars(model))
    model.predict_topk(test.X, k=3)
    model.predict_topk(test.X[[0]], k=2)
    assert vars(model) == before


@pytest.mark.parametrize(
    "params",
    [
        *({"beam": beam} for beam in ([5], 0, 5.0, True)),
        {"merge": "sum"},
        {"link": "l9"},
        {"negatives": "all"},
        {"path_weight": -1},
        {"normalize": 1},
    ],
    ids=str,
)
def test_parameters_that_are_set_after_fit_are_checked(data, params):
    train, test = data
    model = LabelTreeClassifier(max_leaf=40, beam=5).fit(train.X, train.Y)
    model.predict_topk(test.X, k=1)
    with pytest.raises(ParameterError, match=f"{next(iter(params))} must be"):
        model.set_params(**params).predict_topk(test.X, k=1)


def test_progress_ends_at_its_total(data):
    seen = []
    LabelTreeClassifier(max_leaf=40).fit(data[0].X, data[0].Y, progress=lambda done, total: seen.append((done, total)))
    assert seen[-1][0] == seen[-1][1] and all(a <= b for (a, _), (b, _) in itertools.pairwise(seen))


def test_a_model_is_saved_with_the_parameters_it_was_trained_with(tmp_path):
    model = LabelTreeClassifier(max_leaf=2, branching=2, C=2.0).fit(np.eye(6), np.eye(6))
    model.set_params(loss="zz", C=-1, beam=3)  # the first two wait for the next fit, the third is read at prediction
    loaded = lt.load(model.save(tmp_path / "m"))
    assert (loaded.loss, loaded.C, loaded.beam) == ("squared_hinge", 2.0, 3)
    with pytest.raises(ParameterError, match="loss must be one of"):
        model.fit(np.eye(6), np.eye(6))


@pytest.mark.parametrize(("n_labels", "levels"), [(100, 1), (40_000, 1), (50_000, 2)])
def test_leaves_stand_below_the_root_unless_they_are_too_many(n_labels, levels):
    model = LabelTreeClassifier()
    assert len(tree_shape(n_labels, model, rows_per_label=5)) == levels
    assert len(tree_shape(n_labels, model, rows_per_label=50)) == 1 + (n_labels > 5_000)
    assert len(tree_shape(n_labels, LabelTreeClassifier(branching=16))) >= levels


def test_few_rows_per_label_find_more_labels_without_a_level_in_between():
    """With few rows per label the classifiers of a coarse first level miss labels for good."""
    data, _ = make_linear(n_rows=1500, n_features=400, n_labels=500, random_state=1)
    X, Y, Xt, Yt = data.X[:1000], data.Y[:1000], data.X[1000:], data.Y[1000:]
    settings = {"max_leaf": 16, "beam": 3, "random_state": 0}
    deep, flat = (LabelTreeClassifier(branching=b, **settings).fit(X, Y) for b in (16, None))
    assert deep.trees_[0].n_levels == 2 and flat.trees_[0].n_levels == 1
    p = [precision_at_k(Yt, model.predict_topk(Xt, k=3), 3) for model in (deep, flat)]
    assert p[1] > p[0] + 0.02


def test_one_row_is_checked_like_a_batch():
    model = LabelTreeClassifier(random_state=0).fit(np.eye(40), np.eye(40))
    row = sp.csr_array((np.ones(1, np.float32), np.array([5]), np.array([0, 1])), shape=(1, 40))
    row.indices = np.array([2**32 + 5])
    with pytest.raises(DataError, match=r"X must have column ids from 0 to 39; got 4294967301 in row 0"):
        model.predict_topk(row)
    row.indices = np.array([5])
    assert model.predict_topk(row, k=1).ids.tolist() == [[5]]
    two = sp.csr_array((np.ones(2, np.float32), np.array([5, 7]), np.array([0, 2])), shape=(1, 40))
    two.indptr[1] = 1  # the entry of column 7 belongs to no row
    assert np.array_equal(model.predict_topk(two, k=3).scores, model.predict_topk(row, k=3).scores)
    row.indptr = np.array([0, 2])
    with pytest.raises(DataError, match="its row pointers do not fit its entries"):
        model.predict_topk(row)


def test_columns_that_no_row_uses_change_nothing_and_take_little(data):
    train, test = data
    width = 2**31 - 1
    wide = [sp.csr_array((X.data, X.indices, X.indptr), shape=(X.shape[0], width)) for X in (train.X, test.X)]
    narrow = LabelTreeClassifier(random_state=0).fit(train.X, train.Y).predict_topk(test.X)
    model = LabelTreeClassifier(random_state=0).fit(wide[0], train.Y)
    same = model.predict_topk(wide[1])
    assert np.array_equal(narrow.ids, same.ids) and np.array_equal(narrow.scores, same.scores)
    one = LabelTreeClassifier(random_state=0).fit(train.X, train.Y)
    for changed, X in ((one, train.X), (model, wide[0])):
        changed.partial_fit(X[:50], train.Y[:50]).add_labels(X[:50], train.Y[:50, :2])
    known, new = one.explain(test.X[[0]], [3])[0], model.explain(wide[1][[0]], [3])[0]
    assert (known.score, known.features) == (new.score, new.features)
    assert np.array_equal(one.predict_topk(test.X).scores, model.predict_topk(wide[1]).scores)


def test_explain_takes_the_tree_that_can_give_a_label(data):
    train, test = data
    model = LabelTreeClassifier(n_trees=2, random_state=0).fit(train.X, train.Y)
    wanted = LabelTreeClassifier(n_trees=2, random_state=0).fit(train.X, train.Y).explain(test.X[[0]], [3])[0]
    own = [tree.explain(test.X[[0]], [3])[0].score for tree in each_tree(model)]
    best = int(np.argmax(own))
    assert wanted.score == own[best]
    model.chunks_[best].bias[:] = -np.inf
    assert model.explain(test.X[[0]], [3])[0].score == own[1 - best]
    model.chunks_[1 - best].bias[:] = -np.inf
    with pytest.raises(ModelError, match="label 3 cannot be explained"):
        model.explain(test.X[[0]], [3])


def each_tree(model):
    for tree, chunks in zip(model.trees_, model.chunks_, strict=True):
        one = copy(model)
        one.trees_, one.chunks_ = [tree], [chunks]
        yield one
