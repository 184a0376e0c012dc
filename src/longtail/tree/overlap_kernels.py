"""Which clusters a label should stand in, from the rows that have it and the clusters that a matcher finds for them."""

from __future__ import annotations

import numpy as np
from numba import njit


@njit(nogil=True, cache=True)
def choose_places(
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
        covered[: rows.size] = False
        out = label - start
        ids[out] = -1
        gains[out] = 0
        n = 0
        for place in range(most):
            given = first_indptr[label] + place
            best = -1
            if given < first_indptr[label + 1]:
                best = first_ids[given]
            for i in range(rows.size):
                if not covered[i]:
                    for t in range(match_indptr[rows[i]], match_indptr[rows[i] + 1]):
                        counts[match_ids[t]] += 1
            if best < 0:
                for i in range(rows.size):
                    if not covered[i]:
                        for t in range(match_indptr[rows[i]], match_indptr[rows[i] + 1]):
                            c = match_ids[t]
                            if taken[c]:
                                continue
                            if best < 0 or counts[c] > counts[best] or (counts[c] == counts[best] and c < best):
                                best = c
                needed = max(least, int(np.ceil(share * rows.size)))
                if best >= 0 and counts[best] < needed:
                    best = -1
            gain = counts[best] if best >= 0 else 0
            for i in range(rows.size):
                if not covered[i]:
                    for t in range(match_indptr[rows[i]], match_indptr[rows[i] + 1]):
                        counts[match_ids[t]] = 0
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
        for place in range(n):
            taken[ids[out, place]] = False


def choose_places_plain(
    label_indptr: np.ndarray,
    label_rows: np.ndarray,
    match_indptr: np.ndarray,
    match_ids: np.ndarray,
    first_indptr: np.ndarray,
    first_ids: np.ndarray,
    start: int,
    stop: int,
    least: int,
    share: float,
    counts: np.ndarray,
    taken: np.ndarray,
    covered: np.ndarray,
    ids: np.ndarray,
    gains: np.ndarray,
) -> None:
    ids[:], gains[:] = -1, 0
    for label in range(start, stop):
        left = [
            set(match_ids[match_indptr[r] : match_indptr[r + 1]].tolist())
            for r in label_rows[label_indptr[label] : label_indptr[label + 1]]
        ]
        given = first_ids[first_indptr[label] : first_indptr[label + 1]].tolist()
        needed = max(least, int(np.ceil(share * len(left))))
        chosen: list[int] = []
        for place in range(ids.shape[1]):
            found: dict[int, int] = {}
            for clusters in left:
                for c in clusters:
                    found[c] = found.get(c, 0) + 1
            if place < len(given):
                best = given[place]
            else:
                new = [c for c in found if c not in chosen]
                best = min(new, key=lambda c: (-found[c], c)) if new else -1
                if best < 0 or found[best] < needed:
                    break
            chosen.append(best)
            ids[label - start, place], gains[label - start, place] = best, found.get(best, 0)
            left = [clusters for clusters in left if best not in clusters]


@njit(nogil=True, cache=True)
def fill_places(
    labels, clusters, counts,  # IN   choices, best first             (n,)
    held,                      # IN   choices that are taken in any case
    most, least, cap,          # IN   places per label, rows per further place, labels per cluster
    n_of_label, n_of_cluster,  # IN/OUT  places taken so far
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


def fill_places_plain(
    labels: np.ndarray,
    clusters: np.ndarray,
    counts: np.ndarray,
    held: np.ndarray,
    most: int,
    least: int,
    cap: float,
    n_of_label: np.ndarray,
    n_of_cluster: np.ndarray,
) -> np.ndarray:
    taken = np.zeros(labels.size, dtype=np.bool_)
    for i, (label, cluster) in enumerate(zip(labels.tolist(), clusters.tolist(), strict=True)):
        roomy = n_of_label[label] < most and n_of_cluster[cluster] < cap
        taken[i] = held[i] or (roomy and (n_of_label[label] == 0 or counts[i] >= least))
        n_of_label[label] += taken[i]
        n_of_cluster[cluster] += taken[i]
    return taken


@njit(nogil=True, cache=True)
def best_places(
    indptr, labels,             # IN   labels of every row                                   (n_rows + 1,), (n,)
    place_indptr, place_ids,    # IN   places of every label, ascending                      (n_labels + 1,), (p,)
    leaf_of,                    # IN   the leaf of every place                               (p,)
    nodes, scores,              # IN   leaves each row is sent to, -1 for none, and scores   (n_rows, width)
    start, stop,                # IN   the rows to look at
    usual,                      # IN   how many rows count in every place, to break ties     (p,)
    found,                      # OUT  whether the row is sent to the leaf of its place      (n,)
    chosen,                     # OUT  one place per label of every row                      (n,) int32
):  # fmt: skip
    """Choose for every label of a row the place whose leaf scores best, then the more usual one, then the first."""
    for row in range(start, stop):
        for t in range(indptr[row], indptr[row + 1]):
            best, best_score = -1, np.float32(-np.inf)
            for at in range(place_indptr[labels[t]], place_indptr[labels[t] + 1]):
                place = place_ids[at]
                score = np.float32(-np.inf)
                for i in range(nodes.shape[1]):
                    if nodes[row, i] == leaf_of[place]:
                        score = scores[row, i]
                if best < 0 or score > best_score or (score == best_score and usual[place] > usual[best]):
                    best, best_score = place, score
            chosen[t] = best
            found[t] = best_score > -np.inf


def best_places_plain(
    indptr: np.ndarray,
    labels: np.ndarray,
    place_indptr: np.ndarray,
    place_ids: np.ndarray,
    leaf_of: np.ndarray,
    nodes: np.ndarray,
    scores: np.ndarray,
    start: int,
    stop: int,
    usual: np.ndarray,
    found: np.ndarray,
    chosen: np.ndarray,
) -> None:
    for row in range(start, stop):
        sent = dict(zip(nodes[row].tolist(), scores[row].tolist(), strict=True))
        for t in range(indptr[row], indptr[row + 1]):
            places = place_ids[place_indptr[labels[t]] : place_indptr[labels[t] + 1]].tolist()
            ranked = [(sent.get(int(leaf_of[p]), -np.inf), int(usual[p]), -p) for p in places]
            chosen[t] = -max(ranked)[2]
            found[t] = max(ranked)[0] > -np.inf
