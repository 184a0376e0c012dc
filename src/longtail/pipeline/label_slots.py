"""The leaf slots of a label in a tagger's label tree, as facts: its neighbours, and what tells the slots apart."""

from __future__ import annotations

import difflib
from itertools import combinations
from typing import NamedTuple

import numpy as np

from longtail.data import Dataset
from longtail.errors import ParameterError
from longtail.facts import LabelDataFacts, LabelFacts, SlotFacts, SlotTextFacts, SplitsFacts, WordFacts
from longtail.pipeline.label_numbering import with_ids_of
from longtail.pipeline.tagger import Tagger
from longtail.pipeline.tree_description import Look, tree_model, tree_tagger
from longtail.tree import (
    LabelTreeClassifier,
    child_weights,
    leaf_of,
    path_children,
    path_scores,
    slot_child,
    slots_of,
    tree_inside,
)
from longtail.validate import check_integer
from longtail.vocabulary import add_names

NEAR_NAMES = 3
SPLITS_ON_A_PAGE = 40
NAMED_ON_A_PAGE = (4, 5)  # labels and words for each leaf slot
CANDIDATES = 1000  # labels whose leaf slots are compared to find the most split ones
FEWEST_ROWS = 5  # of a label to be listed as split: with fewer, its leaf slots differ by chance

Sparse = tuple[np.ndarray, np.ndarray]  # features and their values


class SlotWeights(NamedTuple):
    """The weights of features in the leaf slots of one label."""

    features: np.ndarray  # (n,)
    copies: np.ndarray  # in the classifier of each slot  (n_slots, n)
    paths: np.ndarray  # in the clusters on the path to each slot, added up  (n_slots, n)


def label_facts(
    tagger: Tagger, name: str, *, data: Dataset | None = None, labels: int = 6, words: int = 6, texts: int = 3
) -> LabelFacts:
    """Return the leaf slots of a label in the tree: for each its neighbours, and what is peculiar to it.

    `neighbours` are the most used other labels of the leaf, those that are beside the label nowhere else first. `words`
    are the label's own words that lead here rather than to its other slots: their weight in the label's classifiers
    times what they add on the path here, less what they add elsewhere (for a label with one slot, its heaviest words).
    `heavier` are words that weigh more in the classifier of this slot than in the label's others; unless slots
    learn from rows of their own (`split_positives`), that is what tells the label from its neighbours here. With
    `data`, a row that has the label belongs to the slot whose path scores highest: `rows` counts them, and `texts` are
    those that score most above the label's other slots.

    Parameters
    ----------
    labels, words, texts : how many to name for each leaf slot.

    >>> texts = ["red apple", "green pear", "fast car", "slow train"] * 5
    >>> kinds = [["fruit", "apple"], ["fruit", "pear"], ["vehicle", "car"], ["vehicle", "train"]] * 5
    >>> model = LabelTreeClassifier(max_leaf=3, branching=2, balanced=True)
    >>> facts = label_facts(Tagger(model=model, random_state=0).fit(texts, kinds), "fruit")
    >>> len(facts["slots"]), sorted(other["label"] for other in facts["slots"][0]["neighbours"])
    (1, ['apple', 'pear'])
    """
    whole, tagger = tagger, tree_tagger(tagger)
    model = tree_model(tagger)
    label = label_number(whole, name)
    if label >= len(tagger.labels_):
        raise ParameterError(f"label {name!r} was added by its text, and the tree does not know it.")
    limits = [check_integer(what, n, low=1) for what, n in (("labels", labels), ("words", words), ("texts", texts))]
    slots: list[SlotFacts] = []
    for number in range(len(model.trees_)):
        look = Look.at(tagger, model, number)
        slots += [{"tree": number, **slot} for slot in _slots(look, label, {}, *limits[:2])]
    facts: LabelFacts = {
        "label": tagger.labels_[label],
        "rows": int(model.label_counts_[label]),
        "trees": len(model.trees_),
        "overlap": model.overlap,
        "split_positives": model.split_positives,
        "slots": slots,
        "data": None,
    }
    if data is not None:
        facts["data"] = _add_rows(tagger, model, facts, data, limits[2])
    return add_names(facts, whole.vocabulary_)


def label_number(tagger: Tagger, name: str) -> int:
    """Return the number of a label; an unknown name is refused with the known ones near it."""
    for number, known in enumerate(tagger.labels_):
        if known == name:
            return number
    if tagger.vocabulary_ is not None:
        return tagger.label_numbers([name])[0]
    lower = name.lower()
    same = [known for known in tagger.labels_ if known.lower() == lower]
    inside = sorted((known for known in tagger.labels_ if lower and lower in known.lower()), key=len)
    near = [*same, *inside[:NEAR_NAMES]]
    if len(near) < NEAR_NAMES:
        near += difflib.get_close_matches(name, tagger.labels_, n=NEAR_NAMES, cutoff=0.6)
    near = list(dict.fromkeys(near))[:NEAR_NAMES]
    told = f" Near it: {', '.join(repr(known) for known in near)}." if near else ""
    raise ParameterError(name="label", allowed="one the model knows", got=name, hint=told)


