"""Changes of sound parts that a stranger could make, one at a time, named and enumerated from the schema."""

import copy

import numpy as np

from longtail.storage import Part, matched_arrays, matched_params

HUGE = 2**63 - 1
ODD_VALUES = (
    None,
    True,
    False,
    -1,
    0,
    1,
    2**31,
    HUGE,
    2**70,
    -0.5,
    1.5,
    1e308,
    "",
    "x",
    "../../etc",
    [],
    [0],
    {},
    {"a": 1},
)
ODD_TYPES = ("float16", "float32", "float64", "int8", "int32", "int64", "uint8", "uint16", "uint64", "bool")


def changed_arrays(array, spec):
    """Yield (name of the change, changed array, whether it must be refused) for one array of a part."""
    for dtype in ODD_TYPES:
        if dtype not in spec.dtypes.split():
            with np.errstate(invalid="ignore"):  # -inf is no whole number
                yield f"as {dtype}", array.astype(dtype), True
    yield "big-endian", array.astype(array.dtype.newbyteorder(">")), array.dtype.itemsize > 1
    yield "one dimension more", array[None], spec.shape is not None
    yield "no dimension", array.reshape(-1)[:1].reshape(()), spec.shape is not None
    yield "one entry more", np.concatenate([array.reshape(-1), array.reshape(-1)[-1:]]), False
    yield "one entry less", array.reshape(-1)[:-1], False
    yield "empty", array[:0] if array.ndim else array, False
    for name, value in odd_entries(array, spec):
        for at in {0, array.size // 2, array.size - 1} if array.size else ():
            flat = array.reshape(-1).copy()
            flat[at] = value
            yield f"{name} at {at}", flat.reshape(array.shape), False
    if array.ndim == 1 and array.size > 3:
        yield "reversed", array[::-1].copy(), False
        if array.dtype == np.int64:
            wrapped = array.copy()
            wrapped[1:3] = HUGE, -2
            yield "wrapped", wrapped, bool(spec.order)


def odd_entries(array, spec):
    """Yield named values that an entry could be set to."""
    if array.dtype.kind == "f":
        yield from (("nan", np.nan), ("inf", np.inf), ("-inf", -np.inf))
        yield "largest", np.finfo(array.dtype).max
    elif array.dtype.kind in "iu":
        limits = np.iinfo(array.dtype)
        yield from (("least", limits.min), ("largest", limits.max), ("one", 1), ("zero", 0))
    if array.dtype.kind == "i":
        yield "minus one", -1


def hostile_parts(part, schema):
    """Yield (what was changed, changed part, whether the gate must refuse it) for arrays and parameters of a part."""
    tried = set()
    for name, spec in matched_arrays(part, schema).items():
        if spec.name.endswith("*") and id(spec) in tried:
            continue  # one of the many weights of a network
        tried.add(id(spec))
        for change, array, refused in changed_arrays(part.arrays[name], spec):
            array = array.view()
            array.flags.writeable = False  # as those of a file are; others would need kernels of their own
            yield f"{name} {change}", Part(part.kind, part.params, {**part.arrays, name: array}), refused
        rest = {other: array for other, array in part.arrays.items() if other != name}
        yield f"{name} missing", Part(part.kind, part.params, rest), not spec.optional and not name.count("weights.")
    yield "an array more", Part(part.kind, part.params, {**part.arrays, "more": np.zeros(1)}), True
    for path, value in matched_params(part, schema).items():
        for odd in ODD_VALUES:
            refused = value.problem(odd, "") is not None
            yield f"{path} = {odd!r}", Part(part.kind, with_value(part.params, path, odd), part.arrays), refused
        yield f"{path} missing", Part(part.kind, without(part.params, path), part.arrays), False
    yield "a parameter more", Part(part.kind, {**part.params, "n_jobs": 10**6}, part.arrays), True


def with_value(params, path, value):
    """Return parameters with another value at a path."""
    out = copy.deepcopy(params)
    inner = out
    for step in path[:-1]:
        inner = inner[step]
    inner[path[-1]] = value
    return out


def without(params, path):
    """Return parameters without what stands at a path."""
    out = copy.deepcopy(params)
    inner = out
    for step in path[:-1]:
        inner = inner[step]
    del inner[path[-1]]
    return out
