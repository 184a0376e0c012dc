"""The labels of similar training texts: found as a slow version finds them, whatever the cells."""

import numpy as np
import pytest
import scipy.sparse as sp
from plain_hybrid_kernels import nearest, shares

from longtail.hybrid import neighbours as module
from longtail.hybrid.neighbours import TEMPERATURE, Neighbours, cells_of, quantized_rows


def unit_rows(n, width, seed=0):
    rows = np.random.default_rng(seed).normal(size=(n, width)).astype(np.float32)
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


def random_labels(n, n_labels, seed=0):
    rng = np.random.default_rng(seed)
    return sp.csr_array((rng.random((n, n_labels)) < 0.2).astype(np.float32))


def memory(n=300, width=16, n_labels=12, seed=0):
    vectors, Y = unit_rows(n, width, seed), random_labels(n, n_labels, seed)
    return vectors, Y, Neighbours.of(vectors, Y, seed=0)


def test_vectors_in_eight_bits_are_close_to_what_they_were():
    vectors = unit_rows(50, 24)
    stored, scales = quantized_rows(vectors)
    assert stored.dtype == np.int8 and np.abs(stored * scales[:, None] - vectors).max() < 0.005


def test_the_nearest_texts_are_those_of_a_slow_search():
    _, _, kept = memory()
    queries = unit_rows(20, 16, seed=5)
    rows, products = kept.nearest(queries, k=10)
    stored = kept.vectors * kept.scales[:, None]
    expected, right = nearest(queries, stored, 10)
    assert np.abs(products - right).max() < 0.02
    same = np.mean([len(set(a) & set(b)) for a, b in zip(rows.tolist(), expected.tolist(), strict=True)])
    assert same > 9  # eight bits may change the order of near ties


def test_shares_are_the_weights_of_the_texts_that_carry_a_label():
    _, _, kept = memory()
    queries = unit_rows(5, 16, seed=7)
    rows, products = kept.nearest(queries)
    ids, found = kept.label_shares(queries)
    labels_of = {row: kept.indices[kept.indptr[row] : kept.indptr[row + 1]].tolist() for row in range(len(kept.rows))}
    for i in range(5):
        expected = shares(rows[i].tolist(), products[i], labels_of, TEMPERATURE)
        got = {int(label): share for label, share in zip(ids[i], found[i], strict=True) if label >= 0}
        assert got.keys() == expected.keys()
        assert all(got[label] == pytest.approx(expected[label], abs=1e-4) for label in got)
        assert sorted(got.values(), reverse=True) == list(got.values())


def test_a_text_that_was_learned_finds_its_own_labels_first():
    vectors, Y, kept = memory()
    rows = np.flatnonzero(np.diff(Y.indptr))[:30]
    ids, _ = kept.label_shares(vectors[rows])
    for row, first in zip(rows, ids[:, 0], strict=True):
        assert first in Y.indices[Y.indptr[row] : Y.indptr[row + 1]]


def test_cells_hold_every_text_once_and_are_of_equal_size(monkeypatch):
    monkeypatch.setattr(module, "IN_ONE_CELL", 100)
    order, starts = cells_of(unit_rows(1000, 8), seed=0)
    assert sorted(order.tolist()) == list(range(1000))
    sizes = np.diff(starts)
    assert starts[0] == 0 and starts[-1] == 1000 and sizes.max() <= 64 and sizes.min() >= 31


def test_cells_lose_few_neighbours_of_texts_that_lie_in_groups(monkeypatch):
    centres = unit_rows(40, 16, seed=1)
    vectors = centres[np.arange(4000) % 40] + 0.15 * unit_rows(4000, 16, seed=2)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    Y, queries = random_labels(4000, 5), vectors[::100]
    whole = Neighbours.of(vectors, Y, seed=0)
    exact = [{int(whole.rows[row]) for row in rows if row >= 0} for rows in whole.nearest(queries, k=20)[0]]
    monkeypatch.setattr(module, "IN_ONE_CELL", 400)
    in_cells = Neighbours.of(vectors, Y, seed=0)
    assert len(in_cells.starts) > 10
    some = [{int(in_cells.rows[row]) for row in rows if row >= 0} for rows in in_cells.nearest(queries, k=20)[0]]
    assert np.mean([len(a & b) / len(a) for a, b in zip(exact, some, strict=True)]) > 0.9


def test_threads_change_nothing():
    _, _, kept = memory()
    queries = unit_rows(200, 16, seed=3)
    for one, two in zip(kept.label_shares(queries, 1), kept.label_shares(queries, 2), strict=True):
        np.testing.assert_array_equal(one, two)


def test_texts_without_labels_are_not_remembered():
    _, Y, kept = memory()
    assert sorted(kept.rows.tolist()) == np.flatnonzero(np.diff(Y.indptr)).tolist()


def test_the_training_rows_that_carry_a_label_are_named():
    vectors, Y, kept = memory()
    row = int(kept.rows[0])
    label = int(Y.indices[Y.indptr[row]])
    named = kept.carriers(vectors[row], label, 3)
    assert named[0][0] == row and named[0][1] == pytest.approx(1, abs=0.02)
    assert all(label in Y.indices[Y.indptr[r] : Y.indptr[r + 1]] for r, _ in named)
