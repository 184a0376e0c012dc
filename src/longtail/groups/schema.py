"""The schema of a saved Deep-MIML network: its parameters and arrays."""

from __future__ import annotations

from longtail.groups.bags import SCALINGS
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

MASK_NAMES = ("auto", "eagle", "eagle-0", "none")
LOSSES = ("auto", "presence", "counts", "list", "shares", "sets")
WIDEST, MOST_LAYERS = 1 << 20, 100


def _network_problem(part: Part, sizes: Sizes) -> str | None:
    """Return why the arrays are not those of the network that the parameters describe, or None."""
    params, n_labels, n_features = part.params, sizes["n_labels"], sizes["n_features"]
    shapes: dict[str, tuple[int, ...]] = {
        "label_counts": (n_labels,),
        "shift": (n_features,),
        "factor": (n_features,),
        "bias": (n_labels,),
    }
    before, step = n_features, 3 if params["dropout"] else 2
    for number, width in enumerate(check_widths("hidden", params["hidden"])):
        shapes[f"hidden.{number * step}.weight"], shapes[f"hidden.{number * step}.bias"] = (width, before), (width,)
        before = width
    n_concepts = params["concepts"] * n_labels
    shapes["concept.weight"], shapes["concept.bias"] = (n_concepts, before), (n_concepts,)
    if params["tau"] and params["mask"] != "none":
        shapes["vectors"] = (n_labels, n_features)
    return shapes_problem(part, shapes)


SCHEMA = PartSchema(
    kind="miml.v1",
    about="a network for labels of groups, of `MIMLClassifier`",
    params=(
        ParamSpec("concepts", Whole(1, WIDEST), "concepts per label"),
        ParamSpec(
            "hidden", OneOf((Whole(1, WIDEST), ListOf(Whole(1, WIDEST), 0, MOST_LAYERS))), "widths of the layers"
        ),
        ParamSpec("mask", Choice(MASK_NAMES), "where a label's rows are expected"),
        ParamSpec("tau", Real(0, 1e6), "sharpness of the mask"),
        ParamSpec("learn_vectors", Flag(), "whether label vectors were trained"),
        ParamSpec("loss", Choice(LOSSES), "the loss asked for"),
        ParamSpec("loss_", Choice(LOSSES[1:]), "the loss used"),
        ParamSpec("scaling", Choice(SCALINGS), "scaling of the features"),
        ParamSpec("dropout", Real(0, 0.99), "share of outputs left out in training"),
        ParamSpec("lr", Real(0, above=True), "learning rate"),
        ParamSpec("weight_decay", Real(0), "weight decay"),
        ParamSpec("batch_size", Whole(1), "groups per step"),
        ParamSpec("epochs", Whole(1), "passes over the groups"),
        ParamSpec("patience", Whole(1), "epochs without a better one"),
        ParamSpec("valid", Real(0, 0.5), "share of groups held out"),
        ParamSpec("random_state", SEED, "the seed"),
        ParamSpec("n_rows", Whole(), "training rows"),
        ParamSpec("history", HISTORY, "records of the epochs"),
    ),
    sizes=(SizeSpec("n_labels", "labels", low=1), SizeSpec("n_features", "width of the rows", low=1)),
    arrays=(
        LABEL_COUNTS,
        ArraySpec("shift", "float32", ("n_features",), "what is taken off every feature", finite="finite"),
        ArraySpec("factor", "float32", ("n_features",), "what every feature is multiplied with", finite="finite"),
        ArraySpec("bias", "float32", ("n_labels",), "bias of every label", finite="finite"),
        ArraySpec("hidden.*", "float32", None, "weights of the layers", finite="finite"),
        ArraySpec("concept.weight", "float32", ("*", "*"), "weights of the concepts", finite="finite"),
        ArraySpec("concept.bias", "float32", ("*",), "their bias", finite="finite"),
        ArraySpec("vectors", "float32", ("n_labels", "n_features"), "label vectors", finite="finite", optional=True),
    ),
    crosschecks=(
        CrossCheck("every array has the shape that the parameters say, and none is missing", _network_problem),
    ),
)
