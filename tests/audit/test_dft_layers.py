"""Audits of DFT layers: every guaranteed set is proved by formula, whatever the rounding of the weights."""

import itertools
import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from longtail import audit
from longtail.audit.wave_roots import roots_give
from longtail.bottleneck import dft_matrix, wave_roots
from longtail.data import Dataset
from longtail.errors import DataError, GuaranteeWarning
from longtail.model import LabelCircle, LinearLayer
from longtail.pipeline import audit_model

torch = pytest.importorskip("torch")

from longtail.nn import BottleneckOutput, DFTOutput

pytestmark = pytest.mark.torch


def sets_of(n, size, count, seed=0):
    rng = np.random.default_rng(seed)
    Y = np.zeros((count, n), dtype=np.float32)
    for row in Y:
        row[rng.choice(n, size, replace=False)] = 1
    return Y


def test_a_set_that_rounded_weights_cannot_give_is_proved_for_the_layer():
    layer = DFTOutput(8, 200, 3)
    Y = np.zeros((1, 200))
    Y[0, [10, 12, 14]] = 1
    assert audit.argmaxable(layer, Y).reachable.all()
    assert audit.argmaxable(layer.weight(), Y).impossible.all()  # 32-bit numbers as they are


@pytest.mark.parametrize(("n", "k", "slack", "count"), [(1000, 5, 4, 60), (1000, 20, 16, 60), (3000, 20, 16, 40)])
def test_every_guaranteed_set_is_reachable(n, k, slack, count):
    torch.manual_seed(0)
    layer = DFTOutput(2 * k + 1 + slack, n, k, slack, order=np.random.default_rng(1).permutation(n))
    found = audit.argmaxable(layer, sets_of(n, k, count), radius="bound", eps=1e-300)
    assert found.reachable.all()
    for members, certificate in zip(found.members, found.certificates, strict=True):
        assert audit.check_certificate(layer, members, certificate).reachable


def test_sets_far_below_the_steps_of_64_bit_numbers():
    layer = DFTOutput(41, 10_000, 20)
    found = audit.argmaxable(layer, sets_of(10_000, 20, 10), radius="bound", eps=1e-300)
    assert found.reachable.all() and (found.radius > 0).all() and found.radius.min() < 1e-13  # inputs up to 1e4


