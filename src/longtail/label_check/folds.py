"""Probabilities of labels for every row, by models that were not trained on that row."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import scipy.sparse as sp

from longtail.data import TopK, binary_hits
from longtail.model import Calibration, Stages
from longtail.tree import LabelTreeClassifier
from longtail.validate import Rows


class OutOfFold(NamedTuple):
    """The likeliest labels of every row, by a model that was not trained on it."""

    fold: np.ndarray  # number of every row's fold
    n_folds: int
    scores: TopK
    top: TopK  # the same labels with calibrated probabilities


def fold_of_rows(n_rows: int, folds: int, seed: int) -> np.ndarray:
    """Return the number of every row's fold; folds differ by one row at most.

    >>> np.bincount(fold_of_rows(10, 3, 0)).tolist()
    [4, 3, 3]
    """
    return np.random.default_rng(seed).permutation(n_rows) % folds


def out_of_fold(
    X: Rows, Y: sp.csr_array, folds: int, k: int, seed: int, n_jobs: int | None = None, progress: Stages | None = None
) -> OutOfFold:
    """Return the k likeliest labels of every row with scores and probabilities, by a label tree that never saw the row.

    One label tree is trained per fold, on the rows of all other folds. One curve from scores to probabilities is
    learned from all rows together: each was scored by a model that did not know its labels.
    """
    fold = fold_of_rows(Y.shape[0], folds, seed)
    ids = np.full((Y.shape[0], k), -1, dtype=np.int32)
    scores = np.full((Y.shape[0], k), -np.inf, dtype=np.float32)
    for number in range(folds):
        if progress is not None:
            progress("Training on folds", number, folds)
        inside, outside = np.flatnonzero(fold == number), np.flatnonzero(fold != number)
        if not Y[outside].nnz:
            continue
        model = LabelTreeClassifier(random_state=seed, n_jobs=n_jobs).fit(X[outside], Y[outside])
        top = model.predict_topk(X[inside], k=k)
        ids[inside], scores[inside] = top.ids, top.scores
    top = TopK(ids, scores)
    if progress is not None:
        progress("Training on folds", folds, folds)
    curve = Calibration.fit(top, binary_hits(top, Y), np.diff(Y.indptr))
    return OutOfFold(fold, folds, top, curve.apply(top))
