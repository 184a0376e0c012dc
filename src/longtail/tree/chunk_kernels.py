"""Compiled loops on chunks: gather the rows of one, pack its weights, index them, sum them for a row.

Training renumbers the features that the rows of a chunk have, so that the weights of sixteen children stay in cache.
A trained chunk keeps one line per feature that any child uses: a short list of (child, weight), with

    weight of a child = scale of the child · q,    q a whole number from -127 to 127
"""

from __future__ import annotations

import numpy as np

from longtail.kernels import LANES, add_int8_row, lanes_from, lowest_bit, njit, popcount, prefetch

LOG_STEP = 6  # of the lines between two whose first entry is known: every 64th line
WORD_FEATURES = 40  # of an index of lines: features that share a word
SMALLEST = np.float32(1e-45)  # a weight is dropped if it is 0
QUANTA = 127  # largest q: one byte a weight; precision at k is the same as with floats


@njit(nogil=True, cache=True)
def gather_into(
    indptr, indices, data,  # IN   all rows, CSR
    rows,                   # IN   the rows of the chunk                     (m,)
    position,               # TMP  -1 on entry and on exit                   (n_features,) int32
    local_indptr,           # IN   pointers of the chunk's rows              (m + 1,) int64
    local_indices,          # OUT  their features, by position in those returned
    local_data,             # OUT
):  # fmt: skip
    """Copy rows over their own features into given arrays; return those features, ascending."""
    touched = np.empty(min(local_indptr[-1], position.size), dtype=np.int32)
    n_touched = 0
    at = 0
    for r in range(rows.size):
        for t in range(indptr[rows[r]], indptr[rows[r] + 1]):
            f = indices[t]
            if position[f] < 0:
                position[f] = 0
                touched[n_touched] = f
                n_touched += 1
            local_indices[at] = f
            local_data[at] = data[t]
            at += 1
    features = np.sort(touched[:n_touched])
    for p in range(n_touched):
        position[features[p]] = p
    for t in range(at):
        local_indices[t] = position[local_indices[t]]
    for p in range(n_touched):
        position[features[p]] = -1
    return features


@njit(nogil=True, cache=True)
def gather_rows(
    indptr, indices, data,  # IN   all rows, CSR
    rows,                   # IN   the rows of the chunk                     (m,)
    position,               # TMP  -1 on entry and on exit                   (n_features,) int32
):  # fmt: skip
    """Return the rows as CSR over their own features, and those features, ascending."""
    m = rows.size
    local_indptr = np.empty(m + 1, dtype=np.int64)
    local_indptr[0] = 0
    for r in range(m):
        local_indptr[r + 1] = local_indptr[r] + indptr[rows[r] + 1] - indptr[rows[r]]
    local_indices = np.empty(local_indptr[m], dtype=np.int32)
    local_data = np.empty(local_indptr[m], dtype=np.float32)
    features = gather_into(indptr, indices, data, rows, position, local_indptr, local_indices, local_data)
    return local_indptr, local_indices, local_data, features


