"""Rows in which the beginning of a text counts apart: against a slow version, for any text, saved and loaded."""

from __future__ import annotations

import copy

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

import longtail as lt
from longtail.data import Dataset
from longtail.errors import DataError, DataWarning, ModelError, ParameterError
from longtail.monitoring import Reference
from longtail.pipeline import monitor_dataset, plan_training
from longtail.planning import shape_of
from longtail.storage import Part
from longtail.text import BeginningFeatures, TfidfFeatures, beginning_length, first_words, lexicon, with_pairs

SPACES = " \t\n\r\x0b\x0c\x1c\x1f\x85\xa0\u1680\u2003\u2028\u3000"  # what Python calls white space
TEXTS = st.text(alphabet=st.sampled_from(SPACES + "abB.é\u200b\ufeff\ud800𝒳\x00"), max_size=40)
PIES = [
    "Apple pie: take flour, sugar and a red apple",
    "Sugar beet: take a field and a plough, and wait",
    "Apple tree: plant it in a field and wait for the apple",
    "Pie",
    "",
] * 3


def plain_rows(features, texts, more):
    """The rows of `more` made slowly, of two TfidfFeatures and Python's own split."""

    def start(text):
        return " ".join(text.split()[: features.beginning])

    whole = (features.tfidf or TfidfFeatures()).fit(texts).transform(more).toarray().astype(np.float64)
    pairs = features.of_beginning or TfidfFeatures((1, 2), ngram_weight=0.7)
    first = pairs.fit([start(text) for text in texts]).transform([start(text) for text in more]).toarray()
    joined = np.hstack([whole, features.weight * first])
    lengths = np.linalg.norm(joined, axis=1, keepdims=True)
    return np.divide(joined, lengths, out=np.zeros_like(joined), where=lengths > 0)


def same(a, b):
    assert a.shape == b.shape
    np.testing.assert_array_equal(a.toarray(), b.toarray())


@pytest.mark.parametrize(
    "features",
    [
        BeginningFeatures(beginning=2),
        BeginningFeatures(TfidfFeatures((1, 2), min_df=2), of_beginning=TfidfFeatures(), beginning=3, weight=2.0),
        BeginningFeatures(beginning=1000, weight=0),
    ],
)
def test_rows_are_those_of_two_tfidf_features_side_by_side(features):
    more = [*PIES[:5], "apple", "!!!", "unknown", "PIE apple   sugar\tbeet field"]
    np.testing.assert_allclose(
        features.fit(PIES).transform(more).toarray(), plain_rows(features, PIES, more), atol=2e-7
    )
    same(clone(features).fit_transform(PIES), features.transform(PIES))
    assert features.n_features_ == len(features.get_feature_names_out()) == features.transform(["a"]).shape[1]


@given(TEXTS, st.integers(0, 12))
@settings(deadline=None)
def test_the_beginning_ends_after_so_many_words_whatever_stands_between_them(text, n_words):
    beginning = first_words([text], n_words)[0]
    assert text.startswith(beginning)
    assert beginning.split() == text.split()[:n_words]
    if len(text.split()) > n_words:
        assert beginning == beginning.rstrip()
    else:
        assert beginning == text


@given(st.lists(TEXTS, min_size=1, max_size=6), st.integers(1, 4))
@settings(deadline=None, max_examples=60)
def test_any_text_gets_a_row_of_unit_length_or_of_zeros_or_a_sentence(texts, n_words):
    features = BeginningFeatures(TfidfFeatures(analyzer="char_wb"), beginning=n_words)
    try:
        rows = features.fit_transform([*texts, "one word more"])
    except DataError as error:
        assert str(error).endswith(".")
        return
    lengths = np.linalg.norm(rows.toarray(), axis=1)
    assert np.all((lengths == 0) | (np.abs(lengths - 1) < 1e-5))
    same(features.transform(texts), rows[: len(texts)])


def test_a_beginning_of_more_words_than_any_text_has_is_the_text():
    features = BeginningFeatures(beginning=2**63 - 1).fit(PIES)
    assert features.beginning_.transform(PIES).nnz == TfidfFeatures((1, 2), ngram_weight=0.7).fit_transform(PIES).nnz


