"""Batches, sampled labels and clusters of like queries."""

from __future__ import annotations

import math

import numpy as np
import pytest
import scipy.sparse as sp

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.torch

from longtail.errors import DataError, ParameterError
from longtail.metrics import propensities
from longtail.prime.query_clusters import balanced_clusters
from longtail.prime.sampling import Curriculum, PositiveSampler, cut_batches, sampling_weights


def some_labels(n_rows=60, n_labels=25, seed=0):
    rng = np.random.default_rng(seed)
    Y = (rng.random((n_rows, n_labels)) < 0.15).astype(np.float32)
    Y[np.arange(n_rows), rng.integers(n_labels, size=n_rows)] = 1
    return sp.csr_array(Y)


def test_weights_are_inverse_propensities():
    Y = some_labels()
    np.testing.assert_allclose(sampling_weights(Y), 1 / propensities(Y))


@pytest.mark.parametrize("n_positives", [1, 2, 50])
def test_pool_is_what_a_loop_finds(n_positives):
    Y = some_labels()
    dense = Y.toarray()
    sampler = PositiveSampler(Y, sampling_weights(Y), n_positives)
    for step in range(3):
        rng = np.random.default_rng([7, step])
        rows = rng.permutation(60)[:20]
        pool = sampler(rows, np.random.default_rng([8, step]))
        for i, row in enumerate(rows):
            own = pool.labels[pool.rows == i]
            assert len(set(own)) == own.size == min(n_positives, int(dense[row].sum()))
            assert dense[row, own].all()
        assert (pool.unique[pool.position] == pool.labels).all()
        assert (np.diff(pool.rows) >= 0).all()
        found = set(zip(pool.true_rows.tolist(), pool.true_positions.tolist(), strict=True))
        expected = {(i, j) for i, row in enumerate(rows) for j, label in enumerate(pool.unique) if dense[row, label]}
        assert found == expected  # every known positive in the pool, whoever it was sampled for
        again = sampler(rows, np.random.default_rng([8, step]))
        assert all((a == b).all() for a, b in zip(pool, again, strict=True))


def test_labels_are_drawn_by_weight():
    Y = sp.csr_array(np.ones((1, 3), dtype=np.float32))
    sampler = PositiveSampler(Y, np.array([1.0, 2.0, 5.0]), 1)
    rng = np.random.default_rng(0)
    drawn = np.concatenate([sampler(np.zeros(1, dtype=np.int64), rng).labels for _ in range(4000)])
    np.testing.assert_allclose(np.bincount(drawn, minlength=3) / 4000, [1 / 8, 2 / 8, 5 / 8], atol=0.03)


def test_bad_weights_are_refused():
    with pytest.raises(DataError, match=r"one number above 0 per label \(25\)"):
        PositiveSampler(some_labels(), np.zeros(25), 1)


def test_batches_hold_every_row_once_and_clusters_whole():
    cluster = np.repeat(np.arange(8), 4)
    batches = cut_batches(32, 12, np.random.default_rng(0), cluster)
    assert [b.size for b in batches] == [12, 12, 8]
    assert sorted(np.concatenate(batches)) == list(range(32))
    for rows in batches:
        assert set(np.bincount(cluster[rows], minlength=8)) <= {0, 4}
    at_random = [cut_batches(32, 12, np.random.default_rng([1, epoch])) for epoch in (0, 1, 0)]
    assert (np.concatenate(at_random[0]) == np.concatenate(at_random[2])).all()
    assert (np.concatenate(at_random[0]) != np.concatenate(at_random[1])).any()


def test_curriculum_grows_and_refreshes():
    curriculum = Curriculum(start=4)
    sizes = [curriculum.size(epoch, 300) for epoch in range(300)]
    assert [sizes.index(4), sizes.index(8), sizes.index(16), sizes.index(512)] == [10, 25, 50, 200]
    assert sizes == sorted(sizes)
    assert [e for e in range(60) if curriculum.refresh(e, 300)] == list(range(10, 60, 5))
    short = [curriculum.refresh(epoch, 6) for epoch in range(6)]
    assert short == [False, True, True, True, True, True]
    assert Curriculum(growth=()).size(5, 10) == 0
    assert Curriculum(growth=(0.0,)).refresh(0, 10)
    with pytest.raises(ParameterError, match="growth must be a number between 0 and 1; got 10"):
        Curriculum(growth=(10,))


@pytest.mark.parametrize(("n", "size"), [(64, 4), (61, 4), (7, 2), (5, 8), (1, 1), (33, 1)])
def test_clusters_are_balanced(n, size):
    vectors = torch.randn(n, 6, generator=torch.Generator().manual_seed(n))
    cluster = balanced_clusters(vectors, size, seed=3)
    expected = 2 ** max(0, math.ceil(math.log2(n / size)))
    counts = torch.bincount(cluster, minlength=expected)
    assert counts.numel() == expected
    assert counts.max() - counts.min() <= 1
    assert (balanced_clusters(vectors, size, seed=3) == cluster).all()


def test_clusters_find_what_belongs_together():
    rng = np.random.default_rng(0)
    centres = rng.normal(size=(16, 32))
    vectors = np.repeat(centres, 8, axis=0) + 0.05 * rng.normal(size=(128, 32))
    cluster = balanced_clusters(torch.tensor(vectors), 8, seed=0).numpy().reshape(16, 8)
    together = np.mean([np.bincount(row).max() / 8 for row in cluster])
    assert together > 0.8
