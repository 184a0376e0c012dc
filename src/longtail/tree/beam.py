"""Beam search through a tree of chunks: for many rows at once, or for one.

Scores are sums of -max(0, 1 - margin)^p along the path (and a little of the margin itself, so that labels beyond
the margin stay ranked). A margin is the child's bias plus its scale times the sum of value · weight over the row's
features, with whole numbers for weights. The terms are added feature by feature in ascending order and nothing is
fused, in the dense and the sparse way of scoring a chunk alike, so that a row scores the same to the last bit either
way.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from longtail.kernels import LANES, SHORTEST, popcount, sum_int8_lines

INDEXED_FROM = 8  # times as many rows must visit a chunk before it is spread out if it has an index
FIRST_PLACES = 3  # nodes of every row that are scored before the others are judged


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
def sums_sparse(
    ids, values, start, stop, scale,           # IN   one row
    features, low, high,                       # IN   lines of the chunk: features[low:high], ascending
    entry_indptr, children, weights,           # IN   entries of all lines
    n_children,                                # IN
    out,                                       # OUT  (n_children,)
):  # fmt: skip
    """Sum the weights of all children of one chunk for one row, following the row's features."""
    out[:n_children] = 0
    line = low
    for t in range(start, stop):
        f = ids[t]
        line = _find(features, line, high, f)
        if line == high:
            break
        if features[line] == f:
            x = values[t] * scale
            for e in range(entry_indptr[line], entry_indptr[line + 1]):
                out[children[e]] += x * np.float32(weights[e])


@njit(nogil=True, cache=True)
def sums_of_lines(lines, values, n, low, entry_indptr, children, weights, n_children, out):
    """Sum the weights of the lines of a chunk that a row meets, as found by `find_lines`."""
    out[:n_children] = 0
    for t in range(n):
        x = values[t]
        for e in range(entry_indptr[low + lines[t]], entry_indptr[low + lines[t] + 1]):
            out[children[e]] += x * np.float32(weights[e])


@njit(nogil=True, cache=True)
def _to_scores(line, scales, bias, first, n_children, power, slope, above):
    """Turn the sums of a chunk's children into scores; written so that it compiles to vector instructions."""
    if power == 3 and slope == 0:
        for c in range(n_children):
            short = np.float32(1.0) - (bias[first + c] + scales[first + c] * line[c])
            short = short if short > 0 else np.float32(0.0)
            line[c] = above - short * short * short
        return
    for c in range(n_children):
        line[c] = link(bias[first + c] + scales[first + c] * line[c], power, slope) + above


@njit(nogil=True, cache=True)
def _keep(line, first, n_children, labels, offset, ids, scores):
    """Put the children of a chunk among the best of a row: best first, equal scores by number.

    With `labels`, which name the label of child number `offset` and those after it, a label is kept once, at its best
    place.
    """
    k = scores.size
    for c in range(n_children):
        score = line[c]
        if score < scores[k - 1] or not score > -np.inf:
            continue
        child = first + c
        if score == scores[k - 1] and child > ids[k - 1]:
            continue
        place, twin = k - 1, -1
        if labels.size:
            for other in range(k):
                if ids[other] >= 0 and labels[ids[other] - offset] == labels[child - offset]:
                    twin = other
                    break
        if twin >= 0:
            if score < scores[twin] or (score == scores[twin] and child > ids[twin]):
                continue
            place = twin
        while place > 0 and (score > scores[place - 1] or (score == scores[place - 1] and child < ids[place - 1])):
            scores[place] = scores[place - 1]
            ids[place] = ids[place - 1]
            place -= 1
        scores[place] = score
        ids[place] = child


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
def find_lines(ids, values, start, stop, scale, bits, before, met_lines, met_values):
    """Write the lines of a chunk that a row meets, by the index of the chunk, and the row's values; return how many."""
    met = 0
    for t in range(start, stop):
        f = ids[t]
        word, bit = bits[f >> 6], np.uint64(1) << np.uint64(f & 63)
        met_lines[met] = before[f >> 6] + np.int32(popcount(word & (bit - np.uint64(1))))
        met_values[met] = values[t] * scale
        met += (word & bit) != 0
    return met


