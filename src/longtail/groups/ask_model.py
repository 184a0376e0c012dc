"""Asking a trained model which rows of a group suit its labels, and ranking the candidate rows by its answer."""

from __future__ import annotations

from dataclasses import replace
from typing import Protocol

import numpy as np
import scipy.sparse as sp

from longtail.data import TopK
from longtail.errors import DataError, ParameterError
from longtail.groups.grouped_rows import GroupedRows
from longtail.groups.learn_vectors import BestRows
from longtail.model import clone
from longtail.validate import Rows

DEPTH = 100  # labels that the model ranks for every row


class TopKModel(Protocol):
    """An estimator that learns labels of rows and ranks labels for rows."""

    def fit(self, X: Rows, Y: sp.csr_array) -> TopKModel: ...

    def predict_topk(self, X: Rows, *, k: int) -> TopK: ...


def check_model(model: TopKModel | None, rounds: int) -> TopKModel:
    """Refuse rounds without a model, and what cannot be trained and asked."""
    if model is None:
        raise ParameterError(f"rounds={rounds} needs a model with fit and predict_topk; got model=None.")
    if isinstance(model, type):
        raise ParameterError(name="model", problem=f"must be an estimator, not its class; got {model.__name__}.")
    missing = [name for name in ("fit", "predict_topk") if not callable(getattr(model, name, None))]
    if missing:
        raise ParameterError(
            name="model", problem=f"must have fit and predict_topk; got {type(model).__name__} without {missing[0]}."
        )
    return model


def rank_by_model(
    model: TopKModel, X: Rows, Y: sp.csr_array, grouped: GroupedRows, best: BestRows, folds: int, seed: int
) -> BestRows:
    """Return the candidates of every (label, group) in the order of the model's scores.

    The groups are dealt into folds. A copy of the model is trained on the labels so far of the other folds' rows and
    asked about the rows of this one: a model that has seen a choice would only repeat it. Candidates whose label the
    model does not name come after the others, in the order they had.
    """
    fold_of_row = _folds(grouped, folds, seed)
    labels = grouped.labels[best.pairs]
    scores = np.full(best.rows.size, -np.inf, dtype=np.float32)
    labelled = np.diff(Y.indptr) > 0
    for fold in range(folds):
        train, asked = np.flatnonzero(labelled & (fold_of_row != fold)), np.flatnonzero(fold_of_row == fold)
        if train.size == 0 or asked.size == 0:
            raise DataError(f"every fold needs groups with rows and labels; got too few groups for folds={folds}.")
        top = clone(model).fit(X[train], Y[train]).predict_topk(X[asked], k=min(DEPTH, grouped.n_labels))
        mine = np.flatnonzero(fold_of_row[best.rows] == fold)
        scores[mine] = _scores_of(top, asked, best.rows[mine], labels[mine], grouped.n_labels)
    order = np.lexsort((best.ranks, -scores, best.pairs))
    return replace(best, rows=best.rows[order], scores=best.scores[order], shares=best.shares[order])


def _folds(grouped: GroupedRows, folds: int, seed: int) -> np.ndarray:
    """Return the fold of every row, that of its first group; -1 for rows in no group."""
    of_group = np.random.default_rng(seed).permutation(grouped.groups.shape[1]) % folds
    out = np.full(grouped.X.shape[0], -1)
    has = np.diff(grouped.groups.indptr) > 0
    out[has] = of_group[grouped.groups.indices[grouped.groups.indptr[:-1][has]]]
    return out


def _scores_of(top: TopK, asked: np.ndarray, rows: np.ndarray, labels: np.ndarray, n_labels: int) -> np.ndarray:
    """Look up the scores of (row, label) in the predictions for the rows `asked`, sorted; -inf where they are not."""
    named = top.ids >= 0
    keys = (np.arange(asked.size, dtype=np.int64)[:, None] * n_labels + top.ids)[named]
    order = np.argsort(keys)
    keys, scores = keys[order], top.scores[named][order]
    wanted = np.searchsorted(asked, rows).astype(np.int64) * n_labels + labels
    at = np.minimum(np.searchsorted(keys, wanted), max(keys.size - 1, 0))
    if keys.size == 0:
        return np.full(rows.size, -np.inf, dtype=np.float32)
    return np.where(keys[at] == wanted, scores[at], np.float32(-np.inf))