def page_splits(tagger: Tagger, n: int = SPLITS_ON_A_PAGE) -> SplitsFacts | None:
    """Return the most split labels of a tagger's label tree, for a page; None where every label has one leaf slot.

    Labels with the most slots come first, and among them those whose slots are most unlike: `unlike` is 1 less the
    mean cosine, over pairs of slots, of what the label's words add on the path there. It is 0 if they lead to both
    alike and 2 if every word that leads to one leads away from the other.
    """
    inside = tree_inside(tagger.model_, tagger.features_)
    if inside is None or inside.tree.trees_[0].n_slots == inside.tree.n_labels_:
        return None
    tagger, model = tree_tagger(tagger), inside.tree
    look, counts = Look.at(tagger, model, 0), model.label_counts_
    copies = np.bincount(look.tree.leaf_labels, minlength=model.n_labels_)
    split = np.flatnonzero((copies > 1) & (counts >= FEWEST_ROWS))
    candidates = split[np.lexsort((split, -counts[split], -copies[split]))][:CANDIDATES]
    paths: dict[int, Sparse] = {}
    unlike = {label: _unlike(_slot_weights(look, label, paths)) for label in candidates.tolist()}
    order = sorted(unlike, key=lambda label: (-copies[label], -unlike[label], label))[:n]
    used = copies[counts > 0]
    facts: SplitsFacts = {
        "labels": int(used.size),
        "several": int((used > 1).sum()),
        "by_slots": [
            {"slots": n_slots, "labels": int((used == n_slots).sum())} for n_slots in range(1, int(used.max()) + 1)
        ],
        "trees": len(model.trees_),
        "listed": [
            {
                "label": tagger.labels_[label],
                "rows": int(counts[label]),
                "unlike": round(unlike[label], 4),
                "slots": _slots(look, label, paths, *NAMED_ON_A_PAGE),
            }
            for label in order
        ],
    }
    return add_names(facts, tagger.vocabulary_)


def _slots(look: Look, label: int, paths: dict[int, Sparse], n_labels: int, n_words: int) -> list[SlotFacts]:
    """Return the leaf slots of a label in one tree, with neighbours and words."""
    tree = look.tree
    leaves = [leaf_of(tree, slot) for slot in slots_of(tree, label).tolist()]
    held = [tree.leaf_labels[tree.leaf_indptr[leaf] : tree.leaf_indptr[leaf + 1]] for leaf in leaves]
    weights = _slot_weights(look, label, paths)
    out: list[SlotFacts] = []
    for at, leaf in enumerate(leaves):
        others = np.concatenate([np.empty(0, np.int32), *held[:at], *held[at + 1 :]])
        beside = held[at][(held[at] != label) & (look.counts[held[at]] > 0)]
        order = np.lexsort((beside, -look.counts[beside], np.isin(beside, others)))[:n_labels]
        facts: SlotFacts = {
            "leaf": leaf,
            "path": tree.path(leaf),
            "labels": int(held[at].size),
            "neighbours": [{"label": look.labels[i], "uses": int(look.counts[i])} for i in beside[order].tolist()],
            "words": [],
            "heavier": [],
        }
        if look.words is not None:
            facts["words"] = _pulling(weights, at, look.words, n_words)
            facts["heavier"] = _heavier(weights, at, look.words, n_words) if len(leaves) > 1 else []
        out.append(facts)
    return out


def _slot_weights(look: Look, label: int, paths: dict[int, Sparse]) -> SlotWeights:
    """Return the weights of a label's leaf slots, side by side on the features that any of them has.

    `paths` keeps the weights on the path to each leaf from one label to the next.
    """
    tree, chunks = look.tree, look.chunks
    slots = slots_of(tree, label).tolist()
    own = [child_weights(chunks, slot_child(chunks, slot)) for slot in slots]
    features = np.unique(np.concatenate([columns for columns, _ in own]))
    copies, on_path = np.zeros((2, len(slots), features.size), dtype=np.float64)
    for at, slot in enumerate(slots):
        copies[at, np.searchsorted(features, own[at][0])] = own[at][1]
        leaf = leaf_of(tree, slot)
        if leaf not in paths:
            paths[leaf] = _path_weights(look, leaf)
        _, here, there = np.intersect1d(features, paths[leaf][0], assume_unique=True, return_indices=True)
        on_path[at, here] = paths[leaf][1][there]
    return SlotWeights(features, copies, on_path)


