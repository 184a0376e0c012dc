"""Training steps per second, ours and those of sentence-transformers with MultipleNegativesRankingLoss.

Theirs are timed twice: by their own trainer, which needs the packages datasets and accelerate, and by their loss in a
plain loop of steps.
"""

from __future__ import annotations

import importlib
import tempfile
import time
from collections.abc import Callable, Iterator
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import torch

from longtail.encoder.text_encoder import load_text_encoder
from longtail.prime.estimator import Prime
from longtail.prime.fit import loop_settings, prime_loss
from longtail.prime.network import start_network
from longtail.prime.sampling import PositiveSampler, label_weights
from longtail.prime.settings import resolve_settings
from longtail.prime.train import Examples, PrimeBatch, QueryBank, Stopwatch, batch_loss, make_optimizer, train_prime
from longtail.training import mixed_precision
from peers.prime_data import Texts

STEPS, WARM = 60, 10


def device() -> torch.device:
    return torch.device("cuda" if torch.cuda.is_available() else "cpu")


def our_steps(texts: Texts, encoder: Path, batch: int, length: int) -> dict[str, float]:
    """Time whole steps of PRIME-lite: sampling, both encodings, prototypes, the loss, the optimiser."""
    network, bank, tokens, labels, settings, how = _begin(texts, encoder, batch, length, epochs=8)
    optimizer = make_optimizer(network, how)
    sampler = PositiveSampler(texts.Y, label_weights(texts.Y, settings.sampling), settings.n_positives)
    examples, queries, loss = Examples(tokens, labels, texts.Y), QueryBank(bank), prime_loss(settings)
    rng = np.random.default_rng(0)
    network.train()

    def step() -> None:
        rows = rng.integers(len(tokens), size=batch)
        optimizer.zero_grad(set_to_none=True)
        with mixed_precision(device(), how.mixed):
            value = batch_loss(network, queries, examples, PrimeBatch(rows, sampler(rows, rng)), loss)
        value.backward()
        optimizer.step()

    return _timed(step, batch)


def their_trainer(texts: Texts, encoder: Path, batch: int, length: int, workers: int) -> dict[str, float]:
    """Time steps of sentence-transformers' own trainer in bfloat16, with the batches made by so many processes."""
    peer, Dataset = importlib.import_module("sentence_transformers"), importlib.import_module("datasets").Dataset

    class Clock(importlib.import_module("transformers").TrainerCallback):  # type: ignore[misc]
        """Looks at the clock where a step ends: after the last one to warm up, and after the last one."""

        started = seconds = 0.0

        def on_step_end(self, _: Any, state: Any, __: Any, **___: Any) -> None:
            if state.global_step == WARM:
                _wait(forget_peak=True)
                self.started = time.perf_counter()
            if state.global_step == WARM + STEPS:
                _wait()
                self.seconds = time.perf_counter() - self.started

    model = _their_model(encoder, length)
    rows = np.flatnonzero(np.diff(texts.Y.indptr))
    pairs = Dataset.from_dict(
        {
            "anchor": [texts.texts[i] for i in rows],
            "positive": [texts.label_texts[i] for i in texts.Y.indices[texts.Y.indptr[rows]]],
        }
    )
    clock = Clock()
    with tempfile.TemporaryDirectory() as scratch:
        how = peer.SentenceTransformerTrainingArguments(
            output_dir=scratch,
            per_device_train_batch_size=batch,
            max_steps=WARM + STEPS,
            learning_rate=2e-4,
            bf16=True,
            dataloader_num_workers=workers,
            save_strategy="no",
            report_to="none",
            disable_tqdm=True,
            use_cpu=device().type == "cpu",
        )
        loss = _losses().MultipleNegativesRankingLoss(model)
        peer.SentenceTransformerTrainer(model, how, train_dataset=pairs, loss=loss, callbacks=[clock]).train()
    return _rates(clock.seconds, batch)


