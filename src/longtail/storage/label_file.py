"""The labels of a model: a line of JSON for each, or, where there are very many, arrays that stay in their file."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import overload

import numpy as np

from longtail.storage.mapped_strings import MappedStrings, strings_problem
from longtail.validate import Json

MANY_LABELS = 100_000  # from which on labels are arrays
NAMES = {"names.bytes", "names.offsets", "counts"}
TEXTS = {"texts.bytes", "texts.offsets"}


@dataclass(frozen=True, eq=False)
class LabelColumns(Sequence[Json]):
    """The records of labels, each made when it is asked for.

    >>> LabelColumns(MappedStrings.of(["apple", "car"]), np.array([3, 1]))[1]
    {'name': 'car', 'count': 1}
    """

    names: MappedStrings
    counts: np.ndarray  # int64
    texts: MappedStrings | None = None

    def __len__(self) -> int:
        return len(self.names)

    @overload
    def __getitem__(self, at: int) -> Json: ...
    @overload
    def __getitem__(self, at: slice) -> list[Json]: ...
    def __getitem__(self, at: int | slice) -> Json | list[Json]:
        if isinstance(at, slice):
            return [self[i] for i in range(len(self))[at]]
        record: Json = {"name": self.names[at], "count": int(self.counts[at])}
        return record if self.texts is None else {**record, "text": self.texts[at]}

    def arrays(self) -> dict[str, np.ndarray]:
        """Return what is saved."""
        out = {"names.bytes": self.names.raw, "names.offsets": self.names.offsets, "counts": self.counts}
        if self.texts is not None:
            out |= {"texts.bytes": self.texts.raw, "texts.offsets": self.texts.offsets}
        return out

    @classmethod
    def of_arrays(cls, arrays: dict[str, np.ndarray]) -> LabelColumns:
        """Return the labels that were saved; their arrays have been checked."""
        texts = MappedStrings(arrays["texts.bytes"], arrays["texts.offsets"]) if arrays.keys() >= TEXTS else None
        return cls(MappedStrings(arrays["names.bytes"], arrays["names.offsets"]), arrays["counts"], texts)


def columns_problem(arrays: dict[str, np.ndarray]) -> str | None:
    """Return why arrays are not those of labels, or None."""
    if arrays.keys() not in (NAMES, NAMES | TEXTS):
        return "it has not the arrays of labels"
    counts = arrays["counts"]
    if counts.ndim != 1 or counts.dtype != np.int64 or (counts.size and int(counts.min()) < 0):
        return "the counts of labels are not whole numbers from 0"
    for field in ("names", "texts") if arrays.keys() >= TEXTS else ("names",):
        problem = strings_problem(arrays[f"{field}.bytes"], arrays[f"{field}.offsets"], counts.size)
        if problem is not None:
            return f"the {field} of labels: {problem}"
    twice = MappedStrings(arrays["names.bytes"], arrays["names.offsets"]).repeated()
    return None if twice is None else f"the label {twice!r} stands there twice"
