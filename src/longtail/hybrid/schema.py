"""The schema of a saved hybrid."""

from __future__ import annotations

from longtail.encoder import ENCODER_PRECISIONS, LONG_TEXTS, UNIVERSAL_ENCODER
from longtail.hybrid.boosted_trees import BoostedTrees
from longtail.hybrid.combine import BANDS, EXPERTS, FEATURES, FEATURES_BEFORE
from longtail.hybrid.shown_rows import SHOWN_ROW_ARRAYS, shown_rows_problem
from longtail.model import LABEL_COUNTS, SEED
from longtail.name_matches import NAME_MATCHES_SCHEMA
from longtail.prime import PRIME_SCHEMA
from longtail.storage import (
    ArraySpec,
    Choice,
    CrossCheck,
    Facts,
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
    Sizes,
    SizeSpec,
    Text,
    Whole,
    string_arrays,
)
from longtail.text import BEGINNING_SCHEMA, BEGINNING_WORDS, LANGUAGES, TFIDF_SCHEMA, WHOLE
from longtail.tree import LABEL_TREE_SCHEMA

PRIME, FROZEN, WORDS, BEGINNINGS = "prime.", "frozen.", "words.", "beginnings."
TREE, NAMES, NEIGHBOURS = "tree.", "names.", "neighbours."
BOOSTED = "combination.trees."
WIDEST = 1 << 20

FROZEN_ENCODER_SCHEMA = PartSchema(
    kind="frozen-encoder.v1",
    about="the name of an encoder that stays as it is, and vectors of labels, in a `Hybrid`; the encoder is not saved",
    params=(
        ParamSpec("encoder", Choice((UNIVERSAL_ENCODER,)), "name of the encoder, which must be installed"),
        ParamSpec("version", Text(64), "version of its package at training"),
        ParamSpec("text_scale", Real(0, 1), "length of the vectors of labels that are known by their texts alone"),
    ),
    sizes=(
        SizeSpec("n_labels", "labels", low=1),
        SizeSpec("width", "width of the encoder's vectors", low=1, high=WIDEST),
    ),
    arrays=(
        ArraySpec("labels.vectors", "float32", ("n_labels", "width"), "vectors of labels", finite="finite"),
        ArraySpec(
            "compared.vectors",
            "float32",
            ("*", "width"),
            "vectors of some texts, by which another encoder is noticed",
            finite="finite",
        ),
    ),
)


def _weights_problem(part: Part, sizes: Sizes) -> str | None:
    """Return why the weights cannot be of this or an earlier version, or None."""
    if sizes["n_features"] in (FEATURES_BEFORE, len(FEATURES)):
        return None
    return f"its weights are for {sizes['n_features']} features, not {FEATURES_BEFORE} or {len(FEATURES)}"


def _trees_problem(part: Part, sizes: Sizes) -> str | None:
    """Return why the boosted trees are none, or None."""
    trees = part.under(BOOSTED)
    if trees and len(trees) < len(_BOOSTED_ARRAYS):
        return f"its arrays of boosted trees must be {', '.join(sorted(array.name for array in _BOOSTED_ARRAYS))}"
    return BoostedTrees(**trees).problem() if trees else None


