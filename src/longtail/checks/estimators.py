"""The checks that every model must pass; a new one is found and checked the moment it is registered."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

from longtail.checks.failing import refuses, require, same_ranking
from longtail.checks.row_classifiers import ROW_CHECKS
from longtail.data import Dataset, TopK, make_topics
from longtail.errors import LongtailError, ModelError, ParameterError
from longtail.model import RowClassifier, TextReader, XMCEstimator
from longtail.pipeline import MODELS, load
from longtail.planning import shape_of
from longtail.text import TfidfFeatures

OTHER_VALUES: dict[str, Any] = {  # of parameters that a fitted model reads
    "beam": 1,
    "link": "sigmoid",
    "merge": "mean",
    "mixed_precision": False,
    "n_jobs": 2,
    "negatives": "tfn",
    "normalize": False,
    "overlap": 2,
    "path_weight": 0.5,
    "precision": "int8",
}


def all_estimators() -> list[type[XMCEstimator]]:
    """Return every registered estimator class whose packages are installed."""
    return [kind for kind in MODELS.values() if kind.needs is None or find_spec(kind.needs) is not None]


def checks_of(estimator: XMCEstimator) -> dict[str, Callable[[], None]]:
    """Return the checks of an unfitted estimator by name, each ready to run: those of all, and of row classifiers."""
    ready: dict[str, Callable[[], None]] = {check.__name__: partial(check, clone(estimator)) for check in CHECKS}
    if isinstance(estimator, RowClassifier):
        ready |= {check.__name__: partial(check, clone(estimator)) for check in ROW_CHECKS}
    return ready


def check_estimator(estimator: XMCEstimator) -> None:
    """Run all checks of an unfitted estimator; raises CheckFailed at the first that fails."""
    for check in checks_of(estimator).values():
        check()


def _texts(n_rows: int = 80) -> Dataset:
    return make_topics(n_rows, 8, random_state=3)[0]


def _trained(estimator: XMCEstimator, data: Dataset) -> TextReader | None:
    """Train as a Tagger does and calibrate; return the features."""
    features = None if estimator.reads_texts else TfidfFeatures()
    split = np.arange(20, data.n_rows), np.arange(20)
    held_out = estimator.fit_dataset(data, features=features, split=split)
    require(held_out is not None, estimator, "fit_dataset must return predictions for the rows held out")
    return features


def check_constructor_only_stores(estimator: XMCEstimator) -> None:
    """Parameters come back as they were given, and a clone has the same."""
    marker = object()
    made = type(estimator)(**dict.fromkeys(estimator.get_params(deep=False), marker))
    kept = all(value is marker for value in made.get_params(deep=False).values())
    require(kept, estimator, "the constructor must only store")
    require(clone(estimator).get_params() == estimator.get_params(), estimator, "clone must keep parameters")


def check_not_fitted(estimator: XMCEstimator) -> None:
    """Prediction before training is refused."""
    refuses(estimator, lambda: estimator.predict_topk(np.ones((2, 3))), NotFittedError, "prediction before fit")


def check_fit_dataset(estimator: XMCEstimator) -> None:
    """A Tagger's training notes what it saw, calibrates, and gives rows of texts that can be predicted."""
    data = _texts()
    features = _trained(estimator, data)
    require(estimator.n_labels_ == data.n_labels, estimator, "fit_dataset must note the number of labels")
    require(estimator.n_rows_ in (data.n_rows, data.n_rows - 20), estimator, "fit_dataset must note the number of rows")
    require(estimator.label_counts_.shape == (data.n_labels,), estimator, "fit_dataset must count the labels")
    require(estimator.calibrated_, estimator, "fit_dataset must calibrate on the rows held out")
    rows = estimator.rows_of(_strings(data)[:5], features)
    top = estimator.predict_topk(rows, k=3)
    require(top.ids.shape == (5, 3), estimator, "rows_of must give rows that predict_topk takes")


def check_save_and_load(estimator: XMCEstimator) -> None:
    """A saved model predicts the same, with its calibration and parameters."""
    data = _texts()
    features = _trained(estimator, data)
    rows = estimator.rows_of(_strings(data), features)
    with tempfile.TemporaryDirectory() as folder:
        restored = load(estimator.save(Path(folder) / "model"))
        require(type(restored) is type(estimator), estimator, "loading must give the same class")
        loaded = _model(restored, estimator)
        loaded.build()
        same = same_ranking(loaded.predict_topk(rows, k=5), estimator.predict_topk(rows, k=5))
        require(same, estimator, "a loaded model must predict the same")
        require(loaded.saved_params() == estimator.saved_params(), estimator, "a loaded model must have its parameters")
        chances = [model.predict_proba(rows) for model in (loaded, estimator)]
        require((chances[0] != chances[1]).nnz == 0, estimator, "a loaded model must have its calibration")