def _path_weights(look: Look, leaf: int) -> Sparse:
    """Return the weights of the clusters on the path to a leaf, added up."""
    parts = [child_weights(look.chunks, child) for child in path_children(look.tree, leaf)]
    features, at = np.unique(np.concatenate([columns for columns, _ in parts]), return_inverse=True)
    return features, np.bincount(at, weights=np.concatenate([values for _, values in parts]), minlength=features.size)


def _above(values: np.ndarray, at: int) -> tuple[np.ndarray, np.ndarray]:
    """Return by how much one leaf slot exceeds the mean of the others, and that mean (0 if there is no other)."""
    others = np.delete(values, at, axis=0).mean(axis=0) if len(values) > 1 else np.zeros(values.shape[1])
    return values[at] - others, others


def _pulling(weights: SlotWeights, at: int, words: np.ndarray, n: int) -> list[WordFacts]:
    """Return the label's words that lead to one leaf slot rather than to the others, the strongest first.

    pull = max(mean weight in the label's classifiers, 0) · (weight on the path here - mean weight on the other paths)
    """
    label = np.maximum(weights.copies.mean(axis=0), 0.0)
    more = _above(weights.paths, at)[0] if len(weights.copies) > 1 else np.ones(label.size)
    pull = label * more
    best = np.lexsort((weights.features, -pull))[:n]
    return [{"word": words[weights.features[i]], "pull": float(pull[i])} for i in best if pull[i] > 0]


def _heavier(weights: SlotWeights, at: int, words: np.ndarray, n: int) -> list[WordFacts]:
    """Return the words that weigh more in the classifier of one leaf slot than in the mean of the label's others."""
    more, others = _above(weights.copies, at)
    best = np.lexsort((weights.features, -more))[:n]
    return [
        {"word": words[weights.features[i]], "weight": float(weights.copies[at, i]), "elsewhere": float(others[i])}
        for i in best
        if more[i] > 0
    ]


def _unlike(weights: SlotWeights) -> float:
    """Return 1 - mean cosine, over pairs of leaf slots, of what the label's words add on the path there."""
    paths = np.maximum(weights.copies.mean(axis=0), 0.0) * weights.paths
    sizes = np.linalg.norm(paths, axis=1)
    pairs = list(combinations(range(len(paths)), 2))
    near = [float(paths[a] @ paths[b] / (sizes[a] * sizes[b])) if sizes[a] * sizes[b] > 0 else 0.0 for a, b in pairs]
    return 1.0 - sum(near) / len(near)


def _add_rows(tagger: Tagger, model: LabelTreeClassifier, facts: LabelFacts, data: Dataset, n: int) -> LabelDataFacts:
    """Give the rows of the data that have the label to its leaf slots; return the size of the data."""
    data = with_ids_of(tagger, data)
    names = data.names()
    of = np.flatnonzero(data.Y.indices == names.index(facts["label"])) if facts["label"] in names else np.empty(0, int)
    rows = np.searchsorted(data.Y.indptr, of, side="right") - 1
    mine = data.take(rows)
    X = tagger.dataset_rows(mine) if rows.size else None
    for tree in range(len(model.trees_)):
        slots = [slot for slot in facts["slots"] if slot["tree"] == tree]
        scores = np.zeros((len(slots), rows.size), dtype=np.float32)
        for at, slot in enumerate(slots):
            if X is not None:
                scores[at] = path_scores(model, X, slot["leaf"], tree)
        best = np.argmax(scores, axis=0) if rows.size else np.empty(0, int)
        for at, slot in enumerate(slots):
            here = np.flatnonzero(best == at)
            others = np.delete(scores, at, axis=0)
            lead = (scores[at] - others.max(axis=0))[here] if others.size else scores[at][here]
            order = here[np.lexsort((here, -scores[at][here], -lead))][:n]
            slot["rows"] = int(here.size)
            slot["texts"] = [_slot_text(mine, rows, int(i), scores[:, int(i)], at) for i in order]
    return {"name": data.name, "rows": data.n_rows, "rows_with_label": int(rows.size)}


def _slot_text(data: Dataset, rows: np.ndarray, i: int, scores: np.ndarray, at: int) -> SlotTextFacts:
    """Return one row of a label: its text, its score at its leaf slot and the best one at another."""
    others = np.delete(scores, at)
    return {
        "row": int(rows[i]),
        "id": None if data.ids is None else data.ids[i],
        "text": None if data.texts is None else data.texts[i],
        "score": float(scores[at]),
        "elsewhere": float(others.max()) if others.size else None,
    }
