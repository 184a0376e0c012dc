"""The base of all models: ranked labels, label sets, probabilities, saving, and what a Tagger asks of a model.

A Tagger, a plan, an audit and the reports never ask which model they have: they call the methods under "For a Tagger"
below. Each has a default that suits a model of rows, or refuses in one sentence.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
import scipy.sparse as sp

from longtail.data import Dataset, TopK, binary_hits
from longtail.errors import DataError, LongtailError, ModelError, Parameter, ParameterError
from longtail.facts import ModelFacts
from longtail.kernels import Progress, row_scales
from longtail.model.answers import Explanation, LinearLayer, TextExplanation
from longtail.model.calibration import Calibration
from longtail.model.cost import Estimate, Shape, TrainingPlan, plan_row_training
from longtail.model.fitting import EpochReport, HeldOut, Split, Stages, of_stage, rows_of_dataset
from longtail.model.params import Estimator, available_if, clone, not_fitted, plain_value
from longtail.model.text_features import TextFeatures, TextReader, WordFeatures
from longtail.storage import Part, PartSchema, save_folder
from longtail.validate import (
    Json,
    LabelNumbers,
    MatrixLike,
    Rows,
    as_labels,
    as_rows,
    as_sparse,
    check_integer,
    check_label_numbers,
    check_same_rows,
    check_width,
    count_ids,
    resolve_seed,
    rows_at,
)

if TYPE_CHECKING:
    from sklearn.utils import Tags

MAX_K = 1 << 20  # labels of one row that can be asked for
MAX_BIAS = 1e6  # of the constant feature; its square must not leave the range of 32-bit floats
HELD_OUT_K = 50  # labels predicted for every held-out row: as many as a decision about label sets looks at
HELD_OUT_AT_MOST = 20_000  # rows that a Tagger holds out
UNSAVED = ("n_jobs",)  # changes how fast a model is made, never which
UNSEEN = ("checkpoint", "checkpoint_minutes", "device")  # no part of what a model is


class XMCEstimator(Estimator):
    """Base of the models: `predict_topk`, `predict`, `predict_proba`, `calibrate`, `explain`, `save`, and the protocol.

    A model of rows derives from `RowClassifier` and writes `fit(X, Y)` and `predict_topk`; to be saved it also sets
    `kind` and `schema` and writes `to_part` and `from_part`. A model that is trained otherwise derives from this class.

    Attributes
    ----------
    n_features_in_ : int
        Width of the rows.
    n_labels_ : int
    n_rows_ : int
        Training rows.
    label_counts_ : ndarray of int64 (n_labels,)
        Training rows per label.
    calibration_ : Calibration
        Scores to probabilities; only after `calibrate`.
    """

    kind: ClassVar[str] = ""  # of its part in a model folder
    schema: ClassVar[PartSchema | None] = None  # what that part may hold
    needs: ClassVar[str | None] = None  # an optional package it cannot work without
    tagger_method: ClassVar[str | None] = None  # the name by which a Tagger makes it
    reads_texts: ClassVar[bool] = False  # it makes its own rows from texts, without features
    has_epochs: ClassVar[bool] = False  # it is trained in epochs, and `fit` reports each to `on_epoch`
    trained_twice: ClassVar[bool] = True  # by a Tagger: to calibrate without the rows held out, then with all
    held_out_at_most: ClassVar[int] = HELD_OUT_AT_MOST  # rows that a Tagger holds out of its training
    trains_in_files: ClassVar[bool] = False  # it keeps a limit on memory: its large arrays are in files then
    reads_rows: ClassVar[bool] = False  # fit(X, Y): rows and their labels are all it needs
    prediction_params: ClassVar[tuple[str, ...]] = ()  # parameters that a fitted model still reads; others wait for fit
    shape_params: ClassVar[tuple[str, ...]] = ()  # parameters that a saved network is built by when it is loaded

    n_features_in_: int
    n_labels_: int
    n_rows_: int
    label_counts_: np.ndarray
    calibration_: Calibration
    n_jobs: int | None = None  # threads, of models that can use many
    _built_by: dict[str, Any]
    _params_at_fit: dict[str, Any]  # those that a trained model no longer reads

    # ---- For a Tagger: training, rows, plans, explanations, audits. Override what differs.

    @classmethod
    def small(cls) -> Self:
        """Return an estimator that trains within a second or two, for checks."""
        return cls()

    def check_features(self, features: TextFeatures | None) -> None:
        """Refuse features that this model has no use for."""

    def check_texts(self, texts: Sequence[str]) -> None:
        """Refuse texts this model cannot read, by their numbers among all texts; features judge for themselves."""

    def check_training_data(self, data: Dataset) -> None:
        """Refuse data that this model cannot be trained on, before anything slow begins."""

    def fit_dataset(
        self,
        data: Dataset,
        *,
        features: TextFeatures | None = None,
        split: Split | None = None,
        progress: Stages | None = None,
        on_epoch: EpochReport | None = None,
    ) -> HeldOut | None:
        """Train as a Tagger does; return predictions for the held-out rows, if there are any.

        The features learn from the texts. A first model is trained without the rows held out, and calibrated on them;
        then this one is trained on all rows and takes over the calibration. Where a second training would give scores
        of another scale (not `trained_twice`), this one is trained without these rows and stays so.
        """
        if on_epoch is not None and not self.has_epochs:
            raise ParameterError(
                name="on_epoch", problem=f"is for models trained in epochs; got it for {type(self).__name__}."
            )
        X, stage = rows_of_dataset(data, features, progress), of_stage(progress, "Training")
        if split is None:
            self._fit_rows_reporting(X, data.Y, stage, on_epoch)
            return None
        train, test = split
        if not self.trained_twice:
            self._fit_rows_reporting(rows_at(X, train), rows_at(data.Y, train), stage, on_epoch)
            return self.judge(X[test], data.Y[test])
        first = self._untrained()
        first.fit_rows(rows_at(X, train), rows_at(data.Y, train), of_stage(progress, "Training (calibration)"))
        held_out = first.judge(X[test], data.Y[test])
        calibration = first.calibration_
        del first  # as large as the model itself
        self._fit_rows_reporting(X, data.Y, stage, on_epoch)
        self.calibration_ = calibration
        return held_out

    def _fit_rows_reporting(
        self, X: Rows, Y: sp.csr_array, progress: Progress | None, report: EpochReport | None
    ) -> None:
        """Train on rows, and report every epoch where that was asked for."""
        if report is None:
            self.fit_rows(X, Y, progress)
        else:
            self.fit_rows_in_epochs(X, Y, progress, report)

    def use_hierarchy(self, parents: np.ndarray, node_of_label: np.ndarray) -> None:
        """Let `fit` take the label tree from a hierarchy: the node above each node (-1 for none), and of each label."""
        raise ModelError(f"{type(self).__name__} has no label tree that a hierarchy could be.")

    def _untrained(self) -> Self:
        """Return a copy that is trained in the same way."""
        return clone(self)

    def fit_rows(self, X: MatrixLike, Y: MatrixLike, progress: Progress | None = None) -> Self:
        """Train on rows and their labels, each row by itself; returns self."""
        raise ModelError(f"{type(self).__name__} cannot be trained.")

    def fit_rows_in_epochs(self, X: MatrixLike, Y: MatrixLike, progress: Progress | None, report: EpochReport) -> Self:
        """Do as `fit_rows` does and report every epoch, where `has_epochs`; returns self."""
        raise ModelError(f"{type(self).__name__} is not trained in epochs.")

    def judge(self, X: MatrixLike, Y: sp.csr_array) -> HeldOut:
        """Calibrate on rows it was not trained on; return its predictions for them."""
        top = self.predict_topk(X, k=HELD_OUT_K)
        self.calibration_ = Calibration.fit(top, binary_hits(top, Y), np.diff(Y.indptr))
        return HeldOut(Y, top, self.label_counts_, self.n_rows_)

    def imputing_model(self) -> RowClassifier | None:
        """Return the model that is asked where the labels of groups belong; None for a label tree."""
        return None

    def rows_of(self, texts: Sequence[str], features: TextReader | None) -> Rows:
        """Return the rows of texts as `predict_topk` takes them."""
        if features is None:
            raise DataError("this Tagger was trained on rows of features, not on texts; give it rows.")
        return features.transform(texts)

    def describe(self) -> ModelFacts:
        """Return facts about the trained model."""
        self._check_fitted()
        return {
            "model": type(self).__name__,
            "params": self.saved_params(),
            "settings": self.effective_params(),
            "labels": self.n_labels_,
            "features": self.n_features_in_,
            "trained_rows": self.n_rows_,
            "calibrated": self.calibrated_,
        }

    @classmethod
    def describe_saved(cls, part: Part) -> Json:
        """Return facts about a saved model that its parameters and arrays do not say at a glance; it is not loaded."""
        return {}

    def plan(self, data: Dataset, shape: Callable[[], Shape], n_held_out: int, probe: bool) -> TrainingPlan:
        """Return the expected cost of `fit_dataset`; without a probe, memory alone.

        `shape` measures the rows that the Tagger's features make of the data.
        """
        measured = shape()
        once = self.estimate_fit(data, measured, probe)
        return plan_row_training(data, measured, once, n_held_out, self.trained_twice)

    def estimate_fit(self, data: Dataset, shape: Shape, probe: bool) -> Estimate:
        """Return the expected cost of one `fit_rows`; without a probe, memory alone."""
        raise LongtailError(f"there is no plan for {type(self).__name__}; there is one for the methods of a Tagger.")

    def predictable_labels(self) -> np.ndarray:
        """Return which labels the model can give at all, bool per label: those with a training row."""
        self._check_fitted()
        return np.asarray(self.label_counts_) > 0

    def output_layer(self) -> LinearLayer:
        """Return the linear output layer, for audits; a model that has none refuses."""
        raise self._no_output_layer(f"{type(self).__name__} has no linear output layer that says what it can give")

    def _no_output_layer(self, why: str) -> ModelError:
        return ModelError(
            "{why}; audit a model of the method 'ova', 'dft' or 'prime', or a file with {weights}.",
            why=why,
            weights=Parameter("weights"),
        )

    def explains_words(self, features: TextReader | None) -> bool:
        """Say whether `explain_text` can tell which words of a text a label came from."""
        return isinstance(features, WordFeatures)

    def explain_text(
        self, text: str, row: Rows, labels: Sequence[int], features: TextReader | None
    ) -> list[TextExplanation]:
        """Return for each label the words of a text for and against it; `row` is the one row of the text."""
        if not isinstance(features, WordFeatures):
            raise ModelError("only a Tagger that reads words can explain itself by words.")
        spans: dict[int, list[list[int]]] = {}
        for start, end, column in features.locate(text):
            spans.setdefault(int(column), []).append([int(start), int(end)])
        names = features.get_feature_names_out()
        return [
            TextExplanation(
                why.label,
                why.score,
                why.margin,
                why.bias,
                [{"word": names[f], "weight": weight, "spans": spans.get(f, [])} for f, weight in why.features],
                why.path,
            )
            for why in self.explain(row, labels)
        ]

    def label_tree(self, features: TextReader | None) -> object | None:
        """Return the label tree inside the model, as a `longtail.tree.TreeInside`; None where there is none."""
        return None

    def word_features(self, features: TextReader | None) -> TextReader | None:
        """Return what counts the words of texts: those of the Tagger, unless the model has its own."""
        return features

    def add_labels_by_text(self, texts: Sequence[str]) -> Self:
        """Add labels that are known by their texts alone, numbered after the old ones; returns self."""
        raise ModelError(
            f"the model is a {type(self).__name__}, which knows labels by their rows; labels can be added by their "
            "texts to models of the method 'prime'."
        )

    def drop_checkpoint(self) -> None:
        """Remove what `fit` keeps on disk so that an interrupt costs no training; `save` does this when it is done."""

    def build(self) -> None:
        """Make what loading leaves until it is needed, so that a damaged part is found now."""

    def _learned(self) -> list[tuple[str, object]]:
        if not hasattr(self, "n_labels_"):
            return []
        return [
            ("training rows", f"{self.n_rows_:,}"),
            ("labels", f"{self.n_labels_:,}"),
            ("features", f"{self.n_features_in_:,}"),
            ("calibrated", "yes" if self.calibrated_ else "no"),
        ]

    # ---- For scikit-learn

    def __sklearn_tags__(self) -> Tags:
        from sklearn.utils import ClassifierTags, InputTags, TargetTags

        tags = super().__sklearn_tags__()
        tags.estimator_type = "classifier"
        tags.classifier_tags = ClassifierTags(multi_class=False, multi_label=True)
        tags.target_tags = TargetTags(
            required=True, one_d_labels=False, two_d_labels=True, multi_output=True, single_output=False
        )
        tags.input_tags = InputTags(sparse=True, two_d_array=self.reads_rows, string=self.reads_texts)
        return tags

    @property
    def classes_(self) -> np.ndarray:
        """The labels by number, 0 to n_labels - 1: the columns of what `predict` returns."""
        if not hasattr(self, "n_labels_"):
            raise AttributeError(f"this {type(self).__name__} is not fitted yet, so it has no classes_.")
        return np.arange(self.n_labels_)

    def _why_no_probabilities(self) -> str | None:
        """Return the sentence that says why there are no probabilities; None where there are."""
        if self.calibrated_:
            return None
        return f"this {type(self).__name__} has no calibration; call calibrate(X, Y) with rows it was not trained on."

    # ---- Predictions

    def _begin_fit(self, X: MatrixLike, Y: MatrixLike) -> tuple[Rows, sp.csr_array]:
        """Check rows and labels through the one door and note their shape."""
        rows, labels = as_rows(X, "X"), as_labels(Y, "Y")
        check_same_rows(rows, labels)
        if labels.shape[1] == 0:
            raise DataError(input="Y", problem="must have at least one label; no row has any.")
        if labels.nnz == 0:
            raise DataError(input="Y", problem="must hold at least one label; every row is empty.")
        if rows.shape[1] == 0:
            raise DataError("X must have at least one feature; got 0 columns.")
        self.n_rows_, self.n_features_in_ = (int(v) for v in rows.shape)
        self.n_labels_ = int(labels.shape[1])
        self.label_counts_ = count_ids(labels.indices, self.n_labels_)
        params = self.get_params(deep=False)
        self._params_at_fit = {name: params[name] for name in params if name not in self.prediction_params}
        if self.calibrated_:
            del self.calibration_
        return rows, labels

    def _check_rows(self, X: Any) -> Rows:
        self._check_fitted()
        rows = as_rows(X, "X")
        check_width(rows, self.n_features_in_)
        return rows

    def _one_row(self, X: MatrixLike, normalize: bool) -> tuple[np.ndarray, np.ndarray]:
        """Return the feature ids and the values, scaled if asked, of the one row X."""
        row = as_sparse(self._check_rows(X))
        if row.shape[0] != 1:
            raise DataError(f"explain takes one row; got {row.shape[0]}.")
        return row.indices, row.data * row_scale(row, normalize)[0]

    def _explainable(self, labels: LabelNumbers) -> list[int]:
        """Return the numbers of labels to explain, checked; nothing speaks for a label that is never given."""
        numbers, may = check_label_numbers("labels", labels, self.n_labels_).tolist(), self.predictable_labels()
        for number in numbers:
            if not may[number]:
                raise ParameterError(f"label {number} has no training row, so there is nothing to explain.")
        return numbers

    @property
    def calibrated_(self) -> bool:
        """Whether it knows what a score means as a probability."""
        return hasattr(self, "calibration_")

    def _note_shape(self) -> None:
        """Remember the parameters that the trained network was built by."""
        self._built_by = {name: getattr(self, name) for name in self.shape_params}

    def _check_shape(self) -> None:
        """Refuse to save a network whose parameters were changed after it was trained: it could not be built again."""
        for name, old in self._built_by.items():
            new = getattr(self, name)
            if new is not old and not np.array_equal(new, old):
                raise ModelError(f"{name} was {old!r} at training and is {new!r} now; call fit again before saving.")

    def _check_fitted(self) -> None:
        if not hasattr(self, "n_labels_"):
            raise not_fitted(f"this {type(self).__name__} is not fitted yet; call fit(X, Y) first.")

    def predict_topk(
        self, X: MatrixLike, k: int = 5, *, allow: LabelNumbers | None = None, deny: LabelNumbers | None = None
    ) -> TopK:
        """Return the k best labels of every row with their scores, best first.

        `allow` (only these labels) and `deny` (none of these) are lists of label numbers.
        """
        raise ModelError(f"{type(self).__name__} does not rank labels.")

    def predict(
        self, X: MatrixLike, k: int = 20, *, allow: LabelNumbers | None = None, deny: LabelNumbers | None = None
    ) -> sp.csr_array:
        """Return the labels each row should get, at most k, as a 0/1 CSR matrix.

        With a calibration: labels whose probability reaches the threshold that was best on the held-out rows.
        Without: labels with a positive score. `allow` (only these labels) and `deny` (none of these) are lists of label
        numbers.
        """
        self._check_fitted()
        top = self.predict_topk(X, k=min(check_integer("k", k, low=1), self.n_labels_), allow=allow, deny=deny)
        keep = self.chosen(top)
        kept = TopK(np.where(keep, top.ids, -1), np.where(keep, np.float32(1), np.float32(-np.inf)))
        return kept.to_csr(self.n_labels_)

    def chosen(self, topk: TopK) -> np.ndarray:
        """Return which predictions belong to the label set of their row: bool (n_rows, k)."""
        if self.calibrated_:
            return self.calibration_.chosen(topk)
        return (topk.ids >= 0) & (topk.scores > 0)

    @available_if(lambda model: model._why_no_probabilities())
    def predict_proba(
        self, X: MatrixLike, k: int = 20, *, allow: LabelNumbers | None = None, deny: LabelNumbers | None = None
    ) -> sp.csr_array:
        """Return calibrated probabilities of the k best labels of every row, as CSR; the rest is not stored.

        `allow` (only these labels) and `deny` (none of these) are lists of label numbers. Only a calibrated model has
        this method.
        """
        self._check_fitted()
        top = self.predict_topk(X, k=min(check_integer("k", k, low=1), self.n_labels_), allow=allow, deny=deny)
        return self.probabilities(top).to_csr(self.n_labels_)

    def probabilities(self, topk: TopK) -> TopK:
        """Return the same labels with probabilities in place of scores; the order stays."""
        self._check_fitted()
        why_not = self._why_no_probabilities()
        if why_not is not None:
            raise ModelError(why_not)
        return self.calibration_.apply(topk)

    def calibrate(self, X: MatrixLike, Y: MatrixLike, k: int = 20) -> Self:
        """Learn what a score means as a probability, from rows the model was not trained on; returns self."""
        rows = self._check_rows(X)
        truth = as_labels(Y, "Y")
        check_same_rows(rows, truth)
        check_width(truth, self.n_labels_, "Y")
        k = min(check_integer("k", k, low=1), self.n_labels_)
        top = self.predict_topk(rows, k=k)
        self.calibration_ = Calibration.fit(top, binary_hits(top, truth), np.diff(truth.indptr))
        return self

    def explain(self, X: MatrixLike, labels: LabelNumbers) -> list[Explanation]:
        """Return for the one row X, per label, what its score is made of."""
        raise ModelError(f"{type(self).__name__} cannot explain itself.")

    def score(self, X: MatrixLike, Y: MatrixLike) -> float:
        """Return the share of rows whose first label is right (precision at 1)."""
        truth = as_labels(Y, "Y")
        top = self.predict_topk(X, k=1)
        check_same_rows(top.ids, truth)
        return float(binary_hits(top, truth).mean())

    # ---- Saving

    def to_part(self) -> Part:
        """Return what is saved of this model."""
        raise ModelError(f"{type(self).__name__} cannot be saved.")

    @classmethod
    def from_part(cls, part: Part) -> Self:
        """Make the model from what was saved of it."""
        raise ModelError(f"{cls.__name__} cannot be loaded.")

    def saved_params(self) -> dict[str, Any]:
        """Return the constructor's parameters as they are saved: as they were at training, but those it still reads."""
        params = self.get_params(deep=False) | getattr(self, "_params_at_fit", {})
        return {name: plain_value(value) for name, value in params.items() if name not in UNSAVED}

    def effective_params(self) -> dict[str, Any]:
        """Return the parameters with the values that were used where the constructor's leave the choice to the data.

        Parameters without effect beside the others, and those that say where or how fast, are left out.
        """
        self._check_fitted()
        params = {name: value for name, value in self.saved_params().items() if name not in UNSEEN}
        if "random_state" in params and getattr(self, "random_state", None) is None:
            params["random_state"] = resolve_seed(None)
        return params

    def parts(self, name: str = "model") -> dict[str, Part]:
        """Return the model and, if it has one, its calibration, as parts of a model folder."""
        self._check_fitted()
        parts = {name: self.to_part()}
        if self.calibrated_:
            parts["calibration"] = self.calibration_.to_part()
        return parts

    def save(self, path: str | Path) -> Path:
        """Write the model to a folder; `longtail.load` reads it back. A checkpoint of its training is then removed."""
        saved = save_folder(path, "estimator.v1", self.parts())
        self.drop_checkpoint()
        return saved


