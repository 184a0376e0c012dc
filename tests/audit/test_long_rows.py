"""Layers with long sparse rows are audited without linear programs; every answer is proved all the same."""

import json

import numpy as np
import pytest
import scipy.sparse as sp

from longtail import audit
from longtail.audit import projection
from longtail.errors import DataError
from longtail.one_vs_all import OneVsAllClassifier

N, D = 40, 2500


def layer(seed=0, dependent=False):
    """Numbers are multiples of 1/64, so that sums of rows are exact."""
    rng = np.random.default_rng(seed)
    W = np.where(rng.random((N, D)) < 0.02, np.round(rng.standard_normal((N, D)) * 64) / 64, 0)
    bias = np.round(rng.standard_normal(N) * 64) / 64
    if dependent:
        W[5], bias[5] = W[3], bias[3]
        W[7], bias[7] = W[8] + W[9], bias[8] + bias[9]
    Y = np.concatenate([np.eye(N), rng.random((30, N)) < 0.1])
    return sp.csr_array(W), bias, Y


def cannot(members):
    """What the two dependencies of the layer forbid."""
    m = set(members.tolist())
    return (3 in m) != (5 in m) or (7 in m and not {8, 9} & m) or (7 not in m and {8, 9} <= m)


@pytest.mark.parametrize("with_bias", [False, True])
def test_independent_rows_give_every_set(with_bias):
    W, bias, Y = layer()
    bias = bias if with_bias else None
    found = audit.argmaxable(W, Y, bias=bias)
    assert found.reachable.all() and set(found.how) == {"projection"} and np.isinf(found.radius_at_most).all()
    dense = W.toarray()
    for members, certificate, radius in zip(found.members, found.certificates, found.radius):
        x = certificate.mix @ dense
        scores = dense @ x + (0 if bias is None else bias)
        assert np.flatnonzero(scores > 0).tolist() == members.tolist() and np.abs(x).max() <= 1e4
        assert (np.abs(scores) / np.linalg.norm(dense, axis=1)).min() == pytest.approx(radius, rel=1e-6)


@pytest.mark.parametrize("with_bias", [False, True])
def test_dependent_rows_are_found_and_proved(with_bias):
    W, bias, Y = layer(1, dependent=True)
    bias = bias if with_bias else None
    found = audit.argmaxable(W, Y, bias=bias)
    assert found.n_sets("undecided") == 0
    for members, impossible, certificate in zip(found.members, found.impossible, found.certificates):
        assert bool(impossible) is cannot(members)
        again = audit.Certificate.from_facts(json.loads(json.dumps(certificate.to_facts())))
        assert audit.check_certificate(W, members, again, bias=bias).reachable is (not impossible)
        if impossible:
            assert set(certificate.labels.tolist()) <= {3, 5, 7, 8, 9}


def test_constant_labels():
    W, bias, Y = layer(2)
    W = W.toarray()
    W[4] = 0
    for value, on in ((-1.0, False), (1.0, True), (0.0, None)):
        bias[4] = value
        found = audit.argmaxable(sp.csr_array(W), Y, bias=bias)
        expected = [on is not None and (4 in members) is on for members in found.members]
        assert found.reachable.tolist() == expected and found.n_sets("undecided") == 0
    with pytest.raises(DataError, match="row 4 is one"):
        audit.argmaxable(sp.csr_array(W), Y)


def test_dense_layers_with_a_constant_zero():
    """A label whose score is 0 whatever the input is neither on nor off."""
    W = np.array([[1.0, 0], [0, 1], [0, 0]])
    found = audit.argmaxable(W, [[1, 0, 0], [1, 0, 1]], bias=[1.0, 1.0, 0.0])
    assert found.impossible.all()


def test_a_small_box_leaves_sets_out_of_reach_or_undecided():
    W, bias, Y = layer(3)
    found = audit.argmaxable(W, Y, bias=100 * bias, box=1e-3)
    assert not found.reachable.any()


def test_long_rows_and_short_ones_agree():
    """The same layer, once wide enough to stay sparse and once dense."""
    rng = np.random.default_rng(0)
    W = np.round(rng.standard_normal((8, 3)) * 8) / 8
    Y = ((np.arange(256)[:, None] >> np.arange(8)) & 1).astype(float)
    dense = audit.argmaxable(W, Y)
    long = audit.argmaxable(sp.csr_array(np.column_stack([W, np.zeros((8, 2200))])), Y)
    decided = long.verdicts != "undecided"
    assert decided.mean() > 0.9
    assert (long.reachable == dense.reachable)[decided].all()
    assert (long.radius <= dense.radius * (1 + 1e-9)).all()


def test_too_many_labels(monkeypatch):
    W, _, Y = layer(4, dependent=True)
    monkeypatch.setattr(projection, "MOST_DEPENDENT", 10)
    with pytest.raises(DataError, match="some depend on each other; with long sparse rows"):
        audit.argmaxable(W, Y)
    monkeypatch.setattr(projection, "MOST_LABELS", 10)
    with pytest.raises(DataError, match="W has 40 labels and 2,500 columns, too many"):
        audit.argmaxable(W, Y)


def test_one_vs_all_models_are_read_and_untrained_labels_never_come_out():
    rng = np.random.default_rng(0)
    for n_features in (50, 2500):
        X = sp.random_array((120, n_features), density=20 / n_features, rng=rng, format="csr")
        Y = np.zeros((120, 6))
        Y[:, :5] = np.random.default_rng(1).random((120, 5)) < 0.3
        model = OneVsAllClassifier(random_state=0).fit(X, Y)
        found = audit.argmaxable(model, [[1, 0, 0, 0, 0, 0], [1, 0, 0, 0, 0, 1]])
        assert found.reachable.tolist() == [True, False]
        W, bias = model.output_weights()
        assert W.shape == (6, n_features) and np.isneginf(bias[5]) and np.isfinite(bias[:5]).all()


def test_time_may_run_out():
    W, _, Y = layer()
    dense = np.random.default_rng(0).standard_normal((N, 6))
    for weights in (W, dense):
        found = audit.argmaxable(weights, Y, seconds=0)
        assert found.n_sets("undecided") == len(found) and set(found.how) == {"no time left"}
    assert audit.winnable(dense, seconds=0).n_sets("undecided") == N
    assert audit.argmaxable(dense, Y, seconds=60).n_sets("undecided") == 0
