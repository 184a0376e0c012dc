"""The gate: hold a part against its schema, completely, before anything else looks at its arrays.

Types, ranks and lengths are compared first; then every array is read once, block by block, for its range, its order and
its numbers; then the parts inside; then what must hold between arrays. The first problem ends it.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping

import numpy as np

from longtail.errors import ModelError
from longtail.storage.part import Part
from longtail.storage.schema import ArraySpec, PartSchema, Sizes, bound_name, evaluate
from longtail.storage.values import Path, Value, fields_problem, shown

BLOCK = 1 << 16  # entries looked at together: they stay in cache, so each is read from memory once
LARGEST_FLOAT = 1e30  # of an array: larger ones would overflow where they are multiplied and added up
HALF_EXPONENT = 0x7C00  # all bits set: infinite, or no number
PARAMETERS, ARRAYS, CROSSCHECKS = "parameters", "arrays", "cross-checks"


class PartProblem(ValueError):
    """A part does not follow its schema; `stage` says which of its checks failed."""

    def __init__(self, stage: str, sentence: str) -> None:
        super().__init__(sentence)
        self.stage = stage


def checked(part: Part, schema: PartSchema) -> Part:
    """Return the part, marked as checked, if it follows its schema; else raise a ModelError.

    A part that was checked before, when its folder was read, is passed on.

    >>> from longtail.storage import ArraySpec, PartSchema
    >>> thing = PartSchema("thing.v1", arrays=(ArraySpec("a", "int32", ("n",), low=0),))
    >>> checked(Part("thing.v1", arrays={"a": np.array([-1], np.int32)}), thing)
    Traceback (most recent call last):
    ...
    longtail.errors.ModelError: the part 'thing.v1' is damaged: the array 'a' must hold numbers from 0; it has -1.
    """
    if part.checked and part.kind == schema.kind:
        return part
    try:
        check_part(part, schema)
    except PartProblem as error:
        raise ModelError(f"the part '{schema.kind}' is damaged: {error}.") from error
    return Part(part.kind, part.params, part.arrays, checked=True)


def check_part(part: Part, schema: PartSchema, inherited: Sizes | None = None, prefix: str = "") -> dict[str, int]:
    """Raise a PartProblem unless the part follows its schema; return its sizes.

    `inherited` are the sizes of the part around it, `prefix` that of its arrays there, for the sentence.
    """
    if part.kind != schema.kind:
        raise PartProblem(PARAMETERS, f"its kind must be '{schema.kind}'; it is {shown(part.kind)}")
    problem = fields_problem(part.params, schema.values, schema.optional, "")
    if problem is not None:
        raise PartProblem(PARAMETERS, f"the parameter {problem}")
    sizes = _sizes_of(part, schema, inherited or {})
    specs = _matched(part, schema, sizes, prefix)
    _check_sizes(schema, sizes)
    for name, spec in specs.items():
        problem = entries_problem(part.arrays[name], spec, sizes)
        if problem is not None:
            raise PartProblem(ARRAYS, f"the array '{prefix}{name}' {problem}")
    for inner in schema.inner:
        for below, inside, own in inner.among(part):
            given = {name: sizes[name] for name in inner.inherits}
            sizes_inside = check_part(inside, inner.schema, given | own, prefix + below)
            sizes |= {f"{below}{name}": size for name, size in sizes_inside.items()}
    for check in schema.crosschecks:
        problem = check.problem(part, sizes)
        if problem is not None:
            raise PartProblem(CROSSCHECKS, problem)
    return sizes


def matched_arrays(part: Part, schema: PartSchema) -> dict[str, ArraySpec]:
    """Return the declaration of every array of a sound part, by the name of the array: what a fuzzer can change."""
    return dict(_all_arrays(part, schema, {}, ""))


def matched_params(part: Part, schema: PartSchema) -> dict[Path, Value]:
    """Return the type of every parameter of a sound part, and of all within, by its path in `part.params`."""
    return dict(_all_params(part, schema, ()))


def _all_arrays(part: Part, schema: PartSchema, known: Sizes, prefix: str) -> Iterator[tuple[str, ArraySpec]]:
    sizes = _sizes_of(part, schema, known)
    for name, spec in _matched(part, schema, sizes, prefix).items():
        yield prefix + name, spec
    for inner in schema.inner:
        for below, inside, own in inner.among(part):
            given = {name: sizes[name] for name in inner.inherits}
            yield from _all_arrays(inside, inner.schema, given | own, prefix + below)


def _all_params(part: Part, schema: PartSchema, path: Path) -> Iterator[tuple[Path, Value]]:
    for name, value in schema.values.items():
        if name in part.params:
            yield from value.inside(part.params[name], (*path, name))
    for inner in schema.inner:
        if inner.params:
            steps = tuple(int(step) if step.isdigit() else step for step in inner.params.split("."))
            for _, inside, _ in inner.among(part):
                yield from _all_params(inside, inner.schema, (*path, *steps))


def _sizes_of(part: Part, schema: PartSchema, known: Sizes) -> dict[str, int]:
    return {**known, **{p.size: part.params[p.name] for p in schema.params if p.size and p.name in part.params}}


def _matched(part: Part, schema: PartSchema, sizes: dict[str, int], prefix: str) -> dict[str, ArraySpec]:
    """Return the declaration of every array that is the part's own; missing, unknown and misshapen ones are refused.

    `sizes` gets those that the arrays set.
    """
    inside = tuple(below for inner in schema.inner for below, _, _ in inner.among(part))
    own = {name: array for name, array in part.arrays.items() if not name.startswith(inside)}
    specs: dict[str, ArraySpec] = {}
    for spec in schema.arrays:
        for name in spec.names(sizes, own):
            if name not in own:
                if spec.optional:
                    continue
                raise PartProblem(ARRAYS, f"the array '{prefix}{name}' is missing")
            problem = shape_problem(own[name], spec, sizes)
            if problem is not None:
                raise PartProblem(ARRAYS, f"the array '{prefix}{name}' {problem}")
            specs[name] = spec
    for name in own:
        if name not in specs:
            raise PartProblem(ARRAYS, f"the array {shown(prefix + name)} is not known")
    return specs


def _check_sizes(schema: PartSchema, sizes: Sizes) -> None:
    for size in schema.sizes:
        if size.name in sizes and not size.low <= sizes[size.name] <= size.high:
            raise PartProblem(
                ARRAYS, f"{size.name} ({size.about}) must be from {size.low} to {size.high}; it is {sizes[size.name]}"
            )


def shape_problem(array: np.ndarray, spec: ArraySpec, sizes: dict[str, int]) -> str | None:
    """Return why an array is not of its type and shape, or None; sizes that it sets are added to `sizes`."""
    if array.dtype.name not in spec.dtypes.split() or not array.dtype.isnative:
        return f"must be of type {' or '.join(spec.dtypes.split())}; it is {array.dtype.str} ({array.dtype.name})"
    if spec.shape is None:
        return None
    if array.ndim != len(spec.shape):
        return f"must have {len(spec.shape)} dimensions; it has {array.ndim}"
    for length, expression in zip(array.shape, spec.shape, strict=True):
        if expression == "*":
            continue
        unset = bound_name(expression, sizes)
        if unset is not None:
            name, more = unset
            sizes[name] = length - more
            if sizes[name] < 0:
                return f"must have {expression} entries; it has {length}"
        elif length != evaluate(expression, sizes):
            return f"must have {evaluate(expression, sizes)} entries ({expression}); it has {length}"
    for name, entry in zip(spec.gives, array.tolist() if spec.gives else (), strict=False):
        if sizes.setdefault(name, entry) != entry:
            return f"says {entry} for {name}, which is {sizes[name]}"
    return None


def shapes_problem(part: Part, expected: Mapping[str, tuple[int, ...]]) -> str | None:
    """Return which array has not the shape that it must have, is missing or not known; None if all are right."""
    for name, shape in expected.items():
        if name not in part.arrays:
            return f"the array '{name}' is missing"
        if part.arrays[name].shape != shape:
            return f"the array '{name}' must have the shape {shape}; it is {part.arrays[name].shape}"
    unknown = next((name for name in part.arrays if name not in expected), None)
    return None if unknown is None else f"the array {shown(unknown)} is not known"


def entries_problem(array: np.ndarray, spec: ArraySpec, sizes: Mapping[str, int]) -> str | None:
    """Return why the entries of an array are not allowed, or None; it is read once, block by block."""
    if not (spec.low is not None or spec.high is not None or spec.order or spec.finite):
        return None
    flat = array.reshape(-1)
    try:
        low = -math.inf if spec.low is None else evaluate(spec.low, sizes)
        high = math.inf if spec.high is None else evaluate(spec.high, sizes)
    except KeyError as size:
        return f"cannot be without the array that sets {size}"
    if "pointers" in spec.order:
        if flat.size == 0 or flat[0] != 0 or flat[-1] != high:
            return f"must begin with 0 and end with {high}"
        low = 0
    needs_range = low > -math.inf or high < math.inf
    for start in range(0, flat.size, BLOCK):
        block = flat[start : start + BLOCK]
        if spec.finite:
            problem = _not_finite(block, spec.finite)
            if problem is not None:
                return problem
        if needs_range:
            least, most = block.min(), block.max()
            if not (least >= low and most <= high):
                return f"must hold numbers {_limits(low, high)}; it has {least if not least >= low else most}"
        if spec.order:
            joined = flat[max(start - 1, 0) : start + BLOCK]
            wrong = joined[1:] <= joined[:-1] if spec.order == "strict pointers" else joined[1:] < joined[:-1]
            if wrong.any():
                at = max(start - 1, 0) + int(np.argmax(wrong))
                return f"must rise; it has {flat[at + 1]} after {flat[at]} at {at + 1}"
    return None


def _not_finite(block: np.ndarray, allowed: str) -> str | None:
    if block.dtype == np.float16:  # compared by their bits: numpy is slow with half floats
        if int((block.view(np.uint16) & HALF_EXPONENT).max()) < HALF_EXPONENT:
            return None
    elif block.min() >= -LARGEST_FLOAT and block.max() <= LARGEST_FLOAT:  # both are NaN if any entry is
        return None
    if allowed == "finite" or not bool(((abs(block) <= LARGEST_FLOAT) | np.isneginf(block)).all()):
        return f"must hold numbers that are {allowed}, and at most {LARGEST_FLOAT:g} in size"
    return None


def _limits(low: float, high: float) -> str:
    if high == math.inf:
        return f"from {low}"
    return f"up to {high}" if low == -math.inf else f"from {low} to {high}"
