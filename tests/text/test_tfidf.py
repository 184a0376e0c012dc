"""TfidfFeatures gives scikit-learn's numbers, for any text, any number of threads and any block size."""

from __future__ import annotations

import json
import re
import warnings
from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.pipeline import make_pipeline

from longtail.errors import DataError, ModelError, ParameterError
from longtail.storage import FolderSchema, Part, load_folder, save_folder, unpack_strings
from longtail.text import TfidfFeatures, lexicon
from longtail.text import count_ngrams as counting

LETTERS = "aabbcAB01_ .-\n\x00\x1cäÄßẞİiıΣσςéÉǅ中文字\u0307\u0301\ud800𝒳𐐀ȺKﬁ２²½٣"
WORDS = ["red", "Red", "apple", "a", "the", "ΟΔΟΣ", "İstanbul", "Straße", "naïve", "naïve", "x_1", "don't", "ſt", "K2"]
PEER = {"ngram_weight": 1, "ngram_min_df": 1}  # longer n-grams count as in scikit-learn
NOISE = st.text(alphabet=st.sampled_from(LETTERS), max_size=30)
TEXTS = st.lists(NOISE | st.lists(st.sampled_from(WORDS), max_size=8).map(" ".join), min_size=1, max_size=8)


def assert_same(features: TfidfFeatures, peer: TfidfVectorizer, texts: list[str], more: list[str]) -> None:
    try:
        expected = peer.fit_transform(texts)
    except ValueError:
        with pytest.raises((DataError, ParameterError)):
            features.fit_transform(texts)
        return
    found = features.fit_transform(texts)
    assert features.vocabulary_ == peer.get_feature_names_out().tolist()
    np.testing.assert_allclose(features.idf_, peer.idf_, rtol=1e-6)
    np.testing.assert_allclose(found.toarray(), expected.toarray(), atol=1e-6)
    np.testing.assert_allclose(features.transform(more).toarray(), peer.transform(more).toarray(), atol=1e-6)
    assert found.has_sorted_indices
    assert np.array_equal(found.toarray(), features.transform(texts).toarray())


@given(TEXTS, TEXTS, st.integers(1, 3), st.integers(0, 2), st.booleans(), st.booleans(), st.booleans())
@settings(deadline=None)
def test_words_as_in_scikit_learn(texts, more, low, extra, sublinear, lowercase, strip):
    features = TfidfFeatures(
        (low, low + extra), sublinear_tf=sublinear, lowercase=lowercase, strip_accents=strip, **PEER
    )
    peer = TfidfVectorizer(
        ngram_range=(low, low + extra),
        sublinear_tf=sublinear,
        lowercase=lowercase,
        strip_accents="unicode" if strip else None,
    )
    assert_same(features, peer, texts, more)


@given(TEXTS, TEXTS, st.integers(1, 5), st.integers(0, 2), st.booleans(), st.booleans())
@settings(deadline=None)
def test_characters_as_in_scikit_learn(texts, more, low, extra, lowercase, strip):
    features = TfidfFeatures((low, low + extra), analyzer="char_wb", lowercase=lowercase, strip_accents=strip)
    peer = TfidfVectorizer(
        ngram_range=(low, low + extra),
        analyzer="char_wb",
        sublinear_tf=True,
        lowercase=lowercase,
        strip_accents="unicode" if strip else None,
    )
    assert_same(features, peer, texts, more)


@given(
    TEXTS,
    st.one_of(st.integers(1, 4), st.floats(0, 1)),
    st.one_of(st.integers(1, 4), st.floats(0, 1)),
    st.lists(st.sampled_from([*WORDS, "apple red", "straße"]), max_size=3),
)
@settings(deadline=None)
def test_limits_and_stop_words_as_in_scikit_learn(texts, min_df, max_df, stop_words):
    features = TfidfFeatures((1, 2), min_df=min_df, max_df=max_df, stop_words=stop_words, **PEER)
    peer = TfidfVectorizer(ngram_range=(1, 2), min_df=min_df, max_df=max_df, stop_words=stop_words, sublinear_tf=True)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Your stop_words may be inconsistent")
        assert_same(features, peer, texts, texts)


