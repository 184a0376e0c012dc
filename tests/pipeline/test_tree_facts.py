"""What the facts about a label tree say is what a slow walk through the tree finds."""

import json

import numpy as np
import pytest

import longtail as lt
from longtail.data.synthetic.generate import make_topics
from longtail.errors import ModelError, ParameterError
from longtail.pipeline import page_tree, tree_facts
from longtail.tree import LabelTree, LabelTreeClassifier

EVERYTHING = {"clusters": 1000, "labels": 1000, "words": 1000}


@pytest.fixture(scope="module")
def topics():
    return make_topics(300, 40, random_state=0)[0]


@pytest.fixture(scope="module")
def tagger(topics):
    model = LabelTreeClassifier(max_leaf=6, branching=4, threshold=0.01)
    return lt.Tagger(model=model, calibrate=0, random_state=0).fit_dataset(topics)


def with_model(tagger, model):
    other = lt.Tagger()
    other.features_, other.labels_, other.model_ = tagger.features_, tagger.labels_, model
    return other


def labels_below(tree, level, node):
    found = set()
    for leaf in range(tree.n_leaves):
        if tree.path(leaf)[level] == node:
            found |= set(tree.leaf_labels[tree.leaf_indptr[leaf] : tree.leaf_indptr[leaf + 1]].tolist())
    return found


def test_every_cluster_is_there_with_its_sizes_and_labels(tagger):
    facts = json.loads(json.dumps(tree_facts(tagger, **EVERYTHING)))
    tree, counts = tagger.model_.trees_[0], tagger.model_.label_counts_
    assert tree.n_levels > 1
    assert [level["clusters"] for level in facts["levels"]] == [tree.n_nodes(t) for t in range(tree.n_levels)]
    assert [level["listed"] for level in facts["levels"]] == [tree.n_nodes(t) for t in range(tree.n_levels)]
    assert facts["rest"] is None and facts["rows"] == 300 and facts["uses"] == counts.sum()
    seen = set()
    for found in facts["clusters"]:
        below = labels_below(tree, found["level"], found["cluster"])
        assert found["labels"] == len(below) and found["rest"] is None
        assert found["uses"] == sum(int(counts[label]) for label in below)
        assert found["share"] == pytest.approx(found["uses"] / counts.sum())
        assert {named["label"] for named in found["typical"]} == {tagger.labels_[i] for i in below if counts[i]}
        uses = [named["uses"] for named in found["typical"]]
        assert uses == sorted(uses, reverse=True) and sum(uses) == found["uses"]
        above = None if found["level"] == 0 else int(tree.parents[found["level"]][found["cluster"]])
        assert found["above"] == above
        seen.add((found["level"], found["cluster"]))
    assert len(seen) == sum(tree.n_nodes(t) for t in range(tree.n_levels))


def test_clusters_stand_below_the_one_above_and_the_most_used_come_first(tagger):
    facts = tree_facts(tagger, **EVERYTHING)
    way = []
    families = {}
    for found in facts["clusters"]:
        del way[found["level"] :]
        assert found["above"] == (way[-1] if way else None)
        way.append(found["cluster"])
        families.setdefault((found["level"], found["above"]), []).append(found["uses"])
    assert all(uses == sorted(uses, reverse=True) for uses in families.values())


def test_telling_words_have_the_largest_weights_of_the_clusters_own_classifier(tagger):
    tree, chunks = tagger.model_.trees_[0], tagger.model_.chunks_[0]
    words = tagger.features_.get_feature_names_out()
    every = np.arange(len(words))
    for found in tree_facts(tagger, words=6)["clusters"]:
        child = found["cluster"] + sum(tree.n_nodes(t) for t in range(found["level"]))
        _, terms = chunks.margin_terms(child, every, np.ones(len(words), dtype=np.float32))
        weights = sorted((w for _, w in terms if w > 0), reverse=True)[:6]
        assert [word["weight"] for word in found["words"]] == pytest.approx(weights)
        named = {words[f]: w for f, w in terms}
        assert all(named[word["word"]] == pytest.approx(word["weight"]) for word in found["words"])


def test_what_is_not_listed_is_counted(tagger):
    whole = tree_facts(tagger, **EVERYTHING)
    some = tree_facts(tagger, clusters=(2, 1), labels=2)
    assert [found["level"] for found in some["clusters"]][:2] == [0, 1]
    tops = [found for found in some["clusters"] if found["level"] == 0]
    assert len(tops) == 2 and some["rest"]["clusters"] == whole["levels"][0]["clusters"] - 2
    for key in ("labels", "uses"):
        assert sum(top[key] for top in tops) + some["rest"][key] == whole[key]
    for top in tops:
        inside = [found for found in some["clusters"] if found["level"] == 1 and found["above"] == top["cluster"]]
        assert len(inside) == 1 and top["rest"]["clusters"] == top["clusters"] - 1
        assert inside[0]["labels"] + top["rest"]["labels"] == top["labels"]
        assert inside[0]["uses"] + top["rest"]["uses"] == top["uses"]
        assert len(top["typical"]) == 2
    assert [found["cluster"] for found in tops] == [f["cluster"] for f in whole["clusters"] if f["level"] == 0][:2]