def test_auto_is_a_fourth_of_the_mean_length_where_texts_are_long_enough():
    assert beginning_length(["word " * 100, "word " * 60]) == 20
    assert beginning_length(["word " * 10_000]) == 100 and beginning_length(["word " * 31]) == 0
    assert beginning_length(["word " * 32]) == 8 and beginning_length([""]) == 0
    long, short = [f"title {i} " + "word and more words " * 20 for i in range(30)], ["a short title"] * 30
    features = BeginningFeatures().fit(long)
    assert features.n_words_ == 20 and features.beginning_ is not None
    without = BeginningFeatures().fit(short)
    assert without.n_words_ == 0 and without.beginning_ is None
    same(
        without.transform(short), with_pairs(TfidfFeatures()).fit_transform(short)
    )  # a short text is one beginning as a whole
    assert without.get_feature_names_out().tolist() == ["short", "short title", "title"]
    same(BeginningFeatures(beginning=0).fit_transform(short), TfidfFeatures().fit_transform(short))


def test_texts_that_begin_with_signs_alone_have_no_beginning_to_learn():
    texts = ["- " * 20 + "red apple and so on " * 4] * 5
    assert beginning_length(texts) > 0 and BeginningFeatures().fit(texts).n_words_ == 0
    with pytest.warns(DataWarning, match="the beginnings of the texts, 5 words each, hold no word that is kept"):
        features = BeginningFeatures(beginning=5).fit(texts)
    same(features.transform(texts), TfidfFeatures().fit_transform(texts))


def test_beginnings_are_counted_as_whole_texts_are_and_in_pairs_where_these_are_not():
    words = TfidfFeatures(min_df=2, stop_words=["the"], lowercase=False)
    first = BeginningFeatures(words, beginning=3).fit(PIES).beginning_
    assert first.get_params() == {**words.get_params(), "ngrams": (1, 2), "ngram_weight": 0.7}
    runs = BeginningFeatures(TfidfFeatures((1, 3)), beginning=3).fit(PIES).beginning_
    assert (runs.ngrams, runs.ngram_weight) == ((1, 3), 0.35)
    letters = TfidfFeatures((2, 3), analyzer="char_wb")
    chinese = ["\u6211\u7231\u5317\u4eac" * 50, "\u5929\u5b89\u95e8" * 50] * 3
    same(BeginningFeatures(letters).fit_transform(chinese), letters.fit_transform(chinese))


def test_a_no_break_space_parts_words_and_a_beginning_of_all_words_is_the_text():
    features = BeginningFeatures(beginning=1).fit(["red\xa0apple", "old\u3000car"])
    assert features.beginning_.vocabulary_ == ["old", "red"]
    assert first_words(["red\xa0apple  ", "", "one", "one ", " \n one two"], 1) == ["red", "", "one", "one ", " \n one"]


def test_rows_depend_neither_on_threads_nor_on_what_else_is_asked(monkeypatch):
    texts = [f"{text} number {at % 7}" for at, text in enumerate(PIES * 20)]
    one, two = (BeginningFeatures(beginning=3, n_jobs=n).fit(texts) for n in (1, 2))
    monkeypatch.setattr(lexicon, "BLOCK_BYTES", 200, raising=False)
    rows = one.transform(texts)
    same(rows, two.transform(texts))
    same(rows, two.fit_transform(texts))
    for at in (0, 7, 19):
        same(one.transform(texts[at : at + 1]), rows[at : at + 1])
    assert one.transform([]).shape == (0, one.n_features_)


def test_threads_can_be_set_after_fitting():
    features = BeginningFeatures(beginning=2).fit(PIES)
    features.n_jobs = 1
    features.transform(PIES)
    assert features.tfidf_.n_jobs == features.beginning_.n_jobs == 1


def test_words_are_found_where_they_stand_with_the_names_of_their_columns():
    features = BeginningFeatures(beginning=2).fit(PIES)
    names, text = features.get_feature_names_out(), "  Apple\xa0\n pie of sugar, apple"
    found = {(text[start:stop], names[column]) for start, stop, column in features.locate(text)}
    assert found == {
        ("Apple", "apple"),
        ("apple", "apple"),
        ("pie", "pie"),
        ("sugar", "sugar"),
        ("Apple", "beginning: apple"),
        ("pie", "beginning: pie"),
        ("Apple\xa0\n pie", "beginning: apple pie"),
    }
    columns = {column for _, _, column in features.locate(text)}
    assert columns == set(features.transform([text]).indices.tolist())


