"""What every estimator has in common: ranked labels, label sets, probabilities, saving."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
import scipy.sparse as sp

from longtail.data import TopK, binary_hits
from longtail.errors import DataError, ModelError, ParameterError
from longtail.kernels import Progress, row_scales
from longtail.model.calibration import Calibration
from longtail.model.params import Estimator, not_fitted
from longtail.notebook import table_card
from longtail.storage import Part, save_folder
from longtail.validate import as_labels, as_rows, as_sparse, check_integer, check_same_rows, check_width

MOST_PLACES = 1 << 20  # labels of one row that can be asked for
FEATURES_SHOWN = 10  # of an explanation, in a notebook
UNSAVED = ("n_jobs",)  # changes how fast a model is made, never which


@dataclass(frozen=True)
class Explanation:
    """Why a label scores as it does: `bias` and the `features` add up to `margin`, which makes the score.

    `path` lists the nodes of a tree on the way to the label, from the top: level, node and the node's own margin.
    """

    label: int
    score: float
    margin: float
    bias: float
    features: list[tuple[int, float]]  # (feature, contribution), strongest first
    path: list[dict[str, Any]]

    def _repr_html_(self) -> str:
        """Return what a notebook shows: the strongest features of the label."""
        rows = [[feature, f"{weight:+.3f}"] for feature, weight in self.features[:FEATURES_SHOWN]]
        note = f"score {self.score:.3g}, margin {self.margin:+.3f}, bias {self.bias:+.3f}"
        return table_card(f"Label {self.label}", ["feature", "contribution"], rows, note)


class XMCEstimator(Estimator):
    """Base of the estimators: `fit(X, Y)`, `predict_topk`, `predict`, `predict_proba`, `calibrate`, `save`.

    Learned by every model: `n_features_in_`, `n_labels_`, `n_rows_` and `label_counts_` (training rows per label).
    """

    kind: ClassVar[str] = ""
    needs: ClassVar[str | None] = None  # an optional package it cannot work without

    n_features_in_: int
    n_labels_: int
    n_rows_: int
    label_counts_: np.ndarray
    calibration_: Calibration
    n_jobs: int | None

    def fit(self, X: Any, Y: Any, progress: Progress | None = None) -> Self:
        """Train on rows X and labels Y; `progress(done, total)` is called as labels are finished."""
        raise ModelError(f"{type(self).__name__} cannot be trained.")

    def _begin_fit(self, X: Any, Y: Any) -> tuple[sp.csr_array | np.ndarray, sp.csr_array]:
        """Check rows and labels through the one door and note their shape."""
        X, Y = as_rows(X, "X"), as_labels(Y, "Y")
        check_same_rows(X, Y)
        if Y.shape[1] == 0:
            raise DataError("Y must have at least one label; got 0 columns.")
        if Y.nnz == 0:
            raise DataError("Y must hold at least one label; every row is empty.")
        if X.shape[1] == 0:
            raise DataError("X must have at least one feature; got 0 columns.")
        self.n_rows_, self.n_features_in_ = (int(v) for v in X.shape)
        self.n_labels_ = int(Y.shape[1])
        self.label_counts_ = np.bincount(Y.indices, minlength=self.n_labels_).astype(np.int64)
        if hasattr(self, "calibration_"):
            del self.calibration_
        return X, Y

    def _check_rows(self, X: Any) -> sp.csr_array | np.ndarray:
        self._check_fitted()
        X = as_rows(X, "X")
        check_width(X, self.n_features_in_)
        return X

    def _one_row(self, X: Any) -> tuple[np.ndarray, np.ndarray]:
        """Return the feature ids and scaled values of the one row X."""
        X = as_sparse(self._check_rows(X))
        if X.shape[0] != 1:
            raise DataError(f"explain takes one row; got {X.shape[0]}.")
        return X.indices, X.data * row_scale(X, bool(getattr(self, "normalize", False)))[0]

    def _check_fitted(self) -> None:
        if not hasattr(self, "n_labels_"):
            raise not_fitted(f"this {type(self).__name__} is not fitted yet; call fit(X, Y) first.")

    def predict_topk(self, X: Any, k: int = 5, *, allow: Any = None, deny: Any = None) -> TopK:
        """Return the k best labels of every row with their scores, best first.

        `allow` (only these labels) and `deny` (none of these) are lists of label numbers.
        """
        raise ModelError(f"{type(self).__name__} does not rank labels.")

    def predict(self, X: Any, k: int = 20) -> sp.csr_array:
        """Return the labels each row should get, at most k, as a 0/1 CSR matrix.

        With a calibration: labels whose probability reaches the threshold that was best on the held-out rows.
        Without: labels with a positive score.
        """
        self._check_fitted()
        top = self.predict_topk(X, k=min(check_integer("k", k, low=1), self.n_labels_))
        keep = self.chosen(top)
        kept = TopK(np.where(keep, top.ids, -1), np.where(keep, np.float32(1), np.float32(-np.inf)))
        return kept.to_csr(self.n_labels_)

    def chosen(self, topk: TopK) -> np.ndarray:
        """Return which predictions belong to the label set of their row: bool (n_rows, k)."""
        if hasattr(self, "calibration_"):
            return self.calibration_.chosen(topk)
        return (topk.ids >= 0) & (topk.scores > 0)

    def predict_proba(self, X: Any, k: int = 20) -> sp.csr_array:
        """Return calibrated probabilities of the k best labels of every row, as CSR; the rest is not stored."""
        self._check_fitted()
        top = self.predict_topk(X, k=min(check_integer("k", k, low=1), self.n_labels_))
        return self.probabilities(top).to_csr(self.n_labels_)

    def probabilities(self, topk: TopK) -> TopK:
        """Return the same labels with probabilities in place of scores; the order stays."""
        self._check_fitted()
        if not hasattr(self, "calibration_"):
            raise ModelError(
                f"this {type(self).__name__} has no calibration; call calibrate(X, Y) with rows it was not trained on."
            )
        return self.calibration_.apply(topk)

    def calibrate(self, X: Any, Y: Any, k: int = 20) -> Self:
        """Learn what a score means as a probability, from rows the model was not trained on; returns self."""
        X = self._check_rows(X)
        Y = as_labels(Y, "Y")
        check_same_rows(X, Y)
        check_width(Y, self.n_labels_, "Y")
        k = min(check_integer("k", k, low=1), self.n_labels_)
        top = self.predict_topk(X, k=k)
        self.calibration_ = Calibration.fit(top, binary_hits(top, Y), np.diff(Y.indptr))
        return self

    def explain(self, X: Any, labels: Any) -> list[Explanation]:
        """Return for the one row X, per label, what its score is made of."""
        raise ModelError(f"{type(self).__name__} cannot explain itself.")

    def score(self, X: Any, Y: Any) -> float:
        """Return the share of rows whose first label is right (precision at 1)."""
        Y = as_labels(Y, "Y")
        top = self.predict_topk(X, k=1)
        check_same_rows(top.ids, Y)
        return float(binary_hits(top, Y).mean())

    def to_part(self) -> Part:
        """Return what is saved of this model."""
        raise ModelError(f"{type(self).__name__} cannot be saved.")

    @classmethod
    def from_part(cls, part: Part) -> Self:
        """Make the model from what was saved of it."""
        raise ModelError(f"{cls.__name__} cannot be loaded.")

    def saved_params(self) -> dict[str, Any]:
        """Return the constructor's parameters as they are saved."""
        return {name: value for name, value in self.get_params(deep=False).items() if name not in UNSAVED}

    def parts(self, name: str = "model") -> dict[str, Part]:
        """Return the model and, if it has one, its calibration, as parts of a model folder."""
        self._check_fitted()
        parts = {name: self.to_part()}
        if hasattr(self, "calibration_"):
            parts["calibration"] = self.calibration_.to_part()
        return parts

    def save(self, path: str | Path) -> Path:
        """Write the model to a folder; `longtail.load` reads it back."""
        return save_folder(path, "estimator.v1", self.parts())


def row_scale(X: sp.csr_array, normalize: bool) -> np.ndarray:
    """Return what each row is multiplied with: 1 over its length, or 1 (also for empty rows)."""
    out = np.ones(X.shape[0], dtype=np.float32)
    if normalize:
        row_scales(X.indptr.astype(np.int64, copy=False), X.data, out)
    return out


def allowed_labels(n_labels: int, allow: Any, deny: Any) -> np.ndarray:
    """Return which labels may be predicted (bool per label), from lists of numbers; at least one must be."""
    out = np.ones(n_labels, dtype=bool)
    for name, labels in (("allow", allow), ("deny", deny)):
        if labels is None:
            continue
        numbers = np.unique(np.asarray(labels))
        if numbers.size and (numbers.dtype.kind not in "iu" or numbers[0] < 0 or numbers[-1] >= n_labels):
            raise ParameterError(f"{name} must hold label numbers from 0 to {n_labels - 1}; got {labels!r}.")
        chosen = np.zeros(n_labels, dtype=bool)
        chosen[numbers.astype(np.int64)] = True
        out &= chosen if name == "allow" else ~chosen
    if not out.any():
        raise ParameterError("allow and deny leave no label to predict.")
    return out
