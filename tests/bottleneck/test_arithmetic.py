"""The DFT layer in finite precision: pairs of 64-bit numbers are exact to 32 digits, and keep every guaranteed set."""

import math
from fractions import Fraction

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from longtail import audit
from longtail.bottleneck import BottleneckClassifier
from longtail.bottleneck import double_double as dd
from longtail.errors import ParameterError
from longtail.nn import DFTOutput

pytestmark = pytest.mark.torch


def doubles(shape, seed):
    rng = np.random.default_rng(seed)
    return torch.from_numpy(rng.standard_normal(shape) * 2.0 ** rng.integers(-30, 30, shape))


def exact(pair):
    return [Fraction(h) + Fraction(low) for h, low in zip(pair.high.tolist(), pair.low.tolist(), strict=True)]


def test_sums_and_products_of_two_numbers_lose_nothing():
    a, b = doubles(200, 0), doubles(200, 1)
    for pair, wanted in (
        (dd.two_sum(a, b), [Fraction(x) + Fraction(y) for x, y in zip(a.tolist(), b.tolist(), strict=True)]),
        (dd.two_product(a, b), [Fraction(x) * Fraction(y) for x, y in zip(a.tolist(), b.tolist(), strict=True)]),
    ):
        assert exact(pair) == wanted


def test_operations_on_pairs_are_right_to_31_digits():
    a, b = dd.two_product(doubles(100, 2), doubles(100, 3)), dd.two_product(doubles(100, 4), doubles(100, 5))
    for x, y, product, total in zip(*map(exact, (a, b, dd.multiply(a, b), dd.add(a, b))), strict=True):
        assert abs(product - x * y) <= Fraction(1, 10**31) * abs(x * y)
        assert abs(total - x - y) <= Fraction(1, 10**31) * (abs(x) + abs(y))
    quotient = exact(dd.divide(a.high, 7.0))
    for x, found in zip(a.high.tolist(), quotient, strict=True):
        assert abs(found - Fraction(x) / 7) <= Fraction(1, 10**31) * abs(Fraction(x))


def test_cosine_and_sine_are_right_to_31_digits():
    turns = dd.divide(torch.arange(-50, 97, dtype=torch.float64), 97.0)
    cosine, sine = (exact(pair) for pair in dd.cosine_and_sine(turns))
    for i, c, s in zip(range(-50, 97), cosine, sine, strict=True):
        assert float(c) == pytest.approx(math.cos(2 * math.pi * i / 97), abs=1e-14)
        assert abs(c * c + s * s - 1) < Fraction(1, 10**30)
    # the 97 corners of a regular polygon, doubled angles: cos 2a = 2 cos^2 a - 1
    for i in range(1, 48):
        assert abs(cosine[50 + 2 * i] - (2 * cosine[50 + i] ** 2 - 1)) < Fraction(1, 10**30)
        assert abs(sine[50 + 2 * i] - 2 * sine[50 + i] * cosine[50 + i]) < Fraction(1, 10**30)


@pytest.mark.parametrize("spacing", ["even", "learned"])
@pytest.mark.parametrize(("n", "k", "slack", "count"), [(200, 3, 0, 20), (1000, 20, 4, 10), (10_000, 20, 0, 4)])
def test_every_guaranteed_set_comes_out_of_a_forward_pass(n, k, slack, count, spacing):
    torch.manual_seed(0)
    rng = np.random.default_rng(0)
    width = 2 * k + 1 + slack
    layer = DFTOutput(2 * width, n, k, slack, order=rng.permutation(n), spacing=spacing, arithmetic="double-double")
    with torch.no_grad():  # a projection that hands on the sum of its two halves
        eye = torch.eye(width) / layer.gains[:, None].double()
        layer.double().projection.weight.copy_(torch.cat([eye, eye], dim=1))
        layer.projection.bias.zero_()
        if spacing == "learned":
            layer.gaps.normal_()
    lost = 0
    for _ in range(count):
        members = np.sort(rng.choice(n, k, replace=False))
        high, low = layer.input_for(members)
        found = layer.scores(high, low) > 0
        assert torch.nonzero(found).ravel().tolist() == members.tolist()
        assert torch.equal(layer(torch.cat([high, low])) > 0, found)
        single = layer.scores(high.float().double()) > 0
        lost += not torch.equal(single, found)
    assert lost > 0 or n == 200  # which 32 bits do not do


def test_a_set_that_single_precision_smears():
    layer = DFTOutput(24, 1000, 10)
    members = [10, 12, 14, 16, 18, 20, 22]
    high, _ = layer.input_for(members)
    assert torch.nonzero(layer.scores(high.float()) > 0).ravel().tolist() != members
    exact = DFTOutput(24, 1000, 10, arithmetic="double-double")
    assert torch.nonzero(exact.scores(*exact.input_for(members)) > 0).ravel().tolist() == members