@settings(max_examples=40, deadline=None)
@given(st.data())
def test_roots_prove_exactly_the_sets_of_at_most_k_runs(data):
    n = data.draw(st.integers(3, 12))
    k = data.draw(st.integers(1, (n - 1) // 2))
    positions = np.array(data.draw(st.permutations(range(n))))
    on = np.array(data.draw(st.lists(st.booleans(), min_size=n, max_size=n)))
    circle, members = LabelCircle(n, k, positions), np.flatnonzero(on)
    around = on[np.argsort(positions)]
    runs = int((around & ~np.roll(around, 1)).sum()) if not on.all() else 0
    roots = wave_roots(circle, members)
    assert (roots is None) == (runs > k)
    if roots is None:
        return
    assert roots_give(circle, roots, members)
    # the wave with these roots, written out
    t = 2 * np.pi * positions / n
    wave = np.prod([np.sin((t - 2 * np.pi * r / n) / 2) for r in roots], axis=0) if roots.size else np.ones(n)
    assert ((wave > 0) == on).all() or ((wave < 0) == on).all()
    W = dft_matrix(n, k, positions)
    x = np.linalg.lstsq(W, wave, rcond=None)[0]
    np.testing.assert_allclose(W @ x, wave, atol=1e-12)


@pytest.mark.parametrize("wrong", [[3.5], [3.5, 3.5], [5.5, 3.5], [4.0, 5.5], [3.5, 4.5], [-0.5, 1.5], [0.5, 9.5]])
def test_roots_that_prove_nothing_are_refused(wrong):
    layer = LinearLayer(dft_matrix(9, 2), circle=LabelCircle(9, 2, np.arange(9)))
    proof = audit.check_certificate(layer, [4, 5], audit.Certificate(roots=np.array(wrong)))
    assert proof.reachable is None
    good = audit.Certificate(roots=np.array([3.5, 5.5]))
    assert audit.check_certificate(layer, [4, 5], good).reachable
    assert audit.check_certificate(dft_matrix(9, 2), [4, 5], good).reachable is None  # no layer with a circle
    many = audit.Certificate(roots=np.array([0.5, 1.5, 2.5, 3.5, 4.5, 5.5]))
    assert audit.check_certificate(layer, [1, 3, 5], many).reachable is None  # more than k


def test_the_radius_of_the_formula_is_one_and_no_larger_than_the_best():
    layer = DFTOutput(7, 60, 3)
    Y = sets_of(60, 3, 25)
    exact = audit.argmaxable(layer, Y)
    W, _ = layer.output_weights()
    for members, best in zip(exact.members, exact.radius_at_most, strict=True):
        roots = wave_roots(layer.label_circle(), members)
        radius = audit.check_certificate(layer, members, audit.Certificate(roots=roots)).radius_at_least
        assert 0 < radius <= best
        t = np.arange(60) * np.pi / 30
        wave = np.prod([np.sin((t - r * np.pi / 30) / 2) for r in roots], axis=0)
        x = W.T @ (wave if wave[members[0]] > 0 else -wave)
        x *= 1e4 / np.abs(x).max()
        margins = np.abs(W @ x) / np.linalg.norm(W, axis=1)
        assert radius == pytest.approx(margins.min(), rel=1e-5)


@pytest.mark.parametrize("slack", [0, 4])
def test_exact_radii_are_those_of_the_linear_program(slack):
    torch.manual_seed(0)
    layer, Y = DFTOutput(12, 100, 3, slack), sets_of(100, 3, 12)
    found, dense = audit.argmaxable(layer, Y), audit.argmaxable(layer.output_weights()[0], Y)
    np.testing.assert_allclose(found.radius, dense.radius, rtol=1e-5, atol=1e-7)
    np.testing.assert_allclose(found.radius, found.radius_at_most, rtol=1e-5, atol=1e-7)


def test_sets_beyond_the_guarantee_are_still_refuted_and_no_small_one_is():
    layer = DFTOutput(7, 9, 3, order=np.array([4, 8, 1, 0, 7, 2, 6, 3, 5]))
    every = np.array(list(itertools.product((0, 1), repeat=9)))
    found = audit.argmaxable(layer, every)
    assert found.n_sets("undecided") == 0
    for members, reachable in zip(found.members, found.reachable, strict=True):
        assert reachable == (wave_roots(layer.label_circle(), members) is not None)


@pytest.mark.parametrize("bias", [np.full(30, 0.7), np.linspace(-1e-3, 1e-3, 30)])
def test_biases_are_taken_into_account(bias):
    layer = DFTOutput(7, 30, 3, bias=True)
    with torch.no_grad():
        layer.bias.copy_(torch.from_numpy(bias))
    Y = sets_of(30, 3, 20)
    found = audit.argmaxable(layer, Y)
    assert found.reachable.all()
    low = audit.argmaxable(LinearLayer(dft_matrix(30, 3), np.full(30, 5.0), circle=layer.label_circle()), Y, box=10.0)
    assert not low.reachable.all()  # the box is too small to lift the level


def test_certificates_of_a_layer_are_saved_with_its_circle(tmp_path):
    layer = DFTOutput(41, 3000, 20)
    W, bias = layer.output_weights()
    found = audit.argmaxable(layer, sets_of(3000, 20, 4), radius="bound", eps=1e-300)
    file = audit.save_certificates(tmp_path / "c.npz", found, W, bias, circle=layer.label_circle())
    kept = audit.load_certificates(file)
    assert all(proof.reachable for proof in kept.check())
    again = audit.Certificate.from_facts(json.loads(json.dumps(found.certificates[0].to_facts())))
    assert audit.check_certificate(layer, found.members[0], again).reachable


def test_a_trained_model_passes_its_guaranteed_sets(tmp_path):
    from longtail.bottleneck import BottleneckClassifier
    from longtail.pipeline import load

    rng = np.random.default_rng(0)
    Y = sets_of(260, 3, 300)
    Y[:, 200:] = 0  # labels without rows are left out, which leaves gaps on the circle
    Y[:200, :200] = np.maximum(Y[:200, :200], np.eye(200, dtype=np.float32))
    X = rng.standard_normal((300, 12)).astype(np.float32)
    model = BottleneckClassifier(k=3, width=0, hidden=8, epochs=1, valid=0, order=None, random_state=0).fit(X, Y)
    sets = np.zeros((3, 260), dtype=np.float32)
    for row, members in zip(sets, ([10, 12, 14], [0, 99, 199], [7]), strict=True):
        row[members] = 1
    model = load(model.save(tmp_path / "m"))
    assert audit.argmaxable(model, sets).reachable.all()
    names = tuple(map(str, range(260)))
    audited = audit_model(model, Dataset(Y=sets, X=X[:3], label_names=names), radius="bound")
    assert audited.all_reachable and audited.facts["layer"]["guaranteed"] == 3


@pytest.mark.parametrize("slack", [0, 4])
def test_a_layer_that_reads_too_few_numbers_guarantees_nothing_and_its_audit_says_so(slack):
    torch.manual_seed(0)
    width = 7 + slack
    with pytest.warns(GuaranteeWarning) as told:
        narrow = DFTOutput(width - 1, 100, 3, slack)
    assert str(told[0].message) == (
        f"a DFT layer with in_features={width - 1} cannot give every set of k=3 labels: that takes "
        f"2k + 1 + slack = {width}; make the layer before it wider, or k or slack smaller."
    )
    assert narrow.guaranteed == 0 and not narrow.is_onto and narrow.label_circle() is None
    Y = sets_of(100, 3, 40)
    found = audit.argmaxable(narrow, Y)
    assert found.width == width - 1 and found.impossible.any()
    for members, certificate in zip(found.members, found.certificates, strict=True):
        if certificate.x is not None:  # inputs of the layer itself, which give the set
            with torch.no_grad():
                scores = narrow.double()(torch.from_numpy(certificate.x))
            assert torch.nonzero(scores > 0).ravel().tolist() == members.tolist()
    assert audit.argmaxable(DFTOutput(width, 100, 3, slack), Y).reachable.all()


def test_a_projection_that_lost_a_dimension_is_part_of_the_audit():
    torch.manual_seed(0)
    layer, Y = DFTOutput(9, 60, 3), sets_of(60, 3, 40)
    assert layer.guaranteed == 3 and audit.argmaxable(layer, Y).reachable.all()
    with torch.no_grad():
        layer.projection.weight[3] = 2 * layer.projection.weight[4]
    found = audit.argmaxable(layer, Y)
    assert layer.guaranteed == 0 and found.width == 6 and found.impossible.any()
    with torch.no_grad():
        layer.projection.weight[3] = 1e-30  # however small
    assert layer.guaranteed == 3


def test_a_bottleneck_is_as_narrow_as_what_it_reads():
    layer = BottleneckOutput(3, 40, 20)
    assert audit.argmaxable(layer, sets_of(40, 3, 5)).width == 3


def test_the_arrays_of_a_saved_layer_are_no_layer(tmp_path):
    from safetensors.torch import save_file

    model = torch.nn.ModuleDict({"body": torch.nn.Linear(4, 12), "head": DFTOutput(12, 30, 3, 4)})
    save_file(model.state_dict(), tmp_path / "m.safetensors")
    with pytest.raises(DataError, match="holds the DFT layer 'head', whose waves are in no file"):
        audit.argmaxable(tmp_path / "m.safetensors", sets_of(30, 3, 2))
    for array in ("head.slack", "head.projection.weight"):
        with pytest.raises(DataError, match="give the layer to lt"):
            audit.layer_from_file(tmp_path / "m.safetensors", array)
    assert audit.layer_from_file(tmp_path / "m.safetensors", "body.weight")[0].shape == (12, 4)
