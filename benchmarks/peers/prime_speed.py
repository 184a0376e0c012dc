"""Training steps per second, ours and those of sentence-transformers with MultipleNegativesRankingLoss."""

from __future__ import annotations

import importlib
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch

from longtail.models.prime import Prime
from longtail.nn.batching import PositiveSampler, label_weights
from longtail.nn.encoders import load_text_encoder
from longtail.nn.prime_fitting import prime_loss, training
from longtail.nn.prime_network import start_network
from longtail.nn.prime_settings import resolve_settings
from longtail.nn.prime_training import Progress, batch_loss, make_optimizer, train_prime
from peers.prime_data import Texts

STEPS, WARM = 30, 10


def device() -> torch.device:
    return torch.device("cuda" if torch.cuda.is_available() else "cpu")


def our_steps(texts: Texts, encoder: Path, batch: int, length: int) -> dict[str, float]:
    """Time whole steps of PRIME-lite: sampling, both encodings, prototypes, the loss, the optimiser."""
    network, bank, tokens, labels, settings, how = _begin(texts, encoder, batch, length, epochs=8)
    optimizer = make_optimizer(network, how)
    sampler = PositiveSampler(texts.Y, label_weights(texts.Y, settings.sampling), settings.n_positives)
    progress, loss = Progress(network, bank), prime_loss(settings)
    rng = np.random.default_rng(0)
    network.train()

    def step() -> None:
        rows = rng.integers(len(tokens), size=batch)
        optimizer.zero_grad(set_to_none=True)
        batch_loss(progress, tokens, labels, rows, sampler(rows, rng), loss, how).backward()
        optimizer.step()

    return _timed(step, batch)


def their_steps(texts: Texts, encoder: Path, batch: int, length: int, tokens_before: bool) -> dict[str, float]:
    """Time whole steps of the loss of sentence-transformers on pairs (text, text of one of its labels), in bfloat16."""
    from sentence_transformers import SentenceTransformer

    model = SentenceTransformer(str(encoder), device=str(device()), local_files_only=True).float()
    model.max_seq_length = length
    model.train()
    try:
        losses = importlib.import_module("sentence_transformers.sentence_transformer.losses")
    except ImportError:  # before version 6
        losses = importlib.import_module("sentence_transformers.losses")
    loss = losses.MultipleNegativesRankingLoss(model)
    optimizer = torch.optim.AdamW(model.parameters(), lr=2e-4, fused=device().type == "cuda")
    read: Callable[[list[str]], dict[str, Any]] = getattr(model, "preprocess", None) or model.tokenize
    rng = np.random.default_rng(0)

    def pairs() -> list[dict[str, Any]]:
        rows = rng.integers(len(texts.texts), size=batch)
        first = texts.Y.indices[texts.Y.indptr[rows].clip(max=texts.Y.nnz - 1)]
        return [read([texts.texts[i] for i in rows]), read([texts.label_texts[i] for i in first])]

    made = [pairs() for _ in range(STEPS + WARM)] if tokens_before else []
    left = iter(made)

    def step() -> None:
        found = next(left) if tokens_before else pairs()
        features = [{k: v.to(device()) if hasattr(v, "to") else v for k, v in part.items()} for part in found]
        optimizer.zero_grad(set_to_none=True)
        with torch.autocast(device().type, torch.bfloat16):
            value = loss(features, torch.empty(0))
        value.backward()
        optimizer.step()

    return _timed(step, batch)


def clusters_and_sampling(texts: Texts, encoder: Path, batch: int, length: int) -> dict[str, float]:
    """Return the shares of sampling and clustering in two epochs, the second of them with new clusters."""
    network, bank, tokens, labels, settings, how = _begin(texts, encoder, batch, length, epochs=2)
    seconds: dict[str, float] = {}
    started = time.perf_counter()
    train_prime(network, tokens, labels, texts.Y, bank, prime_loss(settings), how, seconds=seconds)
    _wait()
    total = time.perf_counter() - started
    return {"seconds": total, **{name: value / total for name, value in seconds.items()}}


def _begin(texts: Texts, encoder: Path, batch: int, length: int, epochs: int) -> tuple[Any, ...]:
    model = Prime(str(encoder), "prime-lite", epochs=epochs, batch_size=batch)
    settings = resolve_settings(model.get_params(deep=False), *texts.Y.shape)
    made = load_text_encoder(encoder, length).to(device())
    tokens, labels = made.tokens(texts.texts), made.tokens(texts.label_texts)
    network, bank = start_network(
        made, tokens, labels, texts.Y, n_free=settings.n_free, n_private=settings.n_private,
        mixed=device().type == "cuda",
    )  # fmt: skip
    return network, bank, tokens, labels, settings, training(model, settings, 0)


def _timed(step: Callable[[], None], batch: int) -> dict[str, float]:
    for _ in range(WARM):
        step()
    _wait()
    if device().type == "cuda":
        torch.cuda.reset_peak_memory_stats()
    started = time.perf_counter()
    for _ in range(STEPS):
        step()
    _wait()
    seconds = time.perf_counter() - started
    memory = torch.cuda.max_memory_allocated() / 2**30 if device().type == "cuda" else 0.0
    return {"rows_per_s": STEPS * batch / seconds, "ms_per_step": 1e3 * seconds / STEPS, "gpu_gib": memory}


def _wait() -> None:
    if device().type == "cuda":
        torch.cuda.synchronize()
