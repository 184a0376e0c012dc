"""Very many strings as one array of bytes and their ends, decoded one by one when asked for."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from typing import overload

import numpy as np

AT_ONCE = 1 << 14  # strings that are decoded together


class MappedStrings(Sequence[str]):
    """A tuple of strings that is not in memory: string i is raw[offsets[i]:offsets[i + 1]], in UTF-8.

    It is equal to a tuple, or a list, of the same strings.

    Parameters
    ----------
    raw : ndarray of uint8
        The strings end to end, as a rule a mapped file.
    offsets : ndarray of int64 (n + 1,)
        Where each begins, and the end; checked before.

    Examples
    --------
    >>> names = MappedStrings(np.frombuffer(b"applecar", np.uint8), np.array([0, 5, 8]))
    >>> names[1], names[-2:], names == ("apple", "car"), "car" in names
    ('car', ('apple', 'car'), True, True)
    """

    def __init__(self, raw: np.ndarray, offsets: np.ndarray) -> None:
        self.raw, self.offsets = raw, offsets

    def __len__(self) -> int:
        return self.offsets.size - 1

    @overload
    def __getitem__(self, at: int) -> str: ...
    @overload
    def __getitem__(self, at: slice) -> tuple[str, ...]: ...
    def __getitem__(self, at: int | slice) -> str | tuple[str, ...]:
        if isinstance(at, slice):
            low, high, step = at.indices(len(self))
            if step == 1:
                return tuple(self._decoded(low, max(low, high)))
            return tuple(self[i] for i in range(low, high, step))
        number = range(len(self))[at]
        low, high = self.offsets[number], self.offsets[number + 1]
        return self.raw[low:high].tobytes().decode("utf-8", "surrogatepass")

    def __iter__(self) -> Iterator[str]:
        for low in range(0, len(self), AT_ONCE):
            yield from self._decoded(low, min(low + AT_ONCE, len(self)))

    def __eq__(self, other: object) -> bool:
        if isinstance(other, MappedStrings):
            same = np.array_equal(self.offsets, other.offsets) and np.array_equal(self.raw, other.raw)
            return bool(same)
        if not isinstance(other, tuple | list):
            return NotImplemented
        return len(self) == len(other) and all(a == b for a, b in zip(self, other, strict=True))

    def __hash__(self) -> int:
        return hash(tuple(self))

    def __repr__(self) -> str:
        shown = ", ".join(map(repr, self[:3])) + (", ..." if len(self) > 3 else "")
        return f"MappedStrings({len(self)}: {shown})"

    def _decoded(self, low: int, high: int) -> list[str]:
        ends = self.offsets[low : high + 1].tolist()
        raw, first = self.raw[ends[0] : ends[-1]].tobytes(), ends[0]
        return [raw[a - first : b - first].decode("utf-8", "surrogatepass") for a, b in itertools.pairwise(ends)]
