"""The checks that every model trained by `fit(X, Y)` must pass."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.base import clone

from longtail.checks.failing import refuses, require, same_ranking
from longtail.data import Dataset, make_linear
from longtail.errors import DataError, ParameterError
from longtail.model import RowClassifier


def _data(n_rows: int = 120) -> Dataset:
    return make_linear(n_rows=n_rows, n_features=60, n_labels=25, random_state=3)[0]


def check_fit_returns_self(estimator: RowClassifier) -> None:
    """`fit` returns the estimator and notes what it saw."""
    data = _data()
    require(estimator.fit(data.X, data.Y) is estimator, estimator, "fit must return self")
    seen = (estimator.n_rows_, estimator.n_features_in_, estimator.n_labels_)
    require(seen == (data.n_rows, data.n_features, data.n_labels), estimator, "fit must note the shape of the data")


def check_topk(estimator: RowClassifier) -> None:
    """Predictions are ranked, unique and k wide, with missing places last; a label never seen is never predicted."""
    data = _data()
    Y = data.Y.toarray()
    Y[:, 7] = 0
    estimator.fit(data.X, Y)
    for k in (1, 5, data.n_labels + 4):
        top = estimator.predict_topk(data.X, k=k)
        require(top.ids.shape == (data.n_rows, k), estimator, "predict_topk must return k places")
        present = top.ids >= 0
        require(bool((np.diff(present.astype(int), axis=1) <= 0).all()), estimator, "missing places must come last")
        require(bool(np.isneginf(top.scores[~present]).all()), estimator, "missing places must score -inf")
        falling = top.scores[:, 1:] <= top.scores[:, :-1]
        require(bool((falling | ~present[:, 1:]).all()), estimator, "scores must fall from place to place")
        for row in top.ids:
            labels = row[row >= 0]
            require(labels.size == np.unique(labels).size, estimator, "a label must not come twice")
        require(7 not in top.ids, estimator, "a label without a training row must not be predicted")


def check_one_row_equals_batch(estimator: RowClassifier) -> None:
    """A row gets the same labels and scores alone as among others."""
    data = _data()
    estimator.fit(data.X, data.Y)
    X = sp.csr_array(data.X)
    together = estimator.predict_topk(X, k=5)
    for row in (0, 17, data.n_rows - 1):
        require(
            same_ranking(estimator.predict_topk(X[[row]], k=5), together[row]),
            estimator,
            "one row must equal the batch",
        )


def check_deterministic(estimator: RowClassifier) -> None:
    """The same seed gives the same model, bit for bit, for one and for two threads."""
    data = _data()
    parts = []
    for n_jobs in (1, 2, 1):
        model = clone(estimator)
        if "n_jobs" in model.get_params():
            model.set_params(n_jobs=n_jobs)
        parts.append(model.fit(data.X, data.Y).to_part())
    for other in parts[1:]:
        require(other.params == parts[0].params, estimator, "saved parameters must not depend on threads")
        for name, array in parts[0].arrays.items():
            require(array.tobytes() == other.arrays[name].tobytes(), estimator, f"'{name}' must not vary between runs")


def check_sparse_and_dense_agree(estimator: RowClassifier) -> None:
    """The same rows give the same model in every container."""
    data = _data()
    dense = sp.csr_array(data.X).toarray()
    expected = clone(estimator).fit(sp.csr_array(dense), data.Y).predict_topk(dense, k=3)
    for make in (sp.csr_matrix, sp.csc_array, np.asarray):
        ranking = clone(estimator).fit(make(dense), data.Y).predict_topk(make(dense), k=3)
        require(same_ranking(ranking, expected), estimator, "sparse and dense rows must agree")
    ranking = clone(estimator).fit(dense, data.Y.toarray()).predict_topk(dense, k=3)
    require(same_ranking(ranking, expected), estimator, "sparse and dense labels must agree")


def check_input_untouched(estimator: RowClassifier) -> None:
    """The caller's arrays are the same after training and prediction."""
    data = _data()
    X, Y = sp.csr_matrix(data.X).copy(), sp.csr_matrix(data.Y).copy()
    before = [a.copy() for M in (X, Y) for a in (M.data, M.indices, M.indptr)]
    estimator.fit(X, Y).predict_topk(X, k=2)
    after = [a for M in (X, Y) for a in (M.data, M.indices, M.indptr)]
    same = all(np.array_equal(a, b) for a, b in zip(before, after, strict=True))
    require(same, estimator, "the caller's arrays must not be changed")


def check_probabilities(estimator: RowClassifier) -> None:
    """Probabilities need a calibration, lie in [0, 1] and keep the order of the scores."""
    data = _data()
    estimator.fit(data.X, data.Y)
    require(not hasattr(estimator, "predict_proba"), estimator, "predict_proba must be there only with a calibration")
    estimator.calibrate(data.X, data.Y)
    P = estimator.predict_proba(data.X, k=5)
    require(P.shape == data.Y.shape and sp.issparse(P), estimator, "probabilities must be sparse")
    require(P.nnz <= 5 * data.n_rows, estimator, "probabilities must hold at most k labels a row")
    require(P.nnz == 0 or (P.data.min() >= 0 and P.data.max() <= 1), estimator, "probabilities must lie in [0, 1]")
    top = estimator.probabilities(estimator.predict_topk(data.X, k=5))
    require(bool((np.diff(top.scores, axis=1) <= 0).all()), estimator, "probabilities must keep the order")


