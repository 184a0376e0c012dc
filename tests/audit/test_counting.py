"""Counts of reachable sets, exact and as logarithms, and rows in general position."""

import itertools
import json
import math

import numpy as np
import pytest

from longtail import audit
from longtail.audit import count_regions as counting
from longtail.bottleneck import dft_matrix
from longtail.errors import ParameterError
from longtail.model import LabelCircle, LinearLayer


@pytest.mark.parametrize("bias", [False, True])
def test_counts(bias, monkeypatch):
    for n, d in [(1, 1), (3, 2), (10, 3), (20, 20), (5, 9), (500, 40)]:
        exact = audit.capacity(n, d, bias=bias)
        terms = [math.comb(n, i) for i in range(d + 1)] if bias else [2 * math.comb(n - 1, i) for i in range(d)]
        assert exact.sets == sum(terms) <= 2**n
        with monkeypatch.context() as patch:
            patch.setattr(counting, "MOST_EXACT_LABELS", 0)
            in_logs = audit.capacity(n, d, bias=bias)
        assert in_logs.sets is None
        assert in_logs.log2_sets == pytest.approx(exact.log2_sets, abs=1e-9)
        assert in_logs.log2_share == pytest.approx(exact.log2_share, abs=1e-9)


def test_a_bias_is_worth_less_than_a_dimension():
    for n, d in [(5, 2), (12, 4), (300, 20)]:
        assert audit.capacity(n, d).sets < audit.capacity(n, d, bias=True).sets < audit.capacity(n, d + 1).sets


def test_large_layers_and_facts():
    large = audit.capacity(10**6, 1000)
    assert 0 < large.log2_sets < 10**6 and large.log2_share == pytest.approx(large.log2_sets - 10**6)
    assert json.loads(json.dumps(audit.capacity(100, 3).to_facts()))["sets"] == audit.capacity(100, 3).sets
    with pytest.raises(ParameterError, match="d must be an integer >= 1; got 0"):
        audit.capacity(3, 0)


def test_general_position():
    rng = np.random.default_rng(0)
    W = rng.standard_normal((12, 3))
    assert audit.general_position(W)["general_position"] is True
    W[7] = W[2] + W[5]
    W[7] = np.round(W[7] * 8) / 8
    W[2], W[5] = np.round(W[2] * 8) / 8, np.round(W[5] * 8) / 8
    W[7] = W[2] + W[5]
    found = audit.general_position(W)
    assert found["general_position"] is False and found["dependent_rows"] == [2, 5, 7]
    large = audit.general_position(rng.standard_normal((2000, 30)))
    assert large["general_position"] is None and large["rank"] == 30 and large["checked"] > 0
    doubled = rng.standard_normal((2000, 30))
    doubled[1500] = -4 * doubled[3]
    assert audit.general_position(doubled)["dependent_rows"] == [3, 1500]
    assert audit.general_position(np.array([[1.0, 2], [0, 0], [3, 4]]))["dependent_rows"] == [1]
    json.dumps(large)


def test_signs_of_minors_are_those_of_determinants():
    rng = np.random.default_rng(1)
    W = rng.integers(-2, 3, (7, 3)).astype(float)
    found = audit.minor_signs(W)
    signs = [round(float(np.linalg.det(W[list(rows)]))) for rows in itertools.combinations(range(7), 3)]
    assert [found.positive, found.negative, found.zero] == [
        sum(s > 0 for s in signs), sum(s < 0 for s in signs), signs.count(0)
    ]  # fmt: skip
    assert not found.one_sign
    with pytest.raises(ParameterError, match="W must be no wider than tall and have at most 20,000 maximal minors"):
        audit.minor_signs(rng.standard_normal((60, 9)))


@pytest.mark.parametrize(("n", "k"), [(5, 1), (7, 2), (9, 2), (9, 3), (11, 4)])
def test_all_maximal_minors_of_waves_have_one_sign_wherever_labels_stand(n, k):
    rng = np.random.default_rng(n)
    for positions in (np.arange(n), np.sort(rng.uniform(0, n, n)), np.sort(rng.uniform(0, n / 4, n))):
        W = dft_matrix(n, k, positions)
        assert audit.minor_signs(W).one_sign
        shuffled = rng.permutation(n)
        assert audit.minor_signs(W[shuffled], order=np.argsort(shuffled)).one_sign
        # the sets of Theorem 3: at most 2k changes along the rows
        every = np.array(list(itertools.product((0, 1), repeat=n)))[:: max(1, 2**n // 256)]
        layer = LinearLayer(W, circle=LabelCircle(n, k, positions))
        found = audit.argmaxable(layer, every, radius="bound", eps=1e-300)
        changes = np.abs(np.diff(every, axis=1)).sum(axis=1)
        assert (found.reachable[found.set_of_row] == (changes <= 2 * k)).all()