def random_texts(n: int, seed: int = 0, n_words: int = 3000) -> list[str]:
    rng = np.random.default_rng(seed)
    words = [f"w{i}é" if i % 7 == 0 else f"word{i}" for i in range(n_words)]
    ranks = np.minimum(rng.zipf(1.3, size=(n, 12)), n_words) - 1
    return [" ".join(words[i] for i in row) for row in ranks]


def same_matrix(A, B) -> bool:
    return all(np.array_equal(a, b) for a, b in ((A.indptr, B.indptr), (A.indices, B.indices), (A.data, B.data)))


@pytest.mark.parametrize(("ngrams", "analyzer"), [((1, 2), "word"), ((2, 3), "char_wb")])
def test_threads_and_blocks_change_nothing(monkeypatch, ngrams, analyzer):
    texts = random_texts(300)
    whole = TfidfFeatures(ngrams, analyzer=analyzer, n_jobs=1)
    X = whole.fit_transform(texts)
    monkeypatch.setattr(lexicon, "BLOCK", 500)
    monkeypatch.setattr(counting, "BLOCKS_PER_SHARE", 1)
    for n_jobs in (1, 2, 5):
        cut = TfidfFeatures(ngrams, analyzer=analyzer, n_jobs=n_jobs)
        assert same_matrix(cut.fit_transform(texts), X)
        assert cut.vocabulary_ == whole.vocabulary_
        assert cut.idf_.tobytes() == whole.idf_.tobytes()
        assert same_matrix(cut.transform(texts), X)
        assert same_matrix(TfidfFeatures(ngrams, analyzer=analyzer, n_jobs=n_jobs).fit(texts).transform(texts), X)


def test_most_frequent_terms_are_kept_and_ties_go_by_the_alphabet():
    texts = ["dd dd dd aa bb cc", "dd bb"]
    assert TfidfFeatures(max_features=3).fit(texts).vocabulary_ == ["aa", "bb", "dd"]
    texts = random_texts(200)
    counts = Counter(w for t in texts for w in t.split())
    least = sorted(counts.values(), reverse=True)[49]
    wanted = sum(1 for c in counts.values() if c > least)  # a number of terms at which there is no tie
    features, peer = TfidfFeatures(max_features=wanted), TfidfVectorizer(max_features=wanted, sublinear_tf=True)
    assert_same(features, peer, texts, texts)


def test_more_columns_than_sixteen_bits():
    texts = [" ".join(f"t{i:06d}" for i in range(at, at + 1000)) for at in range(0, 70_000, 1000)]
    features = TfidfFeatures()
    X = features.fit_transform(texts)
    assert X.shape == (70, 70_000)
    assert X.indices.dtype == np.int32
    assert X.indptr.dtype == np.int32
    assert X.data.dtype == np.float32
    assert features.columns(["t069999"]).tolist() == [69_999]
    assert X[[69], [69_999]] > 0


def test_text_without_known_words_is_a_row_of_zeros():
    features = TfidfFeatures().fit(["red apple"])
    X = features.transform(["", "blue", "red"])
    assert np.diff(X.indptr).tolist() == [0, 0, 1]
    assert features.transform([]).shape == (0, 2)


def test_words_that_python_lowercases_by_context():
    features = TfidfFeatures().fit(["ΟΔΟΣ ΟΔΟΣ.", "İstanbul", "K2 ẞẞ"])
    assert features.vocabulary_ == sorted(["οδος", "stanbul", "k2", "ßß"])


def test_columns_takes_terms_exactly():
    features = TfidfFeatures((1, 2), stop_words=["the"]).fit(["the red apple"] * 2)
    terms = ["red apple", "red  apple", " red", "red ", "the red", "Red", "", "red\napple", "red"]
    assert features.columns(terms).tolist() == [2, -1, -1, -1, -1, -1, -1, -1, 1]


@pytest.mark.parametrize(
    ("texts", "sentence"),
    [
        ("one text", "texts must be a list of strings; got one string."),
        (7, "texts must be a list of strings; got int."),
        (["a", None], "texts must hold strings; got NoneType at position 1."),
        ([], "texts must hold at least one text; got none."),
        (
            ["", "a b !"],
            "the texts have no words to learn from: none of them has a word of two letters or digits "
            "or more; analyzer='char_wb' reads characters instead.",
        ),
    ],
)
def test_bad_texts_get_one_sentence(texts, sentence):
    with pytest.raises(DataError) as error:
        TfidfFeatures().fit(texts)
    assert str(error.value) == sentence