@njit(nogil=True, cache=True)
def spread_chunks(line_indptr, child_indptr, entry_indptr, children, weights, block_indptr):
    """Return the weights of all chunks as dense int8 blocks, one after the other, lines padded to sixteens."""
    out = np.zeros(block_indptr[-1], dtype=np.int8)
    for chunk in range(line_indptr.size - 1):
        width = (child_indptr[chunk + 1] - child_indptr[chunk] + LANES - 1) // LANES * LANES
        at = block_indptr[chunk]
        for line in range(line_indptr[chunk], line_indptr[chunk + 1]):
            for e in range(entry_indptr[line], entry_indptr[line + 1]):
                out[at + children[e]] = weights[e]
            at += width
    return out


@njit(nogil=True, cache=True)
def search_block(
    indptr, indices, data, scale,              # IN   rows of X, CSR; each is multiplied by its scale
    nodes, scores,                             # IN   nodes of the beam, -1 where none, and their scores (n, beam)
    child_indptr, line_indptr,                 # IN   children and lines of every chunk   (n_chunks + 1,)
    features, entry_indptr, children, weights, scales, bias,
    bits, before, block_indptr, blocks,        # IN   from `index_lines` and `spread_chunks`, or empty
    labels, offset,                            # IN   label of child number `offset` and those after it, or empty
    power, slope, parent_weight,               # IN   score = link(margin) + parent_weight · score of the parent
    dense_from,                                # IN   prepare a chunk when at least this many rows visit it
    position,                                  # TMP  -1 on entry and exit                (n_features,) int32
    new_nodes, new_scores,                     # OUT  best children of every row          (n, k)
):  # fmt: skip
    """Score the children of the nodes in the beam and keep the k best of every row.

    Rows that visit the same chunk are scored together, against a dense block of its weights: kept from before, or
    spread out once for all of them. Where margins only lower a score, the best few nodes of every row go first, and
    then only the nodes that could still add to its k best: the result is the same.
    """
    n, beam = nodes.shape
    k = new_nodes.shape[1]
    new_nodes[:] = -1
    new_scores[:] = -np.inf
    bounded = power != 0 and slope == 0
    first_places = min(beam, FIRST_PLACES) if bounded else beam
    pairs = np.empty(n * beam, dtype=np.int64)
    for turn in range(2):
        n_pairs = 0
        for row in range(n):
            for place in range(first_places) if turn == 0 else range(first_places, beam):
                if nodes[row, place] < 0:
                    continue
                if bounded and parent_weight * scores[row, place] < new_scores[row, k - 1]:
                    break  # nor can those that follow: they start no higher
                pairs[n_pairs] = row * beam + place
                n_pairs += 1
        if n_pairs:
            _score_pairs(
                indptr,
                indices,
                data,
                scale,
                nodes,
                scores,
                pairs[:n_pairs],
                child_indptr,
                line_indptr,
                features,
                entry_indptr,
                children,
                weights,
                scales,
                bias,
                bits,
                before,
                block_indptr,
                blocks,
                labels,
                offset,
                power,
                slope,
                parent_weight,
                dense_from,
                position,
                new_nodes,
                new_scores,
            )
        if first_places == beam:
            break


