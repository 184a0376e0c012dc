"""Labels of texts from labels of groups, by name, and training on them."""

import json

import numpy as np
import pytest

import longtail as lt
from longtail.data import Dataset, GroupedDataset, group_randomly, make_topics
from longtail.errors import DataError, ParameterError
from longtail.pipeline import Imputed, evaluate_tagger, impute, impute_dataset

TEXTS = ["red apple", "fast car", "an old car", "green apple", "apple", "car"]
PAGES = ["1", "1", "2", "2", "3", "4"]
TAGS = {"1": ["fruit", "vehicle"], "2": ["vehicle", "fruit"], "3": ["fruit"], "4": ["vehicle"]}
TRUE = [("fruit",), ("vehicle",), ("vehicle",), ("fruit",), ("fruit",), ("vehicle",)]


@pytest.fixture(scope="module")
def topics():
    return make_topics(600, 12, random_state=3)[0]


@pytest.fixture(scope="module")
def grouped(topics):
    groups, Y_groups = group_randomly(topics.Y, 3, random_state=0)
    rows = Dataset(Y=topics.Y, texts=topics.texts, label_names=topics.label_names, groups=groups)
    return GroupedDataset(rows, Y_groups)


def right(truth, found):
    return (found.multiply(truth) > 0).sum() / found.nnz


@pytest.mark.parametrize("assign", ["auto", "argmax", "top"])
def test_texts_and_names_in_labels_of_texts_out(assign):
    found = impute(TEXTS, PAGES, TAGS, assign=assign)
    assert isinstance(found, Imputed) and found.labels == TRUE
    assert found.data.group_names == ("1", "2", "3", "4") and found.confidence.nnz == 6
    assert found.labelled().n_rows == 6


def test_propagation_gives_all_labels_with_their_share_of_the_group():
    found = impute(TEXTS[:4], [["1", "2"], "1", "1", "2"], {"1": ["a", "a", "b"], "2": ["a"]}, assign="propagate")
    assert found.labels == [("a", "b"), ("a", "b"), ("a", "b"), ("a",)]
    expected = [[2 / 3, 1 / 3], [2 / 3, 1 / 3], [2 / 3, 1 / 3], [1 / 2, 0]]
    np.testing.assert_allclose(found.confidence.toarray(), expected, atol=1e-6)
    assert found.facts["why"] == "propagate: every row got all labels of its groups."


def test_counts_numbers_and_nothing_are_understood_as_groups_and_labels():
    counted = {**TAGS, "1": {"fruit": 1, "vehicle": 1}, np.int64(5): None}
    counted[3], counted[4] = counted.pop("3"), counted.pop("4")
    found = impute([*TEXTS, "none"], [*np.array([1, 1, 2, 2, 3, 4]), None], counted)
    assert found.labels == [*TRUE, ()] and sorted(found.data.group_names) == ["1", "2", "3", "4", "5"]
    assert found.facts["rows_in_no_group"] == 1 and found.facts["groups_without_labels"] == 1
    twice = impute(["old car", "car", "apple"], [9, 9, 9], {"9": {"car": 2, "boat": 0}})
    assert twice.facts["counts_known"] and twice.facts["labels"] == 1 and twice.facts["assigned"] == 2
    tagger = lt.Tagger(random_state=0).fit_groups((text for text in TEXTS), (int(page) for page in PAGES), counted)
    assert tagger.data_["imputed"]["groups_without_labels"] == 1


def test_a_row_may_be_in_several_groups():
    found = impute(["apple", "car", "apple tree"], [["1", "2"], "1", "2"], {"1": ["fruit", "vehicle"], "2": ["fruit"]})
    assert found.labels[1] == ("vehicle",) and "fruit" in found.labels[0]


def test_facts_say_what_there_was_and_what_was_left():
    texts = [*TEXTS, "nothing", "", "more"]
    pages = [*PAGES, [], "1", "5"]
    tags = {**TAGS, "5": [], "6": ["vehicle", "boat"], "3": ["fruit"] * 4}
    found = impute(texts, pages, tags)
    facts = found.facts
    assert found.labels[:6] == TRUE and found.labels[6:] == [(), (), ()]
    assert found.labelled().n_rows == 6 and found.labelled().texts == tuple(TEXTS)
    wanted = {
        "rows": 9,
        "groups": 6,
        "labels": 3,
        "rows_in_no_group": 1,
        "rows_without_words": 1,
        "rows_not_chosen": 0,
        "rows_in_groups_without_labels": 1,
        "rows_without_labels": 3,
        "groups_without_rows": 1,
        "groups_without_labels": 1,
        "labels_in_no_group": 1,
        "counts_above_size": 1,
        "counts_known": True,
        "assigned": 6,
        "assign": "auto",
        "rounds": 0,
        "group_size": {"smallest": 1, "mean": 8 / 5, "largest": 3},
    }
    assert {key: facts[key] for key in wanted} == wanted
    assert json.loads(json.dumps(facts)) == facts