@pytest.mark.parametrize("arithmetic", ["float64", "double-double"])
@pytest.mark.parametrize("spacing", ["even", "learned"])
def test_more_digits_change_nothing_else(arithmetic, spacing):
    torch.manual_seed(0)
    layer = DFTOutput(9, 40, 3, 2, order=np.random.default_rng(0).permutation(40), bias=True, spacing=spacing)
    x = torch.randn(4, 9, requires_grad=True)
    g = torch.randn(4, 40)
    wanted = layer(x)
    inputs = [x, *layer.parameters()]
    gradients = torch.autograd.grad(wanted, inputs, g)
    layer.arithmetic = arithmetic
    found = layer(x)
    assert found.dtype == torch.float32 and torch.allclose(found, wanted, atol=1e-5)
    for a, b in zip(torch.autograd.grad(found, inputs, g), gradients, strict=True):
        assert a.dtype == torch.float32 and torch.allclose(a, b, atol=1e-4, rtol=1e-4)


def test_learned_distances_keep_order_and_guarantee_while_they_move():
    torch.manual_seed(0)
    layer = DFTOutput(8, 30, 3, spacing="learned", order=np.random.default_rng(1).permutation(30))
    even = DFTOutput(8, 30, 3, order=layer.order)
    even.load_state_dict({name: value for name, value in layer.state_dict().items() if name != "gaps"})
    X, Y = torch.randn(64, 8), (torch.rand(64, 30) < 0.1).float()
    assert torch.allclose(layer(X), even(X), atol=1e-5)
    optimiser = torch.optim.Adam(layer.parameters(), lr=0.1)
    for _ in range(60):
        loss = torch.nn.functional.binary_cross_entropy_with_logits(layer(X), Y)
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
    circle = layer.label_circle()
    along = circle.positions[np.argsort(layer.order.numpy())]
    gaps = np.diff(along, append=along[0] + 30)
    assert along[0] == 0 and gaps.min() > 0.0999 and gaps.max() > 1.5  # they did move
    rng = np.random.default_rng(0)
    sets = np.zeros((30, 30))
    for row in sets:
        row[rng.choice(30, 3, replace=False)] = 1
    assert audit.argmaxable(layer, sets).reachable.all()
    W, _ = layer.output_weights()
    some = np.sort(rng.choice(30, 10, replace=False))
    assert audit.minor_signs(W[np.argsort(circle.positions)[some]]).one_sign
    with torch.no_grad():
        layer.gaps.copy_(torch.linspace(-1e3, 1e3, 30))  # whatever is learned
    assert np.diff(np.sort(layer.label_circle().positions)).min() > 0.0999


def test_a_classifier_with_learned_distances_is_saved(tmp_path):
    from longtail.pipeline import load

    rng = np.random.default_rng(0)
    X, Y = rng.standard_normal((60, 8)).astype(np.float32), (rng.random((60, 20)) < 0.2).astype(np.float32)
    model = BottleneckClassifier(k=3, width=2, hidden=16, epochs=3, lr=0.05, valid=0, spacing="learned", random_state=0)
    model.fit(X, Y)
    found = load(model.save(tmp_path / "m"))
    assert found.predict_topk(X).scores.tobytes() == model.predict_topk(X).scores.tobytes()
    assert found.label_circle().positions.tolist() == model.label_circle().positions.tolist()
    assert np.abs(np.sort(model.label_circle().positions) - np.arange(20)).max() > 1e-3
    model.set_params(arithmetic="double-double")
    np.testing.assert_allclose(model.predict_topk(X).scores, found.predict_topk(X).scores, atol=1e-4)


def test_bad_values_get_one_sentence():
    layer = DFTOutput(6, 9, 2)
    for make, message in (
        (lambda: layer.input_for([0, 2, 4]), "labels form more than k = 2 runs on the circle of labels."),
        (lambda: layer.input_for([9]), "labels must be numbers from 0 to 8; got [9]."),
        (lambda: DFTOutput(6, 9, 2, spacing="free"), "spacing must be one of ['even', 'learned']; got 'free'."),
        (lambda: DFTOutput(6, 9, 2, arithmetic="float46"), "arithmetic must be one of ['float64', 'double-double']"),
    ):
        with pytest.raises(ParameterError) as caught:
            make()
        assert str(caught.value).startswith(message)
    for make in (DFTOutput(6, 9, 2, arithmetic="double-double").input_for, layer.input_for):
        assert make([1]).high.shape == make([1]).low.shape == (5,)
    with pytest.raises(ParameterError, match=r"\['float64', 'double-double'\], or None for 32 bits; got 'float32'\."):
        DFTOutput(6, 9, 2, arithmetic="float32")
    assert torch.nonzero(layer.scores(layer.input_for([])[0]) > 0).numel() == 0
    assert (layer.scores(layer.input_for(range(9))[0]) > 0).all()
