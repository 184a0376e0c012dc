"""Sums of sparse rows: the compiled kernel agrees with its plain twin and with a dense product."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from longtail.text.row_sums import sum_rows


def sum_rows_plain(
    list_indptr: np.ndarray,
    rows: np.ndarray,
    shares: np.ndarray,
    indptr: np.ndarray,
    indices: np.ndarray,
    values: np.ndarray,
    start: int,
    stop: int,
    keep: int,
    total: np.ndarray,
    seen: np.ndarray,
    counts: np.ndarray,
    out_indices: np.ndarray,
    out_values: np.ndarray,
) -> int:
    size = 0
    for which in range(start, stop):
        for at in range(list_indptr[which], list_indptr[which + 1]):
            of_row = slice(indptr[rows[at]], indptr[rows[at] + 1])
            total[indices[of_row]] += shares[at] * values[of_row]
            seen[indices[of_row]] = True
        touched = np.flatnonzero(seen)
        best = np.sort(np.argsort(-np.abs(total[touched]), kind="stable")[:keep])
        kept = touched[best]
        out_indices[size : size + kept.size] = kept
        out_values[size : size + kept.size] = total[kept]
        counts[which - start] = kept.size
        size += kept.size
        total[touched], seen[touched] = 0, False
    return size


def summed(kernel, lists, rows, keep, start, stop):
    capacity = (stop - start) * rows.shape[1]
    counts, ids, values = np.zeros(stop - start, np.int64), np.zeros(capacity, np.int32), np.zeros(capacity, np.float32)
    total, seen = np.zeros(rows.shape[1], np.float32), np.zeros(rows.shape[1], np.bool_)
    size = kernel(
        lists.indptr.astype(np.int64),
        lists.indices,
        lists.data,
        rows.indptr.astype(np.int64),
        rows.indices,
        rows.data,
        start,
        stop,
        keep,
        total,
        seen,
        counts,
        ids,
        values,
    )
    assert not total.any() and not seen.any()
    return counts.tolist(), ids[:size].tolist(), values[:size]


def random_csr(rng, n, width, share):
    dense = np.where(rng.random((n, width)) < share, rng.standard_normal((n, width)), 0).astype(np.float32)
    return sp.csr_array(dense.round(1) if rng.random() < 0.5 else dense)  # rounded: equal magnitudes occur


@settings(max_examples=150, deadline=None)
@given(st.integers(1, 12), st.integers(1, 20), st.integers(1, 200), st.integers(1, 30), st.integers(0, 10**6))
def test_kernel_agrees_with_its_twin(n_lists, n_rows, width, keep, seed):
    rng = np.random.default_rng(seed)
    lists, rows = random_csr(rng, n_lists, n_rows, 0.3), random_csr(rng, n_rows, width, rng.choice([0.02, 0.5]))
    start = int(rng.integers(0, n_lists))
    fast = summed(sum_rows, lists, rows, keep, start, n_lists)
    plain = summed(sum_rows_plain, lists, rows, keep, start, n_lists)
    assert fast[:2] == plain[:2]
    assert np.array_equal(fast[2], plain[2])


@pytest.mark.parametrize("width", [300, 70_000])
def test_everything_kept_is_the_product(width):
    rng = np.random.default_rng(1)
    lists, rows = random_csr(rng, 7, 40, 0.4), random_csr(rng, 40, width, 0.01)
    counts, ids, values = summed(sum_rows, lists, rows, width, 0, 7)
    dense = np.zeros((7, width))
    dense[np.repeat(np.arange(7), counts), ids] = values
    assert np.allclose(dense, (lists @ rows).toarray(), atol=1e-5)
