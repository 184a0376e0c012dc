"""Losses against slow loops, their gradients zone by zone, and what happens where nothing violates."""

from __future__ import annotations

import math

import numpy as np
import pytest

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.torch

from longtail.errors import ParameterError
from longtail.prime.losses import (
    ConsistencyRegulariser,
    DynamicMarginLoss,
    PrimeLoss,
    draw_positives,
    hardest_negatives,
)

ROWS, COLUMNS = 7, 9


@pytest.fixture(params=range(4))
def problem(request):
    """Similarities, which columns are true (one row has none, one has all), and one positive column a row."""
    rng = np.random.default_rng(request.param)
    S = rng.uniform(-1, 1, (ROWS, COLUMNS)).astype(np.float32)
    target = rng.random((ROWS, COLUMNS)) < 0.25
    target[np.arange(ROWS), rng.integers(COLUMNS, size=ROWS)] = True
    target[2], target[4] = False, True
    positives = np.array([rng.choice(np.flatnonzero(row)) if row.any() else 0 for row in target])
    return S, target, positives


def slow_triplet(S, target, positives, n, low, high, temperature):
    total, rows = 0.0, 0
    for i in range(S.shape[0]):
        false = [j for j in range(S.shape[1]) if not target[i, j]]
        if not target[i].any() or not false:
            continue
        rows += 1
        hardest = sorted(false, key=lambda j: -S[i, j])[:n]
        s_p = float(S[i, positives[i]])
        losses = []
        for j in hardest:
            gap = float(S[i, j]) - s_p
            losses.append(max(0.0, gap + min(max(abs(gap), low), high)))
        pairs = zip(hardest, losses, strict=True)
        lifted = [math.exp(float(S[i, j]) / temperature) if v > 0 else 0.0 for j, v in pairs]
        if sum(lifted):
            total += sum(w * v for w, v in zip(lifted, losses, strict=True)) / sum(lifted)
    return total / max(rows, 1)


@pytest.mark.parametrize(("n", "low", "high"), [(3, 0.1, 0.3), (100, 0.1, 0.3), (2, 0.3, 0.3), (1, 0.0, 0.5)])
def test_triplet_loss_is_the_slow_loop(problem, n, low, high):
    S, target, positives = problem
    loss = DynamicMarginLoss(n, low, high)
    found = loss(torch.tensor(S), torch.tensor(target), torch.tensor(positives))
    assert float(found) == pytest.approx(slow_triplet(S, target, positives, n, low, high, 0.1), abs=1e-5)


def slow_regulariser(b, s, target, positives, n, margin):
    above, below = [], []
    for i in range(b.shape[0]):
        if not target[i].any():
            continue
        p = positives[i]
        above.append(max(0.0, float(s[i, p] - b[i, p]) + margin))
        false = [j for j in range(b.shape[1]) if not target[i, j]]
        below += [max(0.0, float(b[i, j] - s[i, j]) + margin) for j in sorted(false, key=lambda j: -b[i, j])[:n]]
    means = [np.mean([v for v in values if v > 0]) if any(v > 0 for v in values) else 0.0 for values in (above, below)]
    return sum(means) / 2


@pytest.mark.parametrize("n", [2, 100])
def test_regulariser_is_the_slow_loop(problem, n):
    b, target, positives = problem
    s = np.random.default_rng(9).uniform(-1, 1, b.shape).astype(np.float32)
    found = ConsistencyRegulariser(n, 0.1)(*(torch.tensor(a) for a in (b, s, target, positives)))
    assert float(found) == pytest.approx(slow_regulariser(b, s, target, positives, n, 0.1), abs=1e-5)


@pytest.mark.parametrize(
    ("p", "n", "value", "gradient"),
    [
        (0.8, 0.5, 0.0, (0.0, 0.0)),  # far enough apart: nothing to learn
        (0.8, 0.6, 0.0, (0.0, 0.0)),  # between the two bounds the sum is exactly 0, and so is its gradient
        (0.8, 0.75, 0.05, (-1.0, 1.0)),  # too near: apart they go, in the usual direction
        (0.5, 0.7, 0.4, (-1.0, 1.0)),  # wrong order: the margin grows with the gap but has no gradient
        (0.1, 0.9, 1.1, (-1.0, 1.0)),  # wrong by more than the upper bound
    ],
)
def test_gradient_of_the_dynamic_margin_in_every_zone(p, n, value, gradient):
    S = torch.tensor([[p, n]], dtype=torch.float64, requires_grad=True)
    loss = DynamicMarginLoss(num_negatives=1)(S, torch.tensor([[True, False]]))
    loss.backward()
    assert loss.item() == pytest.approx(value)
    assert S.grad[0].tolist() == pytest.approx(gradient)


@pytest.mark.parametrize(
    ("p", "n", "value", "gradient"),
    [
        (0.8, 0.6, 0.0, (0.0, 0.0)),
        (0.8, 0.75, 0.15, (1.0, -1.0)),  # Equation 3, second case; Equation 14: the direction is inverted
        (0.5, 0.7, 0.4, (-1.0, 1.0)),
        (0.1, 0.9, 1.1, (-1.0, 1.0)),
    ],
)
def test_the_inverted_zone_is_equation_3_as_printed(p, n, value, gradient):
    S = torch.tensor([[p, n]], dtype=torch.float64, requires_grad=True)
    loss = DynamicMarginLoss(num_negatives=1, inverted=True)(S, torch.tensor([[True, False]]))
    loss.backward()
    assert loss.item() == pytest.approx(value)
    assert S.grad[0].tolist() == pytest.approx(gradient)


