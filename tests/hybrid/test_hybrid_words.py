"""A hybrid without an encoder: label tree and names, which needs no torch; and what every hybrid must do."""

import importlib.util
import sys
from pathlib import Path

import numpy as np
import pytest
from tests.storage.hostile import hostile_parts
from tests.storage.write_saved import stand_in_for_the_encoder

import longtail
from longtail.data import Dataset, load_bundled
from longtail.errors import DataError, ModelError, ParameterError
from longtail.hybrid import HYBRID_SCHEMA, Hybrid, boosted_trees, combine, fit
from longtail.metrics import evaluate
from longtail.pipeline import Tagger
from longtail.storage import check_part
from longtail.vocabulary import Concept, Vocabulary

WORDS = ("tree", "names")


@pytest.fixture(scope="module")
def data():
    return load_bundled("debtags", "train").take(np.arange(0, 24000, 20))


@pytest.fixture(scope="module")
def tagger(data):
    with pytest.MonkeyPatch.context() as patch:  # boosted trees on few rows
        patch.setattr(combine, "FEWEST_FOR_TREES", 20)
        patch.setattr(boosted_trees, "FEWEST_IN_LEAF", 60)
        patch.setattr(boosted_trees, "TREES", 40)
        patch.setattr(fit, "log_loss", lambda combination, *_: float(combination.trees is None))  # they always pay
        tagger = Tagger("hybrid", model=Hybrid(experts=WORDS), random_state=0).fit_dataset(data)
    assert tagger.model_.combination_.trees.n_trees == 40
    return tagger


@pytest.fixture(scope="module")
def usual(data):
    """A hybrid as it is trained on so few rows: without boosted trees."""
    return Tagger("hybrid", model=Hybrid(experts=WORDS), random_state=0).fit_dataset(data)


@pytest.fixture(scope="module")
def test_rows():
    return load_bundled("debtags", "test").take(np.arange(300))


def test_it_ranks_better_than_either_part(usual, data):
    rows = load_bundled("debtags", "test").take(np.arange(2000))
    truth = rows.align(data.names())[0].Y

    def precision(model):
        found = evaluate(truth, model.predict_topk(list(rows.texts), k=5), n_bootstrap=0)["metrics"]
        return found["p@1"]["value"], found["p@5"]["value"]

    tree = Hybrid(experts=("tree",), random_state=0).fit(data.texts, data.Y, data.label_texts)
    names = Hybrid(experts=("names",), random_state=0).fit(data.texts, data.Y, data.label_texts)
    together, of_tree, of_names = precision(usual.model_), precision(tree), precision(names)
    assert together[1] > of_tree[1] and together[0] > of_names[0] and together[1] > of_names[1]
    # rare labels are favoured, which may cost a little at the first place, where the chance of 2,000 rows is 1 point
    assert together[0] >= of_tree[0] - 0.01


def test_without_a_language_no_package_of_stems_is_asked(data, test_rows, tmp_path, monkeypatch):
    pytest.importorskip("snowballstemmer")
    some, texts = data.take(np.arange(300)), list(test_rows.texts)[:20]

    def trained():
        model = Hybrid(experts=("names",), random_state=0)
        return Tagger("hybrid", model=model, random_state=0).fit_dataset(some)

    folder = trained().save(tmp_path / "model")
    expected = longtail.load(folder).predict_topk(texts, k=3)
    monkeypatch.setitem(sys.modules, "snowballstemmer", None)
    find = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name, *_: None if name == "snowballstemmer" else find(name))
    for model in (longtail.load(folder), trained()):
        found = model.predict_topk(texts, k=3)
        np.testing.assert_array_equal(found.ids, expected.ids)
        np.testing.assert_array_equal(found.scores, expected.scores)


@pytest.mark.parametrize("size", [{"width": 0}, {"width": "a"}, {"width": float("nan")}, {"vocabulary": None}])
def test_sizes_of_a_new_encoder_that_cannot_be_are_refused_in_one_sentence(size):
    with pytest.raises(ParameterError, match=f"{next(iter(size))} of a new encoder must be an integer"):
        Hybrid(size, experts=("prototypes",)).fit(["a", "b"] * 10, np.eye(2)[[0, 1] * 10], ["a", "b"])


