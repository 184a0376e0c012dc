"""Encoders that can be trained: as sentence-transformers has them, small ones from scratch, saved as plain arrays."""

from __future__ import annotations

import json

import numpy as np
import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")
pytestmark = [pytest.mark.torch, pytest.mark.filterwarnings("default")]

from longtail.encoder.features import DEFAULT_ENCODER, find_encoder, load_encoder
from longtail.encoder.text_encoder import TextEncoder, load_text_encoder, new_text_encoder
from longtail.encoder.tokenizer import tokenize
from longtail.encoder.tokens import TokenRows, new_tokenizer
from longtail.errors import DataError, ModelError, ParameterError
from longtail.storage import Part

TEXTS = ["a red apple", "the monetary policy of the central bank, in brief", "Äpfel & Birnen", "x"]


def small(**params):
    torch.manual_seed(0)
    return new_text_encoder(TEXTS, width=16, layers=1, heads=2, **params).eval()


def test_same_vectors_as_sentence_transformers():
    pytest.importorskip("sentence_transformers")
    if find_encoder(DEFAULT_ENCODER) is None:
        pytest.skip(f"{DEFAULT_ENCODER} is not installed")
    expected = load_encoder(DEFAULT_ENCODER, "cpu").encode(TEXTS, normalize_embeddings=True)
    encoder = load_text_encoder(DEFAULT_ENCODER).eval()
    found = encoder.encode(TEXTS)
    found /= np.linalg.norm(found, axis=1, keepdims=True)
    np.testing.assert_allclose(found, expected, atol=1e-5)
    restored = TextEncoder.from_part(encoder.to_part()).eval()
    np.testing.assert_allclose(restored.encode(TEXTS), encoder.encode(TEXTS), atol=1e-5)


def test_one_text_equals_the_batch_and_padding_does_not_count():
    encoder = small()
    together = encoder.encode(TEXTS)
    for row, text in enumerate(TEXTS):
        np.testing.assert_allclose(encoder.encode([text])[0], together[row], atol=1e-6)
    tokens = encoder.tokens(TEXTS)
    states = encoder.backbone(*tokens.pad(np.array([1]))).last_hidden_state
    np.testing.assert_allclose(states[0].mean(dim=0).detach().numpy(), together[1], atol=1e-6)
    assert encoder.encode([]).shape == (0, 16)


def test_rows_of_tokens_are_padded_and_parted_by_length():
    rows = TokenRows([np.arange(n, dtype=np.int32) + 1 for n in (5, 0, 3, 9, 1)], pad_token=7)
    ids, mask = rows.pad(np.array([2, 1]))
    assert ids.tolist() == [[1, 2, 3], [7, 7, 7]]
    assert mask.tolist() == [[1, 1, 1], [0, 0, 0]]
    parts = list(rows.parts_by_length(np.array([3, 0, 4, 2]), budget=18))
    assert sorted(np.concatenate(parts).tolist()) == [0, 1, 2, 3]
    longest = [max(rows.lengths[[3, 0, 4, 2]][part]) for part in parts]
    assert longest == sorted(longest)


def test_tokens_are_cut_at_max_length():
    encoder = small(max_length=5)
    assert encoder.tokens(["apple " * 50]).lengths.tolist() == [5]
    with pytest.raises(DataError, match="texts must be Unicode text; the one of row 1 is not"):
        encoder.tokens(["a", "\ud800"])
    with pytest.raises(DataError, match="texts must be Unicode text; the one of row 2 is not"):
        new_text_encoder(["a", "b", "\ud800 x"])


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({"width": 0}, "width of a new encoder must be an integer between 1 and 8192; got 0."),
        ({"width": 10**9}, "width of a new encoder must be an integer between 1 and 8192; got 1000000000."),
        ({"width": 15, "heads": 2}, "width of a new encoder must be a multiple of its heads (2); got 15."),
        ({"layers": 10**7}, "layers of a new encoder must be an integer between 1 and 96; got 10000000."),
        ({"vocabulary": "x"}, "vocabulary of a new encoder must be an integer between 1 and 10000000; got 'x'."),
        ({"dropout": 2}, "dropout of a new encoder must be a number between 0 and 0.9; got 2."),
        ({"widht": 8}, "['width', 'layers', 'heads', 'vocabulary', 'dropout']; got 'widht'. Did you mean 'width'?"),
        ({"max_length": 10**8}, "max_length must be at most 8192 for a new encoder; got 100000000."),
    ],
)
def test_a_new_encoder_that_cannot_be(given, sentence):
    with pytest.raises(ParameterError) as refused:
        new_text_encoder(TEXTS, **given)
    assert str(refused.value).endswith(sentence)


