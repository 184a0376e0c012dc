"""A Tagger with a vocabulary: names for people, ids for machines, and labels by id, notation or name."""

import copy
import json

import pytest

import longtail as lt
from longtail.errors import DataError, DataWarning, ParameterError
from longtail.pipeline import audit_model, compare_taggers, evaluate_tagger, label_facts, page_tree, tree_facts
from longtail.pipeline.labels_in_vocabulary import current_id, vocabulary_sentences
from longtail.report import evaluation_page
from longtail.report.people import for_people
from longtail.vocabulary import Concept

TEXTS = ["red apple pie", "green pear tart", "fast car race", "slow train ride"] * 15
BASE = "http://ex.org/"
LABELS = [[f"{BASE}1", f"{BASE}2"], [f"{BASE}1"], [f"{BASE}3"], [f"{BASE}3", f"{BASE}4"]] * 15
FRUIT = lt.Vocabulary(
    [
        Concept(f"{BASE}1", {"en": "fruit", "de": "Obst"}, notation="F"),
        Concept(f"{BASE}2", {"en": "apples", "de": "Äpfel"}, {"en": ("pomes",)}, broader=(f"{BASE}1",)),
        Concept(f"{BASE}3", {"en": "vehicles", "de": "Fahrzeuge"}),
        Concept(f"{BASE}4", {"en": "trains"}, deprecated=True, replaced_by=f"{BASE}3"),
        Concept(f"{BASE}5", {"en": "ships"}),
    ],
    language="en",
)


@pytest.fixture(scope="module")
def tagger():
    return lt.Tagger(random_state=0, n_jobs=1).fit(TEXTS, LABELS, vocabulary=FRUIT)


def test_tags_have_ids_and_names(tagger):
    assert set(tagger.predict(["red apple pie"])[0]) == {f"{BASE}1", f"{BASE}2"}
    tag = tagger.tag(["a fast car race"], k=1)[0][0]
    assert (tag.label, tag.name) == (f"{BASE}3", "vehicles") and "name='vehicles'" in repr(tag)
    label, score, probability = tag  # as without a vocabulary
    assert (label, score, probability) == (tag.label, tag.score, tag.probability)
    assert copy.copy(tag).name == "vehicles"


def test_labels_are_taken_by_id_notation_or_name(tagger):
    for word in (f"{BASE}1", "F", "Fruit", "obst"):
        assert tagger.explain("red apple", labels=[word])["predicted"][0]["label"] == f"{BASE}1"
    tags = tagger.tag(["red apple"], k=2, deny=["fruit"])[0]
    assert "fruit" not in [tag.name for tag in tags]
    with pytest.raises(ParameterError, match=r"got 'fruits'. Did you mean 'fruit'"):
        tagger.explain("red apple", labels=["fruits"])
    told = "got 'ships'. It is a concept of the vocabulary, but no training row has it."
    with pytest.raises(ParameterError, match=told):
        tagger.explain("red apple", labels=["ships"])
    replaced = lt.Tagger(random_state=0, calibrate=0).fit(TEXTS, LABELS, vocabulary=FRUIT, deprecated_labels="replace")
    with pytest.raises(ParameterError, match="no training row has it; it is deprecated, replaced by 'vehicles'"):
        replaced.explain("slow train", labels=["trains"])


def test_facts_have_names_beside_labels(tagger):
    suggestion = tagger.explain("a fast car race", k=1)["predicted"][0]
    assert suggestion["name"] == "vehicles" and "vehicles" in suggestion["path"][0]["typical_names"]
    assert tree_facts(tagger)["clusters"][0]["typical"][0]["name"] in ("fruit", "vehicles")
    assert label_facts(tagger, "fruit")["label"] == f"{BASE}1"
    data = lt.Dataset.from_lists(TEXTS, LABELS)
    facts = evaluate_tagger(tagger, data, n_bootstrap=0)
    assert {row["name"] for row in facts["labels"]} == {"fruit", "apples", "vehicles", "trains"}
    assert facts["examples"][0]["true_names"] == ["fruit", "apples"]
    facts["tree"] = page_tree(tagger)
    page = evaluation_page(facts)
    assert "apples" in page.split("<script")[0]
    json.dumps(facts)


def test_data_may_name_labels_in_any_way(tagger):
    named = [["Fruit", "Äpfel"], ["F"], ["vehicles"], [f"{BASE}3", "trains"]] * 15
    other = lt.Tagger(random_state=0, n_jobs=1).fit(TEXTS, named, vocabulary=FRUIT)
    assert sorted(other.labels_) == sorted(tagger.labels_)
    assert other.data_["vocabulary"]["labels_by_name"] == 5  # fruit is given in two ways
    facts = evaluate_tagger(tagger, lt.Dataset.from_lists(TEXTS, named), n_bootstrap=0)
    assert facts["data"]["labels_unknown_to_model"] == 0


def test_an_evaluation_leaves_the_tagger_as_it_is():
    labels = [[*row, "strange"] for row in LABELS]
    tagger = lt.Tagger(random_state=0, n_jobs=1, calibrate=0).fit(TEXTS, labels, vocabulary=FRUIT)
    before = json.dumps(tagger.data_)
    evaluation_page(evaluate_tagger(tagger, lt.Dataset.from_lists(TEXTS, labels), n_bootstrap=0))
    assert json.dumps(tagger.data_) == before


