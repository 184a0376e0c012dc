"""The schema of a saved label tree: its parameters, its trees and their classifiers."""

from __future__ import annotations

import numpy as np

from longtail.errors import DataError
from longtail.model import LABEL_COUNTS, MAX_K, SEED
from longtail.one_vs_all import LOSSES
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
    PartSchema,
    Real,
    Sizes,
    SizeSpec,
    Whole,
)
from longtail.tree.chunks import starts_of
from longtail.tree.label_tree import LabelTree

NEGATIVES = ("tfn", "man", "tfn+man")
LINKS = {"l1-hinge": 1, "l2-hinge": 2, "l3-hinge": 3, "l4-hinge": 4, "sigmoid": -1, "noop": 0}  # powers; see `link`
MERGES = ("max", "mean")
MOST_TREES, MOST_LEVELS = 1000, 64
MAX_PATH_WEIGHT = 1e6


def _tree_problem(part: Part, sizes: Sizes) -> str | None:
    """Return why the levels and leaves are no tree, or None."""
    try:
        tree_of(part, sizes["n_labels"], sizes["n_levels"])
    except DataError as error:
        return str(error).removesuffix(".")
    return None


def _chunks_problem(part: Part, sizes: Sizes) -> str | None:
    """Return why the chunks are not those of the tree, or None."""
    tree = tree_of(part, sizes["n_labels"], sizes["n_levels"], checked=True)
    starts = np.concatenate([[0], np.cumsum([1, *(tree.n_nodes(t) for t in range(tree.n_levels))])])
    if not np.array_equal(part.arrays["levels"], starts):
        return "its chunks do not fit its tree: the 'levels' have other numbers of nodes"
    widths = [np.diff(np.searchsorted(tree.parents[0], [0, 1]))]
    widths += [np.diff(tree.children(t)) for t in range(tree.n_levels)]
    if not np.array_equal(np.diff(part.arrays["child_indptr"]), np.concatenate(widths)):
        return "its chunks do not fit its tree: 'child_indptr' gives nodes other numbers of children"
    names = ("child_indptr", "line_indptr", "features", "counts", "children")
    problem = chunks_problem(*(part.arrays[name] for name in names))
    given = part.arrays.get("entry_starts")
    if problem is None and given is not None and not np.array_equal(given, starts_of(part.arrays["counts"])):
        return "its 'entry_starts' are not the sums of its 'counts'"
    return None if problem is None else f"its chunks do not fit its tree: {problem}"


def chunks_problem(
    child_indptr: np.ndarray, line_indptr: np.ndarray, features: np.ndarray, counts: np.ndarray, children: np.ndarray
) -> str | None:
    """Return why weights are not those of the children of their chunk, or None; all pointers rise from 0 to their end.

    >>> chunks_problem(np.array([0, 2]), np.array([0, 1]), np.array([7]), np.array([1]), np.array([2]))
    'a weight of chunk 0 is of child 2, and it has 2'
    """
    starts, widths = line_indptr[:-1], np.diff(child_indptr)
    has_lines = line_indptr[1:] > starts
    n_weights = np.zeros(starts.size, dtype=np.int64)
    if has_lines.any():
        n_weights[has_lines] = np.add.reduceat(counts, starts[has_lines], dtype=np.int64)
    if int(n_weights.sum()) != children.size:
        return f"its lines have {int(n_weights.sum())} weights, and there are {children.size}"
    filled = np.flatnonzero(n_weights)
    if filled.size:
        largest = np.maximum.reduceat(children, (np.cumsum(n_weights) - n_weights)[filled])
        beyond = np.flatnonzero(largest >= widths[filled])
        if beyond.size:
            chunk = filled[beyond[0]]
            return f"a weight of chunk {chunk} is of child {largest[beyond[0]]}, and it has {widths[chunk]}"
    falls = np.flatnonzero(features[1:] <= features[:-1]) + 1
    if falls.size > starts.size or not np.isin(falls, starts).all():  # a new chunk may begin with any feature
        return "the features of a chunk must ascend"
    return None


def tree_of(part: Part, n_labels: int, n_levels: int, checked: bool = False) -> LabelTree:
    """Return the tree of a saved one; `checked` says that its arrays were looked at before."""
    parents = tuple(part.array(f"tree.parents.{t}") for t in range(n_levels))
    leaves = part.array("tree.leaf_indptr"), part.array("tree.leaf_labels")
    return (LabelTree.trusted if checked else LabelTree)(parents, *leaves, n_labels)