@pytest.mark.parametrize("beginning", [0, 2, "auto"])
def test_what_is_saved_makes_the_same_rows(beginning):
    words = TfidfFeatures(min_df=2, strip_accents=True)
    features = BeginningFeatures(words, beginning=beginning, weight=0.25).fit(PIES)
    again = BeginningFeatures.from_part(features.to_part())
    same(again.transform(PIES), features.transform(PIES))
    assert again.get_feature_names_out().tolist() == features.get_feature_names_out().tolist()
    assert again.locate("apple pie") == features.locate("apple pie")
    assert again.tfidf.get_params() == features.tfidf_.get_params() and again.weight == 0.25
    same(clone(again).fit_transform(PIES), features.transform(PIES))


def test_a_part_that_contradicts_itself_is_refused():
    part = BeginningFeatures(beginning=2).fit(PIES).to_part()
    with pytest.raises(ModelError, match="'n_words' is 0, and the words of beginnings are there"):
        BeginningFeatures.from_part(Part(part.kind, {**part.params, "n_words": 0}, part.arrays))
    without = BeginningFeatures(beginning=0).fit(PIES).to_part()
    with pytest.raises(ModelError, match="'n_words' is 3, and the words of beginnings are missing"):
        BeginningFeatures.from_part(Part(part.kind, {**without.params, "n_words": 3}, without.arrays))


@pytest.mark.parametrize(
    ("params", "sentence"),
    [
        ({"beginning": "some"}, "beginning must be an integer >= 0 or 'auto'; got 'some'"),
        ({"beginning": -1}, "beginning must be an integer >= 0"),
        ({"beginning": 2.5}, "beginning must be an integer >= 0"),
        ({"beginning": None}, "beginning must be an integer >= 0"),
        ({"weight": -1}, "weight must be a number .*got -1"),
        ({"weight": 1e300}, "weight must be"),
        ({"weight": float("nan")}, "weight must be"),
        ({"tfidf": "words"}, "tfidf must be TfidfFeatures or None; got 'words'"),
        ({"of_beginning": BeginningFeatures()}, "of_beginning must be TfidfFeatures or None"),
        ({"tfidf": TfidfFeatures(min_df=-1)}, "min_df must be"),
        ({"n_jobs": 0}, "n_jobs must be"),
    ],
)
def test_arguments_that_are_not_allowed_get_a_sentence(params, sentence):
    for method in ("fit", "fit_transform"):
        with pytest.raises(ParameterError, match=sentence):
            getattr(BeginningFeatures(**params), method)(PIES)


def test_texts_that_are_none_get_a_sentence_and_so_does_asking_too_early():
    with pytest.raises(DataError, match="texts must hold at least one text"):
        BeginningFeatures().fit([])
    with pytest.raises(DataError, match="texts"):
        BeginningFeatures().fit("one text")
    with pytest.raises(DataError, match="texts"):
        BeginningFeatures().fit([1, 2])
    features = BeginningFeatures(beginning=2).fit(PIES)
    with pytest.raises(DataError, match="text must be a string"):
        features.locate(3)
    for ask in ("transform", "unknown_terms"):
        with pytest.raises(NotFittedError, match="this BeginningFeatures is not fitted yet"):
            getattr(BeginningFeatures(), ask)(["a"])


# --- in a Tagger ------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def data():
    kinds = {"fruit": "red apple and green pear", "vehicle": "old car with a wheel", "sea": "blue whale in the sea"}
    texts = [f"{kind} {words} number {i % 9}" for i in range(40) for kind, words in kinds.items()]
    return Dataset.from_lists(texts, [[kind] for _ in range(40) for kind in kinds])


@pytest.fixture(scope="module")
def tagger(data):
    return lt.Tagger("tree", features=lt.BeginningFeatures(beginning=2), random_state=0).fit_dataset(data)


def test_a_tagger_reads_beginnings_and_is_saved_and_loaded_with_them(tagger, data, tmp_path):
    again = lt.load(tagger.save(tmp_path / "model"))
    assert isinstance(again.features_, lt.BeginningFeatures) and again.features_.n_words_ == 2
    texts = [*data.texts[:6], "", "pear"]
    assert again.tag(texts) == tagger.tag(texts)
    assert again.tag(["fruit"], k=1)[0][0].label == "fruit"
    assert lt.Tagger("ova", features=again.features_).fit_dataset(data).tag(["pear"], k=1)[0][0].label == "fruit"


