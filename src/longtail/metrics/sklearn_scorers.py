"""Scorers for scikit-learn: `GridSearchCV(model, grid, scoring=scorer("p@5"))`."""

from __future__ import annotations

import re
from typing import Any

import numpy as np

from longtail.errors import ParameterError, near
from longtail.metrics.measures import ROW_METRICS, row_measure
from longtail.metrics.propensity import PROPENSITY_CONSTANTS, label_counts, propensities
from longtail.metrics.row_metrics import judge
from longtail.validate import MatrixLike, check_choice, check_flag

PATTERN = re.compile(r"([a-z][a-z0-9]*)@([1-9][0-9]*)")


class Scorer:
    """A metric at k that scores a fitted estimator through its `predict_topk`; larger is better.

    Parameters
    ----------
    name : str
        A metric and k, such as "p@5".
    constants : str, default="default"
        The constants of the propensities, a name in `PROPENSITY_CONSTANTS`.
    remove_empty : bool, default=False
        Leave out rows without true labels, which else count as zero.

    Attributes
    ----------
    metric, k : str, int
        The two parts of the name.

    Examples
    --------
    >>> Scorer("psp@3").metric, Scorer("psp@3").k
    ('psp', 3)
    """

    k: int
    metric: str

    def __init__(self, name: str, constants: str = "default", remove_empty: bool = False) -> None:
        self.name = name
        self.constants = constants
        self.remove_empty = remove_empty
        self.metric, self.k = _parse_name(name)
        check_choice("constants", constants, list(PROPENSITY_CONSTANTS))
        check_flag("remove_empty", remove_empty)

    def __call__(self, estimator: Any, X: Any, Y: MatrixLike) -> float:
        """Return the metric of the estimator's k best labels for X against Y."""
        model, X = _last_step(estimator, X, self.name)
        topk = model.predict_topk(X, k=self.k)
        if hasattr(model, "label_matrix"):  # a Tagger: labels by name
            Y, model = model.label_matrix(Y), model.model_
        propensity = self._propensity(model, Y) if ROW_METRICS[self.metric].needs_propensity else None
        judged = judge(Y, topk, self.k, propensity=propensity, remove_empty=self.remove_empty)
        return row_measure(self.metric, judged, self.k).value()

    def _propensity(self, model: Any, Y: MatrixLike) -> np.ndarray:
        A, B = PROPENSITY_CONSTANTS[self.constants]
        counts, n_rows = getattr(model, "label_counts_", None), getattr(model, "n_rows_", None)
        if counts is None or n_rows is None:
            counts, n_rows = label_counts(Y), Y.shape[0] if hasattr(Y, "shape") else len(Y)
        width = getattr(Y, "shape", (0, 0))[-1]
        unknown = max(width - len(counts), 0)  # labels that training never saw
        return propensities(np.concatenate([counts, np.zeros(unknown, dtype=np.int64)]), n_rows, A, B)

    def __repr__(self) -> str:
        more = "" if self.constants == "default" else f", constants={self.constants!r}"
        more += ", remove_empty=True" if self.remove_empty else ""
        return f"scorer({self.name!r}{more})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Scorer) and repr(self) == repr(other)

    def __hash__(self) -> int:
        return hash(repr(self))


def scorer(name: str, *, constants: str = "default", remove_empty: bool = False) -> Scorer:
    """Return the scorer of a metric for scikit-learn's searches, `GridSearchCV(model, grid, scoring=scorer("p@5"))`.

    It calls `estimator.predict_topk(X, k=k)`; in a scikit-learn Pipeline, that of the last step on the
    transformed rows. The propensities of psp and psndcg come from the training data, that is from the
    estimator's `label_counts_` and `n_rows_`; an estimator without them is scored with the propensities
    of the Y it is scored on.

    Parameters
    ----------
    name : str
        p, r, f1, ndcg, psp or psndcg, then @ and any k.
    constants : str, default="default"
        The constants of the propensities, a name in `PROPENSITY_CONSTANTS`.
    remove_empty : bool, default=False
        Leave out rows without true labels, which else count as zero.

    Returns
    -------
    scorer : Scorer

    Examples
    --------
    >>> scorer("ndcg@3")
    scorer('ndcg@3')
    >>> scorer("ngcd@3")
    Traceback (most recent call last):
    ...
    longtail.errors.ParameterError: scorer must be one of p, r, f1, ndcg, psp, psndcg with a k, such as 'p@5'; \
got 'ngcd@3'. Did you mean 'ndcg@3'?
    """
    return Scorer(name, constants, remove_empty)


def scorers(*names: str, constants: str = "default", remove_empty: bool = False) -> dict[str, Scorer]:
    """Return several scorers by name, for scikit-learn's searches over more than one metric.

    >>> scorers("p@1", "psp@5")
    {'p@1': scorer('p@1'), 'psp@5': scorer('psp@5')}
    """
    return {name: Scorer(name, constants, remove_empty) for name in names}


def _parse_name(name: str) -> tuple[str, int]:
    match = PATTERN.fullmatch(name) if isinstance(name, str) else None
    if match is None or match[1] not in ROW_METRICS:
        digits = re.search(r"[1-9][0-9]*$", str(name))
        k = digits[0] if digits else "5"
        hint = near(str(name).lower(), [f"{metric}@{k}" for metric in ROW_METRICS])
        raise ParameterError(
            name="scorer", allowed=f"one of {', '.join(ROW_METRICS)} with a k, such as 'p@5'", got=name, hint=hint
        )
    return match[1], int(match[2])


def _last_step(estimator: Any, X: Any, name: str) -> tuple[Any, Any]:
    """Return what predicts, and the rows as it wants them: a Pipeline's last step gets transformed rows."""
    if not hasattr(estimator, "predict_topk") and hasattr(estimator, "steps"):
        if len(estimator.steps) > 1:
            X = estimator[:-1].transform(X)
        estimator = estimator[-1]
    if not hasattr(estimator, "predict_topk"):
        raise ParameterError(f"scorer {name!r} needs an estimator with predict_topk; got {type(estimator).__name__}.")
    return estimator, X