def test_what_is_saved_predicts_the_same(tagger, test_rows, tmp_path):
    again = longtail.load(tagger.save(tmp_path / "model"))
    texts = list(test_rows.texts)[:50]
    first, second = tagger.model_.predict_topk(texts, k=7), again.model_.predict_topk(texts, k=7)
    np.testing.assert_array_equal(first.ids, second.ids)
    np.testing.assert_array_equal(first.scores, second.scores)
    assert again.tag(texts[:3]) == tagger.tag(texts[:3])
    assert again.model_.weighed_ == tagger.model_.weighed_


@pytest.mark.parametrize("beginning", [0, 4, "auto"])
def test_what_the_tree_reads_of_texts_is_saved_with_it(beginning, data, test_rows, tmp_path):
    model = Hybrid(experts=("tree",), beginning=beginning, random_state=0).fit(data.texts, data.Y, data.label_texts)
    again = Tagger("hybrid", model=model).fit_dataset(data.take(np.arange(200)))
    loaded = longtail.load(again.save(tmp_path / "model"))
    texts = list(test_rows.texts)[:50]
    np.testing.assert_array_equal(loaded.predict_topk(texts, k=5).scores, again.predict_topk(texts, k=5).scores)
    names = model.experts_.words.get_feature_names_out()
    apart = [name for name in names if name.startswith("beginning: ")]
    assert bool(apart) == (beginning != 0) and loaded.model_.beginning == beginning
    assert ("beginning: for the" in apart) == (beginning != 0)


def test_pairs_of_words_are_read_where_texts_are_short():
    texts, labels = ["red apple", "old car"] * 10, [["fruit"], ["vehicle"]] * 10
    read = Hybrid(experts=("tree",), random_state=0)
    tagger = Tagger("hybrid", model=read, random_state=0).fit(texts, labels)
    assert "red apple" in tagger.model_.experts_.words.get_feature_names_out()


@pytest.mark.parametrize("name", ["hybrid-with-texts", "hybrid-frozen"])
def test_a_hybrid_saved_before_it_read_beginnings_has_none(name, monkeypatch):
    folder = Path(__file__).parents[1] / "storage" / "saved" / name
    if name == "hybrid-frozen":
        stand_in_for_the_encoder(monkeypatch.setattr)
    assert longtail.load(folder).model_.beginning == 0


def test_weights_saved_before_the_last_features_were_known_mean_the_same(tagger, test_rows):
    part = tagger.model_.to_part()
    weights = part.arrays["combination.weights"]
    part.arrays["combination.weights"] = np.where(np.arange(weights.shape[1]) < 9, weights, 0).astype(np.float32)
    padded = Hybrid.from_part(part)
    part.arrays["combination.weights"] = weights[:, :9]
    texts = list(test_rows.texts)[:5]
    np.testing.assert_array_equal(
        Hybrid.from_part(part).predict_topk(texts, k=5).scores, padded.predict_topk(texts, k=5).scores
    )
    part.arrays["combination.weights"] = weights[:, :10]
    with pytest.raises(ModelError, match="weights are for 10 features, not 9 or 11"):
        Hybrid.from_part(part)


@pytest.mark.filterwarnings("ignore:invalid value", "ignore:overflow")  # numbers as other types
def test_changed_boosted_trees_are_refused_in_one_sentence_or_harmless(tagger, test_rows):
    refused, texts = 0, list(test_rows.texts)[:3]
    for change, changed, must_refuse in hostile_parts(tagger.model_.to_part(), HYBRID_SCHEMA):
        if "combination." not in change:
            continue
        try:
            check_part(changed, HYBRID_SCHEMA)
        except ValueError as problem:
            assert "\n" not in str(problem)
            refused += 1
        else:
            assert not must_refuse, change
            Hybrid.from_part(changed).predict_topk(texts, k=5)
    assert refused > 20


