"""One linear classifier per label: exact, simple, and the baseline for everything else."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, ClassVar, Self

import numpy as np
import scipy.sparse as sp

from longtail.data import Dataset, TopK
from longtail.engine import Arrays, Engine, Work, engine_for, running_on
from longtail.kernels import EVERY_ROW, LANES, Progress, blocks, hinge_lanes, logistic_lanes, run_tasks
from longtail.model import (
    MAX_BIAS,
    MAX_K,
    Estimate,
    Explanation,
    Hold,
    LinearLayer,
    RowClassifier,
    Shape,
    allowed_labels,
    check_new_truth,
    has_idle_columns,
    kept_labels,
    row_scale,
    with_finite_scores,
)
from longtail.one_vs_all.edit import OwnColumns, by_feature, entries_of, moved_weights, with_shape
from longtail.one_vs_all.plan import estimate_ova
from longtail.one_vs_all.schema import LOSSES, SCHEMA
from longtail.one_vs_all.topk_kernels import collect_weights, count_weights, dense_topk, sparse_topk
from longtail.storage import Part, PartSchema, checked, pack_csr, unpack_csr
from longtail.validate import (
    LabelNumbers,
    MatrixLike,
    as_sparse,
    check_choice,
    check_flag,
    check_integer,
    check_real,
    check_same_rows,
    resolve_jobs,
    resolve_seed,
)

# when scoring 32 labels at a time in dense blocks is faster than following sparse lists (measured on eurlex-4k)
DENSE_ABOVE = 0.05
FEWEST_ROWS_FOR_DENSE = 64
LEAST_COST = 1e6  # of a task, as entries of rows times batches of labels: about a tenth of a second...
FEWEST_TASKS = 64  # ... where there are more than so many


class OneVsAllClassifier(RowClassifier):
    """One L2-regularised linear classifier per label, trained by dual coordinate descent.

    A label's score is its margin w·x + b. Labels without a training row are never predicted. Weights in `Y` are
    ignored: a label is there or not.

    Parameters
    ----------
    C : float, default=1.0
        Cost of errors against large weights; larger fits the training rows more closely.
    loss : {"squared_hinge", "logistic"}, default="squared_hinge"
        Loss of a row with margin m and truth y = ±1: max(0, 1 - y m)² or log(1 + exp(-y m)).
    positive_weight : float, default=1.0
        Errors on rows that have the label cost this many times more.
    bias : float, default=1.0
        Value of the constant feature that carries the bias; 0 for no bias.
    threshold : float, default=0.01
        Weights smaller than this are dropped after training, for a smaller model.
    tol : float, default=0.1
        A label is done when the spread of its projected gradient is at most this.
    max_iter : int, default=100
        Passes over the rows per label, at most.
    normalize : bool, default=True
        Scale every row to length 1 first, at training and prediction.
    random_state : int, RandomState instance or None, default=None
        Seed; the same seed gives the same model for any number of threads.
    n_jobs : int or None, default=None
        Threads; None for all cores.

    Attributes
    ----------
    weights_ : csr_array of shape (n_features, n_labels)
        Weights, stored by feature.
    bias_ : ndarray of shape (n_labels,)
        Bias of every label, -inf for labels without a training row.
    n_iter_ : ndarray of shape (n_labels,)
        Passes over the rows that each label took.
    label_counts_ : ndarray of shape (n_labels,)
        Training rows of every label.
    n_labels_, n_features_in_, n_rows_ : int
        Shape of the training data.

    See Also
    --------
    LabelTreeClassifier : The same classifiers in a tree of clusters, much faster where labels are many.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.array([[1, 0, 0], [1, 0, 1], [0, 1, 0], [0, 1, 1]])
    >>> Y = np.array([[1, 0], [1, 0], [0, 1], [0, 1]])
    >>> model = OneVsAllClassifier(random_state=0).fit(X, Y)
    >>> model.predict_topk(X, k=1).ids.ravel().tolist()
    [0, 0, 1, 1]
    """

    weights_: sp.csr_array
    bias_: np.ndarray
    n_iter_: np.ndarray

    kind: ClassVar[str] = SCHEMA.kind
    schema: ClassVar[PartSchema | None] = SCHEMA
    tagger_method: ClassVar[str | None] = "ova"
    prediction_params: ClassVar[tuple[str, ...]] = ("n_jobs", "normalize")

    def __init__(
        self,
        *,
        C: float = 1.0,
        loss: str = "squared_hinge",
        positive_weight: float = 1.0,
        bias: float = 1.0,
        threshold: float = 0.01,
        tol: float = 0.1,
        max_iter: int = 100,
        normalize: bool = True,
        random_state: Any = None,
        n_jobs: int | None = None,
    ) -> None:
        self.C = C
        self.loss = loss
        self.positive_weight = positive_weight
        self.bias = bias
        self.threshold = threshold
        self.tol = tol
        self.max_iter = max_iter
        self.normalize = normalize
        self.random_state = random_state
        self.n_jobs = n_jobs

    def fit(
        self, X: MatrixLike, Y: MatrixLike, *, progress: Progress | None = None, engine: Engine | None = None
    ) -> Self:
        """Train one classifier per label; `progress(done, total)` is called as labels are finished.

        `engine` says where, on threads (None) or a cluster; the model is the same.
        """
        with running_on(engine):
            return self._fit(X, Y, progress)

    def _fit(self, X: MatrixLike, Y: MatrixLike, progress: Progress | None) -> Self:
        """Train on the engine in use."""
        solver = self._solver()
        normalize, n_jobs = check_flag("normalize", self.normalize), resolve_jobs(self.n_jobs)
        X, Y = self._begin_fit(X, Y)
        X = as_sparse(X)
        data = X.data * np.repeat(row_scale(X, normalize), np.diff(X.indptr)) if normalize else X.data
        squares = sp.csr_array((data * data, X.indices, X.indptr), shape=X.shape).sum(axis=1)
        norms = np.maximum(squares + solver.bias * solver.bias, 1e-12).astype(np.float32)
        columns, ids = None, X.indices
        if has_idle_columns(X.shape[1], X.nnz):  # hashed features: the solver needs a number for each
            columns, ids = np.unique(X.indices, return_inverse=True)
        width = X.shape[1] if columns is None else columns.size
        rows = (X.indptr.astype(np.int64, copy=False), ids.astype(np.int32, copy=False), data, norms)
        by_label = sp.csc_array(Y)
        trained = np.flatnonzero(self.label_counts_)
        # frequent labels first: lanes of like frequency need a like number of passes
        order = trained[np.argsort(-self.label_counts_[trained], kind="stable")].astype(np.int32)

        at_once = min(LEAST_COST / max(X.nnz, 1), order.size / LANES / FEWEST_TASKS)  # batches of sixteen labels
        per_task = LANES * max(1, int(at_once))
        tasks = [(at.start, at.stop) for at in blocks(order.size, per_task)]
        finished = 0

        def told(number: int) -> None:
            nonlocal finished
            finished += tasks[number][1] - tasks[number][0]
            if progress is not None:
                progress(finished, order.size)

        engine = engine_for(n_jobs)
        arrays = dict(zip(("indptr", "indices", "data", "norms"), rows, strict=True))
        arrays |= {"label.indptr": by_label.indptr, "label.rows": by_label.indices, "order": order}
        settings = {"solver": asdict(solver), "width": width}
        batches = engine.map(LABELS, [engine.share(arrays)], settings, tasks, told=told)
        counts, features, values, biases, epochs = (
            np.concatenate([batch[name] for batch in batches])
            for name in ("counts", "features", "values", "bias", "epochs")
        )
        features = features if columns is None else columns[features]
        self.weights_ = by_feature(features, np.repeat(order, counts), values, (self.n_features_in_, self.n_labels_))
        self.bias_ = np.full(self.n_labels_, -np.inf, dtype=np.float32)
        self.bias_[order] = biases
        self.n_iter_ = np.zeros(self.n_labels_, dtype=np.int32)
        self.n_iter_[order] = epochs
        return self

    def partial_fit(
        self,
        X: MatrixLike,
        Y: MatrixLike,
        classes: LabelNumbers | None = None,
        *,
        replayed: int = 0,
        feature_rows: np.ndarray | None = None,
    ) -> Self:
        """Learn new rows without the old ones. Returns self.

        The classifiers of labels that the new rows have move towards them, held by the old weights the more firmly the
        more rows were seen: a few rows change little. Columns of Y after those of the known labels are new labels.

        Where the last `replayed` rows of X were learned before, the old weights count for the less; with all old rows
        given again, these classifiers are trained anew. `feature_rows` tells how many old rows had each feature, where
        that is known. A calibration is kept, and grows stale.

        `classes` is ignored: scikit-learn's tools pass it, but labels are the columns of Y.
        """
        if not hasattr(self, "weights_"):
            return self.fit(X, Y)
        solver = self._solver()
        X, Y = as_sparse(self._check_rows(X)), check_new_truth(Y, self.n_labels_)
        check_same_rows(X, Y)
        rows, n = OwnColumns.of(X, check_flag("normalize", self.normalize)), X.shape[0]
        new = n - check_integer("replayed", replayed, low=0, high=n)
        hold, more = Hold.of(solver.C, self.n_rows_, n, replayed), Y.shape[1] - self.n_labels_
        weights = with_shape(self.weights_, self.n_features_in_, Y.shape[1])
        bias = np.concatenate([self.bias_, np.full(more, -np.inf, np.float32)])
        n_jobs = resolve_jobs(self.n_jobs)
        self.weights_, self.bias_, passes = moved_weights(weights, bias, rows, Y, solver, hold, feature_rows, n_jobs)
        self.n_iter_ = np.concatenate([self.n_iter_, np.zeros(more, np.int32)]) + passes
        counts = np.concatenate([self.label_counts_, np.zeros(more, self.label_counts_.dtype)])
        self.label_counts_ = counts + np.bincount(Y[:new].indices, minlength=Y.shape[1])
        self.n_rows_, self.n_labels_ = self.n_rows_ + new, Y.shape[1]
        return self

    def remove_labels(self, labels: LabelNumbers) -> Self:
        """Remove labels by number; the rest keep their order and are numbered anew. Returns self."""
        self._check_fitted()
        keep = kept_labels(labels, self.n_labels_)
        entries, number = entries_of(self.weights_), np.cumsum(keep) - 1
        stays = keep[entries.labels]
        self.n_labels_ = int(keep.sum())
        self.weights_ = by_feature(
            entries.features[stays],
            number[entries.labels[stays]],
            entries.values[stays],
            (self.n_features_in_, self.n_labels_),
        )
        self.bias_, self.n_iter_, self.label_counts_ = self.bias_[keep], self.n_iter_[keep], self.label_counts_[keep]
        return self

    def widen(self, n_features: int) -> Self:
        """Let rows have more columns, after the old ones; classifiers learn them with new rows. Returns self."""
        self._check_fitted()
        self.n_features_in_ = check_integer("n_features", n_features, low=self.n_features_in_, high=2**31 - 1)
        self.weights_ = with_shape(self.weights_, self.n_features_in_, self.n_labels_)
        return self

    def _solver(self) -> BatchSolver:
        """Return the checked settings of the solver."""
        return BatchSolver(
            C=check_real("C", self.C, low=0, open_low=True),
            loss=check_choice("loss", self.loss, LOSSES),
            positive_weight=check_real("positive_weight", self.positive_weight, low=0, open_low=True),
            bias=check_real("bias", self.bias, low=0, high=MAX_BIAS),
            threshold=check_real("threshold", self.threshold, low=0),
            tol=check_real("tol", self.tol, low=0, open_low=True),
            max_iter=check_integer("max_iter", self.max_iter, low=1),
            seed=resolve_seed(self.random_state),
        )

    def predict_topk(self, X: Any, k: int = 5, *, allow: Any = None, deny: Any = None) -> TopK:
        """Return the k best labels of every row with their margins, best first.

        `allow` (only these labels) and `deny` (none of these) are lists of label numbers.
        """
        X = as_sparse(self._check_rows(X))
        k = check_integer("k", k, low=1, high=MAX_K)
        scale = row_scale(X, check_flag("normalize", self.normalize))
        ids = np.full((X.shape[0], k), -1, dtype=np.int32)
        scores = np.full((X.shape[0], k), -np.inf, dtype=np.float32)
        W, used = self.weights_, min(k, self.n_labels_)
        X_indptr = X.indptr.astype(np.int64, copy=False)
        block_ids, block_scores = ids[:, :used], scores[:, :used]

        start = self.bias_
        if allow is not None or deny is not None:
            start = np.where(allowed_labels(self.n_labels_, allow, deny), start, np.float32(-np.inf))
        n_jobs = resolve_jobs(self.n_jobs)
        dense = X.shape[0] >= FEWEST_ROWS_FOR_DENSE * n_jobs and _weights_met(X, W) > DENSE_ABOVE * self.n_labels_
        dense = dense and not has_idle_columns(X.shape[1], W.nnz)
        kernel = dense_topk if dense else sparse_topk  # the same result, to the last bit

        def score(at: slice) -> None:
            indptr = X_indptr[at.start : at.stop + 1]
            out = np.empty((at.stop - at.start, used), np.int32), np.empty((at.stop - at.start, used), np.float32)
            kernel(indptr, X.indices, X.data, scale[at], W.indptr, W.indices, W.data, start, *out)
            block_ids[at], block_scores[at] = out

        size = min(-(-X.shape[0] // n_jobs), 16_384) if dense else 256
        run_tasks(score, blocks(X.shape[0], max(size, 1)), n_jobs)
        return with_finite_scores(TopK(ids, scores))

    def output_weights(self) -> tuple[sp.csr_array, np.ndarray]:
        """Return the weights (n_labels, n_features), sparse, and the bias, -inf for untrained labels, for audits."""
        self._check_fitted()
        return sp.csr_array(self.weights_.T), self.bias_.copy()

    def output_layer(self) -> LinearLayer:
        return LinearLayer(*self.output_weights())

    def estimate_fit(self, data: Dataset, shape: Shape, probe: bool) -> Estimate:
        return estimate_ova(data, shape, self, probe)

    def explain(self, X: Any, labels: Any) -> list[Explanation]:
        """Return for the one row X, per label, the features that speak for or against it, strongest first."""
        ids, values = self._one_row(X, self.normalize)
        out = []
        for label in self._explainable(labels):
            terms = []
            for f, x in zip(ids, values, strict=True):
                low, high = self.weights_.indptr[f], self.weights_.indptr[f + 1]
                at = low + np.searchsorted(self.weights_.indices[low:high], label)
                if at < high and self.weights_.indices[at] == label:
                    terms.append((int(f), float(x * self.weights_.data[at])))
            bias = float(self.bias_[label])
            score = bias + sum(weight for _, weight in terms)
            terms.sort(key=lambda pair: -abs(pair[1]))
            out.append(Explanation(label, score, score, bias, terms, []).finite())
        return out

    def to_part(self) -> Part:
        """Return what is saved: weights, biases and counts."""
        arrays = {
            **pack_csr("weights", self.weights_),
            "bias": self.bias_,
            "label_counts": self.label_counts_,
            "n_iter": self.n_iter_,
        }
        return Part(self.kind, {**self.saved_params(), "n_rows": self.n_rows_}, arrays)

    @classmethod
    def from_part(cls, part: Part) -> Self:
        """Return the saved model, checked."""
        part = checked(part, SCHEMA)
        params = dict(part.params)
        n_rows = params.pop("n_rows")
        model = cls(**params)
        model.weights_ = unpack_csr("weights", part)
        model.bias_ = part.array("bias")
        model.label_counts_ = part.array("label_counts")
        model.n_iter_ = part.array("n_iter")
        model.n_rows_ = n_rows
        model.n_features_in_, model.n_labels_ = (int(n) for n in model.weights_.shape)
        return model


RowsOfLabels = tuple[np.ndarray, np.ndarray]  # pointers and rows, by label
_TrainedBatch = tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, np.ndarray]


@dataclass(frozen=True)
class BatchSolver:
    """Settings that solve the binary problems of up to sixteen labels at once; see `OneVsAllClassifier`."""

    C: float
    loss: str
    positive_weight: float
    bias: float
    threshold: float
    tol: float
    max_iter: int
    seed: int

    def train(
        self, rows: tuple[np.ndarray, ...], of_labels: RowsOfLabels, labels: np.ndarray, n_features: int, seed: int
    ) -> _TrainedBatch:
        """Return, label by label: number of weights, their features, their values, bias, and epochs taken."""
        W = np.zeros((n_features + 1, LANES), dtype=np.float32)
        epochs = self.solve(rows, of_labels, labels, seed, W)
        counts = count_weights(W, labels.size, self.threshold)
        features, values = np.empty(counts.sum(), np.int32), np.empty(counts.sum(), np.float32)
        collect_weights(W, labels.size, self.threshold, features, values)
        return counts, features, values, W[-1, : labels.size].copy(), epochs

    def solve(
        self, rows: tuple[np.ndarray, ...], of_labels: RowsOfLabels, labels: np.ndarray, seed: int, W: np.ndarray
    ) -> np.ndarray:
        """Train up to sixteen labels from the weights in W, which it changes; return the epochs taken."""
        positive = np.zeros(rows[0].size - 1, dtype=np.uint16)
        indptr, of_label = of_labels
        for lane, label in enumerate(labels):
            positive[of_label[indptr[label] : indptr[label + 1]]] |= np.uint16(1 << lane)
        ends = (self.tol, self.max_iter, seed, W)
        if self.loss == "squared_hinge":
            diagonal = np.array([[0.5 / self.C], [0.5 / (self.C * self.positive_weight)]], dtype=np.float32)
            lanes = (labels.size, self.bias, np.repeat(diagonal, LANES, axis=1))
            epochs = hinge_lanes(*rows, positive, EVERY_ROW, *lanes, False, *ends)
        else:
            costs = np.array([[self.C], [self.C * self.positive_weight]], dtype=np.float32)
            epochs = logistic_lanes(*rows, positive, labels.size, self.bias, np.repeat(costs, LANES, axis=1), *ends)
        return epochs[: labels.size]


@dataclass(frozen=True)
class LabelsTask:
    """What all tasks of a training need."""

    solver: BatchSolver
    rows: tuple[np.ndarray, ...]
    label_indptr: np.ndarray
    label_rows: np.ndarray
    order: np.ndarray
    width: int


def prepare_labels(arrays: Arrays, settings: dict[str, Any]) -> LabelsTask:
    """Put shared arrays together to rows, and rows of labels."""
    rows = tuple(arrays[name] for name in ("indptr", "indices", "data", "norms"))
    of_labels = (arrays["label.indptr"], arrays["label.rows"], arrays["order"])
    return LabelsTask(BatchSolver(**settings["solver"]), rows, *of_labels, int(settings["width"]))


def train_labels(all_labels: LabelsTask, task: Sequence[int]) -> Arrays:
    """Train some labels, sixteen at a time."""
    solver, of_labels = all_labels.solver, (all_labels.label_indptr, all_labels.label_rows)
    out = [
        solver.train(all_labels.rows, of_labels, all_labels.order[at : at + LANES], all_labels.width, solver.seed + at)
        for at in range(task[0], task[1], LANES)
    ]
    names = ("counts", "features", "values", "bias", "epochs")
    return {name: np.concatenate(parts) for name, parts in zip(names, zip(*out, strict=True), strict=True)}


LABELS = Work(prepare_labels, train_labels)


def _weights_met(X: sp.csr_array, W: sp.csr_array) -> float:
    """Return how many labels, on average, use a feature that a row has."""
    return float(np.diff(W.indptr)[X.indices].mean()) if X.nnz else 0.0
