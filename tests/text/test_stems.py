"""Words that count by their stems: the same rows as stemming every word in plain Python, and names people know."""

from __future__ import annotations

import pickle
import sys
from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.feature_extraction.text import TfidfVectorizer
from tests.storage.hostile import hostile_parts
from tests.text.test_tfidf import NOISE, PEER, damage, random_texts, same_matrix

import longtail as lt
from longtail.errors import LongtailError, MissingExtraError, ModelError
from longtail.storage import Part
from longtail.text import LANGUAGES, TfidfFeatures, lexicon, word_forms
from longtail.text import count_ngrams as counting
from longtail.text.stemmer import stemmer_of
from longtail.text.stop_words import stop_words_of
from longtail.text.unicode_tables import WORD

snowballstemmer = pytest.importorskip("snowballstemmer")
FORMS = ["library", "libraries", "Libraries", "run", "running", "the", "of", "x1s", "cars", "car", "was", "İs"]
TEXTS = st.lists(NOISE | st.lists(st.sampled_from(FORMS), max_size=8).map(" ".join), min_size=1, max_size=8)
GERMAN = ["Die Bücher der Bibliothek", "Das Buch in den Bibliotheken", "Autos und Straßen", "ein Auto auf der Straße"]


def stems_plain(text: str, language: str, stop_words: tuple[str, ...], low: int, high: int) -> list[str]:
    """Plain twin: cut a text into words, leave some out, stem each, and join runs of them."""
    stem = snowballstemmer.stemmer(language).stemWord
    words = [w for w in WORD.findall(text.lower()) if w not in stop_words]
    words = [(stem(w) or w) if w.isalpha() else w for w in words]
    return [" ".join(words[i : i + n]) for i in range(len(words)) for n in range(low, high + 1) if i + n <= len(words)]


@given(TEXTS, TEXTS, st.integers(1, 2), st.integers(0, 1), st.sampled_from([None, "english"]))
@settings(deadline=None, max_examples=40)
def test_rows_are_those_of_stemming_every_word(texts, more, low, extra, stop_words):
    left_out = () if stop_words is None else stop_words_of(stop_words)
    peer = TfidfVectorizer(
        analyzer=lambda text: stems_plain(text, "english", left_out, low, low + extra), sublinear_tf=True
    )
    features = TfidfFeatures((low, low + extra), analyzer="snowball:english", stop_words=stop_words, **PEER)
    try:
        expected = peer.fit_transform(texts)
    except ValueError:
        with pytest.raises(lt.errors.DataError):
            features.fit(texts)
        return
    np.testing.assert_allclose(features.fit_transform(texts).toarray(), expected.toarray(), atol=1e-6)
    assert features.vocabulary_ == peer.get_feature_names_out().tolist()
    np.testing.assert_allclose(features.transform(more).toarray(), peer.transform(more).toarray(), atol=1e-6)
    for text in (*texts, *more):
        located = Counter(features.vocabulary_[column] for *_, column in features.locate(text))
        known = Counter(t for t in stems_plain(text, "english", left_out, low, low + extra) if t in peer.vocabulary_)
        assert located == known


@pytest.mark.parametrize("language", LANGUAGES)
def test_every_language_has_stems_and_stop_words(language):
    words = stop_words_of(language)
    assert len(words) > 80 and all(word == word.lower() and word.isalpha() for word in words)
    features = TfidfFeatures(analyzer=f"snowball:{language}", stop_words=language)
    assert features.fit(["Biblioteka 2024", " ".join(words)]).n_features_ == 2


def test_a_column_has_the_name_of_its_most_frequent_form():
    features = TfidfFeatures(analyzer="snowball:english", ngrams=(1, 2))
    features.fit(["libraries run", "Libraries running", "a library runs", "runs", "running"])
    assert features.vocabulary_ == ["librari", "librari run", "run"]
    # "runs" and "running" twice each: the first by the alphabet
    assert features.get_feature_names_out().tolist() == ["libraries", "libraries running", "running"]


def test_threads_and_blocks_change_nothing(monkeypatch):
    texts = [text.replace(" ", "s ") for text in random_texts(200)] + random_texts(100) + GERMAN
    whole = TfidfFeatures((1, 2), analyzer="snowball:german", n_jobs=1)
    X = whole.fit_transform(texts)
    monkeypatch.setattr(lexicon, "BLOCK", 500)
    monkeypatch.setattr(counting, "BLOCKS_PER_SHARE", 1)
    monkeypatch.setattr(word_forms, "MOST_FORMS", 3)  # words met while tagging are forgotten soon
    for n_jobs in (1, 3):
        cut = TfidfFeatures((1, 2), analyzer="snowball:german", n_jobs=n_jobs)
        assert same_matrix(cut.fit_transform(texts), X)
        assert cut.get_feature_names_out().tolist() == whole.get_feature_names_out().tolist()
        assert same_matrix(cut.transform(texts), X)
        new = [f"Autobahnen{i} Bücherei{chr(97 + i)} Bibliotheks" for i in range(20)]
        assert same_matrix(cut.transform(new), whole.transform(new))
        saved, other = whole.to_part(), cut.to_part()
        assert all(np.array_equal(saved.arrays[name], other.arrays[name]) for name in saved.arrays)


