"""The schemas of saved PRIME models and of features made by them."""

from __future__ import annotations

from longtail.encoder import ENCODER_PRECISIONS, LONG_TEXTS, NEW_ENCODER, TEXT_ENCODER_SCHEMA, encoder_width
from longtail.model import LABEL_COUNTS, SEED
from longtail.prime.settings import (
    CENTROID_RULES,
    INDEXES,
    PRECISIONS,
    PRESETS,
    PROTOTYPES,
    REGULARISERS,
    SAMPLINGS,
)
from longtail.storage import (
    ArraySpec,
    Choice,
    CrossCheck,
    Flag,
    InnerPart,
    ListOf,
    OneOf,
    ParamSpec,
    Part,
    PartParams,
    PartSchema,
    Real,
    Record,
    Sequence,
    Sizes,
    SizeSpec,
    Text,
    Whole,
    string_arrays,
)
from longtail.text import TFIDF_SCHEMA
from longtail.training import HISTORY
from longtail.tree import LABEL_TREE_SCHEMA

LARGEST = 1e6  # upper limit of share, weight and the two numbers of `line` of a tree beside the encoder
WIDEST = 1 << 20
JOINER = "network.joiner.layer."


def _width_of(part: Part) -> int:
    """Return the width of the encoder's vectors."""
    return encoder_width(part.params["fitted"]["network"]["encoder"]["config"])


def _labels_problem(part: Part, sizes: Sizes) -> str | None:
    """Return why the label vectors are not those of the encoder, or None."""
    vectors = part.arrays["labels.vectors"]
    if vectors.shape[1] != _width_of(part):
        return f"its label vectors have {vectors.shape[1]} columns, and its encoder gives {_width_of(part)}"
    if (vectors.dtype.name == "int8") != ("labels.scales" in part.arrays):
        return "there must be 'labels.scales' if the label vectors are of type int8, and only then"
    return None


def _prototypes_problem(part: Part, sizes: Sizes) -> str | None:
    """Return why the arrays that prototypes are made of do not belong together, or None."""
    saved, width = part.params["fitted"]["network"], sizes["width"]
    counts = {}
    if "network.centroids.values" in part.arrays:
        counts["network.centroids.values"] = len(part.arrays["network.centroids.values"])
        if "momentum" not in saved:
            return "the parameter 'fitted.network.momentum' is missing"
    if ("network.free.cluster" in part.arrays) != ("network.free.vectors" in part.arrays):
        return "there must be both 'network.free.cluster' and 'network.free.vectors', or none"
    if "network.free.cluster" in part.arrays:
        counts["network.free.cluster"] = len(part.arrays["network.free.cluster"])
    if len(set(counts.values())) > 1 or any(not 0 < n <= sizes["n_labels"] for n in counts.values()):
        names = ", ".join(f"'{name}' {n}" for name, n in counts.items())
        return f"its arrays are of different numbers of labels ({names}, 'labels.vectors' {sizes['n_labels']})"
    hidden = saved.get("hidden", 1)
    shapes = {
        "linear1.weight": (hidden, width),
        "linear1.bias": (hidden,),
        "linear2.weight": (width, hidden),
        "linear2.bias": (width,),
        "norm1.weight": (width,),
        "norm1.bias": (width,),
        "norm2.weight": (width,),
        "norm2.bias": (width,),
        "self_attn.in_proj_weight": (3 * width, width),
        "self_attn.in_proj_bias": (3 * width,),
        "self_attn.out_proj.weight": (width, width),
        "self_attn.out_proj.bias": (width,),
    }
    found = {name: array.shape for name, array in part.under(JOINER).items()}
    if found != (shapes if saved["prototype"] == "network" else {}):
        return f"the arrays of '{JOINER}' are not those of a prototype network of width {width} and {hidden}"
    return None


def _tree_problem(part: Part, sizes: Sizes) -> str | None:
    """Return why the tree does not fit the encoder, or None."""
    tree = part.params["fitted"].get("tree")
    if tree is None:
        return None
    width = sizes["tree.words.n_terms"] + (sizes["width"] if tree["weight"] else 0)
    if sizes["tree.labels.n_features"] != width or sizes["tree.labels.n_labels"] > sizes["n_labels"]:
        return "its tree does not fit its encoder"
    return None


