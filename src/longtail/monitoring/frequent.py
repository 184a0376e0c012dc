"""The most frequent names of a long stream, in bounded memory."""

from __future__ import annotations

from collections.abc import Iterable, Sequence


class FrequentNames:
    """Counts names; when there are too many, the rarest are let go, and the count of a name that returns is too low.

    >>> names = FrequentNames(most=3)
    >>> names.add(["new", "rare", "new"], [5, 1, 2])
    >>> names.add(["other", "last"], [3, 1])
    >>> names.top(2), names.complete
    ([('new', 7)], False)
    """

    def __init__(self, most: int = 200_000) -> None:
        self.most = most
        self.complete: bool = True  # no name was let go
        self._counts: dict[str, int] = {}

    def add(self, names: Sequence[str], counts: Iterable[int]) -> None:
        """Count names, each so many times."""
        known = self._counts
        for name, count in zip(names, counts, strict=True):
            known[name] = known.get(name, 0) + int(count)
        if len(known) > self.most:
            kept = sorted(known.items(), key=_rank)[: max(self.most // 2, 1)]
            self._counts, self.complete = dict(kept), False

    def top(self, n: int) -> list[tuple[str, int]]:
        """Return the n most frequent names with their counts; equals by name."""
        return sorted(self._counts.items(), key=_rank)[:n]

    def __len__(self) -> int:
        return len(self._counts)


def _rank(entry: tuple[str, int]) -> tuple[int, str]:
    return -entry[1], entry[0]