class RowClassifier(XMCEstimator):
    """Base of the models that are trained on rows and their labels, `fit(X, Y)`, as scikit-learn's are."""

    reads_rows = True

    def fit(self, X: MatrixLike, Y: MatrixLike, *, progress: Progress | None = None) -> Self:
        """Train on rows X and labels Y; `progress(done, total)` is called as labels are finished."""
        raise ModelError(f"{type(self).__name__} cannot be trained.")

    def fit_rows(self, X: MatrixLike, Y: MatrixLike, progress: Progress | None = None) -> Self:
        return self.fit(X, Y, progress=progress)

    def imputing_model(self) -> RowClassifier:
        return self


def row_scale(X: sp.csr_array, normalize: bool) -> np.ndarray:
    """Return what each row is multiplied with: 1 over its length, or 1 (also for empty rows)."""
    out = np.ones(X.shape[0], dtype=np.float32)
    if normalize:
        row_scales(X.indptr.astype(np.int64, copy=False), X.data, out)
    return out


def allowed_labels(n_labels: int, allow: LabelNumbers | None, deny: LabelNumbers | None) -> np.ndarray:
    """Return which labels may be predicted (bool per label), from lists of numbers; at least one must be."""
    out = np.ones(n_labels, dtype=bool)
    for name, labels in (("allow", allow), ("deny", deny)):
        if labels is None:
            continue
        chosen = np.zeros(n_labels, dtype=bool)
        chosen[check_label_numbers(name, labels, n_labels)] = True
        out &= chosen if name == "allow" else ~chosen
    if not out.any():
        raise ParameterError("allow and deny leave no label to predict.")
    return out
