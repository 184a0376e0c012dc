"""Which weights a transformer of a given configuration has, by name and shape; known without torch.

The architectures here differ in names, in where positions are counted from and in a bias of the attention; all of them
are layers of attention and of a feed-forward network, each added to its input and normalised.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from longtail.encoder.schema import PADDING_FIRST, encoder_width, longest_text_of

Shapes = dict[str, tuple[int, ...]]


class LayerNames(NamedTuple):
    """What an architecture calls the weights of a layer."""

    layer: str  # before the number of the layer
    query: str
    key: str
    value: str
    attended: str  # from the heads back to the width
    attention_norm: str
    inner: str
    outer: str
    norm: str


_BERT = LayerNames(
    "encoder.layer.",
    "attention.self.query",
    "attention.self.key",
    "attention.self.value",
    "attention.output.dense",
    "attention.output.LayerNorm",
    "intermediate.dense",
    "output.dense",
    "output.LayerNorm",
)
_MPNET = _BERT._replace(
    query="attention.attn.q",
    key="attention.attn.k",
    value="attention.attn.v",
    attended="attention.attn.o",
    attention_norm="attention.LayerNorm",
)
_DISTILBERT = LayerNames(
    "transformer.layer.",
    "attention.q_lin",
    "attention.k_lin",
    "attention.v_lin",
    "attention.out_lin",
    "sa_layer_norm",
    "ffn.lin1",
    "ffn.lin2",
    "output_layer_norm",
)
LAYER_NAMES = {
    **dict.fromkeys(("bert", "camembert", "electra", "roberta", "xlm-roberta"), _BERT),
    "distilbert": _DISTILBERT,
    "mpnet": _MPNET,
}
WORDS, POSITIONS = "embeddings.word_embeddings.weight", "embeddings.position_embeddings.weight"
TYPES, EMBEDDING_NORM = "embeddings.token_type_embeddings.weight", "embeddings.LayerNorm"
PROJECTION, RELATIVE = "embeddings_project", "encoder.relative_attention_bias.weight"
MPNET_PADDING, MPNET_BUCKETS = 1, 32  # whatever the configuration says
# what the transformers library takes where a configuration says nothing
DEFAULTS: dict[str, Any] = {
    "hidden_act": "gelu",
    "intermediate_size": 3072,
    "layer_norm_eps": 1e-12,
    "max_position_embeddings": 512,
    "num_hidden_layers": 12,
    "relative_attention_num_buckets": MPNET_BUCKETS,
    "type_vocab_size": 2,
}
OWN_DEFAULTS: dict[str, dict[str, Any]] = {
    "distilbert": {"num_hidden_layers": 6},
    "electra": {"embedding_size": 128, "intermediate_size": 1024},
}
DISTILBERT_NAMES = {  # of entries that the others call by the name on the left
    "hidden_act": "activation",
    "intermediate_size": "hidden_dim",
    "num_attention_heads": "n_heads",
    "num_hidden_layers": "n_layers",
}


class EncoderShape(NamedTuple):
    """The sizes of a transformer and how it computes, as its configuration says."""

    architecture: str
    vocabulary: int
    width: int
    embedding_width: int
    heads: int
    layers: int
    inner: int
    positions: int
    first_position: int  # of a text's first token
    longest: int  # most tokens of a text
    types: int
    buckets: int  # of distances between tokens; 0 without
    activation: str
    epsilon: float


def encoder_shape(config: dict[str, Any]) -> EncoderShape:
    """Return the shape of a transformer from its checked configuration; ValueError for one that needs torch.

    >>> shape = encoder_shape({"model_type": "bert", "vocab_size": 9, "hidden_size": 8, "num_attention_heads": 2})
    >>> shape.width, shape.layers, shape.longest
    (8, 12, 512)
    """
    kind = config["model_type"]
    if kind not in LAYER_NAMES:
        raise ValueError(f"a transformer of type '{kind}' runs by torch only; those that need none: {[*LAYER_NAMES]}")
    width = encoder_width(config)

    def entry(name: str) -> Any:
        own = DISTILBERT_NAMES.get(name, name) if kind == "distilbert" else name
        return config.get(own, OWN_DEFAULTS.get(kind, {}).get(name, DEFAULTS.get(name)))

    padding = config.get("pad_token_id", 1 if kind in PADDING_FIRST else 0)
    first = int(padding or 0) + 1 if kind in PADDING_FIRST else 0
    if kind == "mpnet":
        first = MPNET_PADDING + 1
    positions = entry("max_position_embeddings")
    longest = min(longest_text_of(kind, positions, padding), positions - first)
    buckets = entry("relative_attention_num_buckets") if kind == "mpnet" else 0
    if longest < 1 or 0 < buckets < MPNET_BUCKETS:
        raise ValueError(f"its configuration has too few positions ({positions}) or buckets of distances ({buckets})")
    return EncoderShape(
        architecture=kind,
        vocabulary=config["vocab_size"],
        width=width,
        embedding_width=entry("embedding_size") if kind == "electra" else width,
        heads=entry("num_attention_heads"),
        layers=entry("num_hidden_layers"),
        inner=entry("intermediate_size"),
        positions=positions,
        first_position=first,
        longest=longest,
        types=0 if kind in ("distilbert", "mpnet") else entry("type_vocab_size"),
        buckets=buckets,
        activation=entry("hidden_act"),
        epsilon=DEFAULTS["layer_norm_eps"] if kind == "distilbert" else float(entry("layer_norm_eps")),
    )


def weight_shapes(shape: EncoderShape) -> Shapes:
    """Return names and shapes of all weights of a transformer."""
    out: Shapes = {
        WORDS: (shape.vocabulary, shape.embedding_width),
        POSITIONS: (shape.positions, shape.embedding_width),
        **_norm(EMBEDDING_NORM, shape.embedding_width),
    }
    if shape.types:
        out[TYPES] = (shape.types, shape.embedding_width)
    if shape.embedding_width != shape.width:
        out |= _linear(PROJECTION, shape.embedding_width, shape.width)
    if shape.buckets:
        out[RELATIVE] = (shape.buckets, shape.heads)
    names = LAYER_NAMES[shape.architecture]
    for number in range(shape.layers):
        layer = f"{names.layer}{number}."
        for name in (names.query, names.key, names.value, names.attended):
            out |= _linear(layer + name, shape.width, shape.width)
        out |= _linear(layer + names.inner, shape.width, shape.inner)
        out |= _linear(layer + names.outer, shape.inner, shape.width)
        out |= _norm(layer + names.attention_norm, shape.width) | _norm(layer + names.norm, shape.width)
    return out


def check_shapes(expected: Shapes, weights: Mapping[str, np.ndarray]) -> None:
    """Refuse, by a ValueError, weights that are not those of the transformer."""
    for name, shape in expected.items():
        if name not in weights or weights[name].shape != shape:
            got = weights[name].shape if name in weights else "missing"
            raise ValueError(f"its weights '{name}' must have the shape {shape}; it is {got}")
    unknown = next((name for name in weights if name not in expected), None)
    if unknown is not None:
        raise ValueError(f"its transformer has no weights {unknown[:100]!r}")


def first_sentence(error: BaseException) -> str:
    """Return the beginning of an error's words, on one line; the libraries use paragraphs."""
    return " ".join(str(error).split())[:300].removesuffix(".") or type(error).__name__


def _linear(name: str, columns: int, rows: int) -> Shapes:
    return {f"{name}.weight": (rows, columns), f"{name}.bias": (rows,)}


def _norm(name: str, width: int) -> Shapes:
    return {f"{name}.weight": (width,), f"{name}.bias": (width,)}
