"""A label tree trained under a limit on memory is the tree that is trained without one."""

import numpy as np
import pytest
import scipy.sparse as sp

from longtail.data.synthetic.generate import make_extreme
from longtail.text import pifa
from longtail.tree import LabelTreeClassifier
from longtail.tree.chunk_kernels import gather_into
from longtail.tree.level_rows import NodesOfRows, rows_at_nodes
from longtail.tree.membership import NodeRows, binary
from longtail.validate import limited_memory

DATA = make_extreme(2000, 300, 2000)
LIMIT = 10**6  # bytes


def parts_of(model):
    return model.to_part().arrays


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"negatives": "tfn"},
        {"negatives": "man"},
        {"n_trees": 2, "normalize": False, "negatives": "tfn"},
        {"overlap": 2},
        {"cost_sensitive": True},
        {"loss": "logistic", "balanced": True},
    ],
    ids=str,
)
def test_the_same_model_with_a_limit(settings, tmp_path):
    settings = {"max_leaf": 20, "branching": 8, "random_state": 3, "n_jobs": 2, **settings}
    usual = LabelTreeClassifier(**settings).fit(DATA.X, DATA.Y)
    with limited_memory(LIMIT, tmp_path) as scratch:
        limited = LabelTreeClassifier(**settings).fit(DATA.X, DATA.Y)
        assert scratch.n_bytes > 0
    ours, theirs = parts_of(limited), parts_of(usual)
    assert ours.keys() == theirs.keys()
    for name, array in theirs.items():
        assert ours[name].dtype == array.dtype and np.array_equal(ours[name], array), name
    assert np.array_equal(limited.predict_topk(DATA.X).ids, usual.predict_topk(DATA.X).ids)


def test_label_vectors_are_the_same(tmp_path):
    Y = sp.csr_array((np.ones_like(DATA.Y.data), DATA.Y.indices, DATA.Y.indptr), shape=DATA.Y.shape)
    usual = pifa(DATA.X, Y, keep=50)
    with limited_memory(LIMIT, tmp_path):
        limited = pifa(DATA.X, Y, keep=50)
    for name in ("indptr", "indices", "data"):
        assert np.array_equal(getattr(limited, name), getattr(usual, name)), name


@pytest.mark.parametrize("beam", [0, 3])
def test_rows_of_nodes_are_those_of_the_sparse_products(beam):
    rng = np.random.default_rng(1)
    Y = binary(sp.random_array((300, 40), density=0.1, format="csr", dtype=np.float32, rng=rng))
    membership = sp.csr_array(np.eye(7, dtype=np.float32)[rng.integers(7, size=40)])
    sent = rng.integers(-1, 7, size=(300, beam)).astype(np.int32)
    truth = binary(Y @ membership)
    nodes = NodesOfRows.of(Y, membership)
    assert np.array_equal(nodes.indptr, truth.indptr) and np.array_equal(nodes.indices, truth.indices)
    columns, expected = nodes.rows_of_nodes(), sp.csc_array(truth)
    assert np.array_equal(columns.indptr, expected.indptr) and np.array_equal(columns.indices, expected.indices)
    for labelled, theirs in ((nodes, truth), (None, None)):
        ours, whole = rows_at_nodes(sent, labelled, 7), NodeRows.of(sent, theirs, 7)
        assert np.array_equal(ours.indptr, whole.indptr) and np.array_equal(ours.indices, whole.indices)


def test_gathered_rows_are_those_rows_over_their_own_features():
    X, members = sp.csr_array(DATA.X), np.array([5, 9, 1000, 1999])
    part = X[members]
    indices, values = np.empty(part.nnz, np.int32), np.empty(part.nnz, np.float32)
    position = np.full(X.shape[1], -1, dtype=np.int32)
    pointers = part.indptr.astype(np.int64)
    features = gather_into(X.indptr.astype(np.int64), X.indices, X.data, members, position, pointers, indices, values)
    assert np.array_equal(features, np.unique(part.indices))
    assert np.array_equal(features[indices], part.indices) and np.array_equal(values, part.data)
    assert (position == -1).all()
