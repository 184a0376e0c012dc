"""Chunks: renumbering rows and packing weights agree with their plain twins."""

import numpy as np
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from longtail.tree.chunk_kernels import (
    QUANTA,
    gather_rows,
    pack_chunk,
    rows_of_nodes,
)
from longtail.tree.schema import chunks_problem


def gather_rows_plain(
    indptr: np.ndarray, indices: np.ndarray, data: np.ndarray, rows: np.ndarray, position: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    spans = [slice(indptr[r], indptr[r + 1]) for r in rows]
    found = np.concatenate([indices[s] for s in spans]) if len(spans) else np.empty(0, np.int32)
    values = np.concatenate([data[s] for s in spans]) if len(spans) else np.empty(0, np.float32)
    features, local = np.unique(found, return_inverse=True)
    local_indptr = np.concatenate([[0], np.cumsum([s.stop - s.start for s in spans])]).astype(np.int64)
    return local_indptr, local.astype(np.int32), values.astype(np.float32), features.astype(np.int32)


def pack_chunk_plain(
    W: np.ndarray, n_children: int, threshold: float
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    flat = W.transpose(1, 0, 2).reshape(W.shape[1], -1)[:, :n_children]
    kept = np.where(np.abs(flat[:-1]) >= threshold, flat[:-1], np.float32(0))
    scales = (np.abs(kept).max(axis=0, initial=0) / np.float32(QUANTA)).astype(np.float32)
    per_line = (kept != 0).sum(axis=1)
    lines = np.flatnonzero(per_line).astype(np.int32)
    where, children = np.nonzero(kept)
    weights = np.rint(kept[where, children] / scales[children]).astype(np.int8)
    return lines, per_line[lines].astype(np.uint16), children.astype(np.uint16), weights, scales, flat[-1].copy()


def rows_of_nodes_plain(
    sent: np.ndarray, indptr: np.ndarray, indices: np.ndarray, n_nodes: int
) -> tuple[np.ndarray, np.ndarray]:
    found: list[set[int]] = [set() for _ in range(n_nodes)]
    for row in range(sent.shape[0] if sent.shape[1] else 0):
        for node in sent[row][sent[row] >= 0].tolist():
            found[node].add(row)
    for row in range(indptr.size - 1):
        for node in indices[indptr[row] : indptr[row + 1]].tolist():
            found[node].add(row)
    starts = np.concatenate([[0], np.cumsum([len(rows) for rows in found])]).astype(np.int64)
    return starts, np.array([row for rows in found for row in sorted(rows)], dtype=np.int32)


@given(st.integers(0, 2**32 - 1), st.integers(0, 12))
@settings(max_examples=50, deadline=None)
def test_gather_rows_agrees_with_plain(seed, m):
    rng = np.random.default_rng(seed)
    X = sp.random_array((12, 30), density=0.2, rng=rng, dtype=np.float32).tocsr()
    rows = np.sort(rng.permutation(12)[:m]).astype(np.int32)
    position = np.full(30, -1, np.int32)
    args = (X.indptr.astype(np.int64), X.indices.astype(np.int32), X.data, rows, position)
    for got, want in zip(gather_rows(*args), gather_rows_plain(*args), strict=True):
        assert np.array_equal(got, want)
    assert (position == -1).all()


def test_gather_rows_above_65536_features():
    row = (np.array([0, 2]), np.array([3, 70_000], np.int32), np.ones(2, np.float32))
    found = gather_rows(*row, np.zeros(1, np.int32), np.full(70_001, -1, np.int32))
    assert found[3].tolist() == [3, 70_000] and found[1].tolist() == [0, 1]


@given(st.integers(0, 2**32 - 1), st.integers(1, 40), st.sampled_from([0.0, 0.5, 5.0]))
@settings(max_examples=50, deadline=None)
def test_pack_chunk_agrees_with_plain(seed, n_children, threshold):
    rng = np.random.default_rng(seed)
    n_batches = -(-n_children // 16)
    W = rng.standard_normal((n_batches, 8, 16)).astype(np.float32)
    W[rng.random(W.shape) < 0.5] = 0
    got, want = pack_chunk(W, n_children, threshold), pack_chunk_plain(W, n_children, threshold)
    for a, b in zip(got, want, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-6)


def test_packed_weights_come_back_within_half_a_quantum():
    rng = np.random.default_rng(0)
    W = rng.standard_normal((1, 21, 16)).astype(np.float32)
    lines, counts, children, weights, scales, _ = pack_chunk(W, 16, 0.0)
    back = np.zeros((20, 16), np.float32)
    back[np.repeat(lines, counts), children] = weights * scales[children]
    assert np.abs(back - W[0, :-1]).max() <= np.abs(W).max() / QUANTA / 2 * 1.001


nodes_of_rows = st.integers(0, 4).flatmap(  # the nodes each row is sent to, as many for all, and those of its labels
    lambda beam: st.lists(
        st.tuples(st.lists(st.integers(-1, 6), min_size=beam, max_size=beam), st.sets(st.integers(0, 6))),
        min_size=1,
        max_size=20,
    )
)


@given(nodes_of_rows, st.booleans())
@settings(max_examples=50, deadline=None)
def test_the_rows_of_nodes_agree_with_plain(rows, labelled):
    sent = np.array([nodes for nodes, _ in rows], np.int32).reshape(len(rows), -1)
    own = [sorted(nodes) for _, nodes in rows] if labelled else []
    indptr = np.concatenate([[0], np.cumsum([len(nodes) for nodes in own])]).astype(np.int64)
    indices = np.array([node for nodes in own for node in nodes], np.int32)
    got, want = (f(sent, indptr, indices, 7) for f in (rows_of_nodes, rows_of_nodes_plain))
    assert np.array_equal(got[0], want[0]) and np.array_equal(got[1], want[1])


def sound_chunks_plain(child_indptr, line_indptr, features, counts, children):
    """The slow twin of `chunks_problem`: whether there is none."""
    at = 0
    for chunk in range(child_indptr.size - 1):
        lines = slice(int(line_indptr[chunk]), int(line_indptr[chunk + 1]))
        n_weights = int(counts[lines].sum())
        inside = children[at : at + n_weights] < child_indptr[chunk + 1] - child_indptr[chunk]
        if not inside.all() or not (features[lines][1:] > features[lines][:-1]).all():
            return False
        at += n_weights
    return at == children.size


@given(data=st.data())
def test_chunks_that_do_not_fit_are_found_as_by_its_twin(data):
    widths = data.draw(st.lists(st.integers(1, 4), min_size=1, max_size=4))
    n_lines = data.draw(st.lists(st.integers(0, 3), min_size=len(widths), max_size=len(widths)))
    ends = [np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64) for sizes in (widths, n_lines)]
    lines = int(ends[1][-1])
    features = np.array(data.draw(st.lists(st.integers(0, 5), min_size=lines, max_size=lines)), dtype=np.int32)
    if data.draw(st.booleans()):
        features = np.sort(features)
    counts = np.array(data.draw(st.lists(st.integers(0, 3), min_size=lines, max_size=lines)), dtype=np.uint8)
    n = max(0, int(counts.sum()) + data.draw(st.integers(-1, 1)))
    children = np.array(data.draw(st.lists(st.integers(0, 4), min_size=n, max_size=n)), dtype=np.uint8)
    arrays = (*ends, features, counts, children)
    assert (chunks_problem(*arrays) is None) == sound_chunks_plain(*arrays)
