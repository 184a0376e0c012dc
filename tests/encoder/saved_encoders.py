"""Saved encoders of every architecture, made of random numbers without torch, and a slow twin of what they compute."""

import math

import numpy as np
from tokenizers import Tokenizer, models, pre_tokenizers, processors

from longtail.encoder.schema import TEXT_ENCODER_SCHEMA
from longtail.encoder.tokenizer import tokenize
from longtail.encoder.weights import LAYER_NAMES, encoder_shape, weight_shapes
from longtail.storage import Part, pack_strings

TEXTS = ["red apple", "old car", "a green pear of the garden", "apple", "blue house by the sea " * 9]
SPECIAL = ["<s>", "<pad>", "</s>", "<unk>"]
ARCHITECTURES = [
    ("bert", {}),
    ("bert", {"hidden_act": "gelu_new"}),
    ("bert", {"hidden_act": "quick_gelu"}),
    ("bert", {"hidden_act": "silu"}),
    ("bert", {"hidden_act": "relu"}),
    ("camembert", {}),
    ("distilbert", {}),
    ("electra", {"embedding_size": 8}),
    ("electra", {"embedding_size": 16}),
    ("mpnet", {}),
    ("roberta", {}),
    ("xlm-roberta", {}),
]


def word_tokenizer():
    words = sorted({word for text in TEXTS for word in text.split()})
    numbers = {word: number for number, word in enumerate([*SPECIAL, *words])}
    tokenizer = Tokenizer(models.WordLevel(numbers, unk_token="<unk>"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer.post_processor = processors.BertProcessing(("</s>", 2), ("<s>", 0))
    return tokenizer


def config_of(kind, **entries):
    sizes = {"model_type": kind, "vocab_size": word_tokenizer().get_vocab_size(), "max_position_embeddings": 60}
    if kind == "distilbert":
        return {**sizes, "dim": 16, "n_heads": 2, "n_layers": 2, "hidden_dim": 32, **entries}
    shape = {"hidden_size": 16, "num_attention_heads": 2, "num_hidden_layers": 2, "intermediate_size": 32}
    return {**sizes, **shape, "pad_token_id": 1, **entries}


def saved_encoder(kind="bert", pooling="mean", max_length=50, seed=0, **entries):
    rng = np.random.default_rng(seed)
    config = config_of(kind, **entries)
    arrays = {
        f"weights.{name}": rng.normal(0, 0.3, shape).astype(np.float32) + np.float32(name.endswith("Norm.weight"))
        for name, shape in weight_shapes(encoder_shape(config)).items()
    }
    params = {"config": config, "pooling": pooling, "max_length": max_length}
    return Part(TEXT_ENCODER_SCHEMA.kind, params, arrays | pack_strings("tokenizer", [word_tokenizer().to_str()]))


def encode_plain(part, texts):
    """Encode one text after the other, without padding, in double precision."""
    rows = tokenize(word_tokenizer(), texts, part.params["max_length"])
    shape = encoder_shape(part.params["config"])
    weights = {name.removeprefix("weights."): array.astype(np.float64) for name, array in part.arrays.items()}
    states = [_states_plain(shape, weights, row.tolist()) for row in rows]
    return np.array([s.mean(axis=0) if part.params["pooling"] == "mean" else s[0] for s in states])


def _states_plain(shape, weights, tokens):
    def linear(x, name):
        return x @ weights[f"{name}.weight"].T + weights[f"{name}.bias"]

    def norm(x, name):
        centred = x - x.mean(axis=1, keepdims=True)
        scaled = centred / np.sqrt((centred**2).mean(axis=1, keepdims=True) + shape.epsilon)
        return scaled * weights[f"{name}.weight"] + weights[f"{name}.bias"]

    n, names = len(tokens), LAYER_NAMES[shape.architecture]
    x = weights["embeddings.word_embeddings.weight"][tokens]
    x = x + weights["embeddings.position_embeddings.weight"][shape.first_position : shape.first_position + n]
    if shape.types:
        x = x + weights["embeddings.token_type_embeddings.weight"][0]
    x = norm(x, "embeddings.LayerNorm")
    if shape.embedding_width != shape.width:
        x = linear(x, "embeddings_project")
    for number in range(shape.layers):
        layer = f"{names.layer}{number}."
        q, k, v = (linear(x, layer + name) for name in (names.query, names.key, names.value))
        seen = np.zeros_like(x)
        for head in range(shape.heads):
            own = slice(head * shape.width // shape.heads, (head + 1) * shape.width // shape.heads)
            scores = q[:, own] @ k[:, own].T / math.sqrt(shape.width // shape.heads)
            if shape.buckets:
                table = weights["encoder.relative_attention_bias.weight"]
                scores += [[table[bucket_plain(j - i), head] for j in range(n)] for i in range(n)]
            shares = np.exp(scores - scores.max(axis=1, keepdims=True))
            seen[:, own] = shares / shares.sum(axis=1, keepdims=True) @ v[:, own]
        x = norm(x + linear(seen, layer + names.attended), layer + names.attention_norm)
        inner = _activation_plain(shape.activation, linear(x, layer + names.inner))
        x = norm(x + linear(inner, layer + names.outer), layer + names.norm)
    return x


def bucket_plain(step):
    """The bucket of MPNet for a token `step` to the right of another one."""
    distance, side = abs(step), 16 * (step > 0)
    if distance < 8:
        return side + distance
    return side + min(15, 8 + int(math.log2(distance / 8) / math.log2(128 / 8) * 8))


def _activation_plain(kind, x):
    if kind == "relu":
        return np.maximum(x, 0)
    if kind in ("silu", "quick_gelu"):
        return x / (1 + np.exp(-(1.702 if kind == "quick_gelu" else 1.0) * x))
    if kind == "gelu":
        return 0.5 * x * (1 + np.vectorize(math.erf)(x / math.sqrt(2)))
    return 0.5 * x * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)))
