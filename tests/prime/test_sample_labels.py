"""Labels drawn for the rows of a batch: the kernel against numpy."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from longtail.prime.sample_labels import draw_pool, group_rows


def draw_pool_plain(
    rows: np.ndarray,
    indptr: np.ndarray,
    indices: np.ndarray,
    weights: np.ndarray,
    lots: np.ndarray,
    n_drawn: int,
    position: np.ndarray,
) -> tuple[np.ndarray, ...]:
    """Draw labels in numpy."""
    counts = indptr[rows + 1] - indptr[rows]
    row = np.repeat(np.arange(rows.size), counts)
    at = np.arange(row.size) - np.repeat(np.cumsum(counts) - counts, counts)  # 0, 1, ... within each row
    labels = indices[np.repeat(indptr[rows], counts) + at].astype(np.int64)
    kept = np.lexsort((lots / weights[labels], row))[at < n_drawn]
    unique, positions = np.unique(labels[kept], return_inverse=True)
    where = np.full(position.size, -1)
    where[unique] = np.arange(unique.size)
    true = where[labels] >= 0
    return row[kept], labels[kept], unique, positions, row[true], where[labels][true]


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 2**31), st.integers(1, 12), st.integers(1, 9), st.integers(1, 4), st.booleans())
def test_draws_agree(seed, n_rows, n_labels, n_drawn, ties):
    rng = np.random.default_rng(seed)
    has = rng.random((n_rows, n_labels)) < rng.random()
    indptr = np.concatenate([[0], np.cumsum(has.sum(axis=1))])
    indices = np.nonzero(has)[1].astype(np.int32)
    rows = rng.permutation(n_rows)[: rng.integers(n_rows + 1)]
    lots = rng.exponential(size=int(has[rows].sum()))
    if ties:
        lots = np.round(lots)
    weights = rng.integers(1, 4, size=n_labels).astype(np.float64)
    position = np.full(n_labels, -1)
    drawn = draw_pool(rows, indptr, indices, weights, lots, n_drawn, position)
    expected = draw_pool_plain(rows, indptr, indices, weights, lots, n_drawn, position)
    for a, b in zip(drawn, expected, strict=True):
        assert a.dtype == np.int64
        np.testing.assert_array_equal(a, b)
    assert (position == -1).all()


def group_rows_plain(rows: np.ndarray, indptr: np.ndarray, indices: np.ndarray) -> dict[int, list[int]]:
    """Return the rows of every label, by their number among the rows asked for."""
    found: dict[int, list[int]] = {}
    for i, row in enumerate(rows):
        for label in indices[indptr[row] : indptr[row + 1]]:
            found.setdefault(int(label), []).append(i)
    return found


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 2**31), st.integers(1, 12), st.integers(1, 9))
def test_every_label_of_every_row_is_grouped(seed, n_rows, n_labels):
    rng = np.random.default_rng(seed)
    has = rng.random((n_rows, n_labels)) < rng.random()
    indptr = np.concatenate([[0], np.cumsum(has.sum(axis=1))])
    indices = np.nonzero(has)[1].astype(np.int32)
    rows = rng.integers(n_rows, size=rng.integers(n_rows + 1))  # a row may come twice
    position = np.full(n_labels, -1)
    labels, counts, grouped = group_rows(rows, indptr, indices, position)
    expected = group_rows_plain(rows, indptr, indices)
    assert labels.tolist() == list(expected)
    assert [part.tolist() for part in np.split(grouped, np.cumsum(counts)[:-1])][: labels.size] == list(
        expected.values()
    )
    assert (position == -1).all()
