"""The schema of what every saved model has: label counts, seed and calibration."""

from __future__ import annotations

from longtail.storage import ArraySpec, ParamSpec, PartSchema, Real, SizeSpec, Whole

N_CUTS = 201  # probabilities at which suggestions on held-out rows are counted
SEED = Whole(0, 2**31 - 1, none=True)
LABEL_COUNTS = ArraySpec("label_counts", "int64", ("n_labels",), "training rows of every label", low=0)

CALIBRATION = PartSchema(
    kind="calibration.v1",
    about="the curve from score to probability of `calibrate`",
    params=(
        ParamSpec("threshold", Real(0, 1), "probability from which a label belongs to a label set"),
        ParamSpec("n_rows", Whole(), "held-out rows that it was learned from"),
        ParamSpec("cut_rows", Whole(0, 1 << 40), "held-out rows that `cuts` were counted in", optional=True),
        ParamSpec("cut_labels", Whole(0, 1 << 40), "labels that these rows really have", optional=True),
    ),
    sizes=(SizeSpec("n_knots", "knots of the curve", low=1),),
    arrays=(
        ArraySpec("scores", "float32", ("n_knots",), "score of every knot", order="rising", finite="finite"),
        ArraySpec("values", "float32", ("n_knots",), "probability of every knot", 0, 1, "rising", "finite"),
        ArraySpec(
            "cuts",
            "int64",
            (2, N_CUTS),
            "suggestions at least as likely as 0, 1/200, 2/200, ..., 1, and the right ones of them",
            0,
            1 << 40,
            optional=True,
        ),
    ),
)
