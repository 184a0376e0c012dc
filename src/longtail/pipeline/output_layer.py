"""The linear output layer of a model or of a file, as an audit needs it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import scipy.sparse as sp

from longtail.audit import EXACT, dft_order, layer_from_file, names_in_file, read_layer
from longtail.data import DEFAULT_LIMITS, Limits, read_labels
from longtail.errors import DataError, ModelError
from longtail.model import Calibration, LabelCircle, LinearLayer, XMCEstimator
from longtail.pipeline.labels_in_vocabulary import deprecated_choice, label_ids
from longtail.pipeline.tagger import Tagger
from longtail.validate import MatrixLike, available_memory
from longtail.vocabulary import Vocabulary

COPIES = 3  # of dense weights that an audit keeps


@dataclass(frozen=True, eq=False)
class Layer:
    """Scores W x + bias; a label is on where its score is above 0."""

    W: np.ndarray | sp.csr_array  # (n_labels, width)
    bias: np.ndarray | None
    names: tuple[str, ...] | None  # of its labels; None for numbers
    source: str  # what it is from
    silent: tuple[str, ...] = ()  # labels the model knows and never gives: they have no training row
    cut: float = 0.0  # score above which the model gives a label; the bias is less by it
    guaranteed: int = 0  # every set of so many labels can come out, by construction
    ranked: bool = False  # inputs have one length, so scores only rank: a set comes out as the top of the ranking
    circle: LabelCircle | None = None  # of a DFT layer: its first columns are waves along it, exactly
    vocabulary: Vocabulary | None = None  # what people call its labels
    deprecated: str = "keep"  # what is done with deprecated concepts in data
    bias_missing: bool = False  # weights from a file in which no bias was found

    @property
    def linear(self) -> LinearLayer:
        """The weights, the bias and the circle alone."""
        return LinearLayer(self.W, self.bias, circle=self.circle)

    @property
    def n_labels(self) -> int:
        return int(self.W.shape[0])

    @property
    def width(self) -> int:
        return int(self.W.shape[1])


def model_layer(model: Tagger | XMCEstimator) -> Layer:
    """Return the output layer of a Tagger or an estimator; labels without a training row are left out.

    >>> from longtail.one_vs_all import OneVsAllClassifier
    >>> model = OneVsAllClassifier(random_state=0).fit(np.eye(3), np.eye(3)[:, [0, 1, 2]])
    >>> layer = model_layer(model)
    >>> layer.W.shape, layer.names is None
    ((3, 3), True)
    """
    names, vocabulary, deprecated = None, None, "keep"
    if isinstance(model, Tagger):
        model._check_fitted()
        deprecated = deprecated_choice(model.data_)
        names, vocabulary, model = tuple(model.labels_), model.vocabulary_, model.model_
    layer = model.output_layer()
    spoken = model.predictable_labels()
    bias = None if layer.bias is None else np.asarray(layer.bias, dtype=np.float64)
    if bias is not None:
        spoken = spoken & ~np.isneginf(bias)
    kind = type(model).__name__
    if not spoken.any():
        raise ModelError(f"the {kind} never gives any label.")
    listed = [str(i) for i in range(spoken.size)] if names is None else names
    silent = tuple(listed[i] for i in np.flatnonzero(~spoken))
    W = layer.W if spoken.all() else layer.W[np.flatnonzero(spoken)]
    W, bias = read_layer(W, None if bias is None else bias[spoken], keep_sparse=True)
    cut = score_cut(model.calibration_) if model.calibrated_ and not layer.ranked else 0.0
    if cut:
        bias = (0.0 if bias is None else bias) - np.full(W.shape[0], cut)
    if silent:
        names = tuple(name for name, kept in zip(listed, spoken, strict=True) if kept)
    circle = None if layer.circle is None else layer.circle.take(np.flatnonzero(spoken))
    own = (layer.guaranteed, layer.ranked, circle, vocabulary, deprecated)
    return checked(Layer(W, bias, names, kind, silent, cut, *own))


def file_layer(
    path: Path, array: str | None = None, labels_file: Path | None = None, limits: Limits = DEFAULT_LIMITS
) -> Layer:
    """Return the layer of an .npz, .npy or .safetensors file, with the names of its labels if they can be known."""
    W, bias = layer_from_file(path, array, limits)
    missing = bias is None
    try:
        W, bias = read_layer(W, bias, keep_sparse=True)
    except DataError as error:
        raise DataError(f"{path} cannot be audited: {error}") from error
    names = read_labels(labels_file, limits).names if labels_file is not None else names_in_file(path, limits)
    if names is not None and len(names) != W.shape[0]:
        where = labels_file if labels_file is not None else path
        raise DataError(f"{where} names {len(names):,} labels; the weights have {W.shape[0]:,} rows.")
    if names is not None and len(set(names)) != len(names):
        raise DataError(f"{labels_file or path} names a label twice.")
    guaranteed = 0 if sp.issparse(W) or bias is not None else dft_order(W, EXACT)
    return checked(Layer(W, bias, names, path.name, guaranteed=guaranteed, bias_missing=missing))


def with_vocabulary(layer: Layer, vocabulary: Vocabulary) -> Layer:
    """Return the layer with a vocabulary, its labels called by their ids; a layer without names as it is."""
    if layer.names is None:
        return layer
    return replace(layer, names=label_ids(layer.names, vocabulary), vocabulary=vocabulary)


def narrow_layers(
    X: MatrixLike, Y: MatrixLike, names: tuple[str, ...], widths: Sequence[int], random_state: int = 0
) -> list[Layer]:
    """Return one linear classifier per label on rows squeezed into few numbers, for each width.

    Rows are squeezed by a truncated SVD, classifiers are ridge regressions; labels without a row are left out.

    >>> layers = narrow_layers(np.eye(6), np.eye(6), tuple("abcdef"), (2, 3))
    >>> [layer.W.shape for layer in layers]
    [(6, 2), (6, 3)]
    """
    from sklearn.decomposition import TruncatedSVD

    truth = sp.csr_array(Y, dtype=np.float64)
    used = np.flatnonzero(truth.sum(axis=0))
    rows = TruncatedSVD(max(widths), random_state=random_state).fit_transform(sp.csr_matrix(X))
    out = []
    for width in widths:
        A = np.column_stack([rows[:, :width], np.ones(rows.shape[0])])
        wanted = 2 * (truth[:, used].T @ A).T - A.sum(axis=0)[:, None]  # A' (2 Y - 1)
        solution = np.linalg.solve(A.T @ A + 1e-3 * np.eye(width + 1), wanted)
        kept = tuple(names[i] for i in used)
        out.append(Layer(np.ascontiguousarray(solution[:-1].T), solution[-1], kept, f"{width} numbers"))
    return out


def checked(layer: Layer) -> Layer:
    """Return the layer; one that would not fit into memory is refused."""
    if not sp.issparse(layer.W):
        need, there = COPIES * 8 * layer.n_labels * layer.width, available_memory()
        if there is not None and need > there:
            raise DataError(
                f"an audit of {layer.n_labels:,} labels in {layer.width:,} dimensions needs {need / 1e9:.1f} GB of "
                f"memory; there are {there / 1e9:.1f} GB."
            )
    return layer


def score_cut(calibration: Calibration) -> float:
    """Return the score from which on a calibrated model gives a label; 0 where the curve does not say.

    >>> score_cut(Calibration(np.array([-1.0, 1.0]), np.array([0.0, 1.0]), 0.25, 10))
    -0.5
    """
    scores, values = (np.asarray(a, dtype=np.float64) for a in (calibration.scores, calibration.values))
    at = int(np.searchsorted(values, calibration.threshold))
    if not 0 < at < values.size:
        return 0.0
    share = (calibration.threshold - values[at - 1]) / (values[at] - values[at - 1])
    return float(scores[at - 1] + share * (scores[at] - scores[at - 1]))
