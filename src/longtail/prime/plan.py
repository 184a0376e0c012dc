"""The cost of training `Prime`: the shape of its encoder, and the time a few texts take through it."""

from __future__ import annotations

import json
import math
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from longtail.data import Dataset
from longtail.encoder import NEW_ENCODER, find_encoder
from longtail.model import TERM_BYTES, TrainingPlan
from longtail.planning import shape_of
from longtail.prime.batch_memory import kept_bytes, most_for_a_batch, transformer_shape
from longtail.prime.check_data import label_texts_of, texts_of
from longtail.prime.settings import PrimeSettings, resolve_settings
from longtail.training import require_transformers
from longtail.tree import LabelTreeClassifier

if TYPE_CHECKING:
    from longtail.prime.estimator import Prime

SAMPLE = {"cpu": 32, "cuda": 512}  # texts of the probe
LETTERS_PER_TOKEN = 4.0
START_AND_END = 2  # tokens
JOINER = 1024  # inner width of the layer that makes prototypes
COPIES = 4  # of the weights in training: themselves, gradients, two moments of the optimiser
BANK_BYTES = 12  # of a number of the query vectors, when they are made: float32, three times
LABEL_COPIES = 5  # texts, unit texts, centroids, prototypes, in between
COUNTED = 4000  # texts whose words are counted
PIECE_BYTES = 20  # of a piece in a saved tokenizer
FEWEST_POSITIONS = 16  # token positions of a new encoder, at least
FORWARD = 1 / 3  # of the time of a step