def test_an_audit_names_labels():
    texts, labels = TEXTS[:20], LABELS[:20]
    tagger = lt.Tagger("ova", random_state=0, n_jobs=1, calibrate=0).fit(texts, labels, vocabulary=FRUIT)
    data = lt.Dataset.from_lists(texts[:2], [["fruit", "vehicles"], ["apples"]])
    audited = audit_model(tagger, data).facts["audit"]
    listed = [*audited["impossible"], *audited["hardest"]]
    assert ["fruit", "vehicles"] in [row["label_names"] for row in listed]


def test_a_saved_tagger_keeps_its_vocabulary(tagger, tmp_path):
    loaded = lt.load(tagger.save(tmp_path / "model"))
    assert loaded.vocabulary_ == FRUIT and loaded.vocabulary_.language == "en"
    assert loaded.tag(["a fast car race"], k=1) == tagger.tag(["a fast car race"], k=1)
    assert loaded.data_["vocabulary"] == tagger.data_["vocabulary"]


def test_without_a_vocabulary_nothing_changes(tmp_path):
    plain = lt.Tagger(random_state=0, n_jobs=1).fit(TEXTS, LABELS)
    assert plain.tag(["a fast car race"], k=1)[0][0].name is None
    assert "name" not in plain.explain("a fast car race", k=1)["predicted"][0]
    assert "vocabulary" not in plain.data_
    with pytest.raises(ParameterError, match="one the model knows"):
        plain.explain("red apple", labels=["fruit"])


def test_what_data_and_vocabulary_lack_is_counted():
    labels = [row if i else [*row, "strange"] for i, row in enumerate(LABELS)]
    tagger = lt.Tagger(random_state=0, n_jobs=1, calibrate=0).fit(TEXTS, labels, vocabulary=FRUIT)
    facts = tagger.data_["vocabulary"]
    assert facts["unknown"] == [{"label": "strange", "rows": 1}] and facts["concepts_without_rows"] == 1
    assert facts["deprecated"][0]["replaced_by_name"] == "vehicles"
    assert vocabulary_sentences(facts) == [
        "Vocabulary: 4 of 5 labels of the data are among its 5 concepts.",
        "1 label is not in the vocabulary and kept all the same: strange.",
        "1 concept has no row in the data.",
        "1 deprecated concept is in use: trains (replaced by vehicles).",
    ]
    assert "strange" in tagger.labels_
    dropped = lt.Tagger(random_state=0, n_jobs=1, calibrate=0).fit(
        TEXTS, labels, vocabulary=FRUIT, unknown_labels="drop"
    )
    assert "strange" not in dropped.labels_ and dropped.data_["vocabulary"]["labels_unknown"] == 1
    with pytest.raises(DataError, match="1 of 5 labels of the data are not in the vocabulary: strange"):
        lt.Tagger().fit(TEXTS, labels, vocabulary=FRUIT, unknown_labels="error")
    with pytest.raises(
        DataError, match="none of the 1 labels of the data is in the vocabulary: the data has 'x', the voc"
    ):
        lt.Tagger().fit(["a"], [["x"]], vocabulary=FRUIT, unknown_labels="drop")
    with pytest.raises(ParameterError, match="unknown_labels must be one of"):
        lt.Tagger().fit(TEXTS, labels, vocabulary=FRUIT, unknown_labels="ignore")


def test_deprecated_labels_are_replaced_where_asked_for_in_training_and_in_judging(tmp_path):
    asked = {"vocabulary": FRUIT, "deprecated_labels": "replace"}
    tagger = lt.Tagger(random_state=0, n_jobs=1).fit(TEXTS, LABELS, **asked)
    facts = tagger.data_["vocabulary"]
    assert f"{BASE}4" not in tagger.labels_ and (facts["replaced"], facts["rows_replaced"]) == (1, 15)
    assert facts["deprecated_in_use"] == 0 and facts["labels_unknown"] == 0
    assert "1 deprecated concept was replaced in 15 rows: trains by vehicles." in vocabulary_sentences(facts)
    tagger.save(tmp_path / "m")
    again = lt.load(tmp_path / "m")
    data = lt.Dataset.from_lists(TEXTS, LABELS)  # with the deprecated label
    for model in (tagger, again):
        found = evaluate_tagger(model, data, n_bootstrap=0)
        assert found["data"]["labels_unknown_to_model"] == 0 and found["evaluation"]["metrics"]["p@1"]["value"] == 1
        assert model.monitor(TEXTS, LABELS)["unknown_labels"] == []
    assert f"{BASE}4" not in again.partial_fit(TEXTS[:4], LABELS[:4]).labels_
    ova = lt.Tagger("ova", random_state=0).fit(TEXTS, LABELS, **asked)
    assert audit_model(ova, data).facts["unknown"] is None
    with pytest.raises(ParameterError, match=r"deprecated_labels must be one of \['keep', 'replace'\]; got 'drop'"):
        lt.Tagger().fit(TEXTS, LABELS, vocabulary=FRUIT, deprecated_labels="drop")


