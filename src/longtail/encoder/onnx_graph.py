"""The transformer of an encoder as a graph of ONNX operators, from its checked shape and weights.

The graph takes the sums of the tokens' embeddings, one token per line (n_tokens, width), and returns their last states.
Texts of a run are equally long: none is filled up, and nothing is masked.

int8: every line that is multiplied by weights is rounded to 255 levels of its own largest absolute value, and every
column of weights to 255 of its own (`levels`). No line depends on another one: a text has the same vector in any batch.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from longtail.encoder.onnx_messages import GraphWriter
from longtail.encoder.weights import EMBEDDING_NORM, LAYER_NAMES, PROJECTION, EncoderShape, LayerNames

ENCODER_PRECISIONS = ("float32", "int8")
LEVELS, FEW_LEVELS = 127, 63  # on each side of zero; few where sums of two products are cut off at 16 bits
MIDDLE = 128  # the zero of numbers from 0 to 255
SMALLEST = 1e-30
LOWEST = {  # just below the least value of each activation
    **dict.fromkeys(("gelu", "gelu_fast", "gelu_new", "gelu_python", "gelu_pytorch_tanh"), -0.1701),
    **dict.fromkeys(("silu", "swish"), -0.2785),
    "quick_gelu": -0.1637,
    "relu": 0.0,
}
TOKENS, SIZES, NEARNESS = "tokens", "sizes", "nearness"  # inputs

Weights = Mapping[str, np.ndarray]


def encoder_graph(shape: EncoderShape, weights: Weights, precision: str, levels: int = LEVELS) -> GraphWriter:
    """Return the graph of a transformer; `levels` are those of int8 weights on each side of zero."""
    graph = GraphWriter()
    names = LAYER_NAMES[shape.architecture]
    x = graph.input(TOKENS, "float32", ["n", shape.embedding_width])
    graph.input(SIZES, "int64", [3])
    if shape.buckets:
        graph.input(NEARNESS, "float32", [1, shape.heads, "longest", "longest"])
    linear = _RoundedLinear(graph, weights, levels) if precision == "int8" else _Linear(graph, weights)
    make = _Layers(graph, shape, names, linear)
    x = make.norm(x, EMBEDDING_NORM)
    if shape.embedding_width != shape.width:
        x = linear(linear.prepare(x), PROJECTION)
    for number in range(shape.layers):
        x = make.layer(x, f"{names.layer}{number}.")
    graph.output(x, "float32", ["n", shape.width])
    return graph


class _Linear:
    """Products with weights, and their bias added."""

    def __init__(self, graph: GraphWriter, weights: Weights) -> None:
        self.graph, self.weights = graph, weights

    def array(self, name: str) -> str:
        return self.graph.constant(self.weights[name].astype(np.float32, copy=False))

    def prepare(self, x: str, lowest: float | None = None) -> Any:
        """Return what products are made of; `lowest` is a number below which x never is, if one is known."""
        return x

    def __call__(self, x: Any, name: str, bias: bool = True) -> str:
        held = [self.array(f"{name}.{what}") for what in (("weight", "bias") if bias else ("weight",))]
        return self.graph.add("Gemm", [x, *held], transB=1)


class _RoundedLinear(_Linear):
    """The same with numbers of eight bits: lines and columns of weights rounded by scales of their own."""

    def __init__(self, graph: GraphWriter, weights: Weights, levels: int) -> None:
        super().__init__(graph, weights)
        self.levels = levels
        self.columns = graph.constant(np.array([1]))
        self.unit, self.middle = graph.constant(np.float32(1 / LEVELS)), graph.constant(np.uint8(MIDDLE))

    def prepare(self, x: str, lowest: float | None = None) -> tuple[str, str]:
        """Return the rounded lines and the largest absolute value of each, or `lowest` if that is further from 0."""
        add, graph = self.graph.add, self.graph
        largest = add("ReduceMax", [add("Abs", [x]) if lowest is None else x, self.columns], keepdims=1)
        largest = add("Max", [largest, graph.constant(np.float32(max(SMALLEST, -(lowest or 0.0))))])
        scales = add("Mul", [add("Squeeze", [largest, self.columns]), self.unit])
        middles = add("Expand", [self.middle, add("Shape", [scales])])
        return add("QuantizeLinear", [x, scales, middles], axis=0), largest

    def __call__(self, x: tuple[str, str], name: str, bias: bool = True) -> str:
        columns, scales = rounded_columns(self.weights[f"{name}.weight"], self.levels)
        held = [self.graph.constant(columns), self.unit, self.graph.constant(scales), self.middle]
        product = self.graph.add("Mul", [self.graph.add_fused("MatMulIntegerToFloat", [x[0], *held]), x[1]])
        return self.graph.add("Add", [product, self.array(f"{name}.bias")]) if bias else product


def rounded_columns(weight: np.ndarray, levels: int) -> tuple[np.ndarray, np.ndarray]:
    """Return weights (n_in, n_out) as int8, and the scale of every column, of weights (n_out, n_in).

    >>> columns, scales = rounded_columns(np.array([[4.0, -254.0], [0.0, 0.0]], dtype=np.float32), 127)
    >>> columns.tolist(), float(scales[0])
    ([[2, 0], [-127, 0]], 2.0)
    """
    weight = weight.astype(np.float32, copy=False)
    scales = np.maximum(np.abs(weight).max(axis=1), np.float32(SMALLEST)) / np.float32(levels)
    return np.rint(weight / scales[:, None]).astype(np.int8).T, scales


class _Layers:
    """The layers of a transformer."""

    def __init__(self, graph: GraphWriter, shape: EncoderShape, names: LayerNames, linear: _Linear) -> None:
        self.graph, self.shape, self.names, self.linear = graph, shape, names, linear
        self.lines = graph.constant(np.array([-1, shape.width]))

    def layer(self, x: str, layer: str) -> str:
        """Add one layer: attention and feed-forward network, each added to its input and normalised."""
        add, names, linear = self.graph.add, self.names, self.linear
        prepared = linear.prepare(x)
        parts = [layer + name for name in (names.query, names.key, names.value)]
        bias = np.concatenate([linear.weights[f"{name}.bias"] for name in parts]).astype(np.float32, copy=False)
        heads = [add("Reshape", [linear(prepared, name, bias=False), SIZES]) for name in parts]
        seen = self.attention(heads, self.graph.constant(bias))
        seen = linear(linear.prepare(add("Reshape", [seen, self.lines])), layer + names.attended)
        x = self.norm(add("Add", [seen, x]), layer + names.attention_norm)
        inner = self.activation(linear(linear.prepare(x), layer + names.inner))
        inner = linear.prepare(inner, LOWEST[self.shape.activation])
        return self.norm(add("Add", [linear(inner, layer + names.outer), x]), layer + names.norm)

    def attention(self, heads: list[str], bias: str) -> str:
        """Add the attention of every token to those of its own text.

        Without a mask it is computed in one pass, over blocks that stay in the cache of a core.
        """
        given = [*heads, bias, *(["", NEARNESS] if self.shape.buckets else [])]
        return self.graph.add_fused("MultiHeadAttention", given, num_heads=self.shape.heads)

    def norm(self, x: str, name: str) -> str:
        held = [self.linear.array(f"{name}.{what}") for what in ("weight", "bias")]
        return self.graph.add("LayerNormalization", [x, *held], axis=1, epsilon=self.shape.epsilon)

    def activation(self, x: str) -> str:
        kind = self.shape.activation
        if kind == "relu":
            return self.graph.add("Relu", [x])
        if kind in ("quick_gelu", "silu", "swish"):
            return self.graph.add_fused("QuickGelu", [x], alpha=1.702 if kind == "quick_gelu" else 1.0)
        exact = kind in ("gelu", "gelu_python")
        return self.graph.add("Gelu", [x], approximate="none" if exact else "tanh")
