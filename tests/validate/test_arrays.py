"""The one door for arrays: canonical out, bad input refused by name, the caller's arrays untouched."""

import numpy as np
import pytest
import scipy.sparse as sp

from longtail.errors import DataError, ParameterError
from longtail.validate import as_labels, as_rows, as_sparse, check_integer, check_real, resolve_jobs, resolve_seed


@pytest.mark.parametrize("make", [sp.csr_matrix, sp.csr_array, sp.csc_matrix, sp.coo_array, sp.lil_array])
def test_every_sparse_kind_becomes_canonical_csr(make):
    M = np.array([[0, 2, 0], [1, 0, 3]], np.float64)
    out = as_rows(make(M))
    assert isinstance(out, sp.csr_array) and out.has_canonical_format
    assert (out.data.dtype, out.indices.dtype, out.indptr.dtype) == (np.float32, np.int32, np.int32)
    assert np.array_equal(out.toarray(), M)


def test_unsorted_and_repeated_entries_are_summed_without_touching_the_caller():
    data, indices, indptr = np.array([1, 2, 3], np.float32), np.array([2, 0, 2], np.int32), np.array([0, 3])
    theirs = sp.csr_array((data, indices, indptr), shape=(1, 3))
    out = as_sparse(theirs)
    assert out.toarray().tolist() == [[2, 0, 4]]
    assert data.tolist() == [1, 2, 3] and indices.tolist() == [2, 0, 2] and theirs.data.tolist() == [1, 2, 3]


def test_stored_zeros_are_dropped():
    out = as_labels(sp.csr_array((np.array([0.0, 1.0]), np.array([0, 1]), np.array([0, 2])), shape=(1, 3)))
    assert out.nnz == 1 and out.indices.tolist() == [1]


def test_canonical_input_is_not_copied():
    M = as_sparse(np.eye(3))
    assert np.shares_memory(as_sparse(M).data, M.data)


@pytest.mark.parametrize(("bad", "shown"), [(np.nan, "NaN"), (np.inf, "inf"), (-np.inf, "-inf")])
def test_not_finite_is_refused_with_its_place(bad, shown):
    M = np.array([[1.0, 0.0], [0.0, bad]])
    for X in (M, sp.csr_array(M)):
        with pytest.raises(DataError, match=rf"X must be finite; got {shown} in row 1, column 1\.$"):
            as_rows(X)


@pytest.mark.parametrize(
    ("X", "sentence"),
    [
        ([1, 2, 3], r"X must have 2 dimensions; got 1. Reshape your data with X.reshape\(1, -1\) for a single row."),
        ([[1, 2], [3]], "X must be a rectangular array; got rows of different lengths."),
        ([["a"]], "X must hold numbers; got dtype <U1."),
        (np.array([[object()]]), "X must hold numbers; got dtype object."),
        (np.array([[1 + 2j]]), "Complex data not supported: X must hold real numbers; got dtype complex128."),
        (sp.csr_array(np.array([[1e300]])), "X holds a value too large for float32; scale the rows first."),
    ],
)
def test_wrong_arrays_are_refused(X, sentence):
    with pytest.raises(DataError, match=f"^{sentence}$"):
        as_rows(X)


def test_negative_labels_are_refused():
    with pytest.raises(DataError, match=r"Y must not be negative; got -1 in row 1\."):
        as_labels(np.array([[1, 0], [0, -1]]))


@pytest.mark.parametrize("bad", [0, 1.5, "3", None, True])
def test_integers(bad):
    with pytest.raises(ParameterError, match=r"^k must be an integer >= 1; got "):
        check_integer("k", bad, low=1)
    assert check_integer("k", np.int64(3), low=1) == 3


@pytest.mark.parametrize("bad", [0, -1, float("nan"), float("inf"), "1", None, True])
def test_reals(bad):
    with pytest.raises(ParameterError, match=r"^C must be a number > 0; got "):
        check_real("C", bad, low=0, open_low=True)


