"""One trial: settings, trained on some of the rows and judged on rows held out. It is work of an engine."""

from __future__ import annotations

import time
from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp

from longtail.data import Dataset
from longtail.engine import Arrays, Work, in_use
from longtail.metrics import scorer
from longtail.model import XMCEstimator
from longtail.pipeline import METHODS, new_features
from longtail.text import TfidfFeatures
from longtail.validate import Json, make_csr

PRECISION = "precision"  # the mean of these
PRECISIONS = ("p@1", "p@3", "p@5")
LISTS = ("ngrams", "hidden")  # settings whose lists are tuples to a constructor


@dataclass(frozen=True)
class TrialRows:
    """The rows of all trials with the same features."""

    X: sp.csr_array  # to train on, in an order drawn at random: a trial takes the first
    Y: sp.csr_array
    X_held_out: sp.csr_array
    Y_held_out: sp.csr_array
    method: str
    metric: str
    seed: int


def rows_to_share(data: Dataset, order: np.ndarray, held_out: np.ndarray, words: Json, n_jobs: int | None) -> Arrays:
    """Return the rows of the data as arrays: those to train on in this order, and those held out."""
    if data.texts is None:
        X = sp.csr_array(data.X)
        train, test = X[order], X[held_out]
    else:
        features = new_features(TfidfFeatures(**with_tuples(words)), n_jobs)
        train = sp.csr_array(features.fit_transform([data.texts[i] for i in order.tolist()]))
        test = sp.csr_array(features.transform([data.texts[i] for i in held_out.tolist()]))
    out: Arrays = {"width": np.array([train.shape[1], data.Y.shape[1]], np.int64)}
    for name, M in (("x", train), ("y", data.Y[order]), ("x_held", test), ("y_held", data.Y[held_out])):
        out |= {f"{name}.indptr": M.indptr, f"{name}.indices": M.indices, f"{name}.data": M.data}
    return out


def prepare_rows(arrays: Arrays, settings: Json) -> TrialRows:
    """Put shared arrays together to rows."""
    n_features, n_labels = arrays["width"].tolist()

    def matrix(name: str, width: int) -> sp.csr_array:
        return make_csr(arrays[f"{name}.indptr"], arrays[f"{name}.indices"], arrays[f"{name}.data"], width)

    X, X_held = (matrix(name, n_features) for name in ("x", "x_held"))
    Y, Y_held = (matrix(name, n_labels) for name in ("y", "y_held"))
    return TrialRows(X, Y, X_held, Y_held, settings["method"], settings["metric"], settings["seed"])


def run_trial(rows: TrialRows, task: Json) -> Arrays:
    """Train on the first rows and judge; return the score and the seconds."""
    started = time.perf_counter()
    engine = in_use()
    n = int(task["rows"])
    model = new_model(rows.method, task["settings"], rows.seed, 1 if engine is None else engine.workers)
    model.fit_rows(rows.X[:n], rows.Y[:n])
    score = judged(model, rows)
    return {"score": np.array([score]), "seconds": np.array([time.perf_counter() - started])}


TRIAL = Work(prepare_rows, run_trial)


def new_model(method: str, settings: Json, seed: int, n_jobs: int | None) -> XMCEstimator:
    """Return an untrained model with these settings."""
    model = METHODS[method]()
    model.set_params(**with_tuples(settings), random_state=seed, n_jobs=n_jobs)
    return model


def judged(model: XMCEstimator, rows: TrialRows) -> float:
    """Return the metric on the rows held out."""
    names = PRECISIONS if rows.metric == PRECISION else (rows.metric,)
    return float(np.mean([scorer(name)(model, rows.X_held_out, rows.Y_held_out) for name in names]))


def with_tuples(settings: Json) -> Json:
    """Return settings as constructors take them: JSON has lists alone."""
    out = {name: tuple(value) for name, value in settings.items() if name in LISTS and isinstance(value, list)}
    return {**settings, **out}
