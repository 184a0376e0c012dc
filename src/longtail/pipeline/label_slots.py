"""The places of a label in a tagger's label tree, as facts: its neighbours there, and what tells the places apart."""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np

from longtail.data import Dataset
from longtail.errors import ParameterError
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

NEAR_NAMES = 3
SPLITS_ON_A_PAGE = 40
NAMED_ON_A_PAGE = (4, 5)  # labels and words for each place
CANDIDATES = 1000  # labels whose places are compared to find the most split ones
FEWEST_ROWS = 5  # of a label to be listed as split: with fewer, its places differ by chance

Facts = dict[str, Any]
Sparse = tuple[np.ndarray, np.ndarray]  # features and their values


class Weights(NamedTuple):
    """What the places of one label weigh."""

    features: np.ndarray  # (n,)
    copies: np.ndarray  # in the classifier of each place  (n_places, n)
    ways: np.ndarray  # in the clusters on the way to each place, added up  (n_places, n)


def label_facts(
    tagger: Tagger, name: str, *, data: Dataset | None = None, labels: int = 6, words: int = 6, texts: int = 3
) -> Facts:
    """Return where a label stands in the tree: per place its neighbours, and what is peculiar to the place.

    `neighbours` are the most used other labels of the leaf, those that are beside the label nowhere else first. `words`
    are the label's own words that lead here rather than to its other places: their weight in the label's classifiers
    times what they add on the way here, less what they add elsewhere (for a label with one place, its heaviest words).
    `heavier` are words that weigh more in the classifier of this place than in the label's others; unless places
    learn from rows of their own (`split_positives`), that is what tells the label from its neighbours here. With
    `data`, a row that has the label belongs to the place whose path scores highest: `rows` counts them, and `texts` are
    those that score most above the label's other places.

    Parameters
    ----------
    labels, words, texts : how many to name for each place.

    >>> texts = ["red apple", "green pear", "fast car", "slow train"] * 5
    >>> kinds = [["fruit", "apple"], ["fruit", "pear"], ["vehicle", "car"], ["vehicle", "train"]] * 5
    >>> model = LabelTreeClassifier(max_leaf=3, branching=2, balanced=True)
    >>> facts = label_facts(Tagger(model=model, random_state=0).fit(texts, kinds), "fruit")
    >>> len(facts["places"]), sorted(found["label"] for found in facts["places"][0]["neighbours"])
    (1, ['apple', 'pear'])
    """
    whole, tagger = tagger, tree_tagger(tagger)
    if name in whole.labels_[len(tagger.labels_) :]:
        raise ParameterError(f"label {name!r} was added by its text, and the tree does not know it.")
    model, label = tree_model(tagger), label_number(tagger, name)
    limits = [check_integer(what, n, low=1) for what, n in (("labels", labels), ("words", words), ("texts", texts))]
    found: list[Facts] = []
    for number in range(len(model.trees_)):
        look = Look.at(tagger, model, number)
        found += [{"tree": number, **place} for place in _places(look, label, {}, *limits[:2])]
    facts: Facts = {
        "label": name,
        "rows": int(model.label_counts_[label]),
        "trees": len(model.trees_),
        "overlap": model.overlap,
        "split_positives": model.split_positives,
        "places": found,
        "data": None,
    }
    if data is not None:
        facts["data"] = _add_rows(tagger, model, facts, data, limits[2])
    return facts


def label_number(tagger: Tagger, name: str) -> int:
    """Return the number of a label; an unknown name is refused with the known ones near it."""
    for number, known in enumerate(tagger.labels_):
        if known == name:
            return number
    lower = name.lower()
    same = [known for known in tagger.labels_ if known.lower() == lower]
    inside = sorted((known for known in tagger.labels_ if lower and lower in known.lower()), key=len)
    near = [*same, *inside[:NEAR_NAMES]]
    if len(near) < NEAR_NAMES:
        near += difflib.get_close_matches(name, tagger.labels_, n=NEAR_NAMES, cutoff=0.6)
    near = list(dict.fromkeys(near))[:NEAR_NAMES]
    told = f" Near it: {', '.join(repr(known) for known in near)}." if near else ""
    raise ParameterError(name="label", allowed="one the model knows", got=name, hint=told)