def test_the_same_seed_gives_the_same_model_with_any_number_of_threads(data, tmp_path):
    def saved(n_jobs, name):
        folder = Hybrid(experts=WORDS, random_state=3, n_jobs=n_jobs).fit(data.texts, data.Y, data.label_texts)
        path = folder.save(tmp_path / name)
        return {file.name: file.read_bytes() for file in sorted(path.iterdir()) if file.suffix != ".json"}

    assert saved(1, "one") == saved(2, "two")


def test_a_score_depends_neither_on_k_nor_on_the_labels_allowed(tagger, test_rows):
    model, texts = tagger.model_, list(test_rows.texts)[:20]
    long, short = model.predict_topk(texts, k=40), model.predict_topk(texts, k=3)
    np.testing.assert_array_equal(long.ids[:, :3], short.ids)
    some = [int(label) for label in long.ids[0, :5]]
    few = model.predict_topk(texts, k=5, allow=some)
    of = {int(label): score for label, score in zip(long.ids[0], long.scores[0], strict=True)}
    assert {int(i): s for i, s in zip(few.ids[0], few.scores[0], strict=True)} == {label: of[label] for label in some}
    denied = model.predict_topk(texts, k=3, deny=[int(short.ids[0, 0])])
    assert denied.ids[0, :2].tolist() == short.ids[0, 1:].tolist()


def test_rows_predict_as_texts_do(tagger, test_rows):
    texts = list(test_rows.texts)[:10]
    from_rows = tagger.model_.predict_topk(tagger.model_.rows(texts), k=4)
    np.testing.assert_array_equal(from_rows.ids, tagger.model_.predict_topk(texts, k=4).ids)


def test_a_label_added_by_its_text_is_found_in_texts_that_name_it(data):
    tagger = Tagger("hybrid", model=Hybrid(experts=WORDS), random_state=0).fit_dataset(data)
    before = tagger.tag(["a game about chess"], k=5)
    tagger.add_labels(["game::whales"], ["whale watching"])
    assert tagger.tag(["software for whale watching"], k=1)[0][0].label == "game::whales"
    assert [tag[:2] for tag in tagger.tag(["a game about chess"], k=5)[0]] == [tag[:2] for tag in before[0]]


def test_labels_without_rows_are_known_by_their_texts(data):
    Y = data.Y
    given = Dataset.from_lists(
        list(data.texts),
        [[data.names()[i] for i in Y.indices[Y.indptr[r] : Y.indptr[r + 1]]] for r in range(data.n_rows)],
        label_names=(*data.names(), "whales"),
    )
    tagger = Tagger("hybrid", model=Hybrid(experts=WORDS), random_state=0).fit_dataset(given)
    tags = tagger.tag(["software about whales and more whales"], k=20)[0]
    assert "whales" in [tag.label for tag in tags]


def test_an_explanation_names_the_expert_and_the_words(tagger, test_rows):
    facts = tagger.explain("a chess game for the GNOME desktop", k=2)
    for suggestion in facts["predicted"]:
        experts = {fact["expert"]: fact for fact in suggestion["experts"]}
        assert set(experts) == {*WORDS, "start"} and suggestion["words"]
        assert 0 <= experts["tree"]["probability"] <= 1
    weights = [fact["weight"] for fact in facts["predicted"][0]["experts"]]
    assert weights[:-1] == sorted(weights[:-1], reverse=True)
    assert sum(weights) == pytest.approx(facts["predicted"][0]["score"], abs=1e-4)
    named = tagger.explain("a tool for the ruby language", labels=["devel::lang:ruby"])["predicted"][0]
    matches = next(fact for fact in named["experts"] if fact["expert"] == "names")["matches"]
    assert any("ruby" in match["name"].lower() for match in matches)