ONE_TREE = PartSchema(
    kind="one tree",
    about="a label tree and the classifiers of its nodes and leaf slots",
    sizes=(
        SizeSpec("n_levels", "levels of nodes", low=1, high=MOST_LEVELS),
        SizeSpec("n_leaves", "nodes of the last level", low=1),
        SizeSpec("n_slots", "leaf slots", low=1),
        SizeSpec("n_chunks", "inner nodes and leaves, each with the classifiers of its children", low=2),
        SizeSpec("n_children", "children of all chunks: nodes and leaf slots", low=2),
        SizeSpec("n_lines", "lines of all chunks: features that a chunk has weights for", high=2**40),
        SizeSpec("n_weights", "weights of all lines", high=2**40),
    ),
    arrays=(
        ArraySpec(
            "tree.parents.{level}",
            "int32",
            ("*",),
            "the node at the level above each node; its length is the number of nodes",
            low=0,
            order="rising",
            times="n_levels",
        ),
        ArraySpec(
            "tree.leaf_labels", "int32", ("n_slots",), "the label of every leaf slot", low=0, high="n_labels - 1"
        ),
        ArraySpec(
            "tree.leaf_indptr", "int64", ("n_leaves + 1",), "where every leaf begins", order="pointers", high="n_slots"
        ),
        ArraySpec("bias", "float32", ("n_children",), "bias of every child", finite="finite or -inf"),
        ArraySpec("scales", "float32", ("n_children",), "what a child's weights are multiplied with", finite="finite"),
        ArraySpec(
            "child_indptr", "int64", ("n_chunks + 1",), "children of every chunk", order="pointers", high="n_children"
        ),
        ArraySpec(
            "levels",
            "int64",
            ("n_levels + 2",),
            "where the chunks of each level begin",
            order="pointers",
            high="n_chunks",
        ),
        ArraySpec("features", "int32", ("n_lines",), "feature of every line", low=0, high="n_features - 1"),
        ArraySpec("counts", "uint8 uint16", ("n_lines",), "weights of every line"),
        ArraySpec("line_indptr", "int64", ("n_chunks + 1",), "lines of every chunk", order="pointers", high="n_lines"),
        ArraySpec("children", "uint8 uint16", ("n_weights",), "child of every weight, within its chunk"),
        ArraySpec("weights", "int8", ("n_weights",), "the weights, to be multiplied by the child's scale"),
        ArraySpec(
            "entry_starts",
            "int64",
            ("*",),
            "in large trees, the weights of the lines before every 64th line, and the number of all",
            order="pointers",
            high="n_weights",
            optional=True,
        ),
    ),
    crosschecks=(
        CrossCheck(
            "the nodes of a level lie below those of the level above, every inner node has a child, and every label "
            "stands in a leaf, where labels ascend",
            _tree_problem,
        ),
        CrossCheck(
            "every node and leaf is a chunk with its children; features ascend within a chunk, counts add up to the "
            "number of weights, and a weight's child is one of its chunk",
            _chunks_problem,
        ),
    ),
)

LABEL_TREE_SCHEMA = PartSchema(
    kind="label-tree.v1",
    about="a label tree, or several, of `LabelTreeClassifier`",
    params=(
        ParamSpec("branching", Whole(2, none=True), "children of an inner node"),
        ParamSpec("max_leaf", Whole(1), "labels of a leaf"),
        ParamSpec("balanced", Flag(), "halves of equal size"),
        ParamSpec("beam", Whole(1, MAX_K, none=True), "nodes kept at every level"),
        ParamSpec("C", Real(0, above=True, none=True), "weight of errors"),
        ParamSpec("C_", Real(0, above=True), "the default of C for the data", optional=True),
        ParamSpec("loss", Choice(LOSSES), "loss of the classifiers"),
        ParamSpec("positive_weight", Real(0, above=True), "weight of rows with the label"),
        ParamSpec("bias", Real(0), "value of the constant feature"),
        ParamSpec("tol", Real(0, above=True), "when a classifier is done"),
        ParamSpec("max_iter", Whole(1), "passes over the rows"),
        ParamSpec("negatives", Choice(NEGATIVES), "rows a node learned from"),
        ParamSpec("threshold", Real(0), "smaller weights were dropped"),
        ParamSpec("link", Choice(tuple(LINKS)), "how a margin becomes a score"),
        ParamSpec("path_weight", Real(0, MAX_PATH_WEIGHT, none=True), "weight of the leaf's score"),
        ParamSpec("cost_sensitive", Flag(), "whether the positives of a row share its weight"),
        ParamSpec("n_trees", Whole(1), "trees to train"),
        ParamSpec("overlap", OneOf((Whole(1), Choice(("auto",)))), "leaves a label may stand in"),
        ParamSpec("rounds", Whole(0, none=True), "times the slots were chosen"),
        ParamSpec("merge", Choice(MERGES), "score of a label with several slots"),
        ParamSpec("split_positives", Flag(), "whether a row's label counts in one slot"),
        ParamSpec("keep_leaf", Flag(), "whether labels keep their first leaf", optional=True),
        ParamSpec("slot_rows", Whole(1), "rows that a further slot needs", optional=True),
        ParamSpec("balance", Real(1, none=True), "slots that a leaf takes at most", optional=True),
        ParamSpec("normalize", Flag(), "whether rows are scaled to length 1"),
        ParamSpec("random_state", SEED, "the seed"),
        ParamSpec("n_rows", Whole(), "training rows"),
        ParamSpec("n_features", Whole(1, 2**31 - 1), "width of the rows", size="n_features"),
        ParamSpec("levels", ListOf(Whole(1, MOST_LEVELS), 1, MOST_TREES), "levels of every tree"),
    ),
    sizes=(SizeSpec("n_labels", "labels", low=1), SizeSpec("n_features", "width of the rows", low=1)),
    arrays=(LABEL_COUNTS,),
    inner=(InnerPart("{tree}.", ONE_TREE, times="levels", size="n_levels", inherits=("n_labels", "n_features")),),
)
