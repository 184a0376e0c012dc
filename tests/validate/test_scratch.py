"""Large arrays under a limit on memory are maps of files; what is computed does not depend on that."""

import mmap
import os

import numpy as np
import pytest
import scipy.sparse as sp

from longtail.errors import LongtailError
from longtail.validate import (
    as_sparse,
    count_ids,
    kept_aside,
    large_empty,
    large_joined,
    limited_memory,
    memory_limit,
    rows_at,
)


def is_file(array):
    base = array
    while isinstance(base, np.ndarray):
        base = base.base
    return isinstance(getattr(base, "obj", None), mmap.mmap)


def test_only_large_arrays_are_files_and_only_under_a_limit(tmp_path):
    assert not is_file(large_empty(10**6, np.float32))
    with limited_memory(10**8, tmp_path):
        assert memory_limit() == 10**8
        assert is_file(large_empty((1000, 1000), np.float32))
        assert not is_file(large_empty(1000, np.float32))
        assert list(tmp_path.iterdir()) == []  # the files have no names: nothing is left after a kill
    assert memory_limit() is None


def test_arrays_outlive_the_limit(tmp_path):
    with limited_memory(10**8, tmp_path):
        array = large_empty(10**6, np.int64)
        array[:] = np.arange(10**6)
        aside = [kept_aside(np.full(n, 7, np.int16)) for n in (0, 1, 5, 10**7)]
    assert int(array.sum()) == 10**6 * (10**6 - 1) // 2
    assert [int(part.sum()) for part in aside] == [0, 7, 35, 7 * 10**7]


def test_a_full_disk_is_one_sentence(tmp_path, monkeypatch):
    def full(number, offset, size):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "posix_fallocate", full)
    with limited_memory(10**8, tmp_path), pytest.raises(LongtailError, match=r"cannot hold 4,000 MB .* No space left"):
        large_empty(10**9, np.float32)


def test_the_same_numbers_with_and_without(tmp_path):
    rng = np.random.default_rng(0)
    M = sp.random_array((5000, 300), density=0.1, format="csr", dtype=np.float32, rng=rng)
    rows = rng.permutation(5000)[:3000]
    ids = rng.integers(0, 50, size=3 * 10**6).astype(np.int32)
    parts = [ids[:10], ids[10:10], ids[10:]]
    with limited_memory(10**6, tmp_path):
        taken, joined = rows_at(M, rows), large_joined(parts, np.int32)
        assert is_file(taken.data) and is_file(joined)
    assert (taken != M[rows]).nnz == 0
    assert np.array_equal(joined, ids)
    assert np.array_equal(count_ids(ids, 60), np.bincount(ids, minlength=60))


def test_scipy_makes_no_copies_of_what_is_in_files(tmp_path):
    M = sp.random_array((5000, 300), density=0.1, format="csr", dtype=np.float32, rng=np.random.default_rng(0))
    with limited_memory(10**6, tmp_path):
        taken = rows_at(M, np.arange(4000))
    again = as_sparse(taken)
    assert np.shares_memory(again.data, taken.data) and np.shares_memory(again.indices, taken.indices)