def test_saved_loaded_and_extended():
    features = TfidfFeatures(analyzer="snowball:german", stop_words="german").fit(GERMAN)
    loaded = TfidfFeatures.from_part(features.to_part())
    new = ["Der Bibliothekar mag Büchern", "Straßenautos"]
    assert same_matrix(loaded.transform(new), features.transform(new))
    assert loaded.get_feature_names_out().tolist() == features.get_feature_names_out().tolist()
    assert same_matrix(pickle.loads(pickle.dumps(loaded)).transform(new), features.transform(new))  # noqa: S301
    more = loaded.extended(["Räder am Rad", "ein Buch"], n_rows=4)
    assert more.vocabulary_[: features.n_features_] == features.vocabulary_
    assert more.vocabulary_[features.n_features_ :] == ["rad"]
    assert more.get_feature_names_out()[-1] == "rad"
    assert more.transform(["Büchern"]).nnz == 1


def test_known_words_keep_the_stems_they_were_learned_with(monkeypatch):
    """Another version of the rules changes nothing about words that were in the texts."""
    features = TfidfFeatures.from_part(TfidfFeatures(analyzer="snowball:english").fit(["cars run"]).to_part())
    monkeypatch.setattr(stemmer_of("english"), "_kept", {"cars": "xx", "run": "yy"})
    assert features.transform(["cars run"]).nnz == 2


def test_without_the_package_one_sentence_says_what_to_install(monkeypatch):
    features = TfidfFeatures(analyzer="snowball:english").fit(["cars run"])
    monkeypatch.setitem(sys.modules, "snowballstemmer", None)
    stemmer_of.cache_clear()
    sentence = r"The analyzer 'snowball:english' needs the package 'snowballstemmer'; .*pip install 'longtail\[stem\]'"
    loaded = TfidfFeatures.from_part(features.to_part())
    for use in (
        lambda: loaded.transform(["cars"]),
        loaded.build,
        lambda: TfidfFeatures(analyzer="snowball:english").fit(["a car"]),
    ):
        with pytest.raises(MissingExtraError, match=sentence):
            use()
    assert loaded.get_feature_names_out().tolist() == ["cars", "run"]


def test_damaged_forms_are_refused():
    part = TfidfFeatures(analyzer="snowball:english", stop_words=["of"]).fit(["cars of car", "run to"]).to_part()
    raw, stems = part.arrays["forms.bytes"], part.arrays["forms.stems"]
    doubled = np.frombuffer(raw.tobytes().replace(b"carcars", b"carcar "), dtype=np.uint8)
    other = np.frombuffer(raw.tobytes().replace(b"to", b"of"), dtype=np.uint8)
    word = TfidfFeatures().fit(["cars of car", "run to"]).to_part()
    for changed in (
        damage(part, arrays={"forms.stems": stems + 3}),
        damage(part, arrays={"forms.stems": stems - 1}),
        damage(part, arrays={"forms.bytes": doubled}),
        damage(part, arrays={"forms.bytes": other}),
        damage(part, arrays={"forms.bytes": np.full_like(raw, 0xFF)}),
        damage(part, params={"analyzer": "word"}),
        damage(part, params={"analyzer": "snowball:klingon"}),
        damage(word, params={"analyzer": "snowball:english"}),
        Part(part.kind, part.params, {k: v for k, v in part.arrays.items() if k != "forms.stems"}),
    ):
        with pytest.raises(ModelError):
            TfidfFeatures.from_part(changed)


def test_any_change_of_a_saved_part_is_refused_or_harmless():
    features = TfidfFeatures((1, 2), analyzer="snowball:english", stop_words="english")
    part = features.fit(["red cars and a car", "red cars", "old apples"]).to_part()
    for change, changed, must_refuse in hostile_parts(part, TfidfFeatures.schema):
        try:
            loaded = TfidfFeatures.from_part(changed)
        except LongtailError as error:
            assert "\n" not in str(error)
            continue
        assert not must_refuse, change
        loaded.transform(["red cars", "apple of the", ""])
        loaded.locate("The Cars, the apples")
        assert len(loaded.get_feature_names_out()) == loaded.n_features_


def test_a_tagger_explains_updates_and_is_saved_with_stems(tmp_path):
    texts = ["Bücher in Bibliotheken", "ein Buch", "schnelle Autos", "das Auto"] * 15
    labels = [["lesen"], ["lesen"], ["fahren"], ["fahren"]] * 15
    features = lt.TfidfFeatures(analyzer="snowball:german", stop_words="german")
    tagger = lt.Tagger(features=features, random_state=0, n_jobs=1).fit(texts, labels)
    words = tagger.explain("Autobahn, des Autos und einer Bibliothek", k=1)["predicted"][0]["words"]
    assert {word["word"] for word in words} == {"autos", "bibliotheken"}
    tagger.partial_fit(["Die Bäume", "Ein Baum im Wald"] * 6, [["pflanzen"]] * 12)
    assert tagger.predict_topk(["alte Bäumen"], k=1).ids.tolist() == [[tagger.labels_.index("pflanzen")]]
    tagger.save(tmp_path / "model")
    loaded = lt.load(tmp_path / "model")
    new = ["die Bäume", "Büchern", "unbekanntes"]
    assert loaded.predict_topk(new).scores.tobytes() == tagger.predict_topk(new).scores.tobytes()
