"""The schema of a saved encoder: which transformers are allowed, and every entry of their configuration.

A configuration goes to the transformers library, which would otherwise follow names in it: to a model hub, to code that
comes with a model, to kernels that are downloaded. So only these architectures, these entries and these values are
allowed; none of them is a name of anything but a choice in this file.
"""

from __future__ import annotations

from typing import Any

from longtail.encoder.long_texts import LONG_TEXTS
from longtail.storage import (
    ArraySpec,
    Choice,
    CrossCheck,
    Exactly,
    Flag,
    ListOf,
    OneOf,
    ParamSpec,
    Part,
    PartSchema,
    Real,
    Record,
    Sizes,
    SizeSpec,
    Text,
    Value,
    Whole,
    string_arrays,
)

POOLINGS = ("mean", "cls")
ARCHITECTURES = (
    "albert",
    "bert",
    "camembert",
    "distilbert",
    "electra",
    "modernbert",
    "mpnet",
    "roberta",
    "xlm-roberta",
)
PADDING_FIRST = (
    "camembert",
    "mpnet",
    "roberta",
    "xlm-roberta",
)  # positions are counted from the padding token's number
LONGEST_TEXT = 131_072  # tokens
MOST_LAYERS, WIDEST, MOST_TOKENS = 200, 1 << 15, 1 << 23
ACTIVATIONS = (
    "gelu",
    "gelu_fast",
    "gelu_new",
    "gelu_python",
    "gelu_pytorch_tanh",
    "quick_gelu",
    "relu",
    "silu",
    "swish",
)
# of no meaning for a saved encoder: dropped when it is loaded
WITHOUT_MEANING = (
    "_name_or_path",
    "architectures",
    "dtype",
    "gradient_checkpointing",
    "torch_dtype",
    "transformers_version",
)

_COUNT, _WIDTH, _LAYERS, _SHARE = Whole(0, MOST_TOKENS), Whole(1, WIDEST), Whole(1, MOST_LAYERS), Real(0, 1)
_TOKEN, _ACTIVATION = Whole(0, MOST_TOKENS, none=True), Choice(ACTIVATIONS)
_ROPE = Record({"rope_type": Choice(("default",)), "rope_theta": Real(1, 1e9)})

CONFIG: dict[str, Value] = {
    "model_type": Choice(ARCHITECTURES),
    "vocab_size": Whole(1, MOST_TOKENS),
    # widths and numbers of layers
    "dim": _WIDTH,
    "embedding_size": _WIDTH,
    "hidden_dim": Whole(1, 8 * WIDEST),
    "hidden_size": _WIDTH,
    "inner_group_num": _LAYERS,
    "intermediate_size": Whole(1, 8 * WIDEST),
    "local_attention": Whole(1, LONGEST_TEXT),
    "max_position_embeddings": Whole(1, LONGEST_TEXT),
    "n_heads": _WIDTH,
    "n_layers": _LAYERS,
    "num_attention_heads": _WIDTH,
    "num_hidden_groups": _LAYERS,
    "num_hidden_layers": _LAYERS,
    "relative_attention_num_buckets": Whole(1, 1 << 16),
    "type_vocab_size": Whole(1, 1 << 16),
    # how they compute
    "activation": _ACTIVATION,
    "add_cross_attention": Exactly(False),
    "attention_bias": Flag(),
    "attention_dropout": _SHARE,
    "attention_probs_dropout_prob": _SHARE,
    "chunk_size_feed_forward": Exactly(0),
    "classifier_activation": _ACTIVATION,
    "classifier_bias": Flag(),
    "classifier_dropout": Real(0, 1, none=True),
    "classifier_dropout_prob": _SHARE,
    "classifier_pooling": Choice(("cls", "mean")),
    "decoder_bias": Flag(),
    "deterministic_flash_attn": Exactly(False),
    "dropout": _SHARE,
    "embedding_dropout": _SHARE,
    "global_attn_every_n_layers": Whole(1, MOST_LAYERS),
    "hidden_act": _ACTIVATION,
    "hidden_activation": _ACTIVATION,
    "hidden_dropout_prob": _SHARE,
    "initializer_cutoff_factor": Real(0, 1e3),
    "initializer_range": Real(0, 1e3),
    "is_decoder": Exactly(False),
    "layer_norm_eps": Real(0, 1),
    "layer_types": ListOf(Choice(("full_attention", "sliding_attention")), 1, MOST_LAYERS, none=True),
    "mlp_bias": Flag(),
    "mlp_dropout": _SHARE,
    "norm_bias": Flag(),
    "norm_eps": Real(0, 1),
    "position_embedding_type": Choice(("absolute",)),
    "qa_dropout": _SHARE,
    "rope_parameters": Record({"full_attention": _ROPE, "sliding_attention": _ROPE}),
    "seq_classif_dropout": _SHARE,
    "sinusoidal_pos_embds": Flag(),
    "sparse_pred_ignore_index": Whole(-1000, 1000),
    "sparse_prediction": Exactly(False),
    "summary_activation": _ACTIVATION,
    "summary_last_dropout": _SHARE,
    "summary_type": Choice(("first", "last", "mean")),
    "summary_use_proj": Flag(),
    "tie_word_embeddings": Flag(),
    "use_cache": Flag(),
    # numbers of tokens
    "bos_token_id": _TOKEN,
    "cls_token_id": _TOKEN,
    "eos_token_id": OneOf((_TOKEN, ListOf(_COUNT, 0, 16)), none=True),
    "mask_token_id": _TOKEN,
    "pad_token_id": _TOKEN,
    "sep_token_id": _TOKEN,
    # kept from the file that the encoder came from, and dropped
    **dict.fromkeys(WITHOUT_MEANING, OneOf((Text(4096), ListOf(Text(200), 0, 16), Flag()), none=True)),
}
CONFIG_RECORD = Record(CONFIG, frozenset(CONFIG) - {"model_type", "vocab_size"})


