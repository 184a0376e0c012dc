"""Encoders without torch: every architecture equals its slow twin, in any batch and with any number of threads."""

import numpy as np
import pytest

pytest.importorskip("onnxruntime", reason="needs the extra [onnx]")
pytest.importorskip("tokenizers", reason="needs the extra [onnx]")

from tests.encoder.saved_encoders import ARCHITECTURES, TEXTS, bucket_plain, encode_plain, saved_encoder, word_tokenizer

from longtail.encoder import OnnxEncoder, open_encoder, pick_runtime
from longtail.encoder.onnx_encoder import nearness, parts_by_length
from longtail.encoder.tokenizer import cuts_at_spaces, tokenize
from longtail.errors import ModelError, ParameterError
from longtail.storage import Part


def unit(rows):
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


@pytest.mark.parametrize(("kind", "entries"), ARCHITECTURES)
@pytest.mark.parametrize("pooling", ["mean", "cls"])
def test_it_computes_what_its_twin_does(kind, entries, pooling):
    part = saved_encoder(kind, pooling, **entries)
    expected = encode_plain(part, TEXTS)
    encoder = open_encoder(part, runtime="onnx", n_jobs=2)
    assert encoder.width == 16
    np.testing.assert_allclose(unit(encoder.encode(TEXTS)), unit(expected), atol=1e-5)
    rounded = open_encoder(part, runtime="onnx", precision="int8").encode(TEXTS)
    assert (unit(rounded) * unit(expected)).sum(axis=1).min() > 0.995


@pytest.mark.parametrize("precision", ["float32", "int8"])
def test_a_vector_depends_on_its_text_alone(precision):
    part = saved_encoder(seed=3)
    encoder = OnnxEncoder(part, precision=precision, n_jobs=1)
    texts = [" ".join((TEXTS * 2)[i : i + 1 + i % 3]) for i in range(8)] * 5
    together = encoder.encode(texts)
    np.testing.assert_array_equal(np.concatenate([encoder.encode([text]) for text in texts]), together)
    np.testing.assert_array_equal(encoder.encode(texts[::-1])[::-1], together)
    np.testing.assert_array_equal(OnnxEncoder(part, precision=precision, n_jobs=2).encode(texts), together)


def test_weights_of_half_precision_are_read():
    part = saved_encoder()
    half = {n: a.astype(np.float16) if n.startswith("weights.") else a for n, a in part.arrays.items()}
    found = OnnxEncoder(Part(part.kind, part.params, half)).encode(TEXTS)
    np.testing.assert_allclose(unit(found), unit(encode_plain(part, TEXTS)), atol=2e-3)


def test_texts_are_cut_and_none_are_no_error():
    encoder = OnnxEncoder(saved_encoder(max_length=5))
    np.testing.assert_array_equal(encoder.encode(["red old apple car"]), encoder.encode(["red old apple sea by"]))
    assert encoder.encode([]).shape == (0, 16)


def test_a_padding_token_within_a_text_has_no_position():
    part = saved_encoder("roberta")
    found = OnnxEncoder(part).encode(["red <pad> apple"])
    assert np.isfinite(found).all()


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (lambda w: w.pop("weights.embeddings.LayerNorm.bias"), "'embeddings.LayerNorm.bias' must have the shape"),
        (lambda w: w.update({"weights.more": np.zeros(3, dtype=np.float32)}), "has no weights 'more'"),
        (
            lambda w: w.update({"weights.embeddings.word_embeddings.weight": np.zeros((3, 16), dtype=np.float32)}),
            "word_embeddings.weight' must have the shape",
        ),
    ],
)
def test_weights_that_are_not_those_of_the_transformer_are_refused(change, sentence):
    part = saved_encoder()
    arrays = dict(part.arrays)
    change(arrays)
    with pytest.raises(ModelError, match=f"is damaged: .*{sentence}"):
        OnnxEncoder(Part(part.kind, part.params, arrays))


