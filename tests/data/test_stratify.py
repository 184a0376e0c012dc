"""The compiled stratification agrees with its plain twin and keeps its promises."""

import numpy as np
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from longtail.data.stratify import TEST, TRAIN, stratify_rows, stratify_rows_plain


def run(kernel, Y, n_test):
    by_row, by_label = sp.csr_array(Y), sp.csr_array(Y).tocsc()
    side = np.full(Y.shape[0], 9, dtype=np.int8)
    done = kernel(
        by_row.indptr.astype(np.int64),
        by_row.indices.astype(np.int32),
        by_label.indptr.astype(np.int64),
        by_label.indices.astype(np.int32),
        n_test,
        side,
    )
    return done, side


matrices = st.tuples(st.integers(2, 25), st.integers(1, 12), st.floats(0.02, 0.6), st.integers(0, 10**6)).map(
    lambda p: (np.random.default_rng(p[3]).random((p[0], p[1])) < p[2]).astype(np.float32)
)


@settings(max_examples=150, deadline=None)
@given(matrices, st.floats(0.05, 0.95))
def test_agrees_with_the_plain_twin(Y, share):
    n_test = min(max(1, round(share * Y.shape[0])), Y.shape[0] - 1)
    fast, slow = run(stratify_rows, Y, n_test), run(stratify_rows_plain, Y, n_test)
    assert fast[0] == slow[0]
    np.testing.assert_array_equal(fast[1], slow[1])


@settings(max_examples=150, deadline=None)
@given(matrices, st.floats(0.05, 0.95))
def test_every_label_stays_in_train_and_test_is_never_too_large(Y, share):
    n_test = min(max(1, round(share * Y.shape[0])), Y.shape[0] - 1)
    done, side = run(stratify_rows, Y, n_test)
    assert done == (side == TEST).sum() <= n_test
    assert ((Y[side == TRAIN].sum(axis=0) > 0) == (Y.sum(axis=0) > 0)).all()
    assert (side[Y.sum(axis=1) > 0] > 0).all()


def test_labels_above_65536():
    labels = np.repeat(np.array([70_000, 99_999, 3], dtype=np.int32), 10)
    Y = sp.csr_array((np.ones(30, dtype=np.float32), labels, np.arange(31)), shape=(30, 100_000))
    done, side = run(stratify_rows, Y, 6)
    assert done == 6
    assert sp.csr_array(Y[side == TEST]).sum(axis=0)[[70_000, 99_999, 3]].tolist() == [2, 2, 2]
