"""Write n-grams as strings into one byte array with offsets, and sort such strings."""

from __future__ import annotations

import numpy as np

from longtail.kernels import njit
from longtail.text.utf8 import write_code_point


@njit(nogil=True, cache=True)
def _symbol_size(symbol: int, words: bool, starts: np.ndarray) -> int:
    if words:
        return starts[symbol + 1] - starts[symbol]
    return 1 if symbol < 0x80 else 2 if symbol < 0x800 else 3 if symbol < 0x10000 else 4


@njit(nogil=True, cache=True)
def gram_offsets(
    nodes: np.ndarray,  # IN   n-grams to write                                   (n_grams,) int32
    parent: np.ndarray,  # IN   the node without its last symbol, or -1            (n_nodes,) int32
    last: np.ndarray,  # IN   the last symbol of each node                       (n_nodes,) int32
    words: bool,  # IN   True: symbols are words; False: code points
    starts: np.ndarray,  # IN   word w is arena[starts[w]:starts[w + 1]]           (n_words + 1,) int64
    offsets: np.ndarray,  # OUT  n-gram g will be raw[offsets[g]:offsets[g + 1]]    (n_grams + 1,) int64
) -> None:
    """Measure n-grams as UTF-8: words with a space between them, or code points end to end."""
    offsets[0] = 0
    for gram in range(nodes.size):
        size = 0
        node = nodes[gram]
        while node >= 0:
            size += _symbol_size(last[node], words, starts)
            node = parent[node]
            if words and node >= 0:
                size += 1
        offsets[gram + 1] = offsets[gram] + size


@njit(nogil=True, cache=True)
def gram_bytes(
    nodes: np.ndarray,  # IN   as in `gram_offsets`
    parent: np.ndarray,  # IN
    last: np.ndarray,  # IN
    words: bool,  # IN
    starts: np.ndarray,  # IN
    arena: np.ndarray,  # IN   the bytes of the words          uint8
    offsets: np.ndarray,  # IN   what `gram_offsets` measured    (n_grams + 1,) int64
    raw: np.ndarray,  # OUT  the n-grams end to end          (offsets[-1],) uint8
) -> None:
    """Write n-grams as UTF-8, each from its last symbol to its first."""
    for gram in range(nodes.size):
        at = offsets[gram + 1]
        node = nodes[gram]
        while node >= 0:
            symbol = last[node]
            size = _symbol_size(symbol, words, starts)
            at -= size
            if words:
                for i in range(size):
                    raw[at + i] = arena[starts[symbol] + i]
            else:
                write_code_point(symbol, raw, at)
            node = parent[node]
            if words and node >= 0:
                at -= 1
                raw[at] = 32


@njit(nogil=True, cache=True)
def _less(raw: np.ndarray, a: int, a_end: int, b: int, b_end: int) -> bool:
    for i in range(min(a_end - a, b_end - b)):
        if raw[a + i] != raw[b + i]:
            return raw[a + i] < raw[b + i]
    return a_end - a < b_end - b


@njit(nogil=True, cache=True)
def _heads(raw: np.ndarray, offsets: np.ndarray, heads: np.ndarray) -> None:
    """Write the first eight bytes of each string as a number that sorts like them."""
    for s in range(heads.size):
        head = np.uint64(0)
        for i in range(8):
            head <<= np.uint64(8)
            if offsets[s] + i < offsets[s + 1]:
                head |= np.uint64(raw[offsets[s] + i])
        heads[s] = head


@njit(nogil=True, cache=True)
def _sort_ties(raw: np.ndarray, offsets: np.ndarray, heads: np.ndarray, order: np.ndarray) -> None:
    """Merge-sort, by all their bytes, the strings that share their first eight."""
    spare = np.empty_like(order)
    low = 0
    while low < order.size:
        high = low + 1
        while high < order.size and heads[order[high]] == heads[order[low]]:
            high += 1
        width = 1
        while width < high - low:
            for left in range(low, high, 2 * width):
                middle, right = min(left + width, high), min(left + 2 * width, high)
                i, j = left, middle
                for out in range(left, right):
                    take = i < middle
                    if take and j < right:
                        a, b = order[i], order[j]
                        take = not _less(raw, offsets[b], offsets[b + 1], offsets[a], offsets[a + 1])
                    if take:
                        spare[out] = order[i]
                        i += 1
                    else:
                        spare[out] = order[j]
                        j += 1
            order[low:high] = spare[low:high]
            width *= 2
        low = high


def string_order(
    raw: np.ndarray,  # IN  UTF-8 bytes, end to end              uint8
    offsets: np.ndarray,  # IN  string s is raw[offsets[s]:offsets[s + 1]]   (n + 1,) int64
) -> np.ndarray:
    """Return the order that sorts strings as Python does: UTF-8 bytes compare like code points.

    >>> string_order(np.frombuffer("cabab".encode(), np.uint8), np.array([0, 1, 3, 5])).tolist()
    [1, 2, 0]
    """
    heads = np.empty(len(offsets) - 1, dtype=np.uint64)
    _heads(raw, offsets, heads)
    order = np.argsort(heads, kind="stable")
    _sort_ties(raw, offsets, heads, order)
    return order