def test_vectors_that_are_not_finite_are_refused():
    part = saved_encoder()
    huge = {n: np.full_like(a, 9e29) if n.endswith("LayerNorm.weight") else a for n, a in part.arrays.items()}
    with pytest.raises(ModelError, match="its vectors are not finite"):
        OnnxEncoder(Part(part.kind, part.params, huge)).encode(TEXTS)


@pytest.mark.parametrize(
    ("entries", "sentence"),
    [
        ({"max_position_embeddings": 1}, "too few positions"),
        ({"relative_attention_num_buckets": 8}, "too few positions .1?|buckets of distances .8."),
        ({"num_attention_heads": 3}, "multiple of its heads"),
    ],
)
def test_a_configuration_that_cannot_be_is_refused(entries, sentence):
    part = saved_encoder("mpnet")
    broken = Part(part.kind, {**part.params, "config": {**part.params["config"], **entries}}, part.arrays)
    with pytest.raises(ModelError, match=sentence):
        OnnxEncoder(broken)


def test_what_only_torch_runs_gets_one_sentence():
    with pytest.raises(ParameterError, match="runtime must not be 'onnx' for an encoder of type 'albert'"):
        pick_runtime("onnx", "float32", "albert")
    with pytest.raises(ParameterError, match="encoder_precision must not be 'int8' for an encoder of type 'albert'"):
        pick_runtime("auto", "int8", "albert")
    with pytest.raises(ParameterError, match="encoder_precision must be 'float32' with runtime='torch'"):
        pick_runtime("torch", "int8", "bert")
    with pytest.raises(ParameterError, match="device must be None or 'cpu' with runtime='onnx'; got 'cuda:1'"):
        pick_runtime("onnx", "float32", "bert", "cuda:1")
    with pytest.raises(ParameterError, match="runtime must be one of"):
        pick_runtime("onnxruntime", "float32", "bert")
    with pytest.raises(ParameterError, match="precision must be one of"):
        OnnxEncoder(saved_encoder(), precision="int4")
    assert pick_runtime("auto", "float32", "albert") == "torch"


def test_distances_are_put_in_buckets():
    table = np.arange(64, dtype=np.float32).reshape(32, 2)
    found = nearness(table, 300)
    steps = [(0, 5), (5, 0), (0, 8), (40, 3), (3, 40), (0, 127), (0, 130), (299, 0), (7, 7), (0, 15), (100, 150)]
    for i, j in steps:
        np.testing.assert_array_equal(found[0, :, i, j], table[bucket_plain(j - i)])


def test_parts_hold_every_text_once():
    lengths = np.random.default_rng(0).integers(0, 300, 200)
    parts = parts_by_length(lengths, 256)
    assert sorted(np.concatenate(parts)) == np.flatnonzero(lengths).tolist()
    assert all(part.size == 1 or part.size * lengths[part].max() <= 256 for part in parts)


def test_a_long_text_has_the_tokens_of_the_whole():
    from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors

    words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "a", "red", "##der", "apple", ",", "é", "e"]
    tokenizer = Tokenizer(models.WordPiece({word: n for n, word in enumerate(words)}, unk_token="[UNK]"))
    tokenizer.normalizer, tokenizer.pre_tokenizer = normalizers.BertNormalizer(), pre_tokenizers.BertPreTokenizer()
    tokenizer.post_processor = processors.BertProcessing(("[SEP]", 3), ("[CLS]", 2))
    assert cuts_at_spaces(tokenizer) and not cuts_at_spaces(word_tokenizer())
    rng = np.random.default_rng(0)
    pieces = ["a", "redder", "apple,", "  ", "\n", "x" * 300, "e\u0301", "\u0301", "\u00a0", "red", "."]
    texts = [" ".join(rng.choice(pieces, rng.integers(1, 200))) for _ in range(60)] + [
        "x" * 500,
        "a" + " " * 900 + "red",
    ]
    for max_length in (3, 8, 40):
        tokenizer.enable_truncation(max_length)
        expected = [row.ids for row in tokenizer.encode_batch(texts)]
        assert [row.tolist() for row in tokenize(tokenizer, texts, max_length)] == expected
    tokenizer.add_tokens(["red apple"])
    assert not cuts_at_spaces(tokenizer)
