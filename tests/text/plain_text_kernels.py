"""Slow twins of the kernels of `longtail.text`, in plain Python and numpy, with the same arguments."""

from __future__ import annotations

import itertools

import numpy as np

from longtail.text.hash_table import MULTIPLIER
from longtail.text.tokenise import LONG_KEY, SEED

MASK64 = (1 << 64) - 1


def mix_plain(key: int) -> int:
    """Plain twin of `mix`."""
    key = (key ^ key >> 32) * int(MULTIPLIER) & MASK64
    return key ^ key >> 32


def refill_plain(old: np.ndarray, new: np.ndarray) -> None:
    """Plain twin of `refill`."""
    for key, value in old.tolist():
        if key:
            place_plain(new, key, value)


def place_plain(slots: np.ndarray, key: int, value: int) -> None:
    """Put one entry into the first free slot from its own on."""
    at = mix_plain(key) % len(slots)
    while slots[at, 0]:
        at = (at + 1) % len(slots)
    slots[at] = key, value


def word_ids_plain(
    text: np.ndarray,
    ends: np.ndarray,
    fold: np.ndarray,
    shortest: int,
    n_skip: int,
    grow: bool,
    slots: np.ndarray,
    starts: np.ndarray,
    arena: np.ndarray,
    n_words: int,
    ids: np.ndarray,
    id_ends: np.ndarray,
) -> int:
    """Plain twin of `word_ids`: a dictionary of words, and the slots filled one by one."""
    known = {arena[starts[w] : starts[w + 1]].tobytes(): w for w in range(n_words)}
    begin = out = 0
    for doc, end in enumerate(ends.tolist()):
        for word in _folded_words(text[begin:end], fold):
            if len(word) < shortest:
                continue
            raw = word.encode("utf-8", "surrogatepass")
            if raw not in known and grow:
                known[raw] = n_words
                place_plain(slots, word_key_plain(raw), n_words)
                arena[starts[n_words] : starts[n_words] + len(raw)] = np.frombuffer(raw, dtype=np.uint8)
                starts[n_words + 1] = starts[n_words] + len(raw)
                n_words += 1
            found = known.get(raw, -1)
            if found < 0 or found >= n_skip:
                ids[out] = found
                out += 1
        id_ends[doc] = out
        begin = end
    return n_words


def char_ids_plain(text: np.ndarray, ends: np.ndarray, fold: np.ndarray, ids: np.ndarray, id_ends: np.ndarray) -> None:
    """Plain twin of `char_ids`."""
    begin = out = 0
    for doc, end in enumerate(ends.tolist()):
        for word in _folded_words(text[begin:end], fold):
            ids[out : out + len(word) + 3] = [32, *map(ord, word), 32, -1]
            out += len(word) + 3
        id_ends[doc] = out
        begin = end


def word_key_plain(word: bytes) -> int:
    """Return the key of a word as `word_ids` makes it."""
    if len(word) < 8:
        return int.from_bytes(word, "little")
    hashed, whole = int(SEED), len(word) // 8 * 8
    for at in range(0, whole, 8):
        hashed = mix_plain(hashed ^ int.from_bytes(word[at : at + 8], "little"))
    return mix_plain(hashed ^ int.from_bytes(word[whole:], "little")) | int(LONG_KEY)


def _folded_words(raw: np.ndarray, fold: np.ndarray) -> list[str]:
    words = [""]
    for c in raw.tobytes().decode("utf-8", "surrogatepass"):
        if fold[ord(c)] >= 0:
            words[-1] += chr(fold[ord(c)])
        else:
            words.append("")
    return [w for w in words if w]


def gram_counts_plain(
    ids: np.ndarray,
    id_ends: np.ndarray,
    low: int,
    high: int,
    whole: bool,
    grow: bool,
    first: np.ndarray,
    slots: np.ndarray,
    parent: np.ndarray,
    last: np.ndarray,
    n_nodes: int,
    indptr: np.ndarray,
    nodes: np.ndarray,
    counts: np.ndarray,
) -> int:
    """Plain twin of `gram_counts`: a dictionary of tuples per document."""
    start = out = indptr[0] = 0
    known = _tuples(parent, last, n_nodes)
    for doc, stop in enumerate(id_ends.tolist()):
        found: dict[int, int] = {}
        for run in _runs(ids[start:stop].tolist()):
            least = min(low, len(run)) if whole else low
            for i in range(len(run) - least + 1):
                for depth in range(1, min(high, len(run) - i) + 1):
                    gram = run[i : i + depth]
                    if gram not in known:
                        if not grow:
                            break
                        n_nodes = _add_plain(gram, known, first, slots, parent, last, n_nodes)
                    if depth >= least:
                        found[known[gram]] = found.get(known[gram], 0) + 1
        nodes[out : out + len(found)] = list(found)
        counts[out : out + len(found)] = list(found.values())
        out += len(found)
        indptr[doc + 1] = out
        start = stop
    return n_nodes


