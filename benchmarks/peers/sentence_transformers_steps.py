"""Training steps of sentence-transformers with MultipleNegativesRankingLoss, on the texts of a benchmark.

They are timed twice: by their own trainer, which needs the packages datasets and accelerate, and by their loss in a
plain loop of steps.
"""

from __future__ import annotations

import importlib
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch

from benchmarks.harness.torch_timing import STEPS, WARM, device, rates, timed_steps, wait
from benchmarks.prime.carried_data import Texts


def their_trainer(texts: Texts, encoder: Path, batch: int, length: int, workers: int) -> dict[str, float]:
    """Time steps of sentence-transformers' own trainer in bfloat16, with the batches made by so many processes."""
    peer, Dataset = importlib.import_module("sentence_transformers"), importlib.import_module("datasets").Dataset

    class Clock(importlib.import_module("transformers").TrainerCallback):  # type: ignore[misc]
        """Looks at the clock where a step ends: after the last one to warm up, and after the last one."""

        started = seconds = 0.0

        def on_step_end(self, _: Any, state: Any, __: Any, **___: Any) -> None:
            if state.global_step == WARM:
                wait(forget_peak=True)
                self.started = time.perf_counter()
            if state.global_step == WARM + STEPS:
                wait()
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
    return rates(clock.seconds, batch)


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
        batch_pairs = next(left) if tokens_before else pairs()
        features = [{k: v.to(device()) if hasattr(v, "to") else v for k, v in part.items()} for part in batch_pairs]
        optimizer.zero_grad(set_to_none=True)
        with torch.autocast(device().type, torch.bfloat16):
            value = loss(features, torch.empty(0))
        value.backward()
        optimizer.step()

    return timed_steps(step, batch)


PEERS = {
    "their trainer": partial(their_trainer, workers=0),
    "their trainer, 8 processes for batches": partial(their_trainer, workers=8),
    "their loss in a loop": partial(their_steps, tokens_before=False),
    "their loss in a loop, tokens made before": partial(their_steps, tokens_before=True),
}


def _their_model(encoder: Path, length: int) -> Any:
    """Return their model around the same encoder."""
    peer = importlib.import_module("sentence_transformers")
    model = peer.SentenceTransformer(str(encoder), device=str(device()), local_files_only=True).float()
    model.max_seq_length = length
    return model


def _losses() -> Any:
    """Return their module of losses, which has moved between versions."""
    try:
        return importlib.import_module("sentence_transformers.sentence_transformer.losses")
    except ImportError:  # before version 6
        return importlib.import_module("sentence_transformers.losses")
