"""Write a graph of operators in the ONNX format, in memory; the weights stay outside of it, as arrays.

ONNX files are protocol buffers: numbered fields, each a number of variable length, four bytes of a float, or bytes with
their length. The few messages that a graph needs are written here, so the onnx package is not needed.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence

import numpy as np

IR_VERSION, OPERATORS, FUSED_OPERATORS = 10, 21, 1  # versions of the format and of the two sets of operators
MICROSOFT = "com.microsoft"
ELEMENTS = {"float32": 1, "uint8": 2, "int8": 3, "int32": 6, "int64": 7}
LARGE = 128  # bytes above which an array stays outside of the graph
FLOAT, INT, STRING = 1, 2, 3  # kinds of attributes

Attribute = float | int | str


def _number(value: int) -> bytes:
    """Return a number of at least 0 in groups of seven bits, the lowest first."""
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    out.append(value)
    return bytes(out)


def _int_field(field: int, value: int) -> bytes:
    return _number(field << 3) + _number(value)


def _bytes_field(field: int, value: bytes | str) -> bytes:
    raw = value.encode("utf-8") if isinstance(value, str) else value
    return _number(field << 3 | 2) + _number(len(raw)) + raw


def _float_field(field: int, value: float) -> bytes:
    return _number(field << 3 | 5) + struct.pack("<f", value)


def _attribute(name: str, value: Attribute) -> bytes:
    """Return an AttributeProto."""
    if isinstance(value, str):
        held, kind = _bytes_field(4, value), STRING
    elif isinstance(value, float):
        held, kind = _float_field(2, value), FLOAT
    else:
        held, kind = _int_field(3, value), INT
    return _bytes_field(1, name) + held + _int_field(20, kind)


class GraphWriter:
    """A graph that grows operator by operator; `arrays` are its weights, which a session is given beside it.

    Examples
    --------
    >>> graph = GraphWriter()
    >>> doubled = graph.add("Mul", [graph.input("x", "float32", ["n"]), graph.constant(np.float32([2]))])
    >>> graph.output(doubled, "float32", ["n"])
    >>> graph.model()[:2]
    b'\\x08\\n'
    """

    def __init__(self) -> None:
        self.arrays: dict[str, np.ndarray] = {}
        self._nodes: list[bytes] = []
        self._held: list[bytes] = []
        self._ends: list[bytes] = []
        self._count = 0

    def input(self, name: str, element: str, shape: Sequence[int | str]) -> str:
        """Add an input; sizes that are not known have names. Returns its name."""
        self._ends.append(_bytes_field(11, _value(name, element, shape)))
        return name

    def output(self, name: str, element: str, shape: Sequence[int | str]) -> None:
        """Say that a value is what the graph returns."""
        self._ends.append(_bytes_field(12, _value(name, element, shape)))

    def constant(self, value: np.ndarray | np.generic) -> str:
        """Add an array and return its name; a large one stays outside."""
        array, name = np.asarray(value), self._name("c")
        tensor = b"".join(_int_field(1, size) for size in array.shape)
        tensor += _int_field(2, ELEMENTS[array.dtype.name]) + _bytes_field(8, name)
        if array.nbytes > LARGE:
            self.arrays[name] = np.ascontiguousarray(array)
            elsewhere = _bytes_field(1, "location") + _bytes_field(2, "memory")
            tensor += _bytes_field(13, elsewhere) + _int_field(14, 1)
        else:
            tensor += _bytes_field(9, array.tobytes())
        self._held.append(_bytes_field(5, tensor))
        return name

    def add(self, operator: str, inputs: Sequence[str], domain: str = "", **attributes: Attribute) -> str:
        """Add an operator and return the name of its result."""
        result = self._name("t")
        node = b"".join(_bytes_field(1, name) for name in inputs) + _bytes_field(2, result) + _bytes_field(4, operator)
        node += b"".join(_bytes_field(5, _attribute(name, value)) for name, value in attributes.items())
        self._nodes.append(_bytes_field(1, node + _bytes_field(7, domain)))
        return result

    def add_fused(self, operator: str, inputs: Sequence[str], **attributes: Attribute) -> str:
        """Add an operator that ONNX Runtime has beyond the standard."""
        return self.add(operator, inputs, MICROSOFT, **attributes)

    def model(self) -> bytes:
        """Return the graph as a model that a session can be made of."""
        graph = b"".join([*self._nodes, _bytes_field(2, "encoder"), *self._held, *self._ends])
        sets = (("", OPERATORS), (MICROSOFT, FUSED_OPERATORS))
        used = b"".join(_bytes_field(8, _bytes_field(1, name) + _int_field(2, version)) for name, version in sets)
        return _int_field(1, IR_VERSION) + _bytes_field(7, graph) + used

    def _name(self, kind: str) -> str:
        self._count += 1
        return f"{kind}{self._count}"


def _value(name: str, element: str, shape: Sequence[int | str]) -> bytes:
    """Return a ValueInfoProto."""
    sizes = (_int_field(1, size) if isinstance(size, int) else _bytes_field(2, size) for size in shape)
    tensor = _int_field(1, ELEMENTS[element]) + _bytes_field(2, b"".join(_bytes_field(1, size) for size in sizes))
    return _bytes_field(1, name) + _bytes_field(2, _bytes_field(1, tensor))
