"""Scorers work wherever scikit-learn takes one."""

import joblib
import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import BaseEstimator, clone
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import MaxAbsScaler

from longtail import metrics
from longtail.data import TopK
from longtail.errors import ParameterError


class Nearest(BaseEstimator):
    """Scores labels by the rows of training data most like the new one; `noise` makes it worse."""

    def __init__(self, noise=0.0, counts=True):
        self.noise = noise
        self.counts = counts

    def fit(self, X, Y):
        self.means_ = np.asarray(Y.T @ X, dtype=np.float64)
        self.n_features_in_ = X.shape[1]
        if self.counts:
            self.label_counts_, self.n_rows_ = metrics.label_counts(Y), Y.shape[0]
        return self

    def predict_topk(self, X, k=5):
        scores = X @ self.means_.T
        scores = scores + self.noise * np.random.default_rng(0).normal(size=scores.shape) * scores.std()
        return TopK.from_scores(scores, k)


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    Y = (rng.random((120, 12)) < 0.2).astype(float)
    X = Y @ rng.normal(size=(12, 20)) + 0.1 * rng.normal(size=(120, 20))
    return X, Y


def test_score_is_that_of_the_metric(data):
    X, Y = data
    model = Nearest().fit(X, Y)
    topk = model.predict_topk(X, k=7)
    p = metrics.propensities(Y)
    assert metrics.scorer("p@3")(model, X, Y) == metrics.precision_at_k(Y, topk, 3)
    assert metrics.scorer("r@7")(model, X, Y) == metrics.recall_at_k(Y, topk, 7)
    assert metrics.scorer("f1@2")(model, X, Y) == metrics.f1_at_k(Y, topk, 2)
    assert metrics.scorer("ndcg@5")(model, X, Y) == metrics.ndcg_at_k(Y, topk, 5)
    assert metrics.scorer("psp@5")(model, X, Y) == metrics.psp_at_k(Y, topk, p, 5)
    assert metrics.scorer("psndcg@5")(model, X, Y) == metrics.psndcg_at_k(Y, topk, p, 5)
    assert metrics.scorer("p@3", remove_empty=True)(model, X, Y) > metrics.precision_at_k(Y, topk, 3)


def test_propensities_come_from_the_training_data_if_the_estimator_has_it(data):
    X, Y = data
    test = slice(80, None)
    topk = Nearest().fit(X[:80], Y[:80]).predict_topk(X[test], k=3)
    A, B = metrics.PROPENSITY_CONSTANTS["amazon"]
    for counts, source in ((True, Y[:80]), (False, Y[test])):
        model = Nearest(counts=counts).fit(X[:80], Y[:80])
        expected = metrics.psp_at_k(Y[test], topk, metrics.propensities(source, None, A, B), 3)
        assert metrics.scorer("psp@3", constants="amazon")(model, X[test], Y[test]) == expected


@pytest.mark.parametrize("kind", [np.asarray, sp.csr_array, sp.csr_matrix])
def test_grid_search_picks_the_better_setting(data, kind):
    X, Y = data[0], kind(data[1])
    search = GridSearchCV(Nearest(), {"noise": [0.0, 3.0]}, scoring=metrics.scorer("p@3"), cv=3).fit(X, Y)
    assert search.best_params_ == {"noise": 0.0}
    assert search.score(X, Y) == metrics.scorer("p@3")(search.best_estimator_, X, Y)


def test_grid_search_with_several_scorers(data):
    X, Y = data
    several = metrics.scorers("p@1", "psndcg@5")
    search = GridSearchCV(clone(Nearest()), {"noise": [0.0, 3.0]}, scoring=several, refit="p@1", cv=2).fit(X, Y)
    assert {"mean_test_p@1", "mean_test_psndcg@5"} <= set(search.cv_results_)
    assert np.isfinite(search.cv_results_["mean_test_psndcg@5"]).all()


def test_in_a_pipeline_the_last_step_predicts(data):
    X, Y = data
    pipeline = Pipeline([("scale", MaxAbsScaler()), ("model", Nearest())]).fit(X, Y)
    topk = pipeline[-1].predict_topk(pipeline[:-1].transform(X), k=3)
    assert metrics.scorer("p@3")(pipeline, X, Y) == metrics.precision_at_k(Y, topk, 3)
    scores = cross_val_score(pipeline, X, Y, scoring=metrics.scorer("psp@3"), cv=2)
    assert ((scores > 0) & (scores <= 1)).all()


def test_a_scorer_survives_joblib(data, tmp_path):
    X, Y = data
    joblib.dump(metrics.scorer("psp@5", constants="wikipedia"), tmp_path / "scorer")
    back = joblib.load(tmp_path / "scorer")
    assert back == metrics.scorer("psp@5", constants="wikipedia")
    assert repr(back) == "scorer('psp@5', constants='wikipedia')"
    model = Nearest().fit(X, Y)
    assert back(model, X, Y) == metrics.scorer("psp@5", constants="wikipedia")(model, X, Y)


@pytest.mark.parametrize(
    ("name", "hint"),
    [("ngcd@5", "'ndcg@5'"), ("P@3", "'p@3'"), ("f1@", "'f1@5'"), ("psndg@10", "'psndcg@10'"), ("p5", "'p@5'")],
)
def test_a_wrong_name_gets_the_nearest(name, hint):
    with pytest.raises(ParameterError, match=rf"scorer must be one of .* got '{name}'. Did you mean {hint}\?"):
        metrics.scorer(name)


@pytest.mark.parametrize("name", ["p@0", "accuracy", 5, None, "p@5 "])
def test_other_names_are_refused(name):
    with pytest.raises(ParameterError, match="scorer must be one of p, r, f1, ndcg, psp, psndcg with a k"):
        metrics.scorer(name)


def test_an_estimator_that_cannot_rank_is_refused(data):
    X, Y = data
    with pytest.raises(ParameterError, match="scorer 'p@5' needs an estimator with predict_topk; got MaxAbsScaler"):
        metrics.scorer("p@5")(MaxAbsScaler().fit(X), X, Y)
    with pytest.raises(ParameterError, match=r"constants must be one of .* Did you mean 'amazon'\?"):
        metrics.scorer("psp@5", constants="amazn")
