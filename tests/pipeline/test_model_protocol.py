"""A model that nobody knows needs nothing but the protocol: a Tagger trains, plans, explains, saves or refuses it."""

import json

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.feature_extraction.text import CountVectorizer

import longtail as lt
from longtail.data import Dataset, GroupedDataset, TopK
from longtail.errors import DataError, LongtailError, ModelError, ParameterError
from longtail.model import Explanation, LinearLayer, RowClassifier, XMCEstimator
from longtail.pipeline import (
    FEATURES,
    METHODS,
    MODELS,
    audit_model,
    evaluate_tagger,
    label_facts,
    model_facts,
    page_tree,
    plan_training,
    tree_facts,
)
from longtail.storage import ArraySpec, ParamSpec, Part, PartSchema, Whole
from longtail.validate import as_sparse

TEXTS = ["red apple", "green apple", "fast car", "old car"] * 20
LABELS = [["fruit", "red"], ["fruit"], ["vehicle"], ["vehicle"]] * 20


class Bare(RowClassifier):
    """The least a model can be: it always gives the most frequent labels."""

    def __init__(self, random_state=None):
        self.random_state = random_state

    def fit(self, X, Y, progress=None):
        self._begin_fit(X, Y)
        return self

    def predict_topk(self, X, k=5, *, allow=None, deny=None):
        rows = self._check_rows(X)
        return TopK.from_scores(np.tile(self.label_counts_.astype(np.float32), (rows.shape[0], 1)), k)


class Means(Bare):
    """A model with everything: the mean row of each label is its weights."""

    kind = "means.v1"
    schema = PartSchema(
        kind,
        params=(ParamSpec("random_state", Whole(none=True)), ParamSpec("n_rows", Whole())),
        arrays=(
            ArraySpec("weights", "float32 float64", ("n_labels", "n_features")),
            ArraySpec("label_counts", "int64", ("n_labels",), low=0),
        ),
    )

    def fit(self, X, Y, progress=None):
        rows, labels = self._begin_fit(X, Y)
        self.weights_ = np.asarray((labels.T @ as_sparse(rows)).toarray() / np.maximum(self.label_counts_, 1)[:, None])
        return self

    def predict_topk(self, X, k=5, *, allow=None, deny=None):
        scores = as_sparse(self._check_rows(X)) @ self.weights_.T
        return TopK.from_scores(np.asarray(scores, dtype=np.float32), k)

    def explain(self, X, labels):
        ids, values = self._one_row(X, normalize=False)
        out = []
        for label in labels:
            parts = [(int(f), float(v * self.weights_[label, f])) for f, v in zip(ids, values, strict=True)]
            score = sum(weight for _, weight in parts)
            out.append(Explanation(int(label), score, score, 0.0, parts, []))
        return out

    def output_layer(self):
        return LinearLayer(self.weights_)

    def to_part(self):
        params = {**self.saved_params(), "n_rows": self.n_rows_}
        return Part(self.kind, params, {"weights": self.weights_, "label_counts": self.label_counts_})

    @classmethod
    def from_part(cls, part):
        params = dict(part.params)
        n_rows = params.pop("n_rows")
        model = cls(**params)
        model.weights_, model.label_counts_, model.n_rows_ = part.array("weights"), part.array("label_counts"), n_rows
        model.n_labels_, model.n_features_in_ = model.weights_.shape
        return model


@pytest.fixture(scope="module")
def bare():
    return lt.Tagger(model=Bare(), random_state=0).fit(TEXTS, LABELS)


@pytest.fixture(scope="module")
def means():
    return lt.Tagger(model=Means(), random_state=0).fit(TEXTS, LABELS)


def test_a_bare_model_is_trained_calibrated_and_asked(bare):
    assert bare.method_name == "Bare" and bare.model_.random_state == 0
    assert bare.tag(["anything"], k=1)[0][0].label == "fruit"
    assert 0 <= bare.tag(["anything"], k=1)[0][0].probability <= 1
    assert bare.held_out_["rows"] == 8 and "p@1" in bare.held_out_["metrics"]
    facts = evaluate_tagger(bare, Dataset.from_lists(TEXTS, LABELS), n_bootstrap=10, n_examples=0)
    assert facts == json.loads(json.dumps(facts)) and facts["model"]["model"] == "Bare"


