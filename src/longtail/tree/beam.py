"""Compiled beam search through a tree of chunks, for many rows at once or for one, and merging of ranked lists.

    margin of a child   bias + scale · Σ over the row's features of value · q      (q: its whole-number weight)
    score of a child    link(margin) + parent_weight · score of its parent

The terms are added feature by feature in ascending order and nothing is fused, in the dense and the sparse way of
scoring a chunk alike, so that a row scores the same to the last bit either way.
"""

from __future__ import annotations

import numpy as np

from longtail.kernels import LANES, SHORTEST, lanes_at_least, lowest_bit, njit, sum_int8_lines
from longtail.tree.chunk_kernels import (
    ask_for_lines,
    ask_for_rows,
    entries_before,
    find_lines,
    sums_of_lines,
    sums_sparse,
)

AT_ONCE = 16  # pairs of row and node whose weights are looked up together, so that their misses of the cache overlap
FIRST_NODES = 3  # nodes of every row that are scored before it is decided which others can still matter


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
    leaf slot. `line` is padded to sixteens.
    """
    k = scores.size
    least = scores[k - 1]
    for start in range(0, n_children, LANES):
        good = lanes_at_least(line, start, least)
        if n_children - start < LANES:
            good &= (np.uint64(1) << np.uint64(n_children - start)) - np.uint64(1)
        while good:
            c = start + lowest_bit(good)
            good &= good - np.uint64(1)
            score = line[c]
            if score < least or not score > -np.inf:
                continue
            child = first + c
            if score == least and child > ids[k - 1]:
                continue
            rank, twin = k - 1, -1
            if labels.size:
                for other in range(k):
                    if ids[other] >= 0 and labels[ids[other] - offset] == labels[child - offset]:
                        twin = other
                        break
            if twin >= 0:
                if score < scores[twin] or (score == scores[twin] and child > ids[twin]):
                    continue
                rank = twin
            while rank > 0 and (score > scores[rank - 1] or (score == scores[rank - 1] and child < ids[rank - 1])):
                scores[rank] = scores[rank - 1]
                ids[rank] = ids[rank - 1]
                rank -= 1
            scores[rank] = score
            ids[rank] = child
            least = scores[k - 1]


@njit(nogil=True, cache=True)
def search_block(  # long for its arguments
    indptr, indices, data, scale,              # IN   rows of X, CSR; each is multiplied by its scale
    nodes, scores,                             # IN   nodes of the beam, -1 where none, and their scores (n, beam)
    child_indptr, line_indptr,                 # IN   children and lines of every chunk   (n_chunks + 1,)
    features, entry_starts, counts, children, weights, scales, bias,
    index, block_indptr, blocks, places,       # IN   from `Chunks.spread`
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
    first_nodes = min(beam, FIRST_NODES) if bounded else beam
    pairs = np.empty(n * beam, dtype=np.int64)
    for turn in range(2):
        n_pairs = 0
        for row in range(n):
            for rank in range(first_nodes) if turn == 0 else range(first_nodes, beam):
                if nodes[row, rank] < 0:
                    continue
                if bounded and parent_weight * scores[row, rank] < new_scores[row, k - 1]:
                    break  # nor can those that follow: they start no higher
                pairs[n_pairs] = row * beam + rank
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
                entry_starts,
                counts,
                children,
                weights,
                scales,
                bias,
                index,
                block_indptr,
                blocks,
                places,
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
        if first_nodes == beam:
            break


@njit(nogil=True, cache=True)
def _score_pairs(  # one loop that shares its buffers: splitting costs speed
    indptr, indices, data, scale, nodes, scores,
    pairs,                                     # IN   row · beam + rank in the beam, ascending
    child_indptr, line_indptr, features, entry_starts, counts, children, weights, scales, bias,
    index, block_indptr, blocks, places, labels, offset, power, slope, parent_weight, dense_from, position,
    new_nodes, new_scores,                     # IN/OUT
):  # fmt: skip
    """Score some pairs of row and node, chunk by chunk, and put the children among the best of their rows."""
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
    kept = index.size > 0 and places.size == 0
    block = blocks if kept else np.empty(longest * padded, dtype=np.int8)
    line = np.empty(padded, dtype=np.float32)
    room = longest_row if index.size == 0 else AT_ONCE * longest_row
    met_lines, met_values = np.empty(room, dtype=np.int32), np.empty(room, dtype=np.float32)
    waiting, n_waiting = np.empty(AT_ONCE, dtype=np.int64), 0  # pairs to be looked up together
    ends = np.empty(AT_ONCE + 1, dtype=np.int64)
    for chunk in range(n_chunks):
        first, last = visits[chunk], visits[chunk + 1]
        if first == last:
            continue
        low, high = line_indptr[chunk], line_indptr[chunk + 1]
        child = child_indptr[chunk]
        n_children = child_indptr[chunk + 1] - child
        width = (n_children + LANES - 1) // LANES * LANES
        # noting the position of every line pays only for more lookups than there are lines
        few = places.size > 0 or last - first < dense_from
        few = few or (kept and (last - first) * row_length < 2 * (high - low))
        if few and index.size > 0:
            for pair in order[first:last]:
                waiting[n_waiting] = pair
                n_waiting += 1
                if n_waiting == AT_ONCE:
                    _score_by_index(
                        indptr,
                        indices,
                        data,
                        scale,
                        nodes,
                        scores,
                        waiting,
                        child_indptr,
                        line_indptr,
                        children,
                        weights,
                        scales,
                        bias,
                        index,
                        block_indptr,
                        blocks,
                        places,
                        labels,
                        offset,
                        power,
                        slope,
                        parent_weight,
                        met_lines,
                        met_values,
                        ends,
                        line,
                        new_nodes,
                        new_scores,
                    )
                    n_waiting = 0
            continue
        start = block_indptr[chunk] if kept else 0
        if not kept and not few:
            block[: (high - low) * width] = 0
            entry = entries_before(entry_starts, counts, low)
            for at in range(low, high):
                for e in range(entry, entry + np.int64(counts[at])):
                    block[(at - low) * width + children[e]] = weights[e]
                entry += np.int64(counts[at])
        if not few:
            for at in range(low, high):
                position[features[at]] = at - low
        for pair in order[first:last]:
            row = pair // beam
            if few:
                sums_sparse(
                    indices,
                    data,
                    indptr[row],
                    indptr[row + 1],
                    scale[row],
                    features,
                    low,
                    high,
                    entry_starts,
                    counts,
                    children,
                    weights,
                    n_children,
                    line,
                )
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
    if n_waiting:
        _score_by_index(
            indptr,
            indices,
            data,
            scale,
            nodes,
            scores,
            waiting[:n_waiting],
            child_indptr,
            line_indptr,
            children,
            weights,
            scales,
            bias,
            index,
            block_indptr,
            blocks,
            places,
            labels,
            offset,
            power,
            slope,
            parent_weight,
            met_lines,
            met_values,
            ends,
            line,
            new_nodes,
            new_scores,
        )


@njit(nogil=True, cache=True)
def _score_by_index(
    indptr, indices, data, scale, nodes, scores,
    pairs,                                     # IN   at most AT_ONCE
    child_indptr, line_indptr, children, weights, scales, bias,
    index, block_indptr, blocks, places, labels, offset, power, slope, parent_weight,
    met_lines, met_values, ends, line,         # TMP
    new_nodes, new_scores,                     # IN/OUT
):  # fmt: skip
    """Score some pairs of row and node by the index of lines: find the lines of all, ask for them, then sum them."""
    beam = nodes.shape[1]
    ends[0] = 0
    for p in range(pairs.size):
        row = pairs[p] // beam
        chunk = nodes[row, pairs[p] % beam]
        met = find_lines(
            indices,
            data,
            indptr[row],
            indptr[row + 1],
            scale[row],
            index[chunk],
            met_lines[ends[p] :],
            met_values[ends[p] :],
        )
        ends[p + 1] = ends[p] + met
    for p in range(pairs.size):
        chunk = nodes[pairs[p] // beam, pairs[p] % beam]
        lines = met_lines[ends[p] : ends[p + 1]]
        width = (child_indptr[chunk + 1] - child_indptr[chunk] + LANES - 1) // LANES * LANES
        if places.size:
            ask_for_lines(lines, line_indptr[chunk], places, blocks, children, weights, width)
        else:
            ask_for_rows(blocks, block_indptr[chunk], lines, width)
    for p in range(pairs.size):
        row, rank = pairs[p] // beam, pairs[p] % beam
        chunk = nodes[row, rank]
        child = child_indptr[chunk]
        n_children = child_indptr[chunk + 1] - child
        lines, values = met_lines[ends[p] : ends[p + 1]], met_values[ends[p] : ends[p + 1]]
        width = (n_children + LANES - 1) // LANES * LANES
        if places.size:
            low = line_indptr[chunk]
            sums_of_lines(lines, values, lines.size, low, places, blocks, children, weights, width, line)
        else:
            sum_int8_lines(blocks, block_indptr[chunk], lines, values, lines.size, width, line)
        above = parent_weight * scores[row, rank]
        _to_scores(line, scales, bias, child, n_children, power, slope, above)
        _keep(line, child, n_children, labels, offset, new_nodes[row], new_scores[row])


@njit(nogil=True, cache=True)
def search_one(  # one row takes microseconds: every further call would show
    ids, data, n_features, normalize,          # IN   one row and its width, to be scaled to length 1 or not
    child_indptr, line_indptr, features, entry_starts, counts, children, weights, scales, bias,
    index, block_indptr, blocks, places,       # IN   from `Chunks.spread`
    widths, powers, slopes, parent_weights,    # IN   per level: children to keep, and the link
    leaf_labels, once,                         # IN   label of every leaf slot, the children of the last level;
                                               #      whether a label may have several slots and counts once
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
    kept, best = np.empty(beam, dtype=np.int64), np.empty(beam, dtype=np.float32)
    nodes[0] = 0
    size = 1
    line = np.empty(64, dtype=np.float32)
    met_lines, met_values = np.empty(ids.size, dtype=np.int32), np.empty(ids.size, dtype=np.float32)
    for level in range(n_levels):
        width = widths[level]
        kept[:width] = -1
        best[:width] = -np.inf
        for rank in range(size):
            node = nodes[rank]
            if node < 0:
                continue
            first = child_indptr[node]
            n_children = child_indptr[node + 1] - first
            padded = (n_children + LANES - 1) // LANES * LANES
            if padded > widest:
                widest = max(padded, 64)
                line = np.empty(widest, dtype=np.float32)
            above = parent_weights[level] * scores[rank]
            if powers[level] != 0 and slopes[level] == 0 and above < best[width - 1]:
                break  # margins only lower a score, and the nodes that follow start no higher
            if index.size:
                met = find_lines(ids, values, 0, ids.size, np.float32(1.0), index[node], met_lines, met_values)
                if places.size:
                    low = line_indptr[node]
                    ask_for_lines(met_lines[:met], low, places, blocks, children, weights, padded)
                    sums_of_lines(met_lines, met_values, met, low, places, blocks, children, weights, padded, line)
                else:
                    sum_int8_lines(blocks, block_indptr[node], met_lines, met_values, met, padded, line)
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
                    entry_starts,
                    counts,
                    children,
                    weights,
                    n_children,
                    line,
                )
            _to_scores(line, scales, bias, first, n_children, powers[level], slopes[level], above)
            names = leaf_labels if once and level == n_levels - 1 else leaf_labels[:0]
            _keep(line, first, n_children, names, child_indptr.size - 2, kept[:width], best[:width])
        for rank in range(width):
            nodes[rank] = kept[rank] + 1 if kept[rank] >= 0 else -1
            scores[rank] = best[rank]
        size = width
    for rank in range(labels.size):
        inside = rank < widths[n_levels - 1] and kept[rank] >= 0
        labels[rank] = leaf_labels[kept[rank] - (child_indptr.size - 2)] if inside else -1
        out_scores[rank] = best[rank] if inside else -np.inf
    return True


@njit(nogil=True, cache=True)
def search_each(
    indptr, ids, data, n_features, normalize,  # IN   rows, as in `search_one`                  (n + 1,), (nnz,), (nnz,)
    child_indptr, line_indptr, features, entry_starts, counts, children, weights, scales, bias,
    index, block_indptr, blocks, places,
    widths, powers, slopes, parent_weights,
    leaf_labels, once,
    labels, out_scores,                        # OUT  best labels of every row and their scores               (n, k)
):  # fmt: skip
    """Walk a few rows down, one after the other; returns False where one of them has to be checked."""
    for row in range(labels.shape[0]):
        low, high = indptr[row], indptr[row + 1]
        sound = search_one(
            ids[low:high], data[low:high], n_features, normalize,
            child_indptr, line_indptr, features, entry_starts, counts, children, weights, scales, bias,
            index, block_indptr, blocks, places,
            widths, powers, slopes, parent_weights,
            leaf_labels, once,
            labels[row], out_scores[row],
        )  # fmt: skip
        if not sound:
            return False
    return True


@njit(nogil=True, cache=True)
def merge_lists(
    ids, scores,          # IN   labels and their scores (logarithms), -1 where none     (n, m)
    shares,               # IN   what the sum is divided by; 0 for how often the label occurs
    lists,                # IN   how many lists of equal length they are, each best first, each label once in it;
                          #      0 for no such lists
    out_ids, out_scores,  # OUT  best first, equal scores by label, -1 and -inf where none  (n, k)
):  # fmt: skip
    """Merge equal labels of every row and keep the k best: score = log(Σ exp(score) / shares).

    With `lists`, labels are passed by whose best entry is so low that their sum cannot reach the k-th of a list.
    """
    n, k = out_ids.shape
    m = ids.shape[1]
    length = m // lists if lists > 0 else 0
    out_ids[:] = -1
    out_scores[:] = -np.inf
    for row in range(n):
        enough = -np.inf
        if k <= length:
            for each in range(lists):
                if ids[row, each * length + k - 1] >= 0:
                    enough = max(enough, np.float64(scores[row, each * length + k - 1]))
            enough -= np.log(np.float64(lists)) + 0.01
        for at in range(m):
            label = ids[row, at]
            if label < 0 or scores[row, at] < enough:
                continue
            total, count = 0.0, 0
            seen = False  # by an entry before this one, so that it has been summed
            for other in range(m):
                if ids[row, other] == label:
                    seen = seen or (other < at and scores[row, other] >= enough)
                    if seen:
                        break
                    total += np.exp(np.float64(scores[row, other]))
                    count += 1
            if seen:
                continue
            total /= shares if shares > 0 else count
            if not total > 0:
                continue
            score = np.float32(np.log(total))
            last = k - 1
            if score < out_scores[row, last] or (score == out_scores[row, last] and label > out_ids[row, last] >= 0):
                continue
            if not score > -np.inf:
                continue
            rank = last
            while rank > 0 and (
                score > out_scores[row, rank - 1]
                or (score == out_scores[row, rank - 1] and label < out_ids[row, rank - 1])
            ):
                out_scores[row, rank] = out_scores[row, rank - 1]
                out_ids[row, rank] = out_ids[row, rank - 1]
                rank -= 1
            out_scores[row, rank] = score
            out_ids[row, rank] = label