def test_jobs_and_seeds():
    assert (
        resolve_jobs(3) == 3
        and resolve_jobs(2**32 + 5) == 1024
        and resolve_jobs(None) == resolve_jobs(-1) >= 1
        and resolve_jobs(-999) == 1
    )
    with pytest.raises(ParameterError, match="n_jobs"):
        resolve_jobs(0)
    assert resolve_seed(None) == 0 and resolve_seed(7) == 7
    assert resolve_seed(np.random.default_rng(1)) == resolve_seed(np.random.default_rng(1))
    with pytest.raises(ParameterError, match="random_state must be an integer between 0 and"):
        resolve_seed(-1)


def test_the_result_works_everywhere_in_scipy():
    M = as_sparse(sp.csr_array(np.eye(3)))
    assert M.tocoo().nnz == 3 and M[[0, 2]].indices.dtype == np.int32
    assert sp.hstack([M, M]).shape == (3, 6) and M.nonzero()[0].tolist() == [0, 1, 2]


def _with(M, **arrays):
    """Return a matrix whose arrays were exchanged behind scipy's back, as those of a stranger's file may be."""
    for name, values in arrays.items():
        setattr(M, name, np.asarray(values))
    return M


WRAPPED = [0, 2**63 - 1, -2, 3]  # its differences, wrapped around, are all above 0

UNSOUND = {
    "csr ids": (
        _with(sp.csr_array(np.eye(3)), indices=[0, 10**9, 2]),
        "column ids from 0 to 2; got 1000000000 in row 1",
    ),
    "csr pointers": (_with(sp.csr_array(np.eye(3)), indptr=WRAPPED), "not a sound CSR matrix: its row pointers"),
    "csr unsigned": (
        _with(sp.csr_array(np.eye(3)), indptr=np.array([0, 2, 1, 3], np.uint64)),
        "not a sound CSR matrix: its row pointers",
    ),
    "csr floats": (_with(sp.csr_array(np.eye(3)), indices=[0.0, 1.0, 2.0]), "not a sound CSR matrix"),
    "csr rank": (_with(sp.csr_array(np.eye(3)), indptr=[[0, 1, 2, 3]]), "not a sound CSR matrix"),
    "csc ids": (
        _with(sp.csc_array(np.eye(3)), indices=[0, 10**9, 2]),
        "row ids from 0 to 2; got 1000000000 in column 1",
    ),
    "csc pointers": (_with(sp.csc_array(np.eye(3)), indptr=WRAPPED), "not a sound CSC matrix: its column pointers"),
    "bsr ids": (
        _with(sp.bsr_array(np.eye(4), blocksize=(2, 2)), indices=[0, 10**9]),
        "column ids from 0 to 1; got 1000",
    ),
    "bsr pointers": (_with(sp.bsr_array(np.eye(3)), indptr=WRAPPED), "not a sound BSR matrix: its row pointers"),
    "coo ids": (
        _with(sp.coo_array(np.eye(3)), coords=(np.array([0, 10**9, 2]), np.array([0, 1, 2]))),
        "row ids from 0 to 2; got 1000000000 in entry 1",
    ),
    "dia offsets": (_with(sp.dia_array(np.eye(3)), offsets=[2**62]), "diagonals from -3 to 3; got 4611686018427387904"),
    "dia twice": (
        _with(sp.dia_array((np.ones((2, 3)), [0, 1]), shape=(3, 3)), offsets=[1, 1]),
        "not a sound DIA matrix: its offsets",
    ),
}


@pytest.mark.parametrize("case", UNSOUND)
def test_a_sparse_matrix_that_points_outside_of_itself_is_refused_before_it_is_converted(case):
    M, told = UNSOUND[case]
    if case == "coo ids":
        M.coords = tuple(M.coords)
    with pytest.raises(DataError, match=told):
        as_sparse(M)


def test_entries_that_no_row_points_to_are_left_out():
    M = sp.csr_array((np.ones(2), np.array([0, 1]), np.array([0, 2])), shape=(1, 3))
    M.indptr[1] = 1
    assert as_sparse(M).indices.tolist() == [0]
    M.data = np.ones(1)
    assert as_sparse(M).data.tolist() == [1]
