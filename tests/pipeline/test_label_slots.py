"""What the facts about a label's places say is what a slow look at the tree and its classifiers finds."""

import json

import numpy as np
import pytest

import longtail as lt
from longtail.data import Dataset
from longtail.errors import DataError, ModelError, ParameterError
from longtail.pipeline import label_facts, page_splits
from longtail.tree import LabelTree, LabelTreeClassifier
from longtail.tree.beam import link
from longtail.tree.explain import child_weights, leaf_of, matched_leaves, path_scores, slot_child, slots_of

SENSES = {
    "sport": ("karate judo kick dojo", ["dojo", "judo", "karate", "belt"]),
    "clothes": ("leather trousers buckle waist", ["trousers", "shirt", "belt"]),
    "space": ("asteroid orbit comet planet", ["asteroid", "comet", "planet", "belt"]),
    "food": ("apple bread cheese soup", ["apple", "bread", "soup"]),
}


def senses(n_rows=480, seed=0):
    rng = np.random.default_rng(seed)
    texts, labels = [], []
    for _ in range(n_rows):
        words, kinds = SENSES[rng.choice(list(SENSES))]
        label = kinds[rng.integers(len(kinds))]
        texts.append(" ".join([*rng.choice(words.split(), 3), f"{label}{rng.integers(3)}"]))
        labels.append([label])
    return Dataset.from_lists(texts, labels, name="senses")


@pytest.fixture(scope="module")
def data():
    return senses()


