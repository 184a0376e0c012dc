"""One linear classifier per label: exact, simple, and the baseline for everything else."""

from __future__ import annotations

from typing import Any, ClassVar, Self

import numpy as np
import scipy.sparse as sp

from longtail.data import Dataset, TopK
from longtail.errors import ModelError
from longtail.kernels import (
    LANES,
    Progress,
    blocks,
    collect_weights,
    count_weights,
    dense_topk,
    hinge_lanes,
    logistic_lanes,
    run_tasks,
    sparse_topk,
)
from longtail.model import (
    MOST_PLACES,
    Estimate,
    Explanation,
    LinearLayer,
    RowClassifier,
    Shape,
    allowed_labels,
    row_scale,
)
from longtail.one_vs_all.plan import estimate_ova
from longtail.storage import Part, pack_csr, unpack_csr
from longtail.validate import as_sparse, check_choice, check_flag, check_integer, check_real, resolve_jobs, resolve_seed

EVERY_ROW = np.empty(0, dtype=np.uint16)
LOSSES = ("squared_hinge", "logistic")
# when scoring 32 labels at a time in dense blocks is faster than following sparse lists (measured on eurlex-4k)
DENSE_ABOVE = 0.05
FEWEST_ROWS_FOR_DENSE = 64


class OneVsAllClassifier(RowClassifier):
    """One L2-regularised linear classifier per label, trained by dual coordinate descent.

    Parameters
    ----------
    C : how much errors cost against large weights; larger fits the training rows more closely.
    loss : "squared_hinge" or "logistic".
    positive_weight : errors on rows that have the label cost this many times more.
    bias : value of the constant feature that carries the bias; 0 for no bias.
    threshold : weights smaller than this are dropped after training, for a smaller model.
    tol : a label is done when the spread of its projected gradient is below this.
    max_iter : at most this many passes over the rows per label.
    normalize : scale every row to length 1 first, at training and prediction.
    random_state : seed; the same seed gives the same model for any number of threads.
    n_jobs : threads; None for all cores.

    Labels without a training row are never predicted. Weights in `Y` are ignored: a label is there or not.

    >>> import numpy as np
    >>> X = np.array([[1, 0, 0], [1, 0, 1], [0, 1, 0], [0, 1, 1]])
    >>> Y = np.array([[1, 0], [1, 0], [0, 1], [0, 1]])
    >>> model = OneVsAllClassifier(random_state=0).fit(X, Y)
    >>> model.predict_topk(X, k=1).ids.ravel().tolist()
    [0, 0, 1, 1]
    """

    kind: ClassVar[str] = "one-vs-all.v1"
    tagger_method: ClassVar[str | None] = "ova"
    prediction_params: ClassVar[tuple[str, ...]] = ("n_jobs", "normalize")

    def __init__(
        self,
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

    def fit(self, X: Any, Y: Any, progress: Progress | None = None) -> Self:
        """Train one classifier per label; `progress(done, total)` is called as labels are finished."""
        C = check_real("C", self.C, low=0, open_low=True)
        loss = check_choice("loss", self.loss, LOSSES)
        positive_weight = check_real("positive_weight", self.positive_weight, low=0, open_low=True)
        bias = check_real("bias", self.bias, low=0)
        threshold = check_real("threshold", self.threshold, low=0)
        tol = check_real("tol", self.tol, low=0, open_low=True)
        max_iter = check_integer("max_iter", self.max_iter, low=1)
        normalize = check_flag("normalize", self.normalize)
        seed, n_jobs = resolve_seed(self.random_state), resolve_jobs(self.n_jobs)
        X, Y = self._begin_fit(X, Y)
        X = as_sparse(X)
        data = X.data * np.repeat(row_scale(X, normalize), np.diff(X.indptr)) if normalize else X.data
        squares = sp.csr_array((data * data, X.indices, X.indptr), shape=X.shape).sum(axis=1)
        norms = np.maximum(squares + bias * bias, 1e-12).astype(np.float32)

        X_indptr = X.indptr.astype(np.int64, copy=False)
        by_label = sp.csc_array(Y)
        trained = np.flatnonzero(self.label_counts_)
        # frequent labels first: lanes of like frequency need a like number of passes
        order = trained[np.argsort(-self.label_counts_[trained], kind="stable")].astype(np.int32)
        if loss == "squared_hinge":
            costs = np.repeat(np.array([[0.5 / C], [0.5 / (C * positive_weight)]], dtype=np.float32), LANES, axis=1)
        else:
            costs = np.repeat(np.array([[C], [C * positive_weight]], dtype=np.float32), LANES, axis=1)

        def train(at: slice) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
            labels = order[at]
            positive = np.zeros(X.shape[0], dtype=np.uint16)
            for lane, label in enumerate(labels):
                rows = by_label.indices[by_label.indptr[label] : by_label.indptr[label + 1]]
                positive[rows] |= np.uint16(1 << lane)
            W = np.zeros((X.shape[1] + 1, LANES), dtype=np.float32)
            rows_of, lanes = (X_indptr, X.indices, data, norms, positive), (labels.size, bias, costs)
            ends = (tol, max_iter, seed + int(at.start), W)
            if loss == "squared_hinge":
                epochs = hinge_lanes(*rows_of, EVERY_ROW, *lanes, False, *ends)
            else:
                epochs = logistic_lanes(*rows_of, *lanes, *ends)
            counts = count_weights(W, labels.size, threshold)
            features, values = np.empty(counts.sum(), np.int32), np.empty(counts.sum(), np.float32)
            collect_weights(W, labels.size, threshold, features, values)
            return counts, features, values, W[-1, : labels.size].copy(), epochs[: labels.size]

        def labels_done(done: int, total: int) -> None:
            if progress is not None:
                progress(min(done * LANES, order.size), order.size)

        found = run_tasks(train, blocks(order.size, LANES), n_jobs, labels_done)
        counts, features, values, biases, epochs = (np.concatenate(parts) for parts in zip(*found, strict=True))
        self.weights_ = _by_feature(order, counts, features, values, self.n_features_in_, self.n_labels_)
        self.bias_ = np.full(self.n_labels_, -np.inf, dtype=np.float32)
        self.bias_[order] = biases
        self.n_iter_ = np.zeros(self.n_labels_, dtype=np.int32)
        self.n_iter_[order] = epochs
        return self

    def predict_topk(self, X: Any, k: int = 5, *, allow: Any = None, deny: Any = None) -> TopK:
        """Return the k best labels of every row with their margins, best first.

        `allow` (only these labels) and `deny` (none of these) are lists of label numbers.
        """
        X = as_sparse(self._check_rows(X))
        k = check_integer("k", k, low=1, high=MOST_PLACES)
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
        kernel = dense_topk if dense else sparse_topk  # the same result, to the last bit

        def score(at: slice) -> None:
            indptr = X_indptr[at.start : at.stop + 1]
            out = np.empty((at.stop - at.start, used), np.int32), np.empty((at.stop - at.start, used), np.float32)
            kernel(indptr, X.indices, X.data, scale[at], W.indptr, W.indices, W.data, start, *out)
            block_ids[at], block_scores[at] = out

        size = min(-(-X.shape[0] // n_jobs), 16_384) if dense else 256
        run_tasks(score, blocks(X.shape[0], max(size, 1)), n_jobs)
        return TopK(ids, scores)

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
        for label in labels:
            found = []
            for f, x in zip(ids, values, strict=True):
                low, high = self.weights_.indptr[f], self.weights_.indptr[f + 1]
                at = low + np.searchsorted(self.weights_.indices[low:high], label)
                if at < high and self.weights_.indices[at] == label:
                    found.append((int(f), float(x * self.weights_.data[at])))
            bias = float(self.bias_[label])
            score = bias + sum(weight for _, weight in found)
            found.sort(key=lambda pair: -abs(pair[1]))
            out.append(Explanation(int(label), score, score, bias, found, []))
        return out

    def to_part(self) -> Part:
        arrays = {
            **pack_csr("weights", self.weights_),
            "bias": self.bias_,
            "label_counts": self.label_counts_,
            "n_iter": self.n_iter_,
        }
        return Part(self.kind, {**self.saved_params(), "n_rows": self.n_rows_}, arrays)

    @classmethod
    def from_part(cls, part: Part) -> Self:
        params = dict(part.params)
        n_rows = int(params.pop("n_rows"))
        model = cls(**params)
        model.weights_ = unpack_csr("weights", part)
        model.bias_ = part.array("bias")
        model.label_counts_ = part.array("label_counts")
        model.n_iter_ = part.array("n_iter")
        model.n_rows_, model.n_features_in_ = n_rows, int(model.weights_.shape[0])
        model.n_labels_ = int(model.weights_.shape[1])
        numbers = (model.weights_.data, np.where(np.isneginf(model.bias_), 0, model.bias_))
        if not all(bool(np.isfinite(a).all()) for a in numbers) or model.label_counts_.min(initial=0) < 0:
            raise ModelError(f"the model's part '{part.kind}' holds numbers that are not finite or negative counts.")
        if not model.bias_.shape == model.label_counts_.shape == (model.n_labels_,):
            raise ModelError(f"the model's part '{part.kind}' is inconsistent: its arrays differ in length.")
        return model


def _weights_met(X: sp.csr_array, W: sp.csr_array) -> float:
    """Return how many labels, on average, use a feature that a row has."""
    return float(np.diff(W.indptr)[X.indices].mean()) if X.nnz else 0.0


def _by_feature(
    order: np.ndarray, counts: np.ndarray, features: np.ndarray, values: np.ndarray, n_features: int, n_labels: int
) -> sp.csr_array:
    """Turn weights listed label by label into a matrix (n_features, n_labels) stored by feature."""
    labels = np.repeat(order, counts)
    at = np.lexsort((labels, features))
    indptr = np.zeros(n_features + 1, dtype=np.int64)
    np.cumsum(np.bincount(features, minlength=n_features), out=indptr[1:])
    W = sp.csr_array((n_features, n_labels), dtype=np.float32)
    W.data, W.indices, W.indptr = values[at], labels[at], indptr
    return W
