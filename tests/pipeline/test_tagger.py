"""The Tagger: texts in, names and probabilities out; saved, loaded and explained."""

import json

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

import longtail as lt
from longtail.data import Dataset
from longtail.data.synthetic.generate import make_topics
from longtail.errors import DataError, DataWarning, ModelError, ParameterError
from longtail.pipeline import compare_taggers, evaluate_tagger


@pytest.fixture(scope="module")
def topics():
    return make_topics(400, 12, random_state=0)[0]


@pytest.fixture(scope="module")
def tagger(topics):
    return lt.Tagger(random_state=0).fit_dataset(topics)


def names_of(data):
    return [list(data.labels_of(row)) for row in range(data.n_rows)]


def test_lists_of_names_and_a_matrix_give_the_same_tagger(topics, tagger):
    listed = lt.Tagger(random_state=0).fit(topics.texts, names_of(topics), label_names=topics.label_names)
    matrix = lt.Tagger(random_state=0).fit(list(topics.texts), topics.Y, label_names=topics.label_names)
    for other in (listed, matrix):
        assert other.labels_ == tagger.labels_
        assert other.predict_topk(topics.texts[:50]).ids.tolist() == tagger.predict_topk(topics.texts[:50]).ids.tolist()


def test_it_learns_the_topics(topics, tagger):
    found = tagger.predict(topics.texts)
    right = [set(a) == set(b) for a, b in zip(found, names_of(topics), strict=True)]
    assert np.mean(right) > 0.9


def test_tags_have_names_scores_and_probabilities(topics, tagger):
    row = tagger.tag(topics.texts[:1], k=3)[0]
    assert len(row) == 3 and all(tag.label in tagger.labels_ for tag in row)
    assert [tag.score for tag in row] == sorted((tag.score for tag in row), reverse=True)
    assert all(0 <= tag.probability <= 1 for tag in row)
    P = tagger.predict_proba(topics.texts[:4], k=3)
    assert sp.issparse(P) and P.shape == (4, 12)
    assert P[[0], [tagger.labels_.index(row[0].label)]][0] == pytest.approx(row[0].probability)


def test_without_calibration_there_are_no_probabilities(topics):
    tagger = lt.Tagger(calibrate=0).fit_dataset(topics)
    assert tagger.tag(topics.texts[:1])[0][0].probability is None and tagger.held_out_ is None
    assert not hasattr(tagger, "predict_proba")
    with pytest.raises(AttributeError, match="has no calibration"):
        tagger.predict_proba(topics.texts[:1])
    assert tagger.predict(topics.texts[:1])[0]


def test_few_rows_are_not_calibrated():
    tagger = lt.Tagger().fit(["red apple", "blue car"] * 3, [["a"], ["b"]] * 3)
    assert tagger.held_out_ is None and tagger.predict(["an apple"]) == [("a",)]


def test_explanations_name_the_words_and_add_up(topics, tagger):
    text = topics.texts[3]
    facts = tagger.explain(text, k=2)
    json.dumps(facts)
    for found in facts["predicted"]:
        assert sum(w["weight"] for w in found["words"]) + found["bias"] == pytest.approx(found["margin"], abs=1e-4)
        for word in found["words"]:
            assert word["spans"] and all(text[a:b].lower() == word["word"] for a, b in word["spans"])
    wanted = tagger.labels_[-1]
    assert [found["label"] for found in tagger.explain(text, labels=[wanted])["predicted"]] == [wanted]
    with pytest.raises(ParameterError, match="label must be one the model knows; got 'no such label'"):
        tagger.explain(text, labels=["no such label"])
    with pytest.raises(DataError, match="explain takes one text; got list"):
        tagger.explain([text])


def test_save_and_load(tmp_path, topics, tagger):
    tagger.save(tmp_path / "m")
    found = lt.load(tmp_path / "m")
    assert isinstance(found, lt.Tagger) and found.labels_ == tagger.labels_
    assert found.label_texts_ == tagger.label_texts_ and found.held_out_ == tagger.held_out_
    assert found.tag(topics.texts[:20]) == tagger.tag(topics.texts[:20])
    assert found.predict(topics.texts[:20]) == tagger.predict(topics.texts[:20])
    assert found.explain(topics.texts[0]) == tagger.explain(topics.texts[0])


