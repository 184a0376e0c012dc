"""Output layers: the FFT is the dense product, gradients are exact, and every small label set can come out."""

import itertools

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from longtail import audit
from longtail.bottleneck.dft import dft_matrix
from longtail.bottleneck.dft_scores import ERROR, circle_scores, stretch_plan
from longtail.errors import ParameterError
from longtail.nn import BottleneckOutput, DFTOutput

incidental = "ignore::longtail.errors.GuaranteeWarning"  # most layers here are narrow, which is not their point
pytestmark = [pytest.mark.torch, pytest.mark.filterwarnings(incidental)]
SHAPES = [(n, k) for n in (7, 8, 100, 101) for k in sorted({1, 2, (n - 1) // 2})]


def layers(dtype=torch.float64):
    for n, k in SHAPES:
        for slack in (0, 3):
            for order in (None, np.random.default_rng(n).permutation(n)):
                torch.manual_seed(n + k + slack)
                yield DFTOutput(5, n, k, slack, order=order).to(dtype)
    yield BottleneckOutput(5, 30, 4).to(dtype)
    yield BottleneckOutput(5, 30, 4, bias=True).to(dtype)


def dense(layer, x):
    scores = layer.project(x) @ layer.weight().T
    return scores if layer.bias is None else scores + layer.bias


@pytest.mark.parametrize(("dtype", "tolerance"), [(torch.float32, 1e-5), (torch.float64, 1e-12)])
def test_forward_and_gradients_are_those_of_the_dense_product(dtype, tolerance):
    for layer in layers(dtype):
        torch.manual_seed(0)
        x = torch.randn(4, 5, dtype=dtype, requires_grad=True)
        g = torch.randn(4, layer.n_labels, dtype=dtype)
        found, wanted = layer(x), dense(layer, x)
        scale = 1 + wanted.abs().max().item()
        assert found.shape == (4, layer.n_labels) and found.dtype == dtype
        assert (found - wanted).abs().max().item() <= tolerance * scale
        inputs = [x, *layer.parameters()]
        for a, b in zip(*(torch.autograd.grad(out, inputs, g) for out in (found, wanted)), strict=True):
            assert (a - b).abs().max().item() <= tolerance * (1 + b.abs().max().item())


@pytest.mark.parametrize(("dtype", "tolerance"), [(torch.float32, 1e-5), (torch.float64, 1e-12)])
@pytest.mark.parametrize(("n", "k"), [(10_000, 50), (9_973, 50), (1_024, 3), (1_023, 3), (4_096, 300)])
def test_both_ways_of_the_product_agree_with_the_matrix(n, k, dtype, tolerance):
    torch.manual_seed(0)
    W = torch.from_numpy(dft_matrix(n, k))
    x, g = torch.randn(2, 2 * k + 1, dtype=torch.float64), torch.randn(2, n, dtype=torch.float64)
    assert (stretch_plan(n, k, ERROR[dtype]) is None) == (k == 300)
    for fft in (False, True):
        rows = x.to(dtype).requires_grad_()
        scores = circle_scores(rows, n, fft=fft)
        (gradient,) = torch.autograd.grad(scores, rows, g.to(dtype))
        for found, wanted in ((scores, x @ W.T), (gradient, g @ W)):
            assert (found - wanted).abs().max() <= tolerance * wanted.abs().max()


def test_the_fixed_weights_are_the_dft_matrix_in_the_order_of_the_labels():
    order = np.array([3, 0, 6, 1, 5, 2, 4])
    W = DFTOutput(5, 7, 2, slack=1, order=order).double().weight().detach().numpy()
    assert W.shape == (7, 6)
    np.testing.assert_allclose(W[:, :5], dft_matrix(7, 2)[order], atol=1e-15)


def test_gradcheck():
    for n, order in ((7, None), (8, np.arange(8)[::-1].copy())):
        layer = DFTOutput(2, n, 2, 1, order=order).double()
        x = torch.randn(2, 2, dtype=torch.float64, requires_grad=True)
        assert torch.autograd.gradcheck(layer, (x,))
        assert torch.autograd.gradgradcheck(layer, (x,))


def test_any_number_of_leading_dimensions():
    layer = DFTOutput(5, 20, 3, 2, order=np.arange(20)[::-1].copy())
    x = torch.randn(2, 3, 5)
    assert torch.allclose(layer(x)[1, 2], layer(x[1, 2]), atol=1e-6)
    assert layer(x[:0, 0]).shape == (0, 20)


def test_half_precision_stays_close():
    torch.manual_seed(0)
    x = torch.randn(4, 5)
    for layer in (DFTOutput(5, 1000, 10, 4), BottleneckOutput(5, 1000, 8)):
        exact = layer(x)
        with torch.autocast("cpu", dtype=torch.bfloat16):
            found = layer(x)
            loss = torch.nn.functional.binary_cross_entropy_with_logits(found, torch.zeros_like(found))
        loss.backward()
        assert (found - exact).abs().max() < 0.05
        assert all(torch.isfinite(p.grad).all() and p.grad.dtype == torch.float32 for p in layer.parameters())
    whole = DFTOutput(5, 1000, 10, 4).bfloat16()(x.bfloat16())
    assert whole.dtype == torch.bfloat16 and torch.isfinite(whole).all()


@pytest.mark.parametrize("order", [None, np.random.default_rng(3).permutation(40)])
def test_state_dict_round_trip(order):
    layer, x = DFTOutput(5, 40, 3, 2, order=order), torch.randn(3, 5, requires_grad=True)
    other = DFTOutput(5, 40, 3, 2, order=None if order is None else np.arange(40))
    other.load_state_dict(layer.state_dict())
    assert torch.equal(layer(x), other(x))
    for a, b in zip(*(torch.autograd.grad(m(x)[:, 7].sum(), [x, m.slack]) for m in (layer, other)), strict=True):
        assert torch.equal(a, b)


def test_a_loaded_order_must_be_a_permutation():
    layer = DFTOutput(5, 7, 1, order=np.arange(7))
    state = layer.state_dict() | {"order": torch.zeros(7, dtype=torch.int64)}
    with pytest.raises(ParameterError, match="order must name each place from 0 to 6 once; got place 0 more than once"):
        layer.load_state_dict(state)


def test_the_start_has_the_prior_as_mean_probability():
    x = torch.randn(64, 5) / 10
    torch.manual_seed(0)
    for layer, prior in (
        (DFTOutput(5, 2000, 20), 20 / 2000),
        (DFTOutput(5, 2000, 20, 8, prior=0.002), 0.002),
        (BottleneckOutput(5, 2000, 16, prior=0.002), 0.002),
        (BottleneckOutput(5, 2000, 16, bias=True, prior=0.002), 0.002),
    ):
        assert torch.sigmoid(layer(x)).mean().item() == pytest.approx(prior, rel=0.2), layer
    assert torch.sigmoid(BottleneckOutput(5, 2000, 16)(x)).mean().item() == pytest.approx(0.5, abs=0.05)


def test_drop_in_and_learning():
    torch.manual_seed(0)
    X, Y = torch.randn(32, 6), (torch.rand(32, 50) < 0.1).float()
    for layer in (DFTOutput(8, 50, 10, 2), BottleneckOutput(8, 50, 20)):
        model = torch.nn.Sequential(torch.nn.Linear(6, 8), torch.nn.ReLU(), layer)
        optimiser = torch.optim.Adam(model.parameters(), lr=0.02)
        losses = []
        for _ in range(60):
            loss = torch.nn.functional.binary_cross_entropy_with_logits(model(X), Y)
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()
            losses.append(loss.item())
        assert losses[-1] < 0.8 * losses[0]


@pytest.mark.parametrize("order", [None, np.array([4, 8, 1, 0, 7, 2, 6, 3, 5])])
@pytest.mark.parametrize("slack", [0, 2])
def test_every_set_of_at_most_k_labels_can_come_out(order, slack):
    torch.manual_seed(0)
    layer = DFTOutput(9, 9, 3, slack, order=order)
    small = [s for s in itertools.product((0, 1), repeat=9) if sum(s) <= layer.guaranteed]
    found = audit.argmaxable(layer, np.array(small))
    assert found.reachable.all() and len(found) == len(small)
    if slack == 0:  # and sets that alternate more often on the circle cannot
        places = np.arange(9) if order is None else order
        alternating = (places % 2 == 0) & (places < 8)
        assert audit.argmaxable(layer.weight(), alternating[None].astype(int)).impossible.all()


def test_sizes_are_told():
    layer = DFTOutput(500, 8921, 80, 50)
    assert (layer.width, layer.guaranteed) == (211, 80)
    assert layer.n_parameters == 500 * 211 + 211 + 50 * 8921
    assert "k=80, slack=50" in repr(layer)
    assert BottleneckOutput(500, 100, 10, bias=True).n_parameters == 500 * 10 + 10 + 10 * 100 + 100


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: DFTOutput(5, 8, 4), "k must be at most 3 for 8 labels, so that 2k + 1 <= n; got 4."),
        (lambda: DFTOutput(5, 8, 0), "k must be an integer >= 1; got 0."),
        (lambda: DFTOutput(5, 8, 2, -1), "slack must be an integer >= 0; got -1."),
        (
            lambda: DFTOutput(5, 5, 2, order=[0, 1, 2, 3, 3]),
            "order must name each place from 0 to 4 once; got place 3 mo",
        ),
        (
            lambda: DFTOutput(5, 5, 2, order=[0, 1, 2, 3, 5]),
            "order must name each place from 0 to 4 once; got place 5.",
        ),
        (
            lambda: DFTOutput(5, 5, 2, order=[0, 1, 2]),
            "order must be 5 integers, the place of each label on the circle",
        ),
        (lambda: DFTOutput(5, 5, 2, order=np.arange(5.0)), "order must be 5 integers"),
        (lambda: DFTOutput(5, 8, 2, prior=0), "prior must be a number above 0 and at most 1; got 0."),
        (lambda: DFTOutput(5, 8, 2, prior=1.0), "prior must be a number above 0 and below 1; got 1.0."),
        (lambda: BottleneckOutput(5, 8, 2, prior=2), "prior must be a number"),
        (lambda: DFTOutput(5, 8, 2, prior=np.full(8, 0.1)), "prior must be one number for all labels, such as the mea"),
        (lambda: DFTOutput(5, 8, 2, prior=[0.1] * 8), "prior must be one number for all labels, such as the mean num"),
        (lambda: BottleneckOutput(5, 8, 0), "width must be an integer >= 1; got 0."),
        (lambda: BottleneckOutput(0, 8, 2), "in_features must be an integer >= 1; got 0."),
        (lambda: BottleneckOutput(5, 8, 2, bias=1), "bias must be True or False; got 1."),
    ],
)
def test_bad_values_get_one_sentence(make, message):
    with pytest.raises(ParameterError) as caught:
        make()
    assert str(caught.value).startswith(message)


def test_a_saved_layer_keeps_its_scale(monkeypatch):
    layer = DFTOutput(5, 21, k=3, slack=2)
    monkeypatch.setattr("longtail.bottleneck.output_layers.GAIN", 7.0)
    other = DFTOutput(5, 21, k=3, slack=2)
    other.load_state_dict(layer.state_dict())
    x = torch.ones(2, 5)
    assert torch.equal(other(x), layer(x))