def check_parameters_after_fit(estimator: XMCEstimator) -> None:
    """A parameter that is changed after training takes effect, is refused, or waits for the next training.

    Those in `prediction_params` are read: nonsense is refused, and a changed model is saved as it predicts. The others
    change no prediction; those that a network is built by (`shape_params`) make saving refuse.
    """
    data = _texts()
    features = _trained(estimator, data)

    def predict() -> TopK:
        return estimator.predict_topk(estimator.rows_of(_strings(data)[:30], features), k=3)

    before = predict()
    for name, value in estimator.get_params(deep=False).items():
        estimator.set_params(**{name: object()})
        if name in estimator.prediction_params:
            refuses(estimator, predict, ParameterError, f"a {name} that is none, after fit,")
        else:
            require(same_ranking(predict(), before), estimator, f"{name} must wait for the next fit")
        estimator.set_params(**{name: value})
    require(same_ranking(predict(), before), estimator, "parameters set back must give the same predictions")
    for name in set(estimator.prediction_params) & set(OTHER_VALUES):
        value = getattr(estimator, name)
        estimator.set_params(**{name: OTHER_VALUES[name]})
        loaded = _model(type(estimator).from_part(estimator.to_part()), estimator)
        rows = estimator.rows_of(_strings(data)[:30], features)
        same = same_ranking(loaded.predict_topk(rows, k=3), estimator.predict_topk(rows, k=3))
        require(same, estimator, f"a model whose {name} was changed must be saved as it predicts")
        estimator.set_params(**{name: value})
    for name in estimator.shape_params:
        value = getattr(estimator, name)
        if type(value) is int:
            estimator.set_params(**{name: value + 1})
            refuses(estimator, estimator.to_part, ModelError, f"saving with another {name} than at training")
            estimator.set_params(**{name: value})


def check_answers(estimator: XMCEstimator) -> None:
    """Every method of the protocol answers, or refuses in one sentence."""
    data = _texts()
    _answers(estimator, lambda: estimator.plan(data, lambda: shape_of(data), 20, probe=False), "plan")
    features = _trained(estimator, data)
    require(bool(json.dumps(estimator.describe())), estimator, "describe must give JSON-able facts")
    require(bool(json.dumps(estimator.describe_saved(estimator.to_part()))), estimator, "describe_saved too")
    require(estimator.predictable_labels().shape == (data.n_labels,), estimator, "predictable_labels: one per label")
    layer = _answers(estimator, estimator.output_layer, "output_layer")
    if layer is not None:
        require(layer.W.shape[0] == data.n_labels, estimator, "output_layer must have a row for every label")
    text = _strings(data)[0]
    row = estimator.rows_of([text], features)
    labels = [int(label) for label in estimator.predict_topk(row, k=3).ids[0] if label >= 0]
    reasons = _answers(estimator, lambda: estimator.explain_text(text, row, labels, features), "explain_text")
    if reasons is not None:
        require([why.label for why in reasons] == labels, estimator, "explain_text must explain the labels asked for")
        for why in (why for why in reasons if why.bias is not None):
            total = (why.bias or 0.0) + sum(word["weight"] for word in why.words)
            require(abs(total - why.margin) < 1e-4, estimator, "words with a bias must add up to the margin")
    estimator.label_tree(features)
    _answers(estimator, lambda: estimator.add_labels_by_text(["a label that is new"]), "add_labels_by_text")


def _answers(estimator: XMCEstimator, ask: Callable[[], Any], what: str) -> Any:
    """Return the answer, or None where it is refused in one sentence."""
    try:
        return ask()
    except LongtailError as error:
        one = bool(str(error)) and "\n" not in str(error)
        require(one, estimator, f"{what} must answer or refuse in one sentence")
        return None


def _model(loaded: object, estimator: XMCEstimator) -> XMCEstimator:
    require(isinstance(loaded, XMCEstimator), estimator, "loading must give a model")
    return loaded if isinstance(loaded, XMCEstimator) else estimator


def _strings(data: Dataset) -> tuple[str, ...]:
    return data.texts or ()


CHECKS: tuple[Callable[[XMCEstimator], None], ...] = (
    check_constructor_only_stores,
    check_not_fitted,
    check_fit_dataset,
    check_save_and_load,
    check_parameters_after_fit,
    check_answers,
)