def test_pruning_everything_gets_one_sentence():
    with pytest.raises(DataError, match="no term is in at least 3 and at most 3 rows"):
        TfidfFeatures(min_df=3).fit(["red", "red", "blue"])


@pytest.mark.parametrize(
    ("params", "sentence"),
    [
        ({"ngrams": (0, 1)}, r"ngrams\[0\] must be an integer between 1 and 64; got 0."),
        ({"ngrams": (2, 1)}, r"ngrams\[1\] must be an integer between 2 and 64; got 1."),
        ({"ngrams": 2}, r"ngrams must be a pair \(shortest, longest\); got 2."),
        (
            {"analyzer": "words"},
            "analyzer must be 'word', 'char_wb' or 'snowball:LANGUAGE' .of danish, .*; got 'words'.",
        ),
        ({"min_df": 0}, "min_df must be an integer >= 1; got 0."),
        ({"max_df": 1.5}, "max_df must be a number between 0 and 1; got 1.5."),
        ({"min_df": 2, "max_df": 1}, "max_df must allow at least as many rows as min_df"),
        ({"max_features": 0}, "max_features must be an integer >= 1; got 0."),
        (
            {"stop_words": "klingon"},
            "stop_words must be a list of words or a language .danish, .*turkish.; got 'klingon'.",
        ),
        ({"stop_words": [1]}, "stop_words must be a list of words or a language; got"),
        ({"analyzer": "snowball"}, "analyzer must be"),
        ({"analyzer": "snowball:klingon"}, "analyzer must be"),
        ({"stop_words": ["the"], "analyzer": "char_wb"}, "stop_words can only be used with analyzer='word'."),
        ({"ngram_weight": 0}, "ngram_weight must be a number between 0.01 and 1; got 0."),
        ({"ngram_min_df": 0}, "ngram_min_df must be an integer >= 1; got 0."),
        ({"lowercase": 1}, "lowercase must be True or False; got 1."),
    ],
)
def test_bad_parameters_get_one_sentence(params, sentence):
    with pytest.raises(ParameterError, match=sentence):
        TfidfFeatures(**params).fit(["red apple", "red"])


def test_before_fit():
    for use in (lambda f: f.transform(["a"]), lambda f: f.vocabulary_, lambda f: f.to_part(), lambda f: f.locate("a")):
        with pytest.raises(NotFittedError, match=r"not fitted yet; call fit\(texts\) first"):
            use(TfidfFeatures())


def test_scikit_learn_conventions():
    features = TfidfFeatures((1, 2), min_df=2, stop_words=["the"])
    copy = clone(features).set_params(min_df=1)
    assert copy.get_params()["stop_words"] == ["the"]
    assert copy.fit(["the red apple"] * 2) is copy
    X = make_pipeline(TfidfFeatures()).fit_transform(np.array(["red apple", "red car"]))
    assert X.shape == (2, 3)
    assert copy.get_feature_names_out().tolist() == ["apple", "red", "red apple"]


def test_saved_and_loaded(tmp_path):
    texts = [*random_texts(50), "Ärger, the İstanbul 中文"]
    settings = {"ngrams": (1, 2), "max_df": 0.9, "min_df": np.int64(1), "stop_words": {"the", "a"}, "n_jobs": 1}
    features = TfidfFeatures(**settings).fit(texts)
    part = features.to_part()
    json.dumps(part.params)
    assert "n_jobs" not in part.params
    assert unpack_strings("vocabulary", part) == features.vocabulary_
    save_folder(tmp_path / "model", "test.v1", {"features": part})
    folders = {"test.v1": FolderSchema("test.v1", {"features": {"tfidf.v1": TfidfFeatures.schema}})}
    loaded = TfidfFeatures.from_part(load_folder(tmp_path / "model", folders).parts["features"])
    assert same_matrix(loaded.transform(texts), features.transform(texts))
    assert loaded.vocabulary_ == features.vocabulary_
    assert loaded.n_features_ == features.n_features_
    assert loaded.locate(texts[-1]) == features.locate(texts[-1])
    again = loaded.to_part()
    assert again.params == part.params
    assert all(np.array_equal(again.arrays[name], part.arrays[name]) for name in part.arrays)