def test_the_same_seed_gives_the_same_bytes_for_any_number_of_threads(tmp_path, topics):
    for n_jobs in (1, 2):
        lt.Tagger(random_state=4, n_jobs=n_jobs).fit_dataset(topics).save(tmp_path / str(n_jobs))
    files = [{p.name: p.read_bytes() for p in (tmp_path / n).iterdir()} for n in ("1", "2")]
    assert files[0] == files[1]


def test_rows_instead_of_texts(tmp_path, topics, tagger):
    X = tagger.rows(topics.texts)
    other = lt.Tagger(random_state=0).fit(X, names_of(topics))
    assert other.predict_topk(X[:5]).ids.shape == (5, 5)
    other.save(tmp_path / "rows")
    assert lt.load(tmp_path / "rows").predict(X[:5]) == other.predict(X[:5])
    for not_rows in ([[(409, 0.09)]], ["a text"], "a text"):
        told = "not on texts: give rows of [0-9]+ features as a matrix, sparse or dense; got (list|str)"
        with pytest.raises(DataError, match=told):
            other.tag(not_rows)
    with pytest.raises(DataError, match=r"X must have 2 dimensions; got 1\. Take a single row .* as in X\[\[0\]\]"):
        other.tag(sp.csr_array(X)[0])
    with pytest.raises(DataError, match="was trained on rows of features, not on texts"):
        other.predict(["some text"])
    with pytest.raises(ModelError, match="was trained on rows of features; only models of texts can explain"):
        other.explain("some text")
    with pytest.raises(ModelError, match="only a Tagger that reads words"):
        _with_text_features(other).explain("some text")


def test_a_path_in_place_of_a_dataset_is_told_how_to_be_read():
    with pytest.raises(
        ParameterError, match=r"data must be a Dataset; got str; pass lt\.data\.read\('train\.txt'\)\.$"
    ):
        lt.Tagger().fit_dataset("train.txt")
    with pytest.raises(ParameterError, match=r"data must be a Dataset; got list\.$"):
        lt.Tagger().fit_dataset([["a text"]])


def _with_text_features(tagger):
    class Rows:
        def transform(self, texts):
            return sp.csr_array((len(texts), tagger.model_.n_features_in_), dtype=np.float32)

    other = lt.Tagger()
    other.features_, other.model_, other.labels_ = Rows(), tagger.model_, tagger.labels_
    return other


def test_labels_allowed_and_denied_by_name(topics, tagger):
    first = tagger.tag(topics.texts[:1], k=2)[0]
    assert tagger.tag(topics.texts[:1], k=1, deny=[first[0].label])[0][0].label == first[1].label
    only = tagger.labels_[3]
    assert [t.label for row in tagger.tag(topics.texts[:5], k=2, allow=[only]) for t in row] == [only] * 5
    with pytest.raises(ParameterError, match="allow must be labels the model knows"):
        tagger.tag(topics.texts[:1], allow=["unheard of"])


@pytest.mark.parametrize(
    ("texts", "labels", "sentence"),
    [
        (["a b", "c d"], [["x"]], "texts must have one entry per row"),
        ("one text", [["x"]], "texts must be a list of strings; got one string"),
        (["a b", None], [["x"], ["y"]], "texts must hold strings; got NoneType at position 1"),
        (["ab cd", "ef gh"], ["x", "y"], "labels must be a list of lists of names"),
        (["ab cd"], [[]], "Y must have at least one label"),
        (["ab cd", "ef gh"], [["x"], [""]], r"not be empty strings; got '' at position 1 \(a text without labels"),
    ],
)
def test_bad_input(texts, labels, sentence):
    with pytest.raises(DataError, match=sentence):
        lt.Tagger().fit(texts, labels)


