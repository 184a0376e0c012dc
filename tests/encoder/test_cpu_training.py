"""Training on a CPU: dropout by sixteen bits, and bfloat16 where the processor is made for it."""

from __future__ import annotations

import numpy as np
import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")
pytestmark = [pytest.mark.torch, pytest.mark.filterwarnings("default")]

import torch.nn.functional as F
from tests.encoder.saved_encoders import saved_encoder

from longtail.encoder.packed import attend_padded, drop_some
from longtail.encoder.text_encoder import TextEncoder, new_text_encoder
from longtail.prime import Prime, fit
from longtail.training import RowTraining, mixed_precision, torch_runtime

CPU = torch.device("cpu")
TEXTS = ["a red apple", "the monetary policy of the central bank, in brief", "apples & pears", "x", "apple bank"]


@pytest.mark.parametrize("p", [0.1, 0.5])
@pytest.mark.parametrize("shape", [(1001,), (7, 11, 13)])
def test_numbers_are_dropped_as_often_as_said_and_the_others_are_larger(p, shape):
    x = torch.rand(400, *shape) + 1
    out = drop_some(x, p)
    kept = out != 0
    assert float(kept.float().mean()) == pytest.approx(1 - p, abs=0.01)
    torch.testing.assert_close(out[kept], x[kept] / (1 - p))
    by_place = kept.float().reshape(-1, 4).mean(dim=0)  # the four that share a random number
    np.testing.assert_allclose(by_place, 1 - p, atol=0.01)


def test_dropout_follows_the_seed_and_gradients_go_where_numbers_were_kept():
    def dropped(seed):
        torch.manual_seed(seed)
        x = torch.ones(5000, requires_grad=True)
        out = drop_some(x, 0.25)
        out.sum().backward()
        return out.detach(), x.grad

    (first, gradient), (again, _), (other, _) = dropped(1), dropped(1), dropped(2)
    assert torch.equal(first, again)
    assert not torch.equal(first, other)
    torch.testing.assert_close(gradient, first)  # of ones: 1 / (1 - p) where kept, else 0


def test_outside_of_training_nothing_is_dropped():
    x = torch.randn(100)
    assert torch.equal(drop_some(x, 0.5, training=False), x)
    assert torch.equal(drop_some(x, 0.0), x)


@pytest.mark.parametrize("one_length", [False, True])
def test_attention_step_by_step_is_that_of_torch(one_length):
    made = new_text_encoder(TEXTS, width=32, layers=1, heads=2)
    tokens = made.tokens(["red apple"] * 3 if one_length else TEXTS)
    batch = tokens.pack(np.arange(len(tokens)))
    q, k, v = torch.randn(3, batch.ids.numel(), 2, 16)
    nothing_is_dropped = 1e-9
    torch.testing.assert_close(attend_padded(q, k, v, batch, nothing_is_dropped), attend_padded(q, k, v, batch))


@pytest.mark.parametrize("architecture", ["bert", "mpnet"])
def test_gradients_in_bfloat16_are_near_those_in_float32(architecture):
    made = TextEncoder.from_part(saved_encoder(architecture)).eval()
    tokens = made.tokens(TEXTS * 400)
    rows, found = np.arange(len(tokens)), []
    wanted = torch.randn(len(tokens), made.width, generator=torch.Generator().manual_seed(0))
    for mixed in (False, True):
        made.zero_grad()
        with torch.autocast("cpu", torch.bfloat16, enabled=mixed):
            (vectors,) = made.embed_together((tokens, rows))
            (F.normalize(vectors, dim=1) * wanted).sum().backward()
        found.append({name: p.grad.clone() for name, p in made.named_parameters() if p.grad is not None})
    exact, near = found
    largest = max(float(grad.norm()) for grad in exact.values())
    for name, grad in exact.items():
        assert float((near[name] - grad).norm()) <= 0.1 * float(grad.norm()) + 1e-3 * largest, name


def test_prime_trains_in_bfloat16_on_a_cpu_made_for_it_and_predicts_in_float32(monkeypatch, tmp_path):
    texts = ["ripe red apple", "green apple pie", "fast red car", "car with a new engine"] * 15
    Y = np.array([[1, 0], [1, 0], [0, 1], [0, 1]] * 15, dtype=np.float32)
    asked = []

    def made_for_it(device):
        asked.append(device.type)
        return True

    monkeypatch.setattr(torch_runtime, "computes_bfloat16", made_for_it)
    monkeypatch.setattr(fit, "computes_bfloat16", made_for_it)

    def trained(**params):
        model = Prime({"width": 32, "layers": 1, "heads": 2}, epochs=4, lr=3e-3, device="cpu", random_state=0, **params)
        return model.fit(texts, Y, ["apple", "car"])

    mixed, exact = trained(), trained(mixed_precision=False)
    assert "cpu" in asked
    assert not np.array_equal(mixed.encode(texts[:4]), exact.encode(texts[:4]))
    for model in (mixed, exact):
        found = model.predict_topk(texts[:4], k=1).ids[:, 0]
        assert found.tolist() == [0, 0, 1, 1]
    vectors = mixed.encode(texts[:4])
    by_float32 = F.normalize(mixed.network_.encoder.embed_all(mixed.network_.encoder.tokens(texts[:4])), dim=1)
    np.testing.assert_array_equal(vectors, by_float32.numpy())


def test_other_networks_stay_in_float32_on_a_cpu(monkeypatch):
    monkeypatch.setattr(torch_runtime, "computes_bfloat16", lambda device: True)
    for how in (RowTraining(), RowTraining(mixed=False)):
        with mixed_precision(CPU, how.mixed, how.MIXED_ON_CPU):
            assert not torch.is_autocast_enabled("cpu")
    with mixed_precision(CPU, True, on_cpu=True):
        assert torch.is_autocast_enabled("cpu")