def check_explanations(estimator: RowClassifier) -> None:
    """An explanation adds up to the margin of its label, and has the score that was predicted."""
    data = _data()
    estimator.fit(data.X, data.Y)
    row = sp.csr_array(data.X)[[4]]
    top = estimator.predict_topk(row, k=3)
    for label, score, why in zip(top.ids[0], top.scores[0], estimator.explain(row, top.ids[0]), strict=True):
        total = why.bias + sum(weight for _, weight in why.features)
        require(why.label == label, estimator, "an explanation must name its label")
        require(abs(total - why.margin) < 1e-4, estimator, "an explanation must add up to the margin")
        require(abs(why.score - float(score)) < 1e-3, estimator, "an explanation must give the predicted score")


def check_allow_and_deny(estimator: RowClassifier) -> None:
    """Only allowed labels are predicted; those denied make room for the next best."""
    data = _data()
    estimator.fit(data.X, data.Y)
    free = estimator.predict_topk(data.X, k=3)
    few = [2, 5, 11]
    only = estimator.predict_topk(data.X, k=3, allow=few)
    require(set(np.unique(only.ids)) <= {-1, *few}, estimator, "only allowed labels may be predicted")
    require(bool((only.ids[:, 0] >= 0).all()), estimator, "an allowed label must be predicted for every row")
    denied = int(free.ids[0, 0])
    without = estimator.predict_topk(data.X, k=2, deny=[denied])
    require(denied not in without.ids, estimator, "a denied label must not be predicted")
    require(without.ids[0, 0] == free.ids[0, 1], estimator, "the next best label must move up")
    refuses(estimator, lambda: estimator.predict_topk(data.X, allow=[]), ParameterError, "no label allowed")
    refuses(estimator, lambda: estimator.predict_topk(data.X, deny=[10**6]), ParameterError, "an unknown label number")


def check_bad_input(estimator: RowClassifier) -> None:
    """Unusable input is refused in one sentence."""
    data = _data()
    X, Y = sp.csr_array(data.X).toarray(), data.Y.toarray()
    broken = X.copy()
    broken[3, 2] = np.nan
    cases: list[tuple[str, Callable[[], object]]] = [
        ("NaN", lambda: estimator.fit(broken, Y)),
        ("infinity", lambda: estimator.fit(np.where(np.isnan(broken), np.inf, broken), Y)),
        ("rows and labels of different length", lambda: estimator.fit(X, Y[:-1])),
        ("no rows", lambda: estimator.fit(X[:0], Y[:0])),
        ("no labels at all", lambda: estimator.fit(X, np.zeros_like(Y))),
        ("no columns of labels", lambda: estimator.fit(X, Y[:, :0])),
        ("no features", lambda: estimator.fit(X[:, :0], Y)),
        ("negative labels", lambda: estimator.fit(X, -Y)),
        ("one-dimensional rows", lambda: estimator.fit(X[0], Y)),
        ("strings", lambda: estimator.fit(X.astype(str), Y)),
    ]
    for what, function in cases:
        refuses(estimator, function, DataError, what)
    estimator.fit(X, Y)
    refuses(estimator, lambda: estimator.predict_topk(X[:, :-1]), DataError, "rows of another width")
    refuses(estimator, lambda: estimator.predict_topk(broken), DataError, "NaN at prediction")
    bad: tuple[Any, ...] = (0, -1, 2.5, "five")
    for k in bad:
        refuses(estimator, partial(estimator.predict_topk, X, k=k), ParameterError, f"k={k!r}")


def check_odd_shapes(estimator: RowClassifier) -> None:
    """One row, one label, one feature and rows without features work."""
    cases = (
        (np.ones((1, 1)), np.ones((1, 1))),
        (np.array([[0.0, 0.0], [1.0, 2.0]]), np.array([[1, 0, 0], [0, 1, 0]])),
        (np.eye(40), np.eye(40)[:, :17]),
    )
    for X, Y in cases:
        top = clone(estimator).fit(X, Y).predict_topk(X, k=2)
        require(top.ids.shape == (X.shape[0], 2), estimator, f"data of shape {X.shape} must work")
        require(bool(np.isfinite(top.scores[top.ids >= 0]).all()), estimator, "scores must be finite")
    empty = clone(estimator).fit(np.eye(4), np.eye(4)).predict_topk(sp.csr_array((0, 4)), k=2)
    require(empty.ids.shape == (0, 2), estimator, "no rows to predict must give no predictions")


def check_learns(estimator: RowClassifier) -> None:
    """On rows that a linear model explains, most first labels are right."""
    data = _data(n_rows=600)
    train, test = data.take(slice(0, 500)), data.take(slice(500, 600))
    precision = estimator.fit(train.X, train.Y).score(test.X, test.Y)
    common = np.bincount(train.Y.indices, minlength=data.n_labels).argmax()
    guess = float(test.Y.toarray()[:, common].mean())
    require(precision > guess, estimator, f"P@1 is {precision:.2f}; always the most frequent label gives {guess:.2f}")


ROW_CHECKS: tuple[Callable[[RowClassifier], None], ...] = (
    check_fit_returns_self,
    check_topk,
    check_one_row_equals_batch,
    check_deterministic,
    check_sparse_and_dense_agree,
    check_input_untouched,
    check_probabilities,
    check_explanations,
    check_allow_and_deny,
    check_bad_input,
    check_odd_shapes,
    check_learns,
)