@njit(nogil=True, cache=True)
def pack_chunk(
    W,          # IN   weights of 16 children at a time; last line = bias  (n_batches, n_lines + 1, 16)
    n_children,
    threshold,  # IN   smaller weights are dropped
):  # fmt: skip
    """Return the kept lines, how many entries each has, their children and weights, and scale and bias per child."""
    n_batches, n_lines = W.shape[0], W.shape[1] - 1
    scales = np.zeros(n_children, dtype=np.float32)
    bias = np.empty(n_children, dtype=np.float32)
    counts = np.zeros(n_lines, dtype=np.int64)  # of all lines
    least = max(np.float32(threshold), SMALLEST)
    for batch in range(n_batches):  # where the weights lie one after the other
        used = _bits_below(n_children - batch * LANES)
        for line in range(n_lines):
            kept = lanes_from(W[batch, line], 0, least) & used
            while kept:
                lane = lowest_bit(kept)
                kept &= kept - np.uint64(1)
                counts[line] += 1
                child = batch * LANES + lane
                scales[child] = max(scales[child], abs(W[batch, line, lane]))
    n_kept, n_entries = 0, 0
    for line in range(n_lines):
        n_kept += counts[line] > 0
        n_entries += counts[line]
    lines = np.empty(n_kept, dtype=np.int32)
    kept_counts = np.empty(n_kept, dtype=np.uint16)
    children = np.empty(n_entries, dtype=np.uint16)
    weights = np.empty(n_entries, dtype=np.int8)
    for child in range(n_children):
        scales[child] /= np.float32(QUANTA)
        bias[child] = W[child // LANES, n_lines, child % LANES]
    n_kept, at = 0, 0
    for line in range(n_lines):
        n = counts[line]
        counts[line] = at  # from here on where the next entry goes
        if n > 0:
            lines[n_kept] = line
            kept_counts[n_kept] = n
            n_kept += 1
            at += n
    for batch in range(n_batches):
        used = _bits_below(n_children - batch * LANES)
        for line in range(n_lines):
            kept = lanes_from(W[batch, line], 0, least) & used
            while kept:
                lane = lowest_bit(kept)
                kept &= kept - np.uint64(1)
                child = batch * LANES + lane
                children[counts[line]] = child
                weights[counts[line]] = np.int8(np.rint(W[batch, line, lane] / scales[child]))
                counts[line] += 1
    return lines, kept_counts, children, weights, scales, bias


@njit(nogil=True, cache=True)
def _bits_below(n):
    """Return a word whose lowest n bits are set, or sixteen if n is more."""
    return (np.uint64(1) << np.uint64(min(n, LANES))) - np.uint64(1)


@njit(nogil=True, cache=True)
def rows_of_nodes(
    sent,             # IN  nodes each row is sent to, -1 where none      (n_rows, beam) int32; beam may be 0
    indptr, indices,  # IN  further nodes of each row, CSR                (n_rows + 1,), ...; no row in it: none
    n_nodes,          # IN
):  # fmt: skip
    """Return the rows of every node, ascending and each once: pointers (n_nodes + 1,) int64, and rows int32."""
    n_rows = max(sent.shape[0], indptr.size - 1)
    starts = np.zeros(n_nodes + 1, dtype=np.int64)
    rows = np.empty(0, dtype=np.int32)
    seen = np.empty(n_nodes, dtype=np.int32)
    for turn in range(2):  # count, then fill
        seen[:] = -1
        fill = starts[:-1].copy()
        for row in range(n_rows):
            for rank in range(sent.shape[1]):
                node = sent[row, rank]
                if node >= 0 and seen[node] != row:
                    seen[node] = row
                    if turn == 0:
                        starts[node + 1] += 1
                    else:
                        rows[fill[node]] = row
                        fill[node] += 1
            if indptr.size > 1:
                for t in range(indptr[row], indptr[row + 1]):
                    node = indices[t]
                    if seen[node] != row:
                        seen[node] = row
                        if turn == 0:
                            starts[node + 1] += 1
                        else:
                            rows[fill[node]] = row
                            fill[node] += 1
        if turn == 0:
            for node in range(n_nodes):
                starts[node + 1] += starts[node]
            rows = np.empty(starts[-1], dtype=np.int32)
    return starts, rows


@njit(nogil=True, cache=True)
def index_lines(line_indptr, features, n_words):
    """Return for every chunk a word for every 40 features: a bit for each that has a line, and the lines before them.

    One look at a word finds the line of a feature, so that it costs one miss of the cache at most. The number of lines
    before stands in the upper 24 bits: a chunk may have 16 million lines.
    """
    n_chunks = line_indptr.size - 1
    index = np.zeros((n_chunks, n_words), dtype=np.uint64)
    for chunk in range(n_chunks):
        for line in range(line_indptr[chunk], line_indptr[chunk + 1]):
            f = features[line]
            index[chunk, f // WORD_FEATURES] |= np.uint64(1) << np.uint64(f % WORD_FEATURES)
        total = 0
        for word in range(n_words):
            bits = index[chunk, word]
            index[chunk, word] = bits | np.uint64(total) << np.uint64(WORD_FEATURES)
            total += popcount(bits)
    return index


@njit(nogil=True, cache=True)
def spread_chunks(line_indptr, child_indptr, counts, children, weights, block_indptr):
    """Return the weights of all chunks as dense int8 blocks, one after the other, lines padded to sixteens."""
    out = np.zeros(block_indptr[-1], dtype=np.int8)
    start = np.int64(0)
    for chunk in range(line_indptr.size - 1):
        width = (child_indptr[chunk + 1] - child_indptr[chunk] + LANES - 1) // LANES * LANES
        at = block_indptr[chunk]
        for line in range(line_indptr[chunk], line_indptr[chunk + 1]):
            stop = start + np.int64(counts[line])
            for e in range(start, stop):
                out[at + children[e]] = weights[e]
            start = stop
            at += width
    return out


@njit(nogil=True, cache=True)
def entries_before(entry_starts, counts, line):
    """Return how many entries the lines before a line have; `entry_starts` tells it for every 64th line."""
    total = entry_starts[line >> LOG_STEP]
    for at in range(line >> LOG_STEP << LOG_STEP, line):
        total += np.int64(counts[at])
    return total


@njit(nogil=True, cache=True)
def first_line(features, low, high, feature):
    """Return the first position in features[low:high] that is not below `feature`."""
    while low < high:
        middle = (low + high) >> 1
        if features[middle] < feature:
            low = middle + 1
        else:
            high = middle
    return low


@njit(nogil=True, cache=True)
def lines_met(
    ids, start, stop,      # IN   one row, ascending
    features, low, high,   # IN   lines of the chunk: features[low:high], ascending
    lines, at,             # OUT  the lines that have a feature of the row, and the positions of these features
):  # fmt: skip
    """Find the lines of a chunk that a row meets; return how many there are.

    Features lie about evenly in a chunk: a line is guessed by its feature, then again from there, and searched nearby.
    """
    if low == high:
        return 0
    least, span = np.int64(features[low]), np.int64(features[high - 1]) - np.int64(features[low])
    slope = (high - 1 - low) / max(span, 1)
    for t in range(start, stop):
        guess = low + np.int64((np.int64(ids[t]) - least) * slope)
        lines[t - start] = min(max(guess, low), high - 1)
        prefetch(features, lines[t - start])
    for t in range(start, stop):
        guess = lines[t - start]
        guess += np.int64((np.int64(ids[t]) - np.int64(features[guess])) * slope)
        lines[t - start] = min(max(guess, low), high - 1)
        prefetch(features, lines[t - start])
    met = 0
    for t in range(start, stop):
        line = line_near(features, low, high, ids[t], lines[t - start])
        if line < high and features[line] == ids[t]:
            lines[met] = line
            at[met] = t
            met += 1
    return met


@njit(nogil=True, cache=True)
def line_near(features, low, high, feature, guess):
    """Return what `first_line` returns, looking from a guess at larger and larger steps."""
    step = 4
    if features[guess] < feature:
        first, last = guess + 1, guess + step
        while last < high and features[last] < feature:
            first = last + 1
            step *= 2
            last += step
        return first_line(features, first, min(last, high), feature)
    first, last = guess - step, guess
    while first > low and features[first] >= feature:
        last = first
        step *= 2
        first -= step
    return first_line(features, max(first, low), last, feature)


@njit(nogil=True, cache=True)
def sums_sparse(
    ids, values, start, stop, scale,           # IN   one row
    features, low, high,                       # IN   lines of the chunk: features[low:high], ascending
    entry_starts, counts, children, weights,   # IN   entries of all lines
    n_children,                                # IN
    out,                                       # OUT  (n_children,)
):  # fmt: skip
    """Sum the weights of all children of one chunk for one row, following the row's features.

    In a large tree nearly every look is a miss of the cache: what the next step reads is asked for, for all features.
    """
    out[:n_children] = 0
    lines, at = np.empty(stop - start, dtype=np.int64), np.empty(stop - start, dtype=np.int64)
    met = lines_met(ids, start, stop, features, low, high, lines, at)
    for m in range(met):
        prefetch(entry_starts, lines[m] >> LOG_STEP)
        prefetch(counts, lines[m] >> LOG_STEP << LOG_STEP)
        prefetch(counts, lines[m])
    entries = np.empty(met, dtype=np.int64)
    for m in range(met):
        entries[m] = entries_before(entry_starts, counts, lines[m])
        prefetch(children, entries[m])
        prefetch(weights, entries[m])
    for m in range(met):
        x = values[at[m]] * scale
        for e in range(entries[m], entries[m] + np.int64(counts[lines[m]])):
            out[children[e]] += x * np.float32(weights[e])


@njit(nogil=True, cache=True)
def place_lines(line_indptr, child_indptr, counts, children, weights, least):
    """Return the place of every line, and the weights of the lines with many entries as dense int8 rows.

    place = start << 16 | entries: where the entries start and how many there are; or, where there are none, where the
    line's dense row starts: of lines with at least `least` entries for every sixteen children, padded to sixteens.
    """
    total = 0
    for chunk in range(line_indptr.size - 1):
        width = (child_indptr[chunk + 1] - child_indptr[chunk] + LANES - 1) // LANES * LANES
        for line in range(line_indptr[chunk], line_indptr[chunk + 1]):
            if _is_dense(counts[line], width, least):
                total += width
    rows = np.zeros(total, dtype=np.int8)
    places = np.empty(counts.size, dtype=np.int64)
    start, at = 0, 0
    for chunk in range(line_indptr.size - 1):
        width = (child_indptr[chunk + 1] - child_indptr[chunk] + LANES - 1) // LANES * LANES
        for line in range(line_indptr[chunk], line_indptr[chunk + 1]):
            n = np.int64(counts[line])
            if _is_dense(n, width, least):
                for e in range(start, start + n):
                    rows[at + children[e]] = weights[e]
                places[line] = at << 16
                at += width
            else:
                places[line] = start << 16 | n
            start += counts[line]
    return places, rows


@njit(nogil=True, cache=True)
def _is_dense(n, width, least):
    """Say whether a line of so many entries is kept as a dense row."""
    return n == 0 or n * LANES >= least * width


@njit(nogil=True, cache=True)
def sums_of_lines(lines, values, n, low, places, rows, children, weights, width, out):
    """Sum the weights of the lines of a chunk that a row meets, as found by `find_lines`; see `place_lines`."""
    out[:width] = 0
    for t in range(n):
        x = values[t]
        place = np.uint64(places[low + lines[t]])
        start, entries = place >> np.uint64(16), place & np.uint64(0xFFFF)
        if entries == 0:
            add_int8_row(rows, np.int64(start), x, width, out)
        for e in range(start, start + entries):
            out[children[e]] += x * np.float32(weights[e])


@njit(nogil=True, cache=True)
def ask_for_lines(lines, low, places, rows, children, weights, width):
    """Bring what `sums_of_lines` reads into the cache, all at once: in a large tree every line is a miss."""
    for t in range(lines.size):
        place = places[low + lines[t]]
        start, dense = place >> 16, place & 0xFFFF == 0
        row, entry = start * dense, start * (not dense)  # no jumps: which it is cannot be foretold
        prefetch(rows, row)
        prefetch(rows, row + (width - 1) * dense)
        prefetch(children, entry)
        prefetch(weights, entry)


@njit(nogil=True, cache=True)
def ask_for_rows(block, start, lines, width):
    """Bring some lines of a dense block into the cache, all at once."""
    for t in range(lines.size):
        at = start + np.int64(lines[t]) * width
        for column in range(0, width, 64):
            prefetch(block, at + column)


@njit(nogil=True, cache=True)
def find_lines(ids, values, start, stop, scale, index, met_lines, met_values):
    """Write the lines of a chunk that a row meets, by the chunk's index, and the row's values; return how many."""
    met = 0
    for t in range(start, stop):
        f = np.uint32(ids[t])
        word, bit = index[f // np.uint32(WORD_FEATURES)], np.uint64(1) << np.uint64(f % np.uint32(WORD_FEATURES))
        below = np.int64(word >> np.uint64(WORD_FEATURES))
        met_lines[met] = below + np.int64(popcount(word & (bit - np.uint64(1))))
        met_values[met] = values[t] * scale
        met += (word & bit) != 0
    return met
