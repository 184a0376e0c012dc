"""Number and count the n-grams of documents, given as numbers of words or characters.

An n-gram is a node of a tree: its parent is the n-gram without the last symbol. The children of a node are found
through one open-addressing table with the exact key (node, symbol), so two n-grams can never be taken for one. The
first level is an array, `first`, with one entry per symbol.

Both kernels look up the first symbol in lines of their own: a function shared by them, which the compiler does not
inline, made fitting a quarter to a half slower.
"""

from __future__ import annotations

import numpy as np

from longtail.kernels import njit
from longtail.text.hash_table import mix

_FREE, _ONE, _SHIFT = np.uint64(0), np.uint64(1), np.uint64(32)


@njit(nogil=True, cache=True)
def _child(
    node: int, symbol: int, grow: bool, slots: np.ndarray, parent: np.ndarray, last: np.ndarray, n_nodes: int
) -> int:
    """Return the child of a node, or -1; with `grow`, a missing child becomes node `n_nodes`."""
    mask = slots.shape[0] - 1
    key = (np.uint64(node) << _SHIFT | np.uint64(symbol)) + _ONE
    at = np.int64(mix(key)) & mask
    while slots[at, 0] != _FREE:
        if slots[at, 0] == key:
            return int(np.int64(slots[at, 1]))
        at = (at + 1) & mask
    if not grow:
        return -1
    slots[at, 0] = key
    slots[at, 1] = n_nodes
    parent[n_nodes] = node
    last[n_nodes] = symbol
    return n_nodes


@njit(nogil=True, cache=True)
def gram_counts(  # long on purpose: see above
    ids: np.ndarray,  # IN      symbols; no n-gram goes across a -1             (n_ids,) int32
    id_ends: np.ndarray,  # IN      where each document ends in ids                 (n_docs,) int64
    low: int,  # IN      shortest n-gram
    high: int,  # IN      longest n-gram
    whole: bool,  # IN      count a run shorter than `low` once, whole
    grow: bool,  # IN      True: unknown n-grams are added; False: they are left out
    first: np.ndarray,  # IN/OUT  the node of each symbol, or -1                  (n_symbols,) int32
    slots: np.ndarray,  # IN/OUT  key (0 = free), node                            (2**b, 2) uint64
    parent: np.ndarray,  # IN/OUT  the node without its last symbol, or -1         (>= n_nodes + new,) int32
    last: np.ndarray,  # IN/OUT  the last symbol of each node                    (>= n_nodes + new,) int32
    n_nodes: int,  # IN      nodes in the tree
    indptr: np.ndarray,  # OUT     row pointers                                    (n_docs + 1,) int64
    nodes: np.ndarray,  # OUT     the n-grams of each document, as first met      (>= nnz,) int32
    counts: np.ndarray,  # OUT     how often each occurs                           (>= nnz,) int32
) -> int:
    """Count the n-grams of some documents and return how many nodes the tree has now."""
    widest = 0
    start = 0
    for doc in range(id_ends.size):
        widest = max(widest, id_ends[doc] - start)
        start = id_ends[doc]
    size = 1
    while size < 2 * widest * (high - low + 1):
        size *= 2
    positions = np.full(size, -1, dtype=np.int32)  # node -> its position in the row, small enough to stay in cache
    start = 0
    out = 0
    indptr[0] = 0
    for doc in range(id_ends.size):
        stop = id_ends[doc]
        row = out
        mask = 1
        while mask < 2 * (stop - start) * (high - low + 1):
            mask *= 2
        mask -= 1
        run = start  # where the run of symbols around i ends
        for i in range(start, stop):
            shortest = low
            if i >= run:
                run = i
                while run < stop and ids[run] >= 0:
                    run += 1
                if whole and run - i < low:
                    shortest = max(1, run - i)
            if run - i < shortest:
                if i == run:
                    run += 1
                continue
            node = -1
            for depth in range(1, min(high, run - i) + 1):
                symbol = ids[i + depth - 1]
                if depth == 1:
                    node = int(first[symbol])
                    if node < 0 and grow:
                        node = n_nodes
                        first[symbol] = node
                        parent[node] = -1
                        last[node] = symbol
                else:
                    node = _child(node, symbol, grow, slots, parent, last, n_nodes)
                if node < 0:
                    break
                n_nodes = max(n_nodes, node + 1)
                if depth < shortest:
                    continue
                at = node & mask
                while True:
                    position = positions[at]
                    if position < 0:
                        positions[at] = out - row
                        nodes[out] = node
                        counts[out] = 1
                        out += 1
                        break
                    if nodes[row + position] == node:
                        counts[row + position] += 1
                        break
                    at = (at + 1) & mask
        positions[: mask + 1] = -1
        indptr[doc + 1] = out
        start = stop
    return n_nodes


@njit(nogil=True, cache=True)
def gram_nodes(
    ids: np.ndarray,  # IN      the symbols of all n-grams, end to end            (n_ids,) int32
    id_ends: np.ndarray,  # IN      where each n-gram ends in ids                     (n_grams,) int64
    grow: bool,  # IN      True: unknown n-grams are added; False: they come out as -1
    first: np.ndarray,  # IN/OUT  as in `gram_counts`
    slots: np.ndarray,  # IN/OUT
    parent: np.ndarray,  # IN/OUT
    last: np.ndarray,  # IN/OUT
    n_nodes: int,  # IN      nodes in the tree
    found: np.ndarray,  # OUT     the node of each n-gram                           (n_grams,) int32
) -> int:
    """Find, or add, whole n-grams with all that they begin with; return how many nodes the tree has now."""
    start = 0
    for gram in range(id_ends.size):
        node = -1
        for i in range(start, id_ends[gram]):
            symbol = ids[i]
            if symbol < 0:
                node = -1
            elif i == start:
                node = int(first[symbol])
                if node < 0 and grow:
                    node = n_nodes
                    first[symbol] = node
                    parent[node] = -1
                    last[node] = symbol
            else:
                node = _child(node, symbol, grow, slots, parent, last, n_nodes)
            if node < 0:
                break
            n_nodes = max(n_nodes, node + 1)
        found[gram] = node
        start = id_ends[gram]
    return n_nodes
