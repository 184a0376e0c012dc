"""Rows that say the same and have different labels."""

from __future__ import annotations

import hashlib
import re
import unicodedata
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp

from longtail.validate import Rows

WORD = re.compile(r"\w+")


class Duplicate(NamedTuple):
    """Rows that say the same, with labels that only some of them have."""

    kind: str  # "same text" or "same words"
    rows: list[int]
    shared: list[int]
    differing: list[int]


def normalised(text: str) -> str:
    """Return a text without case, accents of writing, punctuation and spacing.

    >>> normalised("  The Cat,\\tsat! "), normalised("ＴＨＥ cat SAT")
    ('the cat sat', 'the cat sat')
    """
    return " ".join(WORD.findall(unicodedata.normalize("NFKC", text).casefold()))


def find_duplicates(texts: Sequence[str] | None, X: Rows | None, Y: sp.csr_array) -> list[Duplicate]:
    """Return groups of rows with the same text, or else the same words, whose labels differ; most differences first.

    Rows without texts are compared by their features. Texts without a word are left out.

    >>> Y = sp.csr_array(np.array([[1, 0], [1, 1], [0, 1]]))
    >>> find_duplicates(["A cat.", "a cat", "cat: a"], None, Y)
    [Duplicate(kind='same words', rows=[0, 1, 2], shared=[], differing=[0, 1])]
    """
    if texts is None:
        groups = [] if X is None else _groups(map(_digest, _feature_rows(X)))
        kinds = ["same text"] * len(groups)
    else:
        plain = [normalised(text) for text in texts]
        groups = _groups(" ".join(sorted(set(text.split()))) for text in plain)
        kinds = ["same text" if len({plain[row] for row in rows}) == 1 else "same words" for rows in groups]
    found = []
    for kind, rows in zip(kinds, groups, strict=True):
        labels, counts = np.unique(
            np.concatenate([Y.indices[Y.indptr[r] : Y.indptr[r + 1]] for r in rows]), return_counts=True
        )
        differing = labels[counts < len(rows)]
        if differing.size:
            found.append(Duplicate(kind, rows, labels[counts == len(rows)].tolist(), differing.tolist()))
    return sorted(found, key=lambda d: (d.kind != "same text", -len(d.differing), d.rows))


def _groups(keys: Iterable[str]) -> list[list[int]]:
    """Return the numbers of rows that share a key, in groups of two and more."""
    rows_of: dict[str, list[int]] = {}
    for row, key in enumerate(keys):
        if key:
            rows_of.setdefault(key, []).append(row)
    return [rows for rows in rows_of.values() if len(rows) > 1]


def _feature_rows(X: Rows) -> Iterable[bytes]:
    """Yield the bytes of every row of features; a row without any is empty."""
    for row in range(X.shape[0]):
        if isinstance(X, np.ndarray):
            yield X[row].tobytes() if X[row].any() else b""
        else:
            at = slice(X.indptr[row], X.indptr[row + 1])
            yield X.indices[at].tobytes() + X.data[at].tobytes()


def _digest(content: bytes) -> str:
    """Return a short key of bytes; nothing for nothing."""
    return hashlib.blake2b(content, digest_size=16).hexdigest() if content else ""