def test_an_explanation_names_words_of_the_beginning(tagger):
    facts = tagger.explain("fruit red and so on", k=1)["predicted"][0]
    assert facts["label"] == "fruit"
    assert {"fruit", "beginning: fruit", "beginning: red"} <= {word["word"] for word in facts["words"]}


def test_unknown_words_are_compared_with_those_of_the_training(tagger, data):
    assert isinstance(tagger.reference_, Reference)
    other = Dataset.from_lists(["nothing anybody knows here", "other terms"] * 40, [["fruit"]] * 80)
    facts = monitor_dataset(tagger, other)
    assert "nothing" in {fact["word"] for fact in facts["unknown_words"]}


def test_the_plan_knows_the_columns_of_the_rows(tagger, data):
    for features in (lt.BeginningFeatures(beginning=2), lt.BeginningFeatures(beginning=0), lt.BeginningFeatures()):
        shape, rows = shape_of(data, features), features.fit_transform(data.texts)
        assert (shape.n_features, shape.nonzeros_per_row) == (rows.shape[1], pytest.approx(rows.nnz / rows.shape[0]))
        same(shape.X, rows) if features.n_words_ == 0 else None
    plan = plan_training(data, lt.Tagger("tree", features=lt.BeginningFeatures(beginning=2)), probe=False)
    assert plan["features"] == tagger.features_.n_features_


def test_an_update_adds_columns_and_keeps_the_old_ones(tmp_path):
    features = BeginningFeatures(TfidfFeatures(), of_beginning=TfidfFeatures(), beginning=2).fit(PIES)
    wider = features.extended(["Plum jam: take plums", "Plum cake and plums"], n_rows=len(PIES))
    wider = wider.extended(["Rye bread: take rye"], n_rows=len(PIES) + 2)
    n_old = features.n_features_
    same(wider.transform(PIES)[:, :n_old], features.transform(PIES))
    names = wider.get_feature_names_out().tolist()
    assert names[:n_old] == features.get_feature_names_out().tolist()
    assert names[n_old:] == [
        *["cake", "jam", "plum", "plums", "beginning: cake", "beginning: jam", "beginning: plum"],
        *["bread", "rye", "beginning: bread", "beginning: rye"],
    ]
    row = wider.transform(["Rye and plum jam"])
    assert {names[column] for column in row.indices} == {"and", "jam", "plum", "rye", "beginning: rye"}
    assert {names[column] for _, _, column in wider.locate("Rye and plum jam")} == {names[i] for i in row.indices}
    seen = np.diff(wider.transform([*PIES, "Plum jam: take plums", "Plum cake and plums"]).tocsc().indptr)
    found = wider.rows_with_terms(len(PIES) + 2)
    np.testing.assert_allclose(found[n_old : n_old + 7], seen[n_old : n_old + 7], rtol=0.3)
    part = wider.to_part()
    again = BeginningFeatures.from_part(Part(part.kind, part.params, part.arrays))
    same(again.transform([*PIES, "Rye and plum jam"]), wider.transform([*PIES, "Rye and plum jam"]))
    more = ["Oat bread: take oats"]
    same(again.extended(more, 18).transform(more), wider.extended(more, 18).transform(more))


def test_saved_columns_must_be_those_of_the_terms():
    features = BeginningFeatures(beginning=2).fit(PIES).extended(["Plum jam: take plums"], n_rows=len(PIES))
    part = features.to_part()
    part.params["learned"][0][0] += 1
    with pytest.raises(ModelError, match="'learned' says"):
        BeginningFeatures.from_part(part)


def test_a_tagger_learns_new_rows_with_their_words(tagger, tmp_path):
    new = Dataset.from_lists([f"plum jam sweet number {i}" for i in range(20)], [["jam"]] * 20)
    updated = copy.copy(tagger)
    updated.update_dataset(new)
    again = lt.load(updated.save(tmp_path / "model"))
    assert again.tag(["plum"], k=1)[0][0].label == updated.tag(["plum"], k=1)[0][0].label == "jam"
    assert again.tag(["fruit"], k=1)[0][0].label == "fruit"
    assert {"plum", "beginning: plum jam"} <= set(again.features_.get_feature_names_out())
    updated.update_dataset(Dataset.from_lists([f"oat bread number {i}" for i in range(20)], [["bread"]] * 20))
    assert updated.tag(["oat"], k=1)[0][0].label == "bread"