def on_tree(data, clusters, several, **options):
    """Return a tagger whose tree has one leaf per list of labels; what is in `several` leaves has several places."""
    tagger = lt.Tagger(calibrate=0, random_state=0).fit_dataset(data)
    places = np.array([[name in found for found in clusters] for name in tagger.labels_], dtype=float)
    assert sorted(np.array(tagger.labels_)[places.sum(axis=1) > 1]) == sorted(several)
    two = (np.zeros(2, np.int32), np.arange(len(clusters), dtype=np.int32) // -(-len(clusters) // 2))
    tree = LabelTree(two, np.array([0, *([len(places)] * len(clusters))]), np.arange(len(places)), len(places))
    model = LabelTreeClassifier(random_state=0, threshold=0.01, **options)
    tagger.model_ = model.fit(tagger.rows(data.texts), data.Y, tree=tree.with_slots(places))
    return tagger


LEAVES = [
    ["dojo", "judo", "karate", "belt"],
    ["trousers", "shirt", "belt"],
    ["asteroid", "comet", "planet", "belt"],
    ["apple", "bread", "soup", "shirt"],
]


@pytest.fixture(scope="module")
def tagger(data):
    return on_tree(data, LEAVES, ["belt", "shirt"])


def dense_weights(tagger, child):
    chunks, out = tagger.model_.chunks_[0], np.zeros(tagger.model_.n_features_in_)
    for feature in range(out.size):
        out[feature] = sum(w for _, w in chunks.margin_terms(child, np.array([feature]), np.array([1.0]))[1])
    return out


def test_the_places_are_those_of_the_tree(tagger, data):
    facts = json.loads(json.dumps(label_facts(tagger, "belt", labels=100)))
    tree, label = tagger.model_.trees_[0], tagger.labels_.index("belt")
    leaves = tree.slots()[[label]].indices.tolist()
    assert leaves == [0, 1, 2] == [place["leaf"] for place in facts["slots"]]
    assert facts["rows"] == tagger.model_.label_counts_[label] and facts["data"] is None
    for place, leaf in zip(facts["slots"], leaves, strict=True):
        held = tree.leaf_labels[tree.leaf_indptr[leaf] : tree.leaf_indptr[leaf + 1]]
        assert place["labels"] == held.size and place["path"] == tree.path(leaf)
        assert {found["label"] for found in place["neighbours"]} == {tagger.labels_[i] for i in held} - {"belt"}
        assert [leaf_of(tree, p) for p in slots_of(tree, label)] == leaves


def test_weights_are_the_stored_ones(tagger):
    chunks = tagger.model_.chunks_[0]
    for child in range(0, int(chunks.child_indptr[-1]), 3):
        features, weights = child_weights(chunks, child)
        found = np.zeros(tagger.model_.n_features_in_)
        found[features] = weights
        assert np.allclose(found, dense_weights(tagger, child), atol=1e-6)


def test_words_are_the_labels_own_words_that_lead_to_a_place(tagger):
    tree, chunks = tagger.model_.trees_[0], tagger.model_.chunks_[0]
    label, names = tagger.labels_.index("belt"), tagger.features_.get_feature_names_out().tolist()
    places = slots_of(tree, label).tolist()
    copies = np.stack([dense_weights(tagger, slot_child(chunks, place)) for place in places])
    ways = []
    for place in places:
        before, way = 0, 0.0
        for level, node in enumerate(tree.path(leaf_of(tree, place))):
            way = way + dense_weights(tagger, before + node)
            before += tree.n_nodes(level)
        ways.append(way)
    ways = np.stack(ways)
    facts = label_facts(tagger, "belt", words=1000)
    for at, place in enumerate(facts["slots"]):
        others = [i for i in range(len(places)) if i != at]
        pull = np.maximum(copies.mean(axis=0), 0) * (ways[at] - ways[others].mean(axis=0))
        assert {w["word"] for w in place["words"]} == {names[f] for f in np.flatnonzero(pull > 1e-9)}
        for word in place["words"]:
            assert word["pull"] == pytest.approx(pull[names.index(word["word"])], rel=1e-4, abs=1e-6)
        assert [w["pull"] for w in place["words"]] == sorted((w["pull"] for w in place["words"]), reverse=True)
        more = copies[at] - copies[others].mean(axis=0)
        assert {w["word"] for w in place["heavier"]} == {names[f] for f in np.flatnonzero(more > 1e-9)}


def test_meanings_are_told_by_their_own_words_and_neighbours(tagger):
    facts = label_facts(tagger, "belt", words=3)
    told = [" ".join(w["word"] for w in place["words"]) for place in facts["slots"]]
    for sense, found in zip(("sport", "clothes", "space"), told, strict=True):
        assert set(SENSES[sense][0].split()) & set(found.split()), told


def test_rows_go_to_the_place_whose_path_scores_highest(tagger, data):
    facts = json.loads(json.dumps(label_facts(tagger, "belt", data=data, texts=1000)))
    label, model = tagger.labels_.index("belt"), tagger.model_
    rows = np.flatnonzero(data.Y[:, [label]].toarray().ravel())
    assert facts["data"] == {"name": "senses", "rows": data.n_rows, "rows_with_label": rows.size}
    scores = np.stack([path_scores(model, tagger.rows(data.texts), place["leaf"])[rows] for place in facts["slots"]])
    for at, place in enumerate(facts["slots"]):
        mine = rows[np.argmax(scores, axis=0) == at]
        assert place["rows"] == mine.size and sorted(text["row"] for text in place["texts"]) == mine.tolist()
        leads = [text["score"] - text["elsewhere"] for text in place["texts"]]
        assert leads == sorted(leads, reverse=True) and all(lead >= 0 for lead in leads)
        assert all(text["text"] == data.texts[text["row"]] for text in place["texts"])


def test_path_scores_are_those_of_the_search(tagger, data):
    X, model = tagger.rows(data.texts[:40]), tagger.model_
    found = matched_leaves(model, X)
    for row in range(40):
        assert path_scores(model, X[[row]], int(found.ids[row, 0]))[0] == pytest.approx(found.scores[row, 0], abs=1e-4)
    explained = model.explain(X[[0]], [int(model.trees_[0].leaf_labels[0])])[0]
    score = 0.0
    for step in explained.path:
        score += link(np.float32(step["margin"]), 3, np.float32(0))
    leaf = explained.path[-1]["node"]
    assert path_scores(model, X[[0]], leaf)[0] == pytest.approx(score, abs=1e-4)


def test_labels_with_one_place_and_without_rows(data):
    texts, kinds = list(data.texts), [data.labels_of(row) for row in range(data.n_rows)]
    model = LabelTreeClassifier(max_leaf=4, branching=4)
    tagger = lt.Tagger(model=model, calibrate=0, random_state=0)
    tagger.fit(texts, kinds, label_names=[*data.names(), "never"])
    facts = label_facts(tagger, "soup", data=data)
    assert len(facts["slots"]) == 1 and facts["slots"][0]["rows"] == facts["rows"]
    assert facts["slots"][0]["words"][0]["word"].startswith("soup") and facts["slots"][0]["heavier"] == []
    never = label_facts(tagger, "never", data=data)
    assert never["rows"] == 0 and never["slots"][0]["words"] == [] and never["data"]["rows_with_label"] == 0
    assert page_splits(tagger) is None


def test_an_ensemble_shows_the_places_of_every_tree(data):
    tagger = on_tree(data, LEAVES, ["belt", "shirt"])
    other = on_tree(data, [LEAVES[3], LEAVES[0] + LEAVES[1][:2], LEAVES[2]], ["belt", "shirt"])
    tagger.model_.trees_ += other.model_.trees_
    tagger.model_.chunks_ += other.model_.chunks_
    facts = label_facts(tagger, "belt", data=data)
    total = facts["data"]["rows_with_label"]
    for tree in range(2):
        mine = [place for place in facts["slots"] if place["tree"] == tree]
        assert [place["leaf"] for place in mine] == tagger.model_.trees_[tree].slots()[
            [tagger.labels_.index("belt")]
        ].indices.tolist()
        assert sum(place["rows"] for place in mine) == total


def test_a_tagger_on_rows_of_features_has_no_words_and_no_texts():
    X, Y = np.eye(12).repeat(6, axis=0), np.eye(12)[np.arange(12) // 2 * 2].repeat(6, axis=0)
    model = LabelTreeClassifier(max_leaf=3, branching=3, overlap=2, beam=1)
    tagger = lt.Tagger(model=model, calibrate=0, random_state=0).fit(X, Y)
    facts = label_facts(tagger, "0", data=Dataset(Y=Y, X=X))
    assert all(place["words"] == [] for place in facts["slots"])
    texts = [text for place in facts["slots"] for text in place["texts"]]
    assert texts and all(text["text"] is None and text["id"] is None for text in texts)
    with pytest.raises(DataError, match="only texts"):
        label_facts(tagger, "0", data=Dataset.from_lists(["a"], [["0"]]))


def test_the_most_split_labels_are_listed(tagger):
    facts = json.loads(json.dumps(page_splits(tagger)))
    copies = np.bincount(tagger.model_.trees_[0].leaf_labels)
    assert facts["labels"] == copies.size and facts["several"] == (copies > 1).sum()
    assert sum(found["labels"] for found in facts["by_slots"]) == facts["labels"]
    order = [(-len(found["slots"]), -found["unlike"]) for found in facts["listed"]]
    assert order == sorted(order) and len(order) == facts["several"]
    assert all(0 <= found["unlike"] <= 2 for found in facts["listed"])
    by_name = {found["label"]: found for found in facts["listed"]}
    assert len(by_name["belt"]["slots"]) == copies[tagger.labels_.index("belt")]
    assert [found["label"] for found in facts["listed"]] == ["belt", "shirt"]
    assert [found["label"] for found in page_splits(tagger, n=1)["listed"]] == ["belt"]


def test_other_models_have_no_places(data):
    flat = lt.Tagger("ova", calibrate=0).fit_dataset(data)
    assert page_splits(flat) is None
    with pytest.raises(ModelError, match="has no label tree"):
        label_facts(flat, "belt")


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("BELT", "got 'BELT'. Near it: 'belt'."),
        ("ast", "Near it: 'asteroid'."),
        ("plannet", "Near it: 'planet'."),
        ("xyzzy", "label must be one the model knows; got 'xyzzy'."),
    ],
)
def test_an_unknown_label_is_refused_with_names_near_it(tagger, name, told):
    with pytest.raises(ParameterError) as error:
        label_facts(tagger, name)
    assert str(error.value).endswith(told)


@pytest.mark.parametrize("option", ["labels", "words", "texts"])
def test_bad_numbers_are_refused(tagger, option):
    with pytest.raises(ParameterError, match=f"{option} must be an integer >= 1; got 0."):
        label_facts(tagger, "belt", **{option: 0})
