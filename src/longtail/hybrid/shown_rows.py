"""Ids and first words of the training texts, by which an explanation names similar ones to people."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np

from longtail.facts import SimilarRowFacts
from longtail.storage import ArraySpec, Part, pack_strings

SHOWN_ROWS = "shown_rows."  # prefix of the arrays
CHARACTERS = 60  # kept of a text and of an id


@dataclass(frozen=True)
class ShownRows:
    """The beginnings of texts, and ids where the data had them, packed as they are saved; read one by one.

    >>> rows = ShownRows.of(["A chess game for the desktop"], ["gnome-chess"])
    >>> rows.facts(0)
    {'row': 0, 'id': 'gnome-chess', 'text': 'A chess game for the desktop'}
    """

    arrays: dict[str, np.ndarray]

    @classmethod
    def of(cls, texts: Sequence[str], ids: Sequence[str] | None) -> Self:
        """Return what is kept of texts, one per row of the training data, and of their ids."""
        arrays = pack_strings("texts", [beginning(text) for text in texts])
        return cls(arrays if ids is None else {**arrays, **pack_strings("ids", [beginning(one) for one in ids])})

    def facts(self, row: int) -> SimilarRowFacts:
        """Return what is known of a row."""
        out: SimilarRowFacts = {"row": row}
        if "ids.bytes" in self.arrays:
            out["id"] = self._string("ids", row)
        out["text"] = self._string("texts", row)
        return out

    def _string(self, name: str, row: int) -> str:
        start, end = self.arrays[f"{name}.offsets"][row : row + 2].tolist()
        return self.arrays[f"{name}.bytes"][start:end].tobytes().decode("utf-8", "replace")


def beginning(text: str) -> str:
    """Return the first words of a text, in one line.

    >>> beginning("One line\\n and  another")
    'One line and another'
    """
    line = " ".join(text[: 4 * CHARACTERS].split())
    return line if len(line) <= CHARACTERS else line[: CHARACTERS - 1] + "…"


SHOWN_ROW_ARRAYS = tuple(
    ArraySpec(f"{SHOWN_ROWS}{name}.{what}", dtype, shape, about, low=0, order=order, optional=True)
    for name, of in (("texts", "first words of the training texts"), ("ids", "their ids"))
    for what, dtype, shape, about, order in (
        ("bytes", "uint8", ("*",), f"{of}, as UTF-8", ""),
        ("offsets", "int64", ("n_shown + 1",), "where each begins", "rising"),
    )
)


def shown_rows_problem(part: Part) -> str | None:
    """Return why the first words and ids of rows cannot be read, or None."""
    arrays = part.under(SHOWN_ROWS)
    for name in ("texts", "ids"):
        stored, offsets = arrays.get(f"{name}.bytes"), arrays.get(f"{name}.offsets")
        if (stored is None) != (offsets is None) or (stored is None and name == "texts" and arrays):
            return f"its {name} of rows are not complete"
        if stored is not None and offsets is not None and (offsets[0] != 0 or offsets[-1] != stored.size):
            return f"its {name} of rows do not end where their bytes do"
    rows = part.arrays.get("neighbours.rows")
    if arrays and rows is not None and rows.size and int(rows.max()) + 1 >= arrays["texts.offsets"].size:
        return "it remembers rows whose first words are missing"
    return None