def test_auto_says_what_it_chose_and_why(grouped):
    why = impute_dataset(grouped).facts["why"]
    assert why.startswith("auto: some groups have a label more than once") and "not refined" in why
    once = GroupedDataset(grouped.rows, grouped.Y_groups > 0)
    assert "estimated: 1.3 rows on average of a group." in impute_dataset(once).facts["why"]
    same = impute(["red apple"] * 3 + ["old car"] * 3, ["1"] * 3 + ["2"] * 3, {"1": ["a", "b"], "2": ["c"]})
    assert "estimated: all rows of a group." in same.facts["why"] and "were refined" in same.facts["why"]
    assert same.facts["alike"] == "much alike" and same.labels == [("a", "b")] * 3 + [("c",)] * 3


def test_most_labels_are_found_and_confidence_tells_which(topics, grouped):
    found = impute_dataset(grouped, random_state=0)
    assert right(topics.Y, found.data.Y) > 0.85
    assert right(topics.Y, impute_dataset(grouped, assign="propagate").data.Y) < 0.5
    hit = np.asarray(topics.Y[found.data.Y.nonzero()]).ravel() > 0
    assert found.confidence.data[hit].mean() > found.confidence.data[~hit].mean()


def test_soft_labels_are_shares(grouped):
    found = impute_dataset(grouped, assign="soft")
    assert 0.1 <= found.data.Y.data.min() < 1 and (found.confidence != found.data.Y).nnz == 0


def test_rounds_ask_a_model(topics, grouped):
    asked = impute_dataset(grouped, rounds=1, random_state=0)
    assert asked.facts["rounds"] == 1 and "asked once where they belong" in asked.facts["why"]
    assert right(topics.Y, asked.data.Y) > 0.85
    again = impute_dataset(grouped, rounds=1, model=lt.OneVsAllClassifier(), random_state=0)
    assert right(topics.Y, again.data.Y) > 0.85


def test_the_same_seed_gives_the_same_for_any_number_of_threads(grouped):
    one, two = (impute_dataset(grouped, rounds=1, random_state=4, n_jobs=jobs) for jobs in (1, 2))
    assert (one.data.Y != two.data.Y).nnz == 0 and one.facts == two.facts


def test_features_instead_of_texts(topics, grouped):
    X = lt.TfidfFeatures().fit_transform(topics.texts)
    rows = Dataset(X=X, Y=topics.Y, groups=grouped.groups)
    found = impute_dataset(GroupedDataset(rows, grouped.Y_groups))
    assert (found.data.Y != impute_dataset(grouped).data.Y).nnz == 0 and found.labels[0]


def test_a_tagger_learns_from_labels_of_groups(topics, tmp_path):
    groups = [f"page {row // 3}" for row in range(480)]
    tags: dict[str, list[str]] = {}
    for row, page in enumerate(groups):
        tags.setdefault(page, []).extend(topics.labels_of(row))
    tagger = lt.Tagger(random_state=0).fit_groups(list(topics.texts[:480]), groups, tags)
    facts = evaluate_tagger(tagger, topics.take(slice(480, None)), n_bootstrap=10)
    assert facts["evaluation"]["metrics"]["p@1"]["value"] > 0.85
    assert tagger.data_["rows"] == 480 - tagger.data_["imputed"]["rows_without_labels"]
    tagger.save(tmp_path / "model")
    assert lt.load(tmp_path / "model").data_["imputed"] == tagger.data_["imputed"]
    lt.Tagger(random_state=0).fit_groups(list(topics.texts[:480]), groups, tags).save(tmp_path / "again")
    assert (tmp_path / "model/manifest.json").read_bytes() == (tmp_path / "again/manifest.json").read_bytes()


def test_a_tagger_imputes_with_its_own_features_and_model(grouped):
    features = lt.TfidfFeatures(max_features=40)
    own = lt.Tagger("ova", features=features, random_state=0).impute(grouped, rounds=1)
    same = impute_dataset(
        grouped, features=features, model=lt.OneVsAllClassifier(random_state=0), rounds=1, random_state=0
    )
    assert (own.data.Y != same.data.Y).nnz == 0


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"assign": "atuo"}, "assign must be one of .* got 'atuo'. Did you mean 'auto'?"),
        ({"n_iter": -1}, "n_iter must be an integer >= 0; got -1."),
        ({"rounds": -1}, "rounds must be an integer >= 0; got -1."),
    ],
)
def test_bad_settings_are_refused_in_one_sentence(settings, sentence):
    with pytest.raises(ParameterError, match=sentence):
        impute(TEXTS, PAGES, TAGS, **settings)


def test_nothing_to_learn_from_is_refused():
    with pytest.raises(DataError, match="no group has both rows and labels, so no row can get a label"):
        impute(["x"], ["1"], {"1": [], "2": ["a"]})
    with pytest.raises(DataError, match="the texts have no words to learn from"):
        impute(["", " "], ["1", "1"], {"1": ["a"]})