def _features_problem(part: Part, sizes: Sizes) -> str | None:
    """Return why the width of the rows is not that of words and vectors together, or None."""
    width = sizes["tfidf.n_terms"] + encoder_width(part.params["encoder"][1]["config"])
    if part.params["n_features"] != width:
        return f"'n_features' must be {width}, the terms and the encoder's columns; it is {part.params['n_features']}"
    return None


_SIZES = Record({name: Real(0, 1e9) if name == "dropout" else Whole(1) for name in NEW_ENCODER}, frozenset(NEW_ENCODER))
_TREE = Record(
    {
        "weight": Real(0, LARGEST),
        "share": Real(0, LARGEST),
        "line": ListOf(Real(-LARGEST, LARGEST), 2, 2),
        "words": PartParams(TFIDF_SCHEMA.kind),
        "labels": PartParams(LABEL_TREE_SCHEMA.kind),
    },
    none=True,
)
_NETWORK = Record(
    {
        "encoder": PartParams(TEXT_ENCODER_SCHEMA.kind),
        "prototype": Choice(PROTOTYPES),
        "hidden": Whole(1, WIDEST),
        "momentum": Real(0, 1),
    },
    frozenset({"hidden", "momentum"}),
)
_BUDGET = Record(
    {
        "minutes": Real(0),
        "minutes_used": Real(0),
        "epochs": Whole(0),
        "epochs_asked": Whole(0),
        "more_minutes": Real(0),
    }
)
_FITTED = Record(
    {
        "n_rows": Whole(),
        "history": HISTORY,
        "fusion": Real(0, 1, none=True),
        "text_scale": Real(0, LARGEST),
        "budget": _BUDGET,
        "network": _NETWORK,
        "tree": _TREE,
    },
    frozenset({"text_scale", "budget", "tree"}),
)