def _experts_problem(part: Part, sizes: Sizes) -> str | None:
    """Return why the experts do not fit each other, or None."""
    n_labels, fitted = sizes["n_labels"], part.params["fitted"]
    experts = part.params["experts"]
    there = {"tree": fitted["tree"], "names": fitted["names"]}
    there |= {name: part.arrays.get(f"{name}.vectors") for name in ("classifier", "neighbours")}
    for name, expert in there.items():
        if (name in experts) != (expert is not None):
            return (
                f"its experts are {', '.join(experts)}, and there is {'no' if expert is None else 'a'} part for {name}"
            )
    if len(set(experts)) < len(experts):
        return f"its experts are {', '.join(experts)}, one of them twice"
    readers = [name for name in ("words", "beginnings") if fitted.get(name) is not None]
    if len(readers) != (fitted["tree"] is not None):
        return "there must be both words and a tree, or none"
    if fitted["tree"] is not None:
        n_words = sum(sizes.get(f"{name}n_terms", 0) for name in _OF_WORDS)
        if sizes["tree.n_features"] != n_words:
            return f"its tree reads {sizes['tree.n_features']} words, and there are {n_words}"
        if sizes["tree.n_labels"] > n_labels:
            return f"its tree has {sizes['tree.n_labels']} labels, more than the {n_labels} of the model"
    if fitted["prime"] is not None and fitted.get("frozen") is not None:
        return "there must be one encoder at most"
    encoder = PRIME if fitted["prime"] is not None else FROZEN if fitted.get("frozen") is not None else ""
    if encoder and sizes[f"{encoder}n_labels"] != n_labels:
        return f"its encoder has {sizes[f'{encoder}n_labels']} labels, and the model {n_labels}"
    if fitted["names"] is not None and sizes["names.n_labels"] != n_labels:
        return f"its names are of {sizes['names.n_labels']} labels, and the model has {n_labels}"
    has_vectors = "classifier.vectors" in part.arrays or "neighbours.vectors" in part.arrays
    if has_vectors and (not encoder or sizes["width"] != sizes[f"{encoder}width"]):
        return "its vectors are not those of its encoder"
    if "classifier.vectors" in part.arrays and len(part.arrays["classifier.vectors"]) > n_labels:
        return f"it has classifier vectors of more than the {n_labels} labels of the model"
    given = sorted(name for name in part.arrays if name.startswith(NEIGHBOURS))
    if given and given != sorted(_NEIGHBOUR_NAMES):
        return f"its arrays of neighbours must be {', '.join(sorted(_NEIGHBOUR_NAMES))}"
    return shown_rows_problem(part)


_NEIGHBOUR_ARRAYS = (
    ArraySpec("neighbours.vectors", "int8", ("n_rows", "width"), "texts, cell after cell", optional=True),
    ArraySpec("neighbours.scales", "float32", ("n_rows",), "scale of each", finite="finite", optional=True),
    ArraySpec(
        "neighbours.centres", "float32", ("n_cells", "width"), "centres of cells", finite="finite", optional=True
    ),
    ArraySpec(
        "neighbours.starts",
        "int64",
        ("n_cells + 1",),
        "where the rows of each cell begin",
        order="pointers",
        high="n_rows",
        optional=True,
    ),
    ArraySpec("neighbours.rows", "int32", ("n_rows",), "row of the training data", low=0, optional=True),
    ArraySpec("neighbours.indices", "int32", ("n_pairs",), "labels", low=0, high="n_labels - 1", optional=True),
    ArraySpec(
        "neighbours.indptr",
        "int64",
        ("n_rows + 1",),
        "where the labels of each row begin",
        order="pointers",
        high="n_pairs",
        optional=True,
    ),
)
_BOOSTED_ARRAYS = (
    ArraySpec(
        f"{BOOSTED}starts",
        "int32",
        ("n_trees + 1",),
        "where the nodes of each boosted tree begin; the first is one leaf, what all start from",
        order="strict pointers",
        high="n_nodes",
        optional=True,
    ),
    ArraySpec(
        f"{BOOSTED}feature",
        "int32",
        ("n_nodes",),
        "what a node asks for: 0 the log-odds by the weights, 1 the first feature; -1 at a leaf",
        low=-1,
        high="n_features",
        optional=True,
    ),
    ArraySpec(
        f"{BOOSTED}threshold",
        "float32",
        ("n_nodes",),
        "what is at most as large goes to the next node",
        finite="finite",
        optional=True,
    ),
    ArraySpec(
        f"{BOOSTED}right",
        "int32",
        ("n_nodes",),
        "the node that others go to, 0 at a leaf",
        low=0,
        high="n_nodes - 1",
        optional=True,
    ),
    ArraySpec(
        f"{BOOSTED}value", "float32", ("n_nodes",), "what a leaf adds to the log-odds", finite="finite", optional=True
    ),
)
_NEIGHBOUR_NAMES = tuple(array.name for array in _NEIGHBOUR_ARRAYS)

_OF_WORDS = (WORDS, f"{BEGINNINGS}{WHOLE}", f"{BEGINNINGS}{BEGINNING_WORDS}")
_FITTED = Record(
    {
        "n_rows": Whole(),
        "weighed": Facts(),
        "tail": Real(0, 10),
        "unused": Real(-100, 0),
        "n_trained": Whole(),
        "prime": PartParams(PRIME_SCHEMA.kind, none=True),
        "frozen": PartParams(FROZEN_ENCODER_SCHEMA.kind, none=True),
        "words": PartParams(TFIDF_SCHEMA.kind, none=True),
        "beginnings": PartParams(BEGINNING_SCHEMA.kind, none=True),
        "tree": PartParams(LABEL_TREE_SCHEMA.kind, none=True),
        "names": PartParams(NAME_MATCHES_SCHEMA.kind, none=True),
    },
    frozenset({"frozen", "beginnings"}),
)