def test_an_expert_that_says_nothing_adds_nothing_and_labels_as_frequent_start_alike(tagger, test_rows):
    counts, silent, alike = tagger.model_.label_counts_, 0, 0
    for text in list(test_rows.texts)[:6]:
        starts = {}
        for suggestion in tagger.explain(text, k=30)["predicted"]:
            parts = {fact["expert"]: fact for fact in suggestion["experts"]}
            if not parts["names"]["matches"]:
                assert parts["names"]["weight"] == pytest.approx(0, abs=1e-5)
                silent += 1
            number = tagger.labels_.index(suggestion["label"])
            starts.setdefault(int(counts[number]), []).append(parts["start"]["weight"])
        for same in starts.values():
            assert max(same) - min(same) < 1e-4
            alike += len(same) > 1
    assert silent and alike


def test_folders_whose_experts_are_not_those_named_are_refused(tagger):
    part = tagger.model_.to_part()
    for experts, words in (
        (["tree"], "there is a part for names"),
        (["tree", "names", "neighbours"], "there is no part for neighbours"),
        (["tree", "tree", "names"], "one of them twice"),
    ):
        part.params["experts"] = experts
        with pytest.raises(ModelError, match=words):
            Hybrid.from_part(part)


def test_it_describes_how_good_every_expert_is(usual):
    facts = usual.model_.describe()
    assert set(facts["experts"]) == {*WORDS, "together"}
    best = max(facts["experts"][name]["P@5"] for name in WORDS)
    assert facts["experts"]["together"]["P@5"] >= best - 0.01
    assert "tree: log probability" in facts["weights"]["more rows"]


def test_few_rows_are_enough_to_train():
    texts, labels = ["red apple", "old car"] * 10, [["fruit"], ["vehicle"]] * 10
    tagger = Tagger("hybrid", model=Hybrid(experts=WORDS), random_state=0).fit(texts, labels)
    assert tagger.tag(["an apple"], k=1)[0][0].label == "fruit"


@pytest.mark.parametrize(
    ("params", "words"),
    [
        ({"experts": ("tree", "magic")}, "experts must be some of .*got 'magic'"),
        ({"experts": ()}, "experts must be some of"),
        ({"experts": None}, "experts must be some of"),
        ({"epochs": -1}, "epochs"),
        ({"lr": -1.0}, "lr"),
        ({"batch_size": -5}, "batch_size"),
        ({"language": "klingon"}, "language"),
        ({"tail": -1}, "tail"),
        ({"minutes": 0}, "minutes"),
        ({"long_texts": "all"}, "long_texts"),
        ({"beginning": "all"}, "beginning must be an integer >= 0 or 'auto'; got 'all'"),
        ({"beginning": -1}, "beginning must be an integer >= 0"),
    ],
)
def test_bad_parameters_get_a_sentence(params, words):
    with pytest.raises(ParameterError, match=words):
        Hybrid(**{"experts": WORDS, **params}).fit(["a", "b"], [[1, 0], [0, 1]], ["one", "two"])


def test_bad_data_gets_a_sentence():
    model = Hybrid(experts=WORDS)
    with pytest.raises(DataError, match="label_texts must hold one text per label"):
        model.fit(["a", "b"], [[1, 0], [0, 1]], ["one"])


def test_labels_cannot_be_added_where_no_expert_reads_their_texts(data):
    model = Hybrid(experts=("tree",), random_state=0).fit(data.texts, data.Y, data.label_texts)
    with pytest.raises(ModelError, match="'prototypes' or 'names'"):
        model.add_labels(["a new label"])


def test_a_vocabulary_adds_only_concepts_that_are_no_labels_by_any_of_their_names():
    texts, labels = ["red apple", "old car"] * 30, [["fruit"], ["vehicle"]] * 30
    tagger = Tagger("hybrid", model=Hybrid(experts=WORDS), random_state=0).fit(texts, labels)
    concepts = [Concept("x:1", {"en": "fruit"}), Concept("x:2", notation="vehicle"), Concept("x:3", {"en": "bus"})]
    tagger.add_labels(vocabulary=Vocabulary(concepts))
    assert tagger.labels_ == ("fruit", "vehicle", "x:3")
