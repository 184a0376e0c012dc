"""Texts longer than an encoder reads at once, cut into chunks of tokens whose vectors are averaged; without torch."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

LONG_TEXTS = ("beginning", "chunks", "both")
MOST_CHUNKS = 4  # of a text; what comes after them is not read
START_AND_END = 2  # special tokens around a text, of all encoders that have any


class TextChunks(NamedTuple):
    """The chunks of some texts, text after text."""

    rows: list[np.ndarray]  # token numbers of every chunk
    starts: np.ndarray  # int64 (n_texts,): the first chunk of every text
    weights: np.ndarray  # float32 (n_chunks,): tokens of every chunk, without the special ones


def tokens_read(max_length: int, n_special: int = START_AND_END) -> int:
    """Return how many tokens of a text are read in chunks of `max_length`, the special ones of the first included.

    >>> tokens_read(128)
    506
    """
    return MOST_CHUNKS * (max_length - n_special) + n_special


def cut_chunks(rows: list[np.ndarray], max_length: int, n_special: int = START_AND_END) -> TextChunks:
    """Cut token rows into chunks of at most `max_length` tokens, each with the start and end of its text around it.

    The first chunk of a text is what is read of it without chunks.

    >>> chunks = cut_chunks([np.array([1, 7, 2]), np.array([1, 7, 8, 9, 2])], 4)
    >>> [row.tolist() for row in chunks.rows], chunks.starts.tolist(), chunks.weights.tolist()
    ([[1, 7, 2], [1, 7, 8, 2], [1, 9, 2]], [0, 1], [1.0, 2.0, 1.0])
    """
    around = 1 if n_special == START_AND_END else 0
    inner = max_length - 2 * around
    out: list[np.ndarray] = []
    starts = np.empty(len(rows), dtype=np.int64)
    for number, row in enumerate(rows):
        starts[number] = len(out)
        if row.size <= max_length:
            out.append(row)
            continue
        content = row[around : row.size - around]
        for at in range(0, min(content.size, MOST_CHUNKS * inner), inner):
            out.append(np.concatenate([row[:around], content[at : at + inner], row[row.size - around :]]))
    sizes = np.array([max(1, chunk.size - 2 * around) for chunk in out], dtype=np.float32)
    return TextChunks(out, starts, sizes)


def join_chunks(vectors: np.ndarray, chunks: TextChunks, how: str = "chunks") -> np.ndarray:
    """Return one row of unit length per text, float32, from the vectors of all chunks.

    "chunks": the mean of the chunks' vectors at unit length, weighted by their tokens. "both": that mean and the vector
    of the first chunk, half and half.

    >>> chunks = cut_chunks([np.array([1, 7, 8, 9, 2])], 4)
    >>> join_chunks(np.array([[3.0, 0.0], [0.0, 1.0]]), chunks).astype(float).round(2).tolist()
    [[0.89, 0.45]]
    """
    unit = _unit(vectors)
    if not chunks.starts.size:
        return unit
    means = _unit(np.add.reduceat(unit * chunks.weights[:, None], chunks.starts, axis=0))
    return means if how == "chunks" else _unit(means + unit[chunks.starts])


def _unit(rows: np.ndarray) -> np.ndarray:
    """Return rows at unit length; zeros stay zeros."""
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    return (rows / np.maximum(lengths, 1e-12)).astype(np.float32)
