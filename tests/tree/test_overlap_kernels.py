"""Choosing, filling and assigning leaf slots, and merging lists: the compiled kernels agree with their plain twins."""

import numpy as np
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from longtail.tree.beam import merge_lists
from longtail.tree.overlap_kernels import (
    best_slots,
    choose_slots,
    fill_slots,
)


def merge_lists_plain(
    ids: np.ndarray, scores: np.ndarray, shares: int, out_ids: np.ndarray, out_scores: np.ndarray
) -> None:
    out_ids[:], out_scores[:] = -1, -np.inf
    for row in range(ids.shape[0]):
        found: dict[int, list[float]] = {}
        for label, score in zip(ids[row].tolist(), scores[row].astype(np.float64).tolist(), strict=True):
            found.setdefault(label, []).append(np.exp(score))
        chances = {label: sum(parts) / (shares or len(parts)) for label, parts in found.items() if label >= 0}
        logs = {label: np.float32(np.log(chance)) for label, chance in chances.items() if chance > 0}
        best = sorted(logs, key=lambda label: (-logs[label], label))[: out_ids.shape[1]]
        out_ids[row, : len(best)] = best
        out_scores[row, : len(best)] = [logs[label] for label in best]


def choose_slots_plain(
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
        for slot in range(ids.shape[1]):
            found: dict[int, int] = {}
            for clusters in left:
                for c in clusters:
                    found[c] = found.get(c, 0) + 1
            if slot < len(given):
                best = given[slot]
            else:
                new = [c for c in found if c not in chosen]
                best = min(new, key=lambda c: (-found[c], c)) if new else -1
                if best < 0 or found[best] < needed:
                    break
            chosen.append(best)
            ids[label - start, slot], gains[label - start, slot] = best, found.get(best, 0)
            left = [clusters for clusters in left if best not in clusters]


def fill_slots_plain(
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


def best_slots_plain(
    indptr: np.ndarray,
    labels: np.ndarray,
    slot_indptr: np.ndarray,
    slot_ids: np.ndarray,
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
            slots = slot_ids[slot_indptr[labels[t]] : slot_indptr[labels[t] + 1]].tolist()
            ranked = [(sent.get(int(leaf_of[p]), -np.inf), int(usual[p]), -p) for p in slots]
            chosen[t] = -max(ranked)[2]
            found[t] = max(ranked)[0] > -np.inf


def zero_one(rng, shape, share):
    return sp.csr_array((rng.random(shape) < share).astype(np.float32))


@settings(max_examples=100, deadline=None)
@given(st.integers(0, 10**6), st.integers(1, 40), st.integers(1, 12), st.integers(1, 9), st.integers(1, 4))
def test_slots_are_chosen_alike(seed, n_rows, n_labels, n_clusters, most):
    rng = np.random.default_rng(seed)
    Y, M = sp.csc_array(zero_one(rng, (n_rows, n_labels), 0.3)), zero_one(rng, (n_rows, n_clusters), 0.4)
    first = zero_one(rng, (n_labels, n_clusters), 0.1)
    start, least, share = int(rng.integers(0, n_labels)), int(rng.integers(1, 4)), float(rng.choice([0, 0.3]))
    found = []
    for kernel in (choose_slots, choose_slots_plain):
        counts, taken = np.zeros(n_clusters, np.int64), np.zeros(n_clusters, np.bool_)
        ids, gains = np.zeros((n_labels - start, most), np.int32), np.zeros((n_labels - start, most), np.int64)
        kernel(
            Y.indptr.astype(np.int64),
            Y.indices.astype(np.int32),
            M.indptr.astype(np.int64),
            M.indices,
            first.indptr.astype(np.int64),
            first.indices,
            start,
            n_labels,
            least,
            share,
            counts,
            taken,
            np.zeros(n_rows, np.bool_),
            ids,
            gains,
        )
        assert not counts.any() and not taken.any()
        found.append((ids.tolist(), gains.tolist()))
    assert found[0] == found[1]


choices = st.tuples(
    st.integers(0, 8), st.integers(0, 4), st.integers(0, 8), st.booleans()
)  # label, cluster, count, held


@settings(max_examples=100, deadline=None)
@given(st.lists(choices, max_size=60), st.integers(1, 3), st.integers(0, 3), st.sampled_from([3.0, 7.5, np.inf]))
def test_slots_are_filled_alike(choices, most, least, cap):
    best_first = sorted(choices, key=lambda choice: -choice[2])
    labels, clusters, counts = (np.array([choice[i] for choice in best_first], np.int32) for i in range(3))
    held = np.array([choice[3] for choice in best_first], np.bool_)
    given = (labels, clusters, counts.astype(np.int64), held, most, least, cap)
    taken = [
        kernel(*given, np.zeros(9, np.int64), np.zeros(5, np.int64)).tolist()
        for kernel in (fill_slots, fill_slots_plain)
    ]
    assert taken[0] == taken[1]


@settings(max_examples=100, deadline=None)
@given(st.integers(0, 10**6), st.integers(1, 20), st.integers(1, 8), st.integers(1, 6), st.integers(1, 4))
def test_slots_of_rows_are_chosen_alike(seed, n_rows, n_labels, n_leaves, width):
    rng = np.random.default_rng(seed)
    Y = zero_one(rng, (n_rows, n_labels), 0.4)
    stands = rng.random((n_leaves, n_labels)) < 0.3
    stands[rng.integers(0, n_leaves, n_labels), np.arange(n_labels)] = True  # every label has a slot
    leaf_of, labels = (a.astype(np.int32) for a in np.nonzero(stands))
    slot_ids = np.argsort(labels, kind="stable").astype(np.int32)
    slot_indptr = np.concatenate([[0], np.cumsum(np.bincount(labels, minlength=n_labels))])
    nodes = np.argsort(rng.random((n_rows, max(n_leaves, width))), axis=1)[:, :width].astype(np.int32)
    nodes[(nodes >= n_leaves) | (rng.random(nodes.shape) < 0.3)] = -1
    scores = -rng.integers(0, 3, nodes.shape).astype(np.float32)  # ties are common
    usual, start = rng.integers(0, 3, leaf_of.size), int(rng.integers(0, n_rows))
    found = []
    for kernel in (best_slots, best_slots_plain):
        there, chosen = np.zeros(Y.nnz, np.bool_), np.full(Y.nnz, -1, np.int32)
        kernel(
            Y.indptr.astype(np.int64),
            Y.indices,
            slot_indptr,
            slot_ids,
            leaf_of,
            nodes,
            scores,
            start,
            n_rows,
            usual,
            there,
            chosen,
        )
        found.append((there.tolist(), chosen.tolist()))
    assert found[0] == found[1]


ranked = st.tuples(st.integers(-1, 4), st.sampled_from([-0.5, -1, -2, -200]))  # label and score


@settings(max_examples=100, deadline=None)
@given(st.lists(ranked, min_size=1, max_size=12), st.integers(1, 8), st.integers(0, 3))
def test_lists_are_merged_alike(ranked, k, shares):
    ids = np.array([[label for label, _ in ranked]], np.int32)
    scores = np.array([[score if label >= 0 else -np.inf for label, score in ranked]], np.float32)
    got, want = ((np.empty((1, k), np.int32), np.empty((1, k), np.float32)) for _ in range(2))
    merge_lists(ids, scores, shares, 0, *got)
    merge_lists_plain(ids, scores, shares, *want)
    assert np.array_equal(got[0], want[0])
    np.testing.assert_allclose(got[1], want[1], rtol=1e-6)
    assert ((got[0] >= 0) == np.isfinite(got[1])).all()


@settings(max_examples=100, deadline=None)
@given(st.integers(0, 2**32 - 1), st.integers(1, 4), st.integers(1, 9), st.integers(1, 12))
def test_lists_of_several_trees_are_merged_alike(seed, lists, length, k):
    rng = np.random.default_rng(seed)
    ids, scores = np.full((5, lists * length), -1, np.int32), np.full((5, lists * length), -np.inf, np.float32)
    for row in range(5):
        for at in range(0, lists * length, length):
            n = int(rng.integers(0, length + 1))
            ids[row, at : at + n] = rng.permutation(12)[:n]
            scores[row, at : at + n] = -np.sort(rng.choice([0, 0.5, 1, 1.1, 2, 9, 300], n))
    got, want = ((np.empty((5, k), np.int32), np.empty((5, k), np.float32)) for _ in range(2))
    merge_lists(ids, scores, lists, lists, *got)
    merge_lists_plain(ids, scores, lists, *want)
    assert np.array_equal(got[0], want[0])
    np.testing.assert_allclose(got[1], want[1], rtol=1e-6)