def test_the_linear_regulariser_is_equations_6_and_7_as_printed(problem):
    b, target, positives = problem
    s = np.random.default_rng(9).uniform(-1, 1, b.shape).astype(np.float32)
    found = ConsistencyRegulariser(100, 0.1, hinge=False)(*(torch.tensor(a) for a in (b, s, target, positives)))
    rows = [i for i in range(ROWS) if target[i].any()]
    above = [s[i, positives[i]] - b[i, positives[i]] + 0.1 for i in rows]
    below = [b[i, j] - s[i, j] + 0.1 for i in rows for j in range(COLUMNS) if not target[i, j]]
    assert float(found) == pytest.approx((np.mean(above) + np.mean(below)) / 2, abs=1e-5)


def test_weights_of_the_negatives_have_a_gradient_too():
    S = torch.tensor([[0.2, 0.5, 0.6, -0.9]], dtype=torch.float64, requires_grad=True)
    target = torch.tensor([[True, False, False, False]])
    loss = DynamicMarginLoss(num_negatives=3)
    loss(S, target).backward()
    for column in range(4):  # against finite differences, with margins held fixed
        h = 1e-6
        ends = []
        for sign in (1, -1):
            moved = S.detach().clone()
            moved[0, column] += sign * h
            gaps = moved[0, 1:] - moved[0, 0]
            margin = (S.detach()[0, 1:] - S.detach()[0, 0]).abs().clamp(0.1, 0.3)
            losses = torch.relu(gaps + margin)
            weights = torch.softmax(torch.where(losses > 0, moved[0, 1:] / 0.1, -100.0), dim=0)
            ends.append(float((weights * losses).sum()))
        assert float(S.grad[0, column]) == pytest.approx((ends[0] - ends[1]) / (2 * h), abs=1e-5)
    assert S.grad[0, 3] == 0


def test_known_positives_are_never_negatives():
    S = torch.tensor([[0.1, 0.9, 0.2]])
    columns, real = hardest_negatives(S, torch.tensor([[True, True, False]]), 3)
    assert columns[real].tolist() == [2]
    target = torch.tensor([[True, True, False]])
    assert float(DynamicMarginLoss(low=0.05)(S, target, torch.tensor([1]))) == 0


@pytest.mark.parametrize("target", [[[True, True]], [[False, False]]])
def test_nothing_to_compare_is_zero_and_has_a_gradient(target):
    S = torch.tensor([[0.3, 0.4]], requires_grad=True)
    loss = DynamicMarginLoss()(S, torch.tensor(target)) + ConsistencyRegulariser()(S, S - 1, torch.tensor(target))
    loss.backward()
    assert torch.isfinite(loss)
    assert torch.isfinite(S.grad).all()


def test_regulariser_without_a_violation_is_zero():
    b = torch.tensor([[0.9, 0.0]], requires_grad=True)
    s = torch.tensor([[0.2, 0.5]])
    loss = ConsistencyRegulariser()(b, s, torch.tensor([[True, False]]))
    loss.backward()
    assert loss.item() == 0
    assert b.grad.tolist() == [[0.0, 0.0]]


def test_positives_are_drawn_evenly():
    torch.manual_seed(0)
    target = torch.tensor([[True, False, True, True]]).expand(3000, 4)
    counts = torch.bincount(draw_positives(target), minlength=4)
    assert counts[1] == 0
    assert counts[[0, 2, 3]].min() > 900


def test_whole_loss_adds_up_and_leaves_out_what_has_no_weight():
    torch.manual_seed(0)
    q, z, h = (torch.nn.functional.normalize(torch.randn(n, 5), dim=1) for n in (6, 8, 8))
    target = torch.rand(6, 8) < 0.2
    target[torch.arange(6), torch.arange(6)] = True
    target[0, 6] = target[1, 7] = True
    parts = PrimeLoss(query_label=0.5, label_query=2.0, consistency=0.3)(q, z, h, target)
    expected = parts.query_prototype + 0.5 * parts.query_label + 2 * parts.label_query + 0.3 * parts.consistency
    assert torch.isclose(parts.total, expected)
    alone = PrimeLoss(query_label=0, label_query=0, consistency=0)(q, z, h, target)
    assert float(alone.query_label) == float(alone.label_query) == float(alone.consistency) == 0
    # label to query is the same loss on the transposed matrix
    one = torch.eye(6, dtype=torch.bool)
    loss = PrimeLoss()(q, z[:6], h[:6], one)
    assert torch.isclose(loss.label_query, DynamicMarginLoss()((q @ h[:6].T).T, one))


def test_bad_settings_get_one_sentence():
    with pytest.raises(ParameterError, match=r"high must be a number >= 0\.3; got 0\.1"):
        DynamicMarginLoss(low=0.3, high=0.1)
    with pytest.raises(ParameterError, match="num_negatives must be an integer >= 1; got 0"):
        ConsistencyRegulariser(0)