def test_a_chain_of_replacements_is_followed_and_a_circle_ends():
    chain = [
        Concept("a", deprecated=True, replaced_by="b"),
        Concept("b", deprecated=True, replaced_by="c"),
        Concept("c"),
    ]
    circle = [Concept("x", deprecated=True, replaced_by="y"), Concept("y", deprecated=True, replaced_by="x")]
    lost = [Concept("z", deprecated=True)]
    vocabulary = lt.Vocabulary([*chain, *circle, *lost])
    assert current_id("a", vocabulary) == "c" and current_id("z", vocabulary) == "z"
    assert current_id("x", vocabulary) in "xy"


TWICE = lt.Vocabulary(
    [
        Concept(f"{BASE}1", {"en": "fruit"}),
        Concept(f"{BASE}2", {"en": "Documentation"}),
        Concept(f"{BASE}3", {"en": "vehicles"}),
        Concept(f"{BASE}4", {"en": "Documentation"}),
    ]
)
NAMED = [["fruit"], ["fruit", "Documentation"], ["vehicles"], ["vehicles"]] * 15
OF = "1 label of the data is the name of several concepts"
SEVERAL = f"{OF}, such as 'Documentation', which may be <{BASE}2> or <{BASE}4>"


def test_names_of_several_concepts_are_told_with_their_ids():
    fit = {"vocabulary": TWICE, "unknown_labels": "drop"}
    tagger = lt.Tagger(random_state=0, n_jobs=1).fit(TEXTS, NAMED, **fit)
    facts = tagger.data_["vocabulary"]
    assert (facts["labels_ambiguous"], facts["labels_unknown"]) == (1, 0)
    assert facts["ambiguous"] == [{"label": "Documentation", "rows": 15, "ids": [f"{BASE}2", f"{BASE}4"]}]
    assert f"{SEVERAL}; dropped. Give such labels by id." in vocabulary_sentences(facts)
    with pytest.raises(DataError, match=SEVERAL):
        lt.Tagger().fit(TEXTS, NAMED, vocabulary=TWICE, unknown_labels="error")
    data = lt.Dataset.from_lists(TEXTS, NAMED)
    with pytest.warns(DataWarning, match=SEVERAL):
        found = evaluate_tagger(tagger, data, n_bootstrap=0)
    assert found["data"]["labels_ambiguous"] == 1
    with pytest.warns(DataWarning, match=SEVERAL) as told:
        assert compare_taggers(tagger, tagger, data, n_bootstrap=0)["data"]["labels_ambiguous"] == 1
    assert len(told) == 1
    with pytest.warns(DataWarning, match=SEVERAL):
        copy.copy(tagger).learn_decision(data.take(range(59)), target="f1")
    with pytest.warns(DataWarning, match=SEVERAL):
        tagger.partial_fit(TEXTS[:20], NAMED[:20])
    assert "Documentation" not in tagger.labels_ and tagger.updated_["vocabulary"]["labels_ambiguous"] == 1


def test_updates_do_with_unknown_labels_what_training_did(tmp_path):
    labels = [[*row, "strange"] for row in LABELS]
    fit = {"vocabulary": FRUIT, "unknown_labels": "drop"}
    lt.Tagger(random_state=0, n_jobs=1, calibrate=0).fit(TEXTS, labels, **fit).save(tmp_path / "m")
    tagger = lt.load(tmp_path / "m").partial_fit(TEXTS[:20], labels[:20])
    assert "strange" not in tagger.labels_ and tagger.updated_["labels_added"] == []
    facts = tagger.updated_["vocabulary"]
    assert (facts["unknown_labels"], facts["labels_unknown"], facts["unknown"]) == ("drop", 1, ["strange"])
    kept = lt.Tagger(random_state=0, n_jobs=1, calibrate=0).fit(TEXTS, LABELS, vocabulary=FRUIT)
    kept.partial_fit(TEXTS[:20], [[*row, "ships"] for row in labels[:20]])
    assert kept.updated_["labels_added"] == [f"{BASE}5", "strange"]
    assert kept.updated_["added_names"] == ["ships", "strange"] and kept.updated_["vocabulary"]["labels_unknown"] == 1
    strict = lt.Tagger(random_state=0, n_jobs=1, calibrate=0).fit(
        TEXTS, LABELS, vocabulary=FRUIT, unknown_labels="error"
    )
    with pytest.raises(DataError, match="1 of 5 labels of the data are not in the vocabulary: strange"):
        strict.partial_fit(TEXTS[:20], labels[:20])


def test_a_vocabulary_with_none_of_the_labels_is_refused():
    with pytest.raises(
        DataError, match=f"none of the 2 labels of the data is in the vocabulary: .*'{BASE}1', '{BASE}2'"
    ):
        lt.Tagger().fit(TEXTS, [["http://b/1"], ["http://b/2"]] * 30, vocabulary=FRUIT)


def test_the_id_of_a_label_without_a_name_is_shown_once():
    assert for_people({"label": "x", "name": "x"}) == {"label": "x"}
