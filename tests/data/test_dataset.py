"""The Dataset checks itself, and the TopK keeps its order."""

import numpy as np
import pytest
import scipy.sparse as sp

from longtail.data import Dataset, TopK, binary_hits
from longtail.errors import DataError

Y = sp.csr_array(np.array([[1, 0, 1], [0, 0, 0], [0, 1, 0]]))


@pytest.mark.parametrize(
    ("fields", "sentence"),
    [
        ({}, "a Dataset needs texts or X; got neither."),
        ({"texts": ["a"]}, r"texts must have one entry per row \(3\); got 1."),
        ({"texts": "abc"}, "texts must be a list of strings; got one string."),
        ({"texts": ["a", None, "b"]}, "texts must hold strings; got NoneType at position 1."),
        ({"X": np.ones((2, 2))}, r"X must have as many rows as Y \(3\); got 2."),
        ({"X": np.ones((3, 1)), "label_names": ["a", "b"]}, r"label_names must have one entry per label \(3\); got 2."),
        ({"X": np.ones((3, 1)), "label_names": ["a", "b", "a"]}, "label_names must be unique; got 'a' twice."),
        ({"X": np.ones((3, 1)), "group_names": ["g"]}, r"group_names must have one entry per group \(0\); got 1."),
        ({"X": np.ones((3, 1)), "groups": np.ones((2, 1))}, r"groups must have as many rows as Y \(3\); got 2."),
    ],
)
def test_invariants(fields, sentence):
    with pytest.raises(DataError, match=f"^{sentence}$"):
        Dataset(Y=Y, **fields)


def test_it_cannot_be_changed_and_rows_without_labels_are_kept():
    data = Dataset(Y=Y, texts=["a", "b", "c"])
    with pytest.raises(AttributeError):
        data.name = "other"
    assert data.n_rows == 3 and data.summary()["rows_without_labels"] == 1


def test_take_keeps_label_numbers():
    data = Dataset(Y=Y, texts=["a", "b", "c"], X=np.arange(6).reshape(3, 2), label_names=["x", "y", "z"])
    part = data.take([2, 0])
    assert part.texts == ("c", "a") and part.labels_of(0) == ("y",) and part.labels_of(1) == ("x", "z")
    assert part.X.tolist() == [[4, 5], [0, 1]]
    assert data.take(np.array([True, False, False])).n_rows == 1


def test_align_renumbers_and_counts_what_it_drops():
    data = Dataset(Y=Y, texts=["a", "b", "c"], label_names=["x", "y", "z"], label_texts=["X", "Y", "Z"])
    out, dropped = data.align(["z", "new", "y"])
    assert dropped == 1 and out.labels_of(0) == ("z",) and out.label_texts == ("Z", "", "Y")


def test_digest_depends_on_content_alone():
    a = Dataset(Y=Y, texts=["a", "b", "c"])
    assert a.digest() == Dataset(Y=Y.tocoo(), texts=("a", "b", "c"), name="other").digest()
    assert a.digest() != Dataset(Y=Y, texts=["a", "b", "d"]).digest()


def test_topk_of_dense_and_sparse_scores():
    S = np.array([[0.5, -1, 0.5], [-3, -2, -1]], np.float32)
    top = TopK.from_scores(S, k=2)
    assert top.ids.tolist() == [[0, 2], [2, 1]]  # ties by id; negative scores count
    stored = TopK.from_scores(sp.csr_array(np.array([[0, -1.0, 0], [0, 0, 0]])), k=2)
    assert stored.ids.tolist() == [[1, -1], [-1, -1]] and stored.scores[1].tolist() == [-np.inf, -np.inf]
    assert top.to_csr(3).toarray().tolist() == [[0.5, 0, 0.5], [0, -2, -1]]


def test_hits_ignore_missing_places():
    top = TopK(np.array([[2, -1], [0, 1]]), np.zeros((2, 2)))
    assert binary_hits(top, np.array([[0, 0, 1], [0, 1, 0]])).tolist() == [[True, False], [False, True]]
    assert not binary_hits(top, sp.csr_array((2, 3))).any()
