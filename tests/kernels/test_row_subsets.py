"""Rows taken out of a sparse matrix: the compiled kernels agree with their twins, and sums are exact."""

import numpy as np
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from longtail.kernels.row_subsets import compact_rows, round_values, unit_scales


def unit_scales_plain(indptr: np.ndarray, data: np.ndarray, out: np.ndarray) -> None:
    for row in range(out.size):
        length = np.sqrt(np.sum(data[indptr[row] : indptr[row + 1]].astype(np.float64) ** 2))
        out[row] = 1 / length if length > 0 else 0.0


def compact_rows_plain(
    indptr: np.ndarray,
    indices: np.ndarray,
    data: np.ndarray,
    scale: np.ndarray,
    rows: np.ndarray,
    local: np.ndarray,
    grow: bool,
    n_local: int,
    out_indptr: np.ndarray,
    out_indices: np.ndarray,
    out_values: np.ndarray,
    features: np.ndarray,
) -> int:
    at = np.concatenate([np.arange(indptr[row], indptr[row + 1]) for row in rows]).astype(np.int64)
    owner = np.repeat(np.arange(rows.size), indptr[rows + 1] - indptr[rows])
    if grow:
        met, first = np.unique(indices[at], return_index=True)
        new = met[np.argsort(first)]
        new = new[local[new] < 0]
        local[new] = n_local + np.arange(new.size)
        features[n_local : n_local + new.size] = new
        n_local += new.size
    keep = local[indices[at]] >= 0
    out_indptr[:] = np.concatenate([[0], np.cumsum(np.bincount(owner[keep], minlength=rows.size))])
    out_indices[: keep.sum()] = local[indices[at]][keep]
    out_values[: keep.sum()] = round_values(data[at] * scale[rows][owner])[keep]
    return n_local


matrices = st.tuples(st.integers(1, 20), st.integers(1, 15), st.floats(0.0, 0.8), st.integers(0, 10**6)).map(
    lambda p: sp.random_array((p[0], p[1]), density=p[2], rng=np.random.default_rng(p[3]), dtype=np.float32).tocsr()
)


def compact(kernel, M, rows, local, grow, n_local=0):
    nnz = int(np.diff(M.indptr)[rows].sum())
    out = np.full(rows.size + 1, -7, np.int64), np.zeros(nnz, np.int32), np.zeros(nnz, np.float32)
    features = np.full(M.shape[1], -7, np.int32)
    scale = np.linspace(0.3, 1.7, M.shape[0])
    indptr, indices = M.indptr.astype(np.int64), M.indices.astype(np.int32)
    n = kernel(indptr, indices, M.data, scale, rows, local, grow, n_local, *out, features)
    return n, *out, features, local


@settings(max_examples=100, deadline=None)
@given(matrices, st.integers(0, 10**6))
def test_compact_rows_agrees_with_its_twin(M, seed):
    rng = np.random.default_rng(seed)
    rows = np.sort(rng.choice(M.shape[0], size=rng.integers(1, M.shape[0] + 1), replace=False)).astype(np.int32)
    for grow, start in ((True, -1), (False, -1), (False, 0)):
        local = np.where(rng.random(M.shape[1]) < 0.5, np.arange(M.shape[1]), start).astype(np.int32)
        if grow:
            local[:] = -1
        fast = compact(compact_rows, M, rows, local.copy(), grow)
        slow = compact(compact_rows_plain, M, rows, local.copy(), grow)
        for a, b in zip(fast, slow, strict=True):
            np.testing.assert_array_equal(a, b)


@settings(max_examples=50, deadline=None)
@given(matrices)
def test_scales_agree_and_make_unit_rows(M):
    fast, slow = np.empty(M.shape[0]), np.empty(M.shape[0])
    unit_scales(M.indptr.astype(np.int64), M.data, fast)
    unit_scales_plain(M.indptr.astype(np.int64), M.data, slow)
    np.testing.assert_allclose(fast, slow, rtol=1e-12)
    lengths = np.sqrt(M.multiply(M).sum(axis=1)) * fast
    np.testing.assert_allclose(lengths[fast > 0], 1, rtol=1e-5)
    assert (np.diff(M.indptr)[fast == 0] == 0).all()


def test_taken_rows_are_the_rows_in_their_own_features():
    M = sp.csr_array(np.array([[0, 5, 0, 1], [2, 0, 0, 0], [0, 1, 0, 3]], dtype=np.float32))
    local = np.full(4, -1, np.int32)
    n, indptr, indices, values, features, _ = compact(compact_rows, M, np.array([0, 2], np.int32), local, True)
    assert (n, indptr.tolist(), indices.tolist(), features[:2].tolist()) == (2, [0, 2, 4], [0, 1, 0, 1], [1, 3])
    np.testing.assert_allclose(values, [1.5, 0.3, 1.7, 5.1], rtol=1e-6)


def test_rounded_values_sum_to_the_same_in_any_order():
    values = round_values(np.random.default_rng(0).standard_normal(200_000).clip(-1, 1) / 7)
    total = values.sum(dtype=np.float64)
    for order in (values[::-1], np.sort(values), np.random.default_rng(1).permutation(values)):
        assert np.add.accumulate(order, dtype=np.float64)[-1] == total
    assert np.add.accumulate(np.concatenate([values, -values[:99]]), dtype=np.float64)[-1] == values[99:].sum(
        dtype=np.float64
    )


def test_features_above_65536():
    M = sp.csr_array((np.ones(3, np.float32), np.array([70_000, 5, 99_999], np.int32), [0, 2, 3]), shape=(2, 100_000))
    n, _, indices, _, features, _ = compact(
        compact_rows, M, np.array([0, 1], np.int32), np.full(100_000, -1, np.int32), True
    )
    assert n == 3
    assert features[indices].tolist() == [70_000, 5, 99_999]