HYBRID_SCHEMA = PartSchema(
    kind="hybrid.v1",
    about="an encoder, a label tree, similar training texts and names of labels with learned weights, of `Hybrid`",
    params=(
        ParamSpec("encoder", OneOf((Text(4096), Facts()), none=True), "where the encoder came from, or its sizes"),
        ParamSpec("experts", ListOf(Choice(EXPERTS), 1, len(EXPERTS)), "which experts there are"),
        ParamSpec("epochs", Whole(0, none=True), "passes over the texts"),
        ParamSpec("batch_size", Whole(2, none=True), "texts in a batch"),
        ParamSpec("lr", Real(0, above=True, none=True), "largest learning rate"),
        ParamSpec("max_length", Whole(3), "tokens of a text that are read"),
        ParamSpec("long_texts", Choice(LONG_TEXTS), "what is read of longer texts"),
        ParamSpec("overlap", OneOf((Whole(1), Choice(("auto",)))), "leaves a label may stand in"),
        ParamSpec(
            "beginning", OneOf((Whole(), Choice(("auto",)))), "words that are the beginning of a text", optional=True
        ),
        ParamSpec("tail", Real(0, 10, none=True), "how much rare labels are favoured"),
        ParamSpec("language", Choice(LANGUAGES, none=True), "language whose endings are taken off"),
        ParamSpec("keep_texts", Flag(), "whether ids and first words of training texts are kept", optional=True),
        ParamSpec("mixed_precision", Flag(), "bfloat16 on a GPU"),
        ParamSpec("encoder_precision", Choice(ENCODER_PRECISIONS), "how the encoder computes"),
        ParamSpec("random_state", SEED, "the seed"),
        ParamSpec("fitted", _FITTED, "what was learned"),
    ),
    sizes=(
        SizeSpec("n_labels", "labels", low=1),
        SizeSpec("n_features", "what the experts say of a label", low=FEATURES_BEFORE, high=len(FEATURES)),
        SizeSpec("width", "width of the encoder's vectors"),
        SizeSpec("n_rows", "texts that are remembered"),
        SizeSpec("n_cells", "cells of texts"),
        SizeSpec("n_pairs", "labels of these texts together"),
        SizeSpec("n_trees", "boosted trees"),
        SizeSpec("n_nodes", "nodes of these trees together"),
        SizeSpec("n_shown", "rows whose first words are kept"),
    ),
    arrays=(
        LABEL_COUNTS,
        *string_arrays("label_texts", "n_labels", "the texts of the labels"),
        ArraySpec("combination.weights", "float32", (len(BANDS), "n_features"), "weights by band", finite="finite"),
        ArraySpec("combination.bias", "float32", (len(BANDS),), "what is added in each band", finite="finite"),
        ArraySpec(
            "classifier.vectors",
            "float32",
            ("*", "width"),
            "a vector per trained label",
            finite="finite",
            optional=True,
        ),
        *_BOOSTED_ARRAYS,
        *_NEIGHBOUR_ARRAYS,
        *SHOWN_ROW_ARRAYS,
    ),
    inner=(
        InnerPart(PRIME, PRIME_SCHEMA, params="fitted.prime"),
        InnerPart(FROZEN, FROZEN_ENCODER_SCHEMA, params="fitted.frozen"),
        InnerPart(WORDS, TFIDF_SCHEMA, params="fitted.words"),
        InnerPart(BEGINNINGS, BEGINNING_SCHEMA, params="fitted.beginnings"),
        InnerPart(TREE, LABEL_TREE_SCHEMA, params="fitted.tree"),
        InnerPart(NAMES, NAME_MATCHES_SCHEMA, params="fitted.names"),
    ),
    crosschecks=(
        CrossCheck("tree, encoder and names know the labels of the model", _experts_problem),
        CrossCheck(f"`n_features` is {FEATURES_BEFORE} or {len(FEATURES)}", _weights_problem),
        CrossCheck("boosted trees: the right child of a node comes after the next node, in its tree", _trees_problem),
    ),
)
