"""Run a saved encoder by ONNX Runtime: no torch, less memory, and float32 or int8."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any

import numpy as np

from longtail.encoder.long_texts import cut_chunks, join_chunks, tokens_read
from longtail.encoder.onnx_graph import (
    ENCODER_PRECISIONS,
    FEW_LEVELS,
    LEVELS,
    NEARNESS,
    SIZES,
    TOKENS,
    encoder_graph,
)
from longtail.encoder.onnx_messages import GraphWriter
from longtail.encoder.schema import TEXT_ENCODER_SCHEMA, known_config
from longtail.encoder.tokenizer import saved_tokenizer, tokenize
from longtail.encoder.weights import (
    MPNET_BUCKETS,
    POSITIONS,
    RELATIVE,
    TYPES,
    WORDS,
    EncoderShape,
    check_shapes,
    encoder_shape,
    first_sentence,
    weight_shapes,
)
from longtail.errors import MissingExtraError, ModelError
from longtail.kernels import run_tasks
from longtail.storage import Part, checked, unpack_strings
from longtail.validate import check_choice, resolve_jobs

TOKENS_AT_ONCE = 256  # what a layer computes of so many tokens stays in the cache of a core
FARTHEST = 128  # distance of tokens beyond which all are in the last bucket


class OnnxEncoder:
    """A saved text encoder that ONNX Runtime runs; its vectors are those of `TextEncoder`, without torch.

    A text's vector does not depend on the texts encoded with it, nor on the number of threads.

    Parameters
    ----------
    part : Part
        What `TextEncoder.to_part` returns, or what was saved of it.
    precision : {"float32", "int8"}, default="float32"
        "int8" multiplies in eight bits: 1.5 to 2 times as fast, and a little less accurate.
    n_jobs : int, default=None
        Threads; None for all cores.

    Attributes
    ----------
    width : int
        Length of the vectors.
    max_length : int
        Tokens of a text that are read at once.
    long_texts : str
        How longer texts are read; see `TextEncoder`.
    """

    n_jobs: int
    precision: str
    width: int
    pooling: str

    def __init__(self, part: Part, *, precision: str = "float32", n_jobs: int | None = None) -> None:
        check_choice("precision", precision, ENCODER_PRECISIONS)
        self.n_jobs, self.precision = resolve_jobs(n_jobs), precision
        import_onnxruntime()
        part = checked(part, TEXT_ENCODER_SCHEMA)
        config = known_config(part.params["config"])
        weights = part.under("weights.")
        try:
            self.shape: EncoderShape = encoder_shape(config)
            check_shapes(weight_shapes(self.shape), weights)
            self.tokenizer: Any = saved_tokenizer(unpack_strings("tokenizer", part)[0], self.shape.vocabulary)
        except (ValueError, TypeError, KeyError) as error:
            raise ModelError(f"the model's part '{part.kind}' is damaged: {first_sentence(error)}.") from error
        self.width, self.pooling = self.shape.width, part.params["pooling"]
        self.max_length: int = min(part.params["max_length"], self.shape.longest)
        self.long_texts: str = part.params.get("long_texts", "beginning")
        self._words = weights[WORDS]
        self._positions = weights[POSITIONS].astype(np.float32)
        if self.shape.types:
            self._positions = self._positions + weights[TYPES][0].astype(np.float32)
        self._near = weights[RELATIVE].astype(np.float32) if self.shape.buckets else None
        levels = FEW_LEVELS if precision == "int8" and cuts_off_sums() else LEVELS
        self._session = open_session(encoder_graph(self.shape, weights, precision, levels), self.n_jobs)

    def encode(self, texts: Sequence[str]) -> np.ndarray:
        """Return one float32 row per text; of unit length where long texts are read in chunks."""
        if self.long_texts == "beginning":
            return self._encode_rows(tokenize(self.tokenizer, list(texts), self.max_length))
        n_special = self.tokenizer.num_special_tokens_to_add(False)
        rows = tokenize(self.tokenizer, list(texts), tokens_read(self.max_length, n_special))
        chunks = cut_chunks(rows, self.max_length, n_special)
        return join_chunks(self._encode_rows(chunks.rows), chunks, self.long_texts)

    def _encode_rows(self, rows: list[np.ndarray]) -> np.ndarray:
        """Return the vectors of token rows."""
        out = np.zeros((len(rows), self.width), dtype=np.float32)  # a text without tokens has no vector
        lengths = np.array([row.size for row in rows], dtype=np.int64)

        def encode_part(part: np.ndarray) -> None:
            out[part] = self._vectors(np.stack([rows[i] for i in part]))

        run_tasks(encode_part, parts_by_length(lengths, TOKENS_AT_ONCE), self.n_jobs)
        if not np.isfinite(out).all():
            raise ModelError(f"the model's part '{TEXT_ENCODER_SCHEMA.kind}' is damaged: its vectors are not finite.")
        return out

    def _vectors(self, ids: np.ndarray) -> np.ndarray:
        """Return the vectors of some texts of one length, from their tokens."""
        start = self._words[ids].astype(np.float32, copy=False) + self._positions[self._position_numbers(ids)]
        given = {
            TOKENS: start.reshape(ids.size, -1),
            SIZES: np.array([*ids.shape, self.width], dtype=np.int64),
        }
        if self._near is not None:
            given[NEARNESS] = nearness(self._near, ids.shape[1])
        states = self._session.run(None, given)[0].reshape(*ids.shape, self.width)
        if self.pooling == "cls":
            return states[:, 0]
        return states.sum(axis=1) / np.float32(ids.shape[1])

    def _position_numbers(self, ids: np.ndarray) -> np.ndarray:
        """Return the position of every token; some transformers do not count the padding token, wherever it is."""
        first = self.shape.first_position
        if not first:
            return np.arange(ids.shape[1])[None]
        counted = ids != first - 1
        return np.cumsum(counted, axis=1) * counted + first - 1


def parts_by_length(lengths: np.ndarray, budget: int) -> list[np.ndarray]:
    """Return the numbers of texts in parts of one length, each of at most `budget` tokens or one text.

    Texts without tokens are left out.

    >>> [part.tolist() for part in parts_by_length(np.array([9, 2, 0, 9, 2, 2, 9]), 18)]
    [[1, 4, 5], [0, 3], [6]]
    """
    order = np.argsort(lengths, kind="stable")
    order = order[np.count_nonzero(lengths == 0) :]
    parts, start = [], 0
    for end in range(1, order.size + 1):
        length = lengths[order[start]]
        if end == order.size or lengths[order[end]] != length or (end + 1 - start) * length > budget:
            parts.append(order[start:end])
            start = end
    return parts


def nearness(table: np.ndarray, longest: int) -> np.ndarray:
    """Return what MPNet adds to the attention by the distance of two tokens, (1, heads, longest, longest)."""
    distance = np.arange(longest)
    exact = MPNET_BUCKETS // 4
    with np.errstate(divide="ignore"):
        scaled = np.log(distance.astype(np.float32) / np.float32(exact)) / np.float32(np.log(FARTHEST / exact))
    far = np.minimum(exact + np.maximum(scaled * exact, 0).astype(np.int64), 2 * exact - 1)
    bucket = np.where(distance < exact, distance, far)
    step = distance[None] - distance[:, None]  # from the token that looks to the one that is seen
    return np.ascontiguousarray(table[bucket[np.abs(step)] + 2 * exact * (step > 0)].transpose(2, 0, 1)[None])


def import_onnxruntime() -> Any:
    """Return ONNX Runtime, or say in one sentence how to install it and the tokenizers library."""
    for package in ("onnxruntime", "tokenizers"):
        try:
            __import__(package)
        except ImportError as error:
            raise MissingExtraError("Running an encoder without torch", package, "onnx") from error
    import onnxruntime

    return onnxruntime


def open_session(graph: GraphWriter, n_jobs: int) -> Any:
    """Return a session of ONNX Runtime for a graph of this program; its arrays are handed over, not copied."""
    runtime = import_onnxruntime()
    options = runtime.SessionOptions()
    options.intra_op_num_threads, options.inter_op_num_threads = n_jobs, 1
    options.log_severity_level = 3
    # the graph is as it should be: fusions that would be looked for are slower here (normalisation) or there already
    options.graph_optimization_level = runtime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.enable_mem_pattern = False  # every part has a shape of its own
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    values = [runtime.OrtValue.ortvalue_from_numpy(array) for array in graph.arrays.values()]
    options.add_external_initializers(list(graph.arrays), values)
    return runtime.InferenceSession(graph.model(), options, providers=["CPUExecutionProvider"])


@cache
def cuts_off_sums() -> bool:
    """Say whether the processor adds two products of eight bits in sixteen, where large ones are cut off."""
    graph, size = GraphWriter(), 64
    x = graph.input("x", "uint8", ["n", size])
    product = graph.add("MatMulInteger", [x, graph.constant(np.full((size, size), LEVELS, dtype=np.int8))])
    graph.output(product, "int32", ["n", size])
    found = open_session(graph, 1).run(None, {"x": np.full((size, size), 255, dtype=np.uint8)})[0]
    return bool((found != size * 255 * LEVELS).any())