def known_config(config: dict[str, Any]) -> dict[str, Any]:
    """Return the entries of a configuration that mean something for a saved encoder.

    >>> known_config({"model_type": "bert", "_name_or_path": "somewhere"})
    {'model_type': 'bert'}
    """
    return {name: value for name, value in config.items() if name in CONFIG and name not in WITHOUT_MEANING}


def config_problem(config: dict[str, Any]) -> str | None:
    """Return why a configuration is not one of an encoder that can be saved, or None."""
    problem = CONFIG_RECORD.problem(config, "config")
    if problem is not None:
        return problem
    width, heads = (
        config.get("hidden_size", config.get("dim")),
        config.get("num_attention_heads", config.get("n_heads")),
    )
    if width is None or heads is None:
        return "'config' must give the width and the heads of the transformer"
    if width % heads:
        return f"the width of the transformer, {width}, must be a multiple of its heads, {heads}"
    padding = config.get("pad_token_id")
    if padding is not None and padding >= config["vocab_size"]:
        return f"'config.pad_token_id' must be a token, below {config['vocab_size']}; it is {padding}"
    return None


def encoder_width(config: dict[str, Any]) -> int:
    """Return the width of the vectors of a transformer, from a configuration that has been checked."""
    return int(config["hidden_size"] if "hidden_size" in config else config["dim"])


def longest_text(config: Any) -> int:
    """Return the most tokens of a text that a transformer of this configuration takes."""
    positions = int(getattr(config, "max_position_embeddings", 512))
    return longest_text_of(config.model_type, positions, getattr(config, "pad_token_id", None))


def longest_text_of(architecture: str, positions: int, padding: int | None) -> int:
    """Return the same from the number of positions and the padding token.

    >>> longest_text_of("roberta", 514, 1)
    512
    """
    return positions - (int(padding or 0) + 1) if architecture in PADDING_FIRST else positions


def _config_problem(part: Part, sizes: Sizes) -> str | None:
    return config_problem(part.params["config"])


def _weights_problem(part: Part, sizes: Sizes) -> str | None:
    """Return why there are too few weights for the layers, or None; each is compared when the network is made."""
    config = part.params["config"]
    layers = config.get("num_hidden_layers", config.get("n_layers", 1))
    n_weights = sum(name.startswith("weights.") for name in part.arrays)
    if config["model_type"] != "albert" and n_weights < layers:  # whose layers share their weights
        return f"it has {layers} layers and only {n_weights} arrays of weights"
    return None


TEXT_ENCODER_SCHEMA = PartSchema(
    kind="text-encoder.v1",
    about="a transformer, its tokenizer and how its states become one vector, of `Prime` and `PrimeFeatures`",
    params=(
        ParamSpec("config", CONFIG_RECORD, "shape of the transformer"),
        ParamSpec("pooling", Choice(POOLINGS), "mean of the tokens' states, or that of the first"),
        ParamSpec("max_length", Whole(1, LONGEST_TEXT), "tokens of a text that are read"),
        ParamSpec(
            "long_texts", Choice(LONG_TEXTS), "how longer ones are read; their beginning if missing", optional=True
        ),
    ),
    sizes=(SizeSpec("one", "tokenizers", low=1, high=1), SizeSpec("n_bytes", "length of the tokenizer", low=1)),
    arrays=(
        ArraySpec(
            "weights.*", "float16 float32", None, "weights, as the transformers library names them", finite="finite"
        ),
        *string_arrays("tokenizer", "one", "the tokenizer, as JSON of the tokenizers library", "n_bytes"),
    ),
    crosschecks=(
        CrossCheck("heads share the width of the transformer; the padding is a token", _config_problem),
        CrossCheck("there is an array of weights for every layer", _weights_problem),
    ),
)

ENCODER_SCHEMA = PartSchema(
    kind="encoder.v1",
    about="the name of a sentence encoder on this machine, of `EncoderFeatures`; the encoder itself is not saved",
    params=(
        ParamSpec("encoder", Text(4096), "folder or name of the encoder"),
        ParamSpec("batch_size", Whole(1, 2**31 - 1), "texts encoded at once"),
        ParamSpec("normalize", Flag(), "whether rows are scaled to length 1"),
        ParamSpec("n_features", Whole(1, 2**31 - 1), "width of the rows", size="n_features"),
    ),
)
