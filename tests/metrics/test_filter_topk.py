"""Filter pairs leave the predictions, and the places behind them move up."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from longtail import metrics
from longtail.data import TopK
from longtail.errors import DataError


@st.composite
def cases(draw):
    n_rows, n_labels, k = draw(st.integers(1, 5)), draw(st.integers(1, 6)), draw(st.integers(1, 5))
    some = st.lists(st.integers(0, n_labels - 1), unique=True, max_size=k)
    rows = [draw(some) for _ in range(n_rows)]
    pair = st.tuples(st.integers(0, n_rows - 1), st.integers(0, n_labels + 2))
    return rows, k, draw(st.lists(pair, max_size=12))


def as_topk(rows, k):
    ids = np.full((len(rows), k), -1, dtype=np.int32)
    scores = np.full((len(rows), k), -np.inf, dtype=np.float32)
    for i, row in enumerate(rows):
        ids[i, : len(row)], scores[i, : len(row)] = row, -np.arange(len(row))
    return TopK(ids, scores)


@given(cases())
@settings(max_examples=150, deadline=None)
def test_agrees_with_a_loop(case):
    rows, k, pairs = case
    topk = as_topk(rows, k)
    got = metrics.filter_topk(topk, np.array(pairs, dtype=np.int64).reshape(-1, 2))
    for i, row in enumerate(rows):
        kept = [(label, -place) for place, label in enumerate(row) if (i, label) not in pairs]
        missing = k - len(kept)
        assert got.ids[i].tolist() == [label for label, _ in kept] + [-1] * missing
        assert got.scores[i].tolist() == [score for _, score in kept] + [-np.inf] * missing
    assert (topk.ids == as_topk(rows, k).ids).all()


def test_metrics_after_filtering():
    topk = as_topk([[0, 1, 2]], 3)
    Y = [[0, 1, 1]]
    assert metrics.precision_at_k(Y, topk, 2) == 0.5
    assert metrics.precision_at_k(Y, metrics.filter_topk(topk, [[0, 0]]), 2) == 1.0


def test_no_pairs_change_nothing():
    topk = as_topk([[0, 1]], 2)
    assert metrics.filter_topk(topk, np.empty((0, 2))).ids.tolist() == [[0, 1]]
    assert metrics.filter_topk(topk, []).ids.tolist() == [[0, 1]]


def test_pairs_of_another_data_set_are_refused():
    topk = as_topk([[0, 1]], 2)
    with pytest.raises(DataError, match="rows from 0 to 0 and labels >= 0; got row 1, label 0 in line 2"):
        metrics.filter_topk(topk, [[0, 0], [1, 0]])
    with pytest.raises(DataError, match="got row 0, label -3 in line 1"):
        metrics.filter_topk(topk, [[0, -3]])
    with pytest.raises(DataError, match="two columns, row and label"):
        metrics.filter_topk(topk, [[0, 1, 2]])
    with pytest.raises(DataError, match="whole numbers"):
        metrics.filter_topk(topk, [[0, 1.5]])
    with pytest.raises(DataError, match="whole numbers"):
        metrics.filter_topk(topk, [[0, np.inf]])