def test_depth_ends_the_list(tagger):
    facts = tree_facts(tagger, depth=1, clusters=100)
    assert {found["level"] for found in facts["clusters"]} == {0} and facts["depth"] == 1
    for found in facts["clusters"]:
        rest = {key: found[key] for key in ("clusters", "labels", "uses")}
        assert found["rest"] == (rest if found["clusters"] else None)
    assert tree_facts(tagger, depth=99)["depth"] == tagger.model_.trees_[0].n_levels


def test_a_saved_tagger_says_the_same(tagger, tmp_path):
    tagger.save(tmp_path / "m")
    assert tree_facts(lt.load(tmp_path / "m")) == tree_facts(tagger)


def test_a_label_in_several_leaves_counts_once_for_each_cluster(tagger, topics):
    X = tagger.rows(topics.texts)
    tree = LabelTree.from_clusters(np.arange(40) // 20)
    places = tree.slots().toarray()
    places[3] = 1  # in both
    model = LabelTreeClassifier().fit(X, topics.Y, tree=tree.with_slots(places))
    facts = tree_facts(with_model(tagger, model), **EVERYTHING)
    assert sorted(found["labels"] for found in facts["clusters"]) == [20, 21]
    counts = model.label_counts_
    assert sum(found["uses"] for found in facts["clusters"]) == counts.sum() + counts[3]
    assert facts["labels"] == 40 and facts["uses"] == counts.sum()


def test_labels_without_rows_are_counted_and_not_named(tagger, topics):
    Y = topics.Y.toarray()
    Y[:, :3] = 0
    tree = LabelTree.from_clusters([0] * 3 + [1] * 37)
    model = LabelTreeClassifier().fit(tagger.rows(topics.texts), Y, tree=tree)
    facts = tree_facts(with_model(tagger, model))
    empty = next(found for found in facts["clusters"] if found["cluster"] == 0)
    assert empty["labels"] == 3 and empty["uses"] == 0 and empty["typical"] == [] and empty["words"] == []
    assert facts["labels_used"] == 37


def test_the_tree_of_an_ensemble_is_chosen(topics):
    model = LabelTreeClassifier(max_leaf=6, branching=4, n_trees=2)
    tagger = lt.Tagger(model=model, calibrate=0, random_state=0).fit_dataset(topics)
    first, second = (tree_facts(tagger, tree=i, **EVERYTHING) for i in (0, 1))
    assert first["trees"] == second["trees"] == 2 and second["tree"] == 1
    assert [f["labels"] for f in second["clusters"]] != [f["labels"] for f in first["clusters"]]
    with pytest.raises(ParameterError, match="tree must be an integer between 0 and 1; got 2"):
        tree_facts(tagger, tree=2)


def test_a_tagger_of_rows_has_no_words(tagger, topics):
    model = LabelTreeClassifier(max_leaf=6, branching=4)
    other = lt.Tagger(model=model, calibrate=0).fit(tagger.rows(topics.texts), topics.Y)
    facts = tree_facts(other)
    assert all(found["words"] == [] and found["typical"] for found in facts["clusters"])


def test_a_model_without_a_tree_is_refused_in_one_sentence(topics):
    tagger = lt.Tagger("ova", calibrate=0).fit_dataset(topics)
    with pytest.raises(ModelError, match="the model is a OneVsAllClassifier and has no label tree; train with"):
        tree_facts(tagger)
    assert page_tree(tagger) is None


@pytest.mark.parametrize("name", ["depth", "clusters", "labels"])
def test_bad_numbers_are_refused(tagger, name):
    with pytest.raises(ParameterError, match=f"{name} must be an integer >= 1; got 0"):
        tree_facts(tagger, **{name: 0})


def test_a_page_gets_the_sizes_of_all_clusters_inside(tagger):
    facts = json.loads(json.dumps(page_tree(tagger)))
    tops = [found for found in facts["clusters"] if found["level"] == 0]
    assert all(len(top["inside"]) == top["clusters"] for top in tops)
    assert sum(labels for top in tops for labels, _ in top["inside"]) == facts["labels"]
    assert sum(uses for top in tops for _, uses in top["inside"]) == facts["uses"]


def test_a_page_skips_levels_of_one_cluster(tagger, topics):
    tree = LabelTree.from_parents([-1, 0, 0, *[1] * 20, *[2] * 20], labels=np.arange(3, 43))
    assert [tree.n_nodes(level) for level in range(tree.n_levels)] == [1, 2]
    model = LabelTreeClassifier().fit(tagger.rows(topics.texts), topics.Y, tree=tree)
    facts = page_tree(with_model(tagger, model))
    assert [found["level"] for found in facts["clusters"]] == [0, 1, 1]