def page_splits(tagger: Tagger, n: int = SPLITS_ON_A_PAGE) -> Facts | None:
    """Return the most split labels of a tagger's label tree, for a page; None where every label has one place.

    Labels with the most places come first, and among them those whose places are most unlike: `unlike` is 1 less the
    mean cosine, over pairs of places, of what the label's words add on the way there. It is 0 if they lead to both
    alike and 2 if every word that leads to one leads away from the other.
    """
    inside = tree_inside(tagger.model_, tagger.features_)
    if inside is None or inside.tree.trees_[0].n_slots == inside.tree.n_labels_:
        return None
    tagger, model = tree_tagger(tagger), inside.tree
    look, counts = Look.at(tagger, model, 0), model.label_counts_
    copies = np.bincount(look.tree.leaf_labels, minlength=model.n_labels_)
    several = np.flatnonzero((copies > 1) & (counts >= FEWEST_ROWS))
    candidates = several[np.lexsort((several, -counts[several], -copies[several]))][:CANDIDATES]
    ways: dict[int, Sparse] = {}
    unlike = {label: _unlike(_weights(look, label, ways)) for label in candidates.tolist()}
    order = sorted(unlike, key=lambda label: (-copies[label], -unlike[label], label))[:n]
    used = copies[counts > 0]
    return {
        "labels": int(used.size),
        "several": int((used > 1).sum()),
        "by_places": [
            {"places": places, "labels": int((used == places).sum())} for places in range(1, int(used.max()) + 1)
        ],
        "trees": len(model.trees_),
        "listed": [
            {
                "label": tagger.labels_[label],
                "rows": int(counts[label]),
                "unlike": round(unlike[label], 4),
                "places": _places(look, label, ways, *NAMED_ON_A_PAGE),
            }
            for label in order
        ],
    }


def _places(look: Look, label: int, ways: dict[int, Sparse], n_labels: int, n_words: int) -> list[Facts]:
    """Return the places of a label in one tree, with neighbours and words."""
    tree = look.tree
    leaves = [leaf_of(tree, place) for place in slots_of(tree, label).tolist()]
    held = [tree.leaf_labels[tree.leaf_indptr[leaf] : tree.leaf_indptr[leaf + 1]] for leaf in leaves]
    weights = _weights(look, label, ways)
    out = []
    for at, leaf in enumerate(leaves):
        others = np.concatenate([np.empty(0, np.int32), *held[:at], *held[at + 1 :]])
        beside = held[at][(held[at] != label) & (look.counts[held[at]] > 0)]
        order = np.lexsort((beside, -look.counts[beside], np.isin(beside, others)))[:n_labels]
        found: Facts = {
            "leaf": leaf,
            "path": tree.path(leaf),
            "labels": int(held[at].size),
            "neighbours": [{"label": look.labels[i], "uses": int(look.counts[i])} for i in beside[order].tolist()],
            "words": [],
            "heavier": [],
        }
        if look.words is not None:
            found["words"] = _pulling(weights, at, look.words, n_words)
            found["heavier"] = _heavier(weights, at, look.words, n_words) if len(leaves) > 1 else []
        out.append(found)
    return out


def _weights(look: Look, label: int, ways: dict[int, Sparse]) -> Weights:
    """Return the weights of a label's places, side by side on the features that any of them has.

    `ways` keeps the weights on the way to each leaf from one label to the next.
    """
    tree, chunks = look.tree, look.chunks
    places = slots_of(tree, label).tolist()
    own = [child_weights(chunks, slot_child(chunks, place)) for place in places]
    features = np.unique(np.concatenate([found for found, _ in own]))
    copies, on_way = np.zeros((2, len(places), features.size), dtype=np.float64)
    for at, place in enumerate(places):
        copies[at, np.searchsorted(features, own[at][0])] = own[at][1]
        leaf = leaf_of(tree, place)
        if leaf not in ways:
            ways[leaf] = _way(look, leaf)
        _, here, there = np.intersect1d(features, ways[leaf][0], assume_unique=True, return_indices=True)
        on_way[at, here] = ways[leaf][1][there]
    return Weights(features, copies, on_way)