def damage(part: Part, **changes) -> Part:
    return Part(
        changes.get("kind", part.kind),
        {**part.params, **changes.get("params", {})},
        {**part.arrays, **changes.get("arrays", {})},
    )


def test_longer_runs_of_words_count_less_and_must_be_in_two_rows():
    texts = ["red apple pie", "a red apple", "green apple pie", "red car", "apple pie"]
    words, runs = TfidfFeatures().fit(texts), TfidfFeatures((1, 3)).fit(texts)
    assert sorted(set(runs.vocabulary_) - set(words.vocabulary_)) == ["apple pie", "red apple"]
    full = TfidfFeatures((1, 3), **PEER).fit(texts)
    wanted = full.idf_[full.columns(runs.vocabulary_)] * np.where([" " in t for t in runs.vocabulary_], 0.35, 1)
    np.testing.assert_allclose(runs.idf_, wanted, rtol=1e-6)
    np.testing.assert_allclose(runs.rows_with_terms(5), [4, 3, 1, 1, 3, 3, 2], rtol=1e-5)
    pairs, plain = (TfidfFeatures((2, 2), **more).fit(texts) for more in ({}, PEER))
    assert pairs.vocabulary_ == plain.vocabulary_ and same_matrix(pairs.transform(texts), plain.transform(texts))
    more = runs.extended(["red bus stop", "the bus stop"], n_rows=5)
    assert more.vocabulary_[7:] == ["bus", "bus stop", "stop", "the"]
    np.testing.assert_allclose(more.idf_[8], 0.35 * more.idf_[7], rtol=1e-6)


def test_folders_from_before_keep_the_full_weight_of_runs():
    part = TfidfFeatures((1, 2), **PEER).fit(["red apple"]).to_part()
    old = {name: value for name, value in part.params.items() if not name.startswith("ngram_")}
    loaded = TfidfFeatures.from_part(Part(part.kind, old, part.arrays))
    assert (loaded.ngram_weight, loaded.ngram_min_df) == (1.0, 1)
    assert "blue car" in loaded.extended(["blue car"], n_rows=1).vocabulary_


def test_damaged_parts_are_refused():
    part = TfidfFeatures().fit(["red apple", "blue car"]).to_part()
    offsets = part.arrays["vocabulary.offsets"]
    for changed in (
        damage(part, kind="tfidf.v9"),
        damage(part, params={"ngrams": [1, 0]}),
        damage(part, params={"surprise": 1}),
        damage(part, arrays={"idf": np.ones(3, dtype=np.float32)}),
        damage(part, arrays={"idf": np.full(4, np.nan, dtype=np.float32)}),
        damage(part, arrays={"vocabulary.offsets": offsets + 1}),
        damage(part, arrays={"vocabulary.offsets": offsets[::-1].copy()}),
        damage(part, arrays={"vocabulary.bytes": part.arrays["vocabulary.bytes"][:-1]}),
        damage(part, arrays={"vocabulary.bytes": np.full_like(part.arrays["vocabulary.bytes"], 0xFF)}),
        Part(part.kind, part.params, {}),
    ):
        with pytest.raises(ModelError):
            TfidfFeatures.from_part(changed)


@given(TEXTS, st.integers(1, 3), st.integers(0, 2), st.sampled_from(["word", "char_wb"]), st.booleans(), st.booleans())
@settings(deadline=None)
def test_located_terms_are_the_terms_of_the_row(texts, low, extra, analyzer, lowercase, strip):
    features = TfidfFeatures(
        (low, low + extra), analyzer=analyzer, lowercase=lowercase, strip_accents=strip, sublinear_tf=False
    )
    try:
        features.fit(texts)
    except DataError:
        return
    for text in texts:
        found = features.locate(text)
        assert all(0 <= start < end <= len(text) for start, end, _ in found)
        counts = Counter(column for *_, column in found)
        counts = {c: n for c, n in counts.items() if features.vocabulary_[c].strip()}
        row = features.transform([text])
        assert {c for c in row.indices.tolist() if features.vocabulary_[c].strip()} == set(counts)
        # without sublinear tf, weight / idf is proportional to the count
        ratio = {row.data[i] / features.idf_[c] / counts[c] for i, c in enumerate(row.indices) if c in counts}
        assert not ratio or max(ratio) - min(ratio) < 1e-5


