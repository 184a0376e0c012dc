"""Compiled loops that choose, fill and assign the leaf slots of overlapping labels; see `overlap.py`."""

from __future__ import annotations

import numpy as np

from longtail.kernels import njit


@njit(nogil=True, cache=True)
def choose_slots(
    label_indptr, label_rows,    # IN   rows of every label                              (n_labels + 1,), (n,)
    match_indptr, match_ids,     # IN   clusters that are found for every row            (n_rows + 1,), (m,)
    first_indptr, first_ids,     # IN   clusters in which every label stands to start    (n_labels + 1,), (p,)
    start, stop,                 # IN   the labels to look at
    least, share,                # IN   rows that a further cluster must add: `least`, and this share of the label's
    counts,                      # TMP  zeros on entry and exit                          (n_clusters,) int64
    taken,                       # TMP  False on entry and exit                          (n_clusters,)
    covered,                     # TMP  any values; at least as long as a label has rows
    ids,                         # OUT  chosen clusters, -1 where none                   (stop - start, most) int32
    gains,                       # OUT  rows that each choice adds                       (stop - start, most) int64
):  # fmt: skip
    """Choose for every label one cluster after the other, each the one that recalls most further rows of the label.

    A label keeps the clusters it starts with: they come first. Equal gains go to the cluster of the lowest number.
    """
    most = ids.shape[1]
    for label in range(start, stop):
        rows = label_rows[label_indptr[label] : label_indptr[label + 1]]
        needed = max(least, int(np.ceil(share * rows.size)))
        covered[: rows.size] = False
        out = label - start
        ids[out] = -1
        gains[out] = 0
        n = 0
        for slot in range(most):
            given = first_indptr[label] + slot
            _add_to_clusters(rows, covered, match_indptr, match_ids, counts, 1)
            if given < first_indptr[label + 1]:
                best = first_ids[given]
            else:
                best = _best_cluster(rows, covered, match_indptr, match_ids, counts, taken, needed)
            gain = counts[best] if best >= 0 else 0
            _add_to_clusters(rows, covered, match_indptr, match_ids, counts, -1)
            if best < 0:
                break
            for i in range(rows.size):
                if not covered[i]:
                    for t in range(match_indptr[rows[i]], match_indptr[rows[i] + 1]):
                        if match_ids[t] == best:
                            covered[i] = True
                            break
            taken[best] = True
            ids[out, n] = best
            gains[out, n] = gain
            n += 1
        for slot in range(n):
            taken[ids[out, slot]] = False


@njit(nogil=True, cache=True)
def _add_to_clusters(rows, covered, match_indptr, match_ids, counts, step):
    """Add `step` to the counts of the clusters of every row that is not covered."""
    for i in range(rows.size):
        if not covered[i]:
            for t in range(match_indptr[rows[i]], match_indptr[rows[i] + 1]):
                counts[match_ids[t]] += step


@njit(nogil=True, cache=True)
def _best_cluster(rows, covered, match_indptr, match_ids, counts, taken, needed):
    """Return the cluster not yet taken with the largest count, the lowest in a tie; -1 if it is below `needed`."""
    best = -1
    for i in range(rows.size):
        if not covered[i]:
            for t in range(match_indptr[rows[i]], match_indptr[rows[i] + 1]):
                c = match_ids[t]
                if taken[c]:
                    continue
                if best < 0 or counts[c] > counts[best] or (counts[c] == counts[best] and c < best):
                    best = c
    return best if best >= 0 and counts[best] >= needed else -1


@njit(nogil=True, cache=True)
def fill_slots(
    labels, clusters, counts,  # IN   choices, best first             (n,)
    held,                      # IN   choices that are taken in any case
    most, least, cap,          # IN   slots per label, rows per further slot, labels per cluster
    n_of_label, n_of_cluster,  # IN/OUT  slots taken so far
):  # fmt: skip
    """Return which choices are taken, one after the other, while their label and their cluster have room."""
    taken = np.zeros(labels.size, dtype=np.bool_)
    for i in range(labels.size):
        label, cluster = labels[i], clusters[i]
        if not held[i]:
            if n_of_label[label] >= most or n_of_cluster[cluster] >= cap:
                continue
            if n_of_label[label] > 0 and counts[i] < least:
                continue
        taken[i] = True
        n_of_label[label] += 1
        n_of_cluster[cluster] += 1
    return taken


@njit(nogil=True, cache=True)
def best_slots(
    indptr, labels,             # IN   labels of every row                                   (n_rows + 1,), (n,)
    slot_indptr, slot_ids,      # IN   slots of every label, ascending                       (n_labels + 1,), (p,)
    leaf_of,                    # IN   the leaf of every slot                                (p,)
    nodes, scores,              # IN   leaves each row is sent to, -1 for none, and scores   (n_rows, width)
    start, stop,                # IN   the rows to look at
    usual,                      # IN   rows assigned to every slot, to break ties            (p,)
    reached,                    # OUT  whether the row is sent to the leaf of its slot       (n,)
    chosen,                     # OUT  one slot per label of every row                       (n,) int32
):  # fmt: skip
    """Choose for every label of a row the slot whose leaf scores best, then the more usual one, then the first."""
    for row in range(start, stop):
        for t in range(indptr[row], indptr[row + 1]):
            best, best_score = -1, np.float32(-np.inf)
            for at in range(slot_indptr[labels[t]], slot_indptr[labels[t] + 1]):
                slot = slot_ids[at]
                score = np.float32(-np.inf)
                for i in range(nodes.shape[1]):
                    if nodes[row, i] == leaf_of[slot]:
                        score = scores[row, i]
                if best < 0 or score > best_score or (score == best_score and usual[slot] > usual[best]):
                    best, best_score = slot, score
            chosen[t] = best
            reached[t] = best_score > -np.inf