def their_steps(texts: Texts, encoder: Path, batch: int, length: int, tokens_before: bool) -> dict[str, float]:
    """Time whole steps of the loss of sentence-transformers on pairs (text, text of one of its labels), in bfloat16."""
    model = _their_model(encoder, length).train()
    loss = _losses().MultipleNegativesRankingLoss(model)
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
    watch = Stopwatch()
    started = time.perf_counter()
    train_prime(network, Examples(tokens, labels, texts.Y), bank, prime_loss(settings), how, stopwatch=watch)
    _wait()
    total = time.perf_counter() - started
    return {"seconds": total, **{name: value / total for name, value in watch.seconds.items()}}


PEERS = {
    "their trainer": partial(their_trainer, workers=0),
    "their trainer, 8 processes for batches": partial(their_trainer, workers=8),
    "their loss in a loop": partial(their_steps, tokens_before=False),
    "their loss in a loop, tokens made before": partial(their_steps, tokens_before=True),
}


def speeds(texts: Texts, encoder: Path, batch: int, length: int, known: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Time our steps and theirs, unless theirs are known, and what sampling and clustering cost us.

    Yields all that is found so far after each of them.
    """
    found: dict[str, Any] = {**known, "batch": batch, "length": length}
    found["ours"] = our_steps(texts, encoder, batch, length)
    yield found
    peers = dict(PEERS)
    if missing := [name for name in ("datasets", "accelerate") if find_spec(name) is None]:
        print(f"without {' and '.join(missing)}, their trainer is not timed", flush=True)
        peers = {name: steps for name, steps in PEERS.items() if "trainer" not in name}
    for name, steps in peers.items():
        found[name] = known.get(name) or steps(texts, encoder, batch, length)
        ours = found["ours"]["rows_per_s"]
        found["ratios"] = {peer: ours / found[peer]["rows_per_s"] for peer in PEERS if peer in found}
        yield found
    shares = clusters_and_sampling(texts, encoder, batch, length)
    percent = 100 * (shares["sampling"] + shares["clustering"])
    yield found | {"shares": shares, "percent_in_sampling_and_clustering": percent}


def _begin(texts: Texts, encoder: Path, batch: int, length: int, epochs: int) -> tuple[Any, ...]:
    model = Prime(str(encoder), "prime-lite", epochs=epochs, batch_size=batch)
    params = model.get_params(deep=False)
    settings = resolve_settings(params, *texts.Y.shape)
    made = load_text_encoder(encoder, length).to(device())
    tokens, labels = made.tokens(texts.texts), made.tokens(texts.label_texts)
    network, bank = start_network(
        made,
        tokens,
        labels,
        texts.Y,
        n_free=settings.n_free,
        n_private=settings.n_private,
        mixed=device().type == "cuda",
    )
    return network, bank, tokens, labels, settings, loop_settings(params, settings)


def _timed(step: Callable[[], None], batch: int) -> dict[str, float]:
    for _ in range(WARM):
        step()
    _wait(forget_peak=True)
    started = time.perf_counter()
    for _ in range(STEPS):
        step()
    _wait()
    return _rates(time.perf_counter() - started, batch)


def _rates(seconds: float, batch: int) -> dict[str, float]:
    memory = torch.cuda.max_memory_allocated() / 2**30 if device().type == "cuda" else 0.0
    return {"rows_per_s": STEPS * batch / seconds, "ms_per_step": 1e3 * seconds / STEPS, "gpu_gib": memory}


def _wait(forget_peak: bool = False) -> None:
    if device().type == "cuda":
        torch.cuda.synchronize()
        if forget_peak:
            torch.cuda.reset_peak_memory_stats()


def _their_model(encoder: Path, length: int) -> Any:
    peer = importlib.import_module("sentence_transformers")
    model = peer.SentenceTransformer(str(encoder), device=str(device()), local_files_only=True).float()
    model.max_seq_length = length
    return model


def _losses() -> Any:
    try:
        return importlib.import_module("sentence_transformers.sentence_transformer.losses")
    except ImportError:  # before version 6
        return importlib.import_module("sentence_transformers.losses")
