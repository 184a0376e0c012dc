"""What is fuzzed: a target makes cases from numbers and runs them; a case is some files and how they are read."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any, Protocol


@dataclass(frozen=True)
class Case:
    """One test: the files that are laid into an empty folder, what to read, and with which options.

    `change` is the kind of mutation, for the counts. `options` are JSON-able, so that a case can be kept. `expect` is
    how it must end ("read" or "refused"); "" leaves that open.
    """

    change: str
    files: Mapping[str, bytes]
    main: str
    options: Mapping[str, Any] = field(default_factory=dict)
    expect: str = ""

    @property
    def size(self) -> int:
        """The bytes of all files."""
        return sum(map(len, self.files.values()))

    def write(self, folder: Path) -> Path:
        """Write the files and return the one (or the folder) to read."""
        for name, raw in self.files.items():
            if "/" in name:
                (folder / name).parent.mkdir(parents=True, exist_ok=True)
            with open(f"{folder}/{name}", "wb", buffering=0) as file:  # noqa: PTH123 (a million times)
                file.write(raw)
        return folder / self.main


@dataclass(frozen=True)
class Target:
    """Something that reads files of strangers: how its cases are made, run and checked.

    `make` draws a case; `run` reads it and raises what it raises, or `Wrong` where the result cannot be right. A
    `base` of memory, in bytes, is allowed beside a multiple of the size of the files. `turns` are how many cases a
    target gets when a group takes turns.
    """

    name: str
    group: str
    make: Callable[[Random], Case]
    run: Callable[[Case, Path], object]
    warm_up: Callable[[Path], object] | None = None
    turns: int = 100
    base: int = 32 << 20
    needs: tuple[str, ...] = ()  # packages without which it is left out


class Wrong(Exception):
    """A result that cannot be right: ids out of range, values that are not finite, a copy that differs."""


def draw_case(target: Target, seed: int, index: int) -> Case:
    """Return a case by its number; the same number always gives the same case."""
    return target.make(Random(f"{target.name}/{seed}/{index}"))


class Source(Protocol):
    """Cases of a target by number, each with the words that run it again."""

    @property
    def target(self) -> Target: ...

    def case(self, index: int) -> Case: ...

    def label(self, index: int) -> str: ...


@dataclass(frozen=True)
class Drawn:
    """The random cases of a target."""

    target: Target
    seed: int

    def case(self, index: int) -> Case:
        """Return a case by its number."""
        return draw_case(self.target, self.seed, index)

    def label(self, index: int) -> str:
        """Return what follows `python -m fuzz` to run a case again."""
        return f"{self.target.name} --seed {self.seed} --case {index}"


@dataclass(frozen=True)
class Listed:
    """Given cases of a target, by name."""

    target: Target
    cases: Sequence[tuple[str, Case]]

    def case(self, index: int) -> Case:
        """Return a case by its number."""
        return self.cases[index][1]

    def label(self, index: int) -> str:
        """Return what follows `python -m fuzz` to run a case again."""
        return f"corpus --name {self.cases[index][0]}"
