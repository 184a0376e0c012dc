"""The search over label vectors, without torch: exact, the lower label first where products are equal."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from longtail.prime import search as search_module
from longtail.prime.search import LabelSearch, best_columns, dequantize, quantize


def best_plain(values, k):
    return [sorted(sorted(range(len(row)), key=lambda j, row=row: (-row[j], j))[:k]) for row in values]


@given(st.integers(0, 10**6), st.integers(0, 4), st.integers(1, 400), st.integers(1, 12), st.integers(1, 500))
def test_best_columns_are_those_of_a_sort(seed, n_rows, n_columns, k, n_values):
    values = np.random.default_rng(seed).integers(0, n_values, (n_rows, n_columns)).astype(np.float32)
    assert best_columns(values, min(k, n_columns)).tolist() == best_plain(values, min(k, n_columns))


@pytest.mark.parametrize("precision", ["float32", "float16", "int8"])
def test_blocks_of_labels_are_searched_as_one(monkeypatch, precision):
    rng = np.random.default_rng(0)
    stored = quantize(rng.normal(size=(300, 8)).astype(np.float32), precision)
    queries = rng.normal(size=(7, 8)).astype(np.float32)
    allowed = rng.random(300) < 0.3
    whole = LabelSearch(stored)
    products = queries @ dequantize(stored).T
    for mask in (None, allowed):
        seen = products if mask is None else np.where(mask, products, -np.inf)
        ids, scores = whole.topk(queries, 12, mask)
        assert ids.tolist() == [sorted(range(300), key=lambda j, row=row: (-row[j], j))[:12] for row in seen]
        np.testing.assert_allclose(scores, -np.sort(-seen, axis=1)[:, :12], rtol=1e-5)
        monkeypatch.setattr(search_module, "LABELS_AT_ONCE", 64)
        np.testing.assert_array_equal(LabelSearch(stored).topk(queries, 12, mask)[0], ids)
        monkeypatch.undo()


def test_equal_labels_come_in_their_order_and_missing_ones_are_minus_one():
    search = LabelSearch({"vectors": np.ones((200, 2), dtype=np.float32)})
    ids, _ = search.topk(np.ones((1, 2), dtype=np.float32), 3)
    assert ids.tolist() == [[0, 1, 2]]
    few = np.zeros(200, dtype=bool)
    few[[7, 150]] = True
    ids, scores = search.topk(np.ones((1, 2), dtype=np.float32), 4, few)
    assert ids.tolist() == [[7, 150, -1, -1]] and np.isneginf(scores[0, 2:]).all()
    ids, _ = search.topk(np.ones((1, 2), dtype=np.float32), 300)
    assert ids[0, :200].tolist() == list(range(200)) and (ids[0, 200:] == -1).all()
