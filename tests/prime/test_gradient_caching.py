"""Batches too large for memory go through the encoder in chunks, and the step stays the same."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")
pytestmark = pytest.mark.torch

from longtail.encoder import TextEncoder, embed_in_chunks, new_text_encoder
from longtail.encoder.text_encoder import new_backbone
from longtail.errors import ModelError
from longtail.prime import batch_memory
from longtail.prime.estimator import Prime
from longtail.training import get_random_state, set_random_state

WORDS = ["apple", "pear", "train", "wheel", "chess", "poker", "river", "ocean"]
TEXTS = [" ".join(WORDS[(row + i) % 8] for i in range(1 + row % 5)) for row in range(40)]
CPU = torch.device("cpu")


def encoder_of(kind: str, dropout: float) -> TextEncoder:
    torch.manual_seed(0)
    encoder = new_text_encoder(TEXTS, width=16, layers=2, heads=2, dropout=dropout)
    if kind == "bert":
        return encoder.train()
    shape = {"model_type": kind, "vocab_size": encoder.tokenizer.get_vocab_size(), "hidden_size": 16}
    shape |= {"num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 32, "pad_token_id": 0}
    shape |= {"hidden_dropout_prob": dropout, "attention_probs_dropout_prob": dropout, "max_position_embeddings": 70}
    shape |= {"embedding_size": 16} if kind == "electra" else {}
    return TextEncoder(new_backbone(shape), encoder.tokenizer).train()


def gradients_of(encoder, embed):
    encoder.zero_grad()
    queries, labels = embed()
    loss = torch.nn.functional.softplus(torch.nn.functional.normalize(queries) @ labels.T).mean()
    loss.backward()
    return loss.item(), [p.grad.clone() for p in encoder.parameters() if p.grad is not None]


@pytest.mark.parametrize("dropout", [0.0, 0.2])
@pytest.mark.parametrize("kind", ["bert", "mpnet", "electra"])  # the last one with padding
def test_a_step_in_chunks_is_the_ordinary_step(kind, dropout):
    encoder = encoder_of(kind, dropout)
    tokens, labels = encoder.tokens(TEXTS), encoder.tokens(WORDS)
    asked = (tokens, np.arange(40)[::-1]), (labels, np.arange(8))
    state = get_random_state(CPU)

    def at_once():
        if not dropout:  # the whole batch
            return encoder.embed_together(*asked)
        out = []  # the same chunks, so that each draws the same dropout, all kept
        for rows, numbers in asked:
            vectors = torch.empty(numbers.size, 16)
            for part in rows.chunks(numbers, 20, padded=kind == "electra"):
                vectors[part] = encoder.embed_together((rows, numbers[part]))[0]
            out.append(vectors)
        return out

    loss, expected = gradients_of(encoder, at_once)
    after = torch.rand(1)
    set_random_state(state, CPU)
    found_loss, found = gradients_of(encoder, lambda: embed_in_chunks(encoder, 20, *asked))
    assert found_loss == pytest.approx(loss, abs=1e-6)
    assert len(found) == len(expected)
    for a, b in zip(found, expected, strict=True):
        torch.testing.assert_close(a, b, atol=1e-5, rtol=1e-5)
    if dropout:
        assert torch.rand(1) == after  # what is drawn next does not depend on the chunks


def rows_of(n_rows=120, n_labels=8, seed=0):
    rng = np.random.default_rng(seed)
    texts, Y = [], np.zeros((n_rows, n_labels), dtype=np.float32)
    for row in range(n_rows):
        chosen = rng.choice(n_labels, size=2, replace=False)
        Y[row, chosen] = 1
        texts.append(" ".join(WORDS[i] for i in chosen) + " and" * int(rng.integers(4)))
    return texts, sp.csr_array(Y), WORDS


def prime(**params):
    settings = {"epochs": 2, "lr": 3e-3, "batch_size": 40, "device": "cpu", "random_state": 0, "n_jobs": 1}
    settings |= {"mixed_precision": False, **params}  # in bfloat16 a sum in another order is another one
    return Prime({"width": 16, "layers": 1, "heads": 2, "dropout": 0.0}, "prime-lite", prototype="sum", **settings)


def same_weights(first, second, atol=0.0):
    for name, array in first.to_part().arrays.items():
        if array.dtype.kind == "f":
            np.testing.assert_allclose(array, second.to_part().arrays[name], atol=atol, rtol=0, err_msg=name)


@pytest.mark.parametrize("accumulate", [1, 2])
def test_training_in_chunks_ends_with_the_same_weights(monkeypatch, accumulate):
    whole = prime(accumulate=accumulate).fit(*rows_of())
    monkeypatch.setattr(batch_memory, "FEWEST_TOKENS", 50)
    monkeypatch.setattr(batch_memory, "KEPT_ON_CPU", 0)  # no memory at all: the smallest chunks
    in_chunks = prime(accumulate=accumulate).fit(*rows_of())
    same_weights(whole, in_chunks, atol=2e-4)


@pytest.mark.parametrize("accumulate", [1, 2])
@pytest.mark.parametrize("where", ["forward", "backward"])
def test_a_gpu_that_runs_out_of_memory_tries_smaller_chunks(monkeypatch, where, accumulate):
    """The step begins again: nothing of the failed attempt is left, neither gradients nor centroids."""
    expected = prime(accumulate=accumulate).fit(*rows_of())
    monkeypatch.setattr(batch_memory, "FEWEST_TOKENS", 50)
    original, failed = TextEncoder.embed_together, []

    def embed_together(self, *asked):
        n_tokens = sum(int(tokens.lengths[rows].sum()) for tokens, rows in asked)
        vectors = original(self, *asked)
        if n_tokens <= 150 or not torch.is_grad_enabled():
            return vectors
        if where == "forward":
            failed.append(n_tokens)
            raise torch.cuda.OutOfMemoryError("CUDA out of memory.")

        def fail(gradient):
            failed.append(n_tokens)
            raise torch.cuda.OutOfMemoryError("CUDA out of memory.")

        vectors[0].register_hook(fail)
        return vectors

    monkeypatch.setattr(TextEncoder, "embed_together", embed_together)
    with pytest.warns(UserWarning, match="the GPU ran out of memory; texts now go through the encoder .* tokens at a"):
        model = prime(accumulate=accumulate).fit(*rows_of())
    assert 1 <= len(failed) <= 3  # later steps begin with the chunks that fit
    same_weights(expected, model, atol=2e-4)


def test_a_gpu_with_no_memory_gets_one_sentence(monkeypatch):
    def embed_together(self, *asked):
        raise torch.cuda.OutOfMemoryError("CUDA out of memory.")

    monkeypatch.setattr(TextEncoder, "embed_together", embed_together)
    with pytest.raises(ModelError, match="the GPU has too little memory left for this; use a smaller"):
        prime().fit(*rows_of())


def test_small_batches_stay_as_they_are(monkeypatch):
    def refuse(*asked):
        raise AssertionError

    monkeypatch.setattr("longtail.encoder.gradient_caching.embed_in_chunks", refuse)
    prime().fit(*rows_of())
