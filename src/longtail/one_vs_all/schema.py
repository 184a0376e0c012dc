"""The schema of a saved one-vs-all model."""

from __future__ import annotations

from longtail.model import LABEL_COUNTS, SEED
from longtail.storage import ArraySpec, Choice, Flag, ParamSpec, PartSchema, Real, SizeSpec, Whole, csr_arrays

LOSSES = ("squared_hinge", "logistic")

SCHEMA = PartSchema(
    kind="one-vs-all.v1",
    about="one linear classifier per label, of `OneVsAllClassifier`",
    params=(
        ParamSpec("C", Real(0, above=True), "weight of errors"),
        ParamSpec("loss", Choice(LOSSES), "loss of the classifiers"),
        ParamSpec("positive_weight", Real(0, above=True), "weight of rows with the label"),
        ParamSpec("bias", Real(0), "value of the constant feature"),
        ParamSpec("threshold", Real(0), "smaller weights were dropped"),
        ParamSpec("tol", Real(0, above=True), "when a label is done"),
        ParamSpec("max_iter", Whole(1), "passes over the rows"),
        ParamSpec("normalize", Flag(), "whether rows are scaled to length 1"),
        ParamSpec("random_state", SEED, "the seed"),
        ParamSpec("n_rows", Whole(), "training rows"),
    ),
    sizes=(
        SizeSpec("n_features", "width of the rows", low=1),
        SizeSpec("n_labels", "labels", low=1),
        SizeSpec("n_weights", "weights of all labels", high=2**40),
    ),
    arrays=(
        *csr_arrays("weights", "n_features", "n_labels", "the weights, a row per feature", "n_weights"),
        ArraySpec("bias", "float32", ("n_labels",), "bias of every label; -inf: never", finite="finite or -inf"),
        LABEL_COUNTS,
        ArraySpec("n_iter", "int32", ("n_labels",), "passes over the rows that each label took", low=0),
    ),
)
