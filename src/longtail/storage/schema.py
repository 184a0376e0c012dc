"""Schemas: what the parts of a model folder may hold, declared once, next to the code that saves and loads them.

A `PartSchema` lists the parameters, the sizes and the arrays of one kind of part. Names of sizes stand for numbers that
are not known before a folder is read: the first array whose shape names a size sets it, or a parameter does, and all
others must agree. So `shape=("n_labels",)` in two arrays means that they are equally long.

    THING = PartSchema(
        kind="thing.v1",
        about="a matrix of counts and the names of its rows",
        params=(ParamSpec("alpha", Real(0, 1), "how much counts are smoothed"),),
        sizes=(SizeSpec("n_rows", "rows", low=1),),
        arrays=(
            ArraySpec("counts", "int64", ("n_rows", 3), "one line per row", low=0),
            *string_arrays("names", "n_rows", "the names of the rows"),
        ),
        crosschecks=(CrossCheck("every row has a count", _no_empty_rows),),
    )

`check.py` holds a part against its schema; the page docs/model-folders.md and the fuzzers read the same objects.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field

from longtail.storage.part import Part
from longtail.storage.values import Path, Value

LARGEST_SIZE = 2**31 - 1  # numbers of labels, features and rows fit into int32
FIELD = re.compile(r"\{\w+\}")
TERM = re.compile(r"(\d+|\w+)(?: ([+*-]) (\d+|\w+))?$")
INT_DTYPES = ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")
ORDERS = ("", "rising", "pointers", "strict pointers")
FINITE = ("", "finite", "finite or -inf")
Sizes = Mapping[str, int]
Size = int | str


@dataclass(frozen=True)
class SizeSpec:
    """A number that shapes and limits refer to by name, and the least and most that it may be."""

    name: str
    about: str
    low: int = 0
    high: int = LARGEST_SIZE


@dataclass(frozen=True)
class ParamSpec:
    """A parameter of a part.

    Parameters
    ----------
    name : str
        Its name in the manifest.
    value : Value
        What it may be.
    about : str
        What it is for, in a few words.
    optional : bool, default=False
        Whether it may be missing: it is newer than the first version of the kind.
    size : str, default=""
        The size that it sets.
    """

    name: str
    value: Value
    about: str = ""
    optional: bool = False
    size: str = ""


@dataclass(frozen=True)
class ArraySpec:
    """An array of a part.

    Parameters
    ----------
    name : str
        Its name in the file. A field in braces stands for 0, 1, 2, ... (`times` of them); a star at the end for any
        name.
    dtypes : str
        Its type, or several with spaces between them.
    shape : tuple of int or str, or None
        Length of every dimension: a number, a size, a sum or product such as "n_labels + 1", or "*" for any length;
        None for any shape.
    about : str
        What it holds.
    low, high : int or str, default=None
        Least and largest entry: a number, or a size or a sum, such as "n_labels - 1".
    order : {"", "rising", "pointers", "strict pointers"}, default=""
        "rising": no entry is less than the one before. "pointers": it also begins with 0 and ends with `high`.
        "strict pointers": every entry is larger than the one before.
    finite : {"", "finite", "finite or -inf"}, default=""
        Which numbers are allowed in an array of floats.
    optional : bool, default=False
        Whether it may be missing.
    gives : tuple of str, default=()
        Sizes that its entries are.
    times : str, default=""
        How many there are, of arrays with a field in their name.
    """

    name: str
    dtypes: str
    shape: tuple[Size, ...] | None
    about: str = ""
    low: Size | None = None
    high: Size | None = None
    order: str = ""
    finite: str = ""
    optional: bool = False
    gives: tuple[str, ...] = ()
    times: str = ""

    def names(self, sizes: Sizes, given: Mapping[str, object]) -> list[str]:
        """Return the names of the arrays that this stands for, of a part with these arrays."""
        if self.name.endswith("*"):
            return [name for name in given if name.startswith(self.name[:-1])]
        if self.times:
            return [FIELD.sub(str(number), self.name) for number in range(evaluate(self.times, sizes))]
        return [self.name]


@dataclass(frozen=True)
class CrossCheck:
    """What must hold between arrays and parameters beyond their types and ranges.

    `problem(part, sizes)` returns why it does not, or None; it is called when all else holds.
    """

    about: str
    problem: Callable[[Part, Sizes], str | None]


@dataclass(frozen=True)
class InnerPart:
    """A part inside a part: its arrays have a prefix, and its parameters stand among those of the outer part.

    Parameters
    ----------
    prefix : str
        Beginning of the names of its arrays; a field in braces where there are several.
    schema : PartSchema
        What it holds.
    params : str, default=""
        Where its parameters stand, with dots between names and numbers; "" where it has none of its own. A part whose
        parameters are missing or null is not there.
    times : str, default=""
        Parameter of the outer part, a list with one number for every such part.
    size : str, default=""
        Size of the inner part that this number is.
    inherits : tuple of str, default=()
        Sizes that the inner part has from the outer one.
    """

    prefix: str
    schema: PartSchema
    params: str = ""
    times: str = ""
    size: str = ""
    inherits: tuple[str, ...] = ()

    def among(self, part: Part) -> Iterator[tuple[str, Part, dict[str, int]]]:
        """Yield prefix, part and own size of all such parts of a part."""
        if self.times:
            for number, size in enumerate(part.params[self.times]):
                prefix = FIELD.sub(str(number), self.prefix)
                yield prefix, part.inner(prefix, self.schema.kind), {self.size: size}
            return
        params = find(part.params, tuple(self.params.split(".")))
        if isinstance(params, dict):
            yield self.prefix, part.inner(self.prefix, self.schema.kind, params), {}


@dataclass(frozen=True)
class PartSchema:
    """What one kind of part holds.

    Parameters
    ----------
    kind : str
        Name and version of the format.
    about : str
        What it is, in a few words.
    params : tuple of ParamSpec
        All parameters.
    sizes : tuple of SizeSpec
        All sizes.
    arrays : tuple of ArraySpec
        All arrays, in an order in which sizes are set before they are needed.
    inner : tuple of InnerPart
        Parts inside.
    crosschecks : tuple of CrossCheck
        What else must hold.
    """

    kind: str
    about: str = ""
    params: tuple[ParamSpec, ...] = ()
    sizes: tuple[SizeSpec, ...] = ()
    arrays: tuple[ArraySpec, ...] = ()
    inner: tuple[InnerPart, ...] = ()
    crosschecks: tuple[CrossCheck, ...] = ()

    @property
    def values(self) -> dict[str, Value]:
        """The types of the parameters by name."""
        return {param.name: param.value for param in self.params}

    @property
    def optional(self) -> frozenset[str]:
        """The parameters that may be missing."""
        return frozenset(param.name for param in self.params if param.optional)


@dataclass(frozen=True)
class FolderSchema:
    """What a model folder of one kind holds: parts by name, each of one of some kinds, and perhaps labels.

    Parameters
    ----------
    kind : str
        Kind of the folder.
    parts : mapping of str to mapping of str to PartSchema
        The schemas that each part may have, by kind.
    optional : frozenset of str
        Parts that may be missing.
    has_labels : bool, default=False
        Whether there is a file of labels.
    facts : dict of str to Value
        Further entries of the manifest, all of which may be missing.
    """

    kind: str
    parts: Mapping[str, Mapping[str, PartSchema]]
    optional: frozenset[str] = frozenset()
    has_labels: bool = False
    facts: Mapping[str, Value] = field(default_factory=dict)


def csr_arrays(name: str, rows: str, columns: str, about: str, entries: str = "n_entries") -> tuple[ArraySpec, ...]:
    """Return the arrays of a sparse float32 matrix, as `pack_csr` names them."""
    return (
        ArraySpec(f"{name}.shape", "int64", (2,), f"rows and columns of {about}", low=0, gives=(rows, columns)),
        ArraySpec(f"{name}.data", "float32", (entries,), f"entries of {about}, row by row", finite="finite"),
        ArraySpec(f"{name}.indices", "int32", (entries,), "column of every entry", low=0, high=f"{columns} - 1"),
        ArraySpec(
            f"{name}.indptr", "int64", (f"{rows} + 1",), "where every row begins", order="pointers", high=entries
        ),
    )


def string_arrays(name: str, count: str, about: str, n_bytes: str = "", *, empty: bool = True) -> tuple[ArraySpec, ...]:
    """Return the arrays of a list of strings, as `pack_strings` names them; without `empty` none is empty."""
    end, order = n_bytes or f"{name}_bytes", "pointers" if empty else "strict pointers"
    return (
        ArraySpec(f"{name}.bytes", "uint8", (end,), f"{about}, as UTF-8"),
        ArraySpec(f"{name}.offsets", "int64", (f"{count} + 1",), "where each begins", order=order, high=end),
    )


def evaluate(expression: Size, sizes: Sizes) -> int:
    """Return the number that a size, or a sum or product of two, stands for; nothing else is understood.

    >>> evaluate("n_labels + 1", {"n_labels": 4}), evaluate("2 * k", {"k": 3}), evaluate(7, {})
    (5, 6, 7)
    """
    if isinstance(expression, int):
        return expression
    left, sign, right = _parsed(expression)
    first = _number(left, sizes)
    if sign is None or right is None:
        return first
    second = _number(right, sizes)
    return first + second if sign == "+" else first - second if sign == "-" else first * second


def bound_name(expression: Size, sizes: Sizes) -> tuple[str, int] | None:
    """Return the size that a length would set, and what to take off the length for it; None if all is known.

    >>> bound_name("n_labels + 1", {}), bound_name("n_labels", {"n_labels": 3})
    (('n_labels', 1), None)
    """
    if isinstance(expression, int):
        return None
    left, sign, right = _parsed(expression)
    if left.isdigit() or left in sizes:
        return None
    return left, 0 if sign is None or right is None else (1 if sign == "+" else -1) * int(right)


def find(params: object, path: Path) -> object:
    """Return what stands at a path of names and numbers within parameters, or None."""
    for step in path:
        if isinstance(params, dict):
            params = params.get(step)
        elif isinstance(params, list) and str(step).isdigit() and int(step) < len(params):
            params = params[int(step)]
        else:
            return None
    return params


def _parsed(expression: str) -> tuple[str, str | None, str | None]:
    match = TERM.match(expression)
    if match is None:
        raise ValueError(f"{expression!r} is no size")
    return match.group(1), match.group(2), match.group(3)


def _number(term: str, sizes: Sizes) -> int:
    return int(term) if term.isdigit() else sizes[term]