def test_encoders_that_are_none(tmp_path, caplog):
    pytest.importorskip("sentence_transformers")
    file, folder = tmp_path / "rows.jsonl", tmp_path / "odd"
    file.write_text("{}")
    folder.mkdir()
    (folder / "config.json").write_text('{"model_type": "nope", "hidden_size": 3}')
    for name, error, sentence in [
        ("", ParameterError, "encoder must be the folder or the name of a sentence-transformers model; got ''."),
        (str(file), ParameterError, "rows.jsonl', which is a file."),
        ("nul\0x", ParameterError, "Nothing is downloaded."),
        ("x" * 500, ParameterError, "Nothing is downloaded."),
        (folder, DataError, "the installed transformers library does not know its model_type 'nope'."),
    ]:
        with pytest.raises(error) as refused:
            load_text_encoder(name)
        assert str(refused.value).endswith(sentence) and "\n" not in str(refused.value)
    assert not caplog.records


def test_a_new_vocabulary_is_the_same_every_time_and_knows_every_letter():
    texts = ["green apples", "red apples", "apple trees", "über"]
    a, b = new_tokenizer(texts, 80), new_tokenizer(list(reversed(texts)), 80)
    assert a.to_str() == b.to_str()
    assert a.get_vocab_size() <= 80
    assert "[UNK]" not in a.encode("super trees gruber").tokens
    assert a.encode("apples").tokens == ["[CLS]", "apples", "[SEP]"]
    assert tokenize(a, ["apples"], 10)[0].dtype == np.int32


def test_saved_as_plain_arrays_and_json(tmp_path):
    encoder = small()
    part = encoder.to_part()
    json.dumps(part.params)
    assert all(a.dtype.kind in "fiu" for a in part.arrays.values())
    restored = TextEncoder.from_part(part).eval()
    np.testing.assert_array_equal(restored.encode(TEXTS), encoder.encode(TEXTS))
    half = {n: a.astype(np.float16) if a.dtype == np.float32 else a for n, a in part.arrays.items()}
    rounded = TextEncoder.from_part(Part(part.kind, part.params, half)).eval()
    np.testing.assert_allclose(rounded.encode(TEXTS), encoder.encode(TEXTS), atol=1e-2)
    assert next(rounded.parameters()).dtype == torch.float32
    for broken in (
        Part("tfidf.v1", part.params, part.arrays),
        Part(part.kind, {**part.params, "pooling": "max"}, part.arrays),
        Part(part.kind, {**part.params, "config": {"model_type": "no such"}}, part.arrays),
        Part(part.kind, part.params, {n: a for n, a in part.arrays.items() if "embeddings" not in n}),
    ):
        with pytest.raises(ModelError):
            TextEncoder.from_part(broken)


def test_gradients_reach_the_encoder_in_the_order_of_the_rows():
    encoder = small()
    tokens = encoder.tokens(TEXTS)
    rows = np.array([3, 0, 1])
    found = encoder.embed(tokens, rows)
    np.testing.assert_allclose(found.detach().numpy(), encoder.encode([TEXTS[i] for i in rows]), atol=1e-6)
    found.sum().backward()
    assert all(p.grad is not None for p in encoder.parameters())