def test_labels_that_differ_only_by_spaces_are_told_of_as_in_files(tmp_path):
    sentence = "the labels 'x' and ' x ' differ only by spaces around them."
    with pytest.warns(DataWarning, match=sentence):
        tagger = lt.Tagger(calibrate=0).fit(["ab cd", "ef gh", "ij kl"], [["x"], [" x "], [" y"]])
    assert tagger.labels_ == (" x ", " y", "x")
    file = tmp_path / "rows.jsonl"
    file.write_text("".join(json.dumps({"text": "ab", "labels": [name]}) + "\n" for name in ("x", " x ")))
    with pytest.warns(DataWarning, match=f"rows.jsonl: {sentence}"):
        lt.data.read(file)


def test_not_fitted_and_bad_parameters(topics):
    with pytest.raises(NotFittedError, match="not fitted yet"):
        lt.Tagger().predict(["x"])
    with pytest.raises(ParameterError, match=r"method must be one of .*; got 'oova'\. Did you mean 'ova'"):
        lt.Tagger("oova").fit_dataset(topics)
    with pytest.raises(ParameterError, match=r"calibrate must be a number between 0 and 0\.5; got 0\.9"):
        lt.Tagger(calibrate=0.9).fit_dataset(topics)
    assert clone(lt.Tagger(calibrate=0.2)).calibrate == 0.2


def test_evaluation_counts_unknown_labels_as_misses(topics, tagger):
    names = [*names_of(topics)[:100]]
    for row in names[:50]:
        row.append("brand new")
    data = Dataset.from_lists(topics.texts[:100], names)
    facts = evaluate_tagger(tagger, data, n_bootstrap=50)
    json.dumps(facts)
    assert facts["data"]["labels_unknown_to_model"] == 1
    plain = evaluate_tagger(tagger, topics.take(slice(0, 100)), n_bootstrap=50)
    assert facts["evaluation"]["metrics"]["p@1"] == plain["evaluation"]["metrics"]["p@1"]
    assert facts["evaluation"]["metrics"]["r@5"]["value"] < plain["evaluation"]["metrics"]["r@5"]["value"]
    assert plain["evaluation"]["calibration"] is not None and len(plain["examples"]) == 5


def test_comparison_sees_through_other_label_numbers(topics, tagger):
    order = list(reversed(topics.label_names))
    other = lt.Tagger(random_state=0).fit(topics.texts, names_of(topics), label_names=order)
    facts = compare_taggers(tagger, other, topics, n_bootstrap=50)
    json.dumps(facts)
    found = facts["comparison"]["metrics"]["p@1"]
    assert abs(found["difference"]) < 0.02 and found["a"] > 0.8


def test_filter_pairs_do_not_count(topics, tagger):
    data = topics.take(slice(0, 60))
    top = tagger.predict_topk(data.texts, k=1)
    pairs = np.column_stack([np.arange(60), top.ids[:, 0]])
    facts = evaluate_tagger(tagger, data, filter_pairs=pairs, n_bootstrap=0, n_examples=0)
    assert facts["evaluation"]["metrics"]["p@1"]["value"] < 0.7
    with pytest.raises(DataError, match="the filter names label 99"):
        evaluate_tagger(tagger, data, filter_pairs=[[0, 99]])


def test_labels_and_texts_of_the_wrong_kind_get_a_sentence(topics):
    with pytest.raises(DataError, match=r"labels must hold the labels of every text; got None\."):
        lt.Tagger().fit(topics.texts, None)
    with pytest.raises(DataError, match="texts must be a list of strings; got dict"):
        lt.Tagger(calibrate=0).fit_dataset(topics).predict({"a": 1})


def test_examples_of_an_evaluation_are_texts_that_people_read(tagger, topics):
    """A text of megabytes takes long to explain, and nobody reads it in a report."""
    texts = ["some words", "some words " * 200_000]
    odd = Dataset.from_lists(texts, [names_of(topics)[0]] * 2)
    examples = evaluate_tagger(tagger, odd, n_bootstrap=2, n_examples=2)["examples"]
    assert len(texts[1]) > 2_000_000 and [example["text"] for example in examples] == ["some words"]
