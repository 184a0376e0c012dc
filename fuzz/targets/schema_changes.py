"""Changes that follow the schemas of parts: values that are allowed, though nobody saved them, and those just beyond.

Values that a schema allows pass its check and reach the code behind it, which must cope with them.
"""

from __future__ import annotations

from random import Random
from typing import Any

import numpy as np

from fuzz.targets.model_files import ModelFiles
from longtail.pipeline import part_schemas
from longtail.storage import (
    ArraySpec,
    Choice,
    Exactly,
    Flag,
    ListOf,
    MapOf,
    OneOf,
    Part,
    Real,
    Text,
    Value,
    Whole,
    matched_arrays,
    matched_params,
)

Declared = dict[str, tuple[dict[str, ArraySpec], dict[tuple[Any, ...], Value]]]
LARGE = (3e38, -3e38, 1e30, -1e30, 1e-45, -0.0, 0.0, 1.0, -1.0)


def declared(model: ModelFiles) -> Declared:
    """Return what the schemas say of the arrays and parameters of each part of a sound folder."""
    out: Declared = {}
    known = part_schemas()
    for name, entry in model.manifest["parts"].items():
        schema = known.get(entry["kind"])
        if schema is not None:
            part = Part(entry["kind"], entry["params"], model.arrays.get(name, {}))
            out[name] = matched_arrays(part, schema), matched_params(part, schema)
    return out


def other_array(rng: Random, spec: ArraySpec, array: np.ndarray) -> np.ndarray:
    """Return an array with other entries: in order where the schema demands one, within what is there or beyond."""
    out = np.array(array)
    flat = out.reshape(-1)
    if not flat.size:
        return out
    if out.dtype.kind == "f":
        for _ in range(rng.choice((1, 3, flat.size))):
            flat[rng.randrange(flat.size)] = rng.choice(LARGE)
        return out
    if out.dtype.kind not in "iu":
        return out
    low, high = int(flat.min()), int(flat.max())
    if spec.order:
        inner = sorted(rng.randint(low, high) for _ in range(flat.size - 2))
        flat[1 : 1 + len(inner)] = inner
        return out
    least = spec.low if isinstance(spec.low, int) else low
    most = spec.high if isinstance(spec.high, int) else high + rng.choice((0, 0, 0, 1, 100))
    for _ in range(rng.choice((1, 2, flat.size))):
        value = rng.choice((least, most, rng.randint(min(least, most), max(least, most)), low, high))
        limits = np.iinfo(flat.dtype)
        flat[rng.randrange(flat.size)] = min(max(value, int(limits.min)), int(limits.max))
    return out


def other_value(rng: Random, value: Value, given: Any) -> Any:
    """Return another value that a parameter may have, or one just beyond what it may be."""
    if value.none and rng.random() < 0.15:
        return None
    if isinstance(value, Whole):
        near = (value.low, value.low + 1, value.high, value.high - 1, value.low - 1, value.high + 1)
        return rng.choice((*near, 1, 2, 1000, 2**31, rng.randint(value.low, min(value.high, value.low + 100))))
    if isinstance(value, Real):
        return rng.choice((value.low, value.high, 0.0, 1e-300, 1e300, 1, -1, 0.5, 1e-45, 3e38, 5e-324, -0.0))
    if isinstance(value, Flag):
        return rng.random() < 0.5
    if isinstance(value, Choice):
        return rng.choice(value.options)
    if isinstance(value, Text):
        return rng.choice(("", "x" * value.longest, "x" * (value.longest + 1), "\x00", "é"))
    if isinstance(value, Exactly):
        return value.value
    if isinstance(value, OneOf):
        return other_value(rng, rng.choice(value.types), given)
    if isinstance(value, ListOf):
        kept = given if isinstance(given, list) else []
        return rng.choice(([], kept[:-1], kept * 2, [other_value(rng, value.each, None) for _ in range(3)]))
    if isinstance(value, MapOf):
        return {"a": other_value(rng, value.each, None)}
    return given
