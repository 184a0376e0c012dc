"""Classes that can win and sets that can be on top: as brute force says, with certificates."""

import itertools

import numpy as np
import pytest

from longtail import audit
from longtail.errors import DataError


def winners(W, bias=None, seed=0):
    X = np.random.default_rng(seed).standard_normal((300_000, W.shape[1])) * (1 if bias is None else 50)
    return set(np.argmax(X @ W.T + (0 if bias is None else bias), axis=1).tolist())


@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("radius", ["bound", "exact"])
def test_classes_that_can_win(bias, radius):
    rng = np.random.default_rng(2)
    W = rng.standard_normal((60, 3)) * rng.uniform(0.2, 1, (60, 1))
    offsets = rng.standard_normal(60) if bias else None
    found = audit.winnable(W, offsets, radius=radius)
    assert found.n_sets("undecided") == 0 and found.impossible.any()
    assert winners(W, offsets) <= set(np.flatnonzero(found.reachable).tolist())
    if not bias:
        from scipy.spatial import ConvexHull

        assert set(ConvexHull(W).vertices.tolist()) == set(np.flatnonzero(found.reachable).tolist())
    for i in range(60):
        certificate = found.certificates[i]
        assert audit.check_certificate(W, [i], certificate, offsets).reachable is bool(found.reachable[i])
        if found.reachable[i]:
            scores = W @ certificate.x[:-1] + (0 if offsets is None else offsets)
            assert np.argmax(scores) == i
            near = certificate.x[:-1] + found.radius[i] * 0.999 * np.eye(3)[i % 3]
            assert np.argmax(W @ near + (0 if offsets is None else offsets)) == i


def test_top_sets():
    rng = np.random.default_rng(0)
    W = rng.standard_normal((12, 2))
    pairs = list(itertools.combinations(range(12), 2))
    found = audit.retrievable(W, pairs)
    angles = np.linspace(0, 2 * np.pi, 20_000)
    tops = np.sort(np.argsort(-np.column_stack([np.cos(angles), np.sin(angles)]) @ W.T, axis=1)[:, :2], axis=1)
    reached = {tuple(pair) for pair in tops.tolist()}
    assert found.n_sets("undecided") == 0
    assert {tuple(m.tolist()) for m, ok in zip(found.members, found.reachable) if ok} == reached
    matrix = np.zeros((len(pairs), 12))
    for row, pair in zip(matrix, pairs):
        row[list(pair)] = 1
    assert audit.retrievable(W, matrix).verdicts.tolist() == found.verdicts.tolist()
    assert audit.retrievable(W, np.array(pairs)).verdicts.tolist() == found.verdicts.tolist()
    for members, certificate, ok in zip(found.members, found.certificates, found.reachable):
        assert audit.check_certificate(W, members, certificate).reachable is bool(ok)


def test_a_class_of_zeros_and_equal_classes():
    W = np.array([[0.0, 0], [1, 0], [-1, 0.5], [-1, -0.5], [1, 0]])
    verdicts = audit.winnable(W).verdicts.tolist()
    assert verdicts[0] == "not argmaxable"  # inside the others
    assert verdicts[1] == verdicts[4] == "not argmaxable"  # ties are no wins
    assert verdicts[2] == verdicts[3] == "eps-argmaxable"


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (lambda W: audit.winnable(W[:1]), "at least 2 classes; got 1"),
        (lambda W: audit.retrievable(W, [[]]), "at least one row of W and not all 4; got one of 0"),
        (lambda W: audit.retrievable(W, [[0, 1, 2, 3]]), "not all 4; got one of 4"),
        (lambda W: audit.retrievable(W, [[0], [4]]), r"label numbers from 0 to 3; got \[4\] in set 1"),
        (lambda W: audit.retrievable(W, [[0.5]]), "label numbers from 0 to 3"),
        (lambda W: audit.retrievable(W, 3), "sets must be lists of label numbers; got int"),
        (lambda W: audit.retrievable(W, []), "at least one row; got 0"),
    ],
)
def test_bad_questions(call, sentence):
    with pytest.raises(DataError, match=sentence):
        call(np.random.default_rng(0).standard_normal((4, 2)))
