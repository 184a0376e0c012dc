"""Very many strings as one array of bytes and their ends, decoded one by one when asked for."""

from __future__ import annotations

import codecs
import itertools
from collections.abc import Iterator, Sequence
from typing import overload

import numpy as np

AT_ONCE = 1 << 14  # strings that are decoded together
CHECKED_AT_ONCE = 1 << 20  # offsets, or bytes


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

    offsets: np.ndarray
    raw: np.ndarray

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

    @classmethod
    def of(cls, strings: Sequence[str]) -> MappedStrings:
        """Return strings as one array in memory."""
        if isinstance(strings, MappedStrings):
            return strings
        encoded = [s.encode("utf-8", "surrogatepass") for s in strings]
        offsets = np.zeros(len(encoded) + 1, dtype=np.int64)
        np.cumsum(np.fromiter(map(len, encoded), dtype=np.int64, count=len(encoded)), out=offsets[1:])
        return cls(np.frombuffer(b"".join(encoded), dtype=np.uint8), offsets)

    def repeated(self) -> str | None:
        """Return a string that comes twice, or None; no more than a number for each is held."""
        marks = np.fromiter(map(hash, self), dtype=np.int64, count=len(self))
        if np.unique(marks).size == len(self):
            return None
        seen: set[str] = set()
        for string in self:
            if string in seen:
                return string
            seen.add(string)
        return None

    def _decoded(self, low: int, high: int) -> list[str]:
        ends = self.offsets[low : high + 1].tolist()
        raw, first = self.raw[ends[0] : ends[-1]].tobytes(), ends[0]
        return [raw[a - first : b - first].decode("utf-8", "surrogatepass") for a, b in itertools.pairwise(ends)]


def strings_problem(raw: np.ndarray | None, offsets: np.ndarray | None, n: int) -> str | None:
    """Return why bytes and offsets are not so many strings in UTF-8, or None; nothing is copied.

    >>> strings_problem(np.frombuffer(b"ab", np.uint8), np.array([0, 3]), 1)
    'the offsets do not fit'
    """
    if raw is None or offsets is None or raw.dtype != np.uint8 or offsets.dtype != np.int64:
        return "the arrays are not those of strings"
    if raw.ndim != 1 or offsets.shape != (n + 1,) or offsets[0] != 0 or offsets[-1] != raw.size:
        return "the offsets do not fit"
    for low in range(0, n, CHECKED_AT_ONCE):
        ends = offsets[low : low + CHECKED_AT_ONCE + 1]
        if (ends[1:] < ends[:-1]).any() or ends[0] < 0 or ends[-1] > raw.size:
            return "the offsets do not fit"
        inner = ends[:-1][ends[:-1] < raw.size]
        if ((raw[inner] & 0xC0) == 0x80).any():  # a string that begins within a letter
            return "it is not UTF-8"
    decoder = codecs.getincrementaldecoder("utf-8")("surrogatepass")
    try:
        for low in range(0, raw.size, CHECKED_AT_ONCE):
            decoder.decode(raw[low : low + CHECKED_AT_ONCE].tobytes(), final=low + CHECKED_AT_ONCE >= raw.size)
    except UnicodeDecodeError:
        return "it is not UTF-8"
    return None