def gram_nodes_plain(
    ids: np.ndarray,
    id_ends: np.ndarray,
    grow: bool,
    first: np.ndarray,
    slots: np.ndarray,
    parent: np.ndarray,
    last: np.ndarray,
    n_nodes: int,
    found: np.ndarray,
) -> int:
    """Plain twin of `gram_nodes`."""
    known = _tuples(parent, last, n_nodes)
    start = 0
    for at, stop in enumerate(id_ends.tolist()):
        gram = tuple(ids[start:stop].tolist())
        for depth in range(1, len(gram) + 1):
            if gram[:depth] not in known and grow and gram[depth - 1] >= 0:
                n_nodes = _add_plain(gram[:depth], known, first, slots, parent, last, n_nodes)
            elif gram[depth - 1] < 0:
                break
        found[at] = known.get(gram, -1)
        start = stop
    return n_nodes


def _tuples(parent: np.ndarray, last: np.ndarray, n_nodes: int) -> dict[tuple[int, ...], int]:
    grams: list[tuple[int, ...]] = []
    for node in range(n_nodes):
        grams.append((*(grams[parent[node]] if parent[node] >= 0 else ()), int(last[node])))
    return {gram: node for node, gram in enumerate(grams)}


def _add_plain(
    gram: tuple[int, ...],
    known: dict[tuple[int, ...], int],
    first: np.ndarray,
    slots: np.ndarray,
    parent: np.ndarray,
    last: np.ndarray,
    n_nodes: int,
) -> int:
    known[gram] = n_nodes
    parent[n_nodes] = known[gram[:-1]] if len(gram) > 1 else -1
    last[n_nodes] = gram[-1]
    if len(gram) == 1:
        first[gram[0]] = n_nodes
    else:
        place_plain(slots, (known[gram[:-1]] << 32 | gram[-1]) + 1, n_nodes)
    return n_nodes + 1


def _runs(ids: list[int]) -> list[tuple[int, ...]]:
    runs: list[tuple[int, ...]] = [()]
    for symbol in ids:
        if symbol < 0:
            runs.append(())
        else:
            runs[-1] += (symbol,)
    return [run for run in runs if run]


def gram_offsets_plain(
    nodes: np.ndarray, parent: np.ndarray, last: np.ndarray, words: bool, starts: np.ndarray, offsets: np.ndarray
) -> None:
    """Plain twin of `gram_offsets`."""
    sizes = []
    for node in nodes.tolist():
        symbols = _symbols_of(node, parent, last)
        if words:
            sizes.append(sum(int(starts[s + 1] - starts[s]) for s in symbols) + len(symbols) - 1)
        else:
            sizes.append(len("".join(map(chr, symbols)).encode("utf-8", "surrogatepass")))
    offsets[:] = np.cumsum([0, *sizes])


def gram_bytes_plain(
    nodes: np.ndarray,
    parent: np.ndarray,
    last: np.ndarray,
    words: bool,
    starts: np.ndarray,
    arena: np.ndarray,
    offsets: np.ndarray,
    raw: np.ndarray,
) -> None:
    """Plain twin of `gram_bytes`."""
    for gram, node in enumerate(nodes.tolist()):
        symbols = _symbols_of(node, parent, last)
        if words:
            joined = b" ".join(arena[starts[s] : starts[s + 1]].tobytes() for s in symbols)
        else:
            joined = "".join(map(chr, symbols)).encode("utf-8", "surrogatepass")
        raw[offsets[gram] : offsets[gram + 1]] = np.frombuffer(joined, dtype=np.uint8)


def _symbols_of(node: int, parent: np.ndarray, last: np.ndarray) -> list[int]:
    symbols: list[int] = []
    while node >= 0:
        symbols.insert(0, int(last[node]))
        node = int(parent[node])
    return symbols


def string_order_plain(raw: np.ndarray, offsets: np.ndarray) -> np.ndarray:
    """Plain twin of `string_order`."""
    text = raw.tobytes()
    strings = [text[a:b].decode("utf-8", "surrogatepass") for a, b in itertools.pairwise(offsets.tolist())]
    return np.array(sorted(range(len(strings)), key=strings.__getitem__), dtype=np.int64)


def add_counts_plain(nodes: np.ndarray, counts: np.ndarray, documents: np.ndarray, totals: np.ndarray) -> None:
    """Plain twin of `add_counts`."""
    np.add.at(documents, nodes, 1)
    np.add.at(totals, nodes, counts)


def tfidf_rows_plain(
    indptr: np.ndarray,
    nodes: np.ndarray,
    counts: np.ndarray,
    column: np.ndarray,
    idf: np.ndarray,
    sublinear: bool,
    out_indptr: np.ndarray,
    out_ids: np.ndarray,
    out_values: np.ndarray,
) -> None:
    """Plain twin of `tfidf_rows`."""
    out_indptr[0] = 0
    for row in range(len(indptr) - 1):
        here = slice(indptr[row], indptr[row + 1])
        columns, tf = column[nodes[here]], counts[here].astype(np.float64)
        order = np.argsort(columns)
        order = order[columns[order] >= 0]
        columns, tf = columns[order], tf[order]
        weights = (1.0 + np.log(tf) if sublinear else tf) * idf[columns]
        start, stop = out_indptr[row], out_indptr[row] + len(columns)
        out_ids[start:stop] = columns
        norm = np.sqrt(np.sum(weights**2))
        out_values[start:stop] = weights / norm if norm > 0 else 0.0
        out_indptr[row + 1] = stop
