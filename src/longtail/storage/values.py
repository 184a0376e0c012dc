"""Types and limits of saved parameters, as objects that check, describe and enumerate values.

A `Value` answers two questions: `problem(value, name)` says in words why a value is not allowed, or None; `words` says
what is allowed. Nothing here converts a value: JSON has whole numbers, numbers, strings, lists and objects, and true is
no number.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import ClassVar

Path = tuple[str | int, ...]
LARGEST_INT = 2**63 - 1
LONGEST_SHOWN = 60
DEEPEST = 12  # levels of lists and objects in facts that are only shown


class Value:
    """Base of the types: what a parameter may be."""

    none: bool = False  # whether null is allowed too

    def problem(self, value: object, name: str) -> str | None:
        """Return why the value is not allowed, or None."""
        if value is None and self.none:
            return None
        return self._problem(value, name)

    @property
    def words(self) -> str:
        """What is allowed, in words."""
        return self._words() + (", or null" if self.none else "")

    def inside(self, value: object, path: Path) -> Iterator[tuple[Path, Value]]:
        """Yield this type and those of all that the value holds, each with its path."""
        yield path, self

    def _problem(self, value: object, name: str) -> str | None:
        return None if self._allows(value) else f"'{name}' must be {self.words}; it is {shown(value)}"

    def _allows(self, value: object) -> bool:
        raise NotImplementedError

    def _words(self) -> str:
        raise NotImplementedError


@dataclass(frozen=True)
class Whole(Value):
    """A whole number from `low` to `high`.

    >>> Whole(1, 9).problem(True, "k")
    "'k' must be a whole number from 1 to 9; it is True"
    """

    low: int = 0
    high: int = LARGEST_INT
    none: bool = False

    def _allows(self, value: object) -> bool:
        return isinstance(value, int) and not isinstance(value, bool) and self.low <= value <= self.high

    def _words(self) -> str:
        if self.high == LARGEST_INT:
            return f"a whole number of {self.low} or more"
        return f"a whole number from {self.low} to {self.high}"


@dataclass(frozen=True)
class Real(Value):
    """A finite number from `low` to `high`; with `above`, `low` itself is not allowed."""

    low: float = -math.inf
    high: float = math.inf
    above: bool = False
    none: bool = False

    def _allows(self, value: object) -> bool:
        if isinstance(value, bool) or not isinstance(value, int | float):
            return False
        if not abs(value) <= 1.7976931348623157e308:  # not finite as a float, NaN too
            return False
        return (value > self.low if self.above else value >= self.low) and value <= self.high

    def _words(self) -> str:
        low = "" if self.low == -math.inf else f" above {self.low:g}" if self.above else f" of {self.low:g} or more"
        if self.high == math.inf:
            return f"a finite number{low}"
        return f"a number{low or ' of any size'}, up to {self.high:g}"


@dataclass(frozen=True)
class Flag(Value):
    """True or false."""

    none: bool = False

    def _allows(self, value: object) -> bool:
        return isinstance(value, bool)

    def _words(self) -> str:
        return "true or false"


@dataclass(frozen=True)
class Choice(Value):
    """One of some words."""

    options: tuple[str, ...]
    none: bool = False

    def _allows(self, value: object) -> bool:
        return isinstance(value, str) and value in self.options

    def _words(self) -> str:
        return "one of " + ", ".join(f'"{option}"' for option in self.options)


@dataclass(frozen=True)
class Exactly(Value):
    """One value and no other, of its own type."""

    value: bool | int
    none: bool = False

    def _allows(self, value: object) -> bool:
        return type(value) is type(self.value) and value == self.value

    def _words(self) -> str:
        return json.dumps(self.value)


@dataclass(frozen=True)
class Text(Value):
    """A string of at most so many characters."""

    longest: int = 1000
    none: bool = False

    def _allows(self, value: object) -> bool:
        return isinstance(value, str) and len(value) <= self.longest

    def _words(self) -> str:
        return f"a string of at most {self.longest} characters"


@dataclass(frozen=True)
class ListOf(Value):
    """A list with `shortest` to `longest` entries of one type."""

    each: Value
    shortest: int = 0
    longest: int = LARGEST_INT
    none: bool = False

    def _problem(self, value: object, name: str) -> str | None:
        if not isinstance(value, list) or not self.shortest <= len(value) <= self.longest:
            got = f"a list of {len(value)}" if isinstance(value, list) else shown(value)
            return f"'{name}' must be {self.words}; it is {got}"
        problems = (self.each.problem(entry, f"{name}[{at}]") for at, entry in enumerate(value))
        return next((problem for problem in problems if problem is not None), None)

    def _words(self) -> str:
        if self.shortest == self.longest:
            return f"a list of {self.shortest}, each {self.each.words}"
        limits = f" of {self.shortest} or more" if self.shortest else ""
        limits += f" of at most {self.longest}" if self.longest < LARGEST_INT else ""
        return f"a list{limits}, each {self.each.words}"

    def inside(self, value: object, path: Path) -> Iterator[tuple[Path, Value]]:
        yield path, self
        for at, entry in enumerate(value if isinstance(value, list) else []):
            yield from self.each.inside(entry, (*path, at))


@dataclass(frozen=True)
class Record(Value):
    """An object with these fields and no others; those in `optional` may be missing."""

    fields: Mapping[str, Value]
    optional: frozenset[str] = frozenset()
    none: bool = False

    def _problem(self, value: object, name: str) -> str | None:
        if not isinstance(value, dict):
            return f"'{name}' must be an object; it is {shown(value)}"
        return fields_problem(value, self.fields, self.optional, f"{name}.")

    def _words(self) -> str:
        return "an object with " + ", ".join(f"`{name}`" for name in self.fields)

    def inside(self, value: object, path: Path) -> Iterator[tuple[Path, Value]]:
        yield path, self
        for name, entry in (value if isinstance(value, dict) else {}).items():
            if name in self.fields:
                yield from self.fields[name].inside(entry, (*path, name))


@dataclass(frozen=True)
class MapOf(Value):
    """An object whose fields, of any names or of names of a pattern, have values of one type."""

    each: Value
    names: str = ""  # a regular expression
    none: bool = False

    def _problem(self, value: object, name: str) -> str | None:
        if not isinstance(value, dict):
            return f"'{name}' must be an object; it is {shown(value)}"
        odd = next((key for key in value if self.names and not re.fullmatch(self.names, key)), None)
        if odd is not None:
            return f"'{name}' must not have a field {shown(odd)}"
        problems = (self.each.problem(entry, f"{name}.{shown(key)}") for key, entry in value.items())
        return next((problem for problem in problems if problem is not None), None)

    def _words(self) -> str:
        return f"an object whose fields are each {self.each.words}"

    def inside(self, value: object, path: Path) -> Iterator[tuple[Path, Value]]:
        yield path, self
        for name, entry in (value if isinstance(value, dict) else {}).items():
            yield from self.each.inside(entry, (*path, name))


@dataclass(frozen=True)
class Sequence(Value):
    """A list with one type for each entry."""

    entries: tuple[Value, ...]
    none: bool = False

    def _problem(self, value: object, name: str) -> str | None:
        if not isinstance(value, list) or len(value) != len(self.entries):
            return f"'{name}' must be {self.words}; it is {shown(value)}"
        pairs = enumerate(zip(self.entries, value, strict=True))
        problems = (entry.problem(given, f"{name}[{at}]") for at, (entry, given) in pairs)
        return next((problem for problem in problems if problem is not None), None)

    def _words(self) -> str:
        return "a list of " + ", then ".join(entry.words for entry in self.entries)

    def inside(self, value: object, path: Path) -> Iterator[tuple[Path, Value]]:
        yield path, self
        for at, (entry, given) in enumerate(zip(self.entries, value if isinstance(value, list) else [], strict=False)):
            yield from entry.inside(given, (*path, at))


@dataclass(frozen=True)
class OneOf(Value):
    """A value of any of some types."""

    types: tuple[Value, ...]
    none: bool = False

    def _problem(self, value: object, name: str) -> str | None:
        if any(one.problem(value, name) is None for one in self.types):
            return None
        return f"'{name}' must be {self.words}; it is {shown(value)}"

    def _words(self) -> str:
        return ", or ".join(one.words for one in self.types)


@dataclass(frozen=True)
class PartParams(Value):
    """The parameters of a part inside this one; they are checked with that part."""

    kind: str
    none: bool = False

    def _allows(self, value: object) -> bool:
        return isinstance(value, dict)

    def _words(self) -> str:
        return f"the parameters of a part `{self.kind}`"


@dataclass(frozen=True)
class Facts(Value):
    """An object that is only shown, never computed with: anything that JSON has, at most some levels deep."""

    none: bool = False
    plain: ClassVar[tuple[type, ...]] = (str, int, float, bool)
    deepest: int = field(default=DEEPEST)

    def _problem(self, value: object, name: str) -> str | None:
        if not isinstance(value, dict):
            return f"'{name}' must be an object; it is {shown(value)}"
        level: list[object] = [value]
        for _ in range(self.deepest):
            level = [inner for outer in level for inner in _entries(outer)]
            if not level:
                return None
        return f"'{name}' must be an object of at most {self.deepest} levels"

    def _words(self) -> str:
        return "an object with facts that are only shown"


def _entries(value: object) -> list[object]:
    if isinstance(value, dict):
        return list(value.values())
    return value if isinstance(value, list) else []


def fields_problem(
    given: Mapping[str, object], fields: Mapping[str, Value], optional: frozenset[str], prefix: str
) -> str | None:
    """Return why an object does not have the fields it must have and no others, or None."""
    for name in given:
        if name not in fields:
            return f"'{prefix}{shown(name)[1:-1]}' is not known"
    for name, value in fields.items():
        if name in given:
            problem = value.problem(given[name], f"{prefix}{name}")
            if problem is not None:
                return problem
        elif name not in optional:
            return f"'{prefix}{name}' is missing"
    return None


def shown(value: object) -> str:
    """Return a value for a sentence: on one line, without control characters, and not long.

    >>> shown("a" * 100)[:10], len(shown(list(range(1000))))
    ("'aaaaaaaaa", 61)
    """
    if isinstance(value, int) and not isinstance(value, bool) and value.bit_length() > 256:
        return "a number of more than 70 digits"
    if isinstance(value, list | dict) and len(value) > LONGEST_SHOWN:
        value = list(value)[:LONGEST_SHOWN]
    if isinstance(value, str):
        value = value[: 2 * LONGEST_SHOWN]
    try:
        text = repr(value)
    except (RecursionError, ValueError):  # nested too deeply, or a number of thousands of digits
        return f"a {type(value).__name__}"
    return text if len(text) <= LONGEST_SHOWN else text[:LONGEST_SHOWN] + "…"
