"""Certificates hold when checked by a slow, exact program written here, and false ones are refused."""

import itertools
import json
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from longtail import audit
from longtail.audit.audited_layer import AuditedLayer
from longtail.audit.proof import balanced, dot_sign, prove
from longtail.errors import DataError


def exact(values):
    return [Fraction(float(v)) for v in values]


def input_is_right(W, members, x, bias=None):
    for i, row in enumerate(W):
        score = sum((a * b for a, b in zip(exact(row), exact(x))), Fraction(0))
        score += Fraction(0) if bias is None else Fraction(float(bias[i]))
        if (score > 0) != (i in members) or score == 0:
            return False
    return True


def determinant(rows):
    if not rows:
        return Fraction(1)
    return sum(
        (-1) ** j * rows[0][j] * determinant([row[:j] + row[j + 1 :] for row in rows[1:]]) for j in range(len(rows))
    )


def some_rows_cancel(W, members, labels):
    """Whether d + 1 of the rows, with their signs, have a combination with weights > 0 that is exactly 0."""
    signed = [[v * (1 if i in members else -1) for v in exact(W[i])] for i in labels]
    for rows in itertools.combinations(signed, W.shape[1] + 1):
        minors = [(-1) ** i * determinant([r for j, r in enumerate(rows) if j != i]) for i in range(len(rows))]
        if all(m > 0 for m in minors) or all(m < 0 for m in minors):
            return True
    return False


@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.float16])
def test_every_certificate_is_right(dtype):
    rng = np.random.default_rng(3)
    W = rng.standard_normal((40, 3)).astype(dtype)
    Y = np.concatenate([rng.random((60, 40)) < 0.05, (rng.standard_normal((60, 3)) @ W.T) > 0])
    found = audit.argmaxable(W, Y)
    assert found.n_sets("undecided") == 0 and 0 < found.impossible.sum() < len(found)
    for i, members in enumerate(found.members):
        certificate, ids = found.certificates[i], set(members.tolist())
        proof = audit.check_certificate(W, members, certificate)
        assert proof.holds and proof.reachable == found.reachable[i]
        if found.reachable[i]:
            assert input_is_right(W, ids, certificate.x)
            assert np.abs(certificate.x).max() <= 1e4
            assert proof.radius_at_least <= proof.radius_at_most * (1 + 1e-9)
            assert proof.radius_at_least == pytest.approx(proof.radius_at_most, rel=1e-6)
        else:
            assert some_rows_cancel(W, ids, certificate.labels)


def test_with_a_bias_the_input_stays_in_the_box_and_is_right():
    rng = np.random.default_rng(5)
    W, bias = rng.standard_normal((30, 3)), rng.standard_normal(30)
    Y = (rng.standard_normal((50, 3)) @ W.T + bias) > 0
    found = audit.argmaxable(W, Y, bias=bias, box=10)
    for i, members in enumerate(found.members):
        if found.reachable[i]:
            assert np.abs(found.certificates[i].x).max() <= 10
            assert input_is_right(W, set(members.tolist()), found.certificates[i].x, bias)
    far = audit.argmaxable(np.eye(2), [[1, 0]], bias=[-5, 0], box=4)
    assert far.verdicts.tolist() == ["not argmaxable"]  # needs an input beyond the box
    assert audit.argmaxable(np.eye(2), [[1, 0]], bias=[-5, 0], box=6).verdicts.tolist() == ["eps-argmaxable"]


def test_a_false_certificate_proves_nothing():
    W = np.random.default_rng(0).standard_normal((20, 3))
    Y = np.zeros((1, 20))
    Y[0, [3, 7, 11]] = 1
    found = audit.argmaxable(W, Y)
    assert found.verdicts.tolist() == ["not argmaxable"]
    right = found.certificates[0]
    for labels, weights in [
        (right.labels, -right.weights),
        (right.labels, right.weights * np.linspace(1, 1.1, right.weights.size)),
        (right.labels[:-1], right.weights[:-1]),
        (right.labels, np.full(right.weights.size, np.nan)),
        (np.full_like(right.labels, right.labels[0]), right.weights),
        (right.labels + 20, right.weights),
        (np.empty(0, np.int64), np.empty(0)),
    ]:
        proof = audit.check_certificate(W, [3, 7, 11], audit.Certificate(labels=labels, weights=weights))
        assert proof.reachable is None and not proof.holds
    assert audit.check_certificate(W, [3], right).reachable is None
    for x in (np.ones(3), np.zeros(3), np.ones(4), np.full(3, np.inf)):
        assert audit.check_certificate(W, [3, 7, 11], audit.Certificate(x=x)).reachable is None
    with pytest.raises(DataError, match="labels must be numbers from 0 to 19"):
        audit.check_certificate(W, [20], right)


def test_facts_keep_every_digit():
    W = np.random.default_rng(0).standard_normal((10, 3))
    found = audit.argmaxable(W, np.eye(10))
    for certificate, members in zip(found.certificates, found.members):
        again = audit.Certificate.from_facts(json.loads(json.dumps(certificate.to_facts())))
        assert audit.check_certificate(W, members, again) == audit.check_certificate(W, members, certificate)


def test_a_region_thinner_than_rounding_is_decided_exactly_or_not_at_all():
    """Two rows that differ in the last digit: the region between them is there, but no ball of any size is."""
    W = np.array([[1.0, 1.0], [1.0, 1.0 + 2**-52]])
    found = audit.argmaxable(W, [[1, 0]])
    assert found.verdicts[0] in ("argmaxable", "undecided")
    assert found.radius_at_most[0] < 1e-8
    same = audit.argmaxable(np.ones((2, 2)), [[1, 0]])
    assert same.verdicts.tolist() == ["not argmaxable"]


def test_scores_near_zero_are_computed_exactly():
    W = np.array([[1.0, -1.0], [1.0, 0.0]])
    x = np.array([1e4, np.nextafter(1e4, 0)])
    proof = prove(AuditedLayer.read(W), np.array([0, 1]), audit.Certificate(x=x))
    assert proof.reachable is True and proof.radius_at_least < 1e-11


numbers = st.floats(-1e9, 1e9, allow_nan=False)


@given(st.lists(st.tuples(numbers, numbers), min_size=1, max_size=8))
def test_signs_of_dot_products_are_exact(pairs):
    a, b = (np.array(v) for v in zip(*pairs))
    total = sum((x * y for x, y in zip(exact(a), exact(b))), Fraction(0))
    assert dot_sign(a, b) == (total > 0) - (total < 0)
    assert dot_sign(np.append(a, a), np.append(b, -b)) == 0


def test_weights_that_can_be_balanced():
    A = np.array([[1.0, 0], [0, 1], [-1, -1]])
    assert balanced(A, np.array([1.0, 1 + 1e-12, 1.0]))
    assert not balanced(A[:2], np.ones(2))
    assert not balanced(-A[[0, 0, 1]], np.ones(3))