def test_what_a_bare_model_cannot_is_refused_in_one_sentence(bare, tmp_path):
    data = Dataset.from_lists(TEXTS, LABELS)
    for ask, sentence in (
        (lambda: bare.explain("red apple"), "Bare cannot explain itself"),
        (lambda: bare.save(tmp_path / "model"), "Bare cannot be saved"),
        (lambda: bare.add_labels(["tool"]), "the model is a Bare, which knows labels by their rows"),
        (lambda: audit_model(bare), "Bare has no linear output layer"),
        (lambda: tree_facts(bare), "the model is a Bare and has no label tree"),
        (lambda: label_facts(bare, "fruit"), "the model is a Bare and has no label tree"),
        (lambda: plan_training(data, lt.Tagger(model=Bare())), "there is no plan for Bare"),
    ):
        with pytest.raises(LongtailError, match=sentence) as error:
            ask()
        assert "\n" not in str(error.value)
    assert page_tree(bare) is None
    bare.build()  # nothing to do


def test_a_model_that_answers_is_explained_audited_and_described(means):
    first = means.explain("one red apple", k=2)["predicted"][0]
    assert first["label"] in ("red", "fruit")
    assert {word["word"] for word in first["words"]} == {"red", "apple"}
    assert sum(word["weight"] for word in first["words"]) == pytest.approx(first["margin"])
    assert first["words"][0]["spans"]
    assert audit_model(means).facts["layer"]["source"] == "Means"
    assert model_facts(means)["params"] == {"random_state": 0}


def test_a_registered_model_is_saved_and_loaded(means, tmp_path, monkeypatch):
    folder = means.save(tmp_path / "model")
    with pytest.raises(ModelError, match=r"has a part of the kind 'means.v1'; this longtail knows"):
        lt.load(folder)
    monkeypatch.setitem(MODELS, Means.kind, Means)
    loaded = lt.load(folder)
    assert loaded.method_name == "Means" and loaded.tag(["old car"]) == means.tag(["old car"])
    for check in lt.checks.CHECKS:
        check(Means())


def test_the_tables_name_every_class_by_its_own_kind_and_method():
    assert {kind: saved.kind for kind, saved in {**MODELS, **FEATURES}.items()} == {k: k for k in (*MODELS, *FEATURES)}
    assert {name: model.tagger_method for name, model in METHODS.items()} == {name: name for name in METHODS}
    assert [model for model in MODELS.values() if model.tagger_method] == list(METHODS.values())


def test_a_model_without_the_protocols_fit_says_so():
    class Untrained(XMCEstimator):
        pass

    with pytest.raises(ModelError, match="Untrained cannot be trained"):
        lt.Tagger(model=Untrained()).fit(TEXTS, LABELS)


def test_a_row_model_is_asked_where_labels_of_groups_belong(monkeypatch):
    asked, fit = [], Means.fit
    monkeypatch.setattr(Means, "fit", lambda self, X, Y, progress=None: asked.append(X) or fit(self, X, Y))
    groups = [str(i // 2) for i in range(len(TEXTS))]
    labels = {str(g): ["fruit"] if g % 2 == 0 else ["vehicle"] for g in range(len(TEXTS) // 2)}
    data = GroupedDataset.from_lists(TEXTS, groups, labels)
    lt.Tagger(model=Means(), random_state=0).impute(data, rounds=1)
    assert asked


def test_vectorisers_of_scikit_learn_serve_as_features(tmp_path):
    tagger = lt.Tagger("ova", features=CountVectorizer(), random_state=0, calibrate=0).fit(TEXTS, LABELS)
    assert tagger.predict(["an old car"]) == [("vehicle",)]
    with pytest.raises(ModelError, match="only a Tagger that reads words can explain itself by words"):
        tagger.explain("an old car")
    with pytest.raises(ModelError, match="features of the class CountVectorizer cannot be saved"):
        tagger.save(tmp_path / "model")


def test_rows_where_texts_are_wanted_and_the_other_way_round():
    X, Y = sp.csr_array(np.eye(6)), np.eye(6)
    tagger = lt.Tagger(model=Means(), calibrate=0).fit(X, Y)
    with pytest.raises(DataError, match="trained on rows of features, not on texts"):
        tagger.predict(["a text"])
    with pytest.raises(ParameterError, match="on_epoch is for models trained in epochs; got it for Means"):
        lt.Tagger(model=Means()).fit(TEXTS, LABELS, on_epoch=print)


def test_a_model_of_another_method_is_refused():
    with pytest.raises(ParameterError, match="model must be a LabelTreeClassifier with the method 'tree'"):
        lt.Tagger("tree", model=lt.OneVsAllClassifier()).fit(TEXTS, LABELS)


@pytest.mark.torch
def test_a_model_of_groups_can_be_trained_by_a_tagger():
    pytest.importorskip("torch")
    model = lt.MIMLClassifier(concepts=2, hidden=16, epochs=20, lr=0.01)
    tagger = lt.Tagger(model=model, random_state=0).fit(TEXTS, LABELS)
    assert tagger.method_name == "MIMLClassifier" and tagger.held_out_ is not None
    assert tagger.tag(["old car"], k=1)[0][0].label == "vehicle"