@njit(nogil=True, cache=True)
def _score_pairs(
    indptr, indices, data, scale, nodes, scores,
    pairs,                                     # IN   row · beam + place, ascending
    child_indptr, line_indptr, features, entry_indptr, children, weights, scales, bias,
    bits, before, block_indptr, blocks, labels, offset, power, slope, parent_weight, dense_from, position,
    new_nodes, new_scores,                     # IN/OUT
):  # fmt: skip
    """Score some (row, place) pairs, chunk by chunk, and put their children among the best of their rows."""
    beam = nodes.shape[1]
    n_chunks = child_indptr.size - 1
    visits = np.zeros(n_chunks + 1, dtype=np.int64)
    longest_row, met_features = 0, 0
    for pair in pairs:
        row = pair // beam
        visits[nodes[row, pair % beam] + 1] += 1
        longest_row = max(longest_row, indptr[row + 1] - indptr[row])
        met_features += indptr[row + 1] - indptr[row]
    row_length = met_features / max(pairs.size, 1)
    widest, longest = 0, 0
    for chunk in range(n_chunks):
        if visits[chunk + 1] >= dense_from:
            longest = max(longest, line_indptr[chunk + 1] - line_indptr[chunk])
        if visits[chunk + 1] > 0:
            widest = max(widest, child_indptr[chunk + 1] - child_indptr[chunk])
        visits[chunk + 1] += visits[chunk]
    order = np.empty(pairs.size, dtype=np.int64)  # pairs, chunk by chunk
    fill = visits[:-1].copy()
    for at in range(pairs.size):
        node = nodes[pairs[at] // beam, pairs[at] % beam]
        order[fill[node]] = pairs[at]
        fill[node] += 1
    padded = (widest + LANES - 1) // LANES * LANES
    kept = blocks.size > 0
    block = blocks if kept else np.empty(longest * padded, dtype=np.int8)
    line = np.empty(padded, dtype=np.float32)
    met_lines, met_values = np.empty(longest_row, dtype=np.int32), np.empty(longest_row, dtype=np.float32)
    for chunk in range(n_chunks):
        first, last = visits[chunk], visits[chunk + 1]
        if first == last:
            continue
        low, high = line_indptr[chunk], line_indptr[chunk + 1]
        child = child_indptr[chunk]
        n_children = child_indptr[chunk + 1] - child
        width = (n_children + LANES - 1) // LANES * LANES
        # noting the position of every line pays only for more lookups than there are lines, and spreading out a chunk
        # of which there is an index only for many rows
        few = last - first < dense_from or (kept and (last - first) * row_length < 2 * (high - low))
        few = few or (not kept and bits.size > 0 and last - first < INDEXED_FROM * dense_from)
        start = block_indptr[chunk] if kept else 0
        if not kept and not few:
            block[: (high - low) * width] = 0
            for at in range(low, high):
                for e in range(entry_indptr[at], entry_indptr[at + 1]):
                    block[(at - low) * width + children[e]] = weights[e]
        if not few:
            for at in range(low, high):
                position[features[at]] = at - low
        for pair in order[first:last]:
            row = pair // beam
            if few and bits.size == 0:
                sums_sparse(
                    indices,
                    data,
                    indptr[row],
                    indptr[row + 1],
                    scale[row],
                    features,
                    low,
                    high,
                    entry_indptr,
                    children,
                    weights,
                    n_children,
                    line,
                )
            elif few:
                met = find_lines(
                    indices,
                    data,
                    indptr[row],
                    indptr[row + 1],
                    scale[row],
                    bits[chunk],
                    before[chunk],
                    met_lines,
                    met_values,
                )
                if kept:
                    sum_int8_lines(block, start, met_lines, met_values, met, width, line)
                else:
                    sums_of_lines(met_lines, met_values, met, low, entry_indptr, children, weights, n_children, line)
            else:
                met = 0
                for t in range(indptr[row], indptr[row + 1]):
                    at = position[indices[t]]
                    met_lines[met] = at
                    met_values[met] = data[t] * scale[row]
                    met += at >= 0
                sum_int8_lines(block, start, met_lines, met_values, met, width, line)
            above = parent_weight * scores[row, pair % beam]
            _to_scores(line, scales, bias, child, n_children, power, slope, above)
            _keep(line, child, n_children, labels, offset, new_nodes[row], new_scores[row])
        if not few:
            for at in range(low, high):
                position[features[at]] = -1


@njit(nogil=True, cache=True)
def search_one(
    ids, data, n_features, normalize,          # IN   one row and its width, to be scaled to length 1 or not
    child_indptr, line_indptr, features, entry_indptr, children, weights, scales, bias,
    bits, before, block_indptr, blocks,        # IN   from `index_lines` and `spread_chunks`, or empty
    widths, powers, slopes, aboves,            # IN   per level: children to keep, and the link
    leaf_labels, once,                         # IN   label of every place, the children of the last level; whether a
                                               #      label may stand in several and counts once
    labels, out_scores,                        # OUT  best labels and their scores, -1 and -inf where none  (k,)
):  # fmt: skip
    """Walk one row down all levels; the same result as `search_block`, to the last bit.

    Returns False, and nothing else, for a row that is not sorted, not finite or has ids outside of its width.
    """
    for t in range(ids.size):
        if not np.isfinite(data[t]) or ids[t] <= (ids[t - 1] if t > 0 else -1) or ids[t] >= n_features:
            return False
    values = data
    if normalize:
        total = 0.0
        for t in range(ids.size):
            total += np.float64(data[t]) * np.float64(data[t])
        scale = np.float32(1.0 / np.sqrt(total)) if total > SHORTEST else np.float32(1.0)
        values = np.empty(ids.size, dtype=np.float32)
        for t in range(ids.size):
            values[t] = data[t] * scale
    n_levels = widths.size
    beam = 1
    for level in range(n_levels):
        beam = max(beam, widths[level])
    widest = 0
    nodes, scores = np.full(beam, -1, dtype=np.int64), np.zeros(beam, dtype=np.float32)
    found, best = np.empty(beam, dtype=np.int64), np.empty(beam, dtype=np.float32)
    nodes[0] = 0
    size = 1
    line = np.empty(64, dtype=np.float32)
    met_lines, met_values = np.empty(ids.size, dtype=np.int32), np.empty(ids.size, dtype=np.float32)
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
            padded = (n_children + LANES - 1) // LANES * LANES
            if padded > widest:
                widest = max(padded, 64)
                line = np.empty(widest, dtype=np.float32)
            above = aboves[level] * scores[place]
            if powers[level] != 0 and slopes[level] == 0 and above < best[width - 1]:
                break  # margins only lower a score, and the nodes that follow start no higher
            if bits.size:
                met = find_lines(
                    ids, values, 0, ids.size, np.float32(1.0), bits[node], before[node], met_lines, met_values
                )
                if blocks.size:
                    sum_int8_lines(blocks, block_indptr[node], met_lines, met_values, met, padded, line)
                else:
                    low = line_indptr[node]
                    sums_of_lines(met_lines, met_values, met, low, entry_indptr, children, weights, n_children, line)
            else:
                sums_sparse(
                    ids,
                    values,
                    0,
                    ids.size,
                    np.float32(1.0),
                    features,
                    line_indptr[node],
                    line_indptr[node + 1],
                    entry_indptr,
                    children,
                    weights,
                    n_children,
                    line,
                )
            _to_scores(line, scales, bias, first, n_children, powers[level], slopes[level], above)
            names = leaf_labels if once and level == n_levels - 1 else leaf_labels[:0]
            _keep(line, first, n_children, names, child_indptr.size - 2, found[:width], best[:width])
        for place in range(width):
            nodes[place] = found[place] + 1 if found[place] >= 0 else -1
            scores[place] = best[place]
        size = width
    for place in range(labels.size):
        inside = place < widths[n_levels - 1] and found[place] >= 0
        labels[place] = leaf_labels[found[place] - (child_indptr.size - 2)] if inside else -1
        out_scores[place] = best[place] if inside else -np.inf
    return True