PRIME_SCHEMA = PartSchema(
    kind="prime.v1",
    about="an encoder trained against label prototypes, of `Prime`",
    params=(
        ParamSpec("encoder", OneOf((Text(4096), _SIZES), none=True), "where the encoder came from, or its sizes"),
        ParamSpec("preset", Choice(tuple(PRESETS)), "published settings"),
        ParamSpec("epochs", Whole(0), "passes over the texts"),
        ParamSpec("minutes", Real(0, above=True, none=True), "about how long training might take", optional=True),
        ParamSpec("batch_size", Whole(2, none=True), "queries in a batch"),
        ParamSpec("lr", Real(0, above=True, none=True), "largest learning rate"),
        ParamSpec("max_length", Whole(3), "tokens of a text that are read"),
        ParamSpec("long_texts", Choice(LONG_TEXTS), "how longer texts are read", optional=True),
        ParamSpec("n_positives", Whole(1, none=True), "labels shown per query"),
        ParamSpec("n_negatives", Whole(1, none=True), "hardest labels of the batch"),
        ParamSpec("sampling", Choice(SAMPLINGS, none=True), "which labels are shown"),
        ParamSpec("margin", OneOf((Real(0), ListOf(Real(0), 2, 2)), none=True), "margin of the loss"),
        ParamSpec("inverted_zone", Flag(), "whether near pairs are drawn together", optional=True),
        ParamSpec("loss_weights", ListOf(Real(0), 3, 3, none=True), "weights of the losses"),
        ParamSpec("regulariser", Choice(REGULARISERS), "how its margin counts", optional=True),
        ParamSpec("prototype", Choice(PROTOTYPES, none=True), "how prototypes are made"),
        ParamSpec("centroids", Flag(none=True), "whether centroids are part of them"),
        ParamSpec("momentum", Real(0, 1), "how slowly centroids move"),
        ParamSpec("centroid_rule", Choice(CENTROID_RULES), "how centroids move", optional=True),
        ParamSpec("n_free", Whole(0, none=True), "free vectors"),
        ParamSpec("n_private", Whole(0, none=True), "labels with a free vector of their own"),
        ParamSpec("warm_start", Flag(), "whether prototypes begin as averages"),
        ParamSpec("classifier", Flag(), "whether a vector per label was trained"),
        ParamSpec("fusion", Real(0, 1, none=True), "share of these vectors", optional=True),
        ParamSpec("tree", Flag(), "whether a label tree was trained"),
        ParamSpec("validation", Real(0, 0.5), "share of rows held out"),
        ParamSpec("patience", Whole(1), "epochs without a better one"),
        ParamSpec("accumulate", Whole(1), "batches of a step"),
        ParamSpec("mixed_precision", Flag(), "bfloat16 on a GPU"),
        ParamSpec("index", Choice(INDEXES), "how labels are searched"),
        ParamSpec("precision", Choice(PRECISIONS), "how label vectors are stored"),
        ParamSpec("encoder_precision", Choice(ENCODER_PRECISIONS), "how the encoder computes", optional=True),
        ParamSpec("random_state", SEED, "the seed"),
        ParamSpec("fitted", _FITTED, "what was learned"),
    ),
    sizes=(
        SizeSpec("n_labels", "labels", low=1),
        SizeSpec("width", "width of the encoder's vectors", low=1, high=WIDEST),
        SizeSpec("n_free", "free vectors"),
        SizeSpec("n_trained", "labels that were trained"),
    ),
    arrays=(
        LABEL_COUNTS,
        ArraySpec("labels.vectors", "float32 float16 int8", ("n_labels", "width"), "label vectors", finite="finite"),
        ArraySpec("labels.scales", "float32", ("n_labels",), "scale of each, of int8", finite="finite", optional=True),
        *string_arrays("label_texts", "n_labels", "the texts of the labels"),
        ArraySpec(
            "network.centroids.values", "float32", ("*", "width"), "centroids of labels", finite="finite", optional=True
        ),
        ArraySpec(
            "network.free.vectors", "float32", ("n_free", "width"), "free vectors", finite="finite", optional=True
        ),
        ArraySpec(
            "network.free.cluster", "int64", ("*",), "free vector of every label", 0, "n_free - 1", optional=True
        ),
        ArraySpec("network.joiner.layer.*", "float32", None, "weights of the prototype network", finite="finite"),
    ),
    inner=(
        InnerPart("encoder.", TEXT_ENCODER_SCHEMA, params="fitted.network.encoder"),
        InnerPart("tree.words.", TFIDF_SCHEMA, params="fitted.tree.words"),
        InnerPart("tree.labels.", LABEL_TREE_SCHEMA, params="fitted.tree.labels"),
    ),
    crosschecks=(
        CrossCheck(
            "label vectors are as wide as those of the encoder; those of type int8 have scales", _labels_problem
        ),
        CrossCheck(
            "centroids and free vectors are of equally many labels; the prototype network fits", _prototypes_problem
        ),
        CrossCheck("the tree reads the words, and the vectors where they have a weight", _tree_problem),
    ),
)

PRIME_FEATURES_SCHEMA = PartSchema(
    kind="prime-features.v1",
    about="TF-IDF words and a trained encoder side by side, of `PrimeFeatures`",
    params=(
        ParamSpec("weight", Real(0, LARGEST), "how much the encoder's columns count"),
        ParamSpec("n_features", Whole(1, 2**31 - 1), "width of the rows"),
        ParamSpec("tfidf", Sequence((Choice((TFIDF_SCHEMA.kind,)), PartParams(TFIDF_SCHEMA.kind))), "the words"),
        ParamSpec(
            "encoder",
            Sequence((Choice((TEXT_ENCODER_SCHEMA.kind,)), PartParams(TEXT_ENCODER_SCHEMA.kind))),
            "the encoder",
        ),
    ),
    inner=(
        InnerPart("tfidf.", TFIDF_SCHEMA, params="tfidf.1"),
        InnerPart("encoder.", TEXT_ENCODER_SCHEMA, params="encoder.1"),
    ),
    crosschecks=(CrossCheck("rows are as wide as words and vectors together", _features_problem),),
)