@pytest.mark.parametrize(
    ("fit", "text", "params", "wanted"),
    [
        (["red apple"], "One RED  apple!", {"ngrams": (2, 2)}, ["RED  apple"]),
        (["red apple"], "Red OF apple", {"ngrams": (2, 2), "stop_words": ["of"]}, ["Red OF apple"]),
        (["stanbul kk"], "İİ İstanbul Kk", {}, ["stanbul", "Kk"]),
        (["resume"], "A Re\u0301sume\u0301 ﬁn", {"strip_accents": True}, ["Re\u0301sume"]),
        (["fin"], "a ﬁn", {"strip_accents": True}, ["ﬁn"]),
        (["οδος"], "x ΟΔΟΣ", {}, ["ΟΔΟΣ"]),
        (["ab"], "Abx ab", {"analyzer": "char_wb", "ngrams": (3, 3)}, ["Ab", "ab", "ab"]),
    ],
)
def test_locate_points_into_the_text_as_given(fit, text, params, wanted):
    features = TfidfFeatures(**params).fit(fit)
    assert [text[start:end] for start, end, _ in features.locate(text)] == wanted


def test_locate_wants_one_string():
    with pytest.raises(DataError, match="text must be a string; got list"):
        TfidfFeatures().fit(["red"]).locate(["red"])


def plain_unknown(texts, known, stop_words=()):
    """Return words and unknown words of every text, by regular expression."""
    cut = [[w for w in re.findall(r"(?u)\b\w\w+\b", text.lower()) if w not in stop_words] for text in texts]
    return [len(words) for words in cut], [sum(w not in known for w in words) for words in cut]


@pytest.mark.parametrize("settings", [{}, {"ngrams": (1, 2)}, {"stop_words": ["the", "and"]}, {"min_df": 2}])
def test_unknown_terms_are_the_words_without_a_column(settings):
    learned = ["the red apple and the car", "a red bus", "blue car and red bus", "ÉTÉ à la plage"]
    texts = ["The green apple", "", "und ein roter Apfel und", "été red", "x 1 the"]
    features = TfidfFeatures(**settings).fit(learned)
    found = features.unknown_terms(texts)
    known = set(features.vocabulary_)
    terms, unknown = plain_unknown(texts, known, settings.get("stop_words", ()))
    assert found.terms.tolist() == terms and found.unknown.tolist() == unknown
    assert dict(zip(found.names, found.rows.tolist(), strict=True))["und"] == 1
    assert not set(found.names) & known
    assert TfidfFeatures((2, 2)).fit(learned).unknown_terms(texts) is None


@pytest.mark.parametrize("min_df", [1, 2])
def test_a_word_of_one_text_is_unknown_to_features_learned_without_it(min_df):
    rng = np.random.default_rng(0)
    texts = [" ".join(f"w{int(i)}" for i in rng.zipf(1.5, size=6) % 200) for _ in range(40)]
    found = TfidfFeatures(min_df=min_df).fit(texts).unknown_terms(texts, learned_from=len(texts))
    for i, text in enumerate(texts):
        others = TfidfFeatures(min_df=min_df).fit(texts[:i] + texts[i + 1 :])
        assert found.unknown[i] == others.unknown_terms([text]).unknown[0]


def test_after_new_words_were_learned_only_these_may_be_unknown():
    features = TfidfFeatures().fit(["red apple", "old car"])
    more = ["red bus", "new bus", "red boat"]
    found = features.extended(more, n_rows=2).unknown_terms(more, learned_from=5, first=features.n_features_)
    assert found.unknown.tolist() == [0, 1, 1] and sorted(found.names) == ["boat", "new"]


def test_unknown_pieces_of_words():
    found = TfidfFeatures((2, 3), analyzer="char_wb").fit(["red car"]).unknown_terms(["red", "bus"])
    assert found.unknown[0] == 0 and found.unknown[1] == found.terms[1] > 0


def test_unknown_stems_are_called_by_a_form_of_theirs():
    features = TfidfFeatures(analyzer="snowball:english").fit(["running red cars", "a car"])
    found = features.unknown_terms(["red car runs", "flying machines", "machines fly", "flying"])
    assert found.unknown.tolist() == [0, 2, 2, 1]
    assert dict(zip(found.names, found.rows.tolist(), strict=True)) == {"flying": 3, "machines": 2}
