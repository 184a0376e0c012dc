"""Measures of single rows: length, unknown words, first probability, labels given, and which of them are right."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

import numpy as np
import scipy.sparse as sp

from longtail.data import TopK, binary_hits

JUDGED = 5  # suggestions of a row that are judged where its labels are known


@dataclass(frozen=True, eq=False)
class RowMeasures:
    """Measures of some rows, an array each with one entry per row; None where something cannot be measured."""

    length: np.ndarray  # characters of the text, or features of the row
    unknown_words: np.ndarray | None = None  # share of its words
    probability: np.ndarray | None = None  # of the first label
    assigned: np.ndarray | None = None  # int32 (n_rows, width), labels that it is given, -1 after the last
    labelled: np.ndarray | None = None  # bool, whether its labels are known; what follows is 0 for other rows
    hits: np.ndarray | None = None  # bool (n_rows, JUDGED), which suggestions are right
    chances: np.ndarray | None = None  # (n_rows, JUDGED), their probabilities, -1 where there is none
    given: np.ndarray | None = None  # bool (n_rows, JUDGED), which suggestions it is given
    unknown_label: np.ndarray | None = None  # bool, whether it has a label that the model does not know

    @property
    def n_rows(self) -> int:
        """The number of rows."""
        return int(self.length.size)

    def take(self, rows: np.ndarray) -> RowMeasures:
        """Return the measures of some rows."""
        own = {field.name: getattr(self, field.name) for field in fields(self)}
        some: dict[str, Any] = {name: None if array is None else array[rows] for name, array in own.items()}
        return RowMeasures(**some)


def judge_rows(Y: sp.csr_array, top: TopK, known: np.ndarray) -> dict[str, np.ndarray]:
    """Return the measures of rows whose labels are known: hits, and labels that the model does not know.

    `Y` are the labels, numbered as predictions are and those that the model does not know after them; `known` says
    which columns the model knows. A row without any label is one whose labels are not known.
    """
    best = top.head(JUDGED)
    hits = np.zeros((top.n_rows, JUDGED), dtype=bool)
    hits[:, : best.k] = binary_hits(best, Y)
    rows = np.repeat(np.arange(Y.shape[0]), np.diff(Y.indptr))
    strange = np.bincount(rows[~known[Y.indices]], minlength=Y.shape[0]) > 0
    return {"labelled": np.diff(Y.indptr) > 0, "hits": hits, "unknown_label": strange}
