"""Texts longer than an encoder reads at once: cut into chunks of tokens, averaged, saved and loaded."""

from __future__ import annotations

import numpy as np
import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")
pytestmark = pytest.mark.torch

from longtail.encoder import TextEncoder, new_text_encoder, open_encoder
from longtail.errors import ModelError, ParameterError
from longtail.pipeline import folder_schemas
from longtail.prime.estimator import Prime
from longtail.prime.features import PrimeFeatures
from longtail.storage import load_folder

WORDS = ["apple", "pear", "train", "wheel", "chess", "poker", "river", "ocean"]
SMALL = {"width": 16, "layers": 1, "heads": 2}


def unit(rows):
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


@pytest.fixture
def encoder():
    torch.manual_seed(0)
    return new_text_encoder([" ".join(WORDS)], max_length=6, **SMALL).eval()  # four words and two special tokens


def test_the_mean_of_chunks_is_weighted_by_their_tokens(encoder):
    texts = [" ".join(WORDS[:7]), "apple", " ".join(WORDS * 4)]
    whole = unit(encoder.encode(texts))  # beginnings alone
    four = unit(encoder.encode([" ".join(WORDS[:4]), " ".join(WORDS[4:7]), " ".join(WORDS[4:8])]))
    np.testing.assert_allclose(whole[0], four[0], atol=1e-6)
    encoder.long_texts = "chunks"
    found = encoder.encode(texts)
    np.testing.assert_allclose(found[0], unit([4 * four[0] + 3 * four[1]])[0], atol=1e-6)
    np.testing.assert_allclose(found[1], whole[1], atol=1e-6)  # a short text is what it was
    np.testing.assert_allclose(found[2], unit([2 * four[0] + 2 * four[2]])[0], atol=1e-6)  # four chunks, no more
    encoder.long_texts = "both"
    np.testing.assert_allclose(encoder.encode(texts)[0], unit([found[0] + whole[0]])[0], atol=1e-6)
    assert encoder.encode([]).shape == (0, 16)


def test_saved_encoders_keep_it(encoder):
    assert "long_texts" not in encoder.to_part().params  # as older versions wrote it
    encoder.long_texts = "chunks"
    part = encoder.to_part()
    texts = [" ".join(WORDS)]
    np.testing.assert_array_equal(TextEncoder.from_part(part).encode(texts), encoder.encode(texts))
    part.params["long_texts"] = "middle"
    with pytest.raises(ModelError, match="long_texts"):
        TextEncoder.from_part(part)


@pytest.mark.parametrize("how", ["beginning", "chunks", "both"])
def test_without_torch_it_is_the_same(encoder, how):
    pytest.importorskip("onnxruntime")
    encoder.long_texts = how
    texts = [" ".join(WORDS * 5), "apple", " ".join(WORDS[:7]), ""]
    found = open_encoder(encoder.to_part(), runtime="onnx").encode(texts)
    np.testing.assert_allclose(found, encoder.encode(texts), atol=1e-5)


def rows_of(n_rows=160, seed=0):
    """Texts whose labels are named at the end, after words that say nothing."""
    rng = np.random.default_rng(seed)
    texts, Y = [], np.zeros((n_rows, 8), dtype=np.float32)
    for row in range(n_rows):
        label = int(rng.integers(8))
        Y[row, label] = 1
        told = " ".join([WORDS[label]] * 4)
        texts.append(told if row % 2 else f"one text of {told}")  # read to the end, or to "of"
    return texts, Y, WORDS


@pytest.mark.parametrize("epochs", [0, 6])
def test_what_stands_at_the_end_counts(epochs, tmp_path):
    texts, Y, names = rows_of()
    settings = {"max_length": 5, "epochs": epochs, "lr": 1e-2, "batch_size": 40, "device": "cpu", "random_state": 0}
    model = Prime(SMALL, "prime-lite", long_texts="chunks", classifier=True, n_jobs=1, **settings).fit(texts, Y, names)
    other = Prime(SMALL, "prime-lite", classifier=True, n_jobs=1, **settings).fit(texts, Y, names)
    assert model.score(texts, Y) > other.score(texts, Y) + 0.2
    part = load_folder(model.save(tmp_path / "model"), folder_schemas()).parts["model"]
    loaded = Prime.from_part(part)
    assert loaded.long_texts == "chunks"
    np.testing.assert_array_equal(loaded.predict_topk(texts, k=3).scores, model.predict_topk(texts, k=3).scores)
    features = PrimeFeatures(model)
    rows = features.fit_transform(texts)
    restored = PrimeFeatures.from_part(features.to_part())
    np.testing.assert_allclose(restored.transform(texts).toarray(), rows.toarray(), atol=1e-6)
    if epochs:
        words = model.explain_words("one text of poker poker", [5])[0]
        assert words[0]["word"] == "poker"  # beyond the tokens that are read at once


def test_a_word_that_is_none():
    with pytest.raises(ParameterError, match=r"long_texts must be one of \['beginning', 'chunks', 'both'\]; got 'end'"):
        Prime(SMALL, long_texts="end").fit(*rows_of())
