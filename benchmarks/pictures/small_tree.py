"""A small label tree of the bundled packages, what its beam finds for two texts, and a label that stands in two leaves.

The tree is like XR-Linear's, balanced and small enough to be drawn: 8 clusters of 8 leaves, and a beam of 2.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, cast

import numpy as np
import scipy.sparse as sp

from longtail import LabelTreeClassifier, Tagger
from longtail.data import Dataset, load_bundled
from longtail.metrics import precision_at_k
from longtail.pipeline import label_facts
from longtail.tree import child_weights, leaf_of, matched_leaves, path_children, path_scores, slots_of

SETTINGS: dict[str, Any] = {"branching": 8, "max_leaf": 12, "balanced": True, "beam": 2, "random_state": 0}
LABEL = "security::cryptography"
TEXTS = ("libcrypt-ecb-perl",)  # packages among the test rows that have the label
BEST, FEW = 5, 40  # labels told of a text, and among which the label is looked for
Facts = dict[str, Any]


def measure() -> Facts:
    """Train the tree without and with overlap, and look into both."""
    train, test = load_bundled("debtags", "train"), load_bundled("debtags", "test")
    taggers = {
        name: Tagger(model=LabelTreeClassifier(overlap=overlap, **SETTINGS), calibrate=0).fit_dataset(train)
        for name, overlap in (("plain", 1), ("overlap", 2))
    }
    return {
        "data": "debtags",
        "settings": SETTINGS,
        "rows": train.n_rows,
        "labels": train.n_labels,
        "clusters": clusters(taggers["plain"], train),
        "label": {name: label_facts(tagger, LABEL, data=train, labels=8, words=8) for name, tagger in taggers.items()},
        "learns_from": learns_from(taggers["plain"], train),
        "texts": {
            name: {package: search(tagger, train, test, package) for package in TEXTS}
            for name, tagger in taggers.items()
        },
        "reached": {name: reached(tagger, train, test) for name, tagger in taggers.items()},
        "p@5": {f"{name}, beam {beam}": p5(tagger, test, beam) for name, tagger in taggers.items() for beam in (2, 10)},
    }


def tree_of(tagger: Tagger) -> LabelTreeClassifier:
    """Return the label tree of a tagger."""
    return cast(LabelTreeClassifier, tagger.model_)


def rows_of(tagger: Tagger, texts: Sequence[str]) -> sp.csr_array:
    """Return texts as the rows that the label tree of a tagger reads."""
    return sp.csr_array(tagger.model_.rows_of(texts, tagger.features_))


def clusters(tagger: Tagger, train: Dataset) -> list[Facts]:
    """Return the clusters of the upper level: their leaves, and their labels with the most used ones first."""
    tree, uses = tree_of(tagger).trees_[0], np.bincount(train.Y.indices, minlength=train.n_labels)
    node = np.repeat(tree.ancestors(0), np.diff(tree.leaf_indptr))
    names, found = train.names(), []
    for cluster in range(tree.n_nodes(0)):
        labels = tree.leaf_labels[node == cluster]
        typical = labels[np.argsort(-uses[labels], kind="stable")][:4]
        leaves = int((tree.ancestors(0) == cluster).sum())
        found.append({"leaves": leaves, "labels": labels.size, "typical": [names[label] for label in typical]})
    return found


def learns_from(tagger: Tagger, train: Dataset) -> Facts:
    """Return how many rows the classifier of one label learns from, by how they are chosen."""
    model, X = tree_of(tagger), rows_of(tagger, train.texts or ())
    tree = model.trees_[0]
    label = train.names().index(LABEL)
    leaf = leaf_of(tree, int(slots_of(tree, label)[0]))
    beside = tree.leaf_labels[tree.leaf_indptr[leaf] : tree.leaf_indptr[leaf + 1]]
    positive = np.diff(sp.csr_array(train.Y[:, [label]]).indptr) > 0
    near = np.diff(sp.csr_array(train.Y[:, beside]).indptr) > 0
    sent = (matched_leaves(model, X).ids == leaf).any(axis=1)
    return {
        "label": LABEL,
        "all": train.n_rows,
        "with the label": int(positive.sum()),
        "with a label of its leaf (tfn)": int(near.sum()),
        "sent to its leaf by the beam, and those with the label (man)": int((sent | positive).sum()),
        "both (tfn+man)": int((sent | near | positive).sum()),
        "with the label, not sent to its leaf": int((positive & ~sent).sum()),
    }


def search(tagger: Tagger, train: Dataset, test: Dataset, package: str) -> Facts:
    """Return what the beam sees on its way down: the score of every node it looks at, and the labels it ends with."""
    model = tree_of(tagger)
    tree, chunks = model.trees_[0], model.chunks_[0]
    row = list(test.ids or ()).index(package)
    text, names = (test.texts or ())[row], train.names()
    X = rows_of(tagger, [text])
    kept = [int(leaf) for leaf in matched_leaves(model, X).ids[0] if leaf >= 0]
    plan = model._beam_plan(tree, 1)
    upper = []
    for node in range(tree.n_nodes(0)):
        features, weights = child_weights(chunks, node)
        margin = float((X[:, features] @ weights)[0] / math.sqrt((X.data**2).sum()) + chunks.bias[node])
        upper.append(-(max(0.0, 1 - margin) ** int(plan.powers[0])))
    seen = set(np.argsort(-np.array(upper), kind="stable")[: SETTINGS["beam"]].tolist())
    leaves = [leaf for leaf in range(tree.n_leaves) if int(tree.ancestors(0)[leaf]) in seen]
    top = model.predict_topk(X, k=FEW)
    true = set(test.Y[[row]].indices.tolist())
    mine = [leaf_of(tree, int(slot)) for slot in slots_of(tree, names.index(LABEL))]
    return {
        "package": package,
        "text": text[:200],
        "upper": [round(math.exp(score), 4) for score in upper],
        "upper_kept": sorted(seen),
        "lower": {str(leaf): round(math.exp(float(path_scores(model, X, leaf)[0])), 4) for leaf in leaves},
        "lower_kept": kept,
        "nodes_below": {str(leaf): path_children(tree, leaf)[0] for leaf in {*kept, *mine}},
        "labels": [
            {"label": names[label], "score": round(math.exp(float(score)), 4), "true": int(label) in true}
            for label, score in zip(top.ids[0, :BEST], top.scores[0, :BEST], strict=True)
            if label >= 0
        ],
        "place_of_the_label": next((i + 1 for i, label in enumerate(top.ids[0]) if names[label] == LABEL), None),
        "true": [names[label] for label in sorted(true)],
        "leaves_of_the_label": mine,
        "looked_at": tree.n_nodes(0) + len(leaves) + sum(int(np.diff(tree.leaf_indptr)[leaf]) for leaf in kept),
    }


def reached(tagger: Tagger, train: Dataset, test: Dataset) -> Facts:
    """Return how many training rows with the label come to a leaf of it, and the share of test labels reached."""
    model = tree_of(tagger)
    slots = sp.csr_array(model.trees_[0].slots())
    label = train.names().index(LABEL)
    rows = np.flatnonzero(np.diff(sp.csr_array(train.Y[:, [label]]).indptr))
    own = found_labels(model, rows_of(tagger, [(train.texts or ())[row] for row in rows]), slots)[:, [label]]
    found = found_labels(model, rows_of(tagger, test.texts or ()), slots)
    share = float((test.Y.multiply(found) > 0).sum()) / test.Y.nnz
    return {"rows": int(rows.size), "reached": int(own.nnz), "of_test_labels": round(100 * share, 1)}


def found_labels(model: LabelTreeClassifier, X: sp.csr_array, slots: sp.csr_array) -> sp.csr_array:
    """Return which labels stand in the leaves that the beam keeps for each row."""
    kept = matched_leaves(model, X).ids
    row, column = np.nonzero(kept >= 0)
    leaves = sp.csr_array((np.ones(row.size), (row, kept[row, column])), shape=(len(kept), slots.shape[1]))
    return sp.csr_array((leaves @ slots.T) > 0)


def p5(tagger: Tagger, test: Dataset, beam: int) -> float:
    """Return P@5 on the test rows with a beam of some width, in percent."""
    model = tree_of(tagger)
    kept = model.beam
    try:
        model.beam = beam
        found = model.predict_topk(rows_of(tagger, test.texts or ()), k=5)
    finally:
        model.beam = kept
    return round(100 * float(precision_at_k(test.Y, found, k=5)), 2)
