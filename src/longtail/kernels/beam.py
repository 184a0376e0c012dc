"""Beam search through a tree of chunks: for many rows at once, or for one.

Scores are sums of -max(0, 1 - margin)^p along the path (and a little of the margin itself, so that labels beyond
the margin stay ranked). Terms of a margin are added feature by feature in ascending order and nothing is fused, in
both the dense and the sparse way of scoring a chunk, so that a row scores the same to the last bit either way.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from longtail.kernels.lanes import LANES, popcount, wide_scores
from longtail.kernels.score import insert_top


@njit(nogil=True, cache=True)
def link(margin, power, slope):
    """Return -max(0, 1 - margin)^power + slope · margin; power 0: the margin alone; power -1: log σ(margin)."""
    if power == 0:
        return margin
    if power < 0:
        if margin < 0:
            return margin - np.float32(np.log1p(np.exp(margin)))
        return -np.float32(np.log1p(np.exp(-margin)))
    short = np.float32(1.0) - margin
    if short <= 0:
        return slope * margin
    loss = short
    for _ in range(power - 1):
        loss *= short
    return slope * margin - loss


@njit(nogil=True, cache=True)
def _find(features, low, high, feature):
    """Return the first place in features[low:high] that is not below `feature`."""
    while low < high:
        middle = (low + high) >> 1
        if features[middle] < feature:
            low = middle + 1
        else:
            high = middle
    return low


@njit(nogil=True, cache=True)
def margins_sparse(
    ids, values, start, stop, scale,           # IN   one row
    features, low, high,                       # IN   lines of the chunk: features[low:high], ascending
    entry_indptr, children, weights,           # IN   entries of all lines
    scales, bias, first, n_children,           # IN   per child; the chunk's children start at `first`
    out,                                       # OUT  (n_children,)
):  # fmt: skip
    """Compute the margins of all children of one chunk for one row, following the row's features."""
    for c in range(n_children):
        out[c] = bias[first + c]
    line = low
    for t in range(start, stop):
        f = ids[t]
        line = _find(features, line, high, f)
        if line == high:
            return
        if features[line] == f:
            x = values[t] * scale
            for e in range(entry_indptr[line], entry_indptr[line + 1]):
                c = children[e]
                out[c] += x * (np.float32(weights[e]) * scales[first + c])


@njit(nogil=True, cache=True)
def index_lines(line_indptr, features, n_words):
    """Return for every chunk one bit a feature, and how many bits are set before every word of 64.

    With both, the line of a feature is found by one look at a word and one count of bits.
    """
    n_chunks = line_indptr.size - 1
    bits = np.zeros((n_chunks, n_words), dtype=np.uint64)
    before = np.empty((n_chunks, n_words), dtype=np.int32)
    for chunk in range(n_chunks):
        for line in range(line_indptr[chunk], line_indptr[chunk + 1]):
            f = features[line]
            bits[chunk, f >> 6] |= np.uint64(1) << np.uint64(f & 63)
        total = 0
        for word in range(n_words):
            before[chunk, word] = total
            total += popcount(bits[chunk, word])
    return bits, before


@njit(nogil=True, cache=True)
def margins_indexed(
    ids, values,                               # IN   one row, scaled
    bits, before, low,                         # IN   index of the chunk's lines, and its first line
    entry_indptr, children, weights, scales, bias, first, n_children,
    out,                                       # OUT  (n_children,)
):  # fmt: skip
    """The same as `margins_sparse`, finding lines by the index; to the last bit."""
    for c in range(n_children):
        out[c] = bias[first + c]
    for t in range(ids.size):
        f = ids[t]
        word, bit = bits[f >> 6], np.uint64(1) << np.uint64(f & 63)
        if word & bit:
            line = low + before[f >> 6] + np.int64(popcount(word & (bit - np.uint64(1))))
            x = values[t]
            for e in range(entry_indptr[line], entry_indptr[line + 1]):
                c = children[e]
                out[c] += x * (np.float32(weights[e]) * scales[first + c])


