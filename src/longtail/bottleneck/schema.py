"""The schema of a saved network with a narrow output layer; its parameters give the shapes of its weights."""

from __future__ import annotations

import numpy as np

from longtail.bottleneck.dft import ARITHMETICS, SPACINGS
from longtail.model import LABEL_COUNTS, SEED
from longtail.storage import (
    ArraySpec,
    Choice,
    CrossCheck,
    Flag,
    ListOf,
    OneOf,
    ParamSpec,
    Part,
    PartSchema,
    Real,
    Sizes,
    SizeSpec,
    Whole,
    shapes_problem,
)
from longtail.training import HISTORY
from longtail.validate import check_widths

HEADS = ("dft", "bottleneck")
STOP_ON = ("precision", "loss")
ENCODERS = ("mlp", "linear")
WIDEST, MOST_LAYERS = 1 << 20, 100


def network_shapes(part: Part, n_features: int, n_labels: int) -> dict[str, tuple[int, ...]]:
    """Return the shape of every array of the network that the parameters describe."""
    params = part.params
    widths, step = check_widths("hidden", params["hidden"]), 3 if params["encoder"] == "mlp" else 1
    shapes: dict[str, tuple[int, ...]] = {}
    before = n_features
    for number, width in enumerate(widths):
        shapes[f"encoder.{number * step}.weight"] = (before, width) if number == 0 else (width, before)
        shapes[f"encoder.{number * step}.bias"] = (width,)
        before = width
    if params["head"] == "bottleneck" or n_labels < 3:
        dimensions = max(params["width"], 1)
        shapes["head.scores.weight"] = (n_labels, dimensions)
    else:
        slack = params["width"]
        dimensions = 2 * min(params["k"], (n_labels - 1) // 2) + 1 + slack
        shapes["head.gains"] = (dimensions,)
        if slack:
            shapes["head.slack"] = (n_labels, slack)
        if params.get("spacing") == "learned":
            shapes["head.gaps"] = (n_labels,)
        if "head.order" in part.arrays:
            shapes["head.order"] = (n_labels,)
    shapes["head.projection.weight"], shapes["head.projection.bias"] = (dimensions, before), (dimensions,)
    return shapes


def _network_problem(part: Part, sizes: Sizes) -> str | None:
    expected = network_shapes(part, sizes["n_features"], sizes["n_labels"])
    return shapes_problem(part, {**expected, "label_counts": (sizes["n_labels"],)})


def _order_problem(part: Part, sizes: Sizes) -> str | None:
    order = part.arrays.get("head.order")
    if order is not None and np.bincount(order, minlength=order.size).max() > 1:
        return "'head.order' must name every position on the circle once"
    return None


SCHEMA = PartSchema(
    kind="bottleneck.v1",
    about="a network with a narrow output layer, of `BottleneckClassifier`",
    params=(
        ParamSpec("head", Choice(HEADS), "the output layer"),
        ParamSpec("k", Whole(1), "size of the label sets that are guaranteed"),
        ParamSpec("width", Whole(0, WIDEST), "trained dimensions of the output layer"),
        ParamSpec(
            "order",
            OneOf((Choice(("cooccurrence",)), ListOf(Whole(0, 2**31 - 1))), none=True),
            "positions on the circle",
        ),
        ParamSpec("spacing", Choice(SPACINGS), "distances on the circle", optional=True),
        ParamSpec("arithmetic", Choice(ARITHMETICS, none=True), "numbers of the output layer", optional=True),
        ParamSpec("encoder", Choice(ENCODERS), "the layers before"),
        ParamSpec("hidden", OneOf((Whole(1, WIDEST), ListOf(Whole(1, WIDEST), 1, MOST_LAYERS))), "their widths"),
        ParamSpec("dropout", Real(0, 0.99), "share of outputs left out in training"),
        ParamSpec("lr", Real(0, above=True), "learning rate"),
        ParamSpec("weight_decay", Real(0), "weight decay"),
        ParamSpec("batch_size", Whole(1), "rows per step"),
        ParamSpec("epochs", Whole(1), "passes over the rows"),
        ParamSpec("patience", Whole(1), "epochs without a better one"),
        ParamSpec("stop_on", Choice(STOP_ON), "what makes an epoch better", optional=True),
        ParamSpec("valid", Real(0, 0.5), "share of rows held out"),
        ParamSpec("normalize", Flag(), "whether rows are scaled to length 1"),
        ParamSpec("random_state", SEED, "the seed"),
        ParamSpec("n_rows", Whole(), "training rows"),
        ParamSpec("n_features", Whole(1, 2**31 - 1), "width of the rows", size="n_features"),
        ParamSpec("dense", Flag(), "whether rows are multiplied as dense ones"),
        ParamSpec("history", HISTORY, "records of the epochs"),
        ParamSpec("prior_precision", Real(0, 1, none=True), "precision of the most frequent labels", optional=True),
    ),
    sizes=(SizeSpec("n_labels", "labels", low=1), SizeSpec("n_features", "width of the rows", low=1)),
    arrays=(
        LABEL_COUNTS,
        ArraySpec("encoder.*", "float32", None, "weights of the layers before", finite="finite"),
        ArraySpec(
            "head.order",
            "int64",
            ("n_labels",),
            "position of every label on the circle",
            0,
            "n_labels - 1",
            optional=True,
        ),
        ArraySpec("head.projection.*", "float32", None, "weights into the narrow layer", finite="finite"),
        ArraySpec(
            "head.scores.weight", "float32", ("n_labels", "*"), "weights of the labels", finite="finite", optional=True
        ),
        ArraySpec(
            "head.slack", "float32", ("n_labels", "*"), "learned weights of the labels", finite="finite", optional=True
        ),
        ArraySpec("head.gaps", "float32", ("n_labels",), "distances on the circle", finite="finite", optional=True),
        ArraySpec("head.gains", "float32", ("*",), "what inputs are multiplied with", finite="finite", optional=True),
    ),
    crosschecks=(
        CrossCheck("every array has the shape that the parameters say, and none is missing", _network_problem),
        CrossCheck("no two labels have one position on the circle", _order_problem),
    ),
)
