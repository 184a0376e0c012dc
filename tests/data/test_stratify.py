"""The compiled stratification agrees with its plain twin and keeps its promises."""

import numpy as np
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from longtail.data.stratify import TEST, TRAIN, UNDECIDED, stratify_rows


def stratify_rows_plain(
    indptr: np.ndarray,
    indices: np.ndarray,
    label_indptr: np.ndarray,
    label_rows: np.ndarray,
    n_test: int,
    side: np.ndarray,
) -> int:
    """Do the same with lists as buckets, the newest label of a bucket last."""
    n_rows = side.size
    left = np.diff(label_indptr).tolist()
    owed = [count * (n_test / n_rows) for count in left]
    in_train = [0] * len(left)
    buckets: list[list[int]] = [[] for _ in range(max(left, default=0) + 1)]
    for label in reversed(range(len(left))):
        buckets[left[label]].append(label)
    side[:] = UNDECIDED
    room = {TEST: n_test, TRAIN: n_rows - n_test}
    while any(buckets[1:]):
        label = next(bucket for bucket in buckets[1:] if bucket)[-1]
        for row in label_rows[label_indptr[label] : label_indptr[label + 1]]:
            if side[row] != UNDECIDED:
                continue
            labels = indices[indptr[row] : indptr[row + 1]].tolist()
            gain = owed[label] - (left[label] - owed[label])
            wanted = gain > 0 or room[TRAIN] <= 0 or (gain == 0 and room[TEST] > room[TRAIN])
            safe = all(in_train[other] > 0 or left[other] > 1 for other in labels)
            side[row] = TEST if wanted and room[TEST] > 0 and safe else TRAIN
            room[int(side[row])] -= 1
            for other in labels:
                owed[other] -= side[row] == TEST
                in_train[other] += side[row] == TRAIN
                buckets[left[other]].remove(other)
                left[other] -= 1
                buckets[left[other]].append(other)
    return n_test - room[TEST]


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


matrices = arrays(
    np.float32, st.tuples(st.integers(2, 25), st.integers(1, 12)), elements=st.sampled_from([0, 1]), fill=st.just(0)
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