@njit(nogil=True, cache=True)
def search_block(
    indptr, indices, data, scale,              # IN   rows of X, CSR; each is multiplied by its scale
    nodes, scores,                             # IN   nodes of the beam, -1 where none, and their scores (n, beam)
    child_indptr, line_indptr,                 # IN   children and lines of every chunk   (n_chunks + 1,)
    features, entry_indptr, children, weights, scales, bias,
    power, slope, parent_weight,               # IN   score = link(margin) + parent_weight · score of the parent
    dense_from,                                # IN   spread a chunk out when at least this many rows visit it
    position,                                  # TMP  -1 on entry and exit                (n_features,) int32
    new_nodes, new_scores,                     # OUT  best children of every row          (n, k)
):  # fmt: skip
    """Score the children of the nodes in the beam and keep the k best of every row.

    Rows that visit the same chunk are scored together: the chunk is spread out once into a small dense block.
    """
    n, beam = nodes.shape
    n_chunks = child_indptr.size - 1
    # (row, place) pairs sorted by chunk
    visits = np.zeros(n_chunks + 1, dtype=np.int64)
    for row in range(n):
        for place in range(beam):
            if nodes[row, place] >= 0:
                visits[nodes[row, place] + 1] += 1
    widest, longest = 0, 0
    for chunk in range(n_chunks):
        if visits[chunk + 1] >= dense_from:
            longest = max(longest, line_indptr[chunk + 1] - line_indptr[chunk])
        if visits[chunk + 1] > 0:
            widest = max(widest, child_indptr[chunk + 1] - child_indptr[chunk])
        visits[chunk + 1] += visits[chunk]
    pairs = np.empty(visits[n_chunks], dtype=np.int64)
    fill = visits[:-1].copy()
    for row in range(n):
        for place in range(beam):
            node = nodes[row, place]
            if node >= 0:
                pairs[fill[node]] = row * beam + place
                fill[node] += 1
    padded = (widest + LANES - 1) // LANES * LANES
    block = np.empty((longest + 1) * padded, dtype=np.float32)
    margins = np.empty((n, beam, widest), dtype=np.float32)
    out = np.empty(padded, dtype=np.float32)
    longest_row = 0
    for row in range(n):
        longest_row = max(longest_row, indptr[row + 1] - indptr[row])
    met_lines = np.empty(longest_row, dtype=np.int32)
    met_values = np.empty(longest_row, dtype=np.float32)
    for chunk in range(n_chunks):
        first, last = visits[chunk], visits[chunk + 1]
        if first == last:
            continue
        low, high = line_indptr[chunk], line_indptr[chunk + 1]
        child = child_indptr[chunk]
        n_children = child_indptr[chunk + 1] - child
        if last - first < dense_from:
            for at in range(first, last):
                row, place = pairs[at] // beam, pairs[at] % beam
                margins_sparse(
                    indices, data, indptr[row], indptr[row + 1], scale[row], features, low, high,
                    entry_indptr, children, weights, scales, bias, child, n_children, margins[row, place],
                )  # fmt: skip
            continue
        width = (n_children + LANES - 1) // LANES * LANES
        n_lines = high - low
        block[: (n_lines + 1) * width] = 0
        for line in range(n_lines):
            position[features[low + line]] = line
            for e in range(entry_indptr[low + line], entry_indptr[low + line + 1]):
                c = children[e]
                block[line * width + c] = np.float32(weights[e]) * scales[child + c]
        for c in range(n_children):
            block[n_lines * width + c] = bias[child + c]
        for at in range(first, last):
            row, place = pairs[at] // beam, pairs[at] % beam
            met = 0
            for t in range(indptr[row], indptr[row + 1]):
                line = position[indices[t]]
                met_lines[met] = line
                met_values[met] = data[t] * scale[row]
                met += line >= 0
            wide_scores(block, met_lines, met_values, met, n_lines, width, out)
            margins[row, place, :n_children] = out[:n_children]
        for line in range(n_lines):
            position[features[low + line]] = -1
    _keep_best(nodes, scores, child_indptr, margins, power, slope, parent_weight, new_nodes, new_scores)


@njit(nogil=True, cache=True)
def _keep_best(nodes, scores, child_indptr, margins, power, slope, parent_weight, new_nodes, new_scores):
    n, beam = nodes.shape
    k = new_nodes.shape[1]
    for row in range(n):
        new_nodes[row, :] = -1
        new_scores[row, :] = -np.inf
        for place in range(beam):
            node = nodes[row, place]
            if node < 0:
                continue
            above = parent_weight * scores[row, place]
            first = child_indptr[node]
            for c in range(child_indptr[node + 1] - first):
                score = link(margins[row, place, c], power, slope) + above
                if score > new_scores[row, k - 1]:
                    insert_top(new_nodes[row], new_scores[row], first + c, score)


@njit(nogil=True, cache=True)
def search_one(
    ids, values,                               # IN   one row, scaled
    child_indptr, line_indptr, features, entry_indptr, children, weights, scales, bias,
    bits, before,                              # IN   from `index_lines`, or empty
    widths, powers, slopes, aboves,            # IN   per level: children to keep, and the link
    out_nodes, out_scores,                     # OUT  best children of the last level (k,)
):  # fmt: skip
    """Walk one row down all levels; the same result as `search_block`, to the last bit."""
    n_levels = widths.size
    beam = 1
    for level in range(n_levels):
        beam = max(beam, widths[level])
    widest = 0
    nodes, scores = np.full(beam, -1, dtype=np.int64), np.zeros(beam, dtype=np.float32)
    found, best = np.empty(beam, dtype=np.int64), np.empty(beam, dtype=np.float32)
    nodes[0] = 0
    size = 1
    margins = np.empty(64, dtype=np.float32)
    for level in range(n_levels):
        width = widths[level]
        found[:width] = -1
        best[:width] = -np.inf
        for place in range(size):
            node = nodes[place]
            if node < 0:
                continue
            first = child_indptr[node]
            n_children = child_indptr[node + 1] - first
            if n_children > widest:
                widest = max(n_children, 64)
                margins = np.empty(widest, dtype=np.float32)
            above = aboves[level] * scores[place]
            if powers[level] > 0 and slopes[level] == 0 and above <= best[width - 1]:
                break  # margins only lower a score, and the nodes that follow start no higher
            if bits.size:
                margins_indexed(
                    ids, values, bits[node], before[node], line_indptr[node],
                    entry_indptr, children, weights, scales, bias, first, n_children, margins,
                )  # fmt: skip
            else:
                margins_sparse(
                    ids, values, 0, ids.size, np.float32(1.0), features, line_indptr[node], line_indptr[node + 1],
                    entry_indptr, children, weights, scales, bias, first, n_children, margins,
                )  # fmt: skip
            for c in range(n_children):
                score = link(margins[c], powers[level], slopes[level]) + above
                if score > best[width - 1]:
                    insert_top(found[:width], best[:width], first + c, score)
        for place in range(width):
            nodes[place] = found[place] + 1 if found[place] >= 0 else -1
            scores[place] = best[place]
        size = width
    out_nodes[:] = found[: widths[n_levels - 1]]
    out_scores[:] = best[: widths[n_levels - 1]]