def _way(look: Look, leaf: int) -> Sparse:
    """Return the weights of the clusters on the way to a leaf, added up."""
    parts = [child_weights(look.chunks, child) for child in path_children(look.tree, leaf)]
    features, at = np.unique(np.concatenate([found for found, _ in parts]), return_inverse=True)
    return features, np.bincount(at, weights=np.concatenate([values for _, values in parts]), minlength=features.size)


def _above(values: np.ndarray, at: int) -> tuple[np.ndarray, np.ndarray]:
    """Return by how much one place exceeds the mean of the others, and that mean (0 where there is no other)."""
    others = np.delete(values, at, axis=0).mean(axis=0) if len(values) > 1 else np.zeros(values.shape[1])
    return values[at] - others, others


def _pulling(found: Weights, at: int, words: np.ndarray, n: int) -> list[Facts]:
    """Return the label's words that lead to one place rather than to the others, those with the most weight first.

    weight of the word in the label's classifiers (mean over places) · what it adds on the way here against elsewhere
    """
    label = np.maximum(found.copies.mean(axis=0), 0.0)
    more, _ = _above(found.ways, at) if len(found.copies) > 1 else (np.ones(label.size), None)
    pull = label * more
    best = np.lexsort((found.features, -pull))[:n]
    return [{"word": words[found.features[i]], "pull": float(pull[i])} for i in best if pull[i] > 0]


def _heavier(found: Weights, at: int, words: np.ndarray, n: int) -> list[Facts]:
    """Return the words that weigh more in the classifier of one place than in the mean of the label's others."""
    more, others = _above(found.copies, at)
    best = np.lexsort((found.features, -more))[:n]
    return [
        {"word": words[found.features[i]], "weight": float(found.copies[at, i]), "elsewhere": float(others[i])}
        for i in best
        if more[i] > 0
    ]


def _unlike(found: Weights) -> float:
    """Return 1 less the mean cosine, over pairs of places, of what the label's words add on the way there."""
    ways = np.maximum(found.copies.mean(axis=0), 0.0) * found.ways
    sizes = np.linalg.norm(ways, axis=1)
    pairs = list(combinations(range(len(ways)), 2))
    near = [float(ways[a] @ ways[b] / (sizes[a] * sizes[b])) if sizes[a] * sizes[b] > 0 else 0.0 for a, b in pairs]
    return 1.0 - sum(near) / len(near)


def _add_rows(tagger: Tagger, model: LabelTreeClassifier, facts: Facts, data: Dataset, n: int) -> Facts:
    """Give the rows of the data that have the label to its places; return what the data is."""
    names = data.names()
    of = np.flatnonzero(data.Y.indices == names.index(facts["label"])) if facts["label"] in names else np.empty(0, int)
    rows = np.searchsorted(data.Y.indptr, of, side="right") - 1
    mine = data.take(rows)
    X = tagger.dataset_rows(mine) if rows.size else None
    for tree in range(len(model.trees_)):
        places = [place for place in facts["places"] if place["tree"] == tree]
        scores = np.zeros((len(places), rows.size), dtype=np.float32)
        for at, place in enumerate(places):
            if X is not None:
                scores[at] = path_scores(model, X, place["leaf"], tree)
        best = np.argmax(scores, axis=0) if rows.size else np.empty(0, int)
        for at, place in enumerate(places):
            here = np.flatnonzero(best == at)
            others = np.delete(scores, at, axis=0)
            lead = (scores[at] - others.max(axis=0))[here] if others.size else scores[at][here]
            order = here[np.lexsort((here, -scores[at][here], -lead))][:n]
            place["rows"] = int(here.size)
            place["texts"] = [_text(mine, rows, int(i), scores[:, int(i)], at) for i in order]
    return {"name": data.name, "rows": data.n_rows, "rows_with_label": int(rows.size)}


def _text(data: Dataset, rows: np.ndarray, i: int, scores: np.ndarray, at: int) -> Facts:
    """Return one row of a label: what it is, its score at its place and the best one at another."""
    others = np.delete(scores, at)
    return {
        "row": int(rows[i]),
        "id": None if data.ids is None else data.ids[i],
        "text": None if data.texts is None else data.texts[i],
        "score": float(scores[at]),
        "elsewhere": float(others.max()) if others.size else None,
    }
