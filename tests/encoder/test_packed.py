"""Texts without padding: the same vectors and gradients as with it."""

from __future__ import annotations

import numpy as np
import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")
pytestmark = [pytest.mark.torch, pytest.mark.filterwarnings("default")]

from tests.encoder.saved_encoders import saved_encoder

from longtail.encoder.packed import ARCHITECTURES, attend, attend_padded, can_pack, join_packed
from longtail.encoder.text_encoder import TextEncoder, new_backbone, new_text_encoder
from longtail.encoder.tokens import TokenRows

TEXTS = ["a red apple", "the monetary policy of the central bank, in brief", "Äpfel & Birnen", "x", "apple bank"]


def encoder(pooling="mean", **params):
    torch.manual_seed(0)
    made = new_text_encoder(TEXTS, width=32, layers=2, heads=2, **params)
    return TextEncoder(made.backbone, made.tokenizer, pooling, made.max_length).eval()


@pytest.mark.parametrize("pooling", ["mean", "cls"])
def test_same_vectors_and_gradients_as_with_padding(pooling):
    made = encoder(pooling)
    tokens, rows = made.tokens(TEXTS), np.array([3, 1, 0, 4, 1])
    grads = []
    for found in (made(*tokens.pad(rows)), made.embed_packed(tokens.pack(rows))):
        made.zero_grad()
        (found * torch.linspace(-1, 1, found.numel()).view_as(found)).sum().backward()
        grads.append((found.detach(), {name: p.grad.clone() for name, p in made.named_parameters()}))
    (padded, by_padding), (packed, by_packing) = grads
    np.testing.assert_allclose(packed, padded, atol=1e-5)
    for name, grad in by_padding.items():
        np.testing.assert_allclose(by_packing[name], grad, atol=1e-4, err_msg=name)


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_every_architecture_that_is_packed_computes_what_transformers_does(architecture):
    made = TextEncoder.from_part(saved_encoder(architecture)).eval()
    assert made.packs
    words = ["red apple", "a green pear of the garden", "<pad> old <pad> car", "blue house by the sea " * 9]
    queries, labels = made.tokens(words), made.tokens(["apple", "old car"])
    rows, of_labels = np.array([3, 0, 2, 1]), np.array([1, 0, 1])
    grads = []
    for together in (False, True):
        made.zero_grad()
        if together:
            found = torch.cat(made.embed_together((queries, rows), (labels, of_labels)))
        else:
            found = torch.cat([made(*queries.pad(rows)), made(*labels.pad(of_labels))])
        (found * torch.linspace(-1, 1, found.numel()).view_as(found)).sum().backward()
        grads.append((found.detach(), {name: p.grad for name, p in made.named_parameters() if p.grad is not None}))
    (padded, by_padding), (packed, by_packing) = grads
    np.testing.assert_allclose(packed, padded, atol=1e-5)
    assert by_padding.keys() == by_packing.keys()
    for name, grad in by_padding.items():
        np.testing.assert_allclose(by_packing[name], grad, atol=1e-4, err_msg=name)


def test_dropout_is_drawn_where_attention_is_padded():
    made = TextEncoder.from_part(saved_encoder("mpnet", attention_probs_dropout_prob=0.5)).train()
    rows = made.tokens(["a green pear of the garden"]).pack(np.array([0]))
    torch.manual_seed(0)
    first, second = (made.embed_packed(rows).detach() for _ in range(2))
    assert not torch.equal(first, second)
    assert torch.equal(made.eval().embed_packed(rows), made.embed_packed(rows))


def test_kinds_of_texts_go_through_together():
    made = encoder()
    queries, labels = made.tokens(TEXTS), made.tokens(["bank", "red apple"])
    q, of_labels = made.embed_together((queries, np.array([1, 0])), (labels, np.array([1])))
    np.testing.assert_allclose(q.detach(), made.embed(queries, np.array([1, 0])).detach(), atol=1e-5)
    np.testing.assert_allclose(of_labels.detach(), made.embed(labels, np.array([1])).detach(), atol=1e-5)


def test_joined_batches_are_numbered_on():
    rows = TokenRows([np.array([1, 5, 2]), np.array([1, 2])])
    both = join_packed([rows.pack(np.array([1, 0])), rows.pack(np.array([0]))])
    assert both.ids.tolist() == [1, 2, 1, 5, 2, 1, 5, 2]
    assert both.text.tolist() == [0, 0, 1, 1, 1, 2, 2, 2]
    assert both.ends.tolist() == [0, 2, 5, 8]
    assert both.longest == 3
    assert both.joined == ((2, 5, 3), (1, 3, 3))


@pytest.mark.parametrize("architecture", ["bert", "mpnet"])
def test_a_text_without_tokens_has_no_vector_and_harms_no_other(architecture):
    made = TextEncoder.from_part(saved_encoder(architecture)).eval()
    rows = TokenRows([np.array([2, 5, 3]), np.array([], dtype=np.int32)])
    found = made.embed_packed(rows.pack(np.array([1, 0]))).detach().numpy()
    assert not found[0].any()
    np.testing.assert_allclose(found[1], made.embed_packed(rows.pack(np.array([0]))).detach().numpy()[0], atol=1e-6)


def test_other_transformers_are_padded():
    shape = {"vocab_size": 50, "dim": 16, "n_layers": 1, "n_heads": 2, "hidden_dim": 32}
    backbone = new_backbone({"model_type": "distilbert", **shape})
    assert not can_pack(backbone)
    made = TextEncoder(backbone, encoder().tokenizer, "mean", 16).eval()
    rows = TokenRows([np.array([2, 5, 3]), np.array([2, 3])])
    found = made.embed(rows, np.array([1, 0])).detach()
    np.testing.assert_allclose(found[0], made(*rows.pad(np.array([1]))).detach()[0], atol=1e-6)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
def test_attention_of_a_gpu_agrees():
    rng = np.random.default_rng(0)
    rows = TokenRows([np.ones(n, dtype=np.int32) for n in rng.integers(1, 40, size=50)], device="cuda")
    batch = rows.pack(np.arange(50))
    q, k, v = torch.randn(3, batch.ids.numel(), 4, 32, device="cuda", dtype=torch.bfloat16).unbind()
    expected = attend_padded(q.float(), k.float(), v.float(), batch)
    np.testing.assert_allclose(attend(q, k, v, batch).float().cpu(), expected.cpu(), atol=2e-2)
