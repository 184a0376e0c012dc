"""One-vs-all: it equals scikit-learn's, its parameters do what they say, bad ones are refused."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.model_selection import GridSearchCV
from sklearn.multiclass import OneVsRestClassifier
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import normalize
from sklearn.svm import LinearSVC

from longtail.data import TopK
from longtail.errors import ParameterError
from longtail.metrics import scorer
from longtail.model.calibration import Calibration
from longtail.one_vs_all import OneVsAllClassifier


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    X = sp.random_array((400, 80), density=0.15, rng=rng, dtype=np.float32).tocsr()
    scores = X @ rng.standard_normal((80, 30))
    Y = sp.csr_array(scores >= np.sort(scores, axis=1)[:, [-2]])
    return X, Y


def test_it_equals_one_vs_rest_linear_svc(data):
    X, Y = data
    ours = OneVsAllClassifier(C=2.0, tol=1e-5, max_iter=5000, threshold=0).fit(X, Y).predict_topk(X, k=30)
    svc = LinearSVC(C=2.0, tol=1e-8, max_iter=50_000, dual=True, random_state=0)
    rows = normalize(sp.csr_matrix(X))
    theirs = OneVsRestClassifier(svc).fit(rows, Y.toarray()).decision_function(rows)
    np.testing.assert_allclose(np.take_along_axis(theirs, ours.ids.astype(int), axis=1), ours.scores, atol=5e-3)


def test_normalize_off_sees_the_rows_as_they_are(data):
    X, Y = data
    scaled = sp.csr_array(X.multiply(np.linspace(0.5, 3, X.shape[0])[:, None]))
    on = OneVsAllClassifier().fit(scaled, Y).predict_topk(scaled)
    assert np.array_equal(on.ids, OneVsAllClassifier().fit(X, Y).predict_topk(X).ids)
    off = OneVsAllClassifier(normalize=False).fit(scaled, Y).predict_topk(scaled)
    assert not np.array_equal(on.scores, off.scores)


def test_threshold_makes_the_model_smaller(data):
    X, Y = data
    full, small = (OneVsAllClassifier(threshold=t).fit(X, Y).weights_ for t in (0.0, 0.2))
    assert 0 < small.nnz < full.nnz and np.abs(small.data).min() >= 0.2


def test_positive_weight_raises_scores(data):
    X, Y = data
    plain, heavy = (OneVsAllClassifier(positive_weight=w).fit(X, Y).predict(X, k=30).nnz for w in (1.0, 8.0))
    assert heavy > plain


def test_explanations_add_up_to_the_score(data):
    X, Y = data
    model = OneVsAllClassifier().fit(X, Y)
    top = model.predict_topk(X[[5]], k=3)
    for label, score, found in zip(top.ids[0], top.scores[0], model.explain(X[[5]], top.ids[0]), strict=True):
        assert found.label == label and found.score == pytest.approx(score, abs=1e-5)
        assert sum(w for _, w in found.features) + found.bias == pytest.approx(found.margin, abs=1e-5)
        assert {f for f, _ in found.features} <= set(X[[5]].indices.tolist())
        sizes = [abs(w) for _, w in found.features]
        assert sizes == sorted(sizes, reverse=True)


def test_progress_counts_labels(data):
    X, Y = data
    seen = []
    OneVsAllClassifier(n_jobs=1).fit(X, Y, progress=lambda done, total: seen.append((done, total)))
    assert seen == [(16, 30), (30, 30)]


def test_grid_search_with_our_scorers(data):
    X, Y = data
    search = GridSearchCV(OneVsAllClassifier(), {"C": [0.01, 1.0]}, scoring=scorer("p@3"), cv=3).fit(X, Y)
    assert search.best_params_ == {"C": 1.0} and 0 < search.best_score_ <= 1
    pipe = Pipeline([("model", OneVsAllClassifier())]).fit(X, Y)
    assert pipe.predict(X).shape == Y.shape


@pytest.mark.parametrize(
    ("params", "sentence"),
    [
        ({"C": 0}, "C must be a number > 0; got 0."),
        ({"C": "1"}, "C must be a number > 0; got '1'."),
        ({"loss": "hinge"}, r"loss must be one of \['squared_hinge', 'logistic'\]; got 'hinge'."),
        ({"bias": -1}, r"bias must be a number between 0 and 1e\+06; got -1."),
        ({"threshold": float("nan")}, "threshold must be a number >= 0; got nan."),
        ({"tol": 0}, "tol must be a number > 0; got 0."),
        ({"max_iter": 0}, "max_iter must be an integer >= 1; got 0."),
        ({"normalize": 1}, "normalize must be True or False; got 1."),
        ({"n_jobs": 0}, "n_jobs must be an integer other than 0, or None; got 0."),
        ({"random_state": -5}, "random_state must be an integer between 0 and .*; got -5."),
        ({"positive_weight": 0}, "positive_weight must be a number > 0; got 0."),
    ],
)
def test_bad_parameters_are_refused_at_fit(data, params, sentence):
    with pytest.raises(ParameterError, match=sentence):
        OneVsAllClassifier(**params).fit(*data)


def test_labels_and_features_above_65536():
    n = 66_000
    X = sp.csr_array((np.ones(4), ([0, 1, 2, 3], [0, 1, n - 1, n - 2])), shape=(4, n))
    Y = sp.csr_array((np.ones(4), ([0, 1, 2, 3], [0, 1, n - 1, n - 2])), shape=(4, n))
    assert OneVsAllClassifier().fit(X, Y).predict_topk(X, k=1).ids.ravel().tolist() == [0, 1, n - 1, n - 2]


def test_calibration_learns_frequencies_and_the_best_threshold():
    rng = np.random.default_rng(0)
    scores = np.sort(rng.random((4000, 2)).astype(np.float32), axis=1)[:, ::-1]
    hits = rng.random((4000, 2)) < scores**2  # the truth: probability = score²
    top = TopK(np.tile([0, 1], (4000, 1)), scores)
    calibration = Calibration.fit(top, hits, hits.sum(axis=1))
    assert np.abs(calibration.apply(top).scores - scores**2).mean() < 0.03
    f1 = {}
    for cut in np.linspace(0, 1, 101):
        chosen = calibration.apply(top).scores >= cut
        f1[cut] = 2 * (chosen & hits).sum() / (chosen.sum() + hits.sum())
    best = calibration.chosen(top)
    assert 2 * (best & hits).sum() / (best.sum() + hits.sum()) >= max(f1.values()) - 1e-9
