"""Splits: sizes, determinism, and every label in train."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from longtail.data.dataset import Dataset
from longtail.data.splits import split_random, split_stratified
from longtail.data.synthetic.generate import make_linear
from longtail.errors import DataError, ParameterError


@pytest.mark.parametrize("split", [split_random, split_stratified])
@pytest.mark.parametrize("test_size", [0.2, 0.5, 7, np.int64(3), np.float32(0.25)])
def test_train_and_test_are_all_rows_once_and_the_same_each_time(split, test_size):
    data, _ = make_linear(200, 500, 30)
    train, test = split(data, test_size, random_state=3)
    assert np.array_equal(np.sort(np.concatenate([train, test])), np.arange(200))
    assert test.size == (int(test_size) if test_size >= 1 else np.ceil(200 * float(test_size)))
    assert (np.diff(train) > 0).all() and (np.diff(test) > 0).all()
    again = split(data.Y, test_size, random_state=3)
    assert np.array_equal(again[0], train)
    assert not np.array_equal(split(data, test_size, random_state=4)[1], test)


@settings(max_examples=80, deadline=None)
@given(
    arrays(
        np.float32, st.tuples(st.integers(2, 40), st.integers(1, 15)), elements=st.sampled_from([0, 1]), fill=st.just(0)
    ),
    st.floats(0.05, 0.9),
    st.integers(0, 10**6),
)
def test_every_label_has_a_row_in_train(Y, test_size, seed):
    try:
        train, test = split_stratified(Y, test_size, seed)
    except DataError as error:
        assert "no row can go to test" in str(error)
        return
    assert ((Y[train].sum(axis=0) > 0) == (Y.sum(axis=0) > 0)).all()
    assert 0 < test.size <= np.ceil(Y.shape[0] * test_size)


def test_shares_are_much_closer_than_at_random():
    data, _ = make_linear(5000, 4000, 800, exponent=0.8)
    total = np.asarray(data.Y.sum(axis=0)).ravel()

    def miss(rows):
        return np.abs(np.asarray(data.Y[rows].sum(axis=0)).ravel() - 0.2 * total)[total >= 5].mean()

    stratified, random = (split(data, 0.2)[1] for split in (split_stratified, split_random))
    assert miss(stratified) < 0.5 * miss(random)
    in_test = np.asarray(data.Y[stratified].sum(axis=0)).ravel()
    assert (in_test[total >= 5] > 0).mean() > 0.95


def test_rows_without_labels_are_split_too():
    Y = np.zeros((100, 2))
    Y[:10, 0] = 1
    _, test = split_stratified(Y, 0.2)
    assert test.size == 20
    assert (test < 10).sum() == 2


def test_a_dataset_can_be_cut_with_the_rows():
    data = Dataset.from_lists([f"t{i}" for i in range(10)], [["x"]] * 10)
    train, test = split_stratified(data, 3)
    assert data.take(test).n_rows == 3
    assert not set(data.take(train).texts) & set(data.take(test).texts)


def test_the_callers_matrix_is_not_changed():
    Y = sp.csr_array(([1.0, 1.0, 1.0, 1.0], [1, 0, 1, 0], [0, 2, 3, 4]), shape=(3, 2))
    before = (Y.data.copy(), Y.indices.copy(), Y.indptr.copy())
    split_stratified(Y, 1)
    for a, b in zip(before, (Y.data, Y.indices, Y.indptr), strict=True):
        np.testing.assert_array_equal(a, b)


def test_refusals():
    Y = np.ones((10, 1))
    for value in (0.0, 1.0, -0.2, 1.5, "0.2", None, True):
        with pytest.raises(ParameterError) as caught:
            split_random(Y, value)
        assert str(caught.value) == f"test_size must be a share between 0 and 1 or a number of rows; got {value!r}."
    with pytest.raises(ParameterError) as caught:
        split_stratified(Y, 10)
    assert str(caught.value) == "test_size must be an integer between 1 and 9; got 10."
    with pytest.raises(DataError) as caught:
        split_random(Y[:1])
    assert str(caught.value) == "a split needs at least 2 rows; got 1."
    with pytest.raises(DataError) as caught:
        split_stratified(np.eye(4))
    assert str(caught.value) == "no row can go to test: every row has a label that no other row has."