def plan_prime(data: Dataset, model: Prime, n_held_out: int, probe: bool) -> TrainingPlan:
    """Return the cost of training once, on the rows that are not held out; without a probe, memory alone.

    The sizes of weights, optimiser, query and label vectors follow from shapes. What a batch keeps for the backward
    pass is judged from the lengths of texts, up to where it is divided into chunks; on a GPU all this is in its memory.
    An encoder that is neither a folder nor a package is not looked at without a probe: its weights are then not
    counted, and `encoder_known` says so.
    """
    require_transformers()  # nothing to plan without
    texts, labels = texts_of(model, data), label_texts_of(model, data)
    model._check_params()
    n_rows = data.n_rows - n_held_out
    settings = resolve_settings(model.get_params(deep=False), n_rows, data.n_labels)
    device = str(model.torch_device().type)
    rng = np.random.default_rng(0)
    sample = [texts[i] for i in rng.permutation(len(texts))[: SAMPLE.get(device, SAMPLE["cpu"])]]
    named = [labels[i] for i in rng.permutation(len(labels))[: len(sample)]]
    timed = _probe(model, sample, named) if probe else None
    shape = encoder_shape(model.encoder, [*texts, *labels], model.max_length)
    shape = shape or (None if timed is None else timed["shape"])
    pool = min(settings.batch_size * settings.n_positives, data.n_labels)
    network = _memory(data, model, settings, n_rows, shape, pool)
    network["device"] = device
    if device == "cuda":  # what is on the GPU is not in memory; the rest is the texts and the label vectors
        kept = network["label_vector_bytes"] + network["token_bytes"]
        network["in_memory_bytes"] = kept + 2 * network["weight_bytes"]
    model_bytes = network["weight_bytes"] + network["saved_label_bytes"] + sum(map(len, labels))
    model_bytes += PIECE_BYTES * (shape or {}).get("vocabulary", 0)
    seconds = predict_us = 0.0
    if timed is not None:
        batches = -(-n_rows // settings.batch_size)
        once = n_rows * timed["text"] + batches * pool * timed["label"]
        start = FORWARD * (n_rows * timed["text"] + 2 * data.n_labels * timed["label"])
        start += timed["loading"]
        epochs = int(model.epochs)
        if model.minutes is not None and epochs:
            epochs = min(epochs, max(1, int((60 * float(model.minutes) - start) / once)))
        seconds = epochs * once + start + n_held_out * timed["reading"]
        predict_us = 1e6 * timed["reading"]
    encoder_alone = TrainingPlan(
        n_features=network["width"],
        features_estimated=False,
        nonzeros=None,
        memory_bytes=network["in_memory_bytes"],
        model_bytes=model_bytes,
        seconds=seconds,
        predict_us=predict_us,
        sampled_rows=len(sample) if probe else 0,
        probed_rows=len(sample) if probe else 0,
        probe_seconds=0.0 if timed is None else timed["seconds"],
        network=network,
    )
    return _with_tree(encoder_alone, data, model, probe) if model.tree else encoder_alone


def _with_tree(encoder: TrainingPlan, data: Dataset, model: Prime, probe: bool) -> TrainingPlan:
    """Add the cost of the label tree beside the encoder, with the words it reads."""
    shape = shape_of(data)
    tree = LabelTreeClassifier(n_jobs=model.n_jobs).estimate_fit(data, shape, probe)
    words = 16 * shape.nonzeros + TERM_BYTES * shape.n_features
    return replace(
        encoder,
        memory_bytes=max(encoder.memory_bytes, tree.memory_bytes + words),  # the optimiser is gone by then
        model_bytes=encoder.model_bytes + tree.model_bytes + shape.feature_bytes,
        seconds=encoder.seconds + tree.seconds + shape.text_seconds,
        predict_us=encoder.predict_us + tree.predict_us,
        tree=tree.tree,
    )


def encoder_shape(encoder: Any, texts: Sequence[str] = (), max_length: int = 128) -> dict[str, int] | None:
    """Return width, inner width, layers, heads, vocabulary and number of weights of an encoder; None if unknown.

    It is not loaded. The vocabulary of a new one is judged from the texts it is for; without texts it is the largest.

    >>> encoder_shape(None)  # doctest: +NEEDS_TORCH
    {'width': 128, 'inner': 512, 'layers': 2, 'heads': 4, 'vocabulary': 20000, 'weights': 2973440}
    """
    if encoder is None or isinstance(encoder, dict):
        given = {**NEW_ENCODER, **(encoder or {})}
        width, positions = int(given["width"]), max(max_length, FEWEST_POSITIONS)
        pieces = count_pieces(texts, int(given["vocabulary"]))
        return _shape(width, 4 * width, int(given["layers"]), int(given["heads"]), pieces, positions)
    folder = find_encoder(encoder)
    for file in () if folder is None else (folder / "config.json", folder / "0_Transformer" / "config.json"):
        config = _config(file)
        try:
            return _shape(
                int(config["hidden_size"]),
                int(config["intermediate_size"]),
                int(config["num_hidden_layers"]),
                int(config["num_attention_heads"]),
                int(config["vocab_size"]),
                int(config.get("max_position_embeddings", 512)),
            )
        except (KeyError, TypeError, ValueError):
            continue
    return None


def _shape(width: int, inner: int, layers: int, heads: int, vocabulary: int, positions: int) -> dict[str, int]:
    each = 4 * width * width + 2 * width * inner + 9 * width + inner  # attention, two linear maps, biases and norms
    weights = (vocabulary + positions + 4) * width + layers * each
    sizes = {"width": width, "inner": inner, "layers": layers, "heads": heads}
    return {**sizes, "vocabulary": vocabulary, "weights": weights}


def count_pieces(texts: Sequence[str], at_most: int) -> int:
    """Return about how large the vocabulary of a new encoder gets; from a sample of many texts, as words keep coming.

    The number of different words grows as a power of the number of texts, whose exponent shows in half the sample.
    """
    from longtail.encoder import all_pieces

    if not len(texts):
        return at_most
    rng = np.random.default_rng(0)
    some = texts if len(texts) <= COUNTED else [texts[i] for i in rng.permutation(len(texts))[:COUNTED]]
    always, more = all_pieces(some)
    n_pieces = float(len(always) + len(more))
    if len(some) < len(texts):
        half = sum(map(len, all_pieces(some[: COUNTED // 2])))
        n_pieces *= (len(texts) / len(some)) ** math.log2(n_pieces / half)
    return max(len(always), min(at_most, round(n_pieces)))


def _config(file: Path) -> dict[str, Any]:
    try:
        config = json.loads(file.read_text("utf-8"))
    except (OSError, ValueError):
        return {}
    return config if isinstance(config, dict) else {}


def _memory(
    data: Dataset, model: Prime, settings: PrimeSettings, n_rows: int, shape: dict[str, int] | None, pool: int
) -> dict[str, Any]:
    """Return the bytes of everything that is kept while training."""
    known = shape is not None
    width, weights = (shape or {}).get("width", 384), (shape or {}).get("weights", 0)
    if settings.prototype == "network":
        weights += 4 * width * width + 2 * width * JOINER
    weights += (settings.n_free + settings.n_private) * width
    tokens = _tokens(data.texts, model.max_length)
    label_tokens = _tokens(data.label_texts or data.names(), model.max_length)
    in_batch = min(settings.batch_size, n_rows) * tokens + pool * label_tokens
    kept = 0
    if shape is not None:
        sizes = {name: shape[name] for name in ("width", "inner", "layers", "heads")}
        kept = min(round(in_batch * kept_bytes(**sizes, longest=round(tokens))), most_for_a_batch(model.torch_device()))
    copies = COPIES + bool(model.validation) + bool(model.classifier)
    stored = {"float32": 4, "float16": 2, "int8": 1}[model.precision]
    out: dict[str, Any] = {
        "width": width if known else None,
        "encoder_known": known,
        "weight_bytes": 4 * weights,
        "optimizer_bytes": 4 * (copies - 1) * weights,
        "query_vector_bytes": BANK_BYTES * n_rows * width,
        "label_vector_bytes": 4 * (LABEL_COPIES + 4 * bool(model.classifier)) * data.n_labels * width,
        "token_bytes": round(8 * (n_rows * tokens + data.n_labels * label_tokens)),
        "batch_bytes": kept,
        "batch_size": min(settings.batch_size, n_rows),
    }
    if not model.epochs:  # the encoder stays as it is
        out |= {"optimizer_bytes": 0, "batch_bytes": 0, "batch_size": 0}
    out["in_memory_bytes"] = sum(value for name, value in out.items() if name.endswith("_bytes"))
    centroids = 4 if settings.centroids else 0
    out["saved_label_bytes"] = (stored + centroids) * data.n_labels * width
    return out


def _tokens(texts: Any, longest: int) -> float:
    """Return about how many tokens a text has, from the lengths of up to 10,000 of them."""
    some = texts[:: max(1, len(texts) // 10_000)]
    lengths = [min(len(text) / LETTERS_PER_TOKEN + START_AND_END, longest) for text in some]
    return sum(lengths) / max(len(lengths), 1)


def _probe(model: Prime, texts: list[str], labels: list[str]) -> dict[str, Any]:
    """Send some texts and label texts through the encoder and back; return seconds for each of them."""
    import torch

    from longtail.prime.fit import named_or_new_encoder
    from longtail.training import computes_bfloat16, gpu_memory_errors, mixed_precision, torch_threads

    device = model.torch_device()
    started = time.perf_counter()

    def wait() -> float:
        if device.type == "cuda":
            torch.cuda.synchronize(device)
        return time.perf_counter()

    random = torch.random.fork_rng([device] if device.type == "cuda" else [])
    with torch_threads(model.n_jobs), gpu_memory_errors(), random:
        encoder = named_or_new_encoder(model.encoder, [*texts, *labels], model.max_length).to(device).train()
        out: dict[str, Any] = {}
        for name, some in (("warm", texts[:4]), ("text", texts), ("label", labels)):
            begun = wait()
            if name == "text":
                out["loading"] = begun - started
            tokens = encoder.tokens(some)
            with mixed_precision(device, model.mixed_precision, on_cpu=True):
                encoder.embed(tokens, np.arange(len(some))).sum().backward()
            out[name] = (wait() - begun) / max(len(some), 1)
        begun = wait()
        encoder.embed_all(encoder.tokens(texts), model.mixed_precision and computes_bfloat16(device))
        out["reading"] = (wait() - begun) / len(texts)
    config: Any = encoder.backbone.config
    out["shape"] = {
        **transformer_shape(config),
        "vocabulary": int(getattr(config, "vocab_size", 0)),
        "weights": sum(p.numel() for p in encoder.parameters()),
    }
    out["seconds"] = time.perf_counter() - started
    return out
