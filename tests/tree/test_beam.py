"""Beam search: every way of scoring gives the same result, which is that of a plain loop."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from longtail.tree import chunks as tree_chunks
from longtail.tree import search as tree_search
from longtail.tree.beam import link, search_block
from longtail.tree.chunk_kernels import ask_for_lines, index_lines, lines_met, place_lines, sums_of_lines
from longtail.tree.chunks import Chunks, PackedChunk
from longtail.tree.search import BeamPlan, LevelLink, search_few, search_rows


@pytest.fixture(autouse=True)
def spread_at_once(monkeypatch):
    monkeypatch.setattr(tree_chunks, "SPREAD_FROM", 0)


def random_chunks(rng, widths_of_levels, n_features=25):
    """Chunks with whole-number weights: sums are exact in any order."""
    levels, n = [], 1
    for width in widths_of_levels:
        level = []
        for _ in range(n):
            dense = rng.integers(-3, 4, (n_features, width)) * (rng.random((n_features, width)) < 0.4)
            lines = np.flatnonzero(dense.any(axis=1)).astype(np.int32)
            where, kids = np.nonzero(dense[lines])
            level.append(
                PackedChunk(
                    lines,
                    np.bincount(where, minlength=lines.size).astype(np.uint16),
                    kids.astype(np.uint16),
                    dense[lines][where, kids].astype(np.int8),
                    np.full(width, 0.5, np.float32),
                    rng.integers(-2, 3, width).astype(np.float32),
                )
            )
        levels.append(level)
        n *= width
    return Chunks.join(levels, n_features)


def plain_search(chunks, row, plan):
    """Walk one dense row down the tree with plain loops."""
    beam = [(0, np.float32(0))]
    for level in range(plan.widths.size):
        scored = []
        for node, score in beam:
            low, high = chunks.line_indptr[node], chunks.line_indptr[node + 1]
            first = chunks.child_indptr[node]
            margins = chunks.bias[first : chunks.child_indptr[node + 1]].copy()
            for line in range(low, high):
                entries = chunks.entries_of(line, line + 1)
                for e in range(entries.start, entries.stop):
                    c = chunks.children[e]
                    margins[c] += row[chunks.features[line]] * chunks.weights[e] * chunks.scales[first + c]
            for c, margin in enumerate(margins):
                power, above = int(plan.powers[level]), plan.parent_weights[level]
                loss = max(0.0, 1 - margin) ** power if power else -margin
                scored.append((first + c, np.float32(-loss) + above * score))
        scored.sort(key=lambda pair: (-pair[1], pair[0]))
        kept = scored[: plan.widths[level]]
        beam = [(child + 1, score) for child, score in kept]
    return [child for child, _ in kept], [score for _, score in kept]


def one_row(chunks, ids, values, plan):
    """Search for one row, unscaled, with the slots for labels."""
    n_slots = int(chunks.child_indptr[-1]) - (chunks.n_chunks - 1)
    indptr, labels = np.array([0, ids.size]), np.arange(n_slots, dtype=np.int32)
    return search_few(chunks, indptr, ids, values, False, plan, labels, False, plan.n_kept)


@given(st.integers(0, 2**32 - 1), st.lists(st.integers(1, 20), min_size=1, max_size=3), st.integers(1, 4))
@settings(max_examples=25, deadline=None)
def test_every_way_of_searching_agrees_with_a_plain_loop(seed, widths, beam):
    rng = np.random.default_rng(seed)
    chunks = random_chunks(rng, widths)
    dense = (rng.integers(-2, 3, (9, 25)) * (rng.random((9, 25)) < 0.4)).astype(np.float32)
    X = sp.csr_array(dense)
    plan = BeamPlan.of([beam] * len(widths), [LevelLink(int(rng.integers(0, 4)), 0.0, 0.5) for _ in widths])
    ones = np.ones(9, np.float32)
    results = []
    for dense_from in (1, 10**9):
        tree_search.DENSE_FROM, kept = dense_from, tree_search.DENSE_FROM
        results.append(search_rows(chunks, X, ones, plan, n_jobs=1))
        tree_search.DENSE_FROM = kept
    results.append(search_rows(chunks, X, ones, plan, n_jobs=2))
    for nodes, scores in results[1:]:
        assert np.array_equal(nodes, results[0][0]) and np.array_equal(scores, results[0][1])
    for row in range(9):
        at = slice(X.indptr[row], X.indptr[row + 1])
        (labels,), (scores,) = one_row(chunks, X.indices[at].astype(np.int32), X.data[at], plan)
        nodes = np.where(labels >= 0, labels + chunks.n_chunks - 1, -1)
        assert np.array_equal(nodes, results[0][0][row]) and np.array_equal(scores, results[0][1][row])
        want_nodes, want_scores = plain_search(chunks, dense[row], plan)  # exact too, so that ties are ties
        n = len(want_nodes)
        assert nodes[:n].tolist() == want_nodes and scores[:n].tolist() == want_scores
        assert (nodes[n:] == -1).all() and np.isneginf(scores[n:]).all()


@pytest.mark.parametrize("largest", [0, 60])  # nothing but the stored form; an index of 48 bytes, and few dense rows
def test_search_without_an_index_or_blocks_is_the_same(monkeypatch, largest):
    rng = np.random.default_rng(0)
    chunks = random_chunks(rng, [5, 6])
    plan = BeamPlan.of([2, 3], [LevelLink(3, 0.0, 1.0), LevelLink(3, 0.0, 0.3)])
    ids, values = np.arange(0, 25, 2, dtype=np.int32), rng.standard_normal(13).astype(np.float32)
    with_index = one_row(chunks, ids, values, plan)
    X = sp.random_array((30, 25), density=0.3, rng=rng, dtype=np.float32).tocsr()
    batch = search_rows(chunks, X, np.ones(30, np.float32), plan, 1)
    monkeypatch.setattr(tree_chunks, "LARGEST_SPREAD", largest)
    other = random_chunks(np.random.default_rng(0), [5, 6])
    index, _, rows, places = other.spread
    assert (index.size > 0) == (places.size > 0) == (largest > 0) and 0 <= rows.size < 16 * places.size + 1
    without = one_row(other, ids, values, plan)
    assert np.array_equal(with_index[0], without[0]) and np.array_equal(with_index[1], without[1])
    for dense_from in (1, 10**9):
        monkeypatch.setattr(tree_search, "DENSE_FROM", dense_from)
        again = search_rows(other, X, np.ones(30, np.float32), plan, 1)
        assert np.array_equal(batch[0], again[0]) and np.array_equal(batch[1], again[1])


def test_the_index_counts_lines_across_words():
    features = np.array([0, 39, 40, 130, 5], np.int32)
    index = index_lines(np.array([0, 4, 5]), features, 4)
    assert (index >> np.uint64(40)).tolist() == [[0, 2, 3, 3], [0, 1, 1, 1]]
    bits = index & np.uint64((1 << 40) - 1)
    assert bits.tolist() == [[1 | 1 << 39, 1, 0, 1 << 10], [32, 0, 0, 0]]


def sums_plain(chunks, chunk, lines, values):
    """Sum the weights of some lines of a chunk with plain loops, in float32."""
    out = np.zeros(int(chunks.child_indptr[chunk + 1] - chunks.child_indptr[chunk]), np.float32)
    for line, x in zip(chunks.line_indptr[chunk] + lines, values, strict=True):
        entries = chunks.entries_of(line, line + 1)
        for e in range(entries.start, entries.stop):
            out[chunks.children[e]] += x * np.float32(chunks.weights[e])
    return out


@given(st.integers(0, 2**32 - 1), st.integers(1, 40), st.sampled_from([0.0, 1.5, 6.0, 99.0]))
@settings(max_examples=40, deadline=None)
def test_sums_of_placed_lines_are_those_of_a_plain_loop_to_the_last_bit(seed, width, least):
    rng = np.random.default_rng(seed)
    chunks = random_chunks(rng, [2, width])
    arrays = (chunks.line_indptr, chunks.child_indptr, chunks.counts, chunks.children, chunks.weights)
    places, rows = place_lines(*arrays, least)
    assert (places & 0xFFFF == np.where(places & 0xFFFF, chunks.counts, 0)).all()
    out = np.empty(64, np.float32)
    for chunk in range(chunks.n_chunks):
        n_lines = int(chunks.line_indptr[chunk + 1] - chunks.line_indptr[chunk])
        lines = np.flatnonzero(rng.random(n_lines) < 0.6).astype(np.int32)
        values = rng.standard_normal(lines.size).astype(np.float32)
        want = sums_plain(chunks, chunk, lines, values)
        padded = -(-want.size // 16) * 16
        low = chunks.line_indptr[chunk]
        ask_for_lines(lines, low, places, rows, chunks.children, chunks.weights, padded)
        sums_of_lines(lines, values, lines.size, low, places, rows, chunks.children, chunks.weights, padded, out)
        assert np.array_equal(out[: want.size], want)


def test_trees_too_large_for_dense_rows_of_all_lines_are_searched_alike(monkeypatch):
    rng = np.random.default_rng(1)
    X = sp.random_array((300, 90), density=0.2, rng=rng, dtype=np.float32).tocsr()
    ones, plan = np.ones(300, np.float32), BeamPlan.of([4, 5], [LevelLink(3, 0.0, 1.0), LevelLink(3, 0.0, 0.3)])
    chunks = random_chunks(np.random.default_rng(2), [20, 30], n_features=90)
    want = search_rows(chunks, X, ones, plan, 1)
    monkeypatch.setattr(tree_chunks, "LARGEST_SPREAD", 21 * 3 * 8 + 1)
    other = random_chunks(np.random.default_rng(2), [20, 30], n_features=90)
    assert other.spread[3].size and other.spread[2].size  # some lines dense
    assert (other.spread[3] & 0xFFFF).any()  # and some not
    got = search_rows(other, X, ones, plan, 2)
    assert np.array_equal(got[0], want[0]) and np.array_equal(got[1], want[1])
    for row in range(0, 300, 7):
        at = slice(X.indptr[row], X.indptr[row + 1])
        ids, values = X.indices[at].astype(np.int32), X.data[at]
        (labels,), (scores,) = one_row(other, ids, values, plan)
        assert np.array_equal(labels + other.n_chunks - 1, want[0][row]) and np.array_equal(scores, want[1][row])


@pytest.mark.parametrize(
    ("power", "margin", "want"),
    [(3, 0, -1), (3, 2, 0), (1, -1, -2), (0, -1.5, -1.5), (2, -1, -4), (-1, 0, np.log(0.5)), (-1, -80, -80)],
)
def test_links(power, margin, want):
    assert link(np.float32(margin), power, np.float32(0)) == pytest.approx(want, abs=1e-6)


def test_features_and_children_above_65536():
    n_features, n_leaves = 70_000, 300
    leaf = [
        PackedChunk(
            np.array([69_999], np.int32),
            np.array([1], np.uint16),
            np.array([255], np.uint16),
            np.array([100], np.int8),
            np.full(256, 0.01 * (i + 1), np.float32),
            np.full(256, -1, np.float32),
        )
        for i in range(n_leaves)
    ]
    root = PackedChunk(
        np.empty(0, np.int32),
        np.empty(0, np.uint16),
        np.empty(0, np.uint16),
        np.empty(0, np.int8),
        np.ones(n_leaves, np.float32),
        np.arange(n_leaves, dtype=np.float32),
    )
    chunks = Chunks.join([[root], leaf], n_features)
    X = sp.csr_array((np.ones(1, np.float32), np.array([69_999], np.int32), np.array([0, 1])), shape=(1, n_features))
    plan = BeamPlan.of([1, 1], [LevelLink(0, 0.0, 1.0), LevelLink(0, 0.0, 0.0)])
    nodes, _ = search_rows(chunks, X, np.ones(1, np.float32), plan, 1)
    slot = int(nodes[0, 0]) - (chunks.n_chunks - 1)
    assert slot == 299 * 256 + 255 > 65_536


def test_rows_without_nodes_get_nothing():
    chunks = random_chunks(np.random.default_rng(0), [4])
    nodes, scores = np.full((2, 1), -1, np.int64), np.zeros((2, 1), np.float32)
    found, best = np.empty((2, 3), np.int64), np.empty((2, 3), np.float32)
    search_block(
        np.zeros(3, np.int64),
        np.empty(0, np.int32),
        np.empty(0, np.float32),
        np.ones(2, np.float32),
        nodes,
        scores,
        chunks.child_indptr,
        chunks.line_indptr,
        chunks.features,
        chunks.entry_starts,
        chunks.counts,
        chunks.children,
        chunks.weights,
        chunks.scales,
        chunks.bias,
        *chunks.spread,
        tree_search.NO_LABELS,
        0,
        np.int64(3),
        np.float32(0),
        np.float32(1),
        1,
        np.full(25, -1, np.int32),
        found,
        best,
    )
    assert (found == -1).all() and np.isneginf(best).all()


def test_the_first_rows_are_searched_without_an_index_and_alike(monkeypatch):
    monkeypatch.setattr(tree_chunks, "SPREAD_FROM", 3)
    chunks = random_chunks(np.random.default_rng(5), [6, 7])
    plan = BeamPlan.of([3, 5], [LevelLink(3, 0.0, 1.0), LevelLink(3, 0.0, 0.3)])
    ids, values = np.arange(0, 25, 3, dtype=np.int32), np.linspace(-1, 2, 9, dtype=np.float32)
    found, made = [], []
    for _ in range(4):
        found.append(one_row(chunks, ids, values, plan))
        made.append("spread" in vars(chunks))
    assert made == [False, False, True, True]
    assert all(np.array_equal(a, b) for one in found for a, b in zip(one, found[0], strict=True))


@given(st.integers(0, 2**32 - 1), st.integers(0, 300), st.integers(1, 60))
@settings(max_examples=80, deadline=None)
def test_lines_that_a_row_meets_are_those_of_a_plain_search(seed, n_lines, n_ids):
    rng = np.random.default_rng(seed)
    spread = [1000, 10**6, 2**31 - 1][rng.integers(3)]
    features = np.unique((rng.random(n_lines) ** rng.choice([1, 8]) * (spread - 1)).astype(np.int32))
    ids = np.unique(np.concatenate([rng.integers(0, spread, n_ids), rng.choice(features, min(features.size, 5))]))
    ids = ids.astype(np.int32)
    start, padding = 2, np.full(3, 7, np.int32)
    lines, at = np.empty(ids.size, np.int64), np.empty(ids.size, np.int64)
    row = np.concatenate([padding[:start], ids])
    stored = np.concatenate([padding, features, padding])
    met = lines_met(row, start, row.size, stored, 3, 3 + features.size, lines, at)
    _, where, which = np.intersect1d(features, ids, return_indices=True)
    assert lines[:met].tolist() == (3 + where).tolist() and at[:met].tolist() == (start + which).tolist()
